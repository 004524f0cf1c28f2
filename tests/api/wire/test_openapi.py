"""The contract is a file: drift is a red test."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.openapi.models import OpenAPI

from celeus.main import create_app
from celeus.settings import Settings

CONTRACT = Path(__file__).parents[3] / "openapi" / "openapi.json"
VERBS = {"get", "post", "put", "patch", "delete"}


@pytest.fixture(scope="module")
def contract() -> dict[str, Any]:
    """What the service says of itself; no database is needed to say it."""
    return create_app(Settings(database_url="postgresql://nowhere")).openapi()


def operations(contract: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        operation
        for path in contract["paths"].values()
        for verb, operation in path.items()
        if verb in VERBS
    ]


def test_the_kept_contract_is_the_one_served(contract: dict[str, Any]) -> None:
    kept = json.loads(CONTRACT.read_text(encoding="utf-8"))
    assert kept == contract, "write it anew: celeus openapi --out openapi/openapi.json"


def test_the_contract_is_valid_openapi(contract: dict[str, Any]) -> None:
    assert OpenAPI.model_validate(contract).openapi.startswith("3.")


def test_every_reference_leads_somewhere(contract: dict[str, Any]) -> None:
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(contract)))
    assert named == contract["components"]["schemas"].keys()


def test_every_operation_has_a_short_name_of_its_own_and_a_summary(
    contract: dict[str, Any],
) -> None:
    names = [operation["operationId"] for operation in operations(contract)]
    assert len(set(names)) == len(names)
    assert all(name.replace("_", "").isalpha() and len(name) <= 30 for name in names)
    assert all(len(operation["summary"]) <= 60 for operation in operations(contract))
    assert all(operation.get("tags") for operation in operations(contract))


def test_every_declared_error_is_a_problem(contract: dict[str, Any]) -> None:
    for operation in operations(contract):
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                schema = response["content"]["application/problem+json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/Problem"}, operation["operationId"]


def test_what_may_be_answered_304_takes_an_etag(contract: dict[str, Any]) -> None:
    conditional = [one for one in operations(contract) if "304" in one["responses"]]
    assert len(conditional) == 3
    for operation in conditional:
        assert "If-None-Match" in {one.get("name") for one in operation["parameters"]}


def test_every_body_and_answer_has_an_example(contract: dict[str, Any]) -> None:
    schemas = contract["components"]["schemas"]
    missing = [
        name
        for name in schemas
        if name.endswith(("Request", "Opening", "Answer", "Change", "Session", "PoolIn"))
        and "examples" not in schemas[name]
    ]
    assert not missing


def test_every_schema_is_named_once_and_by_its_name(contract: dict[str, Any]) -> None:
    """Generators name types after titles; two of one name, and one is lost."""
    schemas = contract["components"]["schemas"]
    titles = [one["title"] for one in schemas.values()]
    assert sorted(titles) == sorted(set(titles))
    assert not [name for name in schemas if "__" in name]


def test_a_judgement_is_one_plain_object(contract: dict[str, Any]) -> None:
    schemas = contract["components"]["schemas"]
    for name in ("OneObservation", "ListedObservation", "AmendmentRequest", "Losses"):
        assert not schemas[name].keys() & {"oneOf", "anyOf", "allOf"}
        assert schemas[name]["type"] == "object"
