"""What a file leaves open is asked over the wire, and what was decided stands in its pool."""

import json
from typing import Any

import httpx
import pytest

from tests.api.pools.test_sheets import jsonl, parquet, sent

SCORED = [
    {"id": f"i{at // 2}", "rater": at % 2, "question": f"Why {at}?", "answer": "So.", "score": at}
    for at in range(1, 7)
] + [{"id": "i9", "rater": 0, "question": "Why?", "answer": "So.", "score": -1}]
ANSWERS: dict[str, Any] = {
    "better": "higher",
    "scale": "0 to 10",
    "missing": "-1",
    "repeats": "first",
}
MAPPING = json.dumps({"id": "id", "question": "question", "answer": "answer", "score": "score"})


@pytest.mark.parametrize("dry_run", [True, False])
async def test_all_questions_come_at_once(client: httpx.AsyncClient, *, dry_run: bool) -> None:
    answer = await sent(client, jsonl(SCORED), dry_run=dry_run, mapping=MAPPING)
    assert (answer.status_code, answer.json()["code"]) == (422, "needs_answer"), answer.text
    told = answer.json()
    asked = {one["name"]: one for one in told["questions"]}
    assert asked.keys() == {"better", "scale", "missing", "repeats"}
    assert told["field"] == "better"
    assert asked["better"]["column"] == "score"
    assert [one["value"] for one in asked["better"]["choices"]] == ["higher", "lower"]
    assert asked["repeats"]["example"]["id"] == "i1"
    assert "better=higher: " in told["detail"]
    assert "--" not in told["detail"]
    assert {one["name"]: one["role"] for one in told["columns"]}["rater"] == "hidden"
    assert (await client.get("/v1/pools")).json()["data"] == []


async def test_a_direction_of_the_score_is_asked_again_of_verdicts_beside_it(
    client: httpx.AsyncClient,
) -> None:
    rows = [
        {"question": f"Why {at}?", "answer": "So.", "faithfulness": 0.9, "hallucinated": verdict}
        for at, verdict in enumerate(["yes", "no", None])
    ]
    roles = {"question": "question", "answer": "answer"}
    mapping = json.dumps(roles | {"faithfulness": "score", "hallucinated": "known"})
    asked = (await sent(client, jsonl(rows), mapping=mapping, better="higher")).json()
    choices = [choice["value"] for one in asked["questions"] for choice in one["choices"]]
    assert choices == ["hallucinated=higher", "hallucinated=lower"]
    better = ["higher", "hallucinated=lower"]
    told = (await sent(client, jsonl(rows), mapping=mapping, better=better)).json()
    assert [one["item"].get("known", {}).get("loss") for one in told["first"]] == [1, 0, None]


async def test_answers_are_members_of_the_query_and_of_a_form(client: httpx.AsyncClient) -> None:
    by_query = await sent(client, jsonl(SCORED), mapping=MAPPING, **ANSWERS)
    assert by_query.status_code == 201, by_query.text
    form = {"kind": "zero_one", "preview": "50", "mapping": MAPPING, **ANSWERS}
    form |= {"missing": ["-1", "none"]}
    files = {"file": ("scored.jsonl", jsonl(SCORED))}
    by_form = await client.post("/v1/pool-files", data=form, files=files)
    assert by_form.status_code == 201, by_form.text
    assert by_form.json()["answers"]["missing"] == ["-1", "none"]
    told = by_query.json()
    assert told["first"] == by_form.json()["first"]
    assert [one["item"]["id"] for one in told["first"]] == ["i0", "i1", "i2", "i3", "i9"]
    assert [one["item"]["surrogate"] for one in told["first"]][:2] == pytest.approx([0.9, 0.8])
    assert (told["rows"], told["items"], told["numeric"]) == (7, 5, ["surrogate.0"])


