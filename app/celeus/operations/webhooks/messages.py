"""Messages in the format of their receiver, signed as Standard Webhooks has it.

https://www.standardwebhooks.com: HMAC-SHA256 over "id.timestamp.body" in the header
`webhook-signature`, one signature for every secret that is in force.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args
from uuid import UUID

import orjson

from celeus.operations.sessions.event_rows import moment

Format = Literal["json", "slack", "discord", "teams"]
FORMATS: tuple[Format, ...] = get_args(Format)
SECRET_BYTES = 32
LONGEST_TEXT = 1_900
"""Discord takes 2 000 characters of a message; the others more."""

_HAPPENED: Mapping[str, str] = {
    "session.decided": "has an answer",
    "session.budget_reached": "has spent its budget of labels",
    "session.stalled": "waits for labels",
    "certificate.issued": "has a certificate",
    "webhook.test": "sends a test",
}
_STOPPED: Mapping[str | None, str] = {
    None: "is closed",
    "target_reached": "has reached its precision and needs no more labels",
    "decided": "has its answers and needs no more labels",
    "exhausted": "has no item left to judge",
    "budget_spent": "has spent its budget of labels",
}
_MARKS = str.maketrans({mark: f"\N{ZERO WIDTH SPACE}{mark}" for mark in "@["})
"""Replacements of characters that a chat would take for a mention or a link in a name."""


def new_secret() -> bytes:
    """A secret to sign with."""
    return secrets.token_bytes(SECRET_BYTES)


def written(secret: bytes) -> str:
    """A secret as receivers are given it."""
    return f"whsec_{base64.b64encode(secret).decode()}"


def message(event: str, time: datetime, data: Mapping[str, Any], address: str) -> dict[str, Any]:
    """The message of an event with links to a service at ``address``."""
    linked = {**data, "links": _links(data, address)}
    return {"type": event, "timestamp": moment(time), "data": linked}


def body(content: Mapping[str, Any], format_: str) -> bytes:
    """A message as its receiver takes it; the same bytes for the same message."""
    if format_ == "json":
        return orjson.dumps(content)
    text = _text(content)
    if format_ == "slack":
        # Slack and Mattermost take these three for marks of their own
        for sign, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
            text = text.replace(sign, name)
        return orjson.dumps({"text": text})
    if format_ == "discord":
        return orjson.dumps({"content": text, "allowed_mentions": {"parse": []}})
    card = {
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [{"type": "TextBlock", "text": text, "wrap": True}],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return orjson.dumps({"type": "message", "attachments": [attachment]})


def headers(id_: UUID, seconds: int, sent: bytes, keys: Sequence[bytes]) -> dict[str, str]:
    """The headers of a message at a time in seconds, signed with each of the secrets."""
    name = f"msg_{id_.hex}"
    signed = f"{name}.{seconds}.".encode() + sent
    signatures = [
        base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys
    ]
    return {
        "webhook-id": name,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }


def _links(data: Mapping[str, Any], address: str) -> dict[str, str]:
    session = data.get("session")
    if session is None:
        return {"webhooks": f"{address}/webhooks"}
    links = {
        "session": f"{address}/sessions/{session}",
        "report": f"{address}/v1/sessions/{session}/report",
    }
    if "certificate" in data:
        links["certificate"] = f"{address}/v1/sessions/{session}/certificate"
    return links


def _text(content: Mapping[str, Any]) -> str:
    """A message in words for people, its link last."""
    data = content["data"]
    links = data["links"]
    name = str(data.get("name") or data.get("session") or "This webhook").translate(_MARKS)
    if content["type"] == "session.stopped":
        happened = _STOPPED[data["stop_reason"]]
    else:
        happened = _HAPPENED[content["type"]]
    answers = data.get("words", ()) if content["type"] == "session.decided" else ()
    parts = [f"{name} {happened}.", *answers, data.get("sentence") or ""]
    text = " ".join(part for part in parts if part)
    return f"{text[:LONGEST_TEXT]} {links.get('session') or links['webhooks']}"
