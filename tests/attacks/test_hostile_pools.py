"""Pools made to break something: refused by line, or judged to the end like any other."""

import io
import itertools
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from celeus.api.pools.sheet_worker import work
from celeus.api.pools.sheets import Limits, Reading
from celeus.errors import InvalidValue, PoolTooLarge, UploadTooLarge
from celeus.operations.runtime.workers import Frame
from tests.attacks.hostile import SCALES, coherent_rows, limits, losses, tables, uploads
from tests.attacks.tally import TRIES
from tests.attacks.world import made
from tests.nightly import NIGHTLY

POLICIES = ("sharp", "uniform", "celeus")
TARGETS = ("pool", "population")
BOUNDS = (None, "hoeffding", "kl", "clopper_pearson", "pairs", "exact_pairs")

tries = settings(
    database=None,
    derandomize=True,
    deadline=None,
    # The server is shared by all examples on purpose: none may spoil it for the next
    suppress_health_check=list(HealthCheck),
)


def new_pool(client: httpx.Client, scale: str) -> str:
    return str(made(client, "/v1/pools", {"name": scale, "loss": SCALES[scale]})["id"])


def upload(client: httpx.Client, pool: str, media: str, content: bytes) -> httpx.Response:
    return client.post(f"/v1/pools/{pool}/items", content=content, headers={"Content-Type": media})


def check_refusal(answer: httpx.Response) -> None:
    """A refused upload says in which line, or why the file cannot be read as a whole."""
    problem = answer.json()
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.status_code in {413, 422}, problem
    assert problem["status"] == answer.status_code
    if problem["code"] == "bad_rows":
        assert 1 <= len(problem["errors"]) <= 100
        for fault in problem["errors"]:
            assert fault["line"] >= 1
            assert fault["rule"]
            assert len(json.dumps(fault["value"])) <= 1100
    else:
        assert problem["field"]
        assert problem["rule"]


@settings(tries, max_examples=3000 if NIGHTLY else 24)
@given(
    st.sampled_from(sorted(SCALES)).flatmap(lambda scale: st.tuples(st.just(scale), uploads(scale)))
)
def test_a_hostile_upload_is_taken_whole_or_refused_by_line_with_nothing_kept(
    client: httpx.Client, sent: tuple[str, tuple[str, bytes]]
) -> None:
    TRIES["hostile uploads"] += 1
    scale, (media, content) = sent
    pool = new_pool(client, scale)
    answer = upload(client, pool, media, content)
    kept = client.get(f"/v1/pools/{pool}").json()["items"]
    listed = client.get(f"/v1/pools/{pool}/items").json()["data"]
    assert len(listed) == kept
    if answer.is_success:
        assert answer.json()["added"] == kept
    else:
        check_refusal(answer)
        assert kept == 0
    if kept:
        judged_to_the_end(client, pool, scale, itertools.cycle(limits(scale)), {})


@settings(tries, max_examples=1500 if NIGHTLY else 10)
@given(st.data())
def test_whatever_was_accepted_is_judged_to_the_end_and_covers_its_true_mean(
    client: httpx.Client, data: st.DataObject
) -> None:
    TRIES["strange pools judged to the end"] += 1
    scale = data.draw(st.sampled_from(sorted(SCALES)), "scale")
    body = {
        "name": "hostile",
        "loss": SCALES[scale],
        "items": data.draw(coherent_rows(scale), "rows"),
    }
    pool = str(made(client, "/v1/pools", body)["id"])
    found = st.lists(losses(scale), min_size=7, max_size=7)
    opening = {
        "policy": data.draw(st.sampled_from(POLICIES), "policy"),
        "target": data.draw(st.sampled_from(TARGETS), "target"),
        "alpha": data.draw(st.sampled_from([0.05, 0.5, 1e-9, 1 - 1e-9]), "alpha"),
        "strategy": data.draw(st.sampled_from([None, "A", "B", "C"]), "strategy"),
        "parameters": data.draw(st.sampled_from([{}, {"beta": 1e-3}, {"range": "exact"}])),
    }
    if opening["target"] == "population":
        opening["population_bound"] = data.draw(st.sampled_from(BOUNDS), "bound")
    judged_to_the_end(client, pool, scale, itertools.cycle(data.draw(found, "losses")), opening)


@settings(tries, max_examples=20_000 if NIGHTLY else 150)
@given(content=tables())
def test_a_hostile_parquet_file_is_read_or_refused_by_name(content: bytes) -> None:
    TRIES["hostile Parquet files"] += 1
    with suppress(InvalidValue, UploadTooLarge, PoolTooLarge):
        job = {"reading": asdict(Reading(items=True)), "limits": asdict(Limits(1 << 28, 10**6))}
        for frame in work(Frame(job), [io.BytesIO(content)]):
            rows = json.loads(frame.arrays["rows"].tobytes())
            assert all(isinstance(row, dict | list) for row in rows)


def judged_to_the_end(
    client: httpx.Client,
    pool: str,
    scale: str,
    found: Iterator[float],
    opening: dict[str, Any],
) -> None:
    """Seal, open, judge every item; the interval has to hold the mean at every moment's end."""
    assert client.post(f"/v1/pools/{pool}/seal").is_success
    answer = client.post("/v1/sessions", json={"pool_id": pool} | opening)
    if not answer.is_success:
        # What cannot be certified is declined by name: a bound for other losses, say
        assert answer.status_code == 422, answer.text
        assert answer.json()["code"] in {"invalid_value", "unreachable_precision"}
        return
    session = answer.json()["id"]
    told: dict[int, float] = {}
    held = made(client, f"/v1/sessions/{session}/next", {"worker": "w", "count": 3})
    while held["draws"]:
        judgements = []
        for draw in held["draws"]:
            told[draw["item"]["index"]] = next(found)
            judgements.append({"round": draw["round"], "loss": told[draw["item"]["index"]]})
        body = {"observations": judgements, "worker": "w", "next": 3}
        held = made(client, f"/v1/sessions/{session}/observe", body)
    status = client.get(f"/v1/sessions/{session}").json()
    check_end(status, told, scale)
    for part in ("trajectory", "ledger", "certificate"):
        assert client.get(f"/v1/sessions/{session}/{part}").is_success, part


def check_end(status: dict[str, Any], told: dict[int, float], scale: str) -> None:
    lower, upper = limits(scale)
    assert status["state"] == "exhausted"
    assert len(told) == status["items"] == status["round"]
    assert lower <= status["lower"] <= status["upper"] <= upper
    assert lower <= status["estimate"] <= upper
    if status["target"] == "pool":
        mean = sum(told.values()) / len(told)
        # A float has 16 digits: sums of losses and cells of candidates may differ in the last ones
        slack = 1e-9 * max(upper - lower, abs(lower) * 1e-3)
        assert status["lower"] - slack <= mean <= status["upper"] + slack
