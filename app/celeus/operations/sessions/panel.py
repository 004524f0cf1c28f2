"""Sessions whose items several raters judge: take what each says, correct it, hand out turns.

A rating is an event of the ledger; once a round's protocol has come to an outcome, that is its
judgement, an event of its own in the same transaction. A turn stays with its rater however long
they take: were it to pass on, who judges an item would depend on who is slow with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.ledger import Observation, Rating, Unjudgeable
from celeus.core.session.correction import FoldAhead
from celeus.core.session.outcome import Judgement, JudgementWords, Loss, detail_of, words_of
from celeus.core.session.panel import Outcome, Ratings
from celeus.core.session.question import View
from celeus.errors import (
    InvalidValue,
    NotLastLabel,
    ObservationConflict,
    RoundNotHeld,
    RoundNotJudged,
    TooManyCorrections,
)
from celeus.operations.access.keys import key_name
from celeus.operations.sessions.blinding import predecessors
from celeus.operations.sessions.journal import Journal, Receipt, hands_out, must_take_labels
from celeus.operations.sessions.ledger import Lease, with_kinds
from celeus.settings import Settings

NOBODY = "The raters came to no judgement."
"""The reason of a round that is unjudgeable because its raters leave it undecided."""

MOST_CORRECTIONS = 20
"""Most corrections of a label by its judge: each is an event of the ledger, and all rounds after it
are folded anew."""
NOT_SAID = frozenset({"key", "worker", "rater", "turn"})
"""Members of a rating's detail that are not its words."""


@dataclass(frozen=True, slots=True)
class RaterJudgement:
    """A judgement of a rater: its ``rating`` where it is new, else the ``sequence`` it has already.

    Without both it stands before in the same request.
    """

    judgement: Judgement
    rating: Rating | None
    sequence: int | None = None


async def rater_of(
    db: AsyncConnection, journal: Journal, ratings: Ratings, worker: str | None
) -> str:
    """The rater who asks: the name of the key, where the panel has it, else that of the worker.

    A key with a rater's name speaks for that rater alone. Refuses who is not of the panel.
    """
    name = await key_name(db, journal.key_id)
    for candidate in (name, worker):
        if candidate is not None and candidate in ratings.panel:
            return str(candidate)
    raise InvalidValue(
        "Only the raters of its panel judge in this session: neither the name of the key nor that"
        " of the worker is one of theirs.",
        field="worker",
        rule="the name of a rater of the panel",
        value=worker,
    )


async def check_ratings(
    db: AsyncConnection,
    journal: Journal,
    ratings: Ratings,
    judgements: Sequence[Judgement],
    rater: str,
) -> tuple[list[RaterJudgement], dict[int, Loss]]:
    """Check a rater's judgements; return them, and the losses of the rounds that they decide.

    The same judgement again is known by its first sequence. Refuses another one than the first,
    and in one way all rounds in which it is not this rater's turn, to a blind key also those that
    another key has judged in the rater's name. Appends nothing.
    """
    earlier = await _earlier_ratings(db, journal, rater, judgements)
    rated: list[RaterJudgement] = []
    outcomes: dict[int, Loss] = {}
    for judgement in judgements:
        place = judgement.round, judgement.turn or 1
        first = earlier.get(place)
        if first is not None and first.repeatable:
            if words_of(detail_of(judgement), checked_loss(journal, judgement)) != first.words:
                raise _conflict(journal, judgement.round)
            rated.append(RaterJudgement(judgement, None, first.sequence))
            continue
        if first is not None or not _has_turn(ratings, rater, *place):
            raise _not_this_raters(journal, judgement.round)
        loss = checked_loss(journal, judgement)
        earlier[place] = _EarlierRating(words_of(detail_of(judgement), loss), None, repeatable=True)
        rating = Rating(judgement.round, rater, loss, place[1])
        rated.append(RaterJudgement(judgement, rating))
        result = ratings.with_rating(rating)
        if result.decided:
            outcomes[judgement.round] = result.loss
    if any(judged.rating is not None for judged in rated):
        must_take_labels(journal)
    return rated, outcomes


@dataclass(frozen=True, slots=True)
class _EarlierRating:
    """A rater's first rating of a round and turn; no ``sequence`` if this request brings it.

    ``repeatable``: by the caller's key; a blind key may repeat only what it or a predecessor said.
    """

    words: JudgementWords
    sequence: int | None
    repeatable: bool


