"""What pipelines are told of a gate: by GitHub's files and commands, JUnit's XML, and Markdown."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from celeus.errors import InvalidValue
from celeus.gates.questions import outcome_of, question_of
from celeus.gates.reports import Report
from tests.cli.calling import Answer, celeus
from tests.gates.odd import NOBODY, Odd, document, strangers

CANARY = "ce_canary0123456789"
EVIL = (
    "::error::x\r\n##[add-mask]y\n%0A::set-output name=answer::yes | <img src=x> [a](http://b.c) `"
)
NUMBERS = ("estimate", "lower", "upper", "labels")
DECISION = {"side": "at_most", "threshold": 0.3, "answer": "yes", "round": 12}
OPEN = {"side": "at_least", "threshold": 0.15, "answer": "undecided", "round": None}
ACCURACY = {"name": EVIL, "unit": "share", "estimate": 0.85, "lower": 0.8, "upper": 0.9}
JUNIT = {
    "testsuites": (set(), ["testsuite"]),
    "testsuite": (
        {
            *("name", "package", "id", "hostname", "timestamp", "tests", "failures", "errors"),
            *("skipped", "time"),
        },
        ["properties", "testcase", "system-out", "system-err"],
    ),
    "properties": (set(), ["property"]),
    "property": ({"name", "value"}, []),
    "testcase": ({"name", "classname", "time"}, ["failure", "error"]),
    "failure": ({"type", "message"}, []),
    "error": ({"type", "message"}, []),
    "system-out": (set(), []),
    "system-err": (set(), []),
}
"""Attributes and children of Ant's schema, windyroad/JUnit-Schema, as far as they are written."""


class Step:
    """A step of GitHub Actions, with its files."""

    def __init__(self, folder: Path) -> None:
        self.output, self.summary = folder / "output", folder / "summary.md"
        self.output.write_text("before=1\n")

    def outputs(self) -> dict[str, str]:
        """As the runner reads them: a name with a mark, and its value up to the mark."""
        found: dict[str, str] = {}
        lines = iter(self.output.read_text().splitlines())
        for line in lines:
            name, heredoc, mark = line.partition("<<")
            if not heredoc:
                name, _, found[name] = line.partition("=")
                continue
            value = []
            while (part := next(lines)) != mark:
                value.append(part)
            found[name] = "\n".join(value)
        return found


@pytest.fixture
def step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Step:
    step = Step(tmp_path)
    monkeypatch.setenv("GITHUB_OUTPUT", str(step.output))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step.summary))
    return step


@pytest.fixture
def odd() -> Iterator[str]:
    with strangers() as url:
        yield url


@pytest.fixture
def gate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], odd: str
) -> Callable[..., Answer]:
    """The command, asking a stranger with the canary for a key."""
    monkeypatch.setenv("CELEUS_KEY", CANARY)
    monkeypatch.setenv("CELEUS_URL", odd)
    return lambda *options: celeus(monkeypatch, capsys, "gate", NOBODY, *options)


def checked(file: Path) -> ET.Element:
    """The suite of a file that Ant's schema allows."""
    root = ET.fromstring(file.read_bytes())  # noqa: S314 -- our own
    for element in root.iter():
        attributes, children = JUNIT[element.tag]
        assert set(element.attrib) == attributes
        order = [children.index(child.tag) for child in element]
        assert order == sorted(order)
    (suite,) = root
    cases = suite.findall("testcase")
    assert int(suite.attrib["tests"]) == len(cases)
    for kind in ("failure", "error"):
        assert int(suite.attrib[f"{kind}s"]) == sum(case.find(kind) is not None for case in cases)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
    return suite


