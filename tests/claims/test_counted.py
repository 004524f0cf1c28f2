"""The page of what was counted: a run brings its own rows and leaves all others."""

from pathlib import Path

from tests.claims.counted import FURTHER, PAGE, POOLS, keep, line_of, with_row

TABLES = (POOLS, FURTHER)
OTHERS = ("weighted mean", "heavy on losses", 300, 2000, "missed 90")
OLD = ("verdict", "mean 1/300", 300, 40, "missed 2")
NEW = ("verdict", "mean 1/300", 300, 2000, "missed 55")


def page(*rows: tuple[object, ...]) -> str:
    lines = ["# Counted", "", FURTHER.header, "|---|---|--:|--:|---|", *map(line_of, rows)]
    return "\n".join([*lines, "", "Words, which are written by hand.", ""])


def test_a_row_counted_again_takes_the_place_of_its_name() -> None:
    assert with_row(page(OLD, OTHERS), FURTHER, NEW) == page(NEW, OTHERS)


def test_a_row_of_a_new_name_comes_last_and_words_stay() -> None:
    assert with_row(page(OTHERS), FURTHER, NEW) == page(OTHERS, NEW)
    assert with_row(page(), FURTHER, NEW) == page(NEW)


def test_rows_are_kept_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "coverage.md"
    path.write_text(page(OLD, OTHERS))
    keep(FURTHER, NEW, path)
    keep(FURTHER, (*NEW[:4], "m"), path)
    assert path.read_text() == page((*NEW[:4], "m"), OTHERS)


def test_every_table_is_on_the_page_once() -> None:
    lines = PAGE.read_text().splitlines()
    assert [lines.count(table.header) for table in TABLES] == [1, 1]
