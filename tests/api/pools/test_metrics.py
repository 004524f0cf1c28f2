"""Pools of metrics and group columns: on the wire, in files, and where they are refused."""

import csv
import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from httpx import AsyncClient, Response

from celeus.core.pools.table_pool import MOST_VALUES
from tests.tabled import METRICS, TOPICS, sheet_body


def flat(item: dict[str, Any]) -> dict[str, Any]:
    """The item as a row of a table."""
    row: dict[str, Any] = {"id": item["id"], "payload.text": item["payload"]["text"]}
    row |= {f"surrogate_{name}": value for name, value in item["surrogates"].items()}
    row["known_stars"] = item.get("known", {}).get("stars")
    return row | {f"group_{name}": value for name, value in item["groups"].items()}


def file_of(form: str, items: list[dict[str, Any]]) -> tuple[bytes, str]:
    if form == "jsonl":
        return b"\n".join(json.dumps(one).encode() for one in items), "application/x-ndjson"
    rows = [flat(one) for one in items]
    if form == "parquet":
        file = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), file)
        return file.getvalue(), "application/vnd.apache.parquet"
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode(), "text/csv"


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
async def test_a_pool_has_the_same_digest_whatever_it_came_from(
    client: AsyncClient, form: str
) -> None:
    body, losses = sheet_body()
    direct = (await client.post("/v1/pools", json=body)).json()
    assert direct["loss"] is None
    assert direct["metrics"]["faithful"]["score"] == {
        "name": "faithfulness",
        "better": "higher",
        "unit": "share",
    }
    assert direct["group_columns"] == {"topic": list(TOPICS), "year": ["2020", "2021"]}
    content, kind = file_of(form, body["items"])
    params = {"name": "of a file", "metrics": json.dumps(METRICS)}
    answer = await client.post(
        "/v1/pool-files", params=params, content=content, headers={"Content-Type": kind}
    )
    assert answer.status_code == 201, answer.text
    made = answer.json()["pool"]
    assert made["digest"] == direct["digest"]
    archive = await client.get(f"/v1/pools/{made['id']}/columns.npz")
    columns = np.load(io.BytesIO(archive.content))
    known = columns["known_stars"]
    assert known[:20].tolist()[0] == losses[0]["stars"]
    assert np.isnan(known[1:10]).all()
    assert columns["group_topic"].tolist()[:4] == [0, 1, 2, 0]


async def test_items_may_come_in_parts(client: AsyncClient) -> None:
    body, _ = sheet_body()
    whole = (await client.post("/v1/pools", json=body)).json()
    empty = {"name": "in parts", "metrics": METRICS}
    pool = (await client.post("/v1/pools", json=empty)).json()["id"]
    for at in range(0, 120, 50):
        content, kind = file_of("jsonl", body["items"][at : at + 50])
        answer = await client.post(
            f"/v1/pools/{pool}/items", content=content, headers={"Content-Type": kind}
        )
        assert answer.status_code == 200, answer.text
    sealed = (await client.post(f"/v1/pools/{pool}/seal")).json()
    assert sealed["digest"] == whole["digest"]


BAD_ROWS: dict[str, dict[str, Any]] = {
    "surrogates.length": {"surrogates": {"length": 1, "faithful": 0.5, "stars": 1}},
    "surrogates.stars": {"surrogates": {"faithful": 0.5, "stars": 5}},
    "surrogates": {"surrogates": [0.5, 1]},
    "known.faithful": {"known": {"faithful": 0.5}},
    "known": {"known": 1},
    "groups.topic": {"groups": {"topic": True, "year": 1}},
    "groups": {"groups": ["law"]},
    "groups.year": {"groups": {"topic": "law"}},
    "weight": {"weight": 2},
}


