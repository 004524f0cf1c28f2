"""Claims about a judge's measures: exact stakes over every order, limits, and seeded coverage."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import binom

from celeus.core.interval import Interval
from celeus.core.ledger import Draw, JointObservation
from celeus.core.plans.judge_check import JudgeCheck, limits, outcomes
from celeus.core.plans.judge_measures import MEASURES
from celeus.core.plans.stopping import Question
from celeus.core.plans.table_plan import TableSettings
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.score import Score
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.table_pool import Column, Table
from celeus.core.session.session import Session
from celeus.core.session.table.ratio_claims import RatioClaim
from celeus.core.session.table.table_question import Table as TableQuestion
from celeus.errors import InvalidValue
from tests.claims.stalling import LOOKS_APART, kept_open
from tests.core.tables import SEED, at_will, branched, coming, planned
from tests.core.worlds import provisional
from tests.nightly import NIGHTLY, by_day

LABEL = Metric("label", LossScale("zero_one", 0.0, 1.0))
SESSIONS = 1000 if NIGHTLY else 10


def checked(
    judge: Sequence[int],
    *,
    surrogate: Sequence[float] | None = None,
    known: Sequence[float] | None = None,
    groups: Sequence[str] | None = None,
    metric: Metric = LABEL,
) -> Table:
    """A table of items by a judge's verdicts, and perhaps by a group."""
    items = len(judge)
    given = np.zeros(items) if surrogate is None else np.array(surrogate)
    columns = [Column.of("judge", np.where(np.array(judge) == 1, "yes", "no"))]
    if groups is not None:
        columns.append(Column.of("kind", groups))
    losses = None if known is None else np.array(known)[:, None]
    return Table.of([metric], [Scores(given, np.zeros(items))], columns, losses)


def measured(name: str, people: np.ndarray, judge: np.ndarray) -> float:
    """A measure by its textbook formula, from the four counts."""
    both, neither = ((people == judge) & (judge == value) for value in (1, 0))
    tp, tn = float(both.sum()), float(neither.sum())
    fp, fn = float(judge.sum()) - tp, float(people.sum()) - tp
    items = tp + tn + fp + fn
    chance = ((tp + fp) * (tp + fn) + (tn + fn) * (tn + fp)) / items**2
    return {
        "tpr": lambda: tp / (tp + fn),
        "tnr": lambda: tn / (tn + fp),
        "ppv": lambda: tp / (tp + fp),
        "npv": lambda: tn / (tn + fn),
        "agreement": lambda: (tp + tn) / items,
        "f1": lambda: 2 * tp / (2 * tp + fp + fn),
        "jaccard": lambda: tp / (tp + fp + fn),
        "kappa": lambda: ((tp + tn) / items - chance) / (1 - chance),
    }[name]()


def lost(name: str, people: np.ndarray, judge: np.ndarray) -> float:
    """The measure on the scale of its loss: 1 less it, of kappa its negative."""
    return MEASURES[name].lower + 1.0 - measured(name, people, judge)


@dataclass(frozen=True)
class World:
    """What people and judge call positive, and the items that nobody can judge."""

    people: np.ndarray
    judge: np.ndarray
    hidden: frozenset[int] = frozenset()

    def begun(self, wish: TableSettings, seed: bytes = SEED) -> Session[TableQuestion]:
        table = checked(self.judge.tolist())
        return Session.of(TableQuestion(planned(table, wish), table, seed), seed)

    def judged(self, session: Session[TableQuestion], draw: Draw) -> Session[TableQuestion]:
        loss = None if draw.item in self.hidden else float(self.people[draw.item])
        session.apply(draw).apply(JointObservation(draw.round, (loss,)))
        return session


FEW = World(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 1]))
WORLDS = {
    "two errors": FEW,
    "two that nobody can judge": replace(FEW, hidden=frozenset({1, 3})),
}


def asking(name: str, world: World, alpha: float) -> TableSettings:
    """A check of one measure whose true value is a candidate of the lattice."""
    truth = lost(name, world.people, world.judge)
    return TableSettings(
        alpha=alpha,
        check=JudgeCheck("judge", "yes", (name,)),
        questions={name: (Question("at_most", truth),)},
    )


def endings(
    session: Session[TableQuestion], world: World, chance: float = 1.0
) -> Iterator[tuple[float, Session[TableQuestion]]]:
    """Every way to draw all items, with its probability."""
    if not session.can_draw:
        yield chance, session
    for draw in coming(session):
        branch = world.judged(branched(session), draw)
        yield from endings(branch, world, chance * draw.q)


