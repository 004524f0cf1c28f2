"""A real Label Studio: people annotate what was drawn, and the session gets what they say."""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

import pytest

import celeus
from celeus.bridges.label_studio import LabelStudio as Queue
from celeus.bridges.label_studio import open_tool
from celeus.bridges.loop import asked_of, bridge
from celeus.client.blocking import Session
from tests.docs.pages import ROOT, blocks
from tests.ecosystem.label_studio.server import TOKEN, LabelStudio, Person, label_studio, region
from tests.ecosystem.service import PROGRAM, Service

pytestmark = pytest.mark.ecosystem

PAGE = ROOT / "docs" / "label-studio.md"

CHANCE = random.Random(3)  # noqa: S311 -- made-up verdicts
WRONG = {f"q-{at}": CHANCE.random() < 0.3 for at in range(300)}
ROWS = [
    {
        "id": name,
        "surrogate": 0.7 if wrong else 0.1,
        "payload": {"question": f"What is {name}?", "answer": "<b>Sydney</b>", "name": name},
    }
    for name, wrong in WRONG.items()
]


@pytest.fixture(scope="module")
def studio() -> Iterator[LabelStudio]:
    with label_studio() as studio:
        yield studio


@pytest.fixture
def client(service: Service) -> Iterator[celeus.Client]:
    with celeus.Client(service.url, service.key) as client:
        yield client


def truly(data: dict[str, Any]) -> str | None:
    if data["name"].endswith("7"):
        return None
    return "Wrong" if WRONG[data["name"]] else "Correct"


def started(
    service: Service, studio: LabelStudio, session: Session, *options: str, token: str = TOKEN
) -> subprocess.Popen[str]:
    """The bridge as a process of its own."""
    own = {"LABEL_STUDIO_URL": studio.url, "LABEL_STUDIO_API_KEY": token}
    command = [str(PROGRAM), "bridge", "label-studio", session.id, *options]
    return subprocess.Popen(
        command,
        env=os.environ | service.environment | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def rounds(session: Session) -> tuple[dict[int | None, str], dict[int | None, float | None]]:
    """Of every round the item that was drawn, and the loss that was observed."""
    entries = list(session.ledger())
    items = {one.round: f"q-{one.item}" for one in entries if one.kind == "draw"}
    judged = {one.round: one.loss for one in entries if one.kind in {"observation", "unjudgeable"}}
    return items, judged


def test_people_annotate_what_is_drawn_also_when_the_bridge_is_killed_half_way(
    client: celeus.Client, service: Service, studio: LabelStudio
) -> None:
    session = client.open_session(client.create_pool("answers", ROWS), precision=0.3)
    options = ("--hold", "4", "--every", "0.2")
    running = started(service, studio, session, *options)
    project = studio.project_of(session.id)
    person = Person(studio, project, truly)
    person.annotate(lambda: len(person.said) < 15)
    running.send_signal(signal.SIGKILL)
    running.wait()
    # People go on with what is there
    person.annotate(lambda: len(person.said) < 17)
    running = started(service, studio, session, *options)
    person.annotate(lambda: running.poll() is None)
    told = running.communicate()[0]
    assert running.returncode == 0, told
    assert "(target_reached)" in told
    assert "error rate" in told
    items, judged = rounds(session)
    marks = {f"{session.id}/{round_}": name for round_, name in items.items()}
    # What was submitted while the session stopped may have gone with its task
    assert 0 <= len(person.said) - len(judged) <= 1
    tasks = studio.tasks(project)
    there = [task["data"]["celeus"] for task in tasks]
    assert sorted(there) == sorted(f"{session.id}/{round_}" for round_ in judged)
    for mark in there:
        loss = judged[int(mark.rpartition("/")[2])]
        said = person.said[mark]
        assert loss == (None if said is None else {"Correct": 0.0, "Wrong": 1.0}[str(said)])
    assert len({task["id"] for task in person.shown}) == len(person.shown)
    for task in [*tasks, *person.shown]:
        assert marks[task["data"]["celeus"]] == task["data"]["name"]
        assert not task["predictions"]
        assert "surrogate" not in str(task["data"])
    assert "<b>" not in tasks[0]["data"]["celeus_item"]


@pytest.mark.parametrize(("hold", "most"), [(3, 0.9), (8, 0.4)])
def test_nobody_waits_long_for_the_next_item(
    client: celeus.Client,
    studio: LabelStudio,
    record_property: Callable[[str, object], None],
    hold: int,
    most: float,
) -> None:
    session = client.open_session(client.create_pool("answers", ROWS), precision=0.35)
    with open_tool(studio.url, TOKEN) as tool:
        queue = Queue(tool, session.id, asked_of(session))
        person = Person(studio, queue.project, truly)
        done = False
        thread = Thread(target=lambda: person.annotate(lambda: not done))
        thread.start()
        try:
            came = bridge(session, queue, hold=hold, every=0.5)
        finally:
            done = True
            thread.join()
    assert came.labels >= len(person.said) - 1
    made = studio.http.get(f"/api/projects/{queue.project}").json()
    assert made["sampling"] == "Sequential sampling"
    assert (made["maximum_annotations"], made["skip_queue"]) == (1, "IGNORE_SKIPPED")
    waits = sorted(person.waits[1:])
    figures = {
        "items": len(waits),
        "median": median(waits),
        "longest": waits[-1],
        "looks in vain": person.looks - len(person.waits),
    }
    record_property(f"hold {hold}", figures)
    assert median(waits) < most, figures


def test_a_changed_annotation_is_an_amendment_and_a_draft_stays(
    client: celeus.Client, studio: LabelStudio
) -> None:
    session = client.open_session(client.create_pool("answers", ROWS), budget=6, precision=0.01)
    with open_tool(studio.url, personal_token(studio)) as tool:
        queue = Queue(tool, session.id, asked_of(session))
        person = Person(studio, queue.project, truly)
        going = Thread(target=lambda: bridge(session, queue, hold=4, every=0.1))
        going.start()
        person.annotate(lambda: len(person.said) < 2)
        first = studio.tasks(queue.project)[0]
        (annotation,) = first["annotations"]
        other = "Correct" if person.said[first["data"]["celeus"]] == "Wrong" else "Wrong"
        wait_until(lambda: session.status().rounds.judged == 2)
        change = {"result": region(other), "was_cancelled": False}
        path = f"/api/annotations/{annotation['id']}/"
        assert studio.http.patch(path, json=change).is_success
        wait_until(lambda: any(one.kind == "amendment" for one in session.ledger()))
        drafted = next(task for task in studio.tasks(queue.project) if not task["annotations"])
        draft = {"result": region("Wrong")}
        path = f"/api/tasks/{drafted['id']}/drafts"
        assert studio.http.post(path, json=draft).is_success
        session.close()
        going.join(60)
        assert not going.is_alive()
    (amendment,) = [one for one in session.ledger() if one.kind == "amendment"]
    assert amendment.detail["reason"] == "changed in Label Studio by annotator 1"
    assert amendment.loss == (1.0 if other == "Wrong" else 0.0)
    left = [task["id"] for task in studio.tasks(queue.project) if not task["annotations"]]
    assert left == [drafted["id"]]


def personal_token(studio: LabelStudio) -> str:
    """A token as people make one for themselves."""
    return str(studio.http.post("/api/token").raise_for_status().json()["token"])


def wait_until(happens: Any) -> None:  # noqa: ANN401 -- a condition
    deadline = time.monotonic() + 30
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.05)


