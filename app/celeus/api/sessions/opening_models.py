"""The requests that open a session and change it, as on the wire."""

from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
)
from pydantic.config import JsonDict

from celeus.api.access.parameters import NAME, NO_NUL, form_of
from celeus.core.plans.claim import Target
from celeus.core.plans.judge_check import JudgeCheck
from celeus.core.plans.judge_measures import MEASURES
from celeus.core.plans.panel_plan import MOST_RATERS
from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import TableRequest
from celeus.core.plans.stopping import Question
from celeus.core.plans.subject import DIGITS, LONGEST_NAME, MOST_SUBJECTS
from celeus.core.plans.subject import Subject as PlanSubject
from celeus.core.plans.table_plan import MOST_CLAIMS
from celeus.core.pools.table_pool import MOST_METRICS

STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
QuestionSide = Literal["at_most", "at_least"]


def _whole(value: object) -> object:
    """1.0 as 1: JSON knows no difference, and some writers give every number a fraction."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _distinct(tags: list[str]) -> list[str]:
    """Each tag once."""
    return list(dict.fromkeys(tags))


AS_WHOLE = BeforeValidator(_whole)
Whole = Annotated[int, AS_WHOLE]
Count = Annotated[int, Field(ge=0, le=2**31 - 1), AS_WHOLE]
Markdown = Annotated[
    str,
    Field(
        max_length=20_000,
        pattern=NO_NUL,
        description="What judges are told: Markdown of up to 20 000 characters, which `task` and"
        " the labelling page show once beside the items. No plan, digest or certificate has it."
        " Every change is kept with its time; one after the first judgement is told in the report.",
    ),
]
QUESTION: JsonDict = {"side": "at_most", "threshold": 0.1}
CHECK: JsonDict = {"column": "judge", "positive": "pass", "measures": ["tpr", "tnr"]}
MEASURE_NAMES = tuple(MEASURES)
SUBJECT: JsonDict = {"name": "model.safetensors", "algorithm": "sha256", "digest": "ab" * 32}
ALGORITHMS = tuple(DIGITS)
OPENING: JsonDict = {
    "pool_id": "pool_019aa0b2c3d47e5f8a9b0c1d2e3f4a5b",
    "target": "pool",
    "alpha": 0.05,
    "precision": 0.05,
    "questions": [QUESTION],
}


MOST_TAGS = 12
TagName = Annotated[str, Field(min_length=1, max_length=40, pattern=NAME)]
Tags = Annotated[list[TagName], Field(max_length=MOST_TAGS), AfterValidator(_distinct)]
"""Short names, each once, in their order."""


class Parameters(BaseModel):
    """Parameters of the policy, each with a default; no accepted value makes an interval wrong."""

    model_config = STRICT

    beta: float | None = Field(None, description="Share of uniform draws, from 0.001 to 1.")
    range: Literal["floor", "exact", "global"] | None = Field(
        None, description="How the range of a signal is bounded; `exact` costs O(items) a round."
    )
    theta: float | None = Field(None, description="Weight of the upward bet, between 0 and 1.")
    c: float | None = Field(None, description="Softness of the cap on the bets.")


class Subject(BaseModel):
    """Something that is evaluated, by its digest: a model, a data set, an image or a commit."""

    model_config = ConfigDict(**STRICT, json_schema_extra={"examples": [SUBJECT]})

    name: str = Field(
        min_length=1,
        max_length=LONGEST_NAME,
        pattern=NAME,
        description="What it is called; printable characters.",
    )
    algorithm: Literal[ALGORITHMS] = Field(  # type: ignore[valid-type]
        "sha256", description="Of the digest, as in-toto calls it."
    )
    digest: str = Field(
        pattern="^[0-9a-f]+$", max_length=128, description="Of the algorithm, in hexadecimal."
    )

    @property
    def named(self) -> PlanSubject:
        """The subject in the core's words."""
        return PlanSubject(self.name, self.algorithm, self.digest)


