"""The rounds of a session: draws and what became of them, kept as numbers in arrays."""

import math
from array import array
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from celeus.core.ledger import Draw
from celeus.core.plans.stopping import StoppingRule
from celeus.core.session.outcome import Loss, Losses


def counts_of(drawn: int, judged: int, folded: int) -> dict[str, int]:
    """Counts of rounds, under the names that status and certificate give them."""
    return {
        "drawn": drawn,
        "judged": judged,
        "in_interval": folded,
        "pending": drawn - judged,
        "waiting": judged - folded,
    }


class _Pending(Enum):
    PENDING = "pending"


PENDING: Final = _Pending.PENDING
JudgedLoss = float | _Pending | None
JudgedLosses = tuple[float | None, ...] | _Pending

# A loss is finite, so two other floats are free to stand for no loss.
_UNJUDGED = math.nan
_UNJUDGEABLE = math.inf

_COLUMNS = (
    "item",
    "q",
    "strata_q",
    "seen",
    "rule",
    "loss",
    "answer",
    "answered_at",
    "corrected",
    "order",
)

NOT_ENTERED = 2**31 - 1
"""The sequence of a correction that is yet to be entered: later than any."""


class Round(NamedTuple):
    """A draw, what became of it, and the rule in force when it was made.

    ``loss`` is PENDING until a judge answers and None when none could. ``answer`` is the first
    judgement, which no amendment touches, and ``answered_at`` its sequence: the response to a
    retry.
    """

    draw: Draw
    rule: StoppingRule
    loss: JudgedLoss | JudgedLosses
    answer: JudgedLoss | JudgedLosses
    answered_at: int


