"""Logs of Inspect AI: .eval, a zip archive of JSON, or .json.

A log that a session drove (`celeus.inspect`) names it in its metadata: its samples were drawn.
"""

import json
import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from celeus.intake.questions import Choice, Question, asked
from celeus.intake.reducers import EACH, reducer_of
from celeus.intake.rows import Log, Options, Row, chosen, digest_of, refused, text_of
from celeus.intake.sources.archives import Archive
from celeus.intake.sources.files import Source, under
from celeus.intake.table.columns import shown
from celeus.intake.table.numbers import loss_in_log
from celeus.shorten import shortened

HEADER = "header.json"
START = "_journal/start.json"
DRAWN_BY = "celeus"
"""Member of the metadata that names the session."""
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Values of grades, as in Inspect's own value_to_float: correct, partial, incorrect, no answer."""
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Values of words there; whether yes is good, only the metric `accuracy` says."""
_ATTACHMENT = re.compile(r"attachment://([0-9a-f]{32})")
_USED = (
    *("id", "epoch", "input", "target", "choices", "scores", "score", "output", "error"),
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
        model = str(under(source, head, "eval", "model"))
        present = [_present(head, sample) for sample in samples]
        rows, notes, rule = _rows(source, options, model, head, present)
        if rule is not None:
            settings[f"rule for the epochs of {task}"] = rule
    if _of_session(head):
        rows = [replace(row, drawn=True) for row in rows]
    return Log(source.name, rows, settings, notes)


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


def _present(head: Mapping[str, Any], sample: dict[str, Any]) -> dict[str, Any]:
    """The sample as logs have it today: version 1 had a single score, of the scorer of the log."""
    if "scores" in sample or not isinstance(sample.get("score"), dict):
        return sample
    scorer = ((head.get("results") or {}).get("scorer") or {}).get("name") or "score"
    return sample | {"scores": {str(scorer): sample["score"]}}


def _rows(
    source: Source,
    options: Options,
    model: str,
    head: Mapping[str, Any],
    samples: Sequence[dict[str, Any]],
) -> tuple[list[Row], tuple[str, ...], str | None]:
    """The rows of the samples, what has to be told of them, and the rule of several epochs."""
    if not samples:
        raise refused(f"{source.name} has no samples", "log")
    scorers = dict.fromkeys(name for sample in samples for name in sample.get("scores") or {})
    if not scorers:
        raise refused(f"{source.name} has no scores", "metric")
    scorer, part = scorer_of(list(scorers), options, source.name)
    if options.higher is None and _is_accuracy(head, scorer, part):
        options = replace(options, higher=True)
    rows: list[Row] = []
    values: dict[str, list[object]] = {}
    for sample in samples:
        place = f"item {sample['id']} of {source.name}"
        score = None if _void(sample) else (sample.get("scores") or {}).get(scorer)
        value = _value(score, part, (scorer, place, options))
        item = item_of(sample)
        rows.append(
            replace(
                item,
                model=model,
                loss=_loss(value, (scorer, place, options)),
                repeat=int(sample.get("epoch", 1)),
                answer=None if _void(sample) else _answer(score, sample),
            )
        )
        if value is not None:
            values.setdefault(item.id, []).append(value)
    if options.reducer == EACH or all(row.repeat == 1 for row in rows):
        return rows, (), None
    rule, named = _rule(source, options, head, (scorer, part))
    epochs = f"{max(row.repeat for row in rows)} epochs of an item count as their {rule}, {named}"
    if rule == "mean":
        return rows, (epochs,), rule
    losses = _reduced(rule, values, (scorer, source.name, options))
    first = {row.id: row for row in reversed(rows)}
    names = dict.fromkeys(row.id for row in rows)
    kept = [replace(first[name], loss=losses.get(name), repeat=1) for name in names]
    return kept, (f"{epochs}; the answer shown is that of the first",), rule


def _rule(
    source: Source, options: Options, head: Mapping[str, Any], scored: tuple[str, str | None]
) -> tuple[str, str]:
    """The rule that makes one score of the epochs of an item, and who says so; asked of several."""
    rules = _reducers(head, *scored)
    if options.reducer is None and len(rules) > 1:
        choices = tuple(Choice(name, f"the {name} of the epochs") for name in rules)
        text = "The log has several scores of the epochs of an item. Which one?"
        raise asked(source.name, [Question("repeats", text, choices)])
    rule = options.reducer or rules[0]
    return rule, "as in the log" if rule in rules else "as you asked"


def _reported(head: Mapping[str, Any], scorer: str) -> list[dict[str, Any]]:
    """The results of a scorer in the log: one for each part of its scores, or each reducer."""
    found = (head.get("results") or {}).get("scores") or ()
    return [score for score in found if score.get("scorer", score.get("name")) == scorer]


def _is_accuracy(head: Mapping[str, Any], scorer: str, part: str | None) -> bool:
    """The log itself reports the scores as an accuracy: more of them is better."""
    return any(
        "accuracy" in (score.get("metrics") or {})
        for score in _reported(head, scorer)
        if part in {None, score.get("name")}
    )


def _reducers(head: Mapping[str, Any], scorer: str, part: str | None) -> list[str]:
    """The rules by which the log makes one score of the epochs of an item."""
    found = _reported(head, scorer)
    of_part = [score for score in found if part in {None, score.get("name")}]
    names = list(dict.fromkeys(score.get("reducer") or "mean" for score in of_part or found))
    return names or (head["eval"].get("config") or {}).get("epochs_reducer") or ["mean"]


def _reduced(
    rule: str, values: Mapping[str, Sequence[object]], asked_for: tuple[str, str, Options]
) -> dict[str, float | None]:
    """The loss of every item that has a score, by the rule."""
    reduce, losses = reducer_of(rule), {}
    scorer, place, options = asked_for
    for name, of_item in values.items():
        where = scorer, f"item {name} of {place}", options
        if rule == "mode":
            losses[name] = _loss(statistics.mode(of_item), where)
            continue
        numbers = [_number_of(value, where) for value in of_item]
        score = reduce([number for number, _ in numbers])
        losses[name] = loss_in_log(options, score, where[1], higher=numbers[0][1])
    return losses


def _answer(score: Mapping[str, Any] | None, sample: Mapping[str, Any]) -> str | None:
    """The answer that was scored, of multiple choice the text behind its letter."""
    answer = (score or {}).get("answer")
    output = sample.get("output") or {}
    if answer is None:
        answer = output.get("completion")
    if answer is None:
        messages = [choice.get("message") or {} for choice in output.get("choices") or ()]
        answer = messages[0].get("content") if messages else None
    texts = _by_letters(answer, sample.get("choices"))
    return ", ".join(texts) if texts else _with_attachments(text_of(answer), sample)


def scorer_of(names: list[str], options: Options, place: str) -> tuple[str, str | None]:
    """The scorer that is asked for, and the part of its scores; both may have a slash in them."""
    metric = options.metric
    for name in sorted(names, key=len, reverse=True):
        if metric is not None and metric.startswith(f"{name}/"):
            return name, metric.removeprefix(f"{name}/")
    return chosen(names, metric, place, "metric"), None


def item_of(sample: Mapping[str, Any]) -> Row:
    """The item that a sample of a data set or of a log is, as JSON has it: answered by nobody.

    Where the target names choices by their letters it is these choices: runs may shuffle them.
    """
    asked_for = sample.get("input")
    text = shown(asked_for) if isinstance(asked_for, list) else text_of(asked_for)
    question = _with_attachments(text, sample)
    target, choices = sample.get("target"), sample.get("choices")
    right = _by_letters(target, choices)
    check = digest_of(question, target, choices)
    if right:
        check = digest_of(question, right, sorted(map(str, choices or ())))
    return Row(
        id=str(sample["id"]),
        model="",
        loss=None,
        question=question,
        reference=", ".join(right) or _reference(target),
        choices=tuple(map(str, choices or ())),
        check=check,
    )


def _by_letters(letters: object, choices: Sequence[object] | None) -> list[str]:
    """The choices under these letters, such as `B` or `A, C`; none where they are no letters."""
    if isinstance(letters, str):
        letters = re.findall(r"[^\s,]+", letters)
    if not choices or not isinstance(letters, list) or not letters:
        return []
    known = {chr(ord("A") + place): str(choice) for place, choice in enumerate(choices[:26])}
    named = [known.get(letter) if isinstance(letter, str) else None for letter in letters]
    return [] if None in named else sorted(map(str, named))


def _void(sample: Mapping[str, Any]) -> bool:
    """The sample ended in an error, or is withdrawn."""
    return bool(sample.get("error") or sample.get("invalidation"))


def _reference(target: object) -> str | None:
    """The target as text: of several, all of them."""
    if isinstance(target, list) and all(isinstance(part, str) for part in target):
        return ", ".join(target)
    return text_of(target)


def loss_of(
    score: Mapping[str, Any] | None, part: str | None, asked_for: tuple[str, str, Options]
) -> float | None:
    """The loss that a score, or the part of it, means; None where there is none, or NaN.

    ``asked_for`` are the name of the scorer, the place for refusals, and how scores are to be read.
    """
    return _loss(_value(score, part, asked_for), asked_for)


def _value(
    score: Mapping[str, Any] | None, part: str | None, asked_for: tuple[str, str, Options]
) -> object:
    """The value of a score, or of the part of it; None where there is none, or NaN."""
    scorer, place, _ = asked_for
    value = None if score is None else score.get("value")
    if isinstance(value, dict | list):
        values = value if isinstance(value, dict) else dict(enumerate(value))
        named = {f"{scorer}/{name}": inner for name, inner in values.items()}
        wanted = None if part is None else f"{scorer}/{part}"
        value = named[chosen(list(named), wanted, place, "metric")]
    elif part is not None and value is not None and not _missing(value):
        raise refused(f"{place} has no metric {scorer}/{part}: {scorer} is one value", "metric")
    return None if _missing(value) else value


def _loss(value: object, asked_for: tuple[str, str, Options]) -> float | None:
    if value is None:
        return None
    number, higher = _number_of(value, asked_for)
    return loss_in_log(asked_for[2], number, asked_for[1], higher=higher)


def _number_of(value: object, asked_for: tuple[str, str, Options]) -> tuple[Any, bool]:
    """A value as a number, and whether a higher one is better; words say that by themselves."""
    scorer, place, options = asked_for
    if isinstance(value, str) and value in GRADES:
        return GRADES[value], options.higher is not False
    if isinstance(value, bool):
        value = float(value)
    elif isinstance(value, str):
        value = WORDS.get(value.lower(), value)
        value = _number(value, place) if isinstance(value, str) else value
    return value, options.direction(place, scorer)


def _number(word: str, place: str) -> float:
    try:
        return float(word)
    except ValueError:
        what = f"{place} has the score {shortened(word)}, which is no number"
        raise refused(what, "metric") from None


def _missing(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _with_attachments(text: str | None, sample: Mapping[str, Any]) -> str | None:
    """Text with its long parts, which stand elsewhere in the sample, in their places."""
    held = sample.get("attachments") or {}
    if text is None or not held:
        return text
    return _ATTACHMENT.sub(lambda found: str(held.get(found[1], found[0])), text)
