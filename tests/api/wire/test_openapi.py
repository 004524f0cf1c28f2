"""The contract is a file: drift is a red test, and every name in it is explained."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.openapi.models import OpenAPI
from jsonschema_rs import Draft202012Validator

from celeus.main import create_app
from celeus.settings import Settings
from tests.api.contract import CONTRACT

VERBS = {"get", "post", "put", "patch", "delete"}
KEYWORDS = {
    *("$ref", "additionalProperties", "allOf", "anyOf", "const", "contentMediaType", "default"),
    *("description", "discriminator", "enum", "examples", "exclusiveMaximum", "exclusiveMinimum"),
    *("format", "items", "maxItems", "maxLength", "maximum", "minItems", "minLength"),
    *("minProperties", "maxProperties", "minimum", "not", "oneOf", "pattern", "patternProperties"),
    *("prefixItems", "properties", "propertyNames", "required", "title", "type", "uniqueItems"),
}
"""Keywords of the schemas: of JSON Schema 2020-12, and OpenAPI's `discriminator`."""


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
    assert contract == CONTRACT, "write it anew: celeus dev openapi --out openapi/openapi.json"


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


def test_every_operation_has_one_tag_and_every_tag_operations(contract: dict[str, Any]) -> None:
    tags = [tuple(operation["tags"]) for operation in operations(contract)]
    assert {(tag["name"],) for tag in contract["tags"]} == set(tags)


def test_an_operation_names_the_scopes_that_suffice(contract: dict[str, Any]) -> None:
    asked = {operation["operationId"]: operation["security"] for operation in operations(contract)}
    assert [name for name, schemes in asked.items() if not schemes] == [
        *("healthz", "readyz", "version")
    ]
    assert asked["get_signing_key"] == [{"key": []}]
    assert asked["open_session"] == [{"manage": []}]
    assert asked["amend"] == [{"label": []}, {"manage": []}]


def test_every_declared_error_is_a_problem(contract: dict[str, Any]) -> None:
    for operation in operations(contract):
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                schema = response["content"]["application/problem+json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/Problem"}, operation["operationId"]


def test_what_may_be_answered_304_takes_an_etag(contract: dict[str, Any]) -> None:
    conditional = [
        operation for operation in operations(contract) if "304" in operation["responses"]
    ]
    assert len(conditional) == 3
    for operation in conditional:
        assert "If-None-Match" in {parameter.get("name") for parameter in operation["parameters"]}


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
    titles = [schema["title"] for schema in schemas.values()]
    assert sorted(titles) == sorted(set(titles))
    assert not [name for name in schemas if "__" in name]


def test_a_judgement_is_one_plain_object(contract: dict[str, Any]) -> None:
    schemas = contract["components"]["schemas"]
    for name in ("OneObservation", "ListedObservation", "AmendmentRequest", "Losses"):
        assert not schemas[name].keys() & {"oneOf", "anyOf", "allOf"}
        assert schemas[name]["type"] == "object"


OPERATIONS = [operation for path in CONTRACT["paths"].values() for operation in path.values()]
FILLERS = {"a", "an", "its", "of", "the", "whether"}


