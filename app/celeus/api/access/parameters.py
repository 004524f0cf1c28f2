"""Parameters of routes: the context, the scope they need, ids in the path, known query names."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, cast
from uuid import UUID

from fastapi import Depends, Path, Query, Request
from fastapi.dependencies.models import Dependant
from pydantic import BaseModel, PlainValidator

from celeus.api.access.auth import Administers, CallerOf, Corrects, Labels, Manages, Reads
from celeus.api.wire.records import parsed
from celeus.errors import (
    DeliveryNotFound,
    InvalidValue,
    InvitationNotFound,
    NotFound,
    PoolNotFound,
    PreconditionFailed,
    SessionNotFound,
    ShareNotFound,
    WebhookNotFound,
)
from celeus.operations.runtime.context import Context

__all__ = [
    "NAME",
    "NO_NUL",
    "PAGE_DEFAULT",
    "PAGE_MOST",
    "Administers",
    "AfterPool",
    "AfterSession",
    "Archived",
    "CallerOf",
    "Corrects",
    "DeliveryId",
    "InvitationId",
    "Labels",
    "Limit",
    "Manages",
    "OpenContext",
    "PoolId",
    "Reads",
    "SessionId",
    "ShareId",
    "WebhookId",
    "cursor_of",
    "delivery_id_of",
    "form_of",
    "invitation_id_of",
    "only_known",
    "pool_id_of",
    "session_id_of",
    "share_id_of",
    "webhook_id_of",
]

PAGE_DEFAULT = 100
PAGE_MOST = 1000
NO_NUL = r"^[^\x00]*$"
"""Pattern of texts that are kept: the database cannot hold U+0000."""
NAME = r"^[^\x00\u202a-\u202e\u2066-\u2069]*$"
"""Pattern of names, which stand beside other text and must not turn its direction."""
CONDITIONS = frozenset({"Idempotency-Key", "If-Match", "If-None-Match", "If-Unmodified-Since"})
"""Headers of a change that a route keeps or refuses."""

# Dependencies are `async def` although they wait for nothing: others would cost a thread each.


async def _open_context(request: Request) -> Context:
    """The context `create_app` opened, for a route that needs no key."""
    return cast("Context", request.app.state.context)


def _id_of(noun: str, prefix: str, refusal: type[NotFound]) -> Callable[..., UUID]:
    """Return the reader of ids of this kind; a malformed one is the id of nothing."""

    def read(wire: str, field: str = f"{noun}_id") -> UUID:
        found = parsed(prefix, wire)
        if found is None:
            raise refusal(
                f"There is no {noun} of this id.",
                field=field,
                rule=f"`{prefix}_` and 32 hexadecimal digits",
                value=wire,
            )
        return found

    return read


pool_id_of = _id_of("pool", "pool", PoolNotFound)
session_id_of = _id_of("session", "ses", SessionNotFound)
webhook_id_of = _id_of("webhook", "hook", WebhookNotFound)
delivery_id_of = _id_of("delivery", "msg", DeliveryNotFound)
share_id_of = _id_of("share", "share", ShareNotFound)
invitation_id_of = _id_of("invitation", "inv", InvitationNotFound)


def cursor_of(prefix: str, after: str | None) -> UUID | None:
    """UUID a page begins behind; refused when no page gave it out."""
    if after is None:
        return None
    found = parsed(prefix, after)
    if found is None:
        raise InvalidValue(
            "The cursor of the page is not one of ours.",
            field="after",
            rule="`next` of the page before",
            value=after,
        )
    return found


def form_of(prefix: str) -> dict[str, Any]:
    """The form of an id, for the contract only: what has another is not found."""
    return {"pattern": f"^{prefix}_[0-9a-f]{{32}}$"}


def _in_path(noun: str, prefix: str) -> Any:  # noqa: ANN401 -- what FastAPI's Path returns
    return Path(
        description=f"The {noun} by its id: `{prefix}_` and 32 hexadecimal digits.",
        examples=[f"{prefix}_019aa3c4d5e67f8091a2b3c4d5e6f708"],
        json_schema_extra=form_of(prefix),
    )


def _read_by(of: Callable[..., UUID]) -> PlainValidator:
    """Read by a function that refuses; a dependency of its own would cost each request more."""
    return PlainValidator(of, json_schema_input_type=str)


_READ_WEBHOOK = _read_by(webhook_id_of)
_READ_DELIVERY = _read_by(delivery_id_of)
_READ_INVITATION = _read_by(invitation_id_of)
_READ_SHARE = _read_by(share_id_of)

OpenContext = Annotated[Context, Depends(_open_context)]
PoolId = Annotated[UUID, _in_path("pool", "pool"), _read_by(pool_id_of)]
SessionId = Annotated[UUID, _in_path("session", "ses"), _read_by(session_id_of)]
WebhookId = Annotated[UUID, _in_path("webhook", "hook"), _READ_WEBHOOK]
DeliveryId = Annotated[UUID, _in_path("delivery", "msg"), _READ_DELIVERY]
InvitationId = Annotated[UUID, _in_path("invitation", "inv"), _READ_INVITATION]
ShareId = Annotated[UUID, _in_path("link", "share"), _READ_SHARE]
AfterPool = Annotated[
    str | None, Query(description="`next` of the page before.", json_schema_extra=form_of("pool"))
]
AfterSession = Annotated[
    str | None, Query(description="`next` of the page before.", json_schema_extra=form_of("ses"))
]
Archived = Annotated[bool, Query(description="List archived ones, too.")]
Limit = Annotated[int, Query(ge=1, le=PAGE_MOST, description="Entries of a page.")]


def only_known(request: Request, route: Dependant) -> None:
    """Refuse query parameters that the route does not have, and conditions that it does not keep.

    A misspelt parameter would otherwise have its default (`?dryrun=true` would not be a dry run),
    and a condition that is passed over would be taken for one that held.
    """
    if request.query_params:
        _only_known_query(request, route)
    if request.method not in {"GET", "HEAD"}:
        _only_known_conditions(request, route)


def _only_known_query(request: Request, route: Dependant) -> None:
    known = set(_query_names(route))
    for name in request.query_params:
        if name not in known:
            raise InvalidValue(
                f"Unknown query parameter: {name[:100]}",
                field="query",
                rule=f"one of {', '.join(sorted(known))}" if known else "no query parameters",
                value=name,
            )


def _only_known_conditions(request: Request, route: Dependant) -> None:
    shown = {name for name in CONDITIONS if name in request.headers}
    if not shown:
        return
    for name in sorted(shown):
        if len(values := request.headers.getlist(name)) > 1:
            raise InvalidValue(
                "Of a header that comes more than once, one value alone would count.",
                field=name,
                rule="sent once",
                value=len(values),
            )
    unknown = {name for name in shown if name.lower() not in _header_names(route)}
    if "Idempotency-Key" in unknown:
        raise InvalidValue(
            "This route keeps no answers, so a repeated request is not recognised.",
            field="Idempotency-Key",
            rule="a route whose documentation names the header",
        )
    if "If-Match" in unknown and request.headers["If-Match"].strip() != "*":
        raise PreconditionFailed("This route compares no ETags; nothing was changed.")
    for name in ("If-None-Match", "If-Unmodified-Since"):
        if name in unknown:
            raise PreconditionFailed(f"{name} is not kept for changes; nothing was changed.")


def _header_names(dependant: Dependant) -> set[str]:
    """Headers that a route and all it depends on declare, in small letters."""
    names = {field.alias.lower() for field in dependant.header_params}
    return names.union(*map(_header_names, dependant.dependencies))


def _query_names(dependant: Dependant) -> Iterator[str]:
    """The parameters of a route and of all it depends on; a model stands for its fields."""
    for field in dependant.query_params:
        model = field.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            yield from (inner.alias or name for name, inner in model.model_fields.items())
        else:
            yield field.alias
    for inner in dependant.dependencies:
        yield from _query_names(inner)
