"""Judge a session by a model or program, and record its first verdicts once it can be read.

A judge whose answers cannot be read would make every item unjudgeable. So verdicts are held, not
recorded, and one coordinator gives them on:

1. The first `SHOWN` answers are shown with how they were read; no verdict is recorded before.
2. An answer without a verdict is recorded, as unjudgeable, only after `FIRST` answers and a later
   one that could be read.
3. `IN_A_ROW` of them in a row, or half of the first `FIRST`, end the run; those that are held are
   not recorded.
4. Where nothing more can be drawn before they are recorded, as at the end of a session, they are,
   unless no answer at all holds a verdict.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from celeus.client import calls
from celeus.client.call_times import CallTimes, warn_of_hanging
from celeus.client.label_loop import (
    HEARTBEATS,
    LEASE_SECONDS,
    NONE_LEFT,
    STOPPED,
    HeldTurns,
    JudgeResult,
    Turn,
    total,
)
from celeus.client.threads import last, started
from celeus.client.worker_names import WorkerName
from celeus.errors import InvalidValue, Refusal
from celeus.judges.cases import NO_VERDICT, Answer, Case, Judge, Opinion
from celeus.judges.programs import Program
from celeus.judges.reading import UNREADABLE
from celeus.shorten import one_line, shortened
from celeus.stalls import is_stalled

if TYPE_CHECKING:
    from celeus.client.blocking import Client, Session

SHOWN = 5
IN_A_ROW = 10
FIRST = 30


class Readability:
    """Counts the answers of a judge that hold no verdict; threads may share it.

    ``show`` is given a line about each of the first answers.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self.seen = self.unreadable = 0
        self._in_a_row = 0
        self._show = show
        self._lock = threading.Lock()

    def check(self, item: str, opinion: Opinion) -> None:
        """Count an answer; refuses to go on where too many hold no verdict."""
        with self._lock:
            self.seen += 1
            self._in_a_row = self._in_a_row + 1 if opinion.unreadable else 0
            self.unreadable += opinion.unreadable
            if self.seen <= SHOWN:
                self._show(_line(item, opinion))
            if self._in_a_row >= IN_A_ROW:
                raise _refusal(f"{IN_A_ROW} answers in a row", item, opinion)
            if self.seen <= FIRST and 2 * self.unreadable >= FIRST and opinion.unreadable:
                count = f"{self.unreadable} of the first {self.seen} answers"
                raise _refusal(count, item, opinion)

    def check_any(self, item: str, opinion: Opinion) -> None:
        """Refuse to record answers of which not one could be read."""
        if self.seen == self.unreadable:
            raise _refusal(f"all {self.seen} answers", item, opinion, only=self.seen == 1)


class Trial:
    """The verdicts of a session's judge that are held until they may be recorded."""

    def __init__(self, readability: Readability) -> None:
        self._readability = readability
        self.held: list[tuple[Turn, Opinion]] = []
        self.recorded: list[Turn] = []
        """Turns whose opinion is recorded since they were taken from here."""

    def take(self, turn: Turn, opinion: Opinion) -> None:
        """Hold a verdict, and say of its turn and of others what may be recorded now."""
        self._readability.check(turn.id, opinion)
        self.held.append((turn, opinion))
        if self._readability.seen < SHOWN:
            return
        everything = self._readability.seen >= FIRST and not opinion.unreadable
        self._give_on(lambda held: everything or not held.unreadable)

    def end(self) -> None:
        """Say of all that are held what is recorded; refuses where none could be read."""
        for turn, opinion in self.held:
            self._readability.check_any(turn.id, opinion)
        self._give_on(lambda _: True)

    def _give_on(self, may: Callable[[Opinion], bool]) -> None:
        for turn, opinion in self.held:
            if may(opinion):
                record(turn, opinion)
                self.recorded.append(turn)
        self.held = [held for held in self.held if not may(held[1])]


def judge_session(  # noqa: PLR0913, PLR0917 -- the parts of a run
    session: "Session",
    judge: Judge,
    readability: Readability,
    concurrency: int,
    worker: str | None,
    ended: Callable[[], None],
) -> JudgeResult:
    """Judge up to ``concurrency`` items of a session at once, until nothing more is asked for.

    What the judge raises, or a judge that cannot be read, ends it; verdicts that are held are then
    not recorded. ``ended`` is called at the end, so that nobody waits for another try.
    """
    name = WorkerName(session.id)
    turns = HeldTurns(session.id, f"{worker or name.text}-1", concurrency, lease=LEASE_SECONDS)
    loop = _Loop(session.client, turns, judge, Trial(readability))
    try:
        while loop.step(concurrency):
            pass
        loop.end()
    except BaseException:
        ended()
        # What is under way is kept for the next run; what was said before is recorded
        loop.last()
        with suppress(Refusal):
            session.client.run(turns.finish())
        raise
    ended()
    session.client.run(turns.finish())
    turns.overtaken += loop.open
    return total([turns])


