"""A session told by the score that its pool declares, on its page, its card and its report."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.evaluations import barriers
from tests.browser.site import WIDE, Site

pytestmark = pytest.mark.nightly

NAME = "<b>accuracy</b>"
PHONE = {"width": 390, "height": 844}


@pytest.mark.parametrize("viewport", [PHONE, WIDE], ids=["phone", "desktop"])
def test_a_score_is_told_in_percent_and_in_its_direction(
    server: Site, signed_in: Callable[..., Page], viewport: dict[str, int]
) -> None:
    items = [{"id": f"q{at}", "surrogate": 0.3} for at in range(80)]
    form = {"name": "exam", "loss": {"kind": "zero_one"}, "items": items, "sealed": True}
    with server.client() as client:
        score = {"score": {"name": NAME, "better": "higher"}}
        pool = client.post("/v1/pools", json=form | score).json()["id"]
        asked = [{"side": "at_most", "threshold": 0.9}]
        opening = {"pool_id": pool, "questions": asked, "stop_when_decided": False}
        session = client.post("/v1/sessions", json=opening).json()["id"]
        place = f"/v1/sessions/{session}"
        draws = client.post(f"{place}/next", json={"worker": "ada", "count": 40}).json()["draws"]
        for draw in draws:
            loss = int(draw["item"]["index"] % 4 == 0)
            body = {"round": draw["round"], "loss": loss, "worker": "ada"}
            client.post(f"{place}/observe", json=body)
        status = client.get(place).json()
    page = signed_in(viewport=viewport)
    page.goto(f"/sessions/{session}")
    expect(page.locator("#sentence")).to_have_text(status["sentence"])
    figures = page.locator("#figures")
    expect(figures).to_contain_text(f"{NAME}; higher is better")
    expect(page.locator("#answers")).to_contain_text(f"Is the {NAME} at least 10\u202f%?")
    expect(page.locator("#chart-readout")).to_contain_text("after 40 labels")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert barriers(page) == []
    page.goto("/")
    expect(page.locator("#sessions")).to_contain_text(NAME)
    page.goto(f"/v1/sessions/{session}/report")
    expect(page.locator(".claim")).to_have_text(status["sentence"])
    assert barriers(page) == []
