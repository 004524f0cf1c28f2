"""`celeus dev simulate`: sessions on a pool whose losses are known, without a server."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from celeus.commands.options import NUMBER, from_input
from celeus.commands.settings_file import Settings, settings_of
from celeus.errors import InvalidValue
from celeus.units import SHARES, check_asked_alpha, number_on

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.core.plans.policies import Policy
    from celeus.core.plans.stopping import Question
    from celeus.simulation.best import BestReport
    from celeus.simulation.report import Report
    from celeus.simulation.tables import TableReport

PRECISION, ALPHA, POLICY = 0.05, 0.05, "sharp"
SETTINGS = (
    "policy",
    "parameters",
    "target",
    "alpha",
    "account",
    "small_groups",
    "loss",
    "ahead",
    "population_bound",
)
OF_MEAN = ("policy", "target", "at_most", "at_least", "margin", "population_bound")
"""Settings of a mean alone."""
OF_TABLE = ("groups", "group_precision", "account", "small_groups")
"""Settings of several metrics or groups alone."""


def simulate(  # noqa: PLR0913 -- one parameter an option
    file: Annotated[
        Path,
        typer.Argument(
            callback=from_input,
            help="An .npz with arrays loss and surrogate, optionally proxy, group, known and"
            " weight; or, of two systems, loss_a and loss_b, optionally answer_a, answer_b,"
            " surrogate_a, surrogate_b and weight; or, with --best, loss and optionally answer and"
            " surrogate, [N, k] each; or, of several metrics and groups, loss_NAME, surrogate_NAME"
            " and group_NAME.",
        ),
    ],
    *,
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
    budget: Annotated[
        int | None, typer.Option(help="Labels at most; default: all items that can be drawn.")
    ] = None,
    runs: Annotated[
        int, typer.Option(help="How many sessions to simulate, each with its own seed.")
    ] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 0,
    settings: Settings = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Simulate sessions on a pool whose losses are known, without a server; count labels.

    Settings are policy, parameters, target, alpha, account, small_groups and population_bound, as
    in the API; loss.lower and loss.upper, the ends of the loss; and ahead, how many judges work at
    a time.
    """
    given = {
        "precision": precision,
        "at_most": at_most,
        "at_least": at_least,
        "margin": margin,
        "groups": groups or None,
        "group_precision": group_precision,
        "budget": budget,
    }
    asked = settings_of(settings, given, (*given, *SETTINGS))
    loss = {"lower": 0.0, "upper": 1.0} | _table(asked, "loss")
    ends = _number(loss, "lower"), _number(loss, "upper")
    ahead = asked.get("ahead", 1)
    _check_positive(runs=runs, ahead=ahead, budget=asked.get("budget", 1))
    policy = _policy(_text(asked, "policy", POLICY), _table(asked, "parameters"))
    alpha = number_on(SHARES[0], str(asked.get("alpha", ALPHA)), "alpha")
    check_asked_alpha(alpha)
    shared = SimulationOptions(file, *ends, alpha, asked.get("budget"), runs, ahead, seed)
    _print(_simulated(shared, policy, asked, best=best), as_json=as_json)


def _simulated(
    shared: "SimulationOptions", policy: "Policy", asked: Mapping[str, Any], *, best: bool
) -> "Report | BestReport | TableReport":
    """Return the report of sessions that ask for the best, for a table of claims or for a mean."""
    from celeus.simulation.files import is_table

    of_table = asked.keys() & OF_TABLE
    if best:
        rule = "left out with --best, which asks which system has the least mean loss of the pool"
        _refuse(asked, ("precision", *OF_MEAN, *OF_TABLE), rule)
        return _simulate_best(shared, policy.beta)
    if is_table(shared.file) or of_table:
        _refuse(asked, OF_MEAN, "left out where there are several metrics or groups")
        return _simulate_table(shared, policy.beta, asked)
    return _simulate_mean(shared, policy, asked)


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

    def on_scale(self, asked: Mapping[str, Any], name: str) -> float | None:
        """Return an amount that is asked, on the scale of the loss."""
        written = asked.get(name)
        return None if written is None else number_on((self.lower, self.upper), str(written), name)

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


