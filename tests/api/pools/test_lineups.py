"""Pools of several systems over the wire: every format, what is known, refused and bound."""

import io
import json
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from celeus.operations.certificates.npz import read_archive

NAMES = ["one", "two", "three.5"]
FIELD: dict[str, Any] = {
    "name": "three models",
    "systems": {"names": NAMES, "normalisation": "casefold"},
    "loss": {"kind": "zero_one"},
}
TEXTS = [("4 km", "4  KM", "5 km"), ("x", "X", "x "), ("yes", "no", "No"), ("a", "b", "c")]
CODES = [[0, 0, 2], [0, 0, 0], [0, 1, 1], [0, 1, 2]]
CSV = "id,group,payload.question," + ",".join(
    f"answers.{name}.{member}" for name in NAMES for member in ("answer", "surrogate")
)


def rows() -> list[dict[str, Any]]:
    return [
        {
            "id": f"i{at}",
            "group": "g",
            "payload": {"question": f"q{at}"},
            "answers": {
                name: {"answer": text, "surrogate": place / 4, "payload": None}
                for place, (name, text) in enumerate(zip(NAMES, texts, strict=True))
            },
        }
        for at, texts in enumerate(TEXTS)
    ]


def csv() -> bytes:
    lines = [
        ",".join(
            [f"i{at}", "g", f"q{at}", *(f"{text},{at_ / 4}" for at_, text in enumerate(texts))]
        )
        for at, texts in enumerate(TEXTS)
    ]
    return "\n".join([CSV, *lines]).encode()


def parquet() -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows()), file)
    return file.getvalue()


async def created(client: httpx.AsyncClient, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post("/v1/pools", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def test_every_format_says_the_same(client: httpx.AsyncClient) -> None:
    digests = set()
    for body, media in (
        ("\n".join(map(json.dumps, rows())).encode(), "application/x-ndjson"),
        (csv(), "text/csv"),
        (parquet(), "application/vnd.apache.parquet"),
    ):
        pool = await created(client, FIELD)
        path, headers = f"/v1/pools/{pool['id']}", {"Content-Type": media}
        answer = await client.post(f"{path}/items", content=body, headers=headers)
        assert answer.status_code == 200, answer.text
        sealed = (await client.post(f"{path}/seal")).json()
        assert sealed["known"] == {
            "items": 1,
            "reasons": {"same answer (casefold)": 1},
            "bounded": 0,
            "bounds": {},
        }
        digests.add(sealed["digest"])
        query = {"name": "three", "kind": "zero_one", "system": NAMES, "normalisation": "casefold"}
        file = await client.post("/v1/pool-files", params=query, content=body, headers=headers)
        assert file.status_code == 201, file.text
        digests.add(file.json()["pool"]["digest"])
    assert len(digests) == 1


async def test_a_pool_tells_its_systems_answers_and_columns(client: httpx.AsyncClient) -> None:
    pool = await created(client, FIELD | {"items": rows(), "sealed": True})
    assert pool["systems"] == {
        "names": NAMES,
        "loss": {"kind": "zero_one", "lower": 0.0, "upper": 1.0},
        "normalisation": "casefold",
    }
    assert pool["columns"] == ["answers", "group", "known", "surrogates"]
    items = (await client.get(f"/v1/pools/{pool['id']}/items")).json()["data"]
    assert items[0]["payload"] == {"question": "q0"}
    assert items[0]["answers"]["two"] == {"answer": "4  KM", "payload": None}
    columns = await client.get(f"/v1/pools/{pool['id']}/columns.npz")
    evidence = read_archive(io.BytesIO(columns.content))
    assert evidence.columns["answers"].tolist() == CODES
    assert evidence.columns["surrogates"].tolist() == [[0.0, 0.25, 0.5]] * 4
    assert evidence.columns["known"].tolist() == [0, 1, 0, 0]


async def test_uploads_one_after_the_other_are_one_pool(client: httpx.AsyncClient) -> None:
    whole = await created(client, FIELD | {"items": rows(), "sealed": True})
    pool = await created(client, FIELD | {"items": rows()[:1]})
    path, headers = f"/v1/pools/{pool['id']}", {"Content-Type": "application/x-ndjson"}
    for row in rows()[1:]:
        answer = await client.post(f"{path}/items", content=json.dumps(row), headers=headers)
        assert answer.status_code == 200, answer.text
    assert (await client.post(f"{path}/seal")).json()["digest"] == whole["digest"]


@pytest.mark.parametrize(
    ("change", "field", "rule"),
    [
        ({"answers": None}, "answers.one", "an object"),
        ({"answers": {}}, "answers.one", "an object"),
        ({"answers": ["x"]}, "answers", "by its name"),
        ({"answers": {"one": {"answer": "x"}}}, "answers.two", "an object"),
        ({"known": {"loss": 0, "reason": "seen"}}, "known", "one of answers, group, id, payload"),
        ({"surrogate": 0.5}, "surrogate", "one of answers"),
    ],
)
async def test_rows_that_are_not_like_the_others_are_refused(
    client: httpx.AsyncClient, change: dict[str, Any], field: str, rule: str
) -> None:
    pool = await created(client, FIELD | {"items": rows()[:1]})
    row = rows()[1] | change
    answer = await client.post(
        f"/v1/pools/{pool['id']}/items",
        content=json.dumps(row),
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert answer.status_code == 422
    faults = answer.json()["errors"]
    assert rule in {fault["field"]: fault["rule"] for fault in faults}[field]


@pytest.mark.parametrize(
    ("one", "field"),
    [
        ({"answer": "x"}, "answers.one.surrogate"),
        ({"answer": "x", "surrogate": 2}, "answers.one.surrogate"),
        ({"prediction": 1, "surrogate": 0}, "answers.one.answer"),
        ({"answer": "x", "surrogate": 0, "loss": 1}, "answers.one.loss"),
    ],
)
async def test_what_a_system_carries_is_checked(
    client: httpx.AsyncClient, one: dict[str, Any], field: str
) -> None:
    pool = await created(client, FIELD | {"items": rows()[:1]})
    row = rows()[1]
    row["answers"]["one"] = one
    answer = await client.post(
        f"/v1/pools/{pool['id']}/items",
        content=json.dumps(row),
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert answer.status_code == 422
    assert field in {fault["field"] for fault in answer.json()["errors"]}


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"systems": {"names": ["one"]}}, "systems", "of one, measure the risk"),
        ({"systems": {"names": []}}, "systems", "measure the risk"),
        ({"systems": {"names": [str(at) for at in range(51)]}}, "systems", "too many systems"),
        ({"systems": {"names": ["x", "y", "x"]}}, "systems.names", "a name of its own"),
        ({"systems": {"names": ["x", "left"]}}, "systems.names", "a name of its own"),
        ({"loss": {"kind": "preference"}}, "loss.kind", "the losses of all"),
        ({"loss": {"kind": "difference"}}, "loss.kind", "the losses of all"),
        ({"loss": {"kind": "bounded"}}, "loss.upper", "upper limit"),
    ],
)
async def test_lineups_that_cannot_be_are_refused_by_name(
    client: httpx.AsyncClient, change: dict[str, Any], field: str, words: str
) -> None:
    answer = await client.post("/v1/pools", json=FIELD | change)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert words in answer.json()["detail"]
