"""The documentation as pages: every link leads somewhere, and what is written stays text."""

import re
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from celeus.web.documents import HOME, Library, rendered
from tests.keys import bearer, key_in

_LINK = re.compile(r'<a [^>]*href="([^"]*)"')
_PICTURE = re.compile(r'<img [^>]*src="([^"]*)"')
_ID = re.compile(r' id="([^"]*)"')


@cache
def library() -> Library:
    """Return the documentation; to render it takes a second, not of those who collect tests."""
    return Library.load()


def addresses() -> list[str]:
    return [document.address for document in library().documents.values()]


@pytest.fixture
async def reader(app: FastAPI, database_url: str) -> AsyncIterator[AsyncClient]:
    """Whoever may do the least."""
    transport = ASGITransport(app, raise_app_exceptions=False)
    headers = bearer(key_in(database_url, "label"))
    async with AsyncClient(
        transport=transport, base_url="http://celeus.test", headers=headers
    ) as client:
        yield client


def unescaped(text: str) -> str:
    return text.replace("&amp;", "&")


async def test_every_link_and_picture_of_every_page_leads_somewhere(reader: AsyncClient) -> None:
    pages = {address: await reader.get(address) for address in [*addresses(), "/reference"]}
    assert {answer.status_code for answer in pages.values()} == {200}
    ids = {address: set(_ID.findall(answer.text)) for address, answer in pages.items()}
    others: set[str] = set()
    for address, answer in pages.items():
        article = answer.text.partition("<article")[2].partition("</article>")[0]
        for link in map(unescaped, _LINK.findall(article)):
            if link.startswith(("https://", "http://")):
                continue
            path, _, section = link.partition("#")
            assert not path or path.startswith("/"), (address, link)
            if path in pages or not path:
                assert not section or section in ids[path or address], (address, link)
            else:
                others.add(path)
        others |= set(_PICTURE.findall(article))
    assert others >= {"/docs/demo.png", "/openapi.json"}
    for path in others:
        assert (await reader.get(path)).status_code == 200, path


async def test_every_page_stands_in_the_navigation_once(reader: AsyncClient) -> None:
    page = (await reader.get(HOME)).text
    shelves = page.partition('id="shelves"')[2].partition("</details>")[0]
    own = [document.address for name, document in library().documents.items() if "/" not in name]
    assert sorted(_LINK.findall(shelves)) == sorted([*own, "/reference"])
    assert shelves.count('aria-current="page"') == 1


def test_the_index_says_of_every_page_what_it_holds() -> None:
    listed = [one.name for shelf in library().shelves.values() for one in shelf]
    assert sorted(listed) == sorted(
        name for name in library().documents if "/" not in name and name != "index"
    )
    assert all(document.text.title for document in library().documents.values())
    entries = re.findall(r"<li><a [^>]*>[^<]*</a>: [^<]+", library().documents["index"].text.html)
    assert len(entries) == len(listed) + 1, "and of the contract"


async def test_every_title_and_heading_can_be_searched_for(reader: AsyncClient) -> None:
    page = (await reader.get(HOME)).text
    sections = page.partition('id="sections"')[2].partition("</ul>")[0]
    headings = [
        f"{one.address}#{heading.id}"
        for one in library().documents.values()
        for heading in one.text.headings
    ]
    assert sorted(_LINK.findall(sections)) == sorted([*addresses(), *headings])
    other = (await reader.get(f"{HOME}/api")).text
    assert 'role="search"' not in other


async def test_headings_have_the_ids_links_in_the_repository_use(reader: AsyncClient) -> None:
    page = (await reader.get(f"{HOME}/api")).text
    assert 'id="the-loop-of-a-judge"' in page
    assert 'href="/docs/sessions#known-losses-and-weights"' in page
    twice = rendered("# A\n\n## B, `c`?\n\n## B c\n", lambda link: link)
    assert [one.id for one in twice.headings] == ["b-c", "b-c-1"]


