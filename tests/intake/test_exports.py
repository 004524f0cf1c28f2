"""Files of tools that are known by their columns: roles, blindness, scores, and near misses."""

import csv
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import celeus
from celeus.errors import InvalidValue, NeedsAnswer
from celeus.intake.formats.export_formats import EXPORTS
from celeus.intake.formats.exports import fits
from celeus.intake.formats.registry import read, sources
from celeus.intake.opening import SentFile, opened
from celeus.intake.rows import Options
from celeus.intake.sources.sheet import BadRow, Score, Sheet
from celeus.intake.table.asking import answered
from celeus.intake.table.columns import columns_of, flat
from celeus.intake.table.roles import Kind
from tests.intake.made import mean, refusal
from tests.intake.made import rows as logged

UNIT = Score(True, (0.0, 1.0))
ANSWERS = "[The Start of Assistant A's Answer]\none\n[The End of Assistant A's Answer]"
OTHERS = ANSWERS.replace("Assistant A", "Assistant B").replace("one", "two")
JUDGED = f"[User Question]\nq\n\n{ANSWERS}\n\n{OTHERS}"
Cells = dict[str, Any]


def sheet(content: bytes, metric: str | None = None, name: str = "") -> Sheet:
    given = SentFile(name, options=Options(metric=metric))
    return next(one for one in opened(io.BytesIO(content), given) if one is not None)


def lines(*rows: Cells) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def table(*rows: Cells, separator: str = ",") -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0].keys(), delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def items(found: Sheet) -> list[Cells]:
    """The rows, by the roles of their columns."""
    assert found.known is not None
    made = []
    for _, row in found.rows():
        assert not isinstance(row, BadRow)
        cells = dict(flat(row))
        made.append({role: cells.get(name) for name, role in found.known.roles.items()})
    return made


@dataclass(frozen=True)
class Case:
    """A row of a tool's file; what it is by role; what is hidden; a column that tells the tool."""

    form: str
    row: Cells
    item: Cells
    hidden: tuple[str, ...] = ()
    score: Score = field(default_factory=Score)
    mark: str = ""
    repeats: tuple[str, ...] = ()


