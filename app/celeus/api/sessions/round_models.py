"""Requests of judges and their answers, as the contract has them; the routes are in `rounds`."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic.config import JsonDict

from celeus.api.access.parameters import NAME, NO_NUL
from celeus.api.sessions.opening_models import AS_WHOLE, STRICT
from celeus.api.sessions.session_models import SESSION, BlindSession, Session, SessionState
from celeus.api.wire.records import Time
from celeus.core.plans.success import MOST_RUNS_A_DRAW
from celeus.core.pools.systems import MOST, MOST_GRADES, RESERVED, TIES
from celeus.core.pools.table_pool import MOST_METRICS
from celeus.core.session.outcome import Judgement
from celeus.core.session.panel import TURNS
from celeus.errors import InvalidValue

MOST_OBSERVATIONS = 1000
LONGEST_COMMENT = 2000
MOST_HELD = 256
DRAW: JsonDict = {
    "round": 413,
    "item": {"index": 88, "id": "digit-0148", "payload": {"text": "Which digit is this?"}},
    "expires_at": "2026-11-21T09:35:00.000000+00:00",
}
PAIR_DRAW: JsonDict = {
    "round": 62,
    "item": {"index": 17, "id": "question-17", "payload": {"question": "Capital of Australia?"}},
    "left": {"answer": "Sydney.", "payload": None},
    "right": {"answer": "Canberra.", "payload": None},
    "expires_at": "2026-11-21T09:35:00.000000+00:00",
}

SAYS = "loss, label, losses, preference and unjudgeable"
"""Members of which a judgement has exactly one; null counts as left out.

The contract says so in words: of alternatives in a schema, generators of clients make a type each,
or drop the request.
"""

Worker = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        pattern=NAME,
        description="Who judges; its own draws come back to it. A name counts within its key.",
    ),
]
RoundNumber = Annotated[int, Field(ge=1, le=2**31 - 1), AS_WHOLE]
Label = Annotated[int, Field(ge=0, le=2**31 - 1), AS_WHOLE]
Held = Annotated[int, Field(ge=0, le=MOST_HELD), AS_WHOLE]
LeaseSeconds = Annotated[
    int | None,
    Field(
        ge=1,
        le=604_800,
        description="For how long to hold draws, at most the session's `lease_seconds`, which is"
        " the default. A program asks for little, such as 30, and renews it while it thinks: what"
        " it held when it died is soon somebody else's.",
    ),
    AS_WHOLE,
]


class OpenRuns(BaseModel):
    """Runs made of a draw of several, none of which settles it."""

    model_config = ConfigDict(**STRICT)

    round: RoundNumber = Field(description="A round that the worker holds.")
    runs: int = Field(description="How many were made.", ge=1, lt=MOST_RUNS_A_DRAW)


class NextRequest(BaseModel):
    """Ask for draws to judge."""

    model_config = ConfigDict(
        **STRICT, json_schema_extra={"examples": [{"worker": "judge-1", "count": 1}]}
    )

    worker: Worker
    count: Held = Field(
        1,
        description="How many draws to hold at most; 0 renews the leases of what the worker holds,"
        " and gives it nothing more.",
    )
    lease_seconds: LeaseSeconds = None
    runs: list[OpenRuns] = Field(
        [],
        max_length=MOST_HELD,
        description="Of draws of several runs (`success`) how many were made so far, where none"
        " settles the draw: who goes on with it makes none of them again.",
    )


class ReleaseRequest(BaseModel):
    """Give draws back: those of a worker, or the rounds named."""

    model_config = ConfigDict(
        **STRICT,
        json_schema_extra={"examples": [{"worker": "judge-1"}, {"rounds": [412, 413]}]},
    )

    worker: Worker | None = Field(
        None,
        description="Whose draws, among those that this key holds; without it those of whoever"
        " holds the `rounds`, which takes scope `manage`.",
    )
    rounds: list[RoundNumber] | None = Field(
        None,
        min_length=1,
        max_length=MOST_HELD,
        description="Which draws; without them all that the worker holds.",
    )
    pass_on: bool = Field(
        False,
        alias="pass",
        description="Leave them to somebody else: this worker is not handed them again for a"
        " lease's time, unless there is nothing else to hand out. They stay drawn, and whatever is"
        " judged after them waits for them.",
    )

    @model_validator(mode="after")
    def _of_somebody(self) -> Self:
        if self.worker is None and self.rounds is None:
            rule = "a worker, rounds, or both"
            raise InvalidValue(f"give {rule}", field="body", rule=rule)
        return self


class ReleaseAnswer(BaseModel):
    """The rounds given back, which others may take now."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"released": [412, 413]}]})

    released: list[int] = Field(description="Rounds that were given back, in order.")


