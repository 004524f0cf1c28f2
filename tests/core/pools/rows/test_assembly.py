import copy
import json
import math
from functools import partial
from typing import Any

import numpy as np
import orjson
import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from celeus.core.pools.losses import LossScale
from celeus.core.pools.rows.assembly import Assembly, assemble, encode_groups
from celeus.core.pools.rows.validation import (
    MAX_PAYLOAD_BYTES,
    MAX_PAYLOAD_VALUES,
    MalformedRow,
    Shape,
    encode_payload,
    row_faults,
)
from tests.nightly import NIGHTLY

ZERO_ONE = LossScale.of("zero_one")
CROSS_ENTROPY = LossScale.of("cross_entropy", upper=4.0)
BOUNDED = LossScale.of("bounded", -1.0, 2.0)
WIDE = ('{"a": [' + "0, " * 100)[:100] + "…"
SMALL = ('{"a": [' + "5e-324, " * 100)[:100] + "…"


def nested(levels: int) -> object:
    """So many objects within each other."""
    return {"a": nested(levels - 1)} if levels else 1


def assembled(*rows: object, scale: LossScale = ZERO_ONE, shape: Shape | None = None) -> Assembly:
    return assemble(range(1, len(rows) + 1), rows, scale, shape)


def only_fault(*rows: object, scale: LossScale = ZERO_ONE) -> tuple[int, str, str, object]:
    (fault,) = assembled(*rows, scale=scale).faults
    return fault.line, fault.field, fault.rule, fault.value


def test_good_rows_become_columns_in_their_order() -> None:
    found = assembled(
        {"id": "a", "surrogate": 0.25, "proxy": 1, "group": "x", "payload": {"b": 1.0, "a": "é"}},
        {"id": "b", "proxy": 0.0, "surrogate": 1, "group": "y"},
    )
    assert found.faults == []
    assert found.batch.ids == ["a", "b"]
    assert found.batch.payloads == ['{"a":"é","b":1}'.encode(), None]
    assert found.batch.columns["surrogate.0"].tolist() == [0.25, 1.0]
    assert found.batch.columns["proxy"].tolist() == [1.0, 0.0]
    assert list(found.batch.records())[1] == b'["b",null]'
    assert found.shape == Shape(surrogates=1, proxy=True, group=True)


def test_probabilities_become_columns_and_stay_as_float32() -> None:
    found = assembled(
        {"id": "a", "target_probs": [0.7, 0.3], "surrogate_probs": [0.2, 0.8], "prediction": 1}
    )
    columns = found.batch.columns
    assert sorted(columns) == ["dispersion_f", "hard", "prediction", "soft", "target_probs"]
    assert columns["target_probs"].dtype == np.float32
    assert columns["prediction"].tolist() == [1]
    assert found.shape is not None
    assert found.shape.classes == 2


