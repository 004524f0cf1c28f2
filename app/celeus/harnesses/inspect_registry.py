"""`inspect eval celeus/certified -T task=exam.py@exam -T precision=0.1`: no glue at all."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from inspect_ai import Task, task
from inspect_ai._eval.loader import load_tasks  # what `inspect eval` finds tasks by
from inspect_ai._util.error import PrerequisiteError  # one line in place of a traceback
from inspect_ai.model import get_model

import celeus
from celeus.client.blocking import Session
from celeus.errors import Refusal
from celeus.harnesses.inspect_items import Logs, items
from celeus.harnesses.inspect_tasks import HOLD, WHOLE, WORKER, certified, options_of
from celeus.intake.formats.inspect_logs import DRAWN_BY
from celeus.intake.rows import Options, refused
from celeus.runs.certify import Budget

if TYPE_CHECKING:
    # Sessions of a service need no arrays
    from celeus.runs.local import LocalClient


@task(name="certified")  # type: ignore[untyped-decorator]
def certified_task(  # noqa: PLR0913 -- the options of the command line
    task: str,
    *,
    session: str | None = None,
    logs: Logs = (),
    precision: float | str | None = None,
    at_most: float | str | None = None,
    at_least: float | str | None = None,
    score_at_most: float | str | None = None,
    score_at_least: float | str | None = None,
    budget: Budget = None,
    target: str | None = None,
    repeats: bool | None = None,
    success: str | None = None,
    file: str | None = None,
    score: str | None = None,
    higher: bool | None = None,
    scale: Sequence[float] = WHOLE,
    hold: int = HOLD,
    worker: str = WORKER,
    **arguments: Any,  # noqa: ANN401 -- whatever the task takes
) -> Task:
    """A task, until its score is known.

    ``task`` is what `inspect eval` takes, and gets all other ``arguments``. With ``session`` it
    runs what that session of a service draws. Else a session is opened in process, in ``file``,
    by default one of the task and the model in the folder `.celeus`; ``precision``, ``at_most``,
    ``at_least``, of the mean loss, ``score_at_most``, ``score_at_least``, of the accuracy, and
    ``budget`` are those of `celeus.certify`, ``logs`` those of `items`, and the rest as in
    `certified`. With ``target=runs`` the score is that of all runs of the model, ``repeats=true``
    runs samples again, and ``success="all of 4"`` asks for pass^4.
    """
    try:
        found = load_tasks([task], arguments)
        if len(found) != 1:
            names = ", ".join(task.name for task in found) or "none"
            raise refused(f"{task} has not one task but {names}: name it, as exam.py@exam", "task")
        (inner,) = found
        options = options_of(score, scale, higher=higher)
        claim = {"precision": precision, "budget": budget}
        claim |= {"at_most": at_most, "at_least": at_least}
        claim |= {"score_at_most": score_at_most, "score_at_least": score_at_least}
        claim |= {"target": target, "repeats": repeats, "success": success}
        asked = {name: value for name, value in claim.items() if value is not None}
        opened: Session | str
        if session is not None:
            if asked:
                rule = "left out beside session, which was opened with its own"
                raise refused(f"{next(iter(asked))} must be {rule}", next(iter(asked)))
            opened = session
        else:
            opened = _in_process(inner, items(inner, logs, options=options), options, asked, file)
        read: dict[str, Any] = {"score": score, "higher": higher, "scale": scale}
        driven = certified(inner, opened, **read, hold=hold, worker=worker)
        if not isinstance(opened, str):
            driven.metadata[DRAWN_BY]["file"] = str(_file_of(opened))
    except (Refusal, ImportError) as error:
        raise PrerequisiteError(f"celeus: {error}") from None
    return driven


def _in_process(
    inner: Task, rows: object, options: Options, asked: dict[str, Any], file: str | None
) -> Session:
    """A session of this task and this model alone, which goes on where it was."""
    if not asked.keys() - {"target", "repeats", "success"}:
        how = "say when it is known well enough, as precision=0.1, or budget=all to run all of it"
        raise refused(f"the score of {inner.name} could always be known better: {how}", "precision")
    model = get_model() if inner.model is None else inner.model
    named = options.higher is None and options.scale == WHOLE
    of_score = next((name for name in asked if name.startswith("score_")), None)
    if of_score is not None and not named:
        rule = "left out beside higher and scale: ask at_most or at_least of the mean loss, 0 to 1"
        raise refused(f"{of_score} must be {rule}", of_score)
    # A question of the loss goes with the name of the loss
    named = named and not {"at_most", "at_least"} & asked.keys()
    return celeus.certify(
        rows,
        None,
        # A run of several succeeds or fails, and nothing between
        loss="zero_one" if "success" in asked else WHOLE,
        score=("accuracy", "higher") if named else None,
        name=f"{inner.name} by {model}",
        file=file,
        **asked,
    )


def _file_of(session: Session) -> Path:
    """Return the file of a session in process."""
    client = cast("LocalClient", session.client)
    return client.ledger.file.path
