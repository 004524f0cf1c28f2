"""Two answers side by side, judged blind and by keyboard."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Request, expect

from celeus.core.certificate.report import Report
from celeus.core.certificate.verify import verify
from celeus.operations.certificates.npz import read_archive
from tests.browser.evaluations import barriers
from tests.browser.labelling import ITEM, all_sent, change, compared, events, press, visit
from tests.browser.site import WIDE, Site, at_night
from tests.pairs import A, B, Pair

SignedIn = Callable[..., Page]
PHONE = {"width": 390, "height": 844}
WORDS = ("left", "right")
KEYS = {"left": "ArrowLeft", "tie": "ArrowDown", "both_bad": "x", "right": "ArrowRight"}


def told(site: Site, session: str) -> dict[str, Any]:
    """The session, as whoever runs it is told."""
    with site.client() as client:
        found: dict[str, Any] = client.get(f"/v1/sessions/{session}").json()
    return found


def read(page: Page, pool: Pair) -> dict[str, bool]:
    """Whether the answer on each side is right, as somebody who knows the subject reads it."""
    question = page.locator("#item .payload-question, #item > .payload-question").inner_text()
    truth = pool.truth[int(question.rpartition(" ")[2])]
    sides = page.locator("#item .payload-side")
    # The answer comes first, then its own payload
    answers = [sides.nth(at).locator(".payload-text").first for at in range(len(WORDS))]
    return {
        side: answer.inner_text() == f"option {truth}"
        for side, answer in zip(WORDS, answers, strict=True)
    }


def stacked(page: Page) -> bool:
    """The left answer stands above the right one, and not beside it."""
    left, right = (page.locator(".payload-side").nth(at).bounding_box() for at in (0, 1))
    assert left is not None
    assert right is not None
    assert (left["x"] < right["x"]) is not (left["y"] < right["y"])
    return left["y"] < right["y"]


def judged_to_the_end(page: Page, pool: Pair) -> dict[str, int]:
    """Judge by arrow keys until there is no item; how often which side was better."""
    won = dict.fromkeys(KEYS, 0)
    while page.locator(ITEM).count():
        right = read(page, pool)
        better = "left" if right["left"] else "right"
        if right["left"] == right["right"]:
            better = "tie" if right["left"] else "both_bad"
        won[better] += 1
        press(page, KEYS[better])
        rest = "#rest[data-rest]:not([data-rest=active], [data-rest=waiting])"
        page.locator(f"{ITEM}, {rest}").first.wait_for()
    return won


@pytest.mark.parametrize("viewport", [PHONE, at_night(WIDE)], ids=["phone", "desktop"])
def test_two_systems_are_compared_blind_by_keyboard(
    server: Site, signed_in: SignedIn, viewport: dict[str, int]
) -> None:
    # The seed is the service's: at this alpha no run sees an interval miss, whatever is drawn
    asked = {"decide": {"margin": 0.25}, "alpha": 1e-9, "name": f"{A} or {B}"}
    session, pool = compared(server, "preference", **asked)
    page = signed_in("label", viewport=viewport)
    heard: list[str] = []
    page.on("requestfinished", lambda asked: heard.append(_text_of(asked)))
    visit(page, session)
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert stacked(page) is (viewport is PHONE)
    won = judged_to_the_end(page, pool)
    all_sent(page)
    expect(page.locator("#rest")).to_contain_text("Thank you")
    seen = (page.content() + "".join(heard)).casefold()
    for word in (A, B, '"a"', '"b"', '"systems"', '"sides"', "surrogate"):
        assert word not in seen, word
    status = told(server, session)
    both_bad = won.pop("both_bad")
    won["tie"] += both_bad
    said = [event["detail"]["preference"] for event in events(server, session, "observation")]
    assert said.count("both_bad") == both_bad > 0
    assert status["sides"] == won
    difference = sum(pool.better) / len(pool.better)
    assert status["lower"] <= difference <= status["upper"]
    assert status["verdict"]["answer"] in {"b_at_least_as_good", "equivalent"}
    assert status["rounds"]["judged"] == sum(won.values()) <= sum(not one for one in pool.known)
    report = verified(server, session, status["pool_id"])
    assert report.valid, report.line
    assert {"pool_columns", "sides", "labels", "draws"} <= set(report.checked)


def verified(site: Site, session: str, pool: str) -> Report:
    """What a verifier says of the final certificate and the pool's columns, known items too."""
    change(site, session, state="closed")
    with site.client() as client:
        certificate = client.get(f"/v1/sessions/{session}/certificate").raise_for_status()
        columns = client.get(f"/v1/pools/{pool}/columns.npz").raise_for_status()
    return verify(certificate.content, read_archive(io.BytesIO(columns.content)))


