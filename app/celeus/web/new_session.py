"""The page of a new session: the pools to choose from, the one that is chosen, and a file."""

from dataclasses import replace
from hashlib import sha256
from typing import Annotated, Final, NamedTuple
from urllib.parse import parse_qs
from uuid import UUID

from anyio import to_thread
from fastapi import Query, Request, Response

from celeus.api.access.parameters import pool_id_of
from celeus.api.insights.planning import PlanningAnswer, plan_session
from celeus.api.pools.files import PoolFileOut, PoolFileQuery, answer_to_upload
from celeus.api.pools.forms import FormFile, received
from celeus.api.pools.pools import PoolOut
from celeus.api.sessions.sessions import open_session
from celeus.api.wire.idempotency import Attempt, StreamedAttempt
from celeus.api.wire.records import parsed
from celeus.core.insights.figures import count
from celeus.core.pools.systems import Lineup
from celeus.errors import InvalidValue, PoolNotFound, Refusal
from celeus.operations.pools.pools import archive_pool, delete_pool, get_pool, list_pools
from celeus.operations.pools.record import PoolRecord
from celeus.operations.sessions.labelling.instructions import pool_instructions
from celeus.web.claim_form import GUESSES, ClaimForm
from celeus.web.file_read import ROLES, STATE_BYTES, FileForm
from celeus.web.forms import MOST_FIELDS, Form
from celeus.web.pages import ManagesPage, Once, View, page_router
from celeus.web.planner import KeptPlan, Planner
from celeus.web.views import ITEMS
from celeus.web.wording import counted

AT_ONCE: Final = 200
MOST_SHOWN: Final = 100
MOST_READ: Final = 10_000
"""Largest number of pools that are searched."""
_KINDS: Final = {
    "zero_one": "right or wrong",
    "cross_entropy": "cross-entropy",
    "bounded": "grades",
    "difference": "difference of two systems",
    "preference": "which answer is better",
}
_PLAIN: Final = ("zero_one", "preference")

router = page_router()


class PoolList(NamedTuple):
    """The pools whose names contain what was searched, of ``known`` ones; ``more`` may follow."""

    pools: list[PoolRecord]
    known: int
    more: bool

    @property
    def summary(self) -> str:
        """The number of pools shown, and of all pools."""
        if not self.known:
            return "There is no pool yet. Upload a file instead."
        if not self.pools:
            return "No pool name contains this."
        some = f" of {'more than ' if self.more else ''}{self.known}"
        whole = len(self.pools) == self.known and not self.more
        return f"{counted(len(self.pools), 'pool')}{'' if whole else some}, newest first."


class Wanted(NamedTuple):
    """Parameters in the address of the page: the chosen pool, and the pools listed."""

    pool: str | None
    search: str
    limit: int
    archived: bool


_NONE_LISTED: Final = Wanted(None, "", 0, archived=False)


@router.get("/sessions/new")
async def new_session(
    view: ManagesPage,
    pool: str | None = None,
    q: str = "",
    limit: Annotated[int, Query(ge=1, le=MOST_READ)] = AT_ONCE,
    *,
    archived: bool = False,
) -> Response:
    """Show the form that opens a session: a pool or a file, a claim, and the planner.

    ``q`` is part of the names of the pools to choose from, of the ``limit`` newest.
    """
    wanted = Wanted(pool, q, limit, archived)
    return await _page(view, wanted=wanted)


@router.post("/sessions/new/file")
async def read_file(view: ManagesPage, request: Request, attempt: StreamedAttempt) -> Response:
    """Show what the file in a form is read as, and what can be asked of the pool that it would be.

    Beside the file the form has ``fields``, those of the page as in an address, and the ``state``
    that the page was given. ``part``: the file goes on; ``make``: the pool is made, unless a field
    was changed since it was looked at.
    """
    async with received(request, attempt.hashed, STATE_BYTES) as upload:
        form = await to_thread.run_sync(_changed_form, upload)
        if not form.must_choose:
            # What follows from a change is shown before it is sealed
            makes = bool(upload.members.get("make")) and not form.changed
            await _look(view, form, attempt, upload, makes=makes)
    return await _page(view, wanted=_NONE_LISTED, file=form)


def _changed_form(upload: FormFile) -> FileForm:
    """Return the form that came with a file, with what follows from its changes."""
    form = _file_form(upload)
    form.whole = not upload.members.get("part")
    form.take_changes(upload.file)
    return form


