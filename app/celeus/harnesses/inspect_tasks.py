"""Tasks of Inspect that a session drives, made of any task."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from inspect_ai import SampleSource, Task, task_with
from inspect_ai._util.error import PrerequisiteError  # one line in place of a traceback
from inspect_ai.scorer import Metric, Scorer, metric
from inspect_ai.util import registry_info

from celeus.client.blocking import Client, Session
from celeus.client.results import Status
from celeus.errors import InvalidValue, Refusal
from celeus.harnesses.inspect_items import check_items, check_same, in_python, samples_of
from celeus.harnesses.inspect_live import GOES_ON, LiveSession, Side, epochs_refused
from celeus.intake.formats.inspect_logs import DRAWN_BY, scorer_of
from celeus.intake.rows import Options, refused

T = TypeVar("T")

HOLD = 10
WORKER = "inspect"
SIDES = ("a", "b")
WHOLE = (0.0, 1.0)


def options_of(score: str | None, scale: Sequence[float], *, higher: bool | None) -> Options:
    """Return how to read scores: which one, which direction is better, and its ends."""
    rule = "its two ends, the least first"
    refusal = InvalidValue(f"scale must be {rule}", field="scale", rule=rule, value=scale)
    try:
        low, high = (float(end) for end in scale)
    except (TypeError, ValueError):
        raise refusal from None
    if not low < high:
        raise refusal
    return Options(score, higher=higher, scale=(low, high))


def certified(  # noqa: PLR0913 -- how a score is read, and how it is asked for, each by its name
    task: Task,
    session: Session | str,
    *,
    score: str | None = None,
    higher: bool | None = None,
    scale: Sequence[float] = WHOLE,
    hold: int = HOLD,
    worker: str = WORKER,
) -> Task:
    """The task itself, which from now on runs the samples that a session draws.

    ``session``: the id of a session of the service that CELEUS_URL and CELEUS_KEY name, or a
    session, also one in process. Its pool holds the samples of the task, as `items` makes one. The
    log has the session's interval as the metrics `estimate`, `lower`, `upper` and `labels`.

    ``score`` is the scorer whose score counts, where there are several, or the part of one, as
    `scorer/part`; ``higher`` says which way a number is better, ``scale`` are its ends. So many
    samples run at once as ``hold`` says. ``worker`` names who runs: under the same name a run that
    was killed goes on at once; of several that run beside each other each needs its own.
    Raises `celeus.Refusal` for a task and a session that do not belong together.
    """
    options = options_of(score, scale, higher=higher)
    opened, status = _opened(session)
    if status.systems is not None:
        raise refused(f"{opened.id} compares two systems: give both to compared()", "session")
    side = _side("", task, options)
    check_items(opened, status.pool_id, side.samples)
    live = LiveSession(opened, status, [side], hold, worker)
    return _driven(task, live, side, _interval(live, options))


def compared(  # noqa: PLR0913 -- as `certified`
    a: Task,
    b: Task,
    session: Session | str,
    *,
    score: str | None = None,
    higher: bool | None = None,
    scale: Sequence[float] = WHOLE,
    hold: int = HOLD,
    worker: str = WORKER,
) -> list[Task]:
    """Both tasks, to be run at once: a session draws, both answer, and it hears both losses.

    The tasks have the same samples and differ in their model, `task_with(exam(), model=...)`, or in
    how they ask. The pool of the session names two systems, whose losses are 0 or 1. Run them
    as `eval(tasks, max_tasks=2)`; each log has the metrics `difference`, of the score of the first
    less the second, `lower`, `upper` and `labels`. All else is as in `certified`.
    """
    options = options_of(score, scale, higher=higher)
    opened, status = _opened(session)
    if status.systems is None:
        raise refused(f"{opened.id} compares nothing: open it on a pool of two systems", "session")
    if a is b:
        raise refused("the two tasks are one: make it twice", "task")
    sides = [_side(name, task, options) for name, task in zip(SIDES, (a, b), strict=True)]
    check_same(*(side.samples for side in sides))
    check_items(opened, status.pool_id, sides[0].samples)
    live = LiveSession(opened, status, sides, hold, worker)
    difference = _difference(live, options)
    return [_driven(task, live, side, difference) for task, side in zip((a, b), sides, strict=True)]


def _opened(session: Session | str) -> tuple[Session, Status]:
    """Return the session and its status; refuses one that a run of a model cannot serve."""
    opened = Client().session(session) if isinstance(session, str) else session
    status = opened.status()
    if status.state not in GOES_ON:
        where = f": {status.sentence}" if status.sentence else ""
        raise refused(f"{opened.id} asks for nothing more, it is {status.state}{where}", "session")
    for several, what in (
        (status.raters, "a panel of raters"),
        (status.best, "more than two systems"),
        (status.table, "several claims or metrics"),
    ):
        if several is not None:
            how = "open one with a single loss"
            raise refused(f"{opened.id} has {what}, which a run cannot serve: {how}", "session")
    ends = (0.0, 1.0) if status.systems is None else (-1.0, 1.0)
    held = status.scale
    if held is None or (held.lower, held.upper) != ends:
        how = "make the pool with losses from 0 to 1"
        raise refused(f"the losses of {opened.id} are on another scale: {how}", "session")
    return opened, status


def _side(name: str, task: Task, options: Options) -> Side:
    """Return a task as a side of the session; refuses one whose scores are not losses."""
    if task.epochs not in {None, 1}:
        raise epochs_refused()
    if task.early_stopping is not None:
        raise refused("a session stops the task: leave out its early_stopping", "early_stopping")
    scorers = [_name_of(scorer) for scorer in task.scorer or ()]
    try:
        scorer, part = scorer_of(scorers, options, f"the task {task.name}")
    except InvalidValue as error:
        raise in_python(error) from None
    if scorers.count(scorer) > 1:
        raise refused(f"{task.name} has several scorers {scorer}: leave one", "score")
    model = None if task.model is None else str(task.model)
    return Side(name, samples_of(task), scorer, part, options, model)


def _name_of(scorer: Scorer) -> str:
    """Return a scorer's name as the log has it, without its package."""
    name: str = registry_info(scorer).name
    return name.partition("/")[2] or name


