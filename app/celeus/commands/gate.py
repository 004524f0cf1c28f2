"""`celeus gate`: the answer of a session as an exit status, for pipelines.

0 when every answer is yes, 2 when one is no, 3 while one is undecided, 1 on an error.
"""

import json
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from celeus.errors import InvalidValue

if TYPE_CHECKING:
    # Not even for annotations at run time: it takes a fifth of a second.
    from celeus.commands.gate_client import Server
    from celeus.core.plans.stopping import Question, Side

STATUS = {"yes": 0, "no": 2, "undecided": 3}
"""Exit status by answer; 1 is for errors."""
SIDES = ("a", "b")
POLL_SECONDS = 2.0
REQUEST_SECONDS = 10.0


class GateCommand(TyperCommand):
    """A command that exits 1 on wrong usage: 2 means "no" here."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 -- typer brings its own click
        """Read the options, or refuse them by name."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            message = getattr(error, "format_message", None)
            if message is None:
                raise
            raise InvalidValue(message()) from error


@dataclass(frozen=True, slots=True)
class Outcome:
    """A session's document, and the answers asked for."""

    session: dict[str, Any]
    answers: list[dict[str, Any]]

    @property
    def answer(self) -> str:
        """No when one answer is no, yes when all are, else undecided."""
        given = {one["answer"] for one in self.answers}
        if "no" in given:
            return "no"
        return "yes" if given == {"yes"} else "undecided"

    @property
    def final(self) -> bool:
        """Whether waiting cannot change the outcome."""
        return self.answer != "undecided" or self.session["state"] == "closed"

    def line(self) -> str:
        """Claim, interval and answers for a reader."""
        known = self.session
        answers = ", ".join(_line(one) for one in self.answers)
        settings = settings_line(fixed=known["fixed"], changes=known["changes"])
        return f"{known['id']}: {_said(known)} ({known['state']}, settings {settings}); {answers}"

    def to_dict(self) -> dict[str, Any]:
        """The same for a program."""
        names = ("target", "alpha", "lower", "upper", "estimate", "round", "state", "policy")
        more = ("method_version", "revision", "fixed", "changes")
        return {
            "session": self.session["id"],
            "answer": self.answer,
            "answers": self.answers,
            **{name: self.session[name] for name in (*names, *more)},
            **{name: self.session[name] for name in ("score", "sentence")},
            **({} if self.session["systems"] is None else {"systems": named(self.session)}),
        }


def _said(session: dict[str, Any]) -> str:
    """The session's own sentence, or its interval where it was written before sentences."""
    from celeus.client.service import plain

    if session["sentence"] is not None:
        return plain(session["sentence"]).removesuffix(".")
    ends = f"[{session['lower']}, {session['upper']}]"
    return f"{session['target']} risk in {ends} with probability {1.0 - session['alpha']:g}"


def _line(one: dict[str, Any]) -> str:
    where = "" if one["round"] is None else f" (round {one['round']})"
    if "verdict" in one:
        verdict = "" if one["verdict"] in (None, "undecided") else f", {one['verdict']}"
        within = f" within {_margin(one)}" if one["margin"] else ""
        return f"{one['system']} at least as good{within}: {one['answer']}{verdict}{where}"
    name = f"{one['score']} " if "score" in one else ""
    return f"{name}{one['side'].replace('_', ' ')} {one['threshold']:g}: {one['answer']}{where}"


def _margin(one: dict[str, Any]) -> str:
    """The margin as the session's sentence has it: of a share in points."""
    if one["unit"] == "share":
        return f"{100 * one['margin']:.10g} points"
    return f"{one['margin']:.10g}"


def named(session: dict[str, Any]) -> dict[str, str]:
    """The names of the two systems compared; a pool of plain differences calls them a and b."""
    from celeus.client.service import plain

    names = session["systems"] or {}
    return {side: plain(str(names.get(side, side))) for side in SIDES}


def settings_line(*, fixed: bool, changes: object) -> str:
    """Whether precision, budget and stop of a session are fixed, or how often they changed."""
    if fixed:
        return "fixed"
    if not changes:
        return "never changed"
    return "changed once" if changes == 1 else f"changed {changes} times"


