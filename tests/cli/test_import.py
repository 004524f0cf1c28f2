"""`celeus import`: pools of logs, and what certifying them would have cost."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.cli.calling import Answer, Run, simulated
from tests.intake.made import FIXTURES, inspect_json, inspect_sample, lm_eval, losses

ITEMS, MODELS = 300, 7
OPENED = ": celeus open --given kind=bounded --given lower=0 --given upper=1"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Logs of seven models on one task whose items are hard or easy for all."""
    folder = tmp_path / "results"
    return written(folder, ITEMS)


def written(folder: Path, items: int) -> Path:
    for at, of_model in enumerate(losses(items, MODELS).T):
        lm_eval(folder / f"m{at}", f"m{at}", [1.0 - loss for loss in of_model])
    return folder


def given(option: str, *values: str) -> tuple[str, ...]:
    """The option, given with each of these values."""
    return tuple(part for value in values for part in (f"--{option}", value))


def labels(answer: Answer) -> dict[str, int]:
    """The labels that a backtest told, by their names."""
    found = re.findall(r"^  (with|without|fixed)\b.*?([\d,]+)$", answer.out, re.MULTILINE)
    return {name: int(number.replace(",", "")) for name, number in found}


def test_a_pool_of_a_log_is_one_line_of_glue(run: Run, results: Path, tmp_path: Path) -> None:
    out = tmp_path / "pool.ndjson"
    answer = run("import", results, "--out", out)
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.splitlines()[0] == f"{ITEMS} items"
    assert "mean loss of 7: m0, m1, m2, m3, m4 and 2 more" in answer.out
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["id"] for row in rows] == [str(at) for at in range(ITEMS)]
    assert {*rows[0]} == {"id", "payload", "surrogate"}
    assert {path.name for path in tmp_path.iterdir()} == {"results", "pool.ndjson"}


def test_losses_held_out_are_simulated_as_they_are(run: Run, results: Path, tmp_path: Path) -> None:
    out = tmp_path / "pool.ndjson"
    answer = run("import", results, "--truth", "m3", "--out", out)
    assert answer.status == 0
    with np.load(tmp_path / "pool.npz") as read:
        assert read["loss"].tolist() == losses(ITEMS, MODELS)[:, 3].tolist()
        guesses = [json.loads(line)["surrogate"] for line in out.read_text().splitlines()]
        assert read["surrogate"].tolist() == guesses
    report = simulated(run, tmp_path / "pool.npz", "--precision", 0.2, "--runs", 2)
    assert report["items"] == ITEMS


def test_five_logs_save_more_labels_than_one_and_the_backtest_is_that_of_simulate(
    run: Run, tmp_path: Path
) -> None:
    results = written(tmp_path / "results", 1000)
    asked = ("--backtest", "10%")
    told = {}
    for logs in (1, 5):
        paths = [results / f"m{at}" for at in (*range(logs), 6)]
        answer = run("import", *paths, "--truth", "m6", *asked)
        assert (answer.status, answer.err) == (0, "")
        told[logs] = labels(answer)
        assert re.search(r"the surrogate saves \d+ % of the labels", answer.out)
    assert told[1]["without"] == told[5]["without"]
    assert told[5]["with"] < 0.9 * told[1]["with"] < 0.9 * told[1]["without"]
    assert told[1]["fixed"] < told[1]["without"]
    out = tmp_path / "pool.ndjson"
    run("import", *paths, "--truth", "m6", "--out", out)
    file, options = tmp_path / "pool.npz", ("--precision", 0.1, "--runs", 10)
    report = simulated(run, file, *options)
    assert round(report["labels"]["median"]) == told[5]["with"]


def test_a_surrogate_that_knows_nothing_is_said_to_be_worth_nothing(
    run: Run, tmp_path: Path
) -> None:
    chance = np.random.default_rng(1)
    for name in ("a", "b"):
        lm_eval(tmp_path / name, name, (chance.random(400) < 0.5).astype(float).tolist())
    answer = run("import", tmp_path, "--backtest", 0.12)
    assert answer.status == 0
    assert "held out: b" in answer.out, "the last one, where none is named"
    assert answer.out.endswith("the surrogate is worth nothing here: take another one, or none\n")
    alone = run("import", tmp_path / "a", "--backtest", 0.2)
    assert "with the surrogate" not in alone.out
    assert alone.out.endswith("there is no surrogate: give the logs of other models on the same"
                              " task\n")  # fmt: skip


def test_a_backtest_holds_a_model_out_and_the_pool_does_not(
    run: Run, results: Path, tmp_path: Path
) -> None:
    out = tmp_path / "pool.ndjson"
    asked = ("--backtest", 0.2)
    answer = run("import", results, *asked, "--out", out)
    assert answer.status == 0
    assert "held out: m6" in answer.out
    assert "mean loss of 6: " in answer.out
    assert "mean loss of 7: " in answer.out
    alone = tmp_path / "alone.ndjson"
    run("import", results, "--out", alone)
    assert out.read_text() == alone.read_text()
    assert not (tmp_path / "pool.npz").exists()


