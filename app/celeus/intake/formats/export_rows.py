"""Rows of items from the rows that tools write: events joined, samples apart, chats as texts.

An unfolding takes a sheet, and gives its rows as often as they are asked for, with what has to be
told of them. Columns keep their names where a row stays a row.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from celeus.intake.sources.sheet import BadRow, Sheet, SheetRow
from celeus.intake.table.chats import content_of, messages_of, reply_of
from celeus.intake.table.columns import is_missing, number_of, shown
from celeus.shorten import shortened

Cells = dict[str, Any]
Numbered = tuple[int, SheetRow]
Unfolded = tuple[Callable[[], Iterator[Numbered]], tuple[str, ...]]
Unfolding = Callable[[Sheet], Unfolded]
_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)
_RULE = "a row as this tool writes it"
_HUMAN, _ASSISTANT = "\n\nHuman:", "\n\nAssistant:"
_ANSWERS = re.compile(
    r"(?:\[|<\|)The Start of Assistant (A|B)'s (Answer|Conversation with User)(?:\]|\|>)\n+(.*?)"
    r"\n+(?:\[|<\|)The End of Assistant \1's \2(?:\]|\|>)",
    re.DOTALL,
)
_QUESTION = re.compile(r"\[User Question\]\n(.*?)\n\n\[The Start of", re.DOTALL)
_ERROR_SPAN = re.compile(r"</?v>")
_HEAVIEST = 25.0
_SEVERITIES = {"no-error": 0.0, "neutral": 0.0, "minor": 1.0, "major": 5.0}


def each(change: Callable[[Cells], Cells | BadRow]) -> Unfolding:
    """The unfolding that makes a row of every row; a row it fails on is bad."""
    return several(lambda row: [change(row)])


def several(
    change: Callable[[Cells], Sequence[Cells | BadRow]],
    note: Callable[[int, int], str | None] | None = None,
) -> Unfolding:
    """The unfolding that makes rows of every row, such as one for each of its samples.

    ``note`` is what is said of the counts of rows read and made.
    """

    def unfold(sheet: Sheet) -> Unfolded:
        def rows() -> Iterator[Numbered]:
            for number, row in sheet.rows():
                if isinstance(row, BadRow):
                    yield number, row
                    continue
                try:
                    made: Sequence[Any] = change(row)
                except _MALFORMED:
                    made = [BadRow(_RULE, shortened(row))]
                yield from ((number, cells) for cells in made)

        phrase = None if note is None else note(_count(sheet.rows()), _count(rows()))
        return rows, () if phrase is None else (phrase,)

    return unfold


def _count(rows: Iterator[Numbered]) -> int:
    return sum(1 for _ in rows)


def joined(
    gather: Callable[[list[tuple[int, Cells]]], tuple[list[Numbered], list[str]]],
) -> Unfolding:
    """The unfolding that looks at all rows of a file together."""

    def unfold(sheet: Sheet) -> Unfolded:
        good: list[tuple[int, Cells]] = []
        bad: list[Numbered] = []
        for number, row in sheet.rows():
            if isinstance(row, BadRow):
                bad.append((number, row))
            else:
                good.append((number, row))
        made, notes = gather(good)
        kept = sorted([*made, *bad], key=lambda numbered: numbered[0]) if bad else made
        return lambda: iter(kept), tuple(notes)

    return unfold


def openai_events(rows: list[tuple[int, Cells]]) -> tuple[list[Numbered], list[str]]:
    """A row for every sample of OpenAI evals: its first sampling, and what it was matched with."""
    samples: dict[str, dict[str, list[Cells]]] = {}
    lines: dict[str, int] = {}
    report: Cells | None = None
    for number, row in rows:
        if isinstance(row.get("final_report"), dict):
            report = row["final_report"]
        data, name = row.get("data"), row.get("sample_id")
        if name is None or not isinstance(data, dict):
            continue
        lines.setdefault(str(name), number)
        samples.setdefault(str(name), {}).setdefault(str(row.get("type")), []).append(data)
    made: list[Numbered] = []
    for name, events in samples.items():
        sampling = next(iter(events.get("sampling", [])), {})
        for match in events.get("match") or [{}]:
            metrics = {
                key: value for data in events.get("metrics", []) for key, value in data.items()
            }
            answer = match["sampled"] if "sampled" in match else sampling.get("sampled")
            item = {
                "sample_id": name,
                "prompt": _prompt(sampling.get("prompt")),
                "sampled": _only(answer),
                "expected": _only(match.get("expected")),
                "picked": match.get("picked"),
                "correct": match.get("correct"),
                "metrics": metrics,
            }
            made.append((lines[name], {key: value for key, value in item.items() if value != {}}))
    return made, [*_several_samplings(samples), *_reported(made, report)]


def _several_samplings(samples: Mapping[str, Mapping[str, list[Cells]]]) -> list[str]:
    count = sum(len(events.get("sampling", ())) > 1 for events in samples.values())
    return [f"samples with several samplings, the first of them shown: {count}"] if count else []


def _reported(rows: Iterable[Numbered], report: Cells | None) -> list[str]:
    if report is None:
        return ["no final_report: the run may not have ended"]
    return agreement(rows, "correct", report.get("accuracy"), "final_report's accuracy")


def agreement(rows: Iterable[Numbered], column: str, reported: object, name: str) -> list[str]:
    """The mean of a column beside what the file itself says of it."""
    found = [row.get(column) for _, row in rows if isinstance(row, dict)]
    numbers = [float(value) for value in found if isinstance(value, int | float)]
    if not numbers or not isinstance(reported, int | float) or isinstance(reported, bool):
        return []
    mean = math.fsum(numbers) / len(numbers)
    share = reported / 100 if reported > 1 else float(reported)
    if math.isclose(mean, share, abs_tol=0.0006):
        return [f"{name} {reported:.4g}, as of the {len(numbers)} rows read"]
    return [f"{name} {reported:.4g}, but {mean:.4g} of the {len(numbers)} rows read: is it whole?"]


def _only(value: object) -> object:
    """The one element of a list of one."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _prompt(value: object) -> object:
    """A prompt as text: what the user said if nobody else did, else the chat."""
    chat = messages_of(value)
    if chat is None:
        return value
    return content_of(chat[0]["content"]) if len(chat) == 1 else shown(chat)


