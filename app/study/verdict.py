"""What the trials of the coverage study say: counts with their intervals, and a verdict.

A policy claims that its interval ever loses the risk with probability at most alpha. The claim is
rejected by an exact binomial test; all tests of a study together reject a true claim with
probability at most ``LEVEL`` (Bonferroni over policies and targets).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import bdtrc

from app.study.coverage import CER_EVAL, CLAIMING, PPI, RAW, WILSON, Result, Setting
from app.study.peeked import wilson_ends

LEVEL = 1e-3
"""Probability that a study of sound policies rejects any of them."""

NAMES = {
    WILSON: "Wilson, peeked at",
    PPI: "PPI++, peeked at",
    CER_EVAL: "Cer-Eval",
    "evalue": "`evalue`",
    RAW: "`evalue`, authors' form",
    "no_surrogate": "`no_surrogate`",
    "celeus": "`celeus`",
    "oracle": "`oracle`",
    "uniform": "`uniform`",
    "sharp": "`sharp`",
}


@dataclass(frozen=True, slots=True)
class Count:
    """How often something happened in ``trials``, with Wilson's interval of its probability."""

    times: int
    trials: int
    lower: float
    upper: float

    @classmethod
    def of(cls, happened: Sequence[bool]) -> "Count":
        """Count what is true; the interval is at 95 %, for one look."""
        trials = np.array([len(happened)])
        lower, upper = wilson_ends(np.array([float(sum(happened))]), trials, 0.05)
        # Wilson's ends are 0 and 1 there, but for rounding.
        least = 0.0 if not any(happened) else float(lower[0])
        return cls(sum(happened), len(happened), least, 1.0 if all(happened) else float(upper[0]))

    @property
    def rate(self) -> float:
        """Share of the trials."""
        return self.times / self.trials

    def above(self, alpha: float) -> float:
        """The p value of the exact test that the probability is at most ``alpha``."""
        # P(X >= times); the survival function counts from times - 1.
        return float(bdtrc(self.times - 1, self.trials, alpha)) if self.times else 1.0

    def __str__(self) -> str:
        return f"{self.rate:.3f} ({self.lower:.3f} – {self.upper:.3f})"


@dataclass(frozen=True, slots=True)
class Row:
    """All trials of one method for one target."""

    method: str
    target: str
    missed: Count
    ever: Count
    broken: int
    labels: float
    reached: float
    seconds: float

    @property
    def claims(self) -> bool:
        """The method is a policy whose claim is tested."""
        return self.method in CLAIMING


def rows(results: Iterable[Result]) -> list[Row]:
    """A row for every method and target, in the order they came."""
    grouped: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for one in results:
        grouped[one.job.method, one.job.target].append(one)
    return [
        Row(
            method,
            target,
            missed=Count.of([one.missed for one in found]),
            ever=Count.of([one.ever for one in found]),
            broken=sum(one.stopped == "broken" for one in found),
            labels=float(np.median([one.labels for one in found])),
            reached=float(np.mean([one.stopped == "target_reached" for one in found])),
            seconds=float(np.median([one.seconds for one in found])),
        )
        for (method, target), found in grouped.items()
    ]


def rejected(found: Sequence[Row], alpha: float) -> list[Row]:
    """The policies whose claim the trials reject."""
    tested = [row for row in found if row.claims]
    return [row for row in tested if row.ever.above(alpha) < LEVEL / len(tested)]


def sentence(found: Sequence[Row], alpha: float) -> str:
    """Which claims the trials reject."""
    tested = sum(row.claims for row in found)
    if not tested:
        return "No policy's claim is among the methods."
    error = f"(exact binomial tests of {tested} claims, error probability {LEVEL:g} in all)"
    bad = rejected(found, alpha)
    if not bad:
        return f"No policy misses significantly more often than alpha {error}."
    names = ", ".join(f"{NAMES[row.method]} for the {row.target}" for row in bad)
    return f"**Rejected: {names}** {error}."


def as_json(found: Sequence[Row], setting: Setting, head: dict[str, Any]) -> dict[str, Any]:
    """The counts and the verdict as plain values."""
    bad = rejected(found, setting.alpha)
    return {
        **head,
        "alpha": setting.alpha,
        "error_probability": LEVEL,
        "methods": [
            {
                **asdict(row),
                "missed": asdict(row.missed) | {"rate": row.missed.rate},
                "ever": asdict(row.ever) | {"rate": row.ever.rate},
                "tested": row.claims,
                "p_value": row.ever.above(setting.alpha),
                "rejected": row in bad,
            }
            for row in found
        ],
        "sound": not bad,
    }
