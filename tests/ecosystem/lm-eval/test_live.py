"""lm-eval driven by a session: the losses of a full run, of the documents that are drawn alone."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from lm_eval import simple_evaluate
from lm_eval.api.task import ConfigurableTask
from lm_eval.tasks import TaskManager

import celeus
from celeus.commands import runs
from celeus.core.certificate.verify import verify
from celeus.errors import InvalidValue
from celeus.harnesses.lm_eval_documents import Documents, Machine, Settings
from celeus.intake.joining import compare, each_output, join
from celeus.intake.rows import Options
from tests.ecosystem.hashlm import KIND, HashLM
from tests.ecosystem.lm_eval_runs import write_groups, write_tasks
from tests.ecosystem.service import Service
from tests.intake.made import refusal, rows

pytestmark = pytest.mark.ecosystem
DOCUMENTS, FEW = 200, 60
WHOLE = "name=w,skill=0.6,whole=True"
ROOT = Path(__file__).parents[3]
START = "import tests.ecosystem.hashlm; from celeus.cli import main; main()"
THEIRS = "import tests.ecosystem.hashlm; from lm_eval.__main__ import cli_evaluate; cli_evaluate()"
SCORES = [
    ("toy_mc", "acc", "none"),
    ("toy_mc", "acc_norm", "none"),
    ("toy_gen", "exact_match", "strict-match"),
    ("toy_gen", "exact_match", "flexible-extract"),
]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    write_tasks(folder, DOCUMENTS)
    write_groups(folder, FEW)
    return folder


def documents(tasks: Path, task: str, options: Options, **more: Any) -> Documents:  # noqa: ANN401
    return Documents(Settings((task,), KIND, WHOLE, include_path=str(tasks), **more), options)


def full_run(tasks: Path, task: str, arguments: str = WHOLE, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """What lm-eval itself says of every document."""
    manager = TaskManager(include_path=str(tasks), include_defaults=False)
    model, run = KIND, {"tasks": [task], "task_manager": manager, "bootstrap_iters": 0}
    ran: dict[str, Any] = simple_evaluate(model=model, model_args=arguments, **run, **more)
    return ran


def losses(run: dict[str, Any], task: str, metric: str, filter_: str = "none") -> dict[str, float]:
    samples = run["samples"][task]
    return {str(it["doc_id"]): 1 - it[metric] for it in samples if it["filter"] == filter_}


def program(*words: str) -> list[str]:
    return [sys.executable, "-c", START, "run", "lm-eval", *words]


def ran(
    folder: Path, *words: str, status: int = 0, environment: dict[str, str] | None = None
) -> str:
    """What the command says, on both streams where it fails."""
    done = subprocess.run(
        program(*words),
        cwd=folder,
        env=surroundings(environment),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + (done.stderr if status else "")


def surroundings(more: dict[str, str] | None = None) -> dict[str, str]:
    path = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT / 'app'}:{ROOT}"}
    return path | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HOME": "/tmp"} | (more or {})  # noqa: S108


def words(tasks: Path, task: str = "toy_mc", model: str = WHOLE) -> list[str]:
    told = ["--tasks", task, "--metric", "acc", "--model", KIND, "--model_args", model]
    return [*told, "--include_path", str(tasks)]


def result(folder: Path) -> dict[str, Any]:
    (path,) = folder.rglob("results_*.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.parametrize(("task", "metric", "filter_"), SCORES)
def test_drawn_documents_have_the_losses_of_a_full_run(
    tasks: Path, task: str, metric: str, filter_: str
) -> None:
    whole = losses(full_run(tasks, task), task, metric, filter_)
    made = HashLM.made
    test = documents(tasks, task, Options(metric, filter_))
    test.start(Machine())
    test.build()
    order = [row.id for row in test.rows]
    assert {*order} == {*whole}
    random.Random(1).shuffle(order)  # noqa: S311 -- an order, no secret
    found: dict[str, float | None] = {}
    for at in range(0, len(order), 7):
        batch = test.run(order[at : at + 7])
        found |= {name: test.loss(name, lines) for name, lines in batch.items()}
    assert found == whole
    assert 0 < sum(whole.values()) < DOCUMENTS
    assert HashLM.made == made + 1


def test_what_is_logged_of_a_document_is_what_a_full_run_logs(tasks: Path) -> None:
    whole = full_run(tasks, "toy_gen")
    test = documents(tasks, "toy_gen", Options("exact_match", "strict-match"))
    test.start(Machine())
    test.build()
    for name in ("7", "3"):
        own = [one for one in whole["samples"]["toy_gen"] if str(one["doc_id"]) == name]
        lines = test.run([name])[name]
        for line, other in zip(lines, own, strict=True):
            assert len(line["resps"][0]) == 2, "repeats"
            for member in ("doc_id", "doc", "doc_hash", "prompt_hash", "target_hash", "filter"):
                assert line[member] == other[member], member
            assert line["metrics"] == other["metrics"]
            assert line["resps"] == other["resps"]


def test_lm_eval_is_never_asked_for_some_samples(
    tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    built, iterated = ConfigurableTask.build_all_requests, ConfigurableTask.doc_iterator

    def recorded(self: Any, **more: Any) -> Any:  # noqa: ANN401
        asked.append(more.get("samples"))
        return built(self, **more)

    def iterate(self: Any, **more: Any) -> Any:  # noqa: ANN401
        asked.append(more.get("samples"))
        return iterated(self, **more)

    monkeypatch.setattr(ConfigurableTask, "build_all_requests", recorded)
    monkeypatch.setattr(ConfigurableTask, "doc_iterator", iterate)
    test = documents(tasks, "toy_mc", Options("acc"))
    test.start(Machine())
    test.build()
    test.run(["5", "2"])
    assert asked
    assert {*asked} == {None}


def test_why_lm_eval_is_never_asked_for_some_samples(tasks: Path) -> None:
    whole = losses(full_run(tasks, "toy_mc"), "toy_mc", "acc")
    some = [*range(100, 200)]
    part = full_run(tasks, "toy_mc", samples={"toy_mc": some})["samples"]["toy_mc"]
    other = sum(1 - one["acc"] != whole[str(one["doc_id"])] for one in part)
    assert other > 20, "a document's loss would depend on what is drawn beside it"
    none = full_run(tasks, "toy_mc", samples={"toy_mc": []})["samples"]["toy_mc"]
    assert len(none) == DOCUMENTS, "no samples are all samples"


def check(folder: Path, whole: dict[str, float]) -> dict[str, Any]:
    """The results of a run that stopped, held against a full run."""
    found = result(folder)
    (scores,) = found["results"].values()
    mean = 1 - sum(whole.values()) / len(whole)
    assert scores["acc_lower,none"] <= scores["acc,none"] <= scores["acc_upper,none"]
    assert scores["acc_lower,none"] <= mean <= scores["acc_upper,none"]
    assert scores["acc_upper,none"] - scores["acc_lower,none"] <= 0.2
    lines = [
        json.loads(line)
        for path in folder.rglob("samples_*.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert all(1 - line["acc"] == whole[str(line["doc_id"])] for line in lines)
    assert len(lines) == len({line["doc_id"] for line in lines}) < DOCUMENTS
    assert found["celeus"]["labels"] <= len(lines)
    return found


def test_killed_and_started_again_it_goes_on(tasks: Path, tmp_path: Path) -> None:
    log = tmp_path / "asked"
    slow = f"{WHOLE},slow=0.005,log={log}"
    own = [*words(tasks, model=slow), "--precision", "0.2", "--hold", "8"]
    kill(tmp_path, own, labels=24)
    # What the ledger had stays, and nobody runs it again
    (kept,) = (tmp_path / "results").glob("documents_*.jsonl")
    before = kept.read_text().splitlines()
    said = ran(tmp_path, *own)
    assert "target_reached" in said
    after = kept.read_text().splitlines()
    assert after[: len(before)] == before
    whole = losses(full_run(tasks, "toy_mc", slow.replace("0.005", "0")), "toy_mc", "acc")
    found = check(tmp_path / "results", whole)
    assert len(after) == found["celeus"]["labels"]
    # Four choices a document; those in flight when it was killed are run again
    again = len(log.read_text().splitlines()) - 4 * DOCUMENTS - 4 * len(after)
    assert 0 <= again <= 4 * 8
    assert "0 of them now" in ran(tmp_path, *own)
    (certificate,) = (tmp_path / "results").glob("certificate_*.json")
    assert certificate.stat().st_size
    assert result(tmp_path / "results") == found


def kill(
    folder: Path, own: Sequence[str], labels: int, environment: dict[str, str] | None = None
) -> None:
    """Start a run and kill it once so many documents were run."""
    process = subprocess.Popen(
        program(*own),
        cwd=folder,
        env=surroundings(environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    try:
        while sum(len(it.read_text().splitlines()) for it in folder.rglob("documents_*")) < labels:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_on_a_service_killed_and_started_again(
    tasks: Path, tmp_path: Path, service: Service
) -> None:
    own = words(tasks, model=f"{WHOLE},slow=0.005")
    said = ran(tmp_path, *own, "--write-pool", "pool.ndjson")
    assert "bounded by 0 and 1" in said
    loss = {"kind": "bounded", "lower": 0, "upper": 1}
    with celeus.Client(service.url, service.key) as client:
        pool = client.create_pool("toy", tmp_path / "pool.ndjson", loss=loss)
        session = client.open_session(pool, precision=0.2)
        own += ["--session", session.id, "--hold", "8"]
        kill(tmp_path, own, 24, service.environment)
        assert "target_reached" in ran(tmp_path, *own, environment=service.environment)
        status = session.status()
        assert (status.stop_reason, status.rounds.pending) == ("target_reached", 0)
        names = [item.id for item in client.items(pool)]
        entries = [*session.ledger()]
    drawn = {one.round: names[one.item] for one in entries if one.item is not None}
    told = {drawn[one.round]: one.loss for one in entries if one.loss is not None}
    whole = losses(full_run(tasks, "toy_mc"), "toy_mc", "acc")
    assert told == {name: whole[name] for name in told}
    assert len(told) == status.rounds.judged
    found = check(tmp_path / "results", whole)
    assert found["celeus"]["session"] == status.id
    (scores,) = found["results"].values()
    assert status.upper is not None
    assert scores["acc_lower,none"] == pytest.approx(1 - status.upper, abs=1e-12)


def test_a_service_session_on_other_items_is_refused(
    tasks: Path, tmp_path: Path, service: Service
) -> None:
    with celeus.Client(service.url, service.key) as client:
        told = {"doc_hash": "0" * 64}
        items = [{"id": str(at), "payload": told} for at in range(DOCUMENTS)]
        strange = client.create_pool("strange", [{"id": f"x{at}"} for at in range(10)])
        of = [client.create_pool("other", items), strange]
        sessions = [client.open_session(one, precision=0.5).id for one in of]
    one = [*words(tasks), "--session"]
    said = [ran(tmp_path, *one, it, status=1, environment=service.environment) for it in sessions]
    assert "its document is another one in the pool" in said[0]
    assert "which is no document here" in said[1]
    assert not [*(tmp_path / "results").iterdir()]
    two = ["--compare", "name=v,skill=0.9"]
    answer = ran(tmp_path, *one, sessions[0], *two, status=1, environment=service.environment)
    assert "leave out --compare" in answer
    assert "precision must be left out beside session" in ran(
        tmp_path, *one, sessions[0], "--precision", "0.1", status=1
    )


@pytest.fixture(scope="module")
def others(tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Whole logs of other models, which know a sum in the order of their skill."""
    folder = tmp_path_factory.mktemp("others")
    for skill in (0.3, 0.5, 0.7, 0.9):
        arguments = f"name=w,skill={skill}"
        command = [
            sys.executable,
            "-c",
            THEIRS,
        ]
        command += ["run", "--model", KIND, "--model_args", arguments, "--tasks", "toy_mc"]
        command += ["--include_path", str(tasks), "--output_path", str(folder / str(skill))]
        subprocess.run(
            [*command, "--log_samples"], env=surroundings(), check=True, capture_output=True
        )
    return folder


