"""The documentation: its files, where each is shown, and how they lead to each other.

In a checkout these are README.md, CHANGELOG.md and `docs/`; a wheel carries them in `app/_docs`.
"""

import mimetypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from posixpath import normpath
from types import MappingProxyType
from typing import Self

from app.web.assets import Asset
from app.web.markdown import Rendered, rendered

HOME = "/docs"
START = "docs/index.md"
SHELVES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "Begin": ("index", "tutorial", "readme"),
        "Understand": ("concepts", "method"),
        "Do": (
            *("planning", "labelling", "howto-llm-judge", "howto-annotators"),
            *("howto-surrogates", "gate", "operations"),
        ),
        "Look up": ("api", "certificates"),
        "Evidence": ("coverage", "study", "labels", "benchmarks", "trust"),
        "Project": ("dependencies", "changelog"),
    }
)
"""The pages by what somebody comes for; others stand at the end."""
ELSEWHERE: Mapping[str, str] = MappingProxyType({"openapi/openapi.json": "/openapi.json"})
"""What pages link to and this service shows in another place."""
_ROOT_PAGES = ("README.md", "CHANGELOG.md")
_OTHERS = "More"


@dataclass(frozen=True)
class Document:
    """A page: its name in the address, and its text as HTML."""

    name: str
    text: Rendered

    @property
    def address(self) -> str:
        """Where it is shown."""
        return HOME if self.name == "index" else f"{HOME}/{self.name}"


class Library:
    """All documents, by their paths in the repository."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = dict(files)

    @classmethod
    def found(cls) -> Self:
        """The documents that came with this code; none where nobody brought them."""
        package = Path(__file__).parents[1]
        carried = package / "_docs"
        if carried.is_dir():
            root, folder = carried, carried
        else:
            root, folder = package.parent, package.parent / "docs"
        files = {f"docs/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*")}
        files |= {name: root / name for name in _ROOT_PAGES}
        for name in _ROOT_PAGES:
            # The wheel's folder holds them beside the others
            files.pop(f"docs/{name}", None)
        return cls({name: path for name, path in sorted(files.items()) if path.is_file()})

    @cached_property
    def documents(self) -> Mapping[str, Document]:
        """Every page by its name."""
        pages = [path for path in self._files if path.endswith(".md")]
        return {_name(path): Document(_name(path), self._rendered(path)) for path in pages}

    @cached_property
    def shelves(self) -> Sequence[tuple[str, Sequence[Document]]]:
        """The pages in the order of the navigation."""
        named = {name for names in SHELVES.values() for name in names}
        # Pages in folders are what others lead to
        others = tuple(name for name in self.documents if name not in named and "/" not in name)
        found = []
        for shelf, names in [*SHELVES.items(), (_OTHERS, others)]:
            there = [self.documents[name] for name in names if name in self.documents]
            if there:
                found.append((shelf, there))
        return found

    @cached_property
    def pictures(self) -> Mapping[str, Asset]:
        """What is no page, by its place below the documentation's address."""
        found = {}
        for path, file in self._files.items():
            media = mimetypes.guess_type(path)[0]
            if media in {"image/png", "image/svg+xml"}:
                found[path.removeprefix("docs/")] = Asset(file.read_bytes(), media)
        return found

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
        if not target.endswith(".md"):
            return f"{HOME}/{target.removeprefix('docs/')}"
        return (HOME if target == START else f"{HOME}/{_name(target)}") + mark + section

    def _rendered(self, path: str) -> Rendered:
        text = self._files[path].read_text(encoding="utf-8")
        return rendered(text, lambda link: self.address(path, link))


def _name(path: str) -> str:
    return path.removeprefix("docs/").removesuffix(".md").lower()