class _Loop:
    """The items that are being judged for one worker.

    A draw whose call hangs holds up all that is judged behind it. So the oldest call is made once
    more, in place of one for a new item, when enough others have ended since; the first answer
    counts, and the call that hangs still counts as one of those at once. No run is made a second
    time. A draw of several runs that its last one has not settled is judged again.
    """

    def __init__(self, client: "Client", turns: HeldTurns, judge: Judge, trial: Trial) -> None:
        self.trial = trial
        self._client = client
        self._turns = turns
        self._judge = judge
        self._running: dict[Future[Opinion], tuple[Turn, bool]] = {}
        """Calls under way: the item, and true of a second call."""
        self._times = CallTimes()
        self._judged = 0
        self._begun: dict[Turn, int] = {}
        """Items to judge, the oldest first, and how many others were judged when each began."""
        self._again: set[Turn] = set()
        turns.task = task = client.run(calls.task_of(turns.session))
        if not isinstance(judge, Program):
            task.check_fresh("a verdict on an item is kept and given once")
        self._repeats = not task.runs
        self._fresh = task.repeats or task.tries > 1
        self._ended = False
        lease = min(LEASE_SECONDS, task.lease_seconds)
        self._beat = lease / HEARTBEATS

    @property
    def open(self) -> int:
        """Number of items whose calls are under way and that have no judgement."""
        return len(self._begun)

    def step(self, concurrency: int) -> bool:
        """Record what may be, begin new items and wait for one; False where nothing is left."""
        turns = self._turns
        self._repeat(concurrency)
        more = len(self._running) - len(self._begun)
        turns.size = concurrency - more + len(self.trial.held)
        for turn in self._client.run(turns.roll(self._renewed)):
            self._begun[turn] = self._judged
            self._begin(turn)
        if turns.state in STOPPED:
            self._ended = True
            self._take(set(self._running) - self.last())
            return False
        if self._running:
            self._take(self._done())
        elif self.trial.held:
            self.trial.end()
            self._go_on()
        elif turns.state in NONE_LEFT:
            time.sleep(turns.rest)
        else:
            return False
        return True

    def end(self) -> None:
        """Record what is held, and begin no run any more."""
        self._ended = True
        self.trial.end()
        self._go_on()

    def last(self) -> set[Future[Opinion]]:
        """Wait for the last calls, and return those that hang."""
        return last(self._running, set(self._running), self._times)

    def _begin(self, turn: Turn, *, again: bool = False) -> None:
        self._running[started(self._call, turn, again)] = turn, again

    def _call(self, turn: Turn, again: bool) -> Opinion:  # noqa: FBT001 -- the key of the call
        with self._times.call((turn, again)):
            case = case_of(turn)
            if self._fresh:
                case = replace(case, run=(self._turns.session, turn.round, turn.runs + 1))
            return self._judge(case)

    def _repeat(self, concurrency: int) -> None:
        """Make the oldest call once more if enough others have ended since it began."""
        oldest = next(iter(self._begun), None) if self._repeats else None
        if oldest is None or oldest in self._again or len(self._running) >= concurrency:
            return
        if is_stalled(self._judged - self._begun[oldest], concurrency):
            self._again.add(oldest)
            self._begin(oldest, again=True)

    def _done(self) -> set[Future[Opinion]]:
        """Wait until something is judged; renew leases and warn of what hangs meanwhile."""
        while True:
            done = wait(self._running, self._beat, FIRST_COMPLETED).done
            under_way = [(call, [call[0].id]) for call in self._running.values()]
            self._client.run(warn_of_hanging(self._turns.path, under_way, self._times))
            if done:
                return done
            with suppress(Refusal):
                self._client.run(self._turns.beat())

    def _renewed(self) -> bool:
        return self._client.run(self._turns.keep())

    def _take(self, futures: set[Future[Opinion]]) -> None:
        for future in futures:
            turn, _ = self._running.pop(future)
            if self._begun.pop(turn, None) is not None:
                self._judged += 1
                self.trial.take(turn, future.result())
                self._go_on()

    def _go_on(self) -> None:
        """Judge the next run of each draw whose runs, which are kept, have not settled it."""
        recorded, self.trial.recorded = self.trial.recorded, []
        if open_ := self._turns.unsettled(recorded):
            self._client.run(self._turns.keep_runs(open_))
            for turn in open_:
                if not self._ended:
                    self._begun[turn] = self._judged
                    self._begin(turn)


def case_of(turn: Turn) -> Case:
    """Return the case of a turn: sides or answers, without the names of their systems."""
    shown = turn.answers
    if turn.left is not None and turn.right is not None:
        shown = (turn.left, turn.right)
    answers = tuple(Answer(answer.answer, answer.payload) for answer in shown)
    return Case(turn.id, turn.payload, answers)


def record(turn: Turn, opinion: Opinion) -> None:
    """Record what a judge says of a turn, never what it only guesses."""
    if opinion.loss is not None:
        turn.observe(opinion.loss)
    elif opinion.preference is not None:
        turn.prefer(opinion.preference)
    elif not opinion.losses:
        turn.unjudgeable(opinion.reason or NO_VERDICT)
    elif turn.left is not None:
        turn.observe(dict(zip(("left", "right"), opinion.losses, strict=True)))
    else:
        turn.observe(list(opinion.losses))


def _line(item: str, opinion: Opinion) -> str:
    """Return what a judge wrote of an item, shortened, and how it was read."""
    readings = (
        f"{shortened(reading.text)} "
        + ("holds no verdict" if reading.verdict == UNREADABLE else f"is read as {reading.verdict}")
        for reading in opinion.readings
    )
    return one_line(f"{shortened(item)}: {'; '.join(readings)}")


def _refusal(which: str, item: str, opinion: Opinion, *, only: bool = False) -> InvalidValue:
    text = next(
        (reading.text for reading in opinion.readings if reading.verdict == UNREADABLE),
        opinion.reason,
    )
    what = f"{which} of the judge hold no verdict, and these are not recorded"
    if only:
        what = "the only answer of the judge holds no verdict, and is not recorded"
    return InvalidValue(
        f"{what}. A verdict is read from a JSON object with a verdict, from a line such as"
        f" verdict: correct, or from the verdict alone. Of item {shortened(item)} the judge wrote"
        f' "{text}"',
        field="rubric",
    )
