"""The page that opens a session: a pool or a file, a claim, and the planner."""

from fastapi import Response

from celeus.web.pages import ManagesPage, page_router
from celeus.web.views.labelling import ITEMS

router = page_router()


@router.get("/sessions/new")
async def new_session(view: ManagesPage) -> Response:
    """Show the form, whose content the page loads by the routes of the interface."""
    return view.page(
        "newsession.html",
        policy=ITEMS,
        upload_limit_bytes=view.context.settings.upload_limit_bytes,
    )
