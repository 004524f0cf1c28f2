"""What a program says of a new pool, and what is sent of it."""

from typing import Any

import pytest

from celeus.client import calls
from celeus.errors import InvalidValue

ITEMS = [{"id": "one", "payload": {"question": "?"}}]


def _query(**members: Any) -> dict[str, Any]:  # noqa: ANN401 -- members of the contract
    """The query of the request that makes the pool."""
    flow = calls.create_filled_pool(calls.pool_form("pool", **members), ITEMS)
    request: Any = next(flow)
    flow.close()
    return dict(request.query)


def test_a_pool_is_described_as_a_run_in_process() -> None:
    """The ends of a loss, and a score's name and direction, as `certify` takes them."""
    query = _query(loss=(1, 5), score=("grade", "higher"))
    assert query == {
        "name": "pool",
        "kind": "bounded",
        "lower": 1,
        "upper": 5,
        "score_name": "grade",
        "score_better": "higher",
    }


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"systems": {"a": "A", "b": "B", "loss": {"kind": "bounded"}}}, "systems.loss"),
        ({"score": {"name": "grade", "higher": True}}, "score.higher"),
        ({"loss": {"kind": "bounded", "least": 1}}, "loss.least"),
    ],
)
def test_members_that_would_not_be_sent_are_refused(members: dict[str, Any], field: str) -> None:
    """A scale that is left out in silence would be another one."""
    with pytest.raises(InvalidValue) as refused:
        _query(**members)
    assert refused.value.field == field
