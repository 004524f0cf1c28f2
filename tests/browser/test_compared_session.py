"""The page and the report of a comparison: who is better, in a sentence and a picture."""

from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.evaluations import barriers
from tests.browser.labelling import compared
from tests.browser.site import WIDE, Site, at_night
from tests.pairs import A, B, Pair

SignedIn = Callable[..., Page]
PHONE = {"width": 390, "height": 844}


def judge(site: Site, session: str, pool: Pair, most: int) -> None:
    """Judge up to so many items truly, by a and b."""
    with site.client() as client:
        body = {"worker": "ada", "count": most}
        draws = client.post(f"/v1/sessions/{session}/next", json=body).json()["draws"]
        said = [{"round": one["round"]} | pool.said(one["item"]["index"]) for one in draws]
        told = {"worker": "ada", "observations": said}
        answer = client.post(f"/v1/sessions/{session}/observe", json=told)
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("viewport", [at_night(PHONE), WIDE], ids=["phone", "desktop"])
def test_a_comparison_is_followed_to_its_verdict(
    server: Site, signed_in: SignedIn, viewport: dict[str, int]
) -> None:
    session, pool = compared(server, "losses", decide={"margin": 0.25}, alpha=1e-9, name="Release")
    page = signed_in(viewport=viewport)
    page.goto(f"/sessions/{session}")
    sentence = page.locator("#sentence")
    expect(sentence).to_contain_text(f"Nothing is judged yet: {B} makes between")
    expect(page.locator("#answers")).to_contain_text("Undecided so far")
    judge(server, session, pool, 10)
    expect(page.locator("#chart-readout")).to_contain_text("after 10 labels")
    expect(sentence).to_contain_text("valid at every look")
    expect(page.locator("#chart-key")).to_contain_text("the margin of 25 points around it")
    known = sum(pool.known)
    figures = page.locator("#figures")
    expect(figures).to_contain_text(f"10 of {len(pool.items) - known}")
    expect(figures).to_contain_text(f"{known} more never asked for: same answer (exact)")
    expect(page.locator("#sides")).to_contain_text("no claim rests on how often one won")
    expect(page.locator("#health")).to_contain_text(f"of {A} less what they say of {B}")
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    judge(server, session, pool, 60)
    expect(page.locator("#answers .badge")).not_to_contain_text("Undecided")
    expect(sentence).to_contain_text("every item is judged or known")
    said = sentence.inner_text()
    page.goto(f"/v1/sessions/{session}/report")
    expect(page.locator(".claim")).to_have_text(said)
    report = page.locator("main")
    expect(report).to_contain_text(f"Is {A} or {B} at least as good, or are they equivalent")
    expect(report).to_contain_text(f"{known} of 60 items; same answer (exact): {known}")
    expect(page.locator("rect.margin")).to_have_count(1)
    assert barriers(page) == []


@pytest.mark.nightly
def test_a_new_version_says_on_its_page_what_its_pool_is_based_on(
    server: Site, signed_in: SignedIn
) -> None:
    rows = [{"id": f"q{at}", "prediction": at % 3} for at in range(20)]
    exam = {"name": "exam", "loss": {"kind": "zero_one"}, "sealed": True}

    def opened(client: httpx.Client, body: dict[str, object]) -> str:
        pool = client.post("/v1/pools", json=exam | body).json()["id"]
        return str(client.post("/v1/sessions", json={"pool_id": pool}).json()["id"])

    with server.client() as client:
        source = opened(client, {"items": rows})
        client.post(f"/v1/sessions/{source}/next", json={"worker": "ada"})
        told = {"round": 1, "label": 0, "worker": "ada"}
        client.post(f"/v1/sessions/{source}/observe", json=told)
        client.patch(f"/v1/sessions/{source}", json={"state": "closed"})
        fresh = [row | {"prediction": 0} for row in rows]
        on = {"session": source, "labels_seen": "unknown"}
        session = opened(client, {"items": fresh, "based_on": on})
    page = signed_in()
    page.goto(f"/sessions/{session}")
    expect(page.locator("#figures")).to_contain_text(f"never asked for: true label ({source})")
    plan = page.locator("#plan")
    expect(plan).to_contain_text(f"Judgements carried over from{source}")
    expect(plan).to_contain_text("The new version’s makers saw labelsnot known")
    page.goto(f"/v1/sessions/{session}/report")
    expect(page.locator("main")).to_contain_text(f"They are those of {source}")
    expect(page.locator("main")).to_contain_text("saw labels of this pool, or those of an earlier")
    assert barriers(page) == []