class Losses(BaseModel):
    """The losses of two systems: those of `left` and `right` as the judge saw them, or of a and b.

    Give `left` and `right`, or `a` and `b`. A key without scope `read` is not told which is which,
    and speaks of left and right.
    """

    model_config = ConfigDict(**STRICT, json_schema_extra={"examples": [{"left": 0, "right": 1}]})

    left: float | None = Field(
        None,
        description="Loss of the answer that the judge saw on the left, on one system's scale.",
    )
    right: float | None = Field(
        None, description="Loss of the answer on the right, on the same scale."
    )
    a: float | None = Field(None, description="Loss of the pool's system a, on the same scale.")
    b: float | None = Field(None, description="Loss of the pool's system b, on the same scale.")

    @model_validator(mode="after")
    def _of_both(self) -> Self:
        if set(self.given) not in ({"left", "right"}, {"a", "b"}):
            rule = "`left` and `right`, or `a` and `b`"
            raise InvalidValue(f"give {rule}", field="losses", rule=rule)
        return self

    @property
    def given(self) -> dict[str, float]:
        """The two losses by name."""
        return self.model_dump(exclude_none=True)


SystemLosses = Annotated[
    dict[Annotated[str, Field(max_length=200)], float | None],
    Field(min_length=1, max_length=max(MOST, MOST_METRICS)),
]
ShownLosses = Annotated[list[float], Field(min_length=1, max_length=MOST)]


def _losses_form(losses: object) -> str:
    """Return the form that losses have, so that errors name that one."""
    if isinstance(losses, list):
        return "ShownLosses"
    named = isinstance(losses, dict) and bool(losses) and not losses.keys() & {*RESERVED}
    return "SystemLosses" if named else "Losses"


AnyLosses = Annotated[
    Annotated[Losses, Tag("Losses")]
    | Annotated[SystemLosses, Tag("SystemLosses")]
    | Annotated[ShownLosses, Tag("ShownLosses")],
    Discriminator(_losses_form),
]