def test_logs_of_others_save_labels(tasks: Path, tmp_path: Path, others: Path) -> None:
    own = [*words(tasks, model="name=w,skill=0.65"), "--precision", "0.15", "--hold", "1"]
    ran(tmp_path, *own, "--output_path", "plain")
    said = ran(tmp_path, *own, "--output_path", "guessed", "--surrogate", str(others))
    assert "surrogate: the mean loss of hashlm(name=w,skill=0.3)" in said
    plain, guessed = (result(tmp_path / it)["celeus"]["labels"] for it in ("plain", "guessed"))
    assert guessed < 0.8 * plain


def test_two_models_on_the_drawn_documents(tasks: Path, tmp_path: Path) -> None:
    own = words(tasks, model="name=w,skill=0.45")
    said = ran(tmp_path, *own, "--compare", "name=w,skill=0.8", "--margin", "0.05")
    assert "leads by" in said
    found = [json.loads(it.read_text()) for it in (tmp_path / "results").rglob("results_*.json")]
    assert len(found) == 2
    (scores,) = found[0]["results"].values()
    runs = [full_run(tasks, "toy_mc", f"name=w,skill={it}") for it in (0.45, 0.8)]
    lost = [sum(losses(one, "toy_mc", "acc").values()) / DOCUMENTS for one in runs]
    lead = lost[0] - lost[1]
    assert scores["acc_difference_lower,none"] <= lead <= scores["acc_difference_upper,none"]
    assert scores["acc_difference_lower,none"] > -0.05
    assert found[0]["celeus"]["labels"] < DOCUMENTS
    assert found[0]["celeus"]["difference"].startswith("hashlm(name=w,skill=0.8) less")


