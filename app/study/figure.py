"""The label benchmark as a picture: labels to the precision, one panel for each target."""

from pathlib import Path

from matplotlib.figure import Figure

from app.study.labels import NORMAL, POLICIES, TARGETS, Claims

COLOURS = {
    "sharp": "#0b6e4f",
    "uniform": "#7fb69e",
    "celeus": "#c8553d",
    "no_surrogate": "#e3a08f",
    "evalue": "#8d8d8d",
    "oracle": "#3d5a80",
    NORMAL: "#000000",
}


def draw(found: Claims, precision: float, path: Path) -> None:
    """Write the picture for one precision as PNG; bars are medians, whiskers end at the p90."""
    cells = sorted({cell for cell, _, width in found if width == precision})
    figure = Figure(figsize=(13.0, 5.0))
    panels = figure.subplots(1, len(TARGETS), sharey=True)
    for panel, target in zip(panels, TARGETS, strict=True):
        for place, policy in enumerate((*POLICIES, NORMAL)):
            at, medians, tails = [], [], []
            for number, cell in enumerate(cells):
                summary = found.get((cell, target, precision), {}).get(policy)
                if summary is None or summary.median <= 0.0:
                    continue
                at.append(number + (place - 3) * 0.12)
                medians.append(summary.median)
                tails.append(max(summary.p90 - summary.median, 0.0))
            upper = [[0.0] * len(tails), tails]
            panel.bar(at, medians, 0.11, yerr=upper, color=COLOURS[policy], label=policy)
        panel.set_yscale("log")
        panel.set_title(f"target {target}")
        panel.set_xticks(range(len(cells)), cells, rotation=20, ha="right")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(f"labels to width {precision:g} (log scale)")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="lower center", ncols=len(names), frameon=False)
    figure.tight_layout(rect=(0.0, 0.06, 1.0, 1.0))
    figure.savefig(path, dpi=150)
