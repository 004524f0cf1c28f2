"""Client of the demo: upload a pool, open a session, and run several judges at once.

This is all a labelling tool has to do; everything goes through the public HTTP interface.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import orjson

from celeus.demo.digits import Digits
from celeus.demo.outcome import Point
from celeus.errors import Unavailable

_PAGE = 10_000

Session = dict[str, Any]
OnSession = Callable[[Session], object]
"""Called with the session after every judgement."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a session is to certify."""

    policy: str | None
    precision: float
    alpha: float


@dataclass(frozen=True, slots=True)
class Service:
    """The HTTP interface, as far as the demo needs it."""

    http: httpx2.AsyncClient

    async def bring_pool(self, digits: Digits) -> str:
        """Create a pool, upload the items as NDJSON, seal it; its id."""
        form = {"name": "handwritten digits", "loss": {"kind": "zero_one"}}
        pool_id: str = (await self._post("/v1/pools", form))["id"]
        lines = b"\n".join(orjson.dumps(item) for item in digits.items)
        ndjson = {"Content-Type": "application/x-ndjson"}
        await self._request("POST", f"/v1/pools/{pool_id}/items", content=lines, headers=ndjson)
        await self._request("POST", f"/v1/pools/{pool_id}/seal")
        return pool_id

    async def open_session(self, pool_id: str, wish: Wish) -> Session:
        """Open a session for the pool risk, with strategy A."""
        form = {
            "pool_id": pool_id,
            "policy": wish.policy,
            "strategy": "A",
            "target": "pool",
            "alpha": wish.alpha,
            "precision": wish.precision,
        }
        return await self._post("/v1/sessions", form)

    async def judge(
        self, session_id: str, workers: int, labels: Mapping[str, int], on_session: OnSession
    ) -> Session:
        """Let `workers` judges label until the session has stopped; the session afterwards."""
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(1, workers + 1):
                    group.create_task(
                        self._judge(session_id, f"judge-{number}", labels, on_session)
                    )
        except ExceptionGroup as failures:
            # What stopped one judge stops them all; it is told once
            raise failures.exceptions[0] from failures
        return await self._request("GET", f"/v1/sessions/{session_id}")

    async def trajectory(self, session_id: str) -> list[Point]:
        """The interval after every round."""
        points: list[Point] = []
        after: int | None = 0
        while after is not None:
            path = f"/v1/sessions/{session_id}/trajectory?after={after}&limit={_PAGE}"
            page = await self._request("GET", path)
            points += [
                Point(one["round"], one["estimate"], one["lower"], one["upper"])
                for one in page["data"]
            ]
            after = page["next"]
        return points

    async def _judge(
        self, session_id: str, worker: str, labels: Mapping[str, int], on_session: OnSession
    ) -> None:
        """Ask once, then report each label and take the next item in the same request."""
        answer = await self._post(f"/v1/sessions/{session_id}/next", {"worker": worker})
        while answer["draws"] or answer["state"] == "all_leased":
            if not answer["draws"]:
                # The last items are with the others; one may come back
                await asyncio.sleep(answer["retry_after"])
                answer = await self._post(f"/v1/sessions/{session_id}/next", {"worker": worker})
                continue
            draw = answer["draws"][0]
            judgement = {
                "round": draw["round"],
                "label": labels[draw["item"]["id"]],
                "worker": worker,
                "next": 1,
            }
            answer = await self._post(f"/v1/sessions/{session_id}/observe", judgement)
            on_session(answer["session"])

    async def _post(self, path: str, form: object) -> dict[str, Any]:
        return await self._request("POST", path, json=form)

    async def _request(self, method: str, path: str, **content: Any) -> dict[str, Any]:  # noqa: ANN401
        """The answer to a request; refuses in the server's own words."""
        try:
            answer = await self.http.request(method, path, **content)
        except httpx2.TransportError as error:
            raise Unavailable(f"the server stopped answering: {error!r}") from error
        body: dict[str, Any] = answer.json()
        if not answer.is_success:
            raise Unavailable(f"the server declined {method} {path}: {body.get('detail')}")
        return body
