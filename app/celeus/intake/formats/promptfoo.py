"""Results of promptfoo, version 3: `-o out.json`, or `-o out.jsonl` with a row a line."""

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from celeus.intake.rows import Log, Options, Row, chosen, digest_of, keyed, refused, text_of
from celeus.intake.sources.files import Source, under
from celeus.intake.table.numbers import loss_in_log

VERSION = 3
ERROR = 2
"""`failureReason` of a row without a score: 1 is a failed assertion."""
SCORE = "score"
PASS = "pass"  # noqa: S105 -- no secret
"""Metrics beside the named ones: the weighted mean of the assertions, and whether all hold."""
_NAME_LENGTH = 16


def read(source: Source, options: Options) -> Log:
    """The rows of all columns; a column, one prompt with one provider, is a model.

    An item is named by the member ``options.key`` of its metadata, else by a hash of its variables
    and assertions, since its number changes with the tests before it; equal ones are repeats.
    """
    results = _results(source)
    if not results:
        raise refused(f"{source.name} has no results", "log")
    scores = [result.get("namedScores") or {} for result in results]
    named = list(dict.fromkeys(name for of_result in scores for name in of_result))
    metric = options.metric
    if metric is not None and metric not in {SCORE, PASS}:
        metric = chosen([*named, SCORE, PASS], metric, source.name, "metric")
    rows = list(_rows(source, options, metric or SCORE, results))
    return Log(
        source.name, rows, notes=() if metric == PASS else _pass_rate(results, metric or SCORE)
    )


def _pass_rate(results: list[dict[str, Any]], metric: str) -> tuple[str, ...]:
    """A sentence on the pass rate, the first number that promptfoo itself shows."""
    run = [result for result in results if result.get("failureReason") != ERROR]
    passed = sum(bool(result.get("success")) for result in run)
    what = "the mean score" if metric == SCORE else f"the mean of {metric}"
    rate = f"{passed} of {len(run)} passed; --given metric={PASS} takes the pass rate"
    return (f"the loss is of {what}: {rate}",)


def _results(source: Source) -> list[dict[str, Any]]:
    if source.name.endswith(".jsonl"):
        return [row for _, row in source.lines()]
    document = source.document()
    version = under(source, document, "results", "version")
    if not isinstance(version, int) or version < VERSION:
        how = "run it again with a promptfoo of 2024-12 or later"
        raise refused(f"{source.name} has results of version {version}, not {VERSION}: {how}")
    return list(under(source, document, "results", "results"))


def _rows(
    source: Source, options: Options, metric: str, results: list[dict[str, Any]]
) -> Iterator[Row]:
    names = _columns(results)
    seen: Counter[tuple[str, str]] = Counter()
    for result in results:
        test = result.get("testCase") or {}
        place = f"test {result.get('testIdx')} of {source.name}"
        variables = result.get("vars") or test.get("vars")
        check = digest_of(variables, test.get("assert"))
        if options.key is not None:
            name = keyed(test.get("metadata"), options.key, place)
        elif not variables:
            how = "name the tests in their metadata and say which member with --given id=MEMBER"
            raise refused(f"{place} has no vars that tell it from others: {how}", "id")
        else:
            name = check[:_NAME_LENGTH]
        model = names[_column(result)]
        seen[model, name] += 1
        failed = result.get("failureReason") == ERROR
        score = None if failed else _score(result, metric, place)
        output = (result.get("response") or {}).get("output")
        yield Row(
            id=name,
            model=model,
            loss=loss_in_log(options, score, place, higher=options.higher is not False),
            repeat=seen[model, name],
            question=text_of((result.get("prompt") or {}).get("raw")),
            reference=_reference(test),
            answer=None if failed else text_of(output),
            check=check,
        )


def _score(result: dict[str, Any], metric: str, place: str) -> object:
    """The score in a metric; of a named one the mean of its assertions.

    That is what promptfoo has written since 2026-03, and their sum before: it is made anew of the
    assertions. Refuses one of several assertions whose scores are not in the results.
    """
    if metric == SCORE:
        return result.get("score")
    if metric == PASS:
        return None if result.get("success") is None else float(result["success"])
    value = (result.get("namedScores") or {}).get(metric)
    parts = (result.get("gradingResult") or {}).get("componentResults") or ()
    named = [
        (float(part["score"]), float(assertion.get("weight", 1)))
        for part in parts
        if isinstance(part, dict) and isinstance(assertion := part.get("assertion"), dict)
        if assertion.get("metric") == metric and isinstance(part.get("score"), int | float)
    ]
    total = math.fsum(weight for _, weight in named)
    if total > 0:
        return math.fsum(score * weight for score, weight in named) / total
    tests = (result.get("testCase") or {}).get("assert") or ()
    if sum(isinstance(test, dict) and test.get("metric") == metric for test in tests) > 1:
        why = "several assertions and none of their scores: a sum or a mean"
        raise refused(f"{place} has {metric} of {why}", "metric")
    return value


def _column(result: dict[str, Any]) -> tuple[str, object]:
    provider = result.get("provider") or {}
    return str(provider.get("label") or provider.get("id") or "model"), result.get("promptIdx")


def _columns(results: list[dict[str, Any]]) -> dict[tuple[str, object], str]:
    """The name of every column: its provider's, with the prompt's number where it has several."""
    columns = dict.fromkeys(map(_column, results))
    several = Counter(name for name, _ in columns)
    return {
        (name, place): f"{name}#{place}" if several[name] > 1 else name for name, place in columns
    }


def _reference(test: dict[str, Any]) -> str | None:
    """The values of the assertions, which the output is compared with."""
    values = [
        assertion.get("value")
        for assertion in test.get("assert") or ()
        if isinstance(assertion, dict)
    ]
    texts = [text_of(value) for value in values if value is not None]
    return "\n".join(text for text in texts if text) or None
