"""Carry a judged session over to a pool of a new version: known losses, and guesses of others.

Of an item that the session's pool had, with the same question:

    true label         known; the new version's loss follows from it
    unchanged answer   the loss that was judged, or known before, holds on
    else               the old loss, where one was judged, is a surrogate

All of it is fixed before the new session draws, so the claim for the pool holds whatever the makers
of the new version saw: its losses are fixed numbers when its session opens. A wrong guess costs
labels; that a known loss is true is an assumption. Compared with the old version, its answers are
those of system A, and a question that is not the old one is refused.

Notation: l old losses (NaN where not judged), y true labels (-1 where not known), N old items.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.canonical import canonical_json
from celeus.core.pools.loss_bounds import Basis, is_carried
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import Pool, dtype_of
from celeus.core.pools.rows.validation import Fault
from celeus.core.pools.systems import Side, Systems

Row = dict[str, Any]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class OldItem:
    """An item of the session's pool: its place there, its question, and the old answer.

    ``answer`` is None where a class or probabilities are the answer, or there is none; ``shown`` is
    what else a judge saw of it beside another system's.
    """

    index: int
    question: Any
    answer: Any = None
    shown: Any = None

    @classmethod
    def of(cls, index: int, payload: Any, basis: Basis) -> Self:  # noqa: ANN401 -- JSON
        """The item with this payload."""
        if basis.system is None:
            return cls(index, *_parted(payload, basis.answer))
        whole = payload or {}
        answered = whole.get(basis.system) or {}
        return cls(index, whole.get("payload"), answered.get("answer"), answered.get("payload"))


@dataclass(frozen=True, slots=True)
class EarlierRound:
    """A judged round of the session as its ledger ends: the item, its loss, and its true label."""

    round: int
    item: int
    loss: float
    label: int | None


@dataclass(slots=True)
class Carryover:
    """Rows with what is carried over to them, and the faults of the others.

    ``rounds`` and ``labels`` are by line, where there are any: an id may stand in several.
    """

    lines: list[int] = field(default_factory=list)
    rows: list[object] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    rounds: dict[int, int] = field(default_factory=dict)
    labels: dict[int, int] = field(default_factory=dict)

    def columns(self, lines: Sequence[int]) -> dict[str, NDArray[Any]]:
        """Columns of the items of these lines."""
        return {
            "round": np.array(
                [self.rounds.get(line, 0) for line in lines], dtype=dtype_of("round")
            ),
            "label": np.array(
                [self.labels.get(line, -1) for line in lines], dtype=dtype_of("label")
            ),
        }


class _Unfit(Exception):
    """A row that cannot be compared with the old version's answer."""

    def __init__(self, name: str, rule: str, value: object) -> None:
        super().__init__(name)
        self.name, self.rule, self.value = name, rule, value