def test_two_models_on_a_service(tasks: Path, tmp_path: Path, service: Service) -> None:
    own = [*words(tasks, model="name=w,skill=0.45"), "--compare", "name=w,skill=0.8"]
    said = ran(tmp_path, *own, "--write-pool", "pool.ndjson")
    a, b = (f"hashlm(name=w,skill={it})" for it in (0.45, 0.8))
    assert f"system_a={a}&system_b={b}" in said
    loss = {"kind": "bounded", "lower": 0, "upper": 1}
    with celeus.Client(service.url, service.key) as client:
        items = tmp_path / "pool.ndjson"
        pool = client.create_pool("pair", items, loss=loss, systems={"a": a, "b": b})
        session = client.open_session(pool, precision=0.3)
        ran(tmp_path, *own, "--session", session.id, environment=service.environment)
        lower, upper = session.status().lower, session.status().upper
    runs = [full_run(tasks, "toy_mc", f"name=w,skill={it}") for it in (0.45, 0.8)]
    lost = [sum(losses(one, "toy_mc", "acc").values()) / DOCUMENTS for one in runs]
    assert lower is not None
    assert upper is not None
    assert lower <= lost[0] - lost[1] <= upper


@pytest.mark.parametrize(
    ("group", "said"),
    [("toy_both", "which weighs tasks by their size"), ("toy_even", "not the average that")],
)
def test_of_a_group_it_says_which_average_it_is(
    tasks: Path, tmp_path: Path, group: str, said: str
) -> None:
    told = ran(tmp_path, *words(tasks, group), "--precision", "0.2")
    assert said in told
    found = result(tmp_path / "results")
    assert said in found["celeus"]["average"]
    run = full_run(tasks, group)
    whole = [*losses(run, "toy_mc", "acc").values(), *losses(run, "toy_few", "acc").values()]
    scores = found["results"][group]
    assert scores["acc_lower,none"] <= 1 - sum(whole) / len(whole) <= scores["acc_upper,none"]
    if group == "toy_both":
        assert run["results"][group]["acc,none"] == pytest.approx(1 - sum(whole) / len(whole))
    names = {
        row.id.split("/")[0]
        for row in rows("lm-eval", tmp_path, options=Options("acc", tasks=("toy_mc", "toy_few")))
    }
    assert names == {"toy_mc", "toy_few"}


