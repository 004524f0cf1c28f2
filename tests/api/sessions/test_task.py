"""What a judge is told: the form of a judgement, the own count, instructions, and nothing else."""

from typing import Any

import pytest
from httpx import AsyncClient

from celeus.operations.sessions.labelling.instructions import LONGEST_BEGINNING, beginning
from tests.api.access.test_blindness import assert_blind
from tests.factories import drawn, judged, known_pool, opened, sealed
from tests.keys import bearer, key_in


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
            "loss": {"kind": "zero_one", "scale": [0, 1], "ends": ["best", "worst"]},
            "score": None,
            "words": ["Correct", "Wrong"],
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
            "runs": False,
            "repeats": False,
            "success": None,
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
    session = await opened(client, await sealed(client, items, loss=loss))
    task = await task_of(client, session)
    assert (task["takes_labels"], task["classes"]) == told
    draw = (await drawn(client, session))["draws"][0]
    judgement = {"round": draw["round"], "label": 1, "worker": "w"}
    taken = await client.post(f"/v1/sessions/{session}/observe", json=judgement)
    assert (taken.status_code == 200) == task["takes_labels"]


async def test_the_state_is_told_as_next_tells_it(client: AsyncClient) -> None:
    session = await opened(client, await known_pool(client, 30), budget=1)
    for state in ("paused", "active", "closed"):
        await client.patch(f"/v1/sessions/{session}", json={"state": state})
        assert (await task_of(client, session))["session"]["state"] == state


async def told(client: AsyncClient, session: str, key: str) -> str | None:
    answer = await client.get(f"/v1/sessions/{session}/task", headers=bearer(key))
    found: str | None = answer.json()["instructions"]
    return found


async def record(client: AsyncClient, path: str) -> dict[str, Any]:
    answer = await client.get(f"{path}/instructions")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def patched(client: AsyncClient, path: str, instructions: str | None) -> int:
    return (await client.patch(path, json={"instructions": instructions})).status_code


async def test_a_session_has_those_of_its_pool_or_its_own(
    client: AsyncClient, database_url: str
) -> None:
    key = key_in(database_url, "label")
    pool = await known_pool(client)
    plain = await opened(client, pool)
    instructed = await opened(client, pool, instructions="Be **strict**.")
    assert [await told(client, session, key) for session in (plain, instructed)] == [
        None,
        "Be **strict**.",
    ]
    assert await patched(client, f"/v1/pools/{pool.id}", "Be kind.") == 200
    assert [await told(client, session, key) for session in (plain, instructed)] == [
        "Be kind.",
        "Be **strict**.",
    ]
    assert await patched(client, f"/v1/sessions/{instructed}", None) == 200
    assert await told(client, instructed, key) == "Be kind."
    assert await patched(client, f"/v1/pools/{pool.id}", "") == 200
    assert await told(client, instructed, key) is None
    for path in (f"/v1/pools/{pool.id}", f"/v1/sessions/{instructed}"):
        refused = await client.patch(path, json={"instructions": "x"}, headers=bearer(key))
        assert refused.status_code == 403
        assert (await client.get(f"{path}/instructions", headers=bearer(key))).status_code == 403
        assert await patched(client, path, "x" * 20_001) == 422


async def test_neither_plan_nor_digest_has_them(client: AsyncClient) -> None:
    form = {"loss": {"kind": "zero_one"}, "items": [{"id": "a"}, {"id": "b"}], "sealed": True}
    pools = [
        (await client.post("/v1/pools", json={"name": "p"} | form | more)).json()
        for more in ({}, {"instructions": "Be strict."})
    ]
    assert pools[0]["digest"] == pools[1]["digest"]
    made = await record(client, f"/v1/pools/{pools[1]['id']}")
    assert (made["instructions"], made["of"], made["late_changes"]) == ("Be strict.", "pool", [])
    session = (await client.post("/v1/sessions", json={"pool_id": pools[1]["id"]})).json()["id"]
    before = (await client.get(f"/v1/sessions/{session}")).json()
    assert await patched(client, f"/v1/sessions/{session}", "Be kind.") == 200
    assert (await client.get(f"/v1/sessions/{session}")).json() == before
    certificate = (await client.get(f"/v1/sessions/{session}/certificate")).text
    assert "Be kind" not in certificate


async def test_a_change_after_the_first_judgement_is_told(client: AsyncClient) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool, instructions="one")
    path, pools = f"/v1/sessions/{session}", f"/v1/pools/{pool.id}"
    sentence = "The instructions for those who judge were changed between judgements"
    assert await patched(client, path, "two") == 200
    draw = (await drawn(client, session))["draws"][0]
    assert (await record(client, path))["late_changes"] == []
    await judged(client, session, pool, draw)
    assert sentence not in (await client.get(f"{path}/report")).text
    assert await patched(client, path, "two") == 200
    assert await patched(client, pools, "of the pool, which nobody of the session sees") == 200
    assert (await record(client, path))["late_changes"] == []
    assert await patched(client, path, "three") == 200
    assert await patched(client, path, None) == 200
    assert await patched(client, pools, "four") == 200
    # Nobody has judged by them yet
    assert (await record(client, path))["late_changes"] == []
    await judged(client, session, pool, (await drawn(client, session))["draws"][0])
    kept = await record(client, path)
    assert (kept["instructions"], kept["of"]) == ("four", "pool")
    assert [version["instructions"] for version in kept["versions"]] == [
        "one",
        "two",
        "of the pool, which nobody of the session sees",
        "three",
        None,
        "four",
    ]
    assert kept["late_changes"] == [version["at"] for version in kept["versions"][3:]]
    assert f"{sentence}, 3 times, last at " in (await client.get(f"{path}/report")).text
    assert (await client.patch(path, json={"state": "closed"})).is_success
    assert await patched(client, path, "too late") == 409
    # What the next session's judges are told says nothing of this one
    assert await patched(client, pools, "five") == 200
    assert (await record(client, path)) == kept


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Be kind.", "Be kind."),
        ("\n\n## **When** is it `right`?\n\nAs said.", "When is it right?"),
        ("---\n> - 1. As the [guide](https://a.example/b_c) says", "As the guide says"),
        ("| name | grade |\n", "name  grade"),
        ("_all_ of snake_case, 2 * 3", "all of snake_case, 2 * 3"),
        ("![](x.png)\n***\n", None),
        ("word " * 60, f"{('word ' * 32).strip()}…"),
        ("x" * 300, f"{'x' * LONGEST_BEGINNING}…"),
    ],
)
def test_the_beginning_is_the_first_line_without_marks(said: str, words: str | None) -> None:
    assert beginning(said) == words


@pytest.mark.parametrize("unit", ["[", "![x", "[_", "[](", "[a](b", "1.", "*a ", "_"])
def test_a_beginning_of_marks_takes_no_longer_than_it_is(unit: str) -> None:
    """In time that grows with the square of the length this would not come to an end."""
    beginning(unit * (1_000_000 // len(unit)))
