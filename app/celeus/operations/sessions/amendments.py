"""Amend a session: correct a judgement and refold its rounds."""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.ledger import Amendment
from celeus.core.session.correction import Refold, mean_session
from celeus.core.session.mean import Mean
from celeus.core.session.outcome import Judgement, check_blind, detail_of
from celeus.core.session.rounds import PENDING
from celeus.core.session.session import Session
from celeus.errors import (
    Busy,
    InvalidValue,
    NotLastLabel,
    RoundNotJudged,
    SessionStopped,
    TooManyCorrections,
)
from celeus.operations.access.keys import key_name
from celeus.operations.runtime.concurrency import in_thread
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.state_cache import CachedSession
from celeus.operations.sessions.append import finish
from celeus.operations.sessions.blinding import RoundNumbers
from celeus.operations.sessions.contradictions import keeping_contradictions
from celeus.operations.sessions.journal import (
    ROUNDS_FOLDED_INLINE,
    ROUNDS_FOLDED_LOCKED,
    Journal,
    Receipt,
    locked,
    must_take_labels,
    rebuild,
)
from celeus.operations.sessions.labelling.comments import keep_comments
from celeus.operations.sessions.ledger import opening_row, with_kinds
from celeus.operations.sessions.panel import (
    MOST_CORRECTIONS,
    RatingCorrection,
    correct_rating,
    rater_of,
)
from celeus.operations.sessions.rounds import Answer, LeasedDraws, offer_of, publish
from celeus.timings import timed

ATTEMPTS = 3
ROUNDS_AT_ONCE = 2_000
"""Rounds folded beside a session before it is looked at again."""
STOPPED_BY_LOSSES = frozenset({"target_reached", "decided"})
"""Stop reasons that depend on losses: seeing one informs a blind judge about them."""


@dataclass(frozen=True, slots=True)
class Correction:
    """A judgement that replaces an earlier one, with author and reason.

    ``author`` None: the holder of the key, by the key's name. ``worker``: the rater of a panel
    whose judgement it is, where the key's name does not say.
    """

    judgement: Judgement
    author: str | None
    reason: str
    worker: str | None = None

    @property
    def detail(self) -> dict[str, Any]:
        """The ledger's detail, besides the loss."""
        return detail_of(self.judgement) | {"author": self.author, "reason": self.reason}

    def repeats(self, amendment: RowMapping) -> bool:
        """Return whether an amendment of the same round says the same; its key does not matter."""
        detail = {name: value for name, value in amendment["detail"].items() if name != "key"}
        return detail == self.detail and self.judgement.loss in {None, amendment["loss"]}


async def amend(
    context: Context, session_id: UUID, correction: Correction, *, own_only: bool = False
) -> Answer:
    """Replace the judgement of a round by appending a correction, and fold again from there.

    The same correction again gets the receipt of the first. With ``own_only`` the round must be
    the last one that this key has judged, whatever its workers are called, and corrected by no
    other key since; the author is the key's name, and a session that its losses have stopped is
    refused.
    """
    correction = await _with_author(context, correction, own_only=own_only)
    if context.blind:
        correction = await _with_round(context, session_id, correction)
    last = await _last_round(context, session_id) if own_only else None
    async with (
        keeping_contradictions(context, session_id),
        context.states.turn(session_id),
    ):
        for attempt in range(ATTEMPTS):
            # Nothing long is begun for what the lock will show to be refused.
            refuse = own_only and correction.judgement.round != last
            ready = None if refuse else await _refold_ahead(context, session_id, correction)
            async with locked(context, session_id) as (journal, db):
                rating = await _rating_receipt(db, journal, correction, own_only=own_only)
                receipt = rating or await _earlier_receipt(
                    db, journal, correction, own_only=own_only
                )
                if receipt is None:
                    rounds = _rounds(journal.session, correction.judgement, ready)
                    if rounds > ROUNDS_FOLDED_LOCKED and attempt < ATTEMPTS - 1:
                        # Corrected by another process meanwhile: fold again, with no lock held.
                        continue
                    receipt = await _append(journal, correction, ready, rounds)
                document, items = await finish(db, journal)
                none = LeasedDraws.of(journal, [])
                offer = offer_of(journal, none, document, items, want_draws=False)
                await _keep_comment(db, journal, correction, rating=rating is not None)
            await publish(context, journal, document)
            return Answer([receipt], document, offer)
        raise Busy("the session is being corrected again and again; try again")


async def _keep_comment(
    db: AsyncConnection, journal: Journal, correction: Correction, *, rating: bool
) -> None:
    """Keep the comment of a correction, of a ``rating`` as its rater's."""
    if correction.judgement.comment is None:
        return
    ratings, rater, worker = journal.ratings, None, correction.worker
    if rating and ratings is not None:
        rater = await rater_of(db, journal, ratings, worker)
    author = worker or correction.author or ""
    await keep_comments(db, journal, [correction.judgement], author, rater)


