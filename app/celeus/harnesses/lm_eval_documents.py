"""Documents of the lm-evaluation-harness: every request built once, and run where it is drawn.

A full run takes the examples in its prompts from one stream of random numbers, document by
document. lm-eval's own choice of documents (`samples=`) would therefore give a document another
prompt by what is drawn beside it, and its loss would depend on when it is drawn. So lm-eval's own
full run builds all requests here, and is left before the first of them reaches the model.
"""

import json
import math
import os
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from inspect import signature
from itertools import chain
from typing import Any, Never

import numpy as np
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.api.registry import get_model
from lm_eval.evaluator_utils import get_sample_size
from lm_eval.tasks import TaskManager
from lm_eval.utils import (
    handle_non_serializable,
    hash_string,
    sanitize_list,
    simple_parse_args_string,
)

from celeus.errors import InvalidValue
from celeus.intake.formats.lm_eval import Reading, model_of, settings_of, several
from celeus.intake.rows import Options, Row, chosen, refused
from celeus.seeds import new_seed

HASHES = ("doc_hash", "prompt_hash", "target_hash")
"""Members of a sample that tell what was asked; those of an item's payload."""
_DECLINES = (AssertionError, KeyError, OSError, RuntimeError, TypeError, ValueError)
_PROBE = (0.0, 0.25, 1.0)
_NOT_FRESH = "with a fixed seed no run is fresh, which the claim is about"


@dataclass(frozen=True, slots=True)
class Settings:
    """The tasks, model and prompts lm-eval is to run, named like its own options."""

    tasks: tuple[str, ...]
    model: str
    model_args: str = ""
    num_fewshot: int | None = None
    limit: int | None = None
    apply_chat_template: bool = False
    fewshot_as_multiturn: bool | None = None
    system_instruction: str | None = None
    gen_kwargs: str | None = None
    include_path: str | None = None
    confirm_run_unsafe_code: bool = False

    @property
    def config(self) -> dict[str, Any]:
        """Model and arguments as the results of a run have them."""
        return {"model": self.model, "model_args": self.model_args}

    @property
    def name(self) -> str:
        """The model's name, the same that a reader of its log gives it."""
        return model_of({"config": self.config}) or self.model


@dataclass(frozen=True, slots=True)
class Machine:
    """Batch sizes and device of a model, which change a loss in its last digit at most."""

    batch_size: str | None = None
    max_batch_size: int | None = None
    device: str | None = None


