import gzip
import json
import re
import shutil
import subprocess
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from fastapi import FastAPI

from celeus.web.assets import FOLDER, Assets
from celeus.web.rendering import REPORT_TEMPLATES, TEMPLATES, Templates
from tests.web.test_signing_in import Visiting
from tests.wheels import built

ROOT = Path(__file__).parents[2]
ESBUILD = FOLDER.parent / "node_modules" / "esbuild"


@pytest.mark.own_app
async def test_a_file_is_kept_for_ever_under_the_name_of_its_version(
    app: FastAPI, visiting: Visiting
) -> None:
    url = Assets().url("celeus.css")
    async with visiting() as anybody:
        answer = await anybody.get(url)
        assert answer.status_code == 200
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert answer.headers["Content-Type"].startswith("text/css")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.content == (FOLDER / "celeus.css").read_bytes()
        known = {"If-None-Match": answer.headers["ETag"]}
        again = await anybody.get(url, headers=known)
        assert (again.status_code, again.content) == (304, b"")
        plain = await anybody.get(url, headers={"Accept-Encoding": "identity"})
        assert "Content-Encoding" not in plain.headers
        assert plain.content == answer.content
        async with anybody.stream("GET", url, headers={"Accept-Encoding": "gzip"}) as packed:
            raw = b"".join([part async for part in packed.aiter_raw()])
        assert packed.headers["Vary"] == "Accept-Encoding"
        assert gzip.decompress(raw) == answer.content
        assert len(raw) < len(answer.content) / 2
    told = (await app.state.metrics.rendered(app.state.context)).decode()
    assert 'method="GET",route="/static/{version}/{path:path}",status="200"' in told


