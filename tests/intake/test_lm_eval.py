"""Logs of the lm-evaluation-harness."""

import json
from pathlib import Path

import pytest

from celeus.errors import NeedsAnswer
from celeus.intake.formats.registry import differences, read, sources
from celeus.intake.joining import compare, each_output, guessed, join, rows_of
from celeus.intake.rows import Options, Row
from tests.intake.made import DATE, FIXTURES, lm_eval, mean, refusal, rows

RUNS = FIXTURES / "lm-eval"


def reported(folder: Path, task: str, name: str) -> float:
    (path,) = folder.glob("results_*.json")
    value: float = json.loads(path.read_text())["results"][task][name]
    return value


@pytest.mark.parametrize("model", ["small", "large"])
@pytest.mark.parametrize(
    ("task", "metric", "filter_"),
    [
        ("toy_mc", "acc", "none"),
        ("toy_mc", "acc_norm", "none"),
        ("toy_gen", "exact_match", "strict-match"),
        ("toy_gen", "exact_match", "flexible-extract"),
    ],
)
def test_the_mean_loss_is_what_the_tool_reports(
    model: str, task: str, metric: str, filter_: str
) -> None:
    found = rows("lm-eval", RUNS / model, options=Options(metric, filter_, (task,)))
    said = reported(RUNS / model, task, f"{metric},{filter_}")
    assert mean(row.loss for row in found) == pytest.approx(1 - said, abs=1e-12)
    assert [row.id for row in found] == [str(at) for at in range(len(found))]
    assert {row.model for row in found} == {f"hashlm(name={model},skill={SKILL[model]})"}


SKILL = {"small": 0.45, "large": 0.7}


def test_of_multiple_choice_the_answer_is_the_likeliest_choice() -> None:
    found = rows("lm-eval", RUNS / "large", options=Options("acc", tasks=("toy_mc",)))
    for row in found:
        assert row.prediction is not None
        assert len(row.choices) == 4
        assert row.loss == float(row.choices[row.prediction] != row.reference)
    assert not any(
        row.prediction
        for row in rows("lm-eval", RUNS / "large", options=Options("acc_norm", tasks=("toy_mc",)))
    ), "the answer that acc_norm counts is another one"


@pytest.mark.parametrize("scores", [[1, 0, 0.4], [1, 1, 0]])
def test_a_metric_that_counts_something_else_than_the_likeliest_has_no_answers(
    tmp_path: Path, scores: list[float]
) -> None:
    """As truthfulqa_mc2, whose acc is a share of the probability: equal choices differ in it."""
    path = lm_eval(tmp_path, "a", scores)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line |= {"acc": line.pop("exact_match"), "metrics": ["acc"], "target": "0"}
        line["arguments"] = {f"gen_args_{at}": {"arg_0": "Q", "arg_1": f" {at}"} for at in "01"}
        line["filtered_resps"] = [["-1.0", "False"], ["-2.0", "False"]]
        path.write_text("\n".join(map(json.dumps, lines)))
    found = rows("lm-eval", path, options=Options(higher=True))
    assert [row.prediction for row in found] == [None] * 3
    for line in lines:
        line["acc"] = 1.0
    path.write_text("\n".join(map(json.dumps, lines)))
    assert [row.prediction for row in rows("lm-eval", path, options=Options(higher=True))] == [
        0
    ] * 3


@pytest.mark.parametrize(("target", "shown"), [(1, "2"), (2, "2")])
def test_a_target_is_the_place_of_a_choice_or_its_text_as_the_scores_say(
    tmp_path: Path, target: int, shown: str
) -> None:
    path = lm_eval(tmp_path, "a", [1, 0])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line, answers in zip(lines, (["-2", "-1", "-3"], ["-1", "-2", "-3"]), strict=True):
        line |= {"acc": line.pop("exact_match"), "metrics": ["acc"], "target": str(target)}
        line["arguments"] = {f"gen_args_{at}": {"arg_0": "Q", "arg_1": f" {at}"} for at in "123"}
        line["filtered_resps"] = [[one, "False"] for one in answers]
    path.write_text("\n".join(map(json.dumps, lines)))
    found = rows("lm-eval", path, options=Options(higher=True))
    assert [row.reference for row in found] == [shown] * 2


def test_what_a_judge_is_shown_is_in_the_log() -> None:
    (row, *_) = rows("lm-eval", RUNS / "small", options=Options(None, "strict-match", ("toy_gen",)))
    assert row.question is not None
    assert row.question.startswith("Q: What is ")
    assert row.reference is not None
    assert row.reference.isdecimal()
    assert row.answer is not None


