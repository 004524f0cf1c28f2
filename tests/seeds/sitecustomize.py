"""Give every session the same seed, so that no test depends on chance.

Python imports this module at its start wherever this folder is on the path: in the processes that
tests start. It imports nothing of Celeus, which pytest warns of where plugins are tried. Keys,
tokens and whatever else is secret stay as random as they are.
"""

import secrets
import sys

SEED = bytes(range(32))

_random_bytes = secrets.token_bytes


def _token_bytes(nbytes: int | None = None) -> bytes:
    seeds = sys._getframe(1).f_globals.get("__name__") == "celeus.seeds"
    return SEED if seeds else _random_bytes(nbytes)


secrets.token_bytes = _token_bytes
