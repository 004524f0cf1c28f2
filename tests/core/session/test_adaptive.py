"""Draws depend on losses in exactly the sessions that say so; the others rest on the signature."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

from celeus.core.certificate.verify import verify
from celeus.core.ledger import Addition
from celeus.core.plans.best_plan import BestPlan, make_best
from celeus.core.plans.plan import Claim
from celeus.core.plans.table_plan import TablePlan, TableSettings, plan_table
from celeus.core.pools.pool import Pool
from celeus.core.pools.table_pool import table_of
from celeus.core.session.assumptions import assumptions_of
from celeus.core.session.question import AnyPlan
from celeus.core.session.session import AnySession, begin_session, judge_rounds
from tests.core.certifying import (
    World,
    bare_world,
    graded_world,
    known_world,
    opened,
    weighted_world,
    zero_one_world,
)
from tests.core.contending import sealed
from tests.core.tabling import LATER, METRICS, Tabled
from tests.lineups import body_of

SEEDS = [bytes([number]) * 32 for number in range(4)]
ROUNDS = 40


class Asked(NamedTuple):
    """A plan and its pool."""

    plan: AnyPlan
    pool: Pool


def mean(world: World, policy: str = "sharp", claim: Claim | None = None, **more: Any) -> Asked:  # noqa: ANN401
    return Asked(opened(world, policy, claim, **more).plan, world.pool)


def grouped(world: World) -> World:
    columns = {"group": (np.arange(world.pool.items) % 3).astype("<i4")}
    return World(replace(world.pool, columns=columns, groups=("a", "b", "c")), world.losses)


def without(world: World, *names: str) -> World:
    columns = {name: it for name, it in world.pool.columns.items() if name not in names}
    return World(replace(world.pool, columns=columns), world.losses)


def constant(world: World) -> World:
    columns = {"surrogate.0": np.full(world.pool.items, 0.3)}
    return World(replace(world.pool, columns=columns), world.losses)


def best(systems: int, *, guessed: bool = True, beta: float | None = None) -> Asked:
    _, made = body_of("losses", 120, able=(0.7, 0.65, 0.6)[:systems])
    if not guessed:
        answers = {name: {"answer": f"by {name}"} for name in made.names}
        made = replace(made, items=[item | {"answers": answers} for item in made.items])
    pool = sealed(made)
    return Asked(make_best(pool, Claim(alpha=0.2), "", beta), pool)


def table(columns: Mapping[str, int], wish: TableSettings, *, guessed: bool = True) -> Asked:
    """A table of two metrics with so many values in each group column."""
    items = 200
    chance = np.random.default_rng(3)
    pool: Pool = Tabled(LATER, items).pool
    held: dict[str, Any] = {
        f"group_{name}": (chance.integers(0, values, items)).astype("<i4")
        for name, values in columns.items()
    }
    if "small" in columns:
        held["group_small"] = (np.arange(items) >= 12).astype("<i4")
    if guessed:
        held |= {name: pool.columns[name] for name in ("surrogate_correct", "surrogate_grade")}
    names = {name: tuple("abcd"[:values]) for name, values in columns.items()}
    pool = replace(pool, columns=held, metrics=METRICS, group_columns=names)
    return Asked(plan_table(wish, table_of(pool, tuple(columns)), pool.digest, ""), pool)


ONE = TableSettings(precision={"correct": 0.1})
EVEN = replace(ONE, beta=1.0)
GROUPS = replace(EVEN, group_precision={"correct": 0.1})
WHOLE = replace(EVEN, small_groups="whole")

FIXED: Mapping[str, Asked] = MappingProxyType(
    {
        "uniform": mean(zero_one_world(200), "uniform"),
        "uniform with bounds": mean(known_world(bounded=True), "uniform"),
        "uniform with weights": mean(weighted_world(200), "uniform"),
        "uniform, population": mean(
            zero_one_world(200), "uniform", Claim("population", precision=0.4)
        ),
        "sharp, all draws even": mean(zero_one_world(200), beta=1.0),
        "sharp without surrogate or groups": mean(bare_world(200)),
        "sharp, the same surrogate everywhere": mean(constant(zero_one_world(200))),
        "sharp with weights alone": mean(without(weighted_world(200), "surrogate.0", "prediction")),
        "sharp with known losses alone": mean(without(known_world(200), "surrogate.0")),
        "celeus": mean(zero_one_world(200), "celeus"),
        "celeus, exact range": mean(zero_one_world(200), "celeus", range="exact"),
        "no_surrogate": mean(graded_world(200), "no_surrogate"),
        "evalue": mean(bare_world(200), "evalue"),
        "two systems, nothing guessed": best(2, guessed=False),
        "two systems, all draws even": best(2, beta=1.0),
        "table of one cell": table({}, ONE, guessed=False),
        "table, all draws even": table({}, EVEN),
        "groups that want nothing": table({"subject": 3}, EVEN),
        "small groups judged whole": table({"small": 2}, WHOLE),
        "one group of all items": table({"subject": 1}, GROUPS),
    }
)
ADAPTIVE: Mapping[str, Asked] = MappingProxyType(
    {
        "sharp": mean(zero_one_world(200)),
        "sharp, most draws even": mean(zero_one_world(200), beta=0.9),
        "sharp, population": mean(zero_one_world(200), claim=Claim("population", precision=0.4)),
        "sharp with groups": mean(grouped(bare_world(200))),
        "sharp with weights": mean(weighted_world(200)),
        "sharp with known losses": mean(known_world(200)),
        "sharp with bounds": mean(without(known_world(bounded=True), "surrogate.0")),
        "audit": mean(
            without(known_world(200), "surrogate.0"), claim=Claim(precision=0.1, audit=True)
        ),
        "two systems": best(2),
        "three systems, nothing guessed": best(3, guessed=False),
        "three systems, all draws even": best(3, beta=1.0),
        "table": table({}, ONE),
        "table with groups": table({"subject": 3}, ONE, guessed=False),
        "groups that want something": table({"subject": 3}, GROUPS, guessed=False),
    }
)


def losses_of(session: AnySession, pool: Pool, way: int) -> Callable[[int], Any]:
    """Losses that somebody could write down in place of the judges': few, many, or by halves."""
    often = (0.05, 0.95, 0.5, 0.3)[way]
    unit = (np.random.default_rng(way).random((3, pool.items)) < often).astype(float)
    plan = session.plan
    if isinstance(plan, TablePlan):
        return lambda item: (unit[0, item], 5.0 * unit[1, item])
    if isinstance(plan, BestPlan):
        return lambda item: tuple(unit[: plan.width, item].tolist())
    losses = plan.lower + unit[0] * plan.scale.width
    if pool.bounds is not None:
        losses = np.clip(losses, pool.bounds.lower, pool.bounds.upper)
    return lambda item: float(losses[item])


