"""Logs of Inspect AI: .eval, a zip archive of JSON, or .json.

A log that a session drove (`celeus.inspect`) names it in its metadata: its samples were drawn.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from celeus.intake.rows import Log, Options, Row, chosen, digest_of, refused, text_of
from celeus.intake.sources.archives import Archive
from celeus.intake.sources.files import Source, under
from celeus.shorten import shortened

HEADER = "header.json"
START = "_journal/start.json"
DRAWN_BY = "celeus"
"""Member of the metadata that names the session."""
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Values of words, as in Inspect's own value_to_float: correct, partial, incorrect, no answer."""
_ATTACHMENT = re.compile(r"attachment://([0-9a-f]{32})")
_USED = (
    *("id", "epoch", "input", "target", "choices", "scores", "output", "error"),
    *("invalidation", "attachments"),
)
_SETTINGS = ("task_version", "task_args", "model_roles")


def read(source: Source, options: Options) -> Log:
    """The rows of a finished log: one scorer, an epoch a repeat."""
    with source.open() as file:
        if file.read(2) == b"PK":
            archive = Archive(source.name, file)
            head = _head(archive)
            samples = _samples(archive)
        else:
            head = source.document()
            under(source, head, "eval")
            samples = iter(head.get("samples") or ())
        _check(source, head)
        evaluation = head["eval"]
        task, settings = evaluation.get("task", ""), {}
        for name in _SETTINGS:
            if evaluation.get(name) not in (None, {}):
                settings[f"{name} of {task}"] = json.dumps(evaluation[name], sort_keys=True)
        rows = list(
            _rows(source, options, str(under(source, head, "eval", "model")), list(samples))
        )
    if _of_session(head):
        rows = [replace(row, drawn=True) for row in rows]
    return Log(source.name, rows, settings)


def is_drawn(source: Source) -> bool:
    """Return True if a session chose the samples of a log, finished or not."""
    with source.open() as file:
        packed = file.read(2) == b"PK"
        return _of_session(_head(Archive(source.name, file)) if packed else source.document())


def _of_session(head: object) -> bool:
    evaluation = head.get("eval") if isinstance(head, dict) else None
    metadata = evaluation.get("metadata") if isinstance(evaluation, dict) else None
    return isinstance(metadata, dict) and DRAWN_BY in metadata


def _head(archive: Archive) -> dict[str, Any]:
    for member in (HEADER, START):
        if member in archive.members:
            head: dict[str, Any] = _document(archive, member)
            return head
    raise refused(f"{archive.name} has no {HEADER}: it is no log of Inspect", "log")


def _samples(archive: Archive) -> Iterator[dict[str, Any]]:
    for member in archive.members:
        if member.startswith("samples/"):
            sample = _document(archive, member)
            # All that happened on the way is most of it, and of no use here
            yield {name: sample[name] for name in _USED if name in sample}


def _document(archive: Archive, member: str) -> Any:  # noqa: ANN401 -- any JSON
    try:
        return json.loads(archive.read(member))
    except (ValueError, RecursionError) as error:
        raise refused(f"{member} of {archive.name} is no JSON: {error}", "log") from error


def _check(source: Source, head: dict[str, Any]) -> None:
    """Refuse a log that is no result: of a run that did not finish, or withdrawn since."""
    under(source, head, "eval")
    if head.get("invalidated"):
        raise refused(f"{source.name} is marked invalid by whoever ran it: leave it out", "log")
    status = head.get("status", "started")
    if status != "success":
        how = "finish the run with inspect eval-retry, or leave it out"
        raise refused(f"{source.name} is of a run with the status {status}: {how}", "log")


