"""The image without a container engine: its own commands in a clean environment.

Run as they stand: the RUN steps of the build stage (a fresh virtual environment, installed from
the lock), ENTRYPOINT with CMD, ENTRYPOINT with `migrate`, HEALTHCHECK. Moved: /opt/celeus, /src and
the data folder lie under a temporary folder, and the port is a free one. Not run: the base image,
COPY between stages, and `useradd`, which would change this machine; they are only read.
"""

import fnmatch
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.settings import Settings
from tests.docker.dockerfile import Stage, stages
from tests.servers import data_folder, free_port

ROOT = Path(__file__).parents[2]
BUILD, FINAL = stages(ROOT / "docker" / "Dockerfile")
TARGET = "/opt/celeus"

pytestmark = pytest.mark.timeout(400)


@dataclass(frozen=True)
class Image:
    """What the build stage left in `target`, and a place for its data."""

    target: Path
    data: Path
    port: int

    def environment(self) -> dict[str, str]:
        """The image's ENV and nothing of ours, with folder and port moved."""
        told = {name: value.replace(TARGET, str(self.target)) for name, value in _env().items()}
        path = told["PATH"].replace("$PATH", os.defpath)
        moved = {"CELEUS_DATA_DIR": str(self.data), "CELEUS_PORT": str(self.port)}
        return told | moved | {"PATH": path}

    def command(self, arguments: list[str]) -> list[str]:
        """Arguments with the program looked up in the image's PATH."""
        program = shutil.which(arguments[0], path=self.environment()["PATH"])
        assert program is not None
        assert program.startswith(str(self.target))
        return [program, *arguments[1:]]

    def run(self, arguments: list[str]) -> "subprocess.CompletedProcess[str]":
        """Run a command of the image to its end."""
        return subprocess.run(
            self.command(arguments),
            env=self.environment(),
            cwd=self.target,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    with data_folder() as folder:
        source = folder / "src"
        source.mkdir()
        for origins, destination in _copies(BUILD):
            for origin in origins:
                _copy(ROOT / origin, source / destination / (origin if destination == "." else ""))
        target = folder / "celeus"
        for step in BUILD.all("RUN"):
            _shell(step.replace(TARGET, str(target)), source, folder)
        yield Image(target, folder / "data", free_port())


def test_the_image_serves_is_healthy_and_ends_on_sigterm(image: Image) -> None:
    server = subprocess.Popen(
        image.command([*FINAL.command("ENTRYPOINT"), *FINAL.command("CMD")]),
        env=image.environment(),
        cwd=image.target,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        check = FINAL.command("HEALTHCHECK")
        deadline = time.monotonic() + 90
        while image.run(check).returncode:
            assert server.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server does not become healthy"
            time.sleep(0.5)
    finally:
        server.terminate()
        status = server.wait(60)
    assert status == 128 + signal.SIGTERM
    assert image.run(check).returncode != 0


def test_the_same_image_migrates(image: Image) -> None:
    migrated = image.run([*FINAL.command("ENTRYPOINT"), "migrate"])
    assert migrated.returncode == 0, migrated.stderr
    assert "the database is at" in migrated.stdout


def test_the_image_holds_the_versions_of_the_lock_and_no_development_tools(image: Image) -> None:
    frozen = image.run(["python", "-m", "pip", "freeze", "--exclude", "celeus"])
    installed = {line.partition(" ")[0] for line in frozen.stdout.lower().splitlines()}
    lock = _lines((ROOT / "requirements.lock").read_text().lower().replace("_", "-"))
    assert {line.replace("_", "-") for line in installed} <= lock
    assert not any(line.startswith(("pytest", "mypy", "scikit-learn")) for line in installed)


def test_the_image_does_not_run_as_root() -> None:
    [useradd] = [step for step in FINAL.all("RUN") if step.startswith("useradd")]
    user, group = FINAL.one("USER").split(":")
    assert f"--uid {user} " in useradd
    assert user == group != "0"
    names = [name for name, _ in FINAL.said]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert FINAL.environment()["CELEUS_DATA_DIR"].startswith(FINAL.one("VOLUME"))


def test_both_stages_have_the_same_slim_python() -> None:
    assert BUILD.image == FINAL.image == "python:3.11-slim"


def test_every_variable_of_the_image_is_a_setting() -> None:
    known = {f"CELEUS_{name.upper()}" for name in Settings.model_fields}
    assert {name for name in _env() if name.startswith("CELEUS_")} <= known


def test_what_the_build_copies_is_sent_to_it() -> None:
    rules = (ROOT / ".dockerignore").read_text().splitlines()
    sent = [rule.removeprefix("!") for rule in rules if rule.startswith("!")]
    assert "*" in rules
    for origins, _ in _copies(BUILD):
        for origin in origins:
            assert (ROOT / origin).exists()
            assert any(fnmatch.fnmatch(origin, rule) for rule in sent), f"{origin} is not sent"


def _env() -> dict[str, str]:
    return FINAL.environment()


def _copies(stage: Stage) -> list[tuple[list[str], str]]:
    """Origins and destination of every COPY from the context."""
    found = []
    for text in stage.all("COPY"):
        *origins, destination = text.split()
        found.append((origins, destination.removeprefix("./") or "."))
    return found


def _copy(origin: Path, destination: Path) -> None:
    if origin.is_dir():
        shutil.copytree(origin, destination, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(origin, destination)


def _shell(step: str, folder: Path, temporary: Path) -> None:
    """One RUN step, as /bin/sh would in the image; `python` is this run's interpreter."""
    programs = temporary / "bin"
    programs.mkdir(exist_ok=True)
    if not (programs / "python").exists():
        # A script, not a link: a link would lead the new environment back to ours
        (programs / "python").write_text(f'#!/bin/sh\nexec "{_base_python()}" "$@"\n')
        (programs / "python").chmod(0o755)
    kept = {
        name: value
        for name, value in os.environ.items()
        # How the package index is reached is the machine's business
        if name.startswith(("PIP_", "SSL_")) or name.lower().endswith("_proxy") or name == "HOME"
    }
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", step],
        cwd=folder,
        env=kept | {"PATH": f"{programs}:{os.defpath}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{step}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def _base_python() -> Path:
    return (
        Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    )


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines() if line.strip()}