def drawn(asked: Asked, seed: bytes, way: int) -> list[int]:
    """The items drawn one after the other, with these losses in the place of the judges'."""
    session = begin_session(asked.plan, asked.pool, seed)
    draws = judge_rounds(session, losses_of(session, asked.pool, way), past_stop=True)
    return [draw.item for draw, _ in zip(draws, range(ROUNDS), strict=False)]


def differ(asked: Asked, seed: bytes) -> bool:
    """Whether the draws of some losses are not those of others, as far as both go."""
    first, *others = (drawn(asked, seed, way) for way in range(4))
    return any(a != b for other in others for a, b in zip(first, other, strict=False))


def adaptive(asked: Asked) -> bool:
    """What the session says of itself."""
    return begin_session(asked.plan, asked.pool, SEEDS[0]).question.adaptive


@pytest.mark.parametrize("name", FIXED)
def test_other_losses_lead_to_the_same_draws_where_these_do_not_depend_on_any(name: str) -> None:
    assert not adaptive(FIXED[name])
    assert not any(differ(FIXED[name], seed) for seed in SEEDS[:2])


@pytest.mark.parametrize("name", ADAPTIVE)
def test_other_losses_lead_to_other_draws_where_these_depend_on_them(name: str) -> None:
    assert adaptive(ADAPTIVE[name])
    assert any(differ(ADAPTIVE[name], seed) for seed in SEEDS)


