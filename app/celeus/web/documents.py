"""The documentation as pages.

In a checkout its files are README.md, CHANGELOG.md and `docs/`; a wheel carries them in
`celeus/_docs`. HTML written in a text is escaped. Headings get ids as GitHub gives them, so that
links to sections work in either place.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path, PurePosixPath
from posixpath import normpath
from types import MappingProxyType
from typing import Self

from fastapi import Request, Response
from fastapi.staticfiles import StaticFiles
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from celeus.api.wire.problems import PROBLEMS_PAGE, explained
from celeus.errors import NotFound
from celeus.web.pages import AnyonesPage, page_router, templates_of

HOME = "/docs"
INDEX = "docs/index.md"
ELSEWHERE: Mapping[str, str] = MappingProxyType({"openapi/openapi.json": "/openapi.json"})
"""Addresses of files that pages link to but that are no pages."""
_ROOT_PAGES = ("README.md", "CHANGELOG.md")
_PICTURES = {".png", ".svg", ".webp"}
_LISTING = re.compile(r"^## (.+)$|^- \[.*?\]\((.+?)\)", re.MULTILINE)

REFERENCE = "/reference"
_CHECK_PAGE = {"docs/verify.html", "docs/verify.js"}
"""Files of the page that checks a signature; it stands alone, and works from the disk as well."""
_PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_CHECK_POLICY = (
    "default-src 'none'; script-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)
_FILE_HEADERS = {"Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff"}

Resolve = Callable[[str], str | None]
"""Function from a link of the page to its address on this service; None if it has none."""

_COMMENT = re.compile(r"^<!--.*?-->$", re.DOTALL | re.MULTILINE)
_NOT_IN_IDS = re.compile(r"[^\w\- ]")
# The text's own angle brackets and quotes are escaped, so only the renderer's tags match
_ADAPTED: Mapping[str, str] = MappingProxyType(
    {
        # Blocks wider than the page scroll by themselves, also by keyboard
        "<pre>": '<pre tabindex="0">',
        "<table>": '<div class="table-scroll" tabindex="0" role="group" aria-label="Table">'
        '<table class="table">',
        "</table>": "</table></div>",
        # The page's content security policy forbids inline styles
        ' style="text-align:left"': "",
        ' style="text-align:right"': ' class="number"',
        ' style="text-align:center"': ' class="centred"',
    }
)

router = page_router()


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a page; ``level`` is 1 for its title."""

    level: int
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """A page as HTML, its title, and the headings below it."""

    html: Markup
    title: str
    headings: Sequence[Heading]


def rendered(text: str, resolve: Resolve) -> Rendered:
    """Render a page without its comments; a link without an address becomes plain text."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    tokens = parser.parse(_COMMENT.sub("", text))
    for inline in tokens:
        for token in inline.children or []:
            _resolve(token, resolve)
    headings = list(_headings(tokens))
    html = parser.renderer.render(tokens, parser.options, {})
    for plain, ours in _ADAPTED.items():
        html = html.replace(plain, ours)
    title = next((heading.text for heading in headings if heading.level == 1), "")
    # The parser escapes all that is not its own
    return Rendered(Markup(html), title, [heading for heading in headings if heading.level > 1])  # noqa: S704


def _resolve(token: Token, resolve: Resolve) -> None:
    """Set the address of a link or a picture to that on this service."""
    if token.type == "link_open":
        address = resolve(str(token.attrs.pop("href")))
        if address is not None:
            token.attrSet("href", address)
    elif token.type == "image":
        token.attrSet("src", resolve(str(token.attrs["src"])) or "")
        token.attrSet("loading", "lazy")


def _headings(tokens: Sequence[Token]) -> Iterator[Heading]:
    """Yield every heading; give it an id and, below the title, a link to itself."""
    uses: dict[str, int] = {}
    for heading, inline in pairwise(tokens):
        if heading.type != "heading_open":
            continue
        children = inline.children or []
        text = "".join(token.content for token in children)
        name = _NOT_IN_IDS.sub("", text.strip().lower()).replace(" ", "-")
        count = uses.get(name, 0)
        uses[name] = count + 1
        entry = Heading(int(heading.tag[1:]), f"{name}-{count}" if count else name, text)
        heading.attrSet("id", entry.id)
        if entry.level > 1:
            link = Markup(' <a class="anchor" href="#{}" aria-label="{}">#</a>')
            anchor = link.format(entry.id, f"Link to the section “{text}”")
            children.append(Token("html_inline", "", 0, content=anchor))
        yield entry


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
        package = Path(__file__).parents[1]
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
    def files(self) -> Mapping[str, tuple[Path, str]]:
        """Files sent as they are, with their policies, by paths below the documentation's address.

        They are pictures, and the page that checks a signature.
        """
        return {
            path.removeprefix("docs/"): (
                file,
                _CHECK_POLICY if path in _CHECK_PAGE else _PICTURE_POLICY,
            )
            for path, file in self._files.items()
            if file.suffix in _PICTURES or path in _CHECK_PAGE
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


@router.get(HOME)
@router.get(HOME + "/")
async def start(view: AnyonesPage) -> Response:
    """Show the first page of the documentation."""
    return await document(view, view.request, "index")


@router.get(PROBLEMS_PAGE)
async def problems(request: Request) -> Response:
    """Show the meaning of every refusal; open to all, as requests without a key are refused too."""
    return templates_of(request).page("problems.html", None, {"problems": explained()})


@router.get(HOME + "/{path:path}")
async def document(view: AnyonesPage, request: Request, path: str) -> Response:
    """Show a page of the documentation, or a file that a page names."""
    library = await asyncio.to_thread(_library)
    if path in library.files:
        file, policy = library.files[path]
        answer = StaticFiles().file_response(file, file.stat(), request.scope)
        answer.headers.update(_FILE_HEADERS | {"Content-Security-Policy": policy})
        return answer
    page = library.documents.get(path)
    if page is None:
        raise NotFound("The documentation has no such page.", field="path", value=path)
    return view.page("document.html", document=page, library=library, reference=REFERENCE)


@cache
def _library() -> Library:
    """Return the documentation, rendered once."""
    library = Library.load()
    _ = library.shelves, library.files
    return library
