"""Requests taken together do what they do one after the other.

Two sessions on one pool have the same seed. In one, random requests arrive at once and are taken in
groups; in the other the same requests come one by one, in the order in which the groups took them.
"""

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Collection, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.session.outcome import Judgement
from celeus.errors import BoundContradicted, Refusal
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.state_cache import StateCache
from celeus.operations.sessions import rounds
from celeus.operations.sessions.amendments import Correction, amend
from celeus.operations.sessions.batching import Answering, together
from celeus.operations.sessions.blinding import RoundNumbers
from celeus.operations.sessions.journal import Journal
from celeus.operations.webhooks.outbox import EVENTS
from celeus.settings import Settings
from tests import lineups, pairs
from tests.clients import service_of
from tests.keys import ADMIN, bearer, key_in
from tests.nightly import NIGHTLY
from tests.operations.wire import Wire, listening, quiet
from tests.tabled import sheet_body

SEEDS = 40 if NIGHTLY else 1
"""Pairs of sessions of each kind, each with other requests."""
GROUPS = 6 if NIGHTLY else 3
SEED = bytes(range(32))
WORKERS = ("ann", "ben", "cid")
VARYING = re.compile(
    r"[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\dT[\d:.]+(?:\+00:00|Z)?"
    r'|(?<="ledger_head": ")[0-9a-f]+|(?<="seconds_per_label": )[\d.]+(?=[,}])'
)
"""What differs between any two sessions: ids, times, and the head of the chain over them."""
TABLES = {
    "events": "sequence, kind, round, item, q, strata_q, seen, loss, losses, detail",
    "trajectory": "round, estimate, lower, upper",
    "leases": "round, worker, keys, passed, expires_at > now() AS held",
    "labellers": "key_id, labels, last_round",
    "comments": "round, key_id, rater, worker, comment",
    "sessions": "sequence, revision, lifecycle, state, precision, budget, drawn, status",
}


@dataclass(frozen=True)
class Kind:
    """Sessions of one kind: their pool, how they are opened, and what their judges say.

    ``said`` are judgements, of rounds by turns, by whoever sees the session and by blind keys;
    the ``wrong`` ones are refused.
    """

    pool: dict[str, Any]
    opening: dict[str, Any]
    said: tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]]]
    wrong: Sequence[dict[str, Any]] = ({"loss": 5.0}, {})

    @property
    def panel(self) -> bool:
        return "panel" in self.opening

    @property
    def steady(self) -> bool:
        """Nobody waits for others of the group, or contradicts the pool."""
        return not self.panel and "known" not in self.pool["items"][0] and not self.bounded

    @property
    def bounded(self) -> bool:
        return any("loss_upper" in item for item in self.pool["items"])


def known(size: int, **more: object) -> dict[str, Any]:
    items = [
        {"id": f"item-{number}", "surrogate": number * 7 % size / size} for number in range(size)
    ]
    return {"name": "p", "loss": {"kind": "zero_one"}, "items": items, "sealed": True} | more


def bounded(size: int) -> dict[str, Any]:
    """Of every third item the loss is said to be small."""
    items = [
        {"id": f"item-{number}"}
        | ({} if number % 3 else {"loss_upper": 0.5, "bound_reason": "capped"})
        for number in range(size)
    ]
    loss = {"kind": "bounded", "lower": 0.0, "upper": 1.0}
    return {"name": "p", "loss": loss, "items": items, "sealed": True}


Words = list[dict[str, Any]]
ZERO_ONE: Words = [
    {"loss": 0.0},
    {"loss": 1.0},
    {"loss": 0.0},
    {"unjudgeable": "dark"},
    {"loss": 0.0},
]
SIDES: Words = [{"left": 0.0, "right": 1.0}, {"left": 0.0, "right": 0.0}]
METRICS: Words = [{"faithful": 0.0, "stars": 1.5}, {"faithful": 1.0, "stars": None}]
ASKED: Words = [{"side": "at_most", "threshold": 0.8}, {"side": "at_least", "threshold": 0.02}]
PANEL: dict[str, Any] = {"raters": "assigned", "panel": [*WORKERS], "budget": 12}
PREFERRED: Words = [{"preference": "left"}, {"preference": "tie"}, {"unjudgeable": "dark"}]

