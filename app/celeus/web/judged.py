"""The pages of a session's judgements: the table, and a round with its history."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import orjson
from fastapi import Query, Response
from pydantic import BaseModel, Field

from celeus.api.access.parameters import NO_NUL, SessionId
from celeus.api.pools.items import whole_item
from celeus.api.sessions.labels import MOST
from celeus.core.insights.figures import count
from celeus.errors import InvalidValue
from celeus.operations.runtime.context import Context
from celeus.operations.sessions.labelling import labels
from celeus.operations.sessions.labelling.labels import LabelFilter, Labels
from celeus.operations.sessions.labelling.task import get_task
from celeus.operations.sessions.sessions import get_session
from celeus.web.judgements import JudgeWords, excerpt
from celeus.web.pages import ReadsPage, View, page_router
from celeus.web.views import ITEMS
from celeus.web.wording import sentence

router = page_router()

AT_ONCE = 100
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
        session=session,
        params=params,
        groups={name: values[:MOST_OFFERED] for name, values in found.groups.items()},
        loss=found.pool.scale.kind,
        told=problem or _told(len(rows), more=following is not None),
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
            "said": f": “{comment['comment']}”",
        }
        for comment in history["comments"]
    ]
    judged_once = len(history["events"]) > 1
    return view.page(
        "judgement.html",
        policy=ITEMS,
        session=session,
        round=round_,
        history=history,
        lines=sorted(events + comments, key=lambda line: line["at"]),
        shown={"item": item, "left": history["left"]},
        groups=", ".join((history["groups"] or {}).values()),
        choices=words.choices(item["payload"]),
        numbers=words.numbers,
        corrects=judged_once and _corrects(view, session),
    )


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
    said = words.of(row, payload)
    person, worker = row["person"], row["worker"]
    return {
        "round": row["round"],
        "item": row["item"],
        "excerpt": "" if item is None else excerpt(item),
        "said": said,
        "person": "the panel" if row["kind"] == "outcome" and person is None else person or "",
        # The worker, where that is another word
        "worker": worker if person and worker and not worker.startswith(person) else "",
        "at": row["judged_at"],
        "remarks": _remarks(row),
        "outside": not row["in_interval"],
        "choices": [choice for choice in words.choices(payload) if choice.words != said],
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
    said = "" if event["kind"] == "draw" else f": {words.of(event, payload)}"
    reason = "" if event["reason"] is None else f" — “{event['reason']}”"
    kind = _EVENTS[event["kind"]]
    return {
        "at": event["at"],
        "kind": kind if who else kind.rsplit(" ", 1)[0],
        "who": who or "",
        "said": said + reason,
    }


def _told(rows: int, *, more: bool) -> str:
    if rows == 0:
        return "Nothing here so far: the next page looks further." if more else "Nothing here."
    plural = "s" * (rows != 1)
    return f"{count(rows)} judgement{plural} on this page{', and there are more' * more}."


def _corrects(view: View, session: Mapping[str, Any]) -> bool:
    """Return whether the caller may correct a judgement of this session."""
    plain = all(session[name] is None for name in ("best", "table", "raters"))
    open_ = session["state"] != "closed" and not session["archived"]
    return plain and open_ and "manage" in view.caller.scopes
