"""`celeus plan`: labels and hours of a session to come, on a real service."""

import json
from pathlib import Path

import pytest

from celeus import Client
from celeus.commands import plan
from tests.cli.calling import Run
from tests.keys import ADMIN
from tests.servers import Service

ROWS = [{"id": f"q-{at}", "surrogate": at % 10 / 10} for at in range(20)]
"""Few: their sessions are short."""


ONLY_SHARP = ("--settings", 'policies=["sharp"]')


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELEUS_KEY", ADMIN)


def test_a_file_and_then_its_pool_are_planned(service: Service, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "exam.csv"
    rows = [f"{row['id']},{row['surrogate']}" for row in ROWS]
    file.write_text("\n".join(["id,surrogate", *rows, ""]))
    made = run("plan", str(file), "--url", service.url)
    assert made.status == 0, made.err
    assert f"{file} is now pool_" in made.err
    precision, sharp, *_ = made.out.splitlines()
    assert precision.startswith("precision ")
    assert ", suggested: " in precision
    assert sharp.startswith("sharp: about ")
    assert "hours at 30 s a label, assumed" in made.out
    assert "uniform: about " in made.out
    assert "A fixed sample that is judged whole" in made.out
    pool = made.err.split()[-1]
    wanted = ("plan", pool, "--precision", "40%", *ONLY_SHARP, "--url", service.url)
    told = run(*wanted, "--pace", "36")
    assert told.out.startswith("precision 0.4\nsharp: about ")
    assert "hours at 36 s a label, as given" in told.out
    assert "uniform" not in told.out
    question = ("--at-most", "90%", "--settings", "risk=0.3", "--settings", 'policies=["uniform"]')
    asked = run("plan", pool, *question, "--url", service.url, "--json")
    assert asked.status == 0, asked.err
    found = json.loads(asked.out)
    assert found["precision"] is None
    assert [policy["policy"] for policy in found["policies"]] == ["uniform"]
    for wrong, why in (
        (("plan", str(tmp_path / "none.csv"), "--url", service.url), "no file and no pool"),
        (("plan", "pool_" + "0" * 32, "--url", service.url), "pool"),
        (("plan", pool, "--precision", "7", "--url", service.url), "did you mean 7 % (0.07)?"),
        (("plan", pool, "--at-most", "30", "--url", service.url), "did you mean 30 % (0.3)?"),
        (("plan", pool, "--alpha", "0.95", "--url", service.url), "did you mean 0.05?"),
        (
            ("plan", pool, "--settings", "risk=x", "--url", service.url),
            "risk must be a finite number",
        ),
    ):
        refused = run(*wrong)
        assert (refused.status, refused.out) == (1, "")
        assert why in refused.err


def test_a_check_of_a_judge_is_planned(service: Service, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    rows = [f"a{at},text {at},{'pass' if at % 3 else 'fail'}" for at in range(40)]
    file.write_text("\n".join(["id,answer,verdict", *rows, ""]))
    asked = ("--verdict", "verdict=pass", "--at-least", "tpr=90%", "--at-least", "tnr=0.8")
    made = run("plan", str(file), *asked, "--settings", "risk=3%", "--url", service.url)
    assert made.status == 0, made.err
    line, hours, note = made.out.splitlines()
    assert line.startswith("check: about ")
    assert line.endswith("of a judge with tpr 0.97, tnr 0.97")
    assert hours == "hours at 30 s a label, assumed"
    assert note.endswith("takes about 1 000.")
    pool = made.err.split()[-1]
    asked = ("--verdict", "group=pass", *asked[2:])
    wider = run("plan", pool, *asked, "--settings", "risk=0.1", "--url", service.url, "--json")
    found = json.loads(wider.out)
    assert found["assumed_risks"] == pytest.approx({"tpr": 0.1, "tnr": 0.1}, abs=0.01)
    kappa = run("plan", pool, *asked[:2], "--at-least", "kappa=0.5", "--url", service.url)
    assert 0.5 < float(kappa.out.partition("a judge with kappa ")[2].split()[0]) < 1.0
    for wrong in (("--at-least", "tpr=90"), ("--pace", "nan", "--at-least", "tpr=0.9"), ()):
        refused = run("plan", str(file), *asked[:2], *wrong, "--url", service.url)
        assert (refused.status, refused.out, refused.err.count("\n")) == (1, "", 1), "and no pool"
    assert "--at-least must be given with --verdict, such as tpr=0.9" in refused.err
    for wrong, why in (
        (("--settings", "risk=40%"), "which no judge does whose true-positive rate is 0.6"),
        (("--verdict", "verdict"), "COLUMN=POSITIVE"),
        (("--at-least", "recall=0.9"), "one of tpr, tnr"),
        (("--at-least", "tpr=0.9"), "each once"),
        (("--at-most", "0.1"), "--at-most must be left out beside --verdict"),
        (("--margin", "0"), "--margin must be left out beside --verdict"),
        (("--at-least", "kappa=90"), "--at-least must be inside the scale, above -1 and below 1"),
        (("--pace", "nan"), "--pace must be a finite number of seconds"),
        (("--pace", "inf"), "--pace must be a finite number of seconds"),
    ):
        refused = run("plan", pool, *asked, *wrong, "--url", service.url)
        assert (refused.status, refused.out) == (1, "")
        assert why in refused.err


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (29.0, "less than a minute"),
        (40.0, "1 minute"),
        (295.0, "5 minutes"),
        (3600.0, "1.0 hours"),
        (35_000.0, "9.7 hours"),
        (360_000.0, "100 hours"),
    ],
)
def test_time_is_told_in_minutes_and_then_in_hours(seconds: float, told: str) -> None:
    assert plan._time(seconds) == told


def test_a_table_of_claims_is_left_to_the_page_and_the_client(service: Service, run: Run) -> None:
    with Client(service.url, ADMIN) as client:
        metrics = {name: {"kind": "zero_one"} for name in ("correct", "polite")}
        pool = client.create_pool("two", [{"id": str(at)} for at in range(40)], metrics=metrics)
    refused = run("plan", pool.id, "--url", service.url)
    assert (refused.status, refused.out) == (1, "")
    assert "plan several metrics" in refused.err


def test_a_client_plans_and_opens_with_what_was_planned(service: Service) -> None:
    with Client(service.url, ADMIN) as client:
        pool = client.create_pool("exam", ROWS)
        planned = client.plan(pool, precision=0.4, policies=["sharp", "uniform"], runs=5)
        sharp, uniform = planned.policies
        assert sharp.expected is not None
        assert sharp.expected in sharp.curve
        assert sharp.expected.labels.low <= sharp.expected.labels.median <= len(ROWS)
        assert uniform.curve
        assert planned.notes
        assert planned.pace is None
        session = client.open_session(pool, precision=0.4, planned_labels=planned.planned_labels)
        assert session.status().planned_labels == planned.planned_labels


def test_the_policy_of_the_file_of_a_session_is_planned(
    service: Service, run: Run, tmp_path: Path
) -> None:
    with Client(service.url, ADMIN) as client:
        pool = client.create_pool("exam", ROWS).id
    file = tmp_path / "claim.toml"
    file.write_text('policy = "uniform"\nprecision = 0.4\n[parameters]\nbeta = 0.4\n')
    told = run("plan", pool, "--settings", file, "--url", service.url, "--json")
    assert [policy["policy"] for policy in json.loads(told.out)["policies"]] == ["uniform"]
    assert "parameters are not planned" in told.err
