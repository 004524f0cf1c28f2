import hashlib
import json
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from app.core.losses import LossScale
from app.core.pool import CHAIN_START, Pool, canonical, chain
from app.errors import InvalidValue

ZERO_ONE = LossScale.of("zero_one")
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc\u00e9\U0001f600"), inner),
    max_leaves=8,
)


def pool(**columns: NDArray[Any]) -> Pool:
    return Pool(2, ZERO_ONE, columns, (), bytes(32))


def test_the_digest_follows_from_the_header_alone() -> None:
    column = np.array([0.25, 1.0])
    header = (
        '{"columns":[{"dtype":"<f8","name":"proxy","sha256":"'
        + hashlib.sha256(column.tobytes()).hexdigest()
        + '"}],"groups":[],"items":2,"items_digest":"'
        + "00" * 32
        + '","loss":{"kind":"zero_one","lower":0,"upper":1}}'
    )
    assert pool(proxy=column).digest == hashlib.sha256(header.encode()).hexdigest()


def test_every_part_of_a_pool_changes_its_digest() -> None:
    column = np.array([0.25, 1.0])
    base = pool(proxy=column)
    others = [
        Pool(2, LossScale.of("bounded", 0.0, 1.0), {"proxy": column}, (), bytes(32)),
        Pool(2, ZERO_ONE, {"proxy": column[::-1]}, (), bytes(32)),
        Pool(2, ZERO_ONE, {"other": column}, (), bytes(32)),
        Pool(2, ZERO_ONE, {"proxy": column.astype("<f4")}, (), bytes(32)),
        Pool(2, ZERO_ONE, {"proxy": column}, ("g",), bytes(32)),
        Pool(2, ZERO_ONE, {"proxy": column}, (), b"1" * 32),
        Pool(3, ZERO_ONE, {"proxy": column}, (), bytes(32)),
    ]
    assert len({base.digest, *(other.digest for other in others)}) == len(others) + 1


def test_the_chain_is_the_same_in_one_import_and_in_many() -> None:
    records = [canonical([f"item-{index}", None]) for index in range(10)]
    at_once = chain(CHAIN_START, records)
    in_parts = chain(chain(CHAIN_START, records[:3]), records[3:])
    assert at_once == in_parts
    assert at_once != chain(CHAIN_START, records[::-1])


def as_doubles(value: object) -> object:
    if isinstance(value, dict):
        return {key: as_doubles(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_doubles(inner) for inner in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@given(JSON)
def test_canonical_json_says_the_same_value(value: object) -> None:
    assert as_doubles(json.loads(canonical(value))) == as_doubles(value)


@given(JSON)
def test_canonical_json_survives_readers_that_change_the_kind_of_a_number(value: object) -> None:
    once = canonical(value)
    assert canonical(json.loads(once)) == once
    # As orjson and PostgreSQL's jsonb do: 1e16 and 10000000000000000 are one number to them.
    assert canonical(json.loads(json.dumps(value))) == once
    assert canonical(orjson.loads(once)) == once


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": object()}, "\ud800"])
def test_what_is_not_json_has_no_canonical_form(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        canonical(value)


def test_a_loss_follows_from_a_prediction_or_from_probabilities() -> None:
    probabilities = np.array([[0.25, 0.75], [0.5, 0.5]], dtype=np.float32)
    assert pool(prediction=np.array([1, 0], dtype=np.int32)).loss_of_label(0, 1) == 0.0
    assert pool(target_probs=probabilities).loss_of_label(0, 0) == 1.0
    entropy = Pool(
        2, LossScale.of("cross_entropy", upper=5.0), {"target_probs": probabilities}, (), bytes(32)
    )
    assert entropy.loss_of_label(0, 0) == pytest.approx(np.log(4.0))
    assert entropy.classes == 2
    with pytest.raises(InvalidValue):
        entropy.loss_of_label(0, 2)


def test_a_label_is_refused_where_no_loss_follows() -> None:
    with pytest.raises(InvalidValue) as refused:
        pool(proxy=np.zeros(2)).loss_of_label(0, 1)
    assert refused.value.field == "label"