async def test_every_column_is_told_and_the_pool_keeps_how_it_was_read(
    client: httpx.AsyncClient,
) -> None:
    told = (await sent(client, jsonl(SCORED), mapping=MAPPING, **ANSWERS)).json()
    columns = {one["name"]: (one["role"], one["source"]) for one in told["columns"]}
    assert columns == {
        "id": ("id", "given"),
        "rater": ("hidden", "given"),
        "question": ("question", "given"),
        "answer": ("answer", "given"),
        "score": ("score", "given"),
    }
    assert all(one["why"] for one in told["columns"])
    assert "rater" not in json.dumps(told["first"])
    pool = (await client.get(f"/v1/pools/{told['pool']['id']}")).json()
    assert pool["intake"] == {
        "format": "jsonl",
        "read_as": told["read_as"],
        "columns": told["columns"],
        "answers": {
            "better": ["higher"],
            "scale": ["0 to 10"],
            "missing": ["-1"],
            "repeats": "first",
        },
        "rows": 7,
        "items": 5,
        "skipped": 0,
    }
    form = {"name": "a", "loss": {"kind": "zero_one"}}
    assert (await client.post("/v1/pools", json=form)).json()["intake"] is None


async def test_what_decides_a_number_is_asked_of_every_file(client: httpx.AsyncClient) -> None:
    answer_of = {f"I{at}": f"So {at}, then." for at in range(1, 7)}
    rows = [row | {"answer": answer_of.get(f"I{row['score']}", "No.")} for row in SCORED]
    await sent(client, jsonl(rows), mapping=MAPPING, **ANSWERS)
    asked = (await sent(client, jsonl(rows), dry_run=True)).json()["questions"]
    assert {one["name"] for one in asked} == ANSWERS.keys()
    told = (await sent(client, jsonl(rows), dry_run=True, **ANSWERS)).json()
    assert (told["mapping_source"], told["items"]) == ("remembered", 5)


async def test_labels_that_exist_are_known_and_never_drawn(client: httpx.AsyncClient) -> None:
    body = "q,judge,human\n" + "".join(
        f"Why {at}?,0.{at},{'wrong' if at == 1 else 'correct' if at < 4 else ''}\n"
        for at in range(1, 10)
    )
    mapping = json.dumps({"q": "question", "judge": "surrogate", "human": "known"})
    answer = await sent(client, body.encode(), "text/csv", mapping=mapping)
    assert answer.status_code == 201, answer.text
    assert answer.json()["pool"]["known"]["reasons"] == {"labelled before": 3}
    first = answer.json()["first"]
    assert first[0]["item"]["known"] == {"loss": 1.0, "reason": "labelled before"}
    assert "known" not in first[3]["item"]


@pytest.mark.parametrize(
    ("name", "value"), [("better", "up"), ("scale", "5"), ("repeats", "twice"), ("answer", "x")]
)
async def test_what_is_no_answer_is_refused_by_its_name(
    client: httpx.AsyncClient, name: str, value: str
) -> None:
    answer = await sent(client, jsonl(SCORED), **{name: value})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_value"), answer.text
    assert (answer.json()["field"], answer.json()["value"]) == (name, value)


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"kind": "preference"}, 201),
        ({"kind": "zero_one"}, 422),
        ({"kind": "preference", "upper": 3}, 422),
    ],
)
async def test_who_won_is_known_where_that_is_all_that_is_judged(
    client: httpx.AsyncClient, more: dict[str, Any], status: int
) -> None:
    body = "q,answer_a,answer_b,winner\n" + "".join(
        f"Why {at}?,one {at},two {at},{'ab'[at % 2] if at < 4 else ''}\n" for at in range(9)
    )
    roles = {"q": "question", "answer_a": "answer_a", "answer_b": "answer_b", "winner": "known"}
    named = {"system_a": "old", "system_b": "new", "mapping": json.dumps(roles)}
    answer = await sent(client, body.encode(), "text/csv", **named, **more)
    assert answer.status_code == status, answer.text
    if status == 201:
        assert answer.json()["pool"]["known"]["reasons"] == {"labelled before": 4}
    else:
        assert answer.json()["field"] == "mapping.winner"


