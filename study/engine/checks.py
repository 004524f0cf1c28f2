"""Refuse what a study cannot start from, before anything is written: one line, what and where."""

from collections.abc import Collection, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from celeus.errors import InvalidValue
from celeus.simulation.sessions import Truth


def choices(names: Sequence[str] | None, allowed: Collection[str], field: str) -> list[str]:
    """The names given, or all that are known; refuses others."""
    for name in names or ():
        if name not in allowed:
            rule = "one of " + ", ".join(allowed)
            raise InvalidValue(f"{field} must be {rule}", field=field, rule=rule, value=name)
    return list(dict.fromkeys(names)) if names else list(allowed)


def data_folder(folder: Path, files: Collection[str]) -> Path:
    """The folder of the real pools; refuses one that is missing or lacks a file."""
    rule = "the folder of the real pools"
    if not folder.is_dir():
        raise InvalidValue(
            f"there is no folder {folder}", field="evaldata", rule=rule, value=str(folder)
        )
    for name in files:
        if not (folder / name).is_file():
            raise InvalidValue(
                f"there is no {name} in {folder}", field="evaldata", rule=rule, value=str(folder)
            )
    return folder


def can_draw() -> None:
    """Refuse before anything is run where the pictures could not be drawn."""
    if find_spec("matplotlib") is None:
        rule = "pip install matplotlib"
        raise InvalidValue(f"the studies need matplotlib: {rule}", rule=rule)


def within(name: str, value: float, above: float, below: float) -> float:
    """The value; refuses one that is not strictly between the two ends (NaN is not)."""
    if not above < value < below:
        rule = f"above {above:g} and below {below:g}"
        raise InvalidValue(f"{name} must be {rule}", field=name, rule=rule, value=value)
    return value


def on_scale(truth: Truth, where: str) -> Truth:
    """The pool; refuses losses or surrogates off its scale (NaN is on none)."""
    for name, values in (("loss", truth.loss), ("surrogate", truth.scores.surrogate)):
        off = np.flatnonzero(~((values >= truth.lower) & (values <= truth.upper)))
        if off.size:
            rule = f"numbers from {truth.lower:g} to {truth.upper:g}"
            value = f"{float(values[off[0]])!r} at item {int(off[0])}"
            raise InvalidValue(
                f"{where}: {name} must be {rule}; found {value}", field=name, rule=rule
            )
    return truth
