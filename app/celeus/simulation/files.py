"""Read a pool whose losses are known from an .npz file, or say what is wrong with it and where.

loss       [N]            the true losses, on the scale
surrogate  [N] or [N, M]  surrogates known beforehand; several are weighed by the labels
proxy      [N]            optional: target-loss proxy, so that scores are |proxy - surrogate|
group      [N]            optional: names or numbers
known      [N]            optional: whether the loss is known before the first draw
weight     [N]            optional: how much each item counts, above 0

Of two systems, on items in the same order:

loss_a, loss_b            [N]            the true losses
answer_a, answer_b        [N]            optional: equal ones have no difference, for certain
surrogate_a, surrogate_b  [N] or [N, M]  optional: surrogates of the two losses
weight                    [N]            optional: how much each item counts

Of k systems among which the best is sought:

loss       [N, k]         the true losses
answer     [N, k]         optional: systems with equal answers have equal losses
surrogate  [N, k]         optional: surrogates of the losses

Of a table of several metrics and groups, each NAME a name of its own:

loss_NAME       [N]            the true losses of a metric; or loss, of one
surrogate_NAME  [N] or [N, M]  optional: surrogates of them
known_NAME      [N]            optional: whether the loss is known before the first draw
proxy           [N]            optional: target-loss proxy
group_NAME      [N]            optional: names or numbers of groups; or group
"""

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.pool import CHAIN_START, Pool
from celeus.core.pools.surrogates import Scores, scores
from celeus.core.pools.systems import check_count
from celeus.core.pools.table_pool import Column, Table
from celeus.core.pools.weights import LARGEST_RATIO, LARGEST_WEIGHT, LEAST_WEIGHT, Weights
from celeus.core.session.best.candidates import Candidates, narrow
from celeus.errors import InvalidValue
from celeus.simulation.sessions import Truth, difference

Arrays = dict[str, NDArray[Any]]
Floats = NDArray[np.float64]

