"""Files that are no form of ours: what they are, what their columns mean, what comes of them."""

import gzip
import io
import json
import tempfile
import zipfile
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from celeus.api.pools.sheet_worker import work
from celeus.api.pools.sheets import MEMORY_BYTES, Limits, Look, Reading, sheet_rows
from celeus.errors import InvalidValue, PoolTooLarge, UploadTooLarge
from celeus.operations.runtime.workers import Frame
from celeus.settings import Settings
from celeus.store.database import Database
from celeus.store.tables import mappings
from tests.clients import serving
from tests.intake.workbooks import ods
from tests.keys import bearer, key_in

FIXTURES = Path(__file__).parents[2] / "ecosystem" / "fixtures"
QUESTIONS = b"question,answer,expected\nWhy?,So.,Therefore.\nWho?,Ada,Grace\n"
FIRST = {"question": "Why?", "answer": "So.", "reference": "Therefore."}
ROLES = {"question": "question", "answer": "answer", "expected": "reference"}
MOST_BYTES = 1 << 20
ROWS = [{"question": "Why?", "answer": "So.", "expected": "Therefore."}, {"question": "Who?"}]


async def sent(
    client: httpx.AsyncClient,
    body: bytes,
    media: str = "application/octet-stream",
    **query: Any,  # noqa: ANN401 -- as the wire takes it
) -> httpx.Response:
    asked: dict[str, Any] = {"name": "exam", "kind": "zero_one", "preview": 50} | query
    headers = {"Content-Type": media}
    return await client.post("/v1/pool-files", params=asked, content=body, headers=headers)


