"""What a file is read as, as the page of a new session shows it."""

import json
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from html import unescape
from urllib.parse import urlencode

import pytest
from httpx import AsyncClient, Response

from tests.keys import ADMIN
from tests.web.test_signing_in import csrf

Visiting = Callable[..., AbstractAsyncContextManager[AsyncClient]]
HOSTILE = "<script>alert(1)</script>"
GRADED = f"question,answer,grade,{HOSTILE}\n".encode() + b"".join(
    f"{HOSTILE} {at}?,Yes {at}.,{1 + at % 5},{HOSTILE}\n".encode() for at in range(20)
)
SCALE = "other.[&#34;scale&#34;, &#34;grade&#34;]"


class Page:
    """The page as it sends a file: with its fields, and the state that it was given."""

    def __init__(self, browser: AsyncClient, name: str, content: bytes) -> None:
        self._browser, self._file = browser, (name, content)
        self.fields: dict[str, object] = {"kind": "bounded", "pool_name": "exam"}
        self._state = ""

    async def sent(self, *changed: str, **marks: str) -> str:
        """The page after these fields were changed."""
        answer = await self.answer(*changed, **marks)
        assert answer.status_code == 200, answer.text
        self._state = unescape(re.findall('data-state="([^"]*)"', answer.text)[0])
        return answer.text

    async def answer(self, *changed: str, **marks: str) -> Response:
        """What the service answers."""
        fields = urlencode(self.fields | {"changed": changed}, doseq=True)
        return await self._browser.post(
            "/sessions/new/file",
            data={"fields": fields, "state": self._state} | marks,
            files={"file": self._file},
            headers=csrf(self._browser),
        )


async def test_a_question_has_its_choices_an_example_and_room_for_another_answer(
    visiting: Visiting,
) -> None:
    async with visiting(ADMIN) as browser:
        page = Page(browser, "grades.csv", GRADED)
        page.fields["kind"] = "zero_one"
        asked = await page.sent("file")
        assert HOSTILE not in asked
        page.fields["role.grade"] = "score"
        asked = await page.sent("role.grade")
        assert "2 questions to answer before the pool can be created" in asked
        assert 'data-can="false"' in asked
        better, scale = '["better", "grade"]', '["scale", "grade"]'
        page.fields[f"answer.{better}"] = "higher"
        await page.sent(f"answer.{better}")
        page.fields[f"other.{scale}"] = "1 to 7"
        shown = await page.sent(f"other.{scale}")
        assert f'name="{SCALE}" maxlength="200" autocomplete="off" value="1 to 7"' in shown
        assert "All answered." in shown
        assert "20 rows: every row is a valid item" in re.sub("<[^>]+>", "", shown)
        assert 'data-can="true"' in shown
        assert HOSTILE not in shown


async def test_bad_rows_are_told_by_the_column_that_is_wrong(visiting: Visiting) -> None:
    rows = "".join(f"q{at},{HOSTILE if at > 2 else 0.5}\n" for at in range(23))
    async with visiting(ADMIN) as browser:
        page = Page(browser, "bad.csv", f"id,surrogate\n{rows}".encode())
        page.fields["kind"] = "zero_one"
        shown = await page.sent("file", part="true")
        text = re.sub("<[^>]+>", "", shown)
        assert HOSTILE not in shown
        assert "The first 23 rows: 3 rows are valid items, 20 are not" in text
        assert shown.count("<li>Line ") == 12
        assert "Line 5, surrogate: must be a number" in text
        assert "and 8 more." in text
        assert '<tr class="bad">' in shown
        assert "Leave the 20 bad rows out" in text
        assert 'data-plans=""' in shown, "a part of a file is not planned for"
        assert 'data-plans="true"' in await page.sent()
        page = Page(browser, "none.csv", b"id,surrogate\na,3\n")
        page.fields["kind"] = "zero_one"
        assert 'data-plans=""' in await page.sent("file"), "nor is a file without items"


async def test_a_field_that_is_wrong_says_so_and_what_was_typed_stays(visiting: Visiting) -> None:
    async with visiting(ADMIN) as browser:
        page = Page(browser, "exam.csv", b"id\na\nb\n")
        await page.sent("file")
        page.fields |= {"upper": "ten", "score_name": HOSTILE}
        shown = await page.sent("upper")
        assert '<p class="error" id="loss-upper-wrong">This must be a number.</p>' in shown
        assert 'value="ten" aria-describedby="upper-help loss-upper-wrong" aria-invalid' in shown
        assert 'data-lead="loss-upper"' in shown
        assert f'value="{HOSTILE.replace("<", "&lt;").replace(">", "&gt;")}"' in shown
        for written in ("1,000", "1_0", "5,", "\N{FULLWIDTH DIGIT FIVE}", "10%", "nan"):
            page.fields["upper"] = written
            assert 'id="loss-upper-wrong">This must be a number' in await page.sent("upper"), (
                written
            )
        # Levels are offered where the scale has ends
        page.fields["upper"] = "3"
        assert (await page.sent("upper")).count('name="level.grade"') == 4 + 1
        page.fields |= {"level.grade": ["0", "7"], "level.name": ["bad", "best"]}
        page.fields |= {"level.help": ["", ""]}
        shown = await page.sent("level.name")
        assert re.search('id="level-grade-1"[^>]* value="7"[^>]* aria-invalid="true"', shown)


