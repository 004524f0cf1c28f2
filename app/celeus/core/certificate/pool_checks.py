"""Checks of a certificate's pool: its items, and its columns against what the plan says of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.canonical import canonical_json
from celeus.core.certificate.parsing import excerpt
from celeus.core.certificate.report import ITEMS
from celeus.core.interval import Interval
from celeus.core.plain import SLACK, Mismatch, Object, Plain, equal, same
from celeus.core.plans.best_plan import BestPlan
from celeus.core.plans.plan import Plan
from celeus.core.pools.loss_bounds import Basis, foreign
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.pool import CHAIN_START, STATED, Pool, chain
from celeus.core.pools.rows.answers import all_same, composed, composed_of_all
from celeus.core.pools.score import Score
from celeus.core.pools.systems import SAME_ANSWER, SIDES, AnySystems, Lineup
from celeus.errors import Refusal
from celeus.strict_json import json_of

PREDICTIONS = frozenset(f"prediction_{side}" for side in SIDES)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The columns of a pool as they were downloaded, with what else its digest is taken over."""

    columns: Mapping[str, NDArray[Any]]
    groups: tuple[str, ...]
    items_digest: bytes
    reasons: tuple[str, ...] = ()
    systems: AnySystems | None = None
    based_on: Basis | None = None
    score: Score | None = None
    metrics: tuple[Metric, ...] = ()
    group_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, pool: Pool) -> Self:
        """Return the part of a pool that a download holds."""
        return cls(
            pool.columns,
            pool.groups,
            pool.items_digest,
            pool.reasons,
            pool.named,
            pool.based_on,
            pool.score,
            pool.metrics,
            pool.group_columns,
        )


def items_digest(
    lines: Iterable[bytes], systems: AnySystems | None = None, same: list[Any] | None = None
) -> str:
    """The digest in hexadecimal of items given as lines of JSON with ``id`` and ``payload``.

    Of two systems also ``a`` and ``b``. To ``same`` is added of every item whether their texts are
    one answer, None where there are no texts. Of several also ``answers``, and the codes of these.
    """

    def record(number: int, line: bytes) -> bytes:
        item, encoded = _item(line, number, systems)
        if same is not None:
            same.append(None if systems is None else _same_texts(item, systems))
        return encoded

    return chain(CHAIN_START, (record(number, line) for number, line in enumerate(lines, 1))).hex()


def _same_texts(item: Object, systems: AnySystems) -> bool | list[int] | None:
    if isinstance(systems, Lineup):
        answers = item.get("answers") or {}
        given = [(answers.get(name) or {}).get("answer") for name in systems.names]
        return None if None in given else systems.codes([*map(str, given)])
    texts = [
        answer
        for answer in ((item.get(side) or {}).get("answer") for side in SIDES)
        if answer is not None
    ]
    if not texts:
        return None
    return len(texts) == len(SIDES) and systems.same(*map(str, texts))


def _item(line: bytes, number: int, systems: AnySystems | None) -> tuple[Object, bytes]:
    """An item, and the record of it that the digest is taken over."""
    try:
        item = json_of(line)
        payload = item.get("payload") if systems is None else composed(item)
        if isinstance(systems, Lineup):
            payload = composed_of_all(item)
        return item, canonical_json([item["id"], payload])
    except (Refusal, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        shown = f"line {number}: {excerpt(line)}"
        rule = "an object with id and payload" + (", a and b" if systems is not None else "")
        raise Mismatch(ITEMS, shown, rule) from error


def pool_of(evidence: Evidence, header: Object, scale: LossScale) -> Pool:
    """The pool, when its header is the one in the certificate."""
    items = int(header["items"])
    for name, column in evidence.columns.items():
        if len(column) != items:
            raise Mismatch("pool.items", items, f"a column {name} of {len(column)} items")
        # Where a metric's loss is not known stands NaN.
        if column.dtype.kind == "f" and not _numbers(column, known=name.startswith("known_")).all():
            raise Mismatch("pool.columns", name, "finite numbers")
    digest, reasons = evidence.items_digest, evidence.reasons
    pool = Pool(
        items,
        scale,
        evidence.columns,
        evidence.groups,
        digest,
        reasons,
        evidence.systems,
        evidence.based_on,
        evidence.score,
        evidence.metrics,
        evidence.group_columns,
    )
    same("pool", header, pool.header())
    return pool


def _numbers(column: NDArray[Any], *, known: bool) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(column) | (np.isnan(column) if known else False))


