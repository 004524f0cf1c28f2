"""The page a session is opened on: a pool or a file, a claim, and what it will take."""

from fastapi import Response

from app.web.pages import ManagesPage, page_router

router = page_router()


@router.get("/sessions/new")
async def new_session(view: ManagesPage) -> Response:
    """The form; everything it shows comes by the interface any program uses."""
    return view.page("newsession.html", upload_limit_bytes=view.rooms.settings.upload_limit_bytes)
