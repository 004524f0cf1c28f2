"""The judgements of a session: pages and filters, files, and what happened in a round."""

import asyncio
import csv
import io
import json
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest
from httpx import AsyncClient

from celeus.api.insights.csv_cells import cell
from tests.factories import KnownPool, drawn, judged, known_pool, opened, sealed

MANY = 8_000
LABELS_BETWEEN = 2_000


async def page(client: AsyncClient, session: str, **query: Any) -> dict[str, Any]:  # noqa: ANN401
    answer = await client.get(f"/v1/sessions/{session}/labels", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def rows(client: AsyncClient, session: str, **query: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """The judgements of all pages."""
    found: list[dict[str, Any]] = []
    after: dict[str, Any] = {}
    while True:
        part = await page(client, session, **query, **after)
        found += part["data"]
        if part["next"] is None:
            return found
        after = {"after": part["next"]}


async def told(client: AsyncClient, session: str) -> dict[int, dict[str, Any]]:
    """Twelve judgements of two workers, one with a comment, one corrected, one unjudgeable."""
    judgements: dict[int, dict[str, Any]] = {}
    for number in range(12):
        worker = "ada" if number % 3 else "bob"
        draw = (await drawn(client, session, worker=worker))["draws"][0]
        form: dict[str, Any] = {"round": draw["round"], "worker": worker}
        if number == 4:
            form |= {"unjudgeable": "cut off"}
        else:
            form |= {"loss": number % 2}
        if number == 7:
            form |= {"comment": "=1+1 is what it says"}
        answer = await client.post(f"/v1/sessions/{session}/observe", json=form)
        assert answer.status_code == 200, answer.text
        judgements[draw["round"]] = form | {"item": draw["item"]}
    correction = {"round": 3, "loss": 1, "author": "cy", "reason": "misread"}
    answer = await client.post(f"/v1/sessions/{session}/amendments", json=correction)
    assert answer.status_code == 200, answer.text
    return judgements


@pytest.fixture
async def session(client: AsyncClient) -> str:
    return await opened(client, await grouped(client))


async def grouped(client: AsyncClient) -> KnownPool:
    items = [
        {
            "id": f"-item-{number}",
            "surrogate": number / 40,
            "group": "easy" if number < 20 else "hard",
            "payload": {"number": number},
        }
        for number in range(40)
    ]
    return KnownPool(await sealed(client, items), [0] * 40)


async def test_every_judgement_is_told_as_it_stands(client: AsyncClient, session: str) -> None:
    judgements = await told(client, session)
    found = await rows(client, session)
    ledger = (await client.get(f"/v1/sessions/{session}/ledger")).json()["data"]
    draws = {entry["round"]: entry for entry in ledger if entry["kind"] == "draw"}
    assert [row["round"] for row in found] == list(range(1, 13))
    for row in found:
        judgement = judgements[row["round"]]
        assert row["loss"] == (1 if row["round"] == 3 else judgement.get("loss"))
        assert row["unjudgeable"] == judgement.get("unjudgeable")
        assert (row["item"], row["index"]) == (judgement["item"]["id"], judgement["item"]["index"])
        assert (row["worker"], row["comment"]) == (judgement["worker"], judgement.get("comment"))
        assert row["probability"] == draws[row["round"]]["q"]
        assert row["drawn_at"] == draws[row["round"]]["at"] <= row["judged_at"]
        assert row["groups"] == {"group": "easy" if row["index"] < 20 else "hard"}
        assert (row["kind"], row["in_interval"]) == ("label", True)
        assert "payload" not in row
    corrected = found[2]
    assert (corrected["corrections"], corrected["corrected_by"]) == (1, "cy")
    assert corrected["correction_reason"] == "misread"


async def test_pages_follow_one_another_in_either_order(client: AsyncClient, session: str) -> None:
    await told(client, session)
    whole = await rows(client, session)
    for limit in (1, 5, 12):
        assert await rows(client, session, limit=limit) == whole
        assert await rows(client, session, limit=limit, order="newest") == whole[::-1]
    with_payloads = await rows(client, session, limit=5, payload=True)
    assert [row.pop("payload") for row in with_payloads] == [
        {"number": row["index"]} for row in whole
    ]
    assert with_payloads == whole


async def test_filters_leave_out_what_does_not_fit(client: AsyncClient, session: str) -> None:
    await told(client, session)
    whole = await rows(client, session)

    async def rounds(**query: object) -> list[int]:
        return [row["round"] for row in await rows(client, session, limit=3, **query)]

    wrong = [row["round"] for row in whole if row["loss"] == 1]
    assert 3 in wrong
    assert await rounds(above=0) == wrong
    assert await rounds(above=1) == []
    assert await rounds(person="bob") == [1, 4, 7, 10]
    assert await rounds(person="bob", above=0, order="newest") == [10, 4]
    assert await rounds(commented=True) == [8]
    assert await rounds(amended=True) == [3]
    assert await rounds(unjudgeable=True) == [5]
    easy = [row["round"] for row in whole if row["index"] < 20]
    assert await rounds(value="easy") == easy
    assert await rounds(column="group", value="hard", above=0) == [
        round_ for round_ in wrong if round_ not in easy
    ]
    for query in ({"value": "odd"}, {"column": "topic", "value": "easy"}, {"column": "group"}):
        answer = await client.get(f"/v1/sessions/{session}/labels", params=query)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_value")


async def test_files_hold_the_same_and_no_formula(client: AsyncClient, session: str) -> None:
    await told(client, session)
    path = f"/v1/sessions/{session}/labels"
    whole = await rows(client, session, payload=True)
    lines = await client.get(path, params={"format": "jsonl", "payload": True})
    assert [json.loads(line) for line in lines.text.splitlines()] == whole
    assert f'"{session}.labels.jsonl"' in lines.headers["content-disposition"]

    sheet = await client.get(path, params={"format": "csv"})
    assert sheet.headers["content-type"] == "text/csv; charset=utf-8"
    cells = list(csv.DictReader(io.StringIO(sheet.text)))
    assert [int(row["round"]) for row in cells] == [row["round"] for row in whole]
    assert cells[0]["item"] == f"'{whole[0]['item']}"
    assert cells[7]["comment"] == "'=1+1 is what it says"
    assert cells[0]["groups.group"] == whole[0]["groups"]["group"]
    assert [row["loss"] for row in cells][2:5] == ["1.0", str(whole[3]["loss"]), ""]

    answer = await client.get(path, params={"format": "parquet", "payload": True})
    table = pq.read_table(io.BytesIO(answer.content))
    assert table.column("item").to_pylist() == [row["item"] for row in whole]
    assert table.column("loss").to_pylist() == [row["loss"] for row in whole]
    assert table.column("probability").to_pylist() == [row["probability"] for row in whole]
    assert (
        table.column("judged_at").to_pylist()[0].isoformat(timespec="microseconds")
        == (whole[0]["judged_at"])
    )
    assert [json.loads(cell_text) for cell_text in table.column("payload").to_pylist()] == [
        row["payload"] for row in whole
    ]
    assert "not the score" in " ".join(table.schema.metadata[b"description"].decode().split())
    refused = await client.get(path, params={"format": "csv", "after": 3})
    assert (refused.status_code, refused.json()["field"]) == (422, "after")


async def test_the_exported_labels_weighted_by_their_draws_give_the_score_back(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client, 60)
    session = await opened(client, pool)
    for _ in range(60):
        answer = await drawn(client, session)
        if not answer["draws"]:
            break
        await judged(client, session, pool, answer["draws"][0])
    found = await rows(client, session)
    before, signals = 0.0, []
    for row in found:
        signals.append((before + row["loss"] / row["probability"]) / 60)
        before += row["loss"]
    assert before == sum(pool.losses)
    # Five standard errors of them
    assert abs(sum(signals) / len(signals) - pool.risk) < 0.3
    assert signals[-1] == pytest.approx(pool.risk)


async def test_raters_of_a_panel_and_what_they_come_to_are_told_apart(client: AsyncClient) -> None:
    pool = await known_pool(client, 20)
    claim: dict[str, Any] = {
        "raters": "assigned",
        "protocol": "two_then_third",
        "panel": ["ada", "bob", "eve"],
    }
    session = await opened(client, pool, **claim)
    spoken = 0
    for name in claim["panel"]:
        for draw in (await drawn(client, session, 3, worker=name))["draws"]:
            judgement = {"round": draw["round"], "loss": 1, "worker": name}
            done = await client.post(f"/v1/sessions/{session}/observe", json=judgement)
            spoken += done.status_code == 200
    found = await rows(client, session)
    ratings = [row for row in found if row["kind"] == "rating"]
    outcomes = [row for row in found if row["kind"] == "outcome"]
    assert len(ratings) == spoken
    assert {rating["rater"] for rating in ratings} <= {*claim["panel"]}
    assert all(outcome["rater"] is None and outcome["loss"] == 1 for outcome in outcomes)
    assert len(outcomes) == (await client.get(f"/v1/sessions/{session}")).json()["rounds"]["judged"]


async def test_what_was_said_of_two_places_is_told_of_the_systems(client: AsyncClient) -> None:
    """The one on the left changes from round to round."""
    item = {"a": {"answer": "yes"}, "b": {"answer": "no"}}
    pools = []
    for loss in ({"kind": "preference", "upper": 2}, {"kind": "zero_one"}):
        body = {"name": "two", "systems": {"a": "new", "b": "old"}, "loss": loss, "sealed": True}
        items = [item | {"id": str(number)} for number in range(30)]
        made = (await client.post("/v1/pools", json=body | {"items": items})).json()
        pools.append(KnownPool(made["id"], []))
    forms: tuple[dict[str, Any], ...] = (
        {"preference": "left", "grade": 2},
        {"losses": {"left": 0, "right": 1}},
    )
    for pool, form in zip(pools, forms, strict=True):
        session = await opened(client, pool)
        stood = set()
        for _ in range(12):
            draw = (await drawn(client, session))["draws"][0]
            left = "a" if draw["left"]["answer"] == "yes" else "b"
            judged = form | {"round": draw["round"], "worker": "ada"}
            path = f"/v1/sessions/{session}"
            assert (await client.post(f"{path}/observe", json=judged)).status_code == 200
            history = (await client.get(f"{path}/rounds/{draw['round']}")).json()
            right = "b" if left == "a" else "a"
            event = history["events"][-1]
            assert history["left"] == left
            if "preference" in form:
                assert (event["preference"], event["grade"]) == (left, 2)
            else:
                assert event["losses"] == {left: 0, right: 1}
            stood.add(left)
        assert stood == {"a", "b"}
        for row in await rows(client, session):
            better = row["preference"] or min(row["losses"], key=row["losses"].get)
            assert better == row["left"]
            # Below 0 the first of the two is the better one
            assert (row["loss"] < 0) == (better == "a")


async def test_a_round_has_its_history(client: AsyncClient, session: str) -> None:
    await told(client, session)
    found = (await client.get(f"/v1/sessions/{session}/rounds/3")).json()
    assert [event["kind"] for event in found["events"]] == ["draw", "observation", "amendment"]
    assert found["events"][2]["reason"] == "misread"
    assert found["events"][2]["loss"] == 1
    assert found["item"]["payload"] == {"number": found["item"]["index"]}
    commented = (await client.get(f"/v1/sessions/{session}/rounds/8")).json()
    assert [comment["comment"] for comment in commented["comments"]] == ["=1+1 is what it says"]
    missing = await client.get(f"/v1/sessions/{session}/rounds/99")
    assert (missing.status_code, missing.json()["code"]) == (404, "round_not_drawn")


def fill(database_url: str, session: str, rounds: int) -> None:
    """A ledger of so many judged rounds, as the service would have written it."""
    with psycopg.connect(database_url) as db:
        params = {"session": session.removeprefix("ses_"), "rounds": rounds}
        db.execute(
            """
            INSERT INTO events (session_id, sequence, kind, round, item, q, seen, loss, detail)
            SELECT %(session)s::uuid, 2 * one - (1 - kind.at), kind.at + 1, one,
                CASE WHEN kind.at = 0 THEN one - 1 END, CASE WHEN kind.at = 0 THEN 0.5 END,
                CASE WHEN kind.at = 0 THEN 0 END,
                CASE WHEN kind.at = 1 THEN (one %% 2) END,
                '{"worker": "ada"}'::jsonb
            FROM generate_series(1, %(rounds)s) AS one, (VALUES (0), (1)) AS kind(at)
            """,
            params,
        )
        db.execute(
            """
            UPDATE sessions SET sequence = 2 * %(rounds)s, drawn = %(rounds)s,
                status = jsonb_set(status, '{round}', to_jsonb(%(rounds)s::int))
            WHERE session_id = %(session)s::uuid
            """,
            params,
        )


async def test_many_labels_are_streamed_and_nobody_waits(
    client: AsyncClient, database_url: str
) -> None:
    pool = await known_pool(client, MANY)
    session = await opened(client, pool)
    fill(database_url, session, MANY)
    answered = 0

    async def asking() -> None:
        nonlocal answered
        while True:
            await client.get("/healthz")
            answered += 1
            await asyncio.sleep(0.002)

    watch = asyncio.create_task(asking())
    for form in ("csv", "jsonl", "parquet"):
        before = answered
        answer = await client.get(f"/v1/sessions/{session}/labels", params={"format": form})
        # However slow the machine: a request that holds the loop for a whole file lets in one
        assert answered - before >= MANY // LABELS_BETWEEN, form
        if form == "parquet":
            assert pq.read_table(io.BytesIO(answer.content)).num_rows == MANY
        else:
            assert answer.text.count("\n") == MANY + (form == "csv")
    watch.cancel()


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n"])
def test_no_spreadsheet_runs_a_text(sign: str) -> None:
    assert cell(f"{sign}1+1") == f"'{sign}1+1"
    assert cell(f"1{sign}1") == f"1{sign}1"


def test_other_values_stay_what_they_are() -> None:
    assert [cell(value) for value in (-1.5, None, True, False, "")] == [-1.5, None, "yes", "no", ""]
