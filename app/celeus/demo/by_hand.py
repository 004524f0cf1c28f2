"""The demo's digits as a file to label by hand: pictures a browser shows, and the ten choices."""

import base64
import json
import struct
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import zoom

from celeus.demo.digits import digits
from celeus.errors import InvalidValue

ENLARGED = 14
"""Factor by which a picture is enlarged, margin included; the originals are too small to read."""
MARGIN = 1
_BRIGHTEST = 15.0
_GREY, _BITS = 0, 4
_DIGITS = [str(digit) for digit in range(10)]


def write_pool(path: Path, seed: int = 0) -> int:
    """Write the digits as JSON Lines, ready to be dropped on a page; returns how many."""
    try:
        with path.open("w", encoding="utf-8") as file:
            return sum(file.write(line) > 0 for line in _lines(seed))
    except OSError as error:
        raise InvalidValue(f"{path} cannot be written: {error.strerror}", field="file") from error


def _lines(seed: int) -> Iterator[str]:
    for item in digits(seed).items:
        image = np.array(item["payload"]["image"], dtype=np.float64)
        yield json.dumps(item | {"payload": _payload(image)}) + "\n"


def _payload(image: NDArray[np.float64]) -> dict[str, Any]:
    encoded = base64.b64encode(png(image)).decode()
    return {
        "instructions": "Which digit is this?",
        "image": {"src": f"data:image/png;base64,{encoded}", "alt": "A handwritten digit"},
        "choices": _DIGITS,
    }


@cache
def _enlarging(side: int) -> NDArray[np.float64]:
    """The matrix that enlarges one side of a picture, as `zoom` would each by itself."""
    enlarging: NDArray[np.float64] = zoom(np.eye(side), (ENLARGED, 1), order=3)
    return enlarging


def png(image: NDArray[np.float64]) -> bytes:
    """Return a digit, whose pixels are 0 to 16, as a small PNG, dark on white."""
    padded = np.pad(image, MARGIN)
    enlarging = _enlarging(len(padded))
    smooth = np.clip(enlarging @ padded @ enlarging.T, 0.0, 16.0)
    levels = np.rint(_BRIGHTEST - smooth * (_BRIGHTEST / 16.0)).astype(np.uint8)
    # Two pixels a byte, each line begun by the number of its filter: none
    pairs = (levels[:, ::2] << 4) | levels[:, 1::2]
    lines = np.insert(pairs, 0, 0, axis=1)
    height, width = levels.shape
    head = struct.pack(">IIBBBBB", width, height, _BITS, _GREY, 0, 0, 0)
    parts = (b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_part(name, data) for name, data in parts)


def _part(name: bytes, data: bytes) -> bytes:
    check = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)
