"""Routes of pages: access, rendering, and the pages of refusals.

A page is a route of `views`:

    @router.get("/things/{thing_id}")
    async def thing(view: ReadsPage, thing_id: str) -> Response:
        return view.page("thing.html", thing=await get_thing(view.context, thing_id))

A visitor who is not signed in is redirected to `/login` and back; a refusal is shown as a page.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
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
from celeus.api.access.cookies import INTERFACE, READING, headers_of
from celeus.api.watch.requests import request_id
from celeus.api.wire.problems import BEHIND, PROBLEMS_PAGE, RETRY_SECONDS, is_behind, status_of
from celeus.errors import (
    Conflict,
    CsrfMissing,
    InvalidValue,
    NotFound,
    Refusal,
    SchemaBehind,
    Unauthenticated,
    Unavailable,
)
from celeus.operations.runtime.caller_cache import Caller
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.idempotency import (
    IdempotentRequest,
    Replay,
    keep,
    peek,
    transaction_of,
)
from celeus.web.assets import ICON
from celeus.web.forms import Form, own_form
from celeus.web.rendering import Templates
from celeus.web.wording import sentence

LOGIN = "/login"
SHARED = "/s/"
"""Prefix of links that show one report without signing in."""
_STATIC = "/static/"
_SENT_ALREADY = (
    "This form was sent already, and the secret that it made is not shown again. If it is lost,"
    " revoke what was made, and make another."
)
_DOCUMENTS = ("/report", "/certificate")
"""Ends of paths of the interface that people follow as links."""
_Shows = Callable[[Request, Exception], Awaitable[Response | None]]


@dataclass(frozen=True, slots=True)
class View:
    """The view of a page: request, context, caller, and the form that was sent to it."""

    request: Request
    context: Context
    caller: Caller
    form: Form

    def page(
        self,
        template: str,
        *,
        fault: Refusal | None = None,
        policy: Mapping[str, str] | None = None,
        **context: object,
    ) -> HTMLResponse:
        """Render a template; it knows `caller`, `csrf`, and the ``context`` given here.

        It also knows `form`, and the `fault` for which that was refused, if it was.
        """
        status = HTTPStatus.OK if fault is None else status_of(type(fault))
        shared = {"form": self.form, "fault": fault}
        templates = templates_of(self.request)
        answer = templates.page(
            template, self.caller, shared | context, status=status, policy=policy
        )
        if fault is not None:
            set_retry_after(answer, fault)
        return answer

    async def act(
        self,
        acts: Mapping[str, "Act"],
        page: "Page",
        **arguments: Any,  # noqa: ANN401 -- those of the page
    ) -> Response:
        """Do what the form asks, and go on; show at once a secret that it made, or its fault.

        The page and what its forms do have the same ``arguments``.
        """
        act = acts.get(self.form.get("act"))
        if act is None:
            raise InvalidValue("act: this page has no such form", field="act")
        try:
            await peek(self.context, self._form_sent)
            result = await act(self, **arguments)
        except Replay:
            return await page(self, fault=Conflict(_SENT_ALREADY), **arguments)
        except Refusal as fault:
            return await page(self, fault=fault, **arguments)
        if isinstance(result, str):
            url = self.request.url
            path = f"{url.path}?{url.query}" if url.query else url.path
            place = path + result if result.startswith("#") else result
            return RedirectResponse(place, HTTPStatus.SEE_OTHER)
        with suppress(Replay):
            async with transaction_of(self.context, self._form_sent) as db:
                await keep(db, self.context, self._form_sent, None)
        return await page(self, made=result, **arguments)

    @property
    def _form_sent(self) -> IdempotentRequest[None] | None:
        """Return the form by its number: a page that is loaded again makes no second secret."""
        number = self.form.get("once").encode()
        if not number:
            return None
        digest = sha256(number)
        key = f"form {digest.hexdigest()}"
        return IdempotentRequest(key, digest.digest(), HTTPStatus.OK, lambda _: b"")

    @property
    def address(self) -> str:
        """Return the address of the service, as the browser that sent a form knows it."""
        seen = self.request.headers.get("origin") or str(self.request.base_url)
        return (self.context.settings.public_url or seen).rstrip("/")


@dataclass(frozen=True, slots=True)
class Once:
    """A secret that a page shows this once, with its label and words about it."""

    label: str
    secret: str = field(repr=False)
    words: str


Act = Callable[..., Awaitable[Once | str]]
"""A form's action: returns a secret to show, or the address to go to, "#…" on its own page."""


Page = Callable[..., Awaitable[Response]]
"""A page with forms; takes the view, its own arguments, and the `made` secret or a `fault`."""


async def _view(request: Request, needed: SecurityScopes, caller: CallerOf) -> View:
    for scope in needed.scopes:
        caller.require(scope)
    form = Form() if request.method in READING else await own_form(request, caller)
    return View(request, context_of(request, caller), caller, form)


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
    if isinstance(refusal, CsrfMissing):
        # The form may be unread, and would be taken for the next request
        answer.headers["Connection"] = "close"
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
    page = path.endswith(_DOCUMENTS) or not path.startswith(INTERFACE)
    return reads and "text/html" in accept and page


def _refuse_access(scope: Scope, refusal: Refusal) -> ASGIApp:
    if not isinstance(refusal, Unauthenticated):
        return refused_page(scope, refusal)
    answer = RedirectResponse(login_path(scope) if scope["method"] in READING else LOGIN, 303)
    answer.headers["Cache-Control"] = "no-store"
    # The sign-in page removes the cookie and says that it no longer works
    return answer
