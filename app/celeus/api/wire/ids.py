"""Ids as they travel: a prefix that tells the kind, and a UUIDv7 in hexadecimal."""

import re
from uuid import UUID

_HEX = re.compile(r"[0-9a-f]{32}")


def pool_wire(pool_id: UUID) -> str:
    """`pool_…` of a pool."""
    return f"pool_{pool_id.hex}"


def parsed(prefix: str, wire: str) -> UUID | None:
    """The UUID in an id of this kind; None when it is malformed or of another kind."""
    digits = wire.removeprefix(f"{prefix}_")
    if digits == wire or _HEX.fullmatch(digits) is None:
        return None
    return UUID(digits)
