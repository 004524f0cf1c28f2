"""Pages of a guest link: the report of one session, and a badge of its claim.

They need no sign-in and link to no other page. Search engines are asked not to index them, and no
address that a reader follows receives theirs as the referrer.
"""

from types import MappingProxyType
from typing import Annotated, Final

from fastapi import APIRouter, Header, Request, Response

from celeus.api.access.parameters import OpenContext
from celeus.api.access.rates import limit_share
from celeus.api.wire.etags import still_holds
from celeus.core.insights.badges import Badge
from celeus.errors import ShareNotFound
from celeus.operations.access.guest_links import shared, shared_badge
from celeus.operations.insights.report import report
from celeus.shorten import printable
from celeus.web.pages import SHARED, PageRoute, templates_of
from celeus.web.rendering import Templates
from celeus.web.report.page import POINTS, answered

router = APIRouter(route_class=PageRoute, include_in_schema=False)

BADGE_SECONDS = 60
LETTER = 6.6
"""Approximate width of a letter of 11 px, by which the badge is sized."""
MARGIN = 6
LONGEST = 90
COLOURS: Final = MappingProxyType(
    {"green": "#1a7f37", "red": "#b42318", "blue": "#1f5fa8", "grey": "#5f6670"}
)
"""Colours of badges; each has a contrast of at least 4.5 to 1 with white letters."""
UNLISTED: Final = MappingProxyType(
    {"X-Robots-Tag": "noindex, nofollow, noarchive", "Referrer-Policy": "no-referrer"}
)


@router.get(SHARED + "{token}")
async def shared_report(request: Request, context: OpenContext, token: str) -> Response:
    """Show the current report of the link's session."""
    try:
        await limit_share(context, request.scope)
        inner, session_id = await shared(context, token)
        answer = answered(request, session_id, *await report(inner, session_id, POINTS))
    except ShareNotFound:
        await limit_share(context, request.scope, failed=True)
        raise
    answer.headers.update(UNLISTED)
    return answer


@router.get(SHARED + "{token}/badge.svg")
async def shared_picture(
    request: Request,
    context: OpenContext,
    token: str,
    known: Annotated[str | None, Header(alias="If-None-Match")] = None,
) -> Response:
    """Show the badge of the link's session, a picture for other pages."""
    try:
        await limit_share(context, request.scope)
        shown = await shared_badge(context, token)
    except ShareNotFound:
        await limit_share(context, request.scope, failed=True)
        raise
    etag = f'W/"{shown.version}"'
    headers = {
        **UNLISTED,
        "ETag": etag,
        "Cache-Control": f"public, max-age={BADGE_SECONDS}",
        "Content-Security-Policy": "default-src 'none'",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "X-Content-Type-Options": "nosniff",
    }
    if still_holds(known, etag):
        return Response(status_code=304, headers=headers)
    picture = drawn(templates_of(request), shown.badge, shown.sentence)
    return Response(picture, media_type="image/svg+xml", headers=headers)


def drawn(templates: Templates, badge: Badge, title: str) -> str:
    """Return the SVG of a badge."""
    label, message = _short(badge.label), _short(badge.message)
    left, right = (round(LETTER * len(text)) + 2 * MARGIN for text in (label, message))
    return printable(
        templates.text(
            "badge.svg",
            label=label,
            message=message,
            title=title,
            colour=COLOURS[badge.colour],
            left=left,
            width=left + right,
        )
    )


def _short(words: str) -> str:
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
