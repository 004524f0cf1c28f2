"""Webhooks on the wire: make, list, change, rotate, try and delete them, and read their log."""

from datetime import timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from celeus.api.access.parameters import DeliveryId, Manages, WebhookId, form_of, session_id_of
from celeus.api.sessions.opening_models import AS_WHOLE, STRICT
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.api.wire.records import FromRecord, Time, wire_id
from celeus.errors import (
    Busy,
    DeliveryNotFound,
    InvalidValue,
    SessionNotFound,
    TooManyWebhooks,
    WebhookDisabled,
    WebhookNotFound,
)
from celeus.operations.webhooks import endpoints
from celeus.operations.webhooks.addresses import LONGEST_URL
from celeus.operations.webhooks.messages import Format
from celeus.operations.webhooks.outbox import EVENTS, EventType

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], route_class=JsonRoute)

DAY_SECONDS = 86_400
URL: Final = "https://example.org/hooks/celeus"
MESSAGE: Final[dict[str, JsonValue]] = {
    "type": "session.stopped",
    "timestamp": "2026-11-23T09:30:00.000000+00:00",
    "data": {
        "session": "ses_019aa3c4d5e67f8091a2b3c4d5e6f708",
        "name": "Exam",
        "pool": "pool_019aa0b2c3d47e5f8a9b0c1d2e3f4a5b",
        "state": "target_reached",
        "stop_reason": "target_reached",
        "round": 191,
        "sequence": 382,
        "revision": 1,
        "sentence": "error rate 27 % (22 to 32), valid at every look with 95 % confidence,"
        " based on 191 labels.",
        "words": ["Is the error rate at most 40 %? Yes, since label 120."],
        "links": {
            "session": "https://celeus.example.org/sessions/ses_019aa3c4d5e67f8091a2b3c4d5e6f708"
        },
    },
}

Events = Annotated[
    list[EventType],
    Field(
        min_length=1,
        max_length=len(EVENTS),
        description="What is told: a session stops, has an answer, has spent its budget, has had"
        " no label for long; a certificate is issued.",
    ),
]
Url = Annotated[
    str,
    Field(
        max_length=LONGEST_URL,
        description="Where messages are sent: `https://`, on the public internet unless the"
        " operator lets more through.",
    ),
]
FormatIn = Annotated[
    Format,
    Field(
        description="`json`: the message itself. `slack` (Mattermost, too), `discord`, `teams`:"
        " its words in the form that these receivers take."
    ),
]
OfSession = Annotated[
    str | None,
    Field(
        description="The session that the webhook is limited to; null: all of the project.",
        json_schema_extra=form_of("ses"),
    ),
]


class WebhookRequest(BaseModel):
    """The webhook to make: its address and its events."""

    model_config = ConfigDict(
        **STRICT, json_schema_extra={"examples": [{"url": URL, "events": ["session.stopped"]}]}
    )

    url: Url
    events: Events
    format: FormatIn = "json"
    session_id: OfSession = None

    @property
    def request(self) -> endpoints.WebhookSettings:
        """Return what is asked for."""
        session_id = None if self.session_id is None else session_id_of(self.session_id)
        return endpoints.WebhookSettings(self.url, self.events, self.format, session_id)


class WebhookChange(BaseModel):
    """The changes of a webhook; a member left out stays as it is."""

    model_config = ConfigDict(
        **STRICT, json_schema_extra={"examples": [{"events": ["session.stopped"]}]}
    )

    url: Url = ""
    events: Events = Field(default_factory=list)
    format: FormatIn = "json"
    session_id: OfSession = None
    active: bool = Field(
        True,
        description="False stops messages; true sends again, those that waited first.",
    )