def gate(  # noqa: PLR0913 -- one parameter an option
    *,
    session: Annotated[str, typer.Option(help="Id of the session, `ses_…`.")],
    url: Annotated[
        str, typer.Option(envvar="CELEUS_URL", help="Address of the service.")
    ] = "http://127.0.0.1:8000",
    api_key_file: Annotated[
        Path | None,
        typer.Option(help="File with a key of scope `read`; default: the key in CELEUS_KEY."),
    ] = None,
    wait: Annotated[
        float, typer.Option(min=0.0, max=604_800.0, help="How many seconds to wait for an answer.")
    ] = 0.0,
    at_most: Annotated[
        float | None,
        typer.Option(help="Ask whether the risk is at most this, not what the session asks."),
    ] = None,
    at_least: Annotated[
        float | None,
        typer.Option(help="Ask whether the risk is at least this, not what the session asks."),
    ] = None,
    score_at_most: Annotated[
        float | None,
        typer.Option(help="Ask whether the score is at most this, such as 0.05 for 5 %."),
    ] = None,
    score_at_least: Annotated[
        float | None,
        typer.Option(help="Ask whether the score is at least this, such as 0.8 for 80 %."),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="SYSTEM",
            help="Ask whether this one of the two systems compared may replace the other: it is at"
            " least as good, or equivalent within the margin.",
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="With --compare: ask the interval whether it is worse by no more than this.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Exit 0 when a session answers yes to its questions, 2 for no, 3 while undecided, 1 on errors.

    --at-most, --at-least, the same with --score and --margin are valid although the session did not
    ask for them when it was opened: its interval holds the mean, so it is right about every
    threshold at once. The risk is the mean loss; the score is what its pool calls it, turned over
    where higher is better.
    """
    from celeus.commands.gate_client import Server, Unanswered

    thresholds = {
        "--at-most": at_most,
        "--at-least": at_least,
        "--score-at-most": score_at_most,
        "--score-at-least": score_at_least,
    }
    question = _question(thresholds, compare, margin)
    if math.isnan(wait):
        # Neither above nor below any limit, so the option lets it pass
        raise InvalidValue("--wait must be a number of seconds", field="--wait", rule="a number")
    try:
        outcome = _wait(Server(url, session, key_of(api_key_file)), question, wait)
    except Unanswered as error:
        typer.echo(f"celeus: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(json.dumps(outcome.to_dict()) if as_json else outcome.line())
    raise typer.Exit(STATUS[outcome.answer])


def key_of(file: Path | None) -> str | None:
    """The key of the file or the environment; an argument would show it to every user here."""
    if file is None:
        return os.environ.get("CELEUS_KEY") or None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidValue(f"{file} cannot be read: {why}", field="api_key_file") from error


@dataclass(frozen=True, slots=True)
class Replacement:
    """May ``system`` replace the other one of two? A margin of None is the session's own."""

    system: str
    margin: float | None

    def answered(self, session: dict[str, Any]) -> dict[str, Any]:
        """Yes where it is at least as good or equivalent, no where the other is at least as good.

        Raises InvalidValue where the session compares no such system.
        """
        names = named(session)
        if session["systems"] is None and session["verdict"] is None:
            message = f"{session['id']} compares no two systems"
            raise InvalidValue(message, field="session")
        side = self._side(session["systems"] or {}, names)
        if side is None:
            rule = f"{names['a']} or {names['b']}"
            message = f"--compare must be {rule}, the systems of {session['id']}"
            raise InvalidValue(message, field="--compare", rule=rule, value=self.system)
        # Sessions older than scores have none
        unit = (session["score"] or {"unit": "number"})["unit"]
        system = {"system": names[side], "unit": unit}
        if self.margin is None:
            return system | self._decided(session, side)
        return system | self._seen(session, side, self.margin)

    def _side(self, *names: dict[str, str]) -> str | None:
        """The side so called, by the first kind of name that one is: a system may be named "b"."""
        for of in (*names, dict(zip(SIDES, SIDES, strict=True))):
            sides = [one for one in SIDES if of.get(one) == self.system]
            if sides:
                return sides[0] if len(sides) == 1 else None
        return None

    def _decided(self, session: dict[str, Any], side: str) -> dict[str, Any]:
        """The session's own verdict: its first one, which stays."""
        own: dict[str, Any] | None = session["verdict"]
        if own is None:
            message = f"{session['id']} asks for no verdict; name a --margin, 0 for none"
            raise InvalidValue(message, field="--margin")
        yes = own["answer"] in (f"{side}_at_least_as_good", "equivalent")
        no = "undecided" if own["answer"] == "undecided" else "no"
        answer = "yes" if yes else no
        return {
            "margin": own["margin"],
            "verdict": own["answer"],
            "answer": answer,
            "round": own["round"],
        }

    def _seen(self, session: dict[str, Any], side: str, margin: float) -> dict[str, Any]:
        """What the interval says: yes where it is worse by no more than the margin, no by more."""
        from celeus.core.interval import Interval
        from celeus.core.plans.stopping import Question, rounding

        lower, upper = session["lower"], session["upper"]
        widest = max(abs(lower), abs(upper), margin)
        question = Question("at_most", margin) if side == "a" else Question("at_least", -margin)
        answer = question.answer(Interval(lower, upper), rounding(Interval(-widest, widest)))
        return {"margin": margin, "verdict": None, "answer": answer, "round": None}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question the session need not have asked; ``score``: of the score in place of the risk."""

    question: "Question"
    score: bool

    def answered(self, session: dict[str, Any]) -> dict[str, Any]:
        """What the interval says.

        Raises InvalidValue where the session has no score of one system.
        """
        from celeus.client.service import plain
        from celeus.core.interval import Interval
        from celeus.core.plans.stopping import rounding

        found, question = session, self.question
        name: dict[str, Any] = {}
        if self.score:
            compared = session["systems"] is not None or session["verdict"] is not None
            if compared or session["score"] is None:
                message = f"{session['id']} has no score of one system"
                raise InvalidValue(message, field="session")
            found = session["score"]
            name = {"score": plain(found["name"])}
        interval = Interval(found["lower"], found["upper"])
        slack = rounding(Interval(interval.lower, max(interval.upper, abs(question.threshold))))
        return {
            **name,
            "side": question.side,
            "threshold": question.threshold,
            "answer": question.answer(interval, slack),
            "round": None,
        }


def _question(
    thresholds: dict[str, float | None], compare: str | None, margin: float | None
) -> Asked | Replacement | None:
    from celeus.core.plans.stopping import Question

    given = {name: one for name, one in thresholds.items() if one is not None}
    if len(given) + (compare is not None) > 1:
        rule = f"one of {', '.join(thresholds)} and --compare"
        raise InvalidValue(f"give only {rule}", field="at_most", rule=rule)
    if margin is not None and compare is None:
        raise InvalidValue("--margin needs --compare", field="--margin", rule="with --compare")
    for threshold in (*given.values(), margin):
        if threshold is not None and not math.isfinite(threshold):
            raise InvalidValue(
                "the threshold must be a finite number", field="threshold", value=threshold
            )
    if compare is not None:
        return Replacement(compare, margin)
    for name, threshold in given.items():
        side: Side = "at_most" if name.endswith("at-most") else "at_least"
        return Asked(Question(side, threshold), name.startswith("--score"))
    return None


def _wait(server: "Server", question: Asked | Replacement | None, wait: float) -> Outcome:
    """The session when it is decided or closed, else when the wait is over."""
    from celeus.commands.gate_client import Unanswered

    deadline = time.monotonic() + wait
    while True:
        pause = POLL_SECONDS
        try:
            outcome: Outcome | Unanswered = _outcome(server.document(REQUEST_SECONDS), question)
        except Unanswered as error:
            if not error.passing:
                raise
            outcome = error
            pause = max(pause, error.retry_after)
        remaining = deadline - time.monotonic()
        if isinstance(outcome, Unanswered):
            # Whoever asks to be left alone for longer than we wait is not asked again.
            if remaining <= 0.0 or outcome.retry_after > remaining:
                raise outcome
        elif outcome.final or remaining <= 0.0:
            return outcome
        time.sleep(min(pause, remaining))


def _outcome(session: dict[str, Any], question: Asked | Replacement | None) -> Outcome:
    if question is not None:
        return Outcome(session, [question.answered(session)])
    if not session["decisions"]:
        how = "--at-most or --at-least" if session["verdict"] is None else "--compare"
        raise InvalidValue(f"{session['id']} has no questions; ask one with {how}", field="session")
    return Outcome(session, session["decisions"])
