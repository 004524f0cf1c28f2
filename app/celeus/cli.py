"""The command line `celeus`.

A command is imported when it is called, and itself imports what it needs when it runs: a pipeline
that calls one waits for no other.
"""

import errno
import io
import os
import re
import sys
from collections import UserDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_group

from celeus.errors import InvalidValue, Refusal
from celeus.shorten import one_line

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Place(NamedTuple):
    """The place of a command: a module of `celeus.commands` and its function or group of commands.

    ``extra`` is what has to be installed for it, if need be; a module's `TERMS` are typer's. One
    that ``checks`` ends with status 1 if that is false, and with 2 if it cannot be checked.
    """

    module: str
    name: str
    extra: Literal["demo", "mcp", "server"] = "server"
    checks: bool = False


class Group(NamedTuple):
    """Commands under a name of their own, and its line of help."""

    help: str
    places: dict[str, Place]


PLACES: dict[str, Place | Group] = {
    "open": Place("sessions", "open_session"),
    "sessions": Place("sessions", "sessions"),
    "status": Place("sessions", "status"),
    "close": Place("sessions", "close"),
    "import": Place("imports", "imports"),
    "plan": Place("plan", "plan"),
    "judge": Place("judges", "judge"),
    "guess": Place("judges", "guess"),
    "bridge": Place("bridges", "bridge"),
    "run": Place("runs", "runs"),
    "compare": Place("compare", "compare"),
    "judge-check": Place("judge_check", "judge_check"),
    "gate": Place("gate", "gate"),
    "mcp": Place("mcp", "mcp", "mcp"),
    "push": Place("runs", "push"),
    "export": Place("export", "export"),
    "verify": Place("verify", "verify", checks=True),
    "attest": Place("attest", "attest"),
    "demo": Place("demo", "demo", "demo"),
    "serve": Place("service.serve", "serve"),
    "admin": Group(
        "Run the service: its database, keys and signing key.",
        {
            "migrate": Place("service.serve", "migrate"),
            "keys": Place("service.keys", "keys"),
            "database": Place("service.database", "database_tool"),
            "audit": Place("verify", "audit", checks=True),
            "signing-key": Place("verify", "signing_key"),
        },
    ),
    "dev": Group(
        "Study the method, and build on the API.",
        {
            "simulate": Place("simulate", "simulate"),
            "openapi": Place("service.serve", "openapi"),
        },
    ),
}


OF_OPTIONS = dict.fromkeys(("requests", "sigstore", "tuf"), "sigstore")
"""Extras that single options need, by the package that is missing."""


class Commands(UserDict[str, Any]):
    """The commands by name, each imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 -- typer brings its own click
        """The command of this name."""
        place = self.data[name]
        if isinstance(place, Group):
            self.data[name] = CommandLine(
                place.places,
                name=name,
                help=place.help,
                no_args_is_help=True,
                rich_markup_mode=None,
            )
        elif isinstance(place, Place):
            module = import_module(f"celeus.commands.{place.module}")
            command = getattr(module, place.name)
            # Tables cut long words at 80 columns
            app = typer.Typer(rich_markup_mode=None)
            if isinstance(command, typer.Typer):
                app.add_typer(command, name=name)
            else:
                app.command(name, **getattr(module, "TERMS", {}))(command)
            self.data[name] = get_group(app).commands[name]
        _summarize(self.data[name])
        return self.data[name]


def _summarize(command: Any) -> None:  # noqa: ANN401 -- typer brings its own click
    """List the command and those of its group by the whole first paragraph of their help."""
    command.short_help = (command.help or "").split("\n\n")[0].replace("\n", " ")
    if not isinstance(command, CommandLine):
        for member in getattr(command, "commands", {}).values():
            _summarize(member)


class CommandLine(TyperGroup):
    """A group of commands, by default that of all."""

    def __init__(
        self,
        places: Mapping[str, Place | Group] = PLACES,
        **terms: Any,  # noqa: ANN401 -- those of typer
    ) -> None:
        super().__init__(**terms)
        self.commands = Commands(places)


cli = typer.Typer(
    name="celeus",
    help="Certified evaluation scores from few labels.",
    cls=CommandLine,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; a refusal is one line on stderr and exit status 1, or 2 of a check."""
    try:
        with _output():
            cli(prog_name="celeus")
    except ModuleNotFoundError as error:
        package = (error.name or "celeus").partition(".")[0]
        if package == "celeus":
            raise
        command, place = _called()
        extra = f"pip install 'celeus[{OF_OPTIONS.get(package, place.extra)}]'"
        _refuse(f"{command} needs {package}, which is not installed: {extra}")
    except Refusal as refusal:
        _refuse(_as_typed(refusal))


def _as_typed(refusal: Refusal) -> str:
    """Return a refusal in one line; a field that an option gave is called as it was typed."""
    line, field = refusal.line, refusal.field or ""
    option = f"--{field.replace('_', '-')}"
    if not any(word == option or word.startswith(f"{option}=") for word in sys.argv[1:]):
        return line
    return re.sub(rf"(^|; expected ){re.escape(field)}(?= (?:must|to) be )", rf"\1{option}", line)


def _refuse(reason: str) -> NoReturn:
    # Not before, so that --help answers at once
    from celeus.commands.options import naming_input

    _, place = _called()
    words = f"{'cannot be checked: ' * place.checks}{naming_input(reason)}"
    typer.echo(one_line(f"celeus: {words}"), err=True)
    raise SystemExit(2 if place.checks else 1) from None


def _called() -> tuple[str, Place]:
    """Return the name of the command that was called, with its group's, and its place."""
    places: Mapping[str, Place | Group] = PLACES
    names = []
    for word in sys.argv[1:]:
        place = places.get(word)
        if place is None:
            continue
        names.append(word)
        if isinstance(place, Place):
            return " ".join(names), place
        places = place.places
    return "celeus", Place("", "")


class _Output(io.FileIO):
    """Standard output, which refuses in words what finds no room."""

    def write(self, content: "ReadableBuffer", /) -> int:
        """Write what there is room for; after a refusal all is dropped."""
        try:
            return super().write(content)
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EIO}:
                raise
            with Path(os.devnull).open("wb") as nowhere:
                os.dup2(nowhere.fileno(), self.fileno())
            message = f"the output cannot be written: {error.strerror}"
            raise InvalidValue(message, field="output") from error


@contextmanager
def _output() -> Iterator[None]:
    """Have standard output refuse what finds no room, where it is a file of this process."""
    stdout = sys.stdout
    # Where nothing is buffered there is no `raw`
    raw = isinstance(stdout, io.TextIOWrapper) and getattr(stdout.buffer, "raw", stdout.buffer)
    if not (isinstance(stdout, io.TextIOWrapper) and isinstance(raw, io.FileIO)):
        yield
        return
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Output(stdout.fileno(), "wb", closefd=False)),
        encoding=stdout.encoding,
        errors=stdout.errors,
        line_buffering=stdout.line_buffering or stdout.write_through,
    )
    try:
        yield
    finally:
        try:
            # Who has left wants no more
            with suppress(BrokenPipeError):
                sys.stdout.flush()
        finally:
            sys.stdout = stdout


def _version(*, requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        typer.echo(version("celeus"))
        raise typer.Exit


@cli.callback()
def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


if __name__ == "__main__":
    main()