KINDS = {
    "sharp": Kind(known(60), {"questions": ASKED, "alpha": 0.4}, (ZERO_ONE, ZERO_ONE)),
    "uniform": Kind(known(80), {"policy": "uniform", "budget": 25}, (ZERO_ONE, ZERO_ONE)),
    "published": Kind(
        known(80), {"policy": "celeus", "precision": 0.45, "budget": 60}, (ZERO_ONE, ZERO_ONE)
    ),
    "tiny": Kind(known(9), {}, (ZERO_ONE, ZERO_ONE)),
    "bounds": Kind(bounded(40), {}, ([{"loss": 0.25}, {"loss": 1.0}],) * 2),
    "two by label": Kind(
        pairs.body_of("label")[0], {}, ([{"label": label} for label in range(4)],) * 2
    ),
    "two by losses": Kind(
        pairs.body_of("losses")[0],
        {"budget": 30},
        (
            [{"losses": {"a": 0.0, "b": 1.0}}, {"losses": SIDES[0]}],
            [{"losses": losses} for losses in SIDES],
        ),
    ),
    "two by preference": Kind(
        pairs.body_of("preference")[0], {}, ([*PREFERRED, {"preference": "a"}], PREFERRED)
    ),
    "best by label": Kind(
        lineups.body_of("label")[0], {"best": True}, ([{"label": label} for label in range(4)],) * 2
    ),
    "best by losses": Kind(
        lineups.body_of("answers")[0],
        {"best": True},
        (
            [{"losses": dict.fromkeys(lineups.NAMES, 0.0)}, {"losses": [0.0, 1.0, 0.0, 1.0]}],
            [{"losses": [0.0, 1.0, 0.0, 1.0]}, {"losses": [0.0, 0.0, 0.0, 0.0]}],
        ),
    ),
    "table": Kind(
        sheet_body(60)[0],
        {"groups": ["topic"], "precision": {"faithful": 0.2}, "budget": 40},
        ([{"losses": losses} for losses in METRICS],) * 2,
        ({"loss": 1.0}, {"losses": {"faithful": 0.5, "stars": 1.0}}),
    ),
    "two then a third": Kind(
        known(40), PANEL | {"protocol": "two_then_third"}, (ZERO_ONE, ZERO_ONE)
    ),
    "consensus": Kind(known(40), PANEL | {"protocol": "consensus"}, (ZERO_ONE, ZERO_ONE)),
}


@dataclass(frozen=True)
class Asked:
    """A request: ``judgements`` None asks for draws alone."""

    caller: int
    worker: str
    count: int
    judgements: tuple[Judgement, ...] | None


@dataclass(frozen=True)
class Seen:
    """What the tables have of a session; ``alike`` is of both what they must have in common."""

    rows: dict[str, list[dict[str, Any]]]
    alike: Any

    @property
    def drawn(self) -> int:
        return len([row for row in self.rows["events"] if row["kind"] == 1])

    @property
    def judged(self) -> list[int]:
        return [row["round"] for row in self.rows["events"] if row["kind"] in {2, 3}]

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.rows["sessions"][0]["status"]
        return found


def plain(value: object) -> Any:  # noqa: ANN401 - JSON
    """The value as JSON has it, without what differs between any two sessions."""
    return json.loads(VARYING.sub("0", json.dumps(value, default=str)))


def uncontradicted(document: dict[str, Any]) -> dict[str, Any]:
    """The status without what contradicts the pool: that is kept after a group, by itself."""
    warnings = [
        warning for warning in document["warnings"] if not warning.startswith("a judgement of item")
    ]
    return document | {"contradictions": [], "warnings": warnings}


