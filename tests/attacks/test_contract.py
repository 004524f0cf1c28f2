"""Schemathesis: every operation of the contract with data that fits it and data that does not."""

import itertools
import json
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyStrategyDefinition
from schemathesis import Case, CheckContext, CheckFunction, GenerationMode, Response
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.specs.openapi.checks import negative_data_rejection

from celeus.api.wire.links import linked
from tests.api.contract import ROUTES, Route, every
from tests.attacks.hostile import ENCODERS, SCALES, uploads
from tests.attacks.tally import TRIES
from tests.attacks.world import World, build, client_of
from tests.keys import bearer
from tests.nightly import NIGHTLY
from tests.servers import Service

pytestmark = pytest.mark.nightly

MOST_QUERY = 8_000
CONTRACT = Path(__file__).parents[2] / "openapi" / "openapi.json"
LEAKS = re.compile(
    r"Traceback|site-packages|psycopg|sqlalchemy|asyncio|/work/|\.py\b|SELECT |INSERT |secret_hash"
)

for media in ENCODERS:
    kept = st.sampled_from(sorted(SCALES)).flatmap(uploads)
    schemathesis.openapi.media_type(media, kept.map(lambda sent: sent[1]))

CONFIG: dict[str, Any] = {
    "seed": 20261121,
    # All examples of an operation meet one server: it has to stand them all
    "suppress-health-check": ["all"],
    "generation": {
        "max-examples": 400 if NIGHTLY else 12,
        "deterministic": True,
        "database": "none",
        "no-shrink": not NIGHTLY,
        # Every route refuses names it does not know; `tests/api` has a test of each
        "allow-extra-parameters": False,
    },
    "checks": {
        # A schema cannot tell that limits are in order, that probabilities add up, that a budget
        # fits its pool: `refused_by_meaning` has the refusal come from such a rule.
        "positive_data_acceptance": {
            "expected-statuses": ["2xx", "304", "404", "409", "415", "422", "503"]
        },
    },
}

TURNS = itertools.count()
# With what a link's body takes along, the walks come from an item to its judgement
LINKED = linked(json.loads(CONTRACT.read_text(encoding="utf-8")), bodies=True)
schema = schemathesis.openapi.from_dict(LINKED, config=SchemathesisConfig.from_dict(CONFIG))


def with_real_ids(case: Case[Any], world: World) -> None:
    """Three of four requests whose path fits the contract ask for what there is."""
    part = None if case.meta is None else case.meta.components.get(ParameterLocation.PATH)
    if part is None or part.mode is not GenerationMode.POSITIVE:
        return
    turn = next(TURNS)
    if "pool_id" in case.path_parameters and turn % 4:
        case.path_parameters["pool_id"] = list(world.pools.values())[turn % len(world.pools)]
    if "session_id" in case.path_parameters:
        # A stream ends with its session, and so does the wait for its answer
        streams = case.operation.path.endswith("/stream")
        there = [world.sessions["closed"]] if streams else list(world.sessions.values())
        if turn % 4:
            case.path_parameters["session_id"] = there[turn % len(there)]


def refused_by_meaning(_: CheckContext, response: Response, case: Case[Any]) -> None:
    """What fits the contract is never refused for its form."""
    if case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE:
        return
    if response.status_code == 422:
        problem = response.json()
        assert problem["code"] != "invalid_value" or "errors" not in problem, problem


def nothing_leaks(_: CheckContext, response: Response, __: Case[Any]) -> None:
    """No answer tells how the service is made; every refusal is a problem with a known code."""
    if response.status_code < 400:
        return
    found = LEAKS.search(response.text)
    assert found is None, found
    assert response.headers["content-type"] == ["application/problem+json"]
    assert response.json()["status"] == response.status_code


def nothing_breaks(context: CheckContext, response: Response, case: Case[Any]) -> None:
    """No server error, but that a machine with other work had no time for a plan."""
    if response.status_code != 503 or response.json()["code"] != "planning_busy":
        not_a_server_error(context, response, case)


@pytest.fixture
def world(service: Service) -> World:
    with client_of(service.url) as client:
        return build(client)


