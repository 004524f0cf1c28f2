"""`celeus run`: an evaluation harness of which only the items that a session draws are run."""

import json
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from celeus.commands.options import HERE, NUMBER, All, Url, confirm_all, read_key
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


@runs.command("lm-eval")
def lm_eval(  # noqa: PLR0913 -- one parameter an option
    *,
    tasks: Annotated[str, typer.Option("--tasks", help="Tasks or groups, with commas between.")],
    model: Annotated[str, typer.Option("--model", help="Kind of model, as hf or vllm.")],
    model_args: Annotated[
        str, typer.Option("--model_args", help="Arguments of the model, as pretrained=org/name.")
    ] = "",
    metric: Annotated[
        str | None, typer.Option(help="The score to certify, where a task has several.")
    ] = None,
    filter_: Annotated[
        str | None, typer.Option("--filter", help="Filter, where a task has several.")
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(metavar=NUMBER, help="Width of the interval to stop at, such as 0.1 or 10%."),
    ] = None,
    alpha: Annotated[
        str | None,
        typer.Option(metavar=NUMBER, help="Chance that the interval is wrong; default: 0.05."),
    ] = None,
    budget: Annotated[int | None, typer.Option(help="Most documents to run.", min=1)] = None,
    all_: All = False,
    target: Annotated[
        str | None,
        typer.Option(
            help="runs: the mean over all runs of a model that answers by chance; default: pool."
        ),
    ] = None,
    repeats: Annotated[
        bool, typer.Option("--repeats", help="With --target runs: run documents again.")
    ] = False,
    success: Annotated[
        str | None,
        typer.Option(help="With --target runs: which runs of a draw succeed, as 'all of 4'."),
    ] = None,
    output_path: Annotated[
        Path, typer.Option("--output_path", help="Folder of samples, results and the session.")
    ] = Path("results"),
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
    higher: Annotated[
        bool | None,
        typer.Option(
            "--higher-is-better/--lower-is-better",
            help="Which way the score is better, where the task does not say.",
        ),
    ] = None,
    scale: Annotated[
        tuple[float, float],
        typer.Option(help="Least and greatest score, where they are not 0 and 1."),
    ] = (0.0, 1.0),
    num_fewshot: Annotated[
        int | None, typer.Option("--num_fewshot", help="Examples in a prompt.", min=0)
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(help="Take the first documents of each task: the score is theirs.", min=1),
    ] = None,
    apply_chat_template: Annotated[
        bool, typer.Option("--apply_chat_template", help="Put prompts into the chat template.")
    ] = False,
    fewshot_as_multiturn: Annotated[
        bool | None,
        typer.Option(
            "--fewshot_as_multiturn/--no_fewshot_as_multiturn",
            help="Show examples as turns of a chat; default: where there is a chat template.",
        ),
    ] = None,
    system_instruction: Annotated[
        str | None, typer.Option("--system_instruction", help="What prompts begin with.")
    ] = None,
    gen_kwargs: Annotated[
        str | None, typer.Option("--gen_kwargs", help="Arguments of generation.")
    ] = None,
    include_path: Annotated[
        str | None, typer.Option("--include_path", help="Folder with tasks of one's own.")
    ] = None,
    confirm_run_unsafe_code: Annotated[
        bool,
        typer.Option("--confirm_run_unsafe_code", help="Allow tasks that run what a model wrote."),
    ] = False,
    batch_size: Annotated[
        str | None, typer.Option("--batch_size", help="Requests in a batch of the model.")
    ] = None,
    max_batch_size: Annotated[
        int | None, typer.Option("--max_batch_size", help="Most of them with a size of auto.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="Where the model runs, as cuda:0.")] = None,
) -> None:
    """Certify a score of the lm-evaluation-harness by the documents that a session draws.

    All requests are built once, as a full run builds them, so that a document's loss is that of a
    full run. Killed and started again it goes on. Options with an underscore are lm-eval's own.
    Exit status 3 where another run goes on.
    """
    _check_version()
    from celeus.harnesses.lm_eval_documents import Documents, Machine, Settings
    from celeus.harnesses.lm_eval_run import Goal
    from celeus.intake.rows import Options

    settings = Settings(
        tuple(name.strip() for name in tasks.split(",") if name.strip()),
        model,
        model_args,
        num_fewshot,
        limit,
        apply_chat_template,
        fewshot_as_multiturn,
        system_instruction,
        gen_kwargs,
        include_path,
        confirm_run_unsafe_code,
    )
    options = Options(metric, filter_, higher=higher, scale=scale)
    models = [settings] if compare is None else [settings, replace(settings, model_args=compare)]
    given = {"precision": precision, "margin": margin, "alpha": alpha, "budget": budget}
    over = {"target": target, "repeats": repeats or None, "success": success}
    _check_goal({"surrogate": surrogate, **given, **over}, session, two=compare is not None)
    if session is None and write_pool is None and precision is None and margin is None:
        ways = "--precision, --margin or --budget" if compare else "--precision or --budget"
        confirm_all(f"all documents of {tasks} would be run", ways, all_=all_ or budget is not None)
    # Losses lie from 0 to 1, whatever the scale of the score is
    width, within, level = (
        None if written is None else number_on(SHARES[0], written, name)
        for name, written in (("precision", precision), ("margin", margin), ("alpha", alpha))
    )
    level = ALPHA if level is None else level
    goal = Goal(width, within, level, budget, target or "pool", repeats, success)
    wanted = RunTarget(goal, output_path, surrogate or [], session, write_pool, hold)
    machine = Machine(batch_size, max_batch_size, device)
    _run([Documents(settings, options) for settings in models], machine, wanted)


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
    over = next((name for name in ("target", "repeats", "success") if given[name]), None)
    if over is not None and two:
        rule = "left out beside --compare, whose answers are one of each document"
        raise InvalidValue(f"{over} must be {rule}", field=over, rule=rule)
    if given["margin"] is not None and not two:
        rule = "left out, or beside --compare"
        raise InvalidValue(f"margin must be {rule}", field="margin", rule=rule)


def push(
    file: Annotated[Path, typer.Argument(help="The file of the run; by default in `.celeus`.")],
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