# fmt: off
CASES = [
    Case(
        "ragas",
        {"user_input": "q", "retrieved_contexts": ["c"], "response": "a", "reference": "r",
         "faithfulness": 0.5},
        {"question": "q", "text": ["c"], "answer": "a", "reference": "r", "score": 0.5},
        score=UNIT, mark="user_input",
    ),
    Case(
        "ragas",
        {"question": "q", "contexts": ["c"], "answer": "a", "ground_truth": "r",
         "context_recall": 1.0},
        {"question": "q", "text": ["c"], "answer": "a", "reference": "r", "score": 1.0},
        score=UNIT, mark="contexts",
    ),
    Case(
        "ragas",
        {"user_input": "q", "retrieved_contexts": ["c"], "response": "a",
         "noise_sensitivity(mode=relevant)": 0.25},
        {"question": "q", "text": ["c"], "answer": "a", "score": 0.25},
        score=Score(False, (0.0, 1.0)), mark="response",
    ),
    Case(
        "humaneval",
        {"task_id": "HumanEval/0", "completion": "return 1", "result": "passed", "passed": True},
        {"id": "HumanEval/0", "answer": "return 1", "score": True},
        hidden=("result",), score=UNIT, mark="passed", repeats=("sample",),
    ),
    Case(
        "evalplus",
        {"task_id": "Mbpp/2", "solution": "return 1", "base_status": "fail", "plus_status": None},
        {"id": "Mbpp/2", "answer": "return 1", "score": False},
        hidden=("base_status", "plus_status"), score=UNIT, mark="solution",
    ),
    Case(
        "tau-bench",
        {"task_id": 3, "trial": 1, "reward": 0.0, "info": {"task": {"instruction": "book"},
         "reward": 0}, "traj": [{"role": "user", "content": "Hi"}]},
        {"id": 3, "question": "book", "messages": [{"role": "user", "content": "Hi"}],
         "score": 0.0},
        hidden=("trial", "info.reward"), score=UNIT, mark="traj", repeats=("trial",),
    ),
    Case(
        "lighteval",
        {"doc": {"id": "7", "query": "q", "choices": ["x", "y"], "gold_index": [1]},
         "model_response": {"text": ["a"], "logprobs": [-1.0]},
         "metric": {"extractive_match": 1.0}},
        {"id": "7", "question": "q", "choices": ["x", "y"], "reference": "y", "answer": ["a"],
         "score": 1.0},
        hidden=("doc.gold_index", "model_response.logprobs"), score=UNIT, mark="model_response",
    ),
    Case(
        "lighteval",
        {"example": "q", "full_prompt": "x q", "predictions": ["a"], "gold": ["r"],
         "metrics": {"rare": 0.5}},
        {"question": "q", "reference": ["r"], "answer": ["a"], "score": 0.5},
        hidden=("full_prompt",), mark="full_prompt",
    ),
    Case(
        "mt-bench",
        {"question_id": 81, "model": "m", "judge": ["gpt-4", "single-v1"], "user_prompt": "p",
         "judgment": "[[9]]", "score": -1, "turn": 2, "tstamp": 1.5},
        {"id": 81, "text": "p", "score": -1},
        hidden=("model", "judge", "judgment", "turn", "tstamp"), score=Score(True, (1.0, 10.0),
         (-1,)), mark="judgment", repeats=("turn", "model"),
    ),
    Case(
        "mt-bench",
        {"question_id": 81, "model_1": "m", "model_2": "n", "g1_winner": "model_1",
         "g2_winner": "tie", "judge": ["gpt-4"], "g1_user_prompt": JUDGED, "g1_judgment": "[[A]]"},
        {"id": 81, "question": "q", "answer_a": "one", "answer_b": "two"},
        hidden=("model_1", "model_2", "g1_winner", "g1_judgment", "g1_user_prompt"),
         mark="g1_winner", repeats=("model_1", "model_2"),
    ),
    Case(
        "arena",
        {"question_id": "x", "model_a": "m", "model_b": "n", "winner": "tie (bothbad)",
         "conversation_a": [{"role": "user", "content": "q"}, {"role": "assistant",
         "content": "one"}], "conversation_b": [{"role": "user", "content": "q"},
         {"role": "assistant", "content": "two"}]},
        {"id": "x", "question": "q", "answer_a": "one", "answer_b": "two"},
        hidden=("model_a", "model_b", "winner", "conversation_a"),
        mark="winner", repeats=("model_a", "model_b"),
    ),
    Case(
        "alpaca-eval",
        {"instruction": "q", "output_1": "one", "generator_1": "m", "output_2": "two",
         "generator_2": "n", "annotator": "w", "preference": 1.5, "raw_completion": "o"},
        {"question": "q", "answer_a": "one", "answer_b": "two"},
        hidden=("generator_1", "generator_2", "annotator", "preference", "raw_completion"),
         mark="preference", repeats=("annotator", "generator_1", "generator_2"),
    ),
    Case(
        "preference-pairs",
        {"chosen": "\n\nHuman: q\n\nAssistant: one", "rejected": "\n\nHuman: q\n\nAssistant: two"},
        {"question": "q", "answer_a": "one", "answer_b": "two"},
        mark="rejected",
    ),
    Case(
        "preference-pairs",
        {"prompt": "q", "chosen": [{"role": "user", "content": "q"}, {"role": "assistant",
         "content": "one"}], "rejected": [{"role": "user", "content": "q"}, {"role": "assistant",
         "content": "two"}], "score_chosen": 9},
        {"question": "q", "answer_a": "one", "answer_b": "two"},
        hidden=("prompt", "score_chosen"), mark="chosen",
    ),
    Case(
        "label-studio",
        {"id": 5, "data": {"question": "q", "answer": "a"}, "annotations": [{"was_cancelled": True,
         "result": [{"from_name": "v", "value": {"choices": ["Bad"]}}]}, {"completed_by": 2,
         "result": [{"from_name": "v", "value": {"choices": ["Good"]}}]}],
         "predictions": [{"score": 0.9}]},
        {"id": 5, "question": "q", "answer": "a"},
        hidden=("annotations", "predictions", "labels.v"), mark="predictions",
    ),
    Case(
        "argilla",
        {
            "text": "t",
            "inputs": {"text": "t"},
            "prediction": [["good", 0.9], ["bad", 0.1]],
            "prediction_agent": "m",
            "annotation": "bad",
            "annotation_agent": "who",
            "id": "7",
        },
        {"id": "7", "text": "t", "answer": "good"},
        hidden=("prediction", "annotation", "annotation_agent"),
        mark="annotation_agent",
    ),
    Case(
        "argilla",
        {"id": "r", "status": "completed", "fields": {"instruction": "q", "response": "a"},
         "metadata": {"source": "x"}, "suggestions": {"quality": {"value": "good", "score": 0.8}},
         "responses": {"quality": [{"value": "good", "user_id": "u"}, {"value": "bad",
         "user_id": "v"}]}},
        {"id": "r", "question": "q", "answer": "a"},
        hidden=("metadata.source", "suggestions.quality.score", "responses.quality",
         "labels.quality"), mark="suggestions",
    ),
    Case(
        "argilla",
        {"id": "r", "_server_id": "s", "status": "pending", "question": "q", "response": "a",
         "quality.suggestion": "good", "quality.suggestion.score": 0.8,
         "quality.responses": ["bad"], "quality.responses.users": ["u"]},
        {"id": "r", "question": "q", "answer": "a"},
        hidden=("quality.suggestion", "quality.suggestion.score", "quality.responses",
         "_server_id"), mark="quality.responses",
    ),
    Case(
        "prodigy",
        {"text": "t", "label": "POSITIVE", "_input_hash": 1, "_task_hash": 2, "answer": "accept",
         "_session_id": "ada"},
        {"id": 2, "text": "t", "answer": "POSITIVE"},
        hidden=("answer", "_input_hash", "_session_id"), mark="_task_hash",
         repeats=("_session_id",),
    ),
    Case(
        "prodigy",
        {"text": "t", "options": [{"id": 1, "text": "calm"}, {"id": 2, "text": "angry"}],
         "accept": [2], "answer": "reject", "_input_hash": 1, "_task_hash": 2,
         "_annotator_id": "ada"},
        {"id": 2, "text": "t", "answer": "angry", "choices": ["calm", "angry"]},
        hidden=("accept", "answer", "options", "_annotator_id"), mark="_task_hash",
        repeats=("_annotator_id",),
    ),
    Case(
        "doccano",
        {"id": 1, "text": "t", "label": ["POS"], "Comments": []},
        {"id": 1, "text": "t"},
        hidden=("label", "Comments"), mark="Comments",
    ),
    Case(
        "phoenix",
        {"context.span_id": "s", "attributes.input.value": "q", "attributes.output.value": "a",
         "label": "hallucinated", "score": 1, "explanation": "e"},
        {"id": "s", "question": "q", "answer": "a", "score": 1},
        hidden=("label", "explanation"), score=Score(missing=("NOT_PARSABLE",)),
         mark="context.span_id",
    ),
    Case(
        "squad",
        {"id": "i", "title": "T", "context": "c", "question": "q", "answers": {"text": ["r"],
         "answer_start": [1]}, "prediction_text": "a", "f1": 0.5},
        {"id": "i", "text": "c", "question": "q", "reference": ["r"], "answer": "a", "score": 0.5},
        hidden=("title", "answers.answer_start"), score=Score(True), mark="prediction_text",
    ),
    Case(
        "mlflow",
        {"inputs": "q", "outputs": "a", "ground_truth": "r", "toxicity/v1/score": 0.1,
         "toxicity/v1/justification": "j"},
        {"question": "q", "answer": "a", "reference": "r", "score": 0.1},
        hidden=("toxicity/v1/justification",), score=Score(False, (0.0, 1.0)),
         mark="toxicity/v1/score",
    ),
    Case(
        "mlflow",
        {"trace_id": "t", "request": "q", "response": "a", "safety/value": 1.0,
         "safety/rationale": "j"},
        {"id": "t", "question": "q", "answer": "a", "score": 1.0},
        hidden=("safety/rationale",), mark="trace_id",
    ),
    Case(
        "langsmith",
        {"id": "i", "inputs.question": "q", "outputs.answer": "a", "reference_outputs.answer": "r",
         "feedback.helpful": 1, "error": "x"},
        {"id": "i", "question": "q", "answer": "a", "reference": "r", "score": 1},
        hidden=("error",), mark="feedback.helpful",
    ),
    Case(
        "azure-evaluation",
        {"inputs.query": "q", "inputs.response": "a", "outputs.safety.violence_score": 3,
         "outputs.safety.violence_reason": "j"},
        {"question": "q", "answer": "a", "score": 3},
        hidden=("outputs.safety.violence_reason",), score=Score(False, (0.0, 7.0)),
         mark="outputs.safety.violence_score",
    ),
    Case(
        "braintrust",
        {"id": "i", "input": {"question": "q"}, "output": "a", "expected": "r",
         "scores": {"Factuality": 0.5}, "metadata": {"model": "m"}, "tags": None},
        {"id": "i", "question": "q", "answer": "a", "reference": "r", "score": 0.5},
        hidden=("metadata.model",), score=UNIT, mark="scores",
    ),
    Case(
        "vlmevalkit",
        {"index": 4, "image": "iVBORw0KGgo=", "question": "q", "A": "cat", "B": "dog",
         "answer": "A", "prediction": "B", "hit": 0},
        {"id": 4, "image": "iVBORw0KGgo=", "question": "q", "choices": ["A. cat", "B. dog"],
         "reference": "A", "answer": "B", "score": 0},
        hidden=("A", "B"), score=UNIT, mark="hit",
    ),
    Case(
        "terminal-bench",
        {"trial_name": "t.1", "task_id": "t", "instruction": "q", "is_resolved": None,
         "failure_mode": "timeout"},
        {"id": "t", "question": "q", "score": False},
        hidden=("failure_mode",), score=UNIT, mark="trial_name", repeats=("trial_name",),
    ),
]
# fmt: on


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.form)
def test_a_format_settles_roles_and_scores(case: Case) -> None:
    found = sheet(lines(case.row, case.row))
    assert found.known is not None
    assert found.form == case.form
    assert found.read_as[0] in {export.called for export in EXPORTS if export.form == case.form}
    assert items(found) == [case.item] * 2
    assert {*case.hidden} <= {column.name for column in columns_of(found)} - {*found.known.roles}
    known = found.known
    assert Score(known.higher, known.scale, known.missing) == case.score
    assert known.repeats == case.repeats