def test_its_log_guesses_beside_whole_ones_and_is_no_pool(
    tasks: Path, tmp_path: Path, others: Path
) -> None:
    ran(tmp_path, *words(tasks), "--precision", "0.2")
    options = Options("acc")
    own = rows("lm-eval", tmp_path / "results", options=options)
    assert {row.model for row in own} == {f"hashlm({WHOLE})"}
    whole = losses(full_run(tasks, "toy_mc"), "toy_mc", "acc")
    assert {row.id: row.loss for row in own} == {row.id: whole[row.id] for row in own}
    both = [*own, *rows("lm-eval", others, options=options)]
    other = "hashlm(name=w,skill=0.3)"
    assert len(join(both).items) == len(join(both, other).items) == DOCUMENTS
    for call in (
        lambda: join(own),
        lambda: join(both, own[0].model),
        lambda: compare(both, own[0].model, other),
        lambda: each_output(both),
    ):
        assert "were not drawn equally likely" in refusal(call)


BAD = [
    (["--tasks", "toy_nothing"], "'toy_nothing' is not a registered task"),
    (["--metric", "accuracy"], "toy_mc has no metric 'accuracy', only acc, acc_norm"),
    (["--given", "filter=strict"], "toy_mc has no filter 'strict', only none"),
    (["--model", "nothing"], "no model for this name found"),
    (["--model_args", "skill=much"], "lm-eval declines model hashlm: could not convert"),
    (["--margin", "0.1"], "margin must be left out, or beside --compare"),
    (["--compare", WHOLE], "is compared with itself"),
    (["--surrogate", "nowhere"], "nowhere: there is no such file"),
    (["--tasks", "toy_f1", "--metric", "f1"], "f1 of toy_f1 is made by f1"),
    (["--tasks", "toy_points", "--metric", "points"], "say so with --given better=higher"),
    (["--tasks", "toy_gen", "--metric", "exact_match"], "choose one with --given filter="),
]


