"""What an attacker finds: pools and sessions in all their states, on a running server."""

from dataclasses import dataclass
from typing import Any

import httpx

from tests.keys import ADMIN, bearer

ITEMS = 40
WAITING = 5
JUDGED = 5


@dataclass(frozen=True)
class World:
    """Ids of pools and sessions, by what they are."""

    pools: dict[str, str]
    sessions: dict[str, str]


def client_of(url: str, token: str = ADMIN, timeout: float = 30.0) -> httpx.Client:
    """A client that shows a key; nothing of the machine's surroundings changes its way."""
    return httpx.Client(base_url=url, headers=bearer(token), timeout=timeout, trust_env=False)


def made(client: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The answer to a POST that has to succeed."""
    answer = client.post(path, json=body)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


def build(client: httpx.Client) -> World:
    """Open and sealed pools of every kind of loss; active, judged, paused and closed sessions."""
    pools = {name: made(client, "/v1/pools", body)["id"] for name, body in _pools().items()}
    sessions = {
        name: made(client, "/v1/sessions", {"pool_id": pools[pool]} | settings)["id"]
        for name, (pool, settings) in _sessions().items()
    }
    for name in ("judged", "labelled", "closed"):
        judge(client, sessions[name], JUDGED)
    client.patch(f"/v1/sessions/{sessions['paused']}", json={"state": "paused"})
    client.patch(f"/v1/sessions/{sessions['closed']}", json={"state": "closed"})
    return World(pools, sessions)


def judge(client: httpx.Client, session: str, rounds: int, waiting: int = WAITING) -> None:
    """Judge some rounds, and leave some drawn."""
    asked = {"worker": "judge", "count": rounds + waiting}
    draws = made(client, f"/v1/sessions/{session}/next", asked)["draws"]
    for draw in draws[:rounds]:
        body = {"round": draw["round"], "loss": 1.0, "worker": "judge"}
        made(client, f"/v1/sessions/{session}/observe", body)


def _pools() -> dict[str, dict[str, Any]]:
    scored = [{"id": f"item-{i}", "surrogate": i / ITEMS} for i in range(ITEMS)]
    likely = [
        {"id": f"item-{i}", "target_probs": [0.5, 0.25, 0.25], "surrogate_probs": [0.2, 0.4, 0.4]}
        for i in range(ITEMS)
    ]
    entropy = {"kind": "cross_entropy", "upper": 5.0}
    return {
        "empty": {"name": "empty", "loss": {"kind": "zero_one"}},
        "open": {"name": "open", "loss": {"kind": "bounded", "lower": -3.0, "upper": 5.0}},
        "scored": {
            "name": "scored",
            "loss": {"kind": "zero_one"},
            "items": scored,
            "sealed": True,
        },
        "likely": {"name": "likely", "loss": entropy, "items": likely, "sealed": True},
    }


def _sessions() -> dict[str, tuple[str, dict[str, Any]]]:
    asked = {"questions": [{"side": "at_most", "threshold": 0.3}], "precision": 0.2}
    return {
        "fresh": ("scored", {}),
        "judged": ("scored", asked),
        "labelled": ("likely", {"policy": "celeus"}),
        "paused": ("scored", {"budget": 10}),
        "closed": ("scored", {}),
    }
