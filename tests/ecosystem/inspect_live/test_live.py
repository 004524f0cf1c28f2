"""A session drives a task of Inspect, in this process: what it draws is run, and nothing else."""

import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from inspect_ai import eval as run_eval
from inspect_ai import task_with
from inspect_ai.model import GenerateConfig, Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import model_graded_qa

import celeus
import celeus.inspect
from celeus.client.blocking import Session
from celeus.client.label_loop import MOST_BEATS
from celeus.client.results import Status
from celeus.core.certificate.verify import verify
from celeus.errors import InvalidValue
from celeus.harnesses.inspect_live import LiveSession
from celeus.harnesses.inspect_tasks import _driven, _side
from celeus.intake.rows import Options
from tests.ecosystem.inspect_live.runs import exam, interval, logs, losses, metrics, ran
from tests.ecosystem.inspect_runs import LETTERS, model, questions
from tests.ecosystem.service import Service

pytestmark = pytest.mark.ecosystem
SAMPLES = 400
IDS = [f"q{at:03d}" for at in range(SAMPLES)]


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """What the model loses on every question, by a run of all."""
    folder = tmp_path_factory.mktemp("full")
    log = ran(exam(), model("large"), folder)
    return {str(one.id): float(one.scores["choice"].value != "C") for one in log.samples}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def counted(name: str) -> tuple[Model, list[str]]:
    """A model, and what it has been asked."""
    asked: list[str] = []
    outputs = model(name).api.outputs

    def output(messages: list[Any], *more: object) -> object:
        asked.append(messages[-1].text)
        return outputs(messages, *more)

    return get_model(f"mockllm/{name}", custom_outputs=output, memoize=False), asked


def in_process(precision: float = 0.15) -> Session:
    """A session in process on the task's samples."""
    return celeus.certify(celeus.inspect.items(exam()), None, precision=precision)


def on_service(client: celeus.Client) -> Session:
    """A session of a service on the task's samples."""
    pool = client.create_pool("exam", celeus.inspect.items(exam()))
    return client.open_session(pool, precision=0.15)


def test_a_run_says_before_its_first_sample_which_answers_it_is_about(folder: Path) -> None:
    large, asked = counted("large")
    said_after: list[int] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "not for those it would give next" in record.getMessage():
                said_after.append(len(asked))

    listener = Listener()
    logger = logging.getLogger("celeus")
    logger.addHandler(listener)
    try:
        ran(celeus.inspect.certified(exam(), in_process(0.3)), large, folder)
    finally:
        logger.removeHandler(listener)
    assert said_after == [0]


@pytest.mark.parametrize("hold", [1, 10])
def test_a_service_draws_and_the_log_has_its_interval(
    service: Service, folder: Path, truth: dict[str, float], hold: int
) -> None:
    requests: list[str] = []
    http = httpx2.Client(event_hooks={"request": [lambda one: requests.append(one.url.path)]})
    with celeus.Client(service.url, service.key, http=http) as client:
        session = on_service(client)
        requests.clear()
        task = celeus.inspect.certified(exam(), session, hold=hold)
        large, asked = counted("large")
        log = ran(task, large, folder)
        made = len(requests)
        status = session.status()
        assert (log.status, status.state) == ("success", "target_reached")
        assert metrics(log) == pytest.approx(interval(session), abs=1e-12)
        rounds = status.rounds
        assert len(asked) == rounds.drawn == rounds.judged < SAMPLES
        assert made <= rounds.judged + 3
        assert len(log.samples) == rounds.judged
        told = losses(session, IDS)
        assert told == {name: truth[name] for name in told}
        session.close()
        assert verify(session.certificate()).valid


def test_in_process_it_is_the_same_without_a_server(folder: Path, truth: dict[str, float]) -> None:
    session = in_process()
    large, asked = counted("large")
    log = ran(celeus.inspect.certified(exam(), session), large, folder)
    status = session.status()
    assert (log.status, status.state) == ("success", "target_reached")
    assert metrics(log) == pytest.approx(interval(session), abs=1e-12)
    assert len(asked) == status.rounds.judged < SAMPLES
    told = losses(session, IDS)
    assert told == {name: truth[name] for name in told}
    assert session.id in log.eval.metadata["celeus"]["says"]
    session.close()
    assert verify(session.certificate()).valid


def test_logs_of_other_models_make_the_surrogate(folder: Path) -> None:
    ran(exam(), model("small"), folder)
    items = celeus.inspect.items(exam(), "logs")
    assert len({item["surrogate"] for item in items}) == 2
    assert [item["id"] for item in items] == IDS
    assert items[7]["payload"] == {
        "question": "Question 7: which letter?",
        "choices": ["w", "x", "y", "z"],
        "reference": "wxyz"[LETTERS.index(questions(8)[7].target)],
    }


