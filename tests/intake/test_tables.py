"""Tables as logs, by a map of their columns."""

import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import celeus
from celeus.errors import NeedsAnswer
from celeus.intake.formats.registry import notes_of, sources
from celeus.intake.formats.registry import read as read_logs
from celeus.intake.formats.tables import read
from celeus.intake.joining import compare, each_output, join, ndjson
from celeus.intake.reducers import EACH
from celeus.intake.rows import Columns, Options, Row
from celeus.intake.sources.files import Source
from celeus.intake.table.answers import options_of
from tests.intake.made import mean, refusal, rows

SCORES = [1.0, 0.25, 0.0, None]
TABLE = [
    {"item": f"q{at}", "score": score, "run": "a", "text": f"{at}?", "gold": "x", "said": "y"}
    for at, score in enumerate(SCORES)
]
ROLES = {"item": "id", "score": "score", "text": "question", "gold": "reference", "said": "answer"}
COLUMNS = Columns(ROLES, model="run")
OPTIONS = Options(higher=True, columns=COLUMNS)


def written(folder: Path, form: str, table: list[dict[str, Any]]) -> Path:
    path = folder / f"table.{form}"
    if form == "parquet":
        parquet.write_table(pa.Table.from_pylist(table), path)
    elif form == "json":
        path.write_text(json.dumps(table))
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table))
    else:
        cells = [["" if it is None else str(it) for it in row.values()] for row in table]
        path.write_text("\n".join(",".join(row) for row in [list(table[0]), *cells]) + "\n")
    return path


def of(table: Any, roles: dict[str, str], **answers: Any) -> list[Row]:  # noqa: ANN401 -- any rows
    """The rows of dicts, with these columns named and these answers given."""
    given = replace(options_of(answers), columns=Columns(roles, answers.pop("model", None)))
    return read_as(table, given)


def read_as(table: Any, options: Options) -> list[Row]:  # noqa: ANN401 -- any rows
    content = io.BytesIO("".join(json.dumps(row) + "\n" for row in table).encode())
    return read(Source.of_file("the table", content), options).rows


def test_a_reference_alone_tells_no_items_apart() -> None:
    """As of the samples of OpenAI evals, where a chat is the question and the answer is a word."""
    chats = [[{"role": "user", "content": f"Is {at} even?"}] for at in range(4)]
    table = [
        {"input": chat, "ideal": ["yes", "no"][at % 2], "score": at % 2}
        for at, chat in enumerate(chats)
    ]
    said = refusal(of, table, {"score": "score"}, better=["higher"])
    assert said.startswith(
        "say how the items of the table are told apart: --mapping COLUMN=id, or COL"
    )
    found = of(table, {"score": "score", "input": "question"}, better=["higher"])
    assert len({row.id for row in found}) == 4


@pytest.mark.parametrize("form", ["csv", "jsonl", "json", "parquet"])
def test_every_form_of_a_table_gives_the_same_rows(tmp_path: Path, form: str) -> None:
    found = rows("table", written(tmp_path, form, TABLE), options=OPTIONS)
    assert found == of(TABLE, ROLES, model="run", better=["higher"])
    assert [row.loss for row in found] == [0.0, 0.75, 1.0, None]
    assert mean(row.loss for row in found) == pytest.approx(1 - 1.25 / 3, abs=1e-12)
    assert (found[0].question, found[0].reference, found[0].answer) == ("0?", "x", "y")
    assert {row.model for row in found} == {"a"}


def test_a_loss_needs_no_direction_and_a_score_does() -> None:
    for role in ("surrogate", "score"):
        assert of([{"id": 1, "loss": 0.25}], {"loss": role})[0].loss == 0.25
    said = refusal(of, TABLE, {"item": "id", "score": "score"})
    assert said.startswith("the table: Which values of `score` are better? (--given better=higher:")


def test_what_may_stand_for_no_score_or_another_scale_is_asked_as_of_an_upload() -> None:
    table = [{"id": at, "loss": loss} for at, loss in enumerate([1, 5, "None", -1])]
    with pytest.raises(NeedsAnswer) as raised:
        of(table, {"loss": "score"})
    assert [question["name"] for question in raised.value.questions] == ["scale", "missing"]
    for option in ("scale=1 to 5': ", "missing=None: ", "missing=-1: "):
        assert option in raised.value.detail