POINTS = """
import signal

def points(doc, results):
    # As the harness's own tasks of mathematics end what takes too long: in the main thread alone
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(5)
    signal.alarm(0)
    return {"points": 0.5 + doc["answer"]}
"""


@pytest.fixture(scope="module")
def strange(tasks: Path) -> Path:
    """Tasks with a metric that is no mean, and with one of which nobody says what is better."""
    task = (tasks / "toy_mc.yaml").read_text()
    acc = "metric: acc\n    aggregation: mean\n    higher_is_better: true"
    assert acc in task
    for name, metric in (
        ("toy_f1", "metric: f1\n    aggregation: f1\n    higher_is_better: true"),
        ("toy_points", "metric: points\n    aggregation: mean"),
    ):
        text = task.replace("toy_mc", name).replace(acc, metric)
        if name == "toy_points":
            text += "process_results: !function points.points\n"
        (tasks / f"{name}.yaml").write_text(text)
    (tasks / "points.py").write_text(POINTS)
    return tasks


@pytest.mark.parametrize(("wrong", "said"), BAD)
def test_what_cannot_be_run_is_refused_in_one_line(
    strange: Path, tmp_path: Path, wrong: list[str], said: str
) -> None:
    own = dict(zip(*[iter(words(strange))] * 2, strict=True))
    own |= dict(zip(*[iter(wrong)] * 2, strict=True))
    told = ran(
        tmp_path, *(it for pair in own.items() for it in pair), "--precision", "0.2", status=1
    )
    assert said in told
    assert "Traceback" not in told
    assert not [*tmp_path.iterdir()] or not [*(tmp_path / "results").iterdir()]


def test_a_score_beyond_its_ends_is_refused_and_nothing_stays(
    strange: Path, tmp_path: Path
) -> None:
    own = words(strange, "toy_points")
    own[own.index("acc")] = "points"
    own += ["--precision", "0.2", "--given", "better=higher"]
    assert "give the ends of the score with --scale" in ran(tmp_path, *own, status=1)
    assert not [*(tmp_path / "results").iterdir()]
    ran(tmp_path, *own, "--given", "scale=0 to 4")
    (scores,) = result(tmp_path)["results"].values()
    assert 0 <= scores["points_lower,none"] < scores["points_upper,none"] <= 4


def test_several_processes_are_refused(tasks: Path, tmp_path: Path) -> None:
    told = ran(
        tmp_path, *words(tasks), "--precision", "0.2", status=1, environment={"WORLD_SIZE": "2"}
    )
    assert "a session is driven by one process" in told


def test_an_old_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "OLDEST", (99, 0, 0))
    with pytest.raises(InvalidValue, match="pip install 'lm-eval>=99"):
        runs._check_version()


def test_no_goal_is_refused_before_anything_is_loaded(tasks: Path, tmp_path: Path) -> None:
    assert "give --precision or --budget, or --all" in ran(tmp_path, *words(tasks), status=1)


def test_a_budget_ends_a_run_with_a_wider_interval(tasks: Path, tmp_path: Path) -> None:
    said = ran(tmp_path, *words(tasks), "--precision", "0.05", "--budget", "40", "--limit", "100")
    assert "40 of 100 documents" in said
    assert "the first 100 of each task" in result(tmp_path)["celeus"]["of"]


