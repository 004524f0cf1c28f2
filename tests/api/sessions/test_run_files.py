"""A run's file becomes a session that says where it ran, and what it does not show."""

import asyncio
import json
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response

from celeus.core.certificate.verify import verify
from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest
from celeus.core.plans.stopping import Question
from celeus.core.pools.rows.growth import pool_of_rows
from celeus.core.randomness import commitment
from celeus.core.session.assumptions import OWN_PROCESS
from celeus.errors import InvalidValue, Refusal, RunTooCostly
from celeus.operations.certificates.audit import audit
from celeus.operations.runs import push as pushing
from celeus.operations.runs.push_worker import work
from celeus.operations.runtime.workers import Bounds, Frame
from celeus.runs.run import Run
from tests.factories import KnownPool, evidence_of, labelled, opened, sealed
from tests.keys import bearer, key_in
from tests.nightly import by_day
from tests.runs.files import chancy, duel, exam, forged, race, sheet
from tests.runs.test_run import ASKED, FORM, ITEMS, KEY, LOSSES, ROWS, judged


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a run, which each test pushes to an empty service."""
    return exam(tmp_path_factory.mktemp("run") / "exam.celeus")


LINES = {"Content-Type": "application/x-ndjson"}
NOBODY = "00000000-0000-0000-0000-000000000000"
NOW = "2998-01-01T00:00:00.000000+00:00"


async def push(client: AsyncClient, data: bytes) -> Response:
    return await client.post("/v1/session-files", content=data, headers=LINES)


@pytest.mark.parametrize("ahead", [1, 5])
async def test_a_run_is_kept_as_it_was_and_says_where_it_ran(
    client: AsyncClient, app: FastAPI, tmp_path: Path, ahead: int
) -> None:
    data = exam(tmp_path / "exam.celeus", ahead)
    answer = await push(client, data)
    assert answer.status_code == 201, answer.text
    session = answer.json()
    lines = data.splitlines()
    assert answer.headers["Location"] == f"/v1/sessions/{session['id']}"
    assert (session["state"], session["origin"]["kind"]) == ("closed", "pushed")
    assert session["warnings"] == []
    path = f"/v1/sessions/{session['id']}"
    assert (await client.get(path)).json() == session
    certificate = await client.get(f"{path}/certificate")
    document = certificate.json()
    assert document["ledger"] == [json.loads(line) for line in lines[301:]]
    assert document["pool_sessions"] is None
    assert document["origin"] == session["origin"]
    assert document["issued_at"] == session["origin"]["at"]
    assert document["claim"]["assumptions"][-1] == dict(OWN_PROCESS)
    report = verify(certificate.content, await evidence_of(client, session["pool_id"]))
    assert report.valid, report.to_dict()
    assert {"draws", "probabilities", "labels", "claim"} <= set(report.checked)
    assert report.origin == session["origin"]

    trajectory = (await client.get(f"{path}/trajectory")).json()["data"]
    assert [point["round"] for point in trajectory] == list(range(1, session["round"] + 1))
    assert trajectory[-1]["lower"] == session["lower"]
    assert not (await audit(app.state.context.database)).findings


@pytest.mark.parametrize("kind", [duel, race, sheet, chancy])
async def test_other_kinds_of_claims_are_pushed(
    client: AsyncClient, app: FastAPI, tmp_path: Path, kind: Callable[[Path], bytes]
) -> None:
    answer = await push(client, kind(tmp_path / "run.jsonl"))
    assert answer.status_code == 201, answer.text
    session = answer.json()
    certificate = await client.get(f"/v1/sessions/{session['id']}/certificate")
    report = verify(certificate.content, await evidence_of(client, session["pool_id"]))
    assert report.valid, report.to_dict()
    assert not (await audit(app.state.context.database)).findings
    shown = await client.get(f"/v1/sessions/{session['id']}/report")
    assert "had its seed and its file" in shown.text


async def test_a_run_pushed_again_is_the_same_session(client: AsyncClient, run_file: bytes) -> None:
    first, second = await asyncio.gather(push(client, run_file), push(client, run_file))
    assert sorted(answer.status_code for answer in (first, second)) == [200, 201]
    assert first.json() == second.json()
    assert len((await client.get("/v1/sessions")).json()["data"]) == 1
    assert len((await client.get("/v1/pools")).json()["data"]) == 1


async def test_lists_have_pushed_runs_among_the_others_in_the_order_of_their_openings(
    client: AsyncClient, tmp_path: Path
) -> None:
    runs = [exam(tmp_path / f"{number}.celeus", most=2) for number in range(3)]
    pushed = [(await push(client, data)).json() for data in runs[::-1]]
    ours = await client.post("/v1/sessions", json={"pool_id": pushed[0]["pool_id"]})
    listed = (await client.get("/v1/sessions")).json()["data"]
    assert [document["id"] for document in listed] == [
        ours.json()["id"],
        *(pushed_run["id"] for pushed_run in pushed),
    ]


async def test_a_pushed_run_with_a_question_has_one_place_in_its_project(
    client: AsyncClient, tmp_path: Path
) -> None:
    claim = Claim(precision=0.2, questions=(Question("at_most", 0.9),))
    data = exam(tmp_path / "asked.celeus", asked=SessionRequest(claim))
    session = (await push(client, data)).json()["id"]
    assert (await push(client, data)).status_code == 200
    claims = (await client.get("/v1/claims", params={"session": session})).json()
    assert (claims["opened"], claims["claims"][0]["place"]) == (1, 1)


async def test_runs_on_the_same_items_share_their_pool(
    client: AsyncClient, run_file: bytes, tmp_path: Path
) -> None:
    files = (run_file, exam(tmp_path / "other.celeus", most=2))
    first, second = [(await push(client, file)).json() for file in files]
    assert first["pool_id"] == second["pool_id"]
    assert first["id"] != second["id"]
    # A session that ran here counts those that were pushed
    opened = await client.post("/v1/sessions", json={"pool_id": first["pool_id"]})
    certificate = await client.get(f"/v1/sessions/{opened.json()['id']}/certificate")
    counts = certificate.json()["pool_sessions"]
    assert (counts["number"], counts["total"], counts["others_certified"]) == (3, 3, 2)


async def test_a_pushed_session_takes_nothing_more(client: AsyncClient, run_file: bytes) -> None:
    session = (await push(client, run_file)).json()
    path = f"/v1/sessions/{session['id']}"
    drawn = await client.post(f"{path}/next", json={"worker": "eve"})
    assert drawn.json()["state"] == "closed"
    refused = [
        await client.patch(path, json={"state": "active"}),
        await client.post(
            f"{path}/amendments", json={"round": 1, "loss": 0, "reason": "no", "author": "eve"}
        ),
    ]
    assert [refusal.status_code for refusal in refused] == [409, 409]
    # The judgement that is there is told again; any other one is a conflict
    answers = [
        await client.post(f"{path}/observe", json={"worker": "eve", "round": 1, "loss": loss})
        for loss in (0, 1)
    ]
    assert sorted(answer.status_code for answer in answers) in ([200, 409], [409, 409])
    assert (await client.get(path)).json() == session


@pytest.mark.parametrize(
    "there",
    ["the session", "a tombstone", *by_day(0, ["nothing", "another ledger"])],
)
async def test_a_push_does_not_show_what_another_project_has(
    client: AsyncClient, app: FastAPI, database_url: str, run_file: bytes, there: str
) -> None:
    if there != "nothing":
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        later = forged(run_file, lambda lines: lines[-1].update(at=now))
        first = await push(client, later if there == "another ledger" else run_file)
        assert first.status_code == 201, first.text
        if there == "a tombstone":
            path = first.headers["Location"]
            await client.patch(path, json={"archived": True})
            purge = {"purge": first.json()["id"]}
            assert (await client.delete(path, params=purge)).is_success
    other = bearer(key_in(database_url, "manage", project="other"))
    pushed = [
        await client.post("/v1/session-files", content=run_file, headers=LINES | other)
        for _ in range(2)
    ]
    assert [answer.status_code for answer in pushed] == [201, 200], pushed[0].text
    path = f"/v1/sessions/{pushed[0].json()['id']}"
    assert (await client.get(path, headers=other)).json() == pushed[1].json()
    assert (await client.get(path)).status_code == 404
    assert not (await audit(app.state.context.database)).findings


async def test_nobody_takes_the_id_of_a_run_before_its_own_project(
    client: AsyncClient, database_url: str, run_file: bytes
) -> None:
    other = bearer(key_in(database_url, "manage", project="other"))
    taken = await client.post("/v1/session-files", content=run_file, headers=LINES | other)
    pushed = await push(client, run_file)
    assert (taken.status_code, pushed.status_code) == (201, 201), pushed.text


def header(**changes: object) -> Any:  # noqa: ANN401 -- a change
    return lambda lines: lines[0].update(changes)


def plan(**changes: object) -> Any:  # noqa: ANN401 -- a change
    return lambda lines: lines[0]["plan"].update(changes)


def record(place: int, /, **changes: object) -> Any:  # noqa: ANN401 -- a change
    return lambda lines: lines[ITEMS + place].update(changes)


def detail(place: int, /, **changes: object) -> Any:  # noqa: ANN401 -- a change
    return lambda lines: lines[ITEMS + place]["detail"].update(changes)


def other_seed(lines: list[dict[str, Any]]) -> None:
    """A seed with its own commitment, under which other items would have been drawn."""
    lines[0]["seed"] = "5a" * 32
    lines[0]["plan"]["commitment"] = commitment(bytes.fromhex("5a" * 32))


def other_loss(lines: list[dict[str, Any]]) -> None:
    """The first loss, which later draws rest on."""
    first = next(line for line in lines[ITEMS + 1 :] if line["kind"] == "observation")
    first["loss"] = 1.0 - first["loss"]


def without_round(lines: list[dict[str, Any]]) -> None:
    """A judged round left out, all behind it numbered anew."""
    del lines[ITEMS + 9 : ITEMS + 11]
    for index, line in enumerate(lines[ITEMS + 1 :], 1):
        line["sequence"] = index
        if "seen" in line:
            line["seen"] = index - 1
        if line.get("round", 0) > 4:
            line["round"] -= 1


def swapped(lines: list[dict[str, Any]]) -> None:
    """Two losses changed over."""
    seen = [line for line in lines[ITEMS + 1 :] if line["kind"] == "observation"]
    first = seen[0]
    second = next(entry for entry in seen if entry["loss"] != first["loss"])
    first["loss"], second["loss"] = second["loss"], first["loss"]


def reordered(lines: list[dict[str, Any]]) -> None:
    lines[ITEMS + 5], lines[ITEMS + 7] = lines[ITEMS + 7], lines[ITEMS + 5]


def other_pool(lines: list[dict[str, Any]]) -> None:
    lines[1]["surrogate"] = 0.123


def other_pool_and_plan(lines: list[dict[str, Any]]) -> None:
    """Another surrogate, and a plan that names the pool with it."""
    other_pool(lines)
    pool = pool_of_rows(lines[1 : ITEMS + 1], FORM.growth).pool
    lines[0]["plan"]["pool_digest"] = pool.digest


def unclosed(lines: list[dict[str, Any]]) -> None:
    del lines[-1]


def reopened(lines: list[dict[str, Any]]) -> None:
    lines.append(lines[-1] | {"sequence": lines[-1]["sequence"] + 1})


FORGED = {
    "a loss": (other_loss, None),
    "losses changed over": (swapped, None),
    "a round left out": (without_round, None),
    "events in another order": (reordered, "line 306"),
    "alpha beyond 1": (plan(alpha=2.0, alpha1=2.0), "line 1"),
    "another precision": (plan(precision=0.1), "line 1"),
    "another method": (plan(method_version="celeus-1"), "line 1"),
    "no guarantee": (plan(policy=None), "line 1"),
    "a smaller share of even draws": (
        lambda lines: lines[0]["plan"]["policy"].update(beta=1e-6),
        "line 1",
    ),
    "another seed": (header(seed="00" * 32), "line 1"),
    "another seed, promised": (other_seed, None),
    # Where that item is drawn later as well, its line comes first
    "another item drawn": (record(1, item=5.0), None),
    "another chance": (record(1, q=0.9), None),
    "a loss off its scale": (record(2, loss=0.5), "line 303"),
    "a huge loss": (record(2, loss=1e300), "line 303"),
    "a word that is none": (record(2, verdict="right"), "line 303"),
    "a judgement of a key": (detail(2, key="key_of_another"), "line 303"),
    "a huge number": (detail(2, weight=1e300), "line 303"),
    "a text no database holds": (detail(2, worker="a\0b"), "line 303"),
    "a time to come": (record(2, at="2999-01-01T00:00:00.000000+00:00"), "line 303"),
    "no time": (record(2, at="yesterday"), "line 303"),
    "another pool": (other_pool, "line 1"),
    "another pool, named": (other_pool_and_plan, None),
    "fewer items": (header(items=299.0), None),
    "more items": (header(items=301.0), None),
    "items without end": (header(items=1e9), None),
    "another session": (header(session="ab" * 15), "line 1"),
    "another format": (header(format="celeus-run-2"), "line 1"),
    "a member more": (header(owner="eve"), "line 1"),
    "a session that is open": (unclosed, "state"),
    "an event behind the end": (reopened, None),
    "a pool without a form": (header(pool={"name": "exam"}), "line 1"),
    "a pool whose name turns the text": (
        lambda lines: lines[0]["pool"].update(name="a\u202eb"),
        "line 1",
    ),
}


def refusal_of(data: bytes) -> Refusal:
    """What the child that is given such a file refuses it with."""
    job = Frame({"project": NOBODY, "at": NOW, "max_items": 100_000, "lease_seconds": 60})
    with ExitStack() as stack:
        files = [stack.enter_context(TemporaryFile()) for _ in range(3)]
        files[0].write(data)
        files[0].seek(0)
        with pytest.raises(Refusal) as refused:
            list(work(job, files))
    return refused.value


@pytest.mark.parametrize("forgery", FORGED)
def test_a_forged_file_is_refused_by_its_line(run_file: bytes, forgery: str) -> None:
    change, line = FORGED[forgery]
    refused = refusal_of(forged(run_file, change))
    assert refused.code in {"invalid_value", "pool_too_large"}
    assert line in {None, refused.field}, refused


@pytest.mark.parametrize(
    ("forgery", "status"), [("a loss", 422), ("a huge loss", 422), ("items without end", 413)]
)
async def test_nothing_is_kept_of_what_is_refused(
    client: AsyncClient, run_file: bytes, forgery: str, status: int
) -> None:
    change, line = FORGED[forgery]
    answer = await push(client, forged(run_file, change))
    assert answer.status_code == status, answer.text
    assert line in {None, answer.json()["field"]}, answer.text
    assert not (await client.get("/v1/sessions")).json()["data"]
    assert not (await client.get("/v1/pools")).json()["data"]


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "no line": lambda data: data[:10],
    "cut in its last line": lambda data: data[:-9],
    "cut behind a line": lambda data: data[: data.rfind(b"\n", 0, -1) + 1],
    "cut among its items": lambda data: b"\n".join(data.split(b"\n")[:100]) + b"\n",
    "no text": lambda data: b"\xff\xfe" + data,
    "another spelling": lambda data: data.replace(b'"loss":1,', b'"loss":1.0,', 1),
    "a name twice": lambda data: data.replace(b'"loss":1,', b'"loss":0,"loss":1,', 1),
    "not a number": lambda data: data.replace(b'"loss":1,', b'"loss":NaN,', 1),
    "an empty line": lambda data: data + b"\n",
    "deep": lambda data: data.replace(b'"payload":{"number":0}', b'"payload":' + b"[" * 9999),
    "something else": lambda _: b'{"id":"a"}\n{"id":"b"}\n',
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_refused(run_file: bytes, case: str) -> None:
    broken = BROKEN[case](run_file)
    assert broken != run_file
    assert isinstance(refusal_of(broken), InvalidValue)


async def test_another_ledger_of_the_same_session_is_a_conflict(
    client: AsyncClient, tmp_path: Path
) -> None:
    """Two files of one run, as a copy of it that went on has."""
    path, copy = tmp_path / "one.celeus", tmp_path / "copy.celeus"
    with Run.open(path, FORM, ROWS, ASKED) as run:
        judged(run, 3)
    copy.write_bytes(path.read_bytes())
    for file, most in ((path, 5), (copy, 9)):
        with Run.resume(file) as run:
            judged(run, most)
            run.close()
    pushed = await push(client, path.read_bytes())
    answer = await push(client, copy.read_bytes())
    assert (pushed.status_code, answer.status_code) == (201, 409)
    assert answer.json()["code"] == "session_differs"
    there = await client.get(pushed.headers["Location"])
    assert there.json() == pushed.json()


async def test_another_alpha_gives_what_it_would_have_given(
    client: AsyncClient, run_file: bytes
) -> None:
    """Where its draws are the same a file shows no alpha: that it was fixed is its pusher's word.

    The interval is the wider one of that level, and the precision not met.
    """
    finer = plan(alpha=0.001, alpha1=0.001)
    answer = await push(client, forged(run_file, finer))
    if answer.status_code == 201:
        session = answer.json()
        assert session["width"] > session["precision"]
        assert session["stop_reason"] is None
        certificate = (await client.get(f"/v1/sessions/{session['id']}/certificate")).json()
        assert "its plan was fixed" in certificate["claim"]["assumptions"][-1]["text"]
    assert (await push(client, run_file)).status_code in {201, 409}


async def test_what_takes_too_long_is_refused(
    client: AsyncClient, run_file: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds = Bounds(seconds=0.01, processor_seconds=60.0)
    monkeypatch.setattr(pushing, "bounds_of", lambda _: bounds)
    answer = await push(client, run_file)
    assert (answer.status_code, answer.json()["code"]) == (413, RunTooCostly.code)


async def test_it_is_said_wherever_the_session_is_shown(
    client: AsyncClient, run_file: bytes
) -> None:
    session = (await push(client, run_file)).json()
    report = await client.get(f"/v1/sessions/{session['id']}/report")
    assert "nobody counted" in report.text
    assert "had its seed and its file" in report.text
    page = await client.get(f"/sessions/{session['id']}", headers={"Accept": "text/html"})
    assert "had its seed" in page.text, page.status_code
    claims = (await client.get("/v1/claims", params={"session": session["id"]})).json()
    assert "the word of whoever pushed" in claims["promises"]["one"]


async def test_its_losses_are_not_carried_into_a_session_of_the_service(
    client: AsyncClient, run_file: bytes
) -> None:
    session = (await push(client, run_file)).json()
    basis = {"session": session["id"], "labels_seen": "no", "answer": "number"}
    body = {"name": "next", "loss": {"kind": "zero_one"}, "items": ROWS, "based_on": basis}
    refused = await client.post("/v1/pools", json=body)
    problem = refused.json()
    assert (refused.status_code, problem["field"]) == (422, "based_on.session"), problem
    assert "pushed" in problem["detail"]


async def test_service_and_process_draw_and_bet_alike(
    client: AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = KnownPool(await sealed(client, ROWS, name="exam"), LOSSES)
    session = await opened(client, known, precision=0.2)
    await labelled(client, session, known, ITEMS)
    await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    theirs = (await client.get(f"/v1/sessions/{session}/certificate")).json()
    monkeypatch.setattr("celeus.seeds.new_seed", lambda: bytes.fromhex(theirs["seed"]))
    with Run.open(tmp_path / "same.celeus", FORM, ROWS, ASKED) as ours:
        judged(ours)
        ours.close()
        ours_document = json.loads(ours.certificate(KEY))
    for member in ("plan", "pool", "claim", "rounds", "seed"):
        assert ours_document[member] == theirs[member], member
    of_ledger = [
        [
            {name: value for name, value in entry.items() if name not in {"at", "detail"}}
            for entry in entries
        ]
        for entries in (ours_document["ledger"], theirs["ledger"])
    ]
    assert of_ledger[0] == of_ledger[1]
