"""Run lm-eval on two small tasks with two made-up models: `python -m tests.ecosystem.lm_eval_runs`.

It wrote `fixtures/lm-eval` with lm-eval 0.4.13, in the environment of `make ecosystem`.
"""

import json
import random
import shutil
import sys
from pathlib import Path
from typing import Any

from lm_eval.__main__ import cli_evaluate

from tests.ecosystem.hashlm import KIND

TASKS = Path(__file__).parent / "tasks"
FIXTURES = Path(__file__).parent / "fixtures" / "lm-eval"
DOCUMENTS = 20
SKILLS = {"small": 0.45, "large": 0.7}


def write_tasks(folder: Path, documents: int) -> None:
    """Sums to be answered and to be chosen, and the two tasks that ask for them."""
    chance = random.Random(0)  # noqa: S311 -- sums, no secrets
    sums = [(chance.randrange(100), chance.randrange(100)) for _ in range(documents + 10)]
    choices = [[one + other + by for by in (0, 1, -1, 10)] for one, other in sums]
    for some in choices:
        chance.shuffle(some)
    of: dict[str, list[dict[str, Any]]] = {
        "gen": [
            {"question": f"What is {one}+{other}?", "answer": str(one + other)}
            for one, other in sums
        ],
        "mc": [
            {
                "question": f"{one}+{other}?",
                "choices": [str(it) for it in some],
                "answer": some.index(one + other),
            }
            for (one, other), some in zip(sums, choices, strict=True)
        ],
    }
    for name, lines in of.items():
        for split, part in (("test", lines[:documents]), ("train", lines[documents:])):
            text = "".join(json.dumps(line) + "\n" for line in part)
            (folder / f"{name}_{split}.jsonl").write_text(text)
    for path in TASKS.glob("*.yaml"):
        (folder / path.name).write_text(path.read_text().replace("FOLDER", str(folder)))


TOY_GROUP = """group: {name}
task: [toy_mc, toy_few]
aggregate_metric_list:
  - metric: acc
    weight_by_size: {weighted}
"""


def write_groups(folder: Path, documents: int) -> None:
    """A second, smaller task with choices, `toy_few`, and groups of both: by size, and not."""
    few = (folder / "mc_test.jsonl").read_text().splitlines(keepends=True)[-documents:]
    (folder / "few_test.jsonl").write_text("".join(few))
    task = (folder / "toy_mc.yaml").read_text()
    task = task.replace("toy_mc", "toy_few").replace("mc_test", "few_test")
    (folder / "toy_few.yaml").write_text(task)
    for name, weighted in (("toy_both", "true"), ("toy_even", "false")):
        (folder / f"{name}.yaml").write_text(TOY_GROUP.format(name=name, weighted=weighted))


def run(folder: Path, documents: int) -> None:
    """Logs of both models under `folder`, each in a folder of its name."""
    tasks = folder / "tasks"
    tasks.mkdir(parents=True)
    write_tasks(tasks, documents)
    for name, skill in SKILLS.items():
        arguments = ["--model", KIND, "--model_args", f"name={name},skill={skill}"]
        arguments += ["--tasks", "toy_mc,toy_gen", "--include_path", str(tasks)]
        arguments += ["--output_path", str(folder / name), "--log_samples"]
        sys.argv = ["lm_eval", "run", *arguments]
        cli_evaluate()


if __name__ == "__main__":
    made = Path(sys.argv[1])
    run(made, DOCUMENTS)
    for one in SKILLS:
        shutil.rmtree(FIXTURES / one, ignore_errors=True)
        (FIXTURES / one).mkdir(parents=True)
        for log in (made / one).rglob("*.json*"):
            shutil.copyfile(log, FIXTURES / one / log.name)