def parquet(rows: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@pytest.mark.parametrize(
    ("body", "media", "form"),
    [
        (QUESTIONS, "text/csv", "csv"),
        (QUESTIONS, "application/x-www-form-urlencoded", "csv"),
        (QUESTIONS.replace(b",", b";"), "text/csv", "csv"),
        (b"sep=\t\n" + QUESTIONS.replace(b",", b"\t"), "", "csv"),
        (b"\xef\xbb\xbf" + QUESTIONS.replace(b"\n", b"\r\n"), "application/vnd.ms-excel", "csv"),
        (QUESTIONS.decode().encode("utf-16"), "text/csv", "csv"),
        (QUESTIONS.decode().encode("utf-16-le"), "text/plain", "csv"),
        (gzip.compress(QUESTIONS, mtime=0), "application/gzip", "csv"),
        (json.dumps(ROWS).encode(), "application/json", "json"),
        (json.dumps({"version": 2, "items": ROWS}, indent=1).encode(), "", "json"),
        (jsonl(ROWS), "application/x-ndjson", "jsonl"),
        (gzip.compress(jsonl(ROWS), mtime=0), "", "jsonl"),
        (parquet(ROWS), "application/vnd.apache.parquet", "parquet"),
        (parquet(ROWS), "", "parquet"),
    ],
)
async def test_a_table_is_read_whatever_it_is_written_in(
    client: httpx.AsyncClient, body: bytes, media: str, form: str
) -> None:
    answer = await sent(client, body, media)
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert (told["format"], told["items"], told["pool"]["sealed"]) == (form, 2, True)
    assert (told["mapping"], told["mapping_source"]) == (ROLES, "guessed")
    assert told["first"][0]["item"] == {"id": "1", "payload": FIRST}
    kept = (await client.get(f"/v1/pools/{told['pool']['id']}/items")).json()["data"]
    assert kept[0]["payload"] == FIRST


async def test_a_form_brings_the_file_its_name_and_the_query(client: httpx.AsyncClient) -> None:
    mapping = {"question": "question", "expected": "answer"}
    members = {"kind": "zero_one", "mapping": json.dumps(mapping), "preview": "1"}
    files = {"file": ("spring exam.csv.gz", gzip.compress(QUESTIONS, mtime=0))}
    answer = await client.post("/v1/pool-files", data=members, files=files)
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert (told["pool"]["name"], told["mapping_source"]) == ("spring exam", "given")
    assert told["mapping"] == mapping | {"answer": "hidden"}
    assert told["first"][0]["item"]["payload"] == {"question": "Why?", "answer": "Therefore."}


async def test_a_form_sent_again_under_a_key_is_the_same_request(client: httpx.AsyncClient) -> None:
    """What parts the members of a form is another each time."""
    answers = [
        await client.post(
            "/v1/pool-files?kind=zero_one",
            headers={"Idempotency-Key": "form"},
            files={"file": ("a.csv", content)},
        )
        for content in (QUESTIONS, QUESTIONS, QUESTIONS + b"How?,Thus,So\n")
    ]
    assert [one.status_code for one in answers] == [201, 201, 422]
    assert answers[0].content == answers[1].content
    assert answers[2].json()["code"] == "idempotency_key_reused"


@pytest.mark.parametrize(
    ("files", "data", "field"),
    [
        ({"file": ("a.csv", b"")}, {"name": "a"}, "body"),
        ({}, {"name": "a", "kind": "zero_one"}, "body"),
        ([("file", ("a.csv", QUESTIONS)), ("file", ("b.csv", QUESTIONS))], {}, "body"),
        ({"file": ("a.csv", QUESTIONS)}, {"kind": "other"}, "kind"),
        ({"file": ("a.csv", QUESTIONS)}, {"kind": "zero_one", "name": ""}, "name"),
        ({"file": ("a.csv", QUESTIONS)}, {"kind": "zero_one", "mapping": "[]"}, "mapping"),
        ({"file": ("a.csv", QUESTIONS)}, {"kind": "zero_one", "junk": "x" * 70_000}, "body"),
        ({"file": ("a.csv", QUESTIONS)}, {"kind": "zero_one", "maping": "{}"}, "maping"),
        (
            {"file": ("a.csv", QUESTIONS)},
            {"kind": "zero_one"} | {f"m{at}": "x" for at in range(80)},
            "body",
        ),
    ],
)
async def test_a_form_that_cannot_be_read_is_refused(
    client: httpx.AsyncClient,
    files: Any,  # noqa: ANN401 -- as httpx takes them
    data: dict[str, str],
    field: str,
) -> None:
    headers = {} if files else {"Content-Type": "multipart/form-data; boundary=x"}
    content = (
        None if files else b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--'
    )
    data = {"kind": "zero_one"} | data
    answer = await client.post(
        "/v1/pool-files",
        headers=headers,
        **({"files": files, "data": data} if files else {"content": content}),
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_value"), answer.text
    assert answer.json()["field"].rpartition(".")[2] == field


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"%PDF-1.7", "a PDF"),
        (b"\xff\xd8\xff\xe0", "a picture"),
        (b"PK\x03\x04 [Content_Types].xml", "no workbook"),
        (b"<html><body>one, two</body></html>", "no table that is known"),
        (b"Dear all,\nthis is a letter.\n", "no table that is known"),
        (b"\x00\x01\x02\x03" * 100, "no text and no table"),
        (b'[{"question": "Why?"', "cut off on its way"),
        (b"[" * 100_000, "too deep"),
        (b"42", "no table that is known"),
        (parquet(ROWS)[:-9], "cannot be read as Parquet"),
        (b"\x28\xb5\x2f\xfd\x00", "Zstandard"),
    ],
)
def test_a_file_that_is_no_table_is_refused_in_one_line(body: bytes, said: str) -> None:
    reading = Reading("exam", csv=False, lower=0.0, upper=1.0, two=False)
    job = {"reading": asdict(reading), "limits": asdict(Limits(MOST_BYTES, 1000))}
    with pytest.raises(InvalidValue) as refused:
        list(work(Frame(job), [io.BytesIO(body)]))
    assert refused.value.field == "body"
    assert said in refused.value.detail
    assert "\n" not in refused.value.detail