def test_an_attempt_of_garak_is_its_outputs_once_they_are_evaluated() -> None:
    """An attempt stands there before its detectors have run, and again behind them."""
    attempt = {
        "entry_type": "attempt",
        "uuid": "u1",
        "status": 1,
        "probe_classname": "dan.A",
        "prompt": {"turns": [{"role": "user", "content": {"text": "Do it"}}]},
        "outputs": [{"text": "No."}, None],
        "detector_results": {},
    }
    evaluated = attempt | {"status": 2, "detector_results": {"dan.Hit": [0.0, None]}}
    found = sheet(
        lines(
            {"entry_type": "init", "run": "r"}, attempt, evaluated, {"entry_type": "eval", "n": 1}
        )
    )
    assert (found.form, found.read_as) == (
        "garak",
        ("a report of garak", "2 outputs that detectors have scored"),
    )
    assert items(found) == [
        {"id": "u1", "question": "Do it", "answer": "No.", "score": 0.0},
        {"id": "u1", "question": "Do it", "answer": None, "score": None},
    ]
    assert found.known is not None
    assert (found.known.higher, found.known.scale) == (False, (0.0, 1.0))


def test_the_lines_of_labels_below_the_header_of_qualtrics_are_no_items() -> None:
    names = ["StartDate", "EndDate", "Finished", "RecordedDate", "ResponseId", "Q1", "Q2"]
    labels = dict(
        zip(names, ["Start", "End", "Done?", "At", "ID", "How good?", "Why?"], strict=True)
    )
    ids = {name: json.dumps({"ImportId": name}) for name in names}
    answers = [
        dict.fromkeys(names, "x") | {"ResponseId": f"R{at}", "Q1": str(at)} for at in range(3)
    ]
    found = sheet(table(labels, ids, *answers))
    assert (found.form, found.known) == ("qualtrics", None)
    assert found.read_as[-1] == "without 2 lines of labels below the header"
    assert [row for _, row in found.rows()] == answers
    assert [row for _, row in sheet(table(*answers)).rows()] == answers


