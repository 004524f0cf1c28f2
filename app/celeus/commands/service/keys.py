"""`celeus admin keys`: make, list, revoke and rotate keys, and make links that sign a browser in.

The database is that of CELEUS_DATABASE_URL, or the private one of --data-dir, whether
`celeus serve` runs on it or not.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from uuid import UUID

import typer

from celeus.commands.common import DataDir, alone, joined_database, service_address, settings_of
from celeus.commands.options import AsJson
from celeus.errors import InvalidValue

if TYPE_CHECKING:
    # Not even for annotations at run time: these take most of a second.
    from celeus.operations.access.invitations import Invitation
    from celeus.operations.access.keys import KeyRecord, MadeKey
    from celeus.operations.runtime.context import Context
    from celeus.settings import Settings

T = TypeVar("T")

keys = typer.Typer(
    help="Make, list, revoke and rotate keys; make links to sign in.", no_args_is_help=True
)

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LENGTH = re.compile(r"(\d{1,6})([smhdw])", re.ASCII)

KeyId = Annotated[str, typer.Argument(help="Id of the key, as `celeus admin keys list` shows it.")]


@keys.command()
def create(  # noqa: PLR0913 -- one parameter an option
    *,
    name: Annotated[str, typer.Option(help="Name of the key in lists: what it is for.")],
    scope: Annotated[
        list[str], typer.Option(help="admin, manage, label or read; may be repeated.")
    ],
    project: Annotated[str, typer.Option(help="Project of the key.")] = "default",
    new_project: Annotated[bool, typer.Option(help="Make the project, too.")] = False,
    level: Annotated[
        float | None,
        typer.Option(
            help="Of the new project, for good: share of false ones among its sessions shown, at"
            " most, in the mean; default: 0.05."
        ),
    ] = None,
    expires_in: Annotated[
        str | None,
        typer.Option(help="How long the key works: 90m, 12h, 30d or 52w; default: no end."),
    ] = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Make a key and print it; it is shown only once.

    Scope `label` alone shows no estimate, so that nothing sways the judge. `manage` includes
    `read`; `admin` includes everything.
    """
    from celeus.operations.access.keys import NewKey, create_key

    life = None if expires_in is None else _length(expires_in, "expires-in")
    new = NewKey(name, tuple(scope), project, new_project, level, life)
    _tell(_run(data_dir, lambda context: create_key(context, new)), as_json=as_json)