def check_same(pool: Pool, texts: Sequence[bool | None] | None) -> None:
    """Check that the difference is known to be 0 for exactly the items with the same answer twice.

    They are found by the classes of both systems or by ``texts``, which are None where the items
    are not at hand, as is one of an item without texts. Refuses with `Mismatch`.
    """
    columns, systems = pool.columns, pool.systems
    classes = PREDICTIONS & columns.keys()
    able = systems is not None and systems.loss.kind == "zero_one"
    if classes not in (frozenset(), PREDICTIONS) or (classes and not able):
        rule = "classes of both systems, for zero_one losses, or of neither"
        raise Mismatch("pool.columns", ", ".join(sorted(classes)), rule)
    if systems is None:
        return
    same = columns.get("same", np.zeros(pool.items)) == 1
    _check_known_same(pool, same, systems.reason(classes=bool(classes)))
    if classes:
        _check_flags("same", same, columns["prediction_a"] == columns["prediction_b"])
        if texts is not None and any(text is not None for text in texts):
            rule = "texts, which the items have"
            raise Mismatch("pool.columns", ", ".join(sorted(classes)), rule)
    elif systems.normalisation is None:
        _check_flags("same", same, np.zeros(pool.items, dtype=np.bool_))
    elif texts is not None:
        _check_flags("same", same, np.array([text is True for text in texts]))


def _check_known_same(pool: Pool, same: NDArray[np.bool_], reason: str) -> None:
    """Check that these items, and no others, are known by this reason, with difference 0."""
    for stated in pool.reasons:
        if stated.startswith(SAME_ANSWER):
            equal("pool.reasons", stated, reason)
    nothing = np.zeros(pool.items)
    numbers = [number for number, stated in enumerate(pool.reasons, 1) if stated == reason]
    _check_flags("known", np.isin(pool.columns.get("known", nothing), numbers), same)
    for name in ("loss_lower", "loss_upper"):
        _check_flags(name, same & (pool.columns.get(name, nothing) == 0.0), same)


def _check_flags(name: str, claimed: NDArray[np.bool_], found: NDArray[np.bool_]) -> None:
    apart = np.flatnonzero(claimed != found)
    if apart.size:
        rule = "known to be 0 where both gave the same answer, and nowhere else known for it"
        raise Mismatch(f"pool.columns.{name}", f"item {int(apart[0])}", rule)


def check_known(plan: Plan, pool: Pool) -> None:
    """Refuse a plan whose known losses and bounds are not those of the pool's columns."""
    _check_statement("plan.known", plan.known, pool.known)
    if pool.known is not None:
        check_bounds_columns(pool, plan.scale)


def check_bounds_columns(pool: Pool, scale: Interval) -> None:
    """Bounds of single losses lie on the scale, in order, and known losses have a reason."""
    there = STATED & pool.columns.keys()
    if there not in {frozenset(), STATED}:
        raise Mismatch("pool.columns", ", ".join(sorted(there)), ", ".join(sorted(STATED)))
    if not there:
        return
    number, most = pool.columns["known"], len(pool.reasons)
    unnamed = np.flatnonzero((number < 0) | (number > most))
    if unnamed.size:
        rule = f"0, or the number of one of {most} reasons"
        raise Mismatch("pool.columns.known", f"item {int(unnamed[0])}", rule)
    bounds = pool.bounds
    if bounds is None:
        return
    crossed = np.flatnonzero(~(bounds.lower <= bounds.upper))
    off = np.flatnonzero((bounds.lower < scale.lower) | (bounds.upper > scale.upper))
    reason, whole = number > 0, bounds.of_scale(scale)
    unexplained = np.flatnonzero((bounds.known & ~reason) | (whole & reason))
    rules = ["bounds in order", "bounds on the scale", "known with a reason"]
    wrong = [crossed, off, unexplained]
    if pool.scale.kind == "zero_one":
        wrong.append(np.flatnonzero(bounds.known & (bounds.lower != 0.0) & (bounds.lower != 1.0)))
        rules.append("0 or 1 where known, as every loss of this pool")
    for items, rule in zip(wrong, rules, strict=True):
        if items.size:
            raise Mismatch("pool.columns", f"the bounds of item {int(items[0])}", rule)


