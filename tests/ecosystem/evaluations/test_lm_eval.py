"""What lm-eval itself writes is read as it is meant."""

import json
from pathlib import Path

import pytest

from celeus.intake.joining import compare, join
from celeus.intake.rows import Options
from tests.ecosystem.lm_eval_runs import SKILLS, run
from tests.intake.made import mean, rows

pytestmark = pytest.mark.ecosystem
DOCUMENTS = 60
METRICS = [
    ("toy_mc", "acc", "none"),
    ("toy_mc", "acc_norm", "none"),
    ("toy_gen", "exact_match", "strict-match"),
    ("toy_gen", "exact_match", "flexible-extract"),
]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lm-eval")
    run(folder, DOCUMENTS)
    return folder


@pytest.mark.parametrize(("task", "metric", "filter_"), METRICS)
def test_the_mean_loss_is_what_the_tool_reports_and_items_are_documents(
    logs: Path, task: str, metric: str, filter_: str
) -> None:
    for name in SKILLS:
        (path,) = (logs / name).rglob("results_*.json")
        said = json.loads(path.read_text())["results"][task][f"{metric},{filter_}"]
        found = rows("lm-eval", logs / name, options=Options(metric, filter_, (task,)))
        assert mean(row.loss for row in found) == pytest.approx(1 - said, abs=1e-12)
        assert [row.id for row in found] == [str(at) for at in range(DOCUMENTS)]


def test_runs_of_two_models_join_and_compare(logs: Path) -> None:
    found = rows("lm-eval", logs, options=Options("acc", tasks=("toy_mc",)))
    small, large = (f"hashlm(name={name},skill={skill})" for name, skill in SKILLS.items())
    assert len(join(found, large).judged) == DOCUMENTS
    compared = compare(found, small, large)
    assert compared.answers == "prediction"
    for pair in compared.pairs:
        assert not pair.same or pair.loss[0] == pair.loss[1]
