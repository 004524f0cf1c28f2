"""What columns are taken for, by their names and by what they hold; chats; encodings."""

import io
import json
import random
from typing import Any

import pytest

from celeus.errors import InvalidValue
from celeus.intake.opening import SentFile, opened
from celeus.intake.rows import Options
from celeus.intake.sources.sheet import DEPTH_RULE, BadRow, Sheet
from celeus.intake.table.asking import Table, answered
from celeus.intake.table.chats import messages_of
from celeus.intake.table.columns import columns_of, number_of, shown
from celeus.intake.table.guessing import guessed
from celeus.intake.table.roles import HIDDEN, ROLES, Kind
from tests.nightly import NIGHTLY


def sheet(content: bytes, name: str = "") -> Sheet:
    return next(one for one in opened(io.BytesIO(content), SentFile(name)) if one is not None)


def roles(rows: list[dict[str, Any]], kind: Kind | None = None) -> dict[str, str]:
    columns = columns_of(sheet(json.dumps(rows).encode()))
    placed = guessed(columns, kind or Kind())
    return {column.name: column.role for column in placed if column.role != HIDDEN}


def table(found: Sheet, kind: Kind | None = None, **answers: Any) -> Table:  # noqa: ANN401 -- as Options takes them
    (read,) = filter(None, answered(found, kind or Kind(), Options(**answers)))
    return read


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"Prompt": "q", "Model Answer": "a"}, {"Prompt": "question", "Model Answer": "answer"}),
        ({"userInput": "q", "output": "a"}, {"userInput": "question", "output": "answer"}),
        # Beside what a model answered, an answer is the right one
        (
            {"question": "q", "answer": "gold", "response": "a"},
            {"question": "question", "answer": "reference", "response": "answer"},
        ),
        (
            {"instruction": "do", "input": "this", "output": "done"},
            {"instruction": "question", "input": "text", "output": "answer"},
        ),
        ({"context": "c", "question": "q"}, {"context": "text", "question": "question"}),
        # A chat under any name, and what is none under the name of one
        ({"x": [{"role": "user", "content": "Hi"}]}, {"x": "messages"}),
        ({"messages": "two new", "prompt": "q"}, {"prompt": "question"}),
        ({"link": "https://a.org/b.PNG?c"}, {"link": "image"}),
        ({"picture": {"bytes": "x", "path": "a.png"}}, {"picture": "image"}),
        ({"q": "Is this a question?", "m": "It may well be one"}, {"q": "question", "m": "answer"}),
        ({"x": "word"}, {"x": "payload"}),
        ({"question": "q", "choices": ["a", "b"]}, {"question": "question", "choices": "choices"}),
        ({"question": "q", "score": 0.5}, {"question": "question", "score": "score"}),
        # Outside the scale of the losses it is no guess of one
        ({"question": "q", "score": 5}, {"question": "question"}),
        ({"text": "q", "loss": 0.5}, {"text": "text", "loss": "surrogate"}),
        ({"text": "q", "weight": 2}, {"text": "text", "weight": "weight"}),
        ({"question": "q", "model": "m", "annotations": [{"a": 1}]}, {"question": "question"}),
        ({"data": {"text": "t"}, "meta": {"who": "w"}}, {"data.text": "text"}),
    ],
)  # fmt: skip
def test_columns_are_known_by_their_names(row: dict[str, Any], found: dict[str, str]) -> None:
    assert roles([row, row]) == found


def test_an_id_tells_rows_apart_and_a_group_holds_several() -> None:
    rows = [{"id": at, "nr": 1, "topic": "ab"[at % 2], "question": "q"} for at in range(6)]
    assert roles(rows) == {"id": "id", "topic": "group", "question": "question"}
    assert roles([row | {"id": 7} for row in rows])["id"] == "id"
    assert "group" not in roles([row | {"topic": row["id"]} for row in rows]).values()
    assert "group" not in roles([*rows, {"id": 9, "question": "q"}]).values()


