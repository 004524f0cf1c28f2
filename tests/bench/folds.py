"""The core alone: time of a round, and of folding a long session again."""

import time
from collections.abc import Iterator
from pathlib import Path

from app.core.ledger import Event, Observation
from app.core.plan import Claim, make_plan
from app.core.policies import policy_named
from app.core.randomness import commitment
from app.core.session import apply, begin, can_draw, observe, propose, replay
from app.study.simulation import Truth, seed_of
from tests.bench.results import Goal, Line
from tests.bench.truths import cells, synthetic

SIZES = (127_600, 2_000_000)
REBUILT_ROUNDS = 5_000
ROUNDS_A_TURN = 50
CLAIM = Claim("pool", precision=0.05)
A_ROUND = Goal.most(0.3, "ms")


class Session:
    """A session of the core alone, timed.

    The time is that of the thread on the processor: whatever else the machine does, and whenever
    another session takes its turn, does not count. Nothing here waits for anything.
    """

    def __init__(self, truth: Truth, run: int, policy: str = "celeus") -> None:
        self.truth = truth
        self.seed = seed_of(0, run)
        self.plan = make_plan(CLAIM, truth.facts, policy_named(policy), commitment(self.seed))
        self.state = begin(self.plan, truth.scores, self.seed)
        self.seconds = 0.0

    @property
    def milliseconds_a_round(self) -> float:
        """Propose, apply the draw, fold the loss."""
        return self.seconds / self.state.folded * 1e3

    def advance(self, rounds: int) -> None:
        """Draw and judge ``rounds`` items."""
        plan, state, loss = self.plan, self.state, self.truth.loss
        began = time.thread_time()
        for _ in range(rounds):
            draw = propose(plan, state)
            state = apply(plan, state, draw)
            state = observe(plan, state, draw.round, float(loss[draw.item]))
        self.seconds += time.thread_time() - began
        self.state = state

    def finish(self) -> None:
        """Go on until the precision is reached."""
        while self.state.stop_reason is None and can_draw(self.plan, self.state):
            self.advance(1)


def fold_lines(folder: Path | None, *, quick: bool) -> Iterator[Line]:
    """Propose + fold per round by pool size and on the real cells; a long session again."""
    repeats, rounds = (2, 600) if quick else (9, 2_000)
    truths = [synthetic(items) for items in SIZES]
    for policy in ("celeus", "sharp"):
        goal = A_ROUND if policy == "celeus" else None
        runs = [_side_by_side(truths, run, policy, rounds) for run in range(repeats)]
        for items, samples in zip(SIZES, zip(*runs, strict=True), strict=True):
            yield Line(f"{policy}: propose + fold a round, {items:,} items", samples, "ms", goal)
        ratios = [large / small for small, large in runs]
        within = Goal.within(0.7, 1.3) if goal else None
        yield Line("… the large pool by the small one", ratios, "×", within)
    for name, truth in ({} if folder is None else cells(folder)).items():
        yield _to_precision(name, truth, 1 if quick else 5)
    yield _rebuilt(truths[0], 2 if quick else 5)


def _side_by_side(truths: list[Truth], run: int, policy: str, rounds: int) -> list[float]:
    """Milliseconds a round on each pool, in short turns: a slow moment meets all of them."""
    sessions = [Session(truth, run, policy) for truth in truths]
    for _ in range(rounds // ROUNDS_A_TURN):
        for session in sessions:
            session.advance(ROUNDS_A_TURN)
    return [session.milliseconds_a_round for session in sessions]


def _to_precision(name: str, truth: Truth, repeats: int) -> Line:
    sessions = [Session(truth, run) for run in range(repeats)]
    for session in sessions:
        session.finish()
    labels = sorted(session.state.folded for session in sessions)
    what = f"celeus: {name} to precision {CLAIM.precision} ({labels[0]} – {labels[-1]} labels)"
    return Line(what, [session.milliseconds_a_round for session in sessions], "ms", A_ROUND)


def _rebuilt(truth: Truth, repeats: int) -> Line:
    done = Session(truth, 0)
    done.advance(REBUILT_ROUNDS)
    events = list(_ledger(done))
    samples = []
    for _ in range(repeats):
        began = time.thread_time()
        state = replay(done.plan, begin(done.plan, truth.scores, done.seed), events)
        samples.append(time.thread_time() - began)
        if state.interval != done.state.interval:
            message = "the rebuilt session has another interval"
            raise AssertionError(message)
    what = f"celeus: rebuild of {REBUILT_ROUNDS:,} rounds, {truth.loss.size:,} items, core alone"
    return Line(what, samples, "s", Goal.most(2, "s"))


def _ledger(session: Session) -> Iterator[Event]:
    for round_ in session.state.rounds:
        yield round_.draw
        yield Observation(round_.draw.round, float(session.truth.loss[round_.draw.item]))
