"""The one table from refusals to HTTP, and every error as an RFC 9457 problem."""

import asyncio
import errno
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from celeus import errors
from celeus.api.wire.records import FromRecord
from celeus.errors import Refusal
from celeus.shorten import as_json

STATUS: Mapping[type[Refusal], HTTPStatus] = MappingProxyType(
    {
        errors.Invalid: HTTPStatus.UNPROCESSABLE_ENTITY,
        errors.Unauthenticated: HTTPStatus.UNAUTHORIZED,
        errors.Forbidden: HTTPStatus.FORBIDDEN,
        errors.NotFound: HTTPStatus.NOT_FOUND,
        errors.Conflict: HTTPStatus.CONFLICT,
        errors.Outdated: HTTPStatus.PRECONDITION_FAILED,
        errors.TooSlow: HTTPStatus.REQUEST_TIMEOUT,
        errors.TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        errors.Unsupported: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        errors.TooMany: HTTPStatus.TOO_MANY_REQUESTS,
        errors.Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    }
)
"""Status of every branch of the tree; a refusal has that of the branch it grows on."""

MEDIA_TYPE = "application/problem+json"
PROBLEMS_PAGE = "/docs/problems"
"""Explains every problem, to everybody; the `type` of a problem leads there."""
MOST_TOLD = 100
_FULL = {errno.ENOSPC, errno.EDQUOT}
RETRY_SECONDS = 1
BEHIND = "The schema of the database is not that of this version."
_BODY_LEFT = {
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
}


LOCATION: Mapping[str, Any] = MappingProxyType(
    {"description": "Where what was created is found.", "schema": {"type": "string"}}
)

ETAG: Mapping[str, Any] = MappingProxyType(
    {
        "description": "Names this answer: sent back as `If-None-Match`, it asks for a newer one.",
        "schema": {"type": "string"},
    }
)
ID: Mapping[str, Any] = MappingProxyType(
    {
        "name": "X-Request-ID",
        "in": "header",
        "description": "Names the request in the service's log: 1 to 128 letters, digits, dots,"
        " dashes and underscores. Else a new id is made up; the answer's header has it.",
        "schema": {"type": "string"},
    }
)
LIMITS: Mapping[str, str] = MappingProxyType(
    {
        "Retry-After": "Seconds until the request may be sent again.",
        "RateLimit": "Of a limit per minute, requests left (`r`) and seconds to wait (`t`).",
        "RateLimit-Policy": "Requests (`q`) that it allows in so many seconds (`w`).",
    }
)
"""Headers of an answer to too many requests, by name."""
REQUEST_ID: Mapping[str, Any] = MappingProxyType({"$ref": "#/components/parameters/X-Request-ID"})


