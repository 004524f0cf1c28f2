"""Langfuse: an annotation queue of traces that hold what a session has drawn."""

import base64
import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from celeus.bridges.loop import Verdict
from celeus.bridges.questions import CANNOT_TELL, Question, Task, members_of
from celeus.bridges.tool import Tool, id_of, mark_of

QUEUES = "/api/public/annotation-queues"
CONFIGS = "/api/public/score-configs"
PAGE = 100


def open_tool(url: str, public: str, secret: str) -> Tool:
    """Open Langfuse at an address, with the keys of a project."""
    pair = base64.b64encode(f"{public}:{secret}".encode()).decode()
    hint = "put keys that work in LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
    return Tool("Langfuse", url, lambda _: {"Authorization": f"Basic {pair}"}, hint)


class AnnotationQueue:
    """The queue of a session, made at first and found by its name later.

    Every item is a new trace with the payload alone as its input: on traces that are there people
    would see what other judges have said.
    """

    name = "Langfuse"

    def __init__(self, tool: Tool, session: str, question: Question) -> None:
        self._tool = tool
        self._session = session
        self._question = question
        # A config's name has at most 35 characters
        self._choice = f"celeus {session[4:20]}"
        self._number = f"{self._choice} number"
        self.id = self._opened(f"Celeus {session}")

    def put(self, tasks: Sequence[Task]) -> None:
        """Make a trace of each, by an id that follows from its mark, and queue it."""
        spans = [_span(task) for task in tasks]
        traces = [{"scopeSpans": [{"spans": spans}]}]
        self._tool.ask("POST", "/api/public/otel/v1/traces", {"resourceSpans": traces})
        for task in tasks:
            item = {"objectId": id_of(task.mark), "objectType": "TRACE"}
            self._tool.ask("POST", f"{QUEUES}/{self.id}/items", item)

    def done(self) -> Mapping[str, Verdict | None]:
        """Return every item of the queue by mark, a completed one with its scores."""
        scores = self._scores()
        return {
            mark: self._verdict(item, scores.get(item["objectId"], {}))
            for mark, item in self._items()
        }

    def take_back(self, marks: Collection[str]) -> None:
        """Remove the pending items without a score."""
        scores = self._scores()
        for mark, item in self._items():
            free = item["status"] == "PENDING" and item["objectId"] not in scores
            if mark in marks and free:
                self._tool.ask("DELETE", f"{QUEUES}/{self.id}/items/{item['id']}")

    def _opened(self, name: str) -> str:
        for queue in self._pages(QUEUES):
            if queue["name"] == name:
                return str(queue["id"])
        options = [*self._question.options, CANNOT_TELL]
        categories = [{"label": option, "value": number} for number, option in enumerate(options)]
        forms: list[dict[str, Any]] = [
            {"name": self._choice, "dataType": "CATEGORICAL", "categories": categories}
        ]
        if self._question.takes is not None:
            form = {"name": self._number, "dataType": "NUMERIC", "minValue": self._question.lower}
            upper = {"maxValue": self._question.upper} if self._question.takes == "loss" else {}
            forms.append(form | upper)
        known = {config["name"]: config["id"] for config in self._pages(CONFIGS)}
        configs = [
            known.get(form["name"])
            or self._tool.ask("POST", CONFIGS, form | {"description": self._question.text})["id"]
            for form in forms
        ]
        made = self._tool.ask("POST", QUEUES, {"name": name, "scoreConfigIds": configs})
        return str(made["id"])

    def _pages(self, path: str) -> Iterator[dict[str, Any]]:
        for page in count(1):
            answer = self._tool.get(path, page=page, limit=PAGE)
            yield from answer["data"]
            if page >= answer["meta"]["totalPages"]:
                return

    def _items(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Items of the queue by mark, the completed ones last."""
        found = [
            (mark, item)
            for item in self._pages(f"{QUEUES}/{self.id}/items")
            if (mark := mark_of(self._session, item["objectId"])) is not None
        ]
        return iter(sorted(found, key=lambda entry: entry[1]["status"] == "COMPLETED"))

    def _scores(self) -> dict[str, dict[str, Any]]:
        """Return the scores people gave in this queue: by trace, the last score of each name."""
        found: list[dict[str, Any]] = []
        cursor = None
        while True:
            answer = self._tool.get(
                "/api/public/v3/scores",
                queueId=self.id,
                source="ANNOTATION",
                fields="subject,annotation",
                limit=PAGE,
                cursor=cursor,
            )
            found += answer["data"]
            cursor = answer["meta"].get("cursor")
            if not cursor:
                break
        scores: dict[str, dict[str, Any]] = {}
        for score in sorted(found, key=lambda score: str(score["updatedAt"])):
            subject = score.get("subject") or {}
            scores.setdefault(subject.get("id", ""), {})[score["name"]] = score
        return scores

    def _verdict(
        self, item: Mapping[str, Any], scores: Mapping[str, dict[str, Any]]
    ) -> Verdict | None:
        if item["status"] != "COMPLETED":
            return None
        score = scores.get(self._choice) or scores.get(self._number) or {}
        judgement = self._question.judgement_of(score.get("value"))
        why = "the item is completed without a score that was asked for; give it one there"
        return Verdict(judgement, score.get("authorUserId") or "", "" if judgement else why)


def _span(task: Task) -> dict[str, Any]:
    """A trace of one span, as OpenTelemetry has it in JSON."""
    id_ = id_of(task.mark)
    now = str(time.time_ns())
    shown = json.dumps(members_of(task), ensure_ascii=False)
    values = {"langfuse.trace.name": "item", "langfuse.observation.input": shown}
    return {
        "traceId": id_,
        "spanId": id_[-16:],
        "name": "item",
        "kind": 1,
        "startTimeUnixNano": now,
        "endTimeUnixNano": now,
        "attributes": [
            {"key": key, "value": {"stringValue": value}} for key, value in values.items()
        ],
    }