def _simulate_table(
    shared: SimulationOptions, beta: float, asked: Mapping[str, Any]
) -> "TableReport":
    from celeus.core.plans.table_plan import TableSettings
    from celeus.simulation.files import read_table
    from celeus.simulation.tables import TableReport, judge_table

    table, losses = read_table(shared.file, shared.lower, shared.upper)
    names = [metric.name for metric in table.metrics]
    small_groups: Any = _text(asked, "small_groups", "merge")
    precision = shared.on_scale(asked, "precision")
    settings = TableSettings(
        alpha=shared.alpha,
        account=asked.get("account", "each"),
        precision=dict.fromkeys(names, PRECISION if precision is None else precision),
        group_precision=dict.fromkeys(names, shared.on_scale(asked, "group_precision")),
        small_groups=small_groups,
        budget=shared.budget,
        beta=beta,
    )
    ahead = shared.ahead
    claims = [judge_table(table, losses, settings, seed, ahead=ahead) for seed in shared.seeds()]
    return TableReport(str(shared.file), table, losses, settings, shared.seed, claims, ahead)


def _simulate_mean(
    shared: SimulationOptions, policy: "Policy", asked: Mapping[str, Any]
) -> "Report":
    from celeus.core.plans.plan import Claim
    from celeus.simulation.files import read_truth
    from celeus.simulation.report import Report
    from celeus.simulation.sessions import simulate as run_session

    width, at_most, at_least, margin = (
        shared.on_scale(asked, name) for name in ("precision", "at_most", "at_least", "margin")
    )
    questions = _questions(at_most, at_least)
    if width is None and not questions and margin is None:
        width = PRECISION
    claim = Claim(
        asked.get("target", "pool"),
        shared.alpha,
        width,
        population_bound=asked.get("population_bound"),
        questions=questions,
        decide=margin,
        budget=shared.budget,
    )
    truth = read_truth(shared.file, shared.lower, shared.upper)
    ahead = shared.ahead
    certificates = [
        run_session(truth, policy, claim, seed, ahead=ahead)[0] for seed in shared.seeds()
    ]
    return Report(str(shared.file), truth, policy, claim, shared.seed, certificates, ahead)


def _number(members: Mapping[str, Any], name: str) -> float:
    value = members[name]
    if type(value) not in {int, float}:
        rule = "a number"
        raise InvalidValue(f"{name} must be {rule}", field=name, rule=rule, value=value)
    return float(value)


def _table(asked: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the members of a setting that has some."""
    members = asked.get(name, {})
    if not isinstance(members, dict):
        rule = f"a table of its members, or {name}.NAME=VALUE"
        raise InvalidValue(f"{name} must be {rule}", field=name, rule=rule, value=members)
    return members


def _check_positive(**options: object) -> None:
    for name, value in options.items():
        if type(value) is not int or value < 1:
            rule = "at least 1" if type(value) is int else "a whole number, at least 1"
            raise InvalidValue(f"{name} must be {rule}", field=name, rule=rule, value=value)


def _print(report: "Report | BestReport | TableReport", *, as_json: bool) -> None:
    from rich.console import Console

    if as_json:
        typer.echo(json.dumps(report.to_dict(), indent=2))
    else:
        Console().print(report.to_table())


def _refuse(asked: Mapping[str, Any], names: Iterable[str], rule: str) -> None:
    """Refuse settings that mean nothing for this kind of question."""
    for name in names:
        if name in asked:
            raise InvalidValue(f"{name} must be {rule}", field=name, rule=rule)


def _questions(at_most: float | None, at_least: float | None) -> "tuple[Question, ...]":
    from celeus.core.plans.stopping import Question

    questions = []
    if at_most is not None:
        questions.append(Question("at_most", at_most))
    if at_least is not None:
        questions.append(Question("at_least", at_least))
    return tuple(questions)


def _text(asked: Mapping[str, Any], name: str, default: str) -> str:
    """Return a setting that is a name."""
    value = asked.get(name, default)
    if not isinstance(value, str):
        rule = "a text"
        raise InvalidValue(f"{name} must be {rule}", field=name, rule=rule, value=value)
    return value


def _policy(name: str, given: Mapping[str, Any]) -> Any:  # noqa: ANN401 -- celeus.core is imported late
    from celeus.core.plans.policies import POLICIES, policy_named

    parameters: dict[str, Any] = {}
    for field, value in given.items():
        default = getattr(POLICIES.get(name), field, None)
        number = float(value) if isinstance(default, float) and type(value) is int else value
        if default is not None and type(number) is not type(default):
            rule = f"a {type(default).__name__}"
            raise InvalidValue(f"{field} must be {rule}", field=field, rule=rule, value=value)
        parameters[field] = number
    return policy_named(name, **parameters)


def _progress(runs: int) -> Iterator[int]:
    """The numbers of the runs; a bar shows them when a person watches."""
    if not sys.stderr.isatty():
        yield from range(runs)
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(range(runs), "simulating", console=Console(stderr=True), transient=True)
