"""Chats in the forms that tools export them, as messages: `[{"role": …, "content": …}]`.

What is no text of a message stays as the tool wrote it, for the page that shows it: pictures and
sounds among the parts of its content, and what is asked of tools and answered by them.
"""

import json
from typing import Any

from celeus.intake.sources.sheet import is_deep
from celeus.intake.sources.unfolding import is_chat

ROLES = {"human": "user", "gpt": "assistant", "bot": "assistant", "model": "assistant"}
ASKING = frozenset({"user", "system", "developer"})
"""Roles of messages that wait for a reply."""
BESIDE = ("name", "tool_calls", "function_call", "tool_call_id", "refusal", "audio")
"""Members of a message that say something beside its content."""
Message = dict[str, Any]


def messages_of(value: object) -> list[Message] | None:
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
    return [_message(message) for message in value]


def ends_with_reply(value: object) -> bool:
    """Return True if a chat's last message is neither of who asks nor an instruction."""
    messages = messages_of(value)
    return messages is not None and messages[-1]["role"].lower() not in ASKING


def is_tree(value: object) -> bool:
    """Return True for the messages of a chat by their ids, as in an export of ChatGPT."""
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
    """The reply in an answer of OpenAI's API, from its `choices`; else None."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        message = value[0].get("message")
        if isinstance(message, dict):
            return message_text(message)
    return None


def message_text(message: Message) -> str:
    """The text of a message, with its calls of tools as JSON."""
    content = content_of(message.get("content"))
    calls = message.get("tool_calls") or message.get("function_call")
    asked = json.dumps(calls, ensure_ascii=False) if calls else ""
    return "\n".join(filter(None, [content, asked]))


def content_of(value: object) -> str:  # noqa: PLR0911 -- a form each
    """The content of a message as text; parts that are no text by their kind."""
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


def _message(given: dict[str, Any]) -> Message:
    role = str(given.get("role") or given.get("from") or "user")
    content = given.get("content") if "content" in given else given.get("value")
    content = content_of(content) if _is_text(content) else content
    beside = {name: given[name] for name in BESIDE if given.get(name)}
    return {"role": ROLES.get(role.lower(), role), "content": content} | beside


def _is_text(content: object) -> bool:
    """Return True if a content has nothing but text."""
    if isinstance(content, list):
        return all(map(_is_text, content))
    if isinstance(content, dict):
        return content.get("type", "text") == "text" and isinstance(content.get("text"), str)
    return True


def _of_tree(tree: dict[str, Any]) -> list[Message]:
    """The messages from the root to the last leaf of a chat."""
    node = next((name for name in reversed(tree) if not tree[name].get("children")), None)
    found: list[Message] = []
    seen: set[str] = set()
    while node is not None and node in tree and node not in seen:
        seen.add(node)
        message = tree[node].get("message") or {}
        content = content_of(message.get("content"))
        if content.strip():
            found.append(_of_node(message, content))
        node = tree[node].get("parent")
    return found[::-1]


def _of_node(message: dict[str, Any], content: str) -> Message:
    """A message of ChatGPT's export; one to a tool is a call of it."""
    author = message.get("author") or {}
    found: Message = {"role": str(author.get("role", "user")), "content": content}
    to = message.get("recipient")
    if found["role"] == "assistant" and isinstance(to, str) and to not in {"", "all"}:
        call = {"type": "function", "function": {"name": to, "arguments": content}}
        return found | {"content": "", "tool_calls": [call]}
    if found["role"] == "tool" and isinstance(author.get("name"), str):
        found["name"] = author["name"]
    return found
