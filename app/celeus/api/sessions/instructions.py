"""Instructions for judges on the wire: what they are, and how they were changed."""

from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from celeus.api.access.parameters import Reads, SessionId
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.api.wire.records import FromRecord, Time
from celeus.errors import SessionNotFound
from celeus.operations.sessions.labelling import instructions
from celeus.operations.sessions.labelling.instructions import Instructions

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], route_class=JsonRoute)


class InstructionsVersion(FromRecord):
    """Instructions from a time on."""

    of: Literal["pool", "session"] = Field(description="Whose they are.")
    instructions: str | None = Field(
        validation_alias="text", description="Markdown; null where they were taken away."
    )
    key: str | None = Field(validation_alias="key_id", description="Id of the key that gave them.")
    at: Time = Field(description="From when on, by the clock of the database.")


class InstructionsOut(FromRecord):
    """The instructions of judges, in all versions. No plan, digest or certificate has them."""

    instructions: str | None = Field(
        validation_alias="text",
        description="Markdown that judges are shown; null where there is none.",
    )
    of: Literal["pool", "session"] | None = Field(
        description="Whose they are: those of a session take the place of its pool's."
    )
    late_changes: list[Time] = Field(
        description="When judges were given another text between two judgements of the session; its"
        " report says so. Empty of a pool."
    )
    versions: list[InstructionsVersion] = Field(description="The oldest first.")


@router.get(
    "/{session_id}/instructions",
    operation_id="get_session_instructions",
    summary="What judges of a session are told",
    response_model=InstructionsOut,
    responses=responses(SessionNotFound),
)
async def get_session_instructions(context: Reads, session_id: SessionId) -> Instructions:
    """The instructions of the session, or else of its pool, and how they were changed."""
    return await instructions.session_instructions(context, session_id)