def batch_answer(row: Cells) -> list[Cells]:
    """A call of OpenAI's batch API with its reply as `answer`; none for one that failed."""
    response = row.get("response") or {}
    body = response.get("body") or {}
    failed = row.get("error") or body.get("error") or response.get("status_code", 200) >= 400
    reply = None if failed else _reply(body)
    return [row | {"answer": reply}] if reply else []


def failed_calls(calls: int, answers: int) -> str | None:
    """A phrase on the calls of a batch that have no answer."""
    failed = calls - answers
    return (
        f"{answers} answers; left out: {failed} failed calls, which have none" if failed else None
    )


def _reply(body: Cells) -> str | None:
    """The text of a chat, a completion, or a response."""
    choices = body.get("choices")
    if isinstance(choices, list) and choices:
        return reply_of(choices) or choices[0].get("text")
    outputs = body.get("output")
    parts = (
        [part for part in outputs if isinstance(part, dict)] if isinstance(outputs, list) else []
    )
    return "\n".join(filter(None, (content_of(part.get("content")) for part in parts))) or None


def garak_outputs(row: Cells) -> list[Cells]:
    """The outputs of an attempt of garak once its detectors have run."""
    if row.get("entry_type") != "attempt" or row.get("status") != 2:
        return []
    prompt = row["prompt"]
    turns = prompt.get("turns") if isinstance(prompt, dict) else None
    asked = content_of(prompt) if turns is None else _prompt(turns)
    return [
        {
            "uuid": row["uuid"],
            "sample": sample,
            "probe": row["probe_classname"],
            "prompt": asked,
            "output": None if output is None else content_of(output),
            "detectors": {name: found[sample] for name, found in row["detector_results"].items()},
        }
        for sample, output in enumerate(row["outputs"])
    ]


def without_labels(sheet: Sheet) -> Unfolded:
    """The answers of a survey in Qualtrics, below whose header stand labels and ids of columns."""
    first = [row for _, row in islice(sheet.rows(), 2)]
    ends = [
        place
        for place, row in enumerate(first, 1)
        if isinstance(row, dict) and any('"ImportId"' in shown(cell) for cell in row.values())
    ]
    labels = max(ends, default=0)
    note = f"without {labels} lines of labels below the header"
    return lambda: islice(sheet.rows(), labels, None), (note,) if labels else ()


