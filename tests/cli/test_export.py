"""`celeus export`: what a session found, as files for other tools."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from httpx import AsyncClient

from tests.cli.calling import Run
from tests.factories import drawn, judged_all, known_pool, labelled, observed, opened, sealed
from tests.keys import ADMIN, bearer
from tests.servers import Service, running_services
from tests.tabled import sheet

SOURCE = ("--model", "org/model", "--organization", "Lab", "--relationship", "third_party")
RECORD = ("--format", "every-eval-ever", *SOURCE)


@pytest.fixture
def service(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setenv("CELEUS_KEY", ADMIN)
    return service


async def a_session(service: Service, labels: int) -> str:
    async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
        named = {"name": "accuracy", "better": "higher"}
        pool = await known_pool(client, 120, score=named)
        session = await opened(client, pool, precision=0.2)
        await labelled(client, session, pool, labels)
        return session


def test_a_record_has_the_interval_and_what_it_rests_on(
    service: Service, run: Run, tmp_path: Path
) -> None:
    session = asyncio.run(a_session(service, 30))
    out = tmp_path / "record.json"
    answer = run("export", session, *RECORD, "--out", out, "--url", service.url)
    assert (answer.status, answer.out, answer.err) == (0, "", "")
    record = json.loads(out.read_text())
    # The members that the schema requires, and no other at the top
    assert {*record} == {
        *("schema_version", "evaluation_id", "evaluation_timestamp", "retrieved_timestamp"),
        *("source_metadata", "eval_library", "model_info", "evaluation_results"),
    }
    assert record["model_info"] == {"name": "org/model", "id": "org/model"}
    assert record["source_metadata"]["evaluator_relationship"] == "third_party"
    assert record["eval_library"]["name"] == "celeus"
    (result,) = record["evaluation_results"]
    assert result["metric_config"]["lower_is_better"] is False
    assert (result["metric_config"]["min_score"], result["metric_config"]["max_score"]) == (0, 1)
    details = result["score_details"]
    interval = details["uncertainty"]["confidence_interval"]
    assert 0 < interval["lower"] < details["score"] < interval["upper"] < 1
    assert interval["confidence_level"] == 0.95
    assert details["uncertainty"]["num_samples"] == 30
    assert details["details"]["sentence"].startswith("accuracy ")


async def several_runs(service: Service) -> str:
    """A session by draws of up to three runs: one that nobody could judge, then one label."""
    asked = {"target": "runs", "repeats": True, "success": "all of 3", "precision": 0.4}
    async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
        session = await opened(client, await known_pool(client, 4), **asked)
        for said in ({"unjudgeable": "crashed", "runs": 1}, {"loss": 1, "runs": 2}):
            [draw] = (await drawn(client, session, 1))["draws"]
            assert (await observed(client, session, draw["round"], **said)).status_code == 200
        return session


def test_a_record_says_of_which_runs_its_score_is(service: Service, run: Run) -> None:
    session = asyncio.run(several_runs(service))
    (result,) = json.loads(run("export", session, *RECORD, "--url", service.url).out)[
        "evaluation_results"
    ]
    assert result["metric_config"]["metric_name"] == "error rate where success is all of 3 runs"
    details = result["source_data"]["additional_details"]
    facts = {"target": "runs", "repeats": "true", "success": "all of 3", "runs": "2"}
    assert details == facts | {"items": "4"}
    assert result["score_details"]["uncertainty"]["num_samples"] == 1


async def a_table(service: Service) -> str:
    async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
        pool = await sheet(client)
        session = await opened(client, pool, groups=["topic"])
        await judged_all(client, session, pool.said, ahead=1, most=6)
        return session


def test_a_result_for_each_claim_that_has_a_label(service: Service, run: Run) -> None:
    session = asyncio.run(a_table(service))
    answer = run("export", session, *RECORD, "--url", service.url)
    assert answer.err == ""
    results = json.loads(answer.out)["evaluation_results"]
    names = [result["evaluation_name"] for result in results]
    assert names[:2] == ["summaries, faithful", "summaries, stars"]
    assert {"summaries, stars, topic law", "summaries, stars, topic art"} < {*names[2:]}
    assert results[0]["metric_config"]["metric_name"] == "faithfulness"
    assert results[1]["metric_config"]["max_score"] == 4
    assert len({result["evaluation_result_id"] for result in results}) == len(results)


def test_judgements_are_lines_and_a_certificate_needs_a_key(service: Service, run: Run) -> None:
    session = asyncio.run(a_session(service, 5))
    where = ("export", session, "--url", service.url, "--format")
    labels = [json.loads(line) for line in run(*where, "labels").out.splitlines()]
    assert [label["round"] for label in labels] == [1, 2, 3, 4, 5]
    answer = run(*where, "certificate")
    assert (answer.status, answer.out) == (1, "")
    assert "no key to sign certificates with" in answer.err


STEERING = "item \x9b2J\x7f\u202e"


async def a_label_of_a_strangers_item(service: Service) -> str:
    async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
        session = await opened(client, await sealed(client, [{"id": STEERING}]))
        draw = (await drawn(client, session))["draws"][0]
        await observed(client, session, draw["round"], loss=1)
        return session


def test_what_a_terminal_shows_of_labels_does_not_steer_it(service: Service, run: Run) -> None:
    session = asyncio.run(a_label_of_a_strangers_item(service))
    words = ("export", session, "--url", service.url, "--format", "labels")
    assert STEERING in run(*words).out
    ours, terminal = os.openpty()
    with os.fdopen(ours, "rb") as screen, os.fdopen(terminal, "wb") as output:
        subprocess.run([sys.executable, "-m", "celeus.cli", *words], stdout=output, check=True)
        shown = screen.readline().decode()
    assert r"item \x9b2J\x7f\u202e" in shown


def test_what_no_session_knows_has_to_be_said(service: Service, run: Run) -> None:
    session = asyncio.run(a_session(service, 0))
    where = ("export", session, "--url", service.url)
    for words, why in (
        (("--format", "every-eval-ever"), "needs --model and --organization and --relationship"),
        (RECORD, "rests on no label yet: expected a session with a label"),
    ):
        answer = run(*where, *words)
        assert (answer.status, answer.out) == (1, "")
        assert why in answer.err


def test_a_bundle_is_verified_alone_and_a_certificate_with_its_columns(
    run: Run, monkeypatch: pytest.MonkeyPatch, database_url: str, tmp_path: Path
) -> None:
    monkeypatch.setenv("CELEUS_KEY", ADMIN)
    key = tmp_path / "signing.pem"
    assert run("admin", "signing-key", key).status == 0
    named = {"CELEUS_SIGNING_KEY_FILE": str(key)}
    with running_services(1, database_url, environment=named) as (service,):
        session = asyncio.run(a_session(service, 5))
        assert run("close", session, "--url", service.url).status == 0
        where = ("export", session, "--url", service.url, "--format")
        for form in ("bundle", "certificate", "columns"):
            answer = run(*where, form, "--out", tmp_path / form)
            assert (answer.status, answer.out, answer.err) == (0, "", "")
    for words in (("bundle",), ("certificate", "--pool", tmp_path / "columns")):
        answer = run("verify", tmp_path / words[0], *words[1:])
        assert (answer.status, answer.err) == (0, "")
        assert answer.out.splitlines()[-1] == f"holds: valid final certificate of {session}"


@pytest.mark.parametrize("form", ["bundle", "columns"])
def test_a_terminal_is_spared_what_is_no_text(form: str) -> None:
    words = ("export", "ses_" + "0" * 32, "--format", form)
    ours, terminal = os.openpty()
    with os.fdopen(ours, "rb"), os.fdopen(terminal, "wb") as output:
        command = [sys.executable, "-m", "celeus.cli", *words]
        ended = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 1
    assert (
        ended.stderr.decode()
        == f"celeus: {form} is no text for a terminal: give --out, or a pipe\n"
    )