def test_what_sessions_drew_changes_no_surrogate(folder: Path) -> None:
    ran(exam(), model("small"), folder)
    items = celeus.inspect.items(exam(), "logs")
    session = celeus.certify(items, None, precision=0.3)
    for limit in (5, None):
        # The first log is of a run that did not finish, and both are of one model
        task = celeus.inspect.certified(exam(), session)
        ran(task, model("large"), folder, limit=limit)
    assert celeus.inspect.items(exam(), "logs") == items
    assert len(logs(folder)) == 3
    min((folder / "logs").glob("*.eval")).unlink()
    with pytest.raises(InvalidValue, match="drawn by sessions"):
        celeus.inspect.items(exam(), "logs")


def test_two_models_are_compared_on_the_same_draws(service: Service, folder: Path) -> None:
    items = celeus.inspect.items(exam())
    with celeus.Client(service.url, service.key) as client:
        rows = [item | {"a": {}, "b": {}} for item in items]
        pool = client.create_pool("exam", rows, systems={"a": "large", "b": "small"})
        there = client.open_session(pool, precision=0.2)
        here = celeus.compare(items, items, None, loss="zero_one", precision=0.2)
        for session in (there, here):
            large, asked = counted("large")
            small, asked_too = counted("small")
            a, b = task_with(exam(), model=large), task_with(exam(), model=small)
            tasks = celeus.inspect.compared(a, b, session)
            both = run_eval(tasks, log_dir=str(folder / "logs"), display="none", max_tasks=2)
            status = session.status()
            assert [log.status for log in both] == ["success", "success"]
            assert sorted(asked) == sorted(asked_too)
            assert len(asked) == status.rounds.judged < SAMPLES
            for log in both:
                assert metrics(log) == pytest.approx(
                    {
                        "difference": -float(status.estimate or 0),
                        "lower": -float(status.upper or 0),
                        "upper": -float(status.lower or 0),
                        "labels": status.rounds.in_interval,
                    }
                )
            scores = [
                {str(one.id): float(one.scores["choice"].value != "C") for one in log.samples}
                for log in both
            ]
            assert losses(session, IDS) == {
                name: loss - scores[1][name] for name, loss in scores[0].items()
            }


def failing(when: Callable[[int], bool]) -> Model:
    """A model whose endpoint fails at some questions."""
    outputs = model("large").api.outputs

    def output(messages: list[Any], *more: object) -> object:
        at = int(messages[-1].text.split("Question ")[1].split(":")[0])
        if when(at):
            message = "the endpoint is down"
            raise RuntimeError(message)
        return outputs(messages, *more)

    return get_model("mockllm/large", custom_outputs=output, memoize=False)


def test_a_sample_that_fails_is_unjudgeable_where_the_run_goes_on(folder: Path) -> None:
    session = in_process(precision=0.25)
    task = celeus.inspect.certified(exam(), session)
    log = ran(task, failing(lambda at: at % 10 == 0), folder, fail_on_error=False)
    status = session.status()
    assert (log.status, status.state) == ("success", "target_reached")
    assert status.rounds.pending == 0
    told = losses(session, IDS)
    failed = [one for one in log.samples if one.error is not None]
    assert {name for name, loss in told.items() if loss is None} == {str(it.id) for it in failed}
    (reason, *_) = [one.detail for one in session.ledger() if one.kind == "unjudgeable"]
    assert reason["unjudgeable"] == "RuntimeError('the endpoint is down')"


@pytest.mark.parametrize("when", [lambda at: at >= 0, lambda at: at % 10 == 0])
def test_an_error_that_ends_the_run_is_told_to_nobody(
    folder: Path, when: Callable[[int], bool]
) -> None:
    session = in_process()
    log = ran(celeus.inspect.certified(exam(), session), failing(when), folder)
    assert log.status == "error"
    assert None not in losses(session, IDS).values()
    log = ran(celeus.inspect.certified(exam(), session), model("large"), folder)
    assert (log.status, session.status().state) == ("success", "target_reached")
    assert session.status().rounds.pending == 0
    assert None not in losses(session, IDS).values()


def test_a_task_is_run_again_and_goes_on(folder: Path) -> None:
    session = in_process()
    task = celeus.inspect.certified(exam(), session)
    first = ran(task, model("large"), folder, limit=30)
    assert (first.status, len(first.samples)) == ("success", 30)
    again = ran(task, model("large"), folder)
    assert (again.status, session.status().state) == ("success", "target_reached")
    assert len(again.samples) + 30 == session.status().rounds.judged == len(losses(session, IDS))


def by_chance(name: str, runs: list[int]) -> Model:
    """A model whose answers vary from run to run."""
    chance = random.Random(6)  # noqa: S311 -- the model's luck
    outputs = model(name).api.outputs

    def output(messages: list[Any], *more: object) -> ModelOutput:
        runs.append(1)
        said: ModelOutput = outputs(messages, *more)
        if chance.random() < 0.5:
            said.completion = "ANSWER: none"
        return said

    return get_model(f"mockllm/{name}", custom_outputs=output, memoize=False)


