"""Receiving an upload: what it may be, and how it reaches the disk.

The body is written to a temporary file as it arrives, with the limit enforced on the way, so that
a gigabyte costs neither memory nor disk beyond the limit. Only then does a transaction begin: a
slow client never holds a lock.
"""

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import IO

from anyio import to_thread
from starlette.requests import Request

from app.api.rows import Format
from app.errors import UnsupportedFormat, UploadTooLarge

FORMATS: Mapping[str, Format] = {
    "application/x-ndjson": "ndjson",
    "text/csv": "csv",
    "application/vnd.apache.parquet": "parquet",
}
WRITE_BYTES = 1 << 20


def format_of(request: Request) -> Format:
    """Format the headers announce; refuses others and compressed bodies."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise UnsupportedFormat(
            "A compressed body is not accepted: its size is only known after unpacking.",
            field="Content-Encoding",
            rule="identity, or left out",
            value=encoding,
        )
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    form = FORMATS.get(media)
    if form is None:
        raise UnsupportedFormat(
            "The format of the upload is not known.",
            field="Content-Type",
            rule="one of " + ", ".join(FORMATS),
            value=media,
        )
    return form


@asynccontextmanager
async def spooled(request: Request, limit_bytes: int) -> AsyncIterator[IO[bytes]]:
    """The whole body in a temporary file, at its beginning; refused once past the limit."""
    announced = request.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and int(announced) > limit_bytes:
        raise too_large(limit_bytes, announced)
    with tempfile.TemporaryFile() as file:
        waiting = bytearray()
        received = 0
        async for part in request.stream():
            received += len(part)
            if received > limit_bytes:
                raise too_large(limit_bytes, f"more than {limit_bytes}")
            waiting += part
            if len(waiting) >= WRITE_BYTES:
                await to_thread.run_sync(file.write, bytes(waiting))
                waiting.clear()
        await to_thread.run_sync(file.write, bytes(waiting))
        file.seek(0)
        yield file


def too_large(limit_bytes: int, size: object) -> UploadTooLarge:
    """The refusal of a body beyond its limit."""
    return UploadTooLarge(
        "The body of the request is too large.",
        field="body",
        rule=f"at most {limit_bytes} bytes",
        value=size,
    )
