"""An earlier version that was judged, and a new one, made as a user makes them."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from httpx import AsyncClient

from tests.factories import closed

ZERO_ONE = {"kind": "zero_one"}
OLD, NEW = "version-1", "version-2"


@dataclass(frozen=True)
class Versions:
    """What is right, and what both versions answer: classes, or texts in the payload."""

    truth: list[int]
    old: list[int]
    new: list[int]
    answers: Literal["classes", "texts"] = "classes"

    @classmethod
    def of(
        cls,
        items: int = 60,
        seed: int = 0,
        answers: Literal["classes", "texts"] = "classes",
        better: float = 0.75,
    ) -> "Versions":
        """The old version is right in six of ten items, the new one in ``better``."""
        chance = np.random.default_rng(seed)
        truth = chance.integers(0, 4, items)
        old = np.where(chance.random(items) < 0.6, truth, chance.integers(0, 4, items))
        fresh = np.where(chance.random(items) < better, truth, chance.integers(0, 4, items))
        # Half of the answers stay as they are.
        new = np.where(chance.random(items) < 0.5, old, fresh)
        return cls(truth.tolist(), old.tolist(), new.tolist(), answers)

    def losses(self, given: list[int]) -> list[float]:
        return [float(one != right) for one, right in zip(given, self.truth, strict=True)]

    @property
    def unchanged(self) -> set[str]:
        return {f"q{at}" for at, one in enumerate(self.old) if one == self.new[at]}

    def _item(self, at: int, answer: int) -> dict[str, Any]:
        row: dict[str, Any] = {"id": f"q{at}", "payload": {"question": f"question {at}"}}
        if self.answers == "classes":
            return row | {"prediction": answer}
        row["payload"]["answer"] = f"option {answer}"
        return row

    def rows(self, given: list[int]) -> list[dict[str, Any]]:
        """The items of one version."""
        return [self._item(at, answer) for at, answer in enumerate(given)]

    def pairs(self) -> list[dict[str, Any]]:
        """The items of a comparison with the old version: what the new one answers."""
        rows = []
        for row in self.rows(self.new):
            if self.answers == "classes":
                b = {"prediction": row["prediction"]}
            else:
                b = {"answer": row["payload"]["answer"]}
            rows.append({"id": row["id"], "b": b})
        return rows

    def said(self, given: list[int], at: int) -> dict[str, Any]:
        if self.answers == "classes":
            return {"label": self.truth[at]}
        return {"loss": self.losses(given)[at]}


async def made(client: AsyncClient, **body: Any) -> dict[str, Any]:  # noqa: ANN401 -- as the wire takes it
    """A sealed pool."""
    answer = await client.post(
        "/v1/pools", json={"name": "exam", "loss": ZERO_ONE, "sealed": True} | body
    )
    assert answer.status_code == 201, answer.text
    pool: dict[str, Any] = answer.json()
    return pool


async def judged(
    client: AsyncClient, versions: Versions, rounds: int, *, close: bool = True, **opening: object
) -> tuple[str, dict[str, float]]:
    """A session on the old version, and what it judged: losses by the items' ids."""
    pool = await made(client, items=versions.rows(versions.old))
    opened = await client.post("/v1/sessions", json={"pool_id": pool["id"]} | opening)
    assert opened.status_code == 201, opened.text
    session = str(opened.json()["id"])
    losses = await judge(client, session, lambda at: versions.said(versions.old, at), rounds)
    if close:
        await closed(client, session)
    old = versions.losses(versions.old)
    return session, {f"q{at}": old[at] for at in losses}


async def judge(client: AsyncClient, session: str, said: Any, rounds: int = 1000) -> list[int]:  # noqa: ANN401
    """Judge so many rounds, or until nothing is offered; the items by number."""
    items: list[int] = []
    if not rounds:
        return items
    answer = await client.post(f"/v1/sessions/{session}/next", json={"worker": "ada"})
    while draws := answer.json()["draws"]:
        (draw,) = draws
        at = int(draw["item"]["id"][1:])
        items.append(at)
        more = int(len(items) < rounds)
        body = {"round": draw["round"], "worker": "ada", "next": more} | said(at)
        answer = await client.post(f"/v1/sessions/{session}/observe", json=body)
        assert answer.status_code == 200, answer.text
    return items
