"""The pages of a session's judgements: the table, and a round with its history."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode
from uuid import UUID

import orjson
from fastapi import Query, Response
from pydantic import BaseModel, Field

from celeus.api.access.parameters import NO_NUL, SessionId
from celeus.api.pools.items import whole_item
from celeus.api.sessions.labels import MOST
from celeus.core.insights.figures import count
from celeus.errors import InvalidValue, Refusal
from celeus.operations.insights.table import Part, PartItem, part_items
from celeus.operations.runtime.context import Context
from celeus.operations.sessions.amendments import Correction, amend
from celeus.operations.sessions.labelling import labels
from celeus.operations.sessions.labelling.labels import LabelFilter, Labels
from celeus.operations.sessions.labelling.task import get_task
from celeus.operations.sessions.sessions import get_session
from celeus.web.judgements import JudgeWords, excerpt
from celeus.web.pages import ManagesPage, Once, ReadsPage, View, page_router
from celeus.web.views import ITEMS
from celeus.web.wording import sentence

router = page_router()

AT_ONCE = 100
ITEMS_AT_ONCE = 50
CROWD = 10
"""Items on one page share the room of so many fewer: most of them are short."""
MOST_OFFERED = 500
"""Largest number of values of a group column that the page offers; others are typed."""
_EVENTS = {
    "draw": "drawn for",
    "observation": "judged by",
    "unjudgeable": "judged by",
    "amendment": "corrected by",
    "rating": "judged by the rater",
}


class JudgedQuery(BaseModel):
    """The filter of the table, as its form sends it: what is empty sets no condition."""

    which: Literal["", "above", "differs", "commented", "amended", "unjudgeable"] = ""
    person: str = Field("", max_length=200, pattern=NO_NUL)
    column: str = Field("", max_length=200, pattern=NO_NUL)
    value: str = Field("", max_length=1_000, pattern=NO_NUL)
    order: Literal["oldest", "newest"] = "newest"
    after: int | None = Field(None, ge=0, le=MOST)

    @property
    def asked(self) -> dict[str, Any]:
        """The conditions by the names of the interface."""
        asked: dict[str, Any] = {"person": self.person or None, "value": self.value or None}
        if self.value:
            asked["column"] = self.column or None
        if self.which == "above":
            asked["above"] = 0.0
        elif self.which:
            asked[self.which] = True
        return {name: value for name, value in asked.items() if value is not None}

    def address(self, **changes: object) -> str:
        """Return the query of this page with these members changed."""
        given = self.model_dump() | changes
        return urlencode({name: value for name, value in given.items() if value not in {"", None}})


@router.get("/sessions/{session_id}/judged")
async def judged(
    view: ReadsPage, session_id: SessionId, params: Annotated[JudgedQuery, Query()]
) -> Response:
    """Show a page of the judgements, each in the words of its judge and with its correction."""
    return await _judged(view, session_id=session_id, params=params)


@router.post("/sessions/{session_id}/judged")
async def correct_in_table(
    view: ManagesPage, session_id: SessionId, params: Annotated[JudgedQuery, Query()]
) -> Response:
    """Correct a judgement in its row."""
    return await view.act(_ACTS, _judged, session_id=session_id, params=params)


async def _correct(view: View, session_id: UUID, round_: int | None = None, **_: object) -> str:
    if round_ is None:
        round_ = view.form.whole("id")
    words = JudgeWords(await get_task(view.context, session_id))
    body = words.correction(view.form, round_)
    correction = Correction(body.judgement(), body.author, body.reason, body.worker)
    await amend(view.context, session_id, correction)
    return f"#change-{body.round}"


_ACTS: Final = {"correct": _correct}


async def _judged(
    view: View,
    *,
    session_id: UUID,
    params: JudgedQuery,
    made: Once | None = None,
    fault: Refusal | None = None,
) -> Response:
    del made
    body, _ = await get_session(view.context, session_id)
    found = await labels.labels_of(view.context, session_id)
    wanted = LabelFilter(**params.asked, newest=params.order == "newest")
    try:
        found.check_filter(wanted)
        rows, following = await labels.label_page(
            view.context, found, wanted, AT_ONCE, params.after
        )
        problem = ""
    except InvalidValue as refusal:
        rows, following, problem = [], None, sentence(refusal.detail)
    words = JudgeWords(await get_task(view.context, session_id))
    items = await _items(view.context, found, rows)
    session = orjson.loads(body)
    file = params.asked | {"order": "oldest"}
    return view.page(
        "judged.html",
        fault=fault,
        session=session,
        params=params,
        groups={name: values[:MOST_OFFERED] for name, values in found.groups.items()},
        loss=found.pool.scale.kind,
        summary=problem or _summary(len(rows), more=following is not None),
        rows=[_row(words, row, items.get(row["index"])) for row in rows],
        following=following,
        file=urlencode(
            {name: str(value).lower() if value is True else value for name, value in file.items()}
        ),
        numbers=words.numbers,
        corrects=_corrects(view, session),
    )


@router.get("/sessions/{session_id}/judged/{round_}")
async def judgement(view: ReadsPage, session_id: SessionId, round_: int) -> Response:
    """Show a round: its item, its judgements, and a form to correct them."""
    return await _judgement(view, session_id=session_id, round_=round_)


@router.post("/sessions/{session_id}/judged/{round_}")
async def correct_judgement(view: ManagesPage, session_id: SessionId, round_: int) -> Response:
    """Correct the judgement of a round."""
    return await view.act(_ACTS, _judgement, session_id=session_id, round_=round_)


async def _judgement(
    view: View,
    *,
    session_id: UUID,
    round_: int,
    made: Once | None = None,
    fault: Refusal | None = None,
) -> Response:
    del made
    body, _ = await get_session(view.context, session_id)
    history = await labels.round_history(view.context, session_id, round_)
    words = JudgeWords(await get_task(view.context, session_id))
    item = orjson.loads(orjson.dumps(whole_item(history["item"])))
    session = orjson.loads(body)
    events = [_event(words, event, item["payload"]) for event in history["events"]]
    comments = [
        {
            "at": comment["at"],
            "kind": "comment by",
            "who": comment["rater"] or comment["person"] or comment["worker"],
            "words": f": “{comment['comment']}”",
        }
        for comment in history["comments"]
    ]
    names = session["systems"] or {"a": "A", "b": "B"}
    sides = ("b", "a") if history["left"] == "b" else ("a", "b")
    heads = [
        f"{place}: {names.get(side)}" for place, side in zip(("Left", "Right"), sides, strict=True)
    ]
    judged_once = len(history["events"]) > 1
    return view.page(
        "judgement.html",
        fault=fault,
        policy=ITEMS,
        session=session,
        round=round_,
        history=history,
        lines=sorted(events + comments, key=lambda line: line["at"]),
        item=item["id"],
        shown={"draws": [_drawn(item, history["left"])], "crowd": 1, "heads": heads},
        groups=", ".join((history["groups"] or {}).values()),
        choices=words.choices(item["payload"]),
        numbers=words.numbers,
        corrects=judged_once and _corrects(view, session),
    )


class ItemsQuery(BaseModel):
    """The items of a claim, as links and the page's form ask for them."""

    column: str | None = Field(None, max_length=200, pattern=NO_NUL)
    value: str | None = Field(None, max_length=1_000, pattern=NO_NUL)
    judged: Literal["", "true", "false"] = ""
    after: int | None = Field(None, ge=0, le=MOST)

    @property
    def part(self) -> Part:
        """The items that are asked for."""
        return Part(self.column, self.value, {"true": True, "false": False}.get(self.judged))

    def address(self, after: int | None) -> str:
        """Return the query of this page behind another item."""
        given = self.model_dump() | {"after": after}
        return urlencode({name: value for name, value in given.items() if value not in {"", None}})