@pytest.mark.parametrize(
    "names", [("answer_a", "answer_b"), ("Response 1", "Response 2"), ("chosen", "rejected")]
)
def test_two_answers_are_those_of_two_systems(
    names: tuple[str, str],
) -> None:
    rows = [{"prompt": "p", names[0]: "x", names[1]: "y"}]
    found = roles(rows, Kind(two=True))
    assert found == {"prompt": "question", names[0]: "answer_a", names[1]: "answer_b"}


@pytest.mark.parametrize(
    ("value", "comma", "number"),
    [
        ("0,5", True, 0.5),
        ("0,5", False, "0,5"),
        (" 1e-3 ", False, 0.001),
        ("12.5 %", False, 0.125),
        ("richtig", False, 1.0),
        (False, False, 0.0),
        ("1_000", False, "1_000"),
        ("much", True, "much"),
    ],
)
def test_numbers_as_people_write_them(value: object, number: object, *, comma: bool) -> None:
    assert number_of(value, comma=comma) == number


@pytest.mark.parametrize(
    ("cells", "comma"),
    [(("0,5", "1"), True), (("1,234", "2,345"), False), (("0,5", "0.5"), False)],
)
def test_a_decimal_comma_is_one_where_it_can_be_nothing_else(
    cells: tuple[str, str], *, comma: bool
) -> None:
    content = "a;b\n" + "".join(f"x;{cell}\n" for cell in cells)
    assert columns_of(sheet(content.encode()))[1].comma is comma


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ([{"from": "human", "value": "?"}, {"from": "gpt", "value": "!"}], ["user", "assistant"]),
        ('[{"role": "user", "content": "Hi"}]', ["user"]),
        ({"messages": [{"role": "system", "content": [{"text": "x"}]}]}, ["system"]),
        ("Hi", None),
        ([{"a": 1}], None),
        ([], None),
    ],
)  # fmt: skip
def test_chats_have_one_form(value: object, found: list[str] | None) -> None:
    messages = messages_of(value)
    assert (None if messages is None else [one["role"] for one in messages]) == found


def test_of_a_chat_in_branches_the_last_one_is_shown() -> None:
    """An answer that was asked for again: the first one is not shown."""

    def node(role: str, text: str, parent: str | None, *children: str) -> dict[str, Any]:
        message = {"author": {"role": role}, "content": {"parts": [text]}}
        return {"message": message, "parent": parent, "children": list(children)}

    tree = {
        "a": node("user", "Hi", None, "b", "c"),
        "b": node("assistant", "first", "a"),
        "c": node("assistant", "second", "a"),
    }
    found = messages_of(tree)
    assert found is not None
    assert [one["content"] for one in found] == ["Hi", "second"]


CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Paris"}'},
}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def test_tool_calls_and_pictures_of_a_chat_reach_the_page_as_they_are() -> None:
    chat: list[dict[str, Any]] = [
        {"role": "system", "content": [{"type": "text", "text": "Be"}, {"text": "brief."}]},
        {"role": "user", "content": [{"type": "text", "text": "Where is this?"}, PICTURE]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "18 °C"},
        {"role": "assistant", "content": None, "refusal": "I would rather not say."},
    ]
    found = messages_of(chat)
    assert found is not None
    assert found[0]["content"] == "Be\nbrief."
    assert found[1]["content"] == chat[1]["content"]
    assert found[2] == {"role": "assistant", "content": "", "tool_calls": [CALL]}
    assert found[3] == chat[3]
    assert found[4]["refusal"] == "I would rather not say."


def test_tools_of_anthropic_stay_parts_of_what_is_said() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Paris"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "18 °C"}
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    chat = [
        {"role": "user", "content": [{"type": "image", "source": source}]},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, use]},
        {"role": "user", "content": [result]},
    ]
    assert messages_of(chat) == chat


def test_what_chatgpt_asked_of_a_tool_is_a_call_of_it() -> None:
    def node(
        author: dict[str, str], content: dict[str, Any], parent: str | None, **more: str
    ) -> dict[str, Any]:
        return {"message": {"author": author, "content": content} | more, "parent": parent}

    code = {"content_type": "code", "text": "print(1 + 1)"}
    tree = {
        "a": node({"role": "user"}, {"parts": ["Sum?"]}, None, recipient="all")
        | {"children": ["b"]},
        "b": node({"role": "assistant"}, code, "a", recipient="python") | {"children": ["c"]},
        "c": node({"role": "tool", "name": "python"}, {"text": "2"}, "b", recipient="all"),
    }
    assert messages_of(tree) == [
        {"role": "user", "content": "Sum?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "type": "function",
                    "function": {"name": "python", "arguments": "print(1 + 1)"},
                }
            ],
        },
        {"role": "tool", "content": "2", "name": "python"},
    ]


def test_a_chat_told_as_text_names_the_calls() -> None:
    chat = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
    ]
    text = shown(chat)
    assert text.startswith("user: Weather?\n\nassistant: ")
    assert "weather" in text
    assert "Paris" in text


def test_what_excel_saves_under_windows_is_read_and_said() -> None:
    found = sheet("Straße;Größe\nGroße Allee;7\n".encode("cp1252"))
    assert found.read_as == ("separated by semicolon", "Windows-1252")
    assert [row for _, row in found.rows()] == [{"Straße": "Große Allee", "Größe": "7"}]


def test_a_cell_with_control_characters_is_text() -> None:
    text = "\x1b[31mRot\x1b[0m\x07 ä"
    found = sheet(f"question,answer\nWhy?,{text}\n".encode(), "a.csv")
    assert [row for _, row in found.rows()] == [{"question": "Why?", "answer": text}]


@pytest.mark.parametrize("content", [b"a,b\n\x1b,\xff\n", b"a,b\n1,\0\n"])
def test_control_characters_are_text_in_utf_8_alone(content: bytes) -> None:
    with pytest.raises(InvalidValue, match="no text and no table"):
        list(sheet(content, "a.csv").rows())


def test_the_line_below_the_header_of_a_markdown_table_is_no_row() -> None:
    text = b"| question | answer |\n|:---|---:|\n| Why? | So. |\n| And? | --- |\n"
    (sheet,) = filter(None, opened(io.BytesIO(text), SentFile("table.csv")))
    assert [line for line, _ in sheet.rows()] == [3, 4]


@pytest.mark.parametrize(
    "above",
    ["Results of May\n", "Results of May,,\n,,\n", "# made, by, a tool\n", '"# made by a tool"\n'],
)
def test_a_title_above_the_header_or_what_may_be_names_is_to_be_removed(above: str) -> None:
    content = f"{above}question,answer,score\n" + "Why?,So.,1\n" * 5
    with pytest.raises(InvalidValue) as refused:
        list(sheet(content.encode(), "a.csv").rows())
    assert "remove the lines above" in str(refused.value.rule)
    assert refused.value.field == "body"


@pytest.mark.parametrize(
    "above",
    [
        "# made by a tool\n",
        "#made by, a tool\r\n",
        "# a\n#\n\n",
        "# it's \u2028 one\n",
        "## a,b,c,d\n",
    ],
)
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_comments_above_the_header_are_left_out_and_told(above: str, separator: str) -> None:
    rows = ["question,answer,score", "Why?,So.,1", "# no comment,any,0"]
    content = above + "\n".join(rows).replace(",", separator)
    found = sheet(content.encode(), "a.csv")
    marked = [line for line in above.split("\n") if line.startswith("#")]
    assert sum("without the comment" in phrase for phrase in found.read_as) == len(marked)
    last = above.count("\n") + 3
    named = {"question": "# no comment", "answer": "any", "score": "0"}
    assert [*found.rows()][-1] == (last, named)


