"""The loss of a pool on the wire, and the two systems of a comparison."""

from typing import Annotated, Literal

from pydantic import AliasPath, BaseModel, ConfigDict, Discriminator, Field, Tag

from celeus.api.access.parameters import NAME, NO_NUL, form_of, session_id_of
from celeus.api.wire.records import FromRecord
from celeus.core.pools.loss_bounds import LabelsSeen
from celeus.core.pools.losses import LossKind, LossScale
from celeus.core.pools.metrics import Metric, check_metric_name
from celeus.core.pools.score import (
    LONGEST_HELP,
    LONGEST_LEVEL,
    LONGEST_NAME,
    MOST_LEVELS,
    Better,
    Level,
    Score,
    Unit,
    declared_score,
)
from celeus.core.pools.systems import (
    FEWEST,
    MOST,
    AnySystems,
    Kind,
    Lineup,
    Normalisation,
    Systems,
)
from celeus.core.pools.table_pool import MOST_METRICS
from celeus.errors import InvalidValue
from celeus.operations.pools.earlier import BasedOn

METRICS = (
    "Several losses that one judgement gives, by name, in place of `loss`. Sessions on such a pool"
    " make a claim of each."
)
STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)

KindIn = Literal["zero_one", "cross_entropy", "bounded", "difference", "preference"]
SystemName = Annotated[str, Field(min_length=1, max_length=200, pattern=NAME)]
NORMALISATION = (
    "Only where the text of an answer decides its loss, as where a choice or a number is taken from"
    " it: when two texts are the same answer, which is then known to make no difference."
    " `whitespace` takes any run of white space for one space and none at the ends, `casefold`"
    " ignores letter case as well. Left out, equal texts are judged like others."
)


class LossIn(BaseModel):
    """Scale of the loss, of one system where there are several, fixed before any label is seen."""

    model_config = STRICT

    kind: KindIn = Field(
        description="`preference`, of two systems only: judges say which answer is better."
    )
    lower: float | None = Field(
        None, description="Left out for zero_one, cross_entropy, difference and preference."
    )
    upper: float | None = Field(
        None,
        description="Needed for cross_entropy, which is clipped there, and for bounded; 1 for a"
        " difference if left out, and for a preference, of which it is the number of grades.",
    )


class ScoreIn(BaseModel):
    """Name of the mean of the pool's losses, and whether more of it is better."""

    model_config = STRICT

    name: str = Field(
        min_length=1,
        max_length=LONGEST_NAME,
        description="Such as accuracy, or win rate: printable characters.",
    )
    better: Better = Field(
        description="`higher`: the score is lower + upper - loss, the loss's scale turned over;"
        " 1 - loss of a 0-1 loss. `lower`: it is the loss."
    )

    def of(self, scale: LossScale, systems: AnySystems | None) -> Score:
        """The same in the core's words."""
        return declared_score(self.name, self.better, scale, systems)


class LevelIn(BaseModel):
    """A named grade of the scale."""

    model_config = STRICT

    name: str = Field(
        min_length=1, max_length=LONGEST_LEVEL, pattern=NAME, description="What people call it."
    )
    grade: float = Field(
        description="Its place on the scale, in the direction of the `score`: where higher is"
        " better, `upper` is the loss `lower`."
    )
    help: str | None = Field(
        None, max_length=LONGEST_HELP, pattern=NO_NUL, description="When it is the right one."
    )


LEVELS = (
    "Named grades of a zero_one or bounded loss, 2 to 20, which the labelling page offers in place"
    " of a number; the `score` says which end is good. They change no loss, and no digest has them."
)
LevelsIn = Annotated[list[LevelIn], Field(max_length=10 * MOST_LEVELS, description=LEVELS)]


def levels_of(levels: list[LevelIn] | None) -> tuple[Level, ...]:
    """The levels in the core's words."""
    return tuple(Level(level.name, level.grade, level.help) for level in levels or ())