PAIR = {"loss": {"kind": "preference"}, "systems": {"a": "one", "b": "two"}}


@pytest.mark.parametrize(
    ("pool", "row", "said"),
    [
        ({"loss": {"kind": "bounded", "lower": 0, "upper": 4}}, {}, (2.5, 2.5)),
        ({}, {"prediction": 1, "payload": {"choices": ["cat", "dog"]}}, ("cat", 1.0)),
        ({}, {"prediction": 1, "payload": "which class?"}, (1.0, 0.0)),
        (PAIR, {"a": {"answer": "x"}, "b": {"answer": "y"}}, ("Equally good", 0.0)),
    ],
)
def test_every_kind_of_judgement_has_a_form_there(
    client: celeus.Client,
    studio: LabelStudio,
    pool: dict[str, Any],
    row: dict[str, Any],
    said: tuple[str | float, float],
) -> None:
    rows = [{"id": f"q-{at}", **row} for at in range(5)]
    session = client.open_session(client.create_pool("forms", rows, **pool), budget=3)
    answer, loss = said
    with open_tool(studio.url, TOKEN) as tool:
        queue = Queue(tool, session.id, asked_of(session))
        person = Person(studio, queue.project, lambda _: answer)
        going = Thread(target=lambda: bridge(session, queue, hold=3, every=0.1))
        going.start()
        person.annotate(going.is_alive)
    assert [one.loss for one in session.ledger() if one.kind == "observation"] == [loss] * 3


def test_a_wrong_token_is_one_line_without_it(
    client: celeus.Client, service: Service, studio: LabelStudio
) -> None:
    session = client.open_session(client.create_pool("answers", ROWS), precision=0.3)
    for token in ("wrong-token", "wrong.personal.token"):
        told = started(service, studio, session, token=token).communicate()[0]
        assert told.count("\n") == 1
        assert "put a token that works in LABEL_STUDIO_API_KEY" in told
        assert token not in told


def test_what_is_no_label_studio_is_told_in_one_line(
    client: celeus.Client, service: Service, studio: LabelStudio
) -> None:
    session = client.open_session(client.create_pool("answers", ROWS), precision=0.3)
    nobody = LabelStudio("http://127.0.0.1:1", studio.http)
    celeus_itself = LabelStudio(service.url, studio.http)
    for at, words in ((nobody, "cannot be reached"), (celeus_itself, "Label Studio")):
        running = started(service, at, session)
        told = running.communicate()[0]
        assert running.returncode == 1
        assert told.count("\n") == 1
        assert words in told


def test_the_commands_of_the_page_run(
    service: Service, studio: LabelStudio, tmp_path: Path
) -> None:
    (tmp_path / "pool.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    script = "\n".join(block.text for block in blocks(PAGE, "sh"))
    for shown, real in (
        ("ce_…", service.key),
        ("http://127.0.0.1:8000", service.url),
        ("http://127.0.0.1:8080", studio.url),
        ("API_KEY=…", f"API_KEY={TOKEN}"),
        ("precision=0.1).id)'", "precision=0.4).id)' | tee session"),
        ("ses_…", "$(cat session)"),
    ):
        assert shown in script
        script = script.replace(shown, real)
    programs = f"{PROGRAM.parent}:{os.environ['PATH']}"
    running = subprocess.Popen(
        ["/bin/bash", "-euc", script],
        cwd=tmp_path,
        env=os.environ | {"PATH": programs},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_until(lambda: (tmp_path / "session").is_file() and (tmp_path / "session").stat().st_size)
    project = studio.project_of((tmp_path / "session").read_text().strip())
    Person(studio, project, truly).annotate(lambda: running.poll() is None)
    told = running.communicate()[0]
    assert running.returncode == 0, told
    assert f"people judge it in Label Studio, {studio.url}/projects/{project}" in told
    assert "(target_reached)" in told
