"""The image, built as docker/Dockerfile says and started."""

import asyncio
import io
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from httpx import AsyncClient

from tests.docker.images import (
    ROOT,
    Container,
    build,
    called,
    config,
    container,
    make_base,
    make_node_base,
    require_tools,
)
from tests.factories import KnownPool, labelled, opened
from tests.keys import bearer
from tests.servers import free_port

pytestmark = pytest.mark.nightly

MOST_BYTES = 450_000_000
USER = 10001
LISTED = "import importlib.metadata as m; print(*{d.name.lower() for d in m.distributions()})"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The image, built."""
    require_tools()
    make_base(tmp_path_factory.mktemp("base"))
    make_node_base()
    build()


@pytest.fixture
def box(image: None, tmp_path: Path) -> Iterator[Container]:
    """A container with an empty volume."""
    del image
    os.chown(tmp_path, USER, USER)
    with container(tmp_path) as box:
        yield box


def size(folder: Path) -> int:
    """Bytes of all files below."""
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    # Other names of one file take no room
    return sum({path.lstat().st_ino: path.lstat().st_size for path in paths}.values())


def test_the_image_is_small(box: Container, record_property: Callable[[str, object], None]) -> None:
    total, own = size(box.root), size(box.root / "opt")
    told = f"image: {total / 1e6:.0f} MB, of which {own / 1e6:.0f} MB are ours"
    record_property("measured", told)
    assert total <= MOST_BYTES, told


def test_the_image_holds_what_the_lock_says_and_no_more(box: Container) -> None:
    lock = (ROOT / "requirements" / "server.lock").read_text()
    locked = {name.lower() for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)}
    found = box.run("-c", LISTED, program="/opt/celeus/bin/python").split()
    assert {re.sub(r"[-_.]+", "-", name) for name in found} == locked | {"celeus"}


def test_the_image_serves_one_script_a_page(box: Container) -> None:
    program = "from celeus.web.assets import Assets; print(Assets().lookup_path('js/label.js')[0])"
    found = box.run("-c", program, program="/opt/celeus/bin/python")
    assert found.endswith("/celeus/web/bundle/js/label.js")


def test_the_image_does_not_run_as_root() -> None:
    assert config()["User"] == f"{USER}:{USER}"


@contextmanager
def served(box: Container) -> Iterator[tuple[str, str]]:
    """Address and first key of the image's own service, ended by SIGTERM."""
    port, log = free_port(), box.volume / "service.log"
    entry = box.command("serve", "--show-key", "--host", "127.0.0.1", "--port", str(port))
    with log.open("w") as output:
        process = subprocess.Popen(entry, stdout=output, stderr=output)
    service = 0
    try:
        deadline = time.monotonic() + 300
        url = f"http://127.0.0.1:{port}"
        while not ready(url):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        # The container sees the same processes as this machine
        service = int((box.volume / "data" / "address").read_text().split()[0])
        key = re.search(r"^celeus key: (ce_\S+)$", log.read_text(), re.MULTILINE)
        yield url, "" if key is None else key[1]
    finally:
        if service:
            os.kill(service, signal.SIGTERM)
        else:
            process.terminate()
        process.wait(120)


def ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=5).is_success
    except httpx.TransportError:
        return False


async def uploaded(client: AsyncClient, items: int) -> KnownPool:
    """A pool out of a Parquet file."""
    rng = np.random.default_rng(0)
    surrogate = rng.random(items)
    losses = [int(loss) for loss in rng.random(items) < surrogate]
    table = pa.table({"id": [f"item-{i}" for i in range(items)], "surrogate": surrogate})
    file = io.BytesIO()
    pq.write_table(table, file)
    pool = await client.post("/v1/pools", json={"name": "known", "loss": {"kind": "zero_one"}})
    assert pool.status_code == 201, pool.text
    path = f"/v1/pools/{pool.json()['id']}"
    told = {"Content-Type": "application/vnd.apache.parquet"}
    answer = await client.post(f"{path}/items", content=file.getvalue(), headers=told)
    assert answer.is_success, answer.text
    answer = await client.post(f"{path}/seal")
    assert answer.is_success, answer.text
    return KnownPool(pool.json()["id"], losses)


async def certified(url: str, key: str) -> httpx.Response:
    """The certificate of a session judged to its end, after a plan."""
    async with AsyncClient(base_url=url, headers=bearer(key), timeout=120) as client:
        pool = await uploaded(client, 300)
        body = {"precision": 0.3, "runs": 3, "policies": ["sharp"]}
        plan = await client.post(f"/v1/pools/{pool.id}/planning", json=body)
        assert plan.status_code == 200, plan.text
        session = await opened(client, pool, precision=0.3)
        await labelled(client, session, pool, 300)
        return await client.get(f"/v1/sessions/{session}/certificate")


def test_the_image_certifies_with_a_key_of_its_own_and_writes_only_to_its_volume(
    box: Container, record_property: Callable[[str, object], None]
) -> None:
    begun = time.time()
    started = time.monotonic()
    with served(box) as (url, key):
        record_property("measured", f"image: ready after {time.monotonic() - started:.1f} s")
        certificate = asyncio.run(certified(url, key))
        assert certificate.status_code == 200, certificate.text
        public = httpx.get(f"{url}/v1/certificates/key", headers=bearer(key), timeout=10).json()
    data = box.volume / "data"
    assert (data / "signing.pem").stat().st_uid == USER
    assert not (data / "postgres" / "postmaster.pid").exists(), "it was stopped"
    changed = called("find", box.root, "-xdev", "-type", "f", "-newermt", f"@{begun}").split()
    places = {Path(name).relative_to(box.root).parts[0] for name in changed}
    assert places <= {"tmp"}, "the root of a container may be read-only"
    (box.volume / "certificate.json").write_text(certificate.text)
    box.run("verify", "certificate.json", "--public-key", public["public_key"])


def test_a_restarted_container_signs_with_the_same_key(box: Container) -> None:
    keys = set()
    for _ in range(2):
        with served(box):
            keys.add((box.volume / "data" / "signing.pem").read_bytes())
    assert len(keys) == 1
