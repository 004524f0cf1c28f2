"""The head of a study's output: how it was made, so that it can be made again."""

import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from app.core.plan import METHOD_VERSION


def head(title: str, command: str, *, seed: int, runs: str) -> str:
    """Markdown title with command, seed, versions, machine and date.

    ``runs`` says how much was run: "24 seeds", "1 000 trials".
    """
    names = ("celeus", "numpy", "scipy")
    versions = ", ".join([f"{name} {version(name)}" for name in names])
    machine = (
        f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}"
    )
    made = [runs, f"study seed {seed}", f"{versions}, method {METHOD_VERSION}", machine]
    date = datetime.now(UTC).date().isoformat()
    return f"# {title}\n\n    {command}\n\n{'; '.join(made)}; {date}.\n\n"


def command_line() -> str:
    """The command of this process, as one would type it again."""
    return shlex.join(["celeus", *sys.argv[1:]])


def write_page(out: Path, study: str, text: str) -> Path:
    """Write ``text`` as ``<study>.md`` in the folder ``out``, which is made where it is missing."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{study}.md"
    path.write_text(text, encoding="utf-8")
    return path