def counted_samples(sheet: Sheet) -> Unfolded:
    """The samples of a benchmark of code with their number among those of their task."""

    def rows() -> Iterator[Numbered]:
        counts: Counter[str] = Counter()
        for number, row in sheet.rows():
            if isinstance(row, BadRow):
                yield number, row
                continue
            task = str(row.get("task_id"))
            yield number, row | {"sample": counts[task]}
            counts[task] += 1

    return rows, ()


def code_samples(row: Cells) -> list[Cells]:
    """A problem of LiveCodeBench, a row for every sample."""
    codes, graded = row["code_list"], row["graded_list"]
    outputs = row.get("output_list") or codes
    shared = {name: value for name, value in row.items() if not name.endswith("_list")}
    together = zip(outputs, codes, graded, strict=True)
    return [
        shared | {"sample": number, "output": output, "code": code, "graded": grade}
        for number, (output, code, grade) in enumerate(together)
    ]


def gold_choice(row: Cells) -> Cells:
    """A document of lighteval with its right choice as `gold`."""
    doc = row.get("doc") or {}
    choices, places = doc.get("choices") or [], doc.get("gold_index")
    places = [places] if isinstance(places, int) else places or []
    gold = [choices[place] for place in places if 0 <= place < len(choices)]
    return row | {"gold": _only(gold)} if gold else row


def arena_battle(row: Cells) -> Cells:
    """A battle as a question and two answers, of the chats of both sides."""
    first, other = (_turns(row[name]) for name in ("conversation_a", "conversation_b"))
    if first is None or other is None or first[0] != other[0]:
        return row | {
            "answer_a": shown(row["conversation_a"]),
            "answer_b": shown(row["conversation_b"]),
        }
    return row | {"question": first[0], "answer_a": first[1], "answer_b": other[1]}


def _turns(value: object) -> tuple[str, str] | None:
    """The words of the user and those of the other side."""
    chat = messages_of(value)
    if chat is None:
        return None
    texts: tuple[list[str], list[str]] = ([], [])
    for message in chat:
        texts[message["role"] != "user"].append(content_of(message["content"]))
    return "\n\n".join(texts[0]), "\n\n".join(texts[1])


def arena_votes(row: Cells) -> Cells:
    """A row of the 55k table: texts of all turns, and one column for the vote."""
    texts = {name: _lines(row[name]) for name in ("prompt", "response_a", "response_b")}
    votes = {"model_a": "winner_model_a", "model_b": "winner_model_b", "tie": "winner_tie"}
    won = [name for name, column in votes.items() if number_of(row.get(column)) in {1, "1"}]
    return row | texts | {"winner": won[0] if len(won) == 1 else None}


def _lines(value: object) -> object:
    """The texts of a list that stands as JSON in a cell."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            return value
    if isinstance(value, list):
        return "\n\n".join("" if part is None else str(part) for part in value)
    return value


def chosen_rejected(row: Cells) -> Cells:
    """A pair with the dialogue that both answers share as `question`, if they hold it."""
    good, bad = (_dialogue(row[name]) for name in ("chosen", "rejected"))
    if good is None or bad is None or good[0] != bad[0]:
        return row
    return row | {"question": good[0], "chosen": good[1], "rejected": bad[1]}


def _dialogue(value: object) -> tuple[str, str] | None:
    """The dialogue before the last reply, and that reply; of a chat, or as HH-RLHF writes it."""
    chat = messages_of(value)
    if chat is not None:
        return str(_prompt(chat[:-1])), content_of(chat[-1]["content"])
    if not isinstance(value, str) or _ASSISTANT not in value:
        return None
    before, _, reply = value.rpartition(_ASSISTANT)
    dialogue = before.removeprefix(_HUMAN) if before.count(_HUMAN) == 1 else before
    return dialogue.strip(), reply.strip()


def judged_pair(row: Cells) -> Cells | BadRow:
    """A pair of MT-Bench with the question and the answers out of its judge's prompt."""
    prompt = row["g1_user_prompt"]
    answers = {
        side: answer.replace(f"### Assistant {side}:", "### Assistant:")
        for side, _, answer in _ANSWERS.findall(prompt)
    }
    if answers.keys() != {"A", "B"}:
        return BadRow("a prompt to the judge with the answers of both models", shortened(prompt))
    asked = _QUESTION.search(prompt)
    found = {"question": asked[1]} if asked else {}
    return row | found | {"answer_a": answers["A"], "answer_b": answers["B"]}