@pytest.mark.parametrize(
    ("decisions", "status", "shown"),
    [
        ([DECISION], 0, "notice yes"),
        ([DECISION | {"answer": "no"}, DECISION], 2, "error no"),
        ([DECISION, OPEN], 3, "warning undecided"),
    ],
)
def test_a_step_is_told_the_answer(
    gate: Callable[..., Answer],
    step: Step,
    decisions: list[dict[str, Any]],
    status: int,
    shown: str,
) -> None:
    level, answer = shown.split()
    Odd.replies = [(200, {}, document(decisions=decisions))]
    gated = gate("--report", "github")
    assert (gated.status, gated.err) == (status, "")
    assert gated.out.startswith(f"::{level} title=Celeus gate%3A {answer}::{NOBODY}: ")
    assert gated.out.count("\n") == 1
    assert f"at most 0.3: {decisions[0]['answer']} (round 12)" in gated.out
    values = {"estimate": "0.15", "lower": "0.1", "upper": "0.2", "labels": "40", "state": "active"}
    assert step.outputs() == {"before": "1", "answer": answer, **values}
    summary = step.summary.read_text()
    assert summary.startswith(f"### Celeus gate: {answer}\n\nError rate 15 % (10 to 20), 95 % sure")
    assert f"| risk at most 0.3 | {decisions[0]['answer']} | 12 |\n" in summary
    assert ("| risk at least 0.15 | undecided | – |\n" in summary) == (OPEN in decisions)
    assert f"`{NOBODY}`: active, settings never changed.\n" in summary


@pytest.mark.parametrize("fixed", [True, False])
def test_a_session_that_was_pushed_says_so_wherever_its_answer_is_told(
    gate: Callable[..., Answer], step: Step, tmp_path: Path, *, fixed: bool
) -> None:
    origin = {"kind": "pushed", "at": "2026-11-23T09:00:00.000000Z"}
    session = document(decisions=[DECISION], state="closed", fixed=fixed, origin=origin)
    Odd.replies = [(200, {}, session)]
    file = tmp_path / "gate.xml"
    answer = gate("--report", "github", "--report", file)
    for text in (answer.out, step.summary.read_text(), file.read_text()):
        assert "plan and losses are the word of whoever pushed it" in text
    assert json.loads(gate("--json").out)["origin"] == origin


def test_a_file_has_a_case_for_each_question(gate: Callable[..., Answer], tmp_path: Path) -> None:
    no = DECISION | {"answer": "no", "threshold": 0.05}
    Odd.replies = [(200, {}, document(decisions=[DECISION, no, OPEN], fixed=True))]
    file, page = tmp_path / "gate.xml", tmp_path / "gate.md"
    gated = gate("--report", file, "--report", page)
    assert gated.status == 2
    assert gated.out.startswith(f"{NOBODY}: ")
    suite = checked(file)
    cases = suite.findall("testcase")
    assert {case.attrib["classname"] for case in cases} == {f"celeus.{NOBODY}"}
    failures = [(case.attrib["name"], case.find("failure")) for case in cases]
    found = [
        (name, None if failure is None else failure.attrib["message"]) for name, failure in failures
    ]
    assert found == [
        ("risk at most 0.3", None),
        ("risk at most 0.05", "no (round 12)"),
        ("risk at least 0.15", "undecided"),
    ]
    properties = {
        member.attrib["name"]: member.attrib["value"] for member in suite.iter("property")
    }
    assert properties["labels"] == "40"
    assert properties["settings"] == "fixed"
    assert page.read_text().startswith("### Celeus gate: no\n")


def test_no_name_of_a_session_is_a_command_or_markup(
    gate: Callable[..., Answer], step: Step, tmp_path: Path
) -> None:
    Odd.replies = [(200, {}, document(score=ACCURACY, sentence=f"{EVIL} 85 %."))]
    file = tmp_path / "gate.xml"
    gated = gate("--report", "github", "--report", file, "--score-at-least", 0.7)
    assert gated.status == 0
    # The runner takes a line for a command that begins with `::`, and stops at the first
    (line,) = gated.out.splitlines()
    assert line.startswith("::notice title=Celeus gate%3A yes::ses_")
    assert "%250A::set-output" in line
    assert set(step.outputs()) == {
        "before",
        *["answer", "estimate", "lower", "upper", "labels", "state"],
    }
    summary = step.summary.read_text()
    assert re.search(r"(?<!\\)[<>`\[\]](?!ses_|: active)|(?<!\\)://", summary) is None
    (row,) = [line for line in summary.splitlines() if "at least 0.7" in line]
    assert len(re.findall(r"(?<!\\)\|", row)) == 4
    (case,) = checked(file).findall("testcase")
    assert case.attrib["name"].endswith("<img src=x> [a](http://b.c) ` at least 0.7")


