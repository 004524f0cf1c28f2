"""Any table becomes the same pool, and what JSON has not is refused by its row."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from celeus import Client, Refusal
from celeus.client.rows import rows_of, upload_of
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
    assert [client.add_items(pool, rows[at : at + 10]) for at in (0, 10, 20)] == [10, 10, 10]
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