def gained(session: Session[TableQuestion], ratio: float) -> np.ndarray:
    """The stakes of both sides against a ratio, over their starts at a level of 1e-9."""
    claim = session.question.ratios[0]
    place = int(np.flatnonzero(claim._grid == ratio)[0])
    stakes = [float(np.exp(side.stake[:, place]).sum()) for side in claim._sides]
    return np.array(stakes) / 5e-10


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("world", WORLDS)
def test_the_mean_stake_at_the_true_ratio_is_its_start(name: str, world: str) -> None:
    """On both sides, over every order; where some items are not judged it is no larger."""
    case = WORLDS[world]
    truth = lost(name, case.people, case.judge)
    begun, mean, total = case.begun(asking(name, case, 1e-9)), np.zeros(2), 0.0
    for chance, session in endings(begun, case):
        mean += chance * gained(session, truth)
        total += chance
    assert total == pytest.approx(1.0, abs=1e-12)
    if case.hidden:
        assert (mean <= 1.0 + 1e-9).all()
    else:
        assert mean == pytest.approx([1.0, 1.0], abs=1e-9)


@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("name", by_day(2, MEASURES))
def test_whoever_answers_draws_when_he_likes_gains_no_stake(name: str, *, skips: bool) -> None:
    """Nor loses one in the mean, where he skips none: he sees their items and losses."""
    truth = lost(name, FEW.people, FEW.judge)

    def answers(item: int) -> list[tuple[float | None]]:
        return [(float(FEW.people[item]),), *([(None,)] if skips else [])]

    begun = FEW.begun(asking(name, FEW, 1e-9))
    least, largest = at_will(begun, 3, answers, lambda session: gained(session, truth))
    assert (largest <= 1.0 + 1e-9).all()
    if not skips:
        assert least == pytest.approx([1.0, 1.0], abs=1e-9)


@pytest.mark.parametrize("name", MEASURES)
def test_the_interval_leaves_the_true_ratio_with_probability_at_most_alpha(name: str) -> None:
    """Over every order, watched to the last item, at a level that is often reached."""
    case, missed = FEW, 0.0
    truth = lost(name, case.people, case.judge)
    for chance, session in endings(case.begun(asking(name, case, 0.5)), case):
        claim = session.question.claims[0]
        holds = claim.interval.lower - 1e-9 <= truth <= claim.interval.upper + 1e-9
        missed += 0.0 if holds and not claim.emptied else chance
    assert missed <= 0.5


@pytest.mark.parametrize("name", MEASURES)
def test_the_limits_are_the_least_and_largest_ratio_of_any_completion(name: str) -> None:
    people, judge = np.array([1, 0, 1, 0, 0, 1, 1]), np.array([1, 1, 1, 0, 0, 0, 1])
    unseen = np.array([2, 4, 6])
    seen = np.setdiff1d(np.arange(7), unseen)
    counts, unknown = np.zeros((2, 2)), np.bincount(judge[unseen], minlength=2).astype(float)
    np.add.at(counts, (judge[seen], people[seen]), 1.0)
    scale = Interval(MEASURES[name].lower, 1.0)
    found = limits(
        outcomes(name, (float(1 - judge.mean()), float(judge.mean()))), counts, unknown, scale
    )
    ratios = []
    for labels in itertools.product((0, 1), repeat=unseen.size):
        completed = people.copy()
        completed[unseen] = labels
        ratios.append(lost(name, completed, judge))
    assert (found.lower, found.upper) == pytest.approx((min(ratios), max(ratios)), abs=1e-12)


def world_of(number: int, items: int, rate: float = 0.4) -> World:
    """A random world of a judge that is right on four of five items."""
    chance = np.random.default_rng((number, items))
    people = (chance.random(items) < rate).astype(int)
    wrong = chance.random(items) < 0.2
    judge = np.where(wrong, 1 - people, people)
    people[:2], judge[:2] = (1, 0), (1, 0)
    return World(people, judge)


def watched(session: Session[TableQuestion], world: World, truths: Sequence[float]) -> list[bool]:
    """Whether each claim's interval has ever left its true ratio, up to the last item."""
    missed = [False] * len(truths)
    while session.can_draw:
        world.judged(session, session.propose())
        for place, (claim, truth) in enumerate(zip(session.question.claims, truths, strict=True)):
            held = claim.interval.lower - 1e-9 <= truth <= claim.interval.upper + 1e-9
            missed[place] |= claim.emptied or not held
    return missed


@pytest.mark.parametrize("names", [("tpr",), ("tnr", "kappa"), ("f1", "ppv", "jaccard")])
def test_coverage_of_sessions_watched_to_the_last_item(names: tuple[str, ...]) -> None:
    misses = np.zeros(len(names))
    for number in range(SESSIONS):
        world = world_of(number, 60)
        wish = TableSettings(
            alpha=0.2, check=JudgeCheck("judge", "yes", names), precision=dict.fromkeys(names, 0.2)
        )
        truths = [lost(name, world.people, world.judge) for name in names]
        misses += watched(world.begun(wish, b"%d" % number), world, truths)
    assert (misses <= binom.ppf(0.9999, SESSIONS, 0.2)).all()


