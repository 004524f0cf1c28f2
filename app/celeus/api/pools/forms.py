"""Forms with a file, `multipart/form-data`: the file goes to the disk as it comes, as all uploads.

The members of a form are those of the query under the same names; they are few and short.
"""

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import IO, Any

import orjson
from anyio import to_thread
from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.requests import Request

from celeus.api.wire.uploads import Format, spool_parts, spooled
from celeus.errors import InvalidValue

FORM = "multipart/form-data"
MOST_MEMBERS = 64
MEMBER_BYTES = 1 << 16
_MEMBERS_BYTES = 1 << 21
"""Most bytes of all members of a form together: they are held in memory."""
_HEADER_BYTES = 1 << 13


@dataclass(frozen=True, slots=True)
class FormFile:
    """An upload: the file at its beginning, its name, and the members of the form it was in.

    ``form`` is what the file is announced as; None leaves that to be found out.
    """

    file: IO[bytes]
    name: str = ""
    members: dict[str, list[str]] = field(default_factory=dict)
    form: Format | None = None


@asynccontextmanager
async def received(
    request: Request,
    hashed: Callable[[bytes], object] | None = None,
    member_bytes: int = MEMBER_BYTES,
) -> AsyncIterator[FormFile]:
    """The upload, a body of its own or the file in a form; `hashed` sees what was sent.

    Of a form that is the file and the members: what parts them is another each time. A member has
    at most ``member_bytes``; all of them together are bounded, too.
    """
    content_type = request.headers.get("content-type", "")
    if not content_type.lower().startswith(FORM):
        async with spooled(request, hashed) as file:
            yield FormFile(file)
        return
    boundary = parse_options_header(content_type)[1].get(b"boundary")
    if not boundary:
        raise _refused("multipart/form-data with a boundary", content_type)
    with tempfile.TemporaryFile() as file:
        form = _Form(boundary, file, hashed, member_bytes)
        await spool_parts(request, form.write)
        await to_thread.run_sync(form.end)
        yield FormFile(file, form.file_name, form.members)


class _Form:
    """A form on its way in: what is of its file goes to the disk, members are kept."""

    def __init__(
        self,
        boundary: bytes,
        file: IO[bytes],
        hashed: Callable[[bytes], object] | None,
        member_bytes: int,
    ) -> None:
        self._member_bytes = member_bytes
        self.members: dict[str, list[str]] = {}
        self.file_name = ""
        self._file = file
        self._hashed = hashed
        self._files = self._held = 0
        self._in_file = False
        self._header = bytearray()
        self._value = bytearray()
        self._headers: dict[bytes, bytes] = {}
        self._name = bytearray()
        self._ended = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_header_field": self._header_name,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_headers_finished": self._begin,
                "on_part_data": self._data,
                "on_part_end": self._part_end,
                "on_end": self._whole,
            },
        )

    def write(self, part: bytes) -> None:
        """Take some of the body."""
        try:
            self._parser.write(part)
        except FormParserError as error:
            raise _refused("a form as of RFC 7578", str(error)) from error

    def end(self) -> None:
        """All of the body is there; refuses a form that was cut off, or has no file or several."""
        if not self._ended:
            raise _refused("a whole form", "it was cut off on its way")
        if self._files != 1:
            raise _refused("one file in the form", f"{self._files} files")
        if self._hashed is not None:
            self._hashed(orjson.dumps(self.members))
        self._file.seek(0)

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]
        self._check_header()

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]
        self._check_header()

    def _check_header(self) -> None:
        if len(self._header) + len(self._name) > _HEADER_BYTES:
            raise _refused(f"headers of at most {_HEADER_BYTES} bytes", "more")

    def _header_end(self) -> None:
        self._headers[bytes(self._name).lower()] = bytes(self._header)
        self._name.clear()
        self._header.clear()

    def _begin(self) -> None:
        options = parse_options_header(self._headers.get(b"content-disposition", b""))[1]
        self._headers.clear()
        self._in_file = b"filename" in options
        self._value.clear()
        self._name = bytearray(options.get(b"name", b""))
        if self._in_file:
            self._files += 1
            file_name = options[b"filename"].decode(errors="replace")
            self.file_name = PurePath(file_name.replace("\\", "/")).name

    def _data(self, data: bytes, start: int, end: int) -> None:
        part = data[start:end]
        if self._in_file:
            if self._files == 1:
                self._file.write(part)
                if self._hashed is not None:
                    self._hashed(part)
            return
        self._value += part
        self._held += len(part)
        if len(self._value) > self._member_bytes:
            raise _refused(
                f"members of at most {self._member_bytes} bytes", self._name.decode()[:60]
            )
        if self._held > _MEMBERS_BYTES:
            raise _refused(f"members of at most {_MEMBERS_BYTES} bytes together", "more")

    def _part_end(self) -> None:
        if not self._in_file:
            name = self._name.decode(errors="replace")
            self.members.setdefault(name, []).append(self._value.decode(errors="replace"))
            if sum(map(len, self.members.values())) > MOST_MEMBERS:
                raise _refused(f"at most {MOST_MEMBERS} members beside the file", "more")
        self._name.clear()
        self._value.clear()

    def _whole(self) -> None:
        self._ended = True


def _refused(rule: str, value: Any) -> InvalidValue:  # noqa: ANN401 -- as refusals take it
    return InvalidValue("The form cannot be read.", field="body", rule=rule, value=value)
