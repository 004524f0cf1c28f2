"""A file that becomes a sealed pool, in one request; or, as a dry run, is looked at only."""

import re
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePath
from typing import Annotated, Any, Literal, TypeVar

import orjson
from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from celeus import errors
from celeus.api.access.parameters import NAME, Manages, form_of
from celeus.api.insights.planning import PlanningAnswer, PlanningRequest
from celeus.api.pools.forms import FORM, FormFile, received
from celeus.api.pools.losses import (
    NORMALISATION,
    BasedOnIn,
    KindIn,
    LevelIn,
    LevelsIn,
    LineupIn,
    LossIn,
    MetricIn,
    MetricsIn,
    ScoreIn,
    SystemName,
    SystemsIn,
    check_alone,
    levels_of,
    metrics_of,
    scale_of,
)
from celeus.api.pools.pool_models import FILE_BODY
from celeus.api.pools.pools import PoolOut
from celeus.api.pools.sheets import (
    Limits,
    Look,
    Reading,
    Rows,
    holds_items,
    mapping_of,
    sheet_rows,
)
from celeus.api.pools.upload_rows import read_rows
from celeus.api.sessions.opening_models import Markdown
from celeus.api.wire.idempotency import Attempt, StreamedAttempt
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import ColumnOut, ProblemError, responses
from celeus.api.wire.uploads import format_of_any, media_of, unless_gone
from celeus.core.plans.claim import check_sample
from celeus.core.pools.loss_bounds import LabelsSeen
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.rows.validation import MalformedRow
from celeus.core.pools.score import LONGEST_NAME, Better
from celeus.core.pools.systems import MOST, AnySystems, Normalisation, Systems
from celeus.intake.table.answers import NAMES
from celeus.intake.table.roles import ROLES
from celeus.operations.insights import planning
from celeus.operations.pools import pools
from celeus.operations.pools.earlier import BasedOn
from celeus.operations.pools.imports import (
    ImportOptions,
    ImportResult,
    remember_mapping,
    remembered_mappings,
)
from celeus.operations.pools.pools import NewPool
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.idempotency import IdempotentRequest
from celeus.shorten import printable, shortened
from celeus.strict_json import json_of

T = TypeVar("T")
CELL_CHARACTERS = 200
FIRST_BYTES = 1 << 20
_METRICS: TypeAdapter[dict[str, MetricIn]] = TypeAdapter(MetricsIn)
_LEVELS: TypeAdapter[list[LevelIn]] = TypeAdapter(LevelsIn)
_PLANNING = TypeAdapter(PlanningRequest)
MOST_SPREAD = 8
_LONGEST = 1_000
_MOST_ANSWERS = 50
_LISTS = ("better", "scale", "missing")
"""Members of the query that may stand several times."""

router = APIRouter(prefix="/v1/pool-files", tags=["pools"], route_class=JsonRoute)


class RowOut(BaseModel):
    """A row as it was read: every field as text, cut to what fits a table."""

    line: int = Field(description="Line or row of the file, from 1.")
    cells: dict[str, str] = Field(
        description="Text of every field by its name, at most 200 characters."
    )


class FirstItem(BaseModel):
    """A row as the item that it is, with all that is uploaded of it."""

    line: int = Field(description="Where it begins in the file, from 1.")
    item: dict[str, Any] = Field(description="What `POST /v1/pools/{pool_id}/items` would take.")


@dataclass(slots=True)
class FileHead:
    """The first rows of a file, noted on their way; of items no more than fits an answer."""

    most: int
    rows: list[RowOut] = field(default_factory=list)
    items: list[FirstItem] = field(default_factory=list)
    _bytes: int = 0

    def note(self, line: int, row: object) -> None:
        """Take a row, unless there are enough."""
        if len(self.rows) >= self.most:
            return
        self.rows.append(RowOut(line=line, cells=_cells(row)))
        if isinstance(row, dict) and self._bytes < FIRST_BYTES:
            try:
                self._bytes += len(orjson.dumps(row))
            except TypeError:
                # A number JSON has not; the row is among the bad ones
                return
            self.items.append(FirstItem(line=line, item=row))


