"""Ledgers of sessions with several losses a round: replayed to the same state; forged, noticed."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from celeus.core.betting.pool_target import LatticeSequence
from celeus.core.ledger import Addition, Draw, Event, JointObservation
from celeus.core.plain import Mismatch
from celeus.core.plans.best_plan import BestPlan
from celeus.core.plans.table_plan import TableClaim, TablePlan, TableSettings
from celeus.core.pools.table_pool import Table
from celeus.core.session.best.best_question import Best
from celeus.core.session.best.candidates import Floats
from celeus.core.session.session import AnySession, Session
from celeus.core.session.table.table_question import Table as TableQuestion
from celeus.core.session.table.table_question import check_plan
from celeus.errors import InvalidValue
from celeus.simulation.best import plan_for
from tests.core.session.best.test_best import SEED, field
from tests.core.tables import planned, table_of

Ledger = list[Event]
LOWER, UPPER = 2.0, 5.0
ITEMS, ROUNDS, AHEAD = 240, 60, 3


def race() -> tuple[BestPlan, Callable[[bytes], Session[Best]], Floats]:
    """A race of five systems on a scale of its own."""
    candidates, losses = field(5, 200)
    plan = replace(plan_for(candidates, 0.2), lower=LOWER, upper=UPPER)

    def begun(seed: bytes) -> Session[Best]:
        return Session.of(Best(plan, candidates, seed), seed)

    return plan, begun, LOWER + (UPPER - LOWER) * losses


def table() -> tuple[TablePlan, Table, Floats]:
    """Two metrics and three groups, some losses known, and a reserve for a later claim."""
    chance = np.random.default_rng(4)
    guess = chance.random((ITEMS, 2))
    losses = (chance.random((ITEMS, 2)) < guess).astype(float)
    group = np.repeat(["u", "v", "w"], ITEMS // 3).tolist()
    made = table_of(losses, group, guesses=guess, known=[(item, 1) for item in range(0, ITEMS, 7)])
    wish = TableSettings(
        account="together",
        precision={"a": 0.1, "b": 0.1},
        group_precision={"a": 0.3},
        reserve=0.01,
    )
    return planned(made, wish), made, losses


def begun_table(plan: TablePlan, made: Table, seed: bytes) -> Session[TableQuestion]:
    return Session.of(TableQuestion(plan, made, seed), seed)


@dataclass(frozen=True)
class Case:
    """A kind of session, and how a round of it is judged."""

    begun: Callable[[bytes], AnySession]
    losses: Floats
    later: Addition | None = None

    def judged(self, round_: int, item: int) -> JointObservation:
        told: list[float | None] = self.losses[item].tolist()
        if self.later is not None and round_ == 5:
            told[1] = None
        return JointObservation(round_, tuple(told))

    def events(self, session: AnySession) -> Iterator[Event]:
        """Draws ahead of losses, judged out of order, and half-way what is added."""
        while session.can_draw and session.drawn < ROUNDS:
            if self.later is not None and session.drawn == ROUNDS // 2:
                yield self.later
            first = session.drawn
            for _ in range(AHEAD):
                if session.can_draw:
                    yield session.propose()
            for round_ in range(session.drawn, first, -1):
                yield self.judged(round_, session.item(round_))


def cases() -> dict[str, Case]:
    plan, made, losses = table()
    later = Addition("b", 0.01, "x", "v", precision=0.2)
    return {
        "best": Case(race()[1], race()[2]),
        "table": Case(lambda seed: begun_table(plan, made, seed), losses, later),
    }


CASES = cases()


def run(case: Case) -> tuple[AnySession, Ledger]:
    session, ledger = case.begun(SEED), Ledger()
    for event in case.events(session):
        ledger.append(event)
        session.apply(event)
    return session, ledger


def replayed(case: Case, ledger: Ledger, seed: bytes | None) -> AnySession:
    """The session after a ledger whose draws are checked, with the seed or without."""
    session = case.begun(seed or b"")
    for event in ledger:
        if isinstance(event, Draw):
            session.check_draw(event, seeded=seed is not None)
        session.apply(event)
    return session


def numbers(session: AnySession) -> list[bytes]:
    """Every number that later rounds rest on."""
    question = session.question
    if isinstance(question, Best):
        return [question.race.stake.tobytes(), question.race.out_at.tobytes()]
    assert isinstance(question, TableQuestion)
    kept = [question._calibration.fits.mean.tobytes(), question.q.tobytes()]
    for claim in question.means:
        sequence = claim.fold.confidence_sequence
        assert isinstance(sequence, LatticeSequence)
        kept += [side._stake.tobytes() for side in sequence._lattice.sides]
        kept.append(np.array(claim.fold.points[-1].interval.upper).tobytes())
    return kept


def answers(session: AnySession) -> object:
    """What is answered, to the last digit."""
    question = session.question
    if isinstance(question, Best):
        return question.names_standing, question.race.out_at.tolist()
    assert isinstance(question, TableQuestion)
    return [claim.interval for claim in question.claims]


@pytest.mark.parametrize("kind", CASES)
def test_a_ledger_replays_to_the_same_state_with_the_seed_and_without(kind: str) -> None:
    case = CASES[kind]
    session, ledger = run(case)
    assert numbers(replayed(case, ledger, SEED)) == numbers(session)
    assert answers(replayed(case, ledger, None)) == answers(session)


@pytest.mark.parametrize("kind", CASES)
def test_another_seed_is_noticed(kind: str) -> None:
    with pytest.raises(Mismatch, match="item"):
        replayed(CASES[kind], run(CASES[kind])[1], b"another seed")


def other_draw(ledger: Ledger, **values: object) -> Ledger:
    """The ledger with the fifth draw changed."""
    place = [place for place, event in enumerate(ledger) if isinstance(event, Draw)][4]
    changed: Any = replace(ledger[place], **values)  # type: ignore[arg-type]
    return [*ledger[:place], changed, *ledger[place + 1 :]]


def fifth(ledger: Ledger) -> Draw:
    return [event for event in ledger if isinstance(event, Draw)][4]


def other_strata(ledger: Ledger) -> Ledger:
    q = fifth(ledger).strata_q
    assert q is not None
    return other_draw(ledger, strata_q=np.roll(q, 1))


def twice(ledger: Ledger) -> Ledger:
    first = next(event for event in ledger if isinstance(event, Draw))
    return other_draw(ledger, item=first.item)


def other_losses(ledger: Ledger) -> Ledger:
    """A judgement turned round: later draws follow from other losses."""
    place = next(at for at, event in enumerate(ledger) if isinstance(event, JointObservation))
    event = ledger[place]
    assert isinstance(event, JointObservation)
    turned = tuple(LOWER + UPPER - loss for loss in event.losses if loss is not None)
    return [*ledger[:place], JointObservation(event.round, turned), *ledger[place + 1 :]]


FORGED: dict[str, tuple[Callable[[Ledger], Ledger], str]] = {
    "q": (lambda ledger: other_draw(ledger, q=fifth(ledger).q * 1.01), r"\.q"),
    "strata": (other_strata, "strata_q"),
    "no strata": (lambda ledger: other_draw(ledger, strata_q=None), "strata_q"),
    "seen": (lambda ledger: other_draw(ledger, seen=0), "seen"),
    "an item drawn twice": (twice, "item"),
    "an item beyond the pool": (lambda ledger: other_draw(ledger, item=10**6), "item"),
}


@pytest.mark.parametrize("seed", [SEED, None])
@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_draw_is_noticed(name: str, kind: str, seed: bytes | None) -> None:
    forge, where = FORGED[name]
    with pytest.raises(Mismatch, match=where):
        replayed(CASES[kind], forge(run(CASES[kind])[1]), seed)


@pytest.mark.parametrize("seed", [SEED, None])
def test_forged_losses_are_noticed_by_the_draws_after_them(seed: bytes | None) -> None:
    case = CASES["best"]
    with pytest.raises(Mismatch, match=r"strata_q|item|\.q|nothing"):
        replayed(case, other_losses(run(case)[1]), seed)


@pytest.mark.parametrize("kind", CASES)
def test_a_round_is_judged_once_and_only_when_it_is_out(kind: str) -> None:
    case = CASES[kind]
    session = case.begun(SEED)
    draw = session.propose()
    with pytest.raises(ValueError, match="round 1 is not waiting"):
        session.apply(case.judged(1, draw.item))
    session = case.begun(SEED).apply(draw)
    session.apply(case.judged(1, draw.item))
    with pytest.raises(ValueError, match="round 1 is not waiting"):
        session.apply(case.judged(1, draw.item))


def test_answers_that_are_not_the_plans_are_noticed() -> None:
    candidates, _ = field(5, 200)
    plan = plan_for(candidates, 0.2)
    assert candidates.answer is not None
    answer = candidates.answer.copy()
    same = np.flatnonzero((answer == answer[:, :1]).all(axis=1))
    answer[same[0]] = np.arange(answer.shape[1])
    with pytest.raises(Mismatch, match="known"):
        Best(plan, replace(candidates, answer=answer), SEED)


def test_a_plan_of_another_table_is_noticed() -> None:
    plan, made, _ = table()
    with pytest.raises(Mismatch, match="items"):
        check_plan(replace(plan, items=plan.items + 1), made)
    claims = (replace(plan.claims[0], known=plan.claims[0].known + 1), *plan.claims[1:])
    with pytest.raises(Mismatch, match="claims"):
        check_plan(replace(plan, claims=claims), made)


def test_a_claim_is_added_between_draws_and_within_the_reserve() -> None:
    plan, made, losses = table()
    session = begun_table(plan, made, SEED)
    draw = session.propose()
    session.apply(draw)
    claim = TableClaim("a", 0, 0.01)
    with pytest.raises(InvalidValue, match="Draws are out"):
        session.question.add(claim)
    session.observe(draw.round, tuple(losses[draw.item].tolist()))
    session.question.add(claim)
    with pytest.raises(InvalidValue, match="that is there"):
        session.question.add(claim)
    with pytest.raises(InvalidValue, match="left of the reserve"):
        session.question.add(replace(claim, level=0.001))


def test_a_claim_whose_items_are_all_judged_is_not_called_exact_where_a_loss_is_not_told() -> None:
    plan, made, losses = table()
    session = begun_table(plan, made, SEED)
    for round_ in range(1, ITEMS + 1):
        draw = session.propose()
        session.apply(draw)
        told: list[float | None] = losses[draw.item].tolist()
        session.observe(round_, (None, told[1]) if round_ == 9 else tuple(told))
    assert session.question.means[0].interval.width > 0.0
    with pytest.raises(InvalidValue, match="nothing is left to bet on"):
        session.question.add(TableClaim("a", 0, 0.01))


def test_a_plan_is_read_back_and_its_digest_binds_it() -> None:
    plan = race()[0]
    assert BestPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert plan.to_dict()["best"] is True
    assert replace(plan, alpha=0.01).digest != plan.digest


@pytest.mark.parametrize(
    ("field_", "value"),
    [
        ("systems", ("one",)),
        ("systems", ("one", "one")),
        ("systems", tuple(map(str, range(51)))),
        ("alpha", 0.0),
        ("budget", 0),
        ("budget", 10**6),
        ("beta", 0.0),
    ],
)
def test_plans_that_make_no_sense_are_refused_by_name(field_: str, value: object) -> None:
    plan = race()[0]
    with pytest.raises(InvalidValue) as refused:
        replace(plan, **{field_: value})  # type: ignore[arg-type]
    assert refused.value.field == field_
