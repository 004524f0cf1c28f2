"""What both clients are opened with: an address, a key, and how long to wait."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

from celeus.client.exchange import Request, own_version
from celeus.client.service import HERE, check_service
from celeus.errors import InvalidValue

REQUEST_SECONDS = 60.0
MOST_CONNECTIONS = 100
LEASE_SECONDS = 30
"""For how long a function holds what it judges; while it thinks that is renewed."""
HEARTBEATS = 3
"""How often in its time a lease is renewed while a judge thinks."""
LAST_SECONDS = 5.0
"""For how long calls under way are waited for when a session has stopped, or judging has failed."""
LIMITS = httpx2.Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_CONNECTIONS)
"""A judge in every connection, and none is closed between two labels."""


@dataclass(frozen=True, slots=True)
class Service:
    """An address and the headers that every request to it has."""

    url: str
    headers: Mapping[str, str]

    @classmethod
    def of(cls, url: str | None, key: str | None) -> "Service":
        """As given, else as CELEUS_URL and CELEUS_KEY say; refuses what is no address, no key."""
        url = (url or os.environ.get("CELEUS_URL") or HERE).rstrip("/")
        key = key or os.environ.get("CELEUS_KEY") or None
        check_service(url, key)
        if not key:
            raise InvalidValue(
                "there is no key: give one as `key`, or in CELEUS_KEY", field="CELEUS_KEY"
            )
        agent = f"celeus/{own_version()}"
        return cls(url, {"Authorization": f"Bearer {key}", "User-Agent": agent})

    def headers_of(self, request: Request) -> dict[str, str]:
        """All headers of a request."""
        return {**self.headers, **request.headers}
