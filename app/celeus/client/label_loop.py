"""The items of a worker, and its loop: one request a label sends it and asks for the next item."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from types import MappingProxyType
from typing import Any, Protocol, Self

from celeus.client.exchange import TRIES, Flow, Pause, member, post
from celeus.client.reading import read
from celeus.client.refusals import Problem
from celeus.client.results import Draw, ShownAnswer, Status
from celeus.errors import InvalidValue
from celeus.shorten import shortened

MOST_HELD = 256
"""Draws that one worker may hold."""
MOST_JUDGES = 64
LONGEST_LOOK = 2.0
"""Seconds between two looks whether others have judged what they hold: the service says when the
first of their leases ends, which may be long after the last of them has judged."""
MOST_BEATS = 20
"""Renewals in a row while no run ends: a judge that hangs keeps its items no longer."""
STOPPED = frozenset({"target_reached", "decided", "budget_spent", "exhausted", "closed"})
"""States in which no label is needed."""
NONE_LEFT = frozenset({"all_leased", "waiting"})
"""States in which others have yet to judge what they hold."""
PREFERENCES = {word: word for word in ("left", "tie", "right")}
"""Preferences between two answers by the side they were shown on; `a` could be a system."""
PREFERENCES |= dict.fromkeys(("both bad", "bothbad", "tie (bothbad)", "tie (both bad)"), "both_bad")
PASSED = {"pass": True}
"""The record of an item that is left to somebody else."""
OVERTAKEN = frozenset({"observation_conflict", "round_not_held"})
"""Somebody else judged the item meanwhile: an answer, and no fault of anybody."""

LEASE_SECONDS = 30
"""Seconds for which a function holds its items; renewed while it thinks."""
HEARTBEATS = 3
"""Renewals of a lease in its time while a judge thinks."""
A_LOSS = "a loss as a number"
A_PREFERENCE = "left, tie or right"
UNTOLD = 'call item.unjudgeable("why") where nobody can tell'

Seen = Callable[[Status], object]


@dataclass(frozen=True, slots=True)
class JudgedScore:
    """The score that a judge's function returns in place of a loss: name, direction and range."""

    name: str
    higher: bool
    whole: bool
    lower: float
    upper: float

    def loss(self, value: object, item: str) -> float:
        """Return the loss of a value of the score; refuses one that it cannot have."""
        number = finite(value, f"the {self.name} of {item!r}", "score")
        if isinstance(unboxed(value), bool) and (self.lower, self.upper) != (0.0, 1.0):
            rule = f"a number from {self.lower:g} to {self.upper:g}"
            message = f"the {self.name} of {item!r} must be {rule}, and is {value}"
            raise InvalidValue(message, field="score", rule=rule, value=bool(value))
        values = {self.lower, self.upper} if self.whole else {number}
        if not self.lower <= number <= self.upper or number not in values:
            rule = f"{self.lower:g} {'or' if self.whole else 'to'} {self.upper:g}"
            message = f"the {self.name} of {item!r} must be {rule}, and is {shortened(value)}"
            raise InvalidValue(message, field="score", rule=rule, value=number)
        if not self.higher:
            return number
        # In decimals, so that a score of 0.9 is a loss of 0.1
        lower, upper, exact = (Decimal(repr(end)) for end in (self.lower, self.upper, number))
        return float(lower + upper - exact)