class Rounds(Sequence[Round]):
    """Consecutive rounds from ``first`` on; places count from 0.

    ``width`` is the number of losses in a judgement, None where it is one number: only rounds of
    one loss keep the probabilities of their strata, since only these are folded again. ``ready`` is
    how many rounds come before the first one that nobody has judged. ``corrected`` has the sequence
    of the last change of a round's loss, 0 without one. ``order`` has draws and first judgements in
    the order of the ledger: t for the draw of round t, -t for its judgement.
    """

    __slots__ = (
        "answer",
        "answered_at",
        "corrected",
        "first",
        "item",
        "loss",
        "order",
        "q",
        "ready",
        "rule",
        "rules",
        "seen",
        "strata",
        "strata_q",
        "width",
    )

    def __init__(self, first: int = 1, width: int | None = None) -> None:
        self.first = first
        self.width = width
        self.item = array("i")
        self.q = array("d")
        self.seen = array("i")
        self.order = array("i")
        self.ready = 0
        self.strata = 0
        self.strata_q = array("d")
        self.rules: list[StoppingRule] = []
        self.rule = array("i")
        self.loss = array("d")
        self.answer = array("d")
        self.answered_at = array("i")
        self.corrected = array("i")

    def __len__(self) -> int:
        return len(self.item)

    @overload
    def __getitem__(self, index: int) -> Round: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Round | Self:
        """A round, or a copy of consecutive ones."""
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            stop = max(start, stop)
            return self._part(start, stop, self._order_of(start, stop))
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            message = f"no round {index} of {len(self)}"
            raise IndexError(message)
        return Round(
            self.draw(place),
            self.rule_of(place),
            self._judgement(self.loss, place),
            self.first_judgement(place),
            self.answered_at[place],
        )

    def __eq__(self, other: object) -> bool:
        """The same rounds, to the last bit."""
        if not isinstance(other, Rounds):
            return NotImplemented
        same = (self.width, self.rules) == (other.width, other.rules)
        return same and all(
            getattr(self, name).tobytes() == getattr(other, name).tobytes() for name in _COLUMNS
        )

    __hash__ = None  # type: ignore[assignment]  # it grows

    @property
    def follow_losses(self) -> bool:
        """True if a draw followed a loss taken in; with several losses, those of round 1."""
        known = False
        for entry in self.order:
            if entry > 0:
                if known:
                    return True
            elif self.width is None:
                known |= math.isfinite(self.answer[-entry - self.first])
            else:
                known |= entry == -1
        return False

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """A copy of the columns as arrays; ``from_columns`` reads those of rounds of one loss."""
        return {name: np.array(getattr(self, name)) for name in _COLUMNS}

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, NDArray[Any]], strata: int, rules: Sequence[StoppingRule]
    ) -> Self:
        """Rounds from the first on, from the values they had elsewhere."""
        rounds = cls()
        rounds.strata, rounds.rules = strata, list(rules)
        for name in _COLUMNS:
            getattr(rounds, name).frombytes(columns[name].tobytes())
        rounds._advance()
        return rounds

    def append(self, draw: Draw, rule: StoppingRule) -> None:
        """Append the next draw, not judged yet."""
        if draw.strata_q is not None and self.width is None:
            self.strata = self.strata or draw.strata_q.size
            if draw.strata_q.size != self.strata:
                message = f"{draw.strata_q.size} strata in round {draw.round}, not {self.strata}"
                raise ValueError(message)
            self.strata_q.frombytes(draw.strata_q.tobytes())
        if not self.rules or rule != self.rules[-1]:
            self.rules.append(rule)
        self.item.append(draw.item)
        self.q.append(draw.q)
        self.seen.append(draw.seen)
        self.order.append(draw.round)
        self.rule.append(len(self.rules) - 1)
        self.loss.extend([_UNJUDGED] * self._stride)
        self.answer.extend([_UNJUDGED] * self._stride)
        self.answered_at.append(0)
        self.corrected.append(0)

    def judge(self, place: int, loss: Loss, sequence: int) -> None:
        """Record the first judgement of a round: ``width`` losses, or one."""
        if self.width is None:
            if isinstance(loss, tuple):
                raise TypeError(loss)
            self.loss[place] = self.answer[place] = _number(loss)
        else:
            self._judge_jointly(place, loss)
        self.answered_at[place] = sequence
        self.order.append(-self.first - place)
        self._advance()

    def _judge_jointly(self, place: int, loss: Loss) -> None:
        losses = loss if isinstance(loss, tuple) else (loss,)
        if len(losses) != self.width:
            message = f"{len(losses)} losses in round {self.first + place}, not {self.width}"
            raise ValueError(message)
        start, numbers = place * self.width, array("d", map(_number, losses))
        for column in (self.loss, self.answer):
            column[start : start + self.width] = numbers

    def correct(self, place: int, loss: float | None, sequence: int = NOT_ENTERED) -> None:
        """Replace the one loss of a round; its first judgement stays."""
        if self.differs(place, loss):
            self.loss[place] = _number(loss)
            self.corrected[place] = sequence

    def differs(self, place: int, loss: float | None) -> bool:
        """Return whether a loss differs from the one loss of a judged round."""
        self._require_one_loss()
        return self.loss[place] != _number(loss)

    def is_judged(self, place: int) -> bool:
        """Return whether this round is judged."""
        return not math.isnan(self.loss[place if self.width is None else place * self.width])

    @property
    def judged(self) -> NDArray[np.bool_]:
        """True for each round that is judged."""
        return np.asarray(~np.isnan(np.array(self.loss)[:: self._stride]))

    def first_judgement(self, place: int) -> JudgedLoss | JudgedLosses:
        """The first judgement of a round, PENDING until there is one."""
        return self._judgement(self.answer, place)

    def losses(self, place: int) -> Losses:
        """The losses of a judged round, of which there are ``width``."""
        start = place * self._stride
        return tuple(_known(number) for number in self.loss[start : start + self._stride])

    def draw(self, place: int) -> Draw:
        """The draw of a round."""
        strata_q = None
        if self.strata:
            start = place * self.strata
            strata_q = np.frombuffer(self.strata_q[start : start + self.strata])
        item, q, seen = self.item[place], self.q[place], self.seen[place]
        return Draw(self.first + place, item, q, seen, strata_q)

    def entry_of(self, round_: int) -> int:
        """The place in ``order`` of the judgement of a round."""
        return self.order.index(-round_)

    def rule_of(self, place: int) -> StoppingRule:
        """The rule in force when a round was drawn."""
        return self.rules[self.rule[place]]

    def excerpt(self, first: int, entries: slice) -> Self:
        """A copy of some draws and judgements in order, and of the rounds from ``first`` on."""
        order = self.order[entries]
        start, last = first - self.first, max(map(abs, order), default=0)
        return self._part(start, max(last + 1 - self.first, start), order)

    def unjudgeable(self, stop: int) -> int:
        """The number of the first ``stop`` rounds, of one loss each, that nobody could judge."""
        self._require_one_loss()
        return int(np.count_nonzero(np.asarray(memoryview(self.loss))[:stop] == _UNJUDGEABLE))

    def _order_of(self, start: int, stop: int) -> "array[int]":
        """Return the draws and judgements of some rounds in order. O(all draws and judgements)."""
        order = np.array(self.order)
        place = np.abs(order) - self.first
        return array("i", order[(place >= start) & (place < stop)].tobytes())

    def _part(self, start: int, stop: int, order: "array[int]") -> Self:
        copied = type(self)(self.first + start, self.width)
        copied.strata = self.strata
        copied.rules = list(self.rules)
        for name in _COLUMNS[:-1]:
            stride = self._strides.get(name, 1)
            setattr(copied, name, getattr(self, name)[start * stride : stop * stride])
        copied.order = order
        copied.ready = max(min(self.ready, stop) - start, 0)
        return copied

    def _require_one_loss(self) -> None:
        if self.width is not None:
            message = f"rounds of {self.width} losses have no single one"
            raise TypeError(message)

    @property
    def _stride(self) -> int:
        return self.width or 1

    @property
    def _strides(self) -> dict[str, int]:
        """Numbers a round in the columns that have not one."""
        return {"strata_q": self.strata, "loss": self._stride, "answer": self._stride}

    def _judgement(self, column: "array[float]", place: int) -> JudgedLoss | JudgedLosses:
        start = place * self._stride
        if math.isnan(column[start]):
            return PENDING
        losses = tuple(_known(number) for number in column[start : start + self._stride])
        return losses[0] if self.width is None else losses

    def _advance(self) -> None:
        while self.ready < len(self) and self.is_judged(self.ready):
            self.ready += 1


def _number(loss: float | None) -> float:
    return _UNJUDGEABLE if loss is None else loss


def _known(number: float) -> float | None:
    return None if number == _UNJUDGEABLE else number