def test_a_claim_about_a_group_added_later_lets_draws_depend_on_losses() -> None:
    wish = replace(EVEN, account="together", reserve=0.02)
    asked = table({"subject": 3}, wish, guessed=False)
    session = begin_session(asked.plan, asked.pool, SEEDS[0])
    assert not session.question.adaptive
    session.apply(Addition("correct", 0.01, "subject", "b", 0.2, ()))
    assert session.question.adaptive


@pytest.mark.parametrize(
    ("world", "policy"),
    [
        (bare_world(80), "sharp"),
        (zero_one_world(80), "uniform"),
        (zero_one_world(80), "celeus"),
        (zero_one_world(80), "sharp"),
    ],
)
def test_what_the_losses_rest_on_is_said_and_verified(world: World, policy: str) -> None:
    """Whoever holds key and seed may write other losses down, and the claim says so."""
    untrue = World(world.pool, 1.0 - world.losses)
    true, rewritten = (opened(one, policy, Claim(precision=0.1)) for one in (world, untrue))
    for case in (true, rewritten):
        assert "signed_losses" not in codes(case.state), "there is no loss before a draw"
        case.go(20)
        report = verify(case.certificate(), world.evidence)
        assert report.valid, report.difference
        assert verify(case.certificate()).valid
        assert report.claim is not None
        assert report.claim["assumptions"] == assumptions_of(case.state)
        assert ("signed_losses" in codes(case.state)) is not case.state.question.adaptive
    items = [[case.state.item(round_) for round_ in range(1, 21)] for case in (true, rewritten)]
    assert (items[0] == items[1]) is not true.state.question.adaptive


@pytest.mark.parametrize(
    ("ahead", "hidden", "said"), [(20, 0, True), (19, 0, False), (19, 18, False), (19, 19, True)]
)
def test_draws_that_were_all_made_before_the_first_loss_rest_on_none(
    ahead: int, hidden: int, *, said: bool
) -> None:
    """Even where later ones would depend on losses: a judge may hold many items at once."""
    world = zero_one_world(80)
    untrue = World(world.pool, 1.0 - world.losses)
    true, rewritten = (opened(one, "sharp", Claim(precision=0.1)) for one in (world, untrue))
    for case in (true, rewritten):
        case.draw(ahead)
        case.judge(hidden=range(1, hidden + 1))
        case.go(20 - ahead)
        report = verify(case.certificate(), world.evidence)
        assert report.valid, report.difference
        assert ("signed_losses" in codes(case.state)) is said
    items = [
        [case.state.item(round_) for round_ in range(1, ahead + 1)] for case in (true, rewritten)
    ]
    assert items[0] == items[1]


@pytest.mark.parametrize("name", ["two systems", "table"])
def test_of_several_losses_at_once_draws_rest_on_those_before_the_first_open_round(
    name: str,
) -> None:
    asked = ADAPTIVE[name]
    session = begin_session(asked.plan, asked.pool, SEEDS[0])
    losses = losses_of(session, asked.pool, 0)
    session.apply(session.propose()).apply(session.propose())
    session.observe(2, losses(session.item(2))).apply(session.propose())
    assert "signed_losses" in codes(session), "round 1 is open, so nothing is folded"
    session.observe(1, losses(session.item(1))).apply(session.propose())
    assert "signed_losses" not in codes(session)


def codes(session: AnySession) -> set[str]:
    """The codes of a session's assumptions."""
    return {one["code"] for one in assumptions_of(session)}
