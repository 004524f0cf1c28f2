"""`celeus import`: logs of evaluations that have been run, as a pool to certify.

A command for every format; what they share is read off `_shared`, which says it once.
"""

import inspect
import io
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celeus.commands.options import NUMBER
from celeus.errors import InvalidValue
from celeus.shorten import one_line

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.intake.joining import JoinedItems, Pairing
    from celeus.intake.rows import Options, Row
    from celeus.simulation.backtest import Backtest

imports = typer.Typer(
    name="import",
    help="Make a pool of logs of evaluations that have been run.",
    no_args_is_help=True,
)

NPZ = ".npz"
MOST_NAMED = 5

Metric = Annotated[
    str | None, typer.Option(help="The score that is the loss, where the log has several.")
]
Higher = Annotated[
    bool | None,
    typer.Option(
        "--higher-is-better/--lower-is-better",
        help="Which way the score is better, where the log does not say.",
    ),
]
Scale = Annotated[
    tuple[float, float], typer.Option(help="Least and greatest score, where they are not 0 and 1.")
]
TableScale = Annotated[
    tuple[float, float] | None, typer.Option(help="Least and greatest value of the score.")
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        help="A value that stands for no score, such as -1; of a table also COLUMN=VALUE, or"
        " COLUMN=any for a column of errors; may be given again."
    ),
]
Key = Annotated[
    str | None,
    typer.Option("--id", help="Member of the metadata that names an item; default: its content."),
]


@dataclass(frozen=True, slots=True)
class CommonOptions:
    """The options that all imports share."""

    logs: list[Path]
    model: list[str]
    out: Path | None
    truth: str | None
    compare: tuple[str, str] | None
    text_decides: bool
    each_output: bool
    backtest: float | None
    runs: int


def _shared(  # noqa: PLR0913 -- one parameter an option
    logs: Annotated[list[Path], typer.Argument(help="Logs, or folders of them.")],
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Name of the model of each log, or folder, in their order."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write the pool to, as JSON Lines; what is known of losses stands beside"
            " it, in the .npz that celeus dev simulate takes."
        ),
    ] = None,
    truth: Annotated[
        str | None,
        typer.Option(help="Hold out the losses of this model; the others make the surrogate."),
    ] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Compare these two models, and make a pool of two systems of them."),
    ] = None,
    text_decides: Annotated[
        bool,
        typer.Option(
            "--text-decides",
            help="With --compare: equal answers have equal losses, as where a choice or a number is"
            " taken from them. Of agents, or of texts that somebody reads, they need not.",
        ),
    ] = False,
    each_output: Annotated[
        bool,
        typer.Option(
            "--each-output",
            help="Make an item of every output, its score the surrogate: for people who check it.",
        ),
    ] = False,
    backtest: Annotated[
        str | None,
        typer.Option(
            metavar=NUMBER,
            help="Print the labels that certifying to an interval of this width, such as 0.1 or"
            " 10%, would have cost on this log.",
        ),
    ] = None,
    runs: Annotated[int, typer.Option(help="Of the backtest: sessions to simulate.", min=1)] = 10,
) -> CommonOptions:
    """The options as one value."""
    from celeus.units import SHARES, number_on

    width = None if backtest is None else number_on(SHARES[0], backtest, "backtest")
    two = None if compare is None else (compare[0], compare[1])
    more = (text_decides, each_output, width, runs)
    return CommonOptions(logs, model or [], out, truth, two, *more)


Reads = Callable[..., "Options"]


def _command(form: str) -> Callable[[Reads], Reads]:
    """Make the command of a format: the options of all, and those of the function.

    The function gives the options that its own options make.
    """

    def made(options_of: Reads) -> Reads:
        own_options = inspect.signature(options_of).parameters
        common = inspect.signature(_shared).parameters

        def command(**options: Any) -> None:  # noqa: ANN401 -- as the parser gives them
            shared = _shared(**{name: options[name] for name in common})
            _import(form, options_of(**{name: options[name] for name in own_options}), shared)

        signature = inspect.Signature([*common.values(), *own_options.values()])
        command.__signature__ = signature  # type: ignore[attr-defined]
        command.__annotations__ = {
            name: parameter.annotation for name, parameter in signature.parameters.items()
        }
        imports.command(form, help=options_of.__doc__)(command)
        return options_of

    return made


