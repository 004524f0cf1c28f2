"""A session as the data set of tasks of Inspect: what it draws is run, and their scores observed.

Inspect asks a `SampleSource` for samples when none is in work, and reports each that is done.
Every sample that is done is observed, in one request, which brings the next draws.
"""

import asyncio
import hashlib
import logging
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio import to_thread
from inspect_ai.dataset import Sample
from inspect_ai.event import ModelEvent, SpanBeginEvent
from inspect_ai.log import EvalSample
from inspect_ai.model import get_model

from celeus.client import calls
from celeus.client.blocking import Session
from celeus.client.label_loop import (
    HEARTBEATS,
    LEASE_SECONDS,
    MOST_HELD,
    NO_TASK,
    NONE_LEFT,
    HeldTurns,
    Turn,
)
from celeus.client.reading import read
from celeus.client.results import Entry, Status
from celeus.client.service import plain
from celeus.errors import InvalidValue, Refusal
from celeus.harnesses.inspect_items import Samples, in_python
from celeus.intake.formats.inspect_logs import loss_of
from celeus.intake.rows import Options, refused

CALLED_OFF = ("CancelledError(", "Cancelled(")
"""Beginnings of the error of a sample that an operator has cancelled."""
GOES_ON = NONE_LEFT | {"active"}
"""States of a session that is worth asking."""
LOOK = 0.1
"""Seconds between two looks at what another task has brought."""
LONGEST_START = 120.0
"""Seconds that the first of two tasks waits for the second to begin."""
LONGEST_WORKER = 128
OF = ": "
"""Stands in the name of a worker before the model whose losses it tells."""
THESE_ANSWERS = (
    "where the model answers by chance (temperature above 0, an agent), the interval is for the"
    " answers of this run, one to each sample, and not for those it would give next"
)
"""Logged before the first sample is run."""
ONE_MODEL = "a session is of one model: open one for each"

_SERVED: ContextVar[HeldTurns] = ContextVar("served")
"""The turns that serve the run under way; not set in a run that is just beginning."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Side:
    """One of the tasks that answer what is drawn: its samples, and how its scores are read.

    ``model`` is its own, None for that of the run.
    """

    name: str
    samples: Samples
    scorer: str
    part: str | None
    options: Options
    model: str | None = None
    queue: list[Sample] = field(default_factory=list)
    served: HeldTurns | None = None
    runner: "asyncio.Task[Any] | None" = None

    def verdict(self, sample: EvalSample) -> float | str | None:
        """Return a sample's loss, or the reason why it has none, or None if it was cancelled."""
        place = f"item {sample.id}"
        if sample.limit is not None and sample.limit.type == "operator":
            return "an operator ended it early"
        score = (sample.scores or {}).get(self.scorer)
        if score is None and sample.error is not None:
            message = sample.error.message
            return None if message.startswith(CALLED_OFF) else plain(message) or "an error"
        if score is None:
            how = "run it with scoring; a scorer that cannot tell returns Score.unscored()"
            raise refused(f"{place} has no score of {self.scorer}: {how}", "score")
        try:
            loss = loss_of(score.model_dump(), self.part, (self.scorer, place, self.options))
        except InvalidValue as error:
            raise in_python(error) from None
        if loss is None:
            return plain(f"{self.scorer} gave no score: {score.reason or 'not a number'}")
        return loss

    def drained(self) -> list[Sample]:
        """Return the queued samples, and empty the queue."""
        waiting, self.queue = self.queue, []
        return waiting


@dataclass(slots=True)
class Drawn:
    """An item that was drawn, by the order of the draws, and what is known of it by side.

    ``name`` is that of its sample in the log, of its own where items are run again.
    ``failed`` is set while a side's sample has ended in an error and the run may be about to end of
    it: the side, and the number of the first draw that was handed out later. Once one of these is
    done the run has gone on.
    """

    turn: Turn
    number: int
    name: str
    verdicts: dict[str, float | str] = field(default_factory=dict)
    failed: tuple[str, int] | None = None
    abandoned: bool = False

    def say(self, sides: int) -> None:
        """Record the losses of the item once all sides have one."""
        if len(self.verdicts) < sides or self.failed is not None:
            return
        reasons = [verdict for verdict in self.verdicts.values() if isinstance(verdict, str)]
        if reasons:
            self.turn.unjudgeable(reasons[0])
        elif sides == 1:
            (loss,) = self.verdicts.values()
            self.turn.observe(loss)
        else:
            self.turn.observe(self.verdicts)


