"""The tables on the page of the study are those of the whole pages, and its counts add up."""

import re

import pytest

from study.tables.coverage import CER_EVAL, CLAIMING, PEEKED, PUBLISHED
from study.tables.coverage_page import LEVEL, NAMES, Count
from tests.docs.pages import ROOT, table_after

PAGE = ROOT / "docs" / "evidence" / "study.md"
WHOLE = ROOT / "tests" / "docs" / "study"
"""The pages that the studies wrote."""
SECTIONS = ("efficiency", "compare")
SETTINGS = (("### Our reading of the paper's setting", 0.05), ("### Rare losses", 0.01))
CELL = re.compile(r"0\.\d{3} \(0\.\d{3} – \d\.\d{3}\)")


def section(name: str) -> str:
    """What stands from a study's command to the next heading, or to the end of its own page."""
    text = PAGE.read_text() + "\n## "
    begin = text.index(f"\n    python -m study {name} ")
    return text[begin : text.index("\n## ", begin)]


def lines(text: str, beginning: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(beginning)]


@pytest.mark.parametrize("name", SECTIONS)
def test_a_table_on_the_page_is_that_of_the_whole_page(name: str) -> None:
    whole = (WHOLE / f"{name}.md").read_text().splitlines()
    here = section(name)
    rows = lines(here, "| ")
    assert len(rows) > 7
    assert [row for row in rows if row not in whole] == []
    assert lines(here, "    python -m study")[0] in whole
    assert next(one for one in here.splitlines() if "; study seed 0; " in one) in whole


def counts(heading: str) -> dict[str, tuple[Count, Count]]:
    """Misses at the stop and at any look by method, read back from their shares."""
    names = {text: name for name, text in NAMES.items()}
    found = {}
    for row in table_after(PAGE, heading):
        trials = int(row[2])
        both = []
        for cell in row[3:5]:
            assert CELL.fullmatch(cell), cell
            times = round(float(cell.split()[0]) * trials)
            count = Count.of([n < times for n in range(trials)])
            assert str(count) == cell
            both.append(count)
        found[names[row[0]]] = (both[0], both[1])
    return found


@pytest.mark.parametrize(("heading", "alpha"), SETTINGS)
def test_no_policy_on_the_page_is_rejected(heading: str, alpha: float) -> None:
    claims = [both[1] for name, both in counts(heading).items() if name in CLAIMING]
    assert claims
    assert min(one.above(alpha) for one in claims) >= LEVEL / len(claims)


def test_what_is_no_e_process_misses_more_often_than_its_alpha() -> None:
    setting, rare = (counts(heading) for heading, _ in SETTINGS)
    assert set(setting) == {*PEEKED, CER_EVAL, *PUBLISHED}
    for name in ("wilson", "ppi"):
        assert setting[name][1].lower > 0.05
    assert rare["cer_eval"][0].lower > 0.01
    assert min(rare["cer_eval"][0].trials, setting["cer_eval"][0].trials) >= 1000


def test_the_sum_of_misses_in_the_prose_is_that_of_the_table() -> None:
    found = [
        both[1]
        for name, both in counts(SETTINGS[0][0]).items()
        if name in (*CLAIMING, "evalue_raw")
    ]
    said = re.search(r"included: (\d+) misses in ([\d ]+)\s+sessions", PAGE.read_text())
    assert said is not None
    assert int(said[1]) == sum(one.times for one in found)
    assert int(said[2].replace(" ", "")) == sum(one.trials for one in found)
