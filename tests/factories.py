"""Pools and sessions for tests, made through the API as a user makes them."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import psycopg
from httpx import AsyncClient, Response

from celeus.core.certificate.pool_checks import Evidence
from celeus.operations.certificates.npz import read_archive
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


async def sealed(client: AsyncClient, items: Sequence[object], **more: object) -> str:
    """Id of a sealed pool of these items, whose losses are 0 or 1 unless said otherwise."""
    body = {"name": "p", "loss": {"kind": "zero_one"}, "items": items, "sealed": True} | more
    answer = await client.post("/v1/pools", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


class Made(Protocol):
    """A pool of any factory."""

    @property
    def id(self) -> str:
        """The id on the wire."""


async def opened(client: AsyncClient, pool: Made | str, **settings: Any) -> str:  # noqa: ANN401 - whatever the wire takes
    """Id of a session on ``pool``."""
    pool_id = pool if isinstance(pool, str) else pool.id
    answer = await client.post("/v1/sessions", json={"pool_id": pool_id, **settings})
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


async def observed(client: AsyncClient, session: str, round_: int, **said: object) -> Response:
    """The answer to whatever is said of a round."""
    body = {"round": round_, "worker": "ada"} | said
    return await client.post(f"/v1/sessions/{session}/observe", json=body)


async def judged_all(
    client: AsyncClient,
    session: str,
    said: Callable[[int], Mapping[str, object]],
    *,
    ahead: int = 3,
    most: int = 10_000,
) -> None:
    """Judge until the session has nothing more to draw, the last of several draws first."""
    for _ in range(most):
        draws = (await drawn(client, session, ahead))["draws"]
        if not draws:
            return
        for draw in reversed(draws):
            answer = await observed(client, session, draw["round"], **said(draw["item"]["index"]))
            assert answer.status_code == 200, answer.text


async def status_of(client: AsyncClient, session: str) -> dict[str, Any]:
    """How a session stands."""
    answer = await client.get(f"/v1/sessions/{session}")
    assert answer.status_code == 200, answer.text
    status: dict[str, Any] = answer.json()
    return status


async def closed(client: AsyncClient, session: str) -> None:
    """Close a session for good."""
    answer = await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    assert answer.status_code == 200, answer.text


async def certified(client: AsyncClient, session: str) -> bytes:
    """The final certificate of a session, which is closed for it."""
    await closed(client, session)
    answer = await client.get(f"/v1/sessions/{session}/certificate")
    assert answer.status_code == 200, answer.text
    return answer.content


async def evidence_of(client: AsyncClient, pool: str) -> Evidence:
    """The columns of a pool, as somebody else downloads them."""
    columns = await client.get(f"/v1/pools/{pool}/columns.npz")
    return read_archive(io.BytesIO(columns.content))
