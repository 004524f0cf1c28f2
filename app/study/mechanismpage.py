"""The mechanism study as Markdown and as a picture."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from app.study.markdown import table
from app.study.mechanism import DESIGNS, NAMES, Result

Floats = NDArray[np.float64]
Groups = dict[tuple[str, str], list[Result]]

GUIDED = "guided"
BIAS = """Mean error in points (hundredths of the scale) ± two standard errors, draws by the policy
`celeus`. `lure` and `signals` weight by the probabilities; `residuals` and `losses` do not."""
ERRORS = """The four estimates: root mean squared error in points. The coming draw: mean squared
error of the signal (its variance), of the unweighted signal and of the loss as it comes, about the
pool risk."""
VARIANCES = """Exact given the draws so far, averaged over sessions; in brackets as a share of
uniform draws without a surrogate (`plain`). `least` is what no proposal can beat with the surrogate
as it came, after `guided` draws. `sharp` has another surrogate, recalibrated from the labels seen,
and may go below; it stands for a quarter of the sessions."""
COLOURS = {
    "plain": "#8d8d8d",
    "uniform": "#7fb69e",
    "guided": "#c8553d",
    "oracle": "#3d5a80",
    "sharp": "#0b6e4f",
    "least": "#000000",
}


def page(results: Iterable[Result]) -> str:
    """Bias of the estimates, their errors and the next draw's, and the conditional variance."""
    grouped = _grouped(results)
    parts = [
        "## Bias under guided draws",
        f"Over {_runs(grouped)} sessions a pool. {BIAS}",
        _bias(grouped),
        "## Mean squared error",
        ERRORS,
        _errors(grouped),
        "## Conditional variance of the coming signal",
        VARIANCES,
        _variances(grouped),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _grouped(results: Iterable[Result]) -> Groups:
    grouped: Groups = defaultdict(list)
    for one in results:
        grouped[one.job.pool, one.job.design].append(one)
    return grouped


def _runs(grouped: Groups) -> int:
    return min(len(runs) for (_, design), runs in grouped.items() if design == GUIDED)


def _pools(grouped: Groups) -> list[str]:
    return list(dict.fromkeys(pool for pool, _ in grouped))


def _draws(runs: Sequence[Result]) -> list[int]:
    return [int(one[0]) for one in runs[0].after]


def _errors_at(runs: Sequence[Result], number: int) -> Floats:
    """Errors of the four estimates, shape [runs, 4], in points."""
    return 100.0 * np.array([one.at(number).errors for one in runs])


def _bias(grouped: Groups) -> str:
    rows = []
    for pool in _pools(grouped):
        runs = grouped[pool, GUIDED]
        for number, draws in enumerate(_draws(runs)):
            errors = _errors_at(runs, number)
            spread = 2.0 * errors.std(axis=0, ddof=1) / np.sqrt(len(runs))
            cells = [
                f"{mean:+.2f} ± {two:.2f}"
                for mean, two in zip(errors.mean(axis=0), spread, strict=True)
            ]
            rows.append([pool, str(draws), *cells])
    return table(["pool", "draws", *NAMES], rows)


def _errors(grouped: Groups) -> str:
    rows = []
    for pool in _pools(grouped):
        runs = grouped[pool, GUIDED]
        for number, draws in enumerate(_draws(runs)):
            root = np.sqrt((_errors_at(runs, number) ** 2).mean(axis=0))
            after = [one.at(number) for one in runs]
            coming = [
                float(np.mean([getattr(one, name) for one in after]))
                for name in ("variance", "unweighted", "naive")
            ]
            numbers = [*(f"{one:.2f}" for one in root), *(f"{one:.4f}" for one in coming)]
            rows.append([pool, str(draws), *numbers])
    heads = ["next: signal", "next: unweighted", "next: loss"]
    return table(["pool", "draws", *NAMES, *heads], rows)


def variances(grouped: Groups, pool: str) -> dict[str, Floats]:
    """Mean conditional variance by design, and ``least``; one number a checkpoint."""
    found = {
        design: _mean(grouped[pool, design], "variance")
        for design in DESIGNS
        if (pool, design) in grouped
    }
    return found | {"least": _mean(grouped[pool, GUIDED], "least")}


def _mean(runs: Sequence[Result], name: str) -> Floats:
    numbers = [[getattr(one.at(number), name) for number in range(len(one.after))] for one in runs]
    return np.asarray(np.mean(numbers, axis=0))


def _variances(grouped: Groups) -> str:
    names = (*DESIGNS, "least")
    rows = []
    for pool in _pools(grouped):
        found = variances(grouped, pool)
        for number, draws in enumerate(_draws(grouped[pool, GUIDED])):
            plain = found["plain"][number]
            cells = [
                f"{found[name][number]:.4f} ({found[name][number] / plain:.2f})" for name in names
            ]
            rows.append([pool, str(draws), *cells])
    return table(["pool", "draws", *names], rows)


def draw(results: Iterable[Result], path: Path) -> None:
    """Write the picture as PNG: the four biases above, the conditional variances below."""
    grouped = _grouped(results)
    pools = _pools(grouped)
    figure = Figure(figsize=(4.2 * len(pools), 6.4), layout="constrained")
    panels = figure.subplots(2, len(pools), squeeze=False)
    for column, pool in enumerate(pools):
        above, below = panels[0][column], panels[1][column]
        runs = grouped[pool, GUIDED]
        draws = _draws(runs)
        errors = np.array([_errors_at(runs, number) for number in range(len(draws))])
        for place, name in enumerate(NAMES):
            two = 2.0 * errors[:, :, place].std(axis=1, ddof=1) / np.sqrt(len(runs))
            above.errorbar(draws, errors[:, :, place].mean(axis=1), yerr=two, label=name)
        above.axhline(0.0, color="black", lw=0.8)
        above.set_title(f"{pool}: bias under guided draws", fontsize="medium")
        for name, numbers in variances(grouped, pool).items():
            style = "--" if name == "least" else "-"
            below.plot(draws, numbers, style, color=COLOURS[name], label=name)
        below.set_title(f"{pool}: variance of the coming signal", fontsize="medium")
        below.set_ylim(bottom=0.0)
        for panel in (above, below):
            panel.set_xscale("log")
            panel.set_xticks(draws, [str(one) for one in draws])
            panel.minorticks_off()
            panel.set_xlabel("draws")
            panel.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel("points")
    for row in panels:
        row[-1].legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=120, format="png")
