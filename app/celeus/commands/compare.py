"""`celeus compare`: two finished logs, side by side; nothing is sampled and nothing is judged."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celeus.commands.gate import STATUS, GateCommand
from celeus.commands.imports import backtested
from celeus.commands.options import NUMBER, Given, Mapping, check_file, from_input
from celeus.errors import InvalidValue
from celeus.shorten import one_line
from celeus.units import SHARES, check_margin, number_on

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.intake.rows import Log, Options
    from celeus.simulation.side_by_side import Paired, SideBySide

TERMS = {"cls": GateCommand}
"""2 means "no" here, as of a gate."""
FLIPPED = ("only_a", "only_b")
MOST_NAMED = 20
"""Most items, and most groups, that are named for a reader; --json has all."""


def compare(  # noqa: PLR0913 -- one parameter an option
    a: Annotated[
        Path,
        typer.Argument(callback=from_input, help="Log of a system, a folder of them, or a table."),
    ],
    b: Annotated[
        Path,
        typer.Argument(callback=from_input, help="The same of another system, on the same items."),
    ],
    *,
    margin: Annotated[
        str | None,
        typer.Option(
            metavar=NUMBER,
            help="Ask whether b may replace a: it is worse by no more than this, such as 0.02 or"
            " 2pt (points).",
        ),
    ] = None,
    names: Annotated[
        tuple[str, str] | None, typer.Option(help="What the two are called, where logs do not say.")
    ] = None,
    mapping: Mapping = None,
    given: Given = None,
    report: Annotated[
        Path | None, typer.Option(help="A .md file for a summary, as for a pull request.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Say by how much two systems differ that were scored on the same items.

    With --margin exit 0 for yes, 2 for no, 3 where these items do not decide it for a population
    like them; 1 on errors. Without it exit 0.
    """
    from celeus.commands.file_answers import options_of
    from celeus.intake.formats.registry import differences, form_of, notes_of
    from celeus.intake.joining import rows_of
    from celeus.simulation.side_by_side import SideBySide

    if report is not None and report.suffix != ".md":
        rule = "a file that ends in .md"
        raise InvalidValue(f"{report} must be {rule}", field="--report", rule=rule)
    check_file(report)
    bound = None if margin is None else number_on(SHARES[1], margin, "margin")
    if bound is not None:
        check_margin(bound, SHARES[1], "margin")

    forms = form_of(a), form_of(b)
    options = [options_of(form, mapping, given, forms) for form in forms]
    logs = _logs((a, b), forms, options, names)
    for line in [*notes_of(logs[0]), *notes_of(logs[1]), *differences([*logs[0], *logs[1]])]:
        typer.echo(one_line(f"celeus: {line}"), err=True)
    rows = [rows_of(of_one) for of_one in logs]
    found = SideBySide.of([*rows[0], *rows[1]], rows[0][0].model, rows[1][0].model)
    if not found.pairing.judged:
        rule = "logs of items that have a score of both"
        raise InvalidValue(f"no item has a score of both: expected {rule}", field="log", rule=rule)
    _tell(found, bound, report, as_json=as_json)
    if bound is not None:
        raise typer.Exit(STATUS[found.whole.may_replace(bound)])


def _logs(
    paths: tuple[Path, Path],
    forms: tuple[str, str],
    options: "Sequence[Options]",
    names: tuple[str, str] | None,
) -> "list[list[Log]]":
    """The logs at both paths, each of one model, whose names differ."""
    from celeus.intake.formats.registry import read, sources

    found = []
    for place, (path, form) in enumerate(zip(paths, forms, strict=True)):
        logs = read(form, sources(form, [path]), options[place])
        models = {row.model for log in logs for row in log.rows}
        if len(models) != 1:
            listed = ", ".join(sorted(models)[:MOST_NAMED]) or "none"
            message = f"{path} must be of one model, and is of several: {listed}"
            raise InvalidValue(message, field="log", rule="a log of one model")
        found.append(logs if names is None else _named(logs, names[place]))
    if names is None and found[0][0].rows[0].model == found[1][0].rows[0].model:
        # Such as two versions of one model, or of a prompt
        return [_named(logs, name) for logs, name in zip(found, _apart(*paths), strict=True)]
    return found