MetricName = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST_NAME, pattern=NAME),
]


class MetricIn(BaseModel):
    """One of several losses that a judgement gives; its scale is fixed before any is seen."""

    model_config = STRICT

    kind: Literal["zero_one", "bounded", "cross_entropy"] = Field(
        description="What kind of loss it is; it settles the scale but for `bounded` and"
        " `cross_entropy`."
    )
    lower: float | None = Field(None, description="Of a bounded loss.")
    upper: float | None = Field(None, description="Of a bounded loss or a cross-entropy.")
    score: ScoreIn | None = Field(None, description="What its mean is called.")


MetricsIn = Annotated[
    dict[MetricName, MetricIn],
    Field(
        min_length=1,
        max_length=MOST_METRICS,
        description=METRICS,
        # Else the contract allows names of any other form
        json_schema_extra={"additionalProperties": False},
    ),
]


def metrics_of(metrics: dict[str, MetricIn] | None) -> tuple[Metric, ...]:
    """The metrics in the core's words; refuses names that mean something else in a file."""
    made = []
    for name, metric in (metrics or {}).items():
        check_metric_name(name)
        scale = LossScale.of(metric.kind, metric.lower, metric.upper)
        score = None if metric.score is None else metric.score.of(scale, None)
        made.append(Metric(name, scale, score))
    return tuple(made)


def check_alone(metrics: object, **others: object) -> None:
    """Refuse what a pool of metrics has not, and a pool without loss and metrics."""
    if metrics is None:
        if others.get("loss") is None:
            raise InvalidValue(
                "A pool has a loss, or metrics.",
                field="loss",
                rule="the kind of loss; or `metrics`, where a judgement gives several",
            )
        return
    for name, value in others.items():
        if value is not None:
            raise InvalidValue(
                "A pool of metrics says of each its kind, scale and score.",
                field=name,
                rule="left out beside `metrics`",
            )


class ScoreOut(FromRecord):
    """Name of the mean of the pool's losses, by default after the kind of loss."""

    name: str = Field(description="Such as accuracy, or error rate.")
    better: Better = Field(description="Which direction is the good one.")
    unit: Unit = Field(
        description="A `share`, from 0 to 1, is said in percent, its differences in points."
    )


class MetricOut(FromRecord):
    """One of several losses that a judgement gives."""

    kind: LossKind = Field(
        validation_alias=AliasPath("scale", "kind"), description="What kind of loss it is."
    )
    lower: float = Field(
        validation_alias=AliasPath("scale", "lower"), description="The least loss there can be."
    )
    upper: float = Field(
        validation_alias=AliasPath("scale", "upper"), description="The largest loss there can be."
    )
    score: ScoreOut = Field(
        validation_alias="measured", description="What its mean is called where results are told."
    )


class SystemsIn(BaseModel):
    """The two systems that a pool compares, by name."""

    model_config = STRICT

    a: SystemName = Field(
        description="Name of the first system; where there is an earlier version, that one."
    )
    b: SystemName = Field(description="Name of the second system, another one.")
    normalisation: Normalisation | None = Field(None, description=NORMALISATION)


class BasedOnIn(BaseModel):
    """The judged session of an earlier version: what it leaves to the new one is known."""

    model_config = STRICT

    session: str = Field(description="A closed session.", json_schema_extra=form_of("ses"))
    labels_seen: LabelsSeen = Field(
        description="Whether the makers of the new version saw labels of this pool, or losses or"
        " scores that follow from them; with `systems`, those of the old one too. Every certificate"
        " states it; unless `no`, no claim is made for a population."
    )
    answer: Annotated[str, Field(min_length=1, max_length=200, pattern=NAME)] | None = Field(
        None,
        description="The member of the payload that holds what a version answered; the rest is the"
        " question. Needed where items carry neither `prediction` nor `target_probs`.",
    )

    system: SystemName | None = Field(
        None,
        description="The name of the earlier version, where the session compared two systems.",
    )

    @property
    def request(self) -> BasedOn:
        """The same in the operations' words."""
        session = session_id_of(self.session, "based_on.session")
        return BasedOn(session, self.labels_seen, self.answer, self.system)


