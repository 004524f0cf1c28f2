"""Langfuse's routes for annotation queues, made of the models of its SDK.

What is sent has to be what a model takes, without a member that it does not know; what is answered
is a model's own JSON.
"""

import base64
import json
from datetime import UTC, datetime
from typing import Any, TypeVar

from langfuse.api.annotation_queues.types import (
    AnnotationQueue,
    AnnotationQueueItem,
    AnnotationQueueStatus,
    CreateAnnotationQueueItemRequest,
    CreateAnnotationQueueRequest,
    DeleteAnnotationQueueItemResponse,
    PaginatedAnnotationQueueItems,
    PaginatedAnnotationQueues,
)
from langfuse.api.commons.types import ScoreConfig, ScoreSource
from langfuse.api.core.pydantic_utilities import parse_obj_as
from langfuse.api.opentelemetry.types import OtelResourceSpan, OtelTraceResponse
from langfuse.api.score_configs.types import CreateScoreConfigRequest, ScoreConfigs
from langfuse.api.scores.types import (
    GetScoresV3Meta,
    GetScoresV3Response,
    ScoreSubjectV3_Trace,
    ScoreV3_Categorical,
    ScoreV3_Numeric,
)
from langfuse.api.utils.pagination.types import MetaResponse

from tests.ecosystem.queues.served import Declined, Request, Route

T = TypeVar("T")
PUBLIC, SECRET = "pk-lf-of-this-test", "sk-lf-of-this-test"
QUEUES = "/api/public/annotation-queues"