def test_each_of_two_columns_of_numbers_has_a_way_and_a_scale_of_its_own() -> None:
    made = [(5, 10), (1, 0), (2, None)]
    table = [{"id": at, "grade": grade, "bad": bad} for at, (grade, bad) in enumerate(made)]
    roles = {"grade": "score", "bad": "known"}
    said = refusal(of, table, roles)
    for option in ("better=grade=higher: ", "better=bad=lower: ", "scale=bad=0 to 10': "):
        assert option in said
    given = {"better": ["grade=higher", "bad=lower"], "scale": ["1 to 5", "bad=0 to 10"]}
    assert [(row.loss, row.known) for row in of(table, roles, **given)] == [
        *((0.0, 1.0), (1.0, 0.0), (0.75, None))
    ]


@pytest.mark.parametrize("none", ["False", "None", "nan", "", "0", 0, False, None, float("nan")])
@pytest.mark.parametrize("some", ["timed out", "failed", {"kind": "timeout"}])
def test_a_column_of_errors_may_say_that_there_is_none(none: object, some: object) -> None:
    table = [{"id": 1, "loss": 0, "error": none}, {"id": 2, "loss": 0, "error": some}]
    assert [row.loss for row in of(table, {}, missing=["error=any"])] == [0.0, None]


@pytest.mark.parametrize(
    ("text", "losses"),
    [
        (b"id;score\na;0,25\nb;1,0\n", [0.75, 0.0]),
        (b"id\tscore\na\t25 %\nb\t100%\n", [0.75, 0.0]),
        ("id,score,said\na,0.25,\u00fc\nb,1,\n".encode("utf-16"), [0.75, 0.0]),
        ("id,score,said\na,0.25,\u00fc\nb,1,\n".encode("cp1252"), [0.75, 0.0]),
        (b'{\n "results": [\n  {"id": 1, "score": 0.25}, {"id": 2, "score": 1}]}', [0.75, 0.0]),
    ],
)
def test_the_command_reads_what_the_page_reads(
    tmp_path: Path, text: bytes, losses: list[float]
) -> None:
    path = tmp_path / "table.txt"
    path.write_bytes(text)
    found = rows("table", path, options=Options(higher=True))
    assert [row.loss for row in found] == losses


@pytest.mark.parametrize("absent", [None, "", float("nan")])
@pytest.mark.parametrize("column", ["model", "group"])
def test_what_names_a_model_or_a_group_is_there(column: str, absent: object) -> None:
    table = [{"id": 1, "loss": 0, "model": "a", "group": "x"} | {column: absent}]
    said = refusal(of, table, {"group": "group"}, model="model")
    assert said == f"row 1 of the table has no {column}"


def test_rows_without_an_id_are_asked_about_as_in_an_upload() -> None:
    table = [{"id": None if at == 4 else at, "loss": at % 2} for at in range(6)]
    assert "1 of 6 rows have no `id`" in refusal(of, table, {})
    assert len(of(table, {}, rows="with_id")) == 5
    assert of(table, {}, rows="all")[4].id == "row 5"


def test_nested_rows_are_read_by_their_paths_or_as_a_whole() -> None:
    table = [{"metadata": {"item": 7}, "scores": {"exact": 1}, "a.b": 0.5, "asked": {"n": 1}}]
    roles = {"metadata.item": "id", "scores.exact": "score", "asked": "question"}
    (row,) = of(table, roles, better=["higher"])
    assert (row.id, row.loss, row.question) == ("7", 0.0, '{"n": 1}')
    assert of(table, {"metadata.item": "id", "a.b": "surrogate"})[0].loss == 0.5
    said = refusal(of, table, {"metadata.name": "id", "a.b": "surrogate"})
    assert said == "the table: The file has no such column."


def test_a_row_that_lacks_a_column_of_others_has_nothing_there() -> None:
    """As rows of errors have no scores in them."""
    table: list[dict[str, Any]] = [
        {"id": 1, "scores": {}, "error": "down"},
        {"id": 2, "scores": {"exact": True}},
        {"id": 3},
        {"id": 4, "scores": {"exact": None}, "error": float("nan"), "text": float("nan")},
    ]
    found = of(table, {"scores.exact": "score"}, missing=["error=any"], better=["higher"])
    assert [row.loss for row in found] == [None, 0.0, None, None]
    assert [row.question for row in found] == [None] * 4


