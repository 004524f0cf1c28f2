from playwright.sync_api import Page, expect

from tests.browser.site import Complaints, Site


def test_a_key_signs_in_by_keyboard_alone(page: Page, server: Site, complaints: Complaints) -> None:
    complaints.expect("404")
    page.goto("/login?next=/nowhere-yet?a=1")
    page.keyboard.type(server.key("read"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{server.url}/nowhere-yet?a=1")