def test_probabilities_within_the_tolerance_are_divided_by_their_sum() -> None:
    found = assembled({"id": "a", "target_probs": [0.3333, 0.3333, 0.3333]})
    assert found.batch.columns["target_probs"][0].sum() == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize(
    ("row", "field", "value"),
    [
        ({"surrogate": 0.5}, "id", None),
        ({"id": "", "surrogate": 0.5}, "id", ""),
        ({"id": "x" * 257}, "id", "x" * 100 + "…"),
        ({"id": 7}, "id", 7),
        ({"id": "a\0"}, "id", "a\0"),
        ({"id": "\ud800"}, "id", "\\ud800"),
        ({"id": "a", "surrogate": "0.5"}, "surrogate", "0.5"),
        ({"id": "a", "surrogate": True}, "surrogate", True),
        ({"id": "a", "surrogate": math.nan}, "surrogate", "NaN"),
        ({"id": "a", "surrogate": math.inf}, "surrogate", "Infinity"),
        ({"id": "a", "surrogate": 10**400}, "surrogate", str(10**400)[:100] + "…"),
        ({"id": "a", "surrogate": 1.5}, "surrogate", 1.5),
        ({"id": "a", "proxy": -0.1}, "proxy", -0.1),
        ({"id": "a", "surrogates": []}, "surrogates", []),
        ({"id": "a", "surrogates": [0.5, 2.0]}, "surrogates[1]", 2.0),
        ({"id": "a", "surrogates": [0.5], "surrogate": 0.5}, "surrogates", [0.5]),
        ({"id": "a", "target_probs": [0.5, 0.4]}, "target_probs", 0.9),
        ({"id": "a", "target_probs": [1.0]}, "target_probs", [1.0]),
        ({"id": "a", "target_probs": [1.5, -0.5]}, "target_probs[0]", 1.5),
        ({"id": "a", "target_probs": [False, 1]}, "target_probs[0]", False),
        ({"id": "a", "target_probs": "half"}, "target_probs", "half"),
        ({"id": "a", "surrogate_probs": [0.5, 0.5]}, "surrogate_probs", [0.5, 0.5]),
        (
            {"id": "a", "target_probs": [0.5, 0.5], "surrogate_probs": [0.5, 0.25, 0.25]},
            "surrogate_probs",
            3,
        ),
        ({"id": "a", "prediction": 1.0}, "prediction", 1.0),
        ({"id": "a", "prediction": -1}, "prediction", -1),
        ({"id": "a", "prediction": 2, "target_probs": [0.5, 0.5]}, "prediction", 2),
        ({"id": "a", "group": 3}, "group", 3),
        ({"id": "a", "weight": 0}, "weight", 0),
        ({"id": "a", "weight": -1.5}, "weight", -1.5),
        ({"id": "a", "weight": math.nan}, "weight", "NaN"),
        ({"id": "a", "weight": 1e16}, "weight", 1e16),
        ({"id": "a", "weight": "1"}, "weight", "1"),
        ({"id": "a", "payload": [1]}, "payload", [1]),
        ({"id": "a", "payload": {"x": math.nan}}, "payload.x", "NaN"),
        ({"id": "a", "payload": {"x": [0, {"y": 2**53}]}}, "payload.x[1].y", "9007199254740992"),
        ({"id": "a", "payload": {"x": -(2.0**53)}}, "payload.x", -9007199254740992.0),
        # What orjson makes of a whole number of more than 64 bits.
        ({"id": "a", "payload": {"x": 2.0**64}}, "payload.x", 1.8446744073709552e19),
        ({"id": "a", "payload": {"x": 1e300}}, "payload.x", 1e300),
        ({"id": "a", "payload": "\0"}, "payload", "\0"),
        ({"id": "a", "payload": "x" * MAX_PAYLOAD_BYTES}, "payload", "x" * 100 + "…"),
        ({"id": "a", "payload": {"a": [0] * MAX_PAYLOAD_VALUES}}, "payload", WIDE),
        ({"id": "a", "payload": {"a": [5e-324] * 4000}}, "payload", SMALL),
        ({"id": "a", "payload": nested(101)}, "payload", ('{"a": ' * 17)[:100] + "…"),
        ({"id": "a", "\ud800": 3}, "\\ud800", 3),
        ({"id": "a", "x" * 10**6: 3}, "x" * 100, 3),
        ({"id": "a", "colour": 3}, "colour", 3),
        (["a"], "", ["a"]),
        (None, "", None),
        (MalformedRow("a JSON object", "{"), "", "{"),
    ],
)
def test_a_bad_row_is_told_by_line_field_and_value(row: object, field: str, value: object) -> None:
    line, found_field, rule, found_value = only_fault(row)
    assert (line, found_field, found_value) == (1, field, value)
    assert rule


@pytest.mark.parametrize("name", ["target_probs", "surrogate_probs", "prediction"])
def test_a_bounded_pool_takes_nothing_a_loss_could_be_computed_from(name: str) -> None:
    row: dict[str, object] = {"id": "a", "target_probs": [0.5, 0.5]}
    row[name] = 1 if name == "prediction" else [0.5, 0.5]
    assert name in {fault.field for fault in assembled(row, scale=BOUNDED).faults}


