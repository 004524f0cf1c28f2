"""`celeus dev simulate`: sessions on a pool whose losses are known, without a server."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from celeus.commands.options import NUMBER
from celeus.errors import InvalidValue
from celeus.units import SHARES, Ends, check_asked_alpha, number_on

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.core.plans.plan import Claim
    from celeus.core.plans.policies import Policy
    from celeus.core.plans.stopping import Question
    from celeus.simulation.best import BestReport
    from celeus.simulation.report import Report
    from celeus.simulation.tables import TableReport

PRECISION = 0.05


def simulate(  # noqa: PLR0913 -- one parameter an option
    file: Annotated[
        Path,
        typer.Argument(
            help="An .npz with arrays loss and surrogate, optionally proxy, group, known and"
            " weight; or, of two systems, loss_a and loss_b, optionally answer_a, answer_b,"
            " surrogate_a, surrogate_b and weight; or, with --best, loss and optionally answer and"
            " surrogate, [N, k] each; or, of several metrics and groups, loss_NAME, surrogate_NAME"
            " and group_NAME."
        ),
    ],
    *,
    policy: Annotated[str, typer.Option(help="Policy that chooses items and bets.")] = ("sharp"),
    target: Annotated[str, typer.Option(help="pool or population")] = "pool",
    precision: Annotated[
        str | None,
        typer.Option(
            metavar=NUMBER,
            help="Interval width to stop at; default: 0.05, or none with a question.",
        ),
    ] = None,
    at_most: Annotated[
        str | None,
        typer.Option(
            metavar=NUMBER, help="Ask whether the risk is at most this, and stop at the answer."
        ),
    ] = None,
    at_least: Annotated[
        str | None,
        typer.Option(
            metavar=NUMBER, help="Ask whether it is at least this; with both, stop at both answers."
        ),
    ] = None,
    margin: Annotated[
        str | None,
        typer.Option(
            metavar=NUMBER,
            help="Of two systems: decide which is at least as good, or that they are equivalent"
            " within this; 0: no equivalence.",
        ),
    ] = None,
    best: Annotated[
        bool, typer.Option("--best", help="Seek the best of k systems, until one is left.")
    ] = False,
    groups: Annotated[
        bool, typer.Option("--groups", help="Report the groups of the file, too.")
    ] = False,
    group_precision: Annotated[
        str | None,
        typer.Option(
            metavar=NUMBER, help="Interval width that every group is to have; default: as it comes."
        ),
    ] = None,
    together: Annotated[
        bool, typer.Option("--together", help="All intervals hold at once with 1 - alpha.")
    ] = False,
    small_groups: Annotated[
        str, typer.Option(help="Groups under 30 items: merge, or whole, to be judged whole.")
    ] = "merge",
    budget: Annotated[
        int | None, typer.Option(help="Labels at most; default: all items that can be drawn.")
    ] = None,
    alpha: Annotated[
        str, typer.Option(metavar=NUMBER, help="Probability of ever being wrong.")
    ] = "0.05",
    runs: Annotated[
        int, typer.Option(help="How many sessions to simulate, each with its own seed.")
    ] = 20,
    ahead: Annotated[
        int, typer.Option(help="Draws out at once: how many judges work at a time.")
    ] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 0,
    lower: Annotated[float, typer.Option(help="Smallest possible loss.")] = 0.0,
    upper: Annotated[float, typer.Option(help="Largest possible loss.")] = 1.0,
    population_bound: Annotated[
        str | None, typer.Option(help="pairs, exact_pairs, hoeffding, kl or clopper_pearson")
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", help="A parameter of the policy, such as beta=0.2."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Simulate sessions on a pool whose losses are known, without a server; count labels."""
    from celeus.core.plans.plan import Claim
    from celeus.simulation.files import is_table

    _check_positive(runs=runs, ahead=ahead)
    plan_policy = _policy(policy, parameter or [])
    of_mean = {
        "policy": policy != "sharp",
        "target": target != "pool",
        "at_most": at_most is not None,
        "at_least": at_least is not None,
        "margin": margin is not None,
        "population_bound": population_bound is not None,
    }
    of_table = {
        "groups": groups,
        "group_precision": group_precision is not None,
        "together": together,
        "small_groups": small_groups != "merge",
    }
    scale, level = (lower, upper), number_on(SHARES[0], alpha, "alpha")
    check_asked_alpha(level)
    width = _on(scale, precision, "precision")
    shared = SimulationOptions(file, lower, upper, level, budget, runs, ahead, seed)
    report: BestReport | TableReport | Report
    if best:
        rule = "left out with --best, which asks which system has the least mean loss of the pool"
        _refuse(of_mean | {"precision": precision is not None} | of_table, rule)
        report = _simulate_best(shared, plan_policy.beta)
    elif is_table(file) or any(of_table.values()):
        _refuse(of_mean, "left out where there are several metrics or groups")
        account = "together" if together else "each"
        report = _simulate_table(
            shared,
            plan_policy.beta,
            account=account,
            precision=width,
            group_precision=_on(scale, group_precision, "group_precision"),
            small_groups=small_groups,
        )
    else:
        thresholds = (_on(scale, at_most, "at_most"), _on(scale, at_least, "at_least"))
        questions = _questions(*thresholds)
        if width is None and not questions and margin is None:
            width = PRECISION
        claim = Claim(
            target,  # type: ignore[arg-type]
            level,
            width,
            population_bound=population_bound,
            questions=questions,
            decide=_on(scale, margin, "margin"),
            budget=budget,
        )
        report = _simulate_mean(shared, plan_policy, claim)
    _print(report, as_json=as_json)


