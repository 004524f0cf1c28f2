"""Instructions for judges on the wire: what they are, and how they were changed."""

from typing import Literal, Self

from fastapi import APIRouter
from pydantic import BaseModel, Field

from celeus.api.access.parameters import Reads, SessionId
from celeus.api.sessions.schema import Time
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.errors import SessionNotFound
from celeus.operations.sessions.labelling import instructions
from celeus.operations.sessions.labelling.instructions import Instructions
from celeus.operations.sessions.ledger import moment

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], route_class=JsonRoute)


class InstructionsVersion(BaseModel):
    """Instructions from a time on."""

    of: Literal["pool", "session"] = Field(description="Whose they are.")
    instructions: str | None = Field(description="Markdown; null where they were taken away.")
    key: str | None = Field(description="Id of the key that gave them.")
    at: Time = Field(description="From when on, by the clock of the database.")


class InstructionsOut(BaseModel):
    """What judges are told, and every version of it. No plan, digest or certificate has it."""

    instructions: str | None = Field(
        description="Markdown that judges are shown; null where there is none."
    )
    of: Literal["pool", "session"] | None = Field(
        description="Whose they are: those of a session take the place of its pool's."
    )
    late_changes: list[Time] = Field(
        description="When judges were given another text between two judgements of the session; its"
        " report says so. Empty of a pool."
    )
    versions: list[InstructionsVersion] = Field(description="The oldest first.")

    @classmethod
    def of_all(cls, found: Instructions) -> Self:
        """The instructions as they travel."""
        now = found.now
        return cls(
            instructions=None if now is None else now.text,
            of=None if now is None else _of(of_session=now.of_session),
            late_changes=[moment(at) for at in found.late_changes],
            versions=[
                InstructionsVersion(
                    of=_of(of_session=one.of_session),
                    instructions=one.text,
                    key=one.key_id,
                    at=moment(one.at),
                )
                for one in found.versions
            ],
        )


def _of(*, of_session: bool) -> Literal["pool", "session"]:
    return "session" if of_session else "pool"


@router.get(
    "/{session_id}/instructions",
    operation_id="get_session_instructions",
    summary="What judges of a session are told",
    responses=responses(SessionNotFound),
)
async def get_session_instructions(context: Reads, session_id: SessionId) -> InstructionsOut:
    """The instructions of the session, or else of its pool, and how they were changed."""
    found = await instructions.session_instructions(context, session_id)
    return InstructionsOut.of_all(found)
