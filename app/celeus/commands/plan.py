"""`celeus plan`: how many labels a session would take, asked of a service."""

import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celeus.commands.options import HERE, NUMBER, Given, Mapping, Url, read_key
from celeus.commands.pools import (
    POOL_ID,
    Alpha,
    AtMost,
    PoolOrFile,
    Precision,
    check_amounts,
    check_of,
    pool_of,
    questions_of,
    rates_of,
)
from celeus.commands.settings_file import Settings, settings_of
from celeus.errors import InvalidValue

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.client.results import Plan, PlannedPoint

POLICIES = ["sharp", "uniform"]
RUNS = 20
OF_SESSIONS = frozenset(
    {"name", "tags", "planned_labels", "instructions", "lease_seconds", "policy", "parameters"}
)
"""Settings of a session that a request for a plan does not have."""
ASSUMED_PACE = 30.0
MINUTE, HOUR = 60.0, 3600.0
MOST_DECIMAL = 9.95


def _finite(pace: float | None) -> float | None:
    """Return the seconds of a label; refuses those that no forecast can multiply."""
    if pace is not None and not math.isfinite(pace):
        rule = "a finite number of seconds"
        raise InvalidValue(f"--pace must be {rule}", field="pace", rule=rule)
    return pace


def plan(  # noqa: PLR0913 -- one parameter an option
    pool: PoolOrFile,
    *,
    precision: Precision = None,
    at_most: AtMost = None,
    at_least: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NUMBER|RATE=NUMBER",
            help="Ask whether the risk is at least this; with --verdict whether a rate of the"
            " judge is, such as tpr=0.9; repeat it.",
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
    alpha: Alpha = None,
    verdict: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN=POSITIVE",
            help="Plan a check of a judge: the column of its verdicts, and the positive one.",
        ),
    ] = None,
    pace: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            callback=_finite,
            help="Seconds a label takes; default: the project's recent pace, else 30.",
        ),
    ] = None,
    settings: Settings = None,
    mapping: Mapping = None,
    given: Given = None,
    url: Url = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Say how many labels and hours a session would take, by precision: a forecast, simulated.

    Without a precision the service suggests one.
    """
    from celeus.client import blocking

    amounts = {"precision": precision, "at_most": at_most, "margin": margin, "alpha": alpha}
    check_amounts(**amounts)
    if verdict is None:
        least = _only(at_least)
        check_amounts(at_least=least)
        questions = questions_of(at_most, least) or None
        asked: dict[str, Any] = {"precision": precision, "questions": questions}
        preset = {"runs": RUNS, "policies": POLICIES}
    else:
        _refuse_for_check(at_most=at_most, margin=margin)
        if POOL_ID.fullmatch(pool) is None:
            # The verdicts of a file are the group of its items
            column, _, positive = verdict.rpartition("=")
            mapping, verdict = [*(mapping or ()), f"{column}=group"], f"group={positive}"
        asked = check_of(verdict, rates_of(at_least or []), precision)
        preset = {"runs": RUNS}
    decide = None if margin is None else {"margin": margin}
    asked = settings_of(settings, {**asked, "alpha": alpha, "decide": decide})
    # A file of settings may be that of the session to be opened
    if asked.get("parameters"):
        typer.echo("celeus: parameters are not planned: the plan is of the defaults", err=True)
    if "policy" in asked:
        preset["policies"] = [asked["policy"]]
    asked = preset | {name: value for name, value in asked.items() if name not in OF_SESSIONS}
    with (
        blocking.Client(url, read_key()) as client,
        pool_of(client, pool, mapping, given) as made,
    ):
        if made.metrics:
            rule = "a pool of one loss; `client.plan` and the page New session plan several metrics"
            raise InvalidValue(f"pool must be {rule}", field="pool", rule=rule, value=made.id)
        found = client.plan(made, **asked)
    typer.echo(
        json.dumps(found.raw)
        if as_json
        else "\n".join(_lines(found, pace, chosen="precision" in asked))
    )


def _refuse_for_check(**given: str | None) -> None:
    """Refuse options that ask nothing of a judge's rates, as they are typed."""
    for name, written in given.items():
        if written is not None:
            rule = "left out beside --verdict, which asks of the rates of a judge"
            option = f"--{name.replace('_', '-')}"
            raise InvalidValue(f"{option} must be {rule}", field=name, rule=rule)


def _only(written: list[str] | None) -> str | None:
    """Return the one threshold of a mean."""
    if len(written or ()) > 1:
        rule = "one number; several are of a judge's check, with --verdict"
        message = f"at_least must be {rule}"
        raise InvalidValue(message, field="at_least", rule=rule, value=written)
    return written[0] if written else None


def _lines(found: "Plan", pace: float | None, *, chosen: bool) -> Iterator[str]:
    """The plan for a reader, who has ``chosen`` its precision or had it suggested.

    The remarks are the service's own words.
    """
    from celeus.client.service import plain

    recent = found.pace
    if pace is None:
        pace = ASSUMED_PACE if recent is None else recent.seconds_per_label
        whose = "assumed" if recent is None else f"recent pace of {recent.sessions} here"
    else:
        whose = "as given"
    if found.precision is not None:
        suggested = None if chosen else found.suggested_precision
        reason = "" if suggested is None else f", suggested: {plain(str(suggested['reason']))}"
        yield f"precision {found.precision:g}{reason}"
    if found.claims:
        yield _check_line(found, pace)
    for policy in () if found.claims else found.policies:
        if policy.refused is not None:
            yield f"{policy.policy}: cannot be opened: {plain(str(policy.refused['detail']))}"
        elif policy.expected is None:
            yield f"{policy.policy}: too long to be simulated"
        else:
            yield f"{policy.policy}: {_point(policy.expected, pace)}"
            curve = [point for point in policy.curve if point.precision is not None]
            for point in curve:
                yield f"  at {point.precision:g}: {_point(point, pace)}"
    yield f"hours at {pace:g} s a label, {whose}"
    yield from map(plain, found.notes)


def _check_line(found: "Plan", pace: float) -> str:
    """The labels that a check of a judge takes, and what is assumed of the judge."""
    from celeus.core.plans.judge_measures import MEASURES

    (policy,) = found.raw["policies"]
    labels = policy["surrogate_useless"]["labels"]
    assumed = ", ".join(
        f"{name} {MEASURES[name].lower + 1.0 - loss:.3g}"
        for name, loss in found.assumed_risks.items()
    )
    if labels is None:
        taken = f"more than {policy['surrogate_useless']['more_than']} labels"
    else:
        taken = f"about {labels['median']:.0f} labels ({labels['low']:.0f} to {labels['high']:.0f})"
        taken += f", {_time(labels['median'] * pace)}"
    return f"check: {taken}, of a judge with {assumed}"


def _point(point: "PlannedPoint", pace: float) -> str:
    labels = point.labels
    line = f"about {labels.median:.0f} labels ({labels.low:.0f} to {labels.high:.0f})"
    return f"{line}, {_time(labels.median * pace)}{', extrapolated' if point.extrapolated else ''}"


def _time(seconds: float) -> str:
    minutes, hours = round(seconds / MINUTE), seconds / HOUR
    if minutes == 0:
        return "less than a minute"
    if minutes < HOUR / MINUTE:
        return f"{minutes} minute{'' if minutes == 1 else 's'}"
    return f"{hours:.{1 if hours < MOST_DECIMAL else 0}f} hours"