def test_a_payload_may_be_a_hundred_levels_deep() -> None:
    assert assembled({"id": "a", "payload": nested(100)}).faults == []


def test_a_payload_is_as_wide_as_it_may_be() -> None:
    """Commas in texts are no values, and small numbers count with their zeros only."""
    widest = {"a": [0] * (MAX_PAYLOAD_VALUES - 1)}
    texts = {"a": "," * (MAX_PAYLOAD_BYTES - 100), "b": 1e-7, "c": "1e-300"}
    assert assembled({"id": "a", "payload": widest}, {"id": "b", "payload": texts}).faults == []


def test_long_digits_are_taken_as_text_and_short_numbers_as_they_are() -> None:
    payload = {"id": "12345678901234567890", "n": [2**53 - 1, 1 - 2**53, 0.1234567890123456, 1e-9]}
    assert assembled({"id": "a", "payload": payload}).faults == []


PAYLOADS = st.dictionaries(
    st.text(st.characters(codec="utf-8"), max_size=3),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.floats()
        | st.text(st.characters(codec="utf-8")),
        lambda inner: st.lists(inner) | st.dictionaries(st.text("ab\ue000\U0001f600"), inner),
        max_leaves=8,
    ),
)


@settings(max_examples=100 if NIGHTLY else 30)
@given(PAYLOADS)
def test_a_payload_that_is_taken_is_the_same_to_every_reader(payload: dict[str, Any]) -> None:
    encoded = encode_payload(payload)
    if encoded is None:
        assert row_faults({"id": "a", "payload": payload}, ZERO_ONE, None)
        return
    assert encoded == rfc8785.dumps(payload)
    for read in (orjson.loads, json.loads, partial(json.loads, parse_int=float)):
        assert rfc8785.dumps(read(encoded)) == encoded


def test_a_payload_may_speak_of_u0000_without_holding_it() -> None:
    assert assembled({"id": "a", "payload": "\\u0000 \\"}).faults == []


@given(st.lists(st.sampled_from(["\\", "u0000", "\0", "n", "\n", '"']), max_size=8))
def test_a_payload_is_refused_where_it_holds_u0000_and_only_there(parts: list[str]) -> None:
    payload = "".join(parts)
    assert (encode_payload(payload) is None) == ("\0" in payload)


def test_a_field_missing_on_some_rows_is_a_fault() -> None:
    first = {"id": "a", "surrogate": 0.5, "group": "g"}
    assert only_fault(first, {"id": "b", "group": "g"})[:2] == (2, "surrogate")
    assert only_fault(first, {"id": "b", "surrogate": 0.5})[:2] == (2, "group")
    assert only_fault(first, first | {"id": "b", "proxy": 0.5})[:2] == (2, "proxy")
    (fault,) = assembled({"id": "a"}, {"id": "b", "group": "g"}).faults
    assert fault.rule == "left out, as in the items before, which lack it"


def test_lists_have_one_length_throughout() -> None:
    rows = {"id": "a", "surrogates": [0.1, 0.2]}, {"id": "b", "surrogates": [0.1]}
    assert only_fault(*rows)[:2] == (2, "surrogates")
    rows = {"id": "a", "target_probs": [0.5, 0.5]}, {"id": "b", "target_probs": [0.5, 0.25, 0.25]}
    assert only_fault(*rows)[:2] == (2, "target_probs")


def test_rows_must_have_the_shape_of_earlier_uploads() -> None:
    shape = Shape.of_columns(["surrogate.0", "surrogate.1"], None)
    faults = assembled({"id": "a", "surrogates": [0.5]}, shape=shape).faults
    assert [(fault.field, fault.rule) for fault in faults] == [
        ("surrogates", "2 numbers, as before")
    ]


