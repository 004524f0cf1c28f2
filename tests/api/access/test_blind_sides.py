"""A labeller of two systems' answers is not told which is whose, by anything he can ask.

Two pools are equal but for A and B, which are exchanged, and their sessions have one seed: what
stands left in one stands right in the other. If all answers are the same but for left and right,
they follow from the texts and the coin of the side alone, and that coin is as likely to fall the
other way.
"""

import json
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response

from celeus.operations.sessions.blinding import RoundNumbers
from tests.api.access.test_blindness import members
from tests.api.contract import MISSING, ROUTES, client_with
from tests.conftest import Execute
from tests.factories import drawn
from tests.keys import key_in
from tests.pairs import A, B, body_of, exchanged

SEED = bytes(range(32))
REQUESTS = 120
TOLD = {"a", "b", "systems", "sides", "loss_a", "loss_b", "loss_left", "loss_right", "digest"}
"""Names of members that would tell which answer is whose, or how sides have won."""
SWAPPED = {
    "left": "right",
    "right": "left",
    "losses.left": "losses.right",
    "losses.right": "losses.left",
}


def mirrored(value: Any) -> Any:  # noqa: ANN401 - JSON
    """The same with left and right exchanged."""
    if isinstance(value, dict):
        return {SWAPPED.get(name, name): mirrored(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [mirrored(inner) for inner in value]
    return SWAPPED.get(value, value) if isinstance(value, str) else value


def plain(body: dict[str, Any]) -> dict[str, Any]:
    """The pool without surrogates: those of A and B are opposite for the draws."""
    for row in body["items"]:
        for side in ("a", "b"):
            del row[side]["surrogate"]
    return body | {"name": f"{A} against {B}"}


@dataclass
class Mirror:
    """The two sessions, who sees all of both, and who is to see nothing."""

    sessions: tuple[str, str]
    admin: AsyncClient
    eve: AsyncClient
    rng: random.Random = field(default_factory=lambda: random.Random(5))  # noqa: S311
    held: list[int] = field(default_factory=list)
    others: list[int] = field(default_factory=list)

    async def both(
        self, who: AsyncClient, path: str, bodies: tuple[Any, Any], method: str = "POST"
    ) -> tuple[Response, Response]:
        asked = [
            await who.request(method, f"/v1/sessions/{session}{path}", json=body)
            for session, body in zip(self.sessions, bodies, strict=True)
        ]
        return asked[0], asked[1]

    async def others_go_on(self) -> None:
        """Somebody else judges: the same system is better in both."""
        answer, _ = await self.both(self.admin, "/next", ({"worker": "judge"},) * 2)
        if not answer.json()["draws"]:
            return
        round_ = answer.json()["draws"][0]["round"]
        self.others.append(RoundNumbers(SEED).shown(round_))
        judgement = {"round": round_, "worker": "judge"}
        better = self.rng.choice((("a", "b"), ("b", "a"), ("tie", "tie"), ("left", "right")))
        bodies = tuple(judgement | {"preference": preference} for preference in better)
        for answer in await self.both(self.admin, "/observe", (bodies[0], bodies[1])):
            assert answer.status_code == 200, answer.text

    def said(self) -> dict[str, Any]:
        words: list[dict[str, Any]] = [
            {"preference": preference} for preference in ("left", "tie", "right")
        ] * 2
        words += [{"preference": preference} for preference in ("a", "b")]
        words += [{"losses": {"left": 0, "right": 1}}, {"losses": {"a": 0, "b": 1}}]
        words += [{"preference": "left", "grade": 2}, {"label": 1}, {"loss": -1}]
        return dict(self.rng.choice([*words, {"unjudgeable": "blank"}]))

    def request(self) -> tuple[str, str, dict[str, Any] | None]:
        """What Eve tries next, in the first of the sessions."""
        kind = self.rng.choices(("next", "observe", "amend", "read"), (2, 5, 2, 1))[0]
        worker = {"worker": "eve"}
        if kind == "read":
            return "GET", self.rng.choice(("", "/task", "/ledger", "/report", "/certificate")), None
        if kind == "next":
            return "POST", "/next", worker | {"count": self.rng.choice((1, 3))}
        known = [some for some in (self.held, self.others) if some] or [[1]]
        judgement = {"round": self.rng.choice(self.rng.choice(known))} | self.said()
        if kind == "observe":
            return "POST", "/observe", judgement | worker | self.rng.choice(({}, {"next": 1}))
        return "POST", "/amendments", judgement | {"reason": "slip"}


@pytest.fixture
async def mirror(
    app: FastAPI, client: AsyncClient, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Mirror]:
    body = plain(body_of("preference", 80)[0])
    sessions = []
    for form in (body, exchanged(body)):
        pool = (await client.post("/v1/pools", json=form)).json()["id"]
        with monkeypatch.context() as patch:
            patch.setattr("celeus.seeds.new_seed", lambda: SEED)
            opening = {"pool_id": pool, "name": f"is {A.upper()} better?"}
            answer = await client.post("/v1/sessions", json=opening)
        assert answer.status_code == 201, answer.text
        sessions.append(answer.json()["id"])
    async with client_with(app, key_in(database_url, "label")) as eve:
        yield Mirror((sessions[0], sessions[1]), client, eve)


def seen(answer: Response, session: str) -> tuple[int, dict[str, str], Any]:
    """What Eve sees, but for what differs between any two answers."""
    headers = {
        name: value
        for name, value in answer.headers.items()
        if name not in {"date", "x-request-id", "x-ratelimit-remaining", "ratelimit"}
    }
    body = answer.json()
    if body.get("field") == "losses":
        # One of her own numbers, the first that she gave
        del body["value"]
    for draw in body.get("draws", []):
        del draw["expires_at"]
    return answer.status_code, headers, json.loads(json.dumps(body).replace(session, "S"))


def assert_untold(answer: Response) -> None:
    for name in (A, B):
        assert name.casefold() not in answer.text.casefold(), answer.text
        assert name.casefold() not in str(answer.headers.raw).casefold()
    if answer.headers.get("Content-Type", "").endswith("json"):
        assert not {name for name, _ in members(answer.json())} & TOLD


async def test_exchanged_systems_look_the_same_but_for_left_and_right(mirror: Mirror) -> None:
    met = set()
    for _ in range(REQUESTS):
        if mirror.rng.random() < 0.3:
            await mirror.others_go_on()
        method, path, body = mirror.request()
        answer, mirror_answer = await mirror.both(mirror.eve, path, (body, mirrored(body)), method)
        status, headers, first = seen(answer, mirror.sessions[0])
        assert (status, headers, first) == (
            mirror_answer.status_code,
            seen(mirror_answer, mirror.sessions[1])[1],
            mirrored(seen(mirror_answer, mirror.sessions[1])[2]),
        )
        assert_untold(answer)
        assert_untold(mirror_answer)
        met.add(f"{path} {answer.status_code} {first.get('code', '')}")
        if answer.status_code == 200 and path != "/task":
            for draw in first["draws"]:
                order = ["round", "item", "left", "right", "expires_at"]
                assert list(answer.json()["draws"][0]) == order
                if draw["round"] not in mirror.held:
                    mirror.held.append(draw["round"])
    assert {"/next 200 ", "/observe 200 ", "/task 200 ", "/observe 409 observation_conflict"} <= met
    assert "/observe 422 invalid_value" in met
    assert "/amendments 200 " in met


async def test_a_labeller_meets_no_name_on_any_route(mirror: Mirror) -> None:
    session = mirror.sessions[0]
    offer = await drawn(mirror.eve, session, 3)
    judgement = {"round": offer["draws"][0]["round"], "preference": "right", "worker": "eve"}
    for body in (
        judgement,
        judgement,
        judgement | {"preference": "left"},
        judgement | {"preference": "a"},
    ):
        assert_untold(await mirror.eve.post(f"/v1/sessions/{session}/observe", json=body))
    status = (await mirror.admin.get(f"/v1/sessions/{session}")).json()
    ids = MISSING | {"pool_id": status["pool_id"], "session_id": session}
    for route in ROUTES:
        if route.path not in {"/openapi.json", "/v1/certificates/verify"}:
            answer = await route.ask(mirror.eve, ids)
            for name in (A, B):
                assert name.casefold() not in answer.text.casefold(), route.path


async def test_the_task_says_how_to_judge_and_not_what(mirror: Mirror) -> None:
    for session in mirror.sessions:
        task = (await mirror.eve.get(f"/v1/sessions/{session}/task")).json()
        assert task["name"] == "Two answers"
        assert task["comparison"] == {
            "judged_by": "preference",
            "kind": "preference",
            "scale": [0.0, 1.0],
            "ends": ["best", "worst"],
        }
        ends = ["A is better", "B is better"]
        assert task["loss"] == {"kind": "difference", "scale": [-1.0, 1.0], "ends": ends}


async def test_a_labeller_speaks_of_left_and_right_only(mirror: Mirror) -> None:
    session = mirror.sessions[0]
    draw = (await drawn(mirror.eve, session))["draws"][0]
    path = f"/v1/sessions/{session}"
    for judgement, field_ in (
        ({"preference": "a"}, "preference"),
        ({"losses": {"a": 0, "b": 1}}, "losses"),
    ):
        body = {"round": draw["round"], "worker": "eve"} | judgement
        answer = await mirror.eve.post(f"{path}/observe", json=body)
        assert (answer.status_code, answer.json()["field"]) == (422, field_)
        assert "left and right" in answer.json()["rule"]


async def test_what_a_labeller_says_of_a_side_is_turned_back(mirror: Mirror) -> None:
    session = mirror.sessions[0]
    path = f"/v1/sessions/{session}"
    for preference in ("left", "right", "left", "tie"):
        draw = (await drawn(mirror.eve, session))["draws"][0]
        body = {"round": draw["round"], "worker": "eve", "preference": preference}
        assert (await mirror.eve.post(f"{path}/observe", json=body)).status_code == 200
    correction = {"round": draw["round"], "preference": "right", "reason": "slipped"}
    answer = await mirror.eve.post(f"{path}/amendments", json=correction)
    assert answer.status_code == 200, answer.text
    ledger = (await mirror.admin.get(f"{path}/certificate")).json()["ledger"]
    left = {entry["round"]: entry["detail"]["left"] for entry in ledger if entry["kind"] == "draw"}
    expected = {"left": -1.0, "tie": 0.0, "right": 1.0}
    judged = [entry for entry in ledger if entry["kind"] in {"observation", "amendment"}]
    assert len(judged) == 5
    for entry in judged:
        turned = 1.0 if left[entry["round"]] == "a" else -1.0
        assert entry["loss"] == expected[entry["detail"]["preference"]] * turned


async def test_everybody_who_is_asked_a_round_sees_the_same(
    mirror: Mirror, execute: Execute, ann: AsyncClient
) -> None:
    session = mirror.sessions[0]
    path = f"/v1/sessions/{session}/next"
    first = (await mirror.eve.post(path, json={"worker": "eve"})).json()["draws"][0]
    execute("UPDATE leases SET expires_at = now() - interval '1 second'")
    second = (await ann.post(path, json={"worker": "ann"})).json()["draws"][0]
    assert {name: first[name] for name in ("round", "item", "left", "right")} == {
        name: second[name] for name in ("round", "item", "left", "right")
    }
