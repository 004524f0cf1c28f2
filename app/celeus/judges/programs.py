"""Any executable as a judge: a line of JSON in, a line of JSON out.

It is sent `{"id": …, "payload": …}`, of two systems with `left` and `right`, of several with
`answers`, each `{"answer": …, "payload": …}`. It says `{"loss": 0}`, `{"losses": {"left": 0,
"right": 1}}`, `{"losses": [0, 1, 0]}`, `{"preference": "left"}` or `{"unjudgeable": "why"}`.
"""

import hashlib
import json
import os
import select
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Self

from celeus.client.fingerprint import Fingerprint, fingerprint
from celeus.errors import InvalidValue
from celeus.judges.cases import Case, Opinion
from celeus.judges.reading import Reading
from celeus.judges.verdicts import Verdicts, key_of
from celeus.shorten import printable, shortened
from celeus.strict_json import json_of

PREFERENCES = {"left": -1.0, "tie": 0.0, "both_bad": 0.0, "right": 1.0}
JUDGEMENTS = ("loss", "losses", "preference", "unjudgeable")
STOP_SECONDS = 5.0
MOST_LETTERS = 500
READ_BYTES = 1 << 16


class Program:
    """A judge: processes of one command, as many as judge at once; threads may share it.

    What they write to their standard error goes to ``log``; default: the standard error of this
    process.
    """

    def __init__(self, command: str, verdicts: Verdicts, log: IO[bytes] | None = None) -> None:
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise InvalidValue(f"--program cannot be read: {error}", field="program") from None
        if not self._command:
            raise InvalidValue("--program names no program", field="program")
        self.fingerprint = _fingerprint(self._command)
        self._verdicts = verdicts
        self._log = log
        self._lock = threading.Lock()
        self._idle: list[subprocess.Popen[bytes]] = []
        self._all: list[subprocess.Popen[bytes]] = []
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            idle, self._ended = list(self._idle), True
        for process in self._all:
            if process not in idle:
                # Nobody waits for its answer; the thread that does closes its pipes
                process.kill()
        for process in idle:
            _pipe(process.stdin).close()
        for process in self._all:
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
            if process.poll() is None:
                process.kill()
                process.wait()
        for process in idle:
            _pipe(process.stdout).close()

    def __call__(self, case: Case) -> Opinion:
        """Judge a case; refuses an answer of the program that is no judgement of it.

        A verdict is kept and given again, of a case with a ``run`` for that run alone.
        """
        request = _request_of(case)
        key = key_of("program", self.fingerprint.code, request, *case.run)
        kept = self._verdicts.get(key)
        if kept is None:
            line = self._answer(json.dumps(request, ensure_ascii=False))
            # Read before it is kept: rubbish would be rubbish for ever
            answer = _document(self._name, line)
            _opinion(self._name, answer, case)
            kept = self._verdicts.keep(key, answer)
        text = json.dumps(kept, ensure_ascii=False)
        judgement = ", ".join(
            f"{name} {value}" for name, value in kept.items() if name in JUDGEMENTS
        )
        return replace(_opinion(self._name, kept, case), readings=(Reading(judgement, text=text),))

    @property
    def _name(self) -> str:
        return self._command[0]

    def _answer(self, line: str) -> str:
        with self._process() as process:
            answer = unasked = b""
            with suppress(OSError):
                answers = _pipe(process.stdout).fileno()
                if _is_readable(answers):
                    # A line that waits would answer the item that it was not written for
                    unasked = os.read(answers, READ_BYTES)
                else:
                    sent = _pipe(process.stdin)
                    sent.write(line.encode(errors="backslashreplace") + b"\n")
                    sent.flush()
                    answer, unasked = _line(answers)
            if answer.endswith(b"\n") and not unasked:
                return answer.decode(errors="backslashreplace")
            rule = "write one line for each line it reads"
            if unasked:
                self._close(process)
                said = shortened(unasked.decode(errors="backslashreplace").strip())
                message = f"{self._name} wrote {said} without being asked: it has to {rule}"
                raise InvalidValue(message, field="program")
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
            self._close(process)
            raise InvalidValue(
                f"{self._name} ended with status {process.poll()} and without an answer: it has to"
                f" {rule}, and go on until there are no more",
                field="program",
            )

    @contextmanager
    def _process(self) -> Iterator[subprocess.Popen[bytes]]:
        """Lend a process of the command to one caller at a time; after an error it is let go."""
        with self._lock:
            process = self._idle.pop() if self._idle else self._started()
        yield process
        with self._lock:
            if not self._ended:
                self._idle.append(process)
                return
        # Its answer came when no more were asked for
        self._close(process)

    @staticmethod
    def _close(process: subprocess.Popen[bytes]) -> None:
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                _pipe(pipe).close()

    def _started(self) -> subprocess.Popen[bytes]:
        try:
            process = subprocess.Popen(  # noqa: S603 -- the program the user names
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
            )
        except OSError as error:
            raise InvalidValue(
                f"{self._name} cannot be started: {error.strerror}", field="program"
            ) from error
        self._all.append(process)
        return process


