"""LangSmith: an annotation queue of runs that hold what a session has drawn."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import UUID

from celeus.bridges.loop import Verdict
from celeus.bridges.questions import CANNOT_TELL, Question, Task, members_of
from celeus.bridges.tool import Headers, Tool, id_of, mark_of

API = "/api/v1"
QUEUES = f"{API}/annotation-queues"
CONFIGS = f"{API}/feedback-configs"
FEEDBACK = f"{API}/feedback"
OPEN, DONE = ("needs_my_review", "needs_others_review"), "archived"
PAGE = 100
RUNS_AT_ONCE = 50
THERE_ALREADY = 409


def open_tool(url: str, key: str, workspace: str | None = None) -> Tool:
    """Open LangSmith at an address with a key, in the key's own workspace unless one is named."""
    headers: Headers = {"x-api-key": key} | ({"X-Tenant-Id": workspace} if workspace else {})
    return Tool("LangSmith", url, lambda _: headers, "put a key that works in LANGSMITH_API_KEY")


class AnnotationQueue:
    """The queue of a session in a project of its own, made at first and found by name later.

    Every item is a new run with the payload alone as its input: on runs that are there people would
    see what other judges have said.
    """

    name = "LangSmith"

    def __init__(self, tool: Tool, session: str, question: Question) -> None:
        self._tool = tool
        self._session = session
        self._question = question
        self._choice = f"celeus_{session[4:20]}"
        self._number = f"{self._choice}_number"
        self._options = [*question.options, CANNOT_TELL]
        self._project_name = f"Celeus {session}"
        form = {"name": self._project_name}
        project = tool.ask("POST", f"{API}/sessions", form, {"upsert": "true"})
        self._project = str(project["id"])
        self.id = self._opened(self._project_name)

    def put(self, tasks: Sequence[Task]) -> None:
        """Make a run of each, by an id that follows from its mark, and queue it."""
        items = []
        for task in tasks:
            id_, now = str(UUID(id_of(task.mark))), datetime.now(UTC).isoformat()
            form = {
                "id": id_,
                "name": "item",
                "run_type": "chain",
                "inputs": members_of(task),
                "start_time": now,
                "end_time": now,
                "session_name": self._project_name,
            }
            # There already, where the bridge was killed behind it
            self._tool.ask("POST", f"{API}/runs", form, known=THERE_ALREADY)
            item = {"item_type": "RUN", "run_id": id_, "project_id": self._project}
            items.append(item | {"start_time": now})
        self._tool.ask("POST", self._items_path, {"items": items})

    def done(self) -> Mapping[str, Verdict | None]:
        """Return the queue's items by mark; one whose review is finished has its feedback."""
        there: dict[str, Verdict | None] = {
            mark: None for status in OPEN for mark, _ in self._items(status)
        }
        finished = dict(self._items(DONE))
        feedback = self._feedback([item["run_id"] for item in finished.values()])
        return there | {
            mark: self._verdict(item, feedback.get(item["run_id"], {}))
            for mark, item in finished.items()
        }

    def take_back(self, marks: Collection[str]) -> None:
        """Remove the items that nobody has finished, reserved or commented on."""
        items = [item for status in OPEN for mark, item in self._items(status) if mark in marks]
        feedback = self._feedback([item["run_id"] for item in items])
        free = [
            item["id"]
            for item in items
            if not (item.get("reserved_by") or item.get("completed_by"))
            and item["run_id"] not in feedback
        ]
        if free:
            self._tool.ask("POST", f"{self._items_path}/delete", {"item_ids": free})

    @property
    def _items_path(self) -> str:
        return f"{API}/platform/annotation-queues/{self.id}/items"

    def _opened(self, name: str) -> str:
        for queue in self._tool.get(QUEUES, name=name, limit=PAGE):
            if queue["name"] == name:
                return str(queue["id"])
        categories = [
            {"label": option, "value": number} for number, option in enumerate(self._options)
        ]
        forms: dict[str, dict[str, Any]] = {
            self._choice: {"type": "categorical", "categories": categories}
        }
        if self._question.takes is not None:
            upper = {"max": self._question.upper} if self._question.takes == "loss" else {}
            number = {"type": "continuous", "min": self._question.lower}
            forms[self._number] = number | upper
        known = {
            config["feedback_key"] for config in self._tool.get(CONFIGS, key=[*forms], limit=PAGE)
        }
        for key, form in forms.items():
            if key not in known:
                config = {"feedback_key": key, "feedback_config": form}
                self._tool.ask("POST", CONFIGS, config)
        made = self._tool.ask(
            "POST",
            QUEUES,
            {
                "name": name,
                "num_reviewers_per_item": 1,
                "enable_reservations": True,
                "rubric_instructions": self._question.text,
                "rubric_items": [{"feedback_key": key} for key in forms],
            },
        )
        return str(made["id"])

    def _items(self, status: str) -> Iterator[tuple[str, dict[str, Any]]]:
        cursor = None
        while True:
            answer = self._tool.get(self._items_path, status=status, page_size=PAGE, cursor=cursor)
            for item in answer["items"] or ():
                if (mark := mark_of(self._session, item.get("run_id") or "")) is not None:
                    yield mark, item
            cursor = answer.get("next_cursor")
            if not cursor:
                return

    def _feedback(self, runs: Sequence[str]) -> dict[str, dict[str, dict[str, Any]]]:
        """Return the feedback on runs: by run, the last entry for each key."""
        found: list[dict[str, Any]] = []
        for start in range(0, len(runs), RUNS_AT_ONCE):
            for page in count():
                entries = self._tool.get(
                    FEEDBACK,
                    run=[*runs[start : start + RUNS_AT_ONCE]],
                    key=[self._choice, self._number],
                    limit=PAGE,
                    offset=page * PAGE,
                )
                found += entries
                if len(entries) < PAGE:
                    break
        by_run: dict[str, dict[str, dict[str, Any]]] = {}
        for entry in sorted(found, key=lambda entry: str(entry["modified_at"])):
            by_run.setdefault(entry["run_id"], {})[entry["key"]] = entry
        return by_run

    def _verdict(self, item: Mapping[str, Any], feedback: Mapping[str, dict[str, Any]]) -> Verdict:
        answer: object = None
        if choice := feedback.get(self._choice):
            # The page keeps the number of the option, and may keep its words
            answer, place = choice.get("value"), choice.get("score")
            if not isinstance(answer, str) and isinstance(place, int | float):
                numbered = dict(enumerate(self._options))
                answer = numbered.get(int(place)) if float(place).is_integer() else None
        elif number := feedback.get(self._number):
            answer = number.get("score")
        judgement = self._question.judgement_of(answer)
        by = ", ".join(item.get("completed_by") or ())
        why = "its review is finished without an answer that was asked for; give it one there"
        return Verdict(judgement, by, "" if judgement else why)
