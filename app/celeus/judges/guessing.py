"""Guesses of the losses of a whole pool by a judge, of which people are the truth.

A guess is an expected loss where the judge gives the probability of its verdicts. A bare verdict
says of every item that it is certain, which it is not: its guess is the mean of the verdict and the
mean guess of the pool. That mean is the guess where the judge cannot tell.
"""

import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celeus.errors import InvalidValue
from celeus.intake.sources.files import write
from celeus.judges.cases import Answer, Case, Judge, Opinion

SIDES = ("a", "b")


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a pool, and the case that it is."""

    line: dict[str, Any]
    case: Case


@dataclass(frozen=True, slots=True)
class Guesses:
    """Guesses by how they came about: ``soft`` and ``hard`` ones, and items ``untold``."""

    lines: list[dict[str, Any]]
    soft: int
    hard: int
    untold: int
    mean: float


def read_pool(path: Path) -> list[Row]:
    """The items of a pool in JSON Lines; raises InvalidValue with the line to mend."""
    rows = []
    try:
        with path.open("rb") as file:
            for number, text in enumerate(file, start=1):
                if text.strip():
                    rows.append(_row(text, f"line {number} of {path}"))
    except OSError as error:
        raise InvalidValue(f"{path} cannot be read: {error.strerror}", field="pool") from error
    if not rows:
        raise InvalidValue(
            f"{path} holds no items: it has to be a pool as JSON Lines, a line an item",
            field="pool",
        )
    return rows


def _row(text: bytes, place: str) -> Row:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"{place} is no JSON: {error}", field="pool") from None
    if not isinstance(line, dict) or not isinstance(line.get("id"), str):
        raise InvalidValue(f"{place} is no item: it needs an id, a text", field="pool")
    if "surrogates" in line:
        raise InvalidValue(f"{place} has several surrogates: take them out", field="pool")
    return Row(line, Case(line["id"], line.get("payload"), tuple(map(_answer, _sides(line)))))


def _sides(line: dict[str, Any]) -> list[dict[str, Any]]:
    """The systems of an item, in the order of their names' places; none of one system."""
    if isinstance(line.get("answers"), dict):
        sides = [*line["answers"].values()]
    else:
        sides = [line[side] for side in SIDES if side in line]
    return [side for side in sides if isinstance(side, dict)]


def _answer(side: dict[str, Any]) -> Answer:
    return Answer(side.get("answer"), side.get("payload"))


def opinions(
    rows: Sequence[Row], judge: Judge, concurrency: int, ended: Callable[[], None]
) -> list[Opinion]:
    """Return the judge's opinion on every item; the first refusal stops all and is raised.

    ``ended`` is called then, so that nobody waits for another try.
    """
    with ThreadPoolExecutor(concurrency) as threads:
        futures = [threads.submit(judge, row.case) for row in rows]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            for future in futures:
                if future.done():
                    future.result()
        except BaseException:
            ended()
            threads.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def guessed(rows: Sequence[Row], opinions: Sequence[Opinion]) -> Guesses:
    """The lines of the pool with a surrogate each, in place of any they had."""
    known = [guess for opinion in opinions for guess in opinion.guesses if guess is not None]
    if not known:
        why = next((opinion.reason for opinion in opinions if opinion.reason), "")
        raise InvalidValue(f"the judge gave no verdict on any item: {why}", field="rubric")
    mean = math.fsum(known) / len(known)
    soft = hard = untold = 0
    lines = []
    for row, opinion in zip(rows, opinions, strict=True):
        guesses = opinion.guesses or (None,)
        flags = opinion.soft or (False,)
        untold += None in guesses
        soft += None not in guesses and all(flags)
        hard += None not in guesses and not all(flags)
        lines.append(
            _line(row.line, [_tempered(*pair, mean) for pair in zip(guesses, flags, strict=True)])
        )
    return Guesses(lines, soft, hard, untold, mean)


def _tempered(guess: float | None, soft: bool, mean: float) -> float:  # noqa: FBT001 -- a pair that is zipped
    if guess is None:
        return mean
    return guess if soft else (guess + mean) / 2.0


def _line(line: dict[str, Any], guesses: Sequence[float]) -> dict[str, Any]:
    """An item with its guess, or with one for each of its systems."""
    copied: dict[str, Any] = json.loads(json.dumps(line))
    sides = _sides(copied)
    for part in (copied, *sides):
        part.pop("surrogate", None)
    if len(guesses) == len(sides):
        for side, guess in zip(sides, guesses, strict=True):
            side["surrogate"] = guess
    else:
        copied["surrogate"] = guesses[0]
    return copied


def write_pool(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    """Write the file as a whole, or not at all."""
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    write({path: text.encode(errors="backslashreplace")})
