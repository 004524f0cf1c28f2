"""What every page has in common: who may see it, how it is made, what is shown in its place.

A page lives in a module of its own:

    router = page_router()

    @router.get("/things/{thing_id}")
    async def thing(view: ReadsPage, thing_id: str) -> Response:
        return view.page("thing.html", thing=await get_thing(view.rooms, thing_id))

and `app.main` names its router. Whoever is not signed in is led to `/login` and back; a refusal
is shown as a page.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, cast
from urllib.parse import quote

from fastapi import APIRouter, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from fastapi.security import SecurityScopes
from starlette.routing import Match
from starlette.types import ASGIApp, Scope

from app.api.auth import CallerOf, Pages
from app.api.browsers import cookie_of, taken_cookie
from app.api.problems import RETRY_SECONDS, status_of
from app.errors import InvalidValue, Refusal, Unauthenticated, Unavailable
from app.operations.callers import Caller
from app.operations.rooms import Rooms
from app.web.rendering import Templates

LOGIN = "/login"
_STATIC = "/static/"


@dataclass(frozen=True, slots=True)
class View:
    """Somebody who looks at a page, and what the page is made with."""

    request: Request
    rooms: Rooms
    caller: Caller

    def page(
        self,
        template: str,
        *,
        status: int = 200,
        policy: Mapping[str, str] | None = None,
        **context: object,
    ) -> HTMLResponse:
        """The page; templates know `caller`, `csrf`, and what is given here."""
        templates = templates_of(self.request)
        return templates.page(template, self.caller, context, status=status, policy=policy)


async def _view(request: Request, needed: SecurityScopes, caller: CallerOf) -> View:
    for scope in needed.scopes:
        caller.require(scope)
    rooms = cast("Rooms", request.app.state.rooms)
    bound = replace(
        rooms, project_id=caller.project_id, key_id=caller.key_id, browser=caller.browser
    )
    return View(request, bound, caller)


AnyonesPage = Annotated[View, Security(_view)]
"""Whoever is signed in."""
ReadsPage = Annotated[View, Security(_view, scopes=["read"])]
LabelsPage = Annotated[View, Security(_view, scopes=["label"])]
ManagesPage = Annotated[View, Security(_view, scopes=["manage"])]


class PageRoute(APIRoute):
    """A route whose refusals are pages too."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request for the page."""
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
    """A router for pages, which stand in no contract."""
    return APIRouter(
        route_class=PageRoute, include_in_schema=False, default_response_class=HTMLResponse
    )


def doors_pages(routers: Sequence[APIRouter]) -> Pages:
    """What the door has to know of the pages of these routers."""
    routes = [route for router in routers for route in router.routes]

    def shows(scope: Scope) -> bool:
        return any(route.matches(scope)[0] is not Match.NONE for route in routes)

    def opened(path: str) -> bool:
        return path == LOGIN or path.startswith(_STATIC)

    return Pages(opened, shows, _refused_at_door)


def refused_page(scope: Scope, refusal: Refusal) -> HTMLResponse:
    """A refusal as a person reads it, with the next sensible step."""
    caller: Caller | None = scope.get("state", {}).get("caller")
    templates = cast("Templates", scope["app"].state.templates)
    status = status_of(type(refusal))
    context = {"refusal": refusal, "title": refusal.title(), "status": int(status)}
    answer = templates.page("refusal.html", caller, context, status=status)
    wait = refusal.more.get("retry_after")
    if wait is not None or isinstance(refusal, Unavailable):
        answer.headers["Retry-After"] = str(wait or RETRY_SECONDS)
    return answer


def templates_of(request: Request) -> Templates:
    """The templates `create_app` has made."""
    return cast("Templates", request.app.state.templates)


def login_path(scope: Scope) -> str:
    """Where somebody signs in who is then led to what they asked for."""
    asked = quote(scope["path"])
    if scope["query_string"]:
        asked += "?" + scope["query_string"].decode("latin-1")
    return f"{LOGIN}?next={quote(asked, safe='/')}"


def _refused_at_door(scope: Scope, refusal: Refusal) -> ASGIApp:
    if not isinstance(refusal, Unauthenticated):
        return refused_page(scope, refusal)
    asks = scope["method"] in {"GET", "HEAD"}
    answer = RedirectResponse(login_path(scope) if asks else LOGIN, 303)
    answer.headers["Cache-Control"] = "no-store"
    if cookie_of(scope) is not None:
        answer.headers["Set-Cookie"] = taken_cookie(scope)
    return answer
