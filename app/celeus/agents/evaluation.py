"""The gate that `celeus mcp` offers to an agent: items and an evaluation that it never sees."""

import os
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from celeus.errors import Busy, InvalidValue, Unavailable
from celeus.judges.cases import Case
from celeus.judges.programs import Program
from celeus.judges.verdicts import Verdicts
from celeus.runs.certify import session_folder
from celeus.runs.ledger_file import unwritten
from celeus.runs.proposals import Budget, Item, Proposal, Proposals

VERDICTS = "evaluations.jsonl"
ERRORS = "evaluations.log"
"""File with what the program wrote to its standard error, and why a test had no end."""


class Settings(NamedTuple):
    """The settings of the gate, as options of the command."""

    items: Path
    program: str
    incumbent: Path
    margin: str
    alpha: str
    budget: int | None = None
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Candidates as text, of which the file ``incumbent`` holds the best so far."""

    gate: Proposals
    incumbent: Path
    log: IO[bytes]
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def propose(self, candidate: str) -> Proposal:
        """Test a candidate; one that is accepted replaces the text of the incumbent's file.

        While it is tested it is beside that file, as `.NAME.celeus-new`, where the next run finds
        it if the process is killed between the answer and the replacement.
        """
        try:
            text = candidate.encode()
        except UnicodeEncodeError as error:
            rule = "a text that UTF-8 can write"
            message = f"the candidate must be {rule}: {error.reason}"
            raise InvalidValue(message, field="candidate", rule=rule) from None
        written = _written(self.incumbent)
        with self._lock:
            try:
                # On the disk before the account says that it was accepted
                _write(written, text)
                proposal = self._tested(candidate)
            except Exception:
                written.unlink(missing_ok=True)
                raise
            if proposal.accepted:
                written.replace(self.incumbent)
            else:
                written.unlink(missing_ok=True)
        return proposal

    def _tested(self, candidate: str) -> Proposal:
        """Return the answer of the gate; what an error says of an item is for the log alone."""
        try:
            return self.gate.propose(candidate)
        except (Busy, Unavailable):
            # Of the account's file: they name no item
            raise
        except Exception:  # noqa: BLE001 -- whatever it is, it may name an item
            self.log.write(traceback.format_exc().encode(errors="backslashreplace"))
            self.log.flush()
            rule = "an evaluation that gives a loss for every item; its log is on the server"
            message = f"the candidate was not tested to the end: expected {rule}"
            raise InvalidValue(message, field="program", rule=rule) from None

    def budget(self) -> Budget:
        """Return what is left of alpha."""
        return self.gate.budget()


class _ProgramLoss:
    """The judge of a gate: what a program says of an item and a candidate."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.fingerprint = program.fingerprint

    def __call__(self, item: Item, candidate: object) -> float:
        loss = self._program(Case(item.id, {"item": item.payload, "candidate": candidate})).loss
        if loss is None:
            rule = 'a loss for every item, as {"loss": 1}'
            raise InvalidValue(f"the program must give {rule}", field="program", rule=rule)
        return loss


@contextmanager
def evaluating(settings: Settings) -> Iterator[Evaluation]:
    """Open the gate of these settings.

    The program is one of `celeus judge --program`: it is sent `{"id": …, "payload": {"item": …,
    "candidate": …}}`, and says `{"loss": 0}`.
    """
    incumbent = _text_of(settings.incumbent)
    folder = session_folder()
    with (
        _appended(folder / ERRORS) as log,
        Verdicts(folder / VERDICTS) as verdicts,
        Program(settings.program, verdicts, log) as program,
    ):

        def gate_of(incumbent: str) -> Proposals:
            return Proposals(
                os.fspath(settings.items),
                _ProgramLoss(program),
                incumbent=incumbent,
                margin=settings.margin,
                alpha=settings.alpha,
                budget=settings.budget,
                file=settings.file,
            )

        try:
            gate = gate_of(incumbent)
        except InvalidValue as refusal:
            written = _written(settings.incumbent)
            if refusal.field != "incumbent" or not written.exists():
                raise
            # Killed between the account's answer and the file of the incumbent
            gate = gate_of(_text_of(written))
            written.replace(settings.incumbent)
        with gate:
            yield Evaluation(gate, settings.incumbent, log)


def _written(incumbent: Path) -> Path:
    """Return the path of the candidate that is tested."""
    return incumbent.with_name(f".{incumbent.name}.celeus-new")


def _appended(path: Path) -> IO[bytes]:
    try:
        return path.open("ab")
    except OSError as error:
        raise unwritten(path, error) from error


def _write(path: Path, text: bytes) -> None:
    try:
        with path.open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise unwritten(path, error) from error


def _text_of(path: Path) -> str:
    """Return a file's text with its line ends as they are."""
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path} cannot be read: {error}"
        raise InvalidValue(message, field="incumbent", rule="a file with a text") from error
