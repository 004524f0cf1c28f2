"""Canonical JSON, and plain values read as what they are or refused at their place."""

import math
import struct
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from celeus.core.canonical import canonical_json
from celeus.core.plain import Mismatch, number, whole
from celeus.core.plans.stopping import StopReason

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53) + 1, 2**53 - 1)
TEXTS = st.text(st.characters(codec="utf-8")) | st.text(st.characters(codec="ascii"))
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner) | st.tuples(inner, inner),
    max_leaves=30,
)
BITS = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])


@given(VALUES)
@example({"\ue000": 1, "\U00010000": 2})
@example({"é": [1e21, 1e-7, {}], "": -0.0})
@example([1e-05, -1e-05, 9.99e-07, -1e-07, 1e16, 2.0**53, 1e20, 1.0, -3.0, 5e-324])
@example('\x00\x1f\x7f\\"/\b\f\n\r\t\u2028')
@example({"reason": StopReason.TARGET_REACHED, "flag": True})
def test_a_value_is_spelled_as_the_library_spells_it(value: Any) -> None:  # noqa: ANN401 -- JSON
    assert canonical_json(value) == rfc8785.dumps(value)


@given(BITS.filter(math.isfinite) | st.floats(-1e-3, 1e-3) | st.integers(-30, 30).map(math.exp))
def test_a_number_is_spelled_as_the_library_spells_it(value: float) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


@pytest.mark.parametrize("digits", ["1", "9", "1.5", "9.999999999999999", "1.0794782437874501"])
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_number_of_any_size_is_spelled_as_the_library_spells_it(digits: str, sign: str) -> None:
    for exponent in range(-30, 31):
        value = float(f"{sign}{digits}e{exponent}")
        assert canonical_json(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        [math.inf],
        {"a": -math.inf},
        2**53,
        {1: "a"},
        ["\ud800"],
        {"\udfff": 0},
        {"a": {1}},
    ],
)
def test_what_has_no_canonical_form_is_a_value_error(value: Any) -> None:  # noqa: ANN401 -- JSON
    with pytest.raises(ValueError, match=r"."):
        rfc8785.dumps(value)
    with pytest.raises(ValueError, match=r"."):
        canonical_json(value)


@pytest.mark.parametrize("value", [True, None, "1", [], math.nan, math.inf, -math.inf, 10**400])
def test_what_is_no_finite_number_is_refused(value: object) -> None:
    for read in (number, whole):
        with pytest.raises(Mismatch) as refused:
            read(value, "plan.alpha")
        assert refused.value.where == "plan.alpha"


def test_numbers_are_read_within_their_limits() -> None:
    assert number(2, "x") == 2.0
    assert whole(2.0, "x") == 2
    for value in (-0.1, 1.1):
        with pytest.raises(Mismatch):
            number(value, "x", 0, 1)
    with pytest.raises(Mismatch):
        whole(0.5, "x")
