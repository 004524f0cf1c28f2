"""What tests in the browser are given: a service, and what the browser complains about."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
import pytest
from _pytest.mark import ParameterSet

from celeus.operations.certificates.signing_keys import make_key
from celeus.store import revisions
from tests.keys import bearer, key_in
from tests.servers import Service, running_services

NO_BROWSER = "no Chromium"
"""How the reason begins for which tests in the browser are skipped."""
NARROW = {"width": 360, "height": 740}
WIDE = {"width": 1440, "height": 900}
PATIENCE_MS = 90_000
"""How long a step may take: nothing is measured by it, and a machine may be busy."""
DRAWN = """async () => {
    const drawn = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const moves = (change) => change.playState === "running" &&
        change.effect.getComputedTiming().endTime < Infinity;
    // Charts follow the width with a frame, and colours go over into one another
    for (let frame = 0; frame < 3; frame += 1) await drawn();
    for (let frame = 0; frame < 300 && document.getAnimations().some(moves); frame += 1)
        await drawn();
}"""
"""Resolves when the page is drawn, and nothing on it moves but what always does."""


def at_night(*values: object) -> ParameterSet:
    """Return values of a test's parameters that `make nightly` alone tries."""
    return pytest.param(*values, marks=pytest.mark.nightly)


@dataclass(frozen=True)
class Site:
    """A running service, and a project of the test's own in its database."""

    service: Service
    database_url: str
    project: str

    @property
    def url(self) -> str:
        """Where it answers."""
        return self.service.url

    def key(self, *scopes: str) -> str:
        """A new key of this project; without scopes one that may do everything."""
        return key_in(self.database_url, *scopes, project=self.project)

    def client(self, token: str | None = None) -> httpx.Client:
        """A program that calls the service with a key of this project."""
        return httpx.Client(base_url=self.url, headers=bearer(token or self.key()), timeout=90)


@dataclass
class Complaints:
    """What the browser complained about; a test that provokes something says so.

    A busy machine may put a plan off: no failure where the page then got it from the same address.
    """

    heard: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def expect(self, *parts: str) -> None:
        """Complaints with one of these parts are no failure of the test."""
        self.expected += parts

    def planned(self, address: str) -> None:
        """Forget that this address put a plan off, since it has answered with one."""
        self.heard = [one for one in self.heard if not ("503" in one and f"({address})" in one)]

    @property
    def unexpected(self) -> list[str]:
        """Those nobody said to expect."""
        return [one for one in self.heard if not any(part in one for part in self.expected)]


@contextmanager
def running_pages(
    postgres_url: str, folder: Path, **environment: str
) -> Iterator[tuple[Service, str]]:
    """A server on a database of its own, whose signing key lies in ``folder``."""
    name = f"browser_{secrets.token_hex(4)}"
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}".encode())
    url = postgres_url.replace("/celeus?", f"/{name}?")
    assert url != postgres_url
    revisions.upgrade(url)
    signing_key = folder / "key.pem"
    make_key(signing_key)
    environment |= {
        "CELEUS_SIGNING_KEY_FILE": str(signing_key),
        # Webhooks of the tests lead to loopback
        "CELEUS_WEBHOOK_INTERNAL": "127.0.0.0/8",
        "CELEUS_WEBHOOK_HTTP": "true",
        # Pictures of it load without a click
        "CELEUS_MEDIA_HOSTS": "localhost",
    }
    with running_services(1, url, environment=environment) as (service,):
        yield service, url
