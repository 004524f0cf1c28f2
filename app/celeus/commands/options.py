"""The options that commands share: session, address and key, and whether all is to be judged."""

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from celeus.errors import InvalidValue
from celeus.files import content_of, open_file, open_file_or_pipe
from celeus.temp_dirs import scratch_folder

HERE = "http://127.0.0.1:8000"
"""Address of a service on this machine, where no other is named."""

LONGEST_KEY_FILE = 4096
"""Most bytes of a file with a key."""

NUMBER = "NUMBER"
"""Name in the help of a number that may be in percent or points, as `celeus.units` reads it."""

SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="Id of the session, `ses_…`.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]
Url = Annotated[str, typer.Option(envvar="CELEUS_URL", help="Address of the service.")]
Form = Literal["lm-eval", "inspect", "promptfoo", "deepeval", "helm", "swebench", "table"]
"""Forms that a file may be read as; the tools are those of `celeus.intake.formats.registry`."""
Format = Annotated[
    Form | None,
    typer.Option("--format", help="What to read the files as; default: what they look like."),
]
Mapping = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=ROLE", help="Role of a column of the file; repeat it."),
]
Given = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="An answer to what the file leaves open, such as better=higher; repeat it.",
    ),
]
SubjectOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE|NAME@sha256:DIGEST",
        help="What is evaluated: a file, or a name and a digest, also sha512 or gitCommit; may be"
        " given again.",
    ),
]
TrustConfig = Annotated[
    Path | None,
    typer.Option(help="Roots and addresses of another Sigstore than the public one, in JSON."),
]
LARGEST_TRUST_CONFIG = 1 << 20
"""Most bytes of a trust configuration; that of the public instance has 10 000."""
All = Annotated[
    bool, typer.Option("--all", help="Judge all there is, where nothing stops before; do not ask.")
]


STANDARD_INPUT = "-"
_COPIES: list[str] = []
"""Files of this process that hold what standard input held."""
T = TypeVar("T")


def from_input(context: typer.Context, value: T) -> T:
    """Return the paths given; for `-` that of a temporary file of what standard input holds.

    Readers look at a file several times, and a pipe is read once. Refuses `-` twice.
    """
    paths = value if isinstance(value, list) else [value]
    found = [str(path) == STANDARD_INPUT for path in paths]
    if context.resilient_parsing or not any(found):
        return value
    if sum(found) > 1 or STANDARD_INPUT in context.meta:
        rule = "given once"
        raise InvalidValue(f"- must be {rule}, as standard input is read", field="file", rule=rule)
    context.meta[STANDARD_INPUT] = True
    folder = context.with_resource(scratch_folder())
    copy = folder / "standard-input"
    _COPIES.append(str(copy))
    with copy.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    kind: Any = type(paths[found.index(True)])
    read: Any = [kind(copy) if read else path for path, read in zip(paths, found, strict=True)]
    chosen: T = read if isinstance(value, list) else read[0]
    return chosen


def naming_input(message: str) -> str:
    """Return a message that says "standard input" in place of the file it was copied to."""
    for copy in _COPIES:
        message = message.replace(copy, "standard input")
    return message


def confirm_all(what: str, ways: str, *, all_: bool) -> None:
    """Ask whether to go on though nothing would stop; refuses where nobody can be asked.

    ``ways`` are what to give so that something does.
    """
    if all_:
        return
    if sys.stdin.isatty():
        typer.confirm(f"{what}: go on?", abort=True, err=True)
        return
    rule = f"{ways}, or --all"
    raise InvalidValue(f"{what}: give {rule}", field="all", rule=rule)


def check_file(path: Path | None) -> None:
    """Refuse a path, if any, where no file can be written."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        rule = "a file in a folder that is there"
        raise InvalidValue(f"{path} must be {rule}", field="path", rule=rule)


def read_trust_config(path: Path | None) -> bytes | None:
    """The content of a trust configuration, if one is given."""
    if path is None:
        return None
    with open_file_or_pipe(path, "trust_config") as file:
        return b"".join(content_of(file, LARGEST_TRUST_CONFIG))


def read_key() -> str | None:
    """The key in the file that CELEUS_KEY_FILE names, else that in CELEUS_KEY.

    An argument would show it to every user of this machine.
    """
    name = os.environ.get("CELEUS_KEY_FILE")
    if not name:
        return os.environ.get("CELEUS_KEY") or None
    field = "CELEUS_KEY_FILE"
    with open_file(Path(name), field) as source:
        try:
            content = source.read(LONGEST_KEY_FILE + 1)
            text = content.decode()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise InvalidValue(f"{name} cannot be read: {why}", field=field) from error
    if len(content) > LONGEST_KEY_FILE:
        rule = f"a file of at most {LONGEST_KEY_FILE} bytes, with a key"
        raise InvalidValue(f"{name} must be {rule}", field=field, rule=rule)
    if not text.strip():
        rule = "a file with a key"
        raise InvalidValue(f"{name} must be {rule}, and is empty", field=field, rule=rule)
    return text.strip()