def test_logs_of_two_models_join_on_their_documents() -> None:
    found = rows("lm-eval", RUNS, options=Options("acc", tasks=("toy_mc",)))
    joined = join(found, f"hashlm(name=large,skill={SKILL['large']})")
    assert len(joined.items) == len({row.id for row in found})
    assert joined.models == ("hashlm(name=small,skill=0.45)",)


def test_a_log_of_another_version_of_the_data_is_refused_by_item(tmp_path: Path) -> None:
    one = lm_eval(tmp_path / "a", "a", [1, 0, 1])
    other = lm_eval(tmp_path / "b", "b", [1, 0, 1], version="new ")
    said = refusal(join, rows("lm-eval", one, other))
    assert said.startswith("item 0 is not the same in the logs of a and b")


def test_mixed_filters_are_refused_until_one_is_chosen(tmp_path: Path) -> None:
    path = lm_eval(tmp_path, "a", [1, 0], filters=("strict", "flexible"))
    said = refusal(rows, "lm-eval", path)
    assert said.endswith("several (strict, flexible): choose one with --given filter=…")
    assert len(rows("lm-eval", path, options=Options(filter="strict"))) == 2
    assert "no filter 'none'" in refusal(rows, "lm-eval", path, options=Options(filter="none"))


def test_several_metrics_are_refused_until_one_is_chosen() -> None:
    said = refusal(rows, "lm-eval", RUNS / "small", options=Options(tasks=("toy_mc",)))
    assert said.endswith("several (acc, acc_norm): choose one with --given metric=…")


@pytest.mark.parametrize("without_results", [True, False])
def test_a_metric_without_a_direction_is_refused(tmp_path: Path, without_results: bool) -> None:  # noqa: FBT001
    path = lm_eval(tmp_path, "a", [1, 0, 0], higher=None)
    path.write_text(path.read_text().replace("exact_match", "kindness"))
    if without_results:
        (tmp_path / f"results_{DATE}.json").unlink()
    said = refusal(rows, "lm-eval", path)
    assert "does not say which kindness is better: say so with --given better=higher" in said
    assert mean(row.loss for row in rows("lm-eval", path, options=Options(higher=True))) == 2 / 3
    assert mean(row.loss for row in rows("lm-eval", path, options=Options(higher=False))) == 1 / 3


def test_a_metric_of_the_tool_itself_has_the_direction_it_has_there(tmp_path: Path) -> None:
    path = lm_eval(tmp_path, "a", [1, 0], higher=None)
    (tmp_path / f"results_{DATE}.json").unlink()
    assert [row.loss for row in rows("lm-eval", path)] == [0.0, 1.0]


def test_several_filters_and_metrics_are_asked_at_once(tmp_path: Path) -> None:
    path = lm_eval(tmp_path, "a", [1, 0], filters=("strict", "flexible"))
    lines = [json.loads(line) | {"other": 0} for line in path.read_text().splitlines()]
    lines = [line | {"metrics": ["exact_match", "other"]} for line in lines]
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(NeedsAnswer) as caught:
        rows("lm-eval", path)
    named = {
        one["name"]: [way["value"] for way in one["choices"]] for one in caught.value.questions
    }
    assert named == {"filter": ["strict", "flexible"], "metric": ["exact_match", "other"]}


def test_a_score_that_is_missing_or_no_number_is_never_0(tmp_path: Path) -> None:
    path = lm_eval(tmp_path, "a", [1, None, float("nan"), 0])
    assert [row.loss for row in rows("lm-eval", path)] == [0.0, None, None, 1.0]
    joined = join(rows("lm-eval", path, lm_eval(tmp_path / "b", "b", [1, 1, 1, 1])), "a")
    assert [item.loss for item in joined.items] == [0.0, None, None, 1.0]
    assert len(joined.judged) == 2


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_a_log_in_which_nothing_has_a_score_is_refused(tmp_path: Path, nothing: object) -> None:
    found = rows("lm-eval", lm_eval(tmp_path, "a", [nothing] * 3))
    said = "no item has a score of a: all are errors or have none; leave its log out"
    assert refusal(join, found) == said


@pytest.mark.parametrize("score", [float("inf"), 4, -1])
def test_what_is_outside_the_scale_is_no_score_only_where_that_is_said(
    tmp_path: Path, score: float
) -> None:
    path = lm_eval(tmp_path, "a", [1, score, 0])
    assert f"--given missing={score:g} says that it is no score" in refusal(rows, "lm-eval", path)
    found = rows("lm-eval", path, options=Options(missing=(f"{score:g}",)))
    assert [row.loss for row in found] == [0.0, None, 1.0]


