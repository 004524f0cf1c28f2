"""The gate that `celeus mcp` offers to an agent: items and an evaluation that it never sees."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from celeus.errors import InvalidValue
from celeus.judges.cases import Case
from celeus.judges.programs import Program
from celeus.judges.verdicts import Verdicts
from celeus.runs.certify import FOLDER
from celeus.runs.proposals import Budget, Item, Proposal, Proposals

VERDICTS = FOLDER / "evaluations.jsonl"


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

    def propose(self, candidate: str) -> Proposal:
        """Test a candidate; one that is accepted replaces the text of the incumbent's file."""
        proposal = self.gate.propose(candidate)
        if proposal.accepted:
            written = self.incumbent.with_name(f"{self.incumbent.name}.new")
            written.write_text(candidate, "utf-8")
            written.replace(self.incumbent)
        return proposal

    def budget(self) -> Budget:
        """Return what is left of alpha."""
        return self.gate.budget()


@contextmanager
def evaluating(settings: Settings) -> Iterator[Evaluation]:
    """Open the gate of these settings.

    The program is one of `celeus judge --program`: it is sent `{"id": …, "payload": {"item": …,
    "candidate": …}}`, and says `{"loss": 0}`.
    """
    try:
        incumbent = settings.incumbent.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{settings.incumbent} cannot be read: {error}"
        raise InvalidValue(message, field="incumbent", rule="a file with a text") from error
    FOLDER.mkdir(exist_ok=True)
    with Verdicts(VERDICTS) as verdicts, Program(settings.program, verdicts) as program:

        def loss(item: Item, candidate: object) -> float:
            payload = {"item": item.payload, "candidate": candidate}
            opinion = program(Case(item.id, payload))
            if opinion.loss is None:
                rule = 'a loss for every item, as {"loss": 1}'
                # What it says of an item is not for whoever proposes
                raise InvalidValue(f"the program must give {rule}", field="program", rule=rule)
            return opinion.loss

        with Proposals(
            os.fspath(settings.items),
            loss,
            incumbent=incumbent,
            margin=settings.margin,
            alpha=settings.alpha,
            budget=settings.budget,
            file=settings.file,
        ) as gate:
            yield Evaluation(gate, settings.incumbent)
