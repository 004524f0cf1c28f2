"""Cells of CSV files."""

import pytest

from celeus.api.insights.csv_cells import cell


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n"])
def test_no_spreadsheet_runs_a_text(sign: str) -> None:
    assert cell(f"{sign}1+1") == f"'{sign}1+1"
    assert cell(f"1{sign}1") == f"1{sign}1"


def test_other_values_stay_what_they_are() -> None:
    assert [cell(one) for one in (-1.5, None, True, False, "")] == [-1.5, None, "yes", "no", ""]
