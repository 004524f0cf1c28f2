"""Label Studio: a project that holds only what a session has drawn, and people's annotations."""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import Any
from xml.sax.saxutils import quoteattr

from celeus.bridges.loop import Verdict
from celeus.bridges.questions import CANNOT_TELL, Question, Task, html_of
from celeus.bridges.tool import Headers, Tool

MARK, ITEM, CHOICES = "celeus", "celeus_item", "celeus_choices"
VERDICT, NUMBER = "verdict", "number"
SKIPPED = "skipped"
PAGE = 500
WHOLE_SECONDS = 60.0
JWT_DOTS = 2


def open_tool(url: str, token: str) -> Tool:
    """Open Label Studio at an address, with a legacy token or a personal access token."""

    def sign(tool: Tool) -> Headers:
        if token.count(".") != JWT_DOTS:
            return {"Authorization": f"Token {token}"}
        answer = tool.read(tool.send("POST", "/api/token/refresh", {"refresh": token}))
        return {"Authorization": f"Bearer {answer['access']}"}

    return Tool("Label Studio", url, sign, "put a token that works in LABEL_STUDIO_API_KEY")


class LabelStudio:
    """The project of a session: made at first, found by its title later, or one that is named.

    A project of one's own has controls called `verdict`, or `number`, as `label_config` has them,
    and may show the members of payloads by their names. Pictures at ``media_hosts`` are shown,
    others at hosts are links.
    """

    name = "Label Studio"

    def __init__(
        self,
        tool: Tool,
        session: str,
        question: Question,
        project: int | None = None,
        *,
        media_hosts: Collection[str] = (),
    ) -> None:
        self._tool = tool
        self._question = question
        self._media_hosts = media_hosts
        self.project = self._opened(f"Celeus {session}") if project is None else project
        self._verdicts: dict[str, Verdict | None] = {}
        self._holders: dict[str, int] = {}
        self._since = ""
        self._whole_at = 0.0

    def put(self, tasks: Sequence[Task]) -> None:
        """Add tasks, with what is shown of each and no prediction."""
        body = [{"data": self._data(task)} for task in tasks]
        path = f"/api/projects/{self.project}/import"
        self._tool.ask("POST", path, body, {"commit_to_project": "true"})
        self._verdicts |= {task.mark: None for task in tasks}

    def done(self) -> Mapping[str, Verdict | None]:
        """Every task of the project; now and then all are read anew, else those that changed."""
        if time.monotonic() >= self._whole_at:
            self._look()
        for task in self._tasks(self._since):
            self._know(task)
        return dict(self._verdicts)

    def take_back(self, marks: Collection[str]) -> None:
        """Delete the tasks without an annotation or a draft."""
        for task in self._look():
            if task["data"].get(MARK) in marks:
                path = f"/api/tasks/{task['id']}"
                # Somebody may have begun since
                now = self._tool.get(path)
                if not now["annotations"] and not now["drafts"]:
                    self._tool.ask("DELETE", path)
        self._look()

    def _look(self) -> list[dict[str, Any]]:
        """Read all tasks anew: a change may have been committed late, or a task deleted."""
        self._verdicts, self._holders = {}, {}
        tasks = self._tasks("")
        for task in tasks:
            self._know(task)
        self._whole_at = time.monotonic() + WHOLE_SECONDS
        return tasks

    def _know(self, task: Mapping[str, Any]) -> None:
        self._since = max(self._since, task["updated_at"])
        mark, verdict = str(task["data"].get(MARK, "")), self._verdict(task)
        # Where the answer to an import was lost two tasks may bear a mark: the first verdict counts
        double = self._holders.get(mark, task["id"]) != task["id"]
        if double and (verdict is None or self._verdicts.get(mark) is not None):
            return
        self._holders[mark], self._verdicts[mark] = task["id"], verdict

    def _opened(self, title: str) -> int:
        found = self._tool.get("/api/projects", title=title)["results"]
        known = [project["id"] for project in found if project["title"] == title]
        if known:
            return int(known[0])
        form = {
            "title": title,
            "label_config": label_config(self._question),
            "sampling": "Sequential sampling",
            "maximum_annotations": 1,
            "skip_queue": "IGNORE_SKIPPED",
            "show_collab_predictions": False,
        }
        return int(self._tool.ask("POST", "/api/projects", form)["id"])

    def _data(self, task: Task) -> dict[str, Any]:
        members = task.payload if isinstance(task.payload, Mapping) else {}
        options = [*self._question.options_of(task.payload), CANNOT_TELL]
        return {
            **members,
            MARK: task.mark,
            ITEM: html_of(task, self._media_hosts),
            CHOICES: [{"value": option} for option in options],
        }

    def _tasks(self, since: str) -> list[dict[str, Any]]:
        """Tasks that were changed at this time or later."""
        newer = {"filter": "filter:tasks:updated_at", "operator": "greater_or_equal"}
        items = [newer | {"type": "Datetime", "value": since}] if since else []
        query = json.dumps({"filters": {"conjunction": "and", "items": items}})
        found: list[dict[str, Any]] = []
        for page in count(1):
            answer = self._tool.get(
                "/api/tasks",
                project=self.project,
                fields="all",
                page=page,
                page_size=PAGE,
                query=query,
            )
            found += answer["tasks"]
            if len(found) >= answer["total"] or not answer["tasks"]:
                break
        return found

    def _verdict(self, task: Mapping[str, Any]) -> Verdict | None:
        """The first annotation of a task, as it stands now."""
        if not task["annotations"]:
            return None
        first = min(task["annotations"], key=lambda annotation: annotation["id"])
        by = f"annotator {first['completed_by']}"
        if first["was_cancelled"]:
            return Verdict({"unjudgeable": SKIPPED}, by)
        judgement = self._question.judgement_of(_answer(first["result"]), task["data"])
        why = "the annotation holds no verdict that was asked for; mend it there"
        return Verdict(judgement, by, "" if judgement else why)


def _answer(result: Sequence[Mapping[str, Any]]) -> object:
    """Return the option chosen, else the number typed."""
    values = {region.get("from_name"): region.get("value", {}) for region in result}
    chosen = values.get(VERDICT, {}).get("choices") or [None]
    return chosen[0] if chosen[0] is not None else values.get(NUMBER, {}).get("number")


def label_config(question: Question) -> str:
    """The labelling page of a project: the item, and what may be said of it."""
    number = ""
    if question.takes is not None:
        ends = f' min="{question.lower:.17g}" max="{question.upper:.17g}"'
        if question.takes == "label":
            ends = ' min="0" step="1"'
        number = f'<Number name="{NUMBER}" toName="item"{ends}/>'
    required = "" if number else ' required="true"'
    return (
        f'<View><HyperText name="item" value="${ITEM}"/>'
        f"<Header value={quoteattr(question.text)}/>{number}"
        f'<Choices name="{VERDICT}" toName="item" value="${CHOICES}" choice="single"'
        f' showInline="true"{required}/></View>'
    )