def test_a_comment_below_the_header_is_a_bad_row_to_be_removed() -> None:
    found = sheet(b"question,answer\n# by the tool\nWhy?,So.\n", "a.csv")
    (_, bad), (_, row) = found.rows()
    assert isinstance(bad, BadRow)
    assert bad.rule == "2 cells, as in the header: remove the line if it is a comment"
    assert row == {"question": "Why?", "answer": "So."}


@pytest.mark.parametrize("below", ["1,What?,\n2,Why?,\n", "What?,yes,\nWhy?,no,\n"])
def test_names_behind_a_hash_are_no_comment(below: str) -> None:
    with pytest.raises(InvalidValue, match="no header of the rows below"):
        list(sheet(f"# question, answer\n{below}".encode(), "a.csv").rows())


def test_the_last_line_with_a_hash_may_be_the_header() -> None:
    found = sheet(b"##made by a tool\n#id\tquestion\n1\tWhy?\n", "a.tsv")
    assert [*found.rows()] == [(3, {"#id": "1", "question": "Why?"})]


@pytest.mark.parametrize("content", [b"question,\nWhy?,\n", b"#,question\n1,Why?\n", b"a\nb\n"])
def test_a_header_of_one_name_is_no_title(content: bytes) -> None:
    assert len(list(sheet(content, "a.csv").rows())) == 1


def test_the_separator_is_found_below_blank_lines() -> None:
    assert list(sheet(b"\r\n\na;b\n1;2\n", "a.csv").rows()) == [(4, {"a": "1", "b": "2"})]


def test_numbers_with_blanks_between_them_are_no_texts_of_one_column() -> None:
    with pytest.raises(InvalidValue, match="Blanks stand between") as refused:
        list(sheet(b"Chins Situps Jumps\n5 162 60\n2 110 -6.5e1\n", "a.csv").rows())
    assert refused.value.rule == "a comma, a semicolon, a tab, a bar between the cells"
    names = sheet(b"first last\nAda Lovelace\nAlan 3\n", "a.csv")
    assert len(list(names.rows())) == 2


def test_headers_without_names_and_with_one_twice_get_numbers() -> None:
    rows = list(sheet(b",a,a\n1,2,3\n").rows())
    assert rows == [(2, {"column 1": "1", "a": "2", "a (3)": "3"})]
    rows = list(sheet(b"a,a (3),a,,column 4\n1,2,3,4,5\n").rows())
    names = ["a", "a (3)", "a (4)", "column 4", "column 4 (5)"]
    assert rows == [(2, dict(zip(names, "12345", strict=True)))]


def test_a_surrogate_that_nothing_has_is_refused() -> None:
    found = sheet(b"a,b\nx,none\ny,much\n")
    with pytest.raises(InvalidValue, match="no guess of a loss"):
        table(found, roles={"a": "text", "b": "surrogate"})


@pytest.mark.parametrize("role", ["surrogate", "known"])
def test_letter_grades_are_refused_with_the_letters_and_the_way_on(role: str) -> None:
    found = sheet(b"answer,grade\nx,A\ny,B\nz,F\n")
    with pytest.raises(InvalidValue) as refused:
        table(found, roles={"answer": "answer", "grade": role})
    assert refused.value.value == "A, B, F"
    assert refused.value.rule == "a number from 0 to 1 in place of each word"
    assert refused.value.field == "mapping.grade"


@pytest.mark.parametrize(
    ("name", "chosen"), [("metric", Options(metric="stars")), ("filter", Options(filter="stars"))]
)
def test_what_is_chosen_of_logs_is_not_ignored_of_a_table(name: str, chosen: Options) -> None:
    given = SentFile("a.csv", options=chosen)
    with pytest.raises(InvalidValue, match=f"no {name} is chosen") as refused:
        list(opened(io.BytesIO(b"question,stars\nWhy?,5\n"), given))
    assert (refused.value.field, refused.value.value) == (name, "stars")


