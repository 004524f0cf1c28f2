"""What a file is read as, as the page of a new session shows it."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from httpx import AsyncClient

from tests.keys import ADMIN
from tests.web.test_signing_in import csrf

Visiting = Callable[..., AbstractAsyncContextManager[AsyncClient]]
HOSTILE = "<script>alert(1)</script>"
COLUMNS = [
    {"name": name, "role": role, "why": "its name says so", "source": "name"}
    for name, role in ((HOSTILE, "question"), ("grade", "score"))
]
SCALE = {
    "name": "scale",
    "text": "What is the scale of `grade`?",
    "choices": [{"value": "grade=1 to 5", "means": "as its values are"}],
    "column": "grade",
    "example": {"grade": 3, "note": HOSTILE},
}


async def shown(visiting: Visiting, **read: Any) -> str:  # noqa: ANN401 -- members of a request
    roles = {column["name"]: column["role"] for column in COLUMNS}
    body = {"columns": COLUMNS, "roles": roles, "format": "csv"} | read
    async with visiting(ADMIN) as browser:
        answer = await browser.post("/sessions/new/file", json=body, headers=csrf(browser))
        assert answer.status_code == 200, answer.text
        return answer.text


async def test_a_question_has_its_choices_an_example_and_room_for_another_answer(
    visiting: Visiting,
) -> None:
    asked = {"key": "[scale]", "question": SCALE, "answers": ["grade=1 to 7"]}
    page = await shown(visiting, questions=[asked])
    assert HOSTILE not in page
    assert "<code><bdi>grade</bdi></code>" in page
    assert "<bdi>1 to 5</bdi>" in page
    assert 'value="1 to 7" data-key="[scale]" data-before="grade="' in page
    assert "All answered." in page
    assert "1 question to answer" in await shown(visiting, questions=[asked | {"answers": []}])


async def test_bad_rows_are_told_by_the_column_that_is_wrong(visiting: Visiting) -> None:
    faults = [
        {"field": "surrogate", "rule": "a number", "value": HOSTILE, "line": line}
        for line in range(2, 22)
    ]
    rows = {"items": 3, "skipped": 20, "whole": False, "numeric": [], "classes": None}
    preview = [{"line": 2, "cells": {"grade": HOSTILE}}]
    page = await shown(
        visiting, rows=rows | {"preview": preview}, faults=faults, total=20, source="guessed"
    )
    assert HOSTILE not in page
    assert "The first 23 rows: question, guess of the score." in page
    assert "3 rows are valid items, 20 are not" in page
    assert page.count("<li>Line ") == 12
    assert "Line 2, grade: must be a number, but is" in page
    assert "and 8 more." in page
    assert '<tr class="bad">' in page
