"""Find the reader of a log by its contents, and read all logs of one import."""

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from types import MappingProxyType

from celeus.intake.formats import deepeval, helm, inspect_logs, lm_eval, promptfoo, swebench, tables
from celeus.intake.formats.exports import check_whole
from celeus.intake.rows import Log, Options, Row, refused
from celeus.intake.sources.archives import Archive
from celeus.intake.sources.documents import tool_of
from celeus.intake.sources.files import Source
from celeus.intake.sources.tabular import plain

Reader = Callable[[Source, Options], Log]

READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "lm-eval": lm_eval.read,
        "inspect": inspect_logs.read,
        "table": tables.read,
        "promptfoo": promptfoo.read,
        "deepeval": deepeval.read,
        "helm": helm.read,
        "swebench": swebench.read,
    }
)
FILES = {
    "lm-eval": ("samples_*.jsonl", "samples_*.json"),
    "inspect": ("*.eval", "*.json"),
    "table": ("*.parquet", "*.csv", "*.jsonl"),
    "promptfoo": ("*.json", "*.jsonl"),
    "deepeval": ("test_run_*.json", ".latest_test_run.json"),
    "helm": (helm.STATS,),
    "swebench": ("*.json",),
}
"""Patterns of the files in a folder that are logs, by tool."""
_OF_HELM = frozenset({helm.STATS, helm.STATE, helm.SPEC})
_MALFORMED = (
    *(AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError),
    ValueError,
)


def sniff(source: Source) -> str | None:
    """The name of the reader of a log, by its content; None where it is a log of none."""
    if source.beside(helm.STATS) is not None and Path(source.name).name in _OF_HELM:
        return "helm"
    head = source.head()
    if head.startswith(b"PK"):
        with source.open() as file:
            members = Archive(source.name, file).members
        return "inspect" if {inspect_logs.HEADER, inspect_logs.START} & {*members} else None
    line = source.first_line()
    value = _parsed(line)
    if value is None and line.lstrip().startswith(b"{"):
        value, line = source.document(), b""
    if isinstance(value, dict):
        check_whole(value)
        results = value.get("results")
        if isinstance(results, dict) and "version" in results:
            return "promptfoo"
        if swebench.is_by_instance(value):
            return "swebench"
        return tool_of(value) or ("table" if line else None)
    return "table" if tables.is_table(head) else None


