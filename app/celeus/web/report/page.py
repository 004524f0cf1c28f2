"""The report on the wire: one page about a session, to be read, kept, printed and passed on.

The page needs nothing but itself: its styles are in it, it has no script, and its chart is an SVG
that was drawn here. The policy that says so to the browser is in the page too, for the file that
somebody keeps.
"""

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from app.api.charts import Chart, Wanted, chart, thinned
from app.api.dependencies import Reads, SessionId
from app.api.problems import responses
from app.api.system import service_version
from app.api.wording import Wording, count
from app.errors import LedgerBroken, SessionNotFound
from app.operations.poolrecord import PoolRecord
from app.operations.reports import Account, report
from app.quoting import printable

router = APIRouter(prefix="/v1/sessions", tags=["history"])

POINTS = 400
ROWS = 24
_TEMPLATES = Path(__file__).parent / "templates"


@router.get(
    "/{session_id}/report",
    operation_id="get_report",
    summary="A page about the session, to read and to print",
    response_class=HTMLResponse,
    responses=responses(SessionNotFound, LedgerBroken)
    | {200: {"content": {"text/html": {}}, "description": "One HTML page that needs no other."}},
)
async def get_report(rooms: Reads, session_id: SessionId) -> Response:
    """The claim in a sentence, the interval by labels, assumptions, plan, and certificate.

    The page loads nothing and runs nothing: it may be kept as a file, or printed.
    """
    told, pool = await report(rooms, session_id, POINTS)
    headers = {
        "Cache-Control": "no-store",
        "Content-Security-Policy": f"{_policy()}; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Content-Disposition": f'inline; filename="ses_{session_id.hex}.report.html"',
    }
    return HTMLResponse(printable(rendered(told, pool)), headers=headers)


def rendered(told: Account, pool: PoolRecord) -> str:
    """The page."""
    words = Wording(told, pool.scale)
    page: str = _template().render(
        told=told,
        plan=told.plan,
        pool=pool,
        status=told.document,
        # Sessions older than names have none
        name=told.document.get("name") or pool.name,
        words=words,
        figures=words.figures,
        chart=_chart(told, words),
        rows=thinned(told.points, ROWS),
        rounds=told.document["rounds"],
        parameters=_parameters(told.plan.policy.parameters()),
        style=Markup(_style()),  # noqa: S704 -- our own file
        policy=_policy(),
        version=service_version(),
        made=_minute(told.at),
        opened=_minute(datetime.fromisoformat(told.document["created_at"])),
        issued="" if told.certified is None else _minute(told.certified.issued_at),
    )
    return page


def _chart(told: Account, words: Wording) -> Chart:
    figures = words.figures
    levels = [(one["threshold"], "asked") for one in told.document["decisions"]]
    precision = told.document["precision"]
    if precision is not None and told.points:
        low = told.document["estimate"] - precision / 2.0
        levels += [(low, "target"), (low + precision, "target")]
    moments = [] if told.reached is None else [(told.reached, "stop")]
    return chart(
        Wanted(
            points=told.points,
            lower=told.plan.lower,
            upper=told.plan.upper,
            factor=100.0 if figures.percent else 1.0,
            levels=levels,
            moments=moments,
        )
    )


def _minute(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _parameters(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items() if name != "name")


@cache
def _style() -> str:
    return (_TEMPLATES / "report.css").read_text(encoding="utf-8")


@cache
def _policy() -> str:
    """What the page may do: nothing but look as its own styles say."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@cache
def _template() -> Any:  # noqa: ANN401 -- jinja2's, loaded once
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["count"] = count
    return environment.get_template("report.html")