class AskedQuestion(BaseModel):
    """The question whether the risk lies on one side of a threshold, the threshold included."""

    model_config = ConfigDict(**STRICT, json_schema_extra={"examples": [QUESTION]})

    side: QuestionSide = Field(
        description="Asks whether the mean loss is `at_most`, or `at_least`, the threshold."
    )
    threshold: float = Field(description="Strictly inside the scale of the pool's losses.")

    @property
    def asked(self) -> Question:
        """The question in the core's words."""
        return Question(self.side, self.threshold)


class TableQuestion(AskedQuestion):
    """A question, and where there are several metrics the one that it is asked of."""

    model_config = ConfigDict(
        **STRICT, json_schema_extra={"examples": [{"metric": "faithful", **QUESTION}]}
    )

    metric: str | None = Field(None, description="Left out where a judgement gives one loss.")


class Decide(BaseModel):
    """A verdict to ask for: which of two systems is at least as good, or whether they are equal."""

    model_config = ConfigDict(**STRICT, json_schema_extra={"examples": [{"margin": 0.02}]})

    margin: float = Field(
        0.0,
        description="Equivalent are systems whose mean losses differ by at most this, on the scale"
        " of the difference; 0: only which one is at least as good.",
    )


class ClaimIn(BaseModel):
    """The claim to be certified."""

    model_config = STRICT

    target: Target = Field(
        "pool",
        description="Mean loss over the pool, over the population it is an iid sample of, or over"
        " all runs of a system on these items, whose losses are chance: of each item one run is"
        " made, with `repeats` any number.",
    )
    repeats: bool = Field(
        False,
        description="With target `runs`: every round may run any item again. `budget` counts draws;"
        " with a precision it may be left out, and is twice what that takes at worst.",
    )
    success: str | None = Field(
        None,
        max_length=20,
        description="With target `runs`: a draw is up to k runs, which have to succeed as said,"
        " `all of 4` (pass^4) or `any of 4` (pass@4). The first failure, or success, ends it.",
    )
    alpha: float = Field(0.05, description="The interval covers with probability 1 - alpha.")
    precision: float | None = Field(None, description="Interval width at which to stop.")
    budget: Whole | None = Field(None, description="Most draws; default: the whole pool.")
    population_bound: (
        Literal["pairs", "exact_pairs", "hoeffding", "kl", "clopper_pearson", "margin"] | None
    ) = Field(None, description="How the interval reaches from the pool to its population.")
    alpha2: float | None = Field(None, description="Share of alpha for the population bound.")
    margin: float | None = Field(None, description="Half-width for a dependent pool.")
    margin_assumption: str = Field(
        "",
        max_length=2000,
        pattern=NO_NUL,
        description="Why `margin` bounds the distance of the pool from its population, in your"
        " words; needed with it.",
    )
    questions: list[AskedQuestion] = Field(
        [],
        description="One-sided questions, at most 20, answered at the same alpha as the interval.",
    )
    decide: Decide | None = Field(
        None, description="Ask for a verdict on the two systems of a pool of differences."
    )
    stop_when_decided: bool | None = Field(
        None, description="Stop when all questions are answered; default: if there are any."
    )
    fixed: bool = Field(False, description="Forbid any later change of precision, budget and stop.")
    audit: bool = Field(
        False,
        description="Believe nothing that the pool states of its losses: known ones are sampled"
        " like the others, and the claim does not rest on them.",
    )

    raters: Literal["pairs", "assigned", "random"] | None = Field(
        None,
        description="Where several raters could judge an item: every item is a question with one of"
        " them (`pairs`), or who judges it was fixed before (`assigned`). `random`, whoever comes,"
        " is refused.",
    )
    protocol: Literal["two_then_third", "consensus"] | None = Field(
        None,
        description="With `assigned`, and a `panel`: the session itself asks several raters about"
        " every item. Two judge; where they differ a third decides, or both judge again.",
    )
    panel: list[Annotated[str, Field(min_length=1, max_length=128, pattern=NAME)]] = Field(
        [],
        max_length=MOST_RATERS,
        description="The names of all raters who may be asked, each that of a key or of a worker.",
    )
    subject: list[Subject] = Field(
        [],
        max_length=MOST_SUBJECTS,
        description="What is evaluated, by digest: fixed at the opening, and said by report and"
        " certificate.",
    )

    def claim(self) -> Claim:
        """The claim in the core's words."""
        given = {name: getattr(self, name) for name in Claim.__dataclass_fields__}
        return Claim(
            **given
            | {
                "questions": tuple(asked.asked for asked in self.questions),
                "decide": None if self.decide is None else self.decide.margin,
                "panel": tuple(self.panel),
                "subject": tuple(subject.named for subject in self.subject),
            }
        )