def properties(schema: Any, place: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 -- JSON
    """Every property in a part of the contract, however deep, by its place."""
    if isinstance(schema, list):
        for part_schema in schema:
            yield from properties(part_schema, place)
    if not isinstance(schema, dict):
        return
    for name, inner in schema.get("properties", {}).items():
        yield f"{place}.{name}", inner
    for name, inner in schema.items():
        named = inner.items() if name == "properties" else [("", inner)]
        if name not in {"example", "examples"}:
            for part, part_schema in named:
                yield from properties(part_schema, f"{place}.{part}" if part else place)


def described() -> Iterator[tuple[str, str, Any]]:
    """Place, name and what bears a description, of all that a caller writes or reads."""
    for name, schema in CONTRACT["components"]["schemas"].items():
        yield name, name, schema
        for place, inner in properties(schema, name):
            yield place, place.rpartition(".")[2], inner
    for name, parameter in CONTRACT["components"]["parameters"].items():
        yield name, name, parameter
    for operation in OPERATIONS:
        place = operation["operationId"]
        yield place, place, operation
        for parameter in operation["parameters"]:
            if "$ref" not in parameter:
                yield f"{place} {parameter['name']}", parameter["name"], parameter
        if body := operation.get("requestBody"):
            for where, inner in properties(body, place):
                yield where, where.rpartition(".")[2], inner


def words(text: str) -> set[str]:
    """The words of a text or name, but for those that say nothing."""
    return set(re.findall(r"[a-z0-9]+", text.lower())) - FILLERS


def test_every_name_in_the_contract_is_explained() -> None:
    missing = [
        place for place, _, schema in described() if not schema.get("description", "").strip()
    ]
    assert not missing


def test_no_explanation_repeats_its_name() -> None:
    empty = [
        place for place, name, schema in described() if words(schema["description"]) <= words(name)
    ]
    assert not empty


def test_an_explanation_is_a_sentence() -> None:
    """It begins like one, or with a name, and ends with a stop."""
    bad = [
        place
        for place, _, schema in described()
        if not re.match(r"[A-Z0-9`]", schema["description"])
        or schema["description"].strip()[-1] not in ".:"
    ]
    assert not bad


def test_what_is_uploaded_is_described_with_its_media_types() -> None:
    bodies = {operation["operationId"]: operation.get("requestBody") for operation in OPERATIONS}
    for name in ("add_items", "create_pool_from_file", "create_session_from_file"):
        assert len(bodies[name]["description"]) > 50, name
    files = {"application/x-ndjson", "text/csv", "application/vnd.apache.parquet"}
    assert bodies["add_items"]["content"].keys() == files
    assert bodies["create_pool_from_file"]["content"].keys() == files | {
        *("application/json", "application/octet-stream", "multipart/form-data")
    }
    assert len(bodies["verify_certificate"]["description"]) > 50
    form = bodies["verify_certificate"]["content"]["multipart/form-data"]
    assert form["encoding"].keys() < form["schema"]["properties"].keys()


def test_the_headers_that_are_read_are_parameters() -> None:
    read: dict[str, set[str]] = {}
    for operation in OPERATIONS:
        assert {"$ref": "#/components/parameters/X-Request-ID"} in operation["parameters"]
        for parameter in operation["parameters"]:
            if parameter.get("in") == "header":
                read.setdefault(parameter["name"], set()).add(operation["operationId"])
    assert read["Idempotency-Key"] == {
        *("create_pool", "create_pool_from_file", "add_items", "open_session"),
        *("add_session_claim", "create_key", "create_invitation"),
    }
    assert read["If-None-Match"] == {"get_session", "get_surrogate", "get_certificate"}
    assert read["Last-Event-ID"] == {"stream_session"}


def schemas_with_examples(part: Any, place: str) -> Iterator[tuple[str, Any, list[Any]]]:  # noqa: ANN401 -- JSON
    """Place and schema of every part of the contract that shows examples, and these."""
    for name, inner in part.items() if isinstance(part, dict) else enumerate(part):
        if isinstance(inner, (dict, list)) and name not in {"example", "examples"}:
            yield from schemas_with_examples(inner, f"{place}/{name}")
    if isinstance(part, dict) and not place.endswith("/properties"):
        examples = [part["example"]] if "example" in part else list(part.get("examples", ()))
        if examples:
            yield place, part.get("schema", part), examples


def test_every_example_is_valid() -> None:
    found = list(schemas_with_examples(CONTRACT, ""))
    assert len(found) > 50
    invalid = []
    for place, schema, examples in found:
        whole = {"components": CONTRACT["components"], "allOf": [schema]}
        validator = Draft202012Validator(whole)
        invalid += [
            (place, error.message) for shown in examples for error in validator.iter_errors(shown)
        ]
    assert not invalid


def test_schemas_use_no_keyword_that_json_schema_lacks() -> None:
    """A bound of pydantic, such as `ge`, would bind nobody."""
    schemas = CONTRACT["components"]["schemas"]
    used = {
        keyword
        for name, top in schemas.items()
        for _, schema in [(name, top), *properties(top, name)]
        for part in (schema, *schema.get("anyOf", ()))
        for keyword in part
    }
    assert used <= KEYWORDS
