"""Pictures of the studies: panels in a grid, written as PNG."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # It may not be installed: only those who draw need it.
    from matplotlib.axes import Axes

COLOURS = {
    "sharp": "#0b6e4f",
    "uniform": "#7fb69e",
    "celeus": "#c8553d",
    "no_surrogate": "#e3a08f",
    "evalue": "#8d8d8d",
    "evalue_recentred": "#5b5b5b",
    "oracle": "#3d5a80",
    "normal": "#000000",
    "plain": "#8d8d8d",
    "guided": "#c8553d",
    "least": "#000000",
}
"""Colours of policies and of what they are compared with."""
OTHERS = ("#0b6e4f", "#c8553d", "#3d5a80", "#8d8d8d")
"""Colours of other lines, in turn."""


@contextmanager
def panels(
    path: Path,
    rows: int = 1,
    columns: int = 1,
    *,
    size: tuple[float, float],
    **options: Any,  # noqa: ANN401 -- those of matplotlib's subplots
) -> "Iterator[list[list[Axes]]]":
    """Empty panels, row by row, of a picture of ``size`` inches; written at the end."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **options)
    for panel in grid.flat:
        panel.set_prop_cycle(color=OTHERS)
    yield grid.tolist()
    for panel in grid.flat:
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120, format="png")
