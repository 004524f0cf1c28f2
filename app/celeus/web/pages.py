"""Routes of pages: access, rendering, and the pages of refusals.

A page is a route of `views`:

    @router.get("/things/{thing_id}")
    async def thing(view: ReadsPage, thing_id: str) -> Response:
        return view.page("thing.html", thing=await get_thing(view.context, thing_id))

A visitor who is not signed in is redirected to `/login` and back; a refusal is shown as a page.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, cast
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from fastapi.security import SecurityScopes
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Scope

from celeus.api.access.auth import CallerOf, Pages, context_of
from celeus.api.access.cookies import READING, headers_of
from celeus.api.watch.requests import request_id
from celeus.api.wire.problems import BEHIND, PROBLEMS_PAGE, RETRY_SECONDS, is_behind, status_of
from celeus.errors import (
    InvalidValue,
    NotFound,
    Refusal,
    SchemaBehind,
    Unauthenticated,
    Unavailable,
)
from celeus.operations.runtime.caller_cache import Caller
from celeus.operations.runtime.context import Context
from celeus.web.assets import ICON
from celeus.web.rendering import Templates
from celeus.web.wording import sentence

LOGIN = "/login"
SHARED = "/s/"
"""Prefix of links that show one report without signing in."""
_STATIC = "/static/"
_INTERFACE = "/v1/"
_REPORT = "/report"
_Shows = Callable[[Request, Exception], Awaitable[Response | None]]


@dataclass(frozen=True, slots=True)
class View:
    """The view of a page: request, context and caller."""

    request: Request
    context: Context
    caller: Caller

    def page(
        self,
        template: str,
        *,
        status: int = 200,
        policy: Mapping[str, str] | None = None,
        **context: object,
    ) -> HTMLResponse:
        """Render a template; it knows `caller`, `csrf`, and the ``context`` given here."""
        templates = templates_of(self.request)
        return templates.page(template, self.caller, context, status=status, policy=policy)


async def _view(request: Request, needed: SecurityScopes, caller: CallerOf) -> View:
    for scope in needed.scopes:
        caller.require(scope)
    return View(request, context_of(request, caller), caller)


AnyonesPage = Annotated[View, Security(_view)]
"""View of a page that every signed-in caller may see."""
ReadsPage = Annotated[View, Security(_view, scopes=["read"])]
LabelsPage = Annotated[View, Security(_view, scopes=["label"])]
ManagesPage = Annotated[View, Security(_view, scopes=["manage"])]
AdministersPage = Annotated[View, Security(_view, scopes=["admin"])]


class PageRoute(APIRoute):
    """A route whose refusals are rendered as pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of the route, which renders refusals as pages."""
        handle = super().get_route_handler()

        async def shown(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                first = error.errors()[0]
                refusal: Refusal = InvalidValue(f"{first['loc'][-1]}: {first['msg']}")
            except Refusal as declined:
                refusal = declined
            return refused_page(request.scope, refusal)

        return shown


def page_router() -> APIRouter:
    """Return a router for pages, which are not part of the API contract."""
    return APIRouter(
        route_class=PageRoute, include_in_schema=False, default_response_class=HTMLResponse
    )


def pages_for_access(routers: Sequence[APIRouter]) -> Pages:
    """Return the pages of these routers, for the authentication middleware."""
    routes = [route for router in routers for route in router.routes]

    def shows(scope: Scope) -> bool:
        matches = any(route.matches(scope)[0] is not Match.NONE for route in routes)
        return matches or _is_navigation(scope)

    def opened(path: str) -> bool:
        return path in {LOGIN, ICON, PROBLEMS_PAGE} or path.startswith((_STATIC, SHARED))

    return Pages(opened, shows, _refuse_access)


def show_refusals(app: FastAPI) -> None:
    """Render refusals, unknown addresses and failures as pages when a person navigates."""

    def for_people(kind: type[Exception], shown: _Shows) -> None:
        handler = app.exception_handlers[kind]

        async def answer_refusal(request: Request, error: Exception) -> Response:
            page = await shown(request, error) if _is_navigation(request.scope) else None
            if page is not None:
                return page
            answer = handler(request, error)
            return await answer if isinstance(answer, Awaitable) else answer

        app.add_exception_handler(kind, answer_refusal)

    for_people(Refusal, _refused)
    for_people(HTTPException, _missing)
    for_people(Exception, _failed)


async def _refused(request: Request, error: Exception) -> Response | None:
    return refused_page(request.scope, error) if isinstance(error, Refusal) else None


async def _missing(request: Request, error: Exception) -> Response | None:
    if getattr(error, "status_code", None) != HTTPStatus.NOT_FOUND:
        return None
    return refused_page(request.scope, NotFound("there is nothing at this address"))


async def _failed(request: Request, _: Exception) -> Response:
    if await is_behind(request):
        return refused_page(request.scope, SchemaBehind(BEHIND))
    caller: Caller | None = request.scope.get("state", {}).get("caller")
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    failure = {"status": int(status), "request_id": request_id()}
    return templates_of(request).page("failure.html", caller, failure, status=status)


def refused_page(scope: Scope, refusal: Refusal) -> HTMLResponse:
    """Render a refusal as a page, with the next sensible step."""
    caller: Caller | None = scope.get("state", {}).get("caller")
    templates = cast("Templates", scope["app"].state.templates)
    status = status_of(type(refusal))
    problem = {"title": refusal.title(), "detail": sentence(refusal.detail), "status": int(status)}
    answer = templates.page("refusal.html", caller, problem, status=status)
    set_retry_after(answer, refusal)
    return answer


def set_retry_after(answer: Response, refusal: Refusal) -> None:
    """Set Retry-After in the answer if a later try may succeed."""
    wait = refusal.more.get("retry_after")
    if wait is not None or isinstance(refusal, Unavailable):
        answer.headers["Retry-After"] = str(wait or RETRY_SECONDS)


def templates_of(request: Request) -> Templates:
    """Return the templates that `create_app` loaded."""
    return cast("Templates", request.app.state.templates)


def login_path(scope: Scope) -> str:
    """Return the address of the sign-in page, with the requested address to return to."""
    target = quote(scope["path"])
    if scope["query_string"]:
        target += "?" + scope["query_string"].decode("latin-1")
    return f"{LOGIN}?next={quote(target, safe='/')}"


def _is_navigation(scope: Scope) -> bool:
    """Return whether a person navigates to a page: a browser's request for HTML."""
    accept = "".join(headers_of(scope, b"accept"))
    reads = scope["method"] in READING
    path = scope["path"]
    page = path.endswith(_REPORT) or not path.startswith(_INTERFACE)
    return reads and "text/html" in accept and page


def _refuse_access(scope: Scope, refusal: Refusal) -> ASGIApp:
    if not isinstance(refusal, Unauthenticated):
        return refused_page(scope, refusal)
    answer = RedirectResponse(login_path(scope) if scope["method"] in READING else LOGIN, 303)
    answer.headers["Cache-Control"] = "no-store"
    # The sign-in page removes the cookie and says that it no longer works
    return answer
