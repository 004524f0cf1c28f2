"""Run Inspect on a small task with two made-up models: `python -m tests.ecosystem.inspect_runs`.

It wrote `fixtures/inspect` with inspect-ai 0.3.285, in the environment of `make ecosystem`, and
`aggregates.json` beside the logs: log, metric, and the mean that Inspect reports of it.
"""

import json
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai import eval as run_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessage, Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Scorer, Target, accuracy, choice, mean, scorer
from inspect_ai.solver import TaskState, multiple_choice

from celeus.intake.sources.archives import Archive
from tests.ecosystem.units import unit

FIXTURES = Path(__file__).parent / "fixtures" / "inspect"
SAMPLES = 12
SKILLS = {"small": 0.45, "large": 0.7}
LETTERS = "ABCD"


def right(at: int) -> str:
    """The right letter of a question."""
    return LETTERS[int(unit("right", at) * 4)]


def questions(samples: int) -> MemoryDataset:
    """Questions with four choices."""
    return MemoryDataset(
        [
            Sample(
                id=f"q{at:03d}",
                input=f"Question {at}: which letter?",
                choices=["w", "x", "y", "z"],
                target=right(at),
            )
            for at in range(samples)
        ],
        name="letters",
    )


def model(name: str) -> Model:
    """A model that answers offline; its usage is told, or a tokenizer would be downloaded."""

    def output(messages: list[ChatMessage], *_: object) -> ModelOutput:
        (at,) = re.findall(r"Question (\d+)", messages[-1].text)
        letter = right(int(at))
        if unit(name, at) >= SKILLS[name]:
            letter = LETTERS[(LETTERS.index(letter) + 1) % 4]
        told = ModelOutput.from_content(f"mockllm/{name}", f"ANSWER: {letter}")
        told.usage = ModelUsage(input_tokens=10, output_tokens=3, total_tokens=13)
        return told

    return get_model(f"mockllm/{name}", custom_outputs=output, memoize=False)


@scorer(metrics={"length": [mean()], "truth": [accuracy()]})  # type: ignore[untyped-decorator]
def two() -> Scorer:
    """A scorer of two parts: a share and a grade."""

    async def score(state: TaskState, target: Target) -> Score:
        said = state.output.completion
        truth = 1.0 if said.endswith(target.text) else 0.0
        return Score(value={"length": len(said) / 100, "truth": truth})

    return score


@scorer(metrics=[mean()])  # type: ignore[untyped-decorator]
def faltering() -> Scorer:
    """A scorer that has no score for one item in five."""

    async def score(state: TaskState, target: Target) -> Score:
        del target
        at = int(str(state.sample_id)[1:])
        return Score.unscored() if at % 5 == 0 else Score(value=unit("score", at))

    return score


def run(folder: Path, samples: int) -> list[tuple[str, str, float]]:
    """Logs of both models in both forms, and of other scorers; and what Inspect reports of them."""
    folder.mkdir(parents=True, exist_ok=True)
    told = []
    for name in SKILLS:
        for form, epochs in (("eval", 1), ("json", 2)):
            log = _ran(name, form, folder, samples, epochs=epochs, scored=[choice()])
            told += [(f"{name}.{form}", "choice", _reported(log, "choice"))]
    log = _ran("large", "eval", folder, samples, epochs=1, scored=[two(), faltering()], to="parts")
    for metric in ("two/length", "two/truth", "faltering"):
        told.append(("parts.eval", metric, _reported(log, metric)))
    deflate(folder / "small.eval", folder / "deflated.eval")
    return told


def _ran(  # noqa: PLR0913 -- what a run is made of
    name: str,
    form: str,
    folder: Path,
    samples: int,
    *,
    epochs: int,
    scored: list[Any],
    to: str | None = None,
) -> EvalLog:
    task = Task(
        dataset=questions(samples),
        solver=multiple_choice(),
        scorer=scored,
        epochs=epochs,
        name="letters",
    )
    place = folder / f"run-{to or name}-{form}"
    (log,) = run_eval(task, model=model(name), log_dir=str(place), log_format=form, display="none")
    assert log.status == "success", log.error
    (path,) = place.glob(f"*.{form}")
    shutil.move(path, folder / f"{to or name}.{form}")
    shutil.rmtree(place)
    return log


def _reported(log: EvalLog, metric: str) -> float:
    """The first metric of a scorer or of its part."""
    scorer_name, _, part = metric.partition("/")
    for one in log.results.scores if log.results else ():
        if one.name in {part, metric} or (one.name == scorer_name and not part):
            return float(next(iter(one.metrics.values())).value)
    raise KeyError(metric)


def deflate(packed: Path, into: Path) -> None:
    """The same archive as versions before 0.3.206 packed it."""
    with packed.open("rb") as file, zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as archive:
        read = Archive(str(packed), file)
        for member in read.members:
            archive.writestr(member, read.read(member))


if __name__ == "__main__":
    made = Path(sys.argv[1])
    aggregates = run(made, SAMPLES)
    FIXTURES.mkdir(parents=True, exist_ok=True)
    for path in made.glob("*.eval"):
        shutil.copyfile(path, FIXTURES / path.name)
    for path in made.glob("*.json"):
        # All that happened on the way is most of it, and no reader's business
        document = json.loads(path.read_text())
        for sample in document["samples"]:
            del sample["events"]
        (FIXTURES / path.name).write_text(json.dumps(document) + "\n")
    (FIXTURES / "aggregates.json").write_text(json.dumps(aggregates, indent=1) + "\n")
