"""The best of several systems in a browser: opened, labelled by keys, followed to its end."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.evaluations import barriers
from tests.browser.labelling import press
from tests.browser.site import WIDE, Site, at_night
from tests.lineups import NAMES, Field, body_of

SignedIn = Callable[..., Page]
PHONE = {"width": 390, "height": 844}


def several(site: Site, judged: str, **opening: object) -> tuple[str, Field]:
    """An open session on several systems, and what is true of its pool."""
    body, pool = body_of(judged)
    with site.client() as client:
        made = client.post("/v1/pools", json=body)
        assert made.status_code == 201, made.text
        asked = {"pool_id": made.json()["id"], "best": True} | opening
        session = client.post("/v1/sessions", json=asked)
        assert session.status_code == 201, session.text
    return str(session.json()["id"]), pool


def judge(site: Site, session: str, pool: Field, most: int) -> None:
    """Judge up to so many items truly."""
    with site.client() as client:
        asked = {"worker": "ada", "count": most}
        draws = client.post(f"/v1/sessions/{session}/next", json=asked).json()["draws"]
        said = [{"round": one["round"]} | pool.said(one["item"]["index"]) for one in draws]
        body = {"worker": "ada", "observations": said}
        answer = client.post(f"/v1/sessions/{session}/observe", json=body)
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("viewport", [at_night(PHONE), WIDE], ids=["phone", "desktop"])
def test_systems_drop_out_of_the_ladder_until_one_is_left(
    server: Site, signed_in: SignedIn, viewport: dict[str, int]
) -> None:
    session, pool = several(server, "label", alpha=1e-9, name="Which model")
    page = signed_in(viewport=viewport)
    page.goto(f"/sessions/{session}")
    sentence, ladder = page.locator("#sentence"), page.locator("#ladder")
    expect(sentence).to_have_text("Nothing is judged yet: any of the 4 systems may be the best.")
    expect(ladder.locator("li")).to_have_count(4)
    judge(server, session, pool, 3)
    expect(page.locator("#figures")).to_contain_text("3 of ")
    expect(sentence).to_contain_text("No system is out yet")
    expect(ladder).to_contain_text("for certain, by about")
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    judge(server, session, pool, 100)
    expect(sentence).to_contain_text("qwen-72b is at least as good as every other of 4 systems")
    expect(ladder.locator("li").first).to_contain_text("none is better")
    expect(ladder.locator(".rung.out")).to_have_count(3)
    said = sentence.inner_text()
    page.goto(f"/v1/sessions/{session}/report")
    expect(page.locator(".claim")).to_have_text(said)
    assert barriers(page) == []
    page.goto("/")
    expect(page.locator(f"tr[data-id={session}]")).to_contain_text(said)


@pytest.mark.nightly
def test_every_answer_is_judged_once_by_a_key(server: Site, signed_in: SignedIn) -> None:
    session, pool = several(server, "answers")
    page = signed_in(viewport=WIDE)
    page.goto(f"/label/{session}")
    item = page.locator("#item[data-round]")
    expect(item).to_contain_text("Answer 1")
    expect(page.locator("#unjudgeable")).to_be_hidden()
    expect(page.locator("#stands")).to_be_visible()
    assert barriers(page) == []
    assert not any(name in page.content() for name in NAMES)
    for count in range(3):
        expect(page.locator("#count")).to_have_text(str(count))
        expect(item).to_be_visible()
        sliders = page.locator("#answers input[type=range]").count()
        if sliders:
            # Enter goes on to the next slider, and on the last one gives them all
            for _ in range(sliders - 1):
                page.keyboard.press("End")
                page.keyboard.press("Enter")
            page.keyboard.press("End")
            press(page, "Enter")
        else:
            press(page, "0")
    expect(page.locator("#count")).to_have_text("3")
    with server.client() as client:
        ledger = client.get(f"/v1/sessions/{session}/ledger").json()["data"]
        while len(said := [one["losses"] for one in ledger if one["kind"] == "observation"]) < 3:
            ledger = client.get(f"/v1/sessions/{session}/ledger").json()["data"]
    assert said == [[1.0] * len(pool.names)] * 3
    page.goto(f"/sessions/{session}")
    expect(page.locator("#sides")).to_contain_text("another or several in 3; the order was drawn")
    assert barriers(page) == []


@pytest.mark.nightly
def test_where_no_answers_are_shown_the_page_says_so(server: Site, signed_in: SignedIn) -> None:
    session, _ = several(server, "losses")
    page = signed_in(viewport=WIDE)
    page.goto(f"/label/{session}")
    expect(page.locator("#answers")).to_contain_text("This pool shows no answers to judge")
    expect(page.locator("#answers button")).to_have_count(0)


@pytest.mark.nightly
def test_a_session_on_several_systems_is_opened_by_hand(server: Site, signed_in: SignedIn) -> None:
    body, _ = body_of("label")
    with server.client() as client:
        pool = client.post("/v1/pools", json=body | {"name": "models to choose"}).json()["id"]
    page = signed_in(viewport=WIDE)
    page.goto(f"/sessions/new?pool={pool}")
    expect(page.locator("#best")).to_contain_text("Which of these 4 systems is the best")
    expect(page.locator("#precision")).to_be_hidden()
    expect(page.locator("#target")).to_be_hidden()
    assert barriers(page) == []
    page.get_by_role("button", name="Open the session").click()
    expect(page.locator("#ladder li")).to_have_count(4)
