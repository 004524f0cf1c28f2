"""Run a module in a child process that is bounded in time, memory and what it answers.

Job and answers travel as frames, JSON values and arrays of numbers: neither side ever reads
anything that could be executed. What a hostile input makes of its child is no more than a refusal.

    parent   for frame in answers("celeus.some.worker", job, bounds, files): ...
             frames, failure = await gather(…), in `gathering`
    child    if __name__ == "__main__": serve(work)
"""

import json
import logging
import math
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from struct import Struct
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from celeus.errors import (
    InvalidValue,
    NeedsAnswer,
    PoolTooLarge,
    ProcessEnded,
    Refusal,
    UploadTooLarge,
    VerificationTooCostly,
)
from celeus.subprocesses import end_with_stdin, environment

Arrays = dict[str, NDArray[Any]]
Files = Sequence[IO[bytes]]
Reason = Literal["time", "processor time", "memory", "answer", "status"]

MOST_LOGGED_BYTES = 1 << 16
"""Most bytes logged of a child's standard error; the rest is read and dropped."""
NICENESS = 10
"""Judges who wait come first: of a busy processor a child gets a tenth of the service's share."""
EXHAUSTED = 3
"""Exit status of a child that finds no more memory."""
_SIZES = Struct("<QQ")
_NUMBERS = frozenset({"|b1", "|u1", "<i4", "<i8", "<f8"})
_REFUSALS = {
    kind.code: kind
    for kind in (InvalidValue, NeedsAnswer, PoolTooLarge, UploadTooLarge, VerificationTooCostly)
}
_logger = logging.getLogger(__name__)
_MEMBERS = ("detail", "field", "rule", "value")
_ONE_THREAD = {
    # Arrow's other allocators, and each thread of others, reserve more memory than they use.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a child process: wall time, processor time, memory, and bytes of answers.

    ``memory`` counts beside what the child has once its libraries are loaded. A single frame has
    ``frame`` bytes at most, all of them ``answer``. Processor time is whole seconds, rounded up.
    """

    seconds: float
    processor_seconds: float
    memory: int = 4 << 30
    frame: int = 8 << 20
    answer: int = 64 << 20


@dataclass(frozen=True, slots=True)
class Frame:
    """A message: values that JSON has, and arrays of numbers by name."""

    values: dict[str, Any]
    arrays: Arrays = field(default_factory=dict)


class WorkerFailed(Exception):
    """A child ended before its work did; ``reason`` names the bound it met.

    The reason is ``answer`` where it sent what is no frame or too much, and ``status`` where it
    failed by itself: an error of ours.
    """

    def __init__(self, reason: Reason, status: int | None) -> None:
        """Note the child's exit status, too: negative is the signal that ended it."""
        super().__init__(f"a child process ended by its {reason} (exit status {status})")
        self.reason = reason
        self.status = status

    @property
    def refusal(self) -> ProcessEnded:
        """The refusal a caller gets if no limit was met; the child's own words are in the log."""
        _logger.error("%s", self)
        return ProcessEnded(f"The request's work was not done: {self}.")


def answers(
    module: str, job: Frame, bounds: Bounds, files: Files = ()
) -> Generator[Frame, None, None]:
    """Each frame that the child answers, as it comes; the child ends with the generator.

    ``files`` are open in the child. Raises the child's own refusal, and `WorkerFailed`.
    """
    child = Child(module, bounds, files)
    with closing(child.answers(lambda: job)) as frames:
        yield from frames


class Child:
    """The parent's end of a child process."""

    def __init__(self, module: str, bounds: Bounds, files: Files) -> None:
        numbers = [file.fileno() for file in files]
        self._bounds = bounds
        with _bounded_log() as log:
            self._process = subprocess.Popen(  # noqa: S603 - a module of ours
                [sys.executable, "-P", "-m", module, json.dumps([asdict(bounds), numbers])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment() | _ONE_THREAD,
                cwd="/",
                pass_fds=numbers,
                # A Ctrl-C is for the parent, which then ends this process
                start_new_session=True,
            )
        self._late = False
        self._clock = threading.Timer(bounds.seconds, self._expire)
        self._clock.daemon = True
        self._clock.start()

    def answers(self, job: Callable[[], Frame]) -> Generator[Frame, None, None]:
        """Give the child its job; each answer. Ends the child."""
        with self._process as process:
            try:
                if process.stdin is None or process.stdout is None:
                    return
                # A child that has ended is met when its answer is read. Its stdin stays open: it
                # ends when that is closed, by whatever ends this process.
                try:
                    write(process.stdin, job())
                except BrokenPipeError:
                    with suppress(BrokenPipeError):
                        process.stdin.close()
                yield from self._read(process.stdout)
                self._end()
            except EOFError:
                # It ended in the middle of a frame: its status says why
                self._end()
            except ValueError as error:
                raise WorkerFailed("answer", None) from error
            finally:
                self._clock.cancel()
                self.kill()
        if process.returncode != 0:
            raise WorkerFailed(self._reason(process.returncode), process.returncode)

    def answer(
        self, job: Callable[[], Frame], reading: Future[tuple[list[Frame], WorkerFailed | None]]
    ) -> None:
        """Set every answer, and the failure after them."""
        frames: list[Frame] = []
        failed = None
        try:
            frames.extend(self.answers(job))
        except WorkerFailed as failure:
            failed = failure
        except BaseException as error:  # noqa: BLE001 - raised where the answers are awaited
            reading.set_exception(error)
            return
        reading.set_result((frames, failed))

    def kill(self) -> None:
        """End the child and all that it started; nothing once its status was read."""
        # Without a look at the status: that would let go of the number all of them go by
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _end(self) -> None:
        """Wait for the child's end, and end what it started."""
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
            self.kill()
        self._process.wait()

    def _expire(self) -> None:
        self._late = True
        self.kill()

    def _read(self, source: IO[bytes]) -> Iterator[Frame]:
        left = self._bounds.answer
        while (sizes := source.read(_SIZES.size)) != b"":
            frame, size = read(source, sizes, min(left, self._bounds.frame))
            left -= size
            if "refusal" in frame.values:
                raise _refusal(frame.values["refusal"])
            yield frame

    def _reason(self, status: int) -> Reason:
        if self._late:
            return "time"
        if status == -signal.SIGXCPU:
            return "processor time"
        # A child that is killed from outside is so for its memory, most likely
        return "memory" if status in {-signal.SIGKILL, EXHAUSTED} else "status"


@contextmanager
def _bounded_log() -> Iterator[int]:
    """The writing end of a pipe to this process's log, which takes MOST_LOGGED_BYTES of it."""
    source, sink = os.pipe()
    threading.Thread(target=_log, args=(source,), daemon=True).start()
    try:
        yield sink
    finally:
        os.close(sink)


def _log(source: int) -> None:
    left = MOST_LOGGED_BYTES
    with os.fdopen(source, "rb", buffering=0) as pipe:
        while part := pipe.read(1 << 16):
            with suppress(OSError):
                os.write(2, part[:left])
            left = max(0, left - len(part))


def write(sink: IO[bytes], frame: Frame) -> None:
    """Write one frame."""
    layout = [(name, values.dtype.str, values.shape) for name, values in frame.arrays.items()]
    head = json.dumps([frame.values, layout]).encode()
    sink.write(
        _SIZES.pack(len(head), sum(values.nbytes for values in frame.arrays.values())) + head
    )
    for values in frame.arrays.values():
        sink.write(values.tobytes())
    sink.flush()


def read(source: IO[bytes], sizes: bytes, limit: int) -> tuple[Frame, int]:
    """The frame behind its ``sizes``, and how many bytes it has, ``limit`` at most.

    Raises EOFError for half a frame and ValueError for what is none.
    """
    if len(sizes) != _SIZES.size:
        raise EOFError
    lengths = _SIZES.unpack(sizes)
    if sum(lengths) > limit:
        message = f"a frame of {sum(lengths)} bytes, not {limit}"
        raise ValueError(message)
    head, body = (source.read(length) for length in lengths)
    if (len(head), len(body)) != lengths:
        raise EOFError
    try:
        values, layout = json.loads(head)
        return Frame(dict(values), _arrays(layout, body)), sum(lengths)
    except (TypeError, OverflowError, RecursionError) as error:
        raise ValueError(*error.args) from error


def _arrays(layout: Iterable[tuple[str, str, list[int]]], body: bytes) -> Arrays:
    arrays: Arrays = {}
    start = 0
    for name, code, shape in layout:
        if code not in _NUMBERS or min(shape, default=0) < 0:
            message = f"an array of {code} of shape {shape}"
            raise ValueError(message)
        count = math.prod(shape)
        arrays[name] = np.frombuffer(body, code, count, start).reshape(shape)
        start += arrays[name].nbytes
    return arrays


def serve(work: Callable[[Frame, Files], Iterator[Frame]]) -> None:
    """Be the child: keep to the bounds, take the job, send every frame that ``work`` yields."""
    bounds, numbers = json.loads(sys.argv[1])
    end_with_stdin()
    _keep_to(Bounds(**bounds))
    files = [os.fdopen(number, "rb") for number in numbers]
    with os.fdopen(os.dup(1), "wb") as sink:
        # Whatever a library prints is no answer
        os.dup2(2, 1)
        try:
            source = sys.stdin.buffer
            job, _ = read(source, source.read(_SIZES.size), sys.maxsize)
            for frame in work(job, files):
                write(sink, frame)
        except tuple(_REFUSALS.values()) as refusal:
            members = {name: getattr(refusal, name) for name in _MEMBERS}
            if isinstance(refusal, NeedsAnswer):
                members["more"] = refusal.more
            write(sink, Frame({"refusal": members | {"code": refusal.code}}))
        except EOFError:
            # The parent has left before it gave the job
            sys.exit(1)
        except MemoryError:
            # Nothing that needs memory, such as ending in good order
            os._exit(EXHAUSTED)
    # All is answered: how the libraries and their threads would end is nobody's concern
    os._exit(0)


def _keep_to(bounds: Bounds) -> None:
    """Take no more than this beside what the libraries have."""
    os.nice(NICENESS)
    # Where the kernel groups processes by session, the group's is what counts: we lead ours
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(NICENESS), encoding="ascii")
    usage = resource.getrusage(resource.RUSAGE_SELF)
    seconds = math.ceil(usage.ru_utime + usage.ru_stime + bounds.processor_seconds)
    _limit(resource.RLIMIT_CPU, seconds, seconds + 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    except FileNotFoundError:
        # Elsewhere than on Linux memory is not bounded.
        return
    most = int(pages) * resource.getpagesize() + bounds.memory
    _limit(resource.RLIMIT_AS, most, most)


def _limit(what: int, soft: int, hard: int) -> None:
    """Set a limit of this process; a lower hard limit, which only root may raise, stands."""
    _, given = resource.getrlimit(what)
    if given != resource.RLIM_INFINITY:
        soft, hard = min(soft, given), min(hard, given)
    resource.setrlimit(what, (soft, hard))


def _refusal(members: object) -> Refusal:
    """The refusal a child sent; ValueError for what is none."""
    if not isinstance(members, dict) or members.get("code") not in _REFUSALS:
        message = "a refusal nobody knows"
        raise ValueError(message)
    detail, place, rule, value = (members.get(name) for name in _MEMBERS)
    more = members.get("more")
    if isinstance(more, dict):
        return NeedsAnswer(str(detail), field=str(place), **more)
    if not all(isinstance(word, str) for word in (detail, place, rule)):
        message = "a refusal without detail, field or rule"
        raise ValueError(message)
    return _REFUSALS[members["code"]](str(detail), field=place, rule=rule, value=value)
