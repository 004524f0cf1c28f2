"""The pools that a new session may be opened on, as its page lists them."""

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from httpx import AsyncClient

from tests.keys import ADMIN, bearer

Visiting = Callable[..., AbstractAsyncContextManager[AsyncClient]]
ITEMS = [{"id": str(at), "surrogate": at / 10} for at in range(3)]
POOLS: list[tuple[dict[str, Any], str]] = [
    ({"loss": {"kind": "zero_one"}, "items": ITEMS}, "3 items · right or wrong · with surrogate"),
    (
        {
            "loss": {"kind": "bounded", "lower": 0, "upper": 2},
            "score": {"name": "faults", "better": "lower"},
            "levels": [{"grade": 2, "name": "wrong"}, {"grade": 0, "name": "right"}],
            "items": [{"id": "a"}, {"id": "b", "known": {"loss": 0, "reason": "empty"}}],
        },
        "2 items · grades from 0 to 2 · 1 known beforehand · 0 right … 2 wrong · no surrogate",
    ),
    (
        {
            "loss": {"kind": "preference"},
            "systems": {"a": "old", "b": "new"},
            "items": [{"id": "a", "a": {"answer": "x"}, "b": {"answer": "y"}}],
        },
        "1 item · old against new, which answer is better · no surrogate",
    ),
    (
        {
            "metrics": {"grade": {"kind": "zero_one"}, "tone": {"kind": "zero_one"}},
            "items": [{"id": "a"}],
        },
        "1 item · 2 metrics: grade, tone · no surrogate",
    ),
]


def listed(page: str) -> list[str]:
    """The pools on the page, each with what is told of it."""
    pools = re.findall(r'name="pool" value="pool_\w+".*?</button>', page, re.DOTALL)
    return [re.sub(r"<[^>]+>", " | ", pool).split(">", 1)[-1] for pool in pools]


@pytest.mark.parametrize(("body", "facts"), POOLS)
async def test_a_line_tells_what_is_worth_knowing_of_a_pool(
    visiting: Visiting, body: dict[str, Any], facts: str
) -> None:
    async with visiting(ADMIN) as browser:
        form = {"name": "<i>exam", "sealed": True} | body
        made = await browser.post("/v1/pools", json=form, headers=bearer())
        assert made.status_code == 201, made.text
        for path in ("/sessions/new", f"/sessions/new?pool={made.json()['id']}"):
            page = (await browser.get(path)).text
            assert facts in page
            assert "<i>" not in page


async def test_pools_are_found_by_name_and_archived_ones_when_asked_for(visiting: Visiting) -> None:
    async with visiting(ADMIN) as browser:
        assert "There is no pool yet" in (await browser.get("/sessions/new")).text
        for name in ("spring", "summer", "autumn"):
            body = {"name": name, "loss": {"kind": "zero_one"}, "items": ITEMS, "sealed": True}
            made = await browser.post("/v1/pools", json=body, headers=bearer())
        autumn = made.json()["id"]
        page = (await browser.get("/sessions/new?q=SUMM")).text
        assert len(listed(page)) == 1
        assert "1 pool of 3, newest first." in page
        assert "No pool name contains this." in (await browser.get("/sessions/new?q=winter")).text
        assert len(listed((await browser.get(f"/sessions/new?q={autumn}")).text)) == 1
        path = f"/v1/pools/{autumn}"
        assert (await browser.patch(path, json={"archived": True}, headers=bearer())).is_success
        page = (await browser.get("/sessions/new")).text
        assert len(listed(page)) == 2
        assert "Delete this pool" not in page
        page = (await browser.get("/sessions/new?archived=true")).text
        assert "3 pools, newest first." in page
        assert page.count("Delete this pool") == 1
        assert "“<bdi>autumn</bdi>” goes with its 3 items" in page
        assert (await browser.get("/sessions/new?pool=pool_1")).status_code == 200
