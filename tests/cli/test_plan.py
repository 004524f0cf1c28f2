"""`celeus plan`: labels and hours of a session to come, on a real service."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from celeus import Client
from tests.cli.calling import Run
from tests.keys import ADMIN
from tests.servers import Service, running_services


@pytest.fixture
def service(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("CELEUS_KEY", ADMIN)
    environment = {"CELEUS_PLANNING_SECONDS": "10"}
    with running_services(1, database_url, environment=environment) as services:
        yield services[0]


@pytest.mark.timeout(300)
def test_a_file_and_then_its_pool_are_planned(service: Service, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "exam.csv"
    rows = [f"q-{at},{at % 10 / 10}" for at in range(150)]
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
    wanted = ("plan", pool, "--precision", "0.2", "--pace", "36", "--url", service.url)
    told = run(*wanted, "--policy", "sharp")
    assert told.out.startswith("precision 0.2\nsharp: about ")
    assert "hours at 36 s a label, as given" in told.out
    for pace, time in (("36000", r"\d\d+ hours"), ("3600", r"\d\d+ hours"), ("5", r"\d minutes?")):
        paced = run("plan", pool, "--precision", "0.2", "--pace", pace, "--url", service.url).out
        assert re.search(rf"\), {time}$", paced.splitlines()[1]), paced
    found = json.loads(run(*wanted, "--json").out)
    assert found["precision"] == 0.2
    assert [one["policy"] for one in found["policies"]] == ["sharp", "uniform"]
    asked = run("plan", pool, "--at-most", "0.9", "--risk", "0.3", "--url", service.url)
    assert asked.status == 0, asked.err
    assert not asked.out.startswith("precision")
    for wrong, why in (
        (("plan", str(tmp_path / "none.csv"), "--url", service.url), "no file and no pool"),
        (("plan", "pool_" + "0" * 32, "--url", service.url), "pool"),
        (("plan", pool, "--precision", "7", "--url", service.url), "precision"),
    ):
        refused = run(*wrong)
        assert (refused.status, refused.out) == (1, "")
        assert why in refused.err


def test_a_table_of_claims_is_left_to_the_page_and_the_client(service: Service, run: Run) -> None:
    with Client(service.url, ADMIN) as client:
        metrics = {name: {"kind": "zero_one"} for name in ("correct", "polite")}
        pool = client.create_pool("two", [{"id": str(at)} for at in range(40)], metrics=metrics)
    refused = run("plan", pool.id, "--url", service.url)
    assert (refused.status, refused.out) == (1, "")
    assert "plan several metrics" in refused.err


def test_a_client_plans_and_opens_with_what_was_planned(service: Service) -> None:
    rows = [{"id": str(at), "surrogate": at % 10 / 10} for at in range(150)]
    with Client(service.url, ADMIN) as client:
        pool = client.create_pool("exam", rows)
        plan = client.plan(pool, precision=0.2, policies=["sharp", "uniform"])
        sharp, uniform = plan.policies
        assert sharp.expected is not None
        assert sharp.expected in sharp.curve
        assert sharp.expected.labels.low <= sharp.expected.labels.median <= 150
        assert uniform.curve
        assert plan.notes
        assert plan.pace is None
        session = client.open_session(pool, precision=0.2, planned_labels=plan.planned_labels)
        assert session.status().planned_labels == plan.planned_labels