@_command("lm-eval")
def _lm_eval(  # noqa: PLR0913 -- one parameter an option
    *,
    task: Annotated[
        list[str] | None, typer.Option(help="Task, or a pattern of several, such as mmlu_*.")
    ] = None,
    metric: Metric = None,
    filter_: Annotated[
        str | None, typer.Option("--filter", help="Filter, where the log has several.")
    ] = None,
    higher: Higher = None,
    scale: Scale = (0.0, 1.0),
    missing: Missing = None,
    own_confidence: Annotated[
        bool,
        typer.Option(
            "--own-confidence",
            help="With --truth: how sure that model was of its answers is half of the guess. For"
            " people who judge what it answered; of a model that is yet to run nobody knows it.",
        ),
    ] = False,
) -> "Options":
    """Read samples_*.jsonl of the lm-evaluation-harness, run with --log_samples."""
    from celeus.intake.rows import Options

    return Options(
        *(metric, filter_, tuple(task or ()), higher, scale),
        own_confidence=own_confidence,
        missing=tuple(missing or ()),
    )


@_command("inspect")
def _inspect(
    *,
    metric: Metric = None,
    higher: Higher = None,
    scale: Scale = (0.0, 1.0),
    reducer: Annotated[
        str | None,
        typer.Option(
            help="One score of the epochs of an item, in place of the log's own rule: mean, median,"
            " mode, max, at_least_K, pass_at_K or pass_k_K."
        ),
    ] = None,
) -> "Options":
    """Read logs of Inspect, .eval or .json; a metric is SCORER or SCORER/PART."""
    from celeus.intake.rows import Options

    return Options(metric, higher=higher, scale=scale, reducer=reducer)


@_command("promptfoo")
def _promptfoo(
    *, metric: Metric = None, higher: Higher = None, scale: Scale = (0.0, 1.0), key: Key = None
) -> "Options":
    """Read results of promptfoo, -o out.json or out.jsonl; default metric: score."""
    from celeus.intake.rows import Options

    return Options(metric, higher=higher, scale=scale, key=key)


@_command("deepeval")
def _deepeval(
    *, metric: Metric = None, higher: Higher = None, scale: Scale = (0.0, 1.0), key: Key = None
) -> "Options":
    """Read test runs of DeepEval."""
    from celeus.intake.rows import Options

    return Options(metric, higher=higher, scale=scale, key=key)


@_command("helm")
def _helm(*, metric: Metric = None, higher: Higher = None, scale: Scale = (0.0, 1.0)) -> "Options":
    """Read run folders of HELM."""
    from celeus.intake.rows import Options

    return Options(metric, higher=higher, scale=scale)


@_command("swebench")
def _swebench(*, missing: Missing = None) -> "Options":
    """Read reports of SWE-bench, <model>.<run>.json; --missing error leaves such out."""
    from celeus.intake.rows import Options

    return Options(missing=tuple(missing or ()))


