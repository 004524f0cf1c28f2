"""`celeus run`: an evaluation harness of which only the items that a session draws are run."""

import json
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celeus.commands.file_answers import answers_of
from celeus.commands.options import HERE, NUMBER, All, Given, Url, confirm_all, from_input, read_key
from celeus.commands.settings_file import Settings, settings_of
from celeus.errors import InvalidValue
from celeus.shorten import one_line
from celeus.units import SHARES, number_on

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.client.blocking import Session
    from celeus.harnesses.lm_eval_documents import Documents, Machine
    from celeus.harnesses.lm_eval_run import Goal, Test
    from celeus.intake.joining import JoinedItems

UNFINISHED = 3
"""Exit status of a run that goes on when it is started again; 1 is for errors."""
OLDEST = (0, 4, 12)
"""The first lm-eval whose tasks are loaded as they are here."""

ALPHA = 0.05
STOPPING = ("precision", "margin", "budget")
"""Settings with which a run stops before all documents are run."""
OPENING = (*STOPPING, "alpha", "target", "repeats", "success")
"""Settings of a run's session."""

runs = typer.Typer(
    name="run",
    help="Run an evaluation harness on the items that a session draws, and on no others.",
    no_args_is_help=True,
)


@runs.callback()
def _runs() -> None:
    """Run an evaluation harness on the items that a session draws, and on no others."""


@dataclass(frozen=True, slots=True)
class RunTarget:
    """The goal of a run, its session or pool, and the folder of its files."""

    goal: "Goal"
    folder: Path
    surrogates: list[Path]
    session: str | None
    pool: Path | None
    hold: int


@runs.command(
    "lm-eval", context_settings={"ignore_unknown_options": True, "allow_extra_args": True}
)
def lm_eval(  # noqa: PLR0913 -- one parameter an option
    context: typer.Context,
    *,
    metric: Annotated[
        str | None, typer.Option(help="The score to certify, where a task has several.")
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(metavar=NUMBER, help="Width of the interval to stop at, such as 0.1 or 10%."),
    ] = None,
    budget: Annotated[int | None, typer.Option(help="Most documents to run.", min=1)] = None,
    all_: All = False,
    surrogate: Annotated[
        list[Path] | None,
        typer.Option(help="Log of other models, or a folder of them: it guesses the losses."),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL_ARGS",
            help="Run a second model too, and certify by how much it leads.",
        ),
    ] = None,
    margin: Annotated[
        str | None,
        typer.Option(
            metavar=NUMBER,
            help="With --compare: stop once it is clear which is at least as good, or that both are"
            " alike, within this margin.",
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(help="Session of the service in CELEUS_URL, in place of one in a file."),
    ] = None,
    write_pool: Annotated[
        Path | None,
        typer.Option(help="Only write the items to this file, to be uploaded to a service."),
    ] = None,
    hold: Annotated[
        int, typer.Option(help="How many documents to run at once.", min=1, max=256)
    ] = 32,
    given: Given = None,
    settings: Settings = None,
) -> None:
    """Certify a score of the lm-evaluation-harness by the documents that a session draws.

    All requests are built once, as a full run builds them, so that a document's loss is that of a
    full run. Killed and started again it goes on. Exit status 3 where another run goes on.

    Of `lm_eval run` it takes --tasks, --model, --model_args, --output_path (default: results),
    --num_fewshot, --limit, --apply_chat_template, --fewshot_as_multiturn, --system_instruction,
    --gen_kwargs, --include_path, --confirm_run_unsafe_code, --batch_size, --max_batch_size and
    --device. With --settings target=runs the score is the mean over all runs of a model that
    answers by chance, repeats=true runs documents again, and success='all of 4' says which runs
    of a draw succeed; alpha is the chance that the interval is wrong.
    """
    _check_version()
    from celeus.harnesses.lm_eval_documents import Documents
    from celeus.harnesses.lm_eval_options import read_options
    from celeus.intake.table.answers import options_of

    harness = read_options(context.args)
    answers = answers_of(given, ("metric", "filter", "better", "scale"))
    options = options_of(answers | ({} if metric is None else {"metric": metric}))
    two = compare is not None
    opening = settings_of(
        settings, {"precision": precision, "margin": margin, "budget": budget}, OPENING
    )
    _check_goal({"surrogate": surrogate, **opening}, session, two=two)
    if session is None and write_pool is None and opening.keys().isdisjoint(STOPPING):
        ways = "--precision, --margin or --budget" if two else "--precision or --budget"
        confirm_all(f"all documents of {harness.task_names} would be run", ways, all_=all_)
    folder = harness.output_path
    wanted = RunTarget(_goal_of(opening), folder, surrogate or [], session, write_pool, hold)
    models = [harness.settings]
    if compare is not None:
        models.append(replace(harness.settings, model_args=compare))
    _run([Documents(of_model, options) for of_model in models], harness.machine, wanted)


