"""MLflow's review queues on SQLite, in this process: people review what was drawn."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import mlflow
import pytest
from mlflow.entities import AssessmentSource, AssessmentSourceType
from mlflow.genai import review_queues

import celeus
from celeus.bridges.loop import asked_of, bridge
from celeus.bridges.mlflow_queues import ReviewQueue
from celeus.client.blocking import Session
from tests.ecosystem.service import Service

pytestmark = pytest.mark.ecosystem

ROWS = [
    {"id": f"q-{at}", "surrogate": (at % 3) / 3, "payload": {"question": f"{at}?", "answer": at}}
    for at in range(60)
]


@pytest.fixture
def tracking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    # Traces are written below the folder one is in
    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    mlflow.set_tracking_uri(uri)
    yield uri
    mlflow.set_tracking_uri(None)


@pytest.fixture
def client(service: Service) -> Iterator[celeus.Client]:
    with celeus.Client(service.url, service.key) as client:
        yield client


def pending(experiment: str) -> list[Any]:
    (queue,) = review_queues.list_review_queues(experiment_id=experiment)
    items = review_queues.list_review_queue_items(queue.queue_id, status="pending")
    return [(queue.queue_id, item.item_id) for item in items]


def inputs_of(trace_id: str) -> dict[str, Any]:
    found: dict[str, Any] = mlflow.get_trace(trace_id).data.spans[0].inputs
    return found


def answered(trace_id: str, value: object) -> None:
    source = AssessmentSource(source_type=AssessmentSourceType.HUMAN, source_id="ann")
    mlflow.log_feedback(trace_id=trace_id, name="verdict", value=value, source=source)


def judge(item: tuple[str, str], said: dict[int, str | None]) -> None:
    """What a person does in the page: answer the question, and mark the item."""
    queue, trace_id = item
    number = inputs_of(trace_id)["answer"]
    if len(said) == 2:
        said[number] = None
    else:
        said[number] = "Wrong" if number % 4 == 0 else "Correct"
        answered(trace_id, said[number])
    status = "complete" if said[number] else "declined"
    review_queues.set_review_queue_item_status(
        queue, item_id=trace_id, status=status, completed_by="ann"
    )


class Working(ReviewQueue):
    """The queue, and somebody who judges the last pending item before each look."""

    def __init__(self, session: str, asked: Any) -> None:  # noqa: ANN401 -- a question
        super().__init__(session, asked)
        self.said: dict[int, str | None] = {}
        self.times: list[float] = []

    def done(self) -> Any:  # noqa: ANN401 -- what the queue says
        for item in pending(self.experiment)[-1:]:
            judge(item, self.said)
        began = time.perf_counter()
        there = super().done()
        self.times.append(time.perf_counter() - began)
        return there


def losses(session: Session) -> dict[int | None, float | None]:
    """Of every item that was judged its loss."""
    entries = list(session.ledger())
    items = {one.round: one.item for one in entries if one.kind == "draw"}
    return {items[one.round]: one.loss for one in entries if one.kind != "draw"}


@pytest.mark.usefixtures("tracking")
def test_people_review_what_is_drawn_until_the_session_stops(
    client: celeus.Client, record_property: Callable[[str, object], None]
) -> None:
    session = client.open_session(client.create_pool("answers", ROWS), precision=0.45)
    queue = Working(session.id, asked_of(session))
    done = bridge(session, queue, hold=3, every=0.01)
    assert done.state == "target_reached"
    truth = {"Correct": 0.0, "Wrong": 1.0, None: None}
    assert losses(session) == {number: truth[said] for number, said in queue.said.items()}
    assert done.unjudgeable == sum(said is None for said in queue.said.values()) > 0
    # What nobody had begun went out of the queue, and no trace holds more than the payload
    assert pending(queue.experiment) == []
    traces = mlflow.search_traces(locations=[queue.experiment], return_type="list")
    assert all({*one.data.spans[0].inputs} == {"question", "answer"} for one in traces)
    drawn = {one.item for one in session.ledger() if one.kind == "draw"}
    shown = [one.data.spans[0].inputs["answer"] for one in traces]
    assert sorted(shown) == sorted(one for one in drawn if one is not None)
    record_property("seconds of a look", median(queue.times))


@pytest.mark.usefixtures("tracking")
def test_a_changed_answer_is_an_amendment(client: celeus.Client) -> None:
    session = client.open_session(client.create_pool("answers", ROWS), budget=8, precision=0.01)

    class Changing(Working):
        def done(self) -> Any:  # noqa: ANN401 -- what the queue says
            if len(self.said) == 3 and not self.changed:
                traces = mlflow.search_traces(locations=[self.experiment], return_type="list")
                number = next(number for number, said in self.said.items() if said == "Correct")
                (one,) = [it for it in traces if it.data.spans[0].inputs["answer"] == number]
                answered(one.info.trace_id, "Wrong")
                self.changed.append(number)
            return super().done()

        changed: list[int] = []  # noqa: RUF012 -- of the one object there is

    queue = Changing(session.id, asked_of(session))
    done = bridge(session, queue, hold=3, every=0.01)
    assert (done.state, done.amended) == ("budget_spent", 1)
    (amendment,) = [one for one in session.ledger() if one.kind == "amendment"]
    assert amendment.detail["reason"] == "changed in MLflow by ann"
    assert amendment.loss == 1.0


def test_killed_half_way_and_started_again_no_label_is_lost_and_no_item_there_twice(
    client: celeus.Client, service: Service, tracking: str
) -> None:
    session = client.open_session(client.create_pool("answers", ROWS), precision=0.45)
    own = {"MLFLOW_TRACKING_URI": tracking, "PYTHONPATH": os.pathsep.join(sys.path)}
    said: dict[int, str | None] = {}

    def started() -> subprocess.Popen[str]:
        options = (session.id, "--hold", "4", "--every", "0.1")
        return subprocess.Popen(
            [sys.executable, "-m", "celeus.cli", "bridge", "mlflow", *options],
            env=os.environ | service.environment | own,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def people(running: subprocess.Popen[str], enough: int) -> None:
        while running.poll() is None and len(said) < enough:
            found = mlflow.MlflowClient().get_experiment_by_name(f"Celeus {session.id}")
            if found is None or not review_queues.list_review_queues(
                experiment_id=found.experiment_id
            ):
                time.sleep(0.2)
                continue
            for item in pending(found.experiment_id)[-1:]:
                judge(item, said)

    running = started()
    people(running, 6)
    running.send_signal(signal.SIGKILL)
    running.wait()
    running = started()
    people(running, 60)
    told = running.communicate()[0]
    assert running.returncode == 0, told
    assert "(target_reached)" in told
    truth = {"Correct": 0.0, "Wrong": 1.0, None: None}
    assert losses(session) == {number: truth[word] for number, word in said.items()}
    found = mlflow.MlflowClient().get_experiment_by_name(f"Celeus {session.id}")
    (queue,) = review_queues.list_review_queues(experiment_id=found.experiment_id)
    items = review_queues.list_review_queue_items(queue.queue_id, max_results=100)
    numbers = [inputs_of(item.item_id)["answer"] for item in items]
    assert sorted(numbers) == sorted(said)