def labelled_task(row: Cells) -> Cells:
    """A task of Label Studio with its `labels` by name, of annotations that were not cancelled."""
    labels: dict[str, list[object]] = {}
    for annotation in row.get("annotations") or row.get("completions") or []:
        if isinstance(annotation, dict) and not annotation.get("was_cancelled"):
            for result in annotation.get("result") or []:
                labels.setdefault(str(result.get("from_name")), []).append(_label(result))
    return row | {"labels": {name: _only(values) for name, values in labels.items()}}


def _label(result: Cells) -> object:
    """The label in a result of Label Studio: a choice, a rating or a text; a region as it is."""
    value = result.get("value") or {}
    return _only(next(iter(value.values()))) if len(value) == 1 else value


def answered_record(row: Cells) -> Cells:
    """A record of Argilla with its `labels` by question, of responses that were not discarded."""
    labels = {}
    for name, responses in (row.get("responses") or {}).items():
        given = [
            response for response in responses if response.get("status", "submitted") == "submitted"
        ]
        labels[name] = _only([response.get("value") for response in given])
    return row | {"labels": labels}


def predicted_record(row: Cells) -> Cells:
    """A record of Argilla 1 with the first of its predictions, without how likely it was."""
    match row.get("prediction"):
        case [[str(label), float()], *_]:
            return row | {"predicted": label}
        case value:
            return row | {"predicted": value}


def only_input(row: Cells) -> Cells:
    """A row of Braintrust with an input of one member as that member."""
    value = row.get("input")
    if isinstance(value, dict):
        value = next(iter(value.values())) if len(value) == 1 else shown([value])
    return row | {"input": value}


def resolved_or_failed(sheet: Sheet) -> Unfolded:
    """Trials of Terminal-Bench: one without a result has failed, as on its board."""
    rows, _ = each(lambda row: row | {"is_resolved": row.get("is_resolved") is True})(sheet)
    unfinished = sum(
        isinstance(row, dict) and row.get("is_resolved") is None for _, row in sheet.rows()
    )
    note = f"trials without a result, counted as failed as on the board: {unfinished}"
    return rows, (note,) if unfinished else ()


def options_of(row: Cells) -> Cells:
    """A row of VLMEvalKit with its lettered options as `choices`."""
    letters = [name for name in "ABCDEFGHIJ" if not is_missing(row.get(name))]
    return row | {"choices": [f"{name}. {row[name]}" for name in letters]} if letters else row


def accepted_options(row: Cells) -> Cells:
    """A task of Prodigy with the texts of its options as `choices`, and of those `accepted`."""
    options, accepted = row.get("options"), row.get("accept")
    if not isinstance(options, list) or not options or not isinstance(accepted, list):
        return row
    texts = {option["id"]: _text_of_option(option) for option in options}
    chosen = [texts.get(name, name) for name in accepted]
    return row | {"choices": [*texts.values()], "accepted": _only(chosen)}


def _text_of_option(option: Cells) -> object:
    members = ("text", "html", "image", "id")
    return next(option[name] for name in members if not is_missing(option.get(name)))


def hits(rows: list[tuple[int, Cells]]) -> tuple[list[Numbered], list[str]]:
    """A row for every HIT of Mechanical Turk, with the answers of its workers as lists."""
    found: dict[str, tuple[int, Cells]] = {}
    bad: list[Numbered] = []
    for number, row in rows:
        if is_missing(row.get("HITId")):
            bad.append((number, BadRow(_RULE, shortened(row))))
            continue
        _, hit = found.setdefault(str(row["HITId"]), (number, {}))
        for name, value in row.items():
            if name.startswith("Answer.") or name in {"WorkerId", "AssignmentId"}:
                hit.setdefault(name, []).append(value)
            else:
                hit.setdefault(name, value)
    assignments = len(rows) - len(bad)
    return [*found.values(), *bad], [
        f"{assignments} assignments of {len(found)} HITs, an item each"
    ]


