"""Publish the status document of a session to the cache, and read it there."""

from typing import Any
from uuid import UUID
from zlib import crc32

import orjson

from celeus.store.cache import Cache


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
    body = f"{project_id.hex} {version}\n".encode() + orjson.dumps(document)
    await cache.put_status(session_id.hex, document["sequence"], version, body)


async def cached(cache: Cache, project_id: UUID, session_id: UUID) -> tuple[bytes, str] | None:
    """The cached status document as JSON with its version; None for another project's session."""
    value = await cache.get_status(session_id.hex)
    if value is None:
        return None
    head, _, body = value.partition(b"\n")
    project, version = head.decode().split(" ")
    return (body, version) if project == project_id.hex else None
