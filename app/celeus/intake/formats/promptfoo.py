"""Results of promptfoo, version 3: `-o out.json`, or `-o out.jsonl` with a row a line."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from celeus.intake.rows import Log, Options, Row, chosen, digest_of, refused, text_of
from celeus.intake.sources.files import Source, under

VERSION = 3
ERROR = 2
"""`failureReason` of a row without a score: 1 is a failed assertion."""
SCORE = "score"
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
    if metric is not None and metric != SCORE:
        metric = chosen([*named, SCORE], metric, source.name, "metric")
    return Log(source.name, list(_rows(source, options, metric or SCORE, results)))


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
            held = (test.get("metadata") or {}).get(options.key)
            if held is None:
                raise refused(f"{place} has no {options.key!r} in its metadata", "id")
            name = str(held)
        elif not variables:
            how = "name the tests in their metadata and say which member with --id"
            raise refused(f"{place} has no vars that tell it from others: {how}", "id")
        else:
            name = check[:_NAME_LENGTH]
        model = names[_column(result)]
        seen[model, name] += 1
        failed = result.get("failureReason") == ERROR
        score = result.get("score")
        if metric != SCORE:
            score = (result.get("namedScores") or {}).get(metric)
        output = (result.get("response") or {}).get("output")
        yield Row(
            id=name,
            model=model,
            loss=None if failed else options.loss(score, place, higher=options.higher is not False),
            repeat=seen[model, name],
            question=text_of((result.get("prompt") or {}).get("raw")),
            reference=_reference(test),
            answer=None if failed else text_of(output),
            check=check,
        )


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
    values = [one.get("value") for one in test.get("assert") or () if isinstance(one, dict)]
    texts = [text_of(one) for one in values if one is not None]
    return "\n".join(one for one in texts if one) or None
