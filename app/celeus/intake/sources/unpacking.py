"""Read a file's content: decompress gzip, and decode text in the encoding it has."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from celeus.errors import UploadTooLarge
from celeus.intake.sources.files import Source
from celeus.intake.sources.sheet import refused

PART_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_OTHERS = (
    (b"PK\x03\x04", "an archive, and no workbook: unpack it"),
    (b"\x28\xb5\x2f\xfd", "packed with Zstandard: unpack it, or pack it with gzip"),
    (b"BZh", "packed with bzip2: unpack it, or pack it with gzip"),
    (b"\xfd7zXZ", "packed with xz: unpack it, or pack it with gzip"),
    (b"7z\xbc\xaf", "a 7z archive: unpack it"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"SQLite format 3", "a database: export the table as CSV"),
    (b"{\\rtf", "a text document"),
)
TABLES = "CSV, JSON, JSON Lines, Parquet, Arrow, Excel, one of these as gzip, or a log"
_MANY_NULS = 0.3
"""Share of the bytes that are 0 in UTF-16 and in no other text: half of them in Latin letters."""
MOST_PACKED = 200
"""Times its size that a gzip file may unpack to: tables rarely come to a tenth of it."""
FREE_BYTES = 16 << 20
"""That many bytes it may unpack to in any case."""
_CONTROLS = frozenset(range(32)) - {*b"\t\n\r\f\x1a"}
"""Control characters, such as those that colour the text of a terminal: with them a text is known
by being UTF-8, and one with a NUL is none."""


def is_packed(head: bytes) -> bool:
    """Return True if a file that begins with ``head`` is packed with gzip."""
    return head.startswith(_GZIP)


def unpacked(source: Source, limit_bytes: int, whole: IO[bytes]) -> Iterator[None]:
    """Unpack a gzip file into ``whole``, and yield now and then meanwhile.

    Refuses more than ``limit_bytes``: a packed file may hold a thousand times its size.
    """
    size = 0
    try:
        with source.open() as file, gzip.GzipFile(fileobj=file) as packed:
            while part := packed.read(PART_BYTES):
                size += len(part)
                if size > limit_bytes:
                    raise too_large(f"at most {limit_bytes} bytes, unpacked too", size)
                if size > max(FREE_BYTES, MOST_PACKED * file.tell()):
                    raise too_large(f"at most {MOST_PACKED} times as large unpacked", size)
                whole.write(part)
                yield
    except (OSError, EOFError, zlib.error) as error:
        how = "one complete gzip file"
        raise refused(
            "The gzip file is damaged, or was cut off on its way.", how, str(error)
        ) from error


def too_large(rule: str, size: int) -> UploadTooLarge:
    """The refusal of a file that holds more than it seems to."""
    return UploadTooLarge(
        "The upload is too large once it is unpacked.",
        field="body",
        rule=rule,
        value=f"{size} bytes, and more",
    )


def check_readable(head: bytes) -> None:
    """Refuse, by its first bytes, what is no table."""
    for begin, what in _OTHERS:
        if head.startswith(begin):
            raise refused(
                f"The file is {what}.",
                TABLES,
            )


def encoding_of(source: Source) -> str:
    """The encoding of a text: by its mark, else UTF-8, else what Excel writes under Windows.

    Refuses bytes that are no text.
    """
    head = source.head()
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    odd, even = head[1::2].count(0), head[::2].count(0)
    if max(odd, even) > _MANY_NULS * len(head):
        return "utf-16-le" if odd > even else "utf-16-be"
    none = refused("The file is no text and no table.", "a table, or a log", repr(head[:20]))
    if 0 in head:
        raise none
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with source.open() as file:
            while part := file.read(PART_BYTES):
                decoder.decode(part)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        if not _CONTROLS.isdisjoint(head):
            raise none from None
        return "cp1252"
    return "utf-8"


@contextmanager
def text_of(source: Source, encoding: str) -> Iterator[io.TextIOWrapper]:
    """The file as text from its beginning, line breaks as they are."""
    with source.open() as file:
        text = io.TextIOWrapper(file, encoding=encoding, errors="replace", newline="")
        try:
            yield text
        finally:
            # A file that is closed already holds nothing back
            with suppress(ValueError):
                text.detach()
