"""`celeus gate`: the answer of a session as an exit status, for pipelines.

0 when every answer is yes, 2 when one is no, 3 while one is undecided, 1 when nobody could tell.
"""

import json
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from app.errors import InvalidValue

if TYPE_CHECKING:
    # Not even for annotations at run time: it takes a fifth of a second.
    from app.commands.gateclient import Server
    from app.core.stopping import Question

STATUS = {"yes": 0, "no": 2, "undecided": 3}
"""Exit status by answer; 1 is for errors."""
POLL_SECONDS = 2.0
REQUEST_SECONDS = 10.0


class GateCommand(TyperCommand):
    """A command whose wrong usage exits 1: 2 means "no" here."""

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
class Found:
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
        """Nothing that waiting could change."""
        return self.answer != "undecided" or self.session["state"] == "closed"

    def line(self) -> str:
        """Claim, interval and answers for a reader."""
        known = self.session
        answers = ", ".join(_told(one) for one in self.answers)
        return (
            f"{known['id']}: {known['target']} risk in [{known['lower']:.6g}, {known['upper']:.6g}]"
            f" with probability {1.0 - known['alpha']:g} at every moment, after {known['round']}"
            f" rounds ({known['state']}); {answers}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The same for a program."""
        names = ("target", "alpha", "lower", "upper", "estimate", "round", "state", "policy")
        return {
            "session": self.session["id"],
            "answer": self.answer,
            "answers": self.answers,
            **{name: self.session[name] for name in (*names, "method_version", "revision")},
        }


def _told(one: dict[str, Any]) -> str:
    where = "" if one["round"] is None else f" (round {one['round']})"
    return f"{one['side'].replace('_', ' ')} {one['threshold']:g}: {one['answer']}{where}"


def gate(  # noqa: PLR0913 -- one parameter an option
    *,
    session: Annotated[str, typer.Option(help="Id of the session, `ses_…`.")],
    url: Annotated[
        str, typer.Option(envvar="CELEUS_URL", help="Where the service is.")
    ] = "http://127.0.0.1:8000",
    key: Annotated[
        str | None, typer.Option(envvar="CELEUS_KEY", help="A key with scope `read`.")
    ] = None,
    wait: Annotated[
        float, typer.Option(min=0.0, max=604_800.0, help="Seconds to wait for an answer.")
    ] = 0.0,
    at_most: Annotated[
        float | None, typer.Option(help="Ask this instead: is the risk at most so much?")
    ] = None,
    at_least: Annotated[
        float | None, typer.Option(help="Ask this instead: is the risk at least so much?")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Exit 0 when a session answers yes to its questions, 2 for no, 3 while undecided, 1 on errors.

    With --at-most or --at-least the session need not have asked beforehand: its interval holds the
    risk at every moment at once, hence on the right side of every threshold at once.
    """
    from app.commands.gateclient import Server, Unanswered

    asked = _asked(at_most, at_least)
    try:
        found = _awaited(Server(url, session, key), asked, wait)
    except Unanswered as error:
        typer.echo(f"celeus: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(json.dumps(found.to_dict()) if as_json else found.line())
    raise typer.Exit(STATUS[found.answer])


def _asked(at_most: float | None, at_least: float | None) -> "Question | None":
    from app.core.stopping import Question

    if at_most is not None and at_least is not None:
        rule = "given without --at-least"
        raise InvalidValue(f"--at-most is {rule}", field="at_most", rule=rule)
    for threshold in (at_most, at_least):
        if threshold is not None and not math.isfinite(threshold):
            raise InvalidValue("a threshold is a finite number", field="threshold", value=threshold)
    if at_most is not None:
        return Question("at_most", at_most)
    return None if at_least is None else Question("at_least", at_least)


def _awaited(server: "Server", asked: "Question | None", wait: float) -> Found:
    """The session when it is decided or closed, else when the wait is over."""
    from app.commands.gateclient import Unanswered

    deadline = time.monotonic() + wait
    while True:
        pause = POLL_SECONDS
        try:
            outcome: Found | Unanswered = _answered(server.document(REQUEST_SECONDS), asked)
        except Unanswered as error:
            if not error.passing:
                raise
            outcome = error
            pause = max(pause, error.retry_after)
        left = deadline - time.monotonic()
        if isinstance(outcome, Unanswered):
            # Whoever asks to be left alone for longer than we wait is not asked again.
            if left <= 0.0 or outcome.retry_after > left:
                raise outcome
        elif outcome.final or left <= 0.0:
            return outcome
        time.sleep(min(pause, left))


def _answered(session: dict[str, Any], asked: "Question | None") -> Found:
    from app.core.eprocess import Interval
    from app.core.stopping import rounding

    if asked is None:
        if not session["decisions"]:
            raise InvalidValue(
                f"{session['id']} asks no questions; ask one with --at-most or --at-least",
                field="session",
            )
        return Found(session, session["decisions"])
    interval = Interval(session["lower"], session["upper"])
    slack = rounding(Interval(interval.lower, max(interval.upper, abs(asked.threshold))))
    answer = asked.answer(interval, slack)
    one = {"side": asked.side, "threshold": asked.threshold, "answer": answer, "round": None}
    return Found(session, [one])
