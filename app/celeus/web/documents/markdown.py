"""Pages of `docs/` as HTML; HTML written in the text is escaped.

Headings get ids as GitHub gives them, so that links to sections work in either place.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

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
