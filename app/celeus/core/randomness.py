"""Reproducible randomness: Philox words keyed by a session's secret seed.

A stream is named by its purpose. Word ``i`` of a stream depends on the seed, the purpose and
``i`` alone, so it can be reread at any time and in any process. The words are Philox's raw 64-bit
output (Salmon et al. 2011); the way from a word to a uniform number is written here, because
numpy's distributions may change between versions and a certificate must verify for ever.

Streams in use (part of the method version): ``coin`` decides round ``t`` with word ``t - 1``,
``weight`` and ``uniform`` hold one word per item for the two draw orders. With strata the coin
chooses the stratum and ``uniform`` orders the items within each. In a comparison of two systems
``side`` says of round ``t`` with word ``t - 1`` which answer its judge sees on the left.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

WORDS_PER_BLOCK = 4
NUMBERS_AT_ONCE = 4096


def commitment(seed: bytes) -> str:
    """Return the SHA-256 of the seed in hexadecimal, published before the seed is."""
    return hashlib.sha256(seed).hexdigest()


def uniforms(seed: bytes, purpose: str, count: int, start: int = 0) -> NDArray[np.float64]:
    """Return numbers ``start`` to ``start + count - 1`` of a stream, each strictly in (0, 1)."""
    digest = hashlib.sha256(purpose.encode() + b"\0" + seed).digest()
    block, skipped = divmod(start, WORDS_PER_BLOCK)
    philox = np.random.Philox(
        key=np.frombuffer(digest[:16], dtype="<u8"),
        counter=np.array([block, 0, 0, 0], dtype=np.uint64),
    )
    words = philox.random_raw(skipped + count)[skipped:]
    # 53 bits and half a step: never 0 (its logarithm is taken) and never 1.
    return np.asarray(((words >> np.uint64(11)) + 0.5) * 2.0**-53, dtype=np.float64)


class Numbers:
    """Iterator over a stream's numbers, which are made in blocks."""

    __slots__ = ("_made", "_purpose", "_seed", "_used")

    def __init__(self, seed: bytes, purpose: str) -> None:
        self._seed = seed
        self._purpose = purpose
        self._used = 0
        self._made: NDArray[np.float64] = np.empty(0)

    def next(self) -> float:
        """Return the next number, strictly between 0 and 1."""
        place = self._used % NUMBERS_AT_ONCE
        if place == 0:
            self._made = uniforms(self._seed, self._purpose, NUMBERS_AT_ONCE, self._used)
        self._used += 1
        return float(self._made[place])