def test_an_answer_in_qualtrics_has_its_own_id(tmp_path: Path) -> None:
    names = ["StartDate", "EndDate", "Finished", "RecordedDate", "ResponseId", "Q1", "Q2"]
    path = tmp_path / "survey.csv"
    answers = [
        dict.fromkeys(names, "x") | {"ResponseId": f"R_{number}abc", "Q2": f"because of {number}"}
        for number in range(6)
    ]
    path.write_bytes(table(*answers))
    with pytest.raises(NeedsAnswer) as asked:
        celeus.read_items(path)
    (question,) = asked.value.questions
    assert "ResponseId" not in [choice["value"] for choice in question["choices"]]
    found = celeus.read_items(path, answer="Q2")
    assert [item["id"] for item in found] == [row["ResponseId"] for row in answers]
    path.write_bytes(table(*answers, answers[0]))
    with pytest.raises(NeedsAnswer) as asked:
        celeus.read_items(path, answer="Q2")
    assert [question["name"] for question in asked.value.questions] == ["repeats"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.form)
def test_a_file_that_lacks_a_mark_is_any_table(case: Case) -> None:
    row = {name: value for name, value in case.row.items() if name != case.mark}
    found = sheet(lines(row, row))
    assert (found.form, found.known) == ("jsonl", None)


@pytest.mark.parametrize(
    "row",
    [
        {"question": "q", "model_1": "m", "output_1": "a", "output_2": "b", "preference": 2},
        {"id": 1, "text": "t", "label": "POS"},
        {"task_id": "HumanEval/0", "completion": "return 1"},
        {"question": "q", "answer": "a", "faithfulness": 1.0},
        {"id": 1, "input": "q", "output": "a", "expected": "r", "score": 1},
        {"question_id": 1, "user_prompt": "p", "score": 9},
        {"id": 1, "data": {"text": "t"}, "label": "x"},
        {"custom_id": "1", "response": "a"},
        {"question": "q", "chosen": 1, "rejected": 2},
        {"question": "q", "chosen": "1", "rejected": "2"},
    ],
)
def test_what_only_resembles_a_format_is_not_taken_for_it(row: Cells) -> None:
    assert sheet(lines(row, row)).known is None


def test_marks_are_of_one_tool() -> None:
    for case in CASES:
        names = {*case.row, *(name for name, _ in flat(case.row))}
        assert {export.form for export in EXPORTS if fits(export, names)} == {case.form}


def test_of_several_scores_the_one_asked_for_is_taken() -> None:
    row = {
        "user_input": "q",
        "retrieved_contexts": ["c"],
        "response": "a",
        "faithfulness": 0.5,
        "noise_sensitivity": 0.1,
    }
    found = sheet(lines(row))
    assert found.known is not None
    assert "score" not in found.known.roles.values()
    assert [*found.known.metrics] == ["faithfulness", "noise_sensitivity"]
    assert "faithfulness, noise_sensitivity" in found.read_as[-1]
    asked = sheet(lines(row), "noise_sensitivity").known
    assert asked is not None
    assert asked.roles["noise_sensitivity"] == "score"
    assert asked.higher is False
    with pytest.raises(InvalidValue) as refusal:
        sheet(lines(row), "recall")
    assert refusal.value.field == "metric"
    assert refusal.value.rule == "one of faithfulness, noise_sensitivity"


def test_a_win_rate_can_be_asked_for() -> None:
    """A preference of 2 is one for the second answer: the first has lost the more."""
    row = {
        "instruction": "q",
        "output_1": "a",
        "output_2": "b",
        "generator_2": "m",
        "preference": 2,
    }
    known = sheet(lines(row), "preference").known
    assert known is not None
    assert (known.roles["preference"], known.higher, known.scale) == ("score", False, (1.0, 2.0))


def events(*, accuracy: float) -> bytes:
    made: list[Cells] = [
        {"spec": {"eval_name": "sum.dev.v0", "run_id": "1"}},
        {"final_report": {"accuracy": accuracy}},
    ]
    for at, correct in enumerate((True, False, True, True)):
        about = {"run_id": "1", "sample_id": f"s.{at}"}
        prompt = [{"role": "user", "content": f"{at}?"}]
        made += [
            {
                **about,
                "event_id": 2 * at,
                "type": "sampling",
                "data": {"prompt": prompt, "sampled": ["x"]},
            },
            {
                **about,
                "event_id": 2 * at + 1,
                "type": "match",
                "data": {"correct": correct, "expected": "y", "picked": "x", "sampled": "x"},
            },
        ]
    return lines(*made)


