"""What every operation is given: the places things are kept in, and the settings."""

import asyncio
from collections import Counter
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy.ext.asyncio import AsyncConnection

from app.operations.callers import Browser, KnownCallers
from app.operations.forecasts import Forecasts
from app.operations.hot import HotStates
from app.operations.plannings import Plannings
from app.operations.verifications import Verifications
from app.operations.worths import Worths
from app.settings import Settings
from app.store.cache import Cache, Wakes
from app.store.database import Database
from app.store.rates import Rates
from app.store.tables import DEFAULT_PROJECT


@dataclass(frozen=True, slots=True)
class Rooms:
    """Made once in `create_app`, bound to the caller, and passed first to every operation.

    What belongs to another project than ``project_id`` does not exist for an operation.
    ``key_id`` is the key whose holder asks; None where nobody asked over the wire. ``browser`` is
    where its holder is signed in; None where the key itself came along. ``signing_key`` is None
    where certificates cannot be issued. ``streaming`` counts streams under way by key.
    """

    database: Database
    cache: Cache
    wakes: Wakes
    hot: HotStates
    forecasts: Forecasts
    settings: Settings
    callers: KnownCallers
    rates: Rates
    imports: asyncio.Semaphore
    project_id: UUID = DEFAULT_PROJECT
    key_id: str | None = None
    browser: Browser | None = None
    signing_key: Ed25519PrivateKey | None = None
    verifications: Verifications = field(default_factory=Verifications)
    plannings: Plannings = field(default_factory=Plannings)
    worths: Worths = field(default_factory=Worths)
    streaming: Counter[str] = field(default_factory=Counter)

    def transaction(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """One transaction: committed on leaving, rolled back on an error."""
        return self.database.transaction()