@dataclass
class World:
    """One of the two sessions, and its status at every sequence that it was seen at."""

    session: UUID
    db: psycopg.Connection[dict[str, Any]]
    told: dict[int, Any] = field(default_factory=dict)

    async def answer(self, asked: Asked, caller: Context) -> Any:  # noqa: ANN401 - or its refusal
        try:
            if asked.judgements is None:
                return await rounds.next_draws(caller, self.session, asked.worker, asked.count)
            judgements = asked.judgements
            return await rounds.observe(caller, self.session, judgements, asked.worker, asked.count)
        except Refusal as refusal:
            return refusal

    def seen(self) -> Seen:
        found = {
            name: self._rows(f"SELECT {columns} FROM {name} WHERE session_id = %s ORDER BY 1, 2, 3")
            for name, columns in TABLES.items()
        }
        [row] = found["sessions"]
        self.told[row["sequence"]] = plain(uncontradicted(row["status"]))
        return Seen(found, plain(found))

    def messages(self) -> list[Any]:
        """What webhooks were told: events, and one by one the answers to questions."""
        found = self._rows(
            "SELECT event, data FROM deliveries"
            " WHERE data->>'session' = 'ses_' || replace(%s::text, '-', '')"
        )
        return [
            [message["event"], answer]
            for message in found
            for answer in message["data"].get("answers", [None])
        ]

    def expire(self, some: str) -> None:
        ended = "UPDATE leases SET expires_at = now() - interval '1 second'"
        self.db.execute(f"{ended} WHERE session_id = %s AND {some}".encode(), [self.session])

    def _rows(self, query: str) -> list[dict[str, Any]]:
        return self.db.execute(query.encode(), [self.session]).fetchall()


@dataclass
class Mix:
    """Random requests to a session of a kind, some of them to be refused."""

    kind: Kind
    rng: random.Random
    keys: Sequence[str]
    blind: Sequence[bool]
    seen: Seen

    def request(self) -> Asked:
        rng, leases = self.rng, self.seen.rows["leases"]
        caller, worker = rng.randrange(len(self.keys)), rng.choice(WORKERS)
        if leases and rng.random() < 0.6:
            lease = rng.choice(leases)
            caller, worker = self.keys.index(lease["keys"][-1]), lease["worker"]
        if rng.random() < 0.3:
            return Asked(caller, worker, rng.choice((0, 1, 1, 1, 2, 5)), None)
        most = rng.choice((1, 1, 1, 1, 2, 4))
        judgements = [self._judgement(caller, worker) for _ in range(most)]
        if most > 1 and rng.random() < 0.3:
            judgements.append(judgements[0])
        return Asked(caller, worker, rng.choice((0, 1, 1, 2)), tuple(judgements))

    def _own(self, caller: int, worker: str) -> list[int]:
        """Rounds that the caller may judge, most likely."""
        if self.kind.panel:
            return [
                round_ for round_ in range(1, self.seen.drawn + 1) if round_ not in self.seen.judged
            ][:5]
        leases, holder = self.seen.rows["leases"], (self.keys[caller], worker)
        return [
            lease["round"] for lease in leases if (lease["keys"][-1], lease["worker"]) == holder
        ]

    def _judgement(self, caller: int, worker: str) -> Judgement:
        rng, next_ = self.rng, self.seen.drawn + 1
        others = [lease["round"] for lease in self.seen.rows["leases"]]
        some = (self._own(caller, worker), others, self.seen.judged, range(1, next_ + 5))
        round_ = rng.choice(rng.choices([numbers or [next_] for numbers in some], (9, 3, 2, 1))[0])
        right = self.kind.said[self.blind[caller]]
        words = dict(right[round_ % len(right)])
        if rng.random() < 0.15:
            words = dict(rng.choice([*right, *self.kind.wrong, *self.kind.said[0]]))
        if rng.random() < 0.2:
            words["comment"] = rng.choice(("why not", "no doubt", ""))
        if self.kind.panel and rng.random() < 0.1:
            words["turn"] = rng.choice((1, 2))
        shown = RoundNumbers(SEED).shown(round_) if self.blind[caller] else round_
        return Judgement(shown, **words)

    def group(self) -> list[Asked]:
        """Some requests, a few of them twice."""
        some = [self.request() for _ in range(self.rng.choice((2, 6, 12, 24)))]
        twice = [asked for asked in some if self.rng.random() < 0.2]
        return self.rng.sample([*some, *twice], len(some) + len(twice))


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[FastAPI]:
    """Without Redis, and nothing that looks for work by the clock."""
    with service_of(Settings(database_url=database_url, database_pool_size=8)) as app:
        async with quiet(app):
            yield app


@pytest.fixture
async def wire(app: FastAPI, tmp_path: Path) -> AsyncIterator[Wire]:
    """What is said to PostgreSQL."""
    async with listening(app.state.context.database, tmp_path / "wire") as wire:
        yield wire


