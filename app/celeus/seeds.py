"""The secret seeds of sessions, which tests replace here."""

import secrets

SEED_BYTES = 32


def new_seed() -> bytes:
    """Return the secret seed of a new session."""
    return secrets.token_bytes(SEED_BYTES)