async def _rating_receipt(
    db: AsyncConnection, journal: Journal, correction: Correction, *, own_only: bool
) -> Receipt | None:
    """The receipt of a correction of what one rater of a panel has said; None of any other."""
    must_take_labels(journal)
    if journal.state.question.ratings is not None:
        _must_be_blind(journal.session, correction.judgement, blind=journal.blind)
        if own_only:
            _must_not_be_stopped(journal)
    words, worker = correction.detail, correction.worker
    return await correct_rating(
        db, journal, RatingCorrection(correction.judgement, words, worker, own_only)
    )


async def _earlier_receipt(
    db: AsyncConnection, journal: Journal, correction: Correction, *, own_only: bool
) -> Receipt | None:
    """The receipt of the same correction, if it was made before; refuses an invalid one.

    With ``own_only`` what is another's to correct is refused before anything else of it is looked
    at.
    """
    judgement = correction.judgement
    must_take_labels(journal)
    state = _correctable(journal.session)
    _must_be_blind(journal.session, judgement, blind=journal.blind)
    latest = await _latest_amendment(db, journal.session_id, judgement.round)
    others = latest is not None and latest["detail"].get("key") != journal.key_id
    repeated = latest is not None and correction.repeats(latest) and not (own_only and others)
    if own_only and not repeated:
        await _must_be_own(db, journal, judgement.round, others=others)
    state.corrected(journal.session.pool, judgement)
    _must_be_judged(journal, judgement.round)
    if latest is None or not repeated:
        return None
    return Receipt(journal.shown(judgement.round), latest["sequence"], replayed=True)


async def _append(
    journal: Journal, correction: Correction, ready: Refold | None, rounds: int
) -> Receipt:
    judgement = correction.judgement
    state = _correctable(journal.session)
    event = _event(journal.session, judgement)
    played = rounds + state.question.rounds_to_replay if rounds else 0
    # Without a fold that fits, what comes before the correction is copied.
    copied = state.folded if rounds and (ready is None or not ready.fits(state)) else 0
    entry = await journal.step(
        max(played, copied), lambda: journal.append(event, correction.detail, ready)
    )
    return Receipt(journal.shown(judgement.round), entry.sequence, replayed=False)


def _rounds(session: CachedSession, judgement: Judgement, ready: Refold | None) -> int:
    """Rounds still to be folded by a correction with ``ready`` at hand."""
    state, round_ = _correctable(session), judgement.round
    if not state.refolds(_event(session, judgement)):
        return 0
    if ready is not None and ready.fits(state):
        return state.folded - ready.folded
    return state.folded - session.checkpoints.rounds_before(state.rounds, round_)


async def _with_author(context: Context, correction: Correction, *, own_only: bool) -> Correction:
    """Set the correction's author; a judge signs with the name of the key."""
    if correction.author is not None and not own_only:
        return correction
    async with context.transaction() as db:
        name = await key_name(db, context.key_id)
    if name is None or correction.author not in {None, name}:
        raise InvalidValue(
            "a key that only judges signs with its own name",
            field="author",
            rule="left out, or the name of the key",
            value=correction.author,
        )
    return replace(correction, author=name)


async def _with_round(context: Context, session_id: UUID, correction: Correction) -> Correction:
    """Set the round that a blind key knows by another number."""
    async with context.transaction() as db:
        opening = await opening_row(db, context.project_id, session_id)
    round_ = RoundNumbers(bytes(opening["seed"])).round_of(correction.judgement.round)
    return replace(correction, judgement=replace(correction.judgement, round=round_))


async def _last_round(context: Context, session_id: UUID) -> int | None:
    """The round that this key has judged last."""
    params = {"session_id": session_id, "key_id": context.key_id}
    async with context.transaction() as db:
        return (await db.execute(_LAST, params)).scalar_one_or_none()


async def _must_be_own(db: AsyncConnection, journal: Journal, round_: int, *, others: bool) -> None:
    """Refuse to correct another round than the key's last one, or when losses have spoken.

    A blind judge learns nothing that depends on the losses but such a stop. A correction made
    before it cannot depend on where the session stands; one made after it could, also while the
    session is paused. What somebody else has corrected is their word, and no longer the judge's.
    """
    params: dict[str, Any] = {"session_id": journal.session_id, "key_id": journal.key_id}
    last = (await db.execute(_LAST, params)).scalar_one_or_none()
    if others or round_ != last:
        raise journal.refusal(
            NotLastLabel,
            round_,
            "is not the last that this key judged; correcting another one needs a key with scope"
            " manage",
            "the last round judged with this key",
        )
    params = {"session_id": journal.session_id, "round": round_}
    if (await db.execute(_CORRECTIONS, params)).scalar_one() >= MOST_CORRECTIONS:
        raise journal.refusal(
            TooManyCorrections,
            round_,
            f"was corrected {MOST_CORRECTIONS} times; correcting it again needs a key with scope"
            " manage",
            f"at most {MOST_CORRECTIONS} corrections of a label",
        )
    _must_not_be_stopped(journal)


