"""Build the image with Debian's own tools, without Docker or its registry, and run it."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BASE = "localhost/celeus-test-python:3.11-slim"
NODE_BASE = "localhost/celeus-test-node:18-slim"
IMAGE = "localhost/celeus-test"
SUITE = "bookworm"
PACKAGES = "python3,python3-venv,ca-certificates"
NOT_SLIM = ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/lib/apt/lists")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
CHROOT = "--isolation=chroot"


def called(*command: str | Path) -> str:
    """What a command prints; its own words where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout.strip()


def require_tools() -> None:
    """Have buildah and debootstrap, by apt where they are missing."""
    assert os.geteuid() == 0, "only root can build the image this way"
    missing = [tool for tool in ("buildah", "debootstrap") if shutil.which(tool) is None]
    if missing:
        called("apt-get", "update", "-qq")
        called("apt-get", "install", "-qq", "-y", "--no-install-recommends", *missing)


def make_base(folder: Path) -> None:
    """What stands in for Docker's `python:3.11-slim`, kept for the next time."""
    if called("buildah", "images", "--quiet", "--filter", f"reference={BASE}"):
        return
    root = folder / "base"
    called("debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, root)
    for rest in (root / place for place in NOT_SLIM):
        shutil.rmtree(rest)
        rest.mkdir()
    called("chroot", root, "apt-get", "clean")
    (root / "usr" / "bin" / "python").symlink_to("python3")
    # debootstrap may leave it mounted
    umount = ["umount", str(root / "proc")]
    subprocess.run(umount, capture_output=True, check=False)
    packed = folder / "base.tar"
    called("tar", "--one-file-system", "-C", root, "-cf", packed, ".")
    container = called("buildah", "from", "scratch")
    try:
        called("buildah", "add", container, packed, "/")
        called("buildah", "commit", container, BASE)
    finally:
        called("buildah", "rm", container)


def make_node_base() -> None:
    """What stands in for Docker's `node:22-bookworm-slim`, kept for the next time."""
    if called("buildah", "images", "--quiet", "--filter", f"reference={NODE_BASE}"):
        return
    container = called("buildah", "from", BASE)
    try:
        for command in ("update", "install -y --no-install-recommends nodejs npm"):
            called("buildah", "run", CHROOT, container, "--", "apt-get", "-qq", *command.split())
        called("buildah", "commit", container, NODE_BASE)
    finally:
        called("buildah", "rm", container)


def build() -> None:
    """Build what docker/Dockerfile says."""
    called(
        *("buildah", "build", CHROOT, "--layers", "--format", "docker"),
        *("--build-arg", f"PYTHON_IMAGE={BASE}", "--build-arg", f"NODE_IMAGE={NODE_BASE}"),
        *("--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro"),
        *("--file", ROOT / "docker" / "Dockerfile", "--tag", IMAGE, ROOT),
    )


@dataclass(frozen=True)
class Container:
    """A container of the image; its processes run on this machine's network, seen from here."""

    name: str
    root: Path
    volume: Path

    def command(self, *arguments: str, program: str | None = None) -> list[str]:
        """The command that runs the image's program, or another one, with these arguments."""
        mount = f"{self.volume}:{config()['Volumes'].popitem()[0]}"
        entry = config()["Entrypoint"] if program is None else [program]
        run = ["buildah", "run", CHROOT, "--volume", mount, self.name, "--"]
        return [*run, *entry, *(arguments or config()["Cmd"])]

    def run(self, *arguments: str, program: str | None = None) -> str:
        """What it prints."""
        return called(*self.command(*arguments, program=program))


def config() -> dict[str, Any]:
    """What the image says of how it is run."""
    told = json.loads(called("buildah", "inspect", "--type", "image", IMAGE))
    found: dict[str, Any] = told["Docker"]["config"]
    return found


@contextmanager
def container(volume: Path) -> Iterator[Container]:
    """A container of the image, removed on leaving."""
    name = called("buildah", "from", IMAGE)
    try:
        yield Container(name, Path(called("buildah", "mount", name)), volume)
    finally:
        called("buildah", "rm", name)
