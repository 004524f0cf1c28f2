"""The documentation as pages, and the reference of the interface.

Redoc makes its page itself, out of the contract: it writes styles into the page and searches in a
worker of its own, which no other page may.
"""

import asyncio
from functools import cache

from fastapi import Request, Response

from app.api.tags import still_holds
from app.errors import NotFound
from app.web.library import HOME, Library
from app.web.pages import AnyonesPage, page_router

REFERENCE = "/reference"
REDOC_POLICY = {"style-src": "'self' 'unsafe-inline'", "worker-src": "blob:"}

router = page_router()


@router.get(HOME)
@router.get(HOME + "/")
async def start(view: AnyonesPage) -> Response:
    """The first page of the documentation."""
    return await document(view, view.request, "index")


@router.get(REFERENCE)
async def reference(view: AnyonesPage) -> Response:
    """The reference of the interface, made from the contract by Redoc."""
    return view.page("reference.html", policy=REDOC_POLICY)


@router.get(HOME + "/{path:path}")
async def document(view: AnyonesPage, request: Request, path: str) -> Response:
    """A page of the documentation, or a picture in one."""
    library = await _library()
    picture = library.pictures.get(path)
    if picture is not None:
        headers = {
            "Cache-Control": "private, no-cache",
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
            "ETag": picture.etag,
            "X-Content-Type-Options": "nosniff",
        }
        if still_holds(request, picture.etag):
            return Response(status_code=304, headers=headers)
        return Response(picture.content, headers=headers, media_type=picture.media_type)
    found = library.documents.get(path)
    if found is None:
        raise NotFound("The documentation has no such page.", field="path", value=path)
    return view.page("document.html", document=found, shelves=library.shelves, reference=REFERENCE)


async def _library() -> Library:
    """The documentation; read once, and not while others wait."""
    return await asyncio.to_thread(_read)


@cache
def _read() -> Library:
    library = Library.found()
    # All at once: the navigation names every page by its title.
    _ = library.shelves, library.pictures
    return library
