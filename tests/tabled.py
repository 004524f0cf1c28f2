"""Pools of metrics and groups whose true losses the test knows, made as a user makes them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from httpx import AsyncClient

METRICS: dict[str, Any] = {
    "faithful": {"kind": "zero_one", "score": {"name": "faithfulness", "better": "higher"}},
    "stars": {"kind": "bounded", "lower": 0, "upper": 4},
}
TOPICS = ("law", "art", "sport")


@dataclass(frozen=True)
class Sheet:
    """A sealed pool of metrics; ``losses`` by item and metric."""

    id: str
    items: list[dict[str, Any]]
    losses: list[dict[str, float]]

    def said(self, item: int) -> dict[str, Any]:
        """A judgement of an item."""
        return {"losses": self.losses[item]}


def sheet_body(size: int = 120, seed: int = 0) -> tuple[dict[str, Any], list[dict[str, float]]]:
    """The request that makes a pool of two metrics and two group columns, and its losses."""
    chance = np.random.default_rng(seed)
    guess = np.round(chance.random(size), 3)
    wrong = (chance.random(size) < guess).astype(float)
    stars = np.clip(np.round(4 * guess + chance.normal(0.0, 0.5, size), 1), 0.0, 4.0)
    losses = [
        {"faithful": float(one), "stars": float(other)}
        for one, other in zip(wrong, stars, strict=True)
    ]
    items = [
        {
            "id": f"text-{at}",
            "payload": {"text": f"text {at}"},
            "surrogates": {"faithful": guess[at].item(), "stars": round(4 * guess[at].item(), 3)},
            "groups": {"topic": TOPICS[at % 3], "year": 2020 + at % 2},
        }
        | ({"known": {"stars": losses[at]["stars"]}} if at % 10 == 0 else {})
        for at in range(size)
    ]
    return {"name": "summaries", "metrics": METRICS, "items": items, "sealed": True}, losses


async def sheet(client: AsyncClient, size: int = 120, seed: int = 0) -> Sheet:
    """A sealed pool of two metrics and two group columns."""
    body, losses = sheet_body(size, seed)
    answer = await client.post("/v1/pools", json=body)
    assert answer.status_code == 201, answer.text
    return Sheet(answer.json()["id"], body["items"], losses)
