"""What the file of a run has to show before anybody else keeps its session.

Nothing in it is believed but its seed and its losses: the plan is made again from its claim, every
draw from the seed, every interval from the losses, and the certificate that it leads to is
verified as anybody would verify it. Whether the losses are those that a judge gave, and whether the
session is one of many, no file shows.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray

from celeus.core.canonical import canonical_json
from celeus.core.certificates.chain import chain_on, chain_start
from celeus.core.certificates.document import PUSHED, Account, certificate, position_of
from celeus.core.certificates.parsing import (
    DIGEST,
    Mismatch,
    Object,
    equal,
    members,
    moment,
    parse,
    same,
    text,
    whole,
)
from celeus.core.certificates.replay import (
    Evidence,
    begun,
    check_bounds,
    check_labels,
    replay_ledger,
)
from celeus.core.certificates.schema import header_of, plan_of
from celeus.core.certificates.transcript import Transcript
from celeus.core.certificates.verify import verify
from celeus.core.ledger import Amendment, JointObservation, Observation, Unjudgeable
from celeus.core.plans.plan import METHOD_VERSION, Plan
from celeus.core.pools.metrics import check_metric_name
from celeus.core.pools.pool import Pool
from celeus.core.pools.systems import Lineup, Systems
from celeus.core.pools.table import MOST_METRICS
from celeus.core.randomness import commitment
from celeus.core.runs.form import FORMAT, HEADER, PoolForm
from celeus.core.session.question import AnyPlan
from celeus.core.session.session import AnySession
from celeus.errors import InvalidValue, Refusal

SESSION: Final = re.compile(r"[0-9a-f]{32}")
LONGEST_NAME = 200
UNSEEN: Final = frozenset({"items", "issuer"})
"""Checks that take something else than a run's file: its items' digest was made of its rows."""
LARGEST_NUMBER = 2.0**53
"""Beyond it a database gives whole numbers back that canonical JSON has no spelling for."""
TURNS: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\x00")
"""What would turn the direction of the text that a name stands in."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What the header of a file says, each member in its form."""

    session: bytes
    items: int
    form: PoolForm
    plan: Object
    seed: bytes


@dataclass(frozen=True, slots=True)
class Run:
    """A session that its file shows to be one; ``records`` are its ledger as canonical JSON.

    ``folded_at`` has of every round with an interval the number of the event since which it is what
    it is; of several systems and of a table no round has one.
    """

    session: bytes
    plan: AnyPlan
    seed: bytes
    state: AnySession
    amendments: int
    records: Sequence[bytes]
    head: bytes
    folded_at: NDArray[np.int32]


def opening_of(line: bytes) -> Opening:
    """What the first line says; raises Mismatch for what is no header of a run."""
    header = parse(line)
    equal("format", header.get("format"), FORMAT)
    members(header, "", HEADER)
    moment(header["created_at"], "created_at")
    plan, pool = (members(header[name], name, header[name] or ()) for name in ("plan", "pool"))
    form = _form_of(pool)
    if plan.get("raters") is not None:
        raise Mismatch("plan.raters", plan["raters"], "left out: a run has one judge")
    policy = plan.get("policy")
    if isinstance(policy, dict):
        # An interval without a guarantee is for comparisons, and no service opens a session on it
        equal("plan.policy.recentred", policy.get("recentred"), found=True)
    equal("plan.method_version", plan.get("method_version"), METHOD_VERSION)
    return Opening(
        session=bytes.fromhex(text(header["session"], "session", SESSION)),
        items=whole(header["items"], "items", 1),
        form=form,
        plan=plan,
        seed=bytes.fromhex(text(header["seed"], "seed", DIGEST)),
    )


def run_of(opening: Opening, pool: Pool, lines: Iterable[bytes], until: str) -> Run:
    """The session of a file with this header and pool, and these lines behind them.

    ``until`` is the time now, which no event is later than. Raises Mismatch at the first place that
    is not as it has to be; that of a record is `ledger[i]`, i from 0.
    """
    plan = _plan_of(opening, pool)
    transcript = Transcript(plan, pool.scale)
    records = list(_read(transcript, lines, until))
    if not transcript.closed:
        raise InvalidValue(
            "The run is not closed: it may go on where it is, by whoever knows its seed. Close it"
            " for good, with `session.close()` or `celeus push --close`, and push it then.",
            field="state",
            rule="closed",
            value=transcript.state,
        )
    with np.errstate(all="ignore"):
        state = _replayed(plan, pool, opening.seed, transcript)
    start = chain_start(opening.session, bytes.fromhex(plan.digest))
    folded_at = _folded_at(transcript, state)
    amendments, draws = transcript.amendments, [draw.seen for draw in transcript.draws]
    # Thousands of objects, which the verification makes again
    del transcript
    run = Run(
        session=opening.session,
        plan=plan,
        seed=opening.seed,
        state=state,
        amendments=amendments,
        records=records,
        head=chain_on(start, records),
        folded_at=folded_at,
    )
    _certify(run, pool, until, draws)
    return run


