"""The test whether a candidate has a lower mean loss on a pool than the incumbent.

Notation: d the mean loss of the candidate less that of the incumbent, on the pool.

    better        the interval of d at the test's level lies below 0. While d >= 0, a tie included,
                  this ever happens with probability at most that level.
    not better    another interval, from the same draws, lies above -margin: a candidate that is
                  better by more than the margin is lost to it with probability at most `GIVEN_UP`;
                  or every item is judged

The second ends tests early, and nothing rests on it: a test may be left at any time. Levels of many
tests: celeus.core.multiplicity.selection.
"""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.ledger import Draw
from celeus.core.plans.plan import Claim, Plan, make_plan
from celeus.core.plans.plan_request import facts_of
from celeus.core.plans.policies import DEFAULT_POLICY, policy_named
from celeus.core.plans.stopping import Question
from celeus.core.pools.comparison import difference_scale
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import CHAIN_START, Pool
from celeus.core.pools.surrogates import scores
from celeus.core.pools.systems import SAME_ANSWER
from celeus.core.randomness import commitment
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session, begin_mean

GIVEN_UP = 0.1
"""Level of the interval that ends a test as `not better`."""

Outcome = Literal["better", "not better", "undecided"]


@dataclass(slots=True)
class ImprovementTest:
    """A test after some draws: the ``session`` that may find the candidate better, and its end."""

    session: Session[Mean]
    given_up: Mean

    @classmethod
    def begin(
        cls, scale: LossScale, same: NDArray[np.bool_], level: float, margin: float, seed: bytes
    ) -> Self:
        """Begin a test at ``level`` on items whose losses are on ``scale``.

        Where both outputs are the ``same`` (shape [N]) the difference is known to be 0; not all of
        them are. ``seed`` is drawn after the candidate was fixed.
        """
        differences = difference_scale(scale)
        columns: dict[str, NDArray[Any]] = {}
        if same.any():
            columns["loss_lower"] = np.where(same, 0.0, differences.lower)
            columns["loss_upper"] = np.where(same, 0.0, differences.upper)
            columns["known"] = same.astype(np.uint8)
        reasons = (SAME_ANSWER,) if columns else ()
        pool = Pool(same.size, differences, columns, (), CHAIN_START, reasons)
        policy, known = policy_named(DEFAULT_POLICY), scores(pool)

        def plan(alpha: float, threshold: float) -> Plan:
            asked = Question("at_least", threshold)
            claim = Claim("pool", alpha, questions=(asked,), stop_when_decided=False)
            return make_plan(claim, facts_of(pool), policy, commitment(seed))

        session = begin_mean(plan(level, 0.0), known, seed)
        return cls(session, Mean.of(plan(GIVEN_UP, -margin), known, seed))

    @property
    def outcome(self) -> Outcome:
        """Return what the draws so far have shown."""
        if self.session.question.decisions[0].answer == "no":
            return "better"
        over = self.given_up.decisions[0].answer == "yes" or not self.session.can_draw
        return "not better" if over else "undecided"

    def draw(self) -> Draw:
        """Draw the next item."""
        draw = self.session.propose()
        self.session.apply(draw)
        return draw

    def judge(self, draw: Draw, difference: float) -> None:
        """Take in the candidate's loss of a drawn item less that of the incumbent."""
        self.session.observe(draw.round, difference)
        self.given_up.follow(self.session.rounds, 1)
