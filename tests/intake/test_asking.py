"""What a table leaves open is asked, and what nobody says is shown to no judge."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from celeus.errors import InvalidValue, NeedsAnswer
from celeus.intake.opening import SentFile, opened
from celeus.intake.rows import Options
from celeus.intake.sources.sheet import BadRow, Known, Score, Sheet
from celeus.intake.table.answers import answers_of, options_of
from celeus.intake.table.asking import Table, answered
from celeus.intake.table.columns import columns_of
from celeus.intake.table.items import LABELLED
from celeus.intake.table.roles import Kind
from tests.intake.made import inspect_json, inspect_sample

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg"
)
ASKED = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]
CHAT = [*ASKED, {"role": "assistant", "content": "Ho"}]
TWO = Kind(-1.0, 1.0, two=True)


def read(
    made: list[dict[str, Any]],
    kind: Kind | None = None,
    mapping: Mapping[str, str] | None = None,
    known: Known | None = None,
    remembered: list[dict[str, str]] | None = None,
    **answers: Any,  # noqa: ANN401 -- a text, or several
) -> Table:
    """The table, with these answers to its questions."""
    content = io.BytesIO("\n".join(map(json.dumps, made)).encode() + b"\n")
    (found,) = filter(None, opened(content, SentFile("rows.jsonl")))
    sheet = Sheet(found.form, found.rows, found.read_as, known, found.cells)
    given = options_of(answers, mapping)
    (found_table,) = filter(None, answered(sheet, kind or Kind(), given, remembered or []))
    return found_table


def questions(rows: list[dict[str, Any]], kind: Kind | None = None, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """The values of the choices by the names of the questions."""
    asked = asked_of(rows, kind, **more).questions
    return {one["name"]: [c["value"] for c in one["choices"]] for one in asked}


def asked_of(rows: list[dict[str, Any]], kind: Kind | None = None, **more: Any) -> NeedsAnswer:  # noqa: ANN401
    with pytest.raises(NeedsAnswer) as refused:
        read(rows, kind, **more)
    return refused.value


def items(table: Table) -> list[dict[str, Any]]:
    return [row for _, row in table.items.rows() if not isinstance(row, BadRow)]


def roles(table: Table) -> dict[str, str]:
    return {column.name: column.role for column in table.columns if column.role != "hidden"}


def several(row: Mapping[str, Any], count: int = 6) -> list[dict[str, Any]]:
    """Rows that differ by a number in every text but constant ones."""
    return [
        {
            name: value.replace("#", str(at)) if isinstance(value, str) else value
            for name, value in row.items()
        }
        for at in range(count)
    ]


@pytest.mark.parametrize(
    "row",
    [
        {"question": "Why #?", "answer": "So #.", "reference": "Because #."},
        {"id": "#", "question": "Why #?", "answer": "So #.", "correct": True},
        {"prompt": "Say #.", "completion": "# is said.", "is_correct": 1},
        {"Frage": "Warum #?", "Antwort": "Darum #."},
        {"messages": CHAT},
        {"text": "A review of # words."},
    ],
)
def test_natural_tables_leave_nothing_open(row: dict[str, Any]) -> None:
    table = read(several(row))
    assert len(items(table)) == 6
    assert {column.role for column in table.columns}.isdisjoint({"hidden"})
    assert all(column.why and column.source in {"name", "value"} for column in table.columns)


@pytest.mark.parametrize(
    "name",
    [
        "label",
        "verdict",
        "judge_label",
        "annotator",
        "worker_id",
        "rating",
        "explanation",
        "rationale",
        "critique",
        "model",
        "model_name",
        "generator",
        "trace_id",
        "span_id",
        "input_hash",
        "uuid",
        "created_at",
        "timestamp",
        "url",
        "winner",
        "vote_count",
        "feedback",
        "severity",
        "annotation.text",
        "judge.response",
        "metadata.source",
        "provenance.source",
        "suggestions.quality.value",
        "raw_judge_completion",
    ],
)
def test_a_verdict_and_what_it_is_from_are_hidden(name: str) -> None:
    row: dict[str, Any] = {"question": "Why #?", "answer": "So #."}
    inner: Any = "a verdict about # in words"
    for part in reversed(name.split(".")):
        inner = {part: inner}
    rows = several(row)
    table = read([one | inner for one in rows])
    assert roles(table) == {"question": "question", "answer": "answer"}
    hidden = {column.name: column for column in table.columns}[name]
    assert (hidden.role, hidden.source) == ("hidden", "name")


@pytest.mark.parametrize("word", ["accept", "incorrect", "Passed"])
def test_words_of_a_verdict_are_hidden_whatever_their_column_is_called(word: str) -> None:
    rows = several({"question": "Why #?", "response": "So #.", "answer": word})
    assert roles(read(rows)) == {"question": "question", "response": "answer"}


def test_where_nothing_is_left_to_judge_it_is_asked() -> None:
    rows = several({"question": "Why #?", "gpt_text": "g #", "other": "o #", "judge": "j #"})
    assert questions(rows) == {"answer": ["gpt_text", "other", "question"]}
    table = read(rows, answer="other")
    assert roles(table) == {"question": "question", "other": "answer"}
    assert items(table)[0]["payload"] == {"question": "Why 0?", "answer": "o 0"}
    assert roles(read(rows, answer="question")) == {"question": "question"}
    with pytest.raises(InvalidValue) as refused:
        read(rows, answer="none")
    assert refused.value.field == "answer"


@pytest.mark.parametrize(
    "names",
    [
        ("chosen", "rejected"),
        ("response_a", "response_b"),
        ("gpt_answer", "llama_answer"),
        ("target", "label"),
    ],
)
def test_of_two_answers_it_is_asked_which_is_judged(names: tuple[str, str]) -> None:
    rows = several({"text": "What # is?", names[0]: "one # more", names[1]: "two # more"})
    assert names[0] in questions(rows)["answer"]


def test_columns_that_are_no_texts_by_name_are_not_shown_for_want_of_others() -> None:
    rows = several({"item": "a # b", "reply_of_one": "c # d", "reply_of_two": "e # f"})
    assert questions(rows) == {"answer": ["item", "reply_of_one", "reply_of_two"]}


@pytest.mark.parametrize(
    "answers", [("response_a", "response_b"), ("output_1", "output_2"), ("answer_a", "answer_b")]
)
def test_names_of_models_are_no_answers(answers: tuple[str, str]) -> None:
    side = answers[0][-1] == "a"
    models = ("model_a", "model_b") if side else ("model_1", "model_2")
    row = {models[0]: "alpha-1", models[1]: "beta-2", "prompt": "Say #."}
    rows = several(row | {answers[0]: "It is #.", answers[1]: "No #."})
    found = roles(read(rows, TWO))
    assert found == {"prompt": "question", answers[0]: "answer_a", answers[1]: "answer_b"}


def test_answers_of_two_systems_under_names_of_their_own_are_asked() -> None:
    rows = several({"question": "Why #?", "gpt_answer": "g #", "llama_answer": "l #"})
    assert questions(rows, TWO) == {"mapping": ["answer_a", "answer_b", "hidden"]}


def test_a_picture_in_bare_base64_is_a_picture() -> None:
    rows = several({"scan": PIXEL, "question": "What is on #?", "answer": "A dot"})
    shown = items(read(rows))[0]["payload"]["image"]
    assert shown == f"data:image/png;base64,{PIXEL}"


RUNS = [
    {"task_id": f"t{at // 3}", "trial": at % 3, "response": f"r {at}", "passed": at % 2 == 0}
    for at in range(12)
]


def test_rows_of_one_id_are_asked() -> None:
    choices = ["items", "runs", "first", "mean", "trial=0", "trial=1", "trial=2"]
    assert questions(RUNS) == {"repeats": choices}
    rows = items(read(RUNS, repeats="items"))
    assert [row["id"] for row in rows][:4] == ["t0", "t0 (2)", "t0 (3)", "t1"]
    rows = items(read(RUNS, repeats="first"))
    assert [(row["id"], row["payload"]["answer"]) for row in rows][:2] == [
        ("t0", "r 0"),
        ("t1", "r 3"),
    ]
    rows = items(read(RUNS, repeats="trial=1"))
    assert [row["payload"]["answer"] for row in rows] == ["r 1", "r 4", "r 7", "r 10"]


def test_runs_are_items_of_which_every_id_has_as_many() -> None:
    assert items(read(RUNS, repeats="runs")) == items(read(RUNS, repeats="items"))
    fewer = RUNS[:-1]
    assert "runs" not in questions(fewer)["repeats"]
    with pytest.raises(InvalidValue, match="Item t3 has fewer runs than t0") as refused:
        items(read(fewer, repeats="runs"))
    assert refused.value.field == "repeats"


def test_the_mean_of_rows_of_one_id_is_that_of_their_losses() -> None:
    rows = items(read(RUNS, repeats="mean"))
    # Of three in a row two pass, or one; a hard guess is drawn to the mean of all
    assert [row["surrogate"] for row in rows] == pytest.approx(
        [(1 / 3 + 0.5) / 2, (2 / 3 + 0.5) / 2] * 2
    )


def test_rows_are_asked_about_even_where_another_column_numbers_them() -> None:
    rows = [row | {"index": at} for at, row in enumerate(RUNS)]
    assert "repeats" in questions(rows)


def test_without_an_id_rows_of_several_people_are_told_by_their_texts() -> None:
    rows = [
        {"question": f"Why {at // 2}?", "answer": "So.", "annotator": "ab"[at % 2]}
        for at in range(6)
    ]
    assert questions(rows) == {"repeats": ["items", "first", "annotator=a", "annotator=b"]}
    assert [row["id"] for row in items(read(rows, repeats="first"))] == ["1", "3", "5"]
    assert [row["id"] for row in items(read(rows, repeats="items"))] == list("123456")
    assert len(items(read([{**row, "annotator": "a"} for row in rows[::2]]))) == 3


def test_a_choice_of_rows_that_still_share_an_id_is_asked_again() -> None:
    rows = [row | {"epoch": at % 2} for at, row in enumerate(RUNS)]
    assert "epoch=1" not in questions(rows, repeats="epoch=0")["repeats"]
    for strange in ("era=0", "epoch=7"):
        with pytest.raises(InvalidValue) as refused:
            read(rows, repeats=strange)
        assert refused.value.field == "repeats"


def test_rows_that_were_chosen_stay_so_where_they_still_share_an_id() -> None:
    row = {"id": "i#", "question": "Why #?"}
    rows = [
        one | {"answer": f"{model} {run} of {one['id']}", "model": model, "run": run}
        for one in several(row)
        for model in ("m", "n")
        for run in (1, 2)
    ]
    choices = questions(rows, repeats="model=n")["repeats"]
    assert choices == ["model=n; " + way for way in ("items", "runs", "first", "run=1", "run=2")]
    said = [[one["payload"]["answer"] for one in items(read(rows, repeats=way))] for way in choices]
    assert [len(answers) for answers in said] == [12, 12, 6, 6, 6]
    assert [answers[0] for answers in said] == ["n 1 of i0"] * 4 + ["n 2 of i0"]


def test_rows_without_an_id_are_asked() -> None:
    rows = [{"id": None, "response": "In all"}, *several({"id": "i#", "response": "r #"}, 9)]
    assert questions(rows) == {"rows": ["with_id", "all"]}
    assert [row["id"] for row in items(read(rows, rows="with_id"))][:2] == ["i0", "i1"]
    assert [row["id"] for row in items(read(rows, rows="all"))][:2] == ["row 1", "i0"]


MAPPING = {"id": "id", "q": "question", "x": "score"}


def scored(*values: object) -> list[dict[str, Any]]:
    return [{"id": f"i{at}", "q": f"Why {at}?", "x": value} for at, value in enumerate(values)]


@pytest.mark.parametrize("values", [(True, False), (0, 1), (0.25, 0.5), ("yes", "no")])
def test_a_direction_that_no_name_says_is_asked(values: tuple[object, ...]) -> None:
    rows = scored(*values, *values)
    assert questions(rows, mapping=MAPPING) == {"better": ["higher", "lower"]}
    higher, lower = (
        [row["surrogate"] for row in items(read(rows, mapping=MAPPING, better=[way]))]
        for way in ("higher", "lower")
    )
    assert higher == pytest.approx([1 - loss for loss in lower])


@pytest.mark.parametrize(
    ("name", "guess"),
    [("accuracy", 0.75), ("is_correct", 0.75), ("loss", 0.25), ("error_rate", 0.25)],
)
def test_a_direction_that_the_name_says_is_taken(name: str, guess: float) -> None:
    rows = [{"q": f"Why {at}?", name: value} for at, value in enumerate((0.25, 0.5))]
    found = items(read(rows, mapping={"q": "question", name: "score"}))
    assert found[0]["surrogate"] == guess


def test_words_for_right_and_wrong_say_their_direction() -> None:
    rows = scored("correct", "wrong", "correct", "wrong")
    assert [row["surrogate"] for row in items(read(rows, mapping=MAPPING))][:2] == [0.25, 0.75]


def test_another_scale_is_asked_and_taken_into_that_of_the_pool() -> None:
    rows = scored(1, 3, 5)
    found = questions(rows, mapping=MAPPING, better=["higher"])
    assert found["scale"][:2] == ["1 to 5", "0 to 5"]
    table = read(rows, mapping=MAPPING, better=["higher"], scale=["1 to 5"])
    assert [row["surrogate"] for row in items(table)] == [1.0, 0.5, 0.0]
    stars = Kind(0.0, 4.0)
    table = read(rows, stars, mapping=MAPPING, better=["higher"], scale=["1 to 5"])
    assert [row["surrogate"] for row in items(table)] == [4.0, 2.0, 0.0]


@pytest.mark.parametrize("kind", [Kind(), Kind(0.0, 4.0)])
def test_answers_about_the_scores_of_a_log_hold_once(kind: Kind) -> None:
    document = inspect_json([inspect_sample(at, score) for at, score in enumerate([10, 5, 0, 1])])
    given = options_of({"better": ["higher"], "scale": ["0 to 10"], "missing": ["1"]})
    sent = io.BytesIO(json.dumps(document).encode())
    (sheet,) = filter(None, opened(sent, SentFile("log.json", options=given)))
    (table,) = filter(None, answered(sheet, kind, given))
    found = [row["surrogate"] / kind.upper for row in items(table)]
    assert found == pytest.approx([0.0, 0.5, 1.0, 0.5])


def test_a_number_outside_of_the_scale_that_was_given_is_a_bad_row() -> None:
    table = read(scored(0, 2, 5), mapping=MAPPING, better=["higher"], scale=["1 to 5"])
    (bad,) = [row for _, row in table.items.rows() if isinstance(row, BadRow)]
    assert bad == BadRow("x: a number from 1 to 5", "0")


def test_what_stands_for_no_score_is_asked() -> None:
    rows = scored(0.5, 0.25, -1, 0.75, "N/A", None)
    assert questions(rows, mapping=MAPPING, better=["higher"]) == {"missing": ["-1", "N/A", "none"]}
    found = items(read(rows, mapping=MAPPING, better=["higher"], missing=["-1", "N/A"]))
    assert [row["surrogate"] for row in found] == [0.5, 0.75, 0.5, 0.25, 0.5, 0.5]


def test_percent_are_shares_on_every_scale() -> None:
    rows = scored("85 %", "10 %")
    table = read(rows, Kind(0.0, 4.0), mapping=MAPPING, better=["higher"])
    assert [row["surrogate"] for row in items(table)] == pytest.approx([0.6, 3.6])


def test_infinity_is_no_score() -> None:
    rows = scored(0.5, 0.25, float("inf"))
    found = items(read(rows, mapping=MAPPING, better=["higher"]))
    assert found[2]["surrogate"] == float("inf")  # which no item takes


def test_all_questions_are_asked_at_once() -> None:
    rows = [row | {"x": 3} for row in RUNS[:3]] + [{"task_id": "t9", "x": -1}, {"x": 5}]
    mapping = {"task_id": "id", "response": "answer", "x": "score"}
    assert questions(rows, mapping=mapping).keys() == {
        *("better", "scale", "missing", "repeats", "rows"),
    }


LABELS = [
    {"q": f"Why {at}?", "judge": 1 + at % 10, "human": "wrong" if at == 0 else "correct"}
    for at in range(3)
] + [{"q": f"Why {at}?", "judge": 1 + at % 10, "human": None} for at in range(3, 12)]


def test_labels_that_exist_are_known_losses_and_the_other_rows_are_drawn() -> None:
    mapping = {"q": "question", "judge": "score", "human": "known"}
    found = questions(LABELS, mapping=mapping)
    # The words of the labels say their direction and scale; the judge's numbers do not
    assert found == {
        "better": ["judge=higher", "judge=lower"],
        "scale": ["judge=1 to 10", "judge=0 to 10", "judge=0 to 100"],
    }
    better, scale = ["judge=higher"], ["judge=1 to 10"]
    rows = items(read(LABELS, mapping=mapping, better=better, scale=scale))
    assert [row.get("known") for row in rows[:4]] == [
        {"loss": 1.0, "reason": LABELLED},
        {"loss": 0.0, "reason": LABELLED},
        {"loss": 0.0, "reason": LABELLED},
        None,
    ]
    assert rows[9]["surrogate"] == 0.0


def test_the_winner_of_a_pair_is_a_known_difference() -> None:
    words = ["model_a", "model_b", "tie", "tie (bothbad)", None]
    rows = [
        {"response_a": f"a {n}", "response_b": f"b {n}", "winner": w} for n, w in enumerate(words)
    ]
    mapping = {"response_a": "answer_a", "response_b": "answer_b", "winner": "known"}
    preference = replace(TWO, preferred=True)
    found = items(read(rows, preference, mapping=mapping))
    known = [row.get("known", {}).get("loss") for row in found]
    assert known == [-1.0, 1.0, 0.0, 0.0, None]
    with pytest.raises(InvalidValue) as refused:
        read(rows, TWO, mapping=mapping)
    assert refused.value.field == "mapping.winner"


def test_what_a_format_says_is_not_asked() -> None:
    known = Known({"q": "question", "x": "score"}, higher=False, scale=(0.0, 10.0), missing=(-1,))
    table = read(scored(0, 5, -1, 10), known=known)
    assert [row["surrogate"] for row in items(table)] == pytest.approx(
        [0.0, 0.5, 0.5, 1.0], abs=0.3
    )
    assert [column.source for column in table.columns] == ["format"] * 3
    assert roles(table) == {"q": "question", "x": "score"}


def test_roles_given_before_hold_for_the_same_columns_and_numbers_are_asked_again() -> None:
    assert questions(scored(0.25, 0.5), remembered=[MAPPING]) == {"better": ["higher", "lower"]}
    table = read(scored(0.25, 0.5), remembered=[MAPPING], better=["higher"])
    assert table.source == "remembered"
    assert [row["surrogate"] for row in items(table)] == [0.75, 0.5]


@pytest.mark.parametrize(
    "values", [["correct", "wrong"], ["B", "A"], [0.75, 0.5], [4, 2], [True, False]]
)
def test_a_column_that_was_an_answer_and_now_looks_like_verdicts_is_asked(
    values: list[Any],
) -> None:
    before = {"question": "question", "m": "answer", "at": "hidden"}
    rows = [{"question": f"Why {at}?", "m": values[at % 2], "at": at} for at in range(6)]
    assert questions(rows, remembered=[before]) == {"mapping": ["answer", "hidden"]}
    assert len(items(read(rows, mapping=before))) == 6
    numbers = [row | {"m": 17 * row["at"] + 40} for row in rows]
    assert read(numbers, remembered=[before]).source == "remembered"


@pytest.mark.parametrize(
    ("answers", "field"),
    [
        ({"better": ["up"]}, "better"),
        ({"scale": ["5"]}, "scale"),
        ({"scale": ["5 to 1"]}, "scale"),
        ({"scale": ["y=1 to 5"]}, "scale"),
        ({"better": ["y=higher"]}, "better"),
    ],
)
def test_what_is_no_answer_is_refused(answers: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        read(scored(0.25, 0.5), mapping=MAPPING, **answers)
    assert refused.value.field == field


def test_answers_are_the_same_after_a_way_through_options() -> None:
    answers = {
        "better": ["higher", "x=lower"],
        "scale": ["1 to 5", "x=0 to 10"],
        "missing": ["-1", "none"],
        "repeats": "mean",
        "rows": "all",
        "answer": "x",
    }
    assert answers_of(options_of(answers)) == answers
    assert answers_of(Options()) == {}


@pytest.mark.parametrize("name", ["gpt_answer", "llama-3-8b", "gpt4_output", "answer (3)"])
def test_an_answer_beside_what_may_be_the_answer_of_a_model_is_asked(name: str) -> None:
    rows = several({"question": "Why #?", "answer": "Gold #.", name: "A # of a model."})
    assert questions(rows) == {"answer": ["answer", name]}
    assert roles(read(rows, answer=name)) == {"question": "question", name: "answer"}
    assert roles(read(rows, answer="answer")) == {"question": "question", "answer": "answer"}


def test_an_answer_beside_a_reference_or_remarks_is_not_asked() -> None:
    rows = several({"question": "Why #?", "answer": "So #.", "notes": "seen # times"})
    assert roles(read(rows)) == {"question": "question", "answer": "answer"}
    rows = several({"question": "Why #?", "answer": "Gold #.", "pred": "So #."})
    assert roles(read(rows)) == {"question": "question", "answer": "reference", "pred": "answer"}


def test_a_model_column_of_sentences_may_be_what_is_judged() -> None:
    rows = several({"question": "Why #?", "model": "It is so, said # of them."})
    assert questions(rows) == {"answer": ["model", "question"]}


@pytest.mark.parametrize("name", ["review", "comment_text", "feedback"])
def test_a_label_is_not_shown_in_place_of_the_text_it_is_of(name: str) -> None:
    rows = several({name: "A text of # words here.", "sentiment": "kind #"})
    assert questions(rows) == {"answer": ["sentiment", name]}
    assert roles(read(rows, answer=name)) == {name: "answer"}


def test_what_is_shown_beside_a_named_answer_is_asked_where_nothing_is() -> None:
    rows = several({"tweet": "A text of # words here.", "predicted": "kind #", "level": "low #"})
    refusal = asked_of(rows, answer="predicted")
    assert [(one["name"], one["column"]) for one in refusal.questions] == [("mapping", "tweet")]
    columns: Any = refusal.more["columns"]
    placed = {one["name"]: one["role"] for one in columns}
    table = read(rows, mapping=placed | {"tweet": "payload"}, answer="predicted")
    assert roles(table) == {"tweet": "payload", "predicted": "answer"}


@pytest.mark.parametrize(
    "row", [{"foo": "#", "bar": "1#"}, {"session": "slow down", "status": "late"}]
)
def test_items_of_which_nothing_is_shown_are_asked(row: dict[str, Any]) -> None:
    assert questions(several(row)) == {"mapping": ["payload", "hidden"]}
    rows = several(row | {"id": "i#", "judge_score": 0.5})
    assert questions(rows, better=["higher"]) == {"mapping": ["payload", "hidden"]}
    assert items(read(rows, mapping={"id": "id"}))[0] == {"id": "i0"}


@pytest.mark.parametrize("form", ["csv", "jsonl", "json"])
def test_an_id_beside_hidden_columns_is_no_item_in_any_form(form: str) -> None:
    """Such as what a judge wrote of two models, by question."""
    said = [{"asked": "Why so?", "verdict": "A>B"}]
    rows: list[dict[str, Any]] = several({"question_id": "q#", "judge": "m-9"})
    if form == "csv":
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(["question_id", "judge", "rounds"])
        writer.writerows([*row.values(), json.dumps(said)] for row in rows)
        content = text.getvalue()
    else:
        rows = [row | {"rounds": said} for row in rows]
        content = json.dumps(rows) if form == "json" else "\n".join(map(json.dumps, rows))
    (found,) = filter(None, opened(io.BytesIO(content.encode()), SentFile(f"rows.{form}")))
    with pytest.raises(NeedsAnswer) as refused:
        [*answered(found, Kind(), Options())]
    assert {one["name"] for one in refused.value.questions} <= {"mapping", "answer"}


@pytest.mark.parametrize(
    "chat", [ASKED, [*CHAT, ASKED[-1]], [{"from": "human", "value": "Hi"}], json.dumps(ASKED)]
)
def test_chats_without_a_last_reply_are_asked(chat: object) -> None:
    rows = several({"id": "i#", "messages": chat})
    assert questions(rows) == {"answer": ["messages"]}
    assert roles(read(rows, answer="messages")) == {"id": "id", "messages": "messages"}
    rows = several({"id": "i#", "messages": chat, "said": "So #, I think."})
    assert questions(rows) == {"answer": ["said", "messages"]}
    assert roles(read(several({"messages": chat, "response": "So #."})))["response"] == "answer"


def test_chats_of_which_some_are_answered_are_not_asked() -> None:
    assert len(items(read([*several({"messages": ASKED}), {"messages": CHAT}]))) == 7


def test_rows_of_one_id_may_be_chosen_by_their_model() -> None:
    row = {"id": "i#", "question": "Why #?", "answer": "So #."}
    rows = several(row | {"model": "m-1"}) + several(row | {"model": "m-2"})
    assert questions(rows) == {"repeats": ["items", "first", "model=m-1", "model=m-2"]}
    assert len(items(read(rows, repeats="model=m-2"))) == 6


def test_rows_of_several_models_are_asked_where_they_share_a_question() -> None:
    rows = several({"question": "Why #?", "answer": "So #.", "model": "m-1"})
    others: dict[str, Any] = {"question": "And #?", "answer": "So.", "model": "m-1"}
    assert len(items(read(rows + several(others)))) == 12
    rows += several({"question": "Why #?", "answer": "Not #.", "model": "m-2"})
    assert questions(rows) == {"repeats": ["items", "first", "model=m-1", "model=m-2"]}
    assert [item["payload"]["answer"] for item in items(read(rows, repeats="model=m-2"))] == [
        f"Not {at}." for at in range(6)
    ]


def test_a_score_of_another_scale_is_hidden_for_its_scale() -> None:
    rows = several({"question": "Why #?", "answer": "So #."})
    table = read([row | {"score": 10 * at} for at, row in enumerate(rows, 1)])
    (hidden,) = (column for column in table.columns if column.role == "hidden")
    assert "needs a scale" in hidden.why


def test_too_many_columns_are_refused_at_the_row_that_has_them() -> None:
    def rows() -> Iterator[tuple[int, dict[str, Any]]]:
        for number in range(3):
            looked.append(number)
            yield number, {f"c{at}": {f"m{inner}": 1 for inner in range(40)} for at in range(40)}

    looked: list[int] = []
    with pytest.raises(InvalidValue, match="too many columns"):
        columns_of(Sheet("json", rows))
    assert looked == [0]


def test_a_preference_for_the_second_answer_is_a_loss_of_the_first() -> None:
    shared = {"instruction": "Say #.", "output_1": "one #", "output_2": "two #", "generator_2": "m"}
    rows = [row | {"preference": at} for at, row in zip((1, 1.5, 2), several(shared), strict=False)]
    content = io.BytesIO(json.dumps(rows).encode())
    given = options_of({"metric": "preference"})
    (found,) = filter(None, opened(content, SentFile("rows.json", options=given)))
    (table,) = filter(None, answered(found, TWO, given))
    assert [row["surrogate"] for row in items(table)] == [-1.0, 0.0, 1.0]


def test_a_metric_that_is_given_is_not_that_of_the_last_file() -> None:
    known = Known(
        {"q": "question", "y": "score"}, True, (0.0, 1.0), metrics={"x": Score(), "y": Score()}
    )
    rows = [row | {"y": 0.75} for row in scored(0.25, 0.5)]
    before = {"id": "id", "q": "question", "x": "score", "y": "hidden"}
    table = read(rows, known=known, remembered=[before], metric="y")
    assert roles(table) == {"q": "question", "y": "score"}


@pytest.mark.parametrize(
    ("row", "asked"),
    [
        # What was taken of a reply beside all of it, and what a judge said beside what it judged
        ({"pred": "B#", "model_outputs": "It is B#."}, ["pred", "model_outputs"]),
        ({"output": "So #.", "orig_response": "Is #."}, ["output", "orig_response"]),
        ({"prediction": "B#", "true_answer": "B#"}, []),
        ({"response": "So #.", "answer_hint": "Add #."}, []),
    ],
)
def test_another_column_that_is_called_a_reply_is_asked_about(
    row: dict[str, Any], asked: list[str]
) -> None:
    rows = several({"question": "Why #?"} | row)
    if asked:
        assert questions(rows)["answer"] == asked
    else:
        assert len(items(read(rows))) == 6


def test_a_constant_beside_what_nobody_can_judge_is_not_the_item() -> None:
    rows = [{"uid": f"u{at}", "baseline": "o3-mini", "games": [{"score": at}]} for at in range(6)]
    assert questions(rows) == {"answer": ["games"]}
    rows = [{"question": f"Why {at}?", "completions": [{"text": f"So {at}"}]} for at in range(6)]
    assert questions(rows) == {"answer": ["completions", "question"]}


def test_questions_of_a_survey_are_names_of_columns() -> None:
    """The name of a column of numbers would be a number in a file without a header."""
    seen = "Which of the answers did you see there?"
    rows = [{seen: f"The answer number {at} of all", "How good is it?": str(at)} for at in range(6)]
    assert items(read(rows))[0]["payload"] == {seen: "The answer number 0 of all"}


@pytest.mark.parametrize("cells", ["0,0", "0,", "2024-01-02,2024-01-02"])
def test_a_row_of_a_sentence_and_numbers_is_no_header(cells: str) -> None:
    """Numbers and times that stand twice in it, or that it lacks, are names with a number."""
    lines = "".join(f"The answer number {at} of all,{cells}\n" for at in range(6))
    given = SentFile("a.csv")
    (found,) = filter(None, opened(io.BytesIO(lines.encode()), given))
    with pytest.raises(InvalidValue, match="rows for names"):
        list(answered(found, Kind(), Options()))


def test_a_table_whose_first_row_is_no_header_is_refused() -> None:
    plain = [{"ann": f"rater {at}", "S1": f"S{at}", "TGT": "TGT", "deu": "deu"} for at in range(6)]
    with pytest.raises(InvalidValue, match="rows for names"):
        read(plain)
    row = {"How many are in # of them?": "How many are in # of them?", "It has #.": "It has #."}
    rows = [dict(zip(row, one.values(), strict=True)) for one in several(row)]
    with pytest.raises(InvalidValue, match="rows for names") as refused:
        read(rows)
    assert "`mapping`" in str(refused.value.rule)
    mapping = dict(zip(row, ("question", "answer"), strict=True))
    assert len(items(read(rows, mapping=mapping))) == 6


def test_roles_of_one_system_are_not_taken_for_two() -> None:
    rows = several({"question": "Why #?", "m": "So #, it is.", "n": "Not #, it is."})
    before = {"question": "question", "m": "answer", "n": "hidden"}
    assert read(rows, remembered=[before]).source == "remembered"
    assert questions(rows, TWO, remembered=[before]) == {
        "mapping": ["answer_a", "answer_b", "hidden"]
    }


def test_what_is_shown_beside_an_answer_is_asked_where_only_that_is_known() -> None:
    rows = several({"ticket": "It broke # times today.", "response": "So #."})
    assert questions(rows) == {"mapping": ["payload", "hidden"]}
    rows = several({"explanation": "It broke # times today.", "response": "So #."})
    assert roles(read(rows)) == {"response": "answer"}


def test_a_place_and_rows_without_an_id_are_both_answered() -> None:
    rows = [{"id": None, "response": "In all"}, *several({"id": "i#", "response": "r #"}, 9)]
    document = {"runs": rows, "tags": [{"name": "t", "seen": at} for at in range(20)]}

    def read_with(answer: str | None) -> Table:
        given = options_of({"rows": answer})
        content = io.BytesIO(json.dumps(document).encode())
        (found,) = filter(None, opened(content, SentFile("a.json", options=given)))
        (table,) = filter(None, answered(found, Kind(), given))
        return table

    seen = None
    for _ in range(2):
        with pytest.raises(NeedsAnswer) as refused:
            read_with(seen)
        seen = refused.value.questions[0]["choices"][0]["value"]
    assert seen == "runs:with_id"
    assert [row["id"] for row in items(read_with(seen))] == [f"i{at}" for at in range(9)]
    assert len(items(read_with("runs:all"))) == 10


@pytest.mark.parametrize("given", ["-1", "-1.0", "-1.00"])
def test_a_number_that_stands_for_no_score_may_be_written_in_any_way(given: str) -> None:
    table = read(scored(0.25, -1, 0.5), mapping=MAPPING, better=["lower"], missing=[given])
    assert [row["surrogate"] for row in items(table)] == pytest.approx([0.25, 0.375, 0.5])


def test_which_way_a_number_counted_stands_beside_its_role() -> None:
    rows = [row | {"correct": at % 2} for at, row in enumerate(scored(1, 5, 3))]
    mapping = MAPPING | {"correct": "known"}
    table = read(rows, mapping=mapping, better=["x=lower"], scale=["x=1 to 5"])
    why = {column.name: column.why for column in table.columns}
    assert why["x"] == "given; the lower the better, from 1 to 5"
    assert why["correct"] == "given; the higher the better, from 0 to 1"


@pytest.mark.parametrize(
    ("answers", "field"),
    [
        ({"better": ["higher", "lower"]}, "better"),
        ({"better": ["x=higher", "x=lower"]}, "better"),
        ({"scale": ["0 to 1", "0 to 5"]}, "scale"),
    ],
)
def test_two_answers_for_one_column_are_refused(answers: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidValue, match="two answers") as refused:
        read(scored(0.25, 0.5), mapping=MAPPING, **answers)
    assert refused.value.field == field


@pytest.mark.parametrize(
    "answers",
    [
        {"better": ["higher"]},
        {"better": ["x=lower"]},
        {"scale": ["1 to 5"]},
        {"missing": ["-1", "none"]},
    ],
)
def test_an_answer_that_no_column_takes_is_refused(answers: dict[str, Any]) -> None:
    mapping = {name: "hidden" if role == "score" else role for name, role in MAPPING.items()}
    with pytest.raises(InvalidValue, match="No column takes") as refused:
        read(scored(0.25, 0.5), mapping=mapping, **answers)
    assert [refused.value.field] == [*answers]
    assert "`mapping`" in str(refused.value.rule)


VERDICTS = [
    row | {"hallucinated": verdict}
    for row, verdict in zip(scored(0.25, 0.5), ("yes", "no"), strict=True)
]


@pytest.mark.parametrize(("role", "way"), [("score", "higher"), ("surrogate", "lower")])
def test_a_direction_without_a_column_is_of_the_guess_and_not_of_verdicts(
    role: str, way: str
) -> None:
    mapping = MAPPING | {"x": role, "hallucinated": "known"}
    found = questions(VERDICTS, mapping=mapping, better=[way])
    assert found == {"better": ["hallucinated=higher", "hallucinated=lower"]}
    better = [way, "hallucinated=lower"]
    rows = items(read(VERDICTS, mapping=mapping, better=better))
    guesses = [0.75, 0.5] if way == "higher" else [0.25, 0.5]
    assert [row["surrogate"] for row in rows] == pytest.approx(guesses)
    assert [row["known"]["loss"] for row in rows] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("answers", "place"),
    [({"better": ["higher", "x=lower"]}, "better"), ({"scale": ["0 to 5", "x=0 to 1"]}, "scale")],
)
def test_what_is_said_with_and_without_the_column_of_the_guess_is_refused(
    answers: dict[str, Any], place: str
) -> None:
    mapping = MAPPING | {"hallucinated": "known"}
    with pytest.raises(InvalidValue, match=f"No column takes `{place}`") as refused:
        read(VERDICTS, mapping=mapping, **answers)
    assert refused.value.field == place


def test_of_two_columns_of_one_name_none_is_taken_unless_it_is_given() -> None:
    text = b"id,question,response,score,score\n1,Why?,So,0.25,0.75\n2,Who?,Me,0.5,0.5\n"
    (found,) = filter(None, opened(io.BytesIO(text), SentFile("rows.csv")))
    sheet = Sheet(found.form, found.rows, found.read_as, cells=found.cells)
    better = {"better": ["higher"]}
    with pytest.raises(InvalidValue, match="two columns of one name") as refused:
        [*answered(sheet, Kind(), options_of(better))]
    assert refused.value.field == "mapping"
    mapping = {"question": "question", "response": "answer", "score (5)": "score"}
    (table,) = filter(None, answered(sheet, Kind(), options_of(better, mapping)))
    assert [row["surrogate"] for row in items(table)] == pytest.approx([0.25, 0.5])


def test_a_direction_that_is_said_of_the_guess_holds_before_that_of_its_name() -> None:
    rows = [row | {"correct": row["x"]} for row in VERDICTS]
    mapping = {"q": "question", "correct": "score", "hallucinated": "known"}
    table = read(rows, mapping=mapping, better=["lower", "hallucinated=lower"])
    assert [row["surrogate"] for row in items(table)] == pytest.approx([0.25, 0.5])


@pytest.mark.parametrize("more", [{}, {"hallucinated": "known"}])
def test_a_guess_of_the_loss_is_never_better_the_higher_it_is(more: dict[str, str]) -> None:
    mapping = MAPPING | {"x": "surrogate"} | more
    with pytest.raises(InvalidValue, match="guess of the loss"):
        read(VERDICTS, mapping=mapping, better=["higher"])


def test_an_id_that_all_rows_share_is_asked() -> None:
    rows = several({"question": "Why #?", "answer": "So #, it is."})
    rows = [{"id": "run 7"} | row for row in rows]
    assert questions(rows) == {"repeats": ["items", "first"]}
    assert len(items(read(rows, repeats="items"))) == len(rows)


@pytest.mark.parametrize("odd", [["i2"], True, {"name": "i2"}, "i" * 300])
def test_one_odd_value_among_ids_does_not_hide_them(odd: object) -> None:
    rows = several({"question": "Why #?", "answer": "So #, it is."})
    rows = [{"id": odd if at == 2 else f"i{at}"} | row for at, row in enumerate(rows)]
    answers: dict[str, Any] = {"rows": "all"} if isinstance(odd, dict) else {}
    table = read(rows, **answers)
    assert roles(table)["id"] == "id"
    assert [row["id"] for row in items(table)][:2] == ["i0", "i1"]
    if answers:
        assert questions(rows) == {"rows": ["with_id", "all"]}


@pytest.mark.parametrize(
    ("row", "last"),
    [
        ({"question": "What is # and #?", "response": "It is #", "score": 1}, ("Total", None, 6)),
        ({"id": "k#", "question": "Why is # odd?", "response": "So #"}, ("Average:", None, None)),
        ({"response": "It is surely # again", "score": 0.5}, ("Grand total", 3)),
    ],
)
def test_a_last_row_that_sums_up_the_others_is_asked(
    row: dict[str, Any], last: tuple[object, ...]
) -> None:
    rows = [*several(row), dict(zip(row, last, strict=False))]
    better: dict[str, Any] = {"better": ["higher"]} if "score" in row else {}
    assert questions(rows, **better) == {"rows": ["with_id", "all"]}
    assert len(items(read(rows, rows="with_id", **better))) == 6
    assert len(items(read(rows, rows="all", **better))) == 7


def test_a_total_between_rows_is_one_of_them() -> None:
    rows = several({"question": "What does # mean?", "response": "Word #"})
    rows.insert(2, {"question": "Mean", "response": "7"})
    assert len(items(read(rows))) == 7
    words = [{"question": word, "response": "7"} for word in ("Sum", "Mean", "Total", "Median")]
    assert len(items(read(words))) == 4


_LONG = "The town of number # has met at length about what it is going to build next year"
_SHORT = "Town # is going to build"


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (
            {"premise": _LONG, "hypothesis": _SHORT, "label": "neutral", "pred": "entailment #"},
            {"premise": "text", "hypothesis": "payload", "pred": "answer"},
        ),
        ({"review": _LONG, "summary": _SHORT}, {"review": "text", "summary": "answer"}),
        (
            {"minutes": _LONG, "summary": _SHORT, "explanation": _SHORT},
            {"minutes": "text", "summary": "answer"},
        ),
        (
            {"dialogue": _LONG, "reference_summary": _SHORT, "generated_summary": _SHORT},
            {"dialogue": "text", "reference_summary": "reference", "generated_summary": "answer"},
        ),
        (
            {"src": "Tag #", "mt": "Day #", "ref": "Hello #"},
            {"src": "text", "mt": "answer", "ref": "reference"},
        ),
    ],
)
def test_what_an_answer_is_made_of_is_shown_beside_it(
    row: dict[str, Any], found: dict[str, str]
) -> None:
    assert roles(read(several(row))) == found


def test_a_longer_verdict_beside_a_summary_is_hidden() -> None:
    row = {"article_body": _LONG, "summary": _SHORT, "critique": f"{_LONG}, {_LONG}"}
    assert roles(read(several(row))) == {"article_body": "text", "summary": "answer"}


def test_a_sign_may_be_a_score_and_its_scale_is_asked_then() -> None:
    scores = [0.5, 0.25, 1.0, 0.0, -1, 0.75]
    made = several({"question": "Why #?", "answer": "So #"})
    rows = [row | {"score": score} for row, score in zip(made, scores, strict=True)]
    given: dict[str, Any] = {"better": ["higher"], "missing": ["none"]}
    assert questions(rows, better=["higher"]) == {"missing": ["-1", "none"]}
    assert questions(rows, **given) == {"scale": ["-1 to 1"]}
    guesses = [row["surrogate"] for row in items(read(rows, scale=["-1 to 1"], **given))]
    assert guesses == [0.25, 0.375, 0.0, 0.5, 1.0, 0.125]
    words = [*rows, *rows[:4], rows[0] | {"score": "N/A"}]
    assert questions(words, scale=["-1 to 1"], **given) == {"missing": ["N/A"]}


@pytest.mark.parametrize(
    ("names", "kind"), [(("dialog_x", "reply"), Kind()), (("first_text", "second_text"), TWO)]
)
def test_the_question_of_a_mapping_names_its_column(names: tuple[str, str], kind: Kind) -> None:
    rows = several(dict(zip(names, ("It is # of many words", "They are # of some"), strict=True)))
    found = asked_of(rows, kind).questions
    assert {one["name"] for one in found} == {"mapping"}
    assert all(f"`{one['column']}`" in one["text"] for one in found)


def test_a_row_without_members_is_told_as_one() -> None:
    rows: list[dict[str, Any]] = several({"id": "k#", "question": "Why #?", "answer": "So #"})
    rows.insert(2, {})
    found = [row for _, row in read(rows).items.rows() if isinstance(row, BadRow)]
    assert found == [BadRow("a JSON object with members", "{}")]


@pytest.mark.parametrize("column", ["error", "has_error", "Error Message", "exceptions"])
def test_a_score_beside_an_error_is_asked_about(column: str) -> None:
    rows = [row | {column: "None"} for row in scored(0.5, 0.25, 0.75, 0)]
    assert items(read(rows, mapping=MAPPING, better=["higher"]))[3]["surrogate"] == 1.0
    rows[3][column] = "timeout"
    given: dict[str, Any] = {"mapping": MAPPING, "better": ["higher"]}
    assert questions(rows, **given) == {"missing": [f"{column}=any", "none"]}
    for missing, guess in ((f"{column}=any", 0.5), (f"{column}=timeout", 0.5), ("none", 1.0)):
        assert items(read(rows, missing=[missing], **given))[3]["surrogate"] == guess


def test_an_error_beside_no_score_and_a_measure_of_errors_leave_nothing_open() -> None:
    rows = [row | {"mean_error": 0.5} for row in scored(None, "", 0.5, 0.25, 0.75)]
    rows = [row | {"error": "down" if at < 2 else 0} for at, row in enumerate(rows)]
    assert len(items(read(rows, mapping=MAPPING, better=["higher"]))) == 5


def test_a_value_that_stands_for_no_score_does_so_in_its_column_only() -> None:
    rows = [
        {"q": f"Why {at}?", "x": x, "y": y}
        for at, (x, y) in enumerate([(-1, 0.5), (0.5, -1), (0.25, 0.5), (0.5, 0.25)])
    ]
    mapping = {"q": "question", "x": "score", "y": "known"}
    given: dict[str, Any] = {"mapping": mapping, "better": ["x=higher", "y=higher"]}
    asked = asked_of(rows, **given).questions
    values = [[choice["value"] for choice in question["choices"]] for question in asked]
    assert values == [["x=-1", "x=none"], ["y=-1", "y=none"]]
    (left,) = asked_of(rows, missing=["-1"], **given).questions
    assert left["column"] == "y"
    given |= {"scale": ["y=-1 to 1"], "missing": ["x=-1", "y=none"]}
    assert [row["known"]["loss"] for row in items(read(rows, **given))] == [0.25, 1.0, 0.25, 0.375]
    with pytest.raises(InvalidValue) as refused:
        read(rows, mapping=mapping, better=["x=higher"], missing=["z=-1"])
    assert (refused.value.field, refused.value.value) == ("missing", "z=-1")


@pytest.mark.parametrize("name", ["review_id", "reviewer_id", "judgment_id"])
def test_the_text_of_a_verdict_is_not_shown_unasked(name: str) -> None:
    rows = [
        {name: f"r{at}", "case": at, "text": f"{at} 9\nThe second one says more.", "score": [at, 9]}
        for at in range(5)
    ]
    (question,) = asked_of(rows).questions
    assert (question["name"], question["column"]) == ("mapping", "text")
    assert items(read(rows, mapping={"text": "payload"}))[0]["payload"]


def test_empty_columns_are_not_asked_about() -> None:
    with pytest.raises(InvalidValue, match="columns of the file are empty") as refusal:
        read([{"id": at, "opening": "", "ending": None} for at in range(4)])
    assert not isinstance(refusal.value, NeedsAnswer)


@pytest.mark.parametrize("stem", ["output_text_", "model_response_", "system_output"])
def test_longer_names_of_two_answers_are_those_of_two_systems(stem: str) -> None:
    rows = [{"q": f"Why {at}?", f"{stem}a": f"As {at}", f"{stem}b": f"So {at}"} for at in range(4)]
    rows = [{name.replace("q", "question"): value for name, value in row.items()} for row in rows]
    item = items(read(rows, TWO))[2]
    assert (item["a"]["answer"], item["b"]["answer"]) == ("As 2", "So 2")


def test_a_text_that_only_parts_the_rows_is_not_what_is_judged_by_itself() -> None:
    """As of a survey, whose only words are the sex of a person beside numbers."""
    rows = [{"year": 2000 + at, "sex": "MF"[at % 2], "vocabulary": at} for at in range(8)]
    asked = asked_of(rows).questions
    assert "sex" in {question["column"] for question in asked} | {
        choice["value"] for question in asked for choice in question["choices"]
    }


def test_rows_of_one_text_are_asked_about_where_they_differ_by_what_is_scored() -> None:
    """As of the results of a judge, a row for every metric of an answer."""
    rows = [
        {"metric": metric, "score": 0.5, "question": f"Why {at}?", "answer": f"So {at}."}
        for at in range(3)
        for metric in ("correctness", "readability")
    ]
    choices = questions(rows)["repeats"]
    assert {"items", "first", "metric=correctness", "metric=readability"} <= {*choices}


def test_a_time_is_not_offered_as_judged() -> None:
    rows = [
        {"Timestamp": f"2024/05/01 10:0{n}:00 AM GMT+2", "Is it correct?": ("Yes", "No")[n % 2]}
        for n in range(4)
    ]
    (question,) = asked_of(rows).questions
    assert [choice["value"] for choice in question["choices"]] == ["Is it correct?"]
