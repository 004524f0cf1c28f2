"""The task of a session's judge: the route that the labelling page asks first."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from celeus.api.access.parameters import Labels, SessionId
from celeus.api.sessions.session_models import BlindSession
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.core.pools.losses import LossKind, LossScale
from celeus.core.pools.score import Better, Score, ends_of
from celeus.core.pools.systems import Kind, Lineup
from celeus.errors import SessionNotFound
from celeus.operations.sessions.labelling import task as tasks
from celeus.operations.sessions.labelling.task import Task

router = APIRouter(prefix="/v1/sessions", tags=["rounds"], route_class=JsonRoute)


Range = Annotated[tuple[float, float], Field(json_schema_extra={"items": {"type": "number"}})]
WordPair = Annotated[tuple[str, str], Field(json_schema_extra={"items": {"type": "string"}})]
"""Pairs in the contract; `items` is for generators that do not know `prefixItems`."""
_ENDS = "What the lowest and the highest value are called, of the score where there is one."
_WORDS = "What a loss of 0 and one of 1 are called, where there are no others."


class TaskLoss(BaseModel):
    """The kind and range of a loss; lower is better."""

    kind: LossKind = Field(description="What kind of loss a judgement gives.")
    scale: Range = Field(description="The best and the worst loss.")
    ends: WordPair = Field(description=_ENDS)


class TaskScore(BaseModel):
    """The score that the pool reports, which is the loss or, if higher is better, turned over."""

    name: str = Field(description="What it is called.")
    better: Better = Field(description="Which of its values are better.")


class Labeller(BaseModel):
    """The caller's key, and how many items were judged with it in this session."""

    name: str = Field(description="Name of the key.")
    labels: int = Field(description="Items judged with it in this session.")


class TaskComparison(BaseModel):
    """The form of judgements of two answers, and the scale of the loss of one of them."""

    judged_by: Literal["label", "losses", "preference"] = Field(
        description="Which member a judgement has: `label`, `losses` or `preference`."
    )
    kind: Kind = Field(description="Kind of loss of one answer, or `preference`.")
    scale: Range = Field(
        description="The best and the worst loss of an answer; of a preference the grades, from 0."
    )
    ends: WordPair = Field(description=_ENDS)


class TaskBest(BaseModel):
    """The form of judgements of several answers: the true class, or a loss for each answer."""

    judged_by: Literal["label", "losses"] = Field(
        description="Which member a judgement has: `label` or `losses`."
    )


class TaskLevel(BaseModel):
    """A named grade of the scale; judge it by its loss."""

    name: str = Field(description="What people call it.")
    grade: float = Field(description="In the direction that `better` says.")
    loss: float = Field(description="The loss of a judgement that means it.")
    help: str | None = Field(description="When it is the right one.")


class TaskMetric(TaskLoss):
    """One of several losses that a judgement gives; null says that nobody can tell it."""

    name: str = Field(description="The name it has in `losses` of a judgement.")
    score: TaskScore | None = Field(None, description="The score of its mean, if it has one.")
    words: WordPair = Field(description=_WORDS)


class SuccessOut(BaseModel):
    """The runs of a draw that have to succeed; the first one that settles it is the last."""

    needs: Literal["all", "any"] = Field(description="All of them, or any.")
    runs: int = Field(description="Most runs of a draw.")
    settling: float = Field(description="The loss of a run that ends its draw.")


