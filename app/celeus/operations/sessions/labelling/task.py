"""The labelling task: what a judge must know, and nothing that could bias one."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import text

from celeus.core.plans.success import Success
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.score import RIGHT_OR_WRONG, Level, Score
from celeus.core.pools.systems import AnySystems, Lineup, systems_from
from celeus.errors import SessionNotFound
from celeus.operations.access.keys import key_name
from celeus.operations.runtime.context import Context
from celeus.operations.sessions.labelling.instructions import beginning
from celeus.store.database import planned_rows

NEUTRAL = "Two answers"
"""Name of every comparison: no rule could tell which of their own names say what is compared."""
SEVERAL = "Several answers"
"""The same where the best of several is sought."""


@dataclass(frozen=True, slots=True)
class Task:
    """The task of a session's judges, and the number of labels by the caller's key.

    ``takes_labels``: a loss follows from a label, the true class, of which there are ``classes``
    (None where their number is not known). ``systems`` are the two compared, or those among which
    the best is sought, None elsewhere; ``metrics`` the losses that a judgement gives, none where it
    gives one: a judge sees neither their names nor that of the session,
    which may resemble them. ``rater``: whether the key's name is that of a rater of the panel, None
    where there is no panel. ``stands``: no label is taken
    back. ``runs``: every judgement is of a fresh run of a system, and none is made a second time;
    ``repeats``: the same item comes again, for another run; ``success``: the runs of a
    draw that have to succeed.
    ``levels`` are those of the scale, in the direction of ``score``; none where a label is
    asked for.
    """

    session_id: UUID
    state: str
    name: str
    scale: LossScale
    takes_labels: bool
    classes: int | None
    systems: AnySystems | None
    metrics: tuple[Metric, ...]
    stands: bool
    runs: bool
    repeats: bool
    success: Success | None
    lease_seconds: int
    labeller: str
    labels: int
    rater: bool | None = None
    levels: tuple[Level, ...] = ()
    score: Score | None = None
    instructions: str | None = None

    @property
    def words(self) -> tuple[str, str]:
        """The words of a loss of 0 and of 1."""
        return RIGHT_OR_WRONG if self.score is None else self.score.words


async def get_task(context: Context, session_id: UUID) -> Task:
    """The task of a session of the caller's project."""
    params: dict[str, Any] = {
        "session_id": session_id,
        "project_id": context.project_id,
        "key_id": context.key_id,
    }
    async with context.transaction() as db:
        row = (await db.execute(_TASK, params)).one_or_none()
    if row is None:
        raise SessionNotFound.of(session_id)
    scale = LossScale(row.loss_kind, row.loss_lower, row.loss_upper)
    systems = None if row.systems is None else systems_from(row.systems)
    takes_labels = scale.implied_by(row.columns)
    return Task(
        session_id=session_id,
        state=row.state,
        name=_name(row.name, systems),
        scale=scale,
        takes_labels=takes_labels,
        classes=row.classes,
        systems=systems,
        metrics=tuple(map(Metric.from_dict, row.metrics or ())),
        stands=row.stands,
        runs=row.runs,
        repeats=row.repeats,
        success=None if row.success is None else Success(**row.success),
        lease_seconds=row.lease_seconds,
        labeller=row.labeller or "",
        labels=row.labels,
        rater=None if row.panel is None else row.labeller in row.panel,
        levels=() if takes_labels else tuple(map(Level.from_dict, row.levels or ())),
        score=None if row.score is None else Score(**row.score),
        instructions=row.shared if row.own is None else row.own,
    )


@dataclass(frozen=True, slots=True)
class OwnTask:
    """A session that a key may label, and how many items it has labelled there.

    ``work``: draws are handed out now; else ``pause`` says why not, and nothing of results.
    ``brief`` is the beginning of its instructions, None without any.
    """

    session_id: UUID
    name: str
    labels: int
    work: bool
    pause: str
    brief: str | None


async def list_tasks(context: Context, most: int) -> list[OwnTask]:
    """Sessions that the caller's key may label, with work first, then the newest.

    What is closed or archived is listed where the key has labelled in it. Of a panel's sessions
    those are listed of which the key's name is a rater; what a program runs several times is not.
    """
    params: dict[str, Any] = {
        "project_id": context.project_id,
        "key_id": context.key_id,
        "most": most,
    }
    async with context.transaction() as db:
        params["key_name"] = await key_name(db, context.key_id)
        rows = await planned_rows(db, _TASKS.bindparams(**params))
    return [
        OwnTask(
            row.session_id,
            _name(row.name, None if row.systems is None else systems_from(row.systems)),
            row.labels,
            row.work,
            _pause(row.state, archived=row.archived),
            None if row.brief is None else beginning(row.brief),
        )
        for row in rows
    ]


