"""A pool is the same whatever its rows are written in: JSON Lines, CSV, nested or flat Parquet."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pairs import A, B

Row = dict[str, Any]
NAMES = ["one", "two", "three.5"]
SEVERAL = [("4 km", "4  KM", "5 km"), ("x", "X", "x "), ("yes", "no", "No"), ("a", "b", "c")]
TWO = [("Canberra.", "Sydney."), ("4  km", "4 km"), ("yes", "no"), ("x", "x")]
GUESSES = [(0.25, 0.75), (0.5, 0.5), (0.125, 0.0), (1.0, 0.5)]


def shown(at: int) -> Row:
    return {"id": f"i{at}", "group": "g", "payload": {"question": f"q{at}"}}


def known(items: int, reasons: dict[str, int], bounded: int = 0) -> Row:
    return {"known": {"items": items, "reasons": reasons, "bounded": bounded, "bounds": {}}}


POOLS: dict[str, tuple[Row, list[Row], Row]] = {
    "probabilities": (
        {"loss": {"kind": "zero_one"}},
        [{"id": "a", "target_probs": [0.5, 0.5]}, {"id": "b", "target_probs": [1, 0]}],
        {"items": 2, "columns": ["dispersion_f", "target_probs"]},
    ),
    "weights": (
        {"loss": {"kind": "zero_one"}},
        [{"id": str(at), "weight": weight} for at, weight in enumerate((1.0, 250.0, 0.5, 3.0))],
        {"columns": ["weight"]},
    ),
    "known losses": (
        {"loss": {"kind": "bounded", "lower": 0.0, "upper": 1.0}},
        [
            {"id": "a", "surrogate": 0.5},
            {"id": "b", "surrogate": 0.5, "known": {"loss": 1.0, "reason": "empty answer"}},
            {"id": "c", "surrogate": 0.5, "loss_lower": 0.25},
            {"id": "d", "surrogate": 0.5, "known": {"loss": 0.5, "reason": "judged before"}},
        ],
        known(2, {"empty answer": 1, "judged before": 1}, bounded=1),
    ),
    "two systems": (
        {
            "systems": {"a": A, "b": B, "normalisation": "whitespace"},
            "loss": {"kind": "preference"},
        },
        [
            shown(at)
            | {
                "a": {"answer": texts[0], "surrogate": guess[0], "payload": {"trace": f"t{at}"}},
                "b": {"answer": texts[1], "surrogate": guess[1]},
            }
            for at, (texts, guess) in enumerate(zip(TWO, GUESSES, strict=True))
        ],
        known(2, {"same answer (whitespace)": 2}),
    ),
    "several systems": (
        {"systems": {"names": NAMES, "normalisation": "casefold"}, "loss": {"kind": "zero_one"}},
        [
            shown(at)
            | {
                "answers": {
                    name: {"answer": text, "surrogate": place / 4}
                    for place, (name, text) in enumerate(zip(NAMES, texts, strict=True))
                }
            }
            for at, texts in enumerate(SEVERAL)
        ],
        known(1, {"same answer (casefold)": 1}),
    ),
}


def cells(row: Row) -> Row:
    """The row as cells of a table."""
    found: Row = {}
    for name, value in row.items():
        if name in {"a", "b"}:
            found |= {f"{part}_{name}": inner for part, inner in value.items() if part != "payload"}
            found |= {f"payload_{name}.{key}": it for key, it in value.get("payload", {}).items()}
        elif name == "known":
            found |= {f"known_{part}": inner for part, inner in value.items()}
        elif name == "answers":
            found |= {
                f"answers.{one}.{part}": it for one in value for part, it in value[one].items()
            }
        elif isinstance(value, dict | list):
            inside = value.items() if isinstance(value, dict) else enumerate(value)
            found |= {f"{name}.{key}": inner for key, inner in inside}
        else:
            found[name] = value
    return found


def whole(rows: list[Row]) -> list[Row]:
    """The rows with the same members, missing ones being null."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def forms(rows: list[Row]) -> Iterator[tuple[str, bytes]]:
    yield "application/x-ndjson", "\n".join(map(json.dumps, rows)).encode()
    table = whole([cells(row) for row in rows])
    text = io.StringIO()
    writer = csv.DictWriter(text, [*table[0]])
    writer.writeheader()
    writer.writerows(table)
    yield "text/csv; charset=utf-8", text.getvalue().encode()
    for written in (whole(rows), table):
        file = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(written), file)
        yield "application/vnd.apache.parquet", file.getvalue()


def query_of(body: Row) -> Row:
    """The members of a pool as parameters of a file."""
    systems = body.get("systems", {})
    named = {f"system_{side}": systems[side] for side in ("a", "b") if side in systems}
    named |= {"system": systems["names"]} if "names" in systems else {}
    named |= {"normalisation": systems["normalisation"]} if systems else {}
    query: Row = body["loss"] | named | {"name": "exam"}
    return query


@pytest.mark.parametrize("kind", POOLS)
async def test_every_format_says_the_same(client: httpx.AsyncClient, kind: str) -> None:
    body, rows, expected = POOLS[kind]
    new = body | {"name": "exam"}
    made = (await client.post("/v1/pools", json=new | {"items": rows, "sealed": True})).json()
    digests = {made["digest"]}
    for media, content in forms(rows):
        headers = {"Content-Type": media}
        path = f"/v1/pools/{(await client.post('/v1/pools', json=new)).json()['id']}"
        answer = await client.post(f"{path}/items", content=content, headers=headers)
        assert (answer.status_code, answer.json().get("added")) == (200, len(rows)), answer.text
        sealed = (await client.post(f"{path}/seal")).json()
        assert {name: sealed[name] for name in expected} == expected, media
        digests.add(sealed["digest"])
        file = await client.post(
            "/v1/pool-files", params=query_of(body), content=content, headers=headers
        )
        assert file.status_code == 201, (media, file.text)
        digests.add(file.json()["pool"]["digest"])
    assert len(digests) == 1
