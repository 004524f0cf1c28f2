"""Who reads the contract, or what a generator made of it, finds every name explained."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CONTRACT = json.loads(
    (Path(__file__).parents[3] / "openapi" / "openapi.json").read_text(encoding="utf-8")
)
OPERATIONS = [one for path in CONTRACT["paths"].values() for one in path.values()]
FILLERS = {"a", "an", "its", "of", "the", "whether"}


def properties(schema: Any, place: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 -- JSON
    """Every property in a part of the contract, however deep, by its place."""
    if isinstance(schema, list):
        for one in schema:
            yield from properties(one, place)
    if not isinstance(schema, dict):
        return
    for name, inner in schema.get("properties", {}).items():
        yield f"{place}.{name}", inner
    for name, inner in schema.items():
        named = inner.items() if name == "properties" else [("", inner)]
        if name not in {"example", "examples"}:
            for part, one in named:
                yield from properties(one, f"{place}.{part}" if part else place)


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
    missing = [place for place, _, one in described() if not one.get("description", "").strip()]
    assert not missing


def test_no_explanation_repeats_its_name() -> None:
    empty = [place for place, name, one in described() if words(one["description"]) <= words(name)]
    assert not empty


def test_an_explanation_is_a_sentence() -> None:
    """It begins like one, or with a name, and ends with a stop."""
    bad = [
        place
        for place, _, one in described()
        if not re.match(r"[A-Z0-9`]", one["description"])
        or one["description"].strip()[-1] not in ".:"
    ]
    assert not bad


def test_what_is_uploaded_is_described_with_its_media_types() -> None:
    bodies = {one["operationId"]: one.get("requestBody") for one in OPERATIONS}
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
