"""Several raters of one item: who they are, what their protocol comes to, how far they agree.

    two_then_third   two judge; where they differ a third decides: the median of the three
    consensus        two judge, and judge again while they differ, three times at most; then the
                     item is one that nobody can judge

Neither knows of the interval: a protocol sees the losses of its item alone, so that its outcome is
a loss like any other (docs/evidence/method.md#20-raters). Who cannot is passed over, and the
next in the item's order is asked: another loss, and no completion of section 8. An item of which
too few are left is one that nobody can judge.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from statistics import median
from typing import Any, NamedTuple

from celeus.core.ledger import Rating
from celeus.core.plans.panel_plan import Protocol
from celeus.core.randomness import uniforms
from celeus.errors import InvalidValue

STREAM = "rater"
TURNS = 3
"""Turns in which two raters judge an item before their difference counts as final."""

RatedLosses = Mapping[tuple[str, int], float | None]
"""Losses by rater and turn, in the order in which they came; None of a rater who cannot judge."""


class Outcome(NamedTuple):
    """The outcome of a protocol: ``decided`` with a loss, None where nobody can judge the item."""

    decided: bool
    loss: float | None = None


UNDECIDED = Outcome(False)


class Turn(NamedTuple):
    """The raters whose judgement is awaited, in the item's order, and the number of the turn."""

    number: int
    raters: tuple[str, ...]


NOBODYS_TURN = Turn(1, ())


def outcome(protocol: Protocol, losses: Sequence[float]) -> Outcome:
    """The outcome of the judgements of an item so far, in the order of its raters.

    Under ``consensus`` the two take turns. Refuses more judgements than the protocol asks for.
    """
    for count in range(2, len(losses)):
        if _after(protocol, losses[:count]).decided:
            raise InvalidValue(
                "The protocol was decided before the last judgement.",
                field="losses",
                rule=f"at most {count} judgements of this item",
                value=len(losses),
            )
    return _after(protocol, losses)


def _after(protocol: Protocol, losses: Sequence[float]) -> Outcome:
    if len(losses) < 2:
        return UNDECIDED
    if protocol == "two_then_third":
        if len(losses) == 2:
            return Outcome(True, losses[0]) if losses[0] == losses[1] else UNDECIDED
        return Outcome(True, median(losses))
    if len(losses) % 2:
        return UNDECIDED
    if losses[-2] == losses[-1]:
        return Outcome(True, losses[-1])
    return Outcome(True) if len(losses) == 2 * TURNS else UNDECIDED


def order_of(seed: bytes, item: int, raters: int) -> list[int]:
    """The raters of an item, by number, in the order in which a protocol asks them.

    It follows from the seed alone, so that it is fixed at the opening.
    """
    numbers = uniforms(seed, STREAM, raters, item * raters)
    return sorted(range(raters), key=lambda rater: float(numbers[rater]))


def outcome_of(protocol: Protocol, rated: RatedLosses, panel: int) -> Outcome:
    """Return the outcome of an item's judgements by a panel of ``panel`` raters.

    Nobody can judge the item where too few of the panel can, or one of the two who seek consensus
    gives up. Refuses more judgements than the protocol asks for.
    """
    if any(loss is None and turn > 1 for (_, turn), loss in rated.items()):
        return Outcome(True)
    judging = _judging(rated)
    turns = range(1, TURNS + 1) if protocol == "consensus" else (1,)
    asked = [(rater, turn) for turn in turns for rater in judging if (rater, turn) in rated]
    losses = [loss for rating in asked if (loss := rated[rating]) is not None]
    result = outcome(protocol, losses)
    needed = 3 if protocol == "two_then_third" and len(losses) > 1 else 2
    left = panel - sum(loss is None for loss in rated.values())
    return Outcome(True) if not result.decided and left < needed else result


def turn_of(protocol: Protocol, rated: RatedLosses, order: Sequence[str]) -> Turn:
    """Return the turn of an item that is not decided; its raters are asked in this ``order``.

    Refuses judgements of raters who are not asked.
    """
    seats = [rater for rater in order if rated.get((rater, 1), 0.0) is not None]
    asked, number = seats[:2], 1
    if protocol == "two_then_third" and all((rater, 1) in rated for rater in asked):
        asked = seats[:3]
    elif protocol == "consensus":
        while all((rater, number) in rated for rater in asked):
            number += 1
    for rater in _judging(rated):
        if rater not in asked:
            raise InvalidValue(
                "Another rater was asked in place of this one, and has judged.",
                field="round",
                rule="a judgement that nobody else was asked for",
            )
    return Turn(number, tuple(rater for rater in asked if (rater, number) not in rated))


