"""Sessions of many claims on a sealed pool, with their records and certificates."""

import json
from typing import Any

import numpy as np

from celeus.core.certificate.chain import Record, record_of
from celeus.core.certificate.pool_checks import Evidence, items_digest
from celeus.core.ledger import AddedQuestion, Addition, Change, Event, JointObservation
from celeus.core.plans.stopping import Question
from celeus.core.plans.table_plan import TableSettings, plan_table
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.pool import Pool
from celeus.core.pools.score import declared_score
from celeus.core.pools.table_pool import table_of
from celeus.core.randomness import commitment
from celeus.core.session.session import begin_session
from tests.core.certifying import AT, SEED, issued

ZERO_ONE = LossScale.of("zero_one")
METRICS = (
    Metric("correct", ZERO_ONE, declared_score("accuracy", "higher", ZERO_ONE, None)),
    Metric("grade", LossScale.of("bounded", 0.0, 5.0)),
)
SUBJECTS = ("law", "music", "physics", "rare")
LEVELS = ("easy", "hard")
WISHES = {
    "each": TableSettings(precision={"correct": 0.2}, group_precision={"grade": 2.5}),
    "together": TableSettings(account="together", precision={"correct": 0.3, "grade": 2.0}),
    "selected": TableSettings(account="selected", precision={"correct": 0.25}),
    "closed": TableSettings(
        account="closed",
        small_groups="whole",
        questions={"correct": (Question("at_most", 0.8),)},
        group_questions={"correct": (Question("at_most", 0.9), Question("at_most", 0.01))},
    ),
}
LATER = TableSettings(account="together", precision={"correct": 0.3}, reserve=0.02)
"""What leaves a part of alpha to claims added later."""


class Tabled:
    """A session judged truly, with its records; some losses are known, some nobody can tell."""

    def __init__(self, wish: TableSettings, items: int = 220) -> None:
        chance = np.random.default_rng(5)
        guess = chance.random(items)
        wrong = (chance.random(items) < guess).astype(float)
        grade = np.clip(5.0 * guess + chance.normal(0.0, 1.0, items), 0.0, 5.0).round(1)
        self.losses = np.stack((wrong, grade), axis=1)
        known = np.where(np.arange(items) % 9 == 0, grade, np.nan)
        subject = np.where(np.arange(items) < 12, 3, np.arange(items) % 3).astype("<i4")
        columns = {
            "surrogate_correct": guess,
            "surrogate_grade": np.clip(5.0 * guess, 0.0, 5.0),
            "known_grade": known,
            "group_subject": subject,
            "group_level": (guess > 0.5).astype("<i4"),
        }
        digest = bytes.fromhex(items_digest(self.lines_of(items)))
        named = {"subject": SUBJECTS, "level": LEVELS}
        self.pool = Pool(items, ZERO_ONE, columns, (), digest, metrics=METRICS, group_columns=named)
        table = table_of(self.pool, ("subject", "level"))
        self.plan = plan_table(wish, table, self.pool.digest, commitment(SEED))
        self.state = begin_session(self.plan, self.pool, SEED)
        self.records: list[Record] = []

    @staticmethod
    def lines_of(items: int) -> list[bytes]:
        """The items as they are downloaded."""
        return [json.dumps({"id": f"{n}", "payload": {"n": n}}).encode() for n in range(items)]

    @property
    def lines(self) -> list[bytes]:
        """The items as they are downloaded."""
        return self.lines_of(self.pool.items)

    @property
    def evidence(self) -> Evidence:
        """The columns as they are downloaded."""
        return Evidence.of(self.pool)

    def enter(self, event: Event, detail: dict[str, Any] | None = None) -> None:
        """Apply an event, and write it down."""
        self.state.apply(event)
        at = AT.format(0, self.state.sequence // 60, self.state.sequence % 60)
        self.records.append(record_of(self.state.sequence, event, detail, at))

    def judge(self, round_: int) -> None:
        """Judge a round; every seventh grade can nobody tell."""
        wrong, grade = self.losses[self.state.item(round_)].tolist()
        losses = (wrong, None if round_ % 7 == 0 else grade)
        self.enter(JointObservation(round_, losses), {"worker": "ada"})

    def go(self, most: int = 1000) -> "Tabled":
        """Judge so many pairs of rounds, the later one first."""
        for _ in range(most):
            if self.state.stop_reason is not None:
                break
            rounds: list[int] = []
            while self.state.can_draw and len(rounds) < 2:
                self.enter(self.state.propose(), {"worker": "ada"})
                rounds.append(self.state.drawn)
            for round_ in reversed(rounds):
                self.judge(round_)
        return self

    def budget(self, budget: int, state: str = "active") -> None:
        """Go on with another budget, or close."""
        detail = {"precision": None, "budget": budget, "state": state}
        self.enter(Change(None, budget), detail)

    def add(self, addition: Addition) -> "Tabled":
        """Add a claim from the reserve."""
        self.enter(addition, addition.to_dict() | {"key": "key_1"})
        return self

    def certificate(self, *, final: bool = True) -> bytes:
        """Signed; a final one closes the session."""
        if final:
            self.budget(self.state.stopping.budget, "closed")
        return issued(self.state, self.pool, self.records, final=final)


def added_later() -> Tabled:
    """A session to which two claims were added on the way, one of them asks for more labels."""
    tabled = Tabled(LATER).go(12)
    tabled.add(Addition("correct", 0.012, "level", "hard", 0.35, (AddedQuestion("at_most", 0.95),)))
    tabled.go(14)
    return tabled.add(Addition("grade", 0.008)).go(10)
