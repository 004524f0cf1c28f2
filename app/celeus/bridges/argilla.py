"""Argilla: a dataset that holds only what a session has drawn, and people's responses."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from celeus.bridges.loop import Verdict
from celeus.bridges.questions import CANNOT_TELL, Judgement, Question, Task, text_of
from celeus.bridges.tool import Tool
from celeus.errors import InvalidValue

API = "/api/v1"
FIELD, VERDICT, NUMBER = "item", "verdict", "number"
DISCARDED: Judgement = {"unjudgeable": "discarded"}
PAGE = 100


def open_tool(url: str, key: str) -> Tool:
    """Open Argilla at an address, with the API key of an owner or an admin."""
    headers = {"X-Argilla-Api-Key": key}
    return Tool("Argilla", url, lambda _: headers, "put a key that works in ARGILLA_API_KEY")


class Dataset:
    """The dataset of a session, made by the first run and then found by its name.

    One response decides an item.
    """

    name = "Argilla"

    def __init__(
        self, tool: Tool, session: str, question: Question, workspace: str | None = None
    ) -> None:
        self._tool = tool
        self._question = question
        self.id = self._opened(f"celeus_{session}", self._workspace(workspace))

    def put(self, tasks: Sequence[Task]) -> None:
        """Add a record for each task, with its mark as the external id and without a suggestion."""
        items = [{"external_id": task.mark, "fields": {FIELD: text_of(task)}} for task in tasks]
        self._tool.ask("PUT", f"{self._path}/records/bulk", {"items": items})

    def done(self) -> Mapping[str, Verdict | None]:
        """Return records by mark, each with its first submitted response, else a discarded one."""
        return {record["external_id"]: self._verdict(record) for record in self._records()}

    def take_back(self, marks: Collection[str]) -> None:
        """Delete the records without any response; a draft counts as one."""
        free = [
            record["id"]
            for record in self._records()
            if record["external_id"] in marks and not record["responses"]
        ]
        if free:
            query = {"ids": ",".join(free)}
            self._tool.ask("DELETE", f"{self._path}/records", query=query)

    @property
    def _path(self) -> str:
        return f"{API}/datasets/{self.id}"

    def _workspace(self, name: str | None) -> str:
        """The id of a workspace; of the only one where none is named."""
        known = {
            workspace["name"]: workspace["id"]
            for workspace in self._tool.get(f"{API}/me/workspaces")["items"]
        }
        if name is None and len(known) == 1:
            name = next(iter(known))
        if name not in known:
            rule = "one of " + ", ".join(sorted(known)) if known else "one that the key may use"
            raise InvalidValue(
                f"--workspace must be {rule}", field="workspace", rule=rule, value=name
            )
        return str(known[name])

    def _opened(self, name: str, workspace: str) -> str:
        """The published dataset; one that a killed bridge left half made is finished."""
        found = [
            dataset
            for dataset in self._tool.get(f"{API}/me/datasets")["items"]
            if (dataset["name"], dataset["workspace_id"]) == (name, workspace)
        ]
        form = {
            "name": name,
            "workspace_id": workspace,
            "guidelines": self._question.text,
            "distribution": {"strategy": "overlap", "min_submitted": 1},
        }
        dataset = found[0] if found else self._tool.ask("POST", f"{API}/datasets", form)
        path = f"{API}/datasets/{dataset['id']}"
        if dataset["status"] != "ready":
            for kind, part in (("fields", _field()), ("questions", self._asked())):
                if not self._tool.get(f"{path}/{kind}")["items"]:
                    self._tool.ask("POST", f"{path}/{kind}", part)
            self._tool.ask("PUT", f"{path}/publish")
        return str(dataset["id"])

    def _asked(self) -> dict[str, Any]:
        """The question: a choice, or a number as text, since ratings are whole."""
        part = {"title": self._question.text, "required": True}
        if self._question.takes is not None:
            return part | {"name": NUMBER, "settings": {"type": "text", "use_markdown": False}}
        options = [*self._question.options, CANNOT_TELL]
        choices = [{"value": option, "text": option} for option in options]
        return part | {
            "name": VERDICT,
            "settings": {"type": "label_selection", "options": choices},
        }

    def _records(self) -> Iterator[dict[str, Any]]:
        for page in count():
            answer = self._tool.get(
                f"{self._path}/records", include="responses", limit=PAGE, offset=page * PAGE
            )
            yield from answer["items"]
            if len(answer["items"]) < PAGE:
                return

    def _verdict(self, record: Mapping[str, Any]) -> Verdict | None:
        by_status: dict[str, dict[str, Any]] = {}
        for response in record["responses"] or ():
            by_status.setdefault(response["status"], response)
        if (given := by_status.get("submitted")) is not None:
            values = given["values"] or {}
            judgement = self._question.judgement_of(_answer(values))
            why = "the response holds no answer that was asked for; mend it there"
            return Verdict(judgement, f"user {given['user_id']}", "" if judgement else why)
        if (given := by_status.get("discarded")) is not None:
            return Verdict(DISCARDED, f"user {given['user_id']}")
        return None


def _field() -> dict[str, Any]:
    settings = {"type": "text", "use_markdown": False}
    return {"name": FIELD, "title": FIELD, "required": True, "settings": settings}


def _answer(values: Mapping[str, Mapping[str, Any]]) -> object:
    """Return the option chosen or the number typed, None for anything else."""
    chosen = values.get(VERDICT, {}).get("value")
    if chosen is not None:
        return chosen
    try:
        return float(str(values.get(NUMBER, {}).get("value")))
    except ValueError:
        return None