async def test_runs_of_the_same_tasks_are_no_sample_of_a_population(
    client: httpx.AsyncClient,
) -> None:
    rows = [{"id": f"t{at // 2}", "input": f"{at // 2}?", "run": at % 2} for at in range(8)]
    mapping = json.dumps({"id": "id", "input": "question"})
    for repeats, status in (("runs", 422), ("items", 201)):
        made = await sent(client, jsonl(rows), mapping=mapping, repeats=repeats)
        pool = made.json()["pool"]["id"]
        asked = {"target": "population", "budget": 4}
        opened = await client.post("/v1/sessions", json={"pool_id": pool, **asked})
        assert opened.status_code == status, opened.text
        if status == 422:
            assert "runs of the same tasks are no sample" in opened.json()["detail"]
            planned = await client.post(f"/v1/pools/{pool}/planning", json=asked)
            assert (planned.status_code, planned.json()["field"]) == (422, "target")
            dry = {"dry_run": "true", "planning": json.dumps(asked)}
            looked = await sent(client, jsonl(rows), mapping=mapping, repeats=repeats, **dry)
            assert (looked.status_code, looked.json()["field"]) == (422, "target")


SAMPLES = [
    {"task_id": f"HumanEval/{at}", "completion": f"return {run}", "result": "x", "passed": run > at}
    for at in range(3)
    for run in range(3)
]


async def test_samples_of_a_problem_are_asked_about_and_then_one_item(
    client: httpx.AsyncClient,
) -> None:
    asked = await sent(client, jsonl(SAMPLES), dry_run=True)
    assert (asked.status_code, asked.json()["code"]) == (422, "needs_answer"), asked.text
    (question,) = asked.json()["questions"]
    values = [choice["value"] for choice in question["choices"]]
    assert (question["name"], values) == (
        "repeats",
        ["items", "runs", "first", "mean", "sample=0", "sample=1", "sample=2"],
    )
    answer = await sent(client, jsonl(SAMPLES), repeats="mean")
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert (told["format"], told["read_as"][0], told["items"]) == (
        "humaneval",
        "results of HumanEval",
        3,
    )
    assert {column["name"]: (column["role"], column["source"]) for column in told["columns"]} == {
        "task_id": ("id", "format"),
        "completion": ("answer", "format"),
        "result": ("hidden", "format"),
        "passed": ("score", "format"),
        "sample": ("hidden", "format"),
    }


async def test_a_metric_of_several_is_the_guess_when_it_is_named(client: httpx.AsyncClient) -> None:
    doc = {"query": "Which?", "choices": ["x", "y"], "gold_index": [1]}
    rows = [
        {
            "doc": doc | {"id": str(at)},
            "model_response": {"text": ["y"]},
            "metric": {"em": at / 4, "f1": 1.0},
        }
        for at in range(5)
    ]
    plain = (await sent(client, parquet(rows), dry_run=True)).json()
    assert (plain["format"], plain["numeric"]) == ("lighteval", [])
    assert plain["first"][0]["item"]["payload"] == {
        "question": "Which?",
        "choices": ["x", "y"],
        "reference": "y",
        "answer": "y",
    }
    guessed = (await sent(client, parquet(rows), metric="em", dry_run=True)).json()
    assert [one["item"]["surrogate"] for one in guessed["first"]] == [1.0, 0.75, 0.5, 0.25, 0.0]


async def test_failures_without_the_passes_are_refused_by_name(client: httpx.AsyncClient) -> None:
    failure = {"id": "s", "model_name": "m", "test_category": "t", "valid": False, "error": ["e"]}
    summary = {"accuracy": 0.5, "correct_count": 1, "total_count": 2}
    answer = await sent(client, jsonl([summary, failure]), dry_run=True)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_value")
    assert "BFCL" in answer.json()["detail"]
