"""Logs of the lm-evaluation-harness: samples_<task>_<date>.jsonl beside results_<date>.json.

A line is one document and one filter. Model and direction of a metric stand in the results only.
A log that a session drove (`celeus run lm-eval`) names it in every line: its documents were drawn.
"""

import math
import re
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import PurePath
from typing import Any

from celeus.intake.questions import asked
from celeus.intake.rows import Log, Options, Row, choice_of, chosen, digest_of, refused, text_of
from celeus.intake.sources.files import Source
from celeus.intake.table.numbers import loss_in_log
from celeus.shorten import shortened

_DATE = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?"
_NAME = re.compile(rf"samples_(?P<task>.+)_(?P<date>{_DATE})\.jsonl?")
_BY_ARGUMENT = ("pretrained", "model", "path", "engine")
"""Arguments of a model that name it."""
_SETTINGS = {"versions": "version", "n-shot": "examples shown", "task_hashes": "definition"}
"""Members of the results, each by task, and what they are called here."""
_NO_METRIC = {"doc_id", "prompt_hash", "doc_hash", "target_hash"}
DIRECTIONS = {
    **dict.fromkeys(("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match"), True),
    **dict.fromkeys(("f1", "mcc", "bleu", "chrf"), True),
    **dict.fromkeys(("perplexity", "word_perplexity", "byte_perplexity"), False),
    **dict.fromkeys(("bits_per_byte", "brier_score", "ter"), False),
}
"""Metrics that lm-eval itself registers, with True where more is better."""
PREDICT_ONLY = "bypass"
DRAWN_BY = "drawn_by"
"""Member of a line whose document a session drew: the session."""


@dataclass(frozen=True, slots=True)
class _Run:
    """The facts that file names and results give of a log."""

    task: str
    model: str
    results: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Source) -> "_Run":
        path = PurePath(source.name)
        found = _NAME.fullmatch(path.name)
        beside = None if found is None else source.beside(f"results_{found['date']}.json")
        results = {} if beside is None else beside.document()
        return cls(task_of(source), model_of(results) or path.parent.name or "model", results)

    def higher(self, metric: str) -> bool | None:
        """Return True if more is better: as the results say, else as of the tool's own metrics."""
        higher = self.results.get("higher_is_better", {}).get(self.task, {}).get(metric)
        return higher if isinstance(higher, bool) else DIRECTIONS.get(metric)

    @property
    def scored(self) -> int:
        """The least number of documents with a score, as far as the results say."""
        length = self.results.get("results", {}).get(self.task, {}).get("sample_len")
        return length if isinstance(length, int) else 0

    @property
    def settings(self) -> dict[str, str]:
        """The settings that other logs of the task should share."""
        return settings_of(self.results, self.task)


def settings_of(results: dict[str, Any], task: str) -> dict[str, str]:
    """The settings of these results, which other logs of the task should share."""
    settings = {name: results.get(key, {}) for key, name in _SETTINGS.items()}
    return {
        f"{name} of {task}": str(values[task])
        for name, values in settings.items()
        if values.get(task) is not None
    }


def model_of(results: dict[str, Any]) -> str | None:
    """The model of a run: its path where an argument says one, else its kind and all arguments."""
    config = results.get("config", {})
    arguments = config.get("model_args") or {}
    if isinstance(arguments, str):
        pairs = (argument.partition("=") for argument in arguments.split(",") if argument)
        arguments = {name: value for name, _, value in pairs}
    for name in _BY_ARGUMENT:
        if isinstance(arguments.get(name), str):
            return str(arguments[name])
    if not arguments or config.get("model") is None:
        name = results.get("model_name") or config.get("model")
        return None if name is None else str(name)
    listed = ",".join(f"{name}={value}" for name, value in arguments.items())
    return f"{config['model']}({listed})"


def task_of(source: Source) -> str:
    """The task a log is of, by its name."""
    path = PurePath(source.name)
    found = _NAME.fullmatch(path.name)
    return path.stem.removeprefix("samples_") if found is None else found["task"]


