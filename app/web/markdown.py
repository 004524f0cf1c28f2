"""Pages of `docs/` as HTML: what the text says, and no HTML that is written in it.

Headings get ids as GitHub gives them, so that links to sections work in either place.
"""

import re
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup

Resolve = Callable[[str], str | None]
"""Where a link of the page leads on this service; None when that is nowhere."""

_COMMENT = re.compile(r"<!--.*-->", re.DOTALL)
_NOT_IN_IDS = re.compile(r"[^\w\- ]")
_ALIGNED = {"text-align:right": "number", "text-align:center": "centred"}


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
    """The page; links that lead nowhere become plain text."""
    parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    parser.enable(["table", "strikethrough"])
    tokens = list(_without_comments(parser.parse(text)))
    headings = list(_numbered(tokens))
    for token in tokens:
        if token.type in {"th_open", "td_open"}:
            _align(token)
        if token.children is not None:
            token.children = list(_linked(token.children, resolve))
    html: str = parser.renderer.render(tokens, parser.options, {})
    title = next((one.text for one in headings if one.level == 1), "")
    # The parser escapes all that is not its own
    return Rendered(Markup(html), title, [one for one in headings if one.level > 1])  # noqa: S704


class _Renderer(RendererHTML):
    """Blocks wider than the page scroll by themselves, also by keyboard."""

    def fence(
        self,
        tokens: Sequence[Token],
        idx: int,
        options: OptionsDict,
        env: MutableMapping[str, Any],
    ) -> str:
        """A block of code, with the language it is in."""
        return _scrolling(super().fence(tokens, idx, options, env))

    def code_block(
        self,
        tokens: Sequence[Token],
        idx: int,
        options: OptionsDict,
        env: MutableMapping[str, Any],
    ) -> str:
        """A block of code that is only set in."""
        return _scrolling(super().code_block(tokens, idx, options, env))

    def table_open(self, *_: object) -> str:
        """A table in a place of its own."""
        return (
            '<div class="table-scroll" tabindex="0" role="group" aria-label="Table">'
            '<table class="table">\n'
        )

    def table_close(self, *_: object) -> str:
        """The end of both."""
        return "</table></div>\n"

    def heading_close(
        self,
        tokens: Sequence[Token],
        idx: int,
        options: OptionsDict,
        env: MutableMapping[str, Any],
    ) -> str:
        """The heading's end, with a link to itself."""
        heading, content = tokens[idx - 2], tokens[idx - 1]
        end = self.renderToken(tokens, idx, options, env)
        if heading.tag == "h1":
            return end
        name = Markup.escape(f"Link to the section “{_plain(content)}”")
        target = Markup.escape(str(heading.attrs["id"]))
        return f' <a class="anchor" href="#{target}" aria-label="{name}">#</a>{end}'


def _scrolling(block: str) -> str:
    return block.replace("<pre>", '<pre tabindex="0">', 1)


def _without_comments(tokens: Sequence[Token]) -> Iterator[Token]:
    """All but the paragraphs that are comments for who edits the page."""
    dropped = 0
    for at, token in enumerate(tokens):
        if token.type == "paragraph_open" and _COMMENT.fullmatch(tokens[at + 1].content.strip()):
            dropped = 3
        if dropped:
            dropped -= 1
        else:
            yield token


def _numbered(tokens: Sequence[Token]) -> Iterator[Heading]:
    """Every heading, which is given its id."""
    taken: dict[str, int] = {}
    for at, token in enumerate(tokens):
        if token.type != "heading_open":
            continue
        text = _plain(tokens[at + 1])
        name = _NOT_IN_IDS.sub("", text.strip().lower()).replace(" ", "-")
        count = taken.get(name, 0)
        taken[name] = count + 1
        token.attrSet("id", f"{name}-{count}" if count else name)
        yield Heading(int(token.tag[1:]), str(token.attrs["id"]), text)


def _plain(inline: Token) -> str:
    """The text of a heading without its markup."""
    return "".join(one.content for one in inline.children or [])


def _align(token: Token) -> None:
    # A style in the page is what its policy forbids.
    style = token.attrs.pop("style", None)
    if style in _ALIGNED:
        token.attrSet("class", _ALIGNED[str(style)])


def _linked(tokens: Sequence[Token], resolve: Resolve) -> Iterator[Token]:
    """The tokens of a line, their links and pictures as this service has them."""
    unlinked = False
    for token in tokens:
        if token.type == "link_open":
            address = resolve(str(token.attrs["href"]))
            unlinked = address is None
            if address is None:
                continue
            token.attrSet("href", address)
        elif token.type == "link_close" and unlinked:
            unlinked = False
            continue
        elif token.type == "image":
            token.attrSet("src", resolve(str(token.attrs["src"])) or "")
            token.attrSet("loading", "lazy")
        yield token