async def _earlier_ratings(
    db: AsyncConnection, journal: Journal, rater: str, judgements: Sequence[Judgement]
) -> dict[tuple[int, int], _EarlierRating]:
    """Return the rater's first ratings of these rounds in the ledger, by round and turn."""
    keys = {journal.key_id} | (await predecessors(db, journal.key_id) if journal.blind else set())
    earlier: dict[tuple[int, int], _EarlierRating] = {}
    for row in await ratings_of(db, journal, rater, [judgement.round for judgement in judgements]):
        detail = row["detail"]
        repeatable = not journal.blind or detail.get("key") in keys
        rating = _EarlierRating(words_of(detail, row["loss"]), row["sequence"], repeatable)
        earlier.setdefault((row["round"], detail.get("turn", 1)), rating)
    return earlier


def _has_turn(ratings: Ratings, rater: str, round_: int, turn: int) -> bool:
    """Return True if the round is open and this turn of it is the rater's."""
    if not ratings.is_open(round_):
        return False
    awaited = ratings.turn(round_)
    return turn == awaited.number and rater in awaited.raters


def _not_this_raters(journal: Journal, round_: int) -> RoundNotHeld:
    return journal.refusal(
        RoundNotHeld,
        round_,
        "is not this rater's to judge: it is not their turn, or the round is decided",
        "a round that `next` gives to this rater",
    )


def take(
    journal: Journal, rated: Sequence[RaterJudgement], worker: str, ready: FoldAhead | None = None
) -> list[Receipt]:
    """Append what is new, and the outcomes it leads to; ``ready`` spares these their fold."""
    receipts = []
    added: dict[tuple[int, int], int] = {}
    for judged in rated:
        judgement, rating, sequence = judged.judgement, judged.rating, judged.sequence
        place = judgement.round, judgement.turn or 1
        if rating is not None:
            detail = detail_of(judgement) | {"worker": worker}
            sequence = added[place] = append(journal, rating, detail, ready)
        elif sequence is None:
            sequence = added[place]
        number = journal.shown(judgement.round)
        receipts.append(Receipt(number, sequence, replayed=rating is None))
    return receipts


def append(
    journal: Journal, rating: Rating, detail: dict[str, Any], ready: FoldAhead | None = None
) -> int:
    """Append a rating, and the judgement of its round where that decides it; its sequence."""
    ratings = journal.ratings
    if ratings is None:
        message = "a rating in a session without a panel"
        raise TypeError(message)
    turn = {"turn": rating.turn} if rating.turn > 1 else {}
    sequence = journal.append(rating, detail | {"rater": rating.rater} | turn).sequence
    result = ratings.outcome(rating.round)
    if result.decided:
        _settle(journal, rating.round, result, ready)
    return sequence


def _settle(journal: Journal, round_: int, result: Outcome, ready: FoldAhead | None) -> None:
    if result.loss is None:
        journal.append(Unjudgeable(round_), {"unjudgeable": NOBODY}, ready)
    else:
        journal.append(Observation(round_, result.loss), None, ready)


def hand_out(
    journal: Journal, rater: str, worker: str, count: int, settings: Settings
) -> list[Lease]:
    """Give the rater up to ``count`` rounds in which it is their turn.

    Draws new ones until there are so many, or as many are out as may be. Those where it is the turn
    of others wait for these, and stop nobody: turns have no end. With a ``count`` of 0 all that
    await the rater.
    """
    ratings, most = journal.ratings, settings.max_draws_per_worker
    if ratings is None or not hands_out(journal, count):
        return []
    turns = ratings.awaited_from(rater)[: min(count or most, most)]
    while (
        len(turns) < min(count, most)
        and journal.state.pending < settings.max_draws_out
        and journal.state.can_draw
    ):
        draw = journal.state.propose()
        placed = journal.state.question.arrangement(draw.round, draw.item)
        journal.append(draw, {"worker": worker} | placed)
        if rater in ratings.turn(draw.round).raters:
            turns.append((draw.round, 1))
    until = journal.now + timedelta(seconds=journal.record.lease_seconds)
    if ratings.protocol == "consensus":
        journal.turns = dict(turns)
    journal.item_indices = [journal.state.item(round_) for round_, _ in turns]
    return [Lease(round_, worker, until, journal.now, [journal.key]) for round_, _ in turns]


async def ratings_of(
    db: AsyncConnection, journal: Journal, rater: str, rounds: Sequence[int]
) -> Sequence[RowMapping]:
    """All ratings of this rater in these rounds, in order."""
    params = {"session_id": journal.session_id, "rounds": list(rounds), "rater": rater}
    return (await db.execute(_RATINGS, params)).mappings().all()


