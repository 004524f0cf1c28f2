"""A session as it travels: where it stands, and what it claims."""

from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
)
from pydantic.config import JsonDict

from celeus.api.sessions.opening_models import SUBJECT, PlannedLabels, QuestionSide, Subject
from celeus.api.wire.records import FromRecord, Time, wire_id
from celeus.core.plans.claim import Target
from celeus.core.plans.panel_plan import Protocol
from celeus.core.pools.score import Better, Unit

SessionState = Literal[
    "active", "target_reached", "decided", "budget_spent", "exhausted", "paused", "closed"
]
DECISION: JsonDict = {"side": "at_most", "threshold": 0.1, "answer": "no", "round": 388}
SESSION: JsonDict = {
    "id": "ses_019aa0b2c3d47e5f8a9b0c1d2e3f4a5c",
    "name": "digits, first model",
    "pool_id": "pool_019aa0b2c3d47e5f8a9b0c1d2e3f4a5b",
    "state": "active",
    "target": "pool",
    "repeats": False,
    "success": None,
    "runs": None,
    "alpha": 0.05,
    "policy": "sharp",
    "strategy": "A",
    "method_version": "celeus-3",
    "round": 412,
    "estimate": 0.163,
    "lower": 0.121,
    "upper": 0.207,
    "width": 0.086,
    "score": {
        "name": "accuracy",
        "better": "higher",
        "unit": "share",
        "estimate": 0.837,
        "lower": 0.793,
        "upper": 0.879,
    },
    "sentence": "accuracy 83.7\u202f% (79.3 to 87.9), valid at every look with 95\u202f%"
    " confidence, based on 412 labels.",
    "words": {
        "answers": [
            {
                "question": "Is the accuracy at least 90\u202f%?",
                "given": "no",
                "answer": "No, since label 388",
            }
        ],
        "progress": "413 labels, about 297 more, about 2 hours at the recent pace; the plan at"
        " opening said about 690.",
        "holds": "412 of 413 labels are in the interval; 1 waits for an item drawn earlier that is"
        " not judged yet.",
        "labels": 413,
        "share": 0.582,
        "in_interval": 412,
    },
    "owner": "ada",
    "tags": ["nightly"],
    "active_at": "2026-11-21T14:05:00.000000+00:00",
    "precision": 0.05,
    "budget": 1737,
    "items": 1737,
    "known": 0,
    "effective_items": None,
    "scale": {"lower": 0.0, "upper": 1.0},
    "stopped": False,
    "stop_reason": None,
    "stop_when_decided": True,
    "fixed": False,
    "subject": [SUBJECT],
    "changes": 0,
    "decisions": [DECISION],
    "rounds": {"drawn": 415, "judged": 413, "in_interval": 412, "pending": 2, "waiting": 1},
    "verdict": None,
    "systems": None,
    "sides": None,
    "raters": None,
    "best": None,
    "table": None,
    "planned_labels": {"median": 690, "low": 610, "high": 780},
    "contradictions": [],
    "archived": False,
    "origin": None,
    "forecast": {
        "round": 412,
        "labels_left": 297,
        "low": 240,
        "high": 395,
        "seconds_per_label": 24.2,
    },
    "assumptions": [],
    "warnings": [],
    "sequence": 828,
    "revision": 1,
    "lease_seconds": 300,
    "commitment": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "ledger_head": "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
    "created_at": "2026-11-21T09:30:00.000000+00:00",
}


class Decision(BaseModel):
    """The answer to a question; ``round`` is the one that gave it. An answer stays."""

    model_config = ConfigDict(json_schema_extra={"examples": [DECISION]})

    side: QuestionSide = Field(
        description="The question asked: whether the mean loss is `at_most` or `at_least` this."
    )
    threshold: float = Field(description="Threshold of the question, on the scale of the losses.")
    answer: Literal["yes", "no", "undecided"] = Field(
        description="`undecided` until a round gives the answer."
    )
    round: int | None = Field(
        description="The round that gave the answer; null while it is undecided."
    )


class Verdict(BaseModel):
    """The verdict; ``round`` is the one that gave it. An answer stays."""

    margin: float = Field(
        description="Largest difference of mean losses that still counts as equivalent."
    )
    answer: Literal["a_at_least_as_good", "b_at_least_as_good", "equivalent", "undecided"] = Field(
        description="`undecided` until a round gives it; `equivalent` only with a margin above 0."
    )
    round: int | None = Field(
        description="The round that gave the verdict; null while it is undecided."
    )