class LiveSession:
    """A session that draws what one task runs, or two tasks that it compares."""

    def __init__(
        self, session: Session, status: Status, sides: Sequence[Side], hold: int, worker: str
    ) -> None:
        self.session = session
        self.sides = sides
        self._opened = status
        self._hold = hold
        self._worker = worker
        self._task = NO_TASK
        if status.success is not None:
            self._task = session.client.run(calls.task_of(session.id))
        self._again = status.repeats or status.success is not None
        self._over_runs = status.target == "runs"
        self._drawn: dict[str, Drawn] = {}
        self._rounds: dict[int, Drawn] = {}
        self._failed: list[Drawn] = []
        self._lock = threading.Lock()
        self._asking = anyio.Lock()
        self._turns = HeldTurns(session.id, worker, hold, lease=LEASE_SECONDS)
        self._begun = False

    @property
    def status(self) -> Status:
        """The session's status as last received."""
        status = self._turns.status
        return read(Status, status) if status else self._opened

    async def next_samples(self, side: Side) -> list[Sample] | None:
        """Return the samples an idle task runs next; None when there are no more."""
        if _SERVED.get(None) is not self._turns:
            await self._join(side)
        self._check_left_out(side)
        self._settle(side, len(self._rounds))
        waited = 0.0
        while True:
            async with self._asking:
                idle = not side.queue and not any(self._working())
                if idle and (self._turns.state in GOES_ON or self._has_unsent):
                    await self._ask()
            if side.queue:
                return side.drained()
            working = any(self._working())
            called_off = any(drawn.abandoned for drawn in self._drawn.values())
            if not working and (self._turns.state not in NONE_LEFT or called_off):
                return None
            rest = LOOK if working else self._turns.rest
            await anyio.sleep(rest)
            waited += rest
            self._check_others(side, waited)

    async def sample_complete(self, side: Side, sample: EvalSample) -> list[Sample] | None:
        """Observe a sample that is done, and return the samples to run next."""
        drawn = self._drawn.get(str(sample.id))
        if drawn is None:
            # The task itself has added it
            return None
        if sample.epoch > 1:
            raise epochs_refused()
        if self._over_runs:
            check_fresh(sample)
        verdict = side.verdict(sample)
        if self._over_runs:
            verdict = _of_failed_run(sample, verdict)
        if verdict is None:
            drawn.abandoned = True
            return side.drained()
        drawn.verdicts[side.name] = verdict
        if sample.error is not None and isinstance(verdict, str) and not self._over_runs:
            drawn.failed = side.name, len(self._rounds)
            self._failed.append(drawn)
            self._turns.size = min(self._turns.size + 1, MOST_HELD)
        self._say(drawn)
        self._settle(side, drawn.number)
        if drawn.turn.runs and drawn.turn.said is None:
            await to_thread.run_sync(self._keep_runs, drawn.turn)
        async with self._asking:
            short = drawn.failed is not None and len(self._turns.held) < self._turns.size
            # What another sample's request has taken along is sent already
            if short or self._has_unsent:
                await self._ask()
        return side.drained()

    async def sample_abandoned(self, sample: Sample) -> None:
        """Leave a sample that an operator has called off to whoever draws it next."""
        drawn = self._drawn.get(str(sample.id))
        if drawn is not None:
            drawn.abandoned = True

    @property
    def _has_unsent(self) -> bool:
        return any(turn.said is not None for turn in self._turns.held)

    def _working(self) -> Iterator[Drawn]:
        """Yield the draws being run: held, and neither judged nor cancelled."""
        for turn in self._turns.held:
            # What an answer under way has just brought, nobody works on
            drawn = self._rounds.get(turn.round)
            if drawn is not None and turn.said is None and not drawn.abandoned:
                yield drawn

    def _settle(self, side: Side, number: int) -> None:
        """Report as unjudgeable what failed before the draw of this number was handed out."""
        for drawn in tuple(self._failed):
            failed_in, later = drawn.failed or (side.name, 0)
            if failed_in == side.name and later <= number:
                drawn.failed = None
                self._failed.remove(drawn)
                self._turns.size = max(self._hold, self._turns.size - 1)
                self._say(drawn)

    def _say(self, drawn: Drawn) -> None:
        """Say of a draw what its sides came to; one of several runs that is open is run again."""
        drawn.say(len(self.sides))
        turn = drawn.turn
        if self._task.tries > 1 and turn.said is not None and not turn.settled(self._task):
            self._turns.beats = 0
            drawn.verdicts.clear()
            self._queue(drawn)

    def _queue(self, drawn: Drawn) -> None:
        """Queue the sample of a draw on every side, by a name of its own if it is run again."""
        turn = drawn.turn
        if self._again:
            self._drawn.pop(drawn.name, None)
            run = f".{turn.runs + 1}" if self._task.tries > 1 else ""
            drawn.name = f"{turn.id}#{turn.round}{run}"
        self._drawn[drawn.name] = self._rounds[turn.round] = drawn
        for side in self.sides:
            sample = side.samples[turn.id][0]
            if self._again:
                sample = sample.model_copy(update={"id": drawn.name}, deep=True)
            side.queue.append(sample)

    async def _ask(self) -> None:
        """Submit the waiting judgements, and queue the new draws on every side."""
        first = not self._drawn
        fresh = await to_thread.run_sync(self._rolled)
        for turn in fresh:
            self._queue(Drawn(turn, len(self._rounds), turn.id))
        if first and fresh:
            # Another run may have begun the session since this one looked
            await to_thread.run_sync(self._check_model, self._turns.worker)

    def _rolled(self) -> list[Turn]:
        overtaken = self._turns.overtaken
        with self._lock:
            fresh = self.session.client.run(self._turns.roll(self.renew))
        if self._turns.overtaken > overtaken == 0:
            _log.warning(
                "somebody else was first to judge samples of this run: they held up the others, or"
                " several processes on one session have the same worker="
            )
        return fresh

    def _keep_runs(self, turn: Turn) -> None:
        with self._lock:
            self.session.client.run(self._turns.keep_runs([turn]))

    def renew(self) -> bool:
        """Renew the leases of the draws held."""
        with self._lock:
            return self.session.client.run(self._turns.keep())

    def beat(self) -> None:
        """Renew them while samples run, but not for ever."""
        with self._lock:
            self.session.client.run(self._turns.beat())

    def serves(self, turns: HeldTurns) -> bool:
        """Return True if a run served from these turns is under way."""
        ended = any(side.runner is not None and side.runner.done() for side in self.sides)
        return turns is self._turns and not ended

    async def _join(self, side: Side) -> None:
        """Begin a run, or run beside the other task that has begun one."""
        if side.runner is not None and not side.runner.done():
            raise refused(ONE_MODEL, "model")
        if not self._begun or side.served is self._turns:
            self._begun = True
            if self._opened.target == "pool":
                _log.warning(THESE_ANSWERS)
            models = [task_side.model or str(get_model()) for task_side in self.sides]
            worker = _named(f"{self._worker}{OF}{' and '.join(models)}")
            self._opened = self.status
            self._turns = HeldTurns(self.session.id, worker, self._hold, lease=LEASE_SECONDS)
            self._asking = anyio.Lock()
            self._drawn, self._rounds, self._failed = {}, {}, []
            for task_side in self.sides:
                task_side.queue.clear()
                task_side.served = task_side.runner = None
            _keep_alive(self, self._turns)
        side.served = self._turns
        _SERVED.set(self._turns)
        side.runner = None
        with suppress(RuntimeError):
            # Where Inspect runs on another event loop it is not known when a run has ended
            side.runner = asyncio.current_task()
        await to_thread.run_sync(self._check_model, self._turns.worker)

    def _check_model(self, worker: str) -> None:
        """Refuse a session that was begun with another model."""
        if self._opened.rounds.drawn == 0 and not self._drawn:
            return
        path = f"{calls.SESSIONS}/{self.session.id}/ledger"
        (first, *_), _ = self.session.client.run(calls.page(Entry, path, {"limit": 1}))
        begun, ours = str(first.detail.get("worker")).partition(OF), worker.partition(OF)
        if begun[1] and begun[2] != ours[2]:
            raise refused(
                f"{self.session.id} was begun with {begun[2]}, and this is {ours[2]}: {ONE_MODEL}",
                "model",
            )

    def _check_left_out(self, side: Side) -> None:
        """Refuse a run that was given samples, and has not run them."""
        for drawn in self._working():
            if side.name not in drawn.verdicts and not any(
                str(queued.id) == drawn.name for queued in side.queue
            ):
                raise refused(
                    f"Inspect left out {drawn.turn.id}, which was drawn: run without --sample-id",
                    "sample_id",
                )

    def _check_others(self, side: Side, waited: float) -> None:
        """Refuse to wait for a task that is not run."""
        for other in self.sides:
            if other is side:
                continue
            if other.served is not self._turns:
                if waited > LONGEST_START:
                    how = "run both at once, with max_tasks=2"
                    raise refused(f"the other task, {other.name}, does not begin: {how}", "task")
            elif other.runner is not None and other.runner.done() and any(self._working()):
                how = "mend it, and run both again"
                raise refused(f"the other task, {other.name}, has ended: {how}", "task")