def wanted(source: Source, options: Options) -> bool:
    """Return True if the log is of a task that is asked for."""
    task = task_of(source)
    return not options.tasks or any(fnmatch(task, pattern) for pattern in options.tasks)


def read(source: Source, options: Options) -> Log:
    """The rows of one samples file: one filter, one metric."""
    run = _Run.of(source)
    lines = [(number, _checked(source, number, line)) for number, line in source.lines()]
    if not lines:
        raise refused(f"{source.name} has no documents", "log")
    filters = list(dict.fromkeys(line.get("filter", "none") for _, line in lines))
    both = (
        choice_of(filters, options.filter, "filter"),
        choice_of(_metrics(source, lines[0][1]), options.metric, "metric"),
    )
    questions = [question for question in both if question is not None]
    if len(questions) > 1:
        raise asked(source.name, questions)
    name = chosen(filters, options.filter, source.name, "filter")
    kept = [(number, line) for number, line in lines if line.get("filter", "none") == name]
    if len(kept) < run.scored:
        counts = f"{len(kept)} documents where its results count {run.scored}"
        raise refused(f"{source.name} has {counts}: is it whole?", "log")
    metric = chosen(_metrics(source, kept[0][1]), options.metric, source.name, "metric")
    higher = options.direction(source.name, metric, documented=run.higher(metric))
    likeliest = all(_counts_likeliest(line) for _, line in kept)
    score = metric, higher
    reading = Reading(source.name, run.task, run.model, score, options, several(options), likeliest)
    return Log(source.name, [reading.row(line) for _, line in kept], run.settings)


def several(options: Options) -> bool:
    """Return True if several tasks are asked for, whose items have the task in their names."""
    return len(options.tasks) > 1 or any("*" in pattern for pattern in options.tasks)


def _checked(source: Source, number: int, line: dict[str, Any]) -> dict[str, Any]:
    if not line.keys() >= {"doc_id", "doc", "resps", "arguments"}:
        how = "give the file samples_<task>_<date>.jsonl of a run with --log_samples"
        raise refused(f"line {number} of {source.name} is no sample of lm-eval: {how}", "log")
    # The other raw answers, and the document where it has a hash, are most of a line and of no use
    line["resps"] = line["resps"][:1]
    if line.get("doc_hash"):
        del line["doc"]
    return line


def _metrics(source: Source, line: dict[str, Any]) -> list[str]:
    """The metrics of a document; before they were listed, all numbers beside the known ones."""
    listed = line.get("metrics")
    if listed is None:
        listed = [
            name
            for name, value in line.items()
            if isinstance(value, int | float) and name not in _NO_METRIC
        ]
    if PREDICT_ONLY in listed:
        how = "run it again without --predict_only"
        raise refused(f"{source.name} has answers and no scores: {how}", "metric")
    return list(listed)


@dataclass(frozen=True, slots=True)
class Reading:
    """Reads lines of a task's log as rows; ``score`` is its name, and whether more is better.

    ``place`` is what refusals call the log. With ``likeliest`` its `acc` counts the likeliest
    choice, which then is the model's prediction where that is the score.
    """

    place: str
    task: str
    model: str
    score: tuple[str, bool]
    options: Options
    grouped: bool
    likeliest: bool = False

    def row(self, line: dict[str, Any]) -> Row:
        """The row in a line; without a loss where it has no score."""
        metric, higher = self.score
        name = str(line["doc_id"])
        if self.grouped:
            name = f"{self.task}/{name}"
        arguments = _arguments(line["arguments"])
        answers = line.get("filtered_resps") or []
        choices = tuple(str(argument[1]).strip() for argument in arguments if len(argument) > 1)
        multiple = _is_multiple(arguments, answers)
        target = text_of(line.get("target"))
        if multiple and target is not None and (self.likeliest or target not in choices):
            target = _choice(target, choices)
        by_choice = answers if multiple and self.likeliest and metric == "acc" else []
        place = f"item {name} of {self.place}"
        score, weight = _score(line.get(metric), metric, place)
        return Row(
            id=name,
            model=self.model,
            loss=loss_in_log(self.options, score, place, higher=higher),
            question=text_of(arguments[0][0]) if arguments and arguments[0] else None,
            reference=target,
            answer=None if multiple else _raw(line),
            extracted=text_of(answers[0]) if answers and not multiple else None,
            prediction=_most_likely(by_choice),
            choices=choices if multiple else (),
            confidence=_confidence(by_choice),
            check=line["doc_hash"] if line.get("doc_hash") else digest_of(line["doc"]),
            group=self.task if self.grouped else None,
            weight=weight,
            drawn=DRAWN_BY in line,
        )