@router.get("/sessions/{session_id}/items")
async def items(
    view: ReadsPage, session_id: SessionId, params: Annotated[ItemsQuery, Query()]
) -> Response:
    """Show items that a claim speaks of, each with what was judged of it."""
    body, _ = await get_session(view.context, session_id)
    found, following = await part_items(
        view.context, session_id, params.part, ITEMS_AT_ONCE, params.after
    )
    words = JudgeWords(await get_task(view.context, session_id))
    session = orjson.loads(body)
    metrics = [metric["metric"] for metric in session["table"]["metrics"]]
    shown = [_drawn(orjson.loads(orjson.dumps(whole_item(part.item)))) for part in found]
    return view.page(
        "items.html",
        policy=ITEMS,
        session=session,
        params=params,
        rows=[(part.item.id, _said_of(words, part, metrics)) for part in found],
        following=following,
        shown={"draws": shown, "crowd": CROWD, "heads": None},
    )


def _drawn(item: dict[str, Any], left: str | None = None) -> dict[str, Any]:
    """Return an item as it is drawn for a judge, with B's answer on the left where it was there."""
    sides = ("b", "a") if left == "b" else ("a", "b")
    answers = item.get("answers")
    return {
        "item": item,
        "left": item.get(sides[0]),
        "right": item.get(sides[1]),
        "answers": None if answers is None else list(answers.values()),
    }


def _said_of(words: JudgeWords, part: PartItem, metrics: list[str]) -> list[tuple[str, str]]:
    """Return what was judged of each metric; nothing of an item that was not."""
    if part.losses is None and len(part.known) < len(metrics):
        return []
    losses = part.losses or {}
    return [
        (
            name,
            "known"
            if losses.get(name) is None and name in part.known
            else words.part(name, losses.get(name)),
        )
        for name in metrics
    ]


async def _items(
    context: Context, found: Labels, rows: list[dict[str, Any]]
) -> dict[int, dict[str, Any]]:
    """Return the items of the rows by their index: as many as one read holds."""
    async for items in labels.payloads(context, found, rows):
        return {
            item.index: {
                "payload": None if item.payload is None else json.loads(item.payload),
                "sides": item.sides or {},
            }
            for item in items
        }
    return {}


def _row(
    words: JudgeWords, row: Mapping[str, Any], item: Mapping[str, Any] | None
) -> dict[str, Any]:
    payload = None if item is None else item["payload"]
    judged = words.of(row, payload)
    person, worker = row["person"], row["worker"]
    return {
        "round": row["round"],
        "item": row["item"],
        "excerpt": "" if item is None else excerpt(item),
        "judged": judged,
        "person": "the panel" if row["kind"] == "outcome" and person is None else person or "",
        # The worker, where that is another word
        "worker": worker if person and worker and not worker.startswith(person) else "",
        "at": row["judged_at"],
        "remarks": _remarks(row),
        "outside": not row["in_interval"],
        "choices": [choice for choice in words.choices(payload) if choice.words != judged],
    }


def _remarks(row: Mapping[str, Any]) -> list[str]:
    times = row["corrections"]
    parts = [
        ", ".join((row["groups"] or {}).values()),
        f"corrected {count(times)} time{'s' * (times != 1)}" if times else "",
        "" if row["comment"] is None else f"“{row['comment']}”",
    ]
    return [part for part in parts if part]


def _event(words: JudgeWords, event: Mapping[str, Any], payload: object) -> dict[str, str]:
    amended = event["kind"] == "amendment"
    who = (event["author"] if amended else None) or event["person"]
    judged = "" if event["kind"] == "draw" else f": {words.of(event, payload)}"
    reason = "" if event["reason"] is None else f" — “{event['reason']}”"
    kind = _EVENTS[event["kind"]]
    return {
        "at": event["at"],
        "kind": kind if who else kind.rsplit(" ", 1)[0],
        "who": who or "",
        "words": judged + reason,
    }


def _summary(rows: int, *, more: bool) -> str:
    if rows == 0:
        return "Nothing here so far: the next page looks further." if more else "Nothing here."
    plural = "s" * (rows != 1)
    return f"{count(rows)} judgement{plural} on this page{', and there are more' * more}."


def _corrects(view: View, session: Mapping[str, Any]) -> bool:
    """Return whether the caller may correct a judgement of this session."""
    plain = all(session[name] is None for name in ("best", "table", "raters"))
    open_ = session["state"] != "closed" and not session["archived"]
    return plain and open_ and "manage" in view.caller.scopes