def test_two_systems_are_told_by_name(gate: Callable[..., Answer], step: Step) -> None:
    verdict = {"margin": 0.02, "answer": "equivalent", "round": 9}
    systems = {"a": "old", "b": "a|b\n::error::"}
    Odd.replies = [(200, {}, document(systems=systems, verdict=verdict, decisions=[]))]
    gated = gate("--report", "github", "--compare", "b")
    assert gated.status == 0
    assert (
        "a|b ::error:: at least as good within 2 points: yes, equivalent (round 9)\n" in gated.out
    )
    summary = step.summary.read_text()
    assert "| a\\|b ::error:: at least as good within 2 points | yes | 9 |" in summary


@pytest.mark.parametrize(
    ("options", "reply", "words"),
    [
        (
            (),
            (404, {}, b'{"detail": "There is no\\n::error::session %."}'),
            "There is no ::error::",
        ),
        ((), (429, {}, b'{"detail": "Too many."}'), "Too many; ask again later (429)"),
        ((), (200, {}, document(decisions=[])), "has no questions; ask one with --at-most or"),
        (("--at-most", "nan"), (200, {}, b""), "a finite number"),
    ],
)
def test_what_nobody_can_tell_is_told_as_an_error(
    gate: Callable[..., Answer],
    step: Step,
    options: tuple[str, ...],
    reply: tuple[int, dict[str, str], bytes],
    words: str,
) -> None:
    Odd.replies = [reply]
    file = step.summary.with_name("gate.xml")
    gated = gate("--report", "github", "--report", file, *options)
    assert (gated.status, gated.err) == (1, "")
    assert gated.out.startswith("::error title=Celeus gate%3A error::")
    assert gated.out.count("\n") == 1
    assert words in gated.out
    assert step.outputs() == {"before": "1"}
    assert step.summary.read_text().startswith("### Celeus gate: error\n\n")
    (case,) = checked(file).findall("testcase")
    error = case.find("error")
    assert error is not None
    assert words in error.attrib["message"]


def test_wrong_usage_is_an_annotation_too(gate: Callable[..., Answer], step: Step) -> None:
    gated = gate("--report", "github", "--wait", "soon")
    assert (gated.status, gated.err) == (1, "")
    assert gated.out.startswith("::error title=Celeus gate%3A error::Invalid value for '--wait'")
    assert not step.summary.exists()


