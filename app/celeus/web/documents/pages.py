"""The documentation as pages, and the reference of the interface."""

import asyncio
from functools import cache

from fastapi import FastAPI, Request, Response
from fastapi.staticfiles import StaticFiles

from celeus.api.wire.problems import PROBLEMS_PAGE, explained
from celeus.errors import NotFound
from celeus.web.documents.library import HOME, Library
from celeus.web.documents.reference import Reference, reference_of
from celeus.web.pages import AnyonesPage, page_router, templates_of

REFERENCE = "/reference"
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
    """Show the reference of the interface, made from the contract."""
    application: FastAPI = view.request.app
    contract = await asyncio.to_thread(_reference, application)
    return view.page("reference.html", reference=contract)


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
def _reference(application: FastAPI) -> Reference:
    """Return the contract of an application, rendered once."""
    return reference_of(application.openapi())


@cache
def _library() -> Library:
    """Return the documentation, rendered once."""
    library = Library.load()
    _ = library.shelves, library.pictures
    return library
