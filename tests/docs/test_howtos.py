"""What the guides tell to type and to copy works as it stands."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import httpx
import numpy as np
import pytest

from celeus.judges.rubrics import read_rubric
from tests.docs.pages import ROOT, blocks
from tests.intake.made import as_eval, inspect_json, inspect_sample, lm_eval, losses
from tests.judges.endpoints import KEY, endpoint, item
from tests.keys import ADMIN, bearer
from tests.servers import Service

DOCS = ROOT / "docs"
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
BASH = shutil.which("bash") or "/bin/sh"


def in_bash(script: str, folder: Path, seconds: float = 200) -> subprocess.CompletedProcess[str]:
    """What becomes of a page's commands, typed in a folder where `celeus` is installed."""
    programs = Path(sys.executable).parent
    return subprocess.run(
        [BASH, "-euc", script],
        cwd=folder,
        env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def filled(script: str, *places: tuple[str, str]) -> str:
    """A page's commands with what is real in the place of what it shows."""
    for shown, real in places:
        assert shown in script
        script = script.replace(shown, real)
    return script


SHOWN_ID = "$(cat session)"
TWO_SYSTEMS = """#!/usr/bin/env python3
import json
import sys

for line in sys.stdin:
    item = json.loads(line)
    losses = {side: int(item[side]["answer"] != "0") for side in ("left", "right")}
    print(json.dumps({"losses": losses}), flush=True)
"""


def at_service(script: str, service: Service, *places: tuple[str, str]) -> str:
    """A page's commands at this service; what opens a session keeps its id for those behind."""
    opening = re.compile(r"^celeus open (?:.*\\\n)*.*$", re.MULTILINE)
    kept = opening.sub(lambda found: f"{found[0]} | head -n 1 > session", script)
    where = f"export CELEUS_URL={service.url} CELEUS_KEY={ADMIN}\n"
    return where + filled(kept, *places)


def answers(folder: Path) -> float:
    """Write the page's line for 150 answers; return their mean loss."""
    shown = json.loads(blocks(DOCS / "judges.md", "json")[0].text)
    rng = np.random.default_rng(0)
    lines = []
    for number in range(150):
        surrogate = round(float(rng.random()), 3)
        expected = "Sydney" if rng.random() > surrogate else "Canberra"
        payload = shown["payload"] | {"expected": expected}
        lines.append(shown | {"id": f"q-{number}", "payload": payload, "surrogate": surrogate})
    (folder / "answers.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return float(np.mean([line["payload"]["expected"] == "Canberra" for line in lines]))


def put_program(folder: Path, text: str) -> None:
    (folder / "judge.py").write_text(text)
    (folder / "judge.py").chmod(0o700)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("database_url")
def test_the_program_that_judges_certifies_an_error_rate_that_others_check(
    tmp_path: Path, signing: Service
) -> None:
    wrong = answers(tmp_path)
    put_program(tmp_path, blocks(DOCS / "judges.md", "python")[0].text)
    judging = blocks(DOCS / "judges.md", "sh")[-1].text
    exporting, verifying = (block.text for block in blocks(DOCS / "certificates.md", "sh"))
    script = f"{judging}celeus close ses_…\n{exporting}"
    done = in_bash(at_service(script, signing, ("ses_…", SHOWN_ID)), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "./judge.py is the truth here" in done.stdout
    session = (tmp_path / "session").read_text().strip()
    with httpx.Client(base_url=f"{signing.url}/v1", headers=bearer(ADMIN)) as http:
        status = http.get(f"/sessions/{session}").raise_for_status().json()
    # A seed is secret: at the usual alpha one run in twenty may miss
    assert status["lower"] - 0.1 <= wrong <= status["upper"] + 0.1
    checked = in_bash(verifying, tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.endswith(f"holds: valid final certificate of {session}\n")


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("database_url")
def test_the_command_that_checks_a_certificate_refuses_a_forged_one(
    tmp_path: Path, signing: Service
) -> None:
    answers(tmp_path)
    exporting, verifying = (block.text for block in blocks(DOCS / "certificates.md", "sh"))
    opening = "celeus open answers.jsonl --budget 9\nceleus close ses_…\n"
    done = in_bash(at_service(opening + exporting, signing, ("ses_…", SHOWN_ID)), tmp_path)
    assert done.returncode == 0, done.stderr
    with ZipFile(tmp_path / "bundle") as bundle:
        members = {name: bundle.read(name) for name in bundle.namelist()}
    changed = members["certificate.json"].replace(b'"labels":0', b'"labels":9', 1)
    assert changed != members["certificate.json"]
    with ZipFile(tmp_path / "bundle", "w") as bundle:
        for name, content in (members | {"certificate.json": changed}).items():
            bundle.writestr(name, content)
    forged = in_bash(verifying, tmp_path)
    assert forged.returncode == 1
    assert "celeus: does not hold: " in forged.stderr


def test_the_agents_of_the_page_are_served_by_the_command() -> None:
    agents = json.loads(blocks(DOCS / "judges.md", "json")[1].text)
    assert agents["mcpServers"]["celeus"]["args"] == ["mcp"]


@pytest.mark.timeout(300)
def test_the_commands_that_certify_which_of_two_systems_is_better_run(
    tmp_path: Path, service: Service
) -> None:
    shown = json.loads(blocks(DOCS / "compare.md", "json")[0].text)
    rows = [
        shown | {"id": f"q-{number}", "a": {"answer": f"{number % 3}"}, "b": {"answer": "0"}}
        for number in range(200)
    ]
    (tmp_path / "pair.jsonl").write_text("\n".join(map(json.dumps, rows)))
    put_program(tmp_path, TWO_SYSTEMS)
    judging = blocks(DOCS / "judges.md", "sh")[-1].text.splitlines()[1]
    script = (
        blocks(DOCS / "compare.md", "sh")[1].text + judging + "\nceleus gate ses_… --compare new"
    )
    done = in_bash(at_service(script, service, ("ses_…", SHOWN_ID)), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "new at least as good within 2 points: yes" in done.stdout


@pytest.mark.timeout(300)
def test_the_commands_that_try_a_surrogate_on_old_labels_run(tmp_path: Path) -> None:
    _, block = blocks(DOCS / "sessions.md", "sh")
    done = in_bash(block.text, tmp_path, 280)
    assert done.returncode == 0, done.stderr
    assert "uniform" in done.stdout


def test_the_command_that_compares_finished_logs_runs(tmp_path: Path) -> None:
    for name, wrong in (("old", 3), ("new", 5)):
        samples = [inspect_sample(at, "C" if at % wrong else "I") for at in range(200)]
        as_eval(inspect_json(samples), tmp_path / f"{name}.eval")
    done = in_bash(blocks(DOCS / "compare.md", "sh")[0].text, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "may b replace a, worse by at most 0.02: yes" in done.stdout
    assert "only b: 3, 6, 9, 12, 18" in done.stdout


@pytest.mark.timeout(300)
def test_the_commands_that_gate_a_new_version_run(tmp_path: Path, service: Service) -> None:
    script = "\n".join(block.text for block in blocks(DOCS / "compare.md", "sh")[2:])
    rows = [{"id": f"q-{at}", "prediction": at} for at in range(60)]
    fresh = [{"id": row["id"], "b": {"prediction": 3}} for row in rows]
    (tmp_path / "v2.ndjson").write_text("\n".join(map(json.dumps, fresh)))
    exam = {"name": "release 1", "loss": {"kind": "zero_one"}, "items": rows, "sealed": True}
    with httpx.Client(base_url=f"{service.url}/v1", headers=bearer(ADMIN)) as http:
        pool = http.post("/pools", json=exam).json()["id"]
        session = http.post("/sessions", json={"pool_id": pool}).json()["id"]
        http.post(f"/sessions/{session}/next", json={"worker": "ada"})
        told = {"round": 1, "label": 3, "worker": "ada"}
        http.post(f"/sessions/{session}/observe", json=told).raise_for_status()
        http.patch(f"/sessions/{session}", json={"state": "closed"}).raise_for_status()
    script = filled(
        script,
        ("ce_…", ADMIN),
        ("ses_…", session),
        ("http://127.0.0.1:8000", service.url),
        ("--wait 3600", "--wait 0"),
    )
    done = in_bash(script, tmp_path)
    assert done.returncode == 3, done.stderr
    assert "v2 at least as good within" in done.stdout


@pytest.mark.timeout(300)
def test_the_programs_of_the_python_client_run(tmp_path: Path, service: Service) -> None:
    script = tmp_path / "client.py"
    programs = blocks(DOCS / "python.md", "python")[-4:]
    script.write_text("\n".join(block.text for block in programs))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        env=os.environ | {"CELEUS_URL": service.url, "CELEUS_KEY": ADMIN},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert len(programs) == 4
    assert told[0].startswith("ses_")
    assert "error rate" in told[0]
    assert "422 invalid_value precision" in done.stdout


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_the_commands_that_have_people_check_a_judge_run(
    tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = DOCS / "judges.md"
    rubric, pairs = blocks(page, "toml")
    for name, block in (("rubric.toml", rubric), ("pairs.toml", pairs)):
        (tmp_path / name).write_text(block.text)
    assert read_rubric(tmp_path / "pairs.toml").disagreement == "tie"
    items = [json.dumps(item(number)) for number in range(50)]
    (tmp_path / "answers.jsonl").write_text("\n".join(items))
    guessing, simulating, judging, *_ = (block.text for block in blocks(page, "sh"))
    opening = blocks(DOCS / "sessions.md", "sh")[0].text
    script = f"{guessing}\n{simulating}\n{opening}\n{judging}"
    with endpoint(busy=0.1) as at:
        script = filled(
            script,
            ("ce_…", ADMIN),
            ("ses_…", "$(cat session)"),
            ("http://127.0.0.1:8000", service.url),
            ("precision=0.1).id)'", "precision=0.1).id)' | tee session"),
        )
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", at.url)
        done = in_bash(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "on 50 items, 50 soft" in done.stdout
    assert "gpt-4.1-mini is the truth here" in done.stdout
    labels = re.findall(r"labels, median[^\d]*(\d+) ", done.stdout)
    told = re.search(r"takes (\d+) labels with .*?, (\d+) with .*? (\d+) without", page.read_text())
    assert told is not None
    assert labels == [*told.groups()]


def test_the_command_that_checks_a_judge_runs(tmp_path: Path) -> None:
    checking = blocks(DOCS / "judges.md", "sh")[-2].text.strip()
    verdicts = ["pass"] * 99 + ["fail"]
    rows = [f"a{at},{at}?,yes,{verdicts[at % 100]}" for at in range(200)]
    (tmp_path / "answers.csv").write_text("\n".join(["id,question,answer,verdict", *rows]))
    # Whoever says that all are good finds no item for the true-negative rate
    done = in_bash(f"yes y | {checking}", tmp_path)
    assert done.returncode == 3, done.stderr
    assert "true-positive rate" in done.stdout
    assert "At least 0.9: yes." in done.stdout


def written_logs(folder: Path) -> None:
    """The logs of six models that the page reads."""
    names = ("tiny", "small", "medium", "large", "huge", "new")
    for name, lost in zip(names, losses(2000, len(names)).T, strict=True):
        answers = [f"wrong {at % 3}" if one else "right" for at, one in enumerate(lost)]
        place, scores = folder / f"org__{name}", [1.0 - one for one in lost]
        lm_eval(place, f"org/{name}", scores, task="exam", answers=answers)


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_the_commands_that_make_a_pool_of_logs_run_and_print_what_is_shown(
    tmp_path: Path, service: Service
) -> None:
    page = DOCS / "lm-eval.md"
    written_logs(tmp_path / "results")
    commands = [block.text for block in blocks(page, "sh")]
    script = "\n".join(text for text in commands if "celeus run " not in text)
    script = filled(script, ("ce_…", ADMIN), ("http://127.0.0.1:8000", service.url))
    done = in_bash(script, tmp_path)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    printed = re.findall(r"^    (.*)$", FENCED.sub("", text), re.MULTILINE)
    assert len(printed) == 13
    assert [line for line in printed if line not in done.stdout] == []
    with httpx.Client(base_url=f"{service.url}/v1", headers=bearer(ADMIN)) as http:
        pools = http.get("/pools").raise_for_status().json()["data"]
    known = {pool["name"]: pool["known"] and pool["known"]["items"] for pool in pools}
    assert known == {"exam": None, "pair": 1469}
    assert {pool["items"] for pool in pools} == {2000}
