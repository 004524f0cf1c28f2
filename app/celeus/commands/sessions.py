"""`celeus open`, `sessions`, `status` and `close`: the sessions of a service."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celeus.commands.options import (
    HERE,
    All,
    Given,
    Mapping,
    SubjectOption,
    Url,
    confirm_all,
    read_key,
)
from celeus.commands.pools import (
    Alpha,
    AtLeast,
    AtMost,
    PoolOrFile,
    Precision,
    check_amounts,
    pool_of,
    questions_of,
)

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.client.results import Status

SHOWN = 20
"""Sessions that are listed unless more are asked for."""

Session = Annotated[str, typer.Argument(help="Id of the session, `ses_…`.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, a line a session.")]


def open_session(  # noqa: PLR0913 -- one parameter an option
    pool: PoolOrFile,
    *,
    name: Annotated[str | None, typer.Option(help="Name of the session.")] = None,
    precision: Precision = None,
    at_most: AtMost = None,
    at_least: AtLeast = None,
    target: Annotated[str, typer.Option(help="pool, population or runs")] = "pool",
    alpha: Alpha = "0.05",
    budget: Annotated[int | None, typer.Option(min=1, help="Most labels.")] = None,
    subject: SubjectOption = None,
    all_: All = False,
    mapping: Mapping = None,
    given: Given = None,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Open a session on a pool or a file, and print its id and where people label it."""
    from celeus.client.blocking import Client
    from celeus.subjects import subjects_of

    check_amounts(precision=precision, at_most=at_most, at_least=at_least, alpha=alpha)
    if (precision, at_most, at_least, budget) == (None,) * 4:
        ways = "--precision, --at-most, --at-least or --budget"
        confirm_all("Every item will be asked for", ways, all_=all_)
    asked: dict[str, Any] = {
        "name": name,
        "precision": precision,
        "questions": questions_of(at_most, at_least),
        "target": target,
        "alpha": alpha,
        "budget": budget,
        "subject": [named.to_dict() for named in subjects_of(subject)],
    }
    with (
        Client(url, read_key()) as client,
        pool_of(client, pool, mapping, given) as made,
    ):
        opening = {field: value for field, value in asked.items() if value not in (None, [])}
        status = client.open_session(made, **opening).status()
    if as_json:
        typer.echo(json.dumps(status.raw))
        return
    typer.echo(status.id)
    if status.success is None:
        typer.echo(f"label: {url.rstrip('/')}/label/{status.id}")


def sessions(
    *,
    pool: Annotated[str | None, typer.Option(help="Only those on this pool, `pool_…`.")] = None,
    state: Annotated[str | None, typer.Option(help="Only those in this state.")] = None,
    most: Annotated[int, typer.Option(min=1, help="How many to list, newest first.")] = SHOWN,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """List the project's sessions, newest first: state, name and what is known."""
    from celeus.client.blocking import Client

    with Client(url, read_key()) as client:
        found = [*islice(client.sessions(pool, state), most + 1)]
    for status in found[:most]:
        typer.echo(json.dumps(status.raw) if as_json else "  ".join(_row(status)))
    if len(found) > most:
        typer.echo(f"celeus: there are more; --most {2 * most} lists twice as many", err=True)


def _row(status: "Status") -> Iterator[str]:
    from celeus.client.service import plain

    yield status.id
    yield f"{status.state:15}"
    if status.name is not None:
        yield f"{plain(status.name)}:"
    yield plain(status.sentence)


def status(session: Session, *, url: Url = HERE, as_json: AsJson = False) -> None:
    """Show how a session stands: interval, answers, progress and what the claim assumes."""
    from celeus.client.blocking import Client

    with Client(url, read_key()) as client:
        found = client.session(session).status()
    typer.echo(json.dumps(found.raw) if as_json else "\n".join(_lines(found)))


def close(
    session: Session,
    *,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Close a session for good: it takes no more labels, and its certificate is final."""
    from celeus.client.blocking import Client

    with Client(url, read_key()) as client:
        found = client.session(session).close()
    typer.echo(json.dumps(found.raw) if as_json else "\n".join(_lines(found)))


def _lines(status: "Status") -> Iterator[str]:
    """Return the state of a session in the service's own words."""
    from celeus.client.service import plain

    if status.name is not None:
        yield plain(status.name)
    yield plain(status.sentence)
    for answer in status.words.answers:
        yield plain(f"{answer.question} {answer.answer}")
    yield f"{status.state}; {plain(status.words.progress)}"
    yield from (plain(assumption["text"]) for assumption in status.assumptions)
    yield from (f"warning: {plain(warning)}" for warning in status.warnings)