def test_a_workbook_that_needs_too_much_memory_is_refused() -> None:
    """The library that reads it ends the process."""
    repeated = '<table:table-row table:number-rows-repeated="60000">'
    cell = 'table:number-columns-repeated="900" office:value-type="string"'
    content = ods([["a"]], {"<table:table-row>": repeated, 'office:value-type="string"': cell})
    reading = Reading("bomb", csv=False, lower=0.0, upper=1.0, two=False)
    with tempfile.TemporaryFile() as file:
        file.write(content)
        with pytest.raises(UploadTooLarge, match="more memory"):
            list(sheet_rows(file, reading, Limits(MOST_BYTES, 1000), Look()))


def test_a_parquet_table_of_too_many_rows_is_refused_by_what_it_declares() -> None:
    """Its reader looked for the mark of Parquet where the parent had stopped to read."""
    with tempfile.TemporaryFile() as file:
        file.write(parquet(ROWS))
        with pytest.raises(PoolTooLarge):
            list(sheet_rows(file, Reading("rows"), Limits(MOST_BYTES, 1), Look()))


async def test_nothing_is_kept_of_a_file_that_is_no_table(client: httpx.AsyncClient) -> None:
    answer = await sent(client, gzip.compress(QUESTIONS, mtime=0)[:30])
    assert answer.status_code == 422, answer.text
    told = answer.json()
    assert (told["code"], told["field"]) == ("invalid_value", "body")
    assert "gzip file is damaged" in told["detail"]
    assert (await client.get("/v1/pools")).json()["data"] == []