def _one_or_each(given: object) -> str:
    return "Each" if isinstance(given, dict) else "One"


Widths = Annotated[
    Annotated[float, Tag("One")] | Annotated[dict[str, float | None], Tag("Each")],
    Discriminator(_one_or_each),
]
"""One width for all metrics, or one by name; errors name the field either way."""


class CheckIn(BaseModel):
    """An automatic judge whose verdicts are known, and the measures asked of it."""

    model_config = ConfigDict(**STRICT, json_schema_extra={"examples": [CHECK]})

    column: str = Field(description="The group column of the pool that holds its verdicts.")
    positive: str = Field(
        description="The verdict that means the same as a score of 1; without a score, as a loss"
        " of 1."
    )
    measures: list[Literal[MEASURE_NAMES]] = Field(  # type: ignore[valid-type]
        min_length=1,
        max_length=len(MEASURE_NAMES),
        description="True-positive and true-negative rate, positive (the precision) and negative"
        " predictive value, share of equal verdicts, F1, Jaccard index, Cohen's kappa. Use"
        " these names in `precision` and `questions`. The loss of a measure is 1 minus it; of"
        " kappa, minus kappa.",
    )

    @property
    def asked(self) -> JudgeCheck:
        """The check in the core's words."""
        return JudgeCheck(self.column, self.positive, tuple(self.measures))


class ClaimsIn(ClaimIn):
    """The claims to be certified: one mean, or a table of claims."""

    precision: Widths | None = Field(  # type: ignore[assignment]
        None,
        description="Interval width at which to stop; of several metrics the same for all, or one"
        " for each by name. Metrics without one have no target.",
    )
    questions: list[TableQuestion] = Field(  # type: ignore[assignment]
        [],
        description="One-sided questions, at most 20, answered at the same alpha as the interval.",
    )
    groups: list[str] | None = Field(
        None,
        max_length=MOST_METRICS,
        description="Group columns of the pool: claims are made of every value beside those of all"
        " items, from the same labels.",
    )
    group_precision: Widths | None = Field(
        None, description="Interval width within every group; without it groups have no target."
    )
    group_questions: list[TableQuestion] = Field(
        [], description="Questions that are asked of every group."
    )
    check: CheckIn | None = Field(
        None,
        description="An automatic judge that is checked: the claims are about its measures.",
    )
    account: Literal["each", "together", "selected", "closed"] | None = Field(
        None,
        description="What holds of several claims: each by itself (`each`, the default), all at"
        " once, those picked after looking, or all answers yes at once.",
    )
    small_groups: Literal["merge", "whole"] | None = Field(
        None,
        description="Groups of fewer than 30 items are merged into one, the default, or left as"
        " they are (`whole`); what then has fewer than 30 is judged to its last item.",
    )
    reserve: float | None = Field(
        None, description="With `together`: a part of alpha that the claims of the opening leave."
    )
    levels: list[float] | None = Field(
        None,
        max_length=MOST_CLAIMS,
        description="The level of every claim, but for groups judged whole, in the order of"
        " `GET /v1/sessions/{id}/claims`; by default they are even.",
    )

    def claim(self) -> Claim:
        """The claim in the core's words; of a table ``table`` says precision and questions."""
        single = not self.makes_table and not isinstance(self.precision, dict)
        plain = self if single else self.model_copy(update={"precision": None, "questions": []})
        return ClaimIn.claim(plain)

    @property
    def makes_table(self) -> bool:
        """Something is asked that only a session with a table of claims has."""
        parts = (self.groups, self.group_precision, self.account, self.small_groups, self.check)
        named = isinstance(self.precision, dict) or any(
            question.metric for question in self.questions
        )
        levels = self.reserve, self.levels
        return (
            named or bool(self.group_questions) or any(part is not None for part in parts + levels)
        )

    @property
    def table(self) -> TableRequest | None:
        """Return the table of claims asked for; None where none is."""
        if not self.makes_table:
            return None
        return TableRequest(
            groups=self.groups or (),
            precision=by_metric(self.precision),
            group_precision=by_metric(self.group_precision),
            questions=[(question.metric, question.asked) for question in self.questions],
            group_questions=[
                (question.metric, question.asked) for question in self.group_questions
            ],
            account=self.account or "each",
            small_groups=self.small_groups or "merge",
            reserve=self.reserve or 0.0,
            levels=self.levels,
            check=None if self.check is None else self.check.asked,
        )


