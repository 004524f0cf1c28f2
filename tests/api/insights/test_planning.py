"""Plans of sessions over the wire: what they tell, what they refuse, how long they take."""

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from httpx import AsyncClient

from celeus.operations.insights import planning
from celeus.operations.runtime.workers import Bounds
from tests.api.pools.test_files import sent
from tests.factories import known_pool, sealed
from tests.keys import bearer, key_in
from tests.nightly import by_day
from tests.pairs import pair
from tests.tabled import sheet

QUICK: dict[str, Any] = {"precision": 0.3, "runs": 1, "policies": ["sharp", "uniform"]}
NOBODY = "0" * 32


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fuse that no machine meets, however busy it is with other tests."""
    bounds = replace(planning.BOUNDS, seconds=3600.0)
    monkeypatch.setattr(planning, "BOUNDS", bounds)


async def planned(client: AsyncClient, pool: str, **body: Any) -> httpx.Response:  # noqa: ANN401 - as the wire takes it
    return await client.post(f"/v1/pools/{pool}/planning", json=QUICK | body)


async def test_a_plan_tells_labels_of_every_policy_and_what_it_assumed(client: AsyncClient) -> None:
    pool = await known_pool(client, 400)
    body = {"precision": 0.3, "runs": 3}
    answer = await client.post(f"/v1/pools/{pool.id}/planning", json=body)
    assert answer.status_code == 200, answer.text
    document = answer.json()
    assert [policy["policy"] for policy in document["policies"]] == [
        *("sharp", "uniform", "celeus")
    ]
    assert document["assumed_risk"] == pytest.approx(0.5, abs=0.1)
    assert (document["items"], document["budget"], document["informed"]) == (400, 400, True)
    for policy in document["policies"]:
        assert policy["refused"] is None
        assert policy["smallest_width"] == {"assumed": 0.0, "middle": 0.0}
        for scenario in ("surrogate_right", "surrogate_useless"):
            found = policy[scenario]
            assert (found["runs"], found["reached"]) == (3, 1.0)
            labels = found["labels"]
            assert 0 < labels["low"] <= labels["median"] <= labels["high"] <= 400
            assert found["width"]["high"] <= 0.3
    uniform = document["policies"][1]
    assert uniform["surrogate_right"] == uniform["surrogate_useless"]


async def test_a_plan_has_remarks_on_policies_guesses_and_a_fixed_sample(
    client: AsyncClient,
) -> None:
    items = [{"id": str(number), "surrogate": float(number % 5 == 0)} for number in range(400)]
    pool = await sealed(client, items)
    document = (await planned(client, pool)).json()
    policies, guesses, fixed = document["notes"]
    for policy in document["policies"]:
        assert f"{round(policy['expected']['labels']['median'])}" in policies
    assert guesses.startswith("All guesses are at an end of the scale, and none is taken as")
    assert f"would take {document['fixed_sample']} labels" in fixed
    asked = {"questions": [{"side": "at_most", "threshold": 0.9}], "precision": None}
    only = (await planned(client, pool, policies=["sharp"], **asked)).json()
    assert only["notes"] == [guesses]
    assert only["fixed_sample"] is None


async def test_the_pace_is_that_of_the_projects_latest_sessions(
    client: AsyncClient, database_url: str
) -> None:
    pool = await known_pool(client, 60)
    opening = {"pool_id": pool.id, "precision": 0.3}
    sessions = [(await client.post("/v1/sessions", json=opening)).json()["id"] for _ in range(7)]
    paces = [99.0, 12.0, 14.0, 15.0, 20.0, 70.0, None]
    with psycopg.connect(database_url.replace("+psycopg", "")) as db:
        for session, pace in zip(sessions, paces, strict=True):
            key = UUID(session.removeprefix("ses_"))
            db.execute(
                "UPDATE sessions SET seconds_per_label = %s WHERE session_id = %s", (pace, key)
            )
    document = (await planned(client, pool.id)).json()
    assert document["pace"] == {"seconds_per_label": 15.0, "sessions": 5}
    client.headers.update(bearer(key_in(database_url, "manage", project="another")))
    other = await known_pool(client, 60)
    assert (await planned(client, other.id)).json()["pace"] is None


async def test_questions_are_planned_for_their_answers(client: AsyncClient) -> None:
    pool = await known_pool(client, 400)
    asked = {"questions": [{"side": "at_most", "threshold": 0.9}], "precision": None}
    sharp = (await planned(client, pool.id, **asked)).json()["policies"][0]
    assert sharp["surrogate_right"]["reached"] == 1.0
    assert sharp["surrogate_right"]["labels"]["high"] < 100


async def test_a_policy_that_cannot_reach_it_is_refused_in_its_row(client: AsyncClient) -> None:
    pool = await known_pool(client, 300)
    body = {"target": "population", "precision": 0.08, "policies": ["celeus", "sharp"], "runs": 1}
    document = (await client.post(f"/v1/pools/{pool.id}/planning", json=body)).json()
    refused, sharp = document["policies"]
    assert refused["refused"]["code"] == "unreachable_precision"
    assert refused["refused"]["smallest_reachable"] > 0.08
    assert (refused["surrogate_right"], refused["smallest_width"]) == (None, None)
    assert sharp["refused"] is None
    assert sharp["smallest_width"]["middle"] > 0.08
    assert "middle of the scale" in sharp["warning"]


@pytest.mark.parametrize(
    ("change", "status_code", "code", "field"),
    [
        ({"precision": 0}, 422, "invalid_value", "precision"),
        ({"precision": 1.5}, 422, "invalid_value", "precision"),
        ({"alpha": 1.0}, 422, "invalid_value", "alpha"),
        ({"alpha": 0.51}, 422, "invalid_value", "alpha"),
        ({"budget": 31}, 422, "invalid_value", "budget"),
        ({"strategy": "A"}, 422, "invalid_value", "strategy"),
        ({"target": "population", "precision": 0.01}, 422, "unreachable_precision", "precision"),
        ({"decide": {"margin": 0.1}}, 422, "invalid_value", "decide"),
        ({"questions": [{"side": "at_most", "threshold": 2.0}]}, 422, "invalid_value", "threshold"),
        ({"risk": 1.0}, 422, "invalid_value", "risk"),
        ({"runs": 0}, 422, "invalid_value", "runs"),
        ({"runs": 201}, 422, "invalid_value", "runs"),
        ({"seed": -1}, 422, "invalid_value", "seed"),
        ({"policies": ["oracle"]}, 422, "invalid_value", "0"),
        ({"policies": []}, 422, "invalid_value", "policies"),
        ({"policy": "sharp"}, 422, "invalid_value", "policy"),
    ],
)
async def test_what_opening_refuses_planning_refuses(
    client: AsyncClient, change: dict[str, Any], status_code: int, code: str, field: str
) -> None:
    pool = await known_pool(client, 30)
    answer = await planned(client, pool.id, **change)
    assert (answer.status_code, answer.json()["code"]) == (status_code, code), answer.text
    assert answer.json()["field"].split(".")[-1] == field


def partly_known(items: int, known: int, loss: float = 0.0) -> list[dict[str, Any]]:
    """Items of which the first ``known`` have a loss that nobody has to judge."""
    known_loss = {"known": {"loss": loss, "reason": "the answer is empty"}}
    return [
        {"id": f"{number}", "surrogate": (number % 10) / 10}
        | (known_loss if number < known else {})
        for number in range(items)
    ]


async def test_where_most_is_known_coarse_widths_take_no_label(client: AsyncClient) -> None:
    """The interval begins at a width of 0.3, below the first ones of the curve."""
    pool = await sealed(client, partly_known(400, 280))
    answer = await planned(client, pool, precision=0.1)
    assert answer.status_code == 200, answer.text
    for policy in answer.json()["policies"]:
        by_width = {point["precision"]: point["labels"]["median"] for point in policy["curve"]}
        assert by_width[0.4] == 0.0
        assert 0.0 < by_width[0.1] == policy["expected"]["labels"]["median"] <= 120


@pytest.mark.parametrize(
    "body",
    [
        {"precision": 0.9, "risk": 1e-300},
        {"precision": 0.5, "alpha": 0.5, "risk": 1 - 1e-16},
        {"precision": 0.2, "questions": [{"side": "at_most", "threshold": 0.999}]},
    ],
    ids=str,
)
async def test_what_needs_next_to_nothing_is_planned(
    client: AsyncClient, body: dict[str, Any]
) -> None:
    pool = await sealed(client, partly_known(50, 10))
    answer = await planned(client, pool, **body, policies=None)
    assert answer.status_code == 200, answer.text


async def test_where_all_is_known_there_is_nothing_to_plan(client: AsyncClient) -> None:
    pool = await sealed(client, partly_known(5, 5))
    opening = await client.post("/v1/sessions", json={"pool_id": pool, "precision": 0.3})
    answer = await planned(client, pool)
    assert (answer.status_code, answer.json()["code"]) == (422, "nothing_to_judge")
    assert opening.json()["code"] == "nothing_to_judge"


async def test_a_verdict_on_two_systems_is_planned(client: AsyncClient) -> None:
    found = await pair(client, "label", 400)
    body = {"decide": {"margin": 0.05}, "precision": None}
    document = (await planned(client, found.id, **body)).json()
    assert document["informed"]
    assert document["assumed_risk"] == pytest.approx(0.0, abs=0.2)
    assert 0 < document["fixed_sample"] <= 400
    drawable = 400 - sum(found.known)
    for policy in document["policies"]:
        assert policy["surrogate_right"]["reached"] == 1.0
        assert policy["surrogate_right"]["labels"]["high"] <= drawable
    clear = (await planned(client, found.id, **body, risk=0.2)).json()
    assert clear["assumed_risk"] == pytest.approx(0.2, abs=0.02)
    either = [
        plan["policies"][0]["surrogate_useless"]["labels"]["median"] for plan in (document, clear)
    ]
    assert either[1] < either[0]


async def test_an_open_pool_and_an_unknown_one_are_refused(client: AsyncClient) -> None:
    body = {"name": "open", "loss": {"kind": "zero_one"}, "items": [{"id": "a"}]}
    pool = (await client.post("/v1/pools", json=body)).json()["id"]
    answer = await planned(client, pool)
    assert (answer.status_code, answer.json()["code"]) == (409, "pool_not_sealed")
    answer = await planned(client, f"pool_{NOBODY}")
    assert (answer.status_code, answer.json()["code"]) == (404, "pool_not_found")


async def test_a_large_pool_is_planned_in_the_rounds_there_are(client: AsyncClient) -> None:
    pool = {"name": "large", "loss": {"kind": "zero_one"}}
    wire = (await client.post("/v1/pools", json=pool)).json()["id"]
    lines = b"".join(b"i%d,0.%02d\n" % (number, number % 50) for number in range(40_000))
    csv = {"Content-Type": "text/csv"}
    content = b"id,surrogate\n" + lines
    sent = await client.post(f"/v1/pools/{wire}/items", content=content, headers=csv, timeout=60)
    assert sent.status_code == 200, sent.text
    assert (await client.post(f"/v1/pools/{wire}/seal")).status_code == 200
    answer = await client.post(f"/v1/pools/{wire}/planning", json={"precision": 0.01, "runs": 200})
    assert answer.status_code == 200, answer.text
    for policy in answer.json()["policies"]:
        found = policy["surrogate_right"]
        assert (found["runs"] > 0) == (found["labels"] is not None)
        assert (found["runs"] == 0) == (found["more_than"] is not None)
        assert found["runs"] < 200
        assert policy["curve"][0]["runs"] > 0
        assert policy["expected"]["extrapolated"]


async def test_a_plan_that_meets_its_fuse_is_refused_and_never_shortened(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = await known_pool(client, 30)
    monkeypatch.setattr(planning, "BOUNDS", Bounds(seconds=0.01, processor_seconds=60.0))
    answer = await planned(client, pool.id)
    assert (answer.status_code, answer.json()["code"]) == (503, "planning_busy")
    assert "Retry-After" in answer.headers


async def test_a_table_of_claims_is_planned_claim_by_claim(client: AsyncClient) -> None:
    pool = await sheet(client, size=240)
    asked = {
        "groups": ["topic"],
        "precision": {"faithful": 0.25, "stars": 1.0},
        "group_precision": {"faithful": 0.5},
    }
    answer = await client.post(f"/v1/pools/{pool.id}/planning", json=asked | {"runs": 3})
    assert answer.status_code == 200, answer.text
    document = answer.json()
    assert (document["assumed_risk"], document["informed"]) == (None, True)
    assert set(document["assumed_risks"]) == {"faithful", "stars"}
    assert document["assumed_risks"]["faithful"] == pytest.approx(0.5, abs=0.1)
    (policy,) = document["policies"]
    opened = await client.post("/v1/sessions", json={"pool_id": pool.id} | asked)
    claims = await client.get(f"/v1/sessions/{opened.json()['id']}/claims")
    names = ("metric", "column", "value", "items", "level", "precision")
    rows = [claim for claim in claims.json()["data"] if claim["precision"] is not None]
    assert [{name: claim[name] for name in names} for claim in document["claims"]] == [
        {name: row[name] for name in names} for row in rows
    ]
    for scenario in ("surrogate_right", "surrogate_useless"):
        whole = policy[scenario]
        assert (whole["runs"], whole["reached"], whole["width"]) == (3, 1.0, None)
        medians = []
        for claim in document["claims"]:
            found = claim[scenario]
            assert (found["runs"], found["reached"], found["width"]) == (3, 1.0, None)
            medians.append(found["labels"]["median"])
        assert max(medians) <= whole["labels"]["high"] <= 240


async def test_a_table_is_planned_for_the_losses_that_are_expected(client: AsyncClient) -> None:
    pool = await sheet(client, size=240)
    asked = {"precision": {"faithful": 0.2}, "runs": 3}
    path = f"/v1/pools/{pool.id}/planning"
    medians = []
    for risk in (None, {"faithful": 0.05}):
        document = (await client.post(path, json=asked | {"risk": risk})).json()
        medians.append(document["policies"][0]["surrogate_useless"]["labels"]["median"])
    assert document["assumed_risks"]["faithful"] == pytest.approx(0.05, abs=1e-6)
    assert medians[1] < medians[0]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"precision": None}, "precision"),
        ({"policies": ["sharp"]}, "policies"),
        ({"groups": ["city"]}, "groups"),
        ({"precision": {"faithful": 3}}, "precision"),
        ({"target": "population"}, "target"),
        ({"account": "closed"}, "questions"),
        ({"reserve": 0.01}, "reserve"),
        ({"risk": {"faithful": 1}}, "risk"),
        ({"risk": {"cost": 0.5}}, "risk"),
        ({"strategy": "A"}, "strategy"),
    ],
)
async def test_what_the_opening_of_a_table_refuses_its_plan_refuses(
    client: AsyncClient, change: dict[str, Any], field: str
) -> None:
    pool = await sheet(client, size=60)
    asked = {"precision": {"faithful": 0.5}, "runs": 1} | change
    answer = await client.post(f"/v1/pools/{pool.id}/planning", json=asked)
    assert answer.status_code == 422, answer.text
    assert answer.json()["field"].split(".")[0] == field


async def test_groups_of_a_pool_of_one_loss_are_planned(client: AsyncClient) -> None:
    items = [
        {"id": str(number), "surrogate": 0.3, "group": "ab"[number % 2]} for number in range(160)
    ]
    pool = await sealed(client, items)
    asked = {"groups": ["group"], "group_precision": 0.4, "account": "together", "runs": 2}
    document = (await client.post(f"/v1/pools/{pool}/planning", json=asked)).json()
    assert [claim["value"] for claim in document["claims"]] == ["a", "b"]
    assert sum(claim["level"] for claim in document["claims"]) == pytest.approx(0.04)
    assert document["policies"][0]["surrogate_right"] is None
    refused = await client.post(
        f"/v1/pools/{pool}/planning", json={"precision": 0.3, "risk": {"error rate": 0.1}}
    )
    assert (refused.status_code, refused.json()["field"]) == (422, "risk")


ONE = "id,surrogate,group\n" + "".join(
    f"{number},{number % 7 / 10},{'ab'[number % 2]}\n" for number in range(120)
)
TWO = "id,answer_a,answer_b\n" + "".join(
    f"{number},yes,{'no' * (number % 3)}\n" for number in range(120)
)


@pytest.mark.parametrize(
    ("body", "pool", "asked"),
    by_day(
        2,
        [
            (ONE, {}, {}),
            (ONE, {}, {"precision": 0.5, "target": "population", "budget": 100}),
            (ONE, {}, {"precision": 0.3, "groups": ["group"], "group_precision": 0.5}),
            (TWO, {"system_a": "old", "system_b": "new"}, {"decide": {"margin": 0.1}}),
        ],
    ),
    ids=["suggested", "asked for", "table", "verdict"],
)
async def test_the_plan_of_a_dry_run_is_that_of_the_pool_to_the_last_digit(
    client: httpx.AsyncClient,
    body: str,
    pool: dict[str, Any],
    asked: dict[str, Any],
) -> None:
    wanted = {"runs": 2} | asked
    policies = {} if "groups" in asked else {"policies": ["sharp", "uniform"]}
    plan = json.dumps(wanted | policies)
    looked = await sent(client, body.encode(), dry_run=True, planning=plan, **pool)
    assert looked.status_code == 200, looked.text
    assert (await client.get("/v1/pools")).json()["data"] == []
    made = (await sent(client, body.encode(), **pool)).json()["pool"]
    answer = await client.post(f"/v1/pools/{made['id']}/planning", json=wanted | policies)
    assert answer.status_code == 200, answer.text
    found = looked.json()
    assert found["plan"] | {"pool_id": made["id"]} == answer.json()
    same = ("columns", "groups", "items", "known", "loss", "score", "systems")
    assert [found["pool"][name] for name in same] == [made[name] for name in same]


@pytest.mark.parametrize(
    ("query", "code", "field"),
    [
        ({"planning": "{}"}, "invalid_value", "planning"),
        ({"planning": '{"runs": 0}', "dry_run": True}, "invalid_value", "planning.runs"),
        ({"planning": '{"precision": 3}', "dry_run": True}, "invalid_value", "precision"),
    ],
    ids=["of a pool that is made", "unreadable", "off the scale"],
)
async def test_a_plan_of_a_file_is_refused_like_that_of_a_pool(
    client: httpx.AsyncClient,
    query: dict[str, Any],
    code: str,
    field: str,
) -> None:
    answer = await sent(client, ONE.encode(), **query)
    assert answer.status_code == 422
    document = answer.json()
    assert (document["code"], document["field"]) == (code, field)
    assert (await client.get("/v1/pools")).json()["data"] == []
