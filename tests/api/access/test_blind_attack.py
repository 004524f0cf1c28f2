"""An attacker with a label key in two sessions that are equal but for what is hidden from him.

The losses that others give are opposite in the two, so are the model's predictions and the
corrections. Whatever he computes from answers that are the same, byte for byte, he computes in
both: of the hidden losses he has exactly half right, as without asking. He knows more than he
should: the seed, hence the number that stands for every round.
"""

import random
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response

from celeus.operations.sessions import rounds
from celeus.operations.sessions.blinding import RoundNumbers
from celeus.settings import Settings
from tests.api.contract import client_with
from tests.attacks.tally import TRIES
from tests.clients import service_of
from tests.keys import key_in
from tests.nightly import NIGHTLY
from tests.operations.wire import Wire, listening, quiet

REQUESTS = 10_000 if NIGHTLY else 200
ITEMS = 40 + REQUESTS // 4
SEED = bytes(range(32))
READ = ("", "/task", "/trajectory", "/ledger", "/workers", "/surrogate", "/report", "/certificate")
TIMES = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")
ALIKE = {"date", "x-request-id"}
"""Headers that differ between any two answers, as expiry and the session's id do in bodies."""


@dataclass
class Worlds:
    """The two sessions, and who is in both of them."""

    sessions: tuple[str, str]
    admin: AsyncClient
    bob: AsyncClient
    eve: AsyncClient
    rng: random.Random = field(default_factory=lambda: random.Random(11))  # noqa: S311
    losses: dict[int, int] = field(default_factory=dict)
    """What others said of their rounds in the first session; in the second, the opposite."""
    held: dict[int, bool] = field(default_factory=dict)
    """Eve's rounds by her numbers, and whether she has judged them."""

    async def same(
        self, who: AsyncClient, path: str, *bodies: dict[str, Any], method: str = "POST"
    ) -> list[Response]:
        """What one asks in both sessions; the two bodies are equal where one is given."""
        first, second = bodies[0] if bodies else None, bodies[-1] if bodies else None
        return [
            await who.request(method, f"/v1/sessions/{session}{path}", json=body)
            for session, body in zip(self.sessions, (first, second), strict=True)
        ]

    async def others_go_on(self) -> None:
        """Somebody else draws and judges: opposite losses in the two sessions."""
        who = self.rng.choice((self.admin, self.bob))
        first, second = await self.same(who, "/next", {"worker": "judge"})
        if not first.json()["draws"]:
            return
        number = first.json()["draws"][0]["round"]
        assert second.json()["draws"][0]["round"] == number
        loss = self.rng.randrange(2)
        judgement = {"round": number, "worker": "judge"}
        for answer in await self.same(
            who, "/observe", judgement | {"loss": loss}, judgement | {"loss": 1 - loss}
        ):
            assert answer.status_code == 200, answer.text
        shown = RoundNumbers(SEED).shown(number) if who is self.admin else number
        self.losses[shown] = loss

    async def somebody_corrects(self) -> None:
        """A correction of a round judged by others or by Eve, opposite in the two sessions."""
        judged = [number for number, done in self.held.items() if done] + list(self.losses)
        if judged:
            shown, loss = self.rng.choice(judged), self.rng.randrange(2)
            round_ = RoundNumbers(SEED).round_of(shown)
            judgement = {"round": round_, "reason": "second look"}
            await self.same(
                self.admin,
                "/amendments",
                judgement | {"loss": loss},
                judgement | {"loss": 1 - loss},
            )
            if shown in self.losses:
                self.losses[shown] = loss

    def request(self) -> tuple[str, str, dict[str, Any] | None]:
        """What Eve tries next: method, path and body."""
        rng = self.rng
        kind = rng.choices(("next", "observe", "list", "amend", "read"), (2, 5, 2, 3, 1))[0]
        if kind == "read":
            return rng.choice(("GET", "HEAD")), rng.choice(READ), None
        worker = {"worker": rng.choice(("eve", "judge", "anna"))}
        if kind == "next":
            return "POST", "/next", worker | {"count": rng.choice((1, 2, 5))}
        if kind == "observe":
            asked = rng.choice(({}, {"next": 1}))
            return "POST", "/observe", self._round() | self._said() | worker | asked
        if kind == "list":
            twice = self._round()
            some = [twice | self._said(), twice | self._said(), self._round() | self._said()]
            return "POST", "/observe", {"observations": some[: rng.randint(1, 3)]} | worker
        return "POST", "/amendments", self._round() | self._said() | {"reason": "slip"}

    def _round(self) -> dict[str, int]:
        """Her own, another's by its number or the ledger's, or none at all."""
        rng = self.rng
        choices = [list(self.held), list(self.losses), range(1, 40), [rng.randint(1, 2**31 - 1)]]
        known = [some for some in choices if some]
        return {"round": rng.choice(rng.choices(known, (4, 4, 1, 1)[-len(known) :])[0])}

    def _said(self) -> dict[str, Any]:
        judgements = ({"loss": 0}, {"loss": 1}, {"loss": 0.5}, {"label": 0}, {"label": 1})
        return dict(self.rng.choice((*judgements, {"unjudgeable": "dark"})))

    def note(self, path: str, body: dict[str, Any] | None, answer: Response) -> None:
        """What Eve learns of her own rounds."""
        if answer.status_code != 200 or body is None:
            return
        found = answer.json()
        self.held |= {draw["round"]: False for draw in found["draws"]}
        receipts = found.get("receipts") or [found["receipt"]] if path != "/next" else []
        self.held |= {receipt["round"]: True for receipt in receipts}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Every request looks its key up: else some would, by the clock."""
    return settings.model_copy(update={"key_cache_seconds": 0, "requests_per_minute": 0})


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[FastAPI]:
    with service_of(settings) as app:
        async with quiet(app):
            yield app


@pytest.fixture
async def wire(app: FastAPI, tmp_path: Path) -> AsyncIterator[Wire]:
    async with listening(app.state.context.database, tmp_path / "wire") as wire:
        yield wire


@pytest.fixture
async def worlds(
    app: FastAPI, client: AsyncClient, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Worlds]:
    # How long a judgement takes decides when the oldest draw is handed out again, and differs
    # between two sessions that are asked one after the other
    monkeypatch.setattr(rounds, "SLOW_TIMES", 0)
    sessions = []
    for turned in range(2):
        items = [{"id": f"item-{i}", "prediction": (i * i // 3 + turned) % 2} for i in range(ITEMS)]
        form = {"name": "p", "loss": {"kind": "zero_one"}, "items": items, "sealed": True}
        pool = (await client.post("/v1/pools", json=form)).json()["id"]
        with monkeypatch.context() as patch:
            patch.setattr("celeus.seeds.new_seed", lambda: SEED)
            opening = {"pool_id": pool, "policy": "uniform"}
            sessions.append((await client.post("/v1/sessions", json=opening)).json()["id"])
    async with AsyncExitStack() as stack:
        bob, eve = [
            await stack.enter_async_context(client_with(app, key_in(database_url, "label")))
            for _ in range(2)
        ]
        yield Worlds((sessions[0], sessions[1]), client, bob, eve)


def _bytes(answer: Response, session: str) -> tuple[int, list[tuple[str, str]], bytes]:
    headers = [(name, value) for name, value in answer.headers.items() if name not in ALIKE]
    body = TIMES.sub(b"T", answer.content).replace(session.encode(), b"S")
    return answer.status_code, headers, body


async def _tried(worlds: Worlds, wire: Wire, times: tuple[list[float], list[float]]) -> str:
    """Ask one thing in both sessions, in any order, and compare; returns what was met."""
    method, path, body = worlds.request()
    hidden = worlds.losses.get((body or {}).get("round", 0))
    found: dict[int, Response] = {}
    statements = []
    for which in worlds.rng.sample((0, 1), 2):
        wire.statements()
        begun = time.perf_counter()
        found[which] = await worlds.eve.request(
            method, f"/v1/sessions/{worlds.sessions[which]}{path}", json=body
        )
        if hidden is not None:
            times[hidden ^ which].append(time.perf_counter() - begun)
        statements.append(wire.statements())
    shape, other = [_bytes(found[which], worlds.sessions[which]) for which in (0, 1)]
    assert shape == other, (method, path, body)
    assert statements[0] == statements[1] > 0, (method, path, body)
    assert shape[0] < 500
    worlds.note(path, body, found[0])
    by_status = shape[0] == 200 or method == "HEAD"
    return f"{path} {shape[0] if by_status else found[0].json()['code']}"


async def test_how_many_rounds_wait_for_the_oldest_draw_shows_in_no_statement(
    worlds: Worlds, wire: Wire
) -> None:
    path = f"/v1/sessions/{worlds.sessions[0]}"
    await worlds.admin.post(f"{path}/next", json={"worker": "slow"})
    await worlds.eve.post(f"{path}/next", json={"worker": "eve"})
    statements = set()
    for _ in range(9):
        wire.statements()
        await worlds.eve.post(f"{path}/next", json={"worker": "eve"})
        statements.add(wire.statements())
        draws = (await worlds.admin.post(f"{path}/next", json={"worker": "judge"})).json()["draws"]
        judgement = {"round": draws[0]["round"], "worker": "judge", "loss": 0}
        await worlds.admin.post(f"{path}/observe", json=judgement)
    assert len(statements) == 1, statements


async def test_a_label_keys_answers_depend_on_nothing_that_is_hidden_from_it(
    worlds: Worlds,
    wire: Wire,
    database_url: str,
    record_property: Callable[[str, object], None],
) -> None:
    """The same status, headers, bytes and number of statements, for whatever is asked."""
    met: Counter[str] = Counter()
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(REQUESTS):
        if number % 4 == 0:
            await worlds.others_go_on()
        if number % 25 == 0:
            await worlds.somebody_corrects()
        if number % 40 == 39:
            with psycopg.connect(database_url) as db:
                db.execute("UPDATE leases SET expires_at = now() - interval '1 second'")
        met[await _tried(worlds, wire, times)] += 1
    TRIES["requests of a blind labeller, in two sessions each"] += REQUESTS
    await _look_back(worlds, met)
    shown = np.mean(np.subtract.outer(*times) > 0)
    measured = (
        f"a blind labeller tells two losses by {2 * len(times[0])} times, chance 0.5: {shown:.3f}"
    )
    record_property("measured", measured)
    if NIGHTLY:
        assert abs(shown - 0.5) < 0.05


async def _look_back(worlds: Worlds, met: Counter[str]) -> None:
    """The attack met what it should meet, the sessions do differ, and only Eve's were touched."""
    assert {
        "/next 200",
        "/observe 200",
        "/observe round_not_held",
        "/observe observation_conflict",
        "/observe loss_outside_scale",
        "/amendments 200",
        "/amendments not_last_label",
        "/ledger scope_missing",
    } <= met.keys(), met
    first, second = await worlds.same(worlds.admin, "", method="GET")
    assert first.json()["estimate"] != second.json()["estimate"]
    eve = worlds.eve.headers["Authorization"].split("_")[1]
    for session in worlds.sessions:
        after, numbers = 0, set()
        while page := (
            await worlds.admin.get(
                f"/v1/sessions/{session}/ledger", params={"after": after, "limit": 1000}
            )
        ).json()["data"]:
            numbers |= {
                RoundNumbers(SEED).shown(entry["round"])
                for entry in page
                if entry["kind"] != "draw" and entry["detail"].get("key") == eve
            }
            after = page[-1]["sequence"]
        assert numbers
        assert numbers <= worlds.held.keys()