@pytest.mark.own_app
async def test_a_file_is_packed_once_however_often_it_is_asked_for(
    visiting: Visiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packed anew, the largest file kept a worker busy for 0.07 s, with no key."""
    tries: list[int] = []

    def counted(content: bytes, *, mtime: float) -> bytes:
        tries.append(len(content))
        return compress(content, mtime=mtime)

    compress = gzip.compress
    monkeypatch.setattr(gzip, "compress", counted)
    async with visiting() as anybody:
        for version in "abc":
            url = f"/static/{version}/vendor/temml/temml.min.js"
            answer = await anybody.get(url, headers={"Accept-Encoding": "gzip"})
            assert answer.headers["Content-Encoding"] == "gzip"
            part = await anybody.get(url, headers={"Range": "bytes=0-9"})
            assert (part.status_code, len(part.content)) == (206, 10)
    assert tries == [len(answer.content)]


async def test_a_page_of_another_version_gets_the_file_and_does_not_keep_it(
    visiting: Visiting,
) -> None:
    async with visiting() as anybody:
        answer = await anybody.get("/static/0123456789abcdef/js/api.js")
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"


NO_FILES = [
    "/static/",
    "/static/v",
    "/static/v/",
    "/static/v/js",
    "/static/v/../templates/login.html",
    "/static/v/..%2ftemplates%2flogin.html",
    "/static/v/%2e%2e/signin.py",
    "/static/v/....//signin.py",
    "/static/v//etc/passwd",
    "/static/v/js/api.js%00.css",
    "/static/../v1/pools",
]


async def test_nothing_else_is_found_among_the_files(visiting: Visiting) -> None:
    async with visiting() as anybody:
        for path in NO_FILES:
            answer = await anybody.get(f"http://celeus.test{path}")
            assert answer.status_code in {401, 404}, path
            posted = await anybody.post(f"http://celeus.test{path}")
            assert posted.status_code in {401, 404, 405}, path


async def test_the_icon_is_where_browsers_look_for_it(visiting: Visiting) -> None:
    async with visiting() as anybody:
        answer = await anybody.get("/favicon.ico")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/svg+xml")
    assert answer.headers["Cache-Control"] == "no-store"


def test_another_content_is_another_version(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("1")
    (tmp_path / "b.js").write_text("2")
    before = Assets(tmp_path).version
    assert Assets(tmp_path).version == before
    (tmp_path / "a.js").write_text("2")
    (tmp_path / "b.js").write_text("1")
    assert Assets(tmp_path).version != before
    with pytest.raises(LookupError):
        Assets(tmp_path).url("c.js")


def test_a_bundle_is_served_until_a_script_it_was_made_of_is_another(tmp_path: Path) -> None:
    folder, bundle = tmp_path / "static", tmp_path / "bundle"
    for path, text in (("a.js", "import './b.js'"), ("b.js", "1"), ("c.js", "2")):
        folder.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    modules = Assets(folder, bundle)
    bundle.mkdir()
    (bundle / "a.js").write_text("1")
    made_of = {name: sha256((folder / name).read_bytes()).hexdigest() for name in ("a.js", "b.js")}
    (bundle / "sources.json").write_text(json.dumps(made_of))
    bundled = Assets(folder, bundle)
    assert bundled.version != modules.version
    found = [bundled.lookup_path(name)[0] for name in ("a.js", "b.js", "c.js")]
    assert found == [str(bundle / "a.js"), str(folder / "b.js"), str(folder / "c.js")]
    (folder / "c.js").write_text("3")
    assert Assets(folder, bundle).lookup_path("a.js")[0] == str(bundle / "a.js")
    (folder / "b.js").write_text("4")
    assert Assets(folder, bundle).lookup_path("a.js")[0] == str(folder / "a.js")


@pytest.mark.parametrize("sources", ["{}", "[]", '{"a.js": "', "null", '{"a.js": 1}', "\xff"])
def test_a_bundle_that_names_no_sources_is_not_served(tmp_path: Path, sources: str) -> None:
    folder, bundle = tmp_path / "static", tmp_path / "bundle"
    for place in (folder, bundle):
        place.mkdir()
        (place / "a.js").write_text(place.name)
    (bundle / "sources.json").write_bytes(sources.encode("latin-1"))
    assert Assets(folder, bundle).lookup_path("a.js")[0] == str(folder / "a.js")


@pytest.mark.skipif(not ESBUILD.exists(), reason="Node or its packages are missing: make bundle")
def test_every_script_that_a_page_names_is_bundled(tmp_path: Path) -> None:
    command = [shutil.which("node") or "node", "bundle.js", str(tmp_path)]
    subprocess.run(command, cwd=FOLDER.parent, check=True)
    pages = "".join(path.read_text() for path in TEMPLATES.glob("*.html"))
    named = set(re.findall(r"static\('(js/[^']+)'\)", pages))
    assert "js/label.js" in named
    assets = Assets(FOLDER, tmp_path)
    for name in named:
        assert assets.lookup_path(name)[0] == str(tmp_path / name)
        assert re.findall(r"""(?:from|import) ?["'][^"']+""", (tmp_path / name).read_text()) == []


def test_every_file_that_scripts_and_styles_name_is_there() -> None:
    for path in [*FOLDER.glob("js/**/*.js"), *FOLDER.glob("**/*.css")]:
        found = re.findall(r"""(?:from|import)\s*\(?["'](\.{1,2}/[^"']+)["']""", path.read_text())
        found += re.findall(r"""url\(["']?(?!data:|#|%23)([^"')]+)""", path.read_text())
        missing = [name for name in found if not (path.parent / name).resolve().is_file()]
        assert missing == [], path


def test_every_template_can_be_read() -> None:
    pages = Templates(Assets())._pages
    for folder in (TEMPLATES, REPORT_TEMPLATES):
        for path in folder.glob("**/*.html"):
            pages.get_template(path.relative_to(folder).as_posix())


def test_what_is_not_ours_stands_beside_its_licence_and_version() -> None:
    for library in (FOLDER / "vendor").iterdir():
        names = {path.name for path in library.iterdir()}
        assert any(name.startswith("LICENSE") for name in names), library
        assert any(name.startswith("VERSION") for name in names), library


def test_no_file_of_ours_writes_markup_or_asks_elsewhere() -> None:
    for path in FOLDER.glob("js/**/*.js"):
        text = path.read_text()
        forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
        assert re.search(forbidden, text) is None, path
        hosts = set(re.findall(r"https?://[\w.-]+", text))
        assert hosts <= {"http://www.w3.org"}, path


@pytest.mark.timeout(240)
def test_the_wheel_carries_every_template_and_every_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(built(tmp_path)) as packed:
        names = set(packed.namelist())
    folders = (FOLDER, TEMPLATES, REPORT_TEMPLATES)
    carried = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert {path.relative_to(ROOT / "app").as_posix() for path in carried} <= names