def test_a_comparison_knows_the_answers_that_are_equal(
    run: Run, results: Path, tmp_path: Path
) -> None:
    out = tmp_path / "pool.ndjson"
    answer = run("import", results, "--compare", "m1", "m2", "--out", out)
    assert (answer.status, answer.err) == (0, "")
    assert "alike" not in answer.out, "texts do not decide by themselves"
    asked = ("--text-decides", "--backtest", 0.1)
    answer = run("import", results, "--compare", "m1", "m2", "--out", out, *asked)
    assert (answer.status, answer.err) == (0, "")
    table = losses(ITEMS, MODELS)
    same = int((table[:, 1] == table[:, 2]).sum())
    assert "pool.npz; the losses are zero_one\n" in answer.out
    assert f"{same} of them alike: known, and never to be judged" in answer.out
    assert labels(answer)["with"] < ITEMS - same
    assert "these scores are the truth here, and other models guess them; in the pool" in answer.out
    report = simulated(run, tmp_path / "pool.npz", "--precision", 0.1, "--runs", 2)
    assert report["known"] == same
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert {*rows[0]["a"]} == {"answer", "surrogate"}


def test_what_the_logs_say_of_two_models_needs_no_pool(run: Run, results: Path) -> None:
    answer = run("import", results, "--compare", "m1", "m2")
    assert (answer.status, answer.err) == (0, "")
    table = losses(ITEMS, MODELS)
    mean = float((table[:, 1] - table[:, 2]).mean())
    better = "b" if mean > 0 else "a"
    assert f"on these items {better} is better by {abs(mean):.4g}: exact" in answer.out
    found = re.findall(r"at random, loss of a less that of b: (\S+) to (\S+) \(95 %", answer.out)[0]
    low, high = (float(end.replace("\N{MINUS SIGN}", "-")) for end in found)
    assert -1 < low < mean < high < 1
    assert high - low < 0.4


def test_items_without_a_score_are_told_and_are_not_0(run: Run, tmp_path: Path) -> None:
    lm_eval(tmp_path / "a", "a", [1, 0, None, 1])
    out = tmp_path / "pool.ndjson"
    answer = run("import", tmp_path / "a", "--truth", "a", "--out", out)
    assert "4 items; held out: a, mean loss 0.333333" in answer.out
    assert "1 of them without a score of a: no loss is known there" in answer.out
    with np.load(tmp_path / "pool.npz") as read:
        assert read["loss"].tolist() == [0, 1, 0]
    assert len(out.read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("logs", "options", "items"),
    [
        ("lm-eval", given("given", "task=toy_mc", "metric=acc"), 20),
        ("lm-eval", given("given", "task=toy_gen", "filter=strict-match"), 20),
        ("inspect/small.eval", (), 12),
        ("inspect/large.json", given("given", "metric=choice"), 12),
        ("inspect/parts.eval", given("given", "metric=two/length", "better=higher"), 12),
        ("promptfoo/out.json", given("given", "id=item", "metric=right"), 40),
        ("deepeval", given("given", "better=lower"), 12),
        ("swebench", (), 8),
        ("helm", given("given", "metric=max_prob", "better=higher", "scale=0 to 2"), 10),
    ],
)
def test_the_logs_of_every_tool_become_pools(
    run: Run, tmp_path: Path, *, logs: str, options: tuple[object, ...], items: int
) -> None:
    out = tmp_path / "pool.ndjson"
    answer = run("import", FIXTURES / logs, *options, "--out", out)
    assert (answer.status, answer.err) == (0, "")
    assert f"{items} items\n" in answer.out
    assert len(out.read_text().splitlines()) == items


def test_the_mean_of_repeats_is_no_zero_or_one_and_the_first_answer_is_shown(
    run: Run, tmp_path: Path
) -> None:
    log, out = tmp_path / "log.json", tmp_path / "pool.ndjson"
    samples = [inspect_sample(1, grade, epoch=at) for at, grade in enumerate("CI", 1)]
    log.write_text(json.dumps(inspect_json([*samples, inspect_sample(2, "C")])))
    answer = run("import", log, "--truth", "mockllm/a", "--out", out)
    of_items = "over items, each by its answers"
    assert answer.out.splitlines() == [
        "2 epochs of an item count as their mean, as in the log",
        f"mean loss of mockllm/a: 0.25 {of_items}; 0.3333 over all 3 answers that have a score",
        "2 items; held out: mockllm/a, mean loss 0.25",
        "1 of them answered several times: the loss is their mean, the answer shown the first",
        "no surrogate: give the logs of other models on the same task",
        f"wrote {out} and {tmp_path / 'pool.npz'}; the losses are bounded{OPENED}",
    ]
    with np.load(tmp_path / "pool.npz") as read:
        assert read["loss"].tolist() == [0.5, 0]
    outputs = run("import", log, "--each-output", "--out", out)
    assert outputs.out.endswith("the losses are zero_one\n"), "of every output by itself"


