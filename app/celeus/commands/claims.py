"""`celeus claims`: which sessions of a service may be shown together, and at which level."""

import json
from typing import Annotated, Any

import typer

from celeus.commands.options import HERE, Url, read_key
from celeus.errors import InvalidValue

REQUEST_SECONDS = 600.0
"""The service bets on long sessions again, which takes a while the first time."""


def claims(
    sessions: Annotated[list[str], typer.Argument(help="Ids of sessions of the project, `ses_…`.")],
    *,
    shown: Annotated[
        list[str] | None,
        typer.Option(
            help="One picked to be shown; repeat it. Default: the most that answer all they were"
            " asked."
        ),
    ] = None,
    url: Url = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Say what holds of one session, of all, and of those picked after looking.

    The level of the project counts, and the order in which it opened its sessions with a question.
    """
    import httpx2

    from celeus.client.blocking import Client
    from celeus.client.service import check_session

    key = read_key()
    for session in (*sessions, *(shown or ())):
        check_session(session)
    query = {"session": sessions, "shown": shown}
    with httpx2.Client(timeout=REQUEST_SECONDS) as http:
        answer = Client(url, key, http=http).request("GET", "/v1/claims", **query)
    try:
        lines = _lines(answer)
    except (KeyError, TypeError, ValueError):
        raise InvalidValue(f"{url} answers with something that is no claims", field="url") from None
    typer.echo(json.dumps(answer) if as_json else "\n".join(lines))


def _lines(answer: dict[str, Any]) -> list[str]:
    """The answer for a reader, in the service's own words."""
    from celeus.client.service import plain

    lines = [_line(claim) for claim in answer["claims"]]
    promises = answer["promises"]
    return [plain(line) for line in (*lines, promises["one"], promises["all"], promises["picked"])]


def _line(claim: dict[str, Any]) -> str:
    shown = claim["shown"]
    part = claim["together"] if shown is None else shown
    name = claim["session"] if claim["name"] is None else f"{claim['session']} ({claim['name']})"
    if part is None:
        return f"{name}: was asked nothing, and is not shown"
    answers = [
        f"{each['side'].replace('_', ' ')} {each['threshold']:g}: {each['answer']}"
        for each in part["answers"]
    ]
    if part["verdict"] is not None:
        answers.append(part["verdict"].replace("_", " "))
    what = "not shown, together with all" if shown is None else "shown"
    ends = f"[{part['lower']:.6g}, {part['upper']:.6g}] at level {part['level']:.6g}"
    return "; ".join([f"{name}: {what} {ends}", *answers])