def check_weights(plan: Plan, pool: Pool) -> None:
    """Refuse a plan whose weights are not those of the pool's column."""
    if "weight" in pool.columns:
        nothing = np.flatnonzero(~(pool.columns["weight"] > 0.0))
        if nothing.size:
            raise Mismatch("pool.columns.weight", f"item {int(nothing[0])}", "a weight above 0")
    _check_statement("plan.weights", plan.weights, pool.weights)


def _check_statement(place: str, stated: Plain | None, found: Plain | None) -> None:
    """Refuse what a plan states of the pool unless it was found there, None where it is not."""
    stated_values = None if stated is None else stated.to_dict()
    found_values = None if found is None else found.to_dict()
    if stated_values is None or found_values is None:
        equal(place, stated_values, found_values)
    else:
        same(place, stated_values, found_values)


CARRIED = ("round", "label")
"""Columns that a pool based on a session has, and no other."""


def check_carried(pool: Pool) -> None:
    """Refuse judgements of another session that the columns contradict.

    Of a true label the loss follows; a loss that was judged names its round, each another one. The
    judgements themselves are in the ledger of that session.
    """
    columns, basis = pool.columns, pool.based_on
    there = [name for name in CARRIED if name in columns]
    if there != ([] if basis is None else list(CARRIED)):
        rule = ", ".join(CARRIED) if basis is not None else "none that a session leaves"
        raise Mismatch("pool.columns", ", ".join(there), rule)
    other = foreign(pool.reasons, basis)
    if other is not None:
        raise Mismatch("pool.reasons", other, "no session but the one the pool is based on")
    if basis is None:
        return
    nothing = np.zeros(pool.items)
    reason = np.array(["", *pool.reasons])[columns.get("known", nothing).astype(int)]
    lower, label, rounds = columns.get("loss_lower", nothing), columns["label"], columns["round"]
    judged = rounds[rounds != 0]
    checks = (
        (np.ones(pool.items, bool), (rounds >= 0) & (label >= -1), "no number below these"),
        (reason == basis.true_label, label >= 0, "a true label"),
        (label >= 0, np.isin(reason, list(known_by_label(pool))), "a loss that follows from it"),
        (reason == basis.unchanged, rounds > 0, "the round that judged it"),
    )
    for those, holds, rule in checks:
        apart = np.flatnonzero(those & ~holds)
        if apart.size:
            raise Mismatch("pool.columns", f"what is carried over to item {int(apart[0])}", rule)
    if np.unique(judged).size != judged.size:
        raise Mismatch("pool.columns.round", "a round there twice", "one item a round")
    for item in np.flatnonzero(label >= 0).tolist():
        try:
            expected = pool.loss_of_label(item, int(label[item]))
        except Refusal as refusal:
            raise Mismatch(
                f"pool.columns.label, item {item}", refusal.value, refusal.rule
            ) from refusal
        if abs(lower[item] - expected) > SLACK * max(1.0, abs(expected)):
            raise Mismatch(f"pool.columns.loss_lower, item {item}", float(lower[item]), expected)


def known_by_label(pool: Pool) -> set[str]:
    """Reasons of items whose label is known: that label, or equal answers of two systems."""
    reasons = set() if pool.based_on is None else {pool.based_on.true_label}
    return reasons if pool.systems is None else reasons | {pool.systems.reason(classes=True)}


COLUMNS_OF_SEVERAL = frozenset({"predictions", "answers", "surrogates", "known", "group"})


