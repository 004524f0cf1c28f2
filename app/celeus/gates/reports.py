"""Report a gate's result in pipelines: a table in Markdown, JUnit's XML, a GitHub Actions step."""

import os
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

from celeus.client.service import plain
from celeus.errors import InvalidValue
from celeus.gates.questions import Outcome, answered, asked

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&!$])")
_LINK = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Case:
    """A question, and its answer: yes, no, undecided or, where nobody could be asked, error."""

    name: str
    answer: str
    detail: str
    round: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A session's answer, or a line saying why there is none, and the seconds it took."""

    found: Outcome | str
    seconds: float = 0.0

    @property
    def answer(self) -> str:
        """yes, no, undecided or error."""
        return "error" if isinstance(self.found, str) else self.found.answer

    @property
    def line(self) -> str:
        """The result in one line."""
        return self.found if isinstance(self.found, str) else self.found.line()

    @property
    def title(self) -> str:
        """The result in three words."""
        return f"Celeus gate: {self.answer}"

    def cases(self) -> Iterator[Case]:
        """Yield a case for each question."""
        if isinstance(self.found, str):
            yield Case("the session can be asked", "error", self.found)
            return
        claim = self.found.session["claim"]
        group = claim and claim["column"] and f", {claim['column']} {claim['value']}"
        of = f"{claim['metric']}{group or ''}: " if claim else ""
        success = self.found.session.get("success")
        where = "" if success is None else f" where success is {success} runs"
        for answer in self.found.answers:
            # A threshold without a name is one of the mean loss
            risk = "" if "score" in answer or "verdict" in answer else "risk "
            name = f"{of}{risk}{asked(answer)}{where}"
            yield Case(plain(name), answer["answer"], answered(answer), answer["round"])

    def markdown(self) -> str:
        """A heading, the session's sentence, and a row for each question."""
        head = f"### {self.title}\n\n"
        if isinstance(self.found, str):
            return f"{head}{literal(self.found)}\n"
        rows = [
            f"| {literal(case.name)} | {case.answer} | {case.round or '–'} |"
            for case in self.cases()
        ]
        table = "\n".join(["| question | answer | round |", "|---|---|--:|", *rows])
        known = self.found.session
        about = f"`{known['id']}`: {literal(known['state'])}, settings {self.found.settings}."
        return f"{head}{literal(self.found.sentence)}.\n\n{table}\n\n{about}\n"

    def junit(self) -> bytes:
        """A suite with a case for each question; one that is undecided has not passed."""
        cases = list(self.cases())
        where = "celeus" if isinstance(self.found, str) else f"celeus.{self.found.session['id']}"
        seconds = f"{self.seconds:.3f}"
        counts = {
            "tests": len(cases),
            "failures": sum(case.answer in {"no", "undecided"} for case in cases),
            "errors": sum(case.answer == "error" for case in cases),
            "skipped": 0,
        }
        suites = ET.Element("testsuites")
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")
        about = {"name": where, "package": "celeus", "id": "0", "hostname": "localhost"}
        measured = {
            "timestamp": now,
            "time": seconds,
            **{name: str(count) for name, count in counts.items()},
        }
        suite = ET.SubElement(suites, "testsuite", about | measured)
        properties = ET.SubElement(suite, "properties")
        for name, value in self._properties().items():
            ET.SubElement(properties, "property", name=name, value=value)
        for question in cases:
            case = ET.SubElement(
                suite, "testcase", name=question.name, classname=where, time=seconds
            )
            if question.answer != "yes":
                kind = "error" if question.answer == "error" else "failure"
                ET.SubElement(
                    case, kind, type=question.answer, message=question.detail
                ).text = self.line
        ET.SubElement(suite, "system-out").text = self.line
        ET.SubElement(suite, "system-err")
        written: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
        return written

    def values(self) -> dict[str, str]:
        """Answer, state, labels and the interval of the mean loss, by name; empty on errors."""
        if isinstance(self.found, str):
            return {}
        known = self.found.session
        names = ("estimate", "lower", "upper", "labels", "state")
        return {"answer": self.answer, **{name: str(known[name]) for name in names}}

    def _properties(self) -> dict[str, str]:
        return (
            {}
            if isinstance(self.found, str)
            else self.values()
            | {
                "alpha": str(self.found.session["alpha"]),
                "settings": self.found.settings,
            }
        )


def write(path: Path, content: bytes, *, more: bool = False) -> None:
    """The content as a file, or ``more`` of it; raises InvalidValue where that cannot be."""
    try:
        with path.open("ab" if more else "wb") as file:
            file.write(content)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}"
        raise InvalidValue(
            message, field="path", rule="a file in a folder that is there"
        ) from error


def literal(text: str) -> str:
    """A stranger's text, which Markdown is to show as it is."""
    return _LINK.sub(r"\\\g<0>", _MARKUP.sub(r"\\\1", text))


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
        raise InvalidValue(f"--report github is to be {rule}: there is no {name}", field="--report")
    return Path(path)


def _escaped(text: str, letters: str) -> str:
    for letter in letters:
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text
