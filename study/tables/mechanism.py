"""Mechanism: the bias that weighting removes, and the variance that a proposal saves.

Notation: N items, J those not drawn (n of them), q their probabilities, r_j = l_j - s_j, R the
pool risk, t draws made.

    signal        S = P + r_i / (N q_i)                        mean R (CELEUS, Eq. 1 and Thm. 3)
    its variance  sum r_j^2 / (N^2 q_j) - (sum r_j / N)^2      over J; given the draws so far
    its least     (sum |r_j|)^2 / N^2 - (sum r_j / N)^2        q in proportion to |r|; Thm. 4
    naive         l_i: the loss as it comes, as if draws were uniform
    unweighted    P + n r_i / N: the residual as if draws were uniform

and, over the t draws: ``lure`` (Eq. 4, ``core.eprocess.lure``), ``signals`` (mean of S),
``residuals`` (mean of all s plus mean of r, u_m = 1 in Eq. 4) and ``losses`` (mean of l). Variances
and the mean squared errors of the next draw are exact given the draws so far; means are over many
sessions.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.published import Lure
from celeus.core.betting.signals import signal
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import POLICIES, policy_named
from celeus.core.pools.strata import strata_of
from celeus.core.pools.surrogates import Scores
from celeus.core.randomness import uniforms
from celeus.core.sampling.proposals import MixtureProposal, draw_orders
from celeus.core.session.session import judge_rounds
from celeus.simulation.sessions import (
    Truth,
    opened,
    oracle_scores,
    seed_of,
    strata_means,
)
from study.engine.figure import COLOURS, panels
from study.engine.markdown import Columns, table
from study.engine.rows import Rows, Values, grid
from study.engine.runner import Series
from study.engine.study import Study, counted
from study.pools.real import truth_of
from study.tables.courses import ALPHA, POOLS, PRECISION, check

Floats = NDArray[np.float64]

STUDY = "mechanism"
AFTER = (50, 100, 200, 400, 800)
QUICK_SESSIONS = 8
GUIDED = "guided"
DESIGNS = ("plain", "uniform", GUIDED, "oracle", "sharp")
"""How items are drawn: uniformly without and with the surrogate, by the policy ``celeus``, by
|l - s| (``oracle``, beta as ``celeus``), by ``sharp``."""
NAMES = ("lure", "signals", "residuals", "losses")
FIELDS = ("draws", *NAMES, "variance", "least", "naive", "unweighted")
"""Of a checkpoint: errors of the four estimates after so many draws, then of the next draw."""
NEXT = {"next: signal": "variance", "next: unweighted": "unweighted", "next: loss": "naive"}
SHARP_SHARE = 4
"""One session of ``sharp`` for so many of the others: it is slow and only its variance counts."""
BIAS = """Mean error in points (hundredths of the scale) ± two standard errors, draws by the policy
`celeus`. `lure` and `signals` weight by the probabilities; `residuals` and `losses` do not."""
ERRORS = """The four estimates: root mean squared error in points. The coming draw: mean squared
error of the signal (its variance), of the unweighted signal and of the loss as it comes, about the
pool risk."""
VARIANCES = """Exact given the draws so far, averaged over sessions; in brackets as a share of
uniform draws without a surrogate (`plain`). `least` is what no proposal can beat with the surrogate
as it came, after `guided` draws. `sharp` has another surrogate, recalibrated from the labels seen,
and may go below; it stands for a quarter of the sessions."""


def study(folder: Path, sessions: int, *, quick: bool) -> Study:
    """The study on the pools in ``folder``."""
    sessions = min(sessions, QUICK_SESSIONS) if quick else sessions
    pools = tuple(POOLS)[:1] if quick else tuple(POOLS)
    own, title = series(folder, AFTER[:2] if quick else AFTER), "Bias and variance"
    runs, checked = counted(sessions, "session"), partial(check, folder, [POOLS[p] for p in pools])
    return Study(own, title, jobs(sessions, pools), runs, page, draw, checked)


def jobs(sessions: int, pools: Sequence[str] = tuple(POOLS)) -> list[Values]:
    """Every session of the study, the first run of everything first."""
    every = grid({"run": range(sessions), "pool": pools, "design": DESIGNS})
    return [job for job in every if job["design"] != "sharp" or job["run"] % SHARP_SHARE == 0]


def series(folder: Path, after: Sequence[int] = AFTER) -> Series:
    """The sessions on the pools in ``folder``."""
    return Series(
        STUDY, partial(run, folder, after), ("risk", "after"), parameters={"after": after}
    )


def run(folder: Path, after: Sequence[int], job: Values) -> Values:
    """Run one job: draws of a design that never stop early; ``after`` holds the checkpoints."""
    truth = truth_of(folder, POOLS[job["pool"]])
    seed = seed_of(f"{STUDY}/{job['pool']}/{job['design']}", job["run"])
    walk = (
        stratified_session if job["design"] == "sharp" else partial(mixture_session, job["design"])
    )
    values = [[one[name] for name in FIELDS] for one in walk(truth, seed, after)]
    return {"risk": float(truth.loss.mean()), "after": values}


def scores_of(design: str, truth: Truth) -> Scores:
    """Surrogate and score of every item under a design of mixed draws."""
    item_scores = truth.scores
    if design == "plain":
        lowest = np.full(truth.loss.size, truth.lower)
        return Scores(lowest, np.zeros(truth.loss.size), None)
    if design == "uniform":
        return Scores(item_scores.surrogate, np.zeros(truth.loss.size), None)
    return oracle_scores(truth) if design == "oracle" else item_scores


def mixture_session(design: str, truth: Truth, seed: bytes, after: Sequence[int]) -> list[Values]:
    """Draws by scores mixed with uniform ones; what holds at every checkpoint."""
    item_scores = scores_of(design, truth)
    loss, surrogate, items = truth.loss, item_scores.surrogate, truth.loss.size
    proposal = MixtureProposal(
        item_scores.weight, draw_orders(item_scores.weight, seed), POLICIES["celeus"].beta
    )
    coins = uniforms(seed, "coin", after[-1])
    mean = float(surrogate.mean())
    lure, surrogate_sum, sums = Lure(items, mean), float(surrogate.sum()), np.zeros(3)
    loss_sum, points = 0.0, []
    for round_ in range(1, after[-1] + 1):
        item, q = proposal.draw(float(coins[round_ - 1]))
        residual = float(loss[item] - surrogate[item])
        lure.record(residual, q)
        sums += (
            signal((loss_sum + surrogate_sum) / items, residual, items, q),
            mean + residual,
            loss[item],
        )
        loss_sum += float(loss[item])
        surrogate_sum -= float(surrogate[item])
        proposal.take(item, round_)
        if round_ in after:
            coming = next_draw(
                proposal.probabilities(), loss, surrogate, (loss_sum + surrogate_sum) / items
            )
            points.append(_checkpoint(round_, truth, lure.value, sums, coming))
    return points


def _checkpoint(
    draws: int, truth: Truth, estimate: float, sums: Floats, coming: tuple[float, ...]
) -> Values:
    risk = float(truth.loss.mean())
    errors = (estimate - risk, *(float(one) for one in sums / draws - risk))
    return dict(zip(FIELDS, (draws, *errors, *coming), strict=True))


def next_draw(
    q: Floats, loss: Floats, surrogate: Floats, plug_in: float
) -> tuple[float, float, float, float]:
    """Variance of the next draw's signal, and the least that any q gives.

    Then the mean squared errors of the naive and of the unweighted signal. ``q`` (shape [N]) is 0
    for items drawn.
    """
    items, risk, mask = loss.size, float(loss.mean()), q > 0.0
    chance, residual = q[mask], (loss - surrogate)[mask]
    centre = (float(residual.sum()) / items) ** 2
    variance = float((residual**2 / chance).sum()) / items**2 - centre
    least = (float(np.abs(residual).sum()) / items) ** 2 - centre
    naive = float(chance @ (loss[mask] - risk) ** 2)
    as_if = plug_in + chance.size * residual / items
    return variance, max(least, 0.0), naive, float(chance @ (as_if - risk) ** 2)


def stratified_session(truth: Truth, seed: bytes, after: Sequence[int]) -> list[Values]:
    """Draws by ``sharp``, whose surrogates change with the labels; ``lure`` is its own estimate."""
    state = opened(truth, policy_named("sharp"), Claim("pool", ALPHA, PRECISION), seed)
    plan = state.question.plan
    strata = strata_of(truth.scores, plan.scale)
    code, share = strata.code, strata.size / plan.items
    sums, points = np.zeros(3), []

    def surrogates() -> Floats:
        return state.question.plan.scale.lower + state.question.plan.scale.width * strata_means(
            state
        )

    mean = float(share @ surrogates())
    for draw in judge_rounds(state, truth.loss_of, past_stop=True):
        loss, completion = float(truth.loss[draw.item]), state.question.points[-1].plus
        sums += completion.signal, mean + loss - completion.surrogate, loss
        mean = float(share @ surrogates())
        if draw.round in after:
            mask = state.question.proposal.drawn_in == 0
            q = np.where(mask, state.propose().q_by_stratum[code], 0.0)
            surrogate = surrogates()[code]
            plug_in = float(np.where(mask, surrogate, truth.loss).mean())
            coming = next_draw(q, truth.loss, surrogate, plug_in)
            points.append(_checkpoint(draw.round, truth, state.question.estimate, sums, coming))
        if draw.round == after[-1]:
            break
    return points


def page(rows: Rows) -> str:
    """Bias of the estimates, their errors and the next draw's, and the conditional variance."""
    points = checkpoints(rows)
    guided, keys = points.where(design=GUIDED), ("pool", "draws")
    sessions = min(len(runs) for runs in guided.by(*keys).values())
    biases = {name: partial(_bias, name) for name in NAMES}
    errors: Columns = {
        **{name: partial(_root, name) for name in NAMES},
        **{head: partial(_mean, name) for head, name in NEXT.items()},
    }
    variances = {name: partial(_variance, name) for name in (*DESIGNS, "least")}
    parts = [
        "## Bias under guided draws",
        f"Over {sessions} sessions a pool. {BIAS}",
        table(guided, keys, biases, words=("pool",)),
        "## Mean squared error",
        ERRORS,
        table(guided, keys, errors, words=("pool",)),
        "## Conditional variance of the coming signal",
        VARIANCES,
        table(points, keys, variances, words=("pool",)),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def checkpoints(rows: Rows) -> Rows:
    """A row for every session and checkpoint."""
    return Rows(
        row | dict(zip(FIELDS, values, strict=True)) for row in rows for values in row["after"]
    )


def bias(name: str, runs: Rows) -> tuple[float, float]:
    """Mean error of an estimate in points, and two standard errors."""
    errors = 100.0 * np.array(runs.of(name))
    return float(errors.mean()), float(2.0 * errors.std(ddof=1) / np.sqrt(errors.size))


def variance(name: str, runs: Rows) -> float:
    """Mean conditional variance of a design, or ``least``."""
    column, design = ("least", GUIDED) if name == "least" else ("variance", name)
    return float(np.mean(runs.where(design=design).of(column)))


def _bias(name: str, runs: Rows) -> str:
    mean, two = bias(name, runs)
    return f"{mean:+.2f} ± {two:.2f}"


def _root(name: str, runs: Rows) -> str:
    return f"{np.sqrt(((100.0 * np.array(runs.of(name))) ** 2).mean()):.2f}"


def _mean(name: str, runs: Rows) -> str:
    return f"{np.mean(runs.of(name)):.4f}"


def _variance(name: str, runs: Rows) -> str:
    here = variance(name, runs)
    return f"{here:.4f} ({here / variance('plain', runs):.2f})"


def draw(rows: Rows, path: Path) -> None:
    """Write the picture as PNG: the four biases above, the conditional variances below."""
    pools = checkpoints(rows).by("pool")
    with panels(path, 2, len(pools), size=(4.2 * len(pools), 6.4)) as cells:
        for above, below, ((pool,), points) in zip(*cells, pools.items(), strict=True):
            guided = points.where(design=GUIDED).by("draws")
            draws = [number for (number,) in guided]
            for name in NAMES:
                means, errors = zip(*(bias(name, runs) for runs in guided.values()), strict=True)
                above.errorbar(draws, means, yerr=errors, label=name)
            above.axhline(0.0, color="black", lw=0.8)
            above.set_title(f"{pool}: bias under guided draws", fontsize="medium")
            for name in (*DESIGNS, "least"):
                numbers = [variance(name, runs) for runs in points.by("draws").values()]
                style = "--" if name == "least" else "-"
                below.plot(draws, numbers, style, color=COLOURS[name], label=name)
            below.set_title(f"{pool}: variance of the coming signal", fontsize="medium")
            below.set_ylim(bottom=0.0)
            for panel in (above, below):
                panel.set(xscale="log", xlabel="draws")
                panel.set_xticks(draws, [str(one) for one in draws])
                panel.minorticks_off()
        cells[0][0].set_ylabel("points")
        for row in cells:
            row[-1].legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