class ScoreInterval(BaseModel):
    """The claim as people name it: the interval of the mean loss on the scale of the score.

    Of two systems it is the score of a less that of b.
    """

    name: str = Field(description="What people call it, such as accuracy.")
    better: Better = Field(description="Which direction is the good one.")
    unit: Unit = Field(description="A `share` is said in percent, its differences in points.")
    estimate: float = Field(description="The estimate on the scale of the score.")
    lower: float = Field(description="No digit of it is inside the interval of the loss.")
    upper: float = Field(description="Upper end, rounded outward like the lower one.")


class Scale(BaseModel):
    """The range of every loss."""

    lower: float = Field(description="The least loss there can be.")
    upper: float = Field(description="The largest loss there can be.")


class ComparedSystems(BaseModel):
    """The names of the two systems whose difference is measured, loss of a less loss of b."""

    a: str = Field(description="Name of the first system.")
    b: str = Field(description="Name of the second system, whose loss is subtracted.")


class PreferredSides(BaseModel):
    """Counts of the side with the smaller loss, over all judged rounds; no claim rests on them.

    Which answer stands on the left is drawn for every round: where one side wins far more often, it
    is the judges that lean to it.
    """

    left: int = Field(description="Rounds in which the answer on the left had the smaller loss.")
    tie: int = Field(description="Rounds in which both had the same loss.")
    right: int = Field(description="Rounds in which the answer on the right had the smaller loss.")


class Contradiction(BaseModel):
    """A judgement that was refused, since the pool states that the item's loss is another."""

    item: str = Field(description="Id of the item that was judged.")
    metric: str | None = Field(
        None, description="Whose loss it is, where a judgement gives several."
    )
    loss: float = Field(description="The loss that the judge gave.")
    lower: float = Field(description="The least loss that the pool states for the item.")
    upper: float = Field(description="The largest loss that the pool states for the item.")
    key: str | None = Field(
        None, description="Id of the key that sent it first; null where none was kept."
    )
    author: str | None = Field(None, description="The name of that key then.")
    at: Time = Field(description="When it was refused.")


class AwaitedRater(BaseModel):
    """A rater, and in how many rounds it is their turn."""

    name: str = Field(description="Name of a key or worker, as the panel has it.")
    rounds: int = Field(description="Open rounds in which it is this rater's turn.")


class RatersOut(BaseModel):
    """The raters of a panel, and how far they agree; no claim rests on it."""

    protocol: Protocol = Field(description="How several judgements of an item become one loss.")
    panel: list[AwaitedRater] = Field(description="Every rater who may be asked.")
    judgements: int = Field(description="Of single raters, also where one could not judge.")
    items: int = Field(description="Items that two raters have judged.")
    agreement: float | None = Field(
        description="Krippendorff's alpha of the first two judgements of these: 1 where raters"
        " always agree, 0 where they do as by chance; null while no two differ from others."
    )


class RankedSystem(BaseModel):
    """One of the systems among which the best is sought.

    Intervals of differences are not claimed, only that a given best system is in, with probability
    1 - alpha: no system is better than the best of those in. One that is out may be as good.
    """

    name: str = Field(description="What the pool calls the system.")
    state: Literal["leading", "in", "out"] = Field(
        description="`leading`: least estimated loss of those in; `in`: not ruled out; `out`: no"
        " better than the best of those in."
    )
    round: int | None = Field(description="The round at which it was out.")
    stake: float = Field(
        description="What was won by betting that it is not the best: starts at alpha, out at 1."
    )
    estimate: float | None = Field(
        description="Of its mean loss less that of the leader; null of the leader, and before a"
        " label tells the two apart."
    )
    lower: float | None = Field(
        description="The difference is no less, whatever the losses not seen are; null of the"
        " leader and of systems that are out."
    )
    upper: float | None = Field(description="The difference is no more.")


class BestPlaces(BaseModel):
    """The place of the best answer, over judgements in the order shown; no claim rests on it.

    The order is drawn for every round: where the first place wins far more often than the last, it
    is the judges that lean to it.
    """

    first: int = Field(description="Rounds in which the first answer alone had the least loss.")
    last: int = Field(description="The same of the last answer shown.")
    other: int = Field(description="Rounds in which another one had, or several alike.")