def _text_of(request: Request) -> str:
    response = request.response()
    return response.text() if response is not None and "/v1/" in response.url else ""


JUDGED: list[tuple[str, dict[str, Any], list[str], dict[str, Any]]] = [
    ("preference", {}, ["ArrowDown"], {"preference": "tie"}),
    ("preference", {}, ["x"], {"preference": "both_bad"}),
    ("preference", {}, ["ArrowRight"], {"preference": "right"}),
    ("preference", {"grades": 2}, ["1"], {"preference": "left", "grade": 2}),
    ("preference", {"grades": 2}, ["ArrowRight"], {"preference": "right"}),
    ("preference", {"grades": 2}, ["x"], {"preference": "both_bad"}),
    (
        "preference",
        {"grades": 7},
        ["ArrowLeft"] * 3 + ["Enter"],
        {"preference": "left", "grade": 3},
    ),
    ("preference", {"grades": 7}, ["ArrowDown", "Enter"], {"preference": "tie"}),
    ("preference", {"grades": 7}, ["x"], {"preference": "both_bad"}),
    ("losses", {}, ["ArrowLeft"], {"loss_left": 0, "loss_right": 1}),
    ("losses", {}, ["ArrowUp"], {"loss_left": 0, "loss_right": 0}),
    ("losses", {}, ["ArrowDown"], {"loss_left": 1, "loss_right": 1}),
    (
        "losses",
        {"loss": {"kind": "bounded", "lower": 0, "upper": 10}},
        ["2", "Enter", "5", "ArrowRight", "Enter"],
        {"loss_left": 2, "loss_right": 5.1},
    ),
]


@pytest.mark.nightly
@pytest.mark.parametrize("viewport", [PHONE, WIDE], ids=["phone", "desktop"])
def test_what_a_pool_asks_for_is_said_by_keys(
    server: Site, signed_in: SignedIn, viewport: dict[str, int]
) -> None:
    page = signed_in("label", viewport=viewport)
    for kind, opening, keys, said in JUDGED:
        session, _ = compared(server, kind, **opening)
        visit(page, session)
        assert barriers(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for key in keys[:-1]:
            page.keyboard.press(key)
        press(page, keys[-1])
        all_sent(page)
        [event] = events(server, session, "observation")
        detail = {name: it for name, it in event["detail"].items() if name not in {"worker", "key"}}
        assert detail == said, keys


@pytest.mark.nightly
def test_a_true_label_is_asked_for_where_it_gives_both_losses(
    server: Site, signed_in: SignedIn
) -> None:
    session, pool = compared(server, "label")
    page = signed_in("label", viewport=PHONE)
    visit(page, session)
    expect(page.locator(".payload-side")).to_have_count(2)
    question = page.locator("#item .payload-question").inner_text()
    truth = pool.truth[int(question.rpartition(" ")[2])]
    page.keyboard.press(str(truth))
    press(page, "Enter")
    all_sent(page)
    [event] = events(server, session, "observation")
    assert event["detail"]["label"] == truth


@pytest.mark.nightly
def test_a_preference_is_taken_back(server: Site, signed_in: SignedIn) -> None:
    session, _ = compared(server, "preference", grades=2)
    page = signed_in("label")
    visit(page, session)
    judged = press(page, "1")
    all_sent(page)
    page.keyboard.press("z")
    expect(page.locator("#notices")).to_contain_text("You judged this “Left is much better”")
    assert press(page, "ArrowLeft") == judged
    all_sent(page)
    [amended] = events(server, session, "amendment")
    assert (amended["round"], amended["detail"]["preference"]) == (judged, "left")
    assert "grade" not in amended["detail"]


@pytest.mark.nightly
@pytest.mark.parametrize("viewport", [PHONE, WIDE], ids=["phone", "desktop"])
@pytest.mark.parametrize("grades", [1, 7])
def test_both_bad_is_tapped_and_named_when_it_is_taken_back(
    server: Site, signed_in: SignedIn, grades: int, viewport: dict[str, int]
) -> None:
    session, _ = compared(server, "preference", grades=grades)
    page = signed_in("label", viewport=viewport)
    visit(page, session)
    page.get_by_role("button", name="Both are bad").click()
    all_sent(page)
    [event] = events(server, session, "observation")
    assert event["detail"]["preference"] == "both_bad"
    page.keyboard.press("z")
    expect(page.locator("#notices")).to_contain_text("You judged this “Both are bad”")


@pytest.mark.nightly
def test_an_arrow_held_down_judges_one_pair(server: Site, signed_in: SignedIn) -> None:
    session, _ = compared(server, "preference")
    page = signed_in("label")
    visit(page, session)
    for _ in range(5):
        page.keyboard.down("ArrowDown")
    page.keyboard.up("ArrowDown")
    all_sent(page)
    assert len(events(server, session, "observation")) == 1