class PoolFileOut(BaseModel):
    """The pool made of the file, or with `dry_run` a check of the file."""

    pool: PoolOut = Field(
        description="The pool; of a dry run what it would be, under an id that no pool has."
    )
    items: int = Field(description="Rows that are items.")
    skipped: int = Field(description="Bad rows; the faults of the first are in `errors`.")
    errors: list[ProblemError] = Field(description="Faults of bad rows by line, the first 100.")
    columns: list[ColumnOut] = Field(
        description="Every column of the file with its role and the reason. Empty where its rows"
        " are items."
    )
    answers: dict[str, Any] = Field(
        description="What was answered about the file, by the names of the members of the request."
    )
    rows: int = Field(description="Rows of the file, also those that were not asked for.")
    numeric: list[str] = Field(description="Names of the numeric columns of the pool.")
    classes: int | None = Field(
        description="Number of classes, where rows have probabilities; else null."
    )
    preview: list[RowOut] = Field(
        description="The first rows as they were read, as many as `preview` asks for."
    )
    first: list[FirstItem] = Field(description="As many items as `preview` asks for.")
    format: str | None = Field(
        description="What the file turned out to be: csv, json, jsonl, workbook, parquet, arrow, or"
        " the tool that wrote it. Null where its rows are items of its announced type."
    )
    read_as: list[str] = Field(description="How it was read: its separator, its encoding.")
    mapping: dict[str, str] = Field(
        description="The roles of `columns`, as they can be sent as `mapping`."
    )
    mapping_source: Literal["items", "given", "remembered", "guessed", "log"] = Field(
        description="Where the mapping is from. `items`: there is none, the rows are items;"
        " `remembered`: the last pool of this project made of these columns had it."
    )
    examples: dict[str, list[str]] = Field(description="A few values of every column.")
    dry_run: bool = Field(description="Whether the file was only looked at.")
    plan: PlanningAnswer | None = Field(
        None, description="The plan that `planning` asks for, of the pool that a dry run shows."
    )


