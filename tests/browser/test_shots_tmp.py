from playwright.sync_api import expect

from tests.browser.evaluations import barriers
from tests.browser.natural import files
from tests.browser.site import NARROW, WIDE
from tests.browser.test_new_session import file_of


def test_shots(signed_in, server):
    wanted = {f[0].split("_")[0]: f for f in files()}
    for scheme, view, names in (
        ("light", WIDE, ["Fragen.csv", "chats.json", "pictures.csv"]),
        ("dark", NARROW, ["questions.csv", "small.eval"]),
    ):
        page = signed_in("manage", viewport=view, color_scheme=scheme)
        for n in names:
            name, content, shows, _ = wanted[n]
            page.goto("/sessions/new")
            page.set_input_files("#file", file_of(name, content))
            expect(page.locator("#checked")).to_contain_text("every row")
            page.screenshot(path=f"/tmp/shot-{n}-{scheme}.png", full_page=True)
            found = barriers(page)
            wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
            print(n, scheme, found, wide)