def _driven(
    task: Task, live: LiveSession, side: Side, score: Callable[[], Mapping[str, float]]
) -> Task:
    """The task with a session as its data set, and the session's interval as its metric."""
    source = SampleSource.from_samples(
        [],
        next_samples=lambda: _in_one_line(live.next_samples(side)),
        sample_complete=lambda sample: _in_one_line(live.sample_complete(side, sample)),
        sample_abandoned=lambda sample, _: live.sample_abandoned(sample),
    )
    for scorer in task.scorer or ():
        is_scored = _name_of(scorer) == side.scorer
        # A mean of samples that were drawn unevenly estimates nothing. Task, and not task_with,
        # takes new metrics to heart
        Task(scorer=scorer, metrics=[_metric(score)] if is_scored else [])
    status = live.status
    what = f"the session {live.session.id}, with a confidence of {100 * (1 - status.alpha):g} %"
    words = (
        f"The metrics are those of {what}. Samples were drawn unevenly: any other mean over"
        " this log is no estimate."
    )
    metadata = {**(task.metadata or {}), DRAWN_BY: {"session": live.session.id, "says": words}}
    return task_with(
        task,
        dataset=source,
        name=task.name,
        metadata=metadata,
        headline_metric=None,
    )


async def _in_one_line(work: Awaitable[T]) -> T:
    """Return the result of ``work``; a refusal becomes an error that Inspect shows and logs."""
    try:
        return await work
    except Refusal as refusal:
        raise PrerequisiteError(f"celeus: {refusal}") from refusal


def _metric(score: Callable[[], Mapping[str, float]]) -> Metric:
    @metric(name="certified")  # type: ignore[untyped-decorator]
    def certified_score() -> Metric:
        def compute(scores: Sequence[object]) -> Mapping[str, float]:
            del scores
            return score()

        return compute

    return certified_score()


def _interval(live: LiveSession, options: Options) -> Callable[[], Mapping[str, float]]:
    """The session's interval, as the score of the task."""
    low, high = options.scale
    better = options.higher is not False

    def interval() -> Mapping[str, float]:
        status = live.status
        if status.estimate is None or status.lower is None or status.upper is None:
            return {}
        ends = [status.estimate, status.lower, status.upper]
        if better:
            ends = [1.0 - status.estimate, 1.0 - status.upper, 1.0 - status.lower]
        scores = [low + end * (high - low) for end in ends]
        names = ("estimate", "lower", "upper")
        return dict(zip(names, scores, strict=True)) | {"labels": status.rounds.in_interval}

    return interval


def _difference(live: LiveSession, options: Options) -> Callable[[], Mapping[str, float]]:
    """The session's interval of the difference, as that of the scores of both tasks."""
    low, high = options.scale
    size = (high - low) * (-1.0 if options.higher is not False else 1.0)

    def interval() -> Mapping[str, float]:
        status = live.status
        if status.estimate is None or status.lower is None or status.upper is None:
            return {}
        lower, upper = sorted((size * status.lower, size * status.upper))
        return {
            "difference": size * status.estimate,
            "lower": lower,
            "upper": upper,
            "labels": status.rounds.in_interval,
        }

    return interval
