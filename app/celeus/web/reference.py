"""The reference of the interface as one page, made of its OpenAPI document."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from fastapi import FastAPI, Response
from markupsafe import Markup, escape

from celeus.web.documents import REFERENCE, rendered
from celeus.web.pages import AnyonesPage, page_router

router = page_router()

Document = Mapping[str, Any]
METHODS: Final = ("get", "post", "put", "patch", "delete")
_BOUNDS: Final = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} of them",
}


class Member(NamedTuple):
    """A parameter or a member of an object; ``place`` is where a parameter stands."""

    name: str
    place: str
    type: Markup
    required: bool
    text: Markup


class Answer(NamedTuple):
    """An answer of an operation; ``types`` are those of its body."""

    status: str
    text: Markup
    types: Sequence[Markup]


class Operation(NamedTuple):
    """An operation; ``bodies`` are the types that its request may have."""

    id: str
    method: str
    path: str
    summary: str
    text: Markup
    parameters: Sequence[Member]
    bodies: Sequence[Markup]
    answers: Sequence[Answer]


class Group(NamedTuple):
    """The operations of a tag."""

    name: str
    text: Markup
    operations: Sequence[Operation]


class Schema(NamedTuple):
    """A named type, its members, and an example as JSON; ``type`` of what has no members."""

    name: str
    text: Markup
    type: Markup
    members: Sequence[Member]
    example: str


class Reference(NamedTuple):
    """The contract."""

    text: Markup
    groups: Sequence[Group]
    schemas: Sequence[Schema]


@router.get(REFERENCE)
async def reference(view: AnyonesPage) -> Response:
    """Show the reference of the interface, made from the contract."""
    application: FastAPI = view.request.app
    contract = await asyncio.to_thread(_reference, application)
    return view.page("reference.html", reference=contract)


@cache
def _reference(application: FastAPI) -> Reference:
    """Return the contract of an application, rendered once."""
    return reference_of(application.openapi())


def reference_of(document: Document) -> Reference:
    """Return the reference of an OpenAPI document."""
    operations = list(_operations(document))
    described = {tag["name"]: tag.get("description", "") for tag in document.get("tags", ())}
    names = dict.fromkeys([*described, *(tag for tag, _ in operations)])
    groups = [
        Group(name, _text(described.get(name)), [found for tag, found in operations if tag == name])
        for name in names
    ]
    schemas = document["components"]["schemas"]
    return Reference(
        _text(document["info"].get("description")),
        [group for group in groups if group.operations],
        [_schema(name, schemas[name]) for name in sorted(schemas)],
    )


def _operations(document: Document) -> Iterator[tuple[str, Operation]]:
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                found = item[method]
                tag = next(iter(found.get("tags", ("other",))))
                yield tag, _operation(document, (method, path), found)


def _operation(document: Document, place: tuple[str, str], found: Document) -> Operation:
    method, path = place
    return Operation(
        id=found["operationId"],
        method=method.upper(),
        path=path,
        summary=found.get("summary", found["operationId"]),
        text=_text(found.get("description")),
        parameters=[
            _parameter(_resolved(document, parameter)) for parameter in found.get("parameters", ())
        ],
        bodies=_bodies(_resolved(document, found.get("requestBody", {}))),
        answers=[
            _answer(status, _resolved(document, answer))
            for status, answer in found["responses"].items()
        ],
    )


def _parameter(parameter: Document) -> Member:
    schema = parameter["schema"]
    return Member(
        parameter["name"],
        parameter["in"],
        _type(schema),
        parameter.get("required", False),
        _text(parameter.get("description") or schema.get("description")),
    )


def _answer(status: str, response: Document) -> Answer:
    return Answer(status, _text(response.get("description")), _bodies(response))


def _resolved(document: Document, part: Document) -> Document:
    """Return a part of the document, or what it refers to."""
    if "$ref" not in part:
        return part
    found: Any = document
    for name in part["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return _resolved(document, found)


def _bodies(message: Document) -> list[Markup]:
    """Return the types of a request's or an answer's body, each with its media type."""
    return [
        Markup("{} ({})").format(_type(body["schema"]), media)
        if body.get("schema")
        else Markup("{}").format(media)
        for media, body in message.get("content", {}).items()
    ]


def _schema(name: str, schema: Document) -> Schema:
    required = schema.get("required", ())
    members = [
        Member(member, "", _type(part), member in required, _text(part.get("description")))
        for member, part in schema.get("properties", {}).items()
    ]
    examples = schema.get("examples", ())
    return Schema(
        name,
        _text(schema.get("description")),
        _type(schema),
        members,
        json.dumps(examples[0], indent=2, ensure_ascii=False) if examples else "",
    )


def _type(schema: Document) -> Markup:
    """Return a type in words, with links to the named ones."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return Markup('<a href="#schema-{0}">{0}</a>').format(name)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return Markup(" or ").join(_type(part) for part in schema[several])
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return Markup(", ").join(
            Markup("<code>{}</code>").format(json.dumps(value)) for value in values
        )
    kind = schema.get("type", "anything")
    if kind == "array":
        words = Markup("list of {}").format(_type(schema.get("items", {})))
    elif kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        words = Markup("map of {}").format(_type(schema["additionalProperties"]))
    else:
        words = escape(schema.get("format") or kind)
    bounds = [words_of.format(schema[name]) for name, words_of in _BOUNDS.items() if name in schema]
    return Markup(", ").join([words, *bounds])


def _text(description: str | None) -> Markup:
    return rendered(description or "", lambda link: link).html