@_command("table")
def table_options(  # noqa: PLR0913 -- one parameter an option
    *,
    key: Annotated[
        str | None,
        typer.Option("--id", help="Column that names an item; default: by name, or its question."),
    ] = None,
    score: Annotated[str | None, typer.Option(help="Column of the score, or of the loss.")] = None,
    higher: Higher = None,
    scale: TableScale = None,
    numbers: Annotated[
        list[str] | None,
        typer.Option(
            help="What the numbers of one of several columns mean: COLUMN=higher, COLUMN=lower or"
            " 'COLUMN=1 to 5'; may be given again."
        ),
    ] = None,
    missing: Missing = None,
    mapping: Annotated[
        list[str] | None,
        typer.Option(
            help="COLUMN=ROLE, a role of an upload: question, answer, reference, text, group, known"
            " (verdicts of people, not drawn again), payload, hidden; may be given again."
        ),
    ] = None,
    answer: Annotated[str | None, typer.Option(help="Column of what is judged.")] = None,
    model_column: Annotated[str | None, typer.Option(help="Column of the model.")] = None,
    repeats: Annotated[
        str | None,
        typer.Option(
            help="Rows of one id: items of their own, runs (for target runs), the first, their"
            " mean, runs that a COLUMN tells apart, or only those of COLUMN=VALUE; also 'first;"
            " COLUMN=VALUE'."
        ),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(help="Table, or member of a document, that holds them; with_id or all."),
    ] = None,
) -> "Options":
    """Read a table: CSV, JSON, JSON Lines, Excel or Parquet, a nested column by its path.

    Columns without an option are known by their names, as in an upload.
    """
    from celeus.intake.rows import Columns
    from celeus.intake.table.answers import options_of
    from celeus.intake.table.numbers import by_column

    named = [f"{name}={role}" for name, role in ((key, "id"), (score, "score")) if name is not None]
    roles = by_column([*(mapping or ()), *named], "mapping")
    if "" in roles:
        rule = "COLUMN=ROLE, such as prompt=question"
        raise InvalidValue(f"mapping must be {rule}", field="mapping", rule=rule, value=roles[""])
    better = [] if higher is None else ["higher" if higher else "lower"]
    scales = [] if scale is None else [f"{scale[0]!r} to {scale[1]!r}"]
    for text in numbers or ():
        (better if text.endswith(("=higher", "=lower")) else scales).append(text)
    answers = {"better": better, "scale": scales, "missing": missing, "repeats": repeats}
    options = options_of(answers | {"rows": rows, "answer": answer})
    return replace(options, columns=Columns(roles, model_column))


def _import(form: str, options: "Options", shared: CommonOptions) -> None:
    """Read, join, write, and say what came of it."""
    from celeus.intake.formats.registry import differences, notes_of, read, sources
    from celeus.intake.joining import copies, join, kind_of, ndjson, rows_of
    from celeus.intake.reducers import EACH
    from celeus.intake.sources.files import check_apart, write

    _check(options, shared)
    judged = shared.each_output or shared.truth is not None or shared.compare is not None
    options = replace(options, judged=judged)
    if shared.each_output:
        options = replace(options, reducer=EACH)
    given = sources(form, shared.logs, shared.model)
    files = [] if shared.out is None else [shared.out, shared.out.with_suffix(NPZ)]
    check_apart(files, given)
    logs = read(form, given, options)
    rows = rows_of(logs)
    pool = _pool(rows, options, shared)
    _print([*notes_of(logs), *_on_scale(options)])
    for line in [*differences(logs), *copies(rows)]:
        typer.echo(one_line(f"celeus: {line}"), err=True)
    # What is tested has losses: without a model that is named, those of the last one
    tested = pool if pool.tests or shared.backtest is None else join(rows, rows[-1].model)
    summary = _summary(tested)
    _print([*summary, *_backtest(tested, shared.backtest, shared.runs)])
    if shared.out is None:
        return
    made = {shared.out: ndjson(pool)}
    if pool.tests:
        made[shared.out.with_suffix(NPZ)] = _npz(pool)
    write(made)
    if summary != (lines := _summary(pool)):
        _print(lines)
    kind = kind_of(rows, outputs=shared.each_output)
    _print([f"wrote {' and '.join(map(str, made))}; the losses are {kind}"])


def _pool(rows: "list[Row]", options: "Options", shared: CommonOptions) -> "JoinedItems | Pairing":
    from celeus.intake.joining import compare, each_output, join

    if shared.compare is not None:
        return compare(rows, *shared.compare, text_decides=shared.text_decides)
    if shared.each_output:
        return each_output(rows)
    return join(rows, shared.truth, own_confidence=options.own_confidence)


