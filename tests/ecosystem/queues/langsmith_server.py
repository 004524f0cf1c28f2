"""LangSmith's routes for annotation queues, made of the models of its SDK.

What is sent has to be what the SDK's types allow, without a member that they do not know; what is
answered is a model's own JSON.
"""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4, uuid5

from langsmith import schemas
from langsmith.types import annotation_queue_annotation_queues_params as queue_params
from langsmith.types import annotation_queue_retrieve_annotation_queues_params as list_params
from langsmith.types import session_create_params
from langsmith.types.annotation_queue_schema import AnnotationQueueSchema
from langsmith.types.annotation_queues import (
    item_create_params,
    item_delete_all_params,
    item_list_params,
)
from langsmith.types.annotation_queues.item_create_response import ItemCreateResponse
from langsmith.types.annotation_queues.item_list_response import ItemListResponse
from pydantic import TypeAdapter

from tests.ecosystem.queues.served import Declined, Request, Route

SECRET = "lsv2-of-this-test"  # noqa: S105 -- opens nothing
TENANT = uuid4()
QUEUES = "/api/v1/annotation-queues"
ITEMS = "/api/v1/platform/annotation-queues/([^/]+)/items"


class LangSmith:
    """One workspace, kept in memory."""

    def __init__(self) -> None:
        self.projects: dict[str, UUID] = {}
        self.configs: dict[str, schemas.FeedbackConfigSchema] = {}
        self.queues: list[AnnotationQueueSchema] = []
        self.rubric: list[str] = []
        self.runs: dict[str, schemas.RunBase] = {}
        self.items: dict[str, ItemListResponse] = {}
        self.finished: set[str] = set()
        self.feedback: list[schemas.Feedback] = []
        routes: dict[tuple[str, str], Route] = {
            ("POST", "/api/v1/sessions"): self._create_project,
            ("GET", "/api/v1/feedback-configs"): self._list_configs,
            ("POST", "/api/v1/feedback-configs"): self._create_config,
            ("GET", QUEUES): self._list_queues,
            ("POST", QUEUES): self._create_queue,
            ("POST", "/api/v1/runs"): self._create_run,
            ("GET", ITEMS): self._list_items,
            ("POST", ITEMS): self._create_items,
            ("POST", f"{ITEMS}/delete"): self._delete_items,
            ("GET", "/api/v1/feedback"): self._list_feedback,
        }
        self.routes = {at: self._let_in(route) for at, route in routes.items()}

    def waiting(self) -> list[tuple[str, dict[str, Any]]]:
        """Runs and their inputs that nobody has finished."""
        return [(id_, self.runs[id_].inputs) for id_ in self.items if id_ not in self.finished]

    def everything(self) -> list[dict[str, Any]]:
        """The inputs of all items, the finished ones too."""
        return [self.runs[id_].inputs for id_ in self.items]

    def say(self, id_: str, answer: str | float) -> None:
        """What a person does in the page: answer, and finish the review."""
        kinds = {key: self.configs[key].feedback_config for key in self.rubric}
        wanted = "categorical" if isinstance(answer, str) else "continuous"
        key = next(key for key in self.rubric if kinds[key]["type"] == wanted)
        score, value = answer, None
        if isinstance(answer, str):
            named = {one["label"]: one["value"] for one in kinds[key]["categories"] or ()}
            score, value = named[answer], answer
        now = datetime.now(UTC)
        self.feedback.append(
            schemas.Feedback(
                id=uuid4(),
                created_at=now,
                modified_at=now,
                run_id=UUID(id_),
                trace_id=UUID(id_),
                key=key,
                score=score,
                value=value,
            )
        )
        self.finished.add(id_)
        self.items[id_] = self.items[id_].model_copy(update={"completed_by": ["ann"]})

    def _let_in(self, route: Route) -> Route:
        def guarded(request: Request) -> Any:  # noqa: ANN401 -- JSON
            if request.headers.get("x-api-key") != SECRET:
                raise Declined(403)
            return route(request)

        return guarded

    def _create_project(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        _check(session_create_params.SessionCreateParams, request.body)
        assert request.one("upsert") == "true"
        id_ = self.projects.setdefault(request.body["name"], uuid4())
        now = datetime.now(UTC)
        made = schemas.TracerSession(
            id=id_,
            name=request.body["name"],
            start_time=now,
            tenant_id=TENANT,
            reference_dataset_id=None,
        )
        return _json(made)

    def _list_configs(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        keys = request.query["key"]
        return [_json(one) for key, one in self.configs.items() if key in keys]

    def _create_config(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        assert {*request.body} == {"feedback_key", "feedback_config"}
        _check(schemas.FeedbackConfig, request.body["feedback_config"])
        key = request.body["feedback_key"]
        assert key not in self.configs
        made = schemas.FeedbackConfigSchema(
            **request.body, tenant_id=TENANT, modified_at=datetime.now(UTC)
        )
        self.configs[key] = made
        return _json(made)

    def _list_queues(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        query = {"name": request.one("name"), "limit": int(request.one("limit"))}
        assert {*request.query} == {*query}
        _check(list_params.AnnotationQueueRetrieveAnnotationQueuesParams, query)
        return [_json(one) for one in self.queues if one.name == query["name"]]

    def _create_queue(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        _check(queue_params.AnnotationQueueAnnotationQueuesParams, request.body)
        self.rubric = [one["feedback_key"] for one in request.body["rubric_items"]]
        assert {*self.rubric} <= {*self.configs}
        made = AnnotationQueueSchema(
            id=str(uuid4()),
            name=request.body["name"],
            queue_type="single",
            tenant_id=str(TENANT),
        )
        self.queues.append(made)
        return _json(made)

    def _create_run(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        if request.body["id"] in self.runs:
            raise Declined(409)
        assert {*request.body} <= {*schemas.RunLikeDict.__annotations__}
        assert request.body["session_name"] in self.projects
        self.runs[request.body["id"]] = schemas.RunBase.model_validate(request.body)
        return {"message": "accepted"}

    def _create_items(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        _check(item_create_params.ItemCreateParams, request.body)
        made = []
        for form in request.body["items"]:
            id_ = form["run_id"]
            assert id_ in self.runs
            assert UUID(form["project_id"]) in self.projects.values()
            item = ItemListResponse(
                id=str(uuid5(TENANT, id_)),
                queue_id=request.parts[0],
                **form,
            )
            self.items[id_] = item
            made.append(_json(item))
        ItemCreateResponse.model_validate({"items": made})
        return {"items": made}

    def _list_items(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        query = {name: request.one(name) for name in request.query}
        size, start = int(query.pop("page_size")), int(query.pop("cursor", "0"))
        _check(item_list_params.ItemListParams, query | {"page_size": size})
        assert size <= 100
        status = query["status"]
        found = [
            it
            for id_, it in self.items.items()
            if status == ("archived" if id_ in self.finished else "needs_my_review")
        ]
        # Pages smaller than asked for, so that there are several
        size = min(size, 4)
        more = str(start + size) if start + size < len(found) else None
        page = [_json(one) for one in found[start : start + size]]
        return {"items": page, "next_cursor": more}

    def _delete_items(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        _check(item_delete_all_params.ItemDeleteAllParams, request.body)
        gone = {*request.body["item_ids"]}
        self.items = {id_: it for id_, it in self.items.items() if it.id not in gone}
        return {}

    def _list_feedback(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        assert {*request.query} == {"run", "key", "limit", "offset"}
        start, limit = int(request.one("offset")), int(request.one("limit"))
        found = [
            one
            for one in self.feedback
            if str(one.run_id) in request.query["run"] and one.key in request.query["key"]
        ]
        return [_json(one) for one in found[start : start + limit]]


def _check(kind: Any, body: Any) -> None:  # noqa: ANN401 -- a TypedDict, and JSON
    """Refuse what the SDK's own type does not allow."""
    TypeAdapter(kind).validate_python(body)
    assert {*body} <= {*kind.__annotations__}, body


def _json(model: Any) -> Any:  # noqa: ANN401 -- JSON
    return json.loads(model.model_dump_json())
