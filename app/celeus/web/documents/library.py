"""The documentation: its files, their addresses, and the links between them.

In a checkout these are README.md, CHANGELOG.md and `docs/`; a wheel carries them in `celeus/_docs`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from posixpath import normpath
from types import MappingProxyType
from typing import Self

from celeus.web.documents.markdown import Rendered, rendered

HOME = "/docs"
INDEX = "docs/index.md"
ELSEWHERE: Mapping[str, str] = MappingProxyType({"openapi/openapi.json": "/openapi.json"})
"""Addresses of files that pages link to but that are no pages."""
_ROOT_PAGES = ("README.md", "CHANGELOG.md")
_PICTURES = {".png", ".svg", ".webp"}
_LISTING = re.compile(r"^## (.+)$|^- \[.*?\]\((.+?)\)", re.MULTILINE)


@dataclass(frozen=True)
class Document:
    """A page: its name in the address, and its text as HTML."""

    name: str
    text: Rendered

    @property
    def address(self) -> str:
        """Address of the page."""
        return _address(self.name)


class Library:
    """All documents, by their paths in the repository."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = dict(files)

    @classmethod
    def load(cls) -> Self:
        """Load the documents shipped with this code; empty if there are none."""
        package = Path(__file__).parents[2]
        carried = package / "_docs"
        root = carried if carried.is_dir() else package.parents[1]
        folder = carried if carried.is_dir() else root / "docs"
        files = {f"docs/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*")}
        for name in _ROOT_PAGES:
            # In a wheel they lie in the same folder as the others
            files.pop(f"docs/{name}", None)
            files[name] = root / name
        return cls({name: path for name, path in sorted(files.items()) if path.is_file()})

    @cached_property
    def documents(self) -> Mapping[str, Document]:
        """Pages by name."""
        pages = {_name(path): path for path in self._files if path.endswith(".md")}
        return {name: Document(name, self._render(path)) for name, path in pages.items()}

    @cached_property
    def shelves(self) -> Mapping[str, Sequence[Document]]:
        """Pages by the sections of the index."""
        shelves: dict[str, list[Document]] = {}
        by_address = {document.address: document for document in self.documents.values()}
        for shelf, link in _LISTING.findall(self._files[INDEX].read_text(encoding="utf-8")):
            if shelf:
                shelves[shelf] = pages = []
            elif (document := by_address.get(self.address(INDEX, link) or "")) is not None:
                pages.append(document)
        return shelves

    @cached_property
    def pictures(self) -> Mapping[str, Path]:
        """Files of pictures, by their paths below the documentation's address."""
        return {
            path.removeprefix("docs/"): file
            for path, file in self._files.items()
            if file.suffix in _PICTURES
        }

    def address(self, page: str, link: str) -> str | None:
        """Return this service's address for a link in a page; None if it has none.

        ``page`` and ``link`` are as in the repository.
        """
        if link.startswith(("https:", "http:", "mailto:", "#")):
            return link
        path, mark, section = link.partition("#")
        target = normpath((PurePosixPath(page).parent / path).as_posix())
        if target in ELSEWHERE:
            return ELSEWHERE[target]
        if target not in self._files:
            return None
        return _address(_name(target)) + mark + section

    def _render(self, path: str) -> Rendered:
        text = self._files[path].read_text(encoding="utf-8")
        return rendered(text, lambda link: self.address(path, link))


def _name(path: str) -> str:
    """Return the name of a page; other files keep their path."""
    path = path.removeprefix("docs/")
    return path.removesuffix(".md").lower() if path.endswith(".md") else path


def _address(name: str) -> str:
    return HOME if name == "index" else f"{HOME}/{name}"
