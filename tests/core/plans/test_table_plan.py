"""The plan of many claims: its levels, its groups, its digest, and what it refuses by name."""

import json
from dataclasses import replace

import numpy as np
import pytest

from celeus.core.plans.stopping import Question
from celeus.core.plans.table_plan import MOST_CLAIMS, TableClaim, TablePlan, TableSettings
from celeus.core.pools.table_pool import Column, Table
from celeus.errors import InvalidValue, NothingToJudge
from tests.core.tables import planned, table_of

LOSSES = np.random.default_rng(2).integers(0, 2, (200, 2)).astype(float)
SIZES = {"u": 90, "v": 60, "w": 29, "x": 20, "y": 1}
GROUPS = [name for name, size in SIZES.items() for _ in range(size)]


def table() -> Table:
    return table_of(LOSSES, GROUPS)


def test_small_groups_are_merged_or_judged_whole() -> None:
    merged = [(one.value, one.items) for one in planned(table()).claims if one.metric == "a"]
    assert merged == [(None, 200), ("u", 90), ("v", 60), ("other", 50)]
    whole = planned(table(), TableSettings(small_groups="whole", group_precision={"a": 0.2}))
    parts = {one.value: one for one in whole.claims if one.metric == "a"}
    assert [value for value, one in parts.items() if one.whole] == ["w", "x", "y"]
    assert parts["w"].level == 0.0
    assert parts["w"].precision is None
    assert parts["u"].precision == 0.2


def test_one_small_group_alone_is_judged_whole() -> None:
    plan = planned(table_of(LOSSES, ["u"] * 190 + ["v"] * 10))
    assert [one.whole for one in plan.claims if one.value == "v"] == [True, True]


def test_levels_add_up_to_alpha_where_all_hold_together() -> None:
    plan = planned(table(), TableSettings(account="together"))
    assert sum(one.level for one in plan.claims) == pytest.approx(0.05)
    overall = [one.level for one in plan.claims if one.column is None]
    assert overall == pytest.approx([0.005, 0.005])
    assert {one.level for one in planned(table()).claims} == {0.05}


def test_a_reserve_is_kept_from_the_levels_and_spent_by_later_claims() -> None:
    plan = planned(table(), TableSettings(account="together", reserve=0.01))
    assert sum(one.level for one in plan.claims) == pytest.approx(0.04)
    first = plan.later(TableClaim("a", 0, 0.006, "x", "u", precision=0.2), [])
    assert (first.items, first.level, first.name) == (90, 0.006, "a, x u")
    plan.later(TableClaim("a", 0, 0.004, precision=0.3), [first])
    with pytest.raises(InvalidValue, match=r"at most 0\.004") as refusal:
        plan.later(TableClaim("a", 0, 0.0041), [first])
    assert refusal.value.field == "level"
    for stranger in (TableClaim("z", 0, 0.001), TableClaim("a", 0, 0.001, "x", "z")):
        with pytest.raises(InvalidValue) as refusal:
            plan.later(stranger, [])
        assert refusal.value.field == "claim"
    whole = planned(table(), TableSettings(account="together", reserve=0.01, small_groups="whole"))
    with pytest.raises(InvalidValue, match="whole"):
        whole.later(TableClaim("a", 0, 0.001, "x", "w"), [])
    with pytest.raises(InvalidValue, match="at most 0"):
        planned(table()).later(TableClaim("a", 0, 0.001), [])


def test_a_claim_is_added_once_and_to_no_fixed_session() -> None:
    wish = TableSettings(account="together", reserve=0.01, precision={"a": 0.2})
    plan = planned(table(), wish)
    asked = TableClaim("a", 0, 0.002, precision=0.3)
    first = plan.later(asked, [])
    plan.later(replace(asked, level=0.001), [first])
    with pytest.raises(InvalidValue, match="that is there") as refusal:
        plan.later(asked, [first])
    assert refusal.value.field == "claim"
    # The very claim of the opening, at its level
    with pytest.raises(InvalidValue, match="that is there"):
        plan.later(replace(plan.claims[0], items=0), [])
    with pytest.raises(InvalidValue) as refusal:
        replace(plan, fixed=True).later(asked, [])
    assert refusal.value.field == "fixed"
    many = [replace(first, level=1e-9)] * (MOST_CLAIMS - len(plan.claims))
    with pytest.raises(InvalidValue) as refusal:
        plan.later(asked, many)
    assert refusal.value.field == "claims"


def test_a_plan_survives_json_with_its_digest() -> None:
    wish = TableSettings(
        precision={"a": 0.1}, questions={"b": (Question("at_most", 0.4),)}, account="together"
    )
    plan = planned(table(), wish)
    again = TablePlan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert again == plan
    assert again.digest == plan.digest
    assert planned(table(), TableSettings(precision={"a": 0.11})).digest != plan.digest
    kept = planned(table(), replace(wish, reserve=0.01))
    assert TablePlan.from_dict(json.loads(json.dumps(kept.to_dict()))) == kept
    assert "reserve" not in plan.to_dict()


REFUSED = {
    "levels that add up to more": (
        TableSettings(account="together", levels=[0.02] * 8),
        "claims.level",
    ),
    "a level above alpha": (TableSettings(levels=[0.06] + [0.05] * 7), "claims.level"),
    "too few levels": (TableSettings(levels=[0.05] * 7), "levels"),
    "a level of 0": (TableSettings(levels=[0.0] + [0.05] * 7), "alpha"),
    "an unknown metric": (TableSettings(precision={"z": 0.1}), "precision"),
    "a precision of 0": (TableSettings(group_precision={"a": 0.0}), "precision"),
    "an unknown account": (TableSettings(account="all"), "account"),  # type: ignore[arg-type]
    "another way with small groups": (
        TableSettings(small_groups="drop"),  # type: ignore[arg-type]
        "small_groups",
    ),
    "levels that leave no reserve": (
        TableSettings(account="together", levels=[0.00625] * 8, reserve=0.01),
        "claims.level",
    ),
    "a reserve of all": (TableSettings(account="together", reserve=0.05), "reserve"),
    "a reserve where none is shared": (TableSettings(reserve=0.01), "reserve"),
    "no question to close": (TableSettings(account="closed"), "questions"),
    "too large a budget": (TableSettings(budget=201), "budget"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_by_name(name: str) -> None:
    wish, field = REFUSED[name]
    with pytest.raises(InvalidValue) as refusal:
        planned(table(), wish)
    assert refusal.value.field == field


def test_a_column_of_ten_thousand_values_is_refused() -> None:
    with pytest.raises(InvalidValue, match="10000 values") as refusal:
        Column.of("user", [f"user {one}" for one in range(10_000)])
    assert refusal.value.field == "groups.user"


def test_two_columns_of_one_name_are_refused() -> None:
    column = Column.of("x", GROUPS)
    one = table()
    with pytest.raises(InvalidValue, match="one name"):
        Table(one.metrics, one.surrogate, one.known, one.scores, (column, column))


def test_nothing_to_judge_is_refused() -> None:
    known = [(item, metric) for item in range(200) for metric in range(2)]
    with pytest.raises(NothingToJudge):
        planned(table_of(LOSSES, known=known))


def test_columns_of_too_many_combinations_are_refused() -> None:
    chance = np.random.default_rng(1)
    losses = chance.random((1600, 1))
    one, other = (
        [f"{one}" for one in np.arange(1600) // 40],
        [f"{one % 40}" for one in range(1600)],
    )
    with pytest.raises(InvalidValue, match="combinations"):
        planned(table_of(losses, one, other))
