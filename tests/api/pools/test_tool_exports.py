"""Files of tools that are known by their columns: what the service answers to them."""

import httpx

from tests.api.pools.test_sheets import jsonl, parquet, sent

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
