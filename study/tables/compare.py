"""Measure a comparison of two systems: its labels, and how often it is wrong.

Notation: d loss of A less loss of B, N items. A job is one session;
its ``part`` says of which table.

    width      until the interval of d is WIDTH wide, by several ways
    decision   until one system is at least as good, or both are equivalent within a margin
    proposal   until a candidate is accepted in place of the incumbent, or rejected, when so many
               before it were rejected; MARGIN_OF_PROPOSALS is the least improvement worth finding
    version    of a new system after an old one was judged on the same pool, to NEW_WIDTH
    interval   on made-up pools to exhaustion: does it ever lose the mean?
    answer     the same where the mean is at the border of an answer, or one item beside it

A fixed-sample count is that of a normal test with the variance, and for a decision the true mean,
known beforehand: a lower end of what can be had by looking once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.multiplicity.selection import proposed_level
from celeus.core.plans.plan import Claim, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.plans.stopping import Verdict
from celeus.core.randomness import commitment
from celeus.core.session.improvement import ImprovementTest
from celeus.core.session.session import begin_mean, judge_rounds
from celeus.simulation.backtest import paired_width
from celeus.simulation.sessions import Truth, ever_missed, opened, seed_of, simulate
from study.baselines.fixed_sample import paired_test
from study.engine.checks import data_folder
from study.engine.figure import panels
from study.engine.markdown import Columns, missed, share, table
from study.engine.rows import Rows, Values, grid
from study.engine.runner import Series
from study.engine.study import Study, counted
from study.pools.cells import cell
from study.pools.differences import WORLDS, border
from study.pools.systems import PAIRS, UNIT, Systems, systems

STUDY = "compare"
ALPHA = 0.05
POWER = 0.9
DECISIONS_PER_SEED = 4
"""They take few labels, whose number varies much: sixteen sessions do not give a median."""
WIDTH, NEW_WIDTH = 0.04, 0.05
SEPARATE_SHARE = 8
"""One pair of separate sessions for so many of the others: each takes thousands of labels."""

SEPARATE, COMPARISON = "two sessions", "comparison"
WAYS = (SEPARATE, "one stratum", "losses only", "no surrogates", COMPARISON)
DECISIONS = (
    ("MMLU: Qwen-72B, Llama-2-70b", 0.02),
    ("MMLU: Qwen-72B, deepseek-67b", 0.02),
    ("MMLU: Qwen-72B, Yi-34B", 0.02),
    ("MMLU-Pro: best, second", 0.02),
    ("ImageNet: best, second", 0.02),
    ("MMLU: Qwen-72B, Llama-2-70b", 0.0),
    ("MMLU: Qwen-72B, deepseek-67b", 0.0),
)
PROPOSED = (
    ("MMLU: Qwen-72B, Llama-2-70b", "A"),
    ("MMLU: Qwen-72B, deepseek-67b", "A"),
    ("ImageNet: second, third", "A"),
    ("MMLU: Qwen-72B, Yi-34B", "B"),
    ("MMLU: Qwen-72B, deepseek-67b", "B"),
    ("MMLU: Qwen-72B, Llama-2-70b", "B"),
)
"""Pairs, and which of the two is the candidate; the other one is the incumbent."""
FAILED = (0, 9, 99)
MARGIN_OF_PROPOSALS = 0.02
NEW = {
    "Qwen-72B → Yi-34B": ("mmlu-qwen", "mmlu-yi", "MMLU: Qwen-72B, Yi-34B"),
    "Llama-2-70b → Qwen-72B": ("mmlu-llama", "mmlu-qwen", "MMLU: Qwen-72B, Llama-2-70b"),
}
"""Pools of the old and of the new model, and the pair that they are."""
KNOWN = ("nothing", "unchanged answers", "true labels")
OLD_LABELS = (880, 4000)
ITEMS, MARGIN = 200, 12
INTERVAL_WIDTH = 0.1
BESIDE = ((0, MARGIN), (1, MARGIN), (-1, MARGIN), (MARGIN, MARGIN), (MARGIN + 1, MARGIN), (1, 0))
ANSWERS = {
    "a_at_least_as_good": "A",
    "b_at_least_as_good": "B",
    "equivalent": "E",
    "undecided": "?",
    "better": "accepted",
    "not better": "rejected",
}
FIELDS = ("labels", "answer", "missed", "wrong", "same", "mean", "fixed")
"""Of a session: ``missed`` says that its interval lost the truth at some round, ``wrong`` that its
answer is false. Of its pair: share of equal answers, mean of d, and the fixed-sample count."""

WIDTHS = f"""Labels until the difference is known to within {100 * WIDTH:g} points (± \
{50 * WIDTH:g}) at alpha {ALPHA:g}: median / 90 %. *Same*: share of the items to which both gave \
the same answer. *Two sessions*: one a system, each to half of the width at half of alpha, their \
labels added (median of a few). *Fixed sample*: a paired normal interval, looked at once. *One \
stratum*: paired betting that knows neither answers nor surrogates. *Losses only*: surrogates, but \
no answers. *No surrogates*: answers only. *Comparison*: both, which is what the service does.
"""
DECIDED = f"""Labels until one system is at least as good, or both are equivalent within the \
margin (0: no equivalence): median / 90 %. *Fixed sample*: a paired one-sided test of \
{100 * POWER:g} % power that was told the true difference beforehand. Answers: A or B at least as \
good, E equivalent. {DECISIONS_PER_SEED} sessions a seed; both lines of a pair share their draws.
"""
PROPOSALS = f"""Labels until a candidate is accepted, or rejected because it cannot be better by \
more than {100 * MARGIN_OF_PROPOSALS:g} points, after so many rejected ones: median / 90 %. \
*Difference*: errors of the candidate less those of the incumbent, in points.
"""
VERSIONS = f"""Labels to an interval {100 * NEW_WIDTH:g} points wide for a new model, on a pool of \
which an old one has been judged: median / 90 %. Known beforehand is nothing, the loss of judged \
items whose answer did not change, or, where their true labels were stored, that of all judged.
"""
INTERVALS = f"""Pools of {ITEMS} made-up items, judged to the last: sessions whose interval ever \
lost the mean difference, with Wilson's 95 % interval. At most {share(ALPHA)} may.
"""
BORDERS = f"""The same with the mean so many items of {ITEMS} from 0, and a margin of so many: \
sessions whose first answer was wrong, and those whose interval was ever beside the mean.
"""


def study(folder: Path, seeds: int, trials: int, *, quick: bool) -> Study:
    """The study on the pools in ``folder``; ``trials`` are those of made-up pools."""
    if quick:
        seeds, trials = min(seeds, 2), min(trials, 4)
    wanted = jobs(seeds, trials, quick=quick)
    series = Series(STUDY, partial(run, folder), FIELDS, parameters={"alpha": ALPHA})
    runs = f"{counted(seeds, 'seed')}, {counted(trials, 'trial')}"
    checked = partial(_check, folder, {job["pair"] for job in wanted if "pair" in job})
    title = "What a comparison costs"
    return Study(series, title, wanted, runs, page, draw, checked)


def jobs(seeds: int, trials: int, *, quick: bool = False) -> list[Values]:
    """Every session of the study, by table."""
    few, ways = (1, WAYS[1:]) if quick else (None, WAYS)
    run, trial = {"run": range(seeds)}, {"run": range(trials)}
    more = {"run": range(DECISIONS_PER_SEED * seeds)}
    old = ((0, KNOWN[0]), *((n, known) for n in OLD_LABELS[:few] for known in KNOWN[1:]))
    widths = grid({"part": ["width"]} | run | {"pair": list(PAIRS)[:few], "way": ways})
    return [
        *(job for job in widths if job["way"] != SEPARATE or job["run"] % SEPARATE_SHARE == 0),
        *grid({"part": ["decision"]} | more | {"pair, margin": DECISIONS[:few]}),
        *grid({"part": ["proposal"]} | run | {"pair, candidate": PROPOSED[:few], "failed": FAILED}),
        *grid({"part": ["version"]} | run | {"models": list(NEW)[:few], "old, known": old}),
        *grid({"part": ["interval"]} | trial | {"world": list(WORLDS)[:few]}),
        *grid({"part": ["answer"]} | trial | {"beside, margin": BESIDE[:few]}),
    ]


def _check(folder: Path, pairs: set[str]) -> None:
    """Refuse a folder without the pools, or with others."""
    chosen = [PAIRS[name] for name in pairs]
    data_folder(folder, {f"{pair.dataset}.npz" for pair in chosen})
    for pair in chosen:
        systems(folder, pair)


def run(folder: Path, job: Values) -> Values:
    """Run one job of the study."""
    return PARTS[job["part"]](folder, job)


def _width(folder: Path, job: Values) -> Values:
    pair, way = systems(folder, PAIRS[job["pair"]]), job["way"]
    seed = seed_of(f"{STUDY}/{job['pair']}/{way}", job["run"])
    truth = pair.difference()
    facts = _facts(pair, paired_width(truth.loss, WIDTH, ALPHA))
    if way == SEPARATE:
        claim = Claim(alpha=ALPHA / 2.0, precision=WIDTH / 2.0)
        both = [_ended(pair.alone(at), claim, seed + bytes([at])) for at in range(2)]
        missed = any(one["missed"] for one in both)
        return both[0] | facts | {"labels": sum(one["labels"] for one in both), "missed": missed}
    if way == "one stratum":
        truth = pair.difference(answers=False, surrogates=False)
    elif way == "losses only":
        truth = pair.difference(answers=False)
    elif way == "no surrogates":
        truth = pair.difference(surrogates=False)
    return _ended(truth, Claim(alpha=ALPHA, precision=WIDTH), seed) | facts


def _decision(folder: Path, job: Values) -> Values:
    pair, margin = systems(folder, PAIRS[job["pair"]]), job["margin"]
    truth = pair.difference()
    mean = abs(float(truth.loss.mean()))
    fixed = paired_test(truth.loss, max(mean, margin - mean), ALPHA, POWER)
    # Whatever the margin, so that what it changes is seen.
    seed = seed_of(f"{STUDY}/{job['pair']}/decide", job["run"])
    return _ended(truth, Claim(alpha=ALPHA, decide=margin), seed) | _facts(pair, fixed)


def _proposal(folder: Path, job: Values) -> Values:
    pair, of_a = systems(folder, PAIRS[job["pair"]]), job["candidate"] == "A"
    difference = pair.difference().loss * (1.0 if of_a else -1.0)
    # Whatever failed before, so that what its level changes is seen
    seed = seed_of(f"{STUDY}/{job['pair']}/{job['candidate']} proposed", job["run"])
    level = proposed_level(ALPHA, job["failed"])
    test = ImprovementTest.begin(UNIT, pair.same, level, MARGIN_OF_PROPOSALS, seed)
    while test.outcome == "undecided":
        draw = test.draw()
        test.judge(draw, float(difference[draw.item]))
    mean = round(float(difference.mean()), 4)
    wrong = test.outcome == "better" and mean >= 0.0
    values = {"labels": test.session.folded, "answer": test.outcome, "missed": wrong}
    return _facts(pair, 0) | values | {"wrong": wrong, "mean": mean}


def _version(folder: Path, job: Values) -> Values:
    old, new, name = NEW[job["models"]]
    pair, truth = systems(folder, PAIRS[name]), cell(new, folder)
    if job["known"] != KNOWN[0]:
        seed = seed_of(f"{STUDY}/{job['models']}/old", job["run"])
        judged = _judged(old, folder, job["old"], seed)
        if job["known"] == "unchanged answers":
            judged = judged & pair.same
        ends = (np.where(judged, truth.loss, end) for end in (truth.lower, truth.upper))
        lower, upper = ends
        truth = replace(truth, scores=replace(truth.scores, lower=lower, upper=upper))
    seed = seed_of(f"{STUDY}/{job['models']}/new", job["run"])
    return _ended(truth, Claim(alpha=ALPHA, precision=NEW_WIDTH), seed) | _facts(pair, 0)


def _interval(folder: Path, job: Values) -> Values:
    del folder
    chance = np.random.default_rng([job["run"], ITEMS, 14])
    seed = seed_of(f"{STUDY}/{job['world']}", job["run"])
    claim = Claim(alpha=ALPHA, precision=INTERVAL_WIDTH)
    return _watched(to_exhaustion(WORLDS[job["world"]](chance, ITEMS), claim, seed))


def _answer(folder: Path, job: Values) -> Values:
    del folder
    mean, margin = job["beside"], job["margin"]
    chance = np.random.default_rng([job["run"], ITEMS, mean % 97, 15])
    seed = seed_of(f"{STUDY}/border {mean} {margin}", job["run"])
    claim = Claim(alpha=ALPHA, decide=margin / ITEMS)
    return _watched(to_exhaustion(border(chance, ITEMS, mean), claim, seed))


def _facts(pair: Systems, fixed: int) -> Values:
    a, b = pair.losses
    same, mean = float(pair.same.mean()), float((a - b).mean())
    return {"same": round(same, 4), "mean": round(mean, 4), "fixed": fixed}


def _ended(truth: Truth, claim: Claim, seed: bytes) -> Values:
    """A session to its stop."""
    one, _ = simulate(truth, policy_named("sharp"), claim, seed)
    verdict = Verdict(claim.decide or 0.0, one.verdict or "undecided")
    values = {"labels": one.labels, "answer": verdict.answer, "missed": one.missed}
    return values | {"wrong": _is_wrong(verdict, truth)}


@lru_cache(maxsize=2)
def _judged(name: str, folder: Path, labels: int, seed: bytes) -> NDArray[np.bool_]:
    """Which items of a pool a session had judged after so many labels."""
    truth, claim = cell(name, folder), Claim(alpha=ALPHA, precision=NEW_WIDTH)
    state = opened(truth, policy_named("sharp"), claim, seed)
    judged = np.zeros(truth.loss.size, dtype=np.bool_)
    for draw in judge_rounds(state, truth.loss_of, past_stop=True):
        judged[draw.item] = True
        if draw.round == labels:
            break
    return judged


@dataclass(frozen=True, slots=True)
class ComparisonOutcome:
    """The outcome of a fully judged session: first verdict, its round, and errors."""

    labels: int
    answer: str
    missed: bool
    wrong: bool


def to_exhaustion(truth: Truth, claim: Claim, seed: bytes) -> ComparisonOutcome:
    """Judge every item of a difference, whatever has been said before."""
    plan = make_plan(claim, truth.facts, policy_named("sharp"), commitment(seed))
    state = begin_mean(plan, truth.scores, seed)
    for _ in judge_rounds(state, truth.loss_of, past_stop=True):
        pass
    verdict = state.question.verdict or Verdict(0.0)
    missed = ever_missed(state, float(truth.loss.mean()))
    labels = state.folded if verdict.round is None else verdict.round
    return ComparisonOutcome(labels, verdict.answer, missed, _is_wrong(verdict, truth))


def _is_wrong(verdict: Verdict, truth: Truth) -> bool:
    mean = float(truth.loss.mean())
    return verdict.contradicted(Interval(mean, mean), 1e-12)


def _watched(one: ComparisonOutcome) -> Values:
    values = {"labels": one.labels, "answer": one.answer, "missed": one.missed, "wrong": one.wrong}
    return values | {"same": 0.0, "mean": 0.0, "fixed": 0}


PARTS: Mapping[str, Callable[[Path, Values], Values]] = {
    "width": _width,
    "decision": _decision,
    "proposal": _proposal,
    "version": _version,
    "interval": _interval,
    "answer": _answer,
}


def page(rows: Rows) -> str:
    """The six tables."""
    parts = {part: rows.where(part=part) for part in dict.fromkeys(rows.of("part"))}
    decided = {
        "difference": _mean,
        "fixed sample": _fixed,
        "labels": middle,
        "answers": _answers,
        "wrong": lambda runs: f"{sum(runs.of('wrong'))} of {len(runs)}",
    }
    known = {f"{known}, {old} judged": partial(_of, known, old) for old, known in _known(rows)}
    tables: Mapping[str, tuple[str, str, Sequence[str], Columns]] = {
        "width": ("To a width", WIDTHS, ["pair"], _width_columns()),
        "decision": ("To a decision", DECIDED, ["pair", "margin"], decided),
        "proposal": ("Proposals", PROPOSALS, ["pair", "candidate"], _proposal_columns()),
        "version": ("A new version", VERSIONS, ["models"], known),
        "interval": ("How often the interval is wrong", INTERVALS, ["world"], {"missed": missed}),
        "answer": (
            "How often the answer is wrong",
            BORDERS,
            ["beside", "margin"],
            {"wrong answer": _wrong, "missed": missed},
        ),
    }
    text = [
        f"## {title}\n\n{words}\n{table(parts[part], keys, columns)}"
        for part, (title, words, keys, columns) in tables.items()
    ]
    return "\n".join(text)


def _width_columns() -> Columns:
    def by(way: str) -> Callable[[Rows], str]:
        return lambda runs: middle(Rows(one for one in runs if one["way"] == way))

    return {
        "same": lambda runs: share(runs[0]["same"]),
        "difference": _mean,
        SEPARATE: _separate,
        "fixed sample": _fixed,
        **{way: by(way) for way in WAYS[1:]},
    }


def _proposal_columns() -> Columns:
    def after(failed: int) -> Callable[[Rows], str]:
        return lambda runs: middle(runs.where(failed=failed))

    columns = {f"after {failed}": after(failed) for failed in FAILED}
    return {"difference": _mean, **columns, "answers": _answers}


def _known(rows: Rows) -> list[tuple[int, str]]:
    return list(rows.where(part="version").by("old", "known"))


def _of(known: str, old: int, runs: Rows) -> str:
    return middle(runs.where(known=known, old=old))


def middle(runs: Rows) -> str:
    """Median and 90 % of the labels."""
    if not runs:
        return "–"
    labels = runs.of("labels")
    return f"{np.median(labels):.0f} / {np.quantile(labels, 0.9, method='nearest'):.0f}"


def _separate(runs: Rows) -> str:
    """Median alone: of a few."""
    few = [one["labels"] for one in runs if one["way"] == SEPARATE]
    return f"{np.median(few):.0f}" if few else "–"


def _mean(runs: Rows) -> str:
    return f"{100.0 * runs[0]['mean']:+.1f}"


def _fixed(runs: Rows) -> str:
    return str(runs[0]["fixed"])


def _answers(runs: Rows) -> str:
    return ", ".join(f"{ANSWERS[one]} {len(of)}" for (one,), of in runs.by("answer").items())


def _wrong(runs: Rows) -> str:
    return missed(runs.plus(lambda row: {"missed": row["wrong"]}))


def draw(rows: Rows, path: Path) -> None:
    """Write the picture as PNG: labels to the width, a group for every pair."""
    widths = rows.where(part="width")
    groups, ways = widths.by("pair"), widths.by("way")
    with panels(path, size=(8.0, 0.8 + 0.7 * len(groups))) as ((panel,),):
        for at, (pair,) in enumerate(groups):
            fixed = groups[pair,][0]["fixed"]
            panel.plot(fixed, at, "k|", markersize=14, label=None if at else "fixed sample")
        for marker, (way,) in zip("sD^vo", ways, strict=False):
            runs = ways[way,].by("pair")
            labels = [float(np.median(one.of("labels"))) for one in runs.values()]
            panel.plot(labels, range(len(runs)), marker, label=way)
        panel.set_yticks(range(len(groups)), [pair for (pair,) in groups])
        panel.set(xscale="log", xlabel="labels, median", ylim=(-0.5, len(groups) - 0.5))
        panel.invert_yaxis()
        panel.legend(frameon=False, fontsize="small")
