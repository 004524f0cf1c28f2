"""Sessions side by side, on the wire: what holds of one, of all, of those picked after looking."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from celeus.api.access.parameters import Reads, session_id_of
from celeus.api.sessions.session_models import QuestionSide
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.errors import Busy, InvalidValue, SessionNotFound
from celeus.operations.insights import claims as insights

router = APIRouter(prefix="/v1/claims", tags=["insights"], route_class=JsonRoute)


class ClaimDecision(BaseModel):
    """The answer to a question at the level shown."""

    side: QuestionSide = Field(
        description="The question asked: whether the mean loss is `at_most` or `at_least` this."
    )
    threshold: float = Field(description="Threshold of the question, on the scale of the losses.")
    answer: Literal["yes", "no", "undecided"] = Field(description="At this level, and so far.")


class ClaimAlone(BaseModel):
    """What the session says by itself, at every moment."""

    level: float = Field(description="The session's alpha.")
    lower: float = Field(description="Lower end of the interval at that level.")
    upper: float = Field(description="Upper end of the interval at that level.")


class ClaimShown(BaseModel):
    """What the session says at a level that several share, at this moment."""

    level: float = Field(
        description="Probability with which this interval alone may miss the truth."
    )
    lower: float = Field(description="Lower end of the interval at that level.")
    upper: float = Field(description="Upper end of the interval at that level.")
    answers: list[ClaimDecision] = Field(description="To its questions, in their order.")
    verdict: (
        Literal["a_at_least_as_good", "b_at_least_as_good", "equivalent", "undecided"] | None
    ) = Field(description="On two systems, at this level; null where none is asked for.")


class SessionClaim(BaseModel):
    """One session: alone, beside all others, and where it is shown."""

    session: str = Field(description="`ses_` and 32 hexadecimal digits.")
    name: str | None = Field(description="What people call the session; null where it has no name.")
    round: int = Field(description="The last round in its interval.")
    sequence: int = Field(description="Number of the last event in its ledger.")
    estimate: float = Field(description="Of its mean loss.")
    evidence: bool = Field(
        description="The session gives an interval at any level. Without, it has one at the level"
        " divided by the number of sessions, however many are shown."
    )
    alone: ClaimAlone = Field(
        description="The session by itself, as if no other had been looked at."
    )
    together: ClaimShown = Field(description="Holds at once with those of all others.")
    shown: ClaimShown | None = Field(
        description="Where it is shown with others; null where it is not shown."
    )


class ClaimPromises(BaseModel):
    """What holds, in plain words."""

    one: str = Field(description="Of a session by itself.")
    all: str = Field(description="Of all at once.")
    picked: str = Field(description="Of those picked after looking.")


class Claims(BaseModel):
    """Sessions side by side."""

    level: float = Field(description="Expected share of false ones among those shown, at most.")
    sessions: int = Field(description="How many there are to pick from.")
    shown: int = Field(description="How many are shown.")
    shown_level: float | None = Field(
        description="Level of what is shown: `level` times the share that is; null where none is."
    )
    promises: ClaimPromises = Field(description="The guarantee in plain words.")
    claims: list[SessionClaim] = Field(description="In the order they were named in.")


def _ids(description: str) -> Any:  # noqa: ANN401 -- what FastAPI's Query returns
    return Query(description=description, max_length=insights.MOST_SESSIONS)


@router.get(
    "",
    operation_id="get_claims",
    summary="Which sessions may be shown together, and at which level",
    response_model=Claims,
    responses=responses(SessionNotFound, InvalidValue, Busy),
)
async def get_claims(
    context: Reads,
    session: Annotated[
        list[str], _ids("Every session that was looked at; repeat it, once a session.")
    ],
    shown: Annotated[
        list[str] | None,
        _ids(
            "Those picked to be shown; by default the most that answer all they were asked, at the"
            " level of so many."
        ),
    ] = None,
    level: Annotated[
        float, Query(ge=1e-4, le=0.5, description="Share of false ones among those shown.")
    ] = 0.05,
) -> dict[str, Any]:
    """Among many sessions the ones that look best are the lucky ones, too.

    Of those shown, at most `level` are false in the mean, whatever they were picked by.
    """
    family = [session_id_of(one) for one in session]
    picked = [session_id_of(one) for one in shown or []]
    answer = await insights.claims(context, family, picked, level)
    return {
        "level": answer.level,
        "sessions": len(family),
        "shown": len(answer.shown),
        "shown_level": answer.shown_level,
        "promises": answer.promises._asdict(),
        "claims": [_claim(answer, at) for at in range(len(family))],
    }


def _claim(answer: insights.FamilyPage, at: int) -> dict[str, Any]:
    document, said, count = answer.documents[at], answer.said[at], len(answer.documents)
    least = answer.level / count
    shown = None
    if answer.shown_level is not None and at in answer.shown:
        own = said.at[len(answer.shown) - 1]
        shown = own | {"level": answer.shown_level if said.evidence else least}
    return {
        "session": document["id"],
        "name": document["name"],
        "evidence": said.evidence,
        "round": said.alone["round"],
        "sequence": said.alone["sequence"],
        "estimate": said.alone["estimate"],
        "alone": {name: said.alone[name] for name in ("level", "lower", "upper")},
        "together": said.at[0] | {"level": least},
        "shown": shown,
    }
