"""The head of a study's output: how it was made, so that it can be made again."""

import os
import platform
from importlib.metadata import version


def head(title: str, command: str, seeds: int) -> str:
    """Markdown title with command, seeds, versions and machine."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("celeus", "numpy", "scipy"))
    machine = (
        f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}"
    )
    return f"# {title}\n\n    {command}\n\n{seeds} seeds; {versions}; {machine}.\n\n"
