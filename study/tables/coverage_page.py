"""The coverage study as a page: counts beside the paper's, a verdict and a picture.

A policy claims that its interval ever loses the risk with probability at most alpha. The claim is
rejected by an exact binomial test; all tests of a study together reject a true claim with
probability at most ``LEVEL`` (Bonferroni over policies and targets).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import bdtrc

from study.baselines.fixed_sample import wilson_ends
from study.engine.figure import panels
from study.engine.judges import BROKEN
from study.engine.markdown import table
from study.engine.rows import Rows, Values
from study.engine.study import Study
from study.tables.coverage import CER_EVAL, CLAIMING, PPI, RAW, WILSON, Options, Setting

PAPER = {CER_EVAL: "0.161"} | dict.fromkeys((RAW, "no_surrogate", "celeus"), "0.021 – 0.030")
"""Miscoverage at the stop in Table 1 of the CELEUS paper."""
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
    """A count of events in ``trials``, with Wilson's interval of their probability."""

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
class Line:
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


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of the trials for every claim."""

    lines: Sequence[Line]
    alpha: float

    @classmethod
    def of(cls, rows: Rows, alpha: float) -> "Verdict":
        """The verdict of the trials; a line for every method and target, in order of appearance."""
        lines = [
            Line(
                method,
                target,
                missed=Count.of(runs.of("missed")),
                ever=Count.of(runs.of("ever")),
                broken=runs.of("stopped").count(BROKEN),
                labels=float(np.median(runs.of("labels"))),
                reached=runs.of("stopped").count("target_reached") / len(runs),
                seconds=float(np.median(runs.of("seconds"))),
            )
            for (method, target), runs in rows.by("method", "target").items()
        ]
        return cls(lines, alpha)

    @property
    def tested(self) -> list[Line]:
        """The lines that make a claim."""
        return [line for line in self.lines if line.claims]

    @property
    def rejected(self) -> list[Line]:
        """The policies whose claim the trials reject."""
        level = LEVEL / max(len(self.tested), 1)
        return [line for line in self.tested if line.ever.above(self.alpha) < level]

    def __str__(self) -> str:
        """Which claims the trials reject."""
        if not self.tested:
            return "No policy's claim is among the methods."
        tests = f"(exact binomial tests of {len(self.tested)} claims,"
        tests += f" error probability {LEVEL:g} in all)"
        if not self.rejected:
            return f"No policy misses significantly more often than alpha {tests}."
        names = ", ".join(f"{NAMES[line.method]} for the {line.target}" for line in self.rejected)
        return f"**Rejected: {names}** {tests}."

    def to_dict(self, head: Values) -> Values:
        """Counts and verdict as plain values."""
        methods = [
            {
                **asdict(line),
                "missed": asdict(line.missed) | {"rate": line.missed.rate},
                "ever": asdict(line.ever) | {"rate": line.ever.rate},
                "tested": line.claims,
                "p_value": line.ever.above(self.alpha),
                "rejected": line in self.rejected,
            }
            for line in self.lines
        ]
        error = {"alpha": self.alpha, "error_probability": LEVEL}
        return {**head, **error, "methods": methods, "sound": not self.rejected}


def study(options: Options) -> Study:
    """The study of these options."""
    title = "Coverage of rare losses" if options.rare else "Coverage"
    setting, runs = options.setting, f"{options.count} trials"
    to_page, to_picture = partial(page, setting), partial(draw, setting.alpha)
    return Study(options.series, title, options.jobs, runs, to_page, to_picture)


def page(setting: Setting, rows: Rows) -> str:
    """Setting, table and verdict as Markdown."""
    world, crowd, verdict = setting.world, setting.crowd, Verdict.of(rows, setting.alpha)
    risks = f"{world.least_risk:g} to {world.largest_risk:g}"
    judges = "one judge" if crowd.judges == 1 else f"{crowd.judges} judges at once"
    beyond = f", who go on to {crowd.beyond:g} times its labels" if crowd.beyond > 1.0 else ""
    return (
        f"Every trial draws a pool of {world.items} items from {world.groups} latent groups with"
        f" risks from {risks}; surrogate noise {world.noise:g}, {world.dimensions} dimensions;"
        f" population risk {world.risk:g}. A session stops at the first round with a width of at"
        f" most {setting.precision:g}; {judges}{beyond}; alpha {setting.alpha:g}."
        f"\n\n{_table(verdict.lines, setting)}\n{verdict}\n"
    )


def _table(lines: Sequence[Line], setting: Setting) -> str:
    """A line for every method and target; the paper's figures stand beside our reading of it."""
    paper = PAPER if setting == Setting() else {}
    rows = Rows(
        {
            "method": NAMES[line.method],
            "target": line.target,
            "trials": str(line.missed.trials),
            "missed at the stop": f"{line.missed}{broken}",
            "missed at any look": str(line.ever),
            "paper": paper.get(line.method, "") if line.target == "population" else "",
            "labels, median": f"{line.labels:.0f}",
            "reached it": f"{line.reached:.0%}",
            "seconds": f"{line.seconds:.3f}",
        }
        for line in lines
        for broken in [f", {line.broken} broken" if line.broken else ""]
    )
    words = ("method", "target", "missed at the stop", "missed at any look")
    return table(rows, tuple(rows[0]), {}, words)


def draw(alpha: float, rows: Rows, path: Path) -> None:
    """Write the picture as PNG: misses at the stop and at any look, with their intervals."""
    lines = Verdict.of(rows, alpha).lines
    with panels(path, size=(9.0, 0.8 + 0.42 * len(lines))) as ((panel,),):
        for place, line in enumerate(lines):
            colour = "#0b6e4f" if line.claims else "#8d8d8d"
            for count, shift, mark in ((line.missed, -0.12, "o"), (line.ever, 0.12, "x")):
                error = [[count.rate - count.lower], [count.upper - count.rate]]
                panel.errorbar(
                    count.rate, place + shift, xerr=error, fmt=mark, ms=5, color=colour, capsize=2
                )
        panel.axvline(alpha, color="black", ls="--", lw=1)
        names = [f"{NAMES[line.method].replace('`', '')}, {line.target}" for line in lines]
        panel.set_yticks(range(len(lines)), names)
        panel.invert_yaxis()
        panel.set_xlim(left=-0.005)
        label = "share of trials that miss: at the stop (o), at any look (x)"
        panel.set_xlabel(f"{label}; alpha {alpha:g}")
