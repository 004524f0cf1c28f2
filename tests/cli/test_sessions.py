"""`celeus open`, `sessions`, `status`, `close` and `push`: a session from a file to its end."""

import json
from pathlib import Path

import pytest

import celeus
from celeus import Client
from tests.cli.calling import Run
from tests.keys import ADMIN, key_in
from tests.servers import Service

ANSWERS = "question,answer,rating\n" + "".join(
    f"Question {number}?,Answer {number},{number % 5 + 1}\n" for number in range(30)
)


@pytest.fixture(autouse=True)
def service(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setenv("CELEUS_KEY", ADMIN)
    monkeypatch.setenv("CELEUS_URL", service.url)
    return service


def test_a_file_is_opened_listed_shown_and_closed(
    service: Service, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "answers.csv"
    file.write_text(ANSWERS)
    roles = (
        "--mapping",
        "question=question",
        "--mapping",
        "answer=answer",
        "--mapping=rating=score",
    )
    aims = ("--precision", "40%", "--at-most", "60%", "--name", "Spring")
    given = ("--given", "better=higher", "--given", "scale=1 to 5")
    about = ("--subject", f"m@sha256:{'ab' * 32}")
    opened = run("open", file, *roles, *aims, *given, *about)
    assert opened.status == 0, opened.err
    session = opened.out.split()[0]
    assert opened.out == f"{session}\nlabel: {service.url}/label/{session}\n"
    with Client(service.url, ADMIN) as client:
        assert client.session(session).status().precision == 0.4
        for turn in client.session(session).draws():
            turn.observe(0)
    shown = run("status", session)
    assert shown.status == 0, shown.err
    name, sentence, question, state, *_ = shown.out.splitlines()
    assert name == "Spring"
    assert "valid at every look" in sentence
    assert question.startswith("Is the error rate at most 60 %? Yes")
    assert state.startswith("decided; ")
    closed = run("close", session)
    assert "\nclosed; " in closed.out, closed.err
    document = json.loads(run("close", session, "--json").out)
    assert document["state"] == "closed"
    assert document["subject"] == [{"name": "m", "algorithm": "sha256", "digest": "ab" * 32}]
    again = run("open", document["pool_id"], "--budget", 5)
    listed = run("sessions", "--most", 1)
    assert listed.out.startswith(f"{again.out.split()[0]}  active ")
    assert "--most 2 lists twice as many" in listed.err
    assert session in run("sessions", "--state", "closed", "--json").out


def test_what_a_file_leaves_open_is_asked_with_the_options_that_answer(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "answers.csv"
    file.write_text(ANSWERS)
    for command in ("open", "plan"):
        asking = run(command, file, "--precision", "40%", "--mapping", "rating=score")
        assert (asking.status, asking.out) == (1, "")
        which, higher, *_ = asking.err.splitlines()
        assert which.startswith("Which values of `rating` are better?")
        assert higher.startswith("    --given better=higher: ")
        assert "    --given 'scale=1 to 5': " in asking.err
        assert asking.err.splitlines()[-1].endswith("answer each by one of its options")


def test_a_file_of_pairs_is_opened_once_its_systems_are_named(
    service: Service, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "pairs.jsonl"
    answers = {"a": {"answer": "yes"}, "b": {"answer": "no"}}
    file.write_text("\n".join(json.dumps({"id": f"q{n}", **answers}) for n in range(9)))
    refused = run("open", file, "--settings", "decide.margin=0.02")
    assert refused.status == 1
    assert "a must be left out, unless system_a and system_b name the two" in refused.err
    named = ("--given", "system_a=old", "--given", "system_b=new", "--given", "kind=bounded")
    ends = ("--given", "lower=0", "--given", "upper=4")
    opened = run("open", file, "--settings", "decide.margin=1", *named, *ends)
    assert opened.status == 0, opened.err
    with Client(service.url, ADMIN) as client:
        status = client.session(opened.out.split()[0]).status()
    assert status.raw["systems"]["b"] == "new"
    pool = opened.err.split()[-1]
    assert run("plan", pool, "--given", "kind=bounded").status == 1


def test_what_cannot_be_opened_is_refused_in_a_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    file.write_text(ANSWERS)
    empty = tmp_path / "empty.csv"
    empty.touch()
    nowhere = f"pool_{0:032}"
    for wrong, why in (
        (("open", empty, "--budget", 5), f"{empty} has no items"),
        (("open", tmp_path / "none.csv", "--budget", 5), "no file and no pool"),
        (("open", nowhere, "--budget", 5), "pool"),
        (("open", nowhere), "give --precision, --at-most, --at-least or --budget, or --all"),
        (("open", nowhere, "--budget", 5, "--given", "better=higher"), "left out with a pool"),
        (("open", file, "--budget", 5, "--given", "better"), "NAME=VALUE, each name once"),
        (("open", file, "--budget", 5, "--given", "name=x"), "given must be one of metric, filter"),
        (("open", file, "--precision", "wide"), "--precision must be a finite number"),
        (("status", "ses_1"), "hexadecimal"),
        (("close", f"ses_{0:032}"), "session"),
    ):
        refused = run(*wrong)
        assert (refused.status, refused.out) == (1, ""), wrong
        assert why in refused.err, wrong


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("/dev/zero", "a file of at most 4096 bytes"),
        ("none", "No such file"),
        ("/dev/null", "/dev/null must be a file with a key, and is empty"),
    ],
)
def test_a_key_file_that_holds_no_key_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, file: str, why: str
) -> None:
    monkeypatch.setenv("CELEUS_KEY_FILE", file)
    for command in (("sessions",), ("gate", f"ses_{0:032}")):
        refused = run(*command)
        assert (refused.status, refused.out) == (1, "")
        assert why in refused.err


def test_a_file_whose_session_or_plan_is_refused_leaves_no_pool(
    service: Service, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "refused.csv"
    file.write_text("id,surrogate\n" + "".join(f"q{at},0.5\n" for at in range(30)))
    for wrong in (("open", file, "--precision", "7"), ("plan", file, "--precision", "7")):
        refused = run(*wrong)
        assert (refused.status, refused.out) == (1, "")
        assert " is deleted again" in refused.err
        assert "did you mean 7 % (0.07)?" in refused.err
    with Client(service.url, ADMIN) as client:
        assert "refused" not in {pool.name for pool in client.pools()}


def test_a_run_in_process_is_pushed_and_printed_as_json(
    service: Service, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "run.jsonl"
    items = [{"id": f"item {number}"} for number in range(6)]
    celeus.certify(items, lambda _: 1.0, precision=0.6, file=file)
    answer = run("push", file, "--close", "--json")
    assert answer.status == 0, answer.err
    pushed = json.loads(answer.out)
    assert pushed["state"] == "closed"
    assert run("push", file).out.splitlines()[-1] == f"{service.url}/sessions/{pushed['id']}"


@pytest.mark.parametrize("command", ["open", "plan"])
def test_a_key_that_cannot_delete_is_told_what_was_refused_and_keeps_the_pool(  # noqa: PLR0913 -- fixtures
    service: Service,
    database_url: str,
    run: Run,
    tmp_path: Path,
    *,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    key = tmp_path / "key"
    key.write_text(key_in(database_url, "read", "manage", "label"))
    file = tmp_path / f"kept-{command}.csv"
    file.write_text("id,surrogate\n" + "".join(f"q{at},0.5\n" for at in range(30)))
    monkeypatch.setenv("CELEUS_KEY_FILE", str(key))
    refused = run(command, file, "--precision", "7")
    assert refused.status == 1
    assert "did you mean 7 % (0.07)?" in refused.err.splitlines()[-1]
    assert " stays: " in refused.err
    with Client(service.url, ADMIN) as client:
        assert file.stem in {pool.name for pool in client.pools()}