def test_draws_kept_open_by_who_knows_their_losses_gain_nothing() -> None:
    """Kept back is what would correct the claims about the judge's errors at positive items."""
    misses, names, sessions = np.zeros(2), ("tpr", "tnr"), SESSIONS * 3 // 5
    for number in range(sessions):
        world = world_of(number, 60)
        wish = TableSettings(
            alpha=0.2, check=JudgeCheck("judge", "yes", names), precision=dict.fromkeys(names, 0.2)
        )
        truths = [lost(name, world.people, world.judge) for name in names]
        misses += stalled(world.begun(wish, b"%d" % number), world, truths)
    assert (misses <= binom.ppf(0.9999, sessions, 0.2)).all()


def stalled(session: Session[TableQuestion], world: World, truths: Sequence[float]) -> list[bool]:
    """Whether each claim's interval ever leaves its true ratio, also with open draws at worst."""
    missed = [False] * len(truths)

    def corrects(item: int) -> bool:
        interval = session.question.claims[0].interval
        leans_low = interval.lower + interval.upper < 2.0 * truths[0]
        return bool((world.people[item] != world.judge[item]) == leans_low)

    for _ in kept_open(session, lambda item: (float(world.people[item]),), corrects):
        at_worst = None if session.observed % LOOKS_APART else provisional(session)
        for shown in (session.question, at_worst):
            for place, claim in enumerate([] if shown is None else shown.claims):
                held = claim.interval.lower - 1e-9 <= truths[place] <= claim.interval.upper + 1e-9
                missed[place] |= claim.emptied or not held
    return missed


@pytest.mark.parametrize("name", MEASURES)
def test_a_pool_that_is_judged_whole_has_the_exact_value(name: str) -> None:
    world = world_of(3, 40)
    session = world.begun(TableSettings(check=JudgeCheck("judge", "yes", (name,))))
    while session.can_draw:
        world.judged(session, session.propose())
    claim = session.question.claims[0]
    truth = lost(name, world.people, world.judge)
    assert (claim.interval.lower, claim.interval.upper) == pytest.approx((truth, truth), abs=1e-12)
    assert claim.estimate == pytest.approx(truth, abs=1e-12)


def test_a_gate_of_two_measures_is_answered_from_one_row_of_labels() -> None:
    chance = np.random.default_rng(5)
    people = (chance.random(1000) < 0.5).astype(int)
    judge = np.where(chance.random(1000) < 0.02, 1 - people, people)
    world = World(people, judge)
    asked = {name: (Question("at_most", 0.1),) for name in ("tpr", "tnr")}
    session = world.begun(
        TableSettings(check=JudgeCheck("judge", "yes", ("tpr", "tnr")), questions=asked)
    )
    while session.stop_reason is None:
        world.judged(session, session.propose())
    answers = [session.question.decisions(place)[0].answer for place in (0, 1)]
    assert (session.stop_reason, answers) == ("target_reached", ["yes", "yes"])
    assert session.folded < 400


def test_positive_is_what_a_score_of_one_says() -> None:
    """Of an accuracy that is a loss of 0, of a rate of errors a loss of 1."""
    judge, people = np.array([1, 1, 0, 0, 0]), np.array([1, 0, 0, 1, 0])
    ends = {}
    for better in ("higher", "lower"):
        score = Score("right", better, "share")
        table = checked(judge.tolist(), metric=replace(LABEL, score=score))
        wish = TableSettings(check=JudgeCheck("judge", "yes", ("ppv",)))
        session = Session.of(TableQuestion(planned(table, wish), table, SEED), SEED)
        while session.can_draw:
            draw = session.propose()
            loss = float(people[draw.item]) if better == "lower" else 1.0 - people[draw.item]
            session.apply(draw).apply(JointObservation(draw.round, (loss,)))
        ends[better] = session.question.claims[0].interval
    assert ends["higher"] == ends["lower"] == Interval(0.5, 0.5)


def test_a_kappa_of_0_is_at_least_0() -> None:
    """With one item in 2 000 that the judge does not flag its sums nearly cancel."""
    world = World(np.ones(2000, dtype=int), np.array([0] + [1] * 1999))
    check = JudgeCheck("judge", "yes", ("kappa",))
    asked = {"kappa": (Question("at_most", 0.0),)}
    session = world.begun(TableSettings(check=check, questions=asked))
    claim = session.question.ratios[0]
    claim.counts[:] = [[0.0, 1.0], [0.0, 1999.0]]
    claim.unknown[:] = 0.0
    claim._conclude()
    assert claim.decisions[0].answer == "yes"


