"""What a session cannot certify is refused in one line that says what to do, before it costs."""

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import inspect_ai
import pytest
from inspect_ai import Task, task_with
from inspect_ai import eval as run_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, Scorer, Target, accuracy, choice, mean, scorer
from inspect_ai.solver import TaskState, multiple_choice

import celeus
import celeus.inspect
from celeus.client.blocking import Session
from tests.ecosystem.inspect_live.runs import losses, metrics, ran
from tests.ecosystem.inspect_runs import faltering, model, questions, two
from tests.ecosystem.service import Service

pytestmark = pytest.mark.ecosystem
SAMPLES = 40
IDS = [f"q{at:03d}" for at in range(SAMPLES)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def small(scored: object = None, samples: object = None, epochs: int = 1) -> Task:
    """A task of forty questions."""
    return Task(
        dataset=samples or questions(SAMPLES),
        solver=multiple_choice(),
        scorer=scored or choice(),
        epochs=epochs,
    )


def session_of(precision: float = 0.3, budget: int | None = None) -> Session:
    """A session in process on these."""
    items = celeus.inspect.items(small())
    return celeus.certify(items, None, loss=(0, 1), precision=precision, budget=budget)


def refusal(make: Callable[..., object], *given: object) -> str:
    """The line of a refusal."""
    with pytest.raises(celeus.Refusal) as refused:
        make(*given)
    line = str(refused.value)
    assert "\n" not in line
    return line


def moved() -> MemoryDataset:
    """The same questions under the numbers that Inspect gives, from another end."""
    given = list(questions(SAMPLES))
    for sample in given:
        sample.id = None
    return MemoryDataset(given[::-1])


def numbered() -> MemoryDataset:
    """The same questions under the numbers that Inspect gives."""
    given = list(questions(SAMPLES))
    for sample in given:
        sample.id = None
    return MemoryDataset(given)


@scorer(metrics=[mean()])  # type: ignore[untyped-decorator]
def stars() -> Scorer:
    """A number, and nobody says which way it is better."""

    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=5 if state.output.completion.endswith(target.text) else 1)

    return score


@scorer(metrics=[accuracy()])  # type: ignore[untyped-decorator]
def partly() -> Scorer:
    """Some answers are partly right."""

    async def score(state: TaskState, target: Target) -> Score:
        return Score(value="C" if state.output.completion.endswith(target.text) else "P")

    return score


@scorer(metrics=[accuracy()])  # type: ignore[untyped-decorator]
def silent() -> Scorer:
    """It says nothing."""

    async def score(state: TaskState, target: Target) -> Score | None:
        del state, target
        return None

    return score


@pytest.mark.parametrize(
    ("task", "line"),
    [
        (lambda: small(epochs=2), "an item is judged once: run the task with one epoch"),
        (lambda: small(scored=[choice(), stars()]), "(choice, stars): choose one with score="),
        (lambda: Task(dataset=questions(SAMPLES)), "has no metric: there are no scores in it"),
        (
            lambda: small(samples=questions(SAMPLES + 1)),
            "the data set has q040, and the pool of ses_",
        ),
        (lambda: small(samples=list(questions(30))), "the data set has not q030, q031, q032, …,"),
        (
            lambda: small(samples=[Sample(id="q001", input="one"), Sample(id="q001", input="two")]),
            "the data set has q001 twice: give every sample an id",
        ),
    ],
)
def test_a_task_that_is_not_the_sessions_is_refused(task: Callable[[], Task], line: str) -> None:
    session = session_of()
    assert line in refusal(celeus.inspect.certified, task(), session)
    assert session.status().rounds.drawn == 0


def test_samples_that_moved_under_their_numbers_are_refused() -> None:
    numbers = celeus.certify(celeus.inspect.items(small(samples=numbered())), None, precision=0.3)
    line = refusal(celeus.inspect.certified, small(samples=moved()), numbers)
    assert line.startswith("1 has another ")
    assert line.endswith("was changed or shuffled: give every sample an id that stays")


def test_logs_of_another_version_are_refused_by_the_name_of_the_item(folder: Path) -> None:
    ran(small(), model("small"), folder)
    changed = list(questions(SAMPLES))
    changed[3].target = "A" if changed[3].target != "A" else "B"
    line = refusal(celeus.inspect.items, small(samples=changed), "logs")
    assert line.startswith("item q003 is not the same in the data set and in the log of mockllm/")
    other = [Sample(id=f"x{at}", input="?") for at in range(3)]
    line = refusal(celeus.inspect.items, small(samples=other), "logs")
    assert line == "the logs are of other items: none of them is x0"


@pytest.mark.parametrize(
    ("scored", "line"),
    [
        (stars, "item q\\d+ does not say which stars is better: say so with higher=True or high"),
        (two, "several .two/length, two/truth.: choose one with score="),
        (silent, "item q\\d+ has no score of silent: run it with scoring; a scorer that cannot"),
    ],
)
def test_a_score_that_is_no_loss_ends_the_run_and_is_told_to_nobody(
    folder: Path, scored: Callable[[], Scorer], line: str
) -> None:
    session = session_of()
    log = ran(celeus.inspect.certified(small(scored()), session), model("large"), folder)
    assert log.status == "error"
    assert log.error is not None
    assert log.error.message.startswith("celeus: ")
    assert re.search(line, log.error.message)
    assert losses(session, IDS) == {}


