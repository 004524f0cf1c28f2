"""`celeus export`: what a session found, as files for other tools."""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from celeus.commands.options import HERE, SessionId, Url, check_file, read_key
from celeus.errors import InvalidValue
from celeus.shorten import one_line

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.client.blocking import Session
    from celeus.client.results import Claim, Pool, Scale, Score, Status

Form = Literal["every-eval-ever", "labels", "certificate", "columns", "bundle"]
Relationship = Literal["first_party", "third_party", "collaborative", "other"]

SCHEMA_VERSION = "0.2.2"
"""Version of the schema of Every Eval Ever (github.com/evaleval/every_eval_ever)."""
METHOD = "confidence sequence by betting: holds at every look, whatever decided the stop"


def export(  # noqa: PLR0913 -- one parameter an option
    session: SessionId,
    *,
    form: Annotated[
        Form,
        typer.Option(
            "--format",
            help="A record of Every Eval Ever; judgements as lines of JSON; the certificate; the"
            " pool's columns; or a bundle of these two, which `celeus verify` takes alone.",
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(help="Of every-eval-ever: what was evaluated, such as org/model."),
    ] = None,
    organization: Annotated[
        str | None, typer.Option(help="Of every-eval-ever: who evaluated it.")
    ] = None,
    relationship: Annotated[
        Relationship | None,
        typer.Option(help="Of every-eval-ever: the evaluator's to who made the model."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write; default: standard output.")
    ] = None,
    url: Url = HERE,
) -> None:
    """Write what a session found, for another tool."""
    from celeus.client.blocking import Client
    from celeus.client.service import check_session
    from celeus.gates.reports import write

    check_session(session)
    check_file(out)
    source = {"model": model, "organization": organization, "relationship": relationship}
    missing = [f"--{name}" for name, value in source.items() if value is None]
    if form == "every-eval-ever" and missing:
        rule = " and ".join(missing)
        message = f"{form} needs {rule}, which no session knows"
        raise InvalidValue(message, field="format", rule=rule)
    if form in {"columns", "bundle"} and out is None and sys.stdout.isatty():
        rule = "--out, or a pipe"
        raise InvalidValue(f"{form} is no text for a terminal: give {rule}", field="out", rule=rule)
    with Client(url, read_key()) as client:
        content = _content(client.session(session), form, source)
    if out is not None:
        write(out, content)
    elif sys.stdout.isatty():
        typer.echo("\n".join(map(one_line, content.decode().split("\n"))), nl=False)
    else:
        typer.echo(content, nl=False)


def _content(session: "Session", form: Form, source: dict[str, str | None]) -> bytes:
    """Return what a session found in this form."""
    served = {
        "certificate": session.certificate,
        "columns": session.columns,
        "bundle": session.bundle,
    }
    if form in served:
        return served[form]()
    if form == "labels":
        lines = (json.dumps(label.raw, ensure_ascii=False) for label in session.labels())
        return "".join(f"{line}\n" for line in lines).encode()
    record = json.dumps(_record(session, source), indent=2, ensure_ascii=False)
    return f"{record}\n".encode()


def _record(session: "Session", source: dict[str, str | None]) -> dict[str, Any]:
    """A record of Every Eval Ever, with a result for every claim of the session."""
    from importlib.metadata import version

    status = session.status()
    pool = session.client.pool(status.pool_id)
    results = [_result(status, pool, found) for found in _findings(session, status)]
    now = str(int(time.time()))
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{pool.name}/{source['model']}/{now}",
        "evaluation_timestamp": status.active_at or status.created_at,
        "retrieved_timestamp": now,
        "source_metadata": {
            "source_name": "Celeus",
            "source_type": "evaluation_run",
            "source_organization_name": source["organization"],
            "evaluator_relationship": source["relationship"],
        },
        "eval_library": {
            "name": "celeus",
            "version": version("celeus"),
            "additional_details": {
                "method_version": status.method_version,
                "session": status.id,
                "commitment": status.commitment,
                "ledger_head": status.ledger_head,
            },
        },
        "model_info": {"name": source["model"], "id": source["model"]},
        "evaluation_results": results,
    }


class _Finding(NamedTuple):
    """A claim as it stands; ``names`` are its metric and group, where a session has several."""

    names: tuple[str, ...]
    score: "Score"
    scale: "Scale"
    level: float
    labels: int
    sentence: str
    quantity: str


def _findings(session: "Session", status: "Status") -> list[_Finding]:
    """The claims that have a label; refuses where there is none, and what compares systems."""
    from celeus.core.insights.sentences import quantity

    if status.systems is not None or status.best is not None:
        rule = "a session about one model"
        message = f"{status.id} compares systems: expected {rule}"
        raise InvalidValue(message, field="session", rule=rule)
    found = []
    if status.table is not None:
        found = list(map(_finding, session.claims()))
    elif status.score is not None and status.scale is not None:
        weighted = status.effective_items is not None
        measured = quantity(status.score.name, weighted=weighted, success=status.success)
        words = status.words.in_interval, status.sentence, measured
        found = [_Finding((), status.score, status.scale, status.alpha, *words)]
    found = [finding for finding in found if finding.labels]
    if not found:
        rule = "a session with a label"
        message = f"{status.id} rests on no label yet: expected {rule}"
        raise InvalidValue(message, field="session", rule=rule)
    return found


def _finding(claim: "Claim") -> _Finding:
    group = () if claim.column is None else (f"{claim.column} {claim.value}",)
    names, labels = (claim.metric, *group), claim.rounds["in_interval"]
    # A group that is judged as a whole is known for certain, at no level
    words = labels, claim.sentence, claim.score.name
    return _Finding(names, claim.score, claim.scale, claim.level or 0.0, *words)


def _result(status: "Status", pool: "Pool", found: _Finding) -> dict[str, Any]:
    score = found.score
    details = {"items": str(pool.items), "target": status.target}
    if status.repeats:
        details["repeats"] = "true"
    if status.success is not None:
        details |= {"success": status.success, "runs": str(status.runs)}
    return {
        "evaluation_result_id": "/".join((status.id, *found.names)),
        "evaluation_name": ", ".join((pool.name, *found.names)),
        "source_data": {
            "dataset_name": pool.name,
            "source_type": "other",
            "source_id": pool.id,
            "source_version": pool.digest,
            "additional_details": details,
        },
        "metric_config": {
            "metric_name": found.quantity,
            "metric_unit": "proportion" if score.unit == "share" else "points",
            "lower_is_better": score.better == "lower",
            "score_type": "continuous",
            "min_score": found.scale.lower,
            "max_score": found.scale.upper,
        },
        "score_details": {
            "score": score.estimate,
            "details": {"sentence": found.sentence},
            "uncertainty": {
                "confidence_interval": {
                    "lower": score.lower,
                    "upper": score.upper,
                    "confidence_level": 1.0 - found.level,
                    "method": METHOD,
                },
                "num_samples": found.labels,
            },
        },
    }
