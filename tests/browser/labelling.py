"""Sessions to label by hand, and what a person does with them."""

from collections.abc import Sequence
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.browser.site import Site
from tests.factories import numbers_of
from tests.pairs import Pair, body_of

ZERO_ONE = {"kind": "zero_one"}
ITEM = "#item[data-round]"

NEXT_ITEM_MS = """
    (key) => new Promise((resolve) => {
      const item = document.getElementById("item");
      const before = item.dataset.round;
      const begin = performance.now();
      new MutationObserver((_, watch) => {
        if (item.dataset.round === before || item.dataset.round === undefined) return;
        watch.disconnect();
        requestAnimationFrame(() => resolve(performance.now() - begin));
      }).observe(item, { attributes: true });
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    })
"""
"""Presses a key; resolves with the milliseconds until the next item is drawn."""

NOTHING_UNSENT = (
    "() => !Object.keys(localStorage).some((place) => place.startsWith('celeus.unsent'))"
)


def session_of(
    site: Site,
    payloads: Sequence[object],
    loss: dict[str, Any] | None = None,
    members: dict[str, Any] | None = None,
    pool: dict[str, Any] | None = None,
    **opening: Any,  # noqa: ANN401 - whatever the wire takes
) -> str:
    """An open session on a pool of these payloads, each with the same other members.

    ``pool`` is what else the pool is made of, such as its levels.
    """
    items = [
        {"id": f"item-{number}", "payload": payload} | (members or {})
        for number, payload in enumerate(payloads)
    ]
    form = {"name": "by hand", "loss": loss or ZERO_ONE, "items": items, "sealed": True}
    form |= pool or {}
    with site.client() as client:
        made = client.post("/v1/pools", json=form)
        assert made.status_code == 201, made.text
        session = client.post("/v1/sessions", json={"pool_id": made.json()["id"]} | opening)
        assert session.status_code == 201, session.text
    return str(session.json()["id"])


def compared(site: Site, judged: str, **opening: Any) -> tuple[str, Pair]:  # noqa: ANN401 - JSON
    """An open session on two systems, and what is true of its pool."""
    body, pool = body_of(judged)
    if grades := opening.pop("grades", None):
        body["loss"] = {"kind": "preference", "upper": grades}
    if loss := opening.pop("loss", None):
        body["loss"] = loss
    with site.client() as client:
        made = client.post("/v1/pools", json=body)
        assert made.status_code == 201, made.text
        session = client.post("/v1/sessions", json={"pool_id": made.json()["id"]} | opening)
        assert session.status_code == 201, session.text
    return str(session.json()["id"]), pool


def texts(count: int) -> list[dict[str, Any]]:
    """Payloads that can be told apart."""
    return [{"text": f"This is item number {number}."} for number in range(count)]


def change(site: Site, session: str, **what: object) -> None:
    """Pause, resume, close or change a session, as whoever manages it does."""
    with site.client() as client:
        assert client.patch(f"/v1/sessions/{session}", json=what).status_code == 200


def events(site: Site, session: str, kind: str) -> list[dict[str, Any]]:
    """The events of one kind in a session's ledger, their rounds by the numbers of its pages."""
    with site.client() as client:
        told = client.get(f"/v1/sessions/{session}/ledger", params={"limit": 1000}).json()
    numbers = numbers_of(site.database_url, session)
    return [
        event | {"round": numbers.shown(event["round"])}
        for event in told["data"]
        if event["kind"] == kind
    ]


def visit(page: Page, session: str) -> Locator:
    """Open the labelling page; returns the place of the item, when there is one."""
    page.goto(f"/label/{session}")
    item = page.locator(ITEM)
    item.wait_for()
    return item


def round_on(page: Page) -> int:
    """The round of the item that is shown, by the number of a blind key."""
    shown = page.locator(ITEM).get_attribute("data-round")
    assert shown is not None
    return int(shown)


def await_round(page: Page, number: int) -> None:
    """Return once the item of a round is shown."""
    expect(page.locator(ITEM)).to_have_attribute("data-round", str(number))


def press(page: Page, key: str) -> int:
    """Judge the item by a key; returns its round, when another item is shown or none is left."""
    judged = round_on(page)
    page.keyboard.press(key)
    expect(page.locator(f'#item[data-round="{judged}"]')).to_have_count(0)
    return judged


def all_sent(page: Page) -> None:
    """Wait until the browser keeps no label any more: the service has them all."""
    page.wait_for_function(NOTHING_UNSENT)