class _Judged(BaseModel):
    model_config = STRICT

    round: RoundNumber = Field(description="The `round` of the draw that is judged.")
    loss: float | None = Field(
        None, description="Where a judgement is one number: the loss, on the scale of the pool."
    )
    losses: AnyLosses | None = Field(
        None,
        description="Of two systems the loss of each; of several the loss of each by its name, or"
        " of the `answers` that `next` shows, in their order. Of metrics the loss of each by its"
        " name, null where nobody can tell it.",
    )
    preference: Literal["left", "tie", "both_bad", "right", "a", "b"] | None = Field(
        None,
        description="Which of two answers is better, where the pool's loss is a preference: `left`"
        " and `right` as `next` shows them, or `a` and `b`, which a key without scope `read` is not"
        " told. `both_bad` counts as a `tie` and is kept apart from it.",
    )
    grade: Annotated[int, Field(ge=1, le=MOST_GRADES), AS_WHOLE] | None = Field(
        None, description="By how many grades it is better, up to the pool's `upper`; default: 1."
    )
    label: Label | None = Field(None, description="True class; the loss is computed from it.")
    unjudgeable: str | None = Field(
        None, min_length=1, max_length=2000, pattern=NO_NUL, description="Why no judge can tell."
    )
    turn: Annotated[int, Field(ge=1, le=TURNS), AS_WHOLE] | None = Field(
        None, description="Of a panel that seeks consensus: the `turn` of the draw; default: 1."
    )
    runs: Annotated[int, Field(ge=1, le=MOST_RUNS_A_DRAW), AS_WHOLE] | None = Field(
        None,
        description="How many runs were made of the draw, where it has several; a correction"
        " leaves them as they are.",
    )
    comment: str | None = Field(
        None,
        max_length=LONGEST_COMMENT,
        pattern=NO_NUL,
        description="What the judge wants to add, for those who see the session: up to 2 000"
        " characters. It is kept beside the ledger: no certificate has it, and it can be erased."
        " The last one said stands, also with the same judgement again; an empty one erases it.",
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        members = (self.loss, self.label, self.losses, self.preference, self.unjudgeable)
        if sum(given is not None for given in members) != 1:
            rule = f"exactly one of {SAYS}"
            raise InvalidValue(f"give {rule}", field="body", rule=rule)
        return self

    def judgement(self) -> Judgement:
        if self.grade is not None and self.preference in {None, *TIES}:
            raise InvalidValue(
                "A grade says by how much one of two answers is better.",
                field="grade",
                rule="left out, but with a preference for one of the two",
                value=self.grade,
            )
        members = {name: getattr(self, name) for name in Judgement.__dataclass_fields__}
        losses = self.losses.given if isinstance(self.losses, Losses) else self.losses
        return Judgement(**members | {"losses": losses})


class OneObservation(_Judged):
    """A judgement of one round, and how many next draws to hold afterwards.

    Of loss, label, losses, preference and unjudgeable it says exactly one.
    """

    model_config = ConfigDict(
        **STRICT,
        json_schema_extra={
            "examples": [
                {"round": 412, "loss": 1, "worker": "judge-1", "next": 1},
                {"round": 62, "preference": "right", "worker": "judge-1", "next": 1},
                {"round": 3, "losses": {"faithful": 0, "stars": None}, "worker": "judge-1"},
            ]
        },
    )

    worker: Worker
    next: Held = Field(
        0, description="How many draws to hold afterwards; 0, the default, takes no new one."
    )
    lease_seconds: LeaseSeconds = None


class ListedObservation(_Judged):
    """A judgement in a list: exactly one of loss, label, losses, preference and unjudgeable."""


class ObservationList(BaseModel):
    """Up to 1 000 judgements, taken all or not at all."""

    model_config = ConfigDict(
        **STRICT,
        json_schema_extra={
            "examples": [
                {
                    "observations": [{"round": 1, "loss": 0}, {"round": 2, "loss": 1}],
                    "worker": "judge-1",
                    "next": 2,
                }
            ]
        },
    )

    observations: list[ListedObservation] = Field(
        min_length=1,
        max_length=MOST_OBSERVATIONS,
        description="Judgements of different rounds, 1 to 1 000.",
    )
    worker: Worker
    next: Held = Field(
        0, description="How many draws to hold afterwards; 0, the default, takes no new one."
    )
    lease_seconds: LeaseSeconds = None


def _form(body: object) -> str:
    """Return the form of observation that a body has, so that errors name that one."""
    listed = isinstance(body, ObservationList) or (
        isinstance(body, dict) and "observations" in body
    )
    return "ObservationList" if listed else "OneObservation"


Observed = Annotated[
    Annotated[OneObservation, Tag("OneObservation")]
    | Annotated[ObservationList, Tag("ObservationList")],
    Discriminator(_form),
]


class AmendmentRequest(_Judged):
    """A correction of a judged round; the interval is folded again from there.

    Of loss, label, losses, preference and unjudgeable it says exactly one.
    """

    model_config = ConfigDict(
        **STRICT,
        json_schema_extra={
            "examples": [{"round": 7, "loss": 0, "author": "ada", "reason": "misread the image"}]
        },
    )

    author: str | None = Field(
        None,
        min_length=1,
        max_length=128,
        pattern=NAME,
        description="Who says so; default: the name of the key. Whoever only judges signs with"
        " that.",
    )
    worker: Worker | None = Field(
        None,
        description="Of a panel, while the round is not decided: the rater whose judgement it is;"
        " default: the name of the key.",
    )
    reason: str = Field(
        min_length=1,
        max_length=2000,
        pattern=NO_NUL,
        description="Why the first judgement was wrong, for the ledger: up to 2 000 characters.",
    )


class DrawnItem(BaseModel):
    """The item to judge."""

    index: int = Field(description="Place of the item in its pool, from 0.")
    id: str = Field(description="The item's own id, as it was uploaded.")
    payload: Any = Field(
        None,
        description="What the judge is shown, as it was uploaded; null where the item has none.",
    )


class DrawnAnswer(BaseModel):
    """An answer to be judged, and nothing that tells whose it is."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"answer": "Canberra.", "payload": None}]}
    )

    answer: str | None = Field(
        description="The system's answer as text; null where there is only a payload."
    )
    payload: Any = Field(
        None, description="What else was uploaded to be shown of this answer; null for nothing."
    )


class HeldDraw(BaseModel):
    """A draw leased to the worker until ``expires_at``."""

    round: int = Field(
        description="What the judgement names; without scope `read` a number in no order."
    )
    item: DrawnItem = Field(description="The item drawn, with what its judge is shown.")
    left: DrawnAnswer | None = Field(
        None, description="Of two systems the answer on the left: whose it is, is drawn by round."
    )
    right: DrawnAnswer | None = Field(None, description="The answer on the right.")
    answers: list[DrawnAnswer] | None = Field(
        None,
        description="Of several systems every answer once, in an order drawn by round; null where"
        " a label is asked for.",
    )
    turn: int | None = Field(
        None, description="For which time, where a panel seeks consensus; else left out."
    )
    runs: int | None = Field(
        None,
        description="Runs made already of a draw of several, none of which settles it: the next"
        " one is the run after these; else left out.",
    )
    expires_at: Time = Field(
        description="When the lease ends and another worker may get the draw; asking renews it."
    )


class NextAnswer(BaseModel):
    """Draws to judge, or the state that says why there are none."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"state": "active", "draws": [example], "retry_after": None}
                for example in (DRAW, PAIR_DRAW)
            ]
        }
    )

    state: SessionState | Literal["all_leased", "waiting"] = Field(
        description="State of the session; `all_leased`: others hold all that is left to judge;"
        " `waiting`: so many judgements wait for the oldest draw, which others hold, that nothing"
        " new is drawn."
    )
    draws: list[HeldDraw] = Field(
        description="All that the worker holds now, to be judged in any order; sorted by `round`."
    )
    retry_after: float | None = Field(description="Seconds until asking again may help.")


