"""Receiving an upload: what it may be, and how it reaches the disk.

The body is written to a temporary file as it arrives, with its limit enforced on the way
(`celeus.api.wire.limits`), so that a gigabyte costs neither memory nor disk beyond the limit. Only
then does a transaction begin: a slow client never holds a lock.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import IO, Any, Literal, TypeVar

from anyio import to_thread
from starlette.requests import Request

from celeus.errors import BodyTooSlow, UnsupportedFormat, UploadTooLarge

Format = Literal["ndjson", "csv", "parquet"]

FORMATS: Mapping[str, Format] = {
    "application/x-ndjson": "ndjson",
    "text/csv": "csv",
    "application/vnd.apache.parquet": "parquet",
}
ANY_FILE = frozenset(
    {
        *("", "application/octet-stream", "text/plain", "text/tab-separated-values"),
        *("application/json", "application/jsonl", "application/csv", "application/vnd.ms-excel"),
        *("application/gzip", "application/x-gzip", "application/zip"),
        # What curl says of any body, and what a form with a file is
        *("application/x-www-form-urlencoded", "multipart/form-data"),
    }
)
"""Types under which tables and logs come; what they hold is found out."""
WRITE_BYTES = 1 << 20

T = TypeVar("T")


def media_of(request: Request) -> str:
    """The type that the headers announce."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def format_of(request: Request, formats: Mapping[str, Format] = FORMATS) -> Format:
    """Format the headers announce; refuses others."""
    form = formats.get(media_of(request))
    if form is None:
        raise _unknown(request, formats)
    return form


def format_of_any(request: Request) -> Format | None:
    """The same of a file that may be any table or log: None where that has to be found out."""
    form = FORMATS.get(media_of(request))
    if form is None and media_of(request) not in ANY_FILE:
        raise _unknown(request, FORMATS)
    return form


def _unknown(request: Request, formats: Mapping[str, Format]) -> UnsupportedFormat:
    rule = ", ".join(formats)
    return UnsupportedFormat(
        "The format of the upload is not known.",
        field="Content-Type",
        rule=f"one of {rule}" if len(formats) > 1 else rule,
        value=media_of(request),
    )


def check_encoding(encoding: str) -> None:
    """Refuse a body that would have to be unpacked."""
    if encoding.strip().lower() != "identity":
        raise UnsupportedFormat(
            "A compressed body is not accepted: its size is only known after unpacking.",
            field="Content-Encoding",
            rule="identity, or left out",
            value=encoding,
        )


@asynccontextmanager
async def spooled(
    request: Request, hashed: Callable[[bytes], object] | None = None
) -> AsyncIterator[IO[bytes]]:
    """The whole body in a temporary file, at its beginning; `hashed` sees every byte on its way."""
    with tempfile.TemporaryFile() as file:

        def write(part: bytes) -> None:
            file.write(part)
            if hashed is not None:
                hashed(part)

        await spool_parts(request, write)
        file.seek(0)
        yield file


async def spool_parts(request: Request, write: Callable[[bytes], object]) -> None:
    """Have ``write`` take the whole body in a thread, a large part at a time."""
    waiting = bytearray()
    async for part in request.stream():
        waiting += part
        if len(waiting) >= WRITE_BYTES:
            await to_thread.run_sync(write, bytes(waiting))
            waiting.clear()
    await to_thread.run_sync(write, bytes(waiting))


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of ``work``, which is cancelled if the client leaves before it is done.

    Called when the body is read: what comes after it is the client's leaving.
    """
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_left(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise BodyTooSlow("The client left before the answer to its request was there.")
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def too_large(limit_bytes: int, size: object) -> UploadTooLarge:
    """The refusal of a body beyond its limit."""
    return UploadTooLarge(
        "The body of the request is too large.",
        field="body",
        rule=f"at most {limit_bytes} bytes",
        value=size,
    )