REQUIRED = ("loss", "surrogate")
USED = (*REQUIRED, "proxy", "group", "known", "weight")
PAIR = ("loss_a", "loss_b")
OF_CONTENDERS = ("answer", "surrogate")
NOT_OF_CONTENDERS = ("known", "weight")
OF_PAIRS = ("answer_a", "answer_b", "surrogate_a", "surrogate_b", "weight")
_UNREADABLE = (
    OSError,
    EOFError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_truth(path: Path, lower: float = 0.0, upper: float = 1.0) -> Truth:
    """The pool of a file; refuses what is missing, misshapen or off the scale.

    The losses of a file of two systems are their differences.
    """
    scale = LossScale.of("bounded", lower, upper)
    if _is_pair(path):
        return _pair(path, arrays(path, PAIR, OF_PAIRS), scale)
    data = arrays(path, REQUIRED, USED)
    items = _items(path, data)
    columns = {"loss": _numbers(path, "loss", data["loss"], scale)}
    for index, column in enumerate(_surrogates(path, "surrogate", data, items, scale)):
        columns[f"surrogate.{index}"] = column
    if "known" in data:
        known = data["known"]
        _check_known(path, "known", known, items)
        columns["loss_lower"] = np.where(known, columns["loss"], lower)
        columns["loss_upper"] = np.where(known, columns["loss"], upper)
    for name in ("proxy", "group"):
        if name in data:
            _check_shape(path, name, data[name], items)
    if "proxy" in data:
        columns["proxy"] = _numbers(path, "proxy", data["proxy"], scale)
    columns |= _weight(path, data, items)
    loss = columns.pop("loss")
    pool = Pool(items, scale, columns, groups=(), items_digest=CHAIN_START)
    return Truth(loss, scores(pool), lower, upper)


def read_contest(path: Path, lower: float = 0.0, upper: float = 1.0) -> tuple[Candidates, Floats]:
    """The k systems of a file and their losses on the unit scale, shape [N, k].

    Refuses what is missing, misshapen or off the scale, and equal answers with other losses.
    """
    scale = LossScale.of("bounded", lower, upper)
    data = arrays(path, ("loss",), (*OF_CONTENDERS, *NOT_OF_CONTENDERS))
    for name in NOT_OF_CONTENDERS:
        if name in data:
            rule = "left out with --best: all items count the same, known are those answered alike"
            raise refused(path, name, rule, data[name].shape)
    shape = data["loss"].shape
    if len(shape) not in {1, 2} or 0 in shape:
        raise refused(path, "loss", "[N, k] numbers, one a system, N at least 1", shape)
    items, systems = (*shape, 1)[:2]
    check_count(systems)
    for name in OF_CONTENDERS:
        if name in data and data[name].shape != shape:
            raise refused(path, name, f"[{items}, {systems}], like loss", data[name].shape)
    unit = {
        name: (_columns(path, name, data[name], scale) - scale.lower) / scale.width
        for name in ("loss", "surrogate")
        if name in data
    }
    answer = None
    if "answer" in data:
        if data["answer"].dtype.kind not in "biuU":
            raise refused(path, "answer", "whole numbers or texts", data["answer"].dtype)
        codes = np.unique(data["answer"], return_inverse=True)[1]
        answer = narrow(codes.reshape(shape))
        for system, losses in enumerate(unit["loss"].T):
            first = (answer == answer[:, [system]]).argmax(axis=1)
            apart = np.flatnonzero(
                np.take_along_axis(unit["loss"], first[:, None], 1)[:, 0] != losses
            )
            if apart.size:
                rule = "the same for systems with the same answer"
                raise refused(path, "loss", rule, f"others at item {int(apart[0])}")
    return Candidates(items, systems, answer, unit.get("surrogate")), unit["loss"]


def _columns(path: Path, name: str, values: NDArray[Any], scale: LossScale) -> Floats:
    columns = enumerate(values.T)
    return np.stack(
        [_numbers(path, f"{name}[:, {index}]", column, scale) for index, column in columns], axis=1
    )


def _is_pair(path: Path) -> bool:
    """The file holds the losses of two systems."""
    return any(name in arrays(path, (), PAIR) for name in PAIR)


def _pair(path: Path, data: Arrays, scale: LossScale) -> Truth:
    """The differences of two systems, those of equal answers known."""
    items = _items(path, data, "loss_a")
    for name in (*PAIR, "answer_a", "answer_b"):
        if name in data:
            _check_shape(path, name, data[name], items)
    for first, second in (("answer_a", "answer_b"), ("surrogate_a", "surrogate_b")):
        if (first in data) != (second in data):
            missing, given = (first, second) if second in data else (second, first)
            raise refused(path, missing, f"an array beside {given}", "none")
    losses = [_numbers(path, name, data[name], scale) for name in PAIR]
    loss = losses[0] - losses[1]
    same = guesses = None
    if "answer_a" in data:
        same = _same(path, data)
        apart = np.flatnonzero(same & (loss != 0.0))
        if apart.size:
            rule = "the same as loss_a where the answers are the same"
            raise refused(path, "loss_b", rule, f"a difference at item {int(apart[0])}")
    if "surrogate_a" in data:
        first, second = (
            np.mean(_surrogates(path, name, data, items, scale), axis=0)
            for name in ("surrogate_a", "surrogate_b")
        )
        guesses = first, second
    whole = bool(np.isin(losses, (scale.lower, scale.upper)).all())
    exclusive = whole and "answer_a" in data
    more = _weight(path, data, items)
    return difference((losses[0], losses[1]), scale, same, guesses, more, exclusive=exclusive)


def _weight(path: Path, data: Arrays, items: int) -> dict[str, Floats]:
    """The column of weights, where there is one."""
    if "weight" not in data:
        return {}
    if data["weight"].shape != (items,):
        raise refused(path, "weight", f"[{items}] numbers, one an item", data["weight"].shape)
    weight = _numbers(path, "weight", data["weight"], Interval(LEAST_WEIGHT, LARGEST_WEIGHT))
    facts = Weights.of(weight)
    if not facts.within_ratio:
        rule = f"at most {LARGEST_RATIO:g} times as large as the least of them"
        raise refused(path, "weight", rule, f"{facts.largest / facts.least:g} times")
    return {"weight": weight}


def _same(path: Path, data: Arrays) -> NDArray[np.bool_]:
    """A mask of the items with two equal answers; refuses answers of different kinds."""
    first, second = data["answer_a"], data["answer_b"]
    kinds = ["text" if array.dtype.kind == "U" else "number" for array in (first, second)]
    if kinds[0] != kinds[1] or any(array.dtype.kind not in "biuU" for array in (first, second)):
        rule = "whole numbers or texts, as in the other"
        raise refused(path, "answer_b", rule, f"{first.dtype} and {second.dtype}")
    return np.asarray(first == second)


def _surrogates(
    path: Path, name: str, data: Arrays, items: int, scale: LossScale
) -> list[NDArray[np.float64]]:
    """The columns of one array of surrogates."""
    surrogate = data[name]
    if surrogate.shape[:1] != (items,) or surrogate.ndim > 2 or 0 in surrogate.shape:
        raise refused(path, name, f"[{items}] or [{items}, M] numbers", surrogate.shape)
    return [
        _numbers(path, name if surrogate.ndim == 1 else f"{name}[:, {index}]", column, scale)
        for index, column in enumerate(surrogate.reshape(items, -1).T)
    ]


def read_table(path: Path, lower: float = 0.0, upper: float = 1.0) -> tuple[Table, Floats]:
    """The table of a file and its losses, shape [N, C]; all metrics have the same scale.

    Refuses what is missing, misshapen or off the scale.
    """
    scale = LossScale.of("bounded", lower, upper)
    names = members(path)
    of_metrics = [name for name in names if name == "loss" or name.startswith("loss_")]
    of_metrics = of_metrics or ["loss"]
    data = arrays(path, of_metrics, names)
    items = _items(path, data, of_metrics[0])
    for name in of_metrics:
        _check_shape(path, name, data[name], items)
    proxy = None
    if "proxy" in data:
        _check_shape(path, "proxy", data["proxy"], items)
        proxy = _numbers(path, "proxy", data["proxy"], scale)
    read = [_metric(path, name, data, scale, proxy) for name in of_metrics]
    metrics, scores_of, losses, known = zip(*read, strict=True)
    groups = []
    for name in names:
        if name == "group" or name.startswith("group_"):
            _check_shape(path, name, data[name], items)
            if data[name].dtype.kind not in "biuU":
                raise refused(path, name, "whole numbers or texts", data[name].dtype)
            groups.append(Column.of(name.removeprefix("group_"), data[name]))
    table = Table.of(metrics, scores_of, groups, np.stack(known, axis=1))
    return table, np.stack(losses, axis=1)


def _metric(
    path: Path, name: str, data: Arrays, scale: LossScale, proxy: Floats | None
) -> tuple[Metric, Scores, Floats, Floats]:
    """A metric, its scores, its losses, and those of them that are known, the others NaN."""
    loss = _numbers(path, name, data[name], scale)
    items = _items(path, data, name)
    stated = np.full(items, np.nan)
    if (known := name.replace("loss", "known", 1)) in data:
        _check_known(path, known, data[known], items)
        stated = np.where(data[known], loss, np.nan)
    guess, columns = np.full(items, scale.lower), None
    if (surrogate := name.replace("loss", "surrogate", 1)) in data:
        several = _surrogates(path, surrogate, data, items, scale)
        guess = np.mean(several, axis=0)
        columns = np.stack(several, axis=1) if len(several) > 1 else None
    unit = (scale.lower, scale.upper) == (0.0, 1.0)
    if unit and np.isin(loss, (0.0, 1.0)).all():
        scale = LossScale.of("zero_one")
    scores_of = Scores(guess, np.zeros(items), proxy, columns)
    return Metric(name.removeprefix("loss_"), scale), scores_of, loss, stated


def is_table(path: Path) -> bool:
    """The file names metrics or columns of groups, and is none of two systems."""
    names = members(path)
    named = [name for name in names if name.startswith(("loss_", "group_"))]
    return bool(named) and not set(named) <= set(PAIR)


def members(path: Path) -> list[str]:
    """The names of the arrays of a file, as it holds them; empty for one that is no archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [entry.filename.removesuffix(".npy") for entry in archive.infolist()]
    except _UNREADABLE:
        return []


def _check_shape(path: Path, name: str, values: NDArray[Any], items: int) -> None:
    if values.shape != (items,):
        raise refused(path, name, f"[{items}] values, one an item", values.shape)


def _check_known(path: Path, name: str, values: NDArray[Any], items: int) -> None:
    if values.shape != (items,) or values.dtype.kind != "b":
        raise refused(path, name, f"[{items}] of true and false", values.dtype)


def arrays(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> Arrays:
    """The ``required`` and ``optional`` arrays of a file; refuses one that lacks a required one."""
    if not path.exists():
        raise InvalidValue(f"{path}: there is no such file", field="file")
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "a device or a pipe"
        raise refused(path, "the file", "an .npz archive", kind)
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise refused(path, "the file", "an .npz archive", "a single array")
            for name in required:
                if name not in archive:
                    present = ", ".join(archive) or "no array at all"
                    raise refused(path, name, "an array of the file", present)
            names = dict.fromkeys((*required, *optional))
            found = {name: archive[name] for name in names if name in archive}
    except _UNREADABLE as error:
        raise refused(path, "the file", "an .npz archive of plain arrays", error) from error
    for name, values in found.items():
        if not isinstance(values, np.ndarray):
            raise refused(path, name, "an array in NumPy's format", "other bytes")
    return found


def _items(path: Path, data: Arrays, name: str = "loss") -> int:
    shape = data[name].shape
    if len(shape) != 1 or shape[0] == 0:
        raise refused(path, name, "[N] numbers, N at least 1", shape)
    return int(shape[0])


def _numbers(
    path: Path, name: str, values: NDArray[Any], scale: LossScale | Interval
) -> NDArray[np.float64]:
    rule = f"numbers from {scale.lower:g} to {scale.upper:g}"
    if values.dtype.kind not in "biuf":
        raise refused(path, name, rule, f"type {values.dtype}")
    numbers = values.astype(np.float64)
    # A NaN is neither above nor below.
    off = np.flatnonzero(~((numbers >= scale.lower) & (numbers <= scale.upper)))
    if off.size:
        index = int(off[0])
        raise refused(path, name, rule, f"{float(numbers[index])!r} at item {index}")
    return numbers


def refused(path: Path, name: str, rule: str, actual: object) -> InvalidValue:
    """The refusal of a file: what must be what, and what was found there."""
    # Some readers' messages go over several lines.
    text = " ".join(str(actual).split())[:200]
    return InvalidValue(f"{path}: {name} must be {rule}; found {text}", field=name, rule=rule)