def segments(rows: list[tuple[int, Cells]]) -> tuple[list[Numbered], list[str]]:
    """A row for every segment of an MQM rating, its `mqm` the mean over raters of their errors."""
    found: dict[tuple[object, ...], tuple[int, Cells, dict[object, float | None]]] = {}
    for number, row in rows:
        place = row.get("doc_id", row.get("doc")), row.get("seg_id", row.get("docSegId"))
        texts = {
            name: _ERROR_SPAN.sub("", str(row.get(name) or "")) for name in ("source", "target")
        }
        segment = {"segment": "/".join(map(str, place)), "system": row.get("system"), **texts}
        _, _, raters = found.setdefault((row.get("system"), *place), (number, segment, {}))
        weight, before = _weight(row), raters.get(row.get("rater"), 0.0)
        raters[row.get("rater")] = None if weight is None or before is None else before + weight
    made: list[Numbered] = []
    for number, segment, raters in found.values():
        sums = [min(total, _HEAVIEST) for total in raters.values() if total is not None]
        mqm = math.fsum(sums) / len(sums) if len(sums) == len(raters) else None
        made.append((number, segment | {"mqm": mqm, "raters": list(raters)}))
    counts = f"{len(rows)} ratings of {len(found)} segments, an item each"
    weights = "mqm is the mean over raters: major 5, minor 1, punctuation 0.1, at most 25"
    return made, [counts, weights]


def _weight(row: Cells) -> float | None:
    """The weight of an error, as in the MQM of WMT; None for a severity it does not have."""
    category, severity = (
        str(row.get(name) or "").strip().lower() for name in ("category", "severity")
    )
    if category.startswith("non-translation"):
        return _HEAVIEST
    if severity == "minor" and category == "fluency/punctuation":
        return 0.1
    return _SEVERITIES.get(severity)


def plus_samples(document: Cells) -> list[Cells]:
    """The samples in `eval_results.json` of EvalPlus, those of a task after each other."""
    made = []
    for task, samples in document["eval"].items():
        for number, sample in enumerate(
            _statuses(samples) if isinstance(samples, dict) else samples
        ):
            made.append(plus_sample(sample) | {"task_id": task, "sample": number})
    return made


def plus_sample(sample: Cells) -> Cells:
    """A sample of EvalPlus with what it passed; `plus` takes the tests of both sets."""
    base, plus = sample["base_status"] == "pass", sample.get("plus_status")
    return sample | {"base": base, "plus": None if plus is None else base and plus == "pass"}


def _statuses(samples: Cells) -> list[Cells]:
    """The samples of a task as before version 0.2: lists of statuses with their details."""
    plus = samples.get("plus") or []
    return [
        {"base_status": base[0], "plus_status": plus[number][0] if number < len(plus) else None}
        for number, base in enumerate(samples["base"])
    ]


def compass_details(document: Cells) -> list[Cells]:
    """The rows of a file of OpenCompass: of its details, or of its predictions by number."""
    details = document.get("details", document)
    numbered = enumerate(details) if isinstance(details, list) else details.items()
    return [
        {"index": str(number), **{name: _round(value) for name, value in row.items()}}
        for number, row in numbered
        if isinstance(row, dict)
    ]


def _round(value: object) -> object:
    """The turns of a prompt of OpenCompass as text."""
    if not isinstance(value, list) or not value:
        return value
    if not all(isinstance(turn, dict) and "prompt" in turn for turn in value):
        return value
    texts = [str(turn["prompt"]) for turn in value]
    if len(texts) == 1:
        return texts[0]
    return "\n\n".join(
        f"{turn.get('role', '')}: {text}" for turn, text in zip(value, texts, strict=True)
    )


def simulations(document: Cells) -> list[Cells]:
    """The runs in a file of tau2-bench."""
    made = []
    for run in document["simulations"]:
        reward = (run.get("reward_info") or {}).get("reward")
        made.append({**run, "reward": reward})
    return made
