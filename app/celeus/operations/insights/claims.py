"""Decide which sessions of a project may be shown together, and at which level they hold.

The family is the project: its level was fixed when it was made, and every session with a question
has a place for good, in order of opening. So no session that is left out, deleted or still to be
opened changes what holds of those shown (docs/evidence/method.md#19-the-account-of-alpha).

The rounds are bet on again in a child process, once for every place in a session's history.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import text

from celeus.core.multiplicity.evidence import EvidenceSequence
from celeus.core.multiplicity.promises import Promises, share
from celeus.core.multiplicity.selection import opened_level, step_up
from celeus.core.plans.plan import Plan
from celeus.core.pools.pool import Pool
from celeus.core.pools.surrogates import scores
from celeus.core.session.mean import Mean
from celeus.core.session.rounds import Rounds
from celeus.errors import InvalidValue, SessionNotFound
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
"""Bytes of their scores and rounds, likewise: a session of a million items has 16 MB."""
MODULE = "celeus.operations.insights.claims_worker"
BOUNDS = Bounds(seconds=120.0, processor_seconds=100.0)


@dataclass(frozen=True, slots=True)
class FamilyClaim:
    """A session's interval ``alone`` and, where it has a place, ``by_shown``: with 1, 2, … shown.

    ``rank`` is the least number shown with which it answers all it was asked, None for no number.
    ``evidence``: it gives an interval for every level; else one for all of them.
    """

    place: int | None
    alone: dict[str, Any]
    by_shown: list[dict[str, Any]]
    rank: int | None
    evidence: bool

    def shown(self, level: float, shown: int) -> dict[str, Any] | None:
        """Return its interval where so many are shown, with the level; None without a place."""
        if self.place is None:
            return None
        opened = opened_level(level, shown if self.evidence else 1, self.place)
        return self.by_shown[min(shown, len(self.by_shown)) - 1] | {"level": opened}


@dataclass(frozen=True, slots=True)
class FamilyPage:
    """Sessions of a project, those ``shown`` by their position among them, and the project's level.

    ``opened`` is the number of sessions with a question that the project has opened.
    """

    level: float
    opened: int
    shown: list[int]
    documents: list[dict[str, Any]]
    claims: list[FamilyClaim]
    promises: Promises


async def claims(context: Context, family: Sequence[UUID], picked: Sequence[UUID]) -> FamilyPage:
    """Return the claims of these sessions: of each, of all, and of those ``picked`` after looking.

    Without any picked: the most sessions that answer all they were asked at the level of so many.
    A session without a question is what it is alone: it is not shown, and counts for nothing.
    """
    _check(family, picked)
    documents = [orjson.loads((await get_session(context, session_id))[0]) for session_id in family]
    for document in documents:
        if document["estimate"] is None:
            raise _no_interval(document["id"])
    async with context.transaction() as db:
        params = {"project_id": context.project_id, "sessions": list(family)}
        project = (await db.execute(_PROJECT, params)).one()
        found = {row.session_id: row.place for row in await db.execute(_PLACES, params)}
    # A status may be remembered a while longer than its session
    deleted = next((session for session in family if session not in found), None)
    if deleted is not None:
        raise SessionNotFound.of(deleted)
    places = {session: place for session, place in found.items() if place is not None}
    unasked = next((session for session in picked if session not in places), None)
    if unasked is not None:
        raise _unasked(f"ses_{unasked.hex}")
    family_claims = await _claims_of(context, family, documents, project.level, places)
    shown = [family.index(session) for session in picked] or step_up(
        [claim.rank for claim in family_claims]
    )
    pushed = sum(document["origin"] is not None for document in documents)
    held = _promises(project.level, len(shown))
    if pushed:
        held = held._replace(one=f"{held.one} {_elsewhere(pushed, len(family))}")
    for target, supposed in _UNSEEN.items():
        if any(document["target"] == target for document in documents):
            held = held._replace(one=f"{held.one} {supposed}")
    return FamilyPage(project.level, project.asked, shown, documents, family_claims, held)


def _check(family: Sequence[UUID], picked: Sequence[UUID]) -> None:
    rule = f"from 1 to {MOST_SESSIONS} sessions"
    if not 1 <= len(family) <= MOST_SESSIONS:
        message = "This many sessions are not read at once."
        raise InvalidValue(message, field="session", rule=rule, value=len(family))
    for name, given in (("session", family), ("shown", picked)):
        twice = next(
            (session for index, session in enumerate(given) if session in given[:index]), None
        )
        if twice is not None:
            message = "A session is named twice."
            rule = "every session once"
            raise InvalidValue(message, field=name, rule=rule, value=f"ses_{twice.hex}")
    stranger = next((session for session in picked if session not in family), None)
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


def _unasked(name: str) -> InvalidValue:
    return InvalidValue(
        "This session was asked nothing, so that it has nothing to show beside others.",
        field="shown",
        rule="sessions opened with a question or a verdict",
        value=name,
    )


async def _claims_of(
    context: Context,
    family: Sequence[UUID],
    documents: Sequence[dict[str, Any]],
    level: float,
    places: Mapping[UUID, int],
) -> list[FamilyClaim]:
    """Return the claim of every session, from memory where the session has not changed."""
    claims = {
        session: FamilyClaim(None, _alone(document), [], None, evidence=False)
        for session, document in zip(family, documents, strict=True)
        if session not in places
    }
    versions = dict(zip(family, map(_version, documents), strict=True))

    def missing() -> list[UUID]:
        for session, version in versions.items():
            known = context.claims.known(session, version)
            if known is not None:
                claims[session] = known
        return [session for session in family if session not in claims]

    if missing():
        async with context.process():
            while left := missing():
                batch = await _batch(context, left)
                fresh = await _bet_again(batch, level, [places[session] for session in batch])
                for (session, (version, _, _)), made in zip(batch.items(), fresh, strict=True):
                    context.claims.keep(session, version, made)
                    claims[session] = made
    return [claims[session] for session in family]


def _alone(document: dict[str, Any]) -> dict[str, Any]:
    """Return the interval of a session by itself, from its status document."""
    names = ("sequence", "estimate", "lower", "upper")
    shown = {name: document[name] for name in names}
    return shown | {"level": document["alpha"], "round": document["rounds"]["in_interval"]}


def _version(document: dict[str, Any]) -> str:
    return f"{document['sequence']}.{document['revision']}"


async def _batch(
    context: Context, sessions: Sequence[UUID]
) -> dict[UUID, tuple[str, dict[str, Any], Part]]:
    """The first of the sessions, as many as one child takes, as their ledgers are now."""
    batch: dict[UUID, tuple[str, dict[str, Any], Part]] = {}
    rounds = size = 0
    for session_id in sessions:
        async with unlocked(context, session_id) as (session, row):
            plan, state = session.plan, session.state
            if not isinstance(plan, Plan) or not isinstance(state.question, Mean):
                raise _no_interval(f"ses_{session_id.hex}")
            rounds += state.drawn
            if batch and rounds > MOST_ROUNDS:
                break
            # Nobody else has the state meanwhile
            part = await in_thread(_part, plan, session.pool, state.rounds)
            size += sum(array.nbytes for array in part.scores.arrays.values())
            size += sum(array.nbytes for array in part.rounds.columns.values())
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
            batch[session_id] = _version(dict(row)), alone, part
    return batch


def _part(plan: Plan, pool: Pool, rounds: Rounds) -> Part:
    return Part(plan, scores(pool, plan.strategy), rounds[:])


async def _bet_again(
    batch: dict[UUID, tuple[str, dict[str, Any], Part]], level: float, places: Sequence[int]
) -> list[FamilyClaim]:
    parts = [part for _, _, part in batch.values()]
    levels = [_levels(level, place) for place in places]
    frames, failure = await gather(MODULE, lambda: job_of(parts, levels), BOUNDS)
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
            place,
            alone,
            frame.values["by_shown"],
            frame.values["rank"],
            EvidenceSequence.serves(part.plan),
        )
        for frame, place, (_, alone, part) in zip(frames, places, batch.values(), strict=True)
    ]


def _levels(level: float, place: int) -> list[float]:
    """Levels where 1, 2 and so on are shown, until they no longer grow or no more can be shown."""
    most = min(MOST_SESSIONS, place * (place + 1))
    return [opened_level(level, shown, place) for shown in range(1, most + 1)]


def _promises(level: float, shown: int) -> Promises:
    """Return the promises, in words."""
    if not shown:
        picked = "None of the sessions has its answers at a level that showing it would need."
    else:
        picked = (
            f"{shown} shown, the t-th that this project opened with a question at level"
            f" {level:g} × {shown}/(t (t + 1)), at most {level:g}. Whenever you look, whatever they"
            " were picked by and however many sessions are opened, at most"
            f" {share(level)} of those shown are false, in the mean. That holds for the sessions of"
            " this project: to pick among projects breaks it."
        )
    return Promises(
        "By itself every session holds what it says, at every moment, with probability 1 - alpha"
        " of its own.",
        "All sessions that this project opens with a question hold at once, at this moment, with"
        f" probability at least {share(1.0 - level)}, the t-th with the interval at level"
        f" {level:g}/(t (t + 1)).",
        picked,
    )


def _elsewhere(pushed: int, count: int) -> str:
    """Return what all promises also rest on where sessions were pushed."""
    return (
        f"{pushed} of the {count} ran elsewhere: all that is said here rests on the word of whoever"
        " pushed them, too, that their plans were fixed before their losses were seen, that these"
        " are what their judges gave, and that neither which were pushed nor in which order depends"
        " on what they gave."
    )


_UNSEEN = {
    "population": (
        "Where sessions are for a population, all that is said here supposes that no loss of their"
        " pools was known when they were opened."
    ),
    "runs": (
        "Where sessions are over all runs, all that is said here supposes that their runs were made"
        " after they were opened, each for one session."
    ),
}
"""Assumptions of all promises about sessions with a target."""
_PROJECT = text("SELECT level, asked FROM projects WHERE project_id = :project_id")
_PLACES = text(
    """
    SELECT session_id, place FROM sessions
    WHERE project_id = :project_id AND session_id = ANY(:sessions)
    """
)
