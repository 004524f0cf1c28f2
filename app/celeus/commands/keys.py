"""`celeus keys`: make, list, revoke and rotate keys, and make links that sign a browser in.

They work on the database of CELEUS_DATABASE_URL, else on the private one of --data-dir, while
`celeus serve` runs on it and while it does not.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from uuid import UUID

import typer

from app.commands.common import DataDir, address_of, joined_database, settings_of
from app.errors import InvalidValue, SchemaBehind

if TYPE_CHECKING:
    # Not even for annotations at run time: these take most of a second.
    from app.operations.invitations import Invitation
    from app.operations.keys import KeyRecord, MadeKey
    from app.operations.rooms import Rooms
    from app.settings import Settings

T = TypeVar("T")

keys = typer.Typer(
    help="Make, list, revoke and rotate keys, and links to sign in.", no_args_is_help=True
)

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LENGTH = re.compile(r"(\d{1,6})([smhdw])", re.ASCII)

KeyId = Annotated[str, typer.Argument(help="Id of the key, as `celeus keys list` shows it.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the key and nothing else.")]


@keys.command()
def create(  # noqa: PLR0913 -- one parameter an option
    *,
    name: Annotated[str, typer.Option(help="What the key is for, as lists show it.")],
    scope: Annotated[list[str], typer.Option(help="admin, manage, label or read; repeatable.")],
    project: Annotated[str, typer.Option(help="What the key belongs to.")] = "default",
    new_project: Annotated[bool, typer.Option(help="Make the project with it.")] = False,
    expires_in: Annotated[
        str | None, typer.Option(help="Life of the key, such as 12h or 30d; else for ever.")
    ] = None,
    quiet: Quiet = False,
    data_dir: DataDir = None,
) -> None:
    """Make a key and print it; it is shown only once.

    `label` alone is blind: a judge who is told no estimate cannot be swayed by it. `manage` implies
    `read`, `admin` everything.
    """
    from app.operations.keys import NewKey, create_key

    life = None if expires_in is None else _length(expires_in, "expires-in")
    wanted = NewKey(name, tuple(scope), project, new_project, life)
    _tell(_run(data_dir, lambda rooms: create_key(rooms, wanted)), quiet=quiet)


@keys.command("list")
def list_all(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    data_dir: DataDir = None,
) -> None:
    """List the keys of all projects; secrets are kept nowhere and never shown."""
    from app.operations.keys import list_keys

    rows = [_row(record) for record in _run(data_dir, list_keys)]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    shown = [{name: _cell(value) for name, value in row.items()} for row in rows]
    widths = {
        name: max(len(name), *(len(row[name]) for row in shown)) for name in (shown or [{}])[0]
    }
    for line in ({name: name for name in widths}, *shown) if shown else ():
        typer.echo("  ".join(line[name].ljust(widths[name]) for name in widths).rstrip())


@keys.command()
def invite(  # noqa: PLR0913 -- one parameter an option
    *,
    name: Annotated[str | None, typer.Option(help="Whom a new key is for.")] = None,
    session: Annotated[str | None, typer.Option(help="Session to label; ses_….")] = None,
    scope: Annotated[
        list[str] | None, typer.Option(help="Of the new key; repeatable; else label.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Id of a key to use, in place of a new one.")
    ] = None,
    project: Annotated[str, typer.Option(help="What a new key belongs to.")] = "default",
    expires_in: Annotated[str, typer.Option(help="Life of a new key, such as 12h.")] = "30d",
    link_expires_in: Annotated[str, typer.Option(help="Life of the link.")] = "7d",
    url: Annotated[
        str | None, typer.Option(help="Where people reach the service (CELEUS_PUBLIC_URL).")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Print a link that signs a browser in, once.

    With --name it makes a key, whose secret nobody is told: revoking the key signs the person out.
    With --session the link leads to the page for labelling it.
    """
    from app.operations.invitations import Wanted, invite, invite_anew
    from app.operations.keys import NewKey

    if (name is None) == (key is None):
        raise InvalidValue(
            "a link is for a new key or for one that exists: --name or --key",
            field="name",
            rule="--name or --key, and not both",
        )
    settings = settings_of(data_dir=data_dir, public_url=url)
    path, session_id = _led_to(session, key, scope)
    wanted = Wanted(path, _length(link_expires_in, "link-expires-in"), session_id)
    if key is not None:
        key_id = _id(key)
        made = _run(data_dir, lambda rooms: invite(rooms, key_id, wanted))
    else:
        life = _length(expires_in, "expires-in")
        new = NewKey(str(name), tuple(scope or ("label",)), project, expires_in=life)
        made = _run(data_dir, lambda rooms: invite_anew(rooms, new, wanted))
    _tell_link(made, address_of(settings))


