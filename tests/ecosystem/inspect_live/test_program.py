"""`inspect eval celeus/certified`: no glue, and nothing is lost of a run that is killed."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import celeus
import celeus.inspect
from celeus.client.blocking import Session
from celeus.core.certificate.verify import verify
from celeus.runs.local import session_of
from celeus.runs.run import Run
from tests.ecosystem.inspect_live.runs import (
    exam,
    finished,
    interval,
    logs,
    losses,
    metrics,
    started,
)
from tests.ecosystem.service import Service

pytestmark = pytest.mark.ecosystem
IDS = [f"q{at:03d}" for at in range(400)]
TASK = ("-T", "task=exam.py@exam", "--model", "madeup/large")
SLOW = ("-M", "pause=0.3")
HALF = 60


@pytest.fixture
def on_service(service: Service) -> Iterator[Session]:
    """A session of a service."""
    with celeus.Client(service.url, service.key) as client:
        pool = client.create_pool("exam", celeus.inspect.items(exam()))
        yield client.open_session(pool, precision=0.12)


def in_process(folder: Path) -> Session:
    """The only session in a folder."""
    (file,) = (folder / ".celeus").glob("*.jsonl")
    return session_of(Run.resume(file), folder / "key.pem")


def test_one_command_certifies_a_task(tmp_path: Path) -> None:
    said = finished(started(tmp_path, *TASK, "-T", "precision=0.15"))
    (log,) = logs(tmp_path)
    assert log.status == "success", said
    session = in_process(tmp_path)
    status = session.status()
    assert status.state == "target_reached"
    assert metrics(log) == pytest.approx(interval(session), abs=1e-12)
    assert str(status.sentence).startswith("accuracy ")
    assert log.eval.task == "exam"
    assert log.stats.model_usage["madeup/large"].output_tokens == 3 * status.rounds.drawn
    assert log.eval.metadata["celeus"]["file"].startswith(".celeus/")
    session.client.close()
    again = finished(started(tmp_path, *TASK, "-T", "precision=0.15"))
    assert again.splitlines()[-2].endswith(f"based on {status.rounds.in_interval} labels.")
    assert "Traceback" not in again
    assert "known better: say when it is known well enough" in finished(started(tmp_path, *TASK))
    assert len(logs(tmp_path)) == 1


def test_one_command_certifies_how_often_an_agent_succeeds_three_times(tmp_path: Path) -> None:
    options = ("-T", "task=errand.py@errand", "--model", "madeup/agent", "-T", "precision=0.3")
    over_runs = ("-T", "target=runs", "-T", "repeats=true", "-T", "success=all of 3")
    said = finished(started(tmp_path, *options, *over_runs))
    assert len(logs(tmp_path)) == 1, said
    (log,) = logs(tmp_path)
    assert log.status == "success", said
    session = in_process(tmp_path)
    status = session.status()
    assert (status.state, status.success) == ("target_reached", "all of 3")
    assert metrics(log) == pytest.approx(interval(session), abs=1e-12)
    assert "where success is all of 3" in str(status.sentence)
    assert metrics(log)["lower"] <= 0.9**3 <= metrics(log)["upper"]
    # Every run is a sample of its own, and each took two steps of the agent
    assert status.runs == len(log.samples) > status.rounds.judged
    assert log.stats.model_usage["madeup/agent"].output_tokens == 6 * status.runs
    session.close()
    assert verify(session.certificate()).valid
    session.client.close()


def killed_half_way(
    folder: Path, options: tuple[str, ...], told: Callable[[], int], **names: str
) -> None:
    """Kill a run once it has told so many losses, with samples in work."""
    process = started(folder, *options, *SLOW, **names)
    deadline = time.monotonic() + 120
    while told() < HALF:
        assert process.poll() is None, finished(process)
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.wait()


def test_a_run_of_a_service_that_is_killed_goes_on(
    service: Service, on_service: Session, tmp_path: Path
) -> None:
    options = (*TASK, "-T", f"session={on_service.id}")
    names = service.environment
    killed_half_way(tmp_path, options, lambda: on_service.status().rounds.judged, **names)
    before = on_service.status().rounds
    assert before.pending > 0
    said = finished(started(tmp_path, *options, **names))
    log = logs(tmp_path)[-1]
    status = on_service.status()
    assert (log.status, status.state) == ("success", "target_reached"), said
    assert status.rounds.pending == 0
    assert metrics(log) == pytest.approx(interval(on_service), abs=1e-12)
    told = losses(on_service, IDS)
    assert len(told) == status.rounds.judged == before.judged + len(log.samples)
    assert None not in told.values()


def test_a_run_in_process_that_is_killed_goes_on(tmp_path: Path) -> None:
    options = (*TASK, "-T", "precision=0.12")

    def told() -> int:
        files = (tmp_path / ".celeus").glob("*.jsonl")
        return sum(file.read_bytes().count(b'"kind":"observation"') for file in files)

    killed_half_way(tmp_path, options, told)
    session = in_process(tmp_path)
    before = session.status().rounds
    session.client.close()
    assert before.pending > 0
    said = finished(started(tmp_path, *options))
    log, session = logs(tmp_path)[-1], in_process(tmp_path)
    status = session.status()
    assert (log.status, status.state) == ("success", "target_reached"), said
    assert status.rounds.pending == 0
    assert len(losses(session, IDS)) == status.rounds.judged == before.judged + len(log.samples)


def test_a_model_that_fails_once_at_every_question_leaves_nothing_unjudged(
    service: Service, on_service: Session, tmp_path: Path
) -> None:
    options = (*TASK, "-T", f"session={on_service.id}", "-M", "flaky=true", "--retry-on-error=1")
    said = finished(started(tmp_path, *options, **service.environment))
    (log,) = logs(tmp_path)
    assert (log.status, on_service.status().state) == ("success", "target_reached"), said
    assert all(len(one.error_retries) == 1 for one in log.samples)
    assert None not in losses(on_service, IDS).values()


def test_two_processes_share_a_session_and_no_sample(
    service: Service, on_service: Session, tmp_path: Path
) -> None:
    both = [
        (tmp_path / name, (*TASK, "-T", f"session={on_service.id}", "-T", f"worker={name}", *SLOW))
        for name in ("left", "right")
    ]
    for folder, _ in both:
        folder.mkdir()
    running = [started(folder, *options, **service.environment) for folder, options in both]
    said = [finished(one) for one in running]
    found = [log for folder, _ in both for log in logs(folder)]
    assert [log.status for log in found] == ["success", "success"], said
    left, right = ({str(one.id) for one in log.samples} for log in found)
    assert left
    assert right
    assert left.isdisjoint(right)
    assert left | right == losses(on_service, IDS).keys()
    assert on_service.status().rounds.pending == 0