def test_events_of_openai_evals_are_a_row_a_sample() -> None:
    found = sheet(events(accuracy=0.75))
    assert found.form == "openai-evals"
    assert found.read_as == (
        "a log of OpenAI evals",
        "final_report's accuracy 0.75, as of the 4 rows read",
    )
    made = items(found)
    assert [row["id"] for row in made] == ["s.0", "s.1", "s.2", "s.3"]
    assert made[1] == {
        "id": "s.1",
        "question": "1?",
        "answer": "x",
        "reference": "y",
        "score": False,
    }
    assert "but 0.75 of the 4 rows read" in sheet(events(accuracy=0.5)).read_as[-1]
    cut = b"".join(line for line in events(accuracy=0.75).splitlines(True) if b"final" not in line)
    assert sheet(cut).read_as[-1] == "no final_report: the run may not have ended"


def test_a_grader_of_openai_evals_is_not_the_answer() -> None:
    about = {"run_id": "1", "sample_id": "s", "event_id": 0}
    found = sheet(
        lines(
            {**about, "type": "sampling", "data": {"prompt": "q", "sampled": ["the answer"]}},
            {**about, "type": "sampling", "data": {"prompt": "grade it", "sampled": ["Y"]}},
            {**about, "type": "metrics", "data": {"choice": "Great", "score": 1.0}},
        )
    )
    (row,) = items(found)
    assert (row["answer"], row["score"]) == ("the answer", 1.0)
    assert found.known is not None
    assert found.known.higher is None
    assert "samples with several samplings, the first of them shown: 1" in found.read_as


def test_failed_calls_of_a_batch_are_left_out_and_told() -> None:
    def call(at: int, **response: object) -> Cells:
        return {"id": f"b{at}", "custom_id": f"q{at}", "response": response, "error": None}

    def said(text: str) -> Cells:
        return {"choices": [{"message": {"role": "assistant", "content": text}}], "model": "m"}

    rows = [
        call(0, status_code=500, body={"error": {"message": "overloaded"}}),
        call(1, status_code=200, body=said("one")),
        call(
            2,
            status_code=200,
            body={
                "output": [
                    {"type": "reasoning"},
                    {"type": "message", "content": [{"type": "output_text", "text": "two"}]},
                ]
            },
        ),
        call(3, status_code=200, body={"choices": []}),
    ]
    rows.append({"id": "b4", "custom_id": "q4", "response": None, "error": {"message": "expired"}})
    found = sheet(lines(*rows))
    assert found.form == "openai-batch"
    assert found.read_as[-1] == "2 answers; left out: 3 failed calls, which have none"
    assert items(found) == [{"id": "q1", "answer": "one"}, {"id": "q2", "answer": "two"}]
    assert sheet(lines(*rows[1:3])).read_as == ("output of OpenAI's batch API",)


def test_a_batch_of_failed_calls_is_known() -> None:
    row = {"id": "b", "custom_id": "q", "response": None, "error": {"message": "expired"}}
    found = sheet(lines(row, row))
    assert found.read_as[-1] == "0 answers; left out: 2 failed calls, which have none"
    assert items(found) == []


def test_a_pair_of_conversations_is_two_answers() -> None:
    def said(side: str, reply: str) -> str:
        name = f"Assistant {side}'s Conversation with User|>"
        turns = f"### User:\nq\n\n### Assistant {side}:\n{reply}"
        return f"<|The Start of {name}\n\n{turns}\n\n<|The End of {name}"

    case = next(case for case in CASES if "g1_winner" in case.row)
    row = case.row | {"g1_user_prompt": f"{said('A', 'one')}\n\n\n{said('B', 'two')}"}
    (first, _) = items(sheet(lines(row, row)))
    assert first["answer_a"] == "### User:\nq\n\n### Assistant:\none"
    assert first["answer_b"] == "### User:\nq\n\n### Assistant:\ntwo"


FAILURES = [
    {
        "id": f"simple_{at}",
        "model_name": "m",
        "test_category": "simple",
        "valid": False,
        "error": ["Wrong value"],
        "prompt": {},
    }
    for at in range(3)
]
CALL = {"custom_id": "r-1", "method": "POST", "url": "/v1/responses", "body": {"input": "Hi"}}
MTEB = {
    "task_name": "Banking77Classification",
    "mteb_version": "1.12",
    "scores": {"test": [{"accuracy": 0.81, "hf_subset": "default", "main_score": 0.81}]},
}
BOARD = {"resolved": ["a"], "no_generation": ["b"], "no_logs": []}


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (lines({"accuracy": 0.8, "correct_count": 8, "total_count": 11}, *FAILURES), "BFCL"),
        (lines(*FAILURES), "BFCL"),
        (json.dumps(FAILURES).encode(), "BFCL"),
        (lines(CALL, CALL | {"custom_id": "r-2"}), "requests, not answers"),
        (json.dumps([CALL]).encode(), "requests, not answers"),
        (table(CALL), "requests, not answers"),
        (json.dumps(MTEB).encode(), "MTEB holds means"),
        (json.dumps(BOARD).encode(), "SWE-bench board"),
        (json.dumps(BOARD, indent=2).encode(), "SWE-bench board"),
    ],
)
def test_a_part_of_the_results_is_refused_by_name(content: bytes, named: str) -> None:
    with pytest.raises(InvalidValue, match=named):
        sheet(content)


def test_verdicts_of_bfcl_joined_to_all_cases_are_read() -> None:
    passed = [case | {"id": "simple_9", "valid": True, "error": None} for case in FAILURES[:1]]
    assert len([*sheet(lines(*FAILURES, *passed)).rows()]) == 4


def test_the_command_names_what_it_refuses(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(BOARD))
    assert "SWE-bench board" in refusal(logged, "swebench", path)


