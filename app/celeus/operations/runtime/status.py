"""Publish the status document of a session to the cache, and read it there."""

import re
from typing import Any
from uuid import UUID
from zlib import crc32

import orjson

from celeus.store.cache import Cache

_HEAD = re.compile(rb"([0-9a-f]{32}) ([0-9a-f]{32}) ([0-9a-z.-]+) ([0-9a-f]{8})\n")
"""Project, session, version and checksum of a cached status, before its body."""


def version_of(document: dict[str, Any]) -> str:
    """The document's ETag; changes whenever the document does."""
    version = str(document["sequence"])
    if document["contradictions"]:
        version += f".{len(document['contradictions'])}"
    # What people change without an event
    if document["archived"]:
        version += ".archived"
    filed = document["tags"]
    return f"{version}-{crc32(orjson.dumps(filed)):08x}" if filed else version


async def announce(
    cache: Cache, project_id: UUID, session_id: UUID, document: dict[str, Any]
) -> None:
    """Publish the status document to the cache and the streams; either may be unavailable."""
    version = version_of(document)
    body = orjson.dumps(document)
    head = f"{project_id.hex} {session_id.hex} {version} {crc32(body):08x}\n".encode()
    await cache.put_status(session_id.hex, document["sequence"], version, head + body)


async def cached(cache: Cache, project_id: UUID, session_id: UUID) -> tuple[bytes, str] | None:
    """The cached status document as JSON with its version; None for another project's session.

    What `announce` cannot have written is dropped: Redis is data from outside.
    """
    value = await cache.get_status(session_id.hex)
    if value is None:
        return None
    head = _HEAD.match(value)
    if head is not None:
        body = value[head.end() :]
        project, session, version, checksum = (part.decode() for part in head.groups())
        if session == session_id.hex and crc32(body) == int(checksum, 16):
            return (body, version) if project == project_id.hex else None
    await cache.drop_status(session_id.hex)
    return None
