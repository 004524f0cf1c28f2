"""Checks of a run's file before a service stores its session.

Only its seed and its losses are trusted: the plan is made again from its claim, every draw from the
seed, every interval from the losses, and the resulting certificate is verified like any other. No
file can show whether a judge gave the losses, or whether the session is one of many.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray

from celeus.core.certificate.chain import chain_on, chain_start
from celeus.core.certificate.document import SessionFacts, certificate, position_of
from celeus.core.certificate.layout import PUSHED
from celeus.core.certificate.parsing import moment, parse
from celeus.core.certificate.pool_checks import Evidence
from celeus.core.certificate.read import header_of, plan_of
from celeus.core.certificate.read_ledger import Transcript
from celeus.core.certificate.replay import begun, check_bounds, check_labels, replay_ledger
from celeus.core.certificate.verify import verify
from celeus.core.ledger import Amendment, JointObservation, Observation, Unjudgeable
from celeus.core.plain import DIGEST, Mismatch, Object, equal, members, refusals, same, text, whole
from celeus.core.plans.plan import METHOD_VERSION, Plan
from celeus.core.pools.metrics import check_metric_name
from celeus.core.pools.pool import Pool
from celeus.core.pools.systems import Lineup, Systems
from celeus.core.pools.table_pool import MOST_METRICS
from celeus.core.randomness import commitment
from celeus.core.runs.run_file import FORMAT, HEADER, RUNS, PoolForm
from celeus.core.session.question import AnyPlan
from celeus.core.session.session import AnySession
from celeus.errors import InvalidValue, Refusal

SESSION: Final = re.compile(r"[0-9a-f]{32}")
LONGEST_NAME = 200
UNSEEN: Final = frozenset({"items", "issuer"})
"""Checks that a run's file cannot serve; the items digest was computed from its own rows."""
LARGEST_NUMBER = 2.0**53
"""Least size of a float that a database returns as a whole number canonical JSON refuses."""
TURNS: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\x00")
"""Characters that change the direction of the text around a name."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The header of a file, each member in its type."""

    session: bytes
    created_at: str
    items: int
    form: PoolForm
    plan: Object
    seed: bytes


@dataclass(frozen=True, slots=True)
class Run:
    """A session checked from its file; ``records`` are its ledger as canonical JSON.

    ``folded_at`` holds, for every round with an interval, the number of the event after which the
    interval no longer changed. Rounds of several systems or of a table have no interval.
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
    """Return the header from the first line; raises Mismatch if it is not a run's header."""
    header = parse(line)
    equal("format", header.get("format"), FORMAT)
    members(header, "", HEADER)
    plan, pool = (members(header[name], name, header[name] or ()) for name in ("plan", "pool"))
    form = _form_of(pool)
    if plan.get("raters") is not None:
        raise Mismatch("plan.raters", plan["raters"], "left out: a run has one judge")
    equal("plan.method_version", plan.get("method_version"), METHOD_VERSION)
    return Opening(
        session=bytes.fromhex(text(header["session"], "session", SESSION)),
        created_at=moment(header["created_at"], "created_at"),
        items=whole(header["items"], "items", 1),
        form=form,
        plan=plan,
        seed=bytes.fromhex(text(header["seed"], "seed", DIGEST)),
    )


