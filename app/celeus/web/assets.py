"""Static files under a digest of them all, which browsers keep for ever."""

import gzip
import hashlib
import json
import os
import stat
from pathlib import Path

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.staticfiles import PathLike, StaticFiles
from starlette.types import Scope

from celeus.api.wire.compression import GZIP, VARY, takes_gzip

FOLDER = Path(__file__).parent / "static"
BUNDLE = Path(__file__).parent / "bundle"
"""Folder of what `bundle.js` makes at a release; a checkout has none and serves the modules."""
SOURCES = "sources.json"
"""File of a bundle that holds the SHA-256 digest of every script it was made of."""
PREFIX = "/static"
ICON = "/favicon.ico"
ICON_FILE = "icon.svg"
"""Static file served at ICON, the address where browsers look for an icon."""
KEPT_SECONDS = 31_536_000
LEAST_PACKED_BYTES = 1024


class Assets(StaticFiles):
    """The files of a folder; `version` changes whenever one of them does.

    Files of ``bundle`` are served in place of those of the same name, unless it was made of other
    scripts than the folder's.
    """

    path = PREFIX + "/{version}/{path:path}"

    def __init__(self, folder: Path = FOLDER, bundle: Path = BUNDLE) -> None:
        super().__init__(directory=folder)
        self._packed: dict[tuple[str, int], bytes] = {}
        digests = _digests(folder)
        if _made_of(bundle, digests):
            self.all_directories = [bundle, folder]
            digests |= _digests(bundle)
        listed = "".join(f"{path}\n{digest}\n" for path, digest in sorted(digests.items()))
        self.version = hashlib.sha256(listed.encode()).hexdigest()[:16]

    def url(self, path: str) -> str:
        """Return the address of a file; raises LookupError if it does not exist."""
        if not any(Path(folder, path).is_file() for folder in self.all_directories):
            raise LookupError(f"there is no static file {path}")
        return f"{PREFIX}/{self.version}/{path}"

    def get_path(self, scope: Scope) -> str:
        """Return the path after the version, whatever version a page names."""
        return ICON_FILE if scope["path"] == ICON else super().get_path(scope).partition("/")[2]

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        """Find a file, and compress it the first time; called in a thread, as that takes long."""
        full_path, stat_result = super().lookup_path(path)
        if stat_result is not None and stat.S_ISREG(stat_result.st_mode):
            key = full_path, stat_result.st_mtime_ns
            if key not in self._packed and stat_result.st_size >= LEAST_PACKED_BYTES:
                self._packed[key] = gzip.compress(Path(full_path).read_bytes(), mtime=0)
        return full_path, stat_result

    def file_response(
        self,
        full_path: PathLike,
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """Return the file, or 304 if the browser's copy is the same."""
        # The metrics count the request under this route
        scope["route"] = self
        answer = super().file_response(full_path, stat_result, scope, status_code)
        headers = Headers(scope=scope)
        packed = self._packed.get((str(full_path), stat_result.st_mtime_ns))
        whole = isinstance(answer, FileResponse) and "Range" not in headers
        if packed is not None and whole and takes_gzip(headers):
            kept = {name: answer.headers[name] for name in ("ETag", "Last-Modified")}
            media_type = answer.headers["Content-Type"]
            answer = Response(packed, status_code, kept, media_type)
            answer.headers.update(GZIP)
        answer.headers.update(VARY)
        current = scope["path"].startswith(f"{PREFIX}/{self.version}/")
        cache_control = f"public, max-age={KEPT_SECONDS}, immutable" if current else "no-store"
        # Weak, since it may be sent packed and unpacked
        answer.headers["ETag"] = f"W/{answer.headers['ETag']}"
        answer.headers["Cache-Control"] = cache_control
        answer.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        answer.headers["X-Content-Type-Options"] = "nosniff"
        return answer


def _digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 digest of each file in a folder, by its path there."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def _made_of(bundle: Path, digests: dict[str, str]) -> bool:
    """Return whether a bundle exists and names its sources, all of them with these digests."""
    try:
        sources = json.loads((bundle / SOURCES).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(sources, dict) and bool(sources) and sources.items() <= digests.items()


def serve(app: Starlette, assets: Assets) -> None:
    """Serve the files under their addresses, compressed from LEAST_PACKED_BYTES on."""
    app.mount(PREFIX, assets)
    app.router.routes.append(Route(ICON, assets))
