"""An earlier version, judged in part, and the pool of a new one, without a service."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from celeus.core.pools.loss_bounds import Basis
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import CHAIN_START, Pool, chain
from celeus.core.pools.rows.answers import assemble_pairs
from celeus.core.pools.rows.assembly import Assembly, Batch, assemble
from celeus.core.pools.rows.earlier import Carryover, Earlier, EarlierRound, OldItem
from celeus.core.pools.systems import Systems

ZERO_ONE = LossScale.of("zero_one")
PAIR = Systems.of(("old", "new"), ("zero_one", None, None), "exact")
BASIS = Basis(f"ses_{'5' * 32}", "0" * 64, "1" * 64, "2" * 64, "no")
TEXT = Basis(f"ses_{'5' * 32}", "0" * 64, "1" * 64, None, "unknown", "answer")

Row = dict[str, Any]


def rows_of(answers: Iterable[int], *, texts: bool = False, side: str | None = None) -> list[Row]:
    """Items with these answers, as classes or as texts; of B only, where ``side`` says so."""
    rows = []
    for at, answer in enumerate(answers):
        row: Row = {"id": f"q{at}", "payload": {"question": at}}
        own: Row = {"answer": f"option {answer}"} if texts else {"prediction": answer}
        if side is not None:
            row[side] = own
        elif texts:
            row["payload"] |= own
        else:
            row |= own
        rows.append(row)
    return rows


def judged_as(
    truth: Sequence[int], answers: Sequence[int], items: Iterable[int], *, labels: bool
) -> list[EarlierRound]:
    """These items judged, in their order."""
    return [
        EarlierRound(round_, at, float(answers[at] != truth[at]), truth[at] if labels else None)
        for round_, at in enumerate(items, 1)
    ]


def earlier_of(
    rows: list[Row],
    judged: Sequence[EarlierRound],
    basis: Basis = BASIS,
    *,
    scale: LossScale = ZERO_ONE,
    systems: Systems | None = None,
) -> Earlier:
    """A session on the pool of these rows."""
    pool = pool_of(assemble(range(len(rows)), rows, scale, None), scale)
    return Earlier(basis, pool, judged, systems)


def carried(earlier: Earlier, old: list[Row], new: list[Row]) -> Carryover:
    """The new rows with what the session leaves to them."""
    items = {
        row["id"]: OldItem.of(at, row.get("payload"), earlier.basis) for at, row in enumerate(old)
    }
    return earlier.carry(range(len(new)), new, items)


def based_pool(earlier: Earlier, old: list[Row], new: list[Row]) -> Pool:
    """The pool of the new version."""
    made = carried(earlier, old, new)
    assert not made.faults
    scale = earlier.pool.scale
    if earlier.systems is None:
        done = assemble(made.lines, made.rows, scale, None)
    else:
        scale = earlier.systems.scale
        done = assemble_pairs(made.lines, made.rows, earlier.systems, None)
    columns = made.columns(done.batch.lines)
    return pool_of(done, scale, columns, named=earlier.systems, based_on=earlier.basis)


def pool_of(done: Assembly, scale: LossScale, columns: Any = (), **more: Any) -> Pool:  # noqa: ANN401
    """The pool of some rows, none of them bad."""
    assert not done.faults, done.faults
    batch: Batch = done.batch
    reasons = tuple(dict.fromkeys(filter(None, batch.reasons)))
    numbers = {reason: number for number, reason in enumerate(("", *reasons))}
    stated = {}
    if batch.reasons:
        stated["known"] = np.array([numbers[one] for one in batch.reasons], dtype="<i4")
    return Pool(
        len(batch.ids),
        scale,
        batch.columns | stated | dict(columns),
        (),
        chain(CHAIN_START, batch.records()),
        reasons,
        **more,
    )