class PoolFileQuery(BaseModel):
    """The pool to make of the file."""

    name: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        pattern=NAME,
        description="Name of the pool; may be left out of a form, whose file has one.",
    )
    kind: KindIn | None = Field(
        None, description="Kind of loss, of one system where two are compared."
    )
    metrics: str | None = Field(
        None,
        max_length=4_000,
        description="In place of `kind` the metrics, as the JSON of `metrics` of `POST /v1/pools`.",
    )
    lower: float | None = Field(None, allow_inf_nan=False, description="For bounded losses.")
    upper: float | None = Field(
        None,
        allow_inf_nan=False,
        description="For cross_entropy, which is clipped there, and bounded losses; of a preference"
        " the number of grades.",
    )
    levels: str | None = Field(
        None,
        max_length=20_000,
        description="Named grades, as the JSON of `levels` of `POST /v1/pools`.",
    )
    instructions: Markdown | None = Field(
        None,
        description="What judges are told, as Markdown. A long one goes into a form, or into"
        " `PATCH /v1/pools/{id}`.",
    )
    score_name: str | None = Field(
        None,
        min_length=1,
        max_length=LONGEST_NAME,
        description="What the mean loss is called, such as accuracy; with `score_better`.",
    )
    score_better: Better | None = Field(None, description="Which score is better.")
    system_a: SystemName | None = Field(None, description="Name of the first of two systems.")
    system_b: SystemName | None = Field(None, description="Name of the second.")
    system: list[SystemName] = Field(
        [], max_length=10 * MOST, description="Names of several systems, one after the other."
    )
    normalisation: Normalisation | None = Field(None, description=NORMALISATION)
    based_on: str | None = Field(
        None,
        description="A closed session that judged an earlier version's answers to the same items;"
        " `labels_seen` goes with it.",
        json_schema_extra=form_of("ses"),
    )
    labels_seen: LabelsSeen | None = Field(
        None, description="As in `based_on` of `POST /v1/pools`."
    )
    earlier_answer: Annotated[str, Field(min_length=1, max_length=200, pattern=NAME)] | None = (
        Field(None, description="The payload's member that holds an answer: `based_on.answer`.")
    )
    earlier_system: SystemName | None = Field(
        None, description="Which of two systems is the earlier version: `based_on.system`."
    )
    mapping: str | None = Field(
        None,
        description="What the columns of the file mean, as JSON: roles by columns, such as"
        ' `{"Frage": "question", "Nr": "id"}`. Roles: '
        + ", ".join(f"`{role}`" for role in ROLES)
        + ". `surrogate` is a guess of the loss, `score` one of a score; `known` is a verdict that"
        " somebody has given already: the item is never drawn. `payload` is shown under the name of"
        " the column. Columns left out are hidden. A long one goes into a form. Without it the"
        " roles follow from names and values, and stand in the answer; rows that are items already"
        " have none.",
    )
    metric: str | None = Field(
        None, max_length=200, description="Which metric of a log, where it has several."
    )
    filter: str | None = Field(
        None, max_length=200, description="Which filter of a log of lm-eval."
    )
    answer: str | None = Field(
        None, max_length=_LONGEST, description="Which column is judged, where none is known to be."
    )
    better: list[Annotated[str, Field(max_length=_LONGEST)]] = Field(
        [],
        max_length=_MOST_ANSWERS,
        description="Which way scores or earlier verdicts are better, `higher` or `lower`; for one"
        " column `COLUMN=higher`.",
    )
    scale: list[Annotated[str, Field(max_length=_LONGEST)]] = Field(
        [],
        max_length=_MOST_ANSWERS,
        description="The least and the greatest value of the scores, such as `1 to 5`, where the"
        " pool has another scale; for one column `COLUMN=1 to 5`.",
    )
    missing: list[Annotated[str, Field(max_length=_LONGEST)]] = Field(
        [],
        max_length=_MOST_ANSWERS,
        description="Values that stand for no score, such as -1 or `COLUMN=-1`; `COLUMN=any`:"
        " whatever a column of errors says; `none`: no number does. Empty, null and NaN always do.",
    )
    repeats: str | None = Field(
        None,
        max_length=_LONGEST,
        description="What rows of one id are: `items` of their own, `runs` of a system, as many of"
        " each, for a session of target `runs`, one item by the `first` of them or with the `mean`"
        " of their scores; or the only rows that are read, `COLUMN=VALUE`.",
    )
    rows: str | None = Field(
        None,
        max_length=_LONGEST,
        description="The table, member or kind of rows of a file that has several; and behind a"
        " colon, or alone, which rows are items where some have no id: `with_id` or `all`.",
    )
    on_error: Literal["fail", "skip"] = Field("fail", description="`skip` keeps the good rows.")
    preview: int = Field(0, ge=0, le=50, description="Rows to be shown.")
    dry_run: bool = Field(False, description="Keep nothing, and tell bad rows without refusing.")
    planning: str | None = Field(
        None,
        max_length=4_000,
        description="Of a dry run: plan a session on the pool that the file would be. The JSON of"
        " what `POST /v1/pools/{pool_id}/planning` takes, with the same numbers.",
    )

    @property
    def planned(self) -> PlanningRequest | None:
        """The plan to make; refused where the pool is made, which is planned for by its id."""
        if self.planning is None:
            return None
        if not self.dry_run:
            raise errors.InvalidValue(
                "A pool that is made has a plan of its own, by its id.",
                field="planning",
                rule="left out, or beside `dry_run`",
                value=self.planning,
            )
        return _read("planning", _PLANNING, self.planning)

    @property
    def losses(self) -> tuple[LossScale, AnySystems | None, tuple[Metric, ...]]:
        """The scale of the loss and the systems, or the metrics and the scale of their first."""
        check_alone(
            self.metrics,
            loss=self.kind,
            score=self.score,
            systems=self.systems,
            based_on=self.based_on,
        )
        if self.metrics is None and self.kind is not None:
            loss = LossIn(kind=self.kind, lower=self.lower, upper=self.upper)
            return *scale_of(loss, self.systems), ()
        metrics = metrics_of(_read("metrics", _METRICS, self.metrics))
        return metrics[0].scale, None, metrics

    @property
    def score(self) -> ScoreIn | None:
        """Name and direction of the score; refused where only one is given."""
        if self.score_name is None and self.score_better is None:
            return None
        if self.score_name is None or self.score_better is None:
            missing = "score_name" if self.score_name is None else "score_better"
            raise errors.InvalidValue(
                "A score has a name and a direction.",
                field=missing,
                rule="given with " + ("score_better" if self.score_name is None else "score_name"),
            )
        return ScoreIn(name=self.score_name, better=self.score_better)

    @property
    def systems(self) -> SystemsIn | LineupIn | None:
        """The two systems, or the several; refused where only one has a name."""
        two = {"system_a": self.system_a, "system_b": self.system_b}
        given = [name for name in two if two[name] is not None]
        if self.system:
            if given:
                raise errors.InvalidValue(
                    "A pool compares two systems, or holds several.",
                    field=given[0],
                    rule="left out beside `system`",
                    value=two[given[0]],
                )
            return LineupIn(names=self.system, normalisation=self.normalisation)
        if self.system_a is None and self.system_b is None and self.normalisation is None:
            return None
        if self.system_a is None or self.system_b is None:
            missing = "system_a" if self.system_a is None else "system_b"
            raise errors.InvalidValue(
                "A comparison is of two systems.", field=missing, rule="the name of a system"
            )
        return SystemsIn(a=self.system_a, b=self.system_b, normalisation=self.normalisation)

    @property
    def basis(self) -> BasedOn | None:
        """The session of an earlier version; refused where only a part of it is given."""
        parts = {
            "labels_seen": self.labels_seen,
            "earlier_answer": self.earlier_answer,
            "earlier_system": self.earlier_system,
        }
        if self.based_on is None:
            for name, value in parts.items():
                if value is not None:
                    raise errors.InvalidValue(
                        "There is no session of an earlier version.",
                        field=name,
                        rule="left out, or beside `based_on`",
                        value=value,
                    )
            return None
        if self.labels_seen is None:
            raise errors.InvalidValue(
                "Whether the makers of the new version saw labels of this pool has to be said.",
                field="labels_seen",
                rule="yes, no or unknown, beside `based_on`",
                value=None,
            )
        return BasedOnIn(
            session=self.based_on,
            labels_seen=self.labels_seen,
            answer=self.earlier_answer,
            system=self.earlier_system,
        ).request


