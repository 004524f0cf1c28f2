"""Reports of sessions that seek the best, and of tables."""

from typing import Any

import pytest
from httpx import AsyncClient

from celeus.commands.verify import _best
from celeus.core.insights.badges import badge_of
from celeus.core.insights.sentences import best_sentence
from tests.api.sessions.test_table import claims_of, opened
from tests.factories import judged_all
from tests.tabled import sheet
from tests.web.report.test_page import read

NAMES = ["one", "two", "three"]


def status(**changed: Any) -> dict[str, Any]:  # noqa: ANN401
    best = {"winner": None, "standing": NAMES, "systems": [{"name": name} for name in NAMES]}
    whole = {"alpha": 0.05, "stop_reason": None, "rounds": {"in_interval": 4}}
    return (
        whole
        | {"best": best | {name: changed.pop(name) for name in best if name in changed}}
        | (changed)
    )


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"rounds": {"in_interval": 0}},
            "Nothing is judged yet: any of the 3 systems may be the best.",
        ),
        (
            {},
            "No system is out yet: any of the 3 systems may be the best.",
        ),
        (
            {"standing": ["one", "three"]},
            (
                "No system is better than the best of one and three, valid at every look with"
                " 95\u202f% confidence."
            ),
        ),
        (
            {"winner": "two", "standing": ["two"]},
            (
                "two is at least as good as every other of 3 systems, valid at every look with"
                " 95\u202f% confidence."
            ),
        ),
        (
            {"standing": ["one", "two"], "stop_reason": "exhausted"},
            (
                "one and two are at least as good as every other of 3 systems, valid at every look"
                " with 95\u202f% confidence; they are equally good: every item on which they differ"
                " is judged."
            ),
        ),
    ],
)
def test_a_status_is_told_in_a_sentence(changed: dict[str, Any], words: str) -> None:
    assert best_sentence(status(**changed)) == words


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"rounds": {"in_interval": 0}}, "no labels yet"),
        ({}, "all still in"),
        (
            {"standing": ["one", "three"]},
            "none better than the best of 2 still in, 95\u202f%",
        ),
        ({"winner": "two", "standing": ["two"]}, "none better than two, 95\u202f%"),
    ],
)
def test_a_badge_says_no_more_than_the_sentence(changed: dict[str, Any], words: str) -> None:
    told = status(**changed) | {"table": None}
    badge = badge_of(told, labels=None, names=None)
    assert (badge.label, badge.message) == ("best of 3", words)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "any of 3 systems may be the best"),
        ({"standing": ["one", "three"]}, "none of 3 systems is better than the best of one, three"),
        ({"winner": "two"}, "two is at least as good as every other of 3 systems"),
    ],
)
def test_a_certificate_that_is_verified_says_no_more(changed: dict[str, Any], words: str) -> None:
    assert _best(status(**changed)["best"]) == words


@pytest.mark.parametrize("account", ["each", "together", "selected", "closed"])
async def test_every_claim_stands_in_the_report_with_its_bar(
    client: AsyncClient, account: str
) -> None:
    pool = await sheet(client)
    session = await opened(client, pool, account=account, groups=["topic", "year"])
    empty = read(await client.get(f"/v1/sessions/{session}/report"))
    assert "Nothing is judged yet" in empty.text
    await judged_all(client, session, pool.said, most=8)
    page = read(await client.get(f"/v1/sessions/{session}/report"))
    claims = await claims_of(client, session)
    status = (await client.get(f"/v1/sessions/{session}")).json()
    bars = [one for tag, one in page.seen if tag == "rect" and one.get("class") == "band"]
    assert len(bars) == len(claims) == 2 * (1 + 3 + 2)
    for words in status["table"]["promises"].values():
        assert words in page.text
    assert "By topic" in page.text
    assert "known before the first draw" in page.text
    assert "faithfulness" in page.text


async def test_the_names_of_groups_are_shown_as_text(client: AsyncClient) -> None:
    hostile = "<script>alert(1)</script>"
    items = [
        {"id": str(at), "surrogate": 0.5, "group": hostile if at % 2 else "plain"}
        for at in range(80)
    ]
    body = {"name": "p", "loss": {"kind": "zero_one"}, "items": items, "sealed": True}
    pool = (await client.post("/v1/pools", json=body)).json()["id"]
    asked = {"pool_id": pool, "groups": ["group"]}
    made = await client.post("/v1/sessions", json=asked)
    assert made.status_code == 201, made.text
    page = read(await client.get(f"/v1/sessions/{made.json()['id']}/report"))
    assert hostile in page.text
