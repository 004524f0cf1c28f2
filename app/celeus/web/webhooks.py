"""The page of webhooks, and the messages of one."""

from typing import Final
from uuid import UUID

from fastapi import Response

from celeus.api.access.parameters import WebhookId
from celeus.operations.insights.session_lists import Filter, list_sessions
from celeus.operations.webhooks.endpoints import get_webhook, list_deliveries, list_webhooks
from celeus.operations.webhooks.messages import Format
from celeus.operations.webhooks.outbox import EventType
from celeus.web.pages import ManagesPage, page_router
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
async def webhooks(view: ManagesPage) -> Response:
    """Show a project's webhooks: make, try and delete them, and read their log."""
    sessions = await list_sessions(view.context, Filter(limit=MOST_CHOICES))
    return view.page(
        "webhooks.html",
        hooks=await list_webhooks(view.context),
        events=EVENTS,
        formats=FORMATS,
        names={UUID(session["id"].removeprefix("ses_")): name_of(session) for session in sessions},
    )


@router.get("/webhooks/{webhook_id}/messages")
async def messages(view: ManagesPage, webhook_id: WebhookId) -> Response:
    """Show the newest messages of a webhook and what came of each."""
    hook = await get_webhook(view.context, webhook_id)
    found = await list_deliveries(view.context, webhook_id, MOST_MESSAGES)
    return view.page(
        "messages.html",
        hook=f"hook_{webhook_id.hex}",
        url=hook.url,
        messages=found,
        events=EVENTS,
    )