class RefusedBody(HTTPException):
    """A refusal while a body is read, in the one form the framework lets through there."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(status_of(type(refusal)), refusal.detail)
        self.refusal = refusal


VALUE = Field(
    None,
    description="What was sent, as JSON; beyond 100 characters the beginning of its text and `…`."
    " NaN and infinities are told by name.",
)


class ProblemError(FromRecord):
    """One of several faults."""

    model_config = ConfigDict(json_schema_extra={"required": ["field", "rule", "value"]})

    field: str = Field(description="Member of the request or row that is wrong.")
    rule: str = Field(description="What it has to be.")
    value: Any = VALUE
    line: int | None = Field(
        None, description="Line or row of an upload, from 1; left out of other requests."
    )


class ChoiceOut(BaseModel):
    """An answer that may be given."""

    value: str = Field(description="What to send.")
    means: str = Field(description="What that means, in a phrase.")


class QuestionOut(BaseModel):
    """A question that a file leaves open."""

    name: str = Field(description="Member of the request that answers it.")
    text: str = Field(description="The question.")
    choices: list[ChoiceOut] = Field(description="Empty where any text will do.")
    column: str | None = Field(description="The column that it is about.")
    example: dict[str, Any] | None = Field(description="A row in which it shows.")


class ColumnOut(FromRecord):
    """A column of a file: what it was taken for, and why."""

    name: str = Field(description="Its name; that of a nested member by its path.")
    role: str = Field(description="What it is, as in a `mapping`; `hidden` is shown to nobody.")
    why: str = Field(description="The reason, in a phrase.")
    source: Literal["format", "given", "name", "value"] = Field(
        description="Where that is from: the format of the file, somebody's word, the name of the"
        " column, or its values."
    )


class Problem(BaseModel):
    """The reason why a request was declined (RFC 9457)."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "type": "/docs/problems#loss_outside_scale",
                    "title": errors.LossOutsideScale.title(),
                    "status": 422,
                    "detail": "The loss is not on the scale of its pool.",
                    "code": "loss_outside_scale",
                    "field": "loss",
                    "rule": "a number from 0 to 1",
                    "value": 1.5,
                }
            ]
        },
    )

    type: str = Field(
        description="Address of the page that explains the problem, relative to the service."
    )
    title: str = Field(description="The problem in a few words, the same every time.")
    status: int = Field(description="HTTP status of the answer.")
    detail: str = Field(description="What is wrong this time, in a sentence.")
    code: str = Field(description="Stable name of the problem, for programs.")
    field: str | None = Field(
        None, description="Member of the request that is wrong; left out where it is none."
    )
    rule: str | None = Field(None, description="What it has to be.")
    value: Any = VALUE
    errors: list[ProblemError] | None = Field(None, description="The first 100 faults.")
    total_errors: int | None = Field(
        None, description="How many faults there are, also beyond those listed."
    )
    questions: list[QuestionOut] | None = Field(
        None, description="Of `needs_answer`: what the file leaves open."
    )
    columns: list[ColumnOut] | None = Field(
        None, description="Of `needs_answer`: the columns of a table, as they would be taken."
    )
    format: str | None = Field(
        None, description="Of `needs_answer`: what the file is, such as csv, or the tool's name."
    )
    read_as: list[str] | None = Field(None, description="Of `needs_answer`: how it was read.")


def status_of(refusal: type[Refusal]) -> HTTPStatus:
    """Status of a refusal: that of the nearest branch in the table."""
    return next(STATUS[branch] for branch in refusal.__mro__ if branch in STATUS)


class Explanation(NamedTuple):
    """A problem in words."""

    code: str
    status: int
    meaning: str


def explained() -> list[Explanation]:
    """Every problem there is, by status and code: each refusal, and what no refusal stands for."""
    others = [
        Explanation(
            "internal_error", 500, "The service failed. The request may have taken effect."
        ),
        Explanation("method_not_allowed", 405, "The path does not take this method; see `Allow`."),
    ]
    return sorted(
        [
            Explanation(refusal.code, status_of(refusal), refusal.title() + ".")
            for refusal in _tree(Refusal)
        ]
        + others,
        key=lambda explanation: (explanation.status, explanation.code),
    )


def _tree(root: type[Refusal]) -> Iterator[type[Refusal]]:
    for branch in root.__subclasses__():
        # What a client raises on its side never travels
        if branch.__module__ == errors.__name__:
            yield branch
            yield from _tree(branch)


