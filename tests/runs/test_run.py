"""A session in a file draws, judges and certifies as one of the service does."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import celeus
from celeus.core.canonical import canonical_json
from celeus.core.certificate.pool_checks import Evidence
from celeus.core.certificate.verify import verify
from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest
from celeus.core.pools.losses import LossScale
from celeus.core.runs.run_file import PoolForm
from celeus.core.session.outcome import Judgement
from celeus.errors import Busy, InvalidValue, LedgerBroken, ObservationConflict, SessionClosed
from celeus.runs.fair_lock import FairLock
from celeus.runs.run import Run
from tests.faults.disks import small_disk

ROOT = Path(__file__).parents[2]
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
FORM = PoolForm("exam", LossScale.of("zero_one", None, None))
ASKED = SessionRequest(Claim(precision=0.2))
ITEMS = 300


def world(items: int = ITEMS) -> tuple[list[dict[str, Any]], list[int]]:
    """Items with an informative surrogate, and their losses."""
    rng = np.random.default_rng(0)
    surrogate = rng.random(items)
    losses = [int(loss) for loss in rng.random(items) < surrogate]
    rows = [
        {"id": f"item-{i}", "surrogate": float(surrogate[i]), "payload": {"number": i}}
        for i in range(items)
    ]
    return rows, losses


ROWS, LOSSES = world()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """A session in a file."""
    with Run.open(tmp_path / "exam.celeus", FORM, ROWS, ASKED) as session:
        yield session


def judged(session: Run, most: int = ITEMS) -> dict[str, Any]:
    """Judge up to so many rounds; the last answer."""
    answer = session.next("ada", 1)
    for _ in range(most):
        if not answer["draws"]:
            break
        draw = answer["draws"][0]
        told = Judgement(draw["round"], float(LOSSES[draw["item"].index]))
        answer = session.observe("ada", [told], 1)
    return answer


def evidence(session: Run) -> Evidence:
    """Its pool as somebody else has it."""
    pool = session.upload.pool
    return Evidence(pool.columns, pool.groups, pool.items_digest, pool.reasons, pool.named)


def test_a_session_stops_and_its_certificate_holds(run: Run) -> None:
    last = judged(run)
    assert last["state"] == "target_reached"
    assert last["session"]["width"] <= 0.2
    assert last["session"]["rounds"]["in_interval"] < ITEMS
    run.close()
    lines = [json.dumps({"id": row["id"], "payload": row["payload"]}).encode() for row in ROWS]
    report = verify(run.certificate(KEY), evidence(run), items=lines)
    assert report.valid, report.to_dict()
    with pytest.raises(SessionClosed):
        run.amend(Judgement(1, 1.0 - LOSSES[run._state.item(1)]), "ada", "misread")


def test_open_draws_are_counted_at_their_worst_where_judgements_wait(run: Run) -> None:
    [first] = run.next("slow", 1)["draws"]
    answer = run.next("ada", 1)
    for _ in range(8):
        [draw] = answer["draws"]
        told = Judgement(draw["round"], float(LOSSES[draw["item"].index]))
        answer = run.observe("ada", [told], 1)
        assert "provisional" not in answer["session"]
    status = run.status()
    assert status == run.status()
    found = status["provisional"]
    assert (found["judged"], found["open"]) == (8, 1)
    assert status["lower"] <= found["lower"] < found["upper"] <= status["upper"]
    run.observe("slow", [Judgement(first["round"], unjudgeable="torn")], 0)
    after = run.status()
    assert (after["lower"], after["upper"]) == (found["lower"], found["upper"])
    assert "provisional" not in after


def test_a_session_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "exam.celeus"
    with Run.open(path, FORM, ROWS, ASKED) as first:
        judged(first, 20)
        first.amend(Judgement(3, 1.0 - LOSSES[first._state.item(3)]), "ada", "misread")
        stood, held = first.status(), first.next("ada", 1)["draws"]
    with Run.resume(path) as again:
        assert again.status() == stood
        assert again.next("bob", 1)["draws"] == held
        judged(again)
        again.close()
    with Run.open(path, FORM, ROWS, ASKED) as closed:
        assert closed.status()["state"] == "closed"
        assert verify(closed.certificate(KEY), evidence(closed)).valid


def test_a_line_that_was_never_finished_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "exam.celeus"
    with Run.open(path, FORM, ROWS, ASKED) as first:
        judged(first, 5)
        stood = first.status()
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"at":"2026')
    with Run.resume(path) as again:
        assert again.status() == stood
    assert path.read_bytes() == whole


@pytest.mark.parametrize("lines", [1, 100, ITEMS])
def test_a_session_whose_items_were_never_all_written_begins_anew(
    tmp_path: Path, lines: int
) -> None:
    path = tmp_path / "exam.celeus"
    Run.open(path, FORM, ROWS, ASKED).close_file()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]))
    with Run.open(path, FORM, ROWS, ASKED) as session:
        assert judged(session)["state"] == "target_reached"


def test_who_is_killed_loses_no_judgement_that_was_acknowledged(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from tests.runs.test_run import ASKED, FORM, LOSSES, ROWS, Judgement, Run
run = Run.open(Path(sys.argv[1]), FORM, ROWS, ASKED)
answer = run.next("ada", 1)
while answer["draws"]:
    draw = answer["draws"][0]
    told = Judgement(draw["round"], float(LOSSES[draw["item"].index]))
    answer = run.observe("ada", [told], 1)
    print(draw["round"], flush=True)
"""
    path, seen = tmp_path / "exam.celeus", 0
    # Where a process finds this file is not left to the folder that the run was started in
    own = os.environ | {"PYTHONPATH": str(ROOT)}
    for count in (9, 1):
        command = [sys.executable, "-c", program, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own) as child:
            assert child.stdout is not None
            for _ in range(count):
                seen = int(child.stdout.readline())
            os.kill(child.pid, signal.SIGKILL)
            seen = max([seen, *map(int, child.stdout.read().split())])
        with Run.resume(path) as run:
            assert run.status()["rounds"]["judged"] >= seen
    with Run.resume(path) as run:
        judged(run)
        run.close()
        assert verify(run.certificate(KEY), evidence(run)).valid