def check_answers(
    plan: BestPlan, pool: Pool, lineup: Lineup, texts: Sequence[list[int] | None] | None
) -> None:
    """Known are the items to which all gave the same answer, by their classes or ``texts``.

    ``texts`` are codes of the items' texts, None of an item without any; None where the items are
    not at hand.
    """
    columns, codes = pool.columns, pool.codes
    _check_columns(pool, lineup)
    expected = np.zeros(pool.items, dtype=np.bool_) if codes is None else all_same(codes)
    equal("plan.known", plan.known, int(expected.sum()))
    apart = np.flatnonzero(columns.get("known", np.zeros(pool.items)) != expected)
    if apart.size:
        rule = "known where all gave the same answer, and nowhere else"
        raise Mismatch("pool.columns.known", f"item {int(apart[0])}", rule)
    reason = lineup.reason(classes="predictions" in columns)
    same("pool.reasons", list(pool.reasons), [reason] if expected.any() else [])
    if texts is None:
        return
    if "answers" not in columns:
        if any(codes is not None for codes in texts):
            raise Mismatch("pool.columns", ", ".join(sorted(columns)), "the items' answers")
        return
    for item, (claimed, found) in enumerate(zip(columns["answers"], texts, strict=True)):
        if found is None or claimed.tolist() != found:
            raise Mismatch("pool.columns.answers", f"item {item}", "the texts that are the same")


def _check_columns(pool: Pool, lineup: Lineup) -> None:
    """The pool has the columns of several systems and no others, each with a number of each."""
    columns, shape = pool.columns, (pool.items, len(lineup.names))
    strange = sorted(columns.keys() - COLUMNS_OF_SEVERAL)
    if strange or {"predictions", "answers"} <= columns.keys():
        raise Mismatch(
            "pool.columns", ", ".join(sorted(columns)), ", ".join(sorted(COLUMNS_OF_SEVERAL))
        )
    for name in ("predictions", "answers", "surrogates"):
        if name in columns and columns[name].shape != shape:
            raise Mismatch(f"pool.columns.{name}", str(columns[name].shape), str(shape))
    surrogates = columns.get("surrogates")
    if (
        surrogates is not None
        and ((surrogates < pool.scale.lower) | (surrogates > pool.scale.upper)).any()
    ):
        raise Mismatch("pool.columns.surrogates", "one beside it", "numbers on the scale")
    if "predictions" in columns and pool.scale.kind != "zero_one":
        raise Mismatch("pool.columns", "predictions", "none where the loss is not zero_one")


def check_table_pool(pool: Pool) -> None:
    """The pool has the columns of its metrics and groups, with numbers that these may hold."""
    for name, values in pool.group_columns.items():
        column = f"group_{name}"
        if column not in pool.columns:
            raise Mismatch(f"pool.columns.{column}", None, "the value of every item")
        _check_codes(column, pool.columns[column], len(values))
    if "group" in pool.columns:
        _check_codes("group", pool.columns["group"], len(pool.groups))
    stated = STATED & pool.columns.keys()
    if pool.metrics and stated:
        raise Mismatch("pool.columns", ", ".join(sorted(stated)), "none of a single loss")
    check_bounds_columns(pool, pool.scale.interval)
    check_carried(pool)
    for metric in pool.metrics:
        for kind in ("surrogate", "known"):
            column = f"{kind}_{metric.name}"
            given = pool.columns.get(column, np.empty(0))
            off = (given < metric.scale.lower) | (given > metric.scale.upper)
            if kind == "surrogate":
                off |= np.isnan(given)
            elif metric.scale.kind == "zero_one":
                off |= ~np.isnan(given) & (given != 0.0) & (given != 1.0)
            if off.any():
                item, rule = int(np.flatnonzero(off)[0]), "numbers on the scale of the metric"
                raise Mismatch(f"pool.columns.{column}", f"item {item}", rule)


def _check_codes(column: str, code: NDArray[Any], values: int) -> None:
    off = np.flatnonzero((code < 0) | (code >= values))
    if off.size:
        rule = f"one of {values} values"
        raise Mismatch(f"pool.columns.{column}", f"item {int(off[0])}", rule)