@pytest.fixture
async def narrow(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service that takes MOST_BYTES of a file."""
    async with serving(settings, upload_limit_bytes=MOST_BYTES) as client:
        yield client


async def test_a_file_that_unpacks_to_too_much_is_refused(narrow: httpx.AsyncClient) -> None:
    """A thousandth of it comes over the wire."""
    rows = gzip.compress(b"question,answer\n" + b"x,y\n" * (MOST_BYTES // 2))
    assert len(rows) < MOST_BYTES // 10
    answer = await sent(narrow, rows)
    assert answer.status_code == 413, answer.text
    assert answer.json()["code"] == "upload_too_large"


async def test_an_archive_that_unpacks_to_too_much_is_refused(client: httpx.AsyncClient) -> None:
    """It is the memory of its reader that ends."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("header.json", json.dumps({"status": "success", "eval": {"model": "m"}}))
        archive.writestr("samples/1_epoch_1.json", b'{"id": "' + bytes(MEMORY_BYTES) + b'"}')
    answer = await sent(client, sink.getvalue())
    assert answer.status_code == 413, answer.text
    assert answer.json()["code"] == "upload_too_large"


@pytest.mark.parametrize(
    ("body", "mapping", "item"),
    [
        (b"id,q\n1,Why?\n", {"id": "id", "q": "text"}, {"id": "1", "payload": {"text": "Why?"}}),
        (b"a;b\nWhy?;0,25\nWho?;0,5\n", {"a": "question", "b": "surrogate"}, {"surrogate": 0.25}),
        (b"a,b\nWhy?,0.25\nWho?,0.5\n", {"a": "question", "b": "score"}, {"surrogate": 0.75}),
        # Hard guesses are drawn to their mean, and what is missing is that
        (b"a,b\nWhy?,yes\nWho?,no\nHow?,\n", {"a": "text", "b": "surrogate"}, {"surrogate": 0.75}),
        (b"a,b\nWhy?,85 %\nWho?,10 %\n", {"a": "text", "b": "surrogate"}, {"surrogate": 0.85}),
        (b"a,b\nWhy?,2\nWho?,1\n", {"a": "text", "b": "weight"}, {"weight": 2.0}),
        (b"a,b\nWhy?,2\nWho?,1\n", {"a": "text", "b": "prediction"}, {"prediction": 2}),
        (b"a,b,c\nx,y,z\nv,w,u\n", {"a": "group", "b": "group"}, {"groups": {"a": "x", "b": "y"}}),
        (b"a,b\nx,y\nv,w\n", {"a": "payload", "b": "hidden"}, {"payload": {"a": "x"}}),
        (b'[{"id": 9007199254740993}]', {"id": "payload"}, {"payload": {"id": "9007199254740993"}}),
        (b'[{"a": {"b": {"c": "x"}}}]', {"a.b.c": "answer"}, {"payload": {"answer": "x"}}),
        (b'[{"a": "\\u0000 \\ud800"}]', {"a": "text"}, {"payload": {"text": "\\0 \\ud800"}}),
    ],
)
async def test_a_mapping_says_what_columns_mean(
    client: httpx.AsyncClient, body: bytes, mapping: dict[str, str], item: dict[str, Any]
) -> None:
    answers = {"better": "higher"} if "score" in mapping.values() else {}
    answer = await sent(client, body, mapping=json.dumps(mapping), **answers)
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert item.items() <= told["first"][0]["item"].items()
    assert told["mapping_source"] == "given"


@pytest.mark.parametrize(
    ("mapping", "field", "value"),
    [
        ('{"questions": "question"}', "mapping.questions", "questions"),
        ('{"question": "ask"}', "mapping.question", "ask"),
        ('{"question": "text", "answer": "text"}', "mapping.answer", "text"),
        ('{"question": "surrogate", "answer": "score"}', "mapping", "surrogate and score"),
        ('{"question": "surrogate"}', "mapping.question", "Why?, Who?"),
        ("{}", "mapping", None),
        ('{"question": 1}', "mapping", '{"question": 1}'),
        ("question", "mapping", "question"),
    ],
)
async def test_a_mapping_that_fits_no_column_is_refused(
    client: httpx.AsyncClient, mapping: str, field: str, value: str | None
) -> None:
    answer = await sent(client, QUESTIONS, mapping=mapping)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_value"), answer.text
    assert (answer.json()["field"], answer.json().get("value")) == (field, value)


@pytest.mark.parametrize(
    ("field", "text", "name"),
    [
        ("mapping", '{"question": "hidden", "question": "question"}', "question"),
        ("planning", '{"precision": 0.9, "precision": 0.2}', "precision"),
        ("levels", '[{"name": "a", "name": "b", "grade": 0.5}]', "name"),
    ],
)
async def test_a_name_that_stands_twice_in_the_query_is_refused(
    client: httpx.AsyncClient, field: str, text: str, name: str
) -> None:
    answer = await sent(client, QUESTIONS, dry_run=True, **{field: text})
    told = answer.json()
    assert (answer.status_code, told["field"], told["value"]) == (422, field, name), answer.text
    assert told["rule"] == "every name once in an object"


async def test_a_dry_run_tells_bad_rows_by_line_and_keeps_nothing(
    client: httpx.AsyncClient,
) -> None:
    body = b'Frage;guess\n"Wie\nviel?";0,5\nWas?;viel\nWer?;0,75;mehr\nWo?\n'
    mapping = json.dumps({"Frage": "question", "guess": "surrogate"})
    told = (await sent(client, body, "text/csv", dry_run=True, mapping=mapping)).json()
    faults = [(one["line"], one["field"], one["value"]) for one in told["errors"]]
    assert faults == [
        *((4, "surrogate", "viel"), (5, "", "3 cells: Wer?;0,75;mehr")),
        (6, "", "1 cells: Wo?"),
    ]
    assert (told["items"], told["skipped"], told["pool"]["items"]) == (1, 3, 1)
    assert [one["line"] for one in told["first"]] == [2, 4]
    made = await sent(client, body, "text/csv", on_error="skip", mapping=mapping)
    assert made.json()["pool"]["items"] == 1


async def test_a_quote_that_is_not_closed_is_one_fault_and_ends_the_file(
    client: httpx.AsyncClient,
) -> None:
    """What follows it may be rows or a part of the cell."""
    body = b'Frage;guess\nWas?;0,5\n"Wo\nWer?;0,75\n'
    answer = await sent(client, body, "text/csv", on_error="skip")
    assert answer.status_code == 422
    told = answer.json()
    assert (told["field"], told["detail"]) == (
        *("line 3", "A quote is opened and not closed: line 3 of the file."),
    )


DEEP = "[" * 400 + "]" * 400
LONG = "1" * 400


@pytest.mark.parametrize("form", ["json", "jsonl"])
@pytest.mark.parametrize(
    ("value", "role", "field", "rule"),
    [
        (DEEP, "payload", "", "at most 200 objects and lists within each other"),
        (DEEP, "hidden", "", "at most 200 objects and lists within each other"),
        (f'[{{"role":"user","content":{DEEP}}}]', "messages", "", "at most 200 objects and lists"),
        (LONG, "weight", "weight", "a number from"),
        (LONG, "surrogate", "surrogate", "a number from 0 to 1"),
        (LONG, "score", "surrogate", "a number from 0 to 1"),
        (LONG, "prediction", "prediction", ""),
    ],
)
async def test_a_row_that_no_reader_bears_is_a_bad_row_by_its_line(  # noqa: PLR0913, PLR0917
    client: httpx.AsyncClient, form: str, value: str, role: str, field: str, rule: str
) -> None:
    rows = ['{"question": "Why?", "extra": 0.5}', f'{{"question": "Who?", "extra": {value}}}']
    body = (f"[{','.join(rows)}]" if form == "json" else "\n".join(rows)).encode()
    mapping = json.dumps({"question": "question", "extra": role})
    answers = {"better": "higher"} if role == "score" else {}
    answer = await sent(client, body, mapping=mapping, **answers)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_rows"), answer.text
    faults = [one for one in answer.json()["errors"] if one["line"] == 2]
    assert [one["field"] for one in faults] == [field], answer.text
    assert rule in faults[0]["rule"]


@pytest.mark.parametrize("value", ["%s", '{"number": %s}', "[%s]"])
async def test_a_number_of_many_digits_is_shown_as_text(
    client: httpx.AsyncClient, value: str
) -> None:
    body = ('[{"question": "Why?", "extra": {"of": [%s]}}]' % (value % LONG)).encode()
    mapping = json.dumps({"question": "question", "extra.of": "payload"})
    answer = await sent(client, body, mapping=mapping)
    assert answer.status_code == 201, answer.text
    assert LONG in json.dumps(answer.json()["first"][0]["item"]["payload"]["extra.of"])


async def test_a_chat_that_is_none_is_read_as_what_it_is(client: httpx.AsyncClient) -> None:
    """Trees as ChatGPT exports them, with something else wherever one looks."""
    deep = f'[{{"role": "user", "content": {DEEP}}}]'
    rows = [
        {"mapping": {"a": {"message": {"content": {"parts": ["Hi"]}, "author": {"role": "tool"}}}}},
        {"mapping": {"a": {"message": "Hi", "parent": {"x": 1}}}},
        {"mapping": {"a": {"message": {"content": "Hi", "author": "x"}, "parent": ["a"]}}},
        {"mapping": deep},
    ]
    answer = await sent(client, json.dumps(rows).encode(), mapping='{"mapping": "messages"}')
    assert answer.status_code == 201, answer.text
    shown = [one["item"].get("payload", {}).get("messages") for one in answer.json()["first"]]
    assert shown == [
        [{"role": "tool", "content": "Hi"}],
        None,
        None,
        deep,
    ]


async def test_items_as_they_were_always_sent_are_read_as_before(client: httpx.AsyncClient) -> None:
    """A column of ours that is misspelt is no column to guess at."""
    answer = await sent(client, b"id,payload.question,surogate\na,Why?,0.5\n", "text/csv")
    assert (answer.status_code, answer.json()["field"]) == (422, "header")
    rows = jsonl([{"id": 7, "surrogate": 0.5, "payload": {"question": "Why?"}}])
    for body in (rows, gzip.compress(rows, mtime=0)):
        told = (await sent(client, body, "application/x-ndjson")).json()
        assert (told["mapping"], told["mapping_source"]) == ({}, "items")
        assert told["first"][0]["item"]["id"] == "7"


async def test_a_whole_number_is_an_id(client: httpx.AsyncClient) -> None:
    form = {"name": "a", "loss": {"kind": "zero_one"}, "items": [{"id": 12}]}
    pool = (await client.post("/v1/pools", json=form)).raise_for_status().json()["id"]
    for media, body in (
        ("application/x-ndjson", b'{"id": 13}\n'),
        ("application/vnd.apache.parquet", parquet([{"id": 14}])),
    ):
        headers = {"Content-Type": media}
        answer = await client.post(f"/v1/pools/{pool}/items", content=body, headers=headers)
        assert answer.status_code == 200, answer.text
    items = (await client.get(f"/v1/pools/{pool}/items")).json()["data"]
    assert [item["id"] for item in items] == ["12", "13", "14"]
    twice = {"name": "a", "loss": {"kind": "zero_one"}, "items": [{"id": 1}, {"id": "1"}]}
    assert (await client.post("/v1/pools", json=twice)).json()["code"] == "bad_rows"


async def test_a_mapping_is_remembered_by_the_project(
    client: httpx.AsyncClient, database: Database, database_url: str
) -> None:
    mapping = {"question": "text", "expected": "answer"}
    dry = await sent(client, QUESTIONS, mapping=json.dumps(mapping), dry_run=True)
    assert dry.status_code == 200
    assert (await sent(client, QUESTIONS, dry_run=True)).json()["mapping_source"] == "guessed"
    await sent(client, QUESTIONS, mapping=json.dumps(mapping))
    rows = [{"expected": "x", "answer": "y", "question": "z"}]
    told = (await sent(client, jsonl(rows), dry_run=True)).json()
    assert told["mapping_source"] == "remembered"
    assert told["first"][0]["item"]["payload"] == {"answer": "x", "text": "z"}
    other = (await sent(client, QUESTIONS + b"", dry_run=True, mapping=json.dumps(ROLES))).json()
    assert other["mapping_source"] == "given"
    client.headers.update(bearer(key_in(database_url, "manage", project="elsewhere")))
    assert (await sent(client, QUESTIONS, dry_run=True)).json()["mapping_source"] == "guessed"
    async with database.transaction() as db:
        assert len((await db.execute(mappings.select())).all()) == 1


@pytest.mark.parametrize(
    ("path", "form", "items", "guess"),
    [
        ("lm-eval/small/samples_toy_gen_2026-11-23T04-57-27.200140.jsonl", "lm-eval", 20, True),
        ("inspect/small.eval", "inspect", 12, True),
        ("inspect/small.json", "inspect", 24, True),
        ("promptfoo/out.json", "promptfoo", 80, True),
        ("deepeval/test_run_20261122_012339.json", "deepeval", 12, True),
    ],
)
async def test_a_log_of_an_evaluation_has_its_outputs_as_items(
    client: httpx.AsyncClient, path: str, form: str, items: int, *, guess: bool
) -> None:
    body = (FIXTURES / path).read_bytes()
    given = {}
    if form == "lm-eval":
        asked = await sent(client, body)
        assert (asked.status_code, asked.json()["code"]) == (422, "needs_answer")
        (question,) = asked.json()["questions"]
        named = [choice["value"] for choice in question["choices"]]
        assert (question["name"], named) == ("filter", ["strict-match", "flexible-extract"])
        given = {"filter": "strict-match"}
    told = (await sent(client, body, **given)).json()
    assert (told["format"], told["items"], told["mapping_source"]) == (form, items, "log")
    assert ("surrogate.0" in told["numeric"]) is guess
    first = told["first"][0]["item"]
    assert {"question", "answer"} <= first["payload"].keys()
    assert 0.0 < first["surrogate"] < 1.0


async def test_answers_of_two_systems_are_compared(client: httpx.AsyncClient) -> None:
    rows = [{"prompt": f"P{at}", "chosen": "So.", "rejected": f"No {at}."} for at in range(3)]
    query = {"kind": "preference", "system_a": "new", "system_b": "old"}
    told = (await sent(client, jsonl(rows), **query)).json()
    assert told["mapping"] == {
        "prompt": "question",
        "chosen": "answer_a",
        "rejected": "answer_b",
    }
    assert told["first"][0]["item"]["b"] == {"answer": "No 0."}
    assert told["pool"]["systems"]["a"] == "new"