@pytest.mark.parametrize("field", BAD_ROWS)
async def test_a_bad_row_is_told_by_field(client: AsyncClient, field: str) -> None:
    body, _ = sheet_body()
    body["items"][1] |= BAD_ROWS[field]
    answer = await client.post("/v1/pools", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_rows")
    first = answer.json()["errors"][0]
    assert (first["line"], first["field"]) == (2, field)


@pytest.mark.parametrize(
    ("field", "asked"),
    [
        ("loss", {"metrics": None}),
        ("loss", {"loss": {"kind": "zero_one"}}),
        ("score", {"score": {"name": "accuracy", "better": "higher"}}),
        ("metrics.loss", {"metrics": {"loss": {"kind": "zero_one"}}}),
        ("loss.upper", {"metrics": {"stars": {"kind": "bounded"}}}),
    ],
)
async def test_what_a_pool_states_beside_metrics_is_refused(
    client: AsyncClient, field: str, asked: dict[str, Any]
) -> None:
    answer = await client.post("/v1/pools", json=sheet_body()[0] | asked)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text


async def test_a_column_that_tells_items_apart_is_no_group_column(client: AsyncClient) -> None:
    items = [{"id": str(at), "groups": {"number": at}} for at in range(10_000)]
    body = {"name": "p", "loss": {"kind": "zero_one"}, "items": items}
    answer = await client.post("/v1/pools", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, "groups.number")
    assert str(MOST_VALUES) in answer.json()["rule"]
    body = {"name": "p", "metrics": {"x" * 61: {"kind": "zero_one"}}}
    assert (await client.post("/v1/pools", json=body)).status_code == 422


async def test_metrics_of_a_file_that_are_no_json_are_refused(client: AsyncClient) -> None:
    for metrics in ("{", "[]", '{"stars": {"kind": "difference"}}'):
        answer = await client.post(
            "/v1/pool-files",
            params={"name": "p", "metrics": metrics},
            content=b'{"id": "1"}',
            headers={"Content-Type": "application/x-ndjson"},
        )
        assert answer.status_code == 422
        assert answer.json()["field"].startswith("metrics")


async def test_a_pool_of_one_loss_may_have_group_columns(client: AsyncClient) -> None:
    items = [
        {
            "id": str(at),
            "surrogate": at / 80,
            "prediction": at % 2,
            "group": "uv"[at % 2],
            "groups": {"part": "xy"[at // 40]},
        }
        for at in range(80)
    ]
    body = {"name": "p", "loss": {"kind": "zero_one"}, "items": items, "sealed": True}
    pool = (await client.post("/v1/pools", json=body)).json()
    assert pool["group_columns"] == {"part": ["x", "y"]}
    asked = {"pool_id": pool["id"], "groups": ["part", "group"], "precision": 0.3}
    session = (await client.post("/v1/sessions", json=asked)).json()
    assert session["table"]["groups"] == ["part", "group"]
    assert session["table"]["metrics"][0]["metric"] == "loss"
    where = f"/v1/sessions/{session['id']}"
    draws = (await client.post(f"{where}/next", json={"worker": "ada", "count": 3})).json()["draws"]
    said: list[dict[str, Any]] = [{"loss": 1}, {"label": 0}, {"losses": {"loss": None}}]
    for draw, one in zip(draws, said, strict=True):
        judgement = {"round": draw["round"], "worker": "ada"} | one
        answer = await client.post(f"{where}/observe", json=judgement)
        assert answer.status_code == 200, answer.text
    ledger = (await client.get(f"{where}/ledger")).json()["data"]
    given = [one["losses"] for one in ledger if one["kind"] == "observation"]
    label = float(draws[1]["item"]["index"] % 2 != 0)
    assert given == [[1.0], [label], [None]]
    plain = await client.post("/v1/sessions", json={"pool_id": pool["id"], "precision": 0.3})
    assert plain.json()["table"] is None


MOST = 256 << 10
"""Bytes of an answer about pools whose groups have as many and as long names as may be."""


async def imported(client: AsyncClient, names: list[str], **more: Any) -> Response:  # noqa: ANN401 - whatever the wire takes
    items = [{"id": f"i{at}", "group": name} for at, name in enumerate(names)]
    body = {"name": "p", "loss": {"kind": "zero_one"}, "items": items} | more
    return await client.post("/v1/pools", json=body, headers={"Idempotency-Key": names[-1][:4]})


@pytest.mark.parametrize(
    "names",
    [
        [f"{at:05}".ljust(256, "x") for at in range(10_000)],
        [f"{at:04}" for at in range(1_001)],
        [f"{at:04}".ljust(256, "\x01") for at in range(100)],
    ],
    ids=["many and long", "many", "control characters"],
)
async def test_names_of_groups_beyond_their_bound_are_refused(
    client: AsyncClient, names: list[str]
) -> None:
    refused = await imported(client, names)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_value")
    assert refused.json()["field"] == "group"
    assert len(refused.content) < 2_000


async def test_no_answer_is_large_for_the_names_of_groups(client: AsyncClient) -> None:
    names = [f"{number:04}".ljust(250, "é") for number in range(190)]
    first = await imported(client, names)
    assert first.status_code == 201, first.text
    pool = first.json()["id"]
    again = await imported(client, names)
    assert again.content == first.content
    row = {"Content-Type": "application/x-ndjson"}
    line = json.dumps({"id": "more", "group": names[0]})
    path = f"/v1/pools/{pool}"
    dry = await client.post(f"{path}/items?dry_run=1", content=line, headers=row)
    assert dry.status_code == 200, dry.text
    sealed = await client.post(f"{path}/seal")
    assert len(sealed.json()["groups"]) == 190
    answers = {"made": first, "dry run": dry, "sealed": sealed}
    sizes = {name: len(answer.content) for name, answer in answers.items()}
    opened = await client.post("/v1/sessions", json={"pool_id": pool})
    session = f"/v1/sessions/{opened.json()['id']}"
    closed = await client.patch(session, json={"state": "closed"})
    assert closed.status_code == 200
    for name, path in {
        "pool": f"/v1/pools/{pool}",
        "session": session,
        "certificate": f"{session}/certificate",
        "report": f"{session}/report",
    }.items():
        answer = await client.get(path)
        assert answer.status_code == 200, answer.text
        sizes[name] = len(answer.content)
    assert max(sizes.values()) < MOST, sizes


async def test_a_page_of_pools_ends_when_the_names_of_their_groups_fill_it(
    client: AsyncClient,
) -> None:
    made = []
    for at, groups in enumerate((190, 2, 190, 190, 1)):
        names = [f"{at}{number:03}".ljust(250, "é") for number in range(groups)]
        made.append((await imported(client, names)).json()["id"])
    seen: list[list[str]] = []
    after: str | None = ""
    while after is not None:
        page = await client.get("/v1/pools?limit=1000" + after)
        assert len(page.content) < MOST
        seen.append([one["id"] for one in page.json()["data"]])
        last = page.json()["next"]
        after = None if last is None else f"&after={last}"
    assert [one for ids in seen for one in ids] == made[::-1]
    assert [len(ids) for ids in seen] == [2, 2, 1]