def _judging(rated: RatedLosses) -> list[str]:
    return [rater for (rater, turn), loss in rated.items() if turn == 1 and loss is not None]


@dataclass(slots=True)
class _Item:
    """The judgements of a round that is not decided; ``order`` is that of its raters.

    ``since``: after how many draws and ratings the turn of each began whose turn it is.
    """

    order: tuple[str, ...] | None
    rated: dict[tuple[str, int], float | None] = field(default_factory=dict)
    turn: Turn = NOBODYS_TURN
    since: dict[str, int] = field(default_factory=dict)

    def asks(self, protocol: Protocol, moment: int) -> None:
        """Note whose turn it is now, and of whom it was not theirs before, since when."""
        before, self.turn = self.turn, turn_of(protocol, self.rated, self.order or ())
        waiting = self.since if self.turn.number == before.number else {}
        self.since = {rater: waiting.get(rater, moment) for rater in self.turn.raters}


class Ratings:
    """The judgements of a panel's raters on the rounds drawn, and whose turn it is.

    ``seed`` None: the order in which they are asked is not known, and not checked. Values are
    entered as the ledger has them, and refused (ValueError) where it cannot be so.
    """

    __slots__ = (
        *("_agreement", "_decided", "_moment", "_open", "_seed"),
        *("count", "panel", "protocol"),
    )

    def __init__(self, protocol: Protocol, panel: Sequence[str], seed: bytes | None) -> None:
        self.protocol = protocol
        self.panel = tuple(panel)
        self.count = 0
        self._seed = seed
        self._open: dict[int, _Item] = {}
        self._agreement = Agreement()
        self._decided: int | None = None
        self._moment = 0

    def draw(self, round_: int, item: int) -> None:
        """The item was drawn in this round."""
        self.must_be_settled()
        order = None
        if self._seed is not None:
            numbers = order_of(self._seed, item, len(self.panel))
            order = tuple(self.panel[number] for number in numbers)
        self._open[round_] = _Item(order)
        self._ask(self._open[round_])

    def rate(self, rating: Rating) -> None:
        """A rater has judged, or has corrected a judgement of a turn that is still open."""
        if rating.rater not in self.panel:
            message = f"{rating.rater} is not a rater of the panel"
            raise ValueError(message)
        self.must_be_settled()
        try:
            decided = self.with_rating(rating).decided
        except InvalidValue as refusal:
            raise ValueError(refusal.detail) from refusal
        item = self._item(rating.round)
        self.count += (rating.rater, rating.turn) not in item.rated
        item.rated[rating.rater, rating.turn] = rating.loss
        self._decided = rating.round if decided else None
        if not decided:
            self._ask(item)

    def with_rating(self, rating: Rating) -> Outcome:
        """Return the round's outcome with one more judgement; refuses one nobody is asked for."""
        item = self._item(rating.round)
        before = self.outcome(rating.round)
        rated = item.rated | {(rating.rater, rating.turn): rating.loss}
        result = outcome_of(self.protocol, rated, len(self.panel))
        if item.order is not None:
            turn = turn_of(self.protocol, item.rated, item.order)
            awaited = (rating.rater, rating.turn) in item.rated or rating.rater in turn.raters
            if before.decided or turn.number != rating.turn or not awaited:
                raise InvalidValue(
                    "It is not this rater's turn.",
                    field="round",
                    rule="a round that `next` gives to this rater",
                )
            # What is corrected may have had another rater asked
            turn_of(self.protocol, rated, item.order)
        return result

    def settle(self, round_: int, loss: float | None) -> None:
        """The round is judged: with what its raters have come to, and nothing else."""
        due = self.outcome(round_)
        if due != Outcome(True, loss):
            message = f"round {round_} is judged {loss}, and its raters come to {due}"
            raise ValueError(message)
        self._agreement.add(_pair(self._open.pop(round_).rated))
        self._decided = None

    def must_be_settled(self) -> None:
        """Raise where raters have come to an outcome and the round is not judged with it."""
        if self._decided is not None:
            message = f"the raters of round {self._decided} are decided, and it is not judged"
            raise ValueError(message)

    def is_open(self, round_: int) -> bool:
        """Return whether the round is drawn and not decided."""
        return round_ in self._open

    def outcome(self, round_: int) -> Outcome:
        """Return the outcome of an open round's judgements so far."""
        return outcome_of(self.protocol, self._item(round_).rated, len(self.panel))

    def turn(self, round_: int) -> Turn:
        """Return the turn of an open round."""
        return self._item(round_).turn

    def has_rated(self, round_: int, rater: str, turn: int) -> bool:
        """Return whether this rater has judged an open round in this turn."""
        return (rater, turn) in self._item(round_).rated

    def awaited_from(self, rater: str) -> list[tuple[int, int]]:
        """Open rounds in which it is this rater's turn, each with the number of the turn.

        The oldest rounds come first; under `two_then_third` those whose turn began first: a third
        vote does not come before what the rater holds already, and so looks like a new draw.
        """
        late = self.protocol == "two_then_third"
        turns = [
            (item.since[rater] if late else round_, round_, item.turn.number)
            for round_, item in self._open.items()
            if rater in item.since
        ]
        return [(round_, number) for _, round_, number in sorted(turns)]

    @property
    def summary(self) -> dict[str, Any]:
        """Protocol, raters, judgements, and how far the first two of every item agree.

        ``items`` are those that two have judged. Nothing of it is claimed.
        """
        agreement = replace(self._agreement)
        for item in self._open.values():
            agreement.add(_pair(item.rated))
        return {
            "protocol": self.protocol,
            "panel": len(self.panel),
            "judgements": self.count,
            "items": agreement.items,
            "agreement": agreement.alpha,
        }

    @property
    def awaited(self) -> dict[str, int]:
        """In how many open rounds it is whose turn, by rater."""
        counts = dict.fromkeys(self.panel, 0)
        for round_ in self._open:
            for rater in self.turn(round_).raters:
                counts[rater] += 1
        return counts

    def _ask(self, item: _Item) -> None:
        self._moment += 1
        if item.order is not None:
            item.asks(self.protocol, self._moment)

    def _item(self, round_: int) -> _Item:
        item = self._open.get(round_)
        if item is None:
            message = f"round {round_} is not open to its raters"
            raise ValueError(message)
        return item


