"""`make pictures`: a picture of every page, wide and narrow, by day and by night.

All of them go into a folder, in full length; the first screens of those that the documentation
shows are kept in docs/pictures/pages, as small files. Needs Chromium.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import httpx
import typer
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from celeus.operations.certificates.signing_keys import make_key
from tests.browser.conftest import CHROMIUM, FLAGS
from tests.browser.site import NARROW, WIDE, Site
from tests.browser.test_webhooks import receiver
from tests.docs.pages import ROOT, pages
from tests.keys import key_in
from tests.pictures.pages import PAGES, PLANNED_MS, Shown
from tests.pictures.world import PEOPLE, World, broken, known_as
from tests.servers import running_postgres, running_services

KEPT = ROOT / "docs" / "pictures" / "pages"
KEPT_QUALITY = 72
SHOWN = re.compile(r"pictures/pages/([\w-]+)\.webp")
SETTLED_MS = 300
LOOKS = {
    f"{size}-{scheme}": {"viewport": viewport, "color_scheme": scheme}
    for size, viewport in (("wide", WIDE), ("narrow", NARROW))
    for scheme in ("light", "dark")
}
PROJECT = "Geography"
LABELLER, _, VISITOR = PEOPLE


def main(
    out: Annotated[Path, typer.Option(help="Folder for all of them.")] = Path("pictures"),
    only: Annotated[str, typer.Option(help="Pattern of the names of pages.")] = "",
    look: Annotated[str, typer.Option(help="Pattern of looks, as wide-light.")] = "",
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Renew those of the documentation.")] = False,
) -> None:
    """Take a picture of every page."""
    out.mkdir(parents=True, exist_ok=True)
    kept = {name for path in pages() for name in SHOWN.findall(path.read_text())}
    with _site() as site, receiver() as address, sync_playwright() as playwright:
        world = World.made(site, address)
        world.sessions["broken"] = world.sessions["empty"]
        expect.set_options(timeout=PLANNED_MS)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for shown in PAGES:
            if shown.name == "failed":
                broken(site, world.sessions["broken"])
            for name, options in LOOKS.items():
                if re.search(only, shown.name) and re.search(look, name):
                    with _page(browser, site, shown, options) as page:
                        shown.reach(page, world)
                        _take(page, out / f"{shown.name}-{name}.png", whole=shown.whole)
                        if keep and f"{shown.name}-{name}" in kept:
                            _keep(page, f"{shown.name}-{name}")
        browser.close()


@contextmanager
def _site() -> Iterator[Site]:
    with TemporaryDirectory() as folder, running_postgres() as url:
        signing_key = Path(folder) / "key.pem"
        make_key(signing_key)
        environment = {
            "CELEUS_SIGNING_KEY_FILE": str(signing_key),
            "CELEUS_WEBHOOK_INTERNAL": "127.0.0.0/8",
            "CELEUS_WEBHOOK_HTTP": "true",
        }
        with running_services(1, url, environment=environment) as (service,):
            yield Site(service, url, PROJECT)


@contextmanager
def _page(
    browser: Browser, site: Site, shown: Shown, options: Mapping[str, object]
) -> Iterator[Page]:
    context = browser.new_context(base_url=site.url, reduced_motion="reduce", **options)  # type: ignore[arg-type]
    context.set_default_timeout(PLANNED_MS)
    if shown.scopes is not None:
        key = _key(site.database_url, shown.project or site.project, shown.scopes)
        answer = httpx.post(f"{site.url}/login", data={"key": key})
        cookie = answer.cookies["celeus"]
        context.add_cookies([{"name": "celeus", "value": cookie, "url": site.url}])
    yield context.new_page()
    context.close()


@cache
def _key(database_url: str, project: str, scopes: tuple[str, ...]) -> str:
    key = key_in(database_url, *scopes, project=project)
    known_as(database_url, key, LABELLER if scopes == ("label",) else VISITOR)
    return key


def _take(page: Page, path: Path, *, whole: bool) -> None:
    page.wait_for_timeout(SETTLED_MS)
    page.screenshot(path=path, full_page=whole)


def _keep(page: Page, name: str) -> None:
    KEPT.mkdir(exist_ok=True)
    Image.open(BytesIO(page.screenshot())).save(
        KEPT / f"{name}.webp", quality=KEPT_QUALITY, method=6
    )


if __name__ == "__main__":
    typer.run(main)
