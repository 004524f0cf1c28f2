"""Records of `operations` as they travel: their members, times and ids.

An id has a prefix that tells the kind, and a UUIDv7 in hexadecimal.
"""

import re
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from celeus.operations.sessions.event_rows import moment

_HEX = re.compile(r"[0-9a-f]{32}")


class FromRecord(BaseModel):
    """A model whose members are attributes of a record; a `validation_alias` names another one."""

    model_config = ConfigDict(from_attributes=True, validate_by_name=True, validate_by_alias=True)


def _as_text(value: object) -> object:
    return moment(value) if isinstance(value, datetime) else value


Time = Annotated[str, BeforeValidator(_as_text), Field(json_schema_extra={"format": "date-time"})]


def wire_id(prefix: str) -> BeforeValidator:
    """Return the validator that writes a UUID as an id of this kind."""

    def written(value: object) -> object:
        return f"{prefix}_{value.hex}" if isinstance(value, UUID) else value

    return BeforeValidator(written)


def parsed(prefix: str, wire: str) -> UUID | None:
    """The UUID in an id of this kind; None when it is malformed or of another kind."""
    digits = wire.removeprefix(f"{prefix}_")
    if digits == wire or _HEX.fullmatch(digits) is None:
        return None
    return UUID(digits)
