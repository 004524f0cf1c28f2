"""What Braintrust and pydantic-evals give in Python, written as JSON Lines, is a table."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from braintrust import EvalAsync
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext
from pydantic_evals.reporting import EvaluationReport, EvaluationReportAdapter

from celeus.intake.joining import join
from celeus.intake.rows import Columns, Options, Row
from tests.ecosystem.offline import only_loopback
from tests.ecosystem.units import unit
from tests.intake.made import mean, rows

pytestmark = pytest.mark.ecosystem
CASES = 40
DOWN, BROKEN = 3, 7
"""The case whose task fails, and the one whose score does."""
SKILLS = {"small": 0.4, "large": 0.8}


def answer(model: str, question: str) -> str:
    number = int(question.removeprefix("Question "))
    if number == DOWN:
        raise RuntimeError("down")
    return f"{2 * number}" if unit(model, number) < SKILLS[model] else "none"


def share(output: str, expected: str) -> float:
    """A made-up score between 0 and 1."""
    return 1.0 if output == expected else unit(expected) / 2


def written(folder: Path, model: str, cases: Iterable[dict[str, Any]]) -> Path:
    path = folder / f"{model}.jsonl"
    path.write_text("".join(json.dumps(one, default=str) + "\n" for one in cases))
    return path


async def of_braintrust(folder: Path, model: str) -> tuple[Path, float]:
    """The table of a run, and its mean score as Braintrust has it."""

    def task(question: str) -> str:
        return answer(model, question)

    def closeness(input: str, output: str, expected: str) -> float | None:  # noqa: A002 -- theirs
        return None if input == f"Question {BROKEN}" else share(output, expected)

    asked = [
        {"input": f"Question {at}", "expected": f"{2 * at}", "metadata": {"item": f"d{at}"}}
        for at in range(CASES)
    ]
    with only_loopback():
        done = await EvalAsync(
            "doubles",
            experiment_name=model,
            data=asked,
            task=task,
            scores=[closeness],
            no_send_logs=True,
        )
    return written(folder, model, map(asdict, done.results)), done.summary.scores["closeness"].score


@dataclass
class Closeness(Evaluator[str, str, None]):  # type: ignore[misc]  # it ships no types
    """Two scores of one evaluator: a share, and whether it is whole."""

    def evaluate(self, ctx: EvaluatorContext[str, str, None]) -> dict[str, float | bool]:
        if ctx.inputs == f"Question {BROKEN}":
            raise ValueError("no score")
        score = share(ctx.output, str(ctx.expected_output))
        return {"closeness": score, "exact": score == 1.0}


async def of_pydantic(folder: Path, model: str) -> tuple[Path, EvaluationReport[str, str, None]]:
    cases = [
        Case(name=f"d{at}", inputs=f"Question {at}", expected_output=f"{2 * at}")
        for at in range(CASES)
    ]
    data = Dataset[str, str, None](name="doubles", cases=cases, evaluators=[Closeness()])

    async def task(question: str) -> str:
        return answer(model, question)

    with only_loopback():
        report = await data.evaluate(task, name=model, progress=False)
    told = EvaluationReportAdapter.dump_python(report, mode="json")
    return written(folder, model, [*told["cases"], *told["failures"]]), report


def read(paths: Iterable[Path], score: str, item: str, question: str, expected: str) -> list[Row]:
    shown = {question: "question", expected: "reference", "output": "answer"}
    columns = Columns({item: "id", score: "score", **shown})
    return rows("table", *paths, options=Options(higher=True, columns=columns))


async def run(folder: Path) -> dict[str, tuple[list[Path], float]]:
    """Tables of both models by column of the score, and the tools' means for the large one."""
    one, other = folder / "braintrust", folder / "pydantic"
    one.mkdir()
    other.mkdir()
    of_one = [await of_braintrust(one, model) for model in SKILLS]
    of_other = [await of_pydantic(other, model) for model in SKILLS]
    averages = of_other[1][1].averages()
    assert averages is not None
    assert averages.assertions is not None
    paths = [path for path, _ in of_other]
    return {
        "scores.closeness": ([path for path, _ in of_one], of_one[1][1]),
        "scores.closeness.value": (paths, averages.scores["closeness"]),
        "assertions.exact.value": (paths, averages.assertions),
    }


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[Path], float]]:
    return asyncio.run(run(tmp_path_factory.mktemp("tables")))


COLUMNS = {
    "scores.closeness": ("metadata.item", "input", "expected"),
    "scores.closeness.value": ("name", "inputs", "expected_output"),
    "assertions.exact.value": ("name", "inputs", "expected_output"),
}


@pytest.mark.parametrize("score", COLUMNS)
def test_the_mean_loss_is_what_the_tool_reports_and_items_are_cases(
    tables: dict[str, tuple[list[Path], float]], score: str
) -> None:
    paths, said = tables[score]
    found = read(paths[1:], score, *COLUMNS[score])
    assert mean(row.loss for row in found) == pytest.approx(1 - said, abs=1e-12)
    assert {row.id for row in found if row.loss is None} == {f"d{DOWN}", f"d{BROKEN}"}
    assert len(found) == CASES
    joined = join(read(paths, score, *COLUMNS[score]), "large")
    assert (len(joined.items), joined.partial, joined.models) == (CASES, 0, ("small",))
    (down,) = [item for item in joined.items if item.name == f"d{DOWN}"]
    assert down.shown.question == f"Question {DOWN}"
    assert down.shown.answer is None