def _fingerprint(command: list[str]) -> Fingerprint:
    """Return the fingerprint of a command and of the files that it names."""
    words: list[object] = []
    for word in command:
        file = Path((None if words else shutil.which(word)) or word)
        words.append(word)
        # A pipe or device may have no end; a word that is no file may be too long for a name
        with suppress(OSError):
            if file.is_file():
                with file.open("rb") as content:
                    words.append(hashlib.file_digest(content, "sha256").hexdigest())
    return replace(fingerprint(words), unread=(f"what {command[0]} loads",))


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise RuntimeError("a process of a judge has pipes")
    return pipe


def _is_readable(descriptor: int) -> bool:
    """Return whether something can be read from a pipe at once, or its end."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(0))


def _line(descriptor: int) -> tuple[bytes, bytes]:
    """Return the next line of a pipe, without its end at the pipe's, and what came with it."""
    found = bytearray()
    while part := os.read(descriptor, READ_BYTES):
        found += part
        if b"\n" in part:
            break
    line, end, more = found.partition(b"\n")
    return bytes(line + end), bytes(more)


def _request_of(case: Case) -> dict[str, Any]:
    shown = [{"answer": answer.answer, "payload": answer.payload} for answer in case.answers]
    request = {"id": case.id, "payload": case.payload}
    if len(shown) == 2:
        return request | {"left": shown[0], "right": shown[1]}
    return request | ({"answers": shown} if shown else {})


def _document(name: str, line: str) -> dict[str, Any]:
    try:
        document = json_of(line)
    except (ValueError, RecursionError, InvalidValue):
        document = None
    if isinstance(document, bool):
        raise _rubbish(name, document)
    if not isinstance(document, dict):
        raise _rubbish(name, line.strip())
    return document


def _opinion(name: str, answer: Mapping[str, Any], case: Case) -> Opinion:
    reason = printable(str(answer.get("reason", "")))[:MOST_LETTERS]
    if sum(name in answer for name in JUDGEMENTS) != 1:
        raise _rubbish(name, answer)
    match answer:
        case {"unjudgeable": str(why)} if why.strip():
            return Opinion(reason=printable(why)[:MOST_LETTERS])
        case {"loss": loss} if _is_number(loss) and not case.answers:
            return Opinion(loss=float(loss), guesses=(float(loss),), soft=(False,), reason=reason)
        case {"losses": {"left": left, "right": right}} if len(case.answers) == 2:
            losses = [left, right]
        case {"losses": [*losses]} if len(losses) == len(case.answers):
            pass
        case {"preference": str(side)} if side in PREFERENCES and len(case.answers) == 2:
            guess = (PREFERENCES[side],)
            return Opinion(preference=side, guesses=guess, soft=(False,), reason=reason)
        case _:
            raise _rubbish(name, answer)
    if not losses or not all(map(_is_number, losses)):
        raise _rubbish(name, answer)
    known = tuple(float(loss) for loss in losses)
    return Opinion(losses=known, guesses=known, soft=(False,) * len(known), reason=reason)


def _is_number(value: object) -> bool:
    # A whole number may be too large for any float, which comparing it does not need
    return type(value) in (int, float) and abs(value) <= sys.float_info.max  # type: ignore[arg-type]


def _rubbish(name: str, answer: object) -> InvalidValue:
    rule = 'write a line such as {"loss": 0} or {"unjudgeable": "why"}'
    loss = answer.get("loss") if isinstance(answer, Mapping) else answer
    doubt = " (a bool says not whether it is right or wrong)" if isinstance(loss, bool) else ""
    detail = (
        f"{name} says {shortened(answer)}, which is no judgement of this item{doubt}: it has to"
        f" {rule}"
    )
    return InvalidValue(detail, field="program")