class Best(BaseModel):
    """The state of the search for the best of several systems."""

    winner: str | None = Field(description="The one system left: at least as good as every other.")
    standing: list[str] = Field(description="Those in: no system is better than the best of these.")
    systems: list[RankedSystem] = Field(description="All systems, as the pool names them.")
    places: BestPlaces | None = Field(
        None, description="How often which place won; null where a label is asked for."
    )


class MetricClaim(BaseModel):
    """The claim about a metric over all items of a table."""

    metric: str = Field(description="Name of the metric in the pool.")
    met: bool | None = Field(
        description="Its target is met: precision and answers; null where it has none."
    )
    level: float | None = Field(
        description="Probability with which the interval may miss the truth; null where it is"
        " certain."
    )
    precision: float | None = Field(
        description="Width at which its target is met; null where none is asked for."
    )
    estimate: float = Field(description="Of the mean loss in this metric.")
    lower: float = Field(description="Lower end of the interval, on the metric's scale.")
    upper: float = Field(description="Upper end of the interval, on the metric's scale.")
    score: ScoreInterval = Field(
        description="The same interval by the name and in the direction that people use."
    )
    scale: Scale = Field(description="Where every loss of the metric lies.")


class PromisesOut(BaseModel):
    """The promises, in words: for one claim, for all, and for those picked after looking."""

    one: str = Field(description="Of a claim by itself.")
    all: str = Field(description="Of all claims at once.")
    picked: str = Field(description="Of claims picked after looking.")


class CheckedCount(BaseModel):
    """Items that judge and people call the same, positive or not."""

    judge: bool = Field(description="Whether the judge calls them positive.")
    people: bool = Field(description="Whether people do.")
    judged: int = Field(description="How many people judged, or were known.")
    expected: float = Field(
        description="How many there are expected to be in the pool: an estimate, no claim."
    )


class CheckOut(BaseModel):
    """The judge that is checked, and how often it agrees with people."""

    column: str = Field(description="The group column of its verdicts.")
    positive: str = Field(description="The verdict that means the same as a score of 1.")
    measures: list[str] = Field(description="What the claims are about.")
    counts: list[CheckedCount] = Field(description="The four counts of judge and people.")


class TableOut(BaseModel):
    """The state of a table of claims; `GET /v1/sessions/{id}/claims` gives all of them."""

    account: Literal["each", "together", "selected", "closed"] = Field(
        description="What holds of several claims: see `account` of the opening."
    )
    reserve: float = Field(
        description="The part of alpha that no claim has: claims added later may take it."
    )
    groups: list[str] = Field(description="The group columns.")
    claims: int = Field(description="How many claims there are, the later ones included.")
    later: int = Field(0, description="How many of these were added while the session ran.")
    wanted: int = Field(description="Claims of which something was asked.")
    met: int = Field(description="How many of those have it.")
    metrics: list[MetricClaim] = Field(description="The claims about all items.")
    promises: PromisesOut = Field(description="The guarantee in plain words.")
    check: CheckOut | None = Field(None, description="Set where a judge is checked.")


class Rounds(BaseModel):
    """Counts of rounds: drawn = judged + pending, and judged = in_interval + waiting."""

    drawn: int = Field(description="Rounds that were given out, each to be judged once.")
    judged: int = Field(
        description="Rounds whose judgement has arrived, also those reported as unjudgeable."
    )
    in_interval: int = Field(
        description="Judged rounds that the interval speaks for: all before the first open one."
    )
    pending: int = Field(description="Rounds drawn and not judged.")
    waiting: int = Field(
        description="Rounds judged and not in the interval, because an earlier one is open."
    )


class Forecast(BaseModel):
    """Labels left until the stop, if losses go on as they did; no part of the claim."""

    round: int = Field(description="The last round that it knows of; labels are counted from it.")
    labels_left: int = Field(description="Half of the sessions such as this one need fewer.")
    low: int = Field(description="One in ten needs fewer.")
    high: int = Field(description="One in ten needs more.")
    seconds_per_label: float | None = Field(
        description="How fast labels came by then, of all judges together: the median over the"
        " latest 60, ten at a time, so that breaks do not count. Null where fewer than 30 came one"
        " by one.",
    )


class ProvisionalClaim(BaseModel):
    """The claim about a metric over all items, with open draws at their worst."""

    metric: str = Field(description="Name of the metric in the pool.")
    met: bool | None = Field(description="Its target is met; null where it has none.")
    lower: float = Field(description="Lower end of the interval, on the metric's scale.")
    upper: float = Field(description="Upper end.")


