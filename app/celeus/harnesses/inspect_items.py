"""The items of a task of Inspect: as a pool, and against the pool of a session."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai.dataset import Sample

from celeus.client import results
from celeus.client.blocking import Session
from celeus.client.calls import POOLS
from celeus.errors import InvalidValue
from celeus.intake.formats.inspect_logs import is_drawn, item_of
from celeus.intake.formats.registry import read, sources
from celeus.intake.joining import guessed, lines_of, payload_of, rows_of
from celeus.intake.rows import Options, Row, refused

Logs = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Samples = Mapping[str, tuple[Sample, Row]]
"""The samples of a task by their ids as text, each with the item that it is."""
PAGE = 1000
SHOWN = 3
WORDS = {
    "--given metric=…": "score=",
    "--given better=higher or better=lower": "higher=True or higher=False",
    "--given 'scale=LOW to HIGH'": "scale=(LOW, HIGH)",
}
"""Options of `celeus import`, and what they are called here."""


def items(task: Task, logs: Logs = (), *, options: Options | None = None) -> list[dict[str, Any]]:
    """The samples of a task as the items of a pool, whoever is going to answer them.

    ``logs`` are of other models on the same task, or folders of them: the mean of what these lost
    is the surrogate of an item. Those of runs that sessions drove are left out: when such a run
    goes on, its items are to be the same. Refuses logs of other samples.
    """
    rows = [row for _, row in samples_of(task).values()]
    paths = [logs] if isinstance(logs, str | os.PathLike) else [*logs]
    found = []
    if paths:
        whole = [
            source for source in sources("inspect", [*map(Path, paths)]) if not is_drawn(source)
        ]
        if not whole:
            what = "all samples in these logs were drawn by sessions"
            raise refused(f"{what}: give whole logs of other models, or none", "logs")
        found = read("inspect", whole, options or Options())
    return list(lines_of(guessed(rows, rows_of(found))))


def samples_of(task: Task) -> Samples:
    """The samples of a task; refuses a task without a data set, and one with an id twice."""
    if task.sample_source is not None:
        raise refused("the task draws its samples itself: give one with a data set", "task")
    found: dict[str, tuple[Sample, Row]] = {}
    for number, sample in enumerate(task.dataset, start=1):
        if sample.id is None:
            # As Inspect numbers those without a name
            sample.id = number
        row = item_of(sample.model_dump(mode="json"))
        if row.id in found:
            raise refused(f"the data set has {row.id} twice: give every sample an id", "id")
        found[row.id] = sample, row
    return found


def check_items(session: Session, pool: str, found: Samples) -> None:
    """Refuse a session whose pool has not the very samples of the data set."""
    pages = session.client.pages(results.Item, f"{POOLS}/{pool}/items", limit=PAGE)
    held = {item.id: item for item in pages}
    for ours, theirs, where in (
        (found, held, "the data set has {}, and the pool of {} has not"),
        (held, found, "the data set has not {}, which the pool of {} has"),
    ):
        alone = [name for name in ours if name not in theirs]
        if alone:
            names = ", ".join(alone[:SHOWN]) + (", …" if len(alone) > SHOWN else "")
            how = "make a pool of this data set, as by celeus.inspect.items"
            raise refused(f"{where.format(names, session.id)}: {how}", "id")
    for name, (_, row) in found.items():
        shown = held[name].payload
        expected = payload_of(row)
        if not isinstance(shown, dict):
            continue
        for member in expected.keys() & shown.keys():
            if shown[member] != expected[member]:
                why = "the data set was changed or shuffled: give every sample an id that stays"
                raise refused(f"{name} has another {member} than in the pool: {why}", member)


def check_same(first: Samples, second: Samples) -> None:
    """Refuse two tasks that ask different things."""
    names = dict.fromkeys([*first, *second])
    differing = [
        name
        for name in names
        if name not in first or name not in second or first[name][1].check != second[name][1].check
    ]
    if differing:
        how = "two tasks are compared on one data set"
        raise refused(f"{differing[0]} is not the same in both tasks: {how}", "task")


def in_python(refusal: InvalidValue) -> InvalidValue:
    """The refusal of a score, with what to say in place of an option of `celeus import`."""
    detail = refusal.detail
    for option, words in WORDS.items():
        detail = detail.replace(option, words)
    return refused(detail, refusal.field)