class Langfuse:
    """One project, kept in memory."""

    def __init__(self) -> None:
        self.configs: list[ScoreConfig] = []
        self.queues: list[AnnotationQueue] = []
        self.items: list[AnnotationQueueItem] = []
        self.traces: dict[str, dict[str, Any]] = {}
        """What each trace shows."""
        self.scores: list[ScoreV3_Categorical | ScoreV3_Numeric] = []
        routes: dict[tuple[str, str], Route] = {
            ("GET", QUEUES): lambda it: self._page(it, self.queues, PaginatedAnnotationQueues),
            ("POST", QUEUES): self._create_queue,
            ("GET", "/api/public/score-configs"): lambda it: self._page(
                it, self.configs, ScoreConfigs
            ),
            ("POST", "/api/public/score-configs"): self._create_config,
            ("GET", f"{QUEUES}/([^/]+)/items"): lambda it: self._page(
                it, self.items, PaginatedAnnotationQueueItems
            ),
            ("POST", f"{QUEUES}/([^/]+)/items"): self._create_item,
            ("DELETE", f"{QUEUES}/([^/]+)/items/([^/]+)"): self._delete_item,
            ("POST", "/api/public/otel/v1/traces"): self._trace,
            ("GET", "/api/public/v3/scores"): self._scores,
        }
        self.routes = {at: self._let_in(route) for at, route in routes.items()}

    def waiting(self) -> list[tuple[str, dict[str, Any]]]:
        """Ids and inputs of the items that nobody has completed."""
        open_ = [item for item in self.items if item.status == "PENDING"]
        return [(item.object_id, self.traces[item.object_id]) for item in open_]

    def everything(self) -> list[dict[str, Any]]:
        """The inputs of all items, the completed ones too."""
        return [self.traces[item.object_id] for item in self.items]

    def say(self, id_: str, answer: str | float) -> None:
        """What a person does in the page: score the trace, and complete the item."""
        now = datetime.now(UTC)
        kind = ScoreV3_Categorical if isinstance(answer, str) else ScoreV3_Numeric
        (queue,) = self.queues
        configs = {one.id: one for one in self.configs}
        asked = [configs[one] for one in queue.score_config_ids]
        wanted = "CATEGORICAL" if isinstance(answer, str) else "NUMERIC"
        config = next(one for one in asked if one.data_type == wanted)
        score = kind(
            id=f"score-{len(self.scores)}",
            project_id="p",
            name=config.name,
            source=ScoreSource.ANNOTATION,
            timestamp=now,
            environment="default",
            created_at=now,
            updated_at=now,
            author_user_id="ann",
            queue_id=queue.id,
            subject=ScoreSubjectV3_Trace(id=id_),
            value=answer,
        )
        self.scores.append(score)
        self.items = [
            it.model_copy(update={"status": AnnotationQueueStatus.COMPLETED})
            if it.object_id == id_
            else it
            for it in self.items
        ]

    def _let_in(self, route: Route) -> Route:
        pair = base64.b64encode(f"{PUBLIC}:{SECRET}".encode()).decode()

        def guarded(request: Request) -> Any:  # noqa: ANN401 -- JSON
            if request.headers.get("Authorization") != f"Basic {pair}":
                raise Declined(401)
            return route(request)

        return guarded

    def _page(self, request: Request, found: list[Any], kind: Any) -> Any:  # noqa: ANN401
        page, limit = int(request.one("page", "1")), int(request.one("limit", "50"))
        assert limit <= 100
        pages = -(-len(found) // limit)
        meta = MetaResponse(page=page, limit=limit, total_items=len(found), total_pages=pages)
        return _json(kind(data=found[(page - 1) * limit : page * limit], meta=meta))

    def _create_config(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        form = _taken(CreateScoreConfigRequest, request.body)
        assert len(form.name) <= 35
        assert (form.categories is None) == (form.data_type == "NUMERIC")
        now = datetime.now(UTC)
        made = ScoreConfig(
            **form.model_dump(),
            id=f"config-{len(self.configs)}",
            project_id="p",
            is_archived=False,
            created_at=now,
            updated_at=now,
        )
        self.configs.append(made)
        return _json(made)

    def _create_queue(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        form = _taken(CreateAnnotationQueueRequest, request.body)
        assert {*form.score_config_ids} <= {one.id for one in self.configs}
        now = datetime.now(UTC)
        made = AnnotationQueue(
            **form.model_dump(), id=f"queue-{len(self.queues)}", created_at=now, updated_at=now
        )
        self.queues.append(made)
        return _json(made)

    def _create_item(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        form = _taken(CreateAnnotationQueueItemRequest, request.body)
        assert form.object_id in self.traces
        now = datetime.now(UTC)
        made = AnnotationQueueItem(
            id=f"item-{len(self.items)}-{form.object_id}",
            queue_id=request.parts[0],
            object_id=form.object_id,
            object_type=form.object_type,
            status="PENDING",
            created_at=now,
            updated_at=now,
        )
        self.items.append(made)
        return _json(made)

    def _delete_item(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        (found,) = [item for item in self.items if item.id == request.parts[1]]
        self.items.remove(found)
        return _json(DeleteAnnotationQueueItemResponse(success=True, message="deleted"))

    def _trace(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        assert {*request.body} == {"resourceSpans"}
        for resource in request.body["resourceSpans"]:
            for scope in _taken(OtelResourceSpan, resource).scope_spans or []:
                for span in scope.spans or []:
                    assert span.model_extra == {}
                    assert (len(span.trace_id), len(span.span_id)) == (32, 16)
                    assert all(one.model_extra == {} for one in span.attributes or [])
                    told = {one.key: one.value.string_value for one in span.attributes or []}
                    self.traces[span.trace_id] = json.loads(told["langfuse.observation.input"])
        return _json(OtelTraceResponse())

    def _scores(self, request: Request) -> Any:  # noqa: ANN401 -- JSON
        limit, start = int(request.one("limit", "50")), int(request.one("cursor", "0"))
        assert limit <= 100
        assert {*request.one("fields").split(",")} <= {"details", "subject", "annotation"}
        assert (request.one("queueId"), request.one("source")) == (self.queues[0].id, "ANNOTATION")
        end = start + limit
        cursor = str(end) if end < len(self.scores) else None
        meta = GetScoresV3Meta(limit=limit, cursor=cursor)
        return _json(GetScoresV3Response(data=self.scores[start:end], meta=meta))


def _taken(kind: type[T], body: object) -> T:
    """A request as the model takes it."""
    model: Any = parse_obj_as(kind, body)
    assert model.model_extra == {}, model.model_extra
    taken: T = model
    return taken


def _json(model: Any) -> Any:  # noqa: ANN401 -- JSON
    return json.loads(model.json())