class Provisional(BaseModel):
    """The answer with the rounds that wait, and the open draws at their worst.

    It holds at the same alpha, at once with all other answers shown. It stops nothing.
    """

    lower: float | None = Field(
        description="Lower end of the interval, as that of the status; null where that is."
    )
    upper: float | None = Field(description="Upper end.")
    standing: list[str] | None = Field(
        description="Those in, as in `best`; null where the best of several is not sought."
    )
    met: int | None = Field(description="As in `table`; null without one.")
    metrics: list[ProvisionalClaim] | None = Field(description="As in `table`; null without one.")
    open: int = Field(
        description="Draws that it counts at their worst: with the losses that are worst for each"
        " claim and each system."
    )
    judged: int = Field(description="Judged rounds in it, those that wait included.")
    sentence: str = Field(description="The same for people, in the direction of the score.")


class AnswerWords(BaseModel):
    """A question, and its answer so far, in words."""

    question: str = Field(description="As a question.")
    given: Literal["yes", "no", "undecided"] = Field(
        description="The answer in one word; of a verdict `yes` once there is one."
    )
    answer: str = Field(description="What is answered, and since which label.")


class Words(BaseModel):
    """Words beside the sentence, for people; pages and report show them as they are."""

    answers: list[AnswerWords] = Field(description="The verdict first, then the questions asked.")
    progress: str = Field(
        description="How many labels there are, how many more are likely and how long they take,"
        " and what the plan at opening said."
    )
    holds: str | None = Field(
        description="Which labels are in the interval and which are not, once it has stopped or"
        " labels wait; null while that goes without saying."
    )
    labels: int = Field(description="Labels given, in the interval or not.")
    share: float | None = Field(
        description="Labels given as a share of these and those likely to follow; null where nobody"
        " can tell how many follow."
    )
    in_interval: int = Field(
        description="Labels in the interval: its rounds without those that nobody could judge.",
    )


class Origin(BaseModel):
    """The origin of a session that ran elsewhere: whoever pushed it had its seed and its file."""

    kind: Literal["pushed"] = Field(description="The one way there is so far.")
    at: Time = Field(description="When it came, by this service's clock.")


class Assumption(BaseModel):
    """Something the claim rests on that the service cannot check, or a limit of what it says."""

    code: str = Field(description="In one word; the format of certificates lists all.")
    text: str = Field(description="In plain sentences.")


