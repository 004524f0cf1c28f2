"""Sessions with a table of claims in a browser: followed, sorted, downloaded, labelled."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.evaluations import barriers
from tests.browser.labelling import ITEM, press
from tests.browser.site import WIDE, Site

SignedIn = Callable[..., Page]
SMALL = {"width": 360, "height": 800}
PHONE = {"width": 390, "height": 844}
METRICS: dict[str, Any] = {
    "correct": {"kind": "zero_one", "score": {"name": "accuracy", "better": "higher"}},
    "harmful": {"kind": "zero_one"},
    "grade": {"kind": "bounded", "lower": 0, "upper": 5},
}
SUBJECTS = 57


class Tables:
    """A pool of three metrics in many groups, and an open session on it."""

    def __init__(self, site: Site, subjects: int = SUBJECTS, **opening: Any) -> None:  # noqa: ANN401
        chance = np.random.default_rng(3)
        self.site, size = site, 35 * subjects
        guess = chance.random(size).round(3)
        self.losses = [
            {
                "correct": float(chance.random() < one),
                "harmful": float(chance.random() < one / 4),
                "grade": round(5.0 * one, 1),
            }
            for one in guess.tolist()
        ]
        items = [
            {
                "id": f"item-{at}",
                "payload": {"text": f"Text {at}"},
                "surrogates": {"correct": one, "harmful": one / 4, "grade": 5 * one},
                "groups": {"subject": f"high school subject {at % subjects}"},
            }
            for at, one in enumerate(guess.tolist())
        ]
        body = {"name": "answers", "metrics": METRICS, "items": items, "sealed": True}
        with site.client() as client:
            made = client.post("/v1/pools", json=body)
            assert made.status_code == 201, made.text
            asked = {
                "pool_id": made.json()["id"],
                "groups": ["subject"],
                "precision": dict.fromkeys(METRICS, 0.2) | {"grade": 1.0},
                "name": "Answers by subject",
            }
            session = client.post("/v1/sessions", json=asked | opening)
            assert session.status_code == 201, session.text
        self.session = str(session.json()["id"])

    def judge(self, most: int) -> None:
        """Judge so many items truly."""
        with self.site.client() as client:
            path = f"/v1/sessions/{self.session}"
            asked = {"worker": "ada", "count": most}
            for draw in client.post(f"{path}/next", json=asked).json()["draws"]:
                losses = self.losses[draw["item"]["index"]]
                body = {"round": draw["round"], "worker": "ada", "losses": losses}
                answer = client.post(f"{path}/observe", json=body)
                assert answer.status_code == 200, answer.text


def wanted(site: Site, session: str) -> list[dict[str, Any]]:
    """The claims of groups, each with the width of its interval as a share of the scale."""
    with site.client() as client:
        claims = client.get(f"/v1/sessions/{session}/claims").json()["data"]
    for claim in claims:
        scale = claim["scale"]["upper"] - claim["scale"]["lower"]
        claim["relative"] = (claim["upper"] - claim["lower"]) / scale
    return [claim for claim in claims if claim["column"] is not None]


@pytest.mark.nightly
@pytest.mark.parametrize("viewport", [SMALL, WIDE], ids=["phone", "desktop"])
def test_claims_are_followed_sorted_and_read_on_a_phone(
    server: Site, signed_in: SignedIn, viewport: dict[str, int]
) -> None:
    tables = Tables(server)
    page = signed_in(viewport=viewport)
    page.goto(f"/sessions/{tables.session}")
    claims = page.locator("#claims td")
    expect(claims).to_have_count(3 * (1 + SUBJECTS))
    expect(page.locator("#sentence")).to_contain_text("claims")
    expect(page.locator("#claims .wide")).to_have_count(3 * (1 + SUBJECTS))
    tables.judge(60)
    expect(page.locator("#figures")).to_contain_text("60 of")
    expect(claims.first).to_contain_text("60 of")
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    directions = ["better →", "← better", "← better"]
    expect(page.locator("#claims table").first.locator(".better")).to_have_text(directions)
    page.locator("#order").select_option("doubt")
    # The widest interval leads its lines
    widest = page.locator("#claims tbody").last.locator("tr").first
    told = max(wanted(server, tables.session), key=lambda claim: claim["relative"])
    expect(widest.locator("th")).to_have_text(told["value"])
    with page.expect_download() as download:
        page.locator("#csv").click()
    lines = download.value.path().read_text().splitlines()
    assert len(lines) == 1 + 3 * (1 + SUBJECTS)
    expect(page.locator("#promises li")).to_have_count(3)
    expect(page.get_by_role("button", name="New precision")).to_be_hidden()


def test_the_page_tells_what_is_left_of_alpha_and_what_was_added(
    server: Site, signed_in: SignedIn
) -> None:
    tables = Tables(server, subjects=6, account="together", reserve=0.01)
    tables.judge(10)
    page = signed_in()
    page.goto(f"/sessions/{tables.session}")
    account = page.locator("#promises li").last
    expect(account).to_have_text("0.01 of alpha is left for claims added later.")
    added = {"metric": "correct", "column": "subject", "value": "high school subject 1"}
    with tables.site.client() as client:
        path = f"/v1/sessions/{tables.session}/claims"
        answer = client.post(path, json=added | {"level": 0.004, "precision": 0.3})
        assert answer.status_code == 201, answer.text
    expect(account).to_have_text(
        "0.006 of alpha is left for claims added later; 1 claim added so far."
    )
    claims = page.locator("#claims td:not(:empty)")
    expect(claims).to_have_count(3 * (1 + 6) + 1)
    expect(page.locator("#claims")).to_contain_text("added after 10 labels")


@pytest.mark.nightly
@pytest.mark.parametrize("viewport", [SMALL, WIDE], ids=["phone", "desktop"])
def test_a_claim_leads_to_the_items_it_speaks_of(
    server: Site, signed_in: SignedIn, viewport: dict[str, int]
) -> None:
    tables = Tables(server, subjects=2)
    tables.judge(20)
    page = signed_in(viewport=viewport)
    page.goto(f"/sessions/{tables.session}")
    row = page.locator("#claims tr").filter(has_text="high school subject 1")
    row.get_by_role("link").last.click()
    items = page.locator("#items > li")
    expect(items).to_have_count(35)
    expect(page.locator("#told")).to_have_text("35 items.")
    expect(items.first).to_contain_text("item-1")
    expect(items.first).to_contain_text("Text 1")
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_label("Judged", exact=True).check()
    expect(page).to_have_url(re.compile("judged=true"))
    expect(page.get_by_text("not judged", exact=True)).to_have_count(0)
    expect(items.first).to_contain_text("correct")
    judged = items.count()
    page.reload()
    expect(items).to_have_count(judged)
    page.get_by_role("link", name="Answers by subject").click()
    page.locator("#claims td a").first.click()
    expect(items).to_have_count(50)
    page.get_by_role("link", name="Next page").click()
    expect(items).to_have_count(20)


@pytest.mark.nightly
@pytest.mark.parametrize("viewport", [PHONE, WIDE], ids=["phone", "desktop"])
def test_every_metric_of_a_judgement_is_asked_for(
    server: Site, signed_in: SignedIn, viewport: dict[str, int]
) -> None:
    """By keys alone: two ends of a zero-one loss, a grade, and what nobody can tell."""
    tables = Tables(server, subjects=2)
    page = signed_in("label", viewport=viewport)
    page.goto(f"/label/{tables.session}")
    expect(page.locator("#answers input[type=range]")).to_have_count(1)
    expect(page.locator("#answers .line")).to_have_count(3)
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    give = page.locator("#give")
    for count, keys in enumerate(("005", "1u94"), 1):
        expect(page.locator(ITEM)).to_be_visible()
        expect(give).to_be_disabled()
        for key in keys:
            page.keyboard.press(key)
        expect(give).to_be_enabled()
        press(page, "Enter")
        expect(page.locator("#count")).to_have_text(str(count))
    with server.client() as client:
        said: list[list[float | None]] = []
        while len(said) < 2:
            ledger = client.get(f"/v1/sessions/{tables.session}/ledger").json()["data"]
            said = [one["losses"] for one in ledger if one["kind"] == "observation"]
    assert said == [[1.0, 0.0, 5.0], [0.0, None, 4.0]]


@pytest.mark.nightly
@pytest.mark.parametrize("viewport", [PHONE, WIDE], ids=["phone", "desktop"])
def test_the_report_of_a_table_is_read_anywhere(
    server: Site, signed_in: SignedIn, viewport: dict[str, int]
) -> None:
    tables = Tables(server, subjects=12)
    tables.judge(60)
    page = signed_in(viewport=viewport)
    page.goto(f"/v1/sessions/{tables.session}/report")
    expect(page.locator("rect.band")).to_have_count(3 * 13)
    expect(page.locator("body")).to_contain_text("correct (accuracy, higher is better)")
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