def _on_scale(options: "Options") -> list[str]:
    """Return a line on what a loss is of a score that has other ends than 0 and 1."""
    low, high = options.scale
    if (low, high) == (0.0, 1.0):
        return []
    return [f"losses are from 0 to 1: 0.1 of them is {(high - low) / 10:g} of the score"]


def _print(lines: list[str]) -> None:
    for line in lines:
        typer.echo(one_line(line))


def _check(options: "Options", shared: CommonOptions) -> None:
    """Refuse options that contradict each other."""
    low, high = options.scale
    if not (low < high and math.isfinite(high - low)):
        rule = "two numbers, the least first"
        raise InvalidValue(f"scale must be {rule}", field="scale", rule=rule, value=options.scale)
    given = {
        "truth": shared.truth is not None,
        "compare": shared.compare is not None,
        "each_output": shared.each_output,
    }
    names = [name for name, value in given.items() if value]
    if len(names) > 1:
        detail = f"{names[1]} must be left out beside {names[0]}"
        raise InvalidValue(detail, field=names[1], rule=f"left out beside {names[0]}")
    if options.own_confidence and shared.truth is None:
        detail = (
            "own_confidence must come with truth: of a model that is yet to run nobody knows it"
        )
        raise InvalidValue(detail, field="own_confidence", rule="left out without truth")
    if shared.each_output and shared.backtest is not None:
        detail = "backtest must be left out beside each_output: the losses are the people's"
        raise InvalidValue(detail, field="backtest", rule="left out beside each_output")
    if shared.text_decides and shared.compare is None:
        rule = "left out without compare"
        raise InvalidValue(f"text_decides must be {rule}", field="text_decides", rule=rule)
    if shared.out is None and shared.backtest is None and shared.compare is None:
        raise InvalidValue("nothing to do: name a file with --out, or ask for a --backtest")
    if shared.out is not None and shared.out.suffix == NPZ:
        rule = "the file of the pool, such as pool.ndjson; the .npz is written beside it"
        raise InvalidValue(f"out must be {rule}", field="out", rule=rule)


def _summary(pool: "JoinedItems | Pairing") -> list[str]:
    """Return lines that describe a pool."""
    from celeus.intake.joining import Pairing

    return _of_pairs(pool) if isinstance(pool, Pairing) else _of_items(pool)


def _of_items(pool: "JoinedItems") -> list[str]:
    from celeus.intake.joining import mean_loss

    lines = [f"{len(pool.items)} items"]
    if known := sum(item.shown.known is not None for item in pool.items):
        lines[0] += f", {known} of them with a known loss"
    if pool.truth is not None:
        lines[0] += f"; held out: {pool.truth}, mean loss {mean_loss(pool.judged):.6g}"
        if missing := len(pool.items) - len(pool.judged):
            lines.append(
                f"{missing} of them without a score of {pool.truth}: no loss is known there"
            )
    if pool.repeated:
        shown = "the loss is their mean, the answer shown the first"
        lines.append(f"{pool.repeated} of them answered several times: {shown}")
    if pool.left_out:
        lines.append(f"left out: {pool.left_out} without an output")
    if pool.partial:
        lines.append(f"{pool.partial} of them are not in the logs of all models")
    return [*lines, *_of_guesses(pool)]


def _of_guesses(pool: "JoinedItems") -> list[str]:
    if not pool.guessed and pool.items[0].id:
        return ["no surrogate: the outputs have no score"]
    if not pool.guessed:
        return ["no surrogate: give the logs of other models on the same task"]
    of_truth = f"what {pool.truth} left to other choices than its own"
    if not pool.models:
        return [f"surrogate: {of_truth}"]
    named = ", ".join(pool.models[:MOST_NAMED])
    if more := len(pool.models) - MOST_NAMED:
        named += f" and {more} more" if more > 0 else ""
    what = "loss of" if len(pool.models) == 1 else f"mean loss of {len(pool.models)}:"
    tempered = "; a hard 0 or 1 is drawn towards the mean of all" if pool.hard else ""
    lines = [f"surrogate: {what} {named}{tempered}"]
    if pool.own_confidence:
        lines.append(f"and, weighing as much, {of_truth}")
    if pool.unguessed:
        lines.append(
            f"{pool.unguessed} of them without a score there: the mean of all stands for it"
        )
    return lines


