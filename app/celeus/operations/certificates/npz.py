"""Read a pool's columns from a `columns.npz` archive without trusting its contents.

The archive is a zip of stored (never packed) arrays. Whatever it claims is compared with its real
size before anything is read, and nothing in it is ever executed: an array of objects is refused.
"""

import json
import re
import zipfile
from collections.abc import Mapping
from math import prod
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from celeus.core.certificate.pool_checks import Evidence
from celeus.core.plain import Mismatch
from celeus.core.pools.pool import MATRICES, PoolStatements, dtype_of
from celeus.errors import InvalidValue, Refusal

MOST_ARRAYS = 10_000
NAMES = ("groups", "items_digest", "digest", "reasons", *PoolStatements.optional)
"""Arrays that are not columns."""
ENCRYPTED = 1
BEFORE_HEADER = 10
"""Bytes of an array's file before its header: name, version and the header's length."""

_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)"
    rb"\{'descr': '(?P<dtype><(?:f8|f4|i4|U[1-9]\d{0,5}))', 'fortran_order': False,"
    rb" 'shape': \((?P<shape>|\d{1,12},|\d{1,12}, \d{1,12})\), \} *\n",
    re.DOTALL,
)


def read_archive(file: IO[bytes]) -> Evidence:
    """Read the columns of an archive; refuses one that the service would not send."""
    try:
        with zipfile.ZipFile(file) as archive:
            arrays = _arrays(archive)
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, ValueError) as error:
        raise _refused(f"it cannot be read: {error}") from error
    groups, digest = arrays.get("groups"), arrays.get("items_digest")
    if groups is None or digest is None or groups.ndim != 1 or digest.ndim != 0:
        raise _refused("groups or items_digest are missing")
    columns = {name: array for name, array in arrays.items() if name not in NAMES}
    try:
        items_digest = bytes.fromhex(str(digest))
    except ValueError as error:
        raise _refused("items_digest is no hexadecimal number") from error
    reasons = arrays.get("reasons", np.empty(0, dtype=np.str_))
    if reasons.ndim != 1:
        raise _refused("reasons is no list")
    names = [tuple(str(name) for name in array) for array in (groups, reasons)]
    try:
        stated = {
            name: json.loads(str(arrays[name]))
            for name in PoolStatements.optional
            if name in arrays
        }
        facts = PoolStatements.from_dict(stated)
    except (ArithmeticError, ValueError, RecursionError, Refusal, Mismatch) as error:
        raise _refused("what it states of its pool is not what a pool has") from error
    return Evidence(columns, names[0], items_digest, names[1], **vars(facts))


def _arrays(archive: zipfile.ZipFile) -> Mapping[str, NDArray[Any]]:
    entries = archive.infolist()
    if len(entries) > MOST_ARRAYS:
        raise _refused(f"it has {len(entries)} entries")
    if any(entry.flag_bits & ENCRYPTED for entry in entries):
        raise _refused("its arrays are encrypted")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise _refused("its arrays are packed: what it unpacks to is not known beforehand")
    size = archive.fp.seek(0, 2) if archive.fp is not None else 0
    if sum(entry.file_size for entry in entries) > size:
        raise _refused("its arrays are larger than the archive")
    arrays: dict[str, NDArray[Any]] = {}
    for entry in entries:
        name = entry.filename.removesuffix(".npy")
        if name == entry.filename or name in arrays:
            raise _refused(f"{entry.filename!r} is no array, or there twice")
        arrays[name] = _array(archive, entry, name)
    return arrays


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> NDArray[Any]:
    data = archive.read(entry)
    header = _HEADER.match(data)
    if header is None:
        raise _refused(f"{name} is no array of numbers or texts in NumPy's format 1.0")
    dtype = np.dtype(header["dtype"].decode())
    shape = tuple(int(size) for size in re.findall(rb"\d+", header["shape"]))
    right = dtype.kind == "U" if name in NAMES else dtype == dtype_of(name)
    if not right or len(shape) > (2 if name in MATRICES else 1):
        raise _refused(f"{name} is an array of {dtype.str} of shape {shape}")
    start = int.from_bytes(header["length"], "little") + BEFORE_HEADER
    if header.end() != start or len(data) - start != prod(shape) * dtype.itemsize:
        raise _refused(f"{name} has another size than its header says")
    return np.frombuffer(data, dtype=dtype, offset=start).reshape(shape)


def _refused(why: str) -> InvalidValue:
    return InvalidValue(
        f"The pool's archive is not usable: {why}.",
        field="pool",
        rule="the answer of GET /v1/pools/{id}/columns.npz, unchanged",
    )