def checked_loss(journal: Journal, judgement: Judgement) -> float | None:
    """The loss that a rater states or implies, checked; None where they cannot judge."""
    loss = journal.state.outcome(journal.session.pool, judgement, View(blind=journal.blind))
    if isinstance(loss, tuple):
        raise TypeError(loss)
    return loss


def _conflict(journal: Journal, round_: int) -> ObservationConflict:
    return journal.refusal(
        ObservationConflict,
        round_,
        "already has another judgement of this rater; until it is decided it can be corrected with"
        " an amendment",
        "one judgement of each rater and turn",
    )


@dataclass(frozen=True, slots=True)
class RatingCorrection:
    """A judgement that takes the place of a rater's earlier one; ``words`` are its detail.

    ``worker`` names the rater where the key's name does not; ``own_only``: of this very key.
    """

    judgement: Judgement
    words: Mapping[str, Any]
    worker: str | None
    own_only: bool


async def correct_rating(
    db: AsyncConnection, journal: Journal, correction: RatingCorrection
) -> Receipt | None:
    """The receipt of a correction of a rating; None where it is the loss of a round that is meant.

    The same correction again gets the receipt of the first. Refuses one of a turn that is over, and
    one by which another rater had been asked who has judged meanwhile. With ``own_only`` the rating
    must have been given with this very key, and its round not be decided.
    """
    judgement, worker = correction.judgement, correction.worker
    ratings, round_ = journal.ratings, judgement.round
    if ratings is None or not (correction.own_only or worker or ratings.is_open(round_)):
        return None
    rater = await rater_of(db, journal, ratings, worker)
    turn = judgement.turn or 1
    rows = [
        row
        for row in await ratings_of(db, journal, rater, [round_])
        if row["detail"].get("turn", 1) == turn
    ]
    if rows and _repeats(rows[-1], correction.words, judgement):
        return Receipt(journal.shown(round_), rows[-1]["sequence"], replayed=True)
    _must_be_corrigible(journal, round_, rows, own_only=correction.own_only)
    rating = Rating(round_, rater, checked_loss(journal, judgement), turn)
    try:
        decided = ratings.with_rating(rating).decided
    except InvalidValue:
        if correction.own_only:
            # Whether it is decided, or others have judged in consequence, is not told
            raise _not_own(journal, round_) from None
        raise
    rounds = journal.state.rounds_to_fold({round_}) if decided else 0
    detail = dict(correction.words) | {"worker": worker or rater}
    sequence = await journal.step(rounds, lambda: append(journal, rating, detail))
    return Receipt(journal.shown(round_), sequence, replayed=False)


def _repeats(row: RowMapping, words: Mapping[str, Any], judgement: Judgement) -> bool:
    earlier_words = {name: value for name, value in row["detail"].items() if name not in NOT_SAID}
    return earlier_words == words and judgement.loss in {None, row["loss"]}


def _must_be_corrigible(
    journal: Journal, round_: int, rows: Sequence[RowMapping], *, own_only: bool
) -> None:
    """Refuse to correct what is decided, what was not said, or what is another's."""
    ratings = journal.ratings
    is_open = ratings is not None and ratings.is_open(round_)
    decided = round_ <= journal.state.drawn and not is_open
    mine = bool(rows) and rows[-1]["detail"].get("key") == journal.key_id
    if own_only and (decided or not mine):
        raise _not_own(journal, round_)
    if decided:
        raise InvalidValue(
            "The round is decided: what its raters have come to is corrected in nobody's name.",
            field="worker",
            rule="left out of a correction of a round that is decided",
        )
    if not rows:
        number = journal.shown(round_)
        raise RoundNotJudged(
            f"this rater has not judged round {number} in this turn",
            field="round",
            rule="a round that this rater has judged",
            value=number,
        )
    if len(rows) > MOST_CORRECTIONS:
        raise journal.refusal(
            TooManyCorrections,
            round_,
            f"was corrected {MOST_CORRECTIONS} times",
            f"at most {MOST_CORRECTIONS} corrections of a judgement",
        )


def _not_own(journal: Journal, round_: int) -> NotLastLabel:
    return journal.refusal(
        NotLastLabel,
        round_,
        "is not one that this key has judged and that is still open; correcting it needs a key with"
        " scope manage",
        "a round judged with this key and not decided",
    )


_RATINGS = with_kinds(
    """
    SELECT sequence, round, loss, detail FROM events
    WHERE session_id = :session_id AND kind = :rating AND round = ANY(:rounds)
      AND detail->>'rater' = :rater
    ORDER BY sequence
    """
)
