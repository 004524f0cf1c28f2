"""Tables of the studies, as Markdown."""

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from study.baselines.fixed_sample import wilson_ends
from study.engine.rows import Rows

Columns = Mapping[str, Callable[[Rows], str]]
"""Heads of columns, and the function that writes a cell from the rows of its line."""


def table(rows: Rows, keys: Sequence[str], columns: Columns, words: Collection[str] = ()) -> str:
    """A line for every combination of the keys, in the order they came.

    The keys (unless ``words`` names others) are set as words, all else as numbers.
    """
    heads = [*keys, *columns]
    lines = [
        [*map(str, key), *(cell(group) for cell in columns.values())]
        for key, group in rows.by(*keys).items()
    ]
    marks = "".join("---|" if head in (words or keys) else "--:|" for head in heads)
    body = [f"| {' | '.join(line)} |" for line in (heads, *lines)]
    return "\n".join([body[0], f"|{marks}", *body[1:]]) + "\n"


def spread(values: Sequence[float]) -> str:
    """Median and, in brackets, 10th and 90th percentile."""
    low, median, high = np.percentile(values, (10, 50, 90))
    return f"{median:.0f} ({low:.0f}–{high:.0f})"


def share(value: float) -> str:
    """A share in percent."""
    return f"{round(100.0 * value)} %"


def missed(runs: Rows) -> str:
    """Sessions that missed, with Wilson's 95 % interval; a dash for no sessions."""
    if not runs:
        return "–"
    count, total = sum(runs.of("missed")), len(runs)
    low, high = wilson_ends(np.array([float(count)]), np.array([total]), 0.05)
    return f"{count}/{total} ({max(low[0], 0.0):.3f}–{high[0]:.3f})"
