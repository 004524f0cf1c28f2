"""Whatever a log has in the place of what it should: it is read, or refused in one line."""

import copy
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from celeus.errors import InvalidValue
from celeus.intake.joining import arrays, compare, join, ndjson
from celeus.intake.rows import Options, Row
from tests.intake.made import FIXTURES, rows
from tests.nightly import NIGHTLY

TRIES = 150 if NIGHTLY else 40
OTHERS: tuple[Any, ...] = (
    None,
    True,
    -1,
    1e308,
    10**400,
    "",
    "x",
    "\ud800",
    [],
    [[]],
    {},
    {"": {}},
    float("nan"),
)
LOGS = {
    "lm-eval": ("lm-eval/large", Options("acc", tasks=("toy_mc",))),
    "inspect": ("inspect/large.json", Options()),
    "promptfoo": ("promptfoo", Options("right", key="item")),
    "deepeval": ("deepeval", Options()),
    "helm": ("helm", Options("exact_match", higher=True)),
    "swebench": ("swebench", Options()),
}


def places(value: object) -> list[tuple[Any, Any]]:
    """Every member and element of a document, with what holds it."""
    inner = value if isinstance(value, list) else list(value) if isinstance(value, dict) else []
    keys = range(len(inner)) if isinstance(value, list) else inner
    found = [(value, key) for key in keys]
    for key in keys:
        found += places(value[key])  # type: ignore[index]  # a list or an object
    return found


def changed(text: str, chance: random.Random) -> str:
    """The document, or one line of it, with something else somewhere."""
    lines = text.splitlines() if "\n{" in text and not text.startswith("{\n") else [text]
    at = chance.randrange(len(lines))
    document = json.loads(lines[at])
    holder, key = chance.choice(places(document))
    if chance.random() < 0.3:
        del holder[key]
    else:
        holder[key] = copy.deepcopy(chance.choice(OTHERS))
    lines[at] = json.dumps(document)
    return "\n".join(lines) + "\n"


def used(found: list[Row]) -> None:
    """Make all of the rows that a command makes."""
    models = list(dict.fromkeys(row.model for row in found))
    ndjson(join(found))
    arrays(join(found, models[0]))
    if len(models) > 1:
        ndjson(compare(found, *models[:2]))


@pytest.mark.parametrize("form", LOGS)
def test_a_log_with_anything_in_it_is_read_or_refused_in_one_line(
    form: str, tmp_path: Path
) -> None:
    name, options = LOGS[form]
    place = tmp_path / "log"
    if (FIXTURES / name).is_dir():
        shutil.copytree(FIXTURES / name, place)
    else:
        place.mkdir()
        shutil.copy(FIXTURES / name, place)
    files = sorted(path for path in place.rglob("*.json*") if "toy_gen" not in path.name)
    texts = {path: path.read_text() for path in files}
    used(rows(form, place, options=options))
    chance = random.Random(form)  # noqa: S311 -- damage, no secrets
    refusals = []
    for _ in range(TRIES):
        path = chance.choice(files)
        path.write_text(changed(texts[path], chance))
        try:
            used(rows(form, place, options=options))
        except InvalidValue as refusal:
            refusals.append(refusal.detail)
        path.write_text(texts[path])
    assert 0 < len(refusals) < TRIES
    assert [said for said in refusals if "\n" in said] == []
