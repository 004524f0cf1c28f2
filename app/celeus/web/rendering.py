"""Templates, rendered with a content security policy."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from secrets import token_urlsafe
from types import MappingProxyType

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from celeus.core.insights.figures import count
from celeus.operations.runtime.caller_cache import Caller
from celeus.shorten import printable
from celeus.web.assets import Assets
from celeus.web.wording import STATES, ago, counted, labels_done, minute, name_of, sentence, short

TEMPLATES = Path(__file__).parent / "templates"
REPORT_TEMPLATES = Path(__file__).parent / "report" / "templates"

NONCE_BYTES = 16
"""Length of the number by which a form is known that makes a secret."""

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
"""Content security policy: a page loads only what this service serves, no inline script."""

_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # The origin is sent, since forms of other sites are recognised by it
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    # A link's host is not even looked up before somebody clicks on it
    "X-DNS-Prefetch-Control": "off",
    "X-Frame-Options": "DENY",
}


class Templates:
    """Jinja templates; every value is escaped and every name must exist.

    From ``media_hosts`` the pages load pictures and sounds of items without a click.
    """

    def __init__(self, assets: Assets, media_hosts: str = "") -> None:
        self._pages = Environment(
            loader=FileSystemLoader([TEMPLATES, REPORT_TEMPLATES]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._pages.globals["static"] = assets.url
        self._pages.globals["nonce"] = partial(token_urlsafe, NONCE_BYTES)
        self._pages.globals["media_hosts"] = media_hosts
        self._pages.globals["states"] = STATES
        self._pages.filters |= {
            "ago": ago,
            "count": count,
            "counted": counted,
            "labels_done": labels_done,
            "minute": minute,
            "name": name_of,
            "sentence": sentence,
            "short": short,
        }

    def text(self, template: str, **context: object) -> str:
        """Render a template with these variables only."""
        return self._pages.get_template(template).render(context)

    def page(
        self,
        template: str,
        caller: Caller | None,
        context: Mapping[str, object],
        *,
        status: int = 200,
        policy: Mapping[str, str] | None = None,
    ) -> HTMLResponse:
        """Render a page for ``caller``; ``policy`` replaces directives of `POLICY`.

        Every template knows `caller`, which is None if no one is signed in, and `csrf`.
        """
        browser = None if caller is None else caller.browser
        shared = {"caller": caller, "csrf": "" if browser is None else browser.csrf}
        body = self.text(template, **shared, **context)
        allowed = {**POLICY, **(policy or {})}
        policy_header = "; ".join(
            f"{directive} {sources}" for directive, sources in allowed.items()
        )
        return HTMLResponse(
            printable(body), status, _HEADERS | {"Content-Security-Policy": policy_header}
        )