@pytest.mark.parametrize("place", ["index", "row_id", "Nr", "line_number"])
def test_a_place_in_a_file_joins_no_row_of_another(place: str) -> None:
    made = [
        {place: at, "question": question, "loss": 0, "run": run}
        for run, questions in (("a", "xyz"), ("b", "zxy"))
        for at, question in enumerate(questions)
    ]
    found = of(made, {}, model="run")
    by_question = {(row.question, row.id) for row in found}
    assert len(by_question) == len({row.id for row in found}) == 3
    bare = [{name: row[name] for name in (place, "loss")} for row in made[:3]]
    assert "the items of the table are told apart: --mapping COLUMN=id" in refusal(of, bare, {})
    assert [row.id for row in of(bare, {place: "id"})] == ["0", "1", "2"]


def test_without_ids_rows_are_told_apart_by_their_question() -> None:
    loss = {"score": "surrogate"}
    found = of(TABLE, loss | {"text": "question", "item": "hidden"})
    assert len({row.id for row in found}) == len(TABLE)
    said = refusal(of, [{"score": 1, "said": "y"}], loss)
    assert "the items of the table are told apart: --mapping COLUMN=id" in said


@pytest.mark.parametrize(
    ("call", "names"),
    [
        ("trace_id", ("request", "response", "exact/value")),
        ("context.span_id", ("attributes.input.value", "attributes.output.value", "score")),
    ],
)
def test_no_id_of_a_call_joins_the_answers_of_two_runs(
    tmp_path: Path, call: str, names: tuple[str, ...]
) -> None:
    paths = [tmp_path / f"{model}.jsonl" for model in "ab"]
    for path in paths:
        made = [
            dict(zip((call, *names), (f"{path.stem}{at}", f"{at}?", "x", at % 2), strict=True))
            for at in range(4)
        ]
        path.write_text("".join(json.dumps(row | {"label": "x"}) + "\n" for row in made))
    options = Options(higher=True, columns=Columns({names[-1]: "score"}))
    joined = join(rows("table", *paths, options=options), "a")
    assert (len(joined.items), joined.partial) == (4, 0)
    # People who check outputs find them by it, and so does who names it
    for given in (
        replace(options, reducer=EACH),
        replace(options, columns=Columns({names[-1]: "score", call: "id"})),
    ):
        found = rows("table", *paths, options=given)
        assert {row.id for row in found} == {f"{name}{at}" for name in "ab" for at in range(4)}


@pytest.mark.parametrize("name", ["confidence", "p_correct", "error_probability"])
def test_how_sure_a_model_was_is_no_score_unless_it_is_said_to_be(name: str) -> None:
    table = [{"id": at, name: 0.25 * at} for at in range(3)]
    options = Options(higher=name == "confidence" or None)
    assert f"the table has {name}, a guess" in refusal(read_as, table, options)
    as_guess = read_as(table, replace(options, reducer=EACH))
    role = "surrogate" if name == "error_probability" else "score"
    named = replace(options, columns=Columns({name: role}))
    assert [row.loss for row in read_as(table, named)] == [row.loss for row in as_guess]


def test_another_question_under_one_id_is_refused_by_item() -> None:
    table = [
        {"id": "q1", "loss": 0, "m": "a", "text": "Why?"},
        {"id": "q1", "loss": 0, "m": "b", "text": "How?"},
    ]
    found = of(table, {"text": "question"}, model="m")
    assert refusal(join, found).startswith("item q1 is not the same in the logs of a and b")


RUNS = [{"id": f"q{at // 2}", "loss": at % 2, "trial": at % 2} for at in range(4)]


@pytest.mark.parametrize(
    ("rule", "losses"),
    [("mean", {"q0": 0.5, "q1": 0.5}), ("first", {"q0": 0.0, "q1": 0.0}),
     ("trial", {"q0": 0.5, "q1": 0.5}), ("trial=1", {"q0": 1.0, "q1": 1.0}),
     ("items", {"q0": 0.0, "q0 (2)": 1.0, "q1": 0.0, "q1 (2)": 1.0})],
)  # fmt: skip
def test_rows_of_one_id_are_what_is_said_of_them(rule: str, losses: dict[str, float]) -> None:
    assert f"--given repeats={rule}: " in refusal(of, RUNS, {})
    found: dict[str, list[float | None]] = {}
    for row in of(RUNS, {}, repeats=rule):
        found.setdefault(row.id, []).append(row.loss)
    assert {name: mean(of_item) for name, of_item in found.items()} == losses


