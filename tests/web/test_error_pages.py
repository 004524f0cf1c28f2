"""What people see of what is not there, not theirs, or fails; programs get problems."""

import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import pytest
from fastapi import FastAPI

from celeus.store.revisions import head
from tests.keys import ADMIN, bearer, key_in
from tests.web.test_signing_in import Visiting

PEOPLE = {"Accept": "text/html,application/xhtml+xml"}
NOBODY = "ses_" + "0" * 32


def heading(page: str) -> str:
    """The first words of a page."""
    [found] = re.findall(r"<h1>(.*?)</h1>", page)
    return str(found)


@pytest.mark.own_app
async def test_a_failure_has_a_page_with_the_id_that_the_log_has(
    app: FastAPI, visiting: Visiting
) -> None:
    @app.get("/broken")
    async def broken() -> None:
        raise KeyError("secret")

    async with visiting(ADMIN) as browser:
        page = await browser.get("/broken", headers=PEOPLE | {"X-Request-ID": "seen-by-anna"})
        program = await browser.get("/broken", headers=bearer())
    assert page.status_code == program.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    assert heading(page.text) == "Something went wrong here"
    assert "<code>seen-by-anna</code>" in page.text
    assert page.headers["X-Request-ID"] == "seen-by-anna"
    assert "style-src 'self';" in page.headers["Content-Security-Policy"]
    assert "secret" not in page.text + program.text
    assert program.json()["code"] == "internal_error"


async def test_tables_of_another_version_have_a_page(
    visiting: Visiting, alter: Callable[[str], Awaitable[object]]
) -> None:
    async with visiting(ADMIN) as browser:
        await alter("ALTER TABLE sessions RENAME COLUMN status TO told")
        try:
            await alter("UPDATE alembic_version SET version_num = 'another'")
            page = await browser.get("/", headers=PEOPLE)
        finally:
            await alter(f"UPDATE alembic_version SET version_num = '{head()}'")
            await alter("ALTER TABLE sessions RENAME COLUMN told TO status")
    assert page.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert "Retry-After" in page.headers
    assert "not that of this version" in page.text


@pytest.mark.parametrize(
    "path",
    [
        f"/sessions/{NOBODY}",
        f"/v1/sessions/{NOBODY}/report",
        f"/v1/sessions/{NOBODY}/certificate",
        "/a/b",
    ],
)
async def test_what_is_not_there_has_a_page(visiting: Visiting, path: str) -> None:
    async with visiting(ADMIN) as browser:
        page = await browser.get(path, headers=PEOPLE)
        program = await browser.get(path, headers={"Accept": "application/json"})
    assert (page.status_code, heading(page.text)) == (HTTPStatus.NOT_FOUND, "Nothing here")
    assert program.status_code == HTTPStatus.NOT_FOUND
    if not path.startswith("/sessions"):
        assert program.json()["code"].endswith("not_found")


async def test_a_report_is_a_page_to_people_whom_it_is_not_for(
    visiting: Visiting, database_url: str
) -> None:
    path = f"/v1/sessions/{NOBODY}/report"
    async with visiting() as anybody:
        led = await anybody.get(path, headers=PEOPLE)
        assert led.headers["Location"] == f"/login?next={path}"
        assert (await anybody.get(path)).json()["code"] == "unauthenticated"
    async with visiting(key_in(database_url, "label")) as labeller:
        page = await labeller.get(path, headers=PEOPLE)
        assert (page.status_code, heading(page.text)) == (403, "Not allowed with this key")
        assert (await labeller.get(path)).json()["code"] == "scope_missing"