class BasedOnOut(FromRecord):
    """The session that a pool is based on, as it ended."""

    session: str = Field(description="Id of the closed session.")
    pool: str = Field(description="Digest of the session's pool.")
    ledger: str | None = Field(description="Head of its ledger.")
    certificate: str | None = Field(description="Digest of its final certificate, if it has one.")
    labels_seen: LabelsSeen = Field(
        description="Whether the makers of the new version saw labels of this pool."
    )
    answer: str | None = Field(
        description="Member of the payload that holds what a version answered; null for none."
    )
    system: Literal["a", "b"] | None = Field(
        description="Which of two systems compared in the session is the earlier version."
    )


class LineupIn(BaseModel):
    """The systems among which a session seeks the best, by name."""

    model_config = STRICT

    names: list[SystemName] = Field(
        max_length=10 * MOST,
        description="Different names, none of them a, b, left or right.",
        json_schema_extra={"minItems": FEWEST, "maxItems": MOST},
    )
    normalisation: Normalisation | None = Field(None, description=NORMALISATION)


def _form(body: object) -> str:
    """Return the form of systems that a body has, so that errors name that one."""
    several = isinstance(body, LineupIn) or (isinstance(body, dict) and "names" in body)
    return "LineupIn" if several else "SystemsIn"


AnySystemsIn = Annotated[
    Annotated[SystemsIn, Tag("SystemsIn")] | Annotated[LineupIn, Tag("LineupIn")],
    Discriminator(_form),
]


class LossOut(FromRecord):
    """Scale of the loss; of two systems of the difference, loss of a less loss of b."""

    kind: LossKind = Field(
        description="What kind of loss it is; `difference` where two systems are compared."
    )
    lower: float = Field(description="The least loss there can be.")
    upper: float = Field(description="The largest loss there can be.")


class SystemLoss(FromRecord):
    """Scale of the loss of one of two systems; of a preference the grades, from 0."""

    kind: Kind = Field(description="What kind of loss one system has, or `preference`.")
    lower: float = Field(description="The least loss of one system.")
    upper: float = Field(
        description="The largest loss of one system; of a preference the number of grades."
    )


class SystemsOut(FromRecord):
    """The two systems that a pool compares."""

    a: str = Field(description="Name of the first system.")
    b: str = Field(description="Name of the second system, whose loss is subtracted.")
    loss: SystemLoss = Field(description="The scale on which one of the two is judged.")
    normalisation: Normalisation | None = Field(
        description="When two texts count as the same answer; null if they never do."
    )


class LineupOut(FromRecord):
    """The systems among which the best is sought."""

    names: list[str] = Field(description="In the order in which the ledger has their losses.")
    loss: LossOut = Field(description="The scale on which each of them is judged.")
    normalisation: Normalisation | None = Field(
        description="When two texts count as the same answer; null if they never do."
    )


def scale_of(
    loss: LossIn, systems: SystemsIn | LineupIn | None
) -> tuple[LossScale, AnySystems | None]:
    """The scale of a pool's losses, and its systems where there are any."""
    kind = loss.kind
    if isinstance(systems, LineupIn):
        lineup = Lineup.of(systems.names, (kind, loss.lower, loss.upper), systems.normalisation)
        return lineup.loss, lineup
    if systems is not None:
        made = Systems.of(
            (systems.a, systems.b), (kind, loss.lower, loss.upper), systems.normalisation
        )
        return made.scale, made
    if kind == "preference":
        raise InvalidValue(
            "A preference is between two systems.",
            field="systems",
            rule="the names of both, as `a` and `b`",
            value=None,
        )
    return LossScale.of(kind, loss.lower, loss.upper), None
