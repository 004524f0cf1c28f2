"""The page of webhooks, and the log of one."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final
from uuid import UUID

from fastapi import Response

from celeus.api.access.parameters import delivery_id_of, webhook_id_of
from celeus.api.webhooks import RotationRequest, WebhookChange, WebhookRequest
from celeus.errors import Refusal
from celeus.operations.insights.session_lists import Filter, list_sessions
from celeus.operations.webhooks.endpoints import (
    Webhook,
    change_webhook,
    create_webhook,
    delete_webhook,
    list_deliveries,
    list_webhooks,
    retry_delivery,
    rotate_webhook,
    try_webhook,
)
from celeus.operations.webhooks.messages import Format
from celeus.operations.webhooks.outbox import EventType
from celeus.web.forms import validated
from celeus.web.pages import Act, ManagesPage, Once, View, page_router
from celeus.web.wording import name_of

MOST_CHOICES = 200
"""Largest number of sessions to choose from, the newest ones."""
MOST_MESSAGES = 50
FORMATS: Final[dict[Format, str]] = {
    "json": "JSON, signed",
    "slack": "Slack or Mattermost",
    "discord": "Discord",
    "teams": "Teams",
}
EVENTS: Final[dict[EventType, str]] = {
    "session.stopped": "A session needs no more labels, or is closed",
    "session.decided": "A session has an answer",
    "session.budget_reached": "A session has spent its budget",
    "session.stalled": "A session waits for labels",
    "certificate.issued": "A certificate is issued",
}

router = page_router()


@router.get("/webhooks")
async def webhooks(view: ManagesPage, log: str | None = None) -> Response:
    """Show a project's webhooks: make, try and delete them, and read the log of one."""
    return await _page(view, log=log)


@router.post("/webhooks")
async def change_webhooks(view: ManagesPage) -> Response:
    """Do what a form of the page asks."""
    return await view.act(_ACTS, _page)


async def _make(view: View) -> Once | str:
    return _secret(await create_webhook(view.context, view.form.body(WebhookRequest).request))


async def _rotate(view: View) -> Once | str:
    overlap = timedelta(seconds=RotationRequest().overlap_seconds)
    return _secret(await rotate_webhook(view.context, _id(view), overlap))


def _secret(made: Webhook) -> Once | str:
    # Chats never look at a signature
    if made.format != "json" or made.secret is None:
        return f"/webhooks#hook_{made.webhook_id.hex}"
    words = "Whoever receives the messages verifies them with it. It cannot be shown again."
    return Once("The secret", made.secret, words)


async def _test(view: View) -> str:
    tested = await try_webhook(view.context, _id(view))
    return _log(view, tested.delivery_id)


async def _retry(view: View) -> str:
    delivery_id = delivery_id_of(view.form.get("message"))
    await retry_delivery(view.context, _id(view), delivery_id)
    return _log(view, delivery_id)


async def _switch(view: View) -> str:
    webhook_id = _id(view)
    body = validated(WebhookChange, {"active": view.form.sent("active")})
    await change_webhook(view.context, webhook_id, {"active": body.active})
    return f"/webhooks#hook_{webhook_id.hex}"


async def _delete(view: View) -> str:
    await delete_webhook(view.context, _id(view))
    return "/webhooks#list-title"


_ACTS: Final[Mapping[str, Act]] = {
    "make": _make,
    "rotate": _rotate,
    "test": _test,
    "retry": _retry,
    "switch": _switch,
    "delete": _delete,
}


def _id(view: View) -> UUID:
    return webhook_id_of(view.form.get("id"))


def _log(view: View, delivery_id: UUID) -> str:
    """Return the address of a message in the log of its webhook."""
    return f"/webhooks?log={view.form.get('id')}#msg_{delivery_id.hex}"


async def _page(
    view: View, made: Once | None = None, fault: Refusal | None = None, log: str | None = None
) -> Response:
    sessions = await list_sessions(view.context, Filter(limit=MOST_CHOICES))
    hooks = await list_webhooks(view.context)
    read = next((hook for hook in hooks if log == f"hook_{hook.webhook_id.hex}"), None)
    messages = None
    if read is not None:
        messages = await list_deliveries(view.context, read.webhook_id, MOST_MESSAGES)
    return view.page(
        "webhooks.html",
        fault=fault,
        made=made,
        hooks=hooks,
        read=read,
        messages=messages,
        events=EVENTS,
        formats=FORMATS,
        names={UUID(session["id"].removeprefix("ses_")): name_of(session) for session in sessions},
    )
