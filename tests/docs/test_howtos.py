"""What the guides tell to type and to copy works as it stands."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

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
POOLS = re.compile(r'\{"pool":(?=\{)')
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


@pytest.mark.timeout(300)
def test_the_program_that_lets_a_model_judge_certifies_its_score(
    tmp_path: Path, service: Service
) -> None:
    line, program, agents = blocks(DOCS / "judges.md", "json", "python")
    assert json.loads(agents.text)["mcpServers"]["celeus"]["args"] == ["mcp"]
    shown = json.loads(line.text)
    rng = np.random.default_rng(0)
    lines = []
    for number in range(150):
        surrogate = round(float(rng.random()), 3)
        right = rng.random() > surrogate
        payload = dict.fromkeys(shown["payload"], "Sydney") | {
            "expected": "Sydney" if right else "Canberra"
        }
        lines.append(shown | {"id": f"q-{number}", "payload": payload, "surrogate": surrogate})
    wrong = np.mean([one["payload"]["expected"] == "Canberra" for one in lines])
    items = tmp_path / "answers.jsonl"
    items.write_text("\n".join(map(json.dumps, lines)))
    script = tmp_path / "judge.py"
    script.write_text(program.text)
    names = os.environ | {"CELEUS_URL": service.url, "CELEUS_KEY": ADMIN}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), str(items)],
        env=names,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    with httpx.Client(base_url=f"{service.url}/v1", headers=bearer(ADMIN)) as http:
        page = http.get(f"/sessions/{told['id']}/report").raise_for_status().text
    assert told["state"] in {"target_reached", "exhausted"}
    # A seed is secret: at the usual alpha one run in twenty may miss
    assert told["lower"] - 0.1 <= wrong <= told["upper"] + 0.1
    assert "sure that the error rate on these 150 items" in page


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
    script = "\n".join(block.text for block in blocks(DOCS / "compare.md", "sh")[1:])
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
    guessing, simulating, judging, _ = (block.text for block in blocks(page, "sh"))
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
    checking = blocks(DOCS / "judges.md", "sh")[-1].text.strip()
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
    script += (
        'curl -sS --data-binary @pair.ndjson -H "Content-Type: application/x-ndjson"'
        ' -H "Authorization: Bearer $CELEUS_KEY"'
        ' "$CELEUS_URL/v1/pool-files?name=pair&kind=zero_one'
        '&system_a=huge&system_b=new&normalisation=exact"\n'
    )
    done = in_bash(script, tmp_path)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    printed = re.findall(r"^    (.*)$", FENCED.sub("", text), re.MULTILINE)
    assert len(printed) == 13
    assert [line for line in printed if line not in done.stdout] == []
    pools = [json.JSONDecoder().raw_decode(part)[0] for part in POOLS.split(done.stdout)[1:]]
    known = [one["known"] and one["known"]["items"] for one in pools]
    assert ([one["items"] for one in pools], known) == ([2000, 2000], [None, 1469])