@pytest.mark.parametrize("scale", [ZERO_ONE, CROSS_ENTROPY])
def test_the_shape_of_a_row_can_be_read_from_its_columns(scale: LossScale) -> None:
    row: dict[str, Any] = {
        "id": "a",
        "surrogates": [0.5, 0.25],
        "proxy": 0.5,
        "target_probs": [0.5, 0.5],
        "surrogate_probs": [0.5, 0.5],
    }
    found = assembled(row, scale=scale)
    assert found.shape == Shape.of_columns(list(found.batch.columns), 2)


def test_a_duplicate_within_the_rows_is_told_and_the_first_one_stays() -> None:
    found = assembled({"id": "a"}, {"id": "b"}, {"id": "a"})
    assert [(fault.line, fault.field, fault.value) for fault in found.faults] == [(3, "id", "a")]
    assert found.batch.ids == ["a", "b"]


def test_null_means_left_out() -> None:
    found = assembled({"id": "a", "surrogate": 0.5, "proxy": None}, {"id": "b", "surrogate": 1})
    assert found.faults == []
    assert "proxy" not in found.batch.columns


def test_one_surrogate_may_be_spelt_either_way() -> None:
    found = assembled({"id": "a", "surrogate": 0.5}, {"id": "b", "surrogates": [0.25]})
    assert found.faults == []
    assert found.batch.columns["surrogate.0"].tolist() == [0.5, 0.25]


def test_groups_keep_their_codes_when_more_come() -> None:
    first = encode_groups(["b", "a", "b"], {})
    assert first == {"b": 0, "a": 1}
    assert encode_groups(["c", "a"], first) == {"b": 0, "a": 1, "c": 2}


def test_a_batch_without_some_ids_is_the_batch_of_the_others() -> None:
    rows = [{"id": name, "surrogate": at, "group": name} for name, at in (("a", 0), ("b", 1))]
    batch = assembled(*rows).batch.without({"a"})
    assert (batch.lines, batch.ids, batch.groups) == ([2], ["b"], ["b"])
    assert batch.columns["surrogate.0"].tolist() == [1.0]


NUMBERS = st.sampled_from([0, 1, 0.25, 0.5, 1.0, 1.5, -0.5, 3.0, math.nan, True, "0.5", None])
ROWS = st.fixed_dictionaries(
    {"id": st.sampled_from(["a", "b", "c", "d", "é", "", 7])},
    optional={
        "surrogate": NUMBERS,
        "surrogates": st.lists(NUMBERS, max_size=2),
        "proxy": NUMBERS,
        "target_probs": st.sampled_from(
            [[0.5, 0.5], [1, 0], [0.5, 0.4], [0.2, 0.3, 0.5], [1.0], [], [0.9995, 0], "x"]
        ),
        "surrogate_probs": st.sampled_from([[0.5, 0.5], [0.25, 0.25, 0.5], [0.5, 0.6]]),
        "prediction": st.sampled_from([0, 1, 5, -1, True, 1.0, 2**31]),
        "group": st.sampled_from(["g", "h", "", 1]),
        "weight": NUMBERS,
        "payload": st.sampled_from(
            ["text", {"a": [1.0, None]}, {"a": math.nan}, {"a": [2**53]}, {"a": 1e16}, 3, "\0"]
        ),
        "other": st.just(1),
    },
)


@settings(max_examples=500)
@given(st.lists(ROWS, max_size=5), st.sampled_from([ZERO_ONE, CROSS_ENTROPY, BOUNDED]))
def test_checking_at_once_and_row_by_row_agree(
    rows: list[dict[str, Any]], scale: LossScale
) -> None:
    before = copy.deepcopy(rows)
    found = assembled(*rows, scale=scale)
    bad = {fault.line for fault in found.faults}
    assert sorted(bad | set(found.batch.lines)) == list(range(1, len(rows) + 1))
    assert not bad & set(found.batch.lines)
    shape = None
    seen: set[str] = set()
    for line, row in enumerate(rows, start=1):
        present = {name: value for name, value in row.items() if value is not None}
        good = not row_faults(present, scale, shape) and row["id"] not in seen
        assert good == (line not in bad)
        if good:
            shape = shape or Shape.of_row(present)
            seen.add(row["id"])
    assert repr(rows) == repr(before)
    for column in found.batch.columns.values():
        assert len(column) == len(found.batch.ids)
        assert np.isfinite(column).all()


