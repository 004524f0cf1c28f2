"""A GitHub Actions step's report to its workflow: an annotation, outputs and a summary."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from celeus.errors import InvalidValue
from celeus.gates.reports import Report, write

LEVELS = {"yes": "notice", "no": "error", "undecided": "warning", "error": "error"}
"""Level of an annotation by answer."""
OUTPUT, SUMMARY = "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"


def annotation(report: Report) -> str:
    """The command to the runner that shows what came of it, in one line.

    Whatever a name holds, it is no second command: the runner reads one a line, as toolkit's
    `core.error` writes it.
    """
    title, line = _escaped(report.title, "%\r\n:,"), _escaped(report.line, "%\r\n")
    return f"::{LEVELS[report.answer]} title={title}::{line}"


def tell(report: Report) -> None:
    """Write outputs and summary to the files that the step has for them."""
    write(_file(OUTPUT), outputs(report.values()).encode(), more=True)
    write(_file(SUMMARY), report.markdown().encode(), more=True)


def check_step() -> None:
    """Refuse to run outside a step of GitHub Actions."""
    for name in (OUTPUT, SUMMARY):
        _file(name)


def outputs(values: Mapping[str, str]) -> str:
    """The outputs as the runner reads them: no value can end itself and begin another."""
    text = ""
    for name, value in values.items():
        mark = f"celeus_{secrets.token_hex(16)}"
        text += f"{name}<<{mark}\n{value}\n{mark}\n"
    return text


def _file(name: str) -> Path:
    path = os.environ.get(name)
    if not path:
        rule = "run in a step of GitHub Actions"
        raise InvalidValue(f"--github is to be {rule}: there is no {name}", field="--github")
    return Path(path)


def _escaped(text: str, letters: str) -> str:
    for letter in letters:
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text
