"""What every operation is given: the places things are kept in, and the settings."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from app.operations.forecasts import Forecasts
from app.operations.hot import HotStates
from app.settings import Settings
from app.store.cache import Cache, Wakes
from app.store.database import Database


@dataclass(frozen=True, slots=True)
class Rooms:
    """Made once in `create_app` and passed first to every operation."""

    database: Database
    cache: Cache
    wakes: Wakes
    hot: HotStates
    forecasts: Forecasts
    settings: Settings

    def transaction(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """One transaction: committed on leaving, rolled back on an error."""
        return self.database.transaction()