@router.post(
    "",
    operation_id="create_pool_from_file",
    summary="Make a sealed pool of a file, or only look at it",
    status_code=201,
    response_model=PoolFileOut,
    openapi_extra=FILE_BODY,
    responses=responses(
        errors.InvalidValue,
        errors.NeedsAnswer,
        errors.BadRows,
        errors.IdempotencyKeyReused,
        errors.PoolNotFound,
        errors.SessionNotFound,
        errors.SessionNotClosed,
        errors.EmptyPool,
        errors.Busy,
        errors.PoolTooLarge,
        errors.ProcessEnded,
    )
    | {200: {"model": PoolFileOut, "description": "What a dry run found."}},
)
async def create_pool_from_file(
    context: Manages,
    request: Request,
    attempt: StreamedAttempt,
    params: Annotated[PoolFileQuery, Query()],
) -> Response:
    """All or nothing: the pool is there with its items and sealed, or it is not.

    A dry run reads and checks the same, tells bad rows by line, and answers 200; with `planning` it
    also plans a session. The file may be any table, or a log of an evaluation; in a form
    (`-F file=@…`) the members of the query may be members of the form. Where the file does not say
    what a number means or what judges are to see, all of it is asked at once (`needs_answer`).
    """
    form = format_of_any(request)
    if media_of(request) != FORM:
        # Before the file comes in
        _wanted(params, "")
    async with received(request, attempt.hashed) as upload:
        params = _with_members(request, params, upload)
        return await answer_to_upload(context, request, attempt, replace(upload, form=form), params)


