"""MLflow, from 3.14 on: a review queue of traces that hold what a session has drawn."""

import importlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from celeus.bridges.loop import Verdict
from celeus.bridges.questions import CANNOT_TELL, Question, Task, members_of
from celeus.bridges.tool import ToolUnavailable
from celeus.client.service import plain
from celeus.errors import InvalidValue

SCHEMA = "verdict"
TAG = "celeus.mark"
PAGE = 100
SERVER_ERRORS = 500


class ReviewQueue:
    """The queue of a session in an experiment of its own, made at first and found by name later.

    Every item is a new trace with the payload alone as its input: of traces that are there people
    would see what other judges have said.
    """

    name = "MLflow"

    def __init__(self, session: str, question: Question) -> None:
        self._question = question
        try:
            self._mlflow = importlib.import_module("mlflow")
            self._queues = importlib.import_module("mlflow.genai.review_queues")
            self._schemas = importlib.import_module("mlflow.genai.label_schemas")
        except ModuleNotFoundError:
            rule = "MLflow 3.14 or later beside celeus: pip install 'mlflow>=3.14'"
            raise InvalidValue(f"this needs {rule}", field="mlflow", rule=rule) from None
        self._client = self._mlflow.MlflowClient()
        with self._met():
            self.experiment, self._queue = self._opened(f"Celeus {session}")

    def put(self, tasks: Sequence[Task]) -> None:
        """Make a trace of each task, and add it to the queue."""
        with self._met():
            for task in tasks:
                span = self._mlflow.start_span_no_context(
                    "item",
                    inputs=members_of(task),
                    tags={TAG: task.mark},
                    experiment_id=self.experiment,
                )
                span.end()
                self._mlflow.flush_trace_async_logging()
                self._queues.add_items_to_review_queue(self._queue, item_ids=[span.trace_id])

    def done(self) -> Mapping[str, Verdict | None]:
        """Return every item of the queue by mark, a complete one with its last answer."""
        with self._met():
            known = self._traces()
            verdicts: dict[str, Verdict | None] = {}
            for item in self._items():
                if item.item_id not in known:
                    continue
                mark = known[item.item_id].tags[TAG]
                # Where an answer was lost two items may bear a mark: the first verdict counts
                if verdicts.get(mark) is None:
                    verdicts[mark] = self._verdict(item, known[item.item_id])
            return verdicts

    def take_back(self, marks: Collection[str]) -> None:
        """Remove the pending items without an answer."""
        with self._met():
            known = self._traces()
            free = [
                item.item_id
                for item in self._items()
                if str(item.status) == "pending"
                and (info := known.get(item.item_id)) is not None
                and info.tags[TAG] in marks
                and not self._answers(info)
            ]
            if free:
                self._queues.remove_items_from_review_queue(self._queue, item_ids=free)

    def _opened(self, name: str) -> tuple[str, str]:
        """Experiment and queue of this name."""
        found = self._client.get_experiment_by_name(name)
        experiment = found.experiment_id if found else self._client.create_experiment(name)
        for queue in self._queues.list_review_queues(experiment_id=experiment):
            if queue.name == name:
                return experiment, queue.queue_id
        known = {schema.name: schema for schema in self._schemas.list_label_schemas(experiment)}
        schema = known.get(SCHEMA) or self._schemas.create_label_schema(
            name=SCHEMA,
            type="feedback",
            input=self._input(),
            instruction=self._question.text,
            experiment_id=experiment,
        )
        queue = self._queues.create_review_queue(
            name, queue_type="custom", schema_ids=[schema.schema_id], experiment_id=experiment
        )
        return experiment, queue.queue_id

    def _input(self) -> object:
        if self._question.takes is None:
            options = [*self._question.options, CANNOT_TELL]
            return self._schemas.InputCategorical(options=options)
        upper = self._question.upper if self._question.takes == "loss" else None
        return self._schemas.InputNumeric(min_value=self._question.lower, max_value=upper)

    def _items(self) -> Iterator[Any]:
        return _pages(
            lambda token: self._queues.list_review_queue_items(
                self._queue, max_results=PAGE, page_token=token
            )
        )

    def _traces(self) -> dict[str, Any]:
        """Return the information on this experiment's traces, answers included, by id."""
        traces = _pages(
            lambda token: self._client.search_traces(
                locations=[self.experiment],
                include_spans=False,
                max_results=PAGE,
                page_token=token,
            )
        )
        return {trace.info.trace_id: trace.info for trace in traces if TAG in trace.info.tags}

    def _answers(self, info: Any) -> list[Any]:  # noqa: ANN401 -- of MLflow
        """Return people's answers to the question, oldest first."""
        answers = [
            assessment
            for assessment in info.assessments
            if assessment.name == SCHEMA
            and assessment.source.source_type == "HUMAN"
            and assessment.valid is not False
        ]
        return sorted(
            answers, key=lambda answer: (answer.last_update_time_ms, answer.create_time_ms)
        )

    def _verdict(self, item: Any, info: Any) -> Verdict | None:  # noqa: ANN401 -- of MLflow
        if str(item.status) == "pending":
            return None
        by = item.completed_by or ""
        if str(item.status) == "declined":
            return Verdict({"unjudgeable": "declined"}, by)
        answers = self._answers(info)
        judgement = self._question.judgement_of(answers[-1].feedback.value) if answers else None
        why = "the item is complete without an answer that was asked for; give it one there"
        return Verdict(judgement, by, "" if judgement else why)

    @contextmanager
    def _met(self) -> Iterator[None]:
        """Turn MLflow's errors into those of a bridge: `ToolUnavailable`, or `InvalidValue`."""
        try:
            yield
        except self._mlflow.exceptions.MlflowException as error:
            detail = plain(str(error))
            if error.get_http_status_code() >= SERVER_ERRORS:
                raise ToolUnavailable(f"MLflow does not answer: {detail}") from None
            raise InvalidValue(f"MLflow declines: {detail}", field="mlflow") from None


def _pages(page: Callable[[str | None], Any]) -> Iterator[Any]:
    """Yield the entries of all pages."""
    token = None
    while True:
        found = page(token)
        yield from found
        token = found.token
        if not token:
            return