@pytest.mark.parametrize(
    ("form", "second", "metric", "loss"),
    [
        ("humaneval", {"passed": False}, None, 0.5),
        ("mt-bench", {"score": 4, "turn": 1}, None, 6 / 9),
        ("tau-bench", {"reward": 1.0, "trial": 2}, None, 0.5),
        ("alpaca-eval", {"instruction": "p", "preference": 2}, "preference", 0.25),
        ("braintrust", {"id": "j", "scores": {"Factuality": 1}}, None, 0.25),
    ],
)
def test_the_command_reads_what_the_format_settles(
    tmp_path: Path, form: str, second: Cells, metric: str | None, loss: float
) -> None:
    case = next(case for case in CASES if case.form == form)
    path = tmp_path / "export.jsonl"
    path.write_bytes(lines(case.row, case.row | second))
    (log,) = read("table", sources("table", [path]), Options(metric))
    assert mean(row.loss for row in log.rows) == pytest.approx(loss)
    called = next(export.called for export in EXPORTS if export.form == form)
    assert log.notes[0].startswith(f"export is {called}")


@pytest.mark.parametrize("indent", [None, 1])
def test_results_of_evalplus_are_a_row_a_sample(indent: int | None) -> None:
    ways = {"a": ("pass", "pass"), "b": ("pass", "fail"), "c": ("fail", "pass")}
    tasks = {
        name: [{"task_id": name, "solution": name, "base_status": base, "plus_status": plus}] * 2
        for name, (base, plus) in ways.items()
    }
    content = json.dumps({"date": "d", "hash": "h", "eval": tasks}, indent=indent).encode()
    found = sheet(content, "plus")
    assert found.form == "evalplus"
    assert found.known is not None
    assert found.known.repeats == ("sample",)
    # The tool's own rule: plus is passed by the tests of both
    assert [row["score"] for row in items(found)] == [True, True, False, False, False, False]
    assert [row["score"] for row in items(sheet(content, "base"))] == [True] * 4 + [False] * 2
    cut = {"eval": {"a": [{"base_status": "pass"}], "b": [{"task_id": "b"}]}}
    with pytest.raises(InvalidValue) as refusal:
        sheet(json.dumps(cut).encode())
    assert refusal.value.rule == "results of EvalPlus as the tool writes them"
    old = {"eval": {"a": {"nfiles": 1, "base": [["pass", [1]]], "plus": [["fail", [0]]]}}}
    assert items(sheet(json.dumps(old).encode(), "plus"))[0]["score"] is False


def test_samples_of_livecodebench_are_rows() -> None:
    row = {
        "question_id": "q",
        "question_content": "Sort.",
        "difficulty": "easy",
        "output_list": ["o", "p"],
        "code_list": ["c", "d"],
        "graded_list": [True, False],
        "pass@1": 0.5,
    }
    found = sheet(json.dumps([row]).encode())
    assert [(one["answer"], one["score"]) for one in items(found)] == [("o", True), ("p", False)]
    assert found.known is not None
    assert found.known.repeats == ("sample",)
    assert {"code", "pass@1"}.isdisjoint(found.known.roles)
    # Lists of unequal lengths are no samples of one problem
    short = row | {"code_list": ["c"]}
    assert [type(one) for _, one in sheet(json.dumps([row, short]).encode()).rows()][2] is BadRow


@pytest.mark.parametrize(
    ("details", "answers"),
    [
        (
            {
                "type": "GEN",
                "0": {
                    "prompt": [{"role": "HUMAN", "prompt": "q"}],
                    "origin_prediction": "is A",
                    "predictions": "A",
                    "references": "B",
                    "correct": False,
                },
            },
            "is A",
        ),
        ([{"pred": "A", "answer": "B", "correct": False}], "A"),
    ],
)
def test_details_of_opencompass_are_rows(details: object, answers: str) -> None:
    found = sheet(json.dumps({"accuracy": 0.0, "details": details}).encode())
    assert found.form == "opencompass"
    (row,) = items(found)
    assert (row["id"], row["answer"], row["reference"]) == ("0", answers, "B")
    assert row.get("question", "q") == "q"
    assert row["score"] is False
    assert found.read_as[-1] == "the file's accuracy 0, as of the 1 rows read"


def test_predictions_of_opencompass_are_rows() -> None:
    row = {"origin_prompt": "q", "prediction": "a", "gold": "r"}
    made = items(sheet(json.dumps({"0": row, "1": row}).encode()))
    assert [one["id"] for one in made] == ["0", "1"]
    assert made[0]["question"] == "q"


@pytest.mark.parametrize(
    "document",
    [
        {"eval": {"name": "mine"}, "rows": [{"question": "q"}]},
        {"details": {"note": "x"}, "rows": [{"question": "q"}]},
        {"resolved": True, "rows": [{"question": "q"}]},
        {"tasks": "x", "simulations": [], "rows": [{"question": "q"}]},
    ],
)
def test_a_document_with_such_a_member_is_any_document(document: Cells) -> None:
    found = sheet(json.dumps(document, indent=1).encode())
    assert found.known is None
    assert [row for _, row in found.rows()] == [{"question": "q"}]


def test_simulations_of_tau2_are_runs() -> None:
    run = {
        "id": "x",
        "task_id": "7",
        "trial": 1,
        "messages": [{"role": "user", "content": "Hi"}],
        "reward_info": {"reward": 1.0},
    }
    document = {"timestamp": "t", "tasks": [{"id": "7"}], "simulations": [run]}
    (row,) = items(sheet(json.dumps(document).encode()))
    assert (row["id"], row["score"]) == ("7", 1.0)


