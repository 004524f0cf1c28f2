"""A pool by its id, or made of a file, and what is asked of a session on it: shared options."""

import re
import shlex
from collections import abc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celeus.commands.options import NUMBER
from celeus.errors import InvalidValue, NeedsAnswer, Refusal, Unavailable
from celeus.shorten import one_line
from celeus.units import Amount

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.client.blocking import Client
    from celeus.client.results import Pool

PoolOrFile = Annotated[
    str,
    typer.Argument(
        metavar="POOL|FILE",
        help="Id of a sealed pool, `pool_…`, or a table or log: the service makes a pool of it"
        " first, which stays there for the session.",
    ),
]
Mapping = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=ROLE", help="Role of a column of the file; repeat it."),
]
Given = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="An answer to what the file leaves open, such as better=higher; repeat it.",
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(metavar=NUMBER, help="Interval width to stop at, such as 0.1 or 10%."),
]
AtMost = Annotated[
    str | None, typer.Option(metavar=NUMBER, help="Ask whether the risk is at most this.")
]
AtLeast = Annotated[
    str | None, typer.Option(metavar=NUMBER, help="Ask whether the risk is at least this.")
]
Alpha = Annotated[str, typer.Option(metavar=NUMBER, help="Probability of ever being wrong.")]
POOL_ID = re.compile(r"pool_[0-9a-f]{32}")


def check_amounts(**written: str | None) -> None:
    """Refuse what is no amount, before a file becomes a pool."""
    for name, amount in written.items():
        if amount is not None:
            Amount.of(amount, name)


def questions_of(at_most: str | None, at_least: str | None) -> list[dict[str, str]]:
    """Return the questions of a session that has these thresholds."""
    asked = {"at_most": at_most, "at_least": at_least}
    return [
        {"side": side, "threshold": threshold}
        for side, threshold in asked.items()
        if threshold is not None
    ]


def check_of(verdict: str, least: list[str] | None, precision: str | None) -> dict[str, Any]:
    """Return the members of a session that checks a judge: its verdicts, and the least asked."""
    from celeus.core.plans.judge_check import MEASURES

    column, sign, positive = verdict.rpartition("=")
    if not (column and sign and positive):
        rule = "COLUMN=POSITIVE, such as verdict=pass"
        raise InvalidValue(f"verdict must be {rule}", field="verdict", rule=rule, value=verdict)
    asked = _pairs(least, "least", "MEASURE=NUMBER")
    if not asked or asked.keys() - MEASURES.keys():
        rule = f"one or more of {', '.join(MEASURES)}, each such as tpr=0.9"
        raise InvalidValue(f"least must be {rule}", field="least", rule=rule, value=[*asked])
    check = {"column": column, "positive": positive, "measures": [*asked]}
    questions = []
    for name, value in asked.items():
        lower = MEASURES[name].lower
        loss = lower + 1.0 - Amount.of(value, "least").on((lower, 1.0), "least")
        questions.append({"metric": name, "side": "at_most", "threshold": loss})
    widths = None if precision is None else dict.fromkeys(asked, precision)
    return {"check": check, "questions": questions, "precision": widths, "policies": None}


@contextmanager
def pool_of(
    client: "Client", pool: str, mapping: list[str] | None, given: list[str] | None
) -> Iterator["Pool"]:
    """Yield the pool of this id, or a new sealed one of this file, which is printed.

    If what the new one was made for is refused, it is deleted where the key may do so. Raises
    InvalidValue for what is neither, NeedsAnswer for what the file leaves open.
    """
    members = _members(mapping, given)
    if POOL_ID.fullmatch(pool):
        if members:
            rule = "left out with a pool that is there"
            message = f"mapping and given must be {rule}"
            raise InvalidValue(message, field=next(iter(members)), rule=rule)
        yield client.pool(pool)
        return
    made = _made(client, Path(pool), members)
    try:
        yield made
    except Unavailable:
        # What was asked may have been done
        raise
    except Refusal:
        _delete(client, made)
        raise


def _members(mapping: list[str] | None, given: list[str] | None) -> dict[str, Any]:
    """Return roles of columns and answers about a file as members of a new pool."""
    from celeus.client.calls import ANSWERS

    members: dict[str, Any] = _pairs(given, "given", "NAME=VALUE")
    for name in members.keys() - {*ANSWERS}:
        rule = f"one of {', '.join(ANSWERS)}, each as NAME=VALUE"
        raise InvalidValue(f"given must be {rule}", field="given", rule=rule, value=name)
    if roles := _pairs(mapping, "mapping", "COLUMN=ROLE"):
        members["mapping"] = roles
    return members


def _made(client: "Client", file: Path, members: dict[str, Any]) -> "Pool":
    from celeus.intake.questions import question_lines

    if not file.is_file():
        rule = "a file, or the id of a pool, `pool_` and 32 hexadecimal digits"
        raise InvalidValue(f"{file} is no file and no pool", field="pool", rule=rule)
    if not file.stat().st_size:
        raise InvalidValue(f"{file} has no items", field="pool", rule="a file with an item a row")
    try:
        made = client.create_pool(file.stem, file, **members)
    except NeedsAnswer as refusal:
        for line in question_lines(refusal.questions, _typed):
            typer.echo(one_line(line), err=True)
        message = f"{file} leaves questions open: answer each by one of its options"
        raise NeedsAnswer(message, field=refusal.field) from None
    typer.echo(f"celeus: {file} is now {made.id}", err=True)
    return made


def _delete(client: "Client", pool: "Pool") -> None:
    """Delete a pool on which nothing was opened; where that is refused, say that it stays."""
    from celeus.client.calls import POOLS
    from celeus.client.exchange import post

    def archive(archived: bool) -> None:  # noqa: FBT001 -- the member of the request
        client.run(post(f"{POOLS}/{pool.id}", {"archived": archived}, "PATCH"))

    try:
        archive(True)
        client.delete_pool(pool)
    except Refusal as refusal:
        with suppress(Refusal):
            archive(False)
        typer.echo(one_line(f"celeus: {pool.id} stays: {refusal}"), err=True)
    else:
        typer.echo(f"celeus: {pool.id} is deleted again", err=True)


def _typed(question: abc.Mapping[str, Any], value: str) -> str:
    """An answer as an option."""
    option, name = "given", question["name"]
    if name == "mapping":
        option, name = name, question["column"]
    return f"--{option} {shlex.quote(f'{name}={value}')}"


def _pairs(written: list[str] | None, field: str, form: str) -> dict[str, str]:
    """Return what is written as NAME=VALUE, by name; refuses other texts, and a name twice."""
    pairs: dict[str, str] = {}
    for text in written or ():
        name, sign, value = text.rpartition("=") if field == "mapping" else text.partition("=")
        if not (name and sign and value) or name in pairs:
            rule = f"{form}, each name once"
            raise InvalidValue(f"{field} must be {rule}", field=field, rule=rule, value=text)
        pairs[name] = value
    return pairs
