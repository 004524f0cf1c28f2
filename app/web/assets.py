"""Static files: read once, named by a digest of them all, and kept by browsers for ever."""

import gzip
import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self, cast

from fastapi import APIRouter, Request, Response

from app.api.tags import still_holds
from app.errors import NotFound

FOLDER = Path(__file__).parent / "static"
ICON = "/favicon.ico"
KEPT_SECONDS = 31_536_000
LEAST_PACKED_BYTES = 1024
_PACKED = ("text/", "application/javascript", "application/json", "image/svg+xml")
_OWN_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".svg": "image/svg+xml"}

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Asset:
    """A file as it is sent."""

    content: bytes
    media_type: str

    @cached_property
    def etag(self) -> str:
        """Tag of its content; weak, since it may be sent packed and unpacked."""
        return f'W/"{hashlib.sha256(self.content).hexdigest()[:32]}"'

    @cached_property
    def packed(self) -> bytes | None:
        """The file in gzip, where that is worth it."""
        if len(self.content) < LEAST_PACKED_BYTES or not self.media_type.startswith(_PACKED):
            return None
        return gzip.compress(self.content, mtime=0)


class Assets:
    """The static files by their path; `version` changes whenever one of them does."""

    def __init__(self, files: Mapping[str, Asset]) -> None:
        self._files = dict(files)
        digest = hashlib.sha256()
        for path in sorted(self._files):
            digest.update(f"{path}\n{self._files[path].etag}\n".encode())
        self.version = digest.hexdigest()[:16]

    @classmethod
    def read(cls, folder: Path = FOLDER) -> Self:
        """All files of a folder."""
        found = sorted(path for path in folder.rglob("*") if path.is_file())
        return cls(
            {
                path.relative_to(folder).as_posix(): Asset(path.read_bytes(), _media_type(path))
                for path in found
            }
        )

    def url(self, path: str) -> str:
        """Where a file is found; a page that names one that is not there is not made."""
        if path not in self._files:
            raise LookupError(f"there is no static file {path}")
        return f"/static/{self.version}/{path}"

    def answer(self, request: Request, version: str, path: str) -> Response:
        """The file, or that the browser's copy of it is the same."""
        asset = self._files.get(path)
        if asset is None:
            raise NotFound("There is no such file.", field="path", value=path)
        # A page of another version, while versions change, gets the file that is here
        kept = (
            f"public, max-age={KEPT_SECONDS}, immutable" if version == self.version else "no-cache"
        )
        headers = {
            "Cache-Control": kept,
            "ETag": asset.etag,
            "Vary": "Accept-Encoding",
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin",
        }
        if still_holds(request, asset.etag):
            return Response(status_code=304, headers=headers)
        if asset.packed is not None and "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return Response(asset.packed, headers=headers, media_type=asset.media_type)
        return Response(asset.content, headers=headers, media_type=asset.media_type)


@router.get("/static/{version}/{path:path}")
async def static(version: str, path: str, request: Request) -> Response:
    """A static file."""
    return cast("Assets", request.app.state.assets).answer(request, version, path)


@router.get(ICON)
async def icon(request: Request) -> Response:
    """The icon, where browsers look for it beside what is no page."""
    return cast("Assets", request.app.state.assets).answer(request, "", "icon.svg")


def _media_type(path: Path) -> str:
    known = _OWN_TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
    return known or "text/plain"
