"""What routes ask for: the rooms, the scope they need, and ids taken from the path."""

from typing import Annotated, Any, cast
from uuid import UUID

from fastapi import Depends, Path, Query, Request

from app.api.auth import Administers, CallerOf, Labels, Manages, Reads
from app.api.ids import parsed
from app.errors import InvalidValue, PoolNotFound, SessionNotFound
from app.operations.rooms import Rooms

__all__ = [
    "NO_NUL",
    "PAGE_DEFAULT",
    "PAGE_MOST",
    "Administers",
    "AfterPool",
    "AfterSession",
    "CallerOf",
    "Labels",
    "Limit",
    "Manages",
    "OpenRooms",
    "PoolId",
    "Reads",
    "SessionId",
    "cursor_of",
    "form_of",
    "pool_id_of",
    "session_id_of",
]

PAGE_DEFAULT = 100
PAGE_MOST = 1000
NO_NUL = r"^[^\x00]*$"
"""Pattern of texts that are kept: the database cannot hold U+0000."""

# Dependencies are `async def` although they wait for nothing: others would cost a thread each.


async def _open_rooms(request: Request) -> Rooms:
    """The rooms `create_app` has made, for a route that needs no key."""
    return cast("Rooms", request.app.state.rooms)


def pool_id_of(wire: str) -> UUID:
    """UUID in the id of a pool; a malformed id is the id of no pool."""
    found = parsed("pool", wire)
    if found is None:
        raise PoolNotFound(
            "There is no pool of this id.",
            field="pool_id",
            rule="`pool_` and 32 hexadecimal digits",
            value=wire,
        )
    return found


def session_id_of(wire: str) -> UUID:
    """UUID in the id of a session; a malformed id is the id of no session."""
    found = parsed("ses", wire)
    if found is None:
        raise SessionNotFound(
            "There is no session of this id.",
            field="session_id",
            rule="`ses_` and 32 hexadecimal digits",
            value=wire,
        )
    return found


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


async def _pool_of_path(
    pool_id: Annotated[
        str,
        Path(
            description="Id of the pool.",
            examples=["pool_019aa3c4d5e67f8091a2b3c4d5e6f708"],
            json_schema_extra=form_of("pool"),
        ),
    ],
) -> UUID:
    return pool_id_of(pool_id)


async def _session_of_path(
    session_id: Annotated[
        str,
        Path(
            description="Id of the session.",
            examples=["ses_019aa3c4d5e67f8091a2b3c4d5e6f708"],
            json_schema_extra=form_of("ses"),
        ),
    ],
) -> UUID:
    return session_id_of(session_id)


OpenRooms = Annotated[Rooms, Depends(_open_rooms)]
PoolId = Annotated[UUID, Depends(_pool_of_path)]
SessionId = Annotated[UUID, Depends(_session_of_path)]
AfterPool = Annotated[
    str | None, Query(description="`next` of the page before.", json_schema_extra=form_of("pool"))
]
AfterSession = Annotated[
    str | None, Query(description="`next` of the page before.", json_schema_extra=form_of("ses"))
]
Limit = Annotated[int, Query(ge=1, le=PAGE_MOST, description="Entries of a page.")]
