"""`celeus gate`: the answer of a session as an exit status, for pipelines.

0 when every answer is yes, 2 when one is no, 3 while one is undecided, 1 on an error.
"""

import json
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from celeus.commands.options import HERE, NUMBER, SessionId, Url, check_file, read_key
from celeus.errors import InvalidValue, Refusal
from celeus.shorten import one_line

if TYPE_CHECKING:
    # Not even for annotations at run time: it takes a tenth of a second.
    from celeus.gates.reports import Report

STATUS = {"yes": 0, "no": 2, "undecided": 3}
"""Exit status by answer; 1 is for errors."""
GITHUB = "github"
"""The destination of an answer in a step of GitHub Actions."""


class GateCommand(TyperCommand):
    """A command that exits 1 on wrong usage: 2 means "no" here."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 -- typer brings its own click
        """Read the options, or refuse them by name."""
        github = GITHUB in args or f"--report={GITHUB}" in args
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            message = getattr(error, "format_message", None)
            if message is None:
                raise
            from celeus.gates.reports import Report, annotation
            from celeus.gates.waiting import veil

            refusal = InvalidValue(message())
            with suppress(Refusal):
                veil(read_key(), refusal)
            if github:
                typer.echo(annotation(Report(one_line(refusal.line))))
                raise SystemExit(1) from None
            raise refusal from error


TERMS = {"cls": GateCommand}


def gate(  # noqa: PLR0913 -- one parameter an option
    session: SessionId,
    *,
    url: Url = HERE,
    wait: Annotated[
        float, typer.Option(min=0.0, max=604_800.0, help="How many seconds to wait for an answer.")
    ] = 0.0,
    at_most: Annotated[
        str | None,
        typer.Option(
            metavar=NUMBER,
            help="Ask whether the risk is at most this, such as 0.1 or 10%, not what the session"
            " asks.",
        ),
    ] = None,
    at_least: Annotated[
        str | None,
        typer.Option(
            metavar=NUMBER,
            help="Ask whether the risk is at least this, not what the session asks.",
        ),
    ] = None,
    score_at_most: Annotated[
        str | None,
        typer.Option(
            metavar=NUMBER, help="Ask whether the score is at most this, such as 0.05 or 5%."
        ),
    ] = None,
    score_at_least: Annotated[
        str | None,
        typer.Option(
            metavar=NUMBER, help="Ask whether the score is at least this, such as 0.8 or 80%."
        ),
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
        str | None,
        typer.Option(
            metavar=NUMBER,
            help="With --compare: ask the interval whether it is worse by no more than this, such"
            " as 0.02 or 2pt (points).",
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="Of a session of several claims: ask that about this metric."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(metavar="COLUMN=VALUE", help="With --metric: of this group, not all items."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
    report: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|github",
            help="Where the answer goes, too: a .xml file for JUnit's, with a test case for each"
            " question, a .md file for a table; in GitHub Actions github, for an annotation,"
            " outputs and a summary of the step. Repeat it.",
        ),
    ] = None,
) -> None:
    """Exit 0 when a session answers yes to its questions, 2 for no, 3 while undecided, 1 on errors.

    --at-most, --at-least, the same with --score and --margin are valid although the session did not
    ask for them when it was opened: its interval holds the mean, so it is right about every
    threshold at once; one off the scale is refused. The risk is the mean loss; the score is what
    its pool calls it, turned over where higher is better. Of several claims --metric names one,
    whose interval holds by itself.
    """
    from celeus.gates.documents import part_of
    from celeus.gates.questions import question_of
    from celeus.gates.reports import Report
    from celeus.gates.waiting import Gate, veil

    thresholds = {
        "--at-most": at_most,
        "--at-least": at_least,
        "--score-at-most": score_at_most,
        "--score-at-least": score_at_least,
    }
    destinations = Destinations.of(report or (), as_json=as_json)
    began, key = time.monotonic(), None
    try:
        key = read_key()
        question = question_of(thresholds, compare, margin)
        if math.isnan(wait):
            # Neither above nor below any limit, so the option lets it pass
            rule = "a number of seconds"
            raise InvalidValue(f"--wait must be {rule}", field="--wait", rule=rule)
        asked = Gate(url, session, key, part_of(metric, group))
        outcome = asked.outcome(question, wait)
    except Refusal as refusal:
        veil(key, refusal)
        destinations.tell(Report(one_line(refusal.line), time.monotonic() - began))
        if destinations.github:
            raise typer.Exit(1) from None
        raise
    destinations.tell(Report(outcome, time.monotonic() - began))
    raise typer.Exit(STATUS[outcome.answer])


@dataclass(frozen=True, slots=True)
class Destinations:
    """The destinations of a gate's report: GitHub, JSON on the terminal, files."""

    github: bool
    as_json: bool
    files: tuple[Path, ...]

    @classmethod
    def of(cls, named: Sequence[str], *, as_json: bool) -> "Destinations":
        """Return the destinations that are named, files and GitHub; refuses what is neither."""
        from celeus.gates.reports import check_step

        github = GITHUB in named
        if github:
            check_step()
        if github and as_json:
            rule = f"one of --report {GITHUB} and --json"
            raise InvalidValue(f"give only {rule}", field="--json", rule=rule)
        files = tuple(Path(name) for name in named if name != GITHUB)
        for path in files:
            if path.suffix not in {".xml", ".md"}:
                rule = f"{GITHUB}, or a file that ends in .xml or .md"
                raise InvalidValue(f"{path} must be {rule}", field="--report", rule=rule)
            # Known before the wait, not after it
            check_file(path)
        return cls(github, as_json, files)

    def tell(self, report: "Report") -> None:
        """Write the files, and print the answer."""
        from celeus.gates.reports import annotation, tell, write

        for path in self.files:
            write(path, report.junit() if path.suffix == ".xml" else report.markdown().encode())
        if self.github:
            tell(report)
            typer.echo(annotation(report))
        elif not isinstance(report.found, str):
            found = report.found
            typer.echo(json.dumps(found.to_dict()) if self.as_json else found.line())