def _goal_of(opening: Mapping[str, Any]) -> "Goal":
    """Return the goal of a session that is opened so; its losses lie from 0 to 1."""
    from celeus.harnesses.lm_eval_run import Goal

    width, within, level = (
        None if opening.get(name) is None else number_on(SHARES[0], str(opening[name]), name)
        for name in ("precision", "margin", "alpha")
    )
    return Goal(
        width,
        within,
        ALPHA if level is None else level,
        opening.get("budget"),
        opening.get("target", "pool"),
        opening.get("repeats", False),
        opening.get("success"),
    )


def _run(models: "list[Documents]", machine: "Machine", wanted: RunTarget) -> None:
    from celeus.client.blocking import Client
    from celeus.core.session.assumptions import THESE_ANSWERS
    from celeus.harnesses.lm_eval_run import Test

    with ExitStack() as stack:
        served: Session | None = None
        target = wanted.goal.target
        if wanted.session is not None:
            # Before a model is loaded, which takes longer than to be refused
            served = stack.enter_context(Client()).session(wanted.session)
            status = served.status()
            Test.of(models, None).check(status)
            target = status.target
        if wanted.pool is None and target == "pool":
            typer.echo(THESE_ANSWERS)
        _build(models, machine, model=wanted.pool is None, fresh=target == "runs")
        test = Test.of(models, _guessed(models, wanted.surrogates))
        if average := test.first.average():
            typer.echo(f"the mean over all documents: {average}")
        if wanted.pool is not None:
            _write_pool(test, wanted.pool)
            return
        try:
            wanted.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            detail = f"{wanted.folder} cannot be made: {error.strerror}"
            raise InvalidValue(detail, field="output_path") from error
        name = test.digest(wanted.session or asdict(wanted.goal))
        file, kept = (wanted.folder / f"{kind}_{name}.jsonl" for kind in ("session", "documents"))
        with _nothing_left(kept, file):
            session = served or stack.enter_context(_opened(test, wanted.goal, file))
            _certify(test, session, wanted, kept)


def _certify(test: "Test", session: "Session", wanted: RunTarget, kept: Path) -> None:
    """Run what is drawn, write what came of it, and say so."""
    from celeus.harnesses.lm_eval_run import Work
    from celeus.intake.sources.files import write
    from celeus.judges.verdicts import Verdicts, key_of

    began = time.monotonic()
    with Verdicts(kept, "--output_path") as verdicts:
        work = Work(test, verdicts)
        # The same one after a kill, another one in another folder
        place = key_of(socket.gethostname(), str(kept.resolve()))
        try:
            done = work.judge(session, wanted.hold, f"lm-eval-{place[:16]}")
        except KeyboardInterrupt:
            typer.echo("celeus: interrupted; the same command goes on from here", err=True)
            raise typer.Exit(UNFINISHED) from None
    took = time.monotonic() - began
    status = session.status()
    estimate, lower, upper = test.score(status)
    files = work.files(status, wanted.folder)
    stopped = status.stopped or status.state == "closed"
    if stopped and wanted.session is None:
        session.close()
        name = kept.name.replace("documents", "certificate").replace("jsonl", "json")
        files[kept.with_name(name)] = session.certificate()
    for path in files:
        path.parent.mkdir(exist_ok=True)
    write(files)
    what = "the second model leads by" if test.two else test.first.metric
    typer.echo(one_line(str(status)))
    typer.echo(
        f"{what} {estimate:.4f}, from {lower:.4f} to {upper:.4f}: {status.rounds.judged}"
        f" {'draws ' * status.repeats}of {status.items} documents, {done.labels} of them now in"
        f" {took:.1f} s ({done.state})"
    )
    for path in sorted(files):
        typer.echo(f"wrote {path}")
    if not stopped:
        raise typer.Exit(UNFINISHED)


@contextmanager
def _nothing_left(kept: Path, file: Path) -> Iterator[None]:
    """Have no new file stay where nothing was run."""
    fresh = not kept.exists() and not file.exists()
    try:
        yield
    finally:
        if fresh and not (kept.exists() and kept.stat().st_size):
            kept.unlink(missing_ok=True)
            file.unlink(missing_ok=True)


@contextmanager
def _opened(test: "Test", goal: "Goal", file: Path) -> "Iterator[Session]":
    """Open a session in this process."""
    session = test.open(goal, file)
    try:
        yield session
    finally:
        session.client.close()