def run_of(opening: Opening, pool: Pool, lines: Iterable[bytes], until: str) -> Run:
    """Return the session of a file with this header, this pool and these lines of the ledger.

    ``until`` is the current time; no event may be later. Raises Mismatch for the first fault, whose
    place in a record is `ledger[i]`, i from 0, and InvalidValue for a run that is not closed.
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
    with refusals("pool"):
        form = PoolForm.from_dict(pool, "pool")
    same("pool", pool, form.to_dict())
    name = form.name
    if not 0 < len(name) <= LONGEST_NAME:
        raise Mismatch("pool.name", name, f"1 to {LONGEST_NAME} characters")
    names = [metric.name for metric in form.metrics]
    if len(set(names)) < len(names) or len(names) > MOST_METRICS:
        rule = f"at most {MOST_METRICS} different names"
        raise Mismatch("pool.metrics", ", ".join(names), rule)
    try:
        for metric_name in names:
            check_metric_name(metric_name)
    except Refusal as refusal:
        raise Mismatch("pool.metrics", refusal.value, refusal.rule) from refusal
    named = form.systems
    systems = (named.a, named.b) if isinstance(named, Systems) else ()
    for system in named.names if isinstance(named, Lineup) else systems:
        if not 0 < len(system) <= LONGEST_NAME:
            raise Mismatch("pool.systems", system, f"1 to {LONGEST_NAME} characters")
    return form


def _showable(value: object, where: str) -> None:
    """Refuse text with characters that change the direction of the text around it."""
    if isinstance(value, str) and not TURNS.isdisjoint(value):
        raise Mismatch(where, value, "a text without marks that turn its direction")
    inner = value.values() if isinstance(value, dict) else value
    for member in inner if not isinstance(inner, str) and isinstance(inner, Iterable) else ():
        _showable(member, where)


def _plan_of(opening: Opening, pool: Pool) -> AnyPlan:
    """Return the plan of the header; raises Mismatch unless its claim gives it on this pool."""
    plan = plan_of(opening.plan, header_of(pool.header()))
    equal("the items of plan.pool_digest", plan.pool_digest, pool.digest)
    equal("plan.commitment", plan.commitment, commitment(opening.seed))
    return plan


def _read(transcript: Transcript, lines: Iterable[bytes], until: str) -> Iterator[bytes]:
    of_ledger = (line for line in lines if not line.startswith(RUNS))
    for number, line in enumerate(of_ledger):
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
            # A service records there which key a judgement came with
            raise Mismatch(f"{where}.detail.key", detail["key"], "no member of this name")
        _storable(detail, f"{where}.detail")
        yield line


def _storable(value: object, where: str) -> None:
    """Refuse values that a database would return changed."""
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
    """Return the session after replaying the ledger; a Mismatch names the record at fault."""
    try:
        if isinstance(plan, Plan):
            check_labels(pool, transcript)
            check_bounds(plan, pool, transcript)
        session = begun(plan, pool, seed)
        replay_ledger(session, transcript.events, seeded=True)
    except Mismatch:
        raise
    except (ArithmeticError, ValueError) as error:
        rule = f"numbers that a session leads to ({str(error)[:200]})"
        raise Mismatch("ledger", None, rule) from error
    return session


def _folded_at(transcript: Transcript, session: AnySession) -> NDArray[np.int32]:
    """Return for every round with an interval the last event that changed the interval."""
    latest = np.zeros(len(transcript.draws), dtype=np.int32)
    for number, event in enumerate(transcript.events, 1):
        if isinstance(event, Observation | JointObservation | Unjudgeable | Amendment):
            latest[event.round - 1] = number
    return np.maximum.accumulate(latest[: len(session.question.points)])


def _certify(run: Run, pool: Pool, until: str, draws: Sequence[int]) -> None:
    """Refuse a session whose certificate would not verify on its pool.

    ``draws`` are the places of the draws among the records.
    """
    account = SessionFacts(
        session=run.session,
        header=pool.header(),
        position=position_of(run.state),
        records=run.records,
        seed=run.seed,
        issued_at=until,
        supersedes=None,
        pool_sessions=None,
        origin={"kind": PUSHED, "at": until},
    )
    # Any key will do: only the issuer is not checked
    key = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(run.seed).digest())
    report = verify(certificate(account, key), Evidence.of(pool))
    if report.difference is not None:
        where = report.difference.where
        round_ = re.search(r"\bround (\d+)$", where)
        if round_ is not None and 0 < int(round_[1]) <= len(draws):
            where = f"ledger[{draws[int(round_[1]) - 1]}], {where}"
        raise Mismatch(where, report.difference.claimed, report.difference.found)
    unseen = report.unchecked.keys() - UNSEEN
    if unseen:
        raise Mismatch("ledger", None, f"a ledger of which all is checked: {', '.join(unseen)}")
