"""The wheel alone, and with an extra: what it weighs, what it can do, and what it says is missing.

Everything is installed as a user would, with the versions of requirements/requirements.lock.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import pytest
from httpx import AsyncClient

from tests.factories import known_pool, labelled, opened
from tests.keys import ADMIN, bearer
from tests.servers import Service
from tests.wheels import CHECKOUT, built

pytestmark = pytest.mark.nightly

MOST_PACKAGES = 22
MOST_BYTES = 140_000_000
GOLDEN = CHECKOUT / "tests" / "golden" / "certificates"


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the wheel in it, and a folder that holds somebody's own `app`."""

    folder: Path

    def celeus(self, *arguments: object, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run `celeus` in the foreign folder."""
        home = self.folder / "home"
        own = {"PATH": os.environ["PATH"], "HOME": str(home), **settings}
        command = [str(self.folder / "bin" / "celeus"), *map(str, arguments)]
        return subprocess.run(
            command, cwd=home, env=own, check=False, capture_output=True, text=True
        )

    def packages(self) -> set[str]:
        """Names of all that is installed but pip itself."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.folder / "bin" / "python")]
        listed = subprocess.run(
            [*pip, "list", "--format=json", "--disable-pip-version-check"],
            check=True,
            capture_output=True,
            text=True,
        )
        return {row["name"].lower() for row in json.loads(listed.stdout)}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"))


def installed(folder: Path, requirement: str, *options: str) -> Environment:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    versions = folder / "versions.txt"
    lock = (CHECKOUT / "requirements" / "requirements.lock").read_text()
    versions.write_text("\n".join(re.findall(r"^[\w.-]+==[\w.]+", lock, re.MULTILINE)))
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install"]
    quiet = ["--quiet", "--disable-pip-version-check", "--constraint", str(versions)]
    subprocess.run([*pip, *quiet, *options, requirement], check=True)
    foreign = folder / "home" / "app"
    foreign.mkdir(parents=True)
    (foreign / "__init__.py").write_text("raise RuntimeError('this is somebody else\\'s')\n")
    return Environment(folder)


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return installed(tmp_path_factory.mktemp("bare"), str(wheel))


def test_the_bare_wheel_is_light(
    bare: Environment, record_property: Callable[[str, object], None]
) -> None:
    packages = bare.packages()
    (place,) = bare.folder.glob("lib/python*/site-packages")
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    record_property("bare wheel", f"{len(packages)} packages, {size / 1e6:.1f} MB")
    assert len(packages) <= MOST_PACKAGES, packages
    assert size <= MOST_BYTES
    assert not packages & {"fastapi", "pyarrow", "pydantic", "redis", "scipy", "sqlalchemy"}


def test_the_wheel_holds_the_pages_and_nothing_of_what_checks_them(wheel: Path) -> None:
    names = [name for name in ZipFile(wheel).namelist() if name.startswith("celeus/web/")]
    assert "celeus/web/static/js/api.js" in names
    assert {Path(name).suffix for name in names if name.count("/") == 2} == {".py"}
    assert not [name for name in names if "/types/" in name or "/node_modules/" in name]


def test_the_bare_wheel_brings_celeus_and_nothing_called_app(bare: Environment) -> None:
    program = "import celeus, importlib.util; print(importlib.util.find_spec('app'))"
    python = [str(bare.folder / "bin" / "python"), "-P", "-c", program]
    ended = subprocess.run(python, check=True, capture_output=True, text=True)
    assert ended.stdout == "None\n"


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (("serve",), "server"),
        (("admin", "migrate"), "server"),
        (("admin", "keys", "list"), "server"),
        (("dev", "openapi"), "server"),
        (("demo",), "demo"),
        (("mcp",), "mcp"),
    ],
)
def test_a_command_whose_extra_is_missing_names_it_in_one_line(
    bare: Environment, command: tuple[str, ...], extra: str
) -> None:
    ended = bare.celeus(*command)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.endswith(f"which is not installed: pip install 'celeus[{extra}]'\n")


def test_the_bare_wheel_makes_a_pool_of_a_log(bare: Environment) -> None:
    home = bare.folder / "home"
    (home / "scores.csv").write_text("id,loss\n1,0\n2,1\n")
    asked = ("import", "scores.csv", "--mapping", "id=id", "--mapping", "loss=score")
    ended = bare.celeus(*asked, "--truth", "scores", "--out", "pool.ndjson")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (home / "pool.ndjson").read_text() == '{"id": "1"}\n{"id": "2"}\n'
    assert (home / "pool.npz").exists()


async def session_with_a_question(service: Service) -> str:
    async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
        pool = await known_pool(client, 200)
        question = {"side": "at_most", "threshold": 0.9}
        session = await opened(client, pool, questions=[question])
        await labelled(client, session, pool, 80)
        return session


def test_the_gate_of_the_bare_wheel_runs_beside_a_foreign_app(
    bare: Environment, service: Service
) -> None:
    session = asyncio.run(session_with_a_question(service))
    where = (session, "--url", service.url)
    ended = bare.celeus("gate", *where, CELEUS_KEY=ADMIN)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "at most 0.9: yes (round " in ended.stdout


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.glob("*.final.json")))
def test_the_bare_wheel_verifies_a_certificate_of_every_kind(bare: Environment, name: str) -> None:
    pool = GOLDEN / f"{name.split('.')[1]}.npz"
    ended = bare.celeus("verify", GOLDEN / name, "--pool", pool)
    assert ended.returncode == 0, ended.stderr
