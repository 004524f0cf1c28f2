"""The picture of the imports in docs/evidence/architecture.md: `python -m tests.docs.imports FILE`.

A square at (row, column) says that the row's package imports the column's, the darker the more
often. Packages stand from the top of the house to its floor: imports that go down lie right of the
diagonal, and one that went up from room to room would lie left of it.
"""

import sys
from collections import Counter
from pathlib import Path

import grimp
import numpy as np

ROOMS = ("commands", "web", "api", "operations", "core", "store", "root")
NOUNS = (
    *(
        "views",
        "documents",
        "report",
        "certificates",
        "insights",
        "sessions",
        "session",
        "sampling",
    ),
    *("account", "eprocess", "plans", "pools", "access", "runtime", "wire", "embedded", ""),
)
BESIDE = tuple(
    f"celeus.{room}"
    for room in (
        *(
            "simulation",
            "demo",
            "intake",
            "client",
            "gates",
            "judges",
            "bridges",
            "runs",
            "harnesses",
        ),
        "inspect",
    )
)


def package_of(module: str) -> tuple[str, str]:
    """Room and noun of a module; what lies in no room is of the root."""
    parts = module.split(".")[1:]
    if len(parts) < 2:
        return ("root", "") if not parts or parts[0] not in ROOMS else (parts[0], "")
    return (parts[0], parts[1] if parts[1] in NOUNS else "")


def imports() -> Counter[tuple[tuple[str, str], tuple[str, str]]]:
    """How many modules of one package import one of another."""
    graph = grimp.build_graph("celeus")
    counts: Counter[tuple[tuple[str, str], tuple[str, str]]] = Counter()
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            if importer.startswith(BESIDE) or imported.startswith(BESIDE):
                continue
            if importer in {"celeus.cli", "celeus.main"}:
                continue
            pair = (package_of(importer), package_of(imported))
            if pair[0] != pair[1]:
                counts[pair] += 1
    return counts


def draw(path: Path) -> None:
    """Write the picture, as SVG or whatever the name says."""
    from matplotlib import pyplot as plt  # noqa: PLC0415 -- takes a second
    from matplotlib import rc_context  # noqa: PLC0415 -- as above

    counts = imports()
    packages = sorted(
        {package for pair in counts for package in pair},
        key=lambda one: (ROOMS.index(one[0]), NOUNS.index(one[1])),
    )
    names = [
        "errors, settings" if room == "root" else ".".join(filter(None, (room, noun)))
        for room, noun in packages
    ]
    cells = np.zeros((len(packages), len(packages)))
    for (importer, imported), count in counts.items():
        cells[packages.index(importer), packages.index(imported)] = count
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "celeus", "font.size": 8}):
        figure, axes = plt.subplots(figsize=(8.5, 8.5), layout="constrained")
        axes.imshow(np.log1p(cells), cmap="Blues")
        axes.set_xticks(range(len(names)), names, rotation=90)
        axes.set_yticks(range(len(names)), names)
        axes.xaxis.tick_top()
        axes.plot([-0.5, len(names) - 0.5], [-0.5, len(names) - 0.5], color="0.7", linewidth=0.5)
        for at in range(1, len(packages)):
            if packages[at][0] != packages[at - 1][0]:
                axes.axhline(at - 0.5, color="0.8", linewidth=0.5)
                axes.axvline(at - 0.5, color="0.8", linewidth=0.5)
        axes.tick_params(length=0)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