async def test_the_pages_hold_no_comment_style_or_script(reader: AsyncClient) -> None:
    for address in addresses():
        answer = await reader.get(address)
        article = answer.text.partition("<article")[2].partition("</article>")[0]
        assert "&lt;!--" not in article
        assert not re.search(r"<[^>]* (style|on\w+)=", article)
        assert "<script" not in article
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
        assert "unsafe" not in answer.headers["Content-Security-Policy"]


def test_html_in_a_page_stays_text() -> None:
    hostile = (
        "# <script>alert(0)</script>\n\n## <script>alert(4)</script>\n\n"
        "<script>alert(1)</script>\n\n<img src=x onerror=alert(2)>\n\n[a](javascript:alert(3))"
    )
    found = rendered(hostile, lambda link: link).html
    assert "<script" not in found
    assert "<img" not in found
    assert 'href="javascript' not in found


def test_links_that_lead_nowhere_here_are_no_links() -> None:
    found = rendered("[the `code`](../app/celeus/main.py) and [more](x.md)", lambda _: None).html
    assert found == "<p><a>the <code>code</code></a> and <a>more</a></p>\n"


@pytest.mark.parametrize(
    "path",
    ["nothing", "../README.md", "%2e%2e/app/celeus/main.py", "index.md", "pictures", "a/" * 400],
)
async def test_what_is_no_page_is_not_found(path: str, reader: AsyncClient) -> None:
    answer = await reader.get(f"http://celeus.test{HOME}/{path}")
    assert answer.status_code in {401, 404}
    assert "import" not in answer.text


async def test_a_picture_is_sent_once(reader: AsyncClient) -> None:
    first = await reader.get(f"{HOME}/demo.png")
    assert first.headers["Content-Type"] == "image/png"
    again = await reader.get(f"{HOME}/demo.png", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_the_page_that_checks_a_signature_is_served(reader: AsyncClient) -> None:
    for name, kind in (("verify.html", "text/html"), ("verify.js", "text/javascript")):
        answer = await reader.get(f"{HOME}/{name}")
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith(kind)
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    assert 'href="/docs/verify.html"' in (await reader.get(f"{HOME}/certificates")).text


async def test_the_documentation_is_behind_the_door(app: FastAPI) -> None:
    async with AsyncClient(transport=ASGITransport(app), base_url="http://celeus.test") as nobody:
        for path in (HOME, f"{HOME}/api", f"{HOME}/demo.png", "/reference"):
            answer = await nobody.get(path)
            assert (answer.status_code, answer.headers["Location"]) == (303, f"/login?next={path}")


async def test_the_reference_says_all_that_the_contract_says(reader: AsyncClient) -> None:
    page = await reader.get("/reference")
    contract = (await reader.get("/openapi.json")).json()
    assert "unsafe" not in page.headers["Content-Security-Policy"]
    ids = re.findall(r' id="([^"]+)"', page.text)
    assert len(ids) == len(set(ids))
    paths = contract["paths"].values()
    operations = [operation["operationId"] for path in paths for operation in path.values()]
    schemas = contract["components"]["schemas"]
    assert {*operations, *(f"schema-{name}" for name in schemas)} <= set(ids)
    # No link leads to a section that is not there
    assert {*re.findall(r'href="#([^"]+)"', page.text)} <= {*ids, "main"}
    members = [name for schema in schemas.values() for name in schema.get("properties", ())]
    assert page.text.count('<th scope="row"><code>') >= len(members)


def test_a_wheel_carries_the_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "celeus"
    (package / "web" / "documents").mkdir(parents=True)
    (package / "_docs").mkdir()
    for name in ("index.md", "README.md", "CHANGELOG.md"):
        (package / "_docs" / name).write_text("# Title\n\n[one](../README.md#a) [two](index.md)\n")
    monkeypatch.setattr("celeus.web.documents.__file__", str(package / "web" / "documents.py"))
    carried = Library.load()
    assert set(carried.documents) == {"index", "readme", "changelog"}
    assert 'href="/docs/readme#a"' in carried.documents["index"].text.html