def test_what_cannot_be_written_is_known_before_the_wait(
    gate: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    for options, words in (
        (
            ("--report", "github"),
            "--report github is to be run in a step of GitHub Actions: there is no ",
        ),
        (("--report", tmp_path / "no" / "gate.xml"), "must be a file in a folder that is there"),
        (("--report", tmp_path / "no" / "gate.md"), "must be a file in a folder that is there"),
        (("--report", tmp_path / "gate.txt"), "must be github, or a file that ends in .xml or .md"),
    ):
        gated = gate(*options)
        assert (gated.status, gated.out) == (1, "")
        assert words in gated.err
        assert gated.err.count("\n") == 1
    assert Odd.seen == []
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    both = gate("--report", "github", "--json")
    assert (both.status, both.err) == (1, "celeus: give only one of --report github and --json\n")


@pytest.mark.parametrize(
    "reply",
    [
        (200, {}, document(sentence=f"{CANARY} is 85 %.", state=CANARY)),
        (200, {}, document(score=ACCURACY | {"name": CANARY})),
        (200, {}, document(id=CANARY)),
        (
            403,
            {},
            f'{{"detail": "not {CANARY}", "field": "{CANARY}", "rule": "{CANARY}"}}'.encode(),
        ),
        (422, {}, f'{{"detail": "wrong", "rule": "x {CANARY}", "value": "{CANARY}"}}'.encode()),
        (503, {}, CANARY.encode()),
    ],
)
def test_the_key_is_in_no_log_and_no_file_whatever_a_server_answers(
    gate: Callable[..., Answer],
    step: Step,
    tmp_path: Path,
    reply: tuple[int, dict[str, str], bytes],
) -> None:
    Odd.replies = [reply]
    files = ("--report", tmp_path / "gate.xml", "--report", tmp_path / "gate.md")
    for options in (("--report", "github", "--score-at-least", 0.7), ("--score-at-least", 0.7), ()):
        gated = gate(*options, *files)
        assert CANARY not in gated.out + gated.err
    assert gate("--json").err.count(CANARY) == 0
    written = [file.read_text() for file in tmp_path.iterdir()]
    assert len(written) == 4
    assert [text for text in written if CANARY in text] == []
    assert step.output.exists()
    assert {key for _, key in Odd.seen} == {f"Bearer {CANARY}"}


@pytest.mark.parametrize(
    "options",
    [
        (CANARY),
        ("--at-most", CANARY),
        ("--wait", CANARY),
        ("--url", f"http://ann:{CANARY}@127.0.0.1"),
        ("--url", f"http://127.0.0.1/?key={CANARY}"),
        ("--url", f"http://127.0.0.1/#{CANARY}"),
        ("--url", f"ftp://{CANARY}"),
        ("--compare", CANARY),
        ("--metric", "x", "--group", CANARY),
        (CANARY,),
    ],
)
def test_a_key_in_the_wrong_place_is_not_shown(
    gate: Callable[..., Answer], step: Step, tmp_path: Path, options: tuple[str, ...]
) -> None:
    Odd.replies = [(200, {}, document(systems={"a": "x", "b": "y"}))]
    for github in ((), ("--report", "github")):
        gated = gate(*github, *options, "--report", tmp_path / "gate.xml")
        assert gated.status == 1
        assert CANARY not in gated.out + gated.err
    assert [path for path in tmp_path.iterdir() if CANARY in path.read_text()] == []
    assert step.outputs() == {"before": "1"}


SESSION: dict[str, Any] = {
    "id": "ses_1",
    "sentence": "grade 3.42 (3.12 to 3.64)",
    "state": "closed",
    "fixed": True,
    "changes": 0,
    "origin": None,
    "systems": None,
    "verdict": None,
    "scale": {"lower": 1.0, "upper": 5.0},
    "lower": 2.36,
    "upper": 2.88,
}


@pytest.mark.parametrize(
    ("better", "option", "said"),
    [
        ("higher", "--at-most", "risk at most 3: yes"),
        ("lower", "--at-most", "at most 3: yes"),
        ("higher", "--score-at-least", "grade at least 3: yes"),
    ],
)
def test_a_threshold_says_of_what_it_is(better: str, option: str, said: str) -> None:
    """A grade of 3.42 beside "at most 3: yes" would contradict itself."""
    score = {"name": "grade", "better": better, "lower": 3.12, "upper": 3.64}
    question = question_of({option: 3}, None, None)
    line = outcome_of({**SESSION, "score": score}, question).line()
    assert line.endswith(f"; {said}")


@pytest.mark.parametrize(
    ("name", "written", "scale", "way"),
    [
        ("error rate", "80%", (0.0, 1.0), "--at-most 20%"),
        ("error rate", 0.8, (0.0, 1.0), "--at-most 0.2"),
        ("mean loss", 4, (1.0, 5.0), "--at-most 2"),
    ],
)
def test_at_least_is_not_asked_of_a_loss_that_names_no_score(
    name: str, written: str | float, scale: tuple[float, float], way: str
) -> None:
    """An accuracy of at least 80 % would be read as an error rate of at least 0.8."""
    score = {"name": name, "better": "lower", "lower": 0.1, "upper": 0.3}
    ends = {"scale": dict(zip(("lower", "upper"), scale, strict=True))}
    question = question_of({"--score-at-least": written}, None, None)
    with pytest.raises(InvalidValue, match=f"{way}, or name the score") as refusal:
        outcome_of({**SESSION, **ends, "score": score}, question)
    assert f"would be asked of the {name}" in refusal.value.detail


@pytest.mark.parametrize("option", ["--at-most", "--score-at-least"])
def test_a_case_says_which_runs_have_to_succeed(option: str) -> None:
    """A case stands alone among those of other suites: the risk of one run is another number."""
    score = {"name": "accuracy", "better": "higher", "lower": 0.1, "upper": 0.3}
    status = {**SESSION, "score": score, "scale": {"lower": 0.0, "upper": 1.0}, "claim": None}
    question = question_of({option: 0.5}, None, None)
    [case] = Report(outcome_of({**status, "success": "all of 4"}, question)).cases()
    assert case.name.endswith("0.5 where success is all of 4 runs")
    [plain] = Report(outcome_of({**status, "success": None}, question)).cases()
    assert plain.name.endswith("0.5")
