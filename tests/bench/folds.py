"""The core alone: time of a round, and of folding a long session again."""

import time
from collections.abc import Iterator
from pathlib import Path

from celeus.core.ledger import Event, Observation
from celeus.core.plans.plan import Claim, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.randomness import commitment
from celeus.core.session.session import begin_mean
from celeus.simulation.sessions import Truth, seed_of
from tests.bench.results import Goal, Line
from tests.bench.truths import cells, synthetic

SIZES = (127_600, 2_000_000)
REBUILT_ROUNDS = 5_000
ROUNDS_A_TURN = 50
CLAIM = Claim("pool", precision=0.05)
CLAIMS = [
    Claim(target, precision=precision)
    for target in ("pool", "population")
    for precision in (0.05, 0.02)
]
A_ROUND = Goal.most(0.3, "ms")
A_ROUND_OF_PAIRS = Goal.most(1.0, "ms")


class Session:
    """A session of the core alone, timed.

    The time is that of the thread on the processor: whatever else the machine does, and whenever
    another session takes its turn, does not count. Nothing here waits for anything.
    """

    def __init__(
        self, truth: Truth, run: int, policy: str = "celeus", claim: Claim = CLAIM
    ) -> None:
        self.truth = truth
        self.seed = seed_of(0, run)
        self.plan = make_plan(claim, truth.facts, policy_named(policy), commitment(self.seed))
        self.state = begin_mean(self.plan, truth.scores, self.seed)
        self.seconds = 0.0
        self.slowest = 0.0

    @property
    def milliseconds_a_round(self) -> float:
        """Propose, apply the draw, fold the loss."""
        return self.seconds / self.state.folded * 1e3

    def advance(self, rounds: int) -> None:
        """Draw and judge ``rounds`` items."""
        state, loss = self.state, self.truth.loss
        for _ in range(rounds):
            began = time.thread_time()
            draw = state.propose()
            state = state.apply(draw)
            state = state.observe(draw.round, float(loss[draw.item]))
            took = time.thread_time() - began
            self.seconds += took
            self.slowest = max(self.slowest, took)
        self.state = state

    def finish(self) -> None:
        """Go on until the precision is reached."""
        while self.state.stop_reason is None and self.state.can_draw:
            self.advance(1)


def fold_lines(folder: Path | None, *, quick: bool) -> Iterator[Line]:
    """Propose + fold per round by pool size and on the real cells; a long session again."""
    repeats, rounds = (2, 600) if quick else (9, 2_000)
    truths = [synthetic(items) for items in SIZES]
    runs = [_side_by_side(truths, run, "celeus", CLAIM, rounds) for run in range(repeats)]
    times = [[one.milliseconds_a_round for one in sessions] for sessions in runs]
    for items, samples in zip(SIZES, zip(*times, strict=True), strict=True):
        yield Line(f"celeus: propose + fold a round, {items:,} items", samples, "ms", A_ROUND)
    ratios = [large / small for small, large in times]
    yield Line("… the large pool by the small one", ratios, "×", Goal.within(0.7, 1.3))
    for claim in CLAIMS:
        yield from _sharp_lines(truths, claim, 1 if quick else 3, rounds)
    for name, truth in ({} if folder is None else cells(folder)).items():
        yield _to_precision(name, truth, 1 if quick else 5)
    yield _rebuilt(truths[0], "celeus", CLAIM, 2 if quick else 5)
    yield _rebuilt(truths[0], "sharp", CLAIMS[1], 2)
    yield _rebuilt(truths[0], "sharp", CLAIMS[3], 2)


def _sharp_lines(truths: list[Truth], claim: Claim, repeats: int, rounds: int) -> Iterator[Line]:
    runs = [_side_by_side(truths, run, "sharp", claim, rounds) for run in range(repeats)]
    goal = A_ROUND if claim.target == "pool" else A_ROUND_OF_PAIRS
    for place, items in enumerate(SIZES):
        sessions = [one[place] for one in runs]
        what = f"sharp, {claim.target} to {claim.precision}: {items:,} items"
        yield Line(f"{what}, a round", [it.milliseconds_a_round for it in sessions], "ms", goal)
        if claim.target == "population":
            # The round in which the pairs start replays all rounds before it.
            slowest = [it.slowest for it in sessions]
            yield Line(f"{what}, slowest round", slowest, "s", Goal.most(1, "s"))


def _side_by_side(
    truths: list[Truth], run: int, policy: str, claim: Claim, rounds: int
) -> list[Session]:
    """A session on each pool, advanced in short turns: a slow moment meets all of them."""
    sessions = [Session(truth, run, policy, claim) for truth in truths]
    for _ in range(rounds // ROUNDS_A_TURN):
        for session in sessions:
            session.advance(ROUNDS_A_TURN)
    return sessions


def _to_precision(name: str, truth: Truth, repeats: int) -> Line:
    sessions = [Session(truth, run) for run in range(repeats)]
    for session in sessions:
        session.finish()
    labels = sorted(session.state.folded for session in sessions)
    what = f"celeus: {name} to precision {CLAIM.precision} ({labels[0]} – {labels[-1]} labels)"
    return Line(what, [session.milliseconds_a_round for session in sessions], "ms", A_ROUND)


def _rebuilt(truth: Truth, policy: str, claim: Claim, repeats: int) -> Line:
    done = Session(truth, 0, policy, claim)
    done.advance(REBUILT_ROUNDS)
    events = list(_ledger(done))
    samples = []
    for _ in range(repeats):
        began = time.thread_time()
        state = begin_mean(done.plan, truth.scores, done.seed).replay(events)
        samples.append(time.thread_time() - began)
        if state.question.interval != done.state.question.interval:
            message = "the rebuilt session has another interval"
            raise AssertionError(message)
    what = f"{policy}, {claim.target} to {claim.precision}: rebuild of {REBUILT_ROUNDS:,} rounds"
    return Line(what, samples, "s", Goal.most(2 if claim.target == "pool" else 6, "s"))


def _ledger(session: Session) -> Iterator[Event]:
    for round_ in session.state.rounds:
        yield round_.draw
        yield Observation(round_.draw.round, float(session.truth.loss[round_.draw.item]))
