"""Sessions that seek the best of several systems, on a sealed pool and with their certificates."""

import json
from typing import Any

import numpy as np

from celeus.core.certificate.chain import Record, record_of
from celeus.core.certificate.pool_checks import Evidence
from celeus.core.ledger import Change, Event, JointObservation
from celeus.core.plans.best_plan import make_best
from celeus.core.plans.plan import Claim
from celeus.core.pools.pool import CHAIN_START, Pool, chain
from celeus.core.pools.rows.answers import assemble_lineup
from celeus.core.pools.systems import Lineup
from celeus.core.randomness import commitment
from celeus.core.session.session import begin_session
from tests.core.certifying import SEED, issued
from tests.lineups import Field, body_of

AT = "2026-11-21T09:30:00.000000+00:00"


def sealed(made: Field, normalisation: str | None = "exact") -> Pool:
    """The pool as the service seals it."""
    lineup = Lineup.of(made.names, ("zero_one", None, None), normalisation)
    lines = list(range(1, len(made.items) + 1))
    batch = assemble_lineup(lines, list(made.items), lineup, None).batch
    reasons = tuple(sorted({one for one in batch.reasons if one}))
    known = np.array([one != "" for one in batch.reasons], dtype="<i4")
    digest = chain(CHAIN_START, batch.records())
    columns = batch.columns | {"known": known}
    return Pool(len(batch.ids), lineup.loss, columns, (), digest, reasons, lineup)


class Best:
    """A session judged truly, with its records."""

    def __init__(
        self,
        judged: str = "label",
        normalisation: str | None = "exact",
        **claim: Any,  # noqa: ANN401
    ) -> None:
        _, self.made = body_of(judged, 80)
        self.pool = sealed(self.made, normalisation)
        self.plan = make_best(self.pool, Claim(alpha=0.2, **claim), commitment(SEED))
        self.state = begin_session(self.plan, self.pool, SEED)
        self.records: list[Record] = []

    @property
    def evidence(self) -> Evidence:
        """The columns as they are downloaded."""
        return Evidence.of(self.pool)

    @property
    def lines(self) -> list[bytes]:
        """The items as they are downloaded."""
        return [json.dumps(item).encode() for item in self.made.items]

    def enter(self, event: Event, detail: dict[str, Any] | None = None) -> None:
        """Apply an event, and write it down."""
        self.state.apply(event)
        self.records.append(record_of(self.state.sequence, event, detail, AT))

    def go(self, most: int = 1000) -> "Best":
        """Judge so many rounds, two at once, the later one first."""
        for _ in range(most):
            rounds: list[int] = []
            while self.state.can_draw and len(rounds) < 2:
                draw = self.state.propose()
                placed = self.state.question.arrangement(draw.round, draw.item)
                self.enter(draw, {"worker": "ada"} | placed)
                rounds.append(self.state.drawn)
            for round_ in reversed(rounds):
                item = self.state.item(round_)
                detail = {"label": self.made.truth[item]} if self.made.judged == "label" else {}
                losses = tuple(self.made.losses[item])
                self.enter(JointObservation(round_, losses), detail | {"worker": "ada"})
            if not rounds:
                break
        return self

    def certificate(self, *, final: bool = True) -> bytes:
        """Signed; a final one closes the session."""
        if final:
            budget = self.state.stopping.budget
            detail = {"precision": None, "budget": budget, "state": "closed"}
            self.enter(Change(None, budget), detail)
        return issued(self.state, self.pool, self.records, final=final)
