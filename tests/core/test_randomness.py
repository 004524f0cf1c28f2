"""Random words are the same for ever, for everybody, in any order of reading."""

import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from celeus.core.randomness import commitment, uniforms

WORD = 2**64 - 1


def philox_block(counter: int, key: tuple[int, int]) -> list[int]:
    """Philox4x64-10 of Salmon et al. 2011, written from the paper."""
    a, b, c, d = counter & WORD, (counter >> 64) & WORD, 0, 0
    first, second = key
    for _ in range(10):
        left, right = 0xD2E7470EE14C6C93 * a, 0xCA5A826395121157 * c
        a, b, c, d = (right >> 64) ^ b ^ first, right & WORD, (left >> 64) ^ d ^ second, left & WORD
        first = (first + 0x9E3779B97F4A7C15) & WORD
        second = (second + 0xBB67AE8584CAA73B) & WORD
    return [a, b, c, d]


def test_a_fixed_seed_gives_fixed_numbers() -> None:
    assert [number.hex() for number in uniforms(b"seed", "coin", 5)] == [
        "0x1.f48dd112ae7b2p-3",
        "0x1.1ff00df404e4ep-3",
        "0x1.ff9093ebf2d0ep-1",
        "0x1.4ca53d0e71eb0p-1",
        "0x1.6b0a747296be9p-2",
    ]
    assert uniforms(b"seed", "weight", 3, start=10).tolist() == [
        0.6263330396708506,
        0.6689151187741771,
        0.9321109890625938,
    ]


def test_the_words_are_those_of_the_published_generator() -> None:
    digest = hashlib.sha256(b"coin\0seed").digest()
    key = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little")
    # numpy counts before it mixes: its first block is that of counter 1.
    words = [word for block in (1, 2, 3) for word in philox_block(block, key)]
    expected = [((word >> 11) + 0.5) * 2.0**-53 for word in words]
    assert uniforms(b"seed", "coin", 12).tolist() == expected


@given(st.binary(max_size=40), st.text(max_size=10), st.integers(0, 5000), st.integers(1, 50))
def test_reading_from_anywhere_gives_what_reading_from_the_start_gives(
    seed: bytes, purpose: str, start: int, count: int
) -> None:
    whole = uniforms(seed, purpose, start + count)
    assert uniforms(seed, purpose, count, start).tolist() == whole[start:].tolist()


def test_streams_differ_by_seed_and_by_purpose() -> None:
    streams = {
        tuple(uniforms(seed, purpose, 4))
        for seed in (b"a", b"b")
        for purpose in ("coin", "weight", "uniform")
    }
    assert len(streams) == 6


def test_numbers_are_strictly_inside_the_unit_interval_and_even() -> None:
    numbers = uniforms(b"seed", "uniform", 100_000)
    assert 0.0 < numbers.min() < numbers.max() < 1.0
    counts = np.histogram(numbers, bins=100, range=(0.0, 1.0))[0]
    # Chi-square with 99 degrees of freedom: above 149 with probability 1e-3.
    assert ((counts - 1000.0) ** 2 / 1000.0).sum() < 149.0


def test_the_commitment_is_the_published_hash_of_the_seed() -> None:
    assert commitment(b"seed") == (
        "19b25856e1c150ca834cffc8b59b23adbd0ec0389e58eb22b3b64768098d002b"
    )
    assert commitment(b"seed") != commitment(b"Seed")