def responses(*refusals: type[Refusal]) -> dict[int | str, dict[str, Any]]:
    """The documented problems of a route, by status."""
    by_status: dict[int | str, dict[str, Any]] = {}
    for refusal in refusals:
        line = f"`{refusal.code}`: {refusal.title()}"
        entry = by_status.setdefault(
            int(status_of(refusal)),
            {
                "description": "",
                "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            },
        )
        entry["description"] = f"{entry['description']}\n\n{line}".strip()
    return by_status


def problem(
    code: str, title: str, status: int, detail: str, members: Mapping[str, object]
) -> JSONResponse:
    """A problem as an answer; members that are None are left out.

    A member `retry_after` is sent as a header too; `quota`, the requests that `policy` allows a
    minute, as a header only.
    """
    body = {
        "type": f"{PROBLEMS_PAGE}#{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
    } | {name: member for name, member in members.items() if member is not None}
    headers: dict[str, str] = {}
    if status == HTTPStatus.SERVICE_UNAVAILABLE or "retry_after" in body:
        headers["Retry-After"] = str(body.get("retry_after", RETRY_SECONDS))
    if "quota" in body:
        # draft-ietf-httpapi-ratelimit-headers-10
        policy, quota = body.pop("policy"), body.pop("quota")
        headers["RateLimit-Policy"] = f'"{policy}";q={quota};w=60'
        headers["RateLimit"] = f'"{policy}";r=0;t={body["retry_after"]}'
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if status in _BODY_LEFT:
        # What is still on its way would be taken for the next request.
        headers["Connection"] = "close"
    return JSONResponse(body, status_code=status, media_type=MEDIA_TYPE, headers=headers)


def of_refusal(refusal: Refusal) -> JSONResponse:
    """The answer to a refused request."""
    value = None if refusal.field is None else as_json(refusal.value)
    return problem(
        refusal.code,
        refusal.title(),
        status_of(type(refusal)),
        refusal.detail,
        {"field": refusal.field, "rule": refusal.rule, "value": value, **refusal.more},
    )


def of_validation(found: Sequence[Any]) -> JSONResponse:
    """The answer to a request whose form is wrong; the input is quoted, never echoed as JSON.

    At most MOST_TOLD faults are told, the others are counted.
    """
    errors_found = [
        {
            "field": _place(error["loc"]),
            "rule": error["msg"],
            "value": as_json(error.get("input")),
        }
        for error in found[:MOST_TOLD]
    ]
    first: dict[str, Any] = errors_found[0] if errors_found else {}
    return problem(
        errors.InvalidValue.code,
        errors.InvalidValue.title(),
        HTTPStatus.UNPROCESSABLE_ENTITY,
        f"{first.get('field') or 'The request'}: {first.get('rule', 'not understood')}.",
        {**first, "errors": errors_found, "total_errors": len(found)},
    )


def described(contract: dict[str, Any]) -> dict[str, Any]:
    """The contract with the errors this service really sends, in place of the framework's."""
    schemas = contract["components"]["schemas"]
    template = "#/components/schemas/{model}"
    defined = Problem.model_json_schema(ref_template=template)
    schemas |= defined.pop("$defs") | {"Problem": defined}
    listed = schemas["PoolIn"]["properties"]["items"]["anyOf"][0]
    schemas["Item"] = listed["items"]
    listed["items"] = {"$ref": "#/components/schemas/Item"}
    contract["components"]["parameters"] = {"X-Request-ID": dict(ID)}
    contract["components"]["headers"] = {
        name: {"description": text, "schema": {"type": "string"}} for name, text in LIMITS.items()
    }
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    invalid = responses(errors.InvalidValue)[int(HTTPStatus.UNPROCESSABLE_ENTITY)]
    for operations in contract["paths"].values():
        for operation in operations.values():
            answers = operation["responses"]
            _without_items(answers)
            for parameter in operation.get("parameters", ()):
                _left_out(parameter["schema"])
            if needed := operation.get("security"):
                answers |= _closed(needed)
                _also(answers, errors.RateLimited, errors.DatabaseUnavailable)
                _also(answers, errors.SchemaBehind, errors.Stopping)
                answers["429"]["headers"] = {
                    name: {"$ref": f"#/components/headers/{name}"} for name in LIMITS
                }
            if "requestBody" in operation:
                _also(answers, errors.BodyTooSlow, errors.UploadTooLarge, errors.UnsupportedFormat)
            operation.setdefault("parameters", []).append(dict(REQUEST_ID))
            if "304" in answers:
                answers["200"]["headers"] = {"ETag": dict(ETAG)}
            if created := answers.get("201"):
                created["headers"] = {"Location": dict(LOCATION)}
            if MEDIA_TYPE not in answers.get("422", {}).get("content", {MEDIA_TYPE: None}):
                answers["422"] = invalid
            _also(answers, errors.InvalidValue)
    return contract


def _without_items(answers: dict[str, Any]) -> None:
    """Remove the word for a stream's events, which the framework writes and OpenAPI 3.1 lacks."""
    for answer in answers.values():
        for content in answer.get("content", {}).values():
            content.pop("itemSchema", None)


def _left_out(schema: dict[str, Any]) -> None:
    """Remove null from a parameter's types: it may be left out, but no text is null."""
    kept = [branch for branch in schema.get("anyOf", ()) if branch != {"type": "null"}]
    if len(kept) == 1:
        del schema["anyOf"]
        schema |= kept[0]


def _also(answers: dict[str, Any], *refusals: type[Refusal]) -> None:
    """Add the problems to those told already."""
    for refusal in refusals:
        ((status, answer),) = responses(refusal).items()
        present = answers.setdefault(str(status), answer)
        if answer["description"] not in present["description"]:
            present["description"] += f"\n\n{answer['description']}"


def _closed(needed: list[dict[str, list[str]]]) -> dict[str, Any]:
    """Return the answers to callers without a key, or without the scope that the route needs."""
    refusals: list[type[Refusal]] = [errors.Unauthenticated]
    if any(scope for requirement in needed for scope in requirement.values()):
        refusals.append(errors.ScopeMissing)
    return {str(status): answer for status, answer in responses(*refusals).items()}


class RefusesWhenStopping:
    """A request that is given up because the server stops is refused; others pass.

    ``under_way`` holds a future of every request, done when the request is.
    """

    def __init__(self, app: ASGIApp, under_way: set[asyncio.Future[None]]) -> None:
        self.app = app
        self.under_way = under_way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        answered = False
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        done = asyncio.get_running_loop().create_future()
        self.under_way.add(done)

        async def noted(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self.app(scope, receive, noted)
        except asyncio.CancelledError:
            if answered:
                raise
            refusal = errors.Stopping("The server is being stopped; send the request again.")
            await of_refusal(refusal)(scope, receive, send)
        finally:
            self.under_way.remove(done)
            done.set_result(None)


def install(app: FastAPI) -> None:
    """Let every error of this application leave as a problem."""

    async def refused(_: Request, error: Exception) -> JSONResponse:
        return of_refusal(error) if isinstance(error, Refusal) else _unexpected()

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        found = error.errors() if isinstance(error, RequestValidationError) else ()
        return of_validation(found)

    async def http(request: Request, error: Exception) -> JSONResponse:
        if not isinstance(error, HTTPException):
            return _unexpected()
        answer = _of_http(error)
        if answer.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            # The framework names those of one route only, of the several that a path may have.
            allowed = await asyncio.to_thread(_methods, request)
            answer.headers.update({"Allow": allowed} if allowed else {})
        return answer

    async def of_system(_: Request, error: Exception) -> JSONResponse:
        if isinstance(error, OSError) and error.errno in _FULL:
            return of_refusal(errors.DiskFull("There is no room for the request's temporary file."))
        raise error

    async def unexpected(request: Request, _: Exception) -> JSONResponse:
        if await is_behind(request):
            return of_refusal(errors.SchemaBehind(BEHIND))
        return _unexpected()

    app.add_exception_handler(Refusal, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(OSError, of_system)
    # Starlette raises the error again after this answer, so that the server logs it.
    app.add_exception_handler(Exception, unexpected)


async def is_behind(request: Request) -> bool:
    """Return whether tables of another version may be why a request failed."""
    behind: bool = await request.app.state.context.database.behind()
    return behind


def _place(location: Sequence[object]) -> str:
    # The first part says body, path or query: told only where nothing else is.
    # A capital begins the name of a body's variant, which is no part of the path of a field.
    in_body = location[:1] == ("body",)
    parts = [str(part) for part in location if not (in_body and str(part)[:1].isupper())]
    return ".".join(parts[1:]) or ".".join(parts)


def _of_http(error: HTTPException) -> JSONResponse:
    status = HTTPStatus(error.status_code)
    if isinstance(error, RefusedBody):
        return of_refusal(error.refusal)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return of_refusal(errors.UploadTooLarge(str(error.detail)))
    if status == HTTPStatus.BAD_REQUEST:
        # The framework's word for a body that is no JSON in ways its parser does not locate.
        return of_refusal(
            errors.InvalidValue(
                "The body cannot be read.",
                field="body",
                rule="JSON in UTF-8, not nested a thousand levels deep",
                value=error.detail,
            )
        )
    code = status.phrase.lower().replace(" ", "_").replace("-", "_")
    answer = problem(code, status.phrase, status, str(error.detail), {})
    answer.headers.update(error.headers or {})
    return answer


def _methods(request: Request) -> str:
    """Return the methods of the request's path in the contract; empty if it is not there."""
    path = getattr(request.scope.get("route"), "path", None)
    known = {method.upper() for method in request.app.openapi()["paths"].get(path, ())}
    return ", ".join(sorted(known | {"HEAD"} if "GET" in known else known))


def _unexpected() -> JSONResponse:
    return problem(
        "internal_error",
        "The service failed.",
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "An error of this service kept it from answering. The request may have taken effect: look"
        " before you send it again.",
        {},
    )
