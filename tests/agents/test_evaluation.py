"""The gate of `celeus mcp` for candidates as text, evaluated by a program."""

import json
import resource
import sys
from pathlib import Path

import pytest

import celeus
from celeus.agents.evaluation import Settings, evaluating
from celeus.errors import DiskFull

PROGRAM = """
import json, sys
for line in sys.stdin:
    payload = json.loads(line)["payload"]
    wrong = int(payload["item"] % 10 < len(payload["candidate"]))
    print(json.dumps({"loss": wrong}), flush=True)
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Items, a program that finds short texts better, and an incumbent of five letters."""
    monkeypatch.chdir(tmp_path)
    rows = [json.dumps({"id": f"secret-{number}", "payload": number}) for number in range(100)]
    (tmp_path / "items.jsonl").write_text("\n".join(rows))
    (tmp_path / "evaluate.py").write_text(PROGRAM)
    incumbent = tmp_path / "best.txt"
    incumbent.write_text("plain")
    program = f"{sys.executable} {tmp_path / 'evaluate.py'}"
    return Settings(tmp_path / "items.jsonl", program, incumbent, "10pt", "5%", 60)


def test_an_accepted_text_replaces_the_incumbents_and_is_where_the_next_run_begins(
    settings: Settings,
) -> None:
    with evaluating(settings) as evaluation:
        assert not evaluation.propose("verbose, and long").accepted
        assert settings.incumbent.read_text() == "plain"
        assert evaluation.propose("x").accepted
        assert settings.incumbent.read_text() == "x"
        before = evaluation.budget()
    with evaluating(settings) as evaluation:
        assert evaluation.budget() == before


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_the_next_run_begins_with_the_line_ends_of_an_accepted_text(
    settings: Settings, line_end: str
) -> None:
    with evaluating(settings) as evaluation:
        assert evaluation.propose(f"x{line_end}").accepted
        before = evaluation.budget()
    assert settings.incumbent.read_bytes() == f"x{line_end}".encode()
    with evaluating(settings) as evaluation:
        assert evaluation.budget() == before


def test_a_text_that_no_file_can_hold_is_refused_and_spends_nothing(settings: Settings) -> None:
    with evaluating(settings) as evaluation:
        with pytest.raises(celeus.Refusal, match="a text that UTF-8 can write"):
            evaluation.propose("\ud800")
        assert evaluation.budget().proposals == 0


def test_a_text_accepted_just_before_the_end_is_where_the_next_run_begins(
    settings: Settings,
) -> None:
    with evaluating(settings) as evaluation:
        assert evaluation.propose("x").accepted
        before = evaluation.budget()
    # As if killed before the incumbent was replaced
    settings.incumbent.rename(settings.incumbent.with_name(".best.txt.celeus-new"))
    settings.incumbent.write_text("plain")
    with evaluating(settings) as evaluation:
        assert evaluation.budget() == before
    assert settings.incumbent.read_text() == "x"


@pytest.mark.parametrize(
    "answer", ['{"unjudgeable": str(payload)}', '{"loss": 3.0}', '{"loss": payload}', "payload"]
)
def test_what_is_said_of_an_item_is_for_the_log_and_not_for_whoever_proposes(
    settings: Settings, answer: str, capfd: pytest.CaptureFixture[str]
) -> None:
    program = Path(settings.program.split()[1])
    changed = PROGRAM.replace('{"loss": wrong}', answer)
    program.write_text(
        changed.replace("    wrong", "    print(payload, file=sys.stderr)\n    wrong")
    )
    with evaluating(settings) as evaluation, pytest.raises(celeus.Refusal) as refused:
        evaluation.propose("x")
    assert "the candidate was not tested to the end" in refused.value.line
    assert not [sign for sign in ("secret", "'item'", "3.0") if sign in refused.value.line]
    assert capfd.readouterr().err == ""
    log = Path(".celeus/evaluations.log").read_text()
    assert "{'item': " in log
    assert "Traceback" in log


@pytest.mark.parametrize("path", [".celeus", ".celeus/evaluations.log"])
def test_a_path_that_cannot_be_written_is_refused(settings: Settings, path: str) -> None:
    if path == ".celeus":
        Path(path).write_text("a file")
    else:
        Path(path).mkdir(parents=True)
    with pytest.raises(celeus.Refusal, match=f"{path} cannot be written"), evaluating(settings):
        pass


def test_an_incumbent_that_is_not_there_is_refused(settings: Settings) -> None:
    missing = settings._replace(incumbent=Path("nowhere.txt"))
    with pytest.raises(celeus.Refusal, match="nowhere"), evaluating(missing):
        pass


def test_a_program_that_ended_is_started_anew_for_the_next_proposal(settings: Settings) -> None:
    crashing = "    if payload['candidate'] == 'crash': sys.exit(3)\n    wrong ="
    program = Path(settings.program.split()[1])
    program.write_text(PROGRAM.replace("    wrong =", crashing))
    with evaluating(settings) as evaluation:
        evaluation.propose("verbose, and long")
        with pytest.raises(celeus.Refusal):
            evaluation.propose("crash")
        assert evaluation.propose("x").accepted


def test_a_candidate_under_test_takes_no_name_of_the_users_and_leaves_nothing(
    settings: Settings,
) -> None:
    draft = settings.incumbent.with_name("best.txt.new")
    draft.write_text("mine")
    program = Path(settings.program.split()[1])
    program.write_text(
        PROGRAM.replace("    wrong", "    if len(payload['candidate']) > 8: 1 / 0\n    wrong")
    )
    with evaluating(settings) as evaluation:
        before = {path.name for path in Path().iterdir()}
        assert evaluation.propose("x").accepted
        assert not evaluation.propose("longer").accepted
        with pytest.raises(celeus.Refusal):
            evaluation.propose("longer than eight")
        assert {path.name for path in Path().iterdir()} == before
    assert draft.read_text() == "mine"


def test_a_refusal_of_the_accounts_file_is_told_as_it_is(settings: Settings) -> None:
    with evaluating(settings) as evaluation:
        size = resource.getrlimit(resource.RLIMIT_FSIZE)
        (account,) = Path(".celeus").glob("*.proposals.jsonl")
        resource.setrlimit(resource.RLIMIT_FSIZE, (account.stat().st_size, size[1]))
        try:
            with pytest.raises(DiskFull, match=rf"{account.name} cannot be written"):
                evaluation.propose("x")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, size)
        assert evaluation.propose("x").accepted
