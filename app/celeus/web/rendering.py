"""Pages out of templates, with the headers that hold a browser to what a page needs."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app.operations.callers import Caller
from app.quoting import printable
from app.web.assets import Assets

TEMPLATES = Path(__file__).parent / "templates"

POLICY: Mapping[str, str] = MappingProxyType(
    {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
)
"""What a page may load and do: what this service serves, and nothing written into the page."""

_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # Without its own origin a form that is sent here could not be told from a foreign one
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Templates:
    """The templates, in which every value is escaped and every name has to exist."""

    def __init__(self, assets: Assets) -> None:
        self._pages = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._pages.globals["static"] = assets.url

    def page(
        self,
        template: str,
        caller: Caller | None,
        context: Mapping[str, object],
        *,
        status: int = 200,
        policy: Mapping[str, str] | None = None,
    ) -> HTMLResponse:
        """A page for somebody; ``policy`` replaces directives of `POLICY` where one needs others.

        Every template knows `caller`, which is None where nobody is signed in, and `csrf`.
        """
        browser = None if caller is None else caller.browser
        known = {"caller": caller, "csrf": "" if browser is None else browser.csrf}
        body = self._pages.get_template(template).render(known | dict(context))
        allowed = {**POLICY, **(policy or {})}
        told = "; ".join(f"{directive} {sources}" for directive, sources in allowed.items())
        return HTMLResponse(printable(body), status, _HEADERS | {"Content-Security-Policy": told})