def _must_not_be_stopped(journal: Journal) -> None:
    """Refuse a judge's correction once the losses have stopped the session."""
    if journal.state.stop_reason in STOPPED_BY_LOSSES:
        raise SessionStopped(
            "the session has stopped; correcting a label now needs a key with scope manage",
            field="session_id",
            rule="a session that its losses have not stopped",
            value=f"ses_{journal.session_id.hex}",
        )


async def _refold_ahead(
    context: Context, session_id: UUID, correction: Correction
) -> Refold | None:
    """Refold with the correction while holding no lock and no connection.

    The session is held only while its next rounds are copied. Fifty thousand take half a minute:
    longer than others wait for a lock, and nearly as long
    as the database lets a transaction stand still. None where the fold is short, or not needed, or
    another correction came in between.
    """
    judgement = correction.judgement
    params = {"session_id": session_id, "project_id": context.project_id}
    async with context.transaction() as db:
        if (await db.execute(_OPEN, params)).scalar_one_or_none() is None:
            return None
        latest = await _latest_amendment(db, session_id, judgement.round)
    if latest is not None and correction.repeats(latest):
        return None
    ready = None
    while True:
        async with context.states.hold(session_id) as slot:
            if slot.session is None:
                slot.session = await rebuild(context, session_id)
            state = mean_session(slot.session.state)
            if state is None:
                return None
            _must_be_blind(slot.session, judgement, blind=context.blind)
            # A process that is behind the ledger does not know the round
            if judgement.round > state.drawn or not state.refolds(
                event := _event(slot.session, judgement)
            ):
                return None
            if ready is None:
                with timed("fold"):
                    ready = await in_thread(Refold, state, event, slot.session.checkpoints)
            elif not ready.fits(state):
                return None
            part = ready.coming(state, 2 * ROUNDS_AT_ONCE)
        if len(part.order) <= 2 * ROUNDS_FOLDED_INLINE:
            return ready if ready.fold.knowledge.entries else None
        # One part at a time of a key, in whatever sessions
        async with context.gates.corrections_of_keys.of(context.key_id or ""):
            with timed("fold"):
                await in_thread(ready.follow, part)


def _event(session: CachedSession, judgement: Judgement) -> Amendment:
    loss = session.state.corrected(session.pool, judgement)
    if isinstance(loss, tuple):
        raise TypeError(loss)
    return Amendment(judgement.round, loss)


def _correctable(session: CachedSession) -> Session[Mean]:
    """The session, where a judgement can be corrected; refused where it cannot."""
    mean = mean_session(session.state)
    if mean is not None:
        return mean
    raise InvalidValue(
        f"A session that {session.state.question.purpose} takes no corrections: from which"
        " strata later items were drawn followed from what the judges had said. Open another"
        " session on the pool.",
        field="session_id",
        rule="a session that measures a risk or a difference",
        value=session.plan.kind,
    )


def _must_be_blind(session: CachedSession, judgement: Judgement, *, blind: bool) -> None:
    """Refuse what a blind key says of two systems by name: it is not shown their names."""
    if blind and session.pool.named is not None:
        check_blind([judgement])


def _must_be_judged(journal: Journal, round_: int) -> None:
    if journal.state.answer(round_) is PENDING:
        raise RoundNotJudged(
            f"round {round_} has no judgement to correct",
            field="round",
            rule="a judged round",
            value=round_,
        )


async def _latest_amendment(
    db: AsyncConnection, session_id: UUID, round_: int
) -> RowMapping | None:
    params = {"session_id": session_id, "round": round_}
    return (await db.execute(_LATEST, params)).mappings().one_or_none()


_OPEN = text(
    """
    SELECT true FROM sessions
    WHERE session_id = :session_id AND project_id = :project_id AND lifecycle <> 'closed'
    """
)
_LAST = text("SELECT last_round FROM labellers WHERE session_id = :session_id AND key_id = :key_id")
_CORRECTIONS = with_kinds(
    """
    SELECT count(*) FROM events
    WHERE session_id = :session_id AND kind = :amendment AND round = :round
    """
)
_LATEST = with_kinds(
    """
    SELECT sequence, loss, detail FROM events
    WHERE session_id = :session_id AND kind = :amendment AND round = :round
    ORDER BY sequence DESC LIMIT 1
    """
)
