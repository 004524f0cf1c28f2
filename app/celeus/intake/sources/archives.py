"""Zip archives whose members are deflated or, as Inspect writes them since 2026, Zstandard.

The standard library reads the latter from Python 3.14 on. Before it, whichever is installed of
backports.zstd (the extra `inspect`), pyarrow and the library that inspect-ai brings along.
"""

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import IO, Any

from celeus.intake.rows import refused

ZSTANDARD = 93
_HEADER = 30
"""Bytes of the local header of a member, before its name."""
_LARGEST = 1 << 30
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError),
    # Of another version or compression, encrypted, or with names that are none
    *(NotImplementedError, RuntimeError, ValueError),
)
INSTALL = "pip install 'celeus[inspect]'"


class Archive:
    """The members of an open archive."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.name = name
        self._file = file
        try:
            self._zip = zipfile.ZipFile(file)
        except _DAMAGED as error:
            raise refused(f"{name} is no whole archive: {error}", "log") from error
        self.members = self._zip.namelist()

    def read(self, member: str) -> bytes:
        """A member's bytes."""
        info = self._zip.getinfo(member)
        if info.file_size > _LARGEST:
            raise refused(f"{member} of {self.name} is larger than 1 GiB", "log")
        try:
            if info.compress_type != ZSTANDARD:
                return self._zip.read(member)
            packed = self._packed(info)
        except _DAMAGED as error:
            raise refused(f"{member} of {self.name} is damaged: {error}", "log") from error
        unpack = _zstandard()
        if unpack is None:
            raise refused(f"{self.name} is packed with Zstandard; to read it: {INSTALL}", "log")
        try:
            text = unpack(packed, info.file_size + 1)
        except Exception as error:
            raise refused(f"{member} of {self.name} is damaged: {error}", "log") from error
        if len(text) != info.file_size:
            less = "ends too early"
            more = f"has more than the {info.file_size} bytes it should"
            what = less if len(text) < info.file_size else more
            raise refused(f"{member} of {self.name} is damaged: it {what}", "log")
        return text

    def _packed(self, info: zipfile.ZipInfo) -> bytes:
        self._file.seek(info.header_offset)
        name, extra = struct.unpack("<HH", self._file.read(_HEADER)[26:30])
        self._file.seek(info.header_offset + _HEADER + name + extra)
        return self._file.read(info.compress_size)


def _zstandard() -> Callable[[bytes, int], bytes] | None:
    """The first decompressor of Zstandard that is installed, limited to so many bytes."""
    for module, opened in _UNPACKERS:
        with suppress(ImportError):
            return partial(_unpacked, partial(opened, import_module(module)))
    return None


def _unpacked(opened: Callable[[bytes], Any], packed: bytes, most: int) -> bytes:
    with opened(packed) as stream:
        return bytes(stream.read(most))


_UNPACKERS: tuple[tuple[str, Callable[[Any, bytes], Any]], ...] = (
    ("compression.zstd", lambda zstd, packed: zstd.ZstdFile(io.BytesIO(packed))),
    ("backports.zstd", lambda zstd, packed: zstd.ZstdFile(io.BytesIO(packed))),
    ("pyarrow", lambda pa, packed: pa.input_stream(pa.BufferReader(packed), compression="zstd")),
    (
        "zstandard",
        lambda zstd, packed: zstd.ZstdDecompressor().stream_reader(packed, read_across_frames=True),
    ),
)
