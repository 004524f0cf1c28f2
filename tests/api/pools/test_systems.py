"""Pools of two systems over the wire: every format, what is known, refused and bound."""

import io
import json
from typing import Any

import httpx
import pytest

from celeus.operations.certificates.npz import read_archive
from tests.pairs import A, B, body_of, exchanged

TEXTS = {
    "name": "two models",
    "systems": {"a": A, "b": B, "normalisation": "whitespace"},
    "loss": {"kind": "preference"},
}
ANSWERS = [("Canberra.", "Sydney."), ("4  km", "4 km"), ("yes", "no"), ("x", "x")]
SURROGATES = [(0.25, 0.75), (0.5, 0.5), (0.125, 0.0), (1.0, 0.5)]
KNOWN = {"items": 2, "reasons": {"same answer (whitespace)": 2}, "bounded": 0, "bounds": {}}


def rows() -> list[dict[str, Any]]:
    return [
        {
            "id": f"i{at}",
            "group": "g",
            "payload": {"question": f"q{at}"},
            "a": {"answer": one[0], "surrogate": guess[0], "payload": {"trace": f"t{at}"}},
            "b": {"answer": one[1], "surrogate": guess[1], "payload": None},
        }
        for at, (one, guess) in enumerate(zip(ANSWERS, SURROGATES, strict=True))
    ]


async def created(client: httpx.AsyncClient, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post("/v1/pools", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def test_a_pool_tells_its_systems_and_what_is_known(client: httpx.AsyncClient) -> None:
    pool = await created(client, TEXTS | {"items": rows(), "sealed": True})
    assert pool["loss"] == {"kind": "difference", "lower": -1.0, "upper": 1.0}
    assert pool["systems"] == {
        "a": A,
        "b": B,
        "loss": {"kind": "preference", "lower": 0.0, "upper": 1.0},
        "normalisation": "whitespace",
    }
    assert pool["known"] == KNOWN
    assert (await client.get(f"/v1/pools/{pool['id']}")).json() == pool
    page = (await client.get(f"/v1/pools/{pool['id']}/items")).json()["data"]
    assert page[0] == {
        "index": 0,
        "id": "i0",
        "payload": {"question": "q0"},
        "a": {"answer": "Canberra.", "payload": {"trace": "t0"}},
        "b": {"answer": "Sydney.", "payload": None},
    }
    file = await client.get(f"/v1/pools/{pool['id']}/columns.npz")
    evidence = read_archive(io.BytesIO(file.content))
    assert evidence.systems is not None
    assert evidence.systems.names == {"a": A, "b": B}
    assert evidence.columns["surrogate.0"].tolist() == [-0.5, 0.0, 0.125, 0.5]


async def test_the_digest_binds_names_answers_and_normalisation(client: httpx.AsyncClient) -> None:
    body, _ = body_of("preference", 12)
    other = [dict(row) for row in body["items"]]
    other[3] = other[3] | {"a": other[3]["a"] | {"answer": "something else"}}
    bodies = [
        body,
        body | {"systems": body["systems"] | {"a": "another"}},
        body | {"systems": {"a": B, "b": A}},
        body | {"systems": body["systems"] | {"normalisation": "casefold"}},
        body | {"items": other},
        exchanged(body),
    ]
    digests = [(await created(client, one))["digest"] for one in bodies]
    assert len(set(digests)) == len(bodies)
    assert (await created(client, body))["digest"] == digests[0]


async def test_later_uploads_find_known_items_too(client: httpx.AsyncClient) -> None:
    body, made = body_of("label", 30)
    pool = await created(client, body | {"items": None, "sealed": False})
    for first in range(0, 30, 7):
        part = "\n".join(map(json.dumps, made.items[first : first + 7]))
        media = {"Content-Type": "application/x-ndjson"}
        answer = await client.post(f"/v1/pools/{pool['id']}/items", content=part, headers=media)
        assert answer.status_code == 200, answer.text
    sealed = (await client.post(f"/v1/pools/{pool['id']}/seal")).json()
    assert sealed["known"]["reasons"] == {"same answer": sum(made.known)}
    assert sealed["digest"] == (await created(client, body))["digest"]


async def test_a_pool_of_the_same_answers_is_exact(client: httpx.AsyncClient) -> None:
    same = [{"id": str(at), "a": {"answer": "x"}, "b": {"answer": " x"}} for at in range(5)]
    pool = await created(client, TEXTS | {"items": same, "sealed": True})
    refused = await client.post("/v1/sessions", json={"pool_id": pool["id"]})
    assert refused.status_code == 422
    assert refused.json()["code"] == "nothing_to_judge"
    assert refused.json()["value"] == 0.0
    assert "exact" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("item", "fields"),
    [
        ({"a": {"answer": "x"}}, {"b"}),
        ({"a": {"answer": "x"}, "b": {}}, {"b.answer"}),
        ({"a": {"prediction": 1}, "b": {"answer": "x"}}, {"a.prediction", "a.answer"}),
        ({"a": {"answer": "x"}, "b": {"answer": "y"}, "loss_upper": 0.5}, {"loss_upper"}),
    ],
)
async def test_bad_rows_are_refused_by_line_and_name(
    client: httpx.AsyncClient, item: dict[str, Any], fields: set[str]
) -> None:
    pool = await created(client, TEXTS)
    lines = "\n".join(json.dumps(one) for one in (rows()[0], {"id": "bad"} | item))
    media = {"Content-Type": "application/x-ndjson"}
    path = f"/v1/pools/{pool['id']}/items"
    answer = await client.post(path, content=lines, headers=media)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_rows")
    assert {one["line"] for one in answer.json()["errors"]} == {2}
    assert fields <= {one["field"] for one in answer.json()["errors"]}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"systems": {"a": A, "b": A}}, "systems.b"),
        ({"systems": {"a": A}}, "systems.b"),
        ({"systems": {"a": A, "b": B, "normalisation": "stem"}}, "systems.normalisation"),
        ({"systems": None}, "systems"),
        ({"loss": {"kind": "cross_entropy", "upper": 3}}, "loss.kind"),
        ({"loss": {"kind": "preference", "upper": 0.5}}, "loss.upper"),
    ],
)
async def test_pools_that_compare_nothing_are_refused(
    client: httpx.AsyncClient, change: dict[str, Any], field: str
) -> None:
    answer = await client.post("/v1/pools", json=TEXTS | change)
    assert answer.status_code == 422
    problem = answer.json()
    assert field in {problem.get("field"), *(one["field"] for one in problem.get("errors", []))}


