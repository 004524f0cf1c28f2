"""`celeus import`: logs of evaluations that have been run, as a pool to certify."""

import io
import json
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celeus.commands.options import NUMBER, Format, Given, Mapping, from_input
from celeus.errors import InvalidValue
from celeus.shorten import one_line

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.intake.joining import JoinedItems, Pairing
    from celeus.intake.rows import Options, Row
    from celeus.simulation.backtest import Backtest

NPZ = ".npz"
MOST_NAMED = 5
SESSIONS = 10
"""Sessions that a backtest simulates."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of the pool to make of the logs."""

    model: list[str]
    out: Path | None
    truth: str | None
    compare: tuple[str, str] | None
    text_decides: bool
    each_output: bool
    own_confidence: bool
    backtest: float | None


def imports(  # noqa: PLR0913 -- one parameter an option
    logs: Annotated[
        list[Path], typer.Argument(callback=from_input, help="Logs or tables, or folders of them.")
    ],
    *,
    form: Format = None,
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
    own_confidence: Annotated[
        bool,
        typer.Option(
            "--own-confidence",
            help="With --truth, of lm-eval: how sure that model was of its answers is half of the"
            " guess. For people who judge what it answered; of a model that is yet to run nobody"
            " knows it.",
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
    mapping: Mapping = None,
    given: Given = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON, with the same lines in it.")
    ] = False,
) -> None:
    """Make a pool of logs of evaluations that have been run, whatever tool wrote them.

    Logs of lm-eval (samples_*.jsonl, run with --log_samples), Inspect, promptfoo, DeepEval, HELM
    and SWE-bench are recognised; any other file is read as a table: CSV, JSON, JSON Lines, Excel or
    Parquet, a nested column by its path. What a log leaves open is asked, with the answers to give:
    --given NAME=VALUE, and for columns --mapping COLUMN=ROLE.
    """
    from celeus.commands.file_answers import options_of
    from celeus.intake.formats.registry import form_of
    from celeus.units import SHARES, number_on

    width = None if backtest is None else number_on(SHARES[0], backtest, "backtest")
    two = None if compare is None else (compare[0], compare[1])
    shared = ImportOptions(
        model or [], out, truth, two, text_decides, each_output, own_confidence, width
    )
    read_as = form or form_of(logs[0])
    _check(shared, read_as)
    options = options_of(read_as, mapping, given)
    options = replace(options, own_confidence=own_confidence)
    done = _import(read_as, logs, options, shared)
    typer.echo(json.dumps(done) if as_json else "\n".join(done["lines"]))


_WAYS = {
    "zero_one": "",
    "bounded": ": celeus open --given kind=bounded --given lower=0 --given upper=1",
}
"""Ways to open a file of losses of a kind, where that is not what is taken for granted."""


def _import(
    form: str, paths: list[Path], options: "Options", shared: ImportOptions
) -> dict[str, Any]:
    """Read, join and write; return what came of it, its `lines` for a reader."""
    from celeus.intake.formats.registry import differences, notes_of, read, sources
    from celeus.intake.joining import copies, join, kind_of, ndjson, rows_of
    from celeus.intake.reducers import EACH
    from celeus.intake.sources.files import check_apart, write

    judged = shared.each_output or shared.truth is not None or shared.compare is not None
    options = replace(options, judged=judged)
    if shared.each_output:
        options = replace(options, reducer=EACH)
    given = sources(form, paths, shared.model)
    files = [] if shared.out is None else [shared.out, shared.out.with_suffix(NPZ)]
    check_apart(files, given)
    logs = read(form, given, options)
    rows = rows_of(logs)
    pool = _pool(rows, options, shared)
    for line in [*differences(logs), *copies(rows)]:
        typer.echo(one_line(f"celeus: {line}"), err=True)
    # What is tested has losses: without a model that is named, those of the last one
    tested = pool if pool.tests or shared.backtest is None else join(rows, rows[-1].model)
    done = _backtested(tested, shared.backtest)
    summary = _summary(tested)
    lines = [*notes_of(logs), *_on_scale(options), *summary, *_told(tested, done)]
    made = {}
    if shared.out is not None:
        made[shared.out] = ndjson(pool)
        if pool.tests:
            made[shared.out.with_suffix(NPZ)] = _npz(pool)
        write(made)
        if summary != (of_pool := _summary(pool)):
            lines += of_pool
        kind = kind_of(rows, outputs=shared.each_output)
        lines.append(f"wrote {' and '.join(map(str, made))}; the losses are {kind}{_WAYS[kind]}")
    return {
        "format": form,
        "files": [*map(str, made)],
        "backtest": None if done is None else {**asdict(done), "saved": done.saved},
        "lines": [*map(one_line, lines)],
    }


def _pool(rows: "list[Row]", options: "Options", shared: ImportOptions) -> "JoinedItems | Pairing":
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


def _check(shared: ImportOptions, form: str) -> None:
    """Refuse options that contradict each other."""
    given = {
        "truth": shared.truth is not None,
        "compare": shared.compare is not None,
        "each_output": shared.each_output,
    }
    names = [name for name, value in given.items() if value]
    if len(names) > 1:
        detail = f"{names[1]} must be left out beside {names[0]}"
        raise InvalidValue(detail, field=names[1], rule=f"left out beside {names[0]}")
    if shared.own_confidence and form != "lm-eval":
        rule = "left out: only logs of lm-eval say how sure a model was"
        raise InvalidValue(f"own_confidence must be {rule}", field="own_confidence", rule=rule)
    if shared.own_confidence and shared.truth is None:
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


def _backtested(pool: "JoinedItems | Pairing", precision: float | None) -> "Backtest | None":
    if precision is None:
        return None
    from celeus.intake.joining import Pairing
    from celeus.units import SHARES, check_width

    check_width(precision, SHARES[isinstance(pool, Pairing)], "backtest")
    return backtested(pool, precision, SESSIONS)


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


def _told(pool: "JoinedItems | Pairing", done: "Backtest | None") -> list[str]:
    """Return the lines of a backtest."""
    from celeus.intake.joining import Pairing

    if done is None:
        return []
    what, lines = "mean loss", []
    if isinstance(pool, Pairing):
        what = "mean difference"
        if pool.guessed:
            truth = "these scores are the truth here, and other models guess them"
            lines = [f"{truth}; in the pool they are themselves the guess of what a judge will say"]
    certain = f"{100 * (1 - done.alpha):g} %"
    what = f"the {what} of {done.items} items ({done.risk:.4f}) was certified"
    sessions = f"{certain}; median of {SESSIONS} sessions"
    lines.append(f"labels until {what} to a width of {done.precision:g} ({sessions})")
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