@dataclass(frozen=True, slots=True)
class JudgeTask:
    """The facts a judge needs: how long a lease is, and the score to return, if one is named.

    ``scores`` are by metric, and under None of the loss or of each of several answers; ``wanted``
    is what to return of them, in words. ``runs``: no draw is judged a second time;
    ``repeats``: the same item comes again, for another run. ``settling`` is the loss of a run that
    ends a draw of up to ``tries`` runs.
    """

    lease_seconds: float
    scores: Mapping[str | None, JudgedScore]
    wanted: Mapping[str | None, str]
    runs: bool = False
    repeats: bool = False
    tries: int = 1
    settling: float | None = None

    @property
    def turned(self) -> bool:
        """True if a score that is returned is better the higher it is."""
        return any(score.higher for score in self.scores.values())

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read the answer of a service."""
        parts: dict[str | None, Mapping[str, Any]] = {None: document}
        scores: dict[str | None, JudgedScore] = {}
        wanted: dict[str | None, str] = {}
        for metric in document.get("metrics") or ():
            parts[metric["name"]] = metric | {"loss": metric}
        for name, part in parts.items():
            loss = part.get("comparison") or part.get("loss")
            if not loss:
                continue
            lower, upper = map(float, loss["scale"])
            if loss["kind"] == "preference":
                wanted[name] = A_PREFERENCE
            elif len(parts) == 1 or name is not None:
                wanted[name] = f"{A_LOSS} from {lower:g} to {upper:g}"
            if score := part.get("score"):
                higher, whole = score["better"] == "higher", loss["kind"] == "zero_one"
                scores[name] = JudgedScore(score["name"], higher, whole, lower, upper)
        runs, repeats = (bool(document.get(name)) for name in ("runs", "repeats"))
        success = document.get("success") or {"runs": 1, "settling": None}
        return cls(
            member(document, "lease_seconds"),
            scores,
            wanted,
            runs,
            repeats,
            tries=int(success["runs"]),
            settling=success["settling"],
        )

    def check_fresh(self, keeper: str) -> None:
        """Refuse to have ``keeper``, which knows an item again, judge what is run again."""
        if self.repeats or self.tries > 1:
            judges = "`session.judge` with a function, or `celeus judge --program`"
            rule = f"one without `repeats` and `success`, or {judges}"
            message = f"The session runs its items again, and {keeper}: expected {rule}."
            raise InvalidValue(message, field="session", rule=rule)


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """Counts of what a judge did: `overtaken` are the items whose labels were not needed.

    Others judged them first, as an item that holds up the others is handed to a second judge, or
    the session stopped, and the call did not end with it.

    `state` is the last one the service gave, such as `target_reached`.
    """

    state: str
    labels: int
    unjudgeable: int
    overtaken: int


NO_TASK = JudgeTask(LEASE_SECONDS, MappingProxyType({}), MappingProxyType({}))


class Holder(Protocol):
    """Whoever can renew the lease of what a worker holds."""

    def __call__(self) -> Any:  # noqa: ANN401 -- a client waits for it or hands it on
        """Ask again with the same count."""


class AnswerText(str):
    """The text of an answer to judge, and whatever else is shown of it in ``payload``.

    ``answer`` is the text again, or None where a payload is all there is.
    """

    __slots__ = ("answer", "payload")
    answer: str | None
    payload: Any

    @classmethod
    def of(cls, shown: ShownAnswer) -> "AnswerText":
        """Return an answer that was shown."""
        text = cls(shown.answer or "")
        text.answer, text.payload = shown.answer, shown.payload
        return text

    def __eq__(self, other: object) -> bool:
        if isinstance(other, AnswerText):
            return (self.answer, self.payload) == (other.answer, other.payload)
        return self.answer == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


class Turn:
    """One item to judge: say `observe`, `label`, `prefer` or `unjudgeable` of it, or `pass_on`.

    A judgement is sent when the next item is asked for, in the same request. A ``comment`` of up
    to 2 000 characters is for those who see the session; nothing rests on it. Answers of systems,
    ``left`` and ``right`` of two and ``answers`` of several, are their texts.
    """

    __slots__ = (
        "_holder",
        "_task",
        "answers",
        "id",
        "index",
        "left",
        "payload",
        "right",
        "round",
        "runs",
        "said",
        "turn",
    )

    def __init__(self, draw: Draw, holder: Holder, task: JudgeTask = NO_TASK) -> None:
        self.round = draw.round
        self.turn = draw.turn
        self.id = draw.item.id
        self.index = draw.item.index
        self.payload = draw.item.payload
        self.left = None if draw.left is None else AnswerText.of(draw.left)
        self.right = None if draw.right is None else AnswerText.of(draw.right)
        self.answers = tuple(map(AnswerText.of, draw.answers))
        self.said: dict[str, Any] | None = None
        self.runs = draw.runs or 0
        self._holder = holder
        self._task = task

    def observe(
        self,
        loss: Any,  # noqa: ANN401 -- also numbers of NumPy
        comment: str | None = None,
        runs: int | None = None,
    ) -> None:
        """The loss; of several systems or metrics the losses by name, or as `answers` are shown.

        It is a loss, of which less is better, also where the pool names a score. ``runs`` is how
        many were made, where a draw has several.
        """
        judgement: dict[str, Any]
        if isinstance(loss, Mapping):
            judgement = {"losses": {name: self._number(value) for name, value in loss.items()}}
        elif isinstance(loss, Sequence) and not isinstance(loss, str):
            judgement = {"losses": [self._number(value) for value in loss]}
        else:
            judgement = {"loss": self._number(loss)}
        if runs is not None:
            judgement["runs"] = runs
        self._say(comment, **judgement)

    def label(self, label: int, comment: str | None = None) -> None:
        """The true class, from which the service computes the loss."""
        self._say(comment, label=int(label))

    def prefer(self, side: str, grade: int | None = None, comment: str | None = None) -> None:
        """Say which of two answers is better: `left`, `tie` or `right`, and by how many grades.

        `both_bad` counts as a tie, and is kept apart from it.
        """
        self._say(comment, preference=side, **({} if grade is None else {"grade": grade}))

    def unjudgeable(self, why: str, comment: str | None = None) -> None:
        """Nobody can judge it; left out it would count as easy, so that it has to be said."""
        self._say(comment, unjudgeable=why)

    def pass_on(self) -> None:
        """Leave it to somebody else; it comes back if nobody else takes it, or nothing is left."""
        self.said = dict(PASSED)

    def keep(self) -> Any:  # noqa: ANN401 -- awaited by whoever holds it without blocking
        """Hold it for another `lease_seconds`; false where somebody else holds it now."""
        return self._holder()

    def take(self, verdict: object, task: JudgeTask = NO_TASK) -> None:
        """Take a function's verdict on it: a loss, losses or a preference; or scores, if named.

        None is taken only where the function has judged it itself, as by `label`. Refuses what may
        mean one thing or its opposite.
        """
        if verdict is None:
            if self.said is None:
                raise self._nothing(task.wanted.get(None, A_LOSS))
        elif isinstance(verdict, str):
            word = PREFERENCES.get(" ".join(verdict.lower().replace("_", " ").split()))
            if word is None:
                rule = task.wanted.get(None, f"{A_LOSS} ({A_PREFERENCE} of two answers)")
                if rule == A_PREFERENCE:
                    rule += "; both_bad is a tie of its own"
                elif self.left is not None:
                    rule = "left, tie or right, or a loss as a number; both_bad is a tie of its own"
                message = f"a verdict on {self.id!r} must be {rule}, and is {shortened(verdict)}"
                raise InvalidValue(message, field="preference", rule=rule, value=verdict)
            self.prefer(word)
        else:
            self.observe(self._losses(verdict, task))

    def _losses(self, verdict: Any, task: JudgeTask) -> Any:  # noqa: ANN401 -- as `observe` takes it
        """The losses that are returned, or that are the scores returned."""

        def loss(value: object, name: str | None = None) -> object:
            score = task.scores.get(name, task.scores.get(None))
            wanted = task.wanted.get(name, A_LOSS)
            if value is None:
                what = "" if name is None else f"the {name} of "
                raise self._nothing(wanted, what)
            if score is not None:
                return score.loss(value, self.id)
            self._check_number(value, wanted)
            return value

        if isinstance(verdict, Mapping):
            return {name: loss(value, name) for name, value in verdict.items()}
        if isinstance(verdict, Sequence):
            return [loss(value) for value in verdict]
        return loss(verdict)

    def settled(self, task: JudgeTask) -> bool:
        """Return whether the run judged settles a draw of several; else it is to be run again.

        Who says how many ``runs`` were made has judged all of them.
        """
        judgement = self.said or {}
        if judgement == PASSED or "runs" in judgement:
            return True
        self.runs += 1
        loss = judgement.get("loss")
        if loss is not None and loss != task.settling and self.runs < task.tries:
            self.said = None
            return False
        self.said = {**judgement, "runs": self.runs}
        return True

    @property
    def place(self) -> dict[str, int]:
        """Its round, and the turn where a panel judges it several times."""
        return {"round": self.round} | ({} if self.turn is None else {"turn": self.turn})

    def _say(self, comment: str | None, **judgement: Any) -> None:  # noqa: ANN401 -- JSON
        if self._task.tries > 1 and not judgement.keys() & {"loss", "unjudgeable"}:
            rule = f"return {self._task.wanted.get(None, A_LOSS)}, or {UNTOLD}"
            message = f"{self.id!r} is judged by a loss for each run, which settles it: {rule}"
            raise InvalidValue(message, field="loss", rule=rule)
        self.said = judgement | ({} if comment is None else {"comment": comment})

    def _nothing(self, wanted: str, what: str = "") -> InvalidValue:
        rule = f"return {wanted}, or {UNTOLD}"
        message = f"the judge returned nothing for {what}{self.id!r}: {rule}"
        return InvalidValue(message, field="judge", rule=rule)

    def _check_number(self, loss: object, wanted: str = A_LOSS) -> None:
        """Refuse a bool, which may mean a thing or its opposite."""
        if isinstance(unboxed(loss), bool):
            message = f"the judgement of {self.id!r} is {loss}: which is better? Return {wanted}"
            if wanted != A_PREFERENCE:
                message = (
                    f"the loss of {self.id!r} is {loss}: is it right or wrong? Return {wanted},"
                    ' or name what is returned, as score=("accuracy", "higher")'
                )
            raise InvalidValue(message, field="loss", rule=wanted, value=bool(loss))

    def _number(self, loss: object) -> float | None:
        self._check_number(loss)
        return None if loss is None else finite(loss, f"a loss of {self.id!r}", "loss")

    def __repr__(self) -> str:
        return f"Turn(round={self.round}, id={self.id!r}, said={self.said!r})"


class HeldTurns:
    """The items that one worker of a session holds: up to ``size`` at once, by default one.

    Judgements are sent together by `step`, or each when it is made by `roll`. With ``leaving`` set
    it waits for no items that others hold. ``lease`` is the time in seconds that a program asks to
    hold them, and renews; None leaves it to the session. ``seen`` is called with the session's
    status after each answer that has it.
    """

    def __init__(  # noqa: PLR0913 -- how a worker judges, each by its name
        self,
        session: str,
        worker: str,
        size: int | None = None,
        *,
        wait_paused: bool = False,
        lease: int | None = None,
        seen: Seen | None = None,
    ) -> None:
        self.many, size = size is not None, 1 if size is None else size
        if not 1 <= size <= MOST_HELD:
            rule = f"1 to {MOST_HELD}"
            raise InvalidValue(f"size must be {rule}", field="size", rule=rule, value=size)
        self.session = session
        self.path = f"/v1/sessions/{session}"
        self.worker = worker
        self.size = size
        self.wait_paused = wait_paused
        self.seen = seen
        self.held: list[Turn] = []
        self.task = NO_TASK
        self.state = "active"
        self.rest = 0.0
        self.status: Mapping[str, Any] = {}
        self.leaving = False
        self.beats = 0
        self._asked = {"worker": worker} | ({} if lease is None else {"lease_seconds": lease})
        self.passed: set[int] = set()
        self.labels = self.unjudgeable = self.overtaken = 0

    def step(self, holder: Holder) -> Flow[list[Turn]]:
        """Send the judgements and hold the next items; none when there is nothing more to judge."""
        for turn in self.held:
            if turn.said is None:
                message = f"{turn.id} was taken, and nothing was said of it"
                rule = "observe, label, prefer, unjudgeable or pass_on"
                raise InvalidValue(message, field="item", rule=rule)
        held, self.held = self.held, []
        passed_on = any(turn.said == PASSED for turn in held)
        reply = yield from self._submit(held, self.size)
        self.beats = 0
        while True:
            if reply is None:
                if self.state == "closed":
                    return []
                reply = yield from self._next(self.size)
            self.state = member(reply, "state")
            draws = [read(Draw, draw) for draw in member(reply, "draws")]
            self.held = [Turn(draw, holder, self.task) for draw in draws]
            rounds = {turn.round for turn in self.held}
            if passed_on and rounds and self.passed.issuperset(rounds):
                # Nothing else is left: others may come for it, so it is not passed to and fro
                yield Pause(LONGEST_LOOK)
            if self.held or not self._waits():
                return list(self.held)
            yield Pause(min(reply.get("retry_after") or LONGEST_LOOK, LONGEST_LOOK))
            reply = None

    def roll(self, holder: Holder) -> Flow[list[Turn]]:
        """Send the judgements there are, hold up to ``size`` items, and return the new ones.

        Others stay in work meanwhile. Where none come, ``state`` says why: `all_leased` and
        `waiting` are worth asking again after ``rest`` seconds. ``status`` is the session's
        latest.
        """
        judged = [turn for turn in self.held if turn.said is not None]
        working = [turn for turn in self.held if turn.said is None]
        reply = yield from self._submit(judged, self.size)
        self.held = working
        self.beats = 0
        if reply is None and self.state != "closed":
            reply = yield from self._next(self.size)
        if reply is None:
            return []
        self.state = member(reply, "state")
        self.rest = min(reply.get("retry_after") or LONGEST_LOOK, LONGEST_LOOK)
        self.status = reply.get("session", self.status)
        known = {turn.round for turn in working}
        draws = [read(Draw, draw) for draw in member(reply, "draws")]
        fresh = [Turn(draw, holder, self.task) for draw in draws if draw.round not in known]
        self.held = [*working, *fresh]
        return fresh

    @property
    def in_work(self) -> list[str]:
        """Names of the items held of which nothing has been said."""
        return [turn.id for turn in [*self.held] if turn.said is None]

    def finish(self) -> Flow[None]:
        """Send the judgements not yet sent, and take nothing more."""
        held = [turn for turn in self.held if turn.said is not None]
        self.held = []
        yield from self._submit(held, 0)

    def abandon(self) -> None:
        """Let go of what is held: what the judge says of it is not sent."""
        self.overtaken += len(self.held)
        self.held = []

    def shown(self, held: list[Turn]) -> Any:  # noqa: ANN401 -- as the function of a judge takes it
        """Return what a judge is given: the item, or with a ``size`` a list of them."""
        return held if self.many else held[0]

    def take(self, held: list[Turn], verdicts: Any) -> list[Turn]:  # noqa: ANN401 -- of any judge
        """Keep what a judge returned for what it was `shown`, all of it or nothing.

        Returns the draws that need another run, of which the judge is asked again once it is
        known (`keep_runs`) that the runs so far were made.
        """
        try:
            for turn, verdict in zip(held, verdicts if self.many else [verdicts], strict=True):
                turn.take(verdict, self.task)
        except BaseException:
            for turn in held:
                turn.said = None
            raise
        return self.unsettled(held)

    def unsettled(self, held: Iterable[Turn]) -> list[Turn]:
        """Return the judged draws that need another run, of which nothing is said any more."""
        if self.task.tries == 1:
            return []
        again = [turn for turn in held if not turn.settled(self.task)]
        if again:
            self.beats = 0
        return again

    def keep_runs(self, held: Sequence[Turn]) -> Flow[None]:
        """Have it kept how many runs were made of draws that none of them settles."""
        runs = [{"round": turn.round, "runs": turn.runs} for turn in held]
        body = self._asked | {"count": 0, "runs": runs}
        yield from post(f"{self.path}/next", body, patient=True)

    def keep(self, *, patient: bool = True) -> Flow[bool]:
        """Renew the leases of all items held; return whether all are still held."""
        if not self.held:
            return False
        reply = yield from self._next(0, patient=patient)
        self.state = member(reply, "state")
        rounds = {draw["round"] for draw in member(reply, "draws")}
        return rounds >= {turn.round for turn in self.held}

    def beat(self) -> Flow[bool]:
        """Renew the leases of what is held while the judge thinks, but not for ever.

        What fails is not repeated: the next beat is that.
        """
        if self.beats >= MOST_BEATS:
            return False
        self.beats += 1
        return (yield from self.keep(patient=False))

    def _next(self, count: int, *, patient: bool = True) -> Flow[Any]:
        body, tries = self._asked | {"count": count}, TRIES if patient else 1
        return (yield from post(f"{self.path}/next", body, patient=patient, tries=tries))

    def _waits(self) -> bool:
        if self.leaving:
            return False
        return self.state in NONE_LEFT or (self.state == "paused" and self.wait_paused)

    def _submit(self, held: list[Turn], following: int) -> Flow[dict[str, Any] | None]:
        """Send judgements and return the answer; None where the next items are asked for apart."""
        passed = [turn.round for turn in held if turn.said == PASSED]
        if passed:
            given = {"worker": self.worker, "rounds": passed, **PASSED}
            yield from post(f"{self.path}/release", given, patient=True)
            self.passed.update(passed)
            held = [turn for turn in held if turn.said != PASSED]
        if not held:
            return None
        judgements = [{**turn.place, **(turn.said or {})} for turn in held]
        body: dict[str, Any] = self._asked | {"next": following}
        body |= judgements[0] if len(judgements) == 1 else {"observations": judgements}
        try:
            path = f"{self.path}/observe"
            reply: dict[str, Any] = yield from post(path, body, patient=True)
        except Problem as problem:
            if problem.code in OVERTAKEN and len(held) > 1:
                # All or none: sent singly, they show which of them it is
                for turn in held:
                    yield from self._submit([turn], 0)
                return None
            self._declined(problem)
            return None
        receipts = reply.get("receipts") or [member(reply, "receipt")]
        kept = [
            judgement
            for judgement, receipt in zip(judgements, receipts, strict=True)
            if not receipt.get("duplicate", False)
        ]
        self.overtaken += len(judgements) - len(kept)
        self.labels += len(kept)
        self.unjudgeable += sum("unjudgeable" in judgement for judgement in kept)
        if self.seen is not None and "estimate" in (session := member(reply, "session")):
            self.seen(read(Status, session))
        return reply

    def _declined(self, problem: Problem) -> None:
        if problem.code in OVERTAKEN:
            self.overtaken += 1
        elif problem.code == "session_closed":
            self.state = "closed"
        else:
            raise problem


def workers_of(
    session: str, name: str, concurrency: int, size: int | None, seen: Seen | None
) -> list[HeldTurns]:
    """Return one worker for each judge, with numbered names."""
    check_concurrency(concurrency)
    return [
        HeldTurns(session, f"{name}-{number}", size, lease=LEASE_SECONDS, seen=seen)
        for number in range(1, concurrency + 1)
    ]


def check_concurrency(concurrency: int) -> None:
    """Refuse numbers of judges that one client cannot serve."""
    if not 1 <= concurrency <= MOST_JUDGES:
        rule = f"1 to {MOST_JUDGES}"
        raise InvalidValue(
            f"concurrency must be {rule}", field="concurrency", rule=rule, value=concurrency
        )


def total(workers: Sequence[HeldTurns]) -> JudgeResult:
    """Return the sum of what several workers did."""
    states = [worker.state for worker in workers]
    return JudgeResult(
        state=next((state for state in states if state in STOPPED), states[-1]),
        labels=sum(worker.labels for worker in workers),
        unjudgeable=sum(worker.unjudgeable for worker in workers),
        overtaken=sum(worker.overtaken for worker in workers),
    )


def finite(value: object, what: str, field: str) -> float:
    """A number as Python has it, one of NumPy too; raises InvalidValue for anything else."""
    given = unboxed(value)
    try:
        number = float(given) if isinstance(given, Real | Decimal) else math.nan
    except (OverflowError, ValueError):  # An integer beyond all floats, a signalling NaN
        number = math.nan
    if not math.isfinite(number):
        rule = "a finite number"
        message = f"{what} must be {rule}, and is {shortened(given)}"
        raise InvalidValue(message, field=field, rule=rule, value=given)
    return number


def unboxed(value: object) -> object:
    """Return a number of NumPy or the like as Python has it, and all else as it is."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "size", 1) == 1 else value
