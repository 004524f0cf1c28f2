"""Small requests that would cost much: refused within bounds of time and memory.

Memory is the peak that the kernel has counted for the server; readers of Parquet bound their own.
"""

import bz2
import gzip
import io
import itertools
import json
import os
import socket
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.attacks.hostile import CSV, NDJSON, PARQUET
from tests.attacks.tally import TRIES
from tests.attacks.wire import request, sent
from tests.attacks.world import World, build, made
from tests.keys import ADMIN
from tests.nightly import NIGHTLY
from tests.servers import Service

MEGABYTE = 1 << 20
MOST_GROWTH = 400 * MEGABYTE
MOST_SECONDS = 15.0
"""Of a processor."""
MANY = 10**6
DEEP = 100_000


@pytest.fixture
def world(client: httpx.Client) -> World:
    return build(client)


def peak_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def processor_seconds(pid: int) -> float:
    """Of a process and its children that ended."""
    own = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, own[11:15])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def bounded(service: Service) -> Iterator[None]:
    """The block may cost the server only so much memory and processor time."""
    pid = service.process.pid
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    before, began = peak_bytes(pid), processor_seconds(pid)
    yield
    TRIES["small requests that would cost much"] += 1
    assert peak_bytes(pid) - before < MOST_GROWTH
    assert processor_seconds(pid) - began < MOST_SECONDS


# What is sent is made by the test that sends it: each worker imports this module
def packed() -> dict[str, bytes]:
    """Bodies that are small only as long as they are packed, by their encoding."""
    zeros = b" " * (64 * MEGABYTE)
    return {
        "gzip": gzip.compress(zeros, 1),
        "deflate": zlib.compress(zeros, 1),
        "x-gzip": gzip.compress(gzip.compress(zeros, 1)),
        "bzip2": bz2.compress(zeros[:MEGABYTE]),
        "br": b"\x5b\xff\xff\xff\xff" * 9,
        "zstd": b"\x28\xb5\x2f\xfd" + b"\xff" * 99,
        "identity, gzip": gzip.compress(zeros, 1),
    }


def test_a_packed_body_is_not_unpacked(
    service: Service, client: httpx.Client, world: World
) -> None:
    session, pool = world.sessions["fresh"], world.pools["open"]
    paths = {
        "/v1/pools": "application/json",
        f"/v1/pools/{pool}/items": NDJSON,
        f"/v1/sessions/{session}/observe": "application/json",
        "/v1/certificates/verify": "application/json",
    }
    for number, ((encoding, content), (path, media)) in enumerate(
        itertools.product(packed().items(), paths.items())
    ):
        # By day each encoding at one of the paths
        if not NIGHTLY and number % len(paths) != number // len(paths) % len(paths):
            continue
        with bounded(service):
            headers = {"Content-Type": media, "Content-Encoding": encoding}
            answer = client.post(path, content=content, headers=headers)
        assert answer.status_code == 415, (encoding, path)