def _named(logs: "list[Log]", name: str) -> "list[Log]":
    return [replace(log, rows=[replace(row, model=name) for row in log.rows]) for log in logs]


def _apart(a: Path, b: Path) -> tuple[str, str]:
    """Names of two files that tell them apart: without folders where that does."""
    return (a.stem, b.stem) if a.stem != b.stem else (str(a), str(b))


def _tell(found: "SideBySide", margin: float | None, report: Path | None, *, as_json: bool) -> None:
    """Write the file, and print what the logs say."""
    labels = _labels(found)
    lines = [*_of_all(found), *_of_items(found), *_of_groups(found)]
    if margin is not None:
        lines.append(f"equivalent within {margin:g}: {found.whole.equivalent(margin)}")
        answer = found.whole.may_replace(margin)
        lines.append(f"may b replace a, worse by at most {margin:g}: {answer}")
    if labels is not None:
        what = "certified, as narrow an interval for these items takes"
        lines.append(f"{what} about {labels:.0f} labels")
    lines = list(map(one_line, lines))
    if report is not None:
        from celeus.gates.reports import literal, write

        head, *more = map(literal, lines)
        items = "".join(f"- {line}\n" for line in more)
        write(report, f"### {head}\n\n{items}".encode())
    typer.echo(json.dumps(_document(found, margin, labels)) if as_json else "\n".join(lines))


def _of_all(found: "SideBySide") -> Iterator[str]:
    pairing, whole = found.pairing, found.whole
    yield f"{whole.items} items that {pairing.a} (a) and {pairing.b} (b) both answered"
    yield f"mean loss: a {found.mean_loss(0):.4g}, b {found.mean_loss(1):.4g}"
    if pairing.left_out:
        yield f"left out: {pairing.left_out} items without an answer of both"
    if found.unscored:
        yield f"left out: {found.unscored} items without a score of both"
    if pairing.repeated:
        yield f"{pairing.repeated} items answered several times: the loss is their mean"
    yield from whole.lines


def _of_items(found: "SideBySide") -> Iterator[str]:
    if right := found.right:
        counts = ", ".join(f"{name.replace('_', ' ')} {len(ids)}" for name, ids in right.items())
        yield f"right: {counts}"
        for name in FLIPPED:
            if ids := right[name]:
                more = ", …" if len(ids) > MOST_NAMED else ""
                yield f"{name.replace('_', ' ')}: {', '.join(ids[:MOST_NAMED])}{more}"


def _of_groups(found: "SideBySide") -> Iterator[str]:
    for name, part in [*found.groups.items()][:MOST_NAMED]:
        each = "" if part.ends is None else f"; taken by itself {part.span}"
        yield f"{name}, {part.items} items: {part.better}{each}"
    if (more := len(found.groups) - MOST_NAMED) > 0:
        yield f"and {more} groups more: --json has all"


def _labels(found: "SideBySide") -> float | None:
    """Labels to an interval as narrow as the population's; None where there is no such interval."""
    from celeus.simulation.side_by_side import DIFFERENCES

    lower, upper = found.whole.ends or DIFFERENCES
    if (lower, upper) == DIFFERENCES or not any(found.pairing.differences):
        return None
    return backtested(found.pairing, upper - lower, runs=1).without


def _document(found: "SideBySide", margin: float | None, labels: float | None) -> dict[str, Any]:
    """Return what the logs say, for a program."""
    from celeus.simulation.side_by_side import ALPHA

    def part(of: "Paired") -> dict[str, Any]:
        return {"items": of.items, "difference": of.mean, "population": of.ends}

    question = None
    if margin is not None:
        answers = found.whole.may_replace(margin), found.whole.equivalent(margin)
        question = {"margin": margin, "may_replace": answers[0], "equivalent": answers[1]}
    right = found.right
    return {
        "a": {"name": found.pairing.a, "mean_loss": found.mean_loss(0)},
        "b": {"name": found.pairing.b, "mean_loss": found.mean_loss(1)},
        **part(found.whole),
        "alpha": ALPHA,
        "left_out": found.pairing.left_out,
        "unscored": found.unscored,
        "right": {name: len(ids) for name, ids in right.items()} or None,
        "flipped": {name: right[name] for name in FLIPPED} if right else None,
        "groups": {name: part(of) for name, of in found.groups.items()},
        "question": question,
        "labels": labels,
    }
