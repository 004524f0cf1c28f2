"""Kinds of event have names, in SQL too."""

import re
from pathlib import Path

import pytest

from celeus import operations
from celeus.operations.sessions.ledger import with_kinds

NUMBERED = re.compile(r"\bkind\s*(?:=|<>|IN\s*\()\s*\d")
MODULES = sorted(Path(operations.__path__[0]).rglob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_no_statement_names_a_kind_by_its_number(module: Path) -> None:
    assert not NUMBERED.findall(module.read_text(encoding="utf-8"))


def test_a_named_kind_is_sent_as_a_literal_that_a_partial_index_fits() -> None:
    statement = with_kinds("SELECT 1 WHERE kind IN (:draw, :change)")
    sent = str(statement.compile(compile_kwargs={"render_postcompile": True}))
    assert sent.endswith("kind IN (1, 5)")
