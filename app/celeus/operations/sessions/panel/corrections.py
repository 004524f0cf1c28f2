"""Correct what a rater of a panel has said, before their round is decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.ledger import Rating
from celeus.core.session.outcome import Judgement
from celeus.errors import (
    InvalidValue,
    NotLastLabel,
    RoundNotJudged,
    TooManyCorrections,
)
from celeus.operations.sessions.journal import Journal, Receipt
from celeus.operations.sessions.panel.ratings import (
    append,
    checked_loss,
    rater_of,
    ratings_in,
    said_before,
)

MOST_CORRECTIONS = 20
"""Most corrections of a rating: each is an event of the ledger."""
BESIDE = frozenset({"key", "worker", "rater", "turn"})
"""Members of a rating's detail that are not its words."""


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
    ratings, round_ = ratings_in(journal), judgement.round
    if ratings is None or not (correction.own_only or worker or ratings.is_open(round_)):
        return None
    rater = await rater_of(db, journal, ratings, worker)
    turn = judgement.turn or 1
    rows = [
        row
        for row in await said_before(db, journal, rater, [round_])
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
    said = {name: value for name, value in row["detail"].items() if name not in BESIDE}
    return said == words and judgement.loss in {None, row["loss"]}


def _must_be_corrigible(
    journal: Journal, round_: int, rows: Sequence[RowMapping], *, own_only: bool
) -> None:
    """Refuse to correct what is decided, what was not said, or what is another's."""
    ratings = ratings_in(journal)
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