class ReceiptModel(BaseModel):
    """The judgement is kept; ``replayed`` when it was there before.

    ``duplicate`` when it is not, since somebody who held the draw as well was first.
    """

    round: int = Field(description="The round that was judged.")
    sequence: int | None = Field(
        description="Its place in the ledger; null for a key without scope `read`."
    )
    replayed: bool = Field(
        description="Whether the same judgement was kept before, so that nothing changed."
    )
    duplicate: bool = Field(
        description="Whether another judge, who was handed the same draw, has judged it first: that"
        " judgement counts, and this one is not kept."
    )


class ObserveAnswer(NextAnswer):
    """Receipt, the session after it, and the next draws.

    Of the session a key without scope `read` is told id and state only.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "receipt": {
                        "round": 412,
                        "sequence": 828,
                        "replayed": False,
                        "duplicate": False,
                    },
                    "session": SESSION,
                    "state": "active",
                    "draws": [DRAW],
                    "retry_after": None,
                }
            ]
        }
    )

    receipt: ReceiptModel | None = Field(
        None, description="Of a single judgement or correction; null where a list was sent."
    )
    receipts: list[ReceiptModel] | None = Field(
        None, description="Of a list, in its order; null where a single judgement was sent."
    )
    session: Session | BlindSession = Field(
        description="Where the session stands after the judgement."
    )