@dataclass(frozen=True, eq=False)
class Earlier:
    """A judged session on ``pool``; ``systems`` are those of the pool based on it.

    ``believed``: what its pool states of losses was believed in the session, not audited.
    """

    basis: Basis
    pool: Pool
    judged: Sequence[EarlierRound]
    systems: Systems | None = None
    believed: bool = True

    @cached_property
    def round(self) -> NDArray[np.int32]:
        """The round that judged an item, 0 where none did."""
        rounds = np.zeros(self.pool.items, dtype=np.int32)
        for judged in self.judged:
            rounds[judged.item] = judged.round
        return rounds

    @cached_property
    def loss(self) -> Floats:
        """The losses judged."""
        losses = np.full(self.pool.items, np.nan)
        for judged in self.judged:
            losses[judged.item] = judged.loss
        return losses

    @cached_property
    def known(self) -> Floats:
        """The losses known before, NaN where they were not."""
        if self.pool.bounds is None or not self.believed:
            return np.full(self.pool.items, np.nan)
        return np.where(self.pool.bounds.known, self.pool.bounds.lower, np.nan)

    @cached_property
    def label(self) -> NDArray[np.int32]:
        """The true classes; those that the session's own pool was based on, too."""
        labels = np.full(self.pool.items, -1, dtype=np.int32)
        if self.believed and "label" in self.pool.columns:
            labels[:] = self.pool.columns["label"]
        for judged in self.judged:
            labels[judged.item] = -1 if judged.label is None else judged.label
        return labels

    @cached_property
    def guess(self) -> Floats:
        """A guess of every loss: the old one, else the old surrogate, else the mean of all."""
        judged = np.isfinite(self.loss)
        other: Floats | float = float(self.loss[judged].mean())
        if self.pool.surrogates:
            other = np.mean(np.stack(self.pool.surrogates, axis=1), axis=1)
        return np.where(judged, self.loss, other)

    @cached_property
    def _mean(self) -> float:
        return float(np.nanmean(self.loss))

    @cached_property
    def guesses(self) -> bool:
        """Old losses say more than labels do: some were judged without one."""
        return any(judged.label is None for judged in self.judged)

    @cached_property
    def prediction(self) -> NDArray[Any] | None:
        """The class every old answer is, where a 0-1 loss follows from it."""
        columns = self.pool.columns
        if self.pool.scale.kind != "zero_one":
            return None
        if "prediction" in columns or "target_probs" not in columns:
            return columns.get("prediction")
        return np.asarray(columns["target_probs"].argmax(axis=1))

    def carry(
        self, lines: Sequence[int], rows: Sequence[object], old: Mapping[str, OldItem]
    ) -> Carryover:
        """The rows with what is carried over; ``old`` are items of the session's pool by id."""
        carried = Carryover()
        for line, row in zip(lines, rows, strict=True):
            made = row
            if isinstance(row, dict) and isinstance(row.get("id"), str):
                try:
                    made = self._row(line, row, old.get(row["id"]), carried)
                except _Unfit as unfit:
                    carried.faults.append(Fault.of(line, unfit.name, unfit.rule, unfit.value))
                    continue
            carried.lines.append(line)
            carried.rows.append(made)
        return carried

    def carries(self, payload: Any, old: OldItem, *, answer: bool) -> bool:  # noqa: ANN401 -- JSON
        """An item with this payload has the old question, and the old ``answer`` if it must."""
        system = None if self.systems is None else "a"
        item = OldItem.of(old.index, payload, replace(self.basis, system=system))
        return _same(item.question, old.question) and (not answer or _same(item.answer, old.answer))

    def _row(self, line: int, row: Row, old: OldItem | None, carried: Carryover) -> Row:
        present = {name: value for name, value in row.items() if value is not None}
        self._check_stated(present)
        if self.systems is None:
            return self._version(line, present, old, carried)
        return self._pair(line, present, old, carried)

    def _check_stated(self, row: Row) -> None:
        known = row.get("known")
        reason = known.get("reason") if isinstance(known, dict) else None
        if isinstance(reason, str) and is_carried(reason):
            rule = "another reason: what is carried over is found out here"
            raise _Unfit("known.reason", rule, reason)

    def _version(self, line: int, row: Row, old: OldItem | None, carried: Carryover) -> Row:
        """A row of the new version alone."""
        guess = self._mean
        question, _ = _parted(row.get("payload"), self.basis.answer)
        if old is not None and _same(question, old.question):
            index, guess = old.index, float(self.guess[old.index])
            known = self._known(row, old)
            if self.round[index]:
                carried.rounds[line] = int(self.round[index])
            if known is not None:
                self._state(line, row, known, carried)
        if self.guesses and "target_probs" not in row:
            row = _with_guess(row, guess)
        return row

    def _known(self, row: Row, old: OldItem) -> Row | None:
        """The known loss, and its reason, of an item with its old question."""
        label, loss, before = (column[old.index] for column in (self.label, self.loss, self.known))
        follows = "prediction" in row or "target_probs" in row
        if label >= 0 and follows and self.pool.scale.kind in {"zero_one", "cross_entropy"}:
            return {"label": int(label), "reason": self.basis.true_label}
        if not (np.isfinite(loss) or np.isfinite(before)) or not self._unchanged(row, old):
            return None
        if np.isfinite(loss):
            return {"loss": float(loss), "reason": self.basis.unchanged}
        return {"loss": float(before), "reason": self.basis.known_before}

    def _state(self, line: int, row: Row, known: Row, carried: Carryover) -> None:
        if "known" in row:
            rule = f"left out: it is known by {self.basis.session}"
            raise _Unfit("known", rule, row["known"])
        row["known"] = known
        if "label" in known:
            carried.labels[line] = known["label"]

    def _pair(self, line: int, row: Row, old: OldItem | None, carried: Carryover) -> Row:
        """A row that compares the old version, as A, with the new one, as B."""
        where = f"the pool of {self.basis.session}"
        if "a" in row:
            raise _Unfit("a", f"left out: the old version's answer is the one in {where}", row["a"])
        if old is None:
            raise _Unfit("id", f"the id of an item of {where}", row["id"])
        if "payload" in row and not _same(row["payload"], old.question):
            raise _Unfit("payload", f"left out, or as in {where}", row["payload"])
        if old.question is not None:
            row["payload"] = old.question
        self._weigh(row, old, where)
        row["a"], b = self._answer(old), row.get("b")
        index, new = old.index, b if isinstance(b, dict) else {}
        if self.round[index]:
            carried.rounds[line] = int(self.round[index])
        if self.systems is not None and self.systems.loss.kind != "preference":
            self._guess_pair(row, new, index)
        label, prediction = int(self.label[index]), new.get("prediction")
        if label >= 0 and type(prediction) is int and "prediction" in row["a"]:
            if prediction == row["a"]["prediction"]:
                # Equal answers have no difference, whatever the label.
                carried.labels[line] = label
            else:
                self._state(line, row, {"label": label, "reason": self.basis.true_label}, carried)
        return row

    def _weigh(self, row: Row, old: OldItem, where: str) -> None:
        """Give an item compared the weight it has in the old version's pool; refuse another."""
        if "weight" not in self.pool.columns:
            return
        weight = float(self.pool.columns["weight"][old.index])
        if row.setdefault("weight", weight) != weight:
            raise _Unfit("weight", f"left out, or as in {where}: {weight:.17g}", row["weight"])

    def _guess_pair(self, row: Row, new: Row, index: int) -> None:
        """Guess both losses where the new version comes with a guess, else the difference."""
        if new.get("surrogate") is not None:
            row["a"]["surrogate"] = float(self.guess[index])
        elif self.guesses and not row.keys() & {"surrogate", "surrogates"}:
            row["surrogate"] = float(self.guess[index]) - self._mean

    def _answer(self, old: OldItem) -> Row:
        """The old version's answer, as a row of two systems has it."""
        shown = {} if old.shown is None else {"payload": old.shown}
        preferred = self.systems is not None and self.systems.loss.kind == "preference"
        if self.prediction is not None and not preferred:
            if old.answer is not None:
                shown = {"payload": {self.basis.answer: old.answer}}
            return {"prediction": int(self.prediction[old.index]), **shown}
        if not isinstance(old.answer, str):
            rule = f"an item to which the version of {self.basis.session} answered with a text"
            raise _Unfit("id", rule, old.index)
        return {"answer": old.answer, **shown}

    def _unchanged(self, row: Row, old: OldItem) -> bool:
        """The same answer to the same question, the same class or probabilities where there are.

        What a judge saw beside one of two answers may have had a part in its loss, and is not here.
        """
        _, answer = _parted(row.get("payload"), self.basis.answer)
        if old.shown is not None or not _same(answer, old.answer):
            return False
        if "prediction" in self.pool.columns:
            new, given = row.get("prediction"), self.pool.columns["prediction"][old.index]
            return type(new) is int and bool(new == given)
        if "target_probs" in self.pool.columns:
            return self._same_probabilities(row.get("target_probs"), old.index)
        return answer is not None

    def _same_probabilities(self, given: object, index: int) -> bool:
        """The same class is most probable; the same probabilities, where the loss takes them."""
        old = self.pool.columns["target_probs"][index]
        try:
            new = np.array(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            return False
        if new.shape != old.shape or not np.isfinite(new).all() or new.sum() <= 0.0:
            return False
        # As they are kept.
        kept = (new / new.sum()).astype(old.dtype)
        if self.pool.scale.kind == "zero_one":
            return bool(kept.argmax() == old.argmax())
        return bool((kept == old).all())


def version_of(pool: Pool, side: Side) -> Pool:
    """One of two systems as a pool of its own: its classes, and the true ones that are known."""
    systems = pool.systems
    if systems is None:
        message = "the pool names no two systems"
        raise ValueError(message)
    names = {"prediction": f"prediction_{side}", "label": "label", "weight": "weight"}
    columns = {
        name: pool.columns[column] for name, column in names.items() if column in pool.columns
    }
    # A preference, which is no loss, was refused.
    scale = LossScale(*astuple(systems.loss))
    return Pool(pool.items, scale, columns, (), pool.items_digest)


def loss_of(
    judgement: Mapping[str, Any], side: Side, left: str | None, prediction: int
) -> float | None:
    """The loss of one of two systems by what a judge said, by name; None where it says none."""
    if "label" in judgement:
        return float(judgement["label"] != prediction)
    if "loss_a" in judgement:
        return float(judgement[f"loss_{side}"])
    loss = judgement.get("loss_left" if side == left else "loss_right")
    return None if loss is None else float(loss)


def _parted(payload: Any, name: str | None) -> tuple[Any, Any]:  # noqa: ANN401 -- JSON
    """The payload without the version's own answer, and that answer."""
    if name is None or not isinstance(payload, dict):
        return payload, None
    rest = {member: value for member, value in payload.items() if member != name}
    return rest or None, payload.get(name)


def _same(value: object, other: object) -> bool:
    """Test whether two values are the same JSON, as the items digest binds it."""
    try:
        return canonical_json(value) == canonical_json(other)
    except (ValueError, TypeError, RecursionError):
        # Not what an item may have: the row's own faults tell.
        return False


def _with_guess(row: Row, guess: float) -> Row:
    """The row with one more surrogate."""
    if "surrogates" in row:
        surrogates = row["surrogates"]
        # What is no list is told with the row's other faults.
        return row | {"surrogates": [*surrogates, guess]} if isinstance(surrogates, list) else row
    if "surrogate" not in row:
        return row | {"surrogate": guess}
    rest = {name: value for name, value in row.items() if name != "surrogate"}
    return rest | {"surrogates": [row["surrogate"], guess]}
