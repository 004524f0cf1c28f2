"""Which sessions of a project may be shown together, and at which level their intervals hold.

The rounds are bet on again in a child process, once for every place in a session's history.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from celeus.core.multiplicity.evidence import EvidenceSequence
from celeus.core.multiplicity.promises import Promises, share
from celeus.core.multiplicity.selection import shown_level, step_up
from celeus.core.plans.plan import Plan
from celeus.core.pools.pool import Pool
from celeus.core.pools.surrogates import scores
from celeus.core.session.mean import Mean
from celeus.core.session.rounds import Rounds
from celeus.errors import InvalidValue
from celeus.operations.insights.claims_worker import Part, job_of
from celeus.operations.runtime.concurrency import in_thread
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.gathering import gather
from celeus.operations.runtime.workers import Bounds
from celeus.operations.sessions.journal import unlocked
from celeus.operations.sessions.sessions import get_session

MOST_SESSIONS = 100
MOST_ROUNDS = 50_000
"""Rounds of the sessions that one child bets on again, unless a single one has more."""
MOST_BYTES = 64 << 20
"""Of what is known of their items and rounds, likewise: a session of a million items has 16 MB."""
MODULE = "celeus.operations.insights.claims_worker"
BOUNDS = Bounds(seconds=120.0, processor_seconds=100.0)


@dataclass(frozen=True, slots=True)
class FamilyClaim:
    """What a session says by itself, and where 1, 2 and so on of the family are shown.

    ``rank`` is the least number shown with which it answers all it was asked, None for no number.
    ``evidence``: it gives an interval for every level; else one for all of them.
    """

    alone: dict[str, Any]
    at: list[dict[str, Any]]
    rank: int | None
    evidence: bool


@dataclass(frozen=True, slots=True)
class FamilyPage:
    """The sessions of a family, those ``shown`` among them by their places, and at which level."""

    level: float
    shown_level: float | None
    shown: list[int]
    documents: list[dict[str, Any]]
    said: list[FamilyClaim]
    promises: Promises


async def claims(
    context: Context, family: Sequence[UUID], picked: Sequence[UUID], level: float
) -> FamilyPage:
    """What holds of these sessions: of one, of all, and of those ``picked`` after looking.

    Without any picked: the most sessions that answer all they were asked at the level of so many.
    """
    _check(family, picked)
    documents = [orjson.loads((await get_session(context, one))[0]) for one in family]
    for document in documents:
        if document["estimate"] is None:
            raise _no_interval(document["id"])
    said = await _said(context, family, documents, level)
    count = len(family)
    places = [family.index(one) for one in picked] or step_up([one.rank for one in said])
    own = shown_level(level, len(places), count) if places else None
    pushed = sum(one["origin"] is not None for one in documents)
    held = _promises(level, count, len(places))
    if pushed:
        held = held._replace(one=f"{held.one} {_elsewhere(pushed, count)}")
    return FamilyPage(level, own, places, documents, said, held)


def _check(family: Sequence[UUID], picked: Sequence[UUID]) -> None:
    rule = f"from 1 to {MOST_SESSIONS} sessions"
    if not 1 <= len(family) <= MOST_SESSIONS:
        message = "This many sessions are not read at once."
        raise InvalidValue(message, field="session", rule=rule, value=len(family))
    for name, given in (("session", family), ("shown", picked)):
        twice = next((one for at, one in enumerate(given) if one in given[:at]), None)
        if twice is not None:
            message = "A session is named twice."
            rule = "every session once"
            raise InvalidValue(message, field=name, rule=rule, value=f"ses_{twice.hex}")
    stranger = next((one for one in picked if one not in family), None)
    if stranger is not None:
        raise InvalidValue(
            "What is shown was picked from the sessions named, and is one of them.",
            field="shown",
            rule="one of the sessions given as `session`",
            value=f"ses_{stranger.hex}",
        )


def _no_interval(name: str) -> InvalidValue:
    return InvalidValue(
        "This session has no interval to show beside others.",
        field="session",
        rule="sessions that measure one risk or one difference",
        value=name,
    )


async def _said(
    context: Context, family: Sequence[UUID], documents: Sequence[dict[str, Any]], level: float
) -> list[FamilyClaim]:
    """What every session says, from memory where it stands where it stood."""
    versions = dict(zip(family, map(_version, documents), strict=True))
    count, said = len(family), dict[UUID, FamilyClaim]()

    def missing() -> list[UUID]:
        for one, version in versions.items():
            known = context.claims.known((one, level, count), version)
            if known is not None:
                said[one] = known
        return [one for one in family if one not in said]

    if missing():
        async with context.process():
            while left := missing():
                batch = await _batch(context, left)
                fresh = await _bet_again(batch, level, count)
                for (one, (version, _, _)), made in zip(batch.items(), fresh, strict=True):
                    context.claims.keep((one, level, count), version, made)
                    said[one] = made
    return [said[one] for one in family]


def _version(document: dict[str, Any]) -> str:
    return f"{document['sequence']}.{document['revision']}"


async def _batch(
    context: Context, sessions: Sequence[UUID]
) -> dict[UUID, tuple[str, dict[str, Any], Part]]:
    """The first of the sessions, as many as one child takes, as their ledgers are now."""
    batch: dict[UUID, tuple[str, dict[str, Any], Part]] = {}
    rounds = size = 0
    for one in sessions:
        async with unlocked(context, one) as (session, row):
            plan, state = session.plan, session.state
            if not isinstance(plan, Plan) or not isinstance(state.question, Mean):
                raise _no_interval(f"ses_{one.hex}")
            rounds += state.drawn
            if batch and rounds > MOST_ROUNDS:
                break
            # Nobody else has the state meanwhile
            part = await in_thread(_part, plan, session.pool, state.rounds)
            size += sum(one.nbytes for one in part.scores.arrays.values())
            size += sum(one.nbytes for one in part.rounds.columns.values())
            if batch and size > MOST_BYTES:
                break
            alone = {
                "level": plan.alpha,
                "round": state.folded,
                "sequence": row["sequence"],
                "estimate": state.question.estimate,
                "lower": state.question.interval.lower,
                "upper": state.question.interval.upper,
            }
            batch[one] = _version(dict(row)), alone, part
    return batch


def _part(plan: Plan, pool: Pool, rounds: Rounds) -> Part:
    return Part(plan, scores(pool, plan.strategy), rounds[:])


async def _bet_again(
    batch: dict[UUID, tuple[str, dict[str, Any], Part]], level: float, count: int
) -> list[FamilyClaim]:
    parts = [part for _, _, part in batch.values()]
    frames, failure = await gather(MODULE, lambda: job_of(parts, level, count), BOUNDS)
    if failure is not None:
        if failure.reason in {"answer", "status"}:
            raise failure
        name = f"ses_{list(batch)[len(frames)].hex}"
        raise InvalidValue(
            f"The ledger of {name} is too long to be bet on again in time.",
            field="session",
            rule=f"sessions that take at most {BOUNDS.seconds:g} s together",
            value=name,
        )
    return [
        FamilyClaim(
            alone,
            frame.values["at"],
            frame.values["rank"],
            EvidenceSequence.serves(part.plan),
        )
        for frame, (_, alone, part) in zip(frames, batch.values(), strict=True)
    ]


def _promises(level: float, count: int, shown: int) -> Promises:
    """What is promised, in words."""
    if not shown:
        picked = "None of the sessions has its answers at a level that showing it would need."
    else:
        picked = (
            f"{shown} of the {count} are shown, each at level {level:g} {shown}/{count}: whatever"
            f" they were picked by, at most {share(level)} of those shown are false, in the mean."
            " That holds if the sessions named are all that were looked at: to leave out one that"
            " disappointed breaks it."
        )
    return Promises(
        "By itself every session holds what it says, at every moment, with probability 1 - alpha"
        " of its own.",
        f"All {count} hold at once, at this moment, with probability at least"
        f" {share(1.0 - level)}, each with the interval at level {level:g}/{count}.",
        picked,
    )


def _elsewhere(pushed: int, count: int) -> str:
    """What all promises rest on besides where sessions were pushed."""
    return (
        f"{pushed} of the {count} ran elsewhere: all that is said here rests on the word of whoever"
        " pushed them, too, that their plans were fixed before their losses were seen, that these"
        " are what their judges gave, and that they were not picked from several."
    )