def test_two_processes_do_not_write_to_one_file(run: Run) -> None:
    program = """
import sys
from pathlib import Path
from celeus.errors import Busy
from celeus.runs.run import Run
try:
    Run.resume(Path(sys.argv[1]))
except Busy as busy:
    print(busy)
"""
    command = [sys.executable, "-c", program, str(run.file.path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "in use by another process" in said


def test_other_items_and_other_settings_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "exam.celeus"
    Run.open(path, FORM, ROWS, ASKED).close_file()
    with pytest.raises(InvalidValue, match="other items"):
        Run.open(path, FORM, ROWS[1:], ASKED)
    with pytest.raises(InvalidValue, match="other settings"):
        Run.open(path, FORM, ROWS, SessionRequest(Claim(precision=0.1)))
    Run.open(path, FORM, ROWS, ASKED).close_file()


@pytest.mark.parametrize(
    "content",
    [
        *(b"my notes", b"a\nb\n", b'{"format": "other"}\n', b"\x00\x01"),
        *(b'{"created_at":"2026"}', b'{"created_at":"2026","format":"other"}'),
    ],
)
def test_a_file_of_something_else_stays_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(InvalidValue, match="is no session's file"):
        Run.open(path, FORM, ROWS, ASKED)
    assert path.read_bytes() == content


@pytest.mark.parametrize("size", [0, 9, 15, 24, 60])
def test_a_header_that_was_not_written_whole_is_written_anew(tmp_path: Path, size: int) -> None:
    path = tmp_path / "exam.celeus"
    Run.open(path, FORM, ROWS, ASKED).close_file()
    path.write_bytes(path.read_bytes()[:size])
    Run.open(path, FORM, ROWS, ASKED).close_file()


def test_a_fork_writes_nothing(run: Run) -> None:
    before = run.file.path.read_bytes()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            judged(run, 1)
        except Busy:
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert run.file.path.read_bytes() == before


def test_a_device_is_no_file() -> None:
    with pytest.raises(InvalidValue, match="/dev/null is no file"):
        Run.open(Path("/dev/null"), FORM, ROWS, ASKED)


def test_a_changed_record_is_found(tmp_path: Path) -> None:
    path = tmp_path / "exam.celeus"
    with Run.open(path, FORM, ROWS, ASKED) as session:
        judged(session, 5)
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[ITEMS + 4]
    path.write_bytes(b"".join(lines))
    with pytest.raises(LedgerBroken, match="was changed"):
        Run.resume(path)


HEADERS: dict[str, dict[str, Any]] = {
    "seed": {"seed": "00" * 32},
    "no seed": {"seed": "?"},
    "no session": {"session": None},
    "no plan": {"plan": {}},
    "no count": {"items": "400"},
    "too many items": {"items": 10 * ITEMS},
    "too few items": {"items": 10},
}


@pytest.mark.parametrize("change", HEADERS)
def test_a_changed_header_is_found_and_nothing_is_lost(tmp_path: Path, change: str) -> None:
    path = tmp_path / "exam.celeus"
    with Run.open(path, FORM, ROWS, ASKED) as session:
        judged(session, 5)
    header, *lines = path.read_bytes().splitlines(keepends=True)
    changed = canonical_json(json.loads(header) | HEADERS[change]) + b"\n" + b"".join(lines)
    path.write_bytes(changed)
    with pytest.raises(LedgerBroken, match="was changed"):
        Run.resume(path)
    assert path.read_bytes() == changed


def test_times_stay_in_order_when_the_clock_was_set_back(tmp_path: Path) -> None:
    """The last event was written by a clock that was ahead."""
    path = tmp_path / "exam.celeus"
    with Run.open(path, FORM, ROWS, ASKED) as session:
        judged(session, 3)
        last = json.loads(session.records[-1])
    ahead = last | {"at": "2099-01-01T00:00:00.000000+00:00"}
    data = path.read_bytes()
    path.write_bytes(data.replace(canonical_json(last), canonical_json(ahead)))
    with Run.resume(path) as session:
        judged(session, 2)
        times = [json.loads(record)["at"] for record in session.records]
        assert times == sorted(times)
        assert verify(session.certificate(KEY)).valid


def test_another_judgement_of_a_round_is_a_conflict_and_nothing_is_kept(run: Run) -> None:
    draws = run.next("ada", 2)["draws"]
    first = Judgement(draws[0]["round"], float(LOSSES[draws[0]["item"].index]))
    run.observe("ada", [first], 0)
    before = run.status()["sequence"]
    assert run.observe("ada", [first], 0)["session"]["sequence"] == before
    other = Judgement(first.round, 1.0 - (first.loss or 0.0))
    second = Judgement(draws[1]["round"], 0.0)
    with pytest.raises(ObservationConflict):
        run.observe("ada", [second, other], 0)
    assert run.status()["sequence"] == before


def test_a_file_of_another_version_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "later.celeus"
    Run.open(path, FORM, ROWS, ASKED).close_file()
    later = path.read_bytes().replace(b'"celeus-run-1"', b'"celeus-run-9"', 1)
    path.write_bytes(later)
    with pytest.raises(InvalidValue, match="another version of Celeus"):
        Run.resume(path)
    with pytest.raises(InvalidValue, match="another version of Celeus"):
        Run.open(path, FORM, ROWS, ASKED)
    assert path.read_bytes() == later


FULL = """
import resource, sys
from pathlib import Path
from celeus.errors import DiskFull
from tests.runs.test_run import ASKED, FORM, LOSSES, ROWS, Judgement, Run
path = Path(sys.argv[1])

def room(more):
    size = path.stat().st_size + more if path.exists() else more
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

room(100)
try:
    Run.open(path, FORM, ROWS, ASKED)
except DiskFull as full:
    assert not path.exists()
    print(full)
room(1 << 20)
run = Run.open(path, FORM, ROWS, ASKED)
room(3000)
answer, kept = run.next("ada", 1), 0
try:
    while True:
        draw = answer["draws"][0]
        told = Judgement(draw["round"], float(LOSSES[draw["item"].index]))
        answer = run.observe("ada", [told], 1)
        kept += 1
except DiskFull as full:
    print(full)
last = path.read_bytes()
assert last.endswith(b"\\n")
room(1 << 20)
answer = run.observe("ada", [told], 1)
assert answer["session"]["rounds"]["judged"] == kept + 1
run.close_file()
again = Run.resume(path)
assert again.status() == answer["session"]
assert path.read_bytes().startswith(last)
print(kept)
"""


def test_a_full_disk_is_one_refusal_and_loses_no_judgement(tmp_path: Path) -> None:
    own = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", FULL, str(tmp_path / "exam.celeus")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=own)
    assert done.returncode == 0, done.stderr
    begun, stopped, kept = done.stdout.splitlines()
    for line in (begun, stopped):
        assert "cannot be written" in line
        assert "What was acknowledged is kept; make room, and call again." in line
    assert int(kept) > 3


def test_a_disk_that_is_full_and_has_room_again() -> None:
    """By the one call that a user makes."""
    items = [{"id": f"item-{at}"} for at in range(400)]
    judged: list[str] = []

    def judge(item: celeus.Turn) -> float:
        judged.append(item.id)
        if len(judged) == 20:
            disk.fill()
        return float(item.id.endswith("7"))

    with small_disk(1) as disk:
        file = disk.folder / "exam.jsonl"
        with pytest.raises(celeus.Refusal, match="No space left on device"):
            celeus.certify(items, judge, precision=0.1, file=file)
        before = len(judged)
        disk.free()
        session = celeus.certify(items, judge, precision=0.1, file=file)
        # The one that found no room is judged again
        assert session.status().rounds.judged in {len(judged), len(judged) - 1}
        assert before < len(judged)
        session.client.close()


def test_who_asks_again_at_once_waits_for_the_others() -> None:
    lock, order = FairLock(), list[str]()
    waiting = threading.Barrier(2)

    def other() -> None:
        waiting.wait()
        with lock:
            order.append("other")

    thread = threading.Thread(target=other)
    thread.start()
    with lock:
        waiting.wait()
        while len(lock._queue) < 2:
            threading.Event().wait(0.001)
    with lock:
        order.append("again")
    thread.join()
    assert order == ["other", "again"]
    with lock:
        order.append("free")


def test_items_passed_on_wait_for_others_once_and_not_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    session = celeus.certify(ROWS[:4], None, budget="all", file=tmp_path / "exam.jsonl")
    passed: set[int] = set()
    for item in session.draws():
        if item.index not in passed:
            passed.add(item.index)
            item.pass_on()
        else:
            assert len(passed) == 4, "what is passed on comes back after all others"
            item.observe(0.0)
    assert session.status().rounds.judged == 4
    assert len(pauses) == 1