class PlannedLabels(BaseModel):
    """The number of labels that a plan made before the opening foresaw."""

    model_config = ConfigDict(**STRICT)

    low: Count = Field(description="One in ten of the simulated sessions took fewer.")
    median: Count = Field(description="Half of them took fewer; at least `low`.")
    high: Count = Field(description="One in ten took more; at least `median`.")


class SessionOpening(ClaimsIn):
    """The claims to be certified, and the settings of the session."""

    model_config = ConfigDict(**STRICT, json_schema_extra={"examples": [OPENING]})

    pool_id: str = Field(description="A sealed pool.", json_schema_extra=form_of("pool"))
    name: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        pattern=NAME,
        description="What people call it; it stands in no plan and no certificate.",
    )
    tags: Tags = Field(default_factory=list, description="What people file it under.")
    planned_labels: PlannedLabels | None = Field(
        None,
        description="What a plan said (`POST /v1/pools/{pool_id}/planning`), to be kept beside the"
        " session; it changes nothing and stands in no certificate.",
    )
    policy: str | None = Field(
        None, min_length=1, max_length=64, description="How items are chosen and bet on."
    )
    strategy: Literal["A", "B", "C"] | None = Field(
        None, description="Surrogate and proxy, where the items have probabilities."
    )
    instructions: Markdown | None = Field(
        None, description="For the judges of this session, in place of the pool's: Markdown."
    )
    lease_seconds: Annotated[int, Field(ge=1, le=604_800), AS_WHOLE] | None = Field(
        None, description="How long a worker may hold a draw unheard."
    )
    parameters: Parameters = Field(
        default_factory=Parameters, description="Fine adjustment of the policy; best left out."
    )
    best: bool = Field(
        False,
        description="Seek the best of the pool's several `systems`, with `alpha`, `budget`,"
        " `fixed`, `subject` and `parameters.beta`; nothing else is asked then.",
    )


def by_metric(
    given: float | dict[str, float | None] | None,
) -> dict[str | None, float | None]:
    """Return the widths by metric; one without a metric stands under None."""
    if isinstance(given, dict):
        return {name: width for name, width in given.items()}  # noqa: C416 -- keys of another type
    return {None: given}


class SessionChange(BaseModel):
    """New settings; what is left out stays."""

    model_config = ConfigDict(**STRICT, json_schema_extra={"examples": [{"precision": 0.03}]})

    precision: float | None = Field(
        None, description="Interval width at which to stop; null for none."
    )
    budget: Whole | None = Field(
        None,
        description="Most rounds that may be drawn; null changes nothing.",
    )
    stop_when_decided: bool | None = Field(
        None, description="False goes on although all questions are answered; true stops then."
    )
    state: Literal["active", "paused", "closed"] | None = Field(
        None, description="Resume, pause, or close for good."
    )
    tags: Tags | None = Field(
        None,
        description="What people file it under, in place of what was there; null changes nothing."
        " May be changed of a closed session too.",
    )
    instructions: Markdown | None = Field(
        None,
        description="For the judges of this session, as Markdown; null are those of the pool again."
        " A change after the first judgement is told in the report.",
    )
    archived: bool | None = Field(
        None,
        description="True takes it out of the lists, and stops draws and labels; false takes it"
        " back. Plan, ledger and certificates stay as they are.",
    )
