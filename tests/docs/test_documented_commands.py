"""The commands in the documentation are run as they stand, against a real server."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.docs.pages import README, ROOT, blocks
from tests.keys import ADMIN, bearer
from tests.servers import Service

BASH = shutil.which("bash") or "/bin/sh"
_MARK = "@@@ block"
# A status is told in one piece, as another request may end at the same time; and once a stream was
# begun beside the others, these wait for its first event
_PRELUDE = """
set -euo pipefail
curl() {
    if [ -n "${!:-}" ]; then until [ -s events.txt ]; do sleep 0.02; done; fi
    local told status=0
    told=$(mktemp -p .)
    command curl -w '%{stderr}HTTP %{http_code}\\n' "$@" 2> "$told" || status=$?
    cat "$told" >&2
    return $status
}
"""


@pytest.fixture
def service(signing: Service, database_url: str) -> Service:
    """The same with nothing in its database."""
    assert database_url
    return signing


@dataclass(frozen=True)
class Walk:
    """What the commands of a page printed, block by block, and the answers it shows."""

    printed: list[str]
    shown: list[Any]
    statuses: list[str]


def walked(page: Path, service: Service, folder: Path) -> Walk:
    """The commands of a page, typed in this folder; each answer shown is one that came."""
    walk = blocks(page, "sh", "json")
    commands = [block.text for block in walk if block.language == "sh"]
    script = _PRELUDE + "".join(
        f"{text}\necho; echo '{_MARK}' | tee /dev/stderr\n" for text in commands
    )
    assert script.count("CELEUS_KEY=ce_…") == 1
    script = script.replace("CELEUS_KEY=ce_…", f"CELEUS_KEY={ADMIN}")
    programs = Path(sys.executable).parent
    done = subprocess.run(
        [BASH, "-c", script.replace("http://127.0.0.1:8000", service.url)],
        cwd=folder,
        env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(_MARK)
    assert len(printed) == len(commands) + 1
    number = -1
    for block in walk:
        if block.language == "sh":
            number += 1
            continue
        answers = _documents(printed[number])
        assert any(_shows(json.loads(block.text), answer) for answer in answers), (
            f"no answer has all members of {block.text}: {answers}"
        )
    shown = [json.loads(block.text) for block in walk if block.language == "json"]
    return Walk(printed, shown, re.findall(r"HTTP (\d+)", done.stderr))


@pytest.mark.timeout(300)
def test_the_walk_of_the_readme_ends_in_a_narrow_interval_that_verifies(
    service: Service, tmp_path: Path
) -> None:
    walk = walked(README, service, tmp_path)
    shown = re.search(r"^    (error rate .+)$", README.read_text(), re.MULTILINE)
    valid = re.search(
        r"^    (holds: valid final certificate of ses_)…$", README.read_text(), re.MULTILINE
    )
    assert shown is not None
    assert valid is not None
    in_process, served = (_sentence(text) for text in walk.printed[:2])
    for estimate, lower, upper, labels in (in_process, served):
        assert lower <= estimate <= upper, "to a tenth of a point each"
        # 18.8 - 8.7 is more than 10.1 by the least digit
        assert round(upper - lower, 1) <= 10.1
        assert labels < 400, "of 2 000"
    assert in_process[3] / 2 <= _sentence(shown[1])[3] <= 2 * in_process[3]
    assert valid[1] in walk.printed[1]


@pytest.mark.skipif(shutil.which("curl") is None, reason="it is typed with curl")
def test_the_requests_with_curl_give_the_answers_they_show(
    service: Service, tmp_path: Path
) -> None:
    walk = walked(ROOT / "docs" / "requests.md", service, tmp_path)
    refused = sum(answer.get("status") == 422 for answer in walk.shown)
    assert walk.statuses.count("422") == refused
    assert set(walk.statuses) <= {"200", "201", "422"}
    assert "304" in "".join(walk.printed)
    assert walk.printed[-2].count("id: ") >= 2, "the stream told nothing"


def test_the_judge_of_the_interface_page_ends_a_session(service: Service) -> None:
    [block] = blocks(ROOT / "docs" / "api.md", "python")
    names: dict[str, Any] = {}
    exec(compile(block.text, "docs/api.md", "exec"), names)  # noqa: S102 -- the page's own text
    api = f"{service.url}/v1"
    items = [
        {"id": str(number), "surrogate": 0.3, "payload": {"loss": number % 3 == 0}}
        for number in range(60)
    ]
    form = {"name": "small", "loss": {"kind": "zero_one"}, "items": items, "sealed": True}
    with httpx.Client(base_url=api, headers=bearer(ADMIN)) as http:
        pool = http.post("/pools", json=form).raise_for_status().json()
        # A seed is secret: at the usual alpha one run in twenty may miss.
        opening = {"pool_id": pool["id"], "precision": 0.2, "alpha": 1e-4}
        session = http.post("/sessions", json=opening).raise_for_status().json()

        key, loss_of = ADMIN, lambda payload: float(payload["loss"])
        names["judge"](api, key, session["id"], "ada", loss_of)

        ended = http.get(f"/sessions/{session['id']}").raise_for_status().json()
    assert ended["state"] in {"target_reached", "exhausted"}
    assert ended["lower"] - 1e-9 <= 20 / 60 <= ended["upper"] + 1e-9


def _documents(text: str) -> list[Any]:
    """The JSON objects a block of commands printed, one behind the other."""
    decoder = json.JSONDecoder()
    found = []
    place = text.find("{")
    while place >= 0:
        value, end = decoder.raw_decode(text, place)
        found.append(value)
        place = text.find("{", end)
    return found


def _shows(shown: object, real: object) -> bool:
    """Whether the real answer has every member shown, words and codes included."""
    if isinstance(shown, dict):
        return isinstance(real, dict) and all(
            name in real and _shows(value, real[name]) for name, value in shown.items()
        )
    if isinstance(shown, list):
        return isinstance(real, list) and (
            not shown or (len(real) > 0 and all(_shows(one, real[0]) for one in shown))
        )
    if isinstance(shown, bool) or shown is None:
        return shown is real
    return isinstance(real, str if isinstance(shown, str) else int | float)


def _sentence(text: str) -> tuple[float, float, float, int]:
    """Estimate, lower and upper end in percent, and the labels of a session's sentence."""
    said = re.search(r"error rate (\S+)\s% \((\S+) to (\S+)\), .* based on (\d+) labels", text)
    assert said is not None, text
    return float(said[1]), float(said[2]), float(said[3]), int(said[4])