class RotationRequest(BaseModel):
    """The time in which both secrets sign."""

    model_config = ConfigDict(
        **STRICT, json_schema_extra={"examples": [{"overlap_seconds": DAY_SECONDS}]}
    )

    overlap_seconds: Annotated[int, AS_WHOLE] = Field(
        DAY_SECONDS,
        ge=0,
        le=30 * DAY_SECONDS,
        description="Seconds for which messages carry a signature by the former secret, too.",
    )


class WebhookOut(FromRecord):
    """A webhook, without its secret."""

    id: Annotated[str, wire_id("hook")] = Field(
        validation_alias="webhook_id",
        description="`hook_` and 32 hexadecimal digits.",
        json_schema_extra=form_of("hook"),
    )
    url: str = Field(description="Where messages are sent.")
    events: list[EventType] = Field(description="What is told.")
    format: Format = Field(description="The form of the messages.")
    session_id: Annotated[str | None, wire_id("ses")] = Field(
        description="The session that the webhook is limited to; null: all of the project."
    )
    active: bool = Field(description="Whether messages are sent.")
    note: str | None = Field(description="Why it is not active; null while it is.")
    failing_since: Time | None = Field(
        description="Since when no message came through; null after a success."
    )
    former_secret_until: Time | None = Field(
        validation_alias="former_until",
        description="Until when the former secret signs, too; null without a rotation.",
    )
    created_at: Time = Field(description="When it was made.")


class NewWebhook(WebhookOut):
    """A webhook with its secret, which is told this once."""

    secret: str = Field(
        description="`whsec_` and 32 random bytes in Base64: verifies the signatures of messages."
    )


class WebhookList(BaseModel):
    """The webhooks of a project."""

    data: list[WebhookOut] = Field(description="The oldest first.")


class WebhookMessage(BaseModel):
    """A message in the format `json`, signed by the Standard Webhooks convention."""

    model_config = ConfigDict(json_schema_extra={"examples": [MESSAGE]})

    type: str = Field(description="The event; `webhook.test` of a test.")
    timestamp: Time = Field(description="When it happened.")
    data: dict[str, Any] = Field(
        description="Ids of session and pool, `state`, `stop_reason`, `round`, `sequence`,"
        " `revision`, the session's own `sentence`, its answers in `words`, and `links`."
        " `session.decided` has `answers`,"
        " `session.stalled` has `since`, `certificate.issued` has `certificate`."
    )


class DeliveryOut(FromRecord):
    """A message and what came of it so far."""

    id: Annotated[str, wire_id("msg")] = Field(
        validation_alias="delivery_id",
        description="What receivers are sent as `webhook-id`, the same at every attempt.",
        json_schema_extra=form_of("msg"),
    )
    event: str = Field(description="What it tells; `webhook.test` of a test.")
    state: str = Field(
        description="`pending`, `delivered` (2xx was answered) or `failed` (given up)."
    )
    attempts: int = Field(description="Times it was sent, or begun to be.")
    created_at: Time = Field(description="When it happened.")
    attempted_at: Time | None = Field(description="When it was sent last; null before.")
    next_attempt_at: Time | None = Field(
        description="When it is sent next, if it does not come through before; null at the end."
    )
    status: int | None = Field(description="HTTP status last answered; null where nothing was.")
    answer: str | None = Field(description="The first 1000 bytes last answered.")
    note: str | None = Field(description="What else is to be said of the last attempt.")
    message: WebhookMessage = Field(description="What is sent, as the format `json` has it.")


class DeliveryList(BaseModel):
    """The log of a webhook."""

    data: list[DeliveryOut] = Field(description="The newest first.")


@router.post(
    "",
    operation_id="create_webhook",
    summary="Create a webhook",
    status_code=201,
    response_model=NewWebhook,
    responses=responses(InvalidValue, SessionNotFound, TooManyWebhooks),
)
async def create_webhook(
    context: Manages, body: WebhookRequest, response: Response
) -> endpoints.Webhook:
    """The secret is told in this answer and never again."""
    made = await endpoints.create_webhook(context, body.request)
    response.headers["Location"] = f"{router.prefix}/hook_{made.webhook_id.hex}"
    return made


