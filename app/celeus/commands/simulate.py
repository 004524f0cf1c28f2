"""`celeus simulate`: sessions on a pool whose losses are known, without a server."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.errors import InvalidValue

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from app.core.stopping import Question

PRECISION = 0.05


def simulate(  # noqa: PLR0913 -- one parameter an option
    file: Annotated[Path, typer.Argument(help="An .npz with loss, surrogate, proxy?, group?.")],
    *,
    policy: Annotated[str, typer.Option(help="Who is asked for, and how bets are made.")] = (
        "sharp"
    ),
    target: Annotated[str, typer.Option(help="pool or population")] = "pool",
    precision: Annotated[
        float | None, typer.Option(help="Interval width to stop at: 0.05, none with a question.")
    ] = None,
    at_most: Annotated[
        float | None, typer.Option(help="Ask whether the risk is at most so much; an answer stops.")
    ] = None,
    at_least: Annotated[
        float | None, typer.Option(help="The same for at least; with both, both answers stop.")
    ] = None,
    alpha: Annotated[float, typer.Option(help="Probability of ever being wrong.")] = 0.05,
    runs: Annotated[int, typer.Option(help="Sessions, each with a seed of its own.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the study.")] = 0,
    lower: Annotated[float, typer.Option(help="Least possible loss.")] = 0.0,
    upper: Annotated[float, typer.Option(help="Largest possible loss.")] = 1.0,
    population_bound: Annotated[
        str | None, typer.Option(help="pairs, hoeffding, kl or clopper_pearson")
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", help="A parameter of the policy, such as beta=0.2."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Judge a pool whose losses are known, without a server, and count the labels."""
    from rich.console import Console

    from app.core.plan import Claim
    from app.study.files import read_truth
    from app.study.report import Study
    from app.study.simulation import seed_of
    from app.study.simulation import simulate as run_session

    if runs < 1:
        raise InvalidValue("runs must be at least 1", field="runs", rule="at least 1", value=runs)
    chosen = _policy(policy, parameter or [])
    questions = _questions(at_most, at_least)
    if precision is None and not questions:
        precision = PRECISION
    claim = Claim(
        target,  # type: ignore[arg-type]
        alpha,
        precision,
        population_bound=population_bound,
        questions=questions,
    )
    truth = read_truth(file, lower, upper)
    found = [run_session(truth, chosen, claim, seed_of(seed, run))[0] for run in _watched(runs)]
    study = Study(str(file), truth, chosen, claim, seed, found)
    if as_json:
        typer.echo(json.dumps(study.to_dict(), indent=2))
    else:
        Console().print(study.to_table())


def _questions(at_most: float | None, at_least: float | None) -> "tuple[Question, ...]":
    from app.core.stopping import Question

    asked = []
    if at_most is not None:
        asked.append(Question("at_most", at_most))
    if at_least is not None:
        asked.append(Question("at_least", at_least))
    return tuple(asked)


def _policy(name: str, pairs: list[str]) -> Any:  # noqa: ANN401 -- app.core is imported late
    from app.core.policies import POLICIES, policy_named

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


def _watched(runs: int) -> Iterator[int]:
    """The numbers of the runs; a bar shows them when a person watches."""
    if not sys.stderr.isatty():
        yield from range(runs)
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(range(runs), "simulating", console=Console(stderr=True), transient=True)
