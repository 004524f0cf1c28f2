"""Logs in the forms that tools write, with the scores a test wants; the tools' own are fixtures."""

import json
import math
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from celeus.errors import InvalidValue
from celeus.intake.formats.registry import read, sources
from celeus.intake.joining import rows_of
from celeus.intake.rows import Options, Row, digest_of

FIXTURES = Path(__file__).parents[1] / "ecosystem" / "fixtures"
DATE = "2026-11-22T01-00-50.179930"


def rows(form: str, *paths: Path, options: Options | None = None) -> list[Row]:
    """The rows of logs, as the command reads them."""
    return rows_of(read(form, sources(form, paths), options or Options()))


def mean(values: Iterable[float | None]) -> float:
    """The mean of the losses there are."""
    known = [one for one in values if one is not None]
    return math.fsum(known) / len(known)


def refusal(call: Callable[..., object], *arguments: Any, **more: Any) -> str:  # noqa: ANN401 -- any
    """What a call is refused with: one line."""
    with pytest.raises(InvalidValue) as caught:
        call(*arguments, **more)
    assert "\n" not in caught.value.detail
    return caught.value.detail


def lm_eval(  # noqa: PLR0913 -- what a log may be
    folder: Path,
    model: str,
    scores: Sequence[object],
    *,
    task: str = "toy",
    higher: bool | None = True,
    filters: Sequence[str] = ("none",),
    version: str = "",
    answers: Sequence[str] | None = None,
) -> Path:
    """A samples file and the results beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    results = {
        "higher_is_better": {task: {"exact_match": higher}},
        "config": {"model": "hf", "model_args": {"pretrained": model}},
        "versions": {task: 1.0},
        "n-shot": {task: 0},
    }
    (folder / f"results_{DATE}.json").write_text(json.dumps(results))
    lines = []
    for at, score in enumerate(scores):
        said = f"answer {score}" if answers is None else answers[at]
        for name in filters:
            doc = {"question": f"{version}{at}?", "answer": "right"}
            line = {
                "doc_id": at,
                "doc": doc,
                "target": "right",
                "arguments": {"gen_args_0": {"arg_0": f"Q: {at}?", "arg_1": {}}},
                "resps": [[said]],
                "filtered_resps": [said],
                "filter": name,
                "metrics": ["exact_match"],
                "doc_hash": digest_of(doc),
                "exact_match": score,
            }
            lines.append(json.dumps(line))
    path = folder / f"samples_{task}_{DATE}.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def losses(items: int, models: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float64]]:
    """0-1 losses, shape [items, models]: items are hard or easy for all models."""
    chance = np.random.default_rng(seed)
    difficulty = chance.beta(0.5, 0.8, items)
    return np.asarray((chance.random((models, items)) < difficulty).T, dtype=np.float64)


def inspect_json(samples: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:  # noqa: ANN401 -- any
    """A finished log of Inspect, as its .json."""
    head = {"version": 2, "status": "success", "eval": {"model": "mockllm/a", "task": "toy"}}
    return head | {"samples": list(samples)} | more


def inspect_sample(at: int, value: object, **more: Any) -> dict[str, Any]:  # noqa: ANN401 -- any
    """A sample of it with one score."""
    sample = {"id": at, "epoch": 1, "input": f"Question {at}?", "target": "A"}
    return sample | {"scores": {"match": {"value": value, "answer": "A"}}} | more


def as_eval(document: dict[str, Any], path: Path, packing: int = zipfile.ZIP_DEFLATED) -> Path:
    """The same log as an .eval archive."""
    head = {name: value for name, value in document.items() if name != "samples"}
    with zipfile.ZipFile(path, "w", packing) as archive:
        archive.writestr("header.json", json.dumps(head))
        for one in document["samples"]:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
    return path
