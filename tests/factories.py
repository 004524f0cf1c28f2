"""Pools and sessions for tests, made through the API as a user makes them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from httpx import AsyncClient

from celeus.operations.sessions.blinding import RoundNumbers


@dataclass(frozen=True)
class KnownPool:
    """A sealed pool whose true losses the test knows."""

    id: str
    losses: list[int]

    @property
    def risk(self) -> float:
        """Mean loss."""
        return sum(self.losses) / len(self.losses)


async def known_pool(
    client: AsyncClient,
    items: int = 300,
    seed: int = 0,
    score: dict[str, str] | None = None,
) -> KnownPool:
    """A pool of 0-1 losses with an informative surrogate."""
    rng = np.random.default_rng(seed)
    surrogate = rng.random(items)
    losses = [int(loss) for loss in rng.random(items) < surrogate]
    body = {
        "name": "known",
        "loss": {"kind": "zero_one"},
        "items": [
            {"id": f"item-{i}", "surrogate": float(surrogate[i]), "payload": {"number": i}}
            for i in range(items)
        ],
        "sealed": True,
        "score": score,
    }
    answer = await client.post("/v1/pools", json=body)
    assert answer.status_code == 201, answer.text
    return KnownPool(answer.json()["id"], losses)


async def opened(client: AsyncClient, pool: KnownPool, **settings: Any) -> str:  # noqa: ANN401 - whatever the wire takes
    """Id of a session on ``pool``."""
    answer = await client.post("/v1/sessions", json={"pool_id": pool.id, **settings})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def numbers_of(database_url: str, session: str) -> RoundNumbers:
    """The numbers by which blind keys know the rounds of a session."""
    with psycopg.connect(database_url) as db:
        query = "SELECT seed FROM sessions WHERE session_id = %s"
        found = db.execute(query, [session.removeprefix("ses_")]).fetchone()
    assert found is not None
    return RoundNumbers(found[0])


async def drawn(
    client: AsyncClient, session: str, count: int = 1, worker: str = "ada"
) -> dict[str, Any]:
    """What ``next`` answers to ``worker``."""
    body = {"worker": worker, "count": count}
    answer = await client.post(f"/v1/sessions/{session}/next", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def judged(
    client: AsyncClient,
    session: str,
    pool: KnownPool,
    draw: dict[str, Any],
    **more: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """What ``observe`` answers to the true loss of ``draw``."""
    body = {"round": draw["round"], "loss": pool.losses[draw["item"]["index"]], "worker": "ada"}
    answer = await client.post(f"/v1/sessions/{session}/observe", json=body | more)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def labelled(client: AsyncClient, session: str, pool: KnownPool, most: int) -> dict[str, Any]:
    """Judge up to ``most`` rounds one after the other; returns the last answer."""
    answer = await drawn(client, session)
    for _ in range(most):
        if not answer["draws"]:
            break
        answer = await judged(client, session, pool, answer["draws"][0], next=1)
    return answer