def test_items_with_unlike_counts_of_answers_are_told_of(tmp_path: Path) -> None:
    path = tmp_path / "said.jsonl"
    table = [*RUNS, {"id": "q0", "loss": 1, "trial": 2}, {"id": "q1", "loss": None, "trial": 2}]
    path.write_text("".join(json.dumps(row) + "\n" for row in table))
    of_items = "mean loss of said: 0.5833 over items, each by its answers; 0.6 over all 5"
    for rule, lines in (("trial", [of_items]), ("mean", [of_items]), ("trial=1", [])):
        logs = read_logs("table", sources("table", [path]), Options(repeats=rule))
        assert [line.partition(" answers that")[0] for line in notes_of(logs)[1:]] == lines


def test_runs_of_one_number_are_asked_about_and_models_have_their_own() -> None:
    assert "8 rows have only 4 different" in refusal(of, RUNS * 2, {}, repeats="trial")
    table = [row | {"model": name} for name in "ab" for row in RUNS]
    assert "told apart with --mapping model=model" in refusal(of, table, {})
    found = of(table, {}, model="model", repeats="mean")
    assert [(row.model, row.repeat) for row in found if row.id == "q0"] == [
        *(("a", 1), ("a", 2), ("b", 1), ("b", 2))
    ]
    assert [item.guess for item in join(found).items] == [0.5, 0.5]


def test_runs_of_one_example_are_asked_about_where_every_row_has_an_id_too(tmp_path: Path) -> None:
    """Of an experiment with repetitions, in which every run and every example has an id."""
    table = [
        {"inputs.q": f"{at // 2}?", "outputs.a": f"{at}.", "feedback.accuracy": at % 2,
         "example_id": f"e{at // 2}", "id": f"run-{at}"}
        for at in range(4)
    ]  # fmt: skip
    path = written(tmp_path, "csv", table)

    def read(repeats: str | None, **roles: str) -> list[Row]:
        columns = Columns({"feedback.accuracy": "score", **roles})
        return rows("table", path, options=Options(repeats=repeats, columns=columns))

    assert "4 rows have only 2 different values of `example_id`" in refusal(read, None)
    assert [item.guess for item in join(read("mean")).items] == [0.5, 0.5]
    assert len(join(read(None, id="id")).items) == 4


def test_grades_of_a_table_of_inspect_are_read_as_inspect_does(tmp_path: Path) -> None:
    table = [
        {"sample_id": f"s{at}", "eval_id": "e", "id": at, "epoch": 1, "score_match": grade}
        for at, grade in enumerate("CPIN")
    ]
    path = written(tmp_path, "csv", table)
    scored = {"id": "id", "score_match": "score"}
    found = rows("table", path, options=Options(columns=Columns(scored)))
    assert [row.loss for row in found] == [0.0, 0.5, 1.0, 1.0]
    plain = [{"id": at, "score_match": grade} for at, grade in enumerate([1, 0, "C"])]
    said = refusal(of, plain, scored, better=["higher"])
    assert "which is no number: write one" in said
    assert "--given missing=C" in said


def test_what_is_said_of_columns_holds_beside_grades_of_inspect(tmp_path: Path) -> None:
    table = [
        {"sample_id": f"s{at}", "eval_id": "e", "score_bad": "CI"[at], "human": at}
        for at in range(2)
    ]
    path = written(tmp_path, "jsonl", table)
    columns = Columns({"score_bad": "score", "human": "known"})
    given = options_of({"better": ["score_bad=lower", "human=higher"]})
    found = rows("table", path, options=replace(given, columns=columns))
    assert [(row.loss, row.known) for row in found] == [(1.0, 1.0), (0.0, 0.0)]


def test_columns_that_no_option_names_have_the_roles_of_an_upload(tmp_path: Path) -> None:
    table = [
        {"doc_id": f"d{at}", "question": f"{at}?", "response": f"{at}!", "target": "x",
         "acc": at % 2, "subject": "law" if at % 2 else "tort", "weight": at + 1}
        for at in range(6)
    ]  # fmt: skip
    path = written(tmp_path, "jsonl", table)
    (log,) = read_logs("table", sources("table", [path]), Options())
    shown = [(row.id, row.question, row.answer, row.reference, row.group) for row in log.rows]
    assert shown[0] == ("d0", "0?", "0!", "x", "tort")
    assert [row.loss for row in log.rows] == [1.0, 0.0] * 3
    assert [row.weight for row in log.rows] == [1, 2, 3, 4, 5, 6]
    assert "id: doc_id" in log.notes[0]
    assert "score: acc" in log.notes[0]
    named = Columns({"doc_id": "hidden", "response": "hidden"})
    (hashed, *_) = rows("table", path, options=Options(columns=named))
    assert hashed.id != "d0"
    assert hashed.answer is None