def test_a_model_whose_answers_people_judge_is_asked_how_sure_it_was(
    run: Run, tmp_path: Path
) -> None:
    small, large = "hashlm(name=small,skill=0.45)", "hashlm(name=large,skill=0.7)"
    out = tmp_path / "pool.ndjson"
    asked = (FIXTURES / "lm-eval", "--given", "task=toy_mc", "--truth", large, "--out", out)
    guesses = {}
    for options in (("--given", "metric=acc"), ("--given", "metric=acc", "--own-confidence")):
        answer = run("import", *asked, *options)
        assert (answer.status, answer.err) == (0, "")
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        guesses[len(options)] = {line["id"]: line["surrogate"] for line in lines}
    assert f"surrogate: loss of {small}; a hard 0 or 1 is drawn towards the mean" in answer.out
    assert f"and, weighing as much, what {large} left to other choices than its own" in answer.out
    (log,) = (FIXTURES / "lm-eval" / "large").glob("samples_toy_mc_*")
    for line in map(json.loads, log.read_text().splitlines()):
        likely = np.exp([float(one[0]) for one in line["filtered_resps"]])
        own = 1 - likely.max() / likely.sum()
        name = str(line["doc_id"])
        assert guesses[3][name] == pytest.approx((guesses[2][name] + own) / 2, abs=1e-12)
    alone = run("import", log, *asked[1:], *options)
    assert f"surrogate: what {large} left to other choices than its own\n" in alone.out
    refused = run("import", *asked, "--given", "metric=acc_norm", "--own-confidence")
    assert refused.status == 1
    assert f"the log of {large} does not say how sure it was of item 0: " in refused.err
    for others in ((), ("--each-output",)):
        refused = run("import", log, *options, "--out", out, *others)
        assert "own_confidence must come with truth: of a model that is yet to run" in refused.err


