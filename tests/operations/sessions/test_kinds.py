"""Statements name kinds of event, and read all that a status document says."""

import re
from dataclasses import fields
from pathlib import Path

from sqlalchemy import text

from celeus import operations
from celeus.operations.runtime.session_record import SessionRecord
from celeus.operations.sessions.ledger import RECORD, with_kinds
from celeus.store.database import Database

NUMBERED = re.compile(r"\bkind\s*(?:=|<>|IN\s*\()\s*\d")
MODULES = sorted(Path(operations.__path__[0]).rglob("*.py"))


def test_no_statement_names_a_kind_by_its_number() -> None:
    found = {path: NUMBERED.findall(path.read_text(encoding="utf-8")) for path in MODULES}
    assert found
    assert not any(found.values()), found


def test_a_named_kind_is_sent_as_a_literal_that_a_partial_index_fits() -> None:
    statement = with_kinds("SELECT 1 WHERE kind IN (:draw, :change)")
    sent = str(statement.compile(compile_kwargs={"render_postcompile": True}))
    assert sent.endswith("kind IN (1, 5)")


async def test_every_reader_of_a_row_has_all_that_a_status_document_says(
    database: Database,
) -> None:
    async with database.transaction() as db:
        read = (await db.execute(text(f"SELECT {RECORD} FROM sessions"))).keys()
    assert set(read) == {field.name for field in fields(SessionRecord)}