@pytest.fixture
def callers(app: FastAPI, database_url: str) -> list[Context]:
    """Two who see the session, two who do not, and one without a key."""
    context: Context = app.state.context
    keys = [key_in(database_url, "label").split("_")[1] for _ in range(2)]
    other = key_in(database_url, "label", "read").split("_")[1]
    seeing = [replace(context, key_id=key_id) for key_id in (ADMIN.split("_")[1], other, None)]
    return [*seeing, *(replace(context, key_id=key_id, blind=True) for key_id in keys)]


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[AsyncClient]:
    transport = ASGITransport(app)
    async with AsyncClient(transport=transport, base_url="http://x", headers=bearer()) as client:
        yield client


@pytest.fixture
def looking(database_url: str) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    """A connection to look at tables with; webhooks are told of everything."""
    with psycopg.connect(database_url, autocommit=True, row_factory=dict_row) as db:
        db.execute(
            "INSERT INTO webhooks (webhook_id, project_id, url, format, events, secret)"
            " SELECT gen_random_uuid(), project_id, 'https://hooks.test', 'celeus',"
            " %s, '' FROM projects WHERE name = 'default'",
            [json.dumps(EVENTS)],
        )
        yield db


@dataclass
class Trial:
    """Two sessions of a kind, on one pool and with one seed, and what chance does to them."""

    kind: Kind
    rng: random.Random
    worlds: tuple[World, World]

    def leaving(self, group: Sequence[Asked], blind: Sequence[bool]) -> tuple[list[int], int]:
        """Requests that are given up, and after how many turns of the loop.

        None that may have to wait for others of its group, or to write what contradicts the pool:
        whether they did is not to be seen.
        """
        some = [index for index, asked in enumerate(group) if not blind[asked.caller]]
        left = [index for index in some if self.kind.steady and self.rng.random() < 0.1]
        return left, self.rng.choice((1, 2, 4, 8))