def _form_of(pool: Object) -> PoolForm:
    _showable(pool, "pool")
    try:
        form = PoolForm.from_dict(pool)
    except (AttributeError, KeyError, TypeError, ValueError, Refusal) as error:
        raise Mismatch("pool", None, f"what a run says of its pool ({error})") from error
    same("pool", pool, form.to_dict())
    name = text(form.name, "pool.name")
    if not 0 < len(name) <= LONGEST_NAME:
        raise Mismatch("pool.name", name, f"1 to {LONGEST_NAME} characters")
    names = [text(metric.name, "pool.metrics") for metric in form.metrics]
    if len(set(names)) < len(names) or len(names) > MOST_METRICS:
        rule = f"at most {MOST_METRICS} different names"
        raise Mismatch("pool.metrics", ", ".join(names), rule)
    try:
        for metric_name in names:
            check_metric_name(metric_name)
    except Refusal as refusal:
        raise Mismatch("pool.metrics", refusal.value, refusal.rule) from refusal
    named = form.named
    systems = (named.a, named.b) if isinstance(named, Systems) else ()
    for system in named.names if isinstance(named, Lineup) else systems:
        if not 0 < len(text(system, "pool.systems")) <= LONGEST_NAME:
            raise Mismatch("pool.systems", system, f"1 to {LONGEST_NAME} characters")
    return form


def _showable(value: object, where: str) -> None:
    """Names that people are shown beside other text, whose direction they must not turn."""
    if isinstance(value, str) and not TURNS.isdisjoint(value):
        raise Mismatch(where, value, "a text without marks that turn its direction")
    inner = value.values() if isinstance(value, dict) else value
    for member in inner if not isinstance(inner, str) and isinstance(inner, Iterable) else ():
        _showable(member, where)


def _plan_of(opening: Opening, pool: Pool) -> AnyPlan:
    """The plan, which is the one that its own claim leads to on this pool."""
    header, scale = header_of(parse(canonical_json(pool.header())))
    plan = plan_of(opening.plan, header, scale)
    equal("the items of plan.pool_digest", plan.pool_digest, pool.digest)
    equal("plan.commitment", plan.commitment, commitment(opening.seed))
    return plan


def _read(transcript: Transcript, lines: Iterable[bytes], until: str) -> Iterator[bytes]:
    for number, line in enumerate(lines):
        where = f"ledger[{number}]"
        try:
            record = parse(line)
        except Mismatch as differs:
            raise Mismatch(f"{where}, {differs.where}", differs.claimed, differs.found) from differs
        transcript.read(record)
        if record["at"] > until:
            raise Mismatch(f"{where}.at", record["at"], f"no time after now, {until}")
        detail = record.get("detail", {})
        if "key" in detail:
            # That is how a service writes down whose key a judgement came with
            raise Mismatch(f"{where}.detail.key", detail["key"], "no member of this name")
        _storable(detail, f"{where}.detail")
        yield line


def _storable(value: object, where: str) -> None:
    """What a database gives back as it was."""
    if isinstance(value, str) and "\x00" in value:
        raise Mismatch(where, value, "a text without U+0000")
    if isinstance(value, float) and abs(value) >= LARGEST_NUMBER:
        raise Mismatch(where, value, "a number below 2^53 in size")
    if isinstance(value, dict):
        for name, inner in value.items():
            _storable(name, where)
            _storable(inner, f"{where}.{name}")
    elif isinstance(value, list):
        for inner in value:
            _storable(inner, where)


def _replayed(plan: AnyPlan, pool: Pool, seed: bytes, transcript: Transcript) -> AnySession:
    """The session after the ledger, every draw made again; a Mismatch names the record it is of."""
    try:
        if isinstance(plan, Plan):
            check_labels(pool, transcript)
            check_bounds(plan, pool, transcript)
        session = begun(plan, pool, seed)
        replay_ledger(session, transcript.events, seeded=True)
    except (ArithmeticError, ValueError) as error:
        rule = f"numbers that a session leads to ({str(error)[:200]})"
        raise Mismatch("ledger", None, rule) from error
    return session


def _folded_at(transcript: Transcript, session: AnySession) -> NDArray[np.int32]:
    """Of every round with an interval the event since which it is what it is."""
    latest = np.zeros(len(transcript.draws), dtype=np.int32)
    for number, event in enumerate(transcript.events, 1):
        if isinstance(event, Observation | JointObservation | Unjudgeable | Amendment):
            latest[event.round - 1] = number
    return np.maximum.accumulate(latest[: len(session.question.points)])


def _certify(run: Run, pool: Pool, until: str, draws: Sequence[int]) -> None:
    """Refuse a session whose certificate would not hold for whoever has its pool.

    ``draws`` are the places of the draws among the records.
    """
    account = Account(
        session=run.session,
        header=pool.header(),
        position=position_of(run.state, amended=run.amendments > 0),
        records=run.records,
        seed=run.seed,
        issued_at=until,
        supersedes=None,
        pool_sessions=None,
        origin={"kind": PUSHED, "at": until},
    )
    # Signed with any key: whose it is, is the only thing that is not looked at
    key = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(run.seed).digest())
    report = verify(certificate(account, key), _evidence_of(pool))
    if report.difference is not None:
        where = report.difference.where
        round_ = re.search(r"\bround (\d+)$", where)
        if round_ is not None and 0 < int(round_[1]) <= len(draws):
            where = f"ledger[{draws[int(round_[1]) - 1]}], {where}"
        raise Mismatch(where, report.difference.claimed, report.difference.found)
    unseen = report.unchecked.keys() - UNSEEN
    if unseen:
        raise Mismatch("ledger", None, f"a ledger of which all is checked: {', '.join(unseen)}")


def _evidence_of(pool: Pool) -> Evidence:
    return Evidence(
        pool.columns,
        pool.groups,
        pool.items_digest,
        pool.reasons,
        pool.named,
        pool.based_on,
        pool.score,
        pool.metrics,
        pool.group_columns,
    )