@keys.command("list")
def list_all(
    *,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List the keys of all projects. Their secrets are stored nowhere and cannot be shown."""
    from celeus.operations.access.keys import list_keys

    rows = [_row(record) for record in _run(data_dir, list_keys)]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    cells = [{name: _cell(value) for name, value in row.items()} for row in rows]
    widths = {
        name: max(len(name), *(len(row[name]) for row in cells)) for name in (cells or [{}])[0]
    }
    for line in ({name: name for name in widths}, *cells) if cells else ():
        typer.echo("  ".join(line[name].ljust(widths[name]) for name in widths).rstrip())


@keys.command()
def invite(  # noqa: PLR0913 -- one parameter an option
    *,
    name: Annotated[str | None, typer.Option(help="Name of the new key: whom it is for.")] = None,
    session: Annotated[
        str | None, typer.Option(help="Id of the session to label or look at, ses_….")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="Scope of the new key; may be repeated; default: label."),
    ] = None,
    key_id: Annotated[
        str | None, typer.Option(help="Id of an existing key to sign in with, instead of --name.")
    ] = None,
    project: Annotated[str, typer.Option(help="Project of the new key.")] = "default",
    expires_in: Annotated[
        str, typer.Option(help="How long the new key works: 90m, 12h, 30d or 52w.")
    ] = "30d",
    link_expires_in: Annotated[str, typer.Option(help="How long the link works.")] = "7d",
    url: Annotated[
        str | None,
        typer.Option(help="Address of the service in the link; default: CELEUS_PUBLIC_URL."),
    ] = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Print a link that signs one browser in, once.

    --name makes a new key for the person, whose secret is never shown; `celeus admin keys revoke`
    signs them out. With --session the link leads to the page where that session is labelled.
    Without --url and CELEUS_PUBLIC_URL the link has the address of the service that runs on
    --data-dir.
    """
    from celeus.operations.access.invitations import LinkRequest, invite, invite_anew
    from celeus.operations.access.keys import NewKey

    if (name is None) == (key_id is None):
        rule = "either --name, for a new key, or --key-id, for an existing one"
        raise InvalidValue(f"give {rule}", field="name", rule=rule)
    settings = settings_of(data_dir=data_dir, public_url=url)
    path, session_id = _led_to(session, scope)
    request = LinkRequest(path, _length(link_expires_in, "link-expires-in"), session_id)
    if key_id is not None:
        existing = _id(key_id)
        invitation = _run(data_dir, lambda context: invite(context, existing, request))
    else:
        life = _length(expires_in, "expires-in")
        new = NewKey(str(name), tuple(scope or ("label",)), project, expires_in=life)
        invitation = _run(data_dir, lambda context: invite_anew(context, new, request))
    _tell_link(invitation, service_address(settings), as_json=as_json)


@keys.command()
def revoke(key_id: KeyId, *, data_dir: DataDir = None) -> None:
    """Revoke a key for good; running services notice within CELEUS_KEY_CACHE_SECONDS."""
    from celeus.operations.access.keys import revoke_key

    record = _run(data_dir, lambda context: revoke_key(context, _id(key_id)))
    typer.echo(f"celeus: key {record.key_id} ({record.name}) is revoked", err=True)


@keys.command()
def rotate(
    key_id: KeyId,
    *,
    grace: Annotated[
        str, typer.Option(help="How long the old key still works: 90m, 12h, 30d.")
    ] = "24h",
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Replace a key: print a new one like it; the old one works until the grace period ends."""
    from celeus.operations.access.keys import rotate_key

    length = _length(grace, "grace")
    _tell(_run(data_dir, lambda context: rotate_key(context, _id(key_id), length)), as_json=as_json)
    if not as_json:
        typer.echo(f"  the old key {_id(key_id)} works for another {grace} at most", err=True)


def _run(data_dir: Any, work: "Callable[[Context], Awaitable[T]]") -> T:  # noqa: ANN401 - an option
    """Run ``work`` on the database that the settings name, and return its result."""
    from celeus.operations.runtime.context import open_context
    from celeus.store.migrate import require_head

    async def in_context(settings: "Settings") -> T:
        async with open_context(settings) as context:
            return await work(context)

    settings = settings_of(data_dir=data_dir)
    with joined_database(settings) as url:
        require_head(url)
        return asyncio.run(in_context(alone(settings, url)))


def _tell(key: "MadeKey", *, as_json: bool) -> None:
    """Print the key to stdout, so that it can be piped, and what it is to stderr."""
    record = key.record
    if as_json:
        typer.echo(json.dumps({"key": key.token, **_row(record)}))
        return
    typer.echo(key.token)
    ending = "no end" if record.expires_at is None else f"until {_cell(record.expires_at)}"
    typer.echo(
        f"celeus: key {record.key_id} ({record.name}) of project {record.project},"
        f" {', '.join(record.scopes)}, {ending}; it is not shown again",
        err=True,
    )


def _led_to(session: str | None, scope: list[str] | None) -> tuple[str, UUID | None]:
    """The page a link leads to, and the session it is about."""
    from celeus.api.access.parameters import session_id_of
    from celeus.operations.access.invitations import led_to

    session_id = None if session is None else session_id_of(session)
    return led_to(session_id, scope or ("label",)), session_id


def _tell_link(invitation: "Invitation", address: str, *, as_json: bool) -> None:
    """Print the link to stdout, so that it can be piped, and what it is to stderr."""
    link, ends = invitation.link(address), _cell(invitation.expires_at)
    if as_json:
        known = {"name": invitation.name, "key_id": invitation.key_id, "expires": ends}
        typer.echo(json.dumps({"link": link, **known}))
        return
    typer.echo(link)
    typer.echo(
        f"celeus: signs in as {invitation.name} (key {invitation.key_id}), once,"
        f" until {ends}; it is not shown again",
        err=True,
    )


def _row(record: "KeyRecord") -> dict[str, Any]:
    def moment(time: datetime | None) -> str | None:
        return None if time is None else time.isoformat(timespec="seconds")

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


def _id(text: str) -> str:
    """The id of a key, also where the whole key was given."""
    return text.removeprefix("ce_").partition("_")[0]


def _length(text: str, field: str) -> timedelta:
    match = _LENGTH.fullmatch(text)
    if match is None:
        rule = "a whole number and a unit, such as 90m, 12h, 30d or 52w"
        raise InvalidValue(f"{field} must be {rule}", field=field, rule=rule, value=text)
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
