"""The table of faults in docs/evidence/trust.md names tests that exist and what they count."""

import re
from pathlib import Path

from tests.docs.pages import ROOT, table_after

HERE = Path(__file__).parent
ROW = re.compile(r"`(test_\w+\.py)::(test_\w+)`")


def test_the_table_of_faults_names_every_count_and_the_test_that_makes_it() -> None:
    tests = {file.name: file.read_text() for file in HERE.rglob("test_*.py")}
    told = set()
    page = ROOT / "docs" / "evidence" / "trust.md"
    for fault, tries, shown in table_after(page, "<!-- faults:"):
        found = ROW.fullmatch(shown)
        assert found is not None, shown
        assert f"def {found[2]}(" in tests[found[1]]
        assert int(tries) > 0
        told.add((found[1], fault))
    counted = {
        (name, fault)
        for name, source in tests.items()
        for fault in re.findall(r'tally\.count\(\s*"([^"]+)"', source)
    }
    assert told == counted