async def answer_to_upload(
    context: Context,
    request: Request,
    attempt: Attempt,
    upload: FormFile,
    params: PoolFileQuery,
) -> Response:
    """Return a `PoolFileOut` as JSON: the pool made of a received file, or of a dry run its check.

    The page of a new session answers what this says of a file.
    """
    dry_run, planned = params.dry_run, params.planned
    wanted = _wanted(params, upload.name)
    seen, look = FileHead(params.preview), Look()
    options = ImportOptions(
        skip_bad_rows=dry_run or params.on_error == "skip",
        dry_run=dry_run,
        numbers=planned is not None,
        intake=lambda done: _intake(look, done),
    )

    def encode(done: ImportResult, plan: dict[str, Any] | None = None) -> bytes:
        answer = PoolFileOut(
            pool=PoolOut.model_validate(done.pool),
            items=done.added,
            skipped=done.skipped,
            errors=[ProblemError.model_validate(fault) for fault in done.faults],
            numeric=list(done.pool.columns),
            classes=done.pool.classes,
            preview=seen.rows,
            first=seen.items,
            dry_run=dry_run,
            plan=None if plan is None else PlanningAnswer.model_validate(plan),
            **asdict(look) | {"rows": _rows_read(look, done)},
        )
        return answer.model_dump_json().encode()

    async def read(once: IdempotentRequest[ImportResult] | None) -> ImportResult:
        async with _rows(context, upload, params, wanted, look) as (rows, elsewhere):
            batches, how = _seen(rows, seen), replace(options, elsewhere=elsewhere)
            return await pools.pool_of_file(context, wanted, batches, how, once)

    async def looked_at() -> bytes:
        done = await read(None)
        if planned is None or done.numbers is None:
            return encode(done)
        runs = look.answers.get("repeats") == "runs"
        check_sample(planned.request.claim.target, runs=runs)
        found = await planning.plan_session(context, done.numbers, planned.request)
        return encode(done, planned.answered(done.pool.pool_id, found))

    if dry_run:
        # Nobody reads what it would find; a pool is asked for again by its key
        found = await unless_gone(request, looked_at())
        return Response(found, media_type="application/json")
    answer = await attempt.answer(201, encode, read, lambda body: f"/v1/pools/{body['pool']['id']}")
    if look.mapping:
        await remember_mapping(context, look.mapping)
    return answer


def _rows_read(look: Look, done: ImportResult) -> int:
    return max(look.rows, done.added + done.skipped)


def _intake(look: Look, done: ImportResult) -> dict[str, Any]:
    """The record of how the file was read."""
    members = ("format", "read_as", "columns", "answers")
    return {name: getattr(look, name) for name in members} | {
        "rows": _rows_read(look, done),
        "items": done.added,
        "skipped": done.skipped,
    }


def _read(name: str, form: TypeAdapter[T], given: str | None) -> T:
    """A member of the query that is JSON; refuses another form, and a repeated name."""
    try:
        found = form.validate_json(given or "")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise errors.InvalidValue(
            f"The {name} cannot be read.",
            field=".".join((name, *map(str, first["loc"]))),
            rule=first["msg"],
        ) from error
    json_of(given or "", name)
    return found