def test_parts_of_a_document_count_once_each_as_in_the_tool(tmp_path: Path) -> None:
    path = lm_eval(tmp_path, "a", [[True, False, True], [False]])
    found = rows("lm-eval", path)
    assert [(row.loss, row.weight) for row in found] == [(pytest.approx(1 / 3), 3.0), (1.0, 1.0)]
    total = sum(row.weight for row in found)
    assert sum((row.loss or 0) * row.weight for row in found) / total == pytest.approx(0.5)


def test_people_see_the_whole_answer_and_not_the_part_that_a_filter_took(tmp_path: Path) -> None:
    path = lm_eval(tmp_path, "a", [0], answers=["[invalid]"])
    line = json.loads(path.read_text())
    line["resps"] = [["The sum is 7, so the answer is seven."]]
    path.write_text(json.dumps(line))
    (row,) = rows("lm-eval", path)
    assert row.answer == row.answer_text == "The sum is 7, so the answer is seven."
    assert row.extracted == "[invalid]"


@pytest.mark.parametrize("score", [[1, 2], {"f1": 1}, "fair"])
def test_a_score_that_is_no_number_is_refused_by_item(tmp_path: Path, score: object) -> None:
    said = refusal(rows, "lm-eval", lm_eval(tmp_path, "a", [1, score]))
    assert said.startswith("item 1 of ")
    assert "which is no number" in said or "is no mean over the documents" in said


def test_a_score_off_the_scale_is_refused_by_item_until_its_ends_are_given(tmp_path: Path) -> None:
    path = lm_eval(tmp_path, "a", [1, 4, 5])
    said = refusal(rows, "lm-eval", path)
    assert said.startswith("item 1 of ")
    assert "outside 0 to 1: --given 'scale=LOW to HIGH' gives its ends" in said
    assert [row.loss for row in rows("lm-eval", path, options=Options(scale=(1, 5)))] == [
        1,
        0.25,
        0,
    ]


def test_an_item_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = lm_eval(tmp_path, "a", [1, 0])
    path.write_text(path.read_text() * 2)
    assert refusal(rows, "lm-eval", path).startswith("item 0 stands twice in ")


def test_two_runs_of_models_with_one_name_are_refused_until_they_are_named(tmp_path: Path) -> None:
    paths = [lm_eval(tmp_path / name, "same", [1, 0]) for name in ("x", "y")]
    assert "are both of same: name the models with --model" in refusal(rows, "lm-eval", *paths)
    assert "are both of same" in refusal(rows, "lm-eval", paths[0], paths[0])
    found = rows_of(read("lm-eval", sources("lm-eval", paths, ["x", "y"]), Options()))
    assert {row.model for row in found} == {"x", "y"}
    assert "one --model a log" in refusal(sources, "lm-eval", paths, ["x"])


def test_one_name_is_that_of_all_logs_of_a_folder(tmp_path: Path) -> None:
    for task in ("law", "art"):
        for name in ("x", "y"):
            lm_eval(tmp_path / name / task, "same", [1, 0], task=task)
    given = sources("lm-eval", [tmp_path / name for name in ("x", "y")], ["x", "y"])
    found = rows_of(read("lm-eval", given, Options(tasks=("*",))))
    assert {row.model for row in found} == {"x", "y"}
    assert len(join(found).items) == 4


def test_logs_of_several_tasks_are_refused_until_they_are_asked_for(tmp_path: Path) -> None:
    for task in ("law", "art"):
        lm_eval(tmp_path / task, "a", [1, 0], task=task)
    assert "tasks (art, law): choose with --given task=…" in refusal(rows, "lm-eval", tmp_path)
    found = rows("lm-eval", tmp_path, options=Options(tasks=("*",)))
    assert sorted((row.id, row.group) for row in found) == [
        ("art/0", "art"),
        ("art/1", "art"),
        ("law/0", "law"),
        ("law/1", "law"),
    ]
    assert "only of art, law" in refusal(
        rows, "lm-eval", tmp_path, options=Options(tasks=("sums",))
    )


def test_answers_without_scores_are_refused(tmp_path: Path) -> None:
    path = lm_eval(tmp_path, "a", [1])
    path.write_text(path.read_text().replace('["exact_match"]', '["bypass"]'))
    assert "run it again without --predict_only" in refusal(rows, "lm-eval", path)