def _of_pairs(pool: "Pairing") -> list[str]:
    same = sum(pair.same for pair in pool.pairs)
    lines = [f"{len(pool.pairs)} items that {pool.a} (a) and {pool.b} (b) both answered"]
    if pool.answers == "prediction" or pool.text_decides:
        lines.append(f"{same} of them alike: known, and never to be judged")
        if pool.answers != "prediction":
            lines[-1] += ", in a pool made with normalisation=exact"
    if known := sum(pair.a.known is not None or pair.b.known is not None for pair in pool.pairs):
        lines.append(f"{known} of them with an earlier verdict on one answer: judged all the same")
    if pool.left_out:
        lines.append(f"left out: {pool.left_out} items without an answer of both")
    if missing := len(pool.pairs) - len(pool.judged):
        lines.append(f"{missing} of them without a score of both: no difference is known there")
    if pool.repeated:
        lines.append(f"{pool.repeated} of them answered several times: the loss is their mean")
    if pool.judged:
        from celeus.simulation.side_by_side import SideBySide

        lines += SideBySide(pool).whole.lines
    return lines


def _backtest(pool: "JoinedItems | Pairing", precision: float | None, runs: int) -> list[str]:
    if precision is None:
        return []
    from celeus.intake.joining import Pairing
    from celeus.units import SHARES, check_width

    check_width(precision, SHARES[isinstance(pool, Pairing)], "backtest")
    done = backtested(pool, precision, runs)
    if not isinstance(pool, Pairing):
        return _told(done, "mean loss", runs)
    lines = _told(done, "mean difference", runs)
    if pool.guessed:
        what = "these scores are the truth here, and other models guess them; in the pool they are"
        lines.insert(0, f"{what} themselves the guess of what a judge will say")
    return lines


def backtested(pool: "JoinedItems | Pairing", precision: float, runs: int) -> "Backtest":
    """Labels that certifying would have cost on these logs, by simulated sessions."""
    from celeus.core.plans.plan import Claim
    from celeus.simulation.backtest import backtest

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"pool{NPZ}"
        file.write_bytes(_npz(pool))
        claim = Claim(precision=precision)
        return backtest(file, claim, guessed=pool.guessed, runs=runs, seed=0)


def _npz(pool: "JoinedItems | Pairing") -> bytes:
    """Return the known losses in the form that `celeus dev simulate` reads."""
    import numpy as np

    from celeus.intake.joining import arrays

    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays(pool))
    return file.getvalue()


def _told(done: "Backtest", what: str, runs: int) -> list[str]:
    certain = f"{100 * (1 - done.alpha):g} %"
    sessions = f"{certain}; median of {runs} session{'s' if runs > 1 else ''}"
    what = f"the {what} of {done.items} items ({done.risk:.4f}) was certified"
    lines = [f"labels until {what} to a width of {done.precision:g} ({sessions})"]
    if done.with_surrogate is not None:
        lines.append(f"  with the surrogate     {done.with_surrogate:,.0f}")
    lines += [
        f"  without                {done.without:,.0f}",
        f"  fixed sample           {done.fixed_sample:,}",
        "(the fixed sample: its size chosen by one who knew the spread, and looked at once)",
    ]
    if done.with_surrogate is None:
        return [*lines, "there is no surrogate: give the logs of other models on the same task"]
    if not done.worth:
        return [*lines, "the surrogate is worth nothing here: take another one, or none"]
    return [*lines, f"the surrogate saves {100 * done.saved:.0f} % of the labels"]