@pytest.fixture(params=[f"{kind} {seed}" for kind in KINDS for seed in range(SEEDS)])
async def trial(
    request: pytest.FixtureRequest,
    client: AsyncClient,
    looking: psycopg.Connection[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> Trial:
    kind = KINDS[request.param.rpartition(" ")[0]]
    pool = (await client.post("/v1/pools", json=kind.pool)).json()["id"]
    opening = {"pool_id": pool, "lease_seconds": 3600} | kind.opening
    with monkeypatch.context() as patch:
        patch.setattr("celeus.seeds.new_seed", lambda: SEED)
        opened = [(await client.post("/v1/sessions", json=opening)).json() for _ in range(2)]
    first, second = [
        World(UUID(document["id"].removeprefix("ses_")), looking) for document in opened
    ]
    return Trial(kind, random.Random(request.param), (first, second))  # noqa: S311 - the same each time


async def test_a_group_does_what_its_requests_do_one_after_the_other(
    trial: Trial, callers: list[Context], wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, (first, second) = trial.rng, trial.worlds
    states, blind = callers[0].states, [caller.blind for caller in callers]
    keys = [caller.key_id or "" for caller in callers]
    seen = first.seen()
    for _ in range(GROUPS):
        group = Mix(trial.kind, rng, keys, blind, seen).group()
        # To each request one of its own, to know it by
        asking = [replace(callers[asked.caller]) for asked in group]
        rebuilt = known_sequence(states, first.session) is None
        requests = [first.answer(*pair) for pair in zip(group, asking, strict=True)]
        spoilt = rng.random() < 0.2
        if spoilt:
            requests.append(together(replace(callers[0]), first.session, spoils))
        with taking_turns(monkeypatch) as turns:
            wire.commits()
            at_once = await answers(requests, *trial.leaving(group, blind))
        if not spoilt:
            contradicted = sum(isinstance(outcome, BoundContradicted) for outcome in at_once)
            # Whoever has to wait for what others of the group write is taken again
            passes = max(Counter(map(id, turns)).values(), default=0)
            assert wire.commits() == passes + contradicted + rebuilt * (passes > 0)
        last = {id(caller): place for place, caller in enumerate(turns)}
        taken = [index for index, caller in enumerate(asking) if id(caller) in last]
        alone = {}
        for index in sorted(taken, key=lambda index: last[id(asking[index])]):
            alone[index] = await second.answer(group[index], asking[index])
            second.seen()
        seen, messages = first.seen(), second.messages()
        assert seen.alike == second.seen().alike
        assert [message for message in first.messages() if message not in messages] == []
        for index in [
            index for index in taken if not isinstance(at_once[index], asyncio.CancelledError)
        ]:
            same(at_once[index], alone[index], second.told, seen.status["state"])
        assert known_sequence(states, first.session) in {None, seen.status["sequence"]}
        seen = await between(rng, callers, (first, second), seen)


def known_sequence(states: StateCache, session: UUID) -> int | None:
    """Where the process believes the session to stand, if it keeps its state."""
    slot = states._slots.get(session)
    return None if slot is None or slot.session is None else slot.session.state.sequence


async def answers(
    requests: Sequence[Coroutine[Any, Any, Any]], leaving: Collection[int], turns: int
) -> list[Any]:
    """What requests that come at once are answered; some are not waited for after some turns."""
    tasks = [asyncio.create_task(request) for request in requests]
    for _ in range(turns):
        await asyncio.sleep(0)
    for index in leaving:
        tasks[index].cancel()
    return await asyncio.gather(*tasks, return_exceptions=True)


async def spoils(journal: Journal, _db: AsyncConnection) -> Answering[None]:
    """Undoes its whole group, after all the others have done what they do."""
    if journal.state.can_draw:
        journal.append(journal.state.propose(), {"worker": "nobody"})
    raise ZeroDivisionError


@contextmanager
def taking_turns(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Context]]:
    """Who has a journal for their own in the block, in order."""
    turns: list[Context] = []
    take_over = Journal.take_over

    def noted(journal: Journal, caller: Context) -> None:
        turns.append(caller)
        take_over(journal, caller)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "take_over", noted)
        yield turns


def same(grouped: Any, alone: Any, told: dict[int, Any], state: str) -> None:  # noqa: ANN401
    """The answers are alike, but that a group tells how the session stands after all of it."""
    assert type(grouped) is type(alone), (grouped, alone)
    if isinstance(alone, Refusal):
        both = [
            (refusal.detail, refusal.field, refusal.rule, refusal.value, refusal.more)
            for refusal in (grouped, alone)
        ]
        assert both[0] == both[1]
        return
    offers = [
        answer.offer if isinstance(answer, rounds.Answer) else answer for answer in (grouped, alone)
    ]
    assert plain(offers[0].draws) == plain(offers[1].draws)
    assert offers[0].state in {offers[1].state, state}
    if isinstance(alone, rounds.Answer):
        assert grouped.receipts == alone.receipts
        assert grouped.session["sequence"] >= alone.session["sequence"]
        assert plain(uncontradicted(grouped.session)) == told[grouped.session["sequence"]]


async def between(
    rng: random.Random, callers: list[Context], worlds: Sequence[World], seen: Seen
) -> Seen:
    """Something happens to both sessions; what the first is like after it."""
    what = rng.choice(("expire", "expire", "release", "pass", "amend", "forget", "nothing"))
    caller, worker = rng.choice(callers), rng.choice(WORKERS)
    found: list[Any] = []
    some = rng.choice(("true", "round %% 2 = 0"))
    judgement = Judgement(rng.choice(seen.judged or [1]), loss=1.0, comment="second look")
    for world in worlds:
        if what == "expire":
            world.expire(some)
        elif what in {"release", "pass"}:
            holder = None if what == "release" else worker
            found.append(
                await rounds.release(caller, world.session, holder, None, passed=what == "pass")
            )
        elif what == "amend":
            found.append(await amended(callers[0], world, Correction(judgement, "ann", "an error")))
        elif what == "forget" and world is worlds[0]:
            caller.states._slots.pop(world.session, None)
    assert found[1:] == found[:1]
    return worlds[0].seen()


async def amended(context: Context, world: World, correction: Correction) -> Any:  # noqa: ANN401
    try:
        answer = await amend(context, world.session, correction)
    except Refusal as refusal:
        return refusal.detail
    return plain([answer.receipts[0].sequence, answer.session])