def _pair(rated: RatedLosses) -> list[float]:
    """The first judgements of the two first who can judge; later ones know that they differed."""
    losses = [loss for rater in _judging(rated)[:2] if (loss := rated[rater, 1]) is not None]
    return losses if len(losses) == 2 else []


@dataclass(slots=True)
class Agreement:
    """Krippendorff's alpha of numbers, of items that come one by one.

    The sums are exact, so that it is the same to the last digit whatever order they come in, and an
    item costs the same however many came before.
    """

    items: int = 0
    _judgements: int = 0
    _sum: Fraction = Fraction()
    _squares: Fraction = Fraction()
    _within: Fraction = Fraction()

    def add(self, losses: Sequence[float]) -> None:
        """Enter the judgements of an item; fewer than two say nothing."""
        count = len(losses)
        if count < 2:
            return
        exact = [Fraction(loss) for loss in losses]
        total, squares = sum(exact, Fraction()), sum((loss * loss for loss in exact), Fraction())
        self.items += 1
        self._judgements += count
        self._sum += total
        self._squares += squares
        self._within += (squares * count - total * total) / (count - 1)

    @property
    def alpha(self) -> float | None:
        """1 where raters always agree, 0 where they do as well as chance, less where they do worse.

        None without a difference. The mean squared difference of two judgements is twice their
        variance.
        """
        spread = self._squares * self._judgements - self._sum * self._sum
        return 1.0 - float(self._within * (self._judgements - 1) / spread) if spread else None


def agreement(ratings: Sequence[Sequence[float]]) -> float | None:
    """Krippendorff's alpha of the losses of each item, for numbers; None without a difference.

    For losses of 0 and 1 it is that for names, too.
    """
    found = Agreement()
    for losses in ratings:
        found.add(losses)
    return found.alpha