def _build(models: "list[Documents]", machine: "Machine", *, model: bool, fresh: bool) -> None:
    """Load the models where they are needed, and have all requests built."""
    for documents in models:
        if model or documents.settings.apply_chat_template:
            documents.start(machine, fresh=fresh)
        began = time.monotonic()
        documents.build()
        if fresh and model:
            documents.free()
        took = time.monotonic() - began
        settings = documents.settings
        typer.echo(
            f"{settings.name}: all requests of {len(documents.rows)} documents of"
            f" {', '.join(settings.tasks)} built in {took:.1f} s"
        )


def _guessed(models: "list[Documents]", logs: list[Path]) -> "JoinedItems | None":
    """Return the guesses of the documents' losses from logs of other models, None without logs."""
    from celeus.intake.formats.registry import differences, read, sources
    from celeus.intake.joining import guessed, rows_of
    from celeus.intake.rows import Log

    if not logs:
        return None
    first, names = models[0], {documents.settings.name for documents in models}
    found = read("lm-eval", sources("lm-eval", logs), first.options)
    this_run = Log("this run", first.rows, first.shared)
    for line in differences([this_run, *found]):
        typer.echo(f"celeus: {line}", err=True)
    # What this very command wrote would make another session of it when it is called again
    rows = [row for row in rows_of(found) if not (row.drawn and row.model in names)]
    if not rows:
        raise InvalidValue("the logs are of this model alone: give those of others", field="log")
    joined = guessed(first.rows, rows)
    what = f"the mean loss of {', '.join(joined.models)}"
    typer.echo(f"surrogate: {what}; {joined.unguessed} documents without a score there")
    return joined


def _write_pool(test: "Test", path: Path) -> None:
    from celeus.intake.sources.files import write

    rows = test.rows()
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write({path: lines.encode()})
    sides = "&".join(f"system_{side}={name}" for side, name in zip("ab", test.names, strict=False))
    more = f", {sides}" if test.two else ""
    typer.echo(f"wrote {path}: {len(rows)} items, whose loss is bounded by 0 and 1{more}")


def _check_version() -> None:
    """Refuse to run without the package, and with one that is too old."""
    from importlib.metadata import PackageNotFoundError, version

    oldest = ".".join(map(str, OLDEST))
    try:
        found = version("lm_eval")
    except PackageNotFoundError:
        detail = f"lm-eval is not installed here: pip install 'lm-eval[hf]>={oldest}'"
        raise InvalidValue(detail, field="lm-eval") from None
    if tuple(map(int, re.findall(r"\d+", found)[:3])) < OLDEST:
        detail = f"lm-eval {found} loads tasks in another way: pip install 'lm-eval>={oldest}'"
        raise InvalidValue(detail, field="lm-eval")


def _check_goal(given: Mapping[str, object], session: str | None, *, two: bool) -> None:
    """Refuse options that contradict each other."""
    named = [name for name, value in given.items() if value not in (None, [])]
    if session is not None and named:
        detail = f"{named[0]} must be left out beside session, which has its own"
        raise InvalidValue(detail, field=named[0], rule="left out beside session")
    over = next((name for name in ("target", "repeats", "success") if given.get(name)), None)
    if over is not None and two:
        rule = "left out beside --compare, whose answers are one of each document"
        raise InvalidValue(f"{over} must be {rule}", field=over, rule=rule)
    if given.get("margin") is not None and not two:
        rule = "left out, or beside --compare"
        raise InvalidValue(f"margin must be {rule}", field="margin", rule=rule)


def push(
    file: Annotated[
        Path,
        typer.Argument(callback=from_input, help="The file of the run; by default in `.celeus`."),
    ],
    *,
    close: Annotated[
        bool, typer.Option("--close", help="Close the run for good before: else it has to be.")
    ] = False,
    url: Url = HERE,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the session's status as JSON.")
    ] = False,
) -> None:
    """Make a session on a service of a run in process, with its pool, to look at and to certify.

    The service computes all of it again, and keeps it closed. That the run was no other than it
    says stays your word: page, report and certificate say so. Pushed again it is the same session.
    """
    from celeus.client.blocking import Client

    if close:
        from celeus.runs.run import Run

        with Run.resume(file) as run:
            run.close()
    with Client(url, read_key()) as client:
        status = client.push(file).status()
    if as_json:
        typer.echo(json.dumps(status.raw))
    else:
        typer.echo(str(status))
        typer.echo(f"{url.rstrip('/')}/sessions/{status.id}")
    for warning in status.warnings:
        typer.echo(f"celeus: {warning}", err=True)
