"""Sessions side by side, on the wire: what holds of one, of all, of those picked after looking."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from celeus.api.access.parameters import Reads, session_id_of
from celeus.api.sessions.opening_models import QuestionSide
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
    """One session: alone, beside all others of its project, and where it is shown."""

    session: str = Field(description="`ses_` and 32 hexadecimal digits.")
    name: str | None = Field(description="What people call the session; null where it has no name.")
    place: int | None = Field(
        description="Its number, from 1 on, among the sessions that the project opened with a"
        " question, for good; null where it was asked nothing: it is not shown, and counts for"
        " nothing."
    )
    round: int = Field(description="The last round in its interval.")
    sequence: int = Field(description="Number of the last event in its ledger.")
    estimate: float = Field(description="Of its mean loss.")
    evidence: bool = Field(
        description="The session gives an interval at any level. Without, it is shown with that of"
        " `together`, however many are shown."
    )
    alone: ClaimAlone = Field(
        description="The session by itself, as if no other had been looked at."
    )
    together: ClaimShown | None = Field(
        description="Holds at once with those of all others of the project; null without a place."
    )
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

    level: float = Field(
        description="Expected share of false ones among those shown, at most: the project's, fixed"
        " when it was made."
    )
    opened: int = Field(
        description="Sessions that the project has opened with a question, those deleted since"
        " included."
    )
    shown: int = Field(description="How many are shown.")
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
    session: Annotated[list[str], _ids("A session of the project; repeat it, once a session.")],
    shown: Annotated[
        list[str] | None,
        _ids(
            "Those picked to be shown; by default the most that answer all they were asked, at the"
            " level of so many."
        ),
    ] = None,
) -> dict[str, Any]:
    """Among many sessions the ones that look best are the lucky ones, too.

    Of those shown, at most `level` are false in the mean, whenever you look, whatever they were
    picked by, and however many sessions the project opens: where K are shown, the t-th that it
    opened with a question is shown at `level` K/(t (t + 1)), at most `level`.
    """
    family = [session_id_of(one) for one in session]
    picked = [session_id_of(one) for one in shown or []]
    answer = await insights.claims(context, family, picked)
    return {
        "level": answer.level,
        "opened": answer.opened,
        "shown": len(answer.shown),
        "promises": answer.promises._asdict(),
        "claims": [_claim(answer, at) for at in range(len(family))],
    }


def _claim(answer: insights.FamilyPage, at: int) -> dict[str, Any]:
    document, said, count = answer.documents[at], answer.said[at], len(answer.shown)
    return {
        "session": document["id"],
        "name": document["name"],
        "place": said.place,
        "evidence": said.evidence,
        "round": said.alone["round"],
        "sequence": said.alone["sequence"],
        "estimate": said.alone["estimate"],
        "alone": {name: said.alone[name] for name in ("level", "lower", "upper")},
        "together": said.shown(answer.level, 1),
        "shown": said.shown(answer.level, count) if at in answer.shown else None,
    }