def json_bodies() -> dict[str, bytes]:
    """Bodies that are hard to read, by what makes them so."""
    return {
        "lists within lists": b"[" * DEEP,
        "closed lists": b"[" * DEEP + b"]" * DEEP,
        "objects within objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        "deep payload": b'{"name":"p","loss":{"kind":"zero_one"},"items":[{"id":"a","payload":{"a":'
        + b"[" * 900
        + b"]" * 900
        + b"}}]}",
        "a million members": json.dumps({f"k{i}": 0 for i in range(MANY // 4)}).encode(),
        "the same member": b"{" + b'"a":1,' * MANY + b'"a":1}',
        "a million digits": b'{"round": ' + b"9" * MANY + b', "loss": 1, "worker": "w"}',
        "a million decimals": b'{"round": 1, "loss": 0.' + b"3" * MANY + b', "worker": "w"}',
        "a great exponent": b'{"round": 1, "loss": 1e' + b"9" * 1000 + b', "worker": "w"}',
        "a small exponent": b'{"round": 1, "loss": 1e-' + b"9" * 1000 + b', "worker": "w"}',
        "long worker": b'{"worker": "' + b"w" * (MEGABYTE - 100) + b'"}',
        "escapes": b'{"worker": "' + b"\\ud800" * 150_000 + b'"}',
        "bytes that are no text": b'{"worker": "\xff\xfe\xfd"}',
        "text in UTF-16": '{"worker": "w"}'.encode("utf-16"),
        "text in UTF-32": '{"worker": "w"}'.encode("utf-32"),
        "NaN": b'{"round": NaN, "loss": -Infinity, "worker": "w"}',
        "nothing": b"",
        "spaces": b" " * (MEGABYTE - 1),
        "commas": b"[" + b"," * MANY + b"]",
    }


def test_hostile_json_is_refused_within_bounds(
    service: Service, client: httpx.Client, world: World
) -> None:
    session = world.sessions["judged"]
    paths = [f"/v1/sessions/{session}/{verb}" for verb in ("next", "observe", "amendments")]
    paths += ["/v1/pools", "/v1/sessions"]
    headers = {"Content-Type": "application/json"}
    for (name, content), path in itertools.product(
        json_bodies().items(), paths if NIGHTLY else paths[1:4:2]
    ):
        with bounded(service):
            answer = client.post(path, content=content, headers=headers)
        accepted = {200} if name == "a million decimals" and "observe" in path else set()
        assert answer.status_code in {409, 413, 422} | accepted, (name, path, answer.text[:200])
        assert len(answer.content) < 100_000, name


def hard_lines() -> dict[str, bytes]:
    """Rows that are hard to read, by what makes them so."""
    return {
        "deep payload": b'{"id":"a","payload":{"a":' + b"[" * DEEP + b"]" * DEEP + b"}}",
        "deep row": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        "a million keys": b"{" + b",".join(b'"%d":0' % i for i in range(300_000)) + b"}",
        "a million digits": b'{"id":"a","surrogate":' + b"9" * MANY + b"}",
        "digits in payload": b'{"id":"a","payload":{"a":' + b"9" * MANY + b"}}",
        "a great exponent": b'{"id":"a","payload":{"a":1e400}}',
        "nearly too great": b'{"id":"a","payload":{"a":[' + b"1e308," * 3000 + b"1]}}",
        "a megabyte of id": b'{"id":"' + b"x" * MEGABYTE + b'"}',
        "many probabilities": b'{"id":"a","target_probs":[' + b"0," * MANY + b"1]}",
        "many surrogates": b'{"id":"a","surrogates":[' + b"0," * MANY + b"1]}",
        "many bad rows": b"{}\n" * MANY,
        "many empty lines": b"\n" * (4 * MEGABYTE),
        "many groups": b"\n".join(b'{"id":"%d","group":"g%d"}' % (i, i) for i in range(20_000)),
        "an endless line": b'{"id":"' + b"x" * (9 * MEGABYTE),
    }


def test_a_hostile_line_is_refused_within_bounds(service: Service, client: httpx.Client) -> None:
    for name, content in hard_lines().items():
        answer, pool = uploaded(service, client, content, NDJSON)
        taken = {200} if name in {"many empty lines", "nearly too great"} else set()
        taken |= {200} if name == "many probabilities" else set()
        assert answer.status_code in {413, 422} | taken, (name, answer.text[:300])
        assert len(answer.content) < 100_000, name
        assert answer.is_success or client.get(f"/v1/pools/{pool}").json()["items"] == 0, name


def uploaded(
    service: Service, client: httpx.Client, content: bytes, media: str
) -> tuple[httpx.Response, str]:
    """The answer to an upload to a new pool, which is named too."""
    pool = made(client, "/v1/pools", {"name": "p", "loss": {"kind": "zero_one"}})["id"]
    headers = {"Content-Type": media}
    with bounded(service):
        answer = client.post(f"/v1/pools/{pool}/items", content=content, headers=headers)
    return answer, pool


TABLES = {
    "many columns": b",".join(b"surrogates.%d" % i for i in range(100_000)) + b",id\n",
    "a far column": b"id,surrogates.999999999999999999999\na,0\n",
    "digits": b"id,prediction\na," + b"9" * MANY + b"\n",
    "digits of a number": b"id,surrogate\na," + b"9" * MANY + b"\n",
    "an open quote": b'id,payload\na,"' + b"x\n" * MEGABYTE,
    "many quotes": b"id,payload\na," + b'"' * (2 * MEGABYTE + 1) + b"\n",
    "many cells": b"id\n" + b"," * (3 * MEGABYTE) + b"\n",
    "an object of lists": b'id,payload\na,"{""a"":' + b"[" * DEEP + b"]" * DEEP + b'}"\n',
}


def test_a_hostile_table_is_refused_within_bounds(service: Service, client: httpx.Client) -> None:
    for name, content in TABLES.items():
        answer, pool = uploaded(service, client, content, CSV)
        assert answer.status_code in {413, 422}, (name, answer.text[:300])
        assert client.get(f"/v1/pools/{pool}").json()["items"] == 0, name


def parquet(table: pa.Table, **options: object) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def packed_tables() -> dict[str, bytes]:
    """Files of some kilobytes that unpack to hundreds of megabytes."""
    long = pa.array(["x" * MEGABYTE] * 200)
    same = pa.array(np.zeros(4 * MANY))
    names = pa.DictionaryArray.from_arrays(np.zeros(4 * MANY, dtype=np.int32), ["a"])
    zeros = pa.ListArray.from_arrays(pa.array([0, 3 * MANY], pa.int32()), np.zeros(3 * MANY))
    return {
        "one text many times": parquet(pa.table({"id": long}), compression="zstd"),
        "one number many times": parquet(pa.table({"id": names, "surrogate": same})),
        "many empty lists": parquet(
            pa.table({"id": pa.array(["a"]), "surrogates": zeros}),
            compression="zstd",
        ),
        "a cut header": b"PAR1" + b"\xff" * 64 + (0x7FFFFFF0).to_bytes(4, "little") + b"PAR1",
    }


@pytest.mark.nightly
def test_a_parquet_bomb_is_refused_within_bounds(service: Service, client: httpx.Client) -> None:
    for name, content in packed_tables().items():
        assert len(content) < 8 * MEGABYTE, name
        answer, pool = uploaded(service, client, content, PARQUET)
        assert answer.status_code in {413, 422}, (name, answer.text[:300])
        assert client.get(f"/v1/pools/{pool}").json()["items"] == 0, name


def test_numbers_of_any_length_in_path_query_and_headers_are_refused(
    service: Service, world: World
) -> None:
    session, pool = world.sessions["judged"], world.pools["scored"]
    digits = "9" * 50_000
    targets = [
        f"/v1/pools/{pool}/items?after={digits}",
        f"/v1/pools/{pool}/items?limit={digits}",
        f"/v1/sessions/{session}/ledger?after={digits}",
        f"/v1/sessions/{session}/trajectory?points={digits}",
        f"/v1/pools/pool_{digits}",
    ]
    shown = f"Authorization: Bearer {ADMIN}"
    with bounded(service):
        for target in targets:
            answer = sent(service.url, request("GET", target, shown))
            assert set(answer.statuses) <= {400, 404, 414, 422, 431}, target
        for header in ("Last-Event-ID", "Content-Length", "If-None-Match", "X-Other"):
            stream = f"/v1/sessions/{session}/stream"
            answer = sent(service.url, request("GET", stream, shown, f"{header}: {digits}"), 2.0)
            assert set(answer.statuses) <= {200, 400, 413, 422, 431}, header


def test_many_slow_requests_hold_up_nobody_else(service: Service, client: httpx.Client) -> None:
    address = urlsplit(service.url)
    assert address.hostname is not None
    opening = f"POST /v1/pools HTTP/1.1\r\nHost: c\r\nAuthorization: Bearer {ADMIN}\r\n"
    whole = opening + "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    with ExitStack() as open_lines, bounded(service):
        for number in range(200):
            line = socket.create_connection((address.hostname, address.port or 80), timeout=10)
            open_lines.enter_context(line)
            line.sendall((opening if number % 2 else whole).encode())
        for _ in range(10):
            assert client.get("/v1/pools").is_success
            assert client.get("/readyz").is_success
