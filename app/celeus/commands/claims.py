"""Several sessions of a service: which may be shown together, and at which level."""

from typing import Any

from celeus.commands.options import read_key
from celeus.errors import InvalidValue

REQUEST_SECONDS = 600.0
"""The service bets on long sessions again, which takes a while the first time."""


def claims_of(url: str, sessions: list[str], shown: list[str] | None) -> tuple[Any, list[str]]:
    """Return the service's answer on these sessions, and its lines for a reader."""
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
        return answer, _lines(answer)
    except (KeyError, TypeError, ValueError):
        raise InvalidValue(f"{url} answers with something that is no claims", field="url") from None


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
