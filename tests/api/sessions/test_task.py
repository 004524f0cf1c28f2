"""What a judge is told of a task: the form of a judgement, the own count, and nothing else."""

from typing import Any

import pytest
from httpx import AsyncClient

from tests.api.access.test_blindness import assert_blind
from tests.factories import drawn, judged, known_pool, opened


async def task_of(client: AsyncClient, session: str) -> dict[str, Any]:
    answer = await client.get(f"/v1/sessions/{session}/task")
    assert answer.status_code == 200, answer.text
    assert_blind(answer, [])
    found: dict[str, Any] = answer.json()
    return found


async def test_a_labeller_is_told_the_form_of_a_judgement_and_the_own_count(
    client: AsyncClient, ann: AsyncClient, bob: AsyncClient
) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool, lease_seconds=60)
    for count in range(3):
        assert await task_of(ann, session) == {
            "session": {"id": session, "state": "active"},
            "name": "known",
            "loss": {"kind": "zero_one", "scale": [0, 1]},
            "score": None,
            "metrics": None,
            "takes_labels": False,
            "classes": None,
            "comparison": None,
            "best": None,
            "rater": None,
            "stands": False,
            "levels": None,
            "better": None,
            "instructions": None,
            "lease_seconds": 60,
            "labeller": {"name": "of a test", "labels": count},
        }
        draw = (await drawn(ann, session))["draws"][0]
        await judged(ann, session, pool, draw, worker=f"window {count}")
        await judged(ann, session, pool, draw, worker="the same again")
    assert (await task_of(bob, session))["labeller"]["labels"] == 0


@pytest.mark.parametrize(
    ("loss", "item", "told"),
    [
        ({"kind": "zero_one"}, {"target_probs": [0.2, 0.3, 0.5]}, (True, 3)),
        ({"kind": "zero_one"}, {"prediction": 1}, (True, None)),
        ({"kind": "cross_entropy", "upper": 5}, {"target_probs": [0.5, 0.5]}, (True, 2)),
        ({"kind": "bounded", "lower": -1, "upper": 1}, {"surrogate": 0.5}, (False, None)),
    ],
)
async def test_labels_are_asked_for_where_a_loss_follows_from_them(
    client: AsyncClient, loss: dict[str, Any], item: dict[str, Any], told: tuple[bool, int | None]
) -> None:
    items = [{"id": f"i{number}"} | item for number in range(8)]
    body = {"name": "p", "loss": loss, "items": items, "sealed": True}
    answer = await client.post("/v1/pools", json=body)
    assert answer.status_code == 201, answer.text
    opening = await client.post("/v1/sessions", json={"pool_id": answer.json()["id"]})
    session = opening.json()["id"]
    task = await task_of(client, session)
    assert (task["takes_labels"], task["classes"]) == told
    draw = (await drawn(client, session))["draws"][0]
    said = {"round": draw["round"], "label": 1, "worker": "w"}
    taken = await client.post(f"/v1/sessions/{session}/observe", json=said)
    assert (taken.status_code == 200) == task["takes_labels"]


async def test_the_state_is_told_as_next_tells_it(client: AsyncClient) -> None:
    session = await opened(client, await known_pool(client, 30), budget=1)
    for state in ("paused", "active", "closed"):
        await client.patch(f"/v1/sessions/{session}", json={"state": state})
        assert (await task_of(client, session))["session"]["state"] == state