def test_logs_from_before_filters_metrics_and_hashes_are_read(tmp_path: Path) -> None:
    paths = [lm_eval(tmp_path / name, name, [1, 0]) for name in ("a", "b")]
    for path in paths:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            for name in ("filter", "metrics", "doc_hash"):
                del line[name]
            line["arguments"] = [["Q?", {}]]
        path.write_text("\n".join(map(json.dumps, lines)))
    found = rows("lm-eval", *paths)
    assert [row.loss for row in found] == [0, 1, 0, 1]
    assert found[0].question == "Q?"
    assert len(join(found).items) == 2


def test_a_log_that_was_cut_off_is_refused_by_line(tmp_path: Path) -> None:
    path = lm_eval(tmp_path, "a", [1, 0])
    path.write_text(path.read_text()[:-40])
    said = refusal(rows, "lm-eval", path)
    assert said.startswith("line 2 of ")
    assert said.endswith("is it whole?")


def test_a_log_that_was_cut_off_between_lines_is_refused_by_its_results(tmp_path: Path) -> None:
    path = lm_eval(tmp_path, "a", [1, 0, 1], filters=("strict", "flexible"))
    results = tmp_path / f"results_{DATE}.json"
    told = json.loads(results.read_text()) | {"results": {"toy": {"sample_len": 3}}}
    results.write_text(json.dumps(told))
    assert len(rows("lm-eval", path, options=Options(filter="strict"))) == 3
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    said = refusal(rows, "lm-eval", path, options=Options(filter="flexible"))
    assert said.endswith("has 2 documents where its results count 3: is it whole?")
    assert len(rows("lm-eval", path, options=Options(filter="strict"))) == 3
    told["results"]["toy"]["sample_len"] = 1
    results.write_text(json.dumps(told))
    assert len(rows("lm-eval", path, options=Options(filter="flexible"))) == 2, "some had no score"


def test_what_logs_of_one_task_do_not_share_is_told(tmp_path: Path) -> None:
    paths = [lm_eval(tmp_path / name, name, [1, 0]) for name in ("a", "b")]
    results = tmp_path / "b" / f"results_{DATE}.json"
    results.write_text(results.read_text().replace('"n-shot": {"toy": 0}', '"n-shot": {"toy": 5}'))
    (line,) = differences(read("lm-eval", sources("lm-eval", paths), Options()))
    assert line.startswith("the examples shown of toy is not the same in all logs: 0 in ")


def drawn_log(folder: Path, model: str, drawn: range) -> Path:
    """A log of which a session drew some documents."""
    path = lm_eval(folder, model, [1.0, 0.0] * 10)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    kept = [json.dumps(lines[at] | {"drawn_by": "ses_1"}) for at in drawn]
    path.write_text("\n".join(kept))
    return path


def test_what_a_session_drew_guesses_beside_whole_logs_and_is_no_pool(tmp_path: Path) -> None:
    lm_eval(tmp_path / "whole", "whole", [1.0] * 20)
    own = rows("lm-eval", drawn_log(tmp_path / "drawn", "drawn", range(3, 8)))
    assert all(row.drawn for row in own)
    both = [*own, *rows("lm-eval", tmp_path / "whole")]
    assert len(join(both).items) == len(join(both, "whole").items) == 20
    assert join(both).items[0].guess != join(both[5:]).items[0].guess
    for call in (
        lambda: join(own),
        lambda: join(both, "drawn"),
        lambda: compare(both, "whole", "drawn"),
        lambda: each_output(both),
    ):
        said = refusal(call)
        assert said.startswith("the log of drawn has only documents that a session drew")


def test_items_that_nobody_has_answered_are_guessed_by_logs(tmp_path: Path) -> None:
    found = rows("lm-eval", lm_eval(tmp_path, "other", [1.0, 0.0, 0.5]))
    items = [Row(row.id, "new", None, check=row.check) for row in found]
    more = [*items, Row("3", "new", None)]
    joined = guessed(more, found)
    assert [item.guess for item in joined.items] == [0.0, 1.0, 0.5, 0.5]
    assert (joined.models, joined.unguessed) == (("other",), 1)
    strange = [Row(row.id, "new", None, check="another") for row in found]
    assert "item 0 is not the same in the logs of new and other" in refusal(guessed, strange, found)
    nothing = refusal(guessed, [Row("x", "new", None)], found)
    assert nothing == "the logs are of other items: none of them is x"
