"""Frames of the libraries that people have become pools, each the same one."""

import json
from collections.abc import Iterator
from typing import Any

import datasets
import pandas as pd
import polars as pl
import pytest

from celeus import Client
from celeus.client.rows import frame_of, upload_of
from tests.ecosystem.service import Service

pytestmark = pytest.mark.ecosystem
ROWS = [
    {
        "id": f"q-{at}",
        "surrogate": at / 40,
        "payload": {"question": f"What is {at} + {at}?", "answers": [at, 2 * at]},
    }
    for at in range(40)
]


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(service.url, service.key) as client:
        yield client


def frames(rows: list[dict[str, Any]]) -> dict[str, object]:
    """The same rows in every library."""
    return {
        "pandas": pd.DataFrame(rows),
        "polars": pl.DataFrame(rows),
        "datasets": datasets.Dataset.from_list(rows),
        "dicts": rows,
    }


def test_frames_of_every_library_make_pools_of_one_digest(client: Client) -> None:
    made = {name: client.create_pool(name, frame) for name, frame in frames(ROWS).items()}
    assert {pool.items for pool in made.values()} == {len(ROWS)}
    assert len({pool.digest for pool in made.values()}) == 1, made


def test_what_is_missing_in_a_frame_is_left_out() -> None:
    rows = [{"id": "a", "surrogate": 0.5, "group": "x"}, {"id": "b", "surrogate": 0.25}]
    for name, frame in frames([row | {"group": row.get("group")} for row in rows]).items():
        with upload_of(frame) as upload:
            sent = b"".join(upload.parts()).splitlines()
        assert [json.loads(line) for line in sent] == rows, name


def test_labels_become_a_frame_with_columns_by_name() -> None:
    at = "2026-11-23T09:30:00.000000+00:00"
    row = {"item": "a", "losses": {"x": 0.5}, "groups": {"topic": "law"}, "judged_at": at}
    frame = frame_of([row, row | {"losses": None}])
    assert list(frame.columns) == ["item", "judged_at", "losses.x", "groups.topic"]
    assert frame["judged_at"].dt.year.tolist() == [2026, 2026]
    assert frame["losses.x"].isna().tolist() == [False, True]
