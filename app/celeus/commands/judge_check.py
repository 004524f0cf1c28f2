"""`celeus judge-check`: how good an automatic judge is, by what a person says at the terminal."""

import json
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celeus.commands.gate import STATUS, GateCommand
from celeus.commands.options import Given, check_file
from celeus.commands.options import Mapping as Roles
from celeus.commands.pools import asked_as_options, file_members, rates_of
from celeus.shorten import one_line

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.client.blocking import Session
    from celeus.client.label_loop import Turn

TERMS = {"cls": GateCommand}
"""2 means "no" here, as of a gate."""
KEYS = "y, n, s (nobody can say) or q (stop for now)"


def judge_check(  # noqa: PLR0913 -- one parameter an option
    file: Annotated[Path, typer.Argument(help="Table of items with the judge's verdicts.")],
    *,
    verdict: Annotated[str, typer.Option(metavar="COLUMN", help="The column of its verdicts.")],
    positive: Annotated[
        str | None,
        typer.Option(
            metavar="VERDICT", help="The positive one; default: of yes and no, 1 and 0, the first."
        ),
    ] = None,
    people: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column of what people said of some items, in the same words: these are not"
            " asked again.",
        ),
    ] = None,
    at_least: Annotated[
        list[str],
        typer.Option(
            metavar="RATE=NUMBER",
            help="Ask whether a rate of the judge is at least this, such as tpr=0.9 or tnr=90%:"
            " tpr (recall), tnr (specificity), ppv (precision), npv, agreement, f1, jaccard or"
            " kappa; repeat it.",
        ),
    ],
    mapping: Roles = None,
    given: Given = None,
    report: Annotated[Path | None, typer.Option(help="File for a report, HTML.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Check an automatic judge against a person, who is asked at this terminal.

    Exit 0 when it is as good as asked, 2 when it is not, 3 while that is undecided, 1 on errors.
    A judge that is nearly as good as asked, or hardly better, takes about 1 000 answers. Called
    again it goes on where it was: what was said lies in the folder .celeus.
    """
    from celeus.gates.reports import write
    from celeus.runs.certify import judge_check as opened
    from celeus.runs.items import read_items

    asked = rates_of(at_least)
    check_file(report)
    groups = [verdict] if people is None else [verdict, people]
    with asked_as_options(file):
        items = read_items(file, groups=groups, **file_members(mapping, given))
    session = opened(items, None, verdict=verdict, positive=positive, people=people, **asked)
    _ask(session)
    status, claims = session.status(), session.claims()
    if report is not None:
        write(report, session.report().encode())
    check = (status.table or {})["check"]
    if as_json:
        document = {"labels": status.round, "claims": [claim.raw for claim in claims], **check}
        typer.echo(json.dumps(document))
    else:
        for claim in claims:
            (answer,) = claim.answers
            typer.echo(f"{claim.sentence} At least {asked[claim.metric]}: {answer.answer}.")
        typer.echo(_two_by_two(check))
    answers = {answer.answer for claim in claims for answer in claim.answers}
    raise typer.Exit(STATUS[next(word for word in ("no", "undecided", "yes") if word in answers)])


def _ask(session: "Session") -> None:
    """Ask of one item after the other, until all is answered or somebody stops."""
    check = (session.status().table or {})["check"]
    with closing(session.draws("terminal")) as turns:
        for turn in turns:
            key = _pressed_key(turn, check["positive"])
            if key == "q":
                return
            if key == "s":
                turn.unjudgeable("nobody can say")
            else:
                turn.observe(0.0 if key == "y" else 1.0)


def _pressed_key(turn: "Turn", positive: str) -> str:
    """Return the key pressed for an item; the end of the input stops, as q does."""
    payload = turn.payload if isinstance(turn.payload, Mapping) else {"item": turn.payload}
    typer.echo(f"\nItem {turn.round}", err=True)
    for name, value in sorted(payload.items(), key=lambda member: member[0] == "answer"):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        typer.echo(f"{one_line(name)}: {_visible(text)}", err=True)
    key = ""
    while key not in {"y", "n", "s", "q"}:
        typer.echo(f"{one_line(positive)}? {KEYS}: ", nl=False, err=True)
        key = (sys.stdin.readline() or "q").strip().lower()[:1]
    return key


def _visible(text: str) -> str:
    """The lines of a text, without what could steer the terminal."""
    return "\n".join(one_line(line) for line in text.splitlines())


def _two_by_two(check: Mapping[str, Any]) -> str:
    """Items by judge and people, in columns."""
    from celeus.runs.report import EXPECTED, verdict_rows

    rows = [[one_line(cell) for cell in row] for row in verdict_rows(check)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join([f"{EXPECTED}:", *map(str.rstrip, lines)])
