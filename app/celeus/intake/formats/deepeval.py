"""Test runs of DeepEval: .deepeval/.latest_test_run.json, or test_run_<date>.json of a folder.

Which way a metric is better changed between versions, and the file does not say: it follows from
which side of its threshold succeeded.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from celeus.intake.rows import Log, Options, Row, chosen, digest_of, keyed, refused, text_of
from celeus.intake.sources.files import Source, under
from celeus.intake.table.numbers import loss_in_log

_NUMBERED = re.compile(r"test_case_\d+")
"""Names of cases without one: their place, which changes with the cases before them."""
_NAME_LENGTH = 16
CHATS = "conversationalTestCases"
OLD = "metricsMetadata"


def read(source: Source, options: Options) -> Log:
    """The rows of a run; an item is named by its name, by its metadata, or by a hash.

    A name of several cases is that of the pytest test that made them, and names none.
    """
    document = source.document()
    run = document.get("testRunData", document) if isinstance(document, dict) else document
    cases = [*under(source, run, "testCases"), *map(_of_chat, run.get(CHATS) or ())]
    cases = [*map(_present, cases)]
    if not cases:
        raise refused(f"{source.name} has no test cases", "log")
    names = dict.fromkeys(data["name"] for case in cases for data in case.get("metricsData") or ())
    metric = chosen(list(names), options.metric, source.name, "metric")
    scores = [_score(case, metric) for case in cases]
    higher = options.direction(source.name, metric, documented=_higher(source, metric, scores))
    model = str(run.get("identifier") or source.stem)
    return Log(source.name, list(_rows(source, options, model, cases, scores, higher=higher)))


def _present(case: dict[str, Any]) -> dict[str, Any]:
    """A case as of now; of earlier versions the metrics, and their names, stand elsewhere."""
    if OLD not in case or "metricsData" in case:
        return case
    return {**case, "metricsData": [{**data, "name": data["metric"]} for data in case[OLD] or ()]}


def _of_chat(case: dict[str, Any]) -> dict[str, Any]:
    """A case of several turns as one whose output is the whole conversation."""
    turns = [turn for turn in case.get("turns") or () if isinstance(turn, dict)]
    messages = [(turn.get("role"), text_of(turn.get("content")) or "") for turn in turns]
    asks = "\n\n".join(text for role, text in messages if role == "user")
    return {
        **case,
        "input": case.get("scenario") or asks,
        "expectedOutput": case.get("expectedOutcome"),
        "actualOutput": "\n\n".join(f"{role}: {text}" for role, text in messages) or None,
    }


def _score(case: dict[str, Any], metric: str) -> dict[str, Any] | None:
    """The case's score in the metric; None where it has none, or an error in its place."""
    for data in case.get("metricsData") or ():
        if data["name"] == metric and not data.get("error") and data.get("score") is not None:
            return dict(data)
    return None


def _higher(source: Source, metric: str, scores: list[dict[str, Any] | None]) -> bool | None:
    """Return True if a case succeeds by reaching the threshold; None if no case shows it."""
    up = down = True
    for score in scores:
        if score is not None and score.get("threshold") is not None:
            up &= score.get("success") == (score["score"] >= score["threshold"])
            down &= score.get("success") == (score["score"] <= score["threshold"])
    if not up and not down:
        how = "give one run, or --given better=higher or better=lower"
        raise refused(f"{source.name} has successes on both sides of {metric}: {how}", "metric")
    return up if up != down else None


def _rows(  # noqa: PLR0913 -- what a run is read by
    source: Source,
    options: Options,
    model: str,
    cases: list[dict[str, Any]],
    scores: list[dict[str, Any] | None],
    *,
    higher: bool,
) -> Iterator[Row]:
    names = Counter(str(case.get("name") or "") for case in cases)
    for index, (case, score) in enumerate(zip(cases, scores, strict=True)):
        check = digest_of(case.get("input"), case.get("expectedOutput"))
        name = str(case.get("name") or "")
        place = f"case {name or index} of {source.name}"
        if options.key is not None:
            name = keyed(case.get("metadata"), options.key, place)
        elif not name or names[name] > 1 or _NUMBERED.fullmatch(name):
            name = check[:_NAME_LENGTH]
        value = None if score is None else score["score"]
        yield Row(
            id=name,
            model=model,
            loss=loss_in_log(options, value, place, higher=higher),
            question=text_of(case.get("input")),
            reference=text_of(case.get("expectedOutput")),
            answer=text_of(case.get("actualOutput")),
            check=check,
        )
