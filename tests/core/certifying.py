"""Sessions of the core alone, kept with their records, and the certificates they lead to."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray

from celeus.core.canonical import canonical_json
from celeus.core.certificate.chain import chain_head, chain_start, record_of
from celeus.core.certificate.document import SessionFacts, certificate, position_of, signed
from celeus.core.certificate.pool_checks import Evidence, items_digest
from celeus.core.certificate.read import header_digest
from celeus.core.certificate.report import Report
from celeus.core.ledger import Amendment, Change, Draw, Event, Observation, Unjudgeable
from celeus.core.plans.plan import Claim, Plan, PoolFacts, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import CHAIN_START, Pool, chain
from celeus.core.pools.rows.answers import assemble_pairs
from celeus.core.pools.score import declared_score
from celeus.core.pools.surrogates import scores
from celeus.core.pools.systems import Systems
from celeus.core.randomness import commitment
from celeus.core.session.mean import Mean
from celeus.core.session.rounds import PENDING
from celeus.core.session.session import AnySession, Session, begin_mean

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
SEED = bytes(range(100, 132))
SESSION = bytes.fromhex("019aa0b2c3d47e5f8a9b0c1d2e3f4a5c")
ISSUED_AT = "2026-11-21T14:00:00.000000+00:00"
AT = "2026-11-21T13:{:02d}:{:02d}.{:06d}+00:00"

ONLY_SESSION = {
    "number": 1,
    "total": 1,
    "others_open": 0,
    "others_certified": 0,
    "others_closed_without_certificate": 0,
}

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """A pool and the losses nobody is shown; of two systems also its rows."""

    pool: Pool
    losses: Floats
    rows: tuple[dict[str, Any], ...] = ()

    @property
    def evidence(self) -> Evidence:
        """The pool as somebody downloads it."""
        return Evidence.of(self.pool)

    @property
    def lines(self) -> list[bytes]:
        """The items as somebody uploaded them."""
        if self.rows:
            return [json.dumps(row).encode() for row in self.rows]
        return _lines(self.pool.items)


def zero_one_world(items: int = 400, seed: int = 1) -> World:
    """Zero-one losses with an informative surrogate and the classes they follow from."""
    chance = np.random.default_rng(seed)
    surrogate = np.clip(0.3 + 0.3 * chance.standard_normal(items), 0.02, 0.98)
    losses = (chance.random(items) < surrogate).astype(np.float64)
    columns: dict[str, NDArray[Any]] = {
        "surrogate.0": surrogate,
        "prediction": np.zeros(items, dtype="<i4"),
    }
    return World(_pool(items, LossScale.of("zero_one"), columns), losses)


def columns_world(items: int = 150, seed: int = 6) -> World:
    """Zero-one losses with three surrogates, one of which is informative."""
    world, chance = zero_one_world(items, seed), np.random.default_rng(seed)
    columns = {f"surrogate.{column}": chance.random(items) for column in (1, 2)}
    return World(replace(world.pool, columns={**world.pool.columns, **columns}), world.losses)


def graded_world(items: int = 300, seed: int = 2) -> World:
    """Losses anywhere on a scale that does not begin at 0."""
    chance = np.random.default_rng(seed)
    unit = chance.random(items)
    surrogate = np.clip(unit + 0.1 * chance.standard_normal(items), 0.0, 1.0)
    scale = LossScale.of("bounded", -2.0, 6.0)
    columns: dict[str, NDArray[Any]] = {"surrogate.0": -2.0 + 8.0 * surrogate}
    return World(_pool(items, scale, columns), -2.0 + 8.0 * unit)


def named_world(items: int = 200) -> World:
    """Zero-one losses told by the accuracy."""
    world = zero_one_world(items)
    score = declared_score("accuracy", "higher", world.pool.scale, None)
    return World(replace(world.pool, score=score), world.losses)


def bare_world(items: int = 150, seed: int = 3) -> World:
    """A pool of which nothing is known."""
    losses = (np.random.default_rng(seed).random(items) < 0.2).astype(np.float64)
    return World(_pool(items, LossScale.of("zero_one"), {}), losses)


def known_world(items: int = 200, *, bounded: bool = False) -> World:
    """Zero-one losses, half of which are known for two reasons; or graded ones with bounds."""
    world = graded_world(items) if bounded else zero_one_world(items)
    lower = np.full(items, world.pool.scale.lower)
    upper = np.full(items, world.pool.scale.upper)
    known = np.arange(items) % 4 if not bounded else np.where(np.arange(items) % 4 == 1, 1, 0)
    known = np.where(known == 3, 0, known)
    at = known > 0
    lower[at] = upper[at] = world.losses[at]
    if bounded:
        lower[::4] = np.minimum(world.losses[::4], 0.0)
        # Every other bound comes with a reason.
        known[::8] = np.where(lower[::8] > world.pool.scale.lower, 2, 0)
    columns: dict[str, NDArray[Any]] = {
        **world.pool.columns,
        "loss_lower": lower,
        "loss_upper": upper,
        "known": known.astype("<i4"),
    }
    reasons = ("empty answer", "half marks") if bounded else ("same answer", "judged before")
    return World(replace(world.pool, columns=columns, reasons=reasons), world.losses)


def weighted_world(items: int = 200) -> World:
    """Zero-one losses, some of them known, of items that count as 1 to 1000 others."""
    world = known_world(items)
    weight = np.exp(np.random.default_rng(6).uniform(0.0, np.log(1000.0), items))
    return World(
        replace(world.pool, columns={**world.pool.columns, "weight": weight}), world.losses
    )


def paired_world(items: int = 200, seed: int = 4, texts: int = 3) -> World:
    """Preferences between the texts of two systems, some of which are the same."""
    chance = np.random.default_rng(seed)
    systems = Systems.of(("one", "two"), ("preference", None, None), "whitespace")
    chosen = chance.integers(0, texts, (items, 2))
    rows = [
        {
            "id": f"item {at}",
            "payload": {"n": at},
            "a": {"answer": f"text {a}"},
            "b": {"answer": f" text  {b}"},
        }
        for at, (a, b) in enumerate(chosen.tolist())
    ]
    batch = assemble_pairs(range(items), rows, systems, None).batch
    reasons = tuple(dict.fromkeys(filter(None, batch.reasons)))
    numbers = {reason: number for number, reason in enumerate(("", *reasons))}
    known = np.array([numbers[one] for one in batch.reasons], dtype="<i4")
    digest = chain(CHAIN_START, batch.records())
    pool = Pool(
        items, systems.scale, batch.columns | {"known": known}, (), digest, reasons, systems
    )
    return World(pool, np.sign(chosen[:, 0] - chosen[:, 1]).astype(np.float64), tuple(rows))


def _pool(items: int, scale: LossScale, columns: Mapping[str, NDArray[Any]]) -> Pool:
    digest = bytes.fromhex(items_digest(_lines(items)))
    return Pool(items, scale, columns, (), digest)


def _lines(items: int) -> list[bytes]:
    return [json.dumps({"id": f"item {n}", "payload": {"n": n}}).encode() for n in range(items)]


@dataclass
class Case:
    """A session under way; ``labels`` has judges send classes where the losses are zero or one."""

    world: World
    plan: Plan
    state: Session[Mean]
    labels: bool = False
    records: list[dict[str, Any]] = field(default_factory=list)

    def enter(self, event: Event, **detail: Any) -> None:  # noqa: ANN401 -- as the wire takes it
        """The next event, with what is written down beside it."""
        self.state.enter(event)
        if not isinstance(event, Amendment):
            self.state.fold()
        sequence = self.state.sequence
        at = AT.format(sequence // 60 % 60, sequence % 60, sequence * 7919 % 1_000_000)
        self.records.append(record_of(sequence, event, detail or None, at))

    def draw(self, count: int = 1) -> list[Draw]:
        """Draw without judging."""
        made = []
        # A row of corrections is folded once.
        self.state = self.state.fold()
        for _ in range(count):
            made.append(self.state.propose())
            sides = self.state.question.sides
            left = {} if sides is None else {"left": sides.left(made[-1].round)}
            self.enter(made[-1], worker="ada", **left)
        return made

    def judge(self, rounds: Iterable[int] | None = None, *, hidden: Iterable[int] = ()) -> None:
        """Judge these rounds in this order, or all that are out; ``hidden`` can nobody tell."""
        if rounds is None:
            out = (one for one in self.state.rounds if one.loss is PENDING)
            rounds = [one.draw.round for one in out]
        unknown = set(hidden)
        for round_ in rounds:
            loss = float(self.world.losses[self.state.rounds[round_ - 1].draw.item])
            if round_ in unknown:
                self.enter(Unjudgeable(round_), unjudgeable="blurred", worker="ada")
            elif self.state.question.sides is not None:
                turned = loss if self.state.question.sides.left(round_) == "a" else -loss
                preference = {-1.0: "left", 0.0: "tie", 1.0: "right"}[turned]
                self.enter(Observation(round_, loss), preference=preference, worker="ada")
            elif self.labels:
                # Every item is predicted to be of class 0.
                self.enter(Observation(round_, loss), label=int(loss), worker="ada")
            else:
                self.enter(Observation(round_, loss), worker="ada")

    def go(self, rounds: int, *, hidden: Iterable[int] = ()) -> None:
        """Draw and judge, one after the other."""
        for _ in range(rounds):
            self.judge([self.draw()[0].round], hidden=hidden)

    def amend(self, round_: int, loss: float | None) -> None:
        """Correct a judgement."""
        said = {}
        if self.state.question.sides is not None and loss is not None:
            said = {"preference": {-1.0: "a", 0.0: "tie", 1.0: "b"}[loss]}
        self.enter(Amendment(round_, loss), author="bob", reason="a slip", **said)

    def change(
        self, precision: float | None, budget: int | None = None, state: str = "active"
    ) -> None:
        """Go on with another precision or budget, or close."""
        limit = self.state.stopping.budget if budget is None else budget
        self.enter(Change(precision, limit), precision=precision, budget=limit, state=state)

    def close(self) -> None:
        """For good."""
        self.change(self.state.stopping.precision, state="closed")

    def account(self, *, final: bool) -> SessionFacts:
        """What a certificate tells of it now."""
        self.state = self.state.fold()
        return SessionFacts(
            session=SESSION,
            header=self.world.pool.header(),
            position=position_of(self.state),
            records=[canonical_json(record) for record in self.records],
            seed=SEED if final else None,
            issued_at=ISSUED_AT,
            supersedes=None,
            pool_sessions=ONLY_SESSION,
        )

    def certificate(self, *, final: bool = True, key: Ed25519PrivateKey = KEY) -> bytes:
        """Signed; a final one closes the session."""
        if final and (
            not self.records or self.records[-1].get("detail", {}).get("state") != "closed"
        ):
            self.close()
        return certificate(self.account(final=final), key)


def opened(
    world: World,
    policy: str = "sharp",
    claim: Claim | None = None,
    **parameters: Any,  # noqa: ANN401
) -> Case:
    """A session before its first draw."""
    pool = world.pool
    facts = PoolFacts(
        pool.digest,
        pool.items,
        pool.scale.lower,
        pool.scale.upper,
        whole_losses=pool.scale.kind == "zero_one",
        known=pool.known,
        difference=pool.scale.kind == "difference",
        systems=None if pool.systems is None else pool.systems.names,
        based_on=pool.based_on,
        weights=pool.weights,
        score=pool.score,
    )
    chosen = policy_named(policy, **parameters)
    plan = make_plan(
        claim or Claim(precision=pool.scale.width / 10.0), facts, chosen, commitment(SEED)
    )
    return Case(world, plan, begin_mean(plan, scores(pool), SEED))


def corrected(case: Case) -> Case:
    """The case gone on: a skip, draws judged out of order, a correction to the same loss."""
    case.go(6, hidden=[3])
    case.draw(3)
    case.judge([8, 9, 7])
    case.amend(2, float(case.world.losses[case.state.rounds[1].draw.item]))
    case.go(20)
    return case


def issued(
    session: AnySession, pool: Pool, records: Sequence[Mapping[str, Any]], *, final: bool
) -> bytes:
    """The certificate of a session on a pool, as it stands."""
    account = SessionFacts(
        session=SESSION,
        header=pool.header(),
        position=position_of(session),
        records=[canonical_json(dict(record)) for record in records],
        seed=SEED if final else None,
        issued_at=ISSUED_AT,
        supersedes=None,
        pool_sessions=ONLY_SESSION,
    )
    return certificate(account, KEY)


Document = dict[str, Any]


Changes = Callable[[Document], None]


def put(*paths: str, to: object) -> Changes:
    """Another value at paths such as `claim.claims[2].level`, or one made of the old value."""

    def change(body: Document) -> None:
        for path in paths:
            around, last = _reached(body, path)
            around[last] = to(around[last]) if callable(to) else to

    return change


def drop(*paths: str) -> Changes:
    """Nothing at these paths any more."""

    def change(body: Document) -> None:
        for path in paths:
            around, last = _reached(body, path)
            del around[last]

    return change


def changed(*changes: Changes) -> Changes:
    """Several changes, one after the other."""

    def change(body: Document) -> None:
        for each in changes:
            each(body)

    return change


def _reached(body: Document, path: str) -> tuple[Any, Any]:
    """What holds the end of a path, and the end: a name, or a place in a list."""
    *steps, last = (
        int(step) if step.lstrip("-").isdigit() else step for step in re.findall(r"[^.\[\]]+", path)
    )
    around: Any = body
    for step in steps:
        around = around[step]
    return around, last


def forged(data: bytes, change: Changes) -> bytes:
    """The certificate with a change, as its issuer would sign it."""
    body: Document = json.loads(data)
    change(body)
    return restated(body)


def restated(body: Document) -> bytes:
    """The document signed anew by its issuer, with digests and a chain that fit what it says."""
    body.pop("signature", None)
    body["pool_digest"] = body["plan"]["pool_digest"] = header_digest(body["pool"])
    body["plan_digest"] = header_digest(body["plan"])
    start = chain_start(SESSION, bytes.fromhex(body["plan_digest"]))
    body["chain"] = {"start": start.hex(), "head": chain_head(start, body["ledger"]).hex()}
    return signed(body, KEY)


def where_of(report: Report) -> str:
    """Where a certificate differs that is not valid."""
    assert not report.valid
    assert report.difference is not None
    return report.difference.where
