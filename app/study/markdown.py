"""Tables of the studies, as Markdown."""

from collections.abc import Sequence

import numpy as np

from app.study.courses import REFUSED, Course
from app.study.peeked import wilson_ends


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """A table whose first ``words`` columns are words and the others numbers."""
    lines = [
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * words + "--:|" * (len(heads) - words),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def spread(values: Sequence[float]) -> str:
    """Median and, in brackets, 10th and 90th percentile."""
    low, middle, high = np.percentile(values, (10, 50, 90))
    return f"{middle:.0f} ({low:.0f}–{high:.0f})"


def labels(runs: Sequence[Course]) -> str:
    """Labels at the stop and how many sessions missed, or what happened in their place."""
    ran = [one for one in runs if one.stopped != REFUSED]
    if not ran:
        return "refused" if runs else "–"
    if all(one.stopped == "exhausted" for one in ran):
        return "all"
    lost = sum(one.missed for one in ran)
    return spread([one.labels for one in ran]) + (f", {lost} missed" if lost else "")


def share(value: float) -> str:
    """A share in percent; a dash for none."""
    return "–" if np.isnan(value) else f"{round(100.0 * value)} %"


def missed(count: int, total: int) -> str:
    """Sessions that missed, with Wilson's 95 % interval."""
    low, high = wilson_ends(np.array([float(count)]), np.array([total]), 0.05)
    return f"{count}/{total} ({max(low[0], 0.0):.3f}–{high[0]:.3f})"
