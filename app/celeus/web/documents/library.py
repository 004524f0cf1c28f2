"""The documentation: its files, where each is shown, and how they lead to each other.

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
"""What pages link to and this service shows in another place."""
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
        """Where it is shown."""
        return _address(self.name)


class Library:
    """All documents, by their paths in the repository."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = dict(files)

    @classmethod
    def load(cls) -> Self:
        """The documents that came with this code; none where nobody brought them."""
        package = Path(__file__).parents[2]
        carried = package / "_docs"
        root = carried if carried.is_dir() else package.parents[1]
        folder = carried if carried.is_dir() else root / "docs"
        files = {f"docs/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*")}
        for name in _ROOT_PAGES:
            # The wheel's folder holds them beside the others
            files.pop(f"docs/{name}", None)
            files[name] = root / name
        return cls({name: path for name, path in sorted(files.items()) if path.is_file()})

    @cached_property
    def documents(self) -> Mapping[str, Document]:
        """Every page by its name."""
        pages = {_name(path): path for path in self._files if path.endswith(".md")}
        return {name: Document(name, self._render(path)) for name, path in pages.items()}

    @cached_property
    def shelves(self) -> Mapping[str, Sequence[Document]]:
        """The pages by what somebody comes for, as the index lists them."""
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
        """The files of pictures, by their places below the documentation's address."""
        return {
            path.removeprefix("docs/"): file
            for path, file in self._files.items()
            if file.suffix in _PICTURES
        }

    def address(self, page: str, link: str) -> str | None:
        """Where a link in a page leads here; both are as the repository has them."""
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
    """The name of a page, or of another file as it is."""
    path = path.removeprefix("docs/")
    return path.removesuffix(".md").lower() if path.endswith(".md") else path


def _address(name: str) -> str:
    return HOME if name == "index" else f"{HOME}/{name}"