class SimulationOptions(NamedTuple):
    """Options that simulations of every kind of question have."""

    file: Path
    lower: float
    upper: float
    alpha: float
    budget: int | None
    runs: int
    ahead: int
    seed: int

    def seeds(self) -> Iterator[Any]:
        """Yield the seed of every run, and show how many are done."""
        from celeus.simulation.sessions import seed_of

        return (seed_of(self.seed, run) for run in _progress(self.runs))


def _simulate_best(shared: SimulationOptions, beta: float) -> "BestReport":
    from celeus.simulation.best import BestReport, seek
    from celeus.simulation.files import read_contest

    file, lower, upper, alpha, budget, _, ahead, seed = shared
    candidates, losses = read_contest(file, lower, upper)
    sessions = [
        seek(candidates, losses, alpha, run_seed, beta=beta, budget=budget, ahead=ahead)
        for run_seed in shared.seeds()
    ]
    return BestReport(
        str(file), candidates, losses, lower, upper, alpha, budget, seed, sessions, ahead
    )


def _simulate_table(  # noqa: PLR0913 -- one parameter an option
    shared: SimulationOptions,
    beta: float,
    *,
    account: str,
    precision: float | None,
    group_precision: float | None,
    small_groups: str,
) -> "TableReport":
    from celeus.core.plans.table_plan import TableSettings
    from celeus.simulation.files import read_table
    from celeus.simulation.tables import TableReport, judge_table

    table, losses = read_table(shared.file, shared.lower, shared.upper)
    names = [metric.name for metric in table.metrics]
    settings = TableSettings(
        alpha=shared.alpha,
        account=account,  # type: ignore[arg-type]  # the plan checks both
        precision=dict.fromkeys(names, PRECISION if precision is None else precision),
        group_precision=dict.fromkeys(names, group_precision),
        small_groups=small_groups,  # type: ignore[arg-type]
        budget=shared.budget,
        beta=beta,
    )
    ahead = shared.ahead
    claims = [judge_table(table, losses, settings, seed, ahead=ahead) for seed in shared.seeds()]
    return TableReport(str(shared.file), table, losses, settings, shared.seed, claims, ahead)


def _simulate_mean(shared: SimulationOptions, policy: "Policy", claim: "Claim") -> "Report":
    from celeus.simulation.files import read_truth
    from celeus.simulation.report import Report
    from celeus.simulation.sessions import simulate as run_session

    truth = read_truth(shared.file, shared.lower, shared.upper)
    ahead = shared.ahead
    certificates = [
        run_session(truth, policy, claim, seed, ahead=ahead)[0] for seed in shared.seeds()
    ]
    return Report(str(shared.file), truth, policy, claim, shared.seed, certificates, ahead)


def _on(scale: Ends, written: str | None, name: str) -> float | None:
    return None if written is None else number_on(scale, written, name)


def _check_positive(**options: int) -> None:
    for name, value in options.items():
        if value < 1:
            rule = "at least 1"
            raise InvalidValue(f"{name} must be {rule}", field=name, rule=rule, value=value)


def _print(report: "Report | BestReport | TableReport", *, as_json: bool) -> None:
    from rich.console import Console

    if as_json:
        typer.echo(json.dumps(report.to_dict(), indent=2))
    else:
        Console().print(report.to_table())


def _refuse(given: dict[str, bool], rule: str) -> None:
    """Refuse options that mean nothing for this kind of question."""
    for name, is_given in given.items():
        if is_given:
            raise InvalidValue(f"{name} must be {rule}", field=name, rule=rule)


def _questions(at_most: float | None, at_least: float | None) -> "tuple[Question, ...]":
    from celeus.core.plans.stopping import Question

    questions = []
    if at_most is not None:
        questions.append(Question("at_most", at_most))
    if at_least is not None:
        questions.append(Question("at_least", at_least))
    return tuple(questions)


def _policy(name: str, pairs: list[str]) -> Any:  # noqa: ANN401 -- celeus.core is imported late
    from celeus.core.plans.policies import POLICIES, policy_named

    parameters: dict[str, Any] = {}
    for pair in pairs:
        field, _, text = pair.partition("=")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        default = getattr(POLICIES.get(name), field, None)
        if isinstance(default, float) and type(value) is int:
            value = float(value)
        if default is not None and type(value) is not type(default):
            rule = f"a {type(default).__name__}"
            raise InvalidValue(f"{field} must be {rule}", field=field, rule=rule, value=text)
        parameters[field] = value
    return policy_named(name, **parameters)


def _progress(runs: int) -> Iterator[int]:
    """The numbers of the runs; a bar shows them when a person watches."""
    if not sys.stderr.isatty():
        yield from range(runs)
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(range(runs), "simulating", console=Console(stderr=True), transient=True)