def test_assignments_of_a_hit_are_one_item() -> None:
    rows = [
        {
            "HITId": f"H{at // 3}",
            "AssignmentId": f"A{at}",
            "WorkerId": f"W{at % 3}",
            "Input.question": "q",
            "Input.response": f"a{at // 3}",
            "Answer.verdict": "ynn"[at % 3],
        }
        for at in range(6)
    ]
    found = sheet(table(*rows))
    assert [(row["id"], row["answer"]) for row in items(found)] == [("H0", "a0"), ("H1", "a1")]
    assert found.read_as[0] == "a batch of Mechanical Turk"
    assert "6 assignments of 2 HITs, an item each" in found.read_as
    first = next(row for _, row in found.rows() if isinstance(row, dict))
    assert first["Answer.verdict"] == ["y", "n", "n"]
    nameless = sheet(table(*rows, rows[0] | {"HITId": ""}))
    assert [isinstance(row, BadRow) for _, row in nameless.rows()] == [False, False, True]


def test_ratings_of_mqm_are_segments() -> None:
    def rating(seg: int, rater: str, category: str, severity: str) -> Cells:
        return {
            "system": "s",
            "doc": "d",
            "doc_id": 1,
            "seg_id": seg,
            "rater": rater,
            "source": "x",
            "target": "ein <v>Ziel</v>",
            "category": category,
            "severity": severity,
        }

    rows = [
        rating(1, "a", "Accuracy/Mistranslation", "Major"),
        rating(1, "a", "Fluency/Punctuation", "Minor"),
        rating(1, "b", "No-error", "no-error"),
        rating(2, "a", "Non-translation!", "Major"),
        rating(2, "a", "Fluency/Grammar", "Minor"),
        rating(3, "a", "Fluency/Grammar", "unheard"),
    ]
    found = sheet(table(*rows, separator="\t"), name="mqm.tsv")
    made = items(found)
    assert [row["id"] for row in made] == ["1/1", "1/2", "1/3"]
    # Spans of errors are marks of the raters
    assert {row["answer"] for row in made} == {"ein Ziel"}
    assert [row["score"] for row in made] == [pytest.approx(2.55), 25.0, None]
    assert found.known is not None
    assert (found.known.higher, found.known.scale) == (False, (0.0, 25.0))


def test_votes_of_the_arena_table_are_one_hidden_column() -> None:
    rows = [
        {
            "id": at,
            "model_a": "m",
            "model_b": "n",
            "prompt": '["q", "r"]',
            "response_a": '["one", null]',
            "response_b": '["two"]',
            **dict(zip(("winner_model_a", "winner_model_b", "winner_tie"), votes, strict=True)),
        }
        for at, votes in enumerate([(1, 0, 0), (0, 0, 1), (0, 0, 0)])
    ]
    found = sheet(table(*rows))
    made = items(found)
    assert (made[0]["question"], made[0]["answer_a"], made[0]["answer_b"]) == (
        "q\n\nr",
        "one\n\n",
        "two",
    )
    assert [dict(flat(row))["winner"] for _, row in found.rows()] == ["model_a", "tie", None]
    assert found.known is not None
    assert "winner" not in found.known.roles


def test_an_answer_that_says_no_is_a_text() -> None:
    (row,) = items(sheet(lines({"prompt": "q", "chosen": "no", "rejected": "yes"})))
    assert row == {"question": "q", "answer_a": "no", "answer_b": "yes"}


def test_dialogues_that_differ_are_shown_whole() -> None:
    one, other = "\n\nHuman: q\n\nAssistant: a", "\n\nHuman: p\n\nAssistant: b"
    (row,) = items(sheet(lines({"chosen": one, "rejected": other})))
    assert row == {"answer_a": one, "answer_b": other}


def test_trials_without_a_result_failed_and_are_told() -> None:
    rows = [
        {"trial_name": f"t{at}", "task_id": f"t{at}", "is_resolved": done}
        for at, done in enumerate([None, True, False])
    ]
    found = sheet(json.dumps({"id": "run", "results": rows}).encode())
    assert [row["score"] for row in items(found)] == [False, True, False]
    assert found.read_as[-1] == "trials without a result, counted as failed as on the board: 1"


def test_labels_of_people_stand_in_hidden_columns() -> None:
    case = next(case for case in CASES if case.form == "label-studio")
    row, _ = (dict(flat(row)) for _, row in sheet(lines(case.row, case.row)).rows())
    # A cancelled annotation is none
    assert row["labels.v"] == "Good"
    span = {"start": 1, "end": 3, "labels": ["PER"]}
    task = case.row | {"annotations": [{"result": [{"from_name": "ner", "value": span}]}]}
    row, _ = (dict(flat(row)) for _, row in sheet(lines(task, task)).rows())
    assert row["labels.ner.start"] == 1


def test_several_options_that_prodigy_accepted_are_all_judged() -> None:
    options = [{"id": name, "text": name.upper()} for name in "abc"]
    task = {"_input_hash": 1, "_task_hash": 2, "text": "t", "answer": "accept", "options": options}
    found = items(sheet(lines(task | {"accept": ["a", "c"]}, task | {"accept": []})))
    assert [item["answer"] for item in found] == [["A", "C"], []]


