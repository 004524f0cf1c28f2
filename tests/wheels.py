"""The wheel of this checkout."""

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]


def built(folder: Path, checkout: Path = CHECKOUT) -> Path:
    """The wheel, built into ``folder`` without a network."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=checkout, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel
