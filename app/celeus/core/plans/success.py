"""Success of a draw of several runs: all of them have to succeed, or any (pass^k and pass@k).

A draw is an item with up to k fresh runs, each of which succeeds with the probability p of the
item. Its loss is 1 unless all succeed, of mean 1 - p^k, or unless any does, of mean (1 - p)^k. The
first failure, or the first success, settles it, so that no further run is made; the loss and the
number of runs made tell how each came out.
"""

import re
from dataclasses import dataclass
from typing import Literal, Self

from celeus.core.plain import Plain
from celeus.errors import InvalidValue

MOST_RUNS_A_DRAW = 100
FORM = re.compile(r"(all|any) of ([1-9][0-9]{0,2})")
RULE = f'"all of k" or "any of k" runs, with k from 2 to {MOST_RUNS_A_DRAW}'


@dataclass(frozen=True, slots=True)
class Success(Plain):
    """The runs of a draw that have to succeed: ``needs`` all or any of up to ``runs``."""

    needs: Literal["all", "any"]
    runs: int

    @classmethod
    def of(cls, text: object) -> Self:
        """Return the success in words such as "all of 4"; refuses others."""
        found = FORM.fullmatch(text) if isinstance(text, str) else None
        if found is None or not 2 <= int(found[2]) <= MOST_RUNS_A_DRAW:
            message = f"success must be {RULE}, and is {text!r}"
            raise InvalidValue(message, field="success", rule=RULE, value=text)
        return cls(found[1], int(found[2]))  # type: ignore[arg-type]  # the form has no others

    def __str__(self) -> str:
        return f"{self.needs} of {self.runs}"

    @property
    def settling(self) -> float:
        """The loss of a run that settles the draw, of which it is the loss too."""
        return 1.0 if self.needs == "all" else 0.0

    def check(self, loss: float | None, runs: int | None) -> None:
        """Refuse a number of runs with which a draw has not this loss; None: nobody can tell it."""
        rule = f"how many runs were made of the draw, from 1 to {self.runs}"
        # In process a judge may count by whatever equals a number; the ledger holds whole ones
        if type(runs) is int and 1 <= runs <= self.runs:
            if self.allows(loss, runs):
                return
            rule = f"{self.runs} with a loss of {loss:g}: success is {self}"
        message = f"runs must be {rule}"
        raise InvalidValue(message, field="runs", rule=rule, value=runs)

    def allows(self, loss: float | None, runs: int | None) -> bool:
        """Return whether so many runs are enough for a loss; None: nobody can tell it."""
        return loss is None or loss == self.settling or runs == self.runs

    def check_correction(self, loss: float | None, made: int) -> None:
        """Refuse a correction by which runs are missing that the first judgement made needless."""
        if not self.allows(loss, made):
            rule = f"{self.settling:g}, or unjudgeable, of a draw that ended before run {self.runs}"
            message = f"{made} of {self.runs} runs of this draw were made: its loss must be {rule}"
            raise InvalidValue(message, field="loss", rule=rule, value=loss)


def check_open(success: Success | None, runs: object) -> None:
    """Refuse a number of runs with which no draw of several is still open."""
    most = 0 if success is None else success.runs - 1
    rule = "left out where a draw is one run" if success is None else f"from 1 to {most}"
    if type(runs) is not int or not 1 <= runs <= most:
        raise InvalidValue(f"runs must be {rule}", field="runs", rule=rule, value=runs)


def check_made(success: Success | None, loss: object, runs: int | None) -> None:
    """Refuse a number of runs that a draw with this loss cannot have; without success any."""
    if success is not None:
        success.check(loss if isinstance(loss, float) else None, runs)
    elif runs is not None:
        rule = "left out where a draw is one run"
        raise InvalidValue(f"runs must be {rule}", field="runs", rule=rule, value=runs)
