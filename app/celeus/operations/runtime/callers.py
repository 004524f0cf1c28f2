"""Who calls, and a memory of those let in a moment ago."""

import hmac
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args
from uuid import UUID

from app.errors import ScopeMissing

Scope = Literal["admin", "manage", "label", "read"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
_IMPLIED = MappingProxyType({"admin": frozenset(SCOPES), "manage": frozenset({"manage", "read"})})
MOST_KNOWN = 10_000
REFRESHED_AT = 0.5
"""The part of its life after which somebody remembered is looked up again."""


@dataclass(frozen=True, slots=True)
class Browser:
    """A browser that is signed in: what its pages tell, and what their writes have to show."""

    token_hash: bytes
    key_name: str
    project: str
    csrf: str = field(repr=False)

    @property
    def known_as(self) -> str:
        """The name it is remembered by, which no key has."""
        return f"browser/{self.token_hash.hex()}"


@dataclass(frozen=True, slots=True)
class Caller:
    """The holder of a key: which project it is bound to, and what it may do there.

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
    def known_as(self) -> str:
        """What this caller has shown, a key or the cookie of a browser, without its secret."""
        return self.key_id if self.browser is None else self.browser.known_as

    @property
    def blind(self) -> bool:
        """May not see where a session stands."""
        return "read" not in self.scopes

    def require(self, scope: str) -> None:
        """Refuse unless the key has the scope."""
        if scope not in self.scopes:
            raise ScopeMissing(
                f"this needs a key with scope {scope}", rule=f"a key with scope {scope}"
            )


@dataclass(slots=True)
class _Known:
    caller: Caller
    secret_hash: bytes
    until: float
    refresh_at: float


class KnownCallers:
    """Callers let in during the last seconds; bounded, least recently used out first.

    Only those let in are remembered: whoever guesses keys can push nobody out. The clock is the
    process's monotonic one, which no one can set back.
    """

    def __init__(self, seconds: float, most: int = MOST_KNOWN) -> None:
        self._seconds = seconds
        self._most = most
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def get(self, name: str, secret_hash: bytes) -> Caller | None:
        """The caller, if it was let in with this very secret a moment ago.

        In the second half of its time it is forgotten for one request, which looks it up anew
        while the others go on: else all would ask the database at the same moment.
        """
        known = self._known.get(name)
        now = time.monotonic()
        if known is None or not hmac.compare_digest(known.secret_hash, secret_hash):
            return None
        if now >= known.until:
            del self._known[name]
            return None
        self._known.move_to_end(name)
        if now >= known.refresh_at:
            known.refresh_at = known.until
            return None
        return known.caller

    def remembers(self, name: str) -> bool:
        """Whether it worked a moment ago, whoever showed it."""
        known = self._known.get(name)
        return known is not None and time.monotonic() < known.until

    def keep(self, caller: Caller, secret_hash: bytes, asked_at: float, life: float | None) -> None:
        """Remember a caller as of ``asked_at``, never beyond the ``life`` its key had left."""
        seconds = self._seconds if life is None else min(self._seconds, life)
        if seconds <= 0:
            return
        self._known[caller.known_as] = _Known(
            caller, secret_hash, asked_at + seconds, asked_at + REFRESHED_AT * seconds
        )
        self._known.move_to_end(caller.known_as)
        while len(self._known) > self._most:
            self._known.popitem(last=False)

    def forget(self, name: str) -> None:
        """Have it looked up at its next use."""
        self._known.pop(name, None)

    def __len__(self) -> int:
        return len(self._known)
