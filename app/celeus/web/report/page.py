"""The report: one page about a session, to be read, kept, printed and passed on.

The page needs nothing but itself: its styles are in it, it has no script, and its chart is an SVG
that was drawn here. The policy that says so to the browser is in the page too, for the file that
somebody keeps.
"""

import base64
import hashlib
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from celeus.api.access.parameters import Reads, SessionId
from celeus.api.system import service_version
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.core.insights.sentences import Contrast, sentence
from celeus.core.plans.best_plan import BestPlan
from celeus.core.plans.plan import Plan
from celeus.core.plans.table_plan import TablePlan
from celeus.errors import LedgerBroken, SessionNotFound
from celeus.operations.insights.report import ReportedSession, report
from celeus.operations.pools.record import PoolRecord
from celeus.shorten import printable
from celeus.web.assets import FOLDER
from celeus.web.pages import templates_of
from celeus.web.rendering import REPORT_TEMPLATES, Templates
from celeus.web.report.best_report import BestWording
from celeus.web.report.course import CourseWords
from celeus.web.report.table_report import TableWording
from celeus.web.report.wording import Wording, Words
from celeus.web.wording import minute

router = APIRouter(prefix="/v1/sessions", tags=["history"], route_class=JsonRoute)

POINTS = 400
ROWS = 24


@router.get(
    "/{session_id}/report",
    operation_id="get_report",
    summary="A page about the session, to read and to print",
    response_class=HTMLResponse,
    responses=responses(SessionNotFound, LedgerBroken)
    | {200: {"content": {"text/html": {}}, "description": "One HTML page that needs no other."}},
)
async def get_report(request: Request, context: Reads, session_id: SessionId) -> Response:
    """The claim in a sentence, the interval by labels, assumptions, plan, and certificate.

    The page loads nothing and runs nothing: it may be kept as a file, or printed.
    """
    return answered(request, session_id, *await report(context, session_id, POINTS))


def answered(
    request: Request, session_id: UUID, account: ReportedSession, pool: PoolRecord
) -> HTMLResponse:
    """The page as an answer, with what browsers are to make of it."""
    headers = {
        "Cache-Control": "no-store",
        "Content-Security-Policy": f"{_policy()}; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Content-Disposition": f'inline; filename="ses_{session_id.hex}.report.html"',
    }
    page = rendered(templates_of(request), account, pool)
    return HTMLResponse(printable(page), headers=headers)


def rendered(templates: Templates, account: ReportedSession, pool: PoolRecord) -> str:
    """The page."""
    match account.plan:
        case Plan() as plan:
            return _interval_page(templates, account, pool, plan)
        case BestPlan():
            name, words = "best.html", _shared(account, pool, BestWording(account, pool))
        case TablePlan() as plan:
            name, words = "table.html", _shared(account, pool, TableWording(account, pool, plan))
    return templates.text(name, chart=None, **words)


def _interval_page(
    templates: Templates, account: ReportedSession, pool: PoolRecord, plan: Plan
) -> str:
    """The page of a session with one interval."""
    words = Wording(account, pool, plan)
    course = CourseWords(words, account.course, ROWS)
    contrast = Contrast.of(pool.scale, pool.systems, pool.declared)
    return templates.text(
        "report.html",
        **_shared(account, pool, words),
        sentence=sentence(
            account.document,
            pool.score,
            contrast,
            labels=words.labels_in_interval,
        ),
        compared=contrast is not None,
        course=course,
        chart=course.chart(),
        rows=course.rows,
        parameters=_parameters(plan.policy.to_dict()),
    )


def _shared(account: ReportedSession, pool: PoolRecord, words: Words) -> dict[str, Any]:
    """Variables of the page of every session."""
    return {
        "account": account,
        "plan": account.plan,
        "pool": pool,
        "status": account.document,
        "name": account.document["name"] or pool.name,
        "words": words,
        "figures": words.figures,
        "rounds": account.document["rounds"],
        "style": Markup(_style()),  # noqa: S704 -- our own file
        "policy": _policy(),
        "version": service_version(),
        "made": minute(account.now),
        "opened": minute(datetime.fromisoformat(account.document["created_at"])),
        "issued": "" if account.certified is None else minute(account.certified.issued_at),
    }


def _parameters(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items() if name != "name")


@cache
def _style() -> str:
    shared = [FOLDER / "css" / f"{name}.css" for name in ("course", "grid", "ladder")]
    files = [REPORT_TEMPLATES / "report.css", *shared]
    return "".join(file.read_text(encoding="utf-8") for file in files)


@cache
def _policy() -> str:
    """Content security policy of the report: its own styles and nothing else."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
