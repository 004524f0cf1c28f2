"""Pools of two systems whose true losses the test knows, made as a user makes them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from httpx import AsyncClient

A, B = "qwen-72b", "llama-70b"
JUDGED = ("label", "losses", "preference")


@dataclass(frozen=True)
class Pair:
    """A sealed pool of two systems; ``truth`` is the class, or the text, that is right.

    ``better`` is the difference of every item, loss of A less loss of B.
    """

    id: str
    judged: str
    items: list[dict[str, Any]]
    truth: list[int]
    losses: list[tuple[float, float]]

    @property
    def better(self) -> list[float]:
        return [a - b for a, b in self.losses]

    @property
    def known(self) -> list[bool]:
        """Items that both systems answer the same."""
        own = "prediction" if self.judged == "label" else "answer"
        return [item["a"][own] == item["b"][own] for item in self.items]

    def said(self, item: int, left: str | None = None) -> dict[str, Any]:
        """A judgement of an item, of a and b, or of sides where the ``left`` one is known."""
        if self.judged == "label":
            return {"label": self.truth[item]}
        sides = ("a", "b") if left is None else ("left", "right")
        a, b = self.losses[item]
        both = (a, b) if left in {None, "a"} else (b, a)
        if self.judged == "losses":
            return {"losses": dict(zip(sides, both, strict=True))}
        if a == b:
            return {"preference": "tie"}
        return {"preference": sides[0] if both[0] < both[1] else sides[1]}


def body_of(judged: str, size: int = 60, seed: int = 0) -> tuple[dict[str, Any], Pair]:
    """The request that makes a pool of two systems, and what is true of it."""
    chance = np.random.default_rng(seed)
    truth = [int(one) for one in chance.integers(0, 4, size)]
    right = chance.random((size, 2)) < (0.6, 0.75)
    chosen = np.where(right, np.array(truth)[:, None], chance.integers(0, 4, (size, 2)))
    items: list[dict[str, Any]] = []
    losses: list[tuple[float, float]] = []
    for at in range(size):
        row: dict[str, Any] = {"id": f"item-{at}", "payload": {"question": f"question {at}"}}
        for place, side in enumerate(("a", "b")):
            answer = int(chosen[at, place])
            guess = float(np.clip(0.3 * right[at, place] + 0.4 * chance.random(), 0.0, 1.0))
            own = {"prediction": answer} if judged == "label" else {"answer": f"option {answer}"}
            row[side] = own | {"payload": {"trace": f"{answer} it is"}, "surrogate": guess}
        items.append(row)
        wrong = [float(one != truth[at]) for one in chosen[at].tolist()]
        losses.append((wrong[0], wrong[1]))
    kind = "preference" if judged == "preference" else "zero_one"
    systems = {"a": A, "b": B, "normalisation": "exact"}
    body: dict[str, Any] = {"name": "pair", "systems": systems, "items": items}
    body |= {"loss": {"kind": kind}, "sealed": True}
    return body, Pair("", judged, items, truth, losses)


async def pair(client: AsyncClient, judged: str, size: int = 60, seed: int = 0) -> Pair:
    """A sealed pool of two systems."""
    body, made = body_of(judged, size, seed)
    answer = await client.post("/v1/pools", json=body)
    assert answer.status_code == 201, answer.text
    return Pair(answer.json()["id"], judged, made.items, made.truth, made.losses)


def exchanged(body: dict[str, Any]) -> dict[str, Any]:
    """The same pool with A called B, and B called A."""
    names = body["systems"]
    items = [row | {"a": row["b"], "b": row["a"]} for row in body["items"]]
    return body | {"systems": names | {"a": names["b"], "b": names["a"]}, "items": items}