def _file_form(upload: FormFile) -> FileForm:
    sent = Form(upload.members)
    try:
        fields = parse_qs(sent.get("fields"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
        return FileForm(fields, sent.get("state"), upload.name)
    except ValueError as error:
        raise InvalidValue("The form cannot be read.", field="state") from error


async def _look(
    view: View, form: FileForm, attempt: Attempt, upload: FormFile, *, makes: bool
) -> None:
    """Ask the interface for a pool of the file, or for what it would be."""
    try:
        while form.found is None:
            params = form.making if makes else form.looking
            found = await _found(view, form, attempt, upload, params)
            if form.state.supposed and not found.items:
                # What looked like two systems is none
                form.state.supposed = False
                form.about("one")
            else:
                form.show(found)
    except Refusal as fault:
        form.refuse(fault)


async def _found(
    view: View, form: FileForm, attempt: Attempt, upload: FormFile, params: PoolFileQuery
) -> PoolFileOut:
    """Return what the interface answers to a file."""
    upload.file.seek(0)
    file = replace(upload, form=form.form)
    answer = await answer_to_upload(view.context, view.request, attempt, file, params)
    return PoolFileOut.model_validate_json(bytes(answer.body))


@router.post("/sessions/new/plan")
async def plan(view: ManagesPage, request: Request, attempt: StreamedAttempt) -> Response:
    """Show the plan that a form holds for what stands in its fields, or with ``simulate`` another.

    With a file it is that of the pool which this would be; `read_file` takes the same form.
    """
    fields = view.form.fields
    if fields and "simulate" not in fields:
        claim = ClaimForm(None, fields)
        return _parts(view, claim, KeptPlan.sent(claim["plan"]))
    if fields:
        return await _plan_of_pool(view, request)
    async with received(request, attempt.hashed, STATE_BYTES) as upload:
        form = _file_form(upload)
        looking, fault = form.looking, None
        try:
            asked = ClaimForm(None, form.fields).planning.model_dump_json(exclude_unset=True)
            planning = looking.model_copy(update={"planning": asked})
            found = await _found(view, form, attempt, upload, planning)
        except Refusal as refused:
            fault, found = refused, await _found(view, form, attempt, upload, looking)
    return _planned(view, ClaimForm(found.pool, form.fields, fault), found.plan)


async def _plan_of_pool(view: View, request: Request) -> Response:
    claim, plan = ClaimForm(await _pool(view), view.form.fields), None
    try:
        if claim.makes != "best":
            pool_id = pool_id_of(claim.id)
            answer = await plan_session(view.context, pool_id, claim.planning, request)
            plan = PlanningAnswer.model_validate(answer)
    except Refusal as fault:
        claim.fault = fault
    return _planned(view, claim, plan)


async def _pool(view: View) -> PoolOut:
    """Return the pool that a form has chosen."""
    pool_id = pool_id_of(view.form.get("pool_id"))
    return PoolOut.model_validate(await get_pool(view.context, pool_id))


def _planned(view: View, claim: ClaimForm, plan: PlanningAnswer | None) -> Response:
    return _parts(view, claim, None if plan is None else KeptPlan.of(claim, plan))


def _parts(view: View, claim: ClaimForm, kept: KeptPlan | None) -> Response:
    """Show the parts of the page that depend on the claim."""
    planner = Planner(claim, kept, refused=claim.fault is not None)
    return view.page("asked.html", fault=claim.fault, claim=claim, planner=planner)


@router.post("/sessions/new")
async def act(
    view: ManagesPage,
    q: str = "",
    limit: Annotated[int, Query(ge=1, le=MOST_READ)] = AT_ONCE,
    *,
    archived: bool = False,
) -> Response:
    """Open the session; archive, restore or delete a pool of the list."""
    return await view.act(
        _ACTS, _page, wanted=Wanted(view.form.get("pool_id") or None, q, limit, archived)
    )


async def _archive(view: View, **_: object) -> str:
    await archive_pool(view.context, pool_id_of(view.form.get("id")), archived=True)
    return _LISTED


async def _restore(view: View, **_: object) -> str:
    await archive_pool(view.context, pool_id_of(view.form.get("id")), archived=False)
    return _LISTED


async def _delete(view: View, **_: object) -> str:
    view.caller.require("admin")
    await delete_pool(view.context, pool_id_of(view.form.get("id")))
    return _LISTED


async def _open(view: View, **_: object) -> str:
    claim = ClaimForm(await _pool(view), view.form.fields)
    planner = Planner(claim, KeptPlan.sent(claim["plan"]))
    opening = claim.opening(planner.labels)
    # The same form opens one session, however often it is sent
    sent = sha256(claim["once"].encode() + opening.model_dump_json().encode())
    answer = await open_session(view.context, opening, Attempt(f"form {sent.hexdigest()}"))
    return answer.headers["Location"].removeprefix("/v1")


_ACTS: Final = {"open": _open, "archive": _archive, "restore": _restore, "delete": _delete}
_LISTED: Final = "#pool-list"


async def _page(
    view: View,
    *,
    wanted: Wanted,
    file: FileForm | None = None,
    made: Once | None = None,
    fault: Refusal | None = None,
) -> Response:
    del made
    pool, search, limit, archived = wanted
    chosen = None if pool is None else await _chosen(view, parsed("pool", pool))
    considered = file.found.pool if file and file.found else None
    version = None
    if chosen is not None:
        considered = PoolOut.model_validate(chosen)
        version = (await pool_instructions(view.context, chosen.pool_id)).now
    opens = view.form.get("act") == "open"
    claim = ClaimForm(considered, view.form.fields if opens else None, fault if opens else None)
    return view.page(
        "newsession.html",
        fault=fault,
        policy=ITEMS,
        upload_limit_bytes=view.context.settings.upload_limit_bytes,
        pool=chosen,
        claim=claim,
        planner=Planner(claim, KeptPlan.sent(claim["plan"])),
        file=file or FileForm(),
        roles=ROLES,
        instructions=None if version is None else version.text,
        facts=facts_of,
        list=await _listed(view, search.strip().lower(), limit, archived=archived),
        limit=min(limit + AT_ONCE, MOST_READ),
        archived=archived,
    )


async def _chosen(view: View, pool_id: UUID | None) -> PoolRecord | None:
    if pool_id is None or "read" not in view.caller.scopes:
        return None
    try:
        pool = await get_pool(view.context, pool_id)
    except PoolNotFound:
        return None
    return pool if pool.sealed else None


async def _listed(view: View, wanted: str, limit: int, *, archived: bool) -> PoolList:
    found: list[PoolRecord] = []
    after: UUID | None = None
    while "read" in view.caller.scopes and len(found) < limit:
        pools, after = await list_pools(view.context, AT_ONCE, after, archived=archived)
        found += pools
        if after is None:
            break
    named = [
        pool
        for pool in found
        if wanted in pool.name.lower() or wanted == f"pool_{pool.pool_id.hex}"
    ]
    return PoolList(named[:MOST_SHOWN], len(found), after is not None)


def facts_of(pool: PoolRecord) -> str:
    """Return what is worth knowing of a pool, in a line."""
    items, scale = counted(pool.items, "item"), pool.scale
    known = [f"{count(pool.stated.known)} known beforehand"] if pool.stated.known else []
    end = "no surrogate"
    if not pool.sealed:
        end = "not sealed yet"
    elif any(name.startswith(GUESSES) for name in pool.columns):
        end = "with surrogate"
    if pool.metrics:
        names = ", ".join(metric.name for metric in pool.metrics)
        return " · ".join([items, f"{counted(len(pool.metrics), 'metric')}: {names}", end])
    if isinstance(pool.named, Lineup):
        systems = f"{len(pool.named.names)} systems, {_KINDS[scale.kind]}"
        return " · ".join([items, systems, *known])
    kind, lower, upper, systems = scale.kind, scale.lower, scale.upper, ""
    if pool.systems is not None:
        loss = pool.systems.loss
        kind, lower, upper = loss.kind, loss.lower, loss.upper  # type: ignore[assignment]
        systems = f"{pool.systems.a} against {pool.systems.b}, "
    ends = "" if kind in _PLAIN else f" from {lower:.15g} to {upper:.15g}"
    levels = sorted(pool.levels, key=lambda level: level.grade)
    named = " … ".join(f"{level.grade:.15g} {level.name}" for level in (levels[:1] + levels[-1:]))
    facts = [items, f"{systems}{_KINDS[kind]}{ends}", *known, *([named] if named else []), end]
    return " · ".join(facts)
