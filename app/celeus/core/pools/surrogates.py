"""Surrogates, proxies of the loss, and the scores items are drawn by (CELEUS, Rems. 1-2).

Notation: p_f, p_g predictive distributions of the target and of a small surrogate model, y_f and
y_g their most probable classes, H entropy, s surrogate, w score. None of it looks at a label.

    0-1             dispersion_f  1 - sum p_f^2   hard  1[y_f != y_g]   soft  1 - p_f(y_g)
    cross-entropy   entropy_f     H(p_f)          entropy_g  H(p_g)     mode_loss  -log p_f(y_f)

    strategy   0-1: proxy / surrogate     cross-entropy: proxy / surrogate
    A          hard / dispersion_f        mode_loss / entropy_f
    B          dispersion_f / soft        entropy_f / mode_loss
    C          soft / dispersion_f        entropy_f / entropy_g

With a proxy w = |proxy - s|; without one w = sqrt(x (1 - x)) (U - L), x = (s - L) / (U - L).
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from celeus.core.pools.loss_bounds import Bounds
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import Pool
from celeus.errors import InvalidValue

Strategy = Literal["A", "B", "C"]
Floats = NDArray[np.float64]

_PAIRS: Mapping[str, Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "zero_one": {
            "A": ("hard", "dispersion_f"),
            "B": ("dispersion_f", "soft"),
            "C": ("soft", "dispersion_f"),
        },
        "cross_entropy": {
            "A": ("mode_loss", "entropy_f"),
            "B": ("entropy_f", "mode_loss"),
            "C": ("entropy_f", "entropy_g"),
        },
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Values known of every item before its loss: arrays of N numbers, none of them a label.

    ``surrogate`` lies in [L, U], ``weight`` is never negative; ``proxy`` is the target-loss proxy
    where there is one. ``columns`` (shape [N, M]) are the surrogate scores one by one where there
    are several, and ``group`` the code of every item's group. ``lower`` and ``upper`` are bounds of
    the single losses where any are stated: known losses have both the same. ``change`` is the
    chance that the two systems of a difference do not have the same loss, where surrogates say so.
    ``item_weight`` is how much every item counts, with a mean of 1; None where all count the same.
    """

    surrogate: Floats
    weight: Floats
    proxy: Floats | None = None
    columns: Floats | None = None
    group: NDArray[np.int32] | None = None
    lower: Floats | None = None
    upper: Floats | None = None
    change: Floats | None = None
    item_weight: Floats | None = None

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays that are not None, by name; ``Scores(**arrays)`` makes the same scores."""
        arrays = {member.name: getattr(self, member.name) for member in fields(self)}
        return {name: array for name, array in arrays.items() if array is not None}

    @property
    def bounds(self) -> Bounds | None:
        """Bounds of the single losses; None if none are stated."""
        if self.lower is None or self.upper is None:
            return None
        return Bounds(self.lower, self.upper)

    def of(self, items: NDArray[Any]) -> "Scores":
        """Return the scores of some items, given by their places or by a mask."""
        return Scores(**{name: array[items] for name, array in self.arrays.items()})


def scores(pool: Pool, strategy: Strategy | None = None) -> Scores:
    """Return the scores of every item.

    A strategy computes surrogate and proxy from the probabilities. Without one, an uploaded
    surrogate (several: their mean) comes first, then strategy A, then the dispersion or entropy of
    the target alone; a pool with none of these gets s = L and weight 0, hence uniform draws.
    """
    result = _scores(pool, strategy)
    several = strategy is None and len(pool.surrogates) > 1
    return replace(
        result,
        columns=np.stack(pool.surrogates, axis=1) if several else None,
        group=pool.columns.get("group"),
        lower=pool.columns.get("loss_lower"),
        upper=pool.columns.get("loss_upper"),
        change=pool.columns.get("change"),
        item_weight=pool.item_weight,
    )


def _scores(pool: Pool, strategy: Strategy | None) -> Scores:
    columns = pool.columns
    if strategy is not None:
        return _from_strategy(pool, strategy)
    if pool.surrogates:
        return _scored(_mean(pool.surrogates), columns.get("proxy"), pool.scale)
    pairs = _PAIRS.get(pool.scale.kind)
    if pairs is not None and all(name in columns for name in pairs["A"]):
        return _from_strategy(pool, "A")
    for alone in ("dispersion_f", "entropy_f"):
        if alone in columns:
            return _scored(columns[alone], columns.get("proxy"), pool.scale)
    lowest = np.full(pool.items, pool.scale.lower)
    if "proxy" in columns:
        return _scored(lowest, columns["proxy"], pool.scale)
    return Scores(lowest, np.zeros(pool.items), None)


def strategies(pool: Pool) -> tuple[str, ...]:
    """Return the strategies that the columns of this pool allow."""
    return strategies_for(pool.scale.kind, pool.columns)


def strategies_for(kind: str, columns: Container[str]) -> tuple[str, ...]:
    """Return the strategies that these columns allow for a kind of loss."""
    pairs = _PAIRS.get(kind, {})
    return tuple(name for name, pair in pairs.items() if all(column in columns for column in pair))


def from_probabilities(
    scale: LossScale, target: Floats, surrogate: Floats | None
) -> dict[str, Floats]:
    """Return label-free columns of a batch; arguments are [n, classes], with rows that sum to 1."""
    if scale.kind == "zero_one":
        return _for_zero_one(target, surrogate)
    return _for_cross_entropy(target, surrogate, scale.upper)


def _for_zero_one(target: Floats, surrogate: Floats | None) -> dict[str, Floats]:
    columns = {"dispersion_f": np.clip(1.0 - np.square(target).sum(axis=1), 0.0, 1.0)}
    if surrogate is not None:
        guess = surrogate.argmax(axis=1)
        columns["hard"] = (target.argmax(axis=1) != guess).astype(np.float64)
        probability = np.take_along_axis(target, guess[:, None], axis=1)[:, 0]
        columns["soft"] = np.clip(1.0 - probability, 0.0, 1.0)
    return columns


def _for_cross_entropy(target: Floats, surrogate: Floats | None, upper: float) -> dict[str, Floats]:
    columns = {
        "entropy_f": np.clip(_entropy(target), 0.0, upper),
        # The largest of finitely many probabilities that sum to 1 is never 0.
        "mode_loss": np.clip(-np.log(target.max(axis=1)), 0.0, upper),
    }
    if surrogate is not None:
        columns["entropy_g"] = np.clip(_entropy(surrogate), 0.0, upper)
    return columns


def _entropy(probabilities: Floats) -> Floats:
    logs = np.log(probabilities, where=probabilities > 0.0, out=np.zeros_like(probabilities))
    total: Floats = (probabilities * logs).sum(axis=1)
    return -total


def _from_strategy(pool: Pool, strategy: Strategy) -> Scores:
    pair = _PAIRS.get(pool.scale.kind, {}).get(strategy)
    missing = () if pair is None else tuple(name for name in pair if name not in pool.columns)
    if pair is None or missing:
        able = strategies(pool)
        raise InvalidValue(
            f"The items of this pool do not carry what strategy {strategy} is computed from.",
            field="strategy",
            rule=(
                "one of " + ", ".join(able)
                if able
                else "left out for a pool without target_probs and surrogate_probs"
            ),
            value=strategy,
        )
    proxy, surrogate = pair
    return _scored(pool.columns[surrogate], pool.columns[proxy], pool.scale)


def _scored(surrogate: Floats, proxy: Floats | None, scale: LossScale) -> Scores:
    clipped = np.clip(surrogate, scale.lower, scale.upper)
    if proxy is not None:
        return Scores(clipped, np.abs(proxy - clipped), proxy)
    unit = (clipped - scale.lower) / scale.width
    weight = scale.width * np.sqrt(np.maximum(unit * (1.0 - unit), 0.0))
    return Scores(clipped, weight, None)


def _mean(columns: tuple[Floats, ...]) -> Floats:
    if len(columns) == 1:
        return columns[0]
    mean: Floats = np.mean(np.stack(columns), axis=0)
    return mean