def _pause(state: str, *, archived: bool) -> str:
    if archived:
        return "Archived"
    if state in {"active", "paused"}:
        return "Nothing to label at the moment"
    return "No more labels needed"


def _name(name: str, systems: AnySystems | None) -> str:
    """The session's own name, or one that reveals nothing of what is compared."""
    if systems is None:
        return name
    return SEVERAL if isinstance(systems, Lineup) else NEUTRAL


_TASK = text(
    """
    SELECT sessions.state, sessions.lease_seconds, coalesce(sessions.name, pools.name) AS name,
           pools.loss_kind, pools.loss_lower, pools.loss_upper, pools.columns, pools.classes,
           pools.systems, pools.metrics, pools.levels, pools.score, sessions.plan->'panel' AS panel,
           sessions.plan ?| ARRAY['table', 'best'] AS stands,
           coalesce(sessions.plan->>'target' = 'runs', false) AS runs,
           coalesce((sessions.plan->'repeats')::boolean, false) AS repeats,
           sessions.plan->'success' AS success,
           (SELECT name FROM keys WHERE key_id = :key_id) AS labeller,
           coalesce((SELECT labels FROM labellers
                     WHERE session_id = :session_id AND key_id = :key_id), 0) AS labels,
           (SELECT text FROM instructions AS it
            WHERE it.pool_id = pools.pool_id AND it.session_id = sessions.session_id
            ORDER BY at DESC, instructions_id DESC LIMIT 1) AS own,
           (SELECT text FROM instructions AS it
            WHERE it.pool_id = pools.pool_id AND it.session_id IS NULL
            ORDER BY at DESC, instructions_id DESC LIMIT 1) AS shared
    FROM sessions JOIN pools USING (pool_id)
    WHERE session_id = :session_id AND sessions.project_id = :project_id
    """
)
# Of many sessions each part reads the newest that fit, by an index.
# All that may be drawn is out where nothing is left of the budget or of the pool: then a key has
# work that holds a draw, or may take one over whose holder let it go.
_TASKS = text(
    """
    WITH found AS (
        (SELECT session_id FROM sessions s
         WHERE project_id = :project_id AND state = 'active' AND archived_at IS NULL
           AND NOT plan ? 'success' AND (NOT plan ? 'panel' OR plan->'panel' ? :key_name)
         ORDER BY session_id DESC LIMIT :most)
        UNION
        (SELECT session_id FROM sessions s
         WHERE project_id = :project_id AND lifecycle <> 'closed' AND archived_at IS NULL
         ORDER BY session_id DESC LIMIT :most)
        UNION
        (SELECT session_id FROM labellers WHERE key_id = :key_id AND labels > 0
         ORDER BY session_id DESC LIMIT :most)
    )
    SELECT s.session_id, s.state, s.archived_at IS NOT NULL AS archived,
           coalesce(s.name, p.name) AS name, p.systems, coalesce(l.labels, 0) AS labels,
           coalesce((SELECT text FROM instructions AS it
                     WHERE it.pool_id = p.pool_id AND it.session_id = s.session_id
                     ORDER BY at DESC, instructions_id DESC LIMIT 1),
                    (SELECT text FROM instructions AS it
                     WHERE it.pool_id = p.pool_id AND it.session_id IS NULL
                     ORDER BY at DESC, instructions_id DESC LIMIT 1)) AS brief,
           s.state = 'active' AND s.archived_at IS NULL AND (
               s.plan ? 'panel'
               OR s.drawn < CASE WHEN s.plan ? 'repeats' THEN s.budget ELSE least(
                   s.budget, (s.status->>'items')::int - (s.status->>'known')::int
               ) END
               OR EXISTS (
                   SELECT FROM leases o WHERE o.session_id = s.session_id
                   AND (greatest(o.expires_at, CAST(o.beside->>2 AS timestamptz)) <= now()
                        OR :key_id IN (o.keys->>-1, o.beside->>0))
               )
           ) AS work
    FROM found JOIN sessions s USING (session_id) JOIN pools p USING (pool_id)
    LEFT JOIN labellers l ON l.session_id = s.session_id AND l.key_id = :key_id
    WHERE s.project_id = :project_id
      AND (s.lifecycle <> 'closed' AND s.archived_at IS NULL OR l.labels > 0)
      AND NOT s.plan ? 'success' AND (NOT s.plan ? 'panel' OR s.plan->'panel' ? :key_name)
    ORDER BY work DESC, s.session_id DESC LIMIT :most
    """
)