@pytest.mark.parametrize("success", [None, "all of 3"])
def test_samples_are_run_again_by_names_of_their_own(folder: Path, success: str | None) -> None:
    rows, runs = celeus.inspect.items(exam(12)), list[int]()
    asked: dict[str, Any] = {"precision": 0.4, "target": "runs", "repeats": True}
    session = celeus.certify(rows, None, success=success, **asked)
    task = celeus.inspect.certified(exam(12), session, hold=5)
    log = ran(task, by_chance("large", runs), folder)
    status = session.status()
    assert log.error is None, log.error
    assert status.state == "target_reached"
    assert metrics(log) == pytest.approx(interval(session), abs=1e-12)
    assert status.rounds.judged > 12
    assert len(runs) == len(log.samples) == (status.runs or status.rounds.judged)
    names = {str(sample.id) for sample in log.samples}
    assert len(names) == len(runs)
    session.close()
    assert verify(session.certificate()).valid


def test_every_run_of_a_draw_has_the_renewals_of_one(folder: Path) -> None:
    session = celeus.certify(
        celeus.inspect.items(exam(12)),
        None,
        budget=1,
        precision=0.4,
        target="runs",
        repeats=True,
        success="any of 3",
    )
    task = exam(12)
    side = _side("", task, Options())
    live = LiveSession(session, session.status(), [side], 1, "worker")
    outputs, beats = model("large").api.outputs, list[int]()

    def output(messages: list[Any], *more: object) -> ModelOutput:
        beats.append(live._turns.beats)
        # As if it had thought for as long as a judge may
        live._turns.beats = MOST_BEATS
        said: ModelOutput = outputs(messages, *more)
        said.completion = "ANSWER: none"
        return said

    wrong = get_model("mockllm/large", custom_outputs=output, memoize=False)
    ran(_driven(task, live, side, dict), wrong, folder)
    assert beats == [0, 0, 0]
    assert session.status().runs == 3


def test_a_run_that_failed_is_unjudgeable_and_not_made_again(folder: Path) -> None:
    session = celeus.certify(celeus.inspect.items(exam(40)), None, target="runs", precision=0.13)
    failed = celeus.inspect.certified(exam(40), session)
    log = ran(failed, failing(lambda at: at == 7), folder)
    assert log.status == "error"
    (why,) = [one.detail for one in session.ledger() if one.kind == "unjudgeable"]
    assert why["unjudgeable"] == "RuntimeError('the endpoint is down')"
    names = IDS[:40]
    assert [name for name, loss in losses(session, names).items() if loss is None] == ["q007"]
    # What fails once and is tried again is a run that failed
    tried = list[int]()

    def once(at: int) -> bool:
        tried.append(at)
        return at % 3 == 2 and tried.count(at) == 1

    ran(celeus.inspect.certified(exam(40), session), failing(once), folder, retry_on_error=1)
    said = losses(session, names)
    again = {IDS[at] for at in tried if tried.count(at) == 2}
    assert again
    assert {name for name, loss in said.items() if loss is None} == {"q007"} | again
    told = [one.detail for one in session.ledger() if one.kind == "unjudgeable"]
    assert "before it was tried again: RuntimeError" in told[-1]["unjudgeable"]


def test_a_grader_may_have_a_seed_and_no_cache(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(folder / "cache"))

    def output(*_: object) -> ModelOutput:
        said = ModelOutput.from_content("mockllm/grader", "GRADE: C")
        said.usage = ModelUsage(input_tokens=10, output_tokens=3, total_tokens=13)
        return said

    def graded(**settings: Any) -> Status:  # noqa: ANN401 -- of a model
        config = GenerateConfig(**settings)
        grader = get_model("mockllm/grader", config=config, custom_outputs=output, memoize=False)
        session = celeus.certify(
            celeus.inspect.items(exam(12)),
            None,
            precision=0.7,
            target="runs",
            repeats=True,
            file=folder / f"{settings}.jsonl",
        )
        task = task_with(exam(12), scorer=model_graded_qa(model=grader))
        log = ran(celeus.inspect.certified(task, session), by_chance("large", []), folder)
        assert (log.error is None) == ("cache" not in settings)
        return session.status()

    assert graded(seed=4).state == "target_reached"
    assert graded(cache=True).rounds.judged < 12


@pytest.mark.parametrize("repeats", [False, True])
def test_a_fixed_seed_makes_no_fresh_run(folder: Path, repeats: bool) -> None:  # noqa: FBT001
    session = celeus.certify(
        celeus.inspect.items(exam(12)), None, precision=0.9, target="runs", repeats=repeats
    )
    log = ran(celeus.inspect.certified(exam(12), session), by_chance("large", []), folder, seed=4)
    assert log.error is not None
    assert "fixed seed" in log.error.message
    assert session.status().rounds.judged == 0