def test_bad_lines_stay_bad() -> None:
    case = next(case for case in CASES if case.form == "mt-bench")
    found = sheet(lines(case.row) + b"{broken\n" + lines(case.row))
    assert [isinstance(row, BadRow) for _, row in found.rows()] == [False, True, False]


def test_pairs_are_of_two_systems_and_samples_are_asked_about() -> None:
    case = next(case for case in CASES if case.form == "alpaca-eval")
    pairs = sheet(lines(case.row))
    assert next(filter(None, answered(pairs, Kind(two=True), Options()))).source == "log"
    with pytest.raises(InvalidValue, match="pairs of answers") as refusal:
        next(filter(None, answered(pairs, Kind(), Options())))
    assert refusal.value.field == "system_a"
    problem = {"question_id": "q", "question_content": "Sort.", "code_list": ["c", "d"]}
    samples = sheet(json.dumps([problem | {"graded_list": [True, False]}]).encode())
    with pytest.raises(NeedsAnswer) as asked:
        next(filter(None, answered(samples, Kind(), Options())))
    (question,) = asked.value.questions
    assert question["name"] == "repeats"
    values = [choice["value"] for choice in question["choices"]]
    assert values == ["items", "runs", "first", "mean", "sample=0", "sample=1"]


@pytest.mark.parametrize("indent", [None, 1])
def test_results_of_bigcodebench_are_a_row_a_sample(indent: int | None) -> None:
    def sample(at: int, status: str) -> Cells:
        return {"task_id": f"T/{at}", "solution": f"return {at}", "status": status, "details": {}}

    tasks = {f"T/{at}": [sample(at, "pass"), sample(at, "fail")] for at in range(3)}
    found = sheet(json.dumps({"date": "2026-01-01", "eval": tasks}, indent=indent).encode())
    assert found.form == "bigcodebench"
    first, second, *others = items(found)
    assert first == {"id": "T/0", "answer": "return 0", "score": "pass"}
    assert (second["score"], len(others)) == ("fail", 4)
    assert found.known is not None
    assert (found.known.higher, found.known.repeats) == (True, ("sample",))


def test_a_pair_without_the_answers_says_what_it_lacks() -> None:
    case = next(case for case in CASES if case.form == "mt-bench" and "model_1" in case.row)
    found = sheet(lines(case.row | {"g1_user_prompt": f"[User Question]\nq\n\n{ANSWERS}"}))
    ((_, row),) = found.rows()
    assert isinstance(row, BadRow)
    assert row.rule == "a prompt to the judge with the answers of both models"


@pytest.mark.parametrize(
    ("content", "way"),
    [
        ({"name": "toy", "adapter_spec": {}, "metric_specs": [{"class_name": "m"}]}, "run folder"),
        ({"adapter_spec": {}, "request_states": [{"instance": {"id": "id1"}}]}, "run folder"),
        (
            {"name": "toy", "description": "Odd?", "tags": [], "definition_path": "a.py"},
            "run folder",
        ),
        ([{"name": {"name": "em"}, "count": 1, "sum": 1.0, "sum_squared": 1.0}], "run folder"),
        ([{"instance_id": "id1", "train_trial_index": 0, "stats": []}], "run folder"),
        (
            {"results": {"toy": {"acc,none": 0.5}}, "configs": {}, "versions": {}, "config": {}},
            "samples_*.jsonl",
        ),
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_a_part_of_a_run_is_refused_with_the_way_to_the_whole(
    content: object, way: str, indent: int | None
) -> None:
    with pytest.raises(InvalidValue) as refusal:
        sheet(json.dumps(content, indent=indent).encode())
    assert not isinstance(refusal.value, NeedsAnswer)
    assert way in refusal.value.detail


def test_a_table_of_promptfoo_for_people_is_refused_with_the_way_to_its_json() -> None:
    content = table(
        {"topic": "tea", "[echo] About {{topic}} in one language": "[PASS] (1.00)\n\nTea is hot."},
        {
            "topic": "salt",
            "[echo] About {{topic}} in one language": "[FAIL] (0.00)\n\nSalt is hot.",
        },
    )
    with pytest.raises(InvalidValue) as refusal:
        sheet(content)
    assert "--output results.json" in refusal.value.detail


LABELLED_TASK = {
    "result": [{"from_name": "same", "type": "choices", "value": {"choices": ["yes"]}}],
    "was_cancelled": False,
}


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("named", ["annotations", "completions"])
def test_a_task_of_label_studio_is_an_item_with_what_people_were_shown(
    named: str, count: int
) -> None:
    task = {"id": 7, "data": {"text": "Tea is hot."}, named: [LABELLED_TASK], "project": 1}
    found = sheet(json.dumps(task if count == 1 else [task] * count).encode())
    assert found.form == "label-studio"
    assert items(found) == [{"id": 7, "text": "Tea is hot."}] * count
    assert "labels.same" in {column.name for column in columns_of(found)}


def test_a_task_of_label_studio_without_a_name_that_is_known_is_asked_about() -> None:
    works = [
        {"id": at, "data": {"left": f"Work {at} of Ann", "right": f"Work {at} by A."}}
        | {"annotations": [LABELLED_TASK], "project": 1}
        for at in range(3)
    ]
    with pytest.raises(NeedsAnswer) as refusal:
        list(answered(sheet(json.dumps(works).encode()), Kind(), Options()))
    (question,) = refusal.value.questions
    assert [choice["value"] for choice in question["choices"]] == ["data.left", "data.right"]
