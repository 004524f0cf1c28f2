"""`celeus study coverage`: from its options to what is written or printed."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from app.study import coverage, verdict
from app.study.checks import can_draw, chosen, within
from app.study.coverage import (
    COMPARED_SHARE,
    METHODS,
    QUICK,
    RARE,
    RARE_METHODS,
    Setting,
    Target,
    jobs,
    series,
)
from app.study.heads import command_line, head, write_page
from app.study.runner import measure
from app.study.synthetic import checked
from app.study.verdict import Row

TRIALS = 1000
QUICK_TRIALS = 50
MOST_JUDGES = 10_000


@dataclass(frozen=True, slots=True)
class Options:
    """The options as given; None stands for the default of the setting, quick or full."""

    world: Mapping[str, Any] = field(default_factory=dict)
    precision: float | None = None
    alpha: float | None = None
    judges: int | None = None
    trials: int | None = None
    seed: int = 0
    methods: Sequence[str] | None = None
    targets: Sequence[str] | None = None
    quick: bool = False
    rare: bool = False

    @property
    def name(self) -> str:
        """What the files are called."""
        return "coverage-rare" if self.rare else "coverage"

    @property
    def setting(self) -> Setting:
        """The setting asked for; refuses one that cannot be."""
        base = QUICK if self.quick else RARE if self.rare else Setting()
        world = {name: value for name, value in self.world.items() if value is not None}
        setting = replace(base, world=checked(replace(base.world, **world)))
        if self.precision is not None:
            setting = replace(setting, precision=within("precision", self.precision, 0.0, 1.0))
        if self.alpha is not None:
            setting = replace(setting, alpha=within("alpha", self.alpha, 0.0, 1.0))
        if self.judges is not None:
            judges = int(within("judges", self.judges, 0, MOST_JUDGES + 1))
            setting = replace(setting, crowd=replace(setting.crowd, judges=judges))
        return setting


@dataclass(frozen=True, slots=True)
class Found:
    """What the trials came to."""

    setting: Setting
    head: dict[str, Any]
    rows: list[Row]

    @property
    def sound(self) -> bool:
        """No policy misses significantly more often than alpha."""
        return not verdict.rejected(self.rows, self.setting.alpha)

    @property
    def verdict(self) -> str:
        """The same as a sentence."""
        return verdict.sentence(self.rows, self.setting.alpha)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return verdict.as_json(self.rows, self.setting, self.head)


def run(options: Options, out: Path | None, processes: int | None) -> Found:
    """Run the trials and write page, picture and lines in ``out``; without it nothing is kept."""
    setting = options.setting
    known = RARE_METHODS if options.rare else METHODS
    methods = chosen(options.methods, METHODS, "method") if options.methods else list(known)
    targets = _targets(options)
    coverage.check(setting, methods, targets)
    trials = options.trials or (QUICK_TRIALS if options.quick else TRIALS)
    # Who names the methods, or wants the small test, gets them all in every trial.
    whole = options.quick or options.methods
    compared = trials if whole else -(-trials // COMPARED_SHARE)
    asked = jobs(trials, methods, targets, compared)
    own = series(setting, options.seed, options.name)
    if out is None:
        with tempfile.TemporaryDirectory(prefix="celeus-coverage-") as folder:
            results = measure(own, asked, Path(folder) / "coverage.jsonl", processes)
        return Found(setting, own.head, verdict.rows(results))
    can_draw()
    results = measure(own, asked, out / f"{options.name}.jsonl", processes)
    found = Found(setting, own.head, verdict.rows(results))
    _write(found, out, options, trials)
    return found


def _targets(options: Options) -> list[Target]:
    known = get_args(Target)
    default = known if options.quick else ("population",)
    names = chosen(options.targets, known, "target") if options.targets else default
    return [one for one in known if one in names]


def _write(found: Found, out: Path, options: Options, trials: int) -> None:
    from app.study.coveragepage import draw, page  # noqa: PLC0415 -- brings matplotlib

    name = options.name
    title = "Coverage of rare losses" if options.rare else "Coverage"
    top = head(title, command_line(), seed=options.seed, runs=f"{trials} trials")
    write_page(out, name, f"{top}{page(found.rows, found.setting)}\n![{title}]({name}.png)\n")
    draw(found.rows, found.setting.alpha, out / f"{name}.png")