def keep_the_contract(case: Case[Any], service: Service, world: World) -> None:
    """Ask once, and hold the answer to every check."""
    TRIES["requests by Schemathesis"] += 1
    with_real_ids(case, world)
    # What is longer is refused before it is a request, in plain text (tests/api/wire)
    assume(len(urlencode(dict(case.query or {}), doseq=True)) < MOST_QUERY)
    case.call_and_validate(
        base_url=service.url,
        headers=bearer(),
        timeout=30,
        additional_checks=[refused_by_meaning, nothing_leaks, nothing_breaks],
        # Whatever is verified gets a report
        excluded_checks=[
            not_a_server_error,
            *([negative_data_rejection] if case.path.endswith("/verify") else []),
        ],
    )


@every(ROUTES)
def test_an_operation_keeps_the_contract(route: Route, service: Service, world: World) -> None:
    # Made when it runs: `schema.parametrize` draws all requests of all operations as it collects
    # them, in every worker, which takes as long as to collect all other tests.
    load_all_checks()
    asked = build_operation_test(
        config=schema.config,
        operation=schema[route.path][route.method],
        test_func=keep_the_contract,
        given_kwargs={},
        feedback=FeedbackSources(),
    )
    asked(service=service, world=world)


WALKED = [
    *("create_pool", "open_session", "get_session", "next_draws", "observe", "amend"),
    "change_session",
]


class Walk(schema.include(operation_id=WALKED).as_state_machine()):  # type: ignore[misc]
    """From a pool to its session, its draws, their judgements, by the links of the contract."""

    url = ""
    reached: ClassVar[Counter[str]] = Counter()

    def before_call(self, case: Case[Any]) -> None:
        """Have some bodies make sense, that the walk comes to what lies behind them."""
        body = case.body
        fits = case.meta is None or case.meta.generation.mode is GenerationMode.POSITIVE
        if not (fits and isinstance(body, dict) and next(TURNS) % 4):
            return
        made: dict[str, Any]
        match case.operation.path.rpartition("/")[2], case.method:
            case "pools", "POST":
                items = [{"id": f"i{number}", "surrogate": 0.5} for number in range(4)]
                made = {"name": "walked", "loss": {"kind": "zero_one"}, "items": items}
                made["sealed"] = next(TURNS) % 4 > 0
            case "sessions", "POST":
                made = {"pool_id": body.get("pool_id", "")}
            case "next", _:
                made = {"worker": "w", "count": 2}
            case "observe", _:
                made = {"worker": "w", "next": 1, "round": body.get("round", 1), "loss": 1}
            case "amendments", _:
                made = {"author": "a", "reason": "r", "loss": 0, "round": body.get("round", 1)}
            case _:
                return
        case.body = made

    def get_call_kwargs(self, case: Case[Any]) -> dict[str, Any]:
        """Where the server is, and the key."""
        del case
        return {"base_url": self.url, "headers": bearer(), "timeout": 30}

    def validate_response(
        self,
        response: Response,
        case: Case[Any],
        additional_checks: list[CheckFunction] | None = None,
        **more: Any,  # noqa: ANN401 - as the library passes it
    ) -> None:
        """All checks of the library and ours; the changed bodies are no longer what it drew."""
        assert additional_checks is None
        if response.status_code < 300:
            self.reached[f"{case.method} {case.operation.path}"] += 1
        TRIES["steps of walks along links"] += 1
        # The key is sent whatever was drawn for its header, and a link's body in place of a drawn
        # one: what was made not to fit may fit after all. Operations by themselves are above.
        header = None if case.meta is None else case.meta.components.get(ParameterLocation.HEADER)
        mended = header is not None and header.mode is GenerationMode.NEGATIVE
        case.validate_response(
            response,
            additional_checks=[nothing_leaks],
            excluded_checks=[negative_data_rejection] if mended else [],
            transport_kwargs=more,
        )


def test_any_walk_along_the_links_keeps_the_contract(service: Service) -> None:
    Walk.url = service.url
    Walk.reached.clear()
    chosen = settings(
        max_examples=200 if NIGHTLY else 10,
        stateful_step_count=50 if NIGHTLY else 30,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    # A server gives other ids and other times each time, so a walk cannot be repeated to the
    # letter, as Hypothesis now and then wants to: another one is made then
    for _ in range(2):
        with suppress(FlakyStrategyDefinition):
            Walk.run(settings=chosen)
            break
    else:
        Walk.run(settings=chosen)
    session = "/v1/sessions/{session_id}"
    # A short walk comes as far as draws; a long one judges them
    deepest = (f"POST {session}/observe",) if NIGHTLY else ()
    for step in ("POST /v1/sessions", f"POST {session}/next", *deepest):
        assert Walk.reached[step], Walk.reached