def _with_members(request: Request, params: PoolFileQuery, upload: FormFile) -> PoolFileQuery:
    """The query, and the members of the form under the same names."""
    if not upload.members:
        return params
    unknown = next(
        (member for member in upload.members if member not in PoolFileQuery.model_fields), None
    )
    if unknown is not None:
        raise errors.InvalidValue(
            "The form has a member that is none of the query.",
            field=unknown,
            rule="left out, or one of " + ", ".join(PoolFileQuery.model_fields),
        )
    given: dict[str, Any] = {}
    for name in PoolFileQuery.model_fields:
        values = [*request.query_params.getlist(name), *upload.members.get(name, [])]
        if values:
            given[name] = values if name in {"system", *_LISTS} else values[-1]
    try:
        return PoolFileQuery.model_validate(given)
    except ValidationError as error:
        faults = [{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors()]
        raise RequestValidationError(faults) from error


def _wanted(params: PoolFileQuery, file_name: str) -> NewPool:
    """The pool to make; refuses one without a name."""
    name = params.name or PurePath(file_name.removesuffix(".gz")).stem[:200]
    if re.fullmatch(NAME, name) is None or not name:
        raise errors.InvalidValue(
            "The pool needs a name.", field="name", rule="a name of 1 to 200 characters"
        )
    scale, systems, metrics = params.losses
    return NewPool(
        name,
        scale,
        sealed=True,
        named=systems,
        based_on=params.basis,
        score=None if params.score is None else params.score.of(scale, systems),
        metrics=metrics,
        levels=() if params.levels is None else levels_of(_read("levels", _LEVELS, params.levels)),
        instructions=params.instructions,
    )


@asynccontextmanager
async def _rows(
    context: Context,
    upload: FormFile,
    params: PoolFileQuery,
    wanted: NewPool,
    look: Look,
) -> AsyncIterator[tuple[Generator[Rows, None, None], bool]]:
    """The rows of the file: of items as they stand, else by what its columns mean, elsewhere."""
    form = upload.form
    limits = Limits(bytes=context.settings.upload_limit_bytes, rows=context.settings.max_items)
    mapping = mapping_of(params.mapping)
    plain = form is not None and form != "parquet" and mapping is None
    if plain and form is not None and await to_thread.run_sync(holds_items, upload.file, form):
        with closing(read_rows(upload.file, form, limits)) as rows:
            yield rows, False
        return
    two = wanted.named if isinstance(wanted.named, Systems) else None
    reading = Reading(
        name=upload.name,
        csv=form == "csv",
        lower=wanted.scale.lower,
        upper=wanted.scale.upper,
        two=two is not None,
        preferred=two is not None and (two.loss.kind, two.loss.upper) == ("preference", 1.0),
        mapping=mapping,
        remembered=[] if mapping is not None else await remembered_mappings(context),
        answers=params.model_dump(include={*NAMES}),
    )
    async with context.process(of_file=True):
        with closing(sheet_rows(upload.file, reading, limits, look)) as rows:
            yield rows, True


def _seen(batches: Generator[Rows, None, None], seen: FileHead) -> Generator[Rows, None, None]:
    """The batches as they are; the first rows of them are noted on their way."""
    for lines, rows in batches:
        for line, row in zip(lines, rows, strict=True):
            if len(seen.rows) >= seen.most:
                break
            seen.note(line, row)
        yield lines, rows


def _cells(row: object) -> dict[str, str]:
    """Return the fields of a row as text, or what stands where it could not be read."""
    if isinstance(row, dict):
        return {_cell(name): _cell(inner) for name, inner in _spread(row)}
    return {"": _cell(row.text if isinstance(row, MalformedRow) else row)}


def _spread(row: dict[str, Any]) -> Iterator[tuple[str, object]]:
    """The members of a row; a payload of a few members spread over as many."""
    for name, inner in row.items():
        if name == "payload" and isinstance(inner, dict) and 0 < len(inner) <= MOST_SPREAD:
            for part, value in inner.items():
                yield f"payload.{part}", value
        else:
            yield name, inner


def _cell(value: object) -> str:
    if isinstance(value, str):
        return printable(value[:CELL_CHARACTERS])
    return "" if value is None else shortened(value)