BY_CHANCE = "name=w,skill=0.6,chance=True"
SAMPLED = ("--gen_kwargs", "temperature=1,do_sample=true")


def over_runs(tasks: Path, model: str = BY_CHANCE) -> list[str]:
    told = ["--tasks", "toy_gen", "--metric", "exact_match", "--given", "filter=flexible-extract"]
    told += ["--model", KIND, "--model_args", model, "--include_path", str(tasks)]
    return [*told, "--limit", "20", "--settings", "target=runs", "--settings", "repeats=true"]


@pytest.mark.parametrize(("success", "truth"), [(None, 0.6), ("all of 3", 0.6**3)])
def test_documents_are_run_again_until_the_score_over_all_runs_is_known(
    tasks: Path, tmp_path: Path, success: str | None, truth: float
) -> None:
    log = tmp_path / "asked"
    own = [*over_runs(tasks, f"{BY_CHANCE},slow=0.002,log={log}"), *SAMPLED, "--precision", "0.3"]
    own += [] if success is None else ["--settings", f"success={success}"]
    kill(tmp_path, [*own, "--hold", "8"], labels=24)
    (kept,) = (tmp_path / "results").glob("documents_*.jsonl")
    before = kept.read_text().splitlines()
    said = ran(tmp_path, *own, "--hold", "8")
    assert "draws of 20 documents" in said
    assert "target_reached" in said
    assert "answers that came" not in said
    assert kept.read_text().splitlines()[: len(before)] == before
    found = result(tmp_path / "results")
    (scores,) = found["results"].values()
    name = "exact_match" if success is None else "exact_match_all_of_3"
    ends = [scores[f"{name}_{end},flexible-extract"] for end in ("lower", "upper")]
    assert ends[0] <= truth <= ends[1]
    assert ends[1] - ends[0] <= 0.3
    (samples,) = (tmp_path / "results").rglob("samples_*.jsonl")
    lines = [json.loads(line) for line in samples.read_text().splitlines()]
    runs_made = [line for line in lines if line["filter"] == "flexible-extract"]
    # No run is lost that was made, nor made again; each asks the model twice, as the task says
    assert len(runs_made) == len(kept.read_text().splitlines())
    assert 0 <= len(log.read_text().splitlines()) - 2 * len(runs_made) <= 2 * 8
    made = found["celeus"]["labels" if success is None else "runs"]
    assert made == len(runs_made) > 20
    (certificate,) = (tmp_path / "results").glob("certificate_*.json")
    assert verify(certificate.read_bytes()).valid


@pytest.mark.parametrize(
    ("model", "more", "line"),
    [
        (f"{BY_CHANCE},seed=7", SAMPLED, "leave the seed out of --model_args"),
        (BY_CHANCE, ("--gen_kwargs", "temperature=1,seed=7"), "leave the seed out of --gen_kwargs"),
        (BY_CHANCE, (), "toy_gen is answered without chance, so that every run would be the same"),
        (BY_CHANCE, ("--gen_kwargs", "do_sample=true"), "toy_gen is answered without chance"),
        (
            BY_CHANCE,
            ("--gen_kwargs", "temperature=1,do_sample=false"),
            "toy_gen is answered without chance",
        ),
        (BY_CHANCE, (*SAMPLED, "--compare", WHOLE), "target must be left out beside --compare"),
    ],
)
def test_runs_that_are_not_fresh_are_refused(
    tasks: Path, tmp_path: Path, model: str, more: Sequence[str], line: str
) -> None:
    own = [*over_runs(tasks, model), *more, "--precision", "0.5"]
    assert line in ran(tmp_path, *own, status=1)


def test_each_start_draws_other_answers(tasks: Path) -> None:
    def answers() -> list[Any]:
        test = Documents(
            Settings(
                ("toy_gen",),
                KIND,
                BY_CHANCE,
                gen_kwargs="temperature=1",
                limit=20,
                include_path=str(tasks),
            ),
            Options("exact_match", "flexible-extract"),
        )
        test.start(Machine(), fresh=True)
        model: Any = test._model
        assert model._seed is None
        test.build()
        test.free()
        torch_like = random.random()  # noqa: S311 -- what a model in this process draws from
        lines = test.run([row.id for row in test.rows]).values()
        return [torch_like, [line[0]["resps"] for line in lines]]

    first, second = answers(), answers()
    assert first[0] != second[0]
    assert first[1] != second[1]