def _parsed(line: bytes) -> object:
    """The value on a line; None where it is no whole one."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def sources(form: str, paths: Sequence[Path], models: Sequence[str] = ()) -> list[Source]:
    """The logs at these paths, of folders all that are of the form.

    ``models`` are what the models are to be called, one a path. Refuses a folder without a log.
    """
    if models and len(models) != len(paths):
        detail = f"{len(paths)} logs and {len(models)} names: give one --model a log, in order"
        raise refused(detail, "model")
    found = []
    for path, model in zip(paths, models or repeat(None), strict=False):
        inside = _inside(path, form) if _is_folder(path) else [path]
        if not inside:
            raise refused(f"{path} has no {' or '.join(FILES[form])} in it", "log")
        found += [replace(Source.of_path(file), model=model) for file in inside]
    return found


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 -- a name that is too long is none


def _inside(folder: Path, form: str) -> list[Path]:
    """The files of a folder that may be logs of a form, by their names."""
    return sorted({file for pattern in FILES[form] for file in folder.rglob(pattern)})


def form_of(path: Path) -> str:
    """The form of a log, or of the logs in a folder; a file that is a log of none is a table."""
    if not _is_folder(path):
        return sniff(plain(Source.of_path(path))) or "table"
    for form in FILES:
        inside = _inside(path, form)
        if inside and sniff(Source.of_path(inside[0])) == form:
            return form
    raise refused(f"{path} has no log in it that is known", "log")


def read(form: str, given: Sequence[Source], options: Options) -> list[Log]:
    """The logs as rows; refuses logs of another tool or several tasks, and repeated rows."""
    given = [*map(plain, given)]
    if form == "lm-eval":
        given = _of_tasks(given, options)
    logs = [_renamed(_read(form, source, options), source.model) for source in given]
    _check_once(logs)
    return logs


def _read(form: str, source: Source, options: Options) -> Log:
    found = sniff(source)
    # Where columns are named it is read by these
    if form != found and (form != "table" or (found is not None and not options.columns.named)):
        way = f": try --format {found}" if found else ""
        what = "no log that is known" if found is None else f"a log of {found}"
        way = way or ": leave it out, or name the logs one by one"
        raise refused(f"{source.name} is {what if found != 'table' else 'a table'}{way}", "log")
    try:
        return READERS[form](source, options)
    except _MALFORMED as error:
        what = f"{type(error).__name__}: {error}"
        raise refused(f"{source.name} is no {form} log as this reader knows it ({what})") from error


def _of_tasks(given: Sequence[Source], options: Options) -> list[Source]:
    """The logs of the tasks that are asked for; refuses several that nobody asked for."""
    kept = [source for source in given if lm_eval.wanted(source, options)]
    tasks = sorted({lm_eval.task_of(source) for source in given})
    if not kept:
        raise refused(
            f"no log is of {', '.join(options.tasks)}, only of {', '.join(tasks)}", "task"
        )
    if not options.tasks and len(tasks) > 1:
        listed = ", ".join(tasks)
        how = "choose with --given task=…"
        raise refused(f"the logs are of several tasks ({listed}): {how}", "task")
    return kept


def _renamed(log: Log, name: str | None) -> Log:
    """The log with this name for its model."""
    models = sorted({row.model for row in log.rows})
    if name is None:
        return log
    if len(models) > 1:
        listed = ", ".join(models)
        raise refused(f"{log.name} is of several models ({listed}): leave out --model", "model")
    return replace(log, rows=[replace(row, model=name) for row in log.rows])


def _check_once(logs: list[Log]) -> None:
    """Refuse a row that stands twice: in one log, or in two of models with one name."""
    seen: dict[tuple[str, str, int], Log] = {}
    for log in logs:
        keys = set()
        for row in log.rows:
            key = (row.id, row.model, row.repeat)
            other = seen.setdefault(key, log)
            if other is not log:
                how = "name the models with --model, one a log, or leave one log out"
                both = f"{other.name} and {log.name} are both of {row.model}"
                raise refused(f"{both}: {how} (item {row.id})", "model")
            if key in keys:
                how = "a log has every item once for a model and a repeat"
                raise refused(f"item {row.id} stands twice in {log.name}: {how}", "id")
            keys.add(key)


def notes_of(logs: Sequence[Log]) -> list[str]:
    """The sentences on what was read, of each log and of all together, once each.

    Several means that a tool may report are told beside that over items, which is certified: over
    groups, and over the answers of models that answered some items more often.
    """
    lines = list(dict.fromkeys(line for log in logs for line in log.notes))
    rows = [row for log in logs for row in log.rows if row.loss is not None]
    for model, losses in _losses(rows, lambda row: row.group).items():
        if len(losses) > 1:
            whole = _weighted([loss for of_group in losses.values() for loss in of_group])
            by_group = math.fsum(map(_weighted, losses.values())) / len(losses)
            what = f"mean loss of {model}: {whole:.4g} over all items, which is what is certified"
            lines.append(f"{what}; the mean over the {len(losses)} groups is {by_group:.4g}")
    for model, losses in _losses(rows, lambda row: row.id).items():
        if len({*map(len, losses.values())}) > 1:
            by_item = _weighted(
                [(_weighted(of_item), of_item[0][1]) for of_item in losses.values()]
            )
            every = [loss for of_item in losses.values() for loss in of_item]
            what = f"mean loss of {model}: {by_item:.4g} over items, each by its answers"
            also = f"over all {len(every)} answers that have a score"
            lines.append(f"{what}; {_weighted(every):.4g} {also}")
    return lines


def _losses(
    rows: Sequence[Row], name_of: Callable[[Row], str | None]
) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """The losses and weights of rows by model and a name, of those that have one."""
    losses: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in rows:
        name = name_of(row)
        if name is not None and row.loss is not None:
            losses.setdefault(row.model, {}).setdefault(name, []).append((row.loss, row.weight))
    return losses


def _weighted(losses: Sequence[tuple[float, float]]) -> float:
    total = math.fsum(loss * weight for loss, weight in losses)
    return total / math.fsum(weight for _, weight in losses)


def differences(logs: Sequence[Log]) -> list[str]:
    """In what the logs of one task differ, a line each: other versions, other prompts."""
    logs_by_value: dict[str, dict[str, str]] = {}
    for log in logs:
        for name, value in log.settings.items():
            logs_by_value.setdefault(name, {}).setdefault(value, log.name)
    return [
        f"the {name} is not the same in all logs: "
        + ", ".join(f"{value} in {log}" for value, log in values.items())
        for name, values in logs_by_value.items()
        if len(values) > 1
    ]
