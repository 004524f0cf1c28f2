import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

from celeus.cli import cli
from celeus.demo.by_hand import ENLARGED, MARGIN, png, write_pool
from celeus.demo.digits import digits
from celeus.errors import InvalidValue


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pool") / "digits.jsonl"
    done = CliRunner().invoke(cli, ["demo", "--write-pool", str(path)])
    assert done.exit_code == 0, done.output
    assert f"wrote 1737 digits to {path}" in done.output
    return path


@pytest.fixture(scope="module")
def known() -> list[dict[str, Any]]:
    return digits(0).items


def test_the_file_holds_the_pool_of_the_demo_as_pictures(
    file: Path, known: list[dict[str, Any]]
) -> None:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["id"] for line in lines] == [item["id"] for item in known]
    for name in ("target_probs", "surrogate_probs"):
        assert [line[name] for line in lines] == [item[name] for item in known]
    assert lines[0]["payload"]["choices"] == list("0123456789")
    assert file.stat().st_size < 8 << 20


def test_the_pictures_are_the_digits(
    file: Path, known: list[dict[str, Any]], tmp_path: Path
) -> None:
    first = json.loads(file.read_text().splitlines()[0])
    kept = tmp_path / "digit.png"
    kept.write_bytes(base64.b64decode(first["payload"]["image"]["src"].partition(",")[2]))
    seen = imread(kept)
    side = 8 + 2 * MARGIN
    assert seen.shape[:2] == (side * ENLARGED, side * ENLARGED)
    image = known[0]["payload"]["image"]
    dark = 1.0 - seen.reshape(side, ENLARGED, side, ENLARGED, *seen.shape[2:]).mean(axis=(1, 3))
    dark = dark if dark.ndim == 2 else dark[..., 0]
    drawn = np.pad(np.array(image), MARGIN)
    assert np.corrcoef(dark.ravel(), drawn.ravel())[0, 1] > 0.9


def test_what_is_written_tells_no_label(file: Path) -> None:
    members = {name for line in file.read_text().splitlines() for name in json.loads(line)}
    assert members == {"id", "payload", "target_probs", "surrogate_probs"}


def test_a_picture_of_nothing_is_white() -> None:
    assert png(np.zeros((8, 8))) == png(np.full((8, 8), -1.0))


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="cannot be written"):
        write_pool(tmp_path / "nowhere" / "digits.jsonl")
