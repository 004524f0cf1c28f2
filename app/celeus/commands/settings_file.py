"""Settings that have no option: in a TOML file or one by one, with the names of the API.

target = "population"
alpha = 0.01

[decide]
margin = 0.02
"""

import json
import os
import tomllib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from celeus.commands.options import from_input
from celeus.errors import InvalidValue
from celeus.files import content_of, open_file_or_pipe
from celeus.shorten import VALUE_LENGTH, printable

LARGEST = 100_000
"""Most bytes of a file of settings."""

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--settings",
        callback=from_input,
        metavar="FILE|NAME=VALUE",
        help="What has no option, named as in the API: a TOML file, - for standard input, or one"
        " setting such as alpha=0.01. Repeat it; the last one counts, and an option more.",
    ),
]


def settings_of(
    written: Sequence[str] | None,
    given: Mapping[str, Any],
    known: Collection[str] | None = None,
) -> dict[str, Any]:
    """Return the settings that are ``written``, and the options ``given`` that are not None.

    Refuses what is no TOML, and a name that is not ``known``; without that the service does.
    """
    found: dict[str, Any] = {}
    for text in written or ():
        found = _merged(found, _members(text))
    for name in found.keys() - {*(found if known is None else known)}:
        rule = f"one of {', '.join(known or ())}"
        message = f"settings must be {rule}"
        raise InvalidValue(message, field="settings", rule=rule, value=name)
    return found | {name: value for name, value in given.items() if value is not None}


def _members(text: str) -> dict[str, Any]:
    """Return the settings of a file, or the one that is written as NAME=VALUE."""
    name, sign, value = text.partition("=")
    try:
        if not sign or os.path.exists(text):  # noqa: PTH110 -- Path refuses a long text
            with open_file_or_pipe(Path(text), "settings") as source:
                return tomllib.loads(b"".join(content_of(source, LARGEST)).decode())
        with suppress(tomllib.TOMLDecodeError):
            return tomllib.loads(text)
        # A text need not be quoted twice
        return tomllib.loads(f"{name} = {json.dumps(value, ensure_ascii=False)}")
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        rule = "TOML, such as alpha = 0.01"
        message = f"{printable(text[:VALUE_LENGTH])} is no TOML ({error}): expected {rule}"
        raise InvalidValue(message, field="settings", rule=rule) from error


def _merged(settings: dict[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with later ones in their place, of a table member by member."""
    merged = dict(settings)
    for name, value in later.items():
        earlier = merged.get(name)
        if isinstance(earlier, dict) and isinstance(value, dict):
            value = _merged(earlier, value)  # noqa: PLW2901 -- the member as it is kept
        merged[name] = value
    return merged