def _score(value: object, metric: str, place: str) -> tuple[object, float]:
    """The score of a document, and what it counts in the tool's mean over all.

    Some tasks score the parts of a document, such as its instructions, and count every part once.
    """
    if not isinstance(value, list | tuple):
        return value, 1.0
    if value and all(isinstance(part, bool | int) and part in {0, 1} for part in value):
        return math.fsum(value) / len(value), float(len(value))
    why = "is no mean over the documents: choose a metric that is one"
    raise refused(f"{place}: {metric} has {shortened(value)} for a document, and {why}", "metric")


def _raw(line: dict[str, Any]) -> str | None:
    """The first answer as the model gave it, before a filter took its part of it."""
    first = line["resps"][0] if line.get("resps") else None
    while isinstance(first, list | tuple) and first:
        first = first[0]
    return None if isinstance(first, list | tuple) else text_of(first)


def _arguments(arguments: Any) -> list[list[Any]]:  # noqa: ANN401 -- two forms
    """Prompt and continuation of every request: objects of objects in files, lists in memory."""
    if isinstance(arguments, dict):
        arguments = [
            list(given.values()) if isinstance(given, dict) else given
            for given in arguments.values()
        ]
    return [list(given) if isinstance(given, list | tuple) else [given] for given in arguments]


def _choice(target: str, choices: tuple[str, ...]) -> str:
    """The choice at the place that the target is, or the target itself."""
    return choices[int(target)] if target.isdecimal() and int(target) < len(choices) else target


def _is_multiple(arguments: list[list[Any]], answers: list[Any]) -> bool:
    return len(arguments) > 1 and all(isinstance(answer, list) for answer in answers)


def _counts_likeliest(line: dict[str, Any]) -> bool:
    """Return True if `acc` says only that the likeliest choice of a document is right.

    In some tasks it is a share of the probability, or uses likelihoods that are adjusted first.
    """
    score, answers = line.get("acc"), line.get("filtered_resps") or []
    if not isinstance(score, int | float) or not math.isfinite(score):
        return True
    if not _is_multiple(_arguments(line["arguments"]), answers):
        return True
    target = text_of(line.get("target")) or ""
    right = int(target) == _most_likely(answers) if target.isdecimal() else bool(score)
    return score in {0, 1} and bool(score) == right


def _most_likely(answers: list[list[Any]]) -> int | None:
    """The place of the greatest log-likelihood."""
    likelihoods = _likelihoods(answers)
    return max(range(len(likelihoods)), key=likelihoods.__getitem__, default=None)


def _confidence(answers: list[list[Any]]) -> float | None:
    """The probability of the likeliest choice, one of them being right."""
    likelihoods = _likelihoods(answers)
    if not likelihoods or not all(map(math.isfinite, likelihoods)):
        return None
    most = max(likelihoods)
    return 1 / math.fsum(math.exp(likelihood - most) for likelihood in likelihoods)


def _likelihoods(answers: list[list[Any]]) -> list[float]:
    """Log-likelihoods, which files hold as text; none where one is no number."""
    try:
        return [float(answer[0]) for answer in answers]
    except (TypeError, ValueError, IndexError):
        return []