@keys.command()
def revoke(key_id: KeyId, *, data_dir: DataDir = None) -> None:
    """End a key for good; servers notice within CELEUS_KEY_CACHE_SECONDS."""
    from app.operations.keys import revoke_key

    record = _run(data_dir, lambda rooms: revoke_key(rooms, _id(key_id)))
    typer.echo(f"celeus: key {record.key_id} ({record.name}) is revoked", err=True)


@keys.command()
def rotate(
    key_id: KeyId,
    *,
    grace: Annotated[str, typer.Option(help="How long the old key still works.")] = "24h",
    quiet: Quiet = False,
    data_dir: DataDir = None,
) -> None:
    """Make a key like this one and print it; the old one ends after the grace period."""
    from app.operations.keys import rotate_key

    length = _length(grace, "grace")
    _tell(_run(data_dir, lambda rooms: rotate_key(rooms, _id(key_id), length)), quiet=quiet)
    if not quiet:
        typer.echo(f"  the old key {_id(key_id)} works for {grace} more at most", err=True)


def _run(data_dir: Any, work: "Callable[[Rooms], Awaitable[T]]") -> T:  # noqa: ANN401 - an option
    """What ``work`` returns on the database that the settings name."""
    settings = settings_of(data_dir=data_dir)
    with joined_database(settings) as url:
        named = settings.model_copy(update={"database_url": url, "redis_url": None})
        return asyncio.run(_in_rooms(named, work))


async def _in_rooms(settings: "Settings", work: "Callable[[Rooms], Awaitable[T]]") -> T:
    from app.main import open_rooms

    async with open_rooms(settings) as rooms:
        if not await rooms.database.at_head() and await rooms.database.reachable():
            raise SchemaBehind("the database has another schema than this version: celeus migrate")
        return await work(rooms)


def _tell(made: "MadeKey", *, quiet: bool) -> None:
    """The key on stdout, and what it is on stderr: it can be piped where it belongs."""
    typer.echo(made.token)
    if quiet:
        return
    record = made.record
    ending = "for ever" if record.expires_at is None else f"until {_cell(record.expires_at)}"
    typer.echo(
        f"celeus: key {record.key_id} ({record.name}) of project {record.project},"
        f" {', '.join(record.scopes)}, {ending}; it is shown only now",
        err=True,
    )


def _led_to(
    session: str | None, key: str | None, scope: list[str] | None
) -> tuple[str, UUID | None]:
    """The page a link leads to, and the session it is about."""
    from app.api.dependencies import session_id_of

    judges = not scope or "label" in scope
    if session is not None:
        return f"/{'label' if judges else 'sessions'}/{session}", session_id_of(session)
    if key is None and (not scope or set(scope) == {"label"}):
        raise InvalidValue(
            "a link for somebody who labels leads to a session: --session ses_…",
            field="session",
            rule="a session, or another --scope",
        )
    return "/", None


def _tell_link(made: "Invitation", address: str) -> None:
    """The link on stdout, and what it is on stderr: it can be piped to whoever it is for."""
    typer.echo(made.link(address))
    typer.echo(
        f"celeus: signs in as {made.name} (key {made.key_id}), once,"
        f" until {_cell(made.expires_at)}; it is shown only now",
        err=True,
    )


def _row(record: "KeyRecord") -> dict[str, Any]:
    def moment(at: datetime | None) -> str | None:
        return None if at is None else at.isoformat(timespec="seconds")

    return {
        "id": record.key_id,
        "name": record.name,
        "project": record.project,
        "scopes": list(record.scopes),
        "created": moment(record.created_at),
        "expires": moment(record.expires_at),
        "last_used": moment(record.last_used_at),
        "revoked": moment(record.revoked_at),
        "replaced_by": record.replaced_by,
    }


def _cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case datetime():
            return value.isoformat(timespec="seconds")
        case list():
            return ",".join(value)
        case _:
            return str(value)


def _id(given: str) -> str:
    """The id of a key, also where the whole key was given."""
    return given.removeprefix("ce_").partition("_")[0]


def _length(text: str, field: str) -> timedelta:
    found = _LENGTH.fullmatch(text)
    if found is None:
        rule = "a whole number and a unit, such as 90m, 12h, 30d or 52w"
        raise InvalidValue(f"{field} must be {rule}", field=field, rule=rule, value=text)
    return timedelta(**{_UNITS[found[2]]: int(found[1])})
