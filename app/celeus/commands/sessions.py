"""`celeus open`, `sessions`, `status` and `close`: the sessions of a service."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from celeus.commands.options import (
    HERE,
    All,
    Given,
    Mapping,
    SessionId,
    SubjectOption,
    Url,
    confirm_all,
    read_key,
)
from celeus.commands.pools import (
    AtLeast,
    AtMost,
    PoolOrFile,
    Precision,
    check_amounts,
    pool_of,
    questions_of,
)
from celeus.commands.settings_file import Settings, settings_of

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.client.results import Status

STOPPING = ("precision", "questions", "budget", "decide", "best", "group_precision")
"""Settings with which a session stops before every item is judged."""
SHOWN = 20
"""Sessions that are listed unless more are asked for."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, a line a session.")]


def open_session(  # noqa: PLR0913 -- one parameter an option
    pool: PoolOrFile,
    *,
    name: Annotated[str | None, typer.Option(help="Name of the session.")] = None,
    precision: Precision = None,
    at_most: AtMost = None,
    at_least: AtLeast = None,
    budget: Annotated[int | None, typer.Option(min=1, help="Most labels.")] = None,
    subject: SubjectOption = None,
    settings: Settings = None,
    all_: All = False,
    mapping: Mapping = None,
    given: Given = None,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Open a session on a pool or a file, and print its id and where people label it."""
    from celeus.client.blocking import Client
    from celeus.subjects import subjects_of

    check_amounts(precision=precision, at_most=at_most, at_least=at_least)
    given_options = {
        "name": name,
        "precision": precision,
        "questions": questions_of(at_most, at_least) or None,
        "budget": budget,
        "subject": [named.to_dict() for named in subjects_of(subject)] or None,
    }
    opening = settings_of(settings, given_options)
    if opening.keys().isdisjoint(STOPPING):
        ways = "--precision, --at-most, --at-least or --budget"
        confirm_all("Every item will be asked for", ways, all_=all_)
    with (
        Client(url, read_key()) as client,
        pool_of(client, pool, mapping, given) as made,
    ):
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


def status(
    sessions: Annotated[
        list[str],
        typer.Argument(metavar="SESSION", help="Id of a session, `ses_…`, or of several."),
    ],
    *,
    shown: Annotated[
        list[str] | None,
        typer.Option(
            help="Of several sessions one picked to be shown; repeat it. Default: the most that"
            " answer all they were asked."
        ),
    ] = None,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Show how a session stands: interval, answers, progress and what the claim assumes.

    Of several sessions of a project say what holds of one, of all, and of those picked after
    looking: the level of the project counts, and the order in which it opened its sessions with a
    question.
    """
    from celeus.client.blocking import Client

    if len(sessions) > 1 or shown:
        from celeus.commands.claims import claims_of

        raw, lines = claims_of(url, sessions, shown)
    else:
        with Client(url, read_key()) as client:
            found = client.session(sessions[0]).status()
        raw, lines = found.raw, [*_lines(found)]
    typer.echo(json.dumps(raw) if as_json else "\n".join(lines))


def close(
    session: SessionId,
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
