"""Read a pool whose losses are known from an .npz file, or say what is wrong with it and where.

loss       [N]            the true losses, on the scale
surrogate  [N] or [N, M]  surrogates known beforehand; of several the mean is taken
proxy      [N]            optional: target-loss proxy, so that scores are |proxy - surrogate|
group      [N]            optional: names or numbers
"""

import zipfile
import zlib
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import CHAIN_START, Pool
from celeus.core.pools.surrogates import scores
from celeus.errors import InvalidValue
from celeus.study.engine.simulation import Truth

Arrays = dict[str, NDArray[Any]]

REQUIRED = ("loss", "surrogate")
USED = (*REQUIRED, "proxy", "group")
MOST_UNPACKED = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}
"""Bytes that one byte of an archive can hold, by how NumPy packs."""
READ_HEADER = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_UNREADABLE = (
    OSError,
    EOFError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_truth(path: Path, lower: float = 0.0, upper: float = 1.0) -> Truth:
    """The pool of a file; refuses what is missing, misshapen or off the scale."""
    scale = LossScale.of("bounded", lower, upper)
    data = arrays(path, REQUIRED, USED)
    items = _items(path, data)
    columns = {"loss": _numbers(path, "loss", data["loss"], scale)}
    surrogate = data["surrogate"]
    if surrogate.shape[:1] != (items,) or surrogate.ndim > 2 or 0 in surrogate.shape:
        raise refused(path, "surrogate", f"[{items}] or [{items}, M] numbers", surrogate.shape)
    for at, column in enumerate(surrogate.reshape(items, -1).T):
        name = "surrogate" if surrogate.ndim == 1 else f"surrogate[:, {at}]"
        columns[f"surrogate.{at}"] = _numbers(path, name, column, scale)
    for name in ("proxy", "group"):
        if name in data and data[name].shape != (items,):
            raise refused(path, name, f"[{items}] values, one an item", data[name].shape)
    if "proxy" in data:
        columns["proxy"] = _numbers(path, "proxy", data["proxy"], scale)
    loss = columns.pop("loss")
    pool = Pool(items, scale, columns, groups=(), items_digest=CHAIN_START)
    return Truth(loss, scores(pool), lower, upper)


def arrays(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> Arrays:
    """The ``required`` and ``optional`` arrays of a file; refuses one that lacks a required one."""
    if not path.exists():
        raise InvalidValue(f"{path}: there is no such file", field="file")
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "a device or a pipe"
        raise refused(path, "the file", "an .npz archive", kind)
    try:
        with zipfile.ZipFile(path) as archive:
            members = {one.filename.removesuffix(".npy"): one for one in archive.infolist()}
            for name in required:
                if name not in members:
                    present = ", ".join(members) or "no array at all"
                    raise refused(path, name, "an array of the file", present)
            names = dict.fromkeys((*required, *optional))
            return {
                name: _array(path, archive, members[name], name)
                for name in names
                if name in members
            }
    except _UNREADABLE as error:
        raise refused(path, "the file", "an .npz archive of plain arrays", error) from error


def _array(
    path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str
) -> NDArray[Any]:
    """An array of the file; refused unless its member holds as much as its header says."""
    most = MOST_UNPACKED.get(member.compress_type, 0) * member.compress_size
    if member.file_size > most or member.compress_size > path.stat().st_size:
        rule = "stored or deflated, and no larger than the archive can hold"
        raise refused(path, name, rule, f"{member.file_size} bytes in {member.compress_size}")
    with archive.open(member) as file:
        try:
            read_header = READ_HEADER[np.lib.format.read_magic(file)]
            shape, _, dtype = read_header(file)
        except (KeyError, ValueError) as error:
            raise refused(path, name, "an array in NumPy's format", error) from error
        held, claimed = member.file_size - file.tell(), prod(shape) * dtype.itemsize
        # An array of objects has no size of its own, and is refused where it is read.
        if held != claimed and not dtype.hasobject:
            raise refused(path, name, f"an array of {claimed} bytes, as its header says", held)
        file.seek(0)
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return array


def _items(path: Path, data: Arrays) -> int:
    shape = data["loss"].shape
    if len(shape) != 1 or shape[0] == 0:
        raise refused(path, "loss", "[N] numbers, N at least 1", shape)
    return int(shape[0])


def _numbers(path: Path, name: str, values: NDArray[Any], scale: LossScale) -> NDArray[np.float64]:
    rule = f"numbers from {scale.lower:g} to {scale.upper:g}"
    if values.dtype.kind not in "biuf":
        raise refused(path, name, rule, f"type {values.dtype}")
    numbers = values.astype(np.float64)
    # A NaN is neither above nor below.
    off = np.flatnonzero(~((numbers >= scale.lower) & (numbers <= scale.upper)))
    if off.size:
        at = int(off[0])
        raise refused(path, name, rule, f"{float(numbers[at])!r} at item {at}")
    return numbers


def refused(path: Path, name: str, rule: str, actual: object) -> InvalidValue:
    """The refusal of a file: what must be what, and what was found there."""
    # Some readers' messages go over several lines.
    text = " ".join(str(actual).split())[:200]
    return InvalidValue(f"{path}: {name} must be {rule}; found {text}", field=name, rule=rule)
