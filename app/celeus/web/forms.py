"""Forms that pages send: read, and known to come from a page of ours."""

import hmac
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar
from urllib.parse import parse_qs

from fastapi import Request
from pydantic import BaseModel, ValidationError

from celeus.api.access.cookies import shows_page
from celeus.errors import CsrfMissing, InvalidValue
from celeus.operations.runtime.caller_cache import Caller
from celeus.units import Amount, with_point

FORM_TYPE = "application/x-www-form-urlencoded"
MOST_FORM_BYTES = 1 << 19
"""Longest form: instructions of a session, each character as twelve, and a plan beside them."""
MOST_FIELDS = 10_000
"""A file that becomes a pool has a field for each of its columns."""
LISTS: Final = frozenset({"events", "scopes"})
"""Fields that may be sent several times, once for each value."""

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Form:
    """The fields that were sent, each with its values; one that was left empty has the value ""."""

    fields: Mapping[str, list[str]] = field(default_factory=dict)

    def get(self, name: str) -> str:
        """Return the first value of a field, "" without one."""
        return self.fields.get(name, [""])[0]

    def sent(self, name: str) -> str:
        """Return the first value of a field, which may be empty; refuses a form without it."""
        if name not in self.fields:
            raise InvalidValue(f"{name}: the form does not have this field", field=name)
        return self.get(name)

    def whole(self, name: str) -> int:
        """Return the whole number in a field; refuses what is none."""
        try:
            return int(self.get(name))
        except ValueError as error:
            raise InvalidValue(f"{name}: this must be a whole number", field=name) from error

    def body(self, model: type[M]) -> M:
        """Return the fields that a body of the interface has and that are not empty, as one."""
        known = {
            name: given if name in LISTS else given[0].strip()
            for name, values in self.fields.items()
            if name in model.model_fields and (given := [value for value in values if value])
        }
        return validated(model, known)


def validated(model: type[M], members: Mapping[str, object], *, strict: bool = False) -> M:
    """Return the body of the interface with these members; refuses what it does not take.

    Not ``strict``, a field's text is read as the number or the switch that it says.
    """
    try:
        if strict:
            return model.model_validate_json(json.dumps(members), strict=True)
        return model.model_validate(members, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise InvalidValue(f"{name}: {first['msg']}", field=name) from error


def number_in(text: str, name: str, label: str = "") -> float:
    """Return the number in a field's text, with a decimal comma or a point; refuses what is none.

    The refusal names the ``label``, without one "This".
    """
    with suppress(InvalidValue):
        found = Amount.of(with_point(text), name)
        if not found.sign:
            return float(found.number)
    rule = "a number, as 1000 or 0.5" if "," in text else "a number"
    raise InvalidValue(
        f"{label}: this must be {rule}" if label else f"This must be {rule}.", field=name
    )


async def read_form(
    request: Request, most_bytes: int = MOST_FORM_BYTES, most_fields: int = MOST_FIELDS
) -> Form:
    """Read the form that a request carries; one that is too long is refused."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most_bytes:
            rule = f"at most {most_bytes} bytes"
            raise InvalidValue("the form is too long", field="body", rule=rule)
    try:
        fields = parse_qs(
            bytes(body).decode(),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=most_fields,
        )
        return Form(fields)
    except UnicodeDecodeError as error:
        raise InvalidValue("the form is not UTF-8", field="body", rule="UTF-8") from error
    except ValueError as error:
        raise InvalidValue("the form has too many fields", field="body") from error


async def own_form(request: Request, caller: Caller) -> Form:
    """Read a form, and refuse one that no page made for this very browser sent.

    What a script sends is no form, and shows that page in a header.
    """
    is_form = request.headers.get("content-type", "").startswith(FORM_TYPE)
    form = await read_form(request) if is_form else Form()
    if caller.browser is not None:
        csrf = caller.browser.csrf
        field = hmac.compare_digest(form.get("csrf").encode(), csrf.encode())
        if not (field if is_form else shows_page(request.scope, csrf)):
            raise CsrfMissing(
                "a form has to show what stands in the page that sends it", rule="the field `csrf`"
            )
    return form
