"""Long folds call ``pause`` with every round, and only where somebody asked for it."""

from contextvars import copy_context

from celeus.core.ledger import Observation
from celeus.core.pause import PAUSE, pause
from celeus.core.plans.plan import Claim, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.randomness import commitment
from celeus.core.session.correction import Checkpoints, catch_up
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session, begin_mean
from celeus.simulation.sessions import seed_of
from tests.bench.truths import synthetic

ROUNDS = 30


def test_every_round_that_is_folded_pauses_once() -> None:
    truth, seed = synthetic(200), seed_of(0, 1)
    plan = make_plan(Claim("pool"), truth.facts, policy_named("sharp"), commitment(seed))
    state = begin_mean(plan, truth.scores, seed)
    events = []
    for _ in range(ROUNDS):
        draw = state.propose()
        judgement = Observation(draw.round, float(truth.loss[draw.item]))
        for event in (draw, judgement):
            state = state.apply(event)
            events.append(event)
    pauses: list[None] = []

    def again() -> Session[Mean]:
        PAUSE.set(lambda: pauses.append(None))
        return catch_up(begin_mean(plan, truth.scores, seed), events, Checkpoints())

    folded = copy_context().run(again)
    assert len(pauses) == folded.folded == ROUNDS
    assert folded.question.points[-1] == state.question.points[-1]
    pause()
    assert len(pauses) == ROUNDS


def test_every_draw_pauses_once() -> None:
    truth, seed = synthetic(200), seed_of(0, 1)
    plan = make_plan(Claim("pool"), truth.facts, policy_named("sharp"), commitment(seed))
    state, pauses = begin_mean(plan, truth.scores, seed), list[None]()

    def drawn() -> None:
        PAUSE.set(lambda: pauses.append(None))
        state.propose()

    copy_context().run(drawn)
    assert len(pauses) == 1
