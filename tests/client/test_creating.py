"""Tables, files and frames become pools; what is none is refused by its row."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from celeus import Client, Problem, Refusal
from celeus.client import calls
from celeus.client.rows import rows_of, upload_of
from celeus.errors import InvalidValue, NeedsAnswer
from tests.client.pools import exam


def lines(items: object) -> list[dict[str, Any]]:
    """What is sent for a table."""
    with upload_of(items) as upload:
        return [json.loads(line) for line in b"".join(upload.parts()).splitlines()]


def test_tables_and_files_make_pools_of_one_digest(client: Client, tmp_path: Path) -> None:
    rows, _ = exam(40)
    table = pa.Table.from_pylist([row | {"payload": "the same"} for row in rows])
    csv.write_csv(table, tmp_path / "pool.csv")
    parquet.write_table(table, tmp_path / "pool.parquet")
    text = "\n".join(json.dumps(row) for row in table.to_pylist())
    (tmp_path / "pool.jsonl").write_text(text)
    given = [table, table.to_pylist(), iter(table.to_pylist())]
    given += [str(path) for path in sorted(tmp_path.iterdir())]
    assert len(given) == 6
    assert len({client.create_pool("one", items).digest for items in given}) == 1


def test_an_open_pool_takes_items_in_pieces(client: Client) -> None:
    rows, _ = exam(30)
    pool = client.create_pool("pieces")
    assert not pool.sealed
    assert [client.add_items(pool, rows[start : start + 10]) for start in (0, 10, 20)] == [
        10,
        10,
        10,
    ]
    sealed = client.seal_pool(pool)
    assert (sealed.sealed, sealed.items) == (True, 30)
    assert sealed.digest == client.create_pool("whole", rows).digest
    assert [item.id for item in client.items(pool)] == [row["id"] for row in rows]


def test_values_of_numpy_are_written_and_none_is_left_out() -> None:
    row = {"id": "a", "surrogate": np.float64(0.5), "target_probs": np.array([0.2, 0.8])}
    row |= {"prediction": np.int64(1), "group": None}
    sent = {"id": "a", "surrogate": 0.5, "target_probs": [0.2, 0.8], "prediction": 1}
    assert lines([row]) == [sent]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_what_json_has_not_is_refused_by_its_row(value: object) -> None:
    with pytest.raises(Refusal, match="row 2, 'b', cannot be written as JSON"):
        lines([{"id": "a", "surrogate": 0.5}, {"id": "b", "surrogate": value}])


@pytest.mark.parametrize(
    ("items", "said"),
    [
        (7, "items must be a frame"),
        ({"id": "a"}, "items must be a frame"),
        (["a"], "row 1 is no mapping"),
        ("missing.csv", "missing.csv cannot be read: No such file"),
    ],
)
def test_what_is_no_table_is_refused(items: object, said: str) -> None:
    with pytest.raises(Refusal, match=said):
        lines(items)


def test_rows_of_any_table_are_mappings() -> None:
    assert list(rows_of(pa.table({"id": ["a", "b"]}))) == [{"id": "a"}, {"id": "b"}]


FRAGEN = "Nr;Frage;Antwort\n7;Wer?;Ada\n8;Wo?;Köln\n".encode("cp1252")
MAPPING = {"Frage": "question", "Nr": "id"}


def shown(client: Client, items: object, **members: Any) -> list[tuple[str, Any]]:  # noqa: ANN401
    pool = client.create_pool("Fragen", items, **members)
    return [(item.id, item.payload) for item in client.items(pool)]


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_of_any_form_is_sent_as_it_lies(
    client: Client, tmp_path: Path, *, packed: bool
) -> None:
    path = tmp_path / ("Fragen.csv.gz" if packed else "Fragen.csv")
    path.write_bytes(gzip.compress(FRAGEN) if packed else FRAGEN)
    mapping = {"Nr": "id", "Antwort": "text"}
    assert shown(client, path, mapping=mapping) == [("7", {"text": "Ada"}), ("8", {"text": "Köln"})]
    path.write_bytes(b"Prompt,Response\nWhy?,So.\n")
    assert shown(client, path) == [("1", {"question": "Why?", "answer": "So."})]


def test_rows_may_have_columns_of_their_own(client: Client) -> None:
    rows = [{"Nr": 7, "Frage": "Wer?"}, {"Nr": 8, "Frage": "Wo?"}]
    found = [("7", {"question": "Wer?"}), ("8", {"question": "Wo?"})]
    assert shown(client, rows, mapping=MAPPING) == found


def test_a_mapping_that_fits_no_column_is_refused_by_name(client: Client) -> None:
    with pytest.raises(Refusal, match="no such column") as caught:
        client.create_pool("Fragen", [{"Frage": "Wer?"}], mapping=MAPPING)
    assert caught.value.field == "mapping.Nr"


STARS = b"id,question,answer,stars,mood\n" + b"".join(
    b"%d,Why?,So.,%d,%d\n" % (number // 2, 1 + number % 5, number % 2) for number in range(10)
)


def test_what_a_file_leaves_open_is_asked_and_answered_by_name(
    client: Client, tmp_path: Path
) -> None:
    path = tmp_path / "stars.csv"
    path.write_bytes(STARS)
    mapping = {"id": "id", "question": "question", "answer": "answer", "stars": "score"}
    with pytest.raises(NeedsAnswer) as caught:
        client.create_pool("stars", path, mapping=mapping)
    assert isinstance(caught.value, Problem)
    assert [question["name"] for question in caught.value.questions] == [
        "better",
        "scale",
        "repeats",
    ]
    for line in ('better="higher": ', 'scale="1 to 5": ', 'repeats="first": '):
        assert line in str(caught.value)
    answers: dict[str, Any] = {"better": "higher", "scale": (1, 5), "repeats": "first"}
    pool = client.create_pool("stars", path, mapping=mapping, missing=-1, **answers)
    assert (pool.items, pool.sealed) == (5, True)
    assert pool.intake is not None
    assert pool.intake["answers"] == {
        "better": ["higher"],
        "scale": ["1 to 5"],
        "missing": ["-1"],
        "repeats": "first",
    }


ITEMS = [{"id": "one", "payload": {"question": "?"}}]


def _query(**members: Any) -> dict[str, Any]:  # noqa: ANN401 -- members of the contract
    """The query of the request that makes the pool."""
    flow = calls.create_filled_pool(calls.pool_form("pool", **members), ITEMS)
    request: Any = next(flow)
    flow.close()
    return dict(request.query)


def test_a_pool_is_described_as_a_run_in_process() -> None:
    """The ends of a loss, and a score's name and direction, as `certify` takes them."""
    query = _query(loss=(1, 5), score=("grade", "higher"))
    assert query == {
        "name": "pool",
        "kind": "bounded",
        "lower": 1,
        "upper": 5,
        "score_name": "grade",
        "score_better": "higher",
    }


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"systems": {"a": "A", "b": "B", "loss": {"kind": "bounded"}}}, "systems.loss"),
        ({"score": {"name": "grade", "higher": True}}, "score.higher"),
        ({"loss": {"kind": "bounded", "least": 1}}, "loss.least"),
    ],
)
def test_members_that_would_not_be_sent_are_refused(members: dict[str, Any], field: str) -> None:
    """A scale that is left out in silence would be another one."""
    with pytest.raises(InvalidValue) as refused:
        _query(**members)
    assert refused.value.field == field