async def test_a_pool_is_made_of_what_was_shown_and_once(visiting: Visiting) -> None:
    async with visiting(ADMIN) as browser:
        page = Page(browser, "exam.csv", b"question,reply\nWhat?,This.\nWho?,Me.\n")
        page.fields["kind"] = "zero_one"
        shown = await page.sent("file")
        assert "2 rows: question, answer." in shown
        assert 'data-made=""' in shown
        assert (await browser.get("/v1/pools")).json()["data"] == []
        made = re.findall('data-made="(pool_[0-9a-f]{32})"', await page.sent(make="true"))
        pools = (await browser.get("/v1/pools")).json()["data"]
        assert [pool["id"] for pool in pools] == made
        assert (pools[0]["name"], pools[0]["items"]) == ("exam", 2)
        # What a change leads to is shown first: levels turn the score over
        page.fields |= {"score_better": "lower", "level.grade": ["0", "1"]}
        page.fields |= {"level.name": ["wrong", "right"], "level.help": ["", ""]}
        shown = await page.sent("level.name", make="true")
        assert 'data-made=""' in shown
        assert 'value="higher" selected' in shown
        assert len((await browser.get("/v1/pools")).json()["data"]) == 1
        page.fields["pool_name"] = ""
        shown = await page.sent(make="true")
        assert 'id="pool-name-wrong">The pool needs a name.' in shown


@pytest.mark.parametrize(
    ("content", "subject"),
    [
        (b"prompt,chosen,rejected\nWhat?,This.,That.\n", "two"),
        (b"prompt,response_a,response_b\nWhat?,This.,That.\n", "two"),
        (b"question,answer\nWho was chosen?," + b"x" * 6_000 + b" rejected\n", "one"),
        (b"question,answer\n" + b"chosen " * 9_000 + b",Yes.\n", "one"),
    ],
    ids=["preferences", "sides", "far", "often"],
)
async def test_a_file_is_supposed_to_hold_what_its_columns_are_called(
    visiting: Visiting, content: bytes, subject: str
) -> None:
    async with visiting(ADMIN) as browser:
        page = Page(browser, "answers.csv", content)
        page.fields["kind"] = "zero_one"
        shown = await page.sent("file")
        assert f'name="subject" value="{subject}" checked' in shown


@pytest.mark.parametrize(
    ("content", "subject", "kind", "changed"),
    [
        (b"prompt,chosen,rejected\nWhat?,This.,That.\n", "one", "zero_one", "subject"),
        (b"prompt,chosen,rejected\nWhat?,This.,That.\n", "one", "cross_entropy", "kind"),
        (b"question,answer\nWhat?,This.\n", "two", "preference", "kind"),
    ],
)
async def test_what_is_chosen_during_the_first_look_stays(
    visiting: Visiting, content: bytes, subject: str, kind: str, changed: str
) -> None:
    async with visiting(ADMIN) as browser:
        page = Page(browser, "answers.csv", content)
        page.fields |= {"subject": subject, "kind": kind}
        shown = await page.sent("file", changed)
        assert f'name="subject" value="{subject}" checked' in shown
        assert f'name="kind" value="{kind}" checked' in shown


@pytest.mark.parametrize(("member", "value"), [("name", "wrong"), ("grade", "0.5")])
async def test_levels_that_are_written_during_the_first_look_stay(
    visiting: Visiting, member: str, value: str
) -> None:
    async with visiting(ADMIN) as browser:
        page = Page(browser, "exam.csv", b"id\na\nb\n")
        page.fields |= {"kind": "zero_one", "level.grade": "0", "level.name": "", "level.help": ""}
        page.fields[f"level.{member}"] = value
        shown = await page.sent("file", f"level.{member}")
        assert re.search(f'id="level-{member}-0"[^>]* value="{value}"', shown)


async def test_a_state_that_is_none_is_refused(visiting: Visiting) -> None:
    async with visiting(ADMIN) as browser:
        page = Page(browser, "exam.csv", b"id\na\n")
        for state in ("{", json.dumps({"roles": 1})):
            page._state = state
            assert (await page.answer("kind")).status_code == 422


async def test_the_members_of_a_form_are_bounded_together(visiting: Visiting) -> None:
    """Each of 64 could be as long as a state: 64 MiB in memory for one request."""
    async with visiting(ADMIN) as browser:
        page = Page(browser, "exam.csv", b"id\na\n")
        assert (await page.answer("file", a="x" * (1 << 20))).status_code == 200
        members = dict.fromkeys("abc", "x" * (700 << 10))
        assert (await page.answer("file", **members)).status_code == 422


async def test_the_fields_are_of_a_page_of_this_browser(visiting: Visiting) -> None:
    async with visiting(ADMIN) as browser:
        form = {"fields": "kind=zero_one"}
        file = {"file": ("exam.csv", b"id\na\n")}
        assert (await browser.post("/sessions/new/file", data=form, files=file)).status_code == 403


async def test_changes_are_few_and_each_is_taken_once(visiting: Visiting) -> None:
    """Thousands of one name, each with a look into the file, took half a minute."""
    async with visiting(ADMIN) as browser:
        page = Page(browser, "exam.csv", b"prompt,note\nWhat?,This.\n")
        roles = {"role.prompt": "question", "role.note": "reference"}
        page.fields |= {"kind": "zero_one"} | roles
        shown = await page.sent("file", *roles, *["file"] * 1_000)
        assert 'value="reference" selected' in shown
        answer = await page.answer(*(f"role.{at}" for at in range(257)))
        assert answer.status_code == 422
        assert "At most 256 fields can change at once." in answer.text
