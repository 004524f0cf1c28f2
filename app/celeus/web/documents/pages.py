"""The documentation as pages, and the reference of the interface.

Redoc makes its page itself, out of the contract: it adds elements of style, known by a nonce or by
their digests, and searches in a worker of its own; no other page may do either.
"""

import asyncio
import secrets
from functools import cache

from fastapi import Request, Response
from fastapi.staticfiles import StaticFiles

from celeus.api.wire.problems import PROBLEMS_PAGE, explained
from celeus.errors import NotFound
from celeus.web.documents.library import HOME, Library
from celeus.web.pages import AnyonesPage, page_router, templates_of

REFERENCE = "/reference"
_NONCE_BYTES = 16
_EARLY_STYLES = (
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    " 'sha256-QMIg+bpjm3JdElJ388KYke01izlUW0UoNOeKjpMxdgc='"
)
"""Digests of the styles that Redoc adds before it reads the nonce: an element and scroll bars."""
_PICTURE_HEADERS = {
    "Cache-Control": "private, no-cache",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
}

router = page_router()


@router.get(HOME)
@router.get(HOME + "/")
async def start(view: AnyonesPage) -> Response:
    """Show the first page of the documentation."""
    return await document(view, view.request, "index")


@router.get(REFERENCE)
async def reference(view: AnyonesPage) -> Response:
    """Show the reference of the interface, made from the contract by Redoc."""
    nonce = secrets.token_urlsafe(_NONCE_BYTES)
    policy = {"style-src": f"'self' 'nonce-{nonce}' {_EARLY_STYLES}", "worker-src": "blob:"}
    return view.page("reference.html", policy=policy, nonce=nonce)


@router.get(PROBLEMS_PAGE)
async def problems(request: Request) -> Response:
    """Show the meaning of every refusal; open to all, as requests without a key are refused too."""
    return templates_of(request).page("problems.html", None, {"problems": explained()})


@router.get(HOME + "/{path:path}")
async def document(view: AnyonesPage, request: Request, path: str) -> Response:
    """Show a page of the documentation, or a picture in one."""
    library = await asyncio.to_thread(_library)
    picture = library.pictures.get(path)
    if picture is not None:
        answer = StaticFiles().file_response(picture, picture.stat(), request.scope)
        answer.headers.update(_PICTURE_HEADERS)
        return answer
    page = library.documents.get(path)
    if page is None:
        raise NotFound("The documentation has no such page.", field="path", value=path)
    return view.page("document.html", document=page, library=library, reference=REFERENCE)


@cache
def _library() -> Library:
    """Return the documentation, rendered once."""
    library = Library.load()
    _ = library.shelves, library.pictures
    return library