def _of_failed_run(sample: EvalSample, verdict: float | str | None) -> float | str | None:
    """Return the verdict on a run; of one that failed before it was tried again that it did.

    Another try in its place would be a run that was left out because of how it came out.
    """
    if verdict is None or not sample.error_retries:
        return verdict
    return f"it failed before it was tried again: {plain(sample.error_retries[0].message)}"


def check_fresh(sample: EvalSample) -> None:
    """Refuse a sample whose answers are no fresh runs of chance: from a cache, or of one seed.

    A scorer's model may have a seed: what it says then depends on the answer alone.
    """
    scoring: set[str | None] = set()
    for event in sample.events:
        if isinstance(event, SpanBeginEvent):
            if event.type == "scorers" or event.parent_id in scoring:
                scoring.add(event.id)
            continue
        if not isinstance(event, ModelEvent):
            continue
        seeded = event.config.seed is not None and event.span_id not in scoring
        for stale, cause, how in (
            (event.cache == "read", "cache", "the answer came from a cache: switch it off"),
            (seeded, "seed", "the model has a fixed seed: leave it out"),
        ):
            if stale:
                message = f"item {sample.id} is no fresh run, which the claim is about: {how}"
                raise refused(message, cause)


def epochs_refused() -> InvalidValue:
    """Return the refusal of samples that are run several times."""
    return refused("an item is judged once: run the task with one epoch", "epochs")


def _keep_alive(live: LiveSession, turns: HeldTurns) -> None:
    """Renew what a run holds while its samples take long, as long as there is such a run."""
    lease, known = min(LEASE_SECONDS, live.status.lease_seconds), weakref.ref(live)

    def beat() -> None:
        while True:
            time.sleep(lease / HEARTBEATS)
            served = known()
            if served is None or not served.serves(turns):
                return
            with suppress(Refusal):
                # The run itself meets it with its next request
                served.beat()
            del served

    if lease:
        threading.Thread(target=beat, daemon=True).start()


def _named(worker: str) -> str:
    """A name short enough for a worker; of a longer one the rest by its digest."""
    if len(worker) <= LONGEST_WORKER:
        return worker
    digest = hashlib.sha256(worker.encode()).hexdigest()[:12]
    return f"{worker[: LONGEST_WORKER - len(digest) - 1]}-{digest}"
