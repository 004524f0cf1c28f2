"""Cells of CSV files that people open in spreadsheets."""

SIGNS = "=+-@\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}"
FORMULA = (*SIGNS, "\N{FULLWIDTH COMMERCIAL AT}", "\t", "\r", "\n")
"""Beginnings of cells that a spreadsheet runs."""


def cell(value: object) -> object:
    """A cell that no spreadsheet runs: a text that looks like a formula gets an apostrophe."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