@pytest.mark.parametrize(
    ("scored", "reading", "ends"),
    [
        (stars, {"higher": True, "scale": (1, 5)}, (1, 5)),
        (two, {"score": "two/truth", "higher": True}, (0, 1)),
        (partly, {}, (0.5, 1)),
    ],
)
def test_a_score_is_read_as_asked(
    folder: Path, scored: Callable[[], Scorer], reading: dict[str, Any], ends: tuple[float, float]
) -> None:
    session = session_of(0.01)
    task = celeus.inspect.certified(small(scored()), session, **reading)
    log = ran(task, model("large"), folder)
    assert (log.status, session.status().state) == ("success", "target_reached")
    right = sum(one.output.completion.endswith(one.target) for one in log.samples) / SAMPLES
    expected = ends[0] + right * (ends[1] - ends[0])
    assert metrics(log)["lower"] <= expected + 1e-9
    assert metrics(log)["upper"] >= expected - 1e-9
    assert metrics(log)["upper"] - metrics(log)["lower"] <= 0.01 * 4 + 1e-9


def test_a_scorer_that_cannot_tell_is_unjudgeable_with_its_reason(folder: Path) -> None:
    session = session_of(0.01, SAMPLES)
    task = celeus.inspect.certified(small(faltering()), session, higher=True)
    assert ran(task, model("large"), folder).status == "success"
    told = losses(session, IDS)
    assert {name for name, loss in told.items() if loss is None} == {
        name for name in told if int(name[1:]) % 5 == 0
    }
    (first, *_) = [one.detail for one in session.ledger() if one.kind == "unjudgeable"]
    assert "faltering gave no score" in first["unjudgeable"]


def test_a_session_is_of_one_model(folder: Path) -> None:
    session = session_of()
    ran(celeus.inspect.certified(small(), session), model("large"), folder, limit=5)
    log = ran(celeus.inspect.certified(small(), session), model("small"), folder)
    assert log.error is not None
    assert "was begun with mockllm/large, and this is mockllm/small" in log.error.message


def test_epochs_asked_for_on_the_command_line_end_the_run(folder: Path) -> None:
    session = session_of()
    log = ran(celeus.inspect.certified(small(), session), model("large"), folder, epochs=2)
    assert log.error is not None
    assert "run the task with one epoch" in log.error.message


def test_samples_that_inspect_leaves_out_end_the_run(folder: Path) -> None:
    session = session_of()
    log = ran(celeus.inspect.certified(small(), session), model("large"), folder, sample_id="q001")
    assert log.error is not None
    assert "run without --sample-id" in log.error.message


def test_a_session_that_has_stopped_says_what_it_came_to(folder: Path) -> None:
    session = session_of()
    ran(celeus.inspect.certified(small(), session), model("large"), folder)
    line = refusal(celeus.inspect.certified, small(), session)
    assert "asks for nothing more, it is target_reached: mean loss" in line


def test_sessions_that_no_single_run_serves_are_refused(service: Service, folder: Path) -> None:
    items = celeus.inspect.items(small())
    with celeus.Client(service.url, service.key) as client:
        pair = client.create_pool(
            "pair", [one | {"a": {}, "b": {}} for one in items], systems={"a": "x", "b": "y"}
        )
        three = client.create_pool("three", items, systems=["x", "y", "z"])
        stars_pool = client.create_pool(
            "stars", items, loss={"kind": "bounded", "lower": 1, "upper": 5}
        )
        plain = client.create_pool("plain", items)
        for pool, opening, line in (
            (pair, {"precision": 0.3}, "compares two systems: give both to compared()"),
            (three, {"best": True}, "has more than two systems, which a run cannot serve"),
            (stars_pool, {"precision": 0.3}, "are on another scale: make the pool with losses"),
            (
                plain,
                {
                    "raters": "assigned",
                    "protocol": "two_then_third",
                    "panel": ["ann", "ben", "cid"],
                },
                "has a panel of raters, which a run cannot serve",
            ),
        ):
            session = client.open_session(pool, **opening)
            assert line in refusal(celeus.inspect.certified, small(), session)
        one = client.open_session(plain, precision=0.3)
        line = refusal(celeus.inspect.compared, small(), small(), one)
        assert "compares nothing: open it on a pool of two systems" in line
        ran(celeus.inspect.certified(small(), one), model("large"), folder, limit=3)
        log = ran(celeus.inspect.certified(small(), one), model("small"), folder)
        assert log.error is not None
        assert f"{one.id} was begun with mockllm/large" in log.error.message


def test_two_tasks_of_other_samples_are_not_compared() -> None:
    items = celeus.inspect.items(small())
    session = celeus.compare(items, items, None, loss="zero_one", precision=0.3)
    changed = list(questions(SAMPLES))
    changed[3].target = "A" if changed[3].target != "A" else "B"
    line = refusal(celeus.inspect.compared, small(), small(samples=changed), session)
    assert line == "q003 is not the same in both tasks: two tasks are compared on one data set"
    task = small()
    assert "the two tasks are one" in refusal(celeus.inspect.compared, task, task, session)


def test_a_task_whose_other_half_does_not_run_ends(folder: Path) -> None:
    items = celeus.inspect.items(small())
    session = celeus.compare(items, items, None, loss="zero_one", precision=0.3)
    a = task_with(small(), model=model("large"))
    b = task_with(small(silent()), model=model("small"))
    tasks = celeus.inspect.compared(a, b, session)
    first, second = run_eval(tasks, log_dir=str(folder), display="none", max_tasks=2)
    assert "has no score of silent" in second.error.message
    assert "has ended: mend it, and run both again" in first.error.message


def test_an_older_inspect_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(inspect_ai, "SampleSource")
    for name in [one for one in sys.modules if one.startswith("celeus.harnesses.inspect_")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "celeus.inspect")
    with pytest.raises(ImportError, match=r"Inspect 0\.3\.250 or later: pip install -U inspect-ai"):
        importlib.import_module("celeus.inspect")
