"""Chats in the forms that tools export them, as messages: `[{"role": …, "content": …}]`."""

import json
from typing import Any

from celeus.readers.sheets.documents import is_chat
from celeus.readers.sheets.sheet import is_deep

ROLES = {"human": "user", "gpt": "assistant", "bot": "assistant", "model": "assistant"}


def messages_of(value: object) -> list[dict[str, str]] | None:
    """The messages of a chat, as OpenAI, ShareGPT, or an export of ChatGPT have it; else None."""
    if isinstance(value, str) and value.lstrip()[:1] in {"[", "{"}:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
        if is_deep(value):
            return None
    if isinstance(value, dict):
        if is_tree(value):
            return _of_tree(value)
        value = value.get("messages")
    if not isinstance(value, list) or not is_chat(value):
        return None
    return [_message(one) for one in value]


def is_tree(value: object) -> bool:
    """Whether these are the messages of a chat by their ids, as in an export of ChatGPT."""
    return isinstance(value, dict) and bool(value) and all(map(_is_node, value.values()))


def _is_node(value: object) -> bool:
    if not isinstance(value, dict) or "message" not in value:
        return False
    message = value["message"] or {}
    return (
        isinstance(message, dict)
        and isinstance(message.get("author") or {}, dict)
        and isinstance(value.get("parent"), str | None)
    )


def reply_of(value: object) -> str | None:
    """What a model said, in an answer of OpenAI's: the `choices` of it; else None."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        message = value[0].get("message")
        if isinstance(message, dict):
            return content_of(message.get("content"))
    return None


def content_of(value: object) -> str:  # noqa: PLR0911 -- a form each
    """What a message says as text; parts that are no text by their kind."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(content_of, value)))
    if isinstance(value, dict):
        if isinstance(value.get("text"), str):
            return str(value["text"])
        if isinstance(value.get("parts"), list):
            return content_of(value["parts"])
        return f"[{value.get('type') or value.get('content_type') or 'no text'}]"
    return str(value)


def _message(one: dict[str, Any]) -> dict[str, str]:
    role = str(one.get("role") or one.get("from") or "user")
    said = content_of(one.get("content") if "content" in one else one.get("value"))
    calls = one.get("tool_calls")
    if calls:
        said = "\n".join(filter(None, [said, json.dumps(calls, ensure_ascii=False)]))
    return {"role": ROLES.get(role.lower(), role), "content": said}


def _of_tree(tree: dict[str, Any]) -> list[dict[str, str]]:
    """The messages from the root to the last leaf of a chat."""
    node = next((name for name in reversed(tree) if not tree[name].get("children")), None)
    found: list[dict[str, str]] = []
    seen: set[str] = set()
    while node is not None and node in tree and node not in seen:
        seen.add(node)
        message = tree[node].get("message") or {}
        said = content_of(message.get("content"))
        if said.strip():
            role = (message.get("author") or {}).get("role", "user")
            found.append({"role": str(role), "content": said})
        node = tree[node].get("parent")
    return found[::-1]