def test_a_measure_of_nothing_is_no_number() -> None:
    world = World(np.zeros(40, dtype=int), np.array([0, 1] * 20))
    session = world.begun(TableSettings(check=JudgeCheck("judge", "yes", ("tpr",))))
    while session.can_draw:
        world.judged(session, session.propose())
    claim = session.question.ratios[0]
    assert claim.undefined
    assert (claim.interval, claim.estimate) == (Interval(0.0, 1.0), 0.5)


def test_expected_counts_are_those_of_the_last_label() -> None:
    """Whatever was drawn ahead of it."""
    world = world_of(9, 200)
    session = world.begun(TableSettings(check=JudgeCheck("judge", "yes", ("tpr",))))
    draws = []
    for _ in range(100):
        draws.append(session.propose())
        session.apply(draws[-1])
    for draw in draws:
        session.apply(JointObservation(draw.round, (float(world.people[draw.item]),)))
    expected, claim = session.question.expected_counts, session.question.ratios[0]
    assert expected.sum() == pytest.approx(200.0)
    shares = [counts[1] / counts.sum() for counts in (expected[0], claim.counts[0])]
    assert shares[0] == pytest.approx(shares[1], abs=0.1)


def test_draws_that_are_out_take_little_memory() -> None:
    """Their bets are made when they are folded, from what was known at the draw."""
    world = world_of(1, 4000)
    names = tuple(MEASURES)
    asked = {name: (Question("at_most", 0.3),) for name in names}
    session = world.begun(TableSettings(check=JudgeCheck("judge", "yes", names), questions=asked))
    for _ in range(20):
        session.apply(session.propose())
    held = [
        array.nbytes
        for claim in session.question.ratios
        for drawn in claim._open.values()
        for bet in drawn.bets
        for array in bet
        if array.base is None
    ]
    assert 0 < sum(held) < 20 * len(names) * 30_000


def test_known_labels_count_from_the_start() -> None:
    judge, people = [1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 1, 0]
    known = [1.0, 1.0, 0.0, np.nan, np.nan, np.nan]
    table = checked(judge, known=known)
    wish = TableSettings(check=JudgeCheck("judge", "yes", ("ppv", "npv")))
    session = Session.of(TableQuestion(planned(table, wish), table, SEED), SEED)
    flagged, unflagged = session.question.claims
    assert flagged.interval == Interval(1 / 3, 1 / 3)
    assert unflagged.interval == Interval(0.0, 1.0)
    while session.can_draw:
        draw = session.propose()
        session.apply(draw).apply(JointObservation(draw.round, (float(people[draw.item]),)))
    assert session.folded == 3
    assert unflagged.interval == Interval(1 / 3, 1 / 3)


def test_measures_are_claimed_of_groups_too() -> None:
    world = world_of(4, 120)
    groups = ["a" if item % 3 else "b" for item in range(120)]
    table = checked(world.judge.tolist(), groups=groups)
    wish = TableSettings(check=JudgeCheck("judge", "yes", ("tpr", "tnr")))
    session = Session.of(TableQuestion(planned(table, wish), table, SEED), SEED)
    assert [(claim.claim.metric, claim.claim.value) for claim in session.question.claims] == [
        (name, value) for value in (None, "a", "b") for name in ("tpr", "tnr")
    ]
    while session.can_draw:
        world.judged(session, session.propose())
    for claim in session.question.claims:
        mask = np.array([claim.claim.value in {None, group} for group in groups])
        truth = lost(claim.claim.metric, world.people[mask], world.judge[mask])
        assert isinstance(claim, RatioClaim)
        assert claim.interval.lower == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        (TableSettings(check=JudgeCheck("judge", "maybe", ("tpr",))), "check.positive"),
        (TableSettings(check=JudgeCheck("judge", "yes", ("tpr",)), account="selected"), "account"),
        (
            TableSettings(check=JudgeCheck("judge", "yes", ("tpr",)), small_groups="whole"),
            "small_groups",
        ),
        (
            TableSettings(
                check=JudgeCheck("judge", "yes", ("tpr",)), account="together", reserve=0.01
            ),
            "reserve",
        ),
        (
            TableSettings(check=JudgeCheck("judge", "yes", ("tpr",)), precision={"label": 0.1}),
            "precision",
        ),
    ],
)
def test_what_a_check_cannot_have_is_refused_by_name(wish: TableSettings, field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        planned(checked([1, 0, 1, 0] * 10), wish)
    assert refused.value.field == field


@pytest.mark.parametrize("measures", [(), ("auc",), ("tpr", "tpr")])
def test_measures_are_named_once_each(measures: tuple[str, ...]) -> None:
    with pytest.raises(InvalidValue) as refused:
        JudgeCheck("judge", "yes", measures)
    assert refused.value.field == "check.measures"