@router.get(
    "",
    operation_id="list_webhooks",
    summary="List webhooks, oldest first",
    response_model=WebhookList,
)
async def list_webhooks(context: Manages) -> dict[str, Any]:
    """All of the project."""
    return {"data": await endpoints.list_webhooks(context)}


@router.get(
    "/{webhook_id}",
    operation_id="get_webhook",
    summary="One webhook",
    response_model=WebhookOut,
    responses=responses(WebhookNotFound),
)
async def get_webhook(context: Manages, webhook_id: WebhookId) -> endpoints.Webhook:
    """Its address, its events, and, if it does not work, why."""
    return await endpoints.get_webhook(context, webhook_id)


@router.patch(
    "/{webhook_id}",
    operation_id="change_webhook",
    summary="Change a webhook; enable or disable it",
    response_model=WebhookOut,
    responses=responses(InvalidValue, WebhookNotFound, SessionNotFound),
)
async def change_webhook(
    context: Manages, webhook_id: WebhookId, body: WebhookChange
) -> endpoints.Webhook:
    """A member left out stays as it is."""
    changes = body.model_dump(exclude_unset=True)
    if changes.get("session_id") is not None:
        changes["session_id"] = session_id_of(changes["session_id"])
    return await endpoints.change_webhook(context, webhook_id, changes)


@router.delete(
    "/{webhook_id}",
    operation_id="delete_webhook",
    summary="Delete a webhook with its log",
    status_code=204,
    responses=responses(WebhookNotFound),
)
async def delete_webhook(context: Manages, webhook_id: WebhookId) -> None:
    """Messages that are not delivered yet are dropped."""
    await endpoints.delete_webhook(context, webhook_id)


@router.post(
    "/{webhook_id}/rotate",
    operation_id="rotate_webhook",
    summary="Give a webhook a new secret",
    response_model=NewWebhook,
    responses=responses(InvalidValue, WebhookNotFound),
)
async def rotate_webhook(
    context: Manages, webhook_id: WebhookId, body: RotationRequest
) -> endpoints.Webhook:
    """Messages carry two signatures until the overlap is over."""
    overlap = timedelta(seconds=body.overlap_seconds)
    return await endpoints.rotate_webhook(context, webhook_id, overlap)


@router.post(
    "/{webhook_id}/test",
    operation_id="test_webhook",
    summary="Send a test message now",
    response_model=DeliveryOut,
    responses=responses(WebhookNotFound, Busy),
)
async def test_webhook(context: Manages, webhook_id: WebhookId) -> endpoints.Delivery:
    """It is sent once, and what came back is answered."""
    return await endpoints.try_webhook(context, webhook_id)


@router.get(
    "/{webhook_id}/deliveries",
    operation_id="list_deliveries",
    summary="The log of a webhook",
    response_model=DeliveryList,
    responses=responses(InvalidValue, WebhookNotFound),
)
async def list_deliveries(
    context: Manages,
    webhook_id: WebhookId,
    limit: Annotated[int, Query(ge=1, le=500, description="Entries at most.")] = 50,
) -> dict[str, Any]:
    """Messages of the last 30 days; of those that are over the newest 500."""
    return {"data": await endpoints.list_deliveries(context, webhook_id, limit)}


@router.post(
    "/{webhook_id}/deliveries/{delivery_id}/retry",
    operation_id="retry_delivery",
    summary="Send a message again",
    response_model=DeliveryOut,
    responses=responses(WebhookNotFound, DeliveryNotFound, WebhookDisabled),
)
async def retry_delivery(
    context: Manages, webhook_id: WebhookId, delivery_id: DeliveryId
) -> endpoints.Delivery:
    """As soon as possible, under the same id; also one that came through."""
    return await endpoints.retry_delivery(context, webhook_id, delivery_id)