class Documents:
    """The documents of some tasks and the model that answers them; ``ids`` are those of a log.

    Refuses tasks, metrics and filters that there are not, and a metric that is no mean of numbers.
    """

    def __init__(self, settings: Settings, options: Options) -> None:
        self.settings = settings
        if not settings.tasks:
            raise refused("name a task, or several with commas between, with --tasks", "tasks")
        with _declined(f"tasks {', '.join(settings.tasks)}"):
            self._manager = _loaded(settings)
            loaded = self._manager.load(settings.tasks)
        self._tasks: dict[str, Any] = loaded["tasks"]
        self._groups: dict[str, Any] = loaded["groups"]
        self._model: LM | None = None
        options = _complete(self._tasks, options)
        self.metric, self.filter = str(options.metric), str(options.filter)
        self.options = replace(options, tasks=tuple(self._tasks))
        self._readings = {}
        for name, task in self._tasks.items():
            higher_is_better = task.higher_is_better().get(self.metric)
            self.higher = self.options.direction(name, self.metric, documented=higher_is_better)
            self._readings[name] = Reading(
                f"the run of {name}",
                name,
                settings.name,
                (self.metric, self.higher),
                self.options,
                several(self.options),
            )
        if len({reading.score for reading in self._readings.values()}) > 1:
            how = "say --given better=higher or better=lower"
            raise refused(f"tasks differ in which {self.metric} is better: {how}", "metric")

    def start(self, machine: Machine, *, fresh: bool = False) -> None:
        """Load the model, once; ``fresh`` has it answer by chance, each time anew."""
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise _alone("WORLD_SIZE")
        settings = self.settings
        with _declined(f"model {settings.model}"):
            kind = get_model(settings.model)
            arguments = settings.model_args
            if fresh:
                arguments = _without_seed(arguments, kind)
            model = kind.create_from_arg_string(
                arguments,
                {
                    "batch_size": machine.batch_size,
                    "max_batch_size": machine.max_batch_size,
                    "device": machine.device,
                },
            )
        if model.world_size > 1:
            raise _alone("world_size")
        if fresh and hasattr(model, "_seed"):
            # An endpoint is sent it with every request
            model._seed = None  # noqa: SLF001
        self._model = model

    def free(self) -> None:
        """Have chance decide what the model answers; refuses requests that chance does not decide.

        lm-eval seeds all random numbers when requests are built: each start would repeat the runs
        of the one before.
        """
        asked = [
            request.args[1] if request.request_type == "generate_until" else {}
            for sample in self._samples.values()
            for request in sample.requests
        ]
        if any("seed" in given for given in asked):
            raise refused(f"{_NOT_FRESH}: leave the seed out of --gen_kwargs", "gen_kwargs")
        # An endpoint is not sent do_sample, and a local model takes no sample where it is false
        if not any(given.get("temperature") and given.get("do_sample", True) for given in asked):
            how = "say --gen_kwargs temperature=0.7,do_sample=true, or leave out target=runs"
            what = f"{', '.join(self.settings.tasks)} is answered without chance"
            raise refused(f"{what}, so that every run would be the same: {how}", "target")
        random.seed()
        np.random.seed()  # noqa: NPY002 -- what models draw from
        if torch := sys.modules.get("torch"):
            torch.seed()

    def build(self) -> None:
        """Make every request as a full run does; a chat template needs the model for it."""
        settings = self.settings
        multiturn = settings.fewshot_as_multiturn
        with _declined(f"tasks {', '.join(settings.tasks)}"):
            try:
                simple_evaluate(
                    model=_Builder(self._model),
                    tasks=[*settings.tasks],
                    num_fewshot=settings.num_fewshot,
                    limit=settings.limit,
                    bootstrap_iters=0,
                    system_instruction=settings.system_instruction,
                    apply_chat_template=settings.apply_chat_template,
                    fewshot_as_multiturn=settings.apply_chat_template
                    if multiturn is None
                    else multiturn,
                    gen_kwargs=settings.gen_kwargs,
                    task_manager=self._manager,
                    confirm_run_unsafe_code=settings.confirm_run_unsafe_code,
                )
            except _Built:
                return
        raise refused(f"{', '.join(settings.tasks)} asks the model nothing", "tasks")

    @cached_property
    def _samples(self) -> dict[str, "_Sample"]:
        """All documents by their ids, once they are built."""
        found = {}
        for name, task in self._tasks.items():
            requests = defaultdict(list)
            for instance in task.instances:
                requests[instance.doc_id].append(instance)
            limit = get_sample_size(task, self.settings.limit)
            for number, document in task.doc_iterator(rank=0, limit=limit, world_size=1):
                requests_of = sorted(requests[number], key=lambda instance: instance.idx)
                sample = _Sample(name, task, number, document, requests_of)
                found[self._readings[name].row(sample.line()).id] = sample
        return found

    @cached_property
    def rows(self) -> list[Row]:
        """Return all documents as unanswered rows."""
        return [self._readings[sample.name].row(sample.line()) for sample in self._samples.values()]

    def has(self, name: str) -> bool:
        """Return True if there is a document of this id."""
        return name in self._samples

    def hashes(self, name: str) -> dict[str, str]:
        """Return the hashes of a document, its prompt and its target."""
        return self._hashes[name]

    @cached_property
    def _hashes(self) -> dict[str, dict[str, str]]:
        lines = ((name, sample.line()) for name, sample in self._samples.items())
        return {name: {member: line[member] for member in HASHES} for name, line in lines}

    def run(self, names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
        """Run these documents, and return their lines as a log has them, one for every filter."""
        samples = [self._samples[name] for name in names]
        kinds: dict[str, list[Any]] = defaultdict(list)
        for sample in samples:
            for request in sample.requests:
                request.resps, request.filtered_resps = [], {}
                kinds[request.request_type] += [request] * request.repeats
        for kind, requests in kinds.items():
            answers = getattr(self._model, kind)(requests)
            for request, answer in zip(requests, answers, strict=True):
                request.resps.append(answer)
        for task in {id(sample.task): sample.task for sample in samples}.values():
            # What the task's filters are applied to
            requests = [sample.requests for sample in samples if sample.task is task]
            task._instances = [*chain.from_iterable(requests)]  # noqa: SLF001
            task.apply_filters()
        return {name: sample.lines() for name, sample in zip(names, samples, strict=True)}

    def loss(self, name: str, lines: Sequence[dict[str, Any]]) -> float | None:
        """The loss that the lines of a document say; None where there is no score."""
        (line,) = (line for line in lines if line["filter"] == self.filter)
        return self._readings[self._samples[name].name].row(line).loss

    def task_of(self, name: str) -> str:
        """The task of a document."""
        return self._samples[name].name

    @cached_property
    def results(self) -> dict[str, Any]:
        """Tasks and model as a full run's results describe them, without any score."""
        hashes: dict[str, list[str]] = {name: [] for name in self._tasks}
        for name, sample in self._samples.items():
            hashes[sample.name].append("".join(self.hashes(name).values()))
        tasks = self._tasks.items()
        return {
            "configs": {name: dict(task.dump_config()) for name, task in tasks},
            "versions": {name: task.VERSION for name, task in tasks},
            "n-shot": {name: task.get_config("num_fewshot") or 0 for name, task in tasks},
            "higher_is_better": {
                name: {**task.higher_is_better(), self.metric: self._readings[name].score[1]}
                for name, task in tasks
            },
            "task_hashes": {name: hash_string("".join(some)) for name, some in hashes.items()},
            "config": {**self.settings.config, "limit": self.settings.limit},
            "model_name": self.settings.name,
            "lm_eval_version": version("lm_eval"),
        }

    @property
    def shared(self) -> dict[str, str]:
        """Settings that logs of the same tasks should share, by name."""
        return {
            name: value
            for task in self._tasks
            for name, value in settings_of(self.results, task).items()
        }

    def average(self) -> str | None:
        """Say how the mean of all documents relates to lm-eval's figure for several tasks."""
        if len(self._tasks) == 1:
            return None
        name, *more = self.settings.tasks
        group = None if more else self._groups.get(name)
        listed = (group and group.aggregate_metric_list) or ()
        metrics = [metric for metric in listed if metric.metric == self.metric]
        if not metrics:
            return f"lm-eval reports no {self.metric} of all these tasks together"
        if all(metric.weight_by_size for metric in metrics):
            return f"the average that lm-eval reports of {name}, which weighs tasks by their size"
        return f"not the average that lm-eval reports of {name}, in which all tasks weigh the same"


@dataclass(frozen=True, slots=True)
class _Sample:
    """A document of a task, and what is asked of it."""

    name: str
    task: Any
    number: int
    document: Any
    requests: list[Any]

    def line(self) -> dict[str, Any]:
        """Return a log's line as it is before there is an answer."""
        target = self.task.doc_to_target(self.document)
        first = self.requests[0]
        text = json.dumps(first.doc, indent=2, default=handle_non_serializable, ensure_ascii=False)
        return {
            "doc_id": self.number,
            "doc": self.document,
            "target": str(target),
            "arguments": {
                f"gen_args_{index}": {
                    f"arg_{part}": argument for part, argument in enumerate(request.args)
                }
                for index, request in enumerate(self.requests)
            },
            "doc_hash": hash_string(text),
            "prompt_hash": hash_string(first.arguments[0]),
            "target_hash": hash_string(str(target)),
        }

    def lines(self) -> list[dict[str, Any]]:
        """The lines that a log has of the document once it is answered."""
        found = []
        for name in self.requests[0].filtered_resps:
            answers = [request.filtered_resps[name] for request in self.requests]
            scores = self.task.process_results(self.document, answers)
            line = self.line() | {
                "resps": sanitize_list([request.resps for request in self.requests]),
                "filtered_resps": sanitize_list(answers),
                "filter": name,
                "metrics": [*scores],
            }
            text = json.dumps(line | scores, default=handle_non_serializable, ensure_ascii=False)
            found.append(json.loads(text))
        return found


def _without_seed(arguments: str, kind: type[LM]) -> str:
    """Return a model's arguments with a seed of this start alone; refuses one that is given.

    The engine of a local model has one, and draws on from it.
    """
    if "seed" in simple_parse_args_string(arguments):
        raise refused(f"{_NOT_FRESH}: leave the seed out of --model_args", "model_args")
    if "seed" not in signature(kind).parameters:
        return arguments
    seed = f"seed={int.from_bytes(new_seed()[:4])}"
    return f"{arguments},{seed}" if arguments else seed


class _Built(Exception):
    """Every request is built."""


class _Builder(LM):  # type: ignore[misc]  # it ships no types
    """Stands for a model while requests are built; the first one that is to be run ends that."""

    def __init__(self, model: LM | None) -> None:
        super().__init__()
        self._model = model
        self.MULTIMODAL = getattr(model, "MULTIMODAL", False)

    @property
    def tokenizer_name(self) -> str:
        """The model's own."""
        return str(getattr(self._model, "tokenizer_name", ""))

    def apply_chat_template(self, *messages: Any, **options: Any) -> str:  # noqa: ANN401
        """Apply the model's template."""
        return str(self._model.apply_chat_template(*messages, **options))  # type: ignore[union-attr]

    def loglikelihood(self, requests: list[Any]) -> Never:
        """The end of building."""
        raise _Built(len(requests))

    generate_until = loglikelihood_rolling = loglikelihood


class _Manager(TaskManager):  # type: ignore[misc]  # it ships no types
    """Loads tasks once, whoever asks again."""

    def __init__(self, settings: Settings, *, from_path_only: bool) -> None:
        metadata = simple_parse_args_string(settings.model_args)
        path = settings.include_path
        super().__init__(include_path=path, include_defaults=not from_path_only, metadata=metadata)
        self._loaded = super().load([*settings.tasks])

    def load(self, _: object) -> dict[str, Any]:
        """Tasks and groups by name."""
        loaded: dict[str, Any] = self._loaded
        return loaded


def _loaded(settings: Settings) -> _Manager:
    """The tasks, of one's own folder where all are in it: to index lm-eval's takes seconds."""
    if settings.include_path is not None:
        with suppress(KeyError, ValueError):
            return _Manager(settings, from_path_only=True)
    return _Manager(settings, from_path_only=False)


def _complete(tasks: Mapping[str, Any], options: Options) -> Options:
    """The options with the metric and filter that all tasks have; refused where one has none."""
    for name, task in tasks.items():
        aggregations = task.aggregation()
        metric = chosen([*aggregations], options.metric, name, "metric")
        filter_ = chosen([part.name for part in task._filters], options.filter, name, "filter")  # noqa: SLF001
        if not _is_mean(aggregations[metric]):
            what = getattr(aggregations[metric], "__name__", "a function of its own")
            how = "choose a metric whose value is the mean of a number for each document"
            raise refused(f"{metric} of {name} is made by {what}: {how}", "metric")
        options = replace(options, metric=metric, filter=filter_)
    return options


def _is_mean(aggregate: Callable[[list[float]], Any]) -> bool:
    """Return True if a tool's aggregate of some numbers is their mean."""
    try:
        return math.isclose(aggregate([*_PROBE]), math.fsum(_PROBE) / len(_PROBE))
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError):
        return False


def _alone(name: str) -> InvalidValue:
    how = "start it once, without accelerate launch or torchrun"
    return refused(f"{name} is more than 1, and a session is driven by one process: {how}", name)


@contextmanager
def _declined(what: str) -> Iterator[None]:
    """Have what lm-eval declines be a refusal in one line."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise refused(f"{what} needs more than is installed here: {error}") from error
    except _DECLINES as error:
        message = error.args[0] if isinstance(error, KeyError) and error.args else error
        raise refused(f"lm-eval declines {what}: {message}") from error