class TaskAnswer(BaseModel):
    """The task of a judge. Nothing in it but `state` tells where the session stands."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "session": {"id": "ses_019aa0b2c3d47e5f8a9b0c1d2e3f4a5c", "state": "active"},
                    "name": "digits",
                    "loss": {"kind": "zero_one", "scale": [0, 1], "ends": ["best", "worst"]},
                    "words": ["Correct", "Wrong"],
                    "takes_labels": True,
                    "classes": 10,
                    "stands": False,
                    "runs": False,
                    "repeats": False,
                    "success": None,
                    "lease_seconds": 300,
                    "labeller": {"name": "ann", "labels": 12},
                }
            ]
        }
    )

    session: BlindSession = Field(description="Id and state of the session.")
    name: str = Field(description="Name of the session, or of its pool.")
    loss: TaskLoss | None = Field(description="Null where a judgement gives several.")
    score: TaskScore | None = Field(None, description="The score of the pool, if it has one.")
    words: WordPair = Field(description=_WORDS)
    metrics: list[TaskMetric] | None = Field(
        None, description="What a judgement gives a loss for, where there are several."
    )
    levels: list[TaskLevel] | None = Field(
        None, description="Named grades, the lowest first; null where the scale has none."
    )
    better: Better | None = Field(
        None, description="Which grade is the better one; null without `levels`."
    )
    instructions: str | None = Field(
        None,
        description="What judges are told, as Markdown: of the session, or else of its pool.",
    )
    takes_labels: bool = Field(description="A judgement may be a `label`, the true class.")
    classes: int | None = Field(description="How many classes there are, where that is known.")
    comparison: TaskComparison | None = Field(
        None, description="Of two systems: every draw has a `left` and a `right` answer."
    )
    best: TaskBest | None = Field(
        None, description="Of several systems: by `losses`, every draw has its `answers`."
    )
    rater: bool | None = Field(
        None,
        description="Whether the name of this key is that of a rater of the session's panel, who"
        " judges the items of their turn; null where there is no panel.",
    )
    stands: bool = Field(
        description="What is said of an item stands: the session takes no corrections, as one of"
        " several claims, or of several systems."
    )
    runs: bool = Field(
        description="Every judgement is of a fresh run of a system, and none is made a second time:"
        " which of two ends first may depend on how it ends."
    )
    repeats: bool = Field(
        description="Whether the same item comes again: each time the system is run afresh."
    )
    success: SuccessOut | None = Field(
        description="The runs of a draw that have to succeed; null where a draw is one run."
    )
    lease_seconds: int = Field(description="How long a draw may be held before others can get it.")
    labeller: Labeller = Field(description="Who asks, by the key.")


def answer_of(task: Task) -> TaskAnswer:
    """Return the task as the wire says it: what a judge does, and not how the session is made."""
    answer = {
        "session": task,
        "name": task.name,
        "loss": None if task.metrics else _loss(task.scale, task.score),
        "score": task.score,
        "words": task.words,
        "metrics": [
            {"name": metric.name, "score": metric.score, "words": metric.words}
            | _loss(metric.scale, metric.score)
            for metric in task.metrics
        ]
        or None,
        "levels": _levels(task),
        "better": task.score.better if task.levels and task.score else None,
        "instructions": task.instructions,
        "takes_labels": task.takes_labels,
        "classes": task.classes,
        "comparison": _comparison(task),
        "best": _best(task),
        "rater": task.rater,
        "stands": task.stands,
        "runs": task.runs,
        "repeats": task.repeats,
        "success": task.success,
        "lease_seconds": task.lease_seconds,
        "labeller": {"name": task.labeller, "labels": task.labels},
    }
    return TaskAnswer.model_validate(answer, from_attributes=True)


def _loss(scale: LossScale, score: Score | None) -> dict[str, Any]:
    ends = ends_of(scale.kind, score)
    return {"kind": scale.kind, "scale": (scale.lower, scale.upper), "ends": ends}


def _levels(task: Task) -> list[dict[str, Any]] | None:
    if task.score is None or not task.levels:
        return None
    return [
        level.to_dict() | {"loss": level.loss(task.scale, task.score)}
        for level in sorted(task.levels, key=lambda level: level.grade)
    ]


def _best(task: Task) -> dict[str, Any] | None:
    if not isinstance(task.systems, Lineup):
        return None
    return {"judged_by": "label" if task.takes_labels else "losses"}


def _comparison(task: Task) -> dict[str, Any] | None:
    systems = task.systems
    if systems is None or isinstance(systems, Lineup):
        return None
    ends = ends_of(systems.loss.kind, task.score)
    return systems.task(takes_labels=task.takes_labels) | {"ends": ends}


@router.get(
    "/{session_id}/task",
    operation_id="get_task",
    summary="What a judge has to know",
    responses=responses(SessionNotFound),
)
async def get_task(context: Labels, session_id: SessionId) -> TaskAnswer:
    """The form of a judgement, and how many items this key has judged."""
    return answer_of(await tasks.get_task(context, session_id))
