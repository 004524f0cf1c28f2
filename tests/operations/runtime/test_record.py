"""A session's row as its status document is made with it."""

from dataclasses import fields

from sqlalchemy import text

from celeus.operations.runtime.session_record import SessionRecord
from celeus.operations.sessions.ledger import RECORD
from celeus.store.database import Database


async def test_every_reader_of_a_row_has_all_that_a_status_document_says(
    database: Database,
) -> None:
    async with database.transaction() as db:
        read = (await db.execute(text(f"SELECT {RECORD} FROM sessions"))).keys()
    assert set(read) == {field.name for field in fields(SessionRecord)}
