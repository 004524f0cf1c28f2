"""A folder in which Inspect finds celeus, and the models of the tests, as installed packages."""

import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]


def installed(folder: Path) -> Path:
    """The folder made; to be on the path of a program, together with the checkout."""
    place = folder / "site-packages"
    place.mkdir(parents=True)
    (place / "celeus").symlink_to(CHECKOUT / "app" / "celeus")
    (place / "madeup.py").symlink_to(Path(__file__).parent / "madeup.py")
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    for name, points in (
        ("celeus", project["entry-points"]["inspect_ai"]),
        ("madeup", {"madeup": "madeup"}),
    ):
        info = place / f"{name}-0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0\n")
        lines = [f"{key} = {value}" for key, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[inspect_ai]", *lines, ""]))
    return place
