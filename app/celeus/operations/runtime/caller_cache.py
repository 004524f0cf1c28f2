"""Callers and their scopes, and a cache of those recently authenticated."""

import hmac
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args
from uuid import UUID

from celeus.errors import ScopeMissing

Scope = Literal["admin", "manage", "label", "read"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
_IMPLIED = MappingProxyType({"admin": frozenset(SCOPES), "manage": frozenset({"manage", "read"})})
MOST_KNOWN = 10_000
REFRESHED_AT = 0.5
"""Fraction of its lifetime after which a cached caller is looked up again."""


@dataclass(frozen=True, slots=True)
class Browser:
    """A signed-in browser: what its pages display, and the CSRF token of their writes."""

    token_hash: bytes
    key_name: str
    project: str
    csrf: str = field(repr=False)

    @property
    def cache_name(self) -> str:
        """Its name in the caller cache, which no key has."""
        return f"browser/{self.token_hash.hex()}"


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller: key, project and scopes.

    ``browser`` is where somebody is signed in with the key; None for whoever sends it along.
    """

    key_id: str
    project_id: UUID
    scopes: frozenset[str]
    browser: Browser | None = None

    @classmethod
    def of(
        cls, key_id: str, project_id: UUID, granted: list[str], browser: Browser | None = None
    ) -> "Caller":
        """A caller with the scopes granted and those they imply.

        `admin` implies all. `manage` implies `read`, but not `label`: whoever opens and closes
        sessions need not be one of their judges.
        """
        scopes = frozenset().union(*(_IMPLIED.get(scope, {scope}) for scope in granted))
        return cls(key_id, project_id, scopes, browser)

    @property
    def cache_name(self) -> str:
        """The name in the caller cache: the key's id, or the browser's."""
        return self.key_id if self.browser is None else self.browser.cache_name

    @property
    def blind(self) -> bool:
        """Return whether the caller may not see a session's status."""
        return "read" not in self.scopes

    def require(self, scope: str) -> None:
        """Refuse unless the key has the scope."""
        if scope not in self.scopes:
            raise ScopeMissing(
                f"this needs a key with scope {scope}", rule=f"a key with scope {scope}"
            )


@dataclass(slots=True)
class _CachedCaller:
    caller: Caller
    secret_hash: bytes
    until: float
    refresh_at: float


class CallerCache:
    """LRU cache of callers authenticated during the last seconds.

    Only authenticated callers are cached: guessing keys evicts nobody. The clock is the
    process's monotonic one, which cannot be set back.
    """

    def __init__(self, seconds: float, most: int = MOST_KNOWN) -> None:
        self._seconds = seconds
        self._most = most
        self._known: OrderedDict[str, _CachedCaller] = OrderedDict()

    def get(self, name: str, secret_hash: bytes) -> Caller | None:
        """The cached caller, if it was authenticated with this very secret.

        In the second half of its time it is forgotten for one request, which looks it up anew
        while the others go on: else all would ask the database at the same moment.
        """
        entry = self._known.get(name)
        now = time.monotonic()
        if entry is None or not hmac.compare_digest(entry.secret_hash, secret_hash):
            return None
        if now >= entry.until:
            del self._known[name]
            return None
        self._known.move_to_end(name)
        if now >= entry.refresh_at:
            entry.refresh_at = entry.until
            return None
        return entry.caller

    def remembers(self, name: str) -> bool:
        """Return whether this key or browser is cached, whatever secret comes with it."""
        entry = self._known.get(name)
        return entry is not None and time.monotonic() < entry.until

    def keep(self, caller: Caller, secret_hash: bytes, asked_at: float, life: float | None) -> None:
        """Cache a caller as of ``asked_at``, at most for the ``life`` left to its key."""
        seconds = self._seconds if life is None else min(self._seconds, life)
        if seconds <= 0:
            return
        self._known[caller.cache_name] = _CachedCaller(
            caller, secret_hash, asked_at + seconds, asked_at + REFRESHED_AT * seconds
        )
        self._known.move_to_end(caller.cache_name)
        while len(self._known) > self._most:
            self._known.popitem(last=False)

    def forget(self, name: str) -> None:
        """Evict a key or browser, so that its next use looks it up."""
        self._known.pop(name, None)

    def forget_key(self, key_id: str) -> None:
        """Evict a key and every browser that is signed in with it."""
        for name in [
            known for known, entry in self._known.items() if entry.caller.key_id == key_id
        ]:
            del self._known[name]

    def __len__(self) -> int:
        return len(self._known)
