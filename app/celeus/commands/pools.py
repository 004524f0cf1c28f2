"""A pool by its id, or made of a file, and what is asked of a session on it: shared options."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celeus.commands.file_answers import SEVERAL, answers_of, roles_of
from celeus.commands.options import NUMBER, from_input, naming_input
from celeus.errors import InvalidValue, NeedsAnswer, Refusal, Unavailable
from celeus.shorten import one_line
from celeus.units import Amount, check_threshold, number_on

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.client.blocking import Client
    from celeus.client.results import Pool

PoolOrFile = Annotated[
    str,
    typer.Argument(
        callback=from_input,
        metavar="POOL|FILE",
        help="Id of a sealed pool, `pool_…`, or a table or log: the service makes a pool of it"
        " first, which stays there for the session.",
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
Alpha = Annotated[
    str | None,
    typer.Option(metavar=NUMBER, help="Probability of ever being wrong; default: 0.05."),
]
POOL_ID = re.compile(r"pool_[0-9a-f]{32}")
POOL_MEMBERS = {
    "loss": {"kind": "kind", "lower": "lower", "upper": "upper"},
    "score": {"score_name": "name", "score_better": "better"},
    "systems": {"system_a": "a", "system_b": "b", "normalisation": "normalisation"},
}
"""Members of a new pool that `--given` says, by the names they have in the query of an upload."""


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


def rates_of(written: list[str]) -> dict[str, Any]:
    """Return the rates asked for by name; refuses what is none, and one that is given twice."""
    from celeus.core.plans.judge_measures import MEASURES

    found: dict[str, Any] = {}
    for text in written:
        name, _, least = text.partition("=")
        if name not in MEASURES or not least or name in found:
            rule = f"RATE=NUMBER, each once, a rate being one of {', '.join(MEASURES)}"
            message = f"at_least must be {rule}"
            raise InvalidValue(message, field="at_least", rule=rule, value=text)
        found[name] = least
    return found


def check_of(verdict: str, rates: Mapping[str, str], precision: str | None) -> dict[str, Any]:
    """Return the members of a session that checks a judge: its verdicts, and the least asked."""
    from celeus.core.plans.judge_measures import MEASURES

    column, sign, positive = verdict.rpartition("=")
    if not (column and sign and positive):
        rule = "COLUMN=POSITIVE, such as verdict=pass"
        raise InvalidValue(f"verdict must be {rule}", field="verdict", rule=rule, value=verdict)
    if not rates:
        rule = "given with --verdict, such as tpr=0.9"
        raise InvalidValue(f"--at-least must be {rule}", field="at_least", rule=rule)
    questions = []
    for name, least in rates.items():
        ends = (MEASURES[name].lower, 1.0)
        threshold = number_on(ends, least, "at_least")
        # Of the rate, before a file becomes a pool: the service refuses the loss
        check_threshold(threshold, ends, "at_least")
        loss = ends[0] + 1.0 - threshold
        questions.append({"metric": name, "side": "at_most", "threshold": loss})
    check = {"column": column, "positive": positive, "measures": [*rates]}
    widths = None if precision is None else dict.fromkeys(rates, precision)
    return {"check": check, "questions": questions, "precision": widths}


@contextmanager
def pool_of(
    client: "Client", pool: str, mapping: list[str] | None, given: list[str] | None
) -> Iterator["Pool"]:
    """Yield the pool of this id, or a new sealed one of this file, which is printed.

    If what the new one was made for is refused, it is deleted where the key may do so. Raises
    InvalidValue for what is neither, NeedsAnswer for what the file leaves open.
    """
    members = file_members(
        mapping, given, [name for names in POOL_MEMBERS.values() for name in names]
    )
    for member, names in POOL_MEMBERS.items():
        if part := {name: members.pop(text) for text, name in names.items() if text in members}:
            members[member] = part
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


def file_members(
    mapping: list[str] | None, given: list[str] | None, more: Sequence[str] = ()
) -> dict[str, Any]:
    """Return roles of columns and answers about a file by their names in Python, ``more`` too."""
    from celeus.client.calls import ANSWERS

    members = answers_of(given, (*ANSWERS, *more))
    for name in SEVERAL & members.keys():
        # Those of columns, as COLUMN=VALUE
        pairs = [text.rpartition("=") for text in members[name]]
        if all(sign for _, sign, _ in pairs):
            members[name] = {column: value for column, _, value in pairs}
        elif name == "scale":
            members[name] = members[name][0]
    if roles := roles_of(mapping):
        members["mapping"] = roles
    return members


def _made(client: "Client", file: Path, members: dict[str, Any]) -> "Pool":
    if not file.is_file():
        rule = "a file, or the id of a pool, `pool_` and 32 hexadecimal digits"
        raise InvalidValue(f"{file} is no file and no pool", field="pool", rule=rule)
    if not file.stat().st_size:
        raise InvalidValue(f"{file} has no items", field="pool", rule="a file with an item a row")
    with asked_as_options(file):
        made = client.create_pool(file.stem, file, **members)
    typer.echo(naming_input(f"celeus: {file} is now {made.id}"), err=True)
    return made


@contextmanager
def asked_as_options(file: Path) -> Iterator[None]:
    """Print the questions that a file leaves open, with the options that answer them."""
    from celeus.intake.questions import question_lines

    try:
        yield
    except NeedsAnswer as refusal:
        for line in question_lines(refusal.questions):
            typer.echo(one_line(line), err=True)
        message = f"{file} leaves questions open: answer each by one of its options"
        raise NeedsAnswer(message, field=refusal.field) from None


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