def test_a_table_is_read_by_its_columns(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("name,model,f1,text,gold\n1,a,80,Why?,x\n2,a,,How?,y\n1,b,20,Why?,x\n")
    out = tmp_path / "pool.ndjson"
    columns = given("mapping", "name=id", "f1=score", "model=model")
    shown = (
        *given("mapping", "text=question", "gold=reference"),
        *given("given", "better=higher", "scale=0 to 100"),
    )
    answer = run("import", path, *columns, *shown, "--out", out)
    assert (answer.status, answer.err) == (0, "")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows[0]["payload"] == {"question": "Why?", "reference": "x"}
    assert [row["surrogate"] for row in rows] == [0.5, 0.5]
    assert "wrote " in answer.out
    assert answer.out.endswith(f"; the losses are bounded{OPENED}\n")
    assert "1 of them without a score there: the mean of all stands for it" in answer.out


def test_every_output_becomes_an_item_for_people(run: Run, results: Path, tmp_path: Path) -> None:
    out = tmp_path / "pool.ndjson"
    logs = (results / "m0", results / "m1")
    answer = run("import", *logs, "--each-output", "--out", out)
    assert answer.status == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 2 * ITEMS
    assert rows[0]["id"] == "m0/0"
    assert rows[0]["payload"]["answer"].startswith("answer ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--out", "x", "--truth", "none"), "no log is of 'none', only of m0, "),
        (("--out", "x", "--truth", "m0", "--compare", "m0", "m1"), "compare must be left out"),
        (("--each-output", "--backtest", 0.1), "backtest must be left out beside each_output"),
        ((), "nothing to do: name a file with --out, or ask for a --backtest"),
        (("--out", "pool.npz"), "out must be the file of the pool, such as pool.ndjson"),
        (("--out", "none/pool.ndjson"), "cannot be written: No such file or directory"),
        (
            ("--out", "x", *given("given", "scale=1 to 0")),
            "scale must be the least and",
        ),
        (
            ("--out", "x", *given("given", "scale=0 to inf")),
            "scale must be the least and",
        ),
        (
            ("--out", "x", *given("given", "rows=all")),
            "given must be one of task, ",
        ),
        (("--out", "x", *given("given", "metric")), "given must be NAME=VALUE, each name once"),
        (("--out", "x", *given("mapping", "doc=question")), "mapping must be left out: a log has"),
        (
            ("--out", "x", *given("given", "scale=-1e308 to 1e308")),
            "scale must be the least and",
        ),
        (("--out", "x", *given("given", "metric=f1")), "has no metric 'f1', only exact_match"),
        (("--out", "x", *given("given", "filter=strict")), "has no filter 'strict', only none"),
        (("--out", "x", "--model", "a", "--model", "b"), "1 logs and 2 names: give one --model"),
        (("--out", "x", "--model", "a"), "are both of a: name the models with --model, one a log"),
        (("--out", "x", "--backtest", 7), "backtest must be above 0 and below the scale's width 1"),
    ],
)
def test_bad_wishes_are_refused_in_one_line_and_leave_nothing(  # noqa: PLR0913 -- fixtures
    run: Run,
    results: Path,
    tmp_path: Path,
    *,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[object, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = run("import", results, *options)
    assert answer.status == 1
    assert answer.err.count("\n") == 1
    assert said in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


def test_a_log_is_never_written_over(run: Run, results: Path, tmp_path: Path) -> None:
    log = next(results.rglob("samples_*"))
    before = log.read_bytes()
    for out in (log, tmp_path / "results" / ".." / "results" / "m0" / log.name):
        answer = run("import", results, "--out", out)
        assert answer.status == 1
        assert "is one of the logs: name another file for the pool" in answer.err
    assert log.read_bytes() == before


def test_a_path_that_cannot_be_looked_at_is_refused_in_one_line(run: Run, tmp_path: Path) -> None:
    answer = run("import", "x" * 300, "--out", tmp_path / "pool.ndjson")
    assert answer.status == 1
    assert answer.err.endswith("cannot be read: File name too long\n")


def test_names_of_a_log_do_not_steer_the_terminal(run: Run, tmp_path: Path) -> None:
    lm_eval(tmp_path / "a", "a\x1b[2J", [1, 0])
    answer = run("import", tmp_path / "a", "--out", tmp_path / "pool.ndjson")
    assert answer.status == 0
    assert "\x1b" not in answer.out
    assert "surrogate: loss of a\\x1b[2J" in answer.out


def test_a_copy_of_the_model_held_out_is_told(run: Run, results: Path) -> None:
    logs = [next(results.glob(f"m{at}/samples_*")) for at in (0, 1, 1)]
    names = [part for name in ("x", "y", "z") for part in ("--model", name)]
    asked = ("--truth", "y", "--backtest", 0.2)
    answer = run("import", *logs, *names, *asked)
    assert answer.status == 0
    said = "celeus: y and z have the same answers and scores on all 300 items: if one is a copy"
    assert answer.err.startswith(said)


@pytest.mark.parametrize("arguments", [(), ("x", "--metric", "y"), ("x", "--format", "csv")])
def test_wrong_usage_exits_with_2(run: Run, arguments: tuple[str, ...]) -> None:
    assert run("import", *arguments).status == 2


def test_a_failed_import_leaves_the_pool_that_was_there(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "pool.ndjson"
    out.write_text("old\n")
    log = tmp_path / "log.json"
    log.write_text(json.dumps(inspect_json([inspect_sample(1, float("nan"))])))
    answer = run("import", log, "--out", out)
    assert answer.status == 1
    said = "no item has a score of mockllm/a: all are errors or have none; leave its log out"
    assert answer.err == f"celeus: {said}\n"
    assert out.read_text() == "old\n"


def test_the_scale_of_a_score_is_told_beside_its_losses(run: Run, tmp_path: Path) -> None:
    table, out = tmp_path / "grades.csv", tmp_path / "pool.ndjson"
    table.write_text("id,grade\na,1\nb,5\n")
    roles = given("mapping", "id=id", "grade=score")
    asked = (*roles, *given("given", "better=higher", "scale=1 to 5"))
    answer = run("import", table, *asked, "--out", out)
    assert "losses are from 0 to 1: 0.1 of them is 0.4 of the score" in answer.out


def test_verdicts_that_people_gave_are_known_losses(run: Run, tmp_path: Path) -> None:
    table, out = tmp_path / "scored.csv", tmp_path / "pool.ndjson"
    table.write_text("id,judge_score,human\na,0.9,correct\nb,0.2,wrong\nc,0.4,\n")
    asked = (*given("mapping", "judge_score=score", "human=known"), "--given", "better=higher")
    answer = run("import", table, *asked, "--out", out)
    assert (answer.status, answer.err) == (0, "")
    assert "3 items, 2 of them with a known loss" in answer.out
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    known = [row.get("known", {}).get("loss") for row in rows]
    assert known == [0.0, 1.0, None]
    assert [row["surrogate"] for row in rows] == pytest.approx([0.1, 0.8, 0.6])
    other = tmp_path / "other.csv"
    other.write_text("id,judge_score,human\na,0.5,\nb,0.5,\nc,0.5,wrong\n")
    compared = run("import", table, other, *asked, "--compare", "scored", "other")
    assert "3 of them with an earlier verdict on one answer: judged all the same" in compared.out