async def test_a_file_names_both_systems_or_none(client: httpx.AsyncClient) -> None:
    media, rows = {"Content-Type": "text/csv"}, "id,answer_a,answer_b\n1,yes,no\n"
    for query, field in (
        ({"kind": "preference", "system_a": A}, "system_b"),
        ({"kind": "zero_one", "normalisation": "casefold"}, "system_a"),
    ):
        params = {"name": "two", **query}
        answer = await client.post("/v1/pool-files", params=params, content=rows, headers=media)
        assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_rows_of_two_systems_are_no_items_of_one(client: httpx.AsyncClient) -> None:
    body = {"name": "one", "loss": {"kind": "difference"}, "items": rows()[:1]}
    answer = await client.post("/v1/pools", json=body)
    assert answer.status_code == 422
    assert {one["field"] for one in answer.json()["errors"]} == {"a", "b"}


async def test_an_empty_cell_is_an_empty_answer_in_csv(client: httpx.AsyncClient) -> None:
    systems = {"a": "x", "b": "y", "normalisation": "exact"}
    body = {"name": "pair", "loss": {"kind": "zero_one"}, "systems": systems}
    pool = (await client.post("/v1/pools", json=body)).json()["id"]
    rows = b"id,answer_a,answer_b\n1,yes,\n2,,\n3,no,no\n"
    media = {"Content-Type": "text/csv"}
    sent = await client.post(f"/v1/pools/{pool}/items", content=rows, headers=media)
    assert sent.status_code == 200, sent.text
    assert (await client.get(f"/v1/pools/{pool}")).json()["known"]["items"] == 1, (
        "two empty answers are not the same one"
    )


async def test_equal_texts_are_judged_unless_it_is_said_that_texts_decide(
    client: httpx.AsyncClient,
) -> None:
    """Two agents that both say "Done." may have left things in other states."""
    rows = [{"id": "1", "a": {"answer": "Done."}, "b": {"answer": "Done."}}]
    for normalisation, known in ((None, 0), ("exact", 1)):
        systems = {"a": "x", "b": "y", "normalisation": normalisation}
        body = {"name": "pair", "loss": {"kind": "preference"}, "systems": systems, "items": rows}
        made = (await client.post("/v1/pools", json=body)).json()
        assert made["systems"]["normalisation"] == normalisation
        assert (made["known"] or {"items": 0})["items"] == known


NAMES = ["one", "two", "three.5"]
FIELD: dict[str, Any] = {
    "name": "three models",
    "systems": {"names": NAMES, "normalisation": "casefold"},
    "loss": {"kind": "zero_one"},
}
LINEUP_TEXTS = [("4 km", "4  KM", "5 km"), ("x", "X", "x "), ("yes", "no", "No"), ("a", "b", "c")]
CODES = [[0, 0, 2], [0, 0, 0], [0, 1, 1], [0, 1, 2]]


def lineup_rows() -> list[dict[str, Any]]:
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
        for at, texts in enumerate(LINEUP_TEXTS)
    ]


async def test_a_pool_tells_its_systems_answers_and_columns(client: httpx.AsyncClient) -> None:
    pool = await created(client, FIELD | {"items": lineup_rows(), "sealed": True})
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
    whole = await created(client, FIELD | {"items": lineup_rows(), "sealed": True})
    pool = await created(client, FIELD | {"items": lineup_rows()[:1]})
    path, headers = f"/v1/pools/{pool['id']}", {"Content-Type": "application/x-ndjson"}
    for row in lineup_rows()[1:]:
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
    pool = await created(client, FIELD | {"items": lineup_rows()[:1]})
    row = lineup_rows()[1] | change
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
    pool = await created(client, FIELD | {"items": lineup_rows()[:1]})
    row = lineup_rows()[1]
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