def test_what_is_judged_is_asked_where_people_judge_the_outputs_and_is_else_hidden() -> None:
    rivals = [{"id": at, "acc": 1, "answer": f"It is {at}.", "memo": f"So {at}."} for at in "abc"]
    assert "answer" not in json.loads(ndjson(join(of(rivals, {}))).splitlines()[0])
    with pytest.raises(NeedsAnswer, match=r"Which column is judged.*--given answer=memo"):
        read_as(rivals, Options(judged=True))
    (row, *_) = read_as(rivals, Options(judged=True, answer="memo"))
    assert row.answer == "So a."
    (row, *_) = read_as(rivals, Options(judged=True, columns=Columns({"memo": "hidden"})))
    assert row.answer == "It is a."


def test_what_one_system_found_is_shown_with_its_answers_only() -> None:
    """A picture is of the item, but passages may be those that the model itself retrieved."""
    picture = "data:image/png;base64,iVBORw0KGgo="
    table = [
        {"id": at, "m": m, "acc": 1, "question": f"{at}?", "answer": m, "image": picture,
         "contexts": [f"{m} of {at}"], "choices": ["A", "B"]}
        for at in range(3)
        for m in "ab"
    ]  # fmt: skip
    columns = Columns({}, model="m")
    lines = ndjson(join(of(table, {}, model="m"))).splitlines()
    item = {"question": "0?", "image": picture, "choices": ["A", "B"]}
    assert json.loads(lines[0])["payload"] == item
    judged = read_as(table, Options(judged=True, columns=columns))
    shown = [json.loads(ndjson(pool).splitlines()[0])["payload"] for pool in (
        join(judged, "b"), compare(judged, "a", "b")
    )]  # fmt: skip
    assert shown == [item | {"text": "b of 0", "answer": "b"}, item]


def test_a_count_that_is_not_that_of_the_rows_is_told(tmp_path: Path) -> None:
    path = tmp_path / "nightly.json"
    path.write_text(json.dumps({"total": 3, "results": [{"id": at, "loss": 0} for at in "ab"]}))
    (log,) = read_logs("table", sources("table", [path]), Options())
    assert "total says 3, where 2 rows were read" in " ".join(log.notes)


def test_outputs_that_people_judge_need_no_score(tmp_path: Path) -> None:
    path = tmp_path / "said.jsonl"
    table = [{"id": at, "question": f"{at}?", "answer": "y", "stars": at} for at in range(4)]
    path.write_text("".join(json.dumps(row) + "\n" for row in table))
    assert "(--mapping stars=score: such as" in refusal(rows, "table", path)
    options = Options(reducer=EACH, judged=True)
    (log,) = read_logs("table", sources("table", [path]), options)
    assert [row.loss for row in log.rows] == [None] * 4
    assert (
        log.notes[-1]
        == "no column is the score, which --mapping COLUMN=score names: stars may be one"
    )
    assert not each_output(log.rows).guessed


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        ({"score": "hidden"}, "the table: Which column is the score? Where people are yet to"),
        ({"score": "surrogate", "text": "score"}, "the table: A guess of the loss is a surrogate"),
        ({"text": "surrogate"}, "the table: The column of the surrogate holds no guess"),
        ({"score": "surrogate", "text": "prediction"}, "a row of the table is one output of a mod"),
        ({"score": "surrogate", "run": "group", "gold": "group"}, "a row of the table is one out"),
        ({"score": "surrogate", "gold": "weight"}, "row 1 of the table has the weight 'x'"),
        ({"score": "loss"}, "the table: There is no such role."),
    ],
)
def test_what_the_mapping_gets_wrong_is_refused_in_one_line(
    roles: dict[str, str], said: str
) -> None:
    assert refusal(of, TABLE, {"item": "id"} | roles).startswith(said)