class Session(BaseModel):
    """The status of a session. The interval is based on `rounds.in_interval` of its rounds."""

    model_config = ConfigDict(json_schema_extra={"examples": [SESSION]})

    id: str = Field(description="`ses_` and 32 hexadecimal digits.")
    name: str | None = Field(description="What people call it; null where it was given no name.")
    pool_id: str = Field(description="The sealed pool whose items are judged.")
    state: SessionState = Field(
        description="`active` hands out draws; all others say why it does not."
    )
    target: Target = Field(
        description="Whether the claim is about the pool, the population it is a sample of, or all"
        " runs."
    )
    repeats: bool = Field(description="Whether every round may run any item again.")
    success: str | None = Field(description="Runs of a draw that have to succeed, as `all of 4`.")
    runs: int | None = Field(
        description="Runs of the labels in the interval; null where a draw is one run."
    )
    alpha: float = Field(
        description="The interval covers the truth with probability at least 1 - alpha, at all"
        " rounds at once."
    )
    policy: str | None = Field(description="Null where there is no single interval.")
    strategy: str | None = Field(
        description="How probabilities of the items became surrogate and proxy; null where they"
        " have none."
    )
    method_version: str = Field(description="The version of the mathematics that the plan fixed.")
    round: int = Field(description="The last round in the interval; equals `rounds.in_interval`.")
    estimate: float | None = Field(
        description="Of the mean loss, after that round; null, as the interval is, where the best"
        " of several systems is sought, or a table of claims is made."
    )
    lower: float | None = Field(description="Lower end of the interval after that round.")
    upper: float | None = Field(description="Upper end of the interval after that round.")
    width: float | None = Field(description="`upper` less `lower`.")
    provisional: Provisional | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="Only in answers to GET of this one session, and only while judged rounds wait"
        " for an open draw, at most 256 rounds in all.",
    )
    score: ScoreInterval | None = Field(
        description="The interval by the name and in the direction that the pool declared, of two"
        " systems that of `a` less that of `b`; null where the best is sought, or a table of claims"
        " is made."
    )
    sentence: str = Field(description="What the session says, for people.")
    words: Words = Field(description="The lines beside it.")
    owner: str | None = Field(
        description="Name of the key that opened it; null where that is not known."
    )
    tags: list[str] = Field(description="What people file it under.")
    active_at: Time | None = Field(description="When its last event was written, to the minute.")
    precision: float | None = Field(
        description="Interval width at which it stops, on the scale of the losses; null for none."
    )
    budget: int = Field(description="Most rounds that may be drawn.")
    items: int = Field(description="Items of the pool, known ones included.")
    known: int = Field(description="Items whose loss was known before the first draw.")
    effective_items: float | None = Field(
        description="Where items have weights and the mean loss is weighted: how many items of one"
        " weight would say as much, W^2 / sum of w^2. Null where all count the same.",
    )
    scale: Scale | None = Field(description="Of the losses; null with a `table`.")
    stopped: bool = Field(
        description="Whether no new draws are handed out because the goal or an end is reached."
    )
    stop_reason: Literal["target_reached", "decided", "exhausted", "budget_spent"] | None = Field(
        description="What stopped it; null while it goes on."
    )
    stop_when_decided: bool = Field(
        description="Whether it stops once all questions and the verdict are answered."
    )
    fixed: bool = Field(description="Whether precision, budget and stop cannot be changed.")
    subject: list[Subject] = Field(
        description="What is evaluated, by digest, as named at the opening; empty where nothing is."
    )
    changes: int = Field(description="How often precision, budget or stop were changed.")
    decisions: list[Decision] = Field(description="In the order of the questions asked.")
    verdict: Verdict | None = Field(
        description="On the two systems of a difference; null where none is asked for."
    )
    systems: ComparedSystems | None = Field(
        description="The two systems compared; null where the pool names none."
    )
    sides: PreferredSides | None = Field(
        description="How often the answer on the left won; null without two systems."
    )
    raters: RatersOut | None = Field(
        description="What a panel of raters has said; null in sessions without one."
    )
    best: Best | None = Field(
        description="Which of several systems are still in; null in other sessions."
    )
    table: TableOut | None = Field(
        description="Where a table of claims stands; null in other sessions."
    )
    rounds: Rounds = Field(description="How far drawing, judging and folding have come.")
    forecast: Forecast | None = Field(
        description="How much work is left; null before the first label, without a goal, with the"
        " published policy, and once it has stopped."
    )
    planned_labels: PlannedLabels | None = Field(
        description="What was planned when it was opened; null where nobody said."
    )
    contradictions: list[Contradiction] = Field(
        description="Judgements outside the bounds that the pool states, the first 20: where one is"
        " right, an assumption is false and nothing can be claimed.",
    )
    assumptions: list[Assumption] = Field(
        description="What the claim rests on beside the draws; its certificate says the same."
    )
    warnings: list[str] = Field(
        description="What people should know, in plain sentences; most often empty."
    )
    sequence: int = Field(description="Number of the last event in its ledger, 0 before the first.")
    revision: int = Field(
        description="Counts amendments from 1: a new number means that earlier rounds were folded"
        " again."
    )
    lease_seconds: int = Field(
        description="How long a worker may hold a draw before others can get it."
    )
    commitment: str = Field(
        description="SHA-256 of the secret seed, published before the first draw."
    )
    ledger_head: str = Field(description="Head of the hash chain over the ledger.")
    archived: bool = Field(
        description="Whether it is left out of lists, and takes no draws and no labels.",
    )
    created_at: Time = Field(description="When it was opened.")
    origin: Origin | None = Field(
        description="Of a session that ran in a process of its own and was pushed: when it came."
        " Null of one that ran here.",
    )


class BlindSession(FromRecord):
    """The session as a key without scope `read` sees it: judges are not told where it stands."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"id": SESSION["id"], "state": SESSION["state"]}]}
    )

    id: Annotated[str, wire_id("ses")] = Field(
        validation_alias="session_id", description="`ses_` and 32 hexadecimal digits."
    )
    state: SessionState = Field(description="Whether there is anything to judge, and if not, why.")


class SessionPage(BaseModel):
    """Sessions in the order asked for; ``next`` goes into ``after`` for the following page."""

    data: list[Session] = Field(description="At most `limit` of them.")
    next: str | None = Field(description="Give it as `after` for the next page; null at the end.")