def test_what_is_stated_of_single_losses_stands_beside_items_without_it() -> None:
    found = assembled(
        {"id": "a", "surrogate": 0.5, "known": {"loss": 1, "reason": "empty answer"}},
        {"id": "b", "surrogate": 0.5},
        {"id": "c", "surrogate": 0.5, "loss_upper": 1.5},
        {"id": "d", "surrogate": 0.5, "loss_lower": 0.0, "loss_upper": 1.0},
        scale=BOUNDED,
    )
    assert found.faults == []
    assert found.batch.columns["loss_lower"].tolist() == [1.0, -1.0, -1.0, 0.0]
    assert found.batch.columns["loss_upper"].tolist() == [1.0, 2.0, 1.5, 1.0]
    assert found.batch.reasons == ["empty answer", "", "", ""]
    assert "loss_lower" not in assembled({"id": "a"}).batch.columns


def test_a_known_loss_may_follow_from_a_label() -> None:
    known = {"label": 1, "reason": "the key says so"}
    found = assembled({"id": "a", "prediction": 0, "known": known}, {"id": "b", "prediction": 0})
    assert found.batch.columns["loss_lower"].tolist() == [1.0, 0.0]
    entropy = assembled(
        {"id": "a", "target_probs": [0.25, 0.75], "known": known}, scale=CROSS_ENTROPY
    )
    assert entropy.batch.columns["loss_upper"][0] == pytest.approx(-np.log(0.75))


@pytest.mark.parametrize(
    ("row", "scale", "field"),
    [
        ({"known": {"loss": 3.0, "reason": "r"}}, BOUNDED, "known.loss"),
        ({"known": {"loss": 0.5, "reason": "r"}}, ZERO_ONE, "known.loss"),
        ({"known": {"loss": 1.0}}, BOUNDED, "known.reason"),
        ({"known": {"loss": 1.0, "reason": " "}}, BOUNDED, "known.reason"),
        ({"known": {"label": 1, "reason": "r"}}, BOUNDED, "known.label"),
        ({"known": {"label": 1, "reason": "r"}}, ZERO_ONE, "known.label"),
        ({"prediction": 1, "known": {"label": -1, "reason": "r"}}, ZERO_ONE, "known.label"),
        ({"known": {"reason": "r"}}, BOUNDED, "known"),
        ({"known": {"loss": 1.0, "label": 1, "reason": "r"}}, BOUNDED, "known"),
        ({"known": 1.0}, BOUNDED, "known"),
        ({"known": {"loss": 1.0, "reason": "r", "x": 1}}, BOUNDED, "known"),
        ({"loss_lower": 1.0, "loss_upper": 0.5}, BOUNDED, "loss_upper"),
        ({"loss_lower": 1.0, "loss_upper": 1.0}, BOUNDED, "loss_upper"),
        ({"loss_lower": -2.0}, BOUNDED, "loss_lower"),
        ({"loss_lower": 2.0}, BOUNDED, "loss_lower"),
        ({"loss_upper": float("nan")}, BOUNDED, "loss_upper"),
        ({"loss_upper": 0.5}, ZERO_ONE, "loss_upper"),
        ({"loss_upper": 0.5, "known": {"loss": 0.0, "reason": "r"}}, BOUNDED, "loss_upper"),
    ],
)
def test_what_cannot_be_stated_is_refused_by_name(
    row: dict[str, Any], scale: LossScale, field: str
) -> None:
    assert only_fault({"id": "a"} | row, scale=scale)[1] == field