def _rows(
    source: Source, options: Options, model: str, samples: list[dict[str, Any]]
) -> Iterator[Row]:
    if not samples:
        raise refused(f"{source.name} has no samples", "log")
    scorers = dict.fromkeys(name for sample in samples for name in sample.get("scores") or {})
    if not scorers:
        raise refused(f"{source.name} has no scores", "metric")
    scorer, part = scorer_of(list(scorers), options, source.name)
    for sample in samples:
        place = f"item {sample['id']} of {source.name}"
        score = None if _void(sample) else (sample.get("scores") or {}).get(scorer)
        answer = (score or {}).get("answer")
        if answer is None:
            answer = (sample.get("output") or {}).get("completion")
        item = item_of(sample)
        yield replace(
            item,
            model=model,
            loss=loss_of(score, part, (scorer, place, options)),
            repeat=int(sample.get("epoch", 1)),
            answer=None if _void(sample) else _with_attachments(text_of(answer), sample),
        )


def scorer_of(names: list[str], options: Options, place: str) -> tuple[str, str | None]:
    """The scorer that is asked for, and the part of its scores; both may have a slash in them."""
    metric = options.metric
    for name in sorted(names, key=len, reverse=True):
        if metric is not None and metric.startswith(f"{name}/"):
            return name, metric.removeprefix(f"{name}/")
    return chosen(names, metric, place, "metric"), None


def item_of(sample: Mapping[str, Any]) -> Row:
    """The item that a sample of a data set or of a log is, as JSON has it: answered by nobody."""
    question = _with_attachments(_conversation(sample.get("input")), sample)
    target, choices = sample.get("target"), sample.get("choices")
    return Row(
        id=str(sample["id"]),
        model="",
        loss=None,
        question=question,
        reference=_reference(target),
        choices=tuple(map(str, choices or ())),
        check=digest_of(question, target, choices),
    )


def _void(sample: Mapping[str, Any]) -> bool:
    """The sample ended in an error, or is withdrawn."""
    return bool(sample.get("error") or sample.get("invalidation"))


def _reference(target: object) -> str | None:
    """The target as text: of several, all of them."""
    if isinstance(target, list) and all(isinstance(part, str) for part in target):
        return ", ".join(target)
    return text_of(target)


def loss_of(
    score: Mapping[str, Any] | None, part: str | None, asked: tuple[str, str, Options]
) -> float | None:
    """The loss that a score, or the part of it, means; None where there is none, or NaN.

    ``asked`` are the name of the scorer, the place for refusals, and how scores are to be read.
    """
    scorer, place, options = asked
    value = None if score is None else score.get("value")
    if isinstance(value, dict | list):
        values = value if isinstance(value, dict) else dict(enumerate(value))
        named = {f"{scorer}/{name}": inner for name, inner in values.items()}
        wanted = None if part is None else f"{scorer}/{part}"
        value = named[chosen(list(named), wanted, place, "metric")]
    elif part is not None and value is not None and not _missing(value):
        raise refused(f"{place} has no metric {scorer}/{part}: {scorer} is one value", "metric")
    if isinstance(value, bool):
        value = float(value)
    elif isinstance(value, str):
        grade = GRADES.get(value, GRADES.get(value.lower()))
        if grade is None:
            return options.loss(
                _number(value, place), place, higher=options.direction(place, scorer)
            )
        value = grade
    elif value is None or _missing(value):
        return None
    else:
        return options.loss(value, place, higher=options.direction(place, scorer))
    return options.loss(value, place, higher=options.higher is not False)


def _number(word: str, place: str) -> float:
    try:
        return float(word)
    except ValueError:
        what = f"{place} has the score {shortened(word)}, which is no number"
        raise refused(what, "metric") from None


def _missing(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _conversation(given: object) -> str | None:
    """A prompt as text: chat messages one below the other."""
    if not isinstance(given, list):
        return text_of(given)
    parts = []
    for message in given:
        content = message.get("content")
        if isinstance(content, list):
            content = "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in content)
        parts.append(f"{message.get('role')}: {content}")
    return "\n\n".join(parts)


def _with_attachments(text: str | None, sample: Mapping[str, Any]) -> str | None:
    """Text with its long parts, which stand elsewhere in the sample, in their places."""
    held = sample.get("attachments") or {}
    if text is None or not held:
        return text
    return _ATTACHMENT.sub(lambda found: str(held.get(found[1], found[0])), text)