@pytest.mark.parametrize(
    ("form", "text", "said"),
    [
        ("csv", b"id,loss\na,0\nb,0,1\n", "line 3 of "),
        ("csv", b'id,loss\na,"0', "A quote is opened and not closed: line 2 of "),
        ("csv", b"id,loss,loss\na,0,1\n", "has two columns 'loss'"),
        ("csv", b"id,loss\n", "has no rows"),
        ("jsonl", b'{"id": 1, "loss": 0}\n{"id"\n', "line 2 of "),
        ("jsonl", b'{"id": 1, "loss": 0}\n[1]\n', "line 2 of "),
        ("json", b"[1, 2]", "line 1 of "),
        ("json", b'[{"id": 1}', "may have been cut off"),
        ("parquet", b"PAR1 and no more", "may have been cut off"),
    ],
)
def test_a_file_that_is_not_whole_is_refused(
    tmp_path: Path, form: str, text: bytes, said: str
) -> None:
    path = tmp_path / f"table.{form}"
    path.write_bytes(text)
    assert said in refusal(rows, "table", path, options=Options(columns=Columns({"loss": "score"})))


def test_without_pyarrow_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "parquet", TABLE)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = refusal(rows, "table", path, options=OPTIONS)
    assert said.endswith("Parquet needs a library: pip install 'celeus[parquet]'")


@pytest.mark.parametrize(
    ("repeats", "losses"), [("mean", [0.5, 0.5, 0.5]), ("first", [1.0, 1.0, 1.0])]
)
def test_which_of_several_scores_of_an_item_counts_is_asked_at_every_door(
    tmp_path: Path, repeats: str, losses: list[float]
) -> None:
    """As of a batch of Mechanical Turk, where workers give a verdict each."""
    path = tmp_path / "batch.csv"
    said = ("incorrect", "correct")
    lines = "".join(f"H{at // 2},W{at % 2},{at // 2}?,{said[at % 2]}\n" for at in range(6))
    path.write_text(f"HITId,WorkerId,Input.question,Answer.label\n{lines}")
    options = Options(columns=Columns({"Answer.label": "score"}))
    assert f"--given repeats={repeats}: " in refusal(rows, "table", path, options=options)
    found = rows("table", path, options=replace(options, repeats=repeats))
    assert [row.loss for row in found] == losses
    mapping = {"HITId": "id", "Input.question": "question", "Answer.label": "known"}
    with pytest.raises(NeedsAnswer, match="Which count"):
        celeus.read_items(path, mapping=mapping)
    items = celeus.read_items(path, mapping=mapping, repeats=repeats, loss=(0, 1))
    assert [item["known"]["loss"] for item in items] == losses


def test_neither_marks_nor_times_are_offered_as_a_score() -> None:
    """As of annotations, which have a hash and a time, and no score."""
    row = {"answer": "So", "text_hash": 17, "timestamp": 1.7e9, "status": 200}
    rows = [{"id": at, **row, "note": f"see {at}"} for at in range(6)]
    assert "has no column that may be the score" in refusal(of, rows, {})
    asking = refusal(of, [row | {"rating": at} for at, row in enumerate(rows)], {})
    assert "--each-output makes items of them" in asking
    assert asking.endswith("(--mapping rating=score: such as 0)")
    given = of(rows, {"status": "score"}, better=["higher"], scale=["0 to 500"])
    assert {row.loss for row in given} == {0.6}


def test_a_score_with_words_for_none_is_offered_and_an_id_is_not() -> None:
    """As R and Stata write what is missing."""
    rows = [{"key": at, "answer": f"So {at}", "grade": at, "annotator_id": 7} for at in range(6)]
    rows[2] |= {"grade": "NA"}
    rows[3] |= {"grade": "."}
    asking = refusal(of, rows, {})
    assert asking.endswith("(--mapping grade=score: such as 0)")
    bare = [{"key": at, "answer": f"So {at}", "annotator_id": 7} for at in range(6)]
    assert "none holds numbers" in refusal(of, bare, {})
    asking = refusal(of, rows, {"grade": "score"}, better=["higher"], scale=["0 to 5"])
    assert "--given missing=NA: no score, in 1 row; --given missing=.: no score, in 1 row" in asking


@pytest.mark.parametrize(
    ("grade", "held"),
    [
        ("ABC", "`grade` holds words (A, B, C)"),
        ("ABCDEF", "`grade` holds words (A, B, C)"),
        ("", "none holds numbers"),
    ],
)
def test_outputs_that_cannot_have_a_score_are_refused_with_the_way_on(
    grade: str, held: str
) -> None:
    rows = [{"id": at, "answer": f"So {at}", "note": f"see {at}"} for at in range(6)]
    if grade:
        rows = [row | {"grade": grade[at % len(grade)]} for at, row in enumerate(rows)]
    said = refusal(of, rows, {})
    assert held in said
    assert "--each-output" in said