def nested(levels: int, *, objects: bool = False) -> Any:  # noqa: ANN401 -- any JSON
    value: Any = "x"
    for _ in range(levels):
        value = {"a": value} if objects else [value]
    return value


ODD: tuple[Any, ...] = (
    *(None, True, -1, 1e308, 10**400, 10**4000, "", "x", "q?", "\ud800", "\0", "9" * 5000, "1e999"),
    *([], [[]], {}, {"": {}}, float("nan"), float("inf"), "nan%", ",5", "\u0663"),
    *(nested(depth, objects=form) for depth in (90, 190, 500) for form in (False, True)),
    *({"text": nested(400)}, {"bytes": [1]}, {"bytes": 3, "path": None}, {"src": [1], "url": {}}),
    *({"a": {"message": "x"}}, {"a": {"message": None, "parent": {}, "children": [1]}}),
    {"a": {"message": {"content": 3, "author": "x"}, "parent": [1], "children": {}}},
    *([{"role": [], "content": nested(500)}], [{"role": "user", "content": 10**400}]),
    *([{"from": None, "value": {}}, {"from": 1}], [{"message": {"content": nested(500)}}]),
    *(json.dumps(nested(500)), json.dumps([{"role": "u", "content": nested(500)}])),
)
TABLES = 600 if NIGHTLY else 150
NAMES = [*(role for role in ROLES if role != HIDDEN), "mapping", "a.b", "chosen", "rejected", "x"]


def test_whatever_stands_in_a_table_each_row_is_an_item_or_a_bad_one() -> None:
    """Nothing but a refusal of the file, or of a row; and no row fails in a way nobody foresaw."""
    chance = random.Random(15)  # noqa: S311 -- a table is no secret
    told = 0
    numbers = {"higher": True, "missing": ("-1", "999"), "scales": {"": (0.0, 1.0)}}
    for _ in range(TABLES):
        names = chance.sample(NAMES, chance.randint(1, 5))
        made = [{name: chance.choice(ODD) for name in names} for _ in range(3)]
        content = "\n".join(map(json.dumps, made)).encode()
        kind = Kind(two=chance.random() < 0.3)
        try:
            found = sheet(content)
            given = chance.random() < 0.5
            mapping = {one.name: chance.choice(ROLES) for one in columns_of(found) if given}
            read = table(
                found,
                kind,
                roles=mapping or None,
                answer=None if mapping else names[0],
                repeats="items",
                rows="all",
                **(numbers if "score" in mapping.values() else {}),
            )
            rows = [row for _, row in read.items.rows()]
        except InvalidValue:
            continue
        told += len(rows)
        assert json.dumps([read.examples, *(row for row in rows if not isinstance(row, BadRow))])
        rules = {row.rule for row in rows if isinstance(row, BadRow)}
        assert rules <= {DEPTH_RULE}
    assert told > TABLES


@pytest.mark.parametrize(
    "content",
    [
        b'{"question": "Why?", "score": 1, "score": 0}',
        b'[\n{"question": "Why?", "score": 1, "score": 0}\n]',
        b'{"results": [{"question": "Why?", "x": {"score": 1, "score": 0}}]}',
    ],
)
def test_a_document_with_a_name_twice_in_an_object_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidValue, match="every name once") as refused:
        list(sheet(content, "a.json").rows())
    assert refused.value.value == "score"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_line_with_a_name_twice_in_an_object_is_a_bad_row(place: int) -> None:
    lines = [b'{"question": "Why?", "score": 1}'] * 3
    lines[place] = b'{"question": "Why?", "score": 1, "score": 0}'
    rows = dict(sheet(b"\n".join(lines), "a.jsonl").rows())
    assert rows[place + 1] == BadRow("every name once in an object", "score")
