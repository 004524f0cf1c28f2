import hashlib
from typing import Any

import numpy as np
import pytest
import rfc8785
from numpy.typing import NDArray

from celeus.core.canonical import canonical_json
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import CHAIN_START, Pool, chain
from celeus.core.pools.rows.assembly import assemble
from celeus.errors import InvalidValue

ZERO_ONE = LossScale.of("zero_one")


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
    records = [canonical_json([f"item-{index}", None]) for index in range(10)]
    at_once = chain(CHAIN_START, records)
    in_parts = chain(chain(CHAIN_START, records[:3]), records[3:])
    assert at_once == in_parts
    assert at_once != chain(CHAIN_START, records[::-1])


def test_the_digests_are_taken_over_rfc_8785() -> None:
    """Spellings in which other canonical forms differ: exponents, signed zeros, far letters."""
    scale = LossScale.of("bounded", -1e-05, 1e-07)
    groups = ("\U00010000", "\ue000")
    far = Pool(2, scale, {"proxy": np.zeros(2)}, groups, bytes(32))
    header: dict[str, Any] = far.header()
    assert far.digest == hashlib.sha256(rfc8785.dumps(header)).hexdigest()
    payload: dict[str, Any] = {
        "\ue000": [1e-05, -1e-05, 1e-7, -0.0, 2.0],
        "\U00010000": 2**53 - 1,
        "é": "\x7f",
    }
    row = {"id": "\U0001f600", "payload": payload}
    (record,) = assemble([1], [row], scale, None).batch.records()
    assert record == rfc8785.dumps(["\U0001f600", payload])


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
