"""Read a pool whose losses are known from an .npz file, or say what is wrong with it and where.

loss       [N]            the true losses, on the scale
surrogate  [N] or [N, M]  guesses known beforehand; of several the mean is taken
proxy      [N]            optional: target-loss proxy, so that scores are |proxy - surrogate|
group      [N]            optional: names or numbers
"""

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.losses import LossScale
from app.core.pool import CHAIN_START, Pool
from app.core.surrogates import scores
from app.errors import InvalidValue
from app.study.simulation import Truth

Arrays = dict[str, NDArray[Any]]

REQUIRED = ("loss", "surrogate")
USED = (*REQUIRED, "proxy", "group")
_UNREADABLE = (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error)


def read_truth(path: Path, lower: float = 0.0, upper: float = 1.0) -> Truth:
    """The pool of a file; refuses what is missing, misshapen or off the scale."""
    scale = LossScale.of("bounded", lower, upper)
    found = arrays(path, REQUIRED, USED)
    items = _items(path, found)
    columns = {"loss": _numbers(path, "loss", found["loss"], scale)}
    surrogate = found["surrogate"]
    if surrogate.shape[:1] != (items,) or surrogate.ndim > 2 or 0 in surrogate.shape:
        raise _refused(path, "surrogate", f"[{items}] or [{items}, M] numbers", surrogate.shape)
    for at, column in enumerate(surrogate.reshape(items, -1).T):
        name = "surrogate" if surrogate.ndim == 1 else f"surrogate[:, {at}]"
        columns[f"surrogate.{at}"] = _numbers(path, name, column, scale)
    for name in ("proxy", "group"):
        if name in found and found[name].shape != (items,):
            raise _refused(path, name, f"[{items}] values, one an item", found[name].shape)
    if "proxy" in found:
        columns["proxy"] = _numbers(path, "proxy", found["proxy"], scale)
    loss = columns.pop("loss")
    pool = Pool(items, scale, columns, groups=(), items_digest=CHAIN_START)
    return Truth(loss, scores(pool), lower, upper)


def arrays(path: Path, required: Sequence[str], used: Sequence[str] = ()) -> Arrays:
    """The arrays of a file; refuses one without those ``required``. Others only when ``used``."""
    if not path.is_file():
        raise InvalidValue(f"{path}: there is no such file", field="file")
    if not zipfile.is_zipfile(path):
        raise _refused(path, "the file", "an .npz archive", "another kind of file")
    try:
        with np.load(path, allow_pickle=False) as archive:
            for name in required:
                if name not in archive.files:
                    found = ", ".join(archive.files) or "no array at all"
                    raise _refused(path, name, "an array of the file", found)
            wanted = dict.fromkeys((*required, *used))
            return {name: archive[name] for name in wanted if name in archive.files}
    except _UNREADABLE as error:
        raise _refused(path, "the file", "an .npz archive of plain arrays", error) from error


def _items(path: Path, found: Arrays) -> int:
    shape = found["loss"].shape
    if len(shape) != 1 or shape[0] == 0:
        raise _refused(path, "loss", "[N] numbers, N at least 1", shape)
    return int(shape[0])


def _numbers(path: Path, name: str, values: NDArray[Any], scale: LossScale) -> NDArray[np.float64]:
    rule = f"numbers from {scale.lower:g} to {scale.upper:g}"
    if values.dtype.kind not in "biuf":
        raise _refused(path, name, rule, f"type {values.dtype}")
    numbers = values.astype(np.float64)
    # A NaN is neither above nor below.
    off = np.flatnonzero(~((numbers >= scale.lower) & (numbers <= scale.upper)))
    if off.size:
        at = int(off[0])
        raise _refused(path, name, rule, f"{float(numbers[at])!r} at item {at}")
    return numbers


def _refused(path: Path, name: str, rule: str, found: object) -> InvalidValue:
    # Some readers' messages go over several lines.
    text = " ".join(str(found).split())[:200]
    return InvalidValue(f"{path}: {name} must be {rule}; found {text}", field=name, rule=rule)
