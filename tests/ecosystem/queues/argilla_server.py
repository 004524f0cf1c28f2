"""Argilla's routes for datasets, made of the models of its SDK.

What is sent has to be what a model takes, without a member that it does not know; what is answered
is a model's own JSON.
"""

import json
from typing import Any, TypeVar
from uuid import UUID, uuid4

from argilla._models import (
    DatasetModel,
    FieldModel,
    QuestionModel,
    RecordModel,
    UserResponseModel,
    WorkspaceModel,
)
from pydantic import BaseModel

from tests.ecosystem.queues.served import Declined, Request, Route

T = TypeVar("T", bound=BaseModel)
SECRET = "argilla.of-this-test"  # noqa: S105 -- opens nothing
ANN = uuid4()
DATASET = "/api/v1/datasets/([^/]+)"


class Argilla:
    """One workspace, kept in memory."""

    def __init__(self) -> None:
        self.workspace = WorkspaceModel(id=uuid4(), name="argilla")
        self.datasets: list[DatasetModel] = []
        self.fields: list[FieldModel] = []
        self.questions: list[QuestionModel] = []
        self.records: dict[str, RecordModel] = {}
        routes: dict[tuple[str, str], Route] = {
            ("GET", "/api/v1/me/workspaces"): lambda _: _page([self.workspace]),
            ("GET", "/api/v1/me/datasets"): lambda _: _page(self.datasets),
            ("POST", "/api/v1/datasets"): self._create_dataset,
            ("GET", f"{DATASET}/fields"): lambda _: _page(self.fields),
            ("POST", f"{DATASET}/fields"): self._create_field,
            ("GET", f"{DATASET}/questions"): lambda _: _page(self.questions),
            ("POST", f"{DATASET}/questions"): self._create_question,
            ("PUT", f"{DATASET}/publish"): self._publish,
            ("PUT", f"{DATASET}/records/bulk"): self._upsert,
            ("GET", f"{DATASET}/records"): self._list,
            ("DELETE", f"{DATASET}/records"): self._delete,
        }
        self.routes = {at: self._let_in(route) for at, route in routes.items()}

    def waiting(self) -> list[tuple[str, dict[str, Any]]]:
        """Records that nobody has responded to, with what they show."""
        open_ = [one for one in self.records.values() if not one.responses]
        return [(str(one.external_id), _shown(one)) for one in open_]

    def everything(self) -> list[dict[str, Any]]:
        """What all records show."""
        return [_shown(one) for one in self.records.values()]

    def say(self, id_: str, answer: str | float) -> None:
        """What a person does in the page: submit a response; to discard it is no answer."""
        (question,) = self.questions
        settings = question.settings
        options = [one["value"] for one in getattr(settings, "options", ())]
        assert not options or answer in options
        status = "discarded" if answer == "Cannot tell" else "submitted"
        value = answer if isinstance(answer, str) else str(answer)
        response = UserResponseModel(
            values={question.name: {"value": value}}, status=status, user_id=ANN
        )
        done = {"responses": [response], "status": "completed"}
        self.records[id_] = self.records[id_].model_copy(update=done)

    def _let_in(self, route: Route) -> Route:
        def guarded(request: Request) -> Any:  # noqa: ANN401 -- JSON
            if request.headers.get("X-Argilla-Api-Key") != SECRET:
                raise Declined(401)
            return route(request)

        return guarded

    def _create_dataset(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        made = _taken(DatasetModel, request.body).model_copy(update={"id": uuid4()})
        assert made.workspace_id == self.workspace.id
        assert made.distribution is not None
        self.datasets.append(made)
        return _json(made)

    def _create_field(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        self._must_be_draft(request)
        self.fields.append(_taken(FieldModel, request.body))
        return _json(self.fields[-1])

    def _create_question(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        self._must_be_draft(request)
        made = _taken(QuestionModel, request.body)
        # As the server has it: a choice is one of several
        assert made.type == "text" or len(made.settings.options) >= 2
        self.questions.append(made)
        return _json(made)

    def _publish(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        self._must_be_draft(request)
        assert self.fields
        assert self.questions
        (dataset,) = self.datasets
        self.datasets = [dataset.model_copy(update={"status": "ready"})]
        return _json(self.datasets[0])

    def _must_be_draft(self, request: Request) -> None:
        (dataset,) = self.datasets
        assert (dataset.id, dataset.status) == (UUID(request.parts[0]), "draft")

    def _upsert(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        assert {*request.body} == {"items"}
        assert self.datasets[0].status == "ready"
        for form in request.body["items"]:
            made = _taken(RecordModel, form)
            assert {*(made.fields or {})} == {one.name for one in self.fields}
            assert (made.suggestions, made.responses) == ((), [])
            kept = self.records.get(str(made.external_id))
            if kept is None:
                self.records[str(made.external_id)] = made.model_copy(update={"id": uuid4()})
        return {"items": [], "updated_item_ids": []}

    def _list(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        start, limit = int(request.one("offset")), int(request.one("limit"))
        assert request.one("include") == "responses"
        return _page([*self.records.values()][start : start + limit])

    def _delete(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        gone = {UUID(one) for one in request.one("ids").split(",")}
        self.records = {name: it for name, it in self.records.items() if it.id not in gone}


def _shown(record: RecordModel) -> dict[str, Any]:
    parts = str((record.fields or {})["item"]).split("\n\n")
    return dict(part.split(": ", 1) for part in parts)


def _taken(kind: type[T], body: dict[str, Any]) -> T:
    """A request as the model takes it."""
    assert {*body} <= {*kind.model_fields}, body
    return kind.model_validate(body)


def _page(found: list[Any]) -> Any:  # noqa: ANN401 -- JSON
    return {"items": [_json(one) for one in found], "total": len(found)}


def _json(model: BaseModel) -> Any:  # noqa: ANN401 -- JSON
    return json.loads(model.model_dump_json())
