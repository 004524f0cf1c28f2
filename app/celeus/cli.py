"""`celeus`: serve, migrate, database, keys, gate, verify, audit, simulate, study, openapi and demo.

Every command imports what it needs when it runs, so that `celeus --help` answers at once.
"""

from pathlib import Path
from typing import Annotated

import typer

from app.commands.certifying import audit, signing_key, verify
from app.commands.database import PASS_ON, database_tool
from app.commands.gate import GateCommand, gate
from app.commands.keys import keys
from app.commands.serving import migrate, openapi, serve
from app.commands.simulating import simulate
from app.errors import InvalidValue, Refusal
from app.study.commands import study

cli = typer.Typer(
    name="celeus",
    help="Certified evaluation scores from few labels.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

cli.add_typer(keys, name="keys")
cli.add_typer(study, name="study")
cli.command()(serve)
cli.command()(migrate)
cli.command("database", context_settings=PASS_ON)(database_tool)
cli.command()(openapi)
cli.command(cls=GateCommand)(gate)
cli.command()(verify)
cli.command()(audit)
cli.command("signing-key")(signing_key)
cli.command()(simulate)


def main() -> None:
    """Run the command line; a refusal is one line on stderr and exit status 1."""
    try:
        cli()
    except Refusal as refusal:
        typer.echo(f"celeus: {_line(refusal)}", err=True)
        raise SystemExit(1) from None


def _line(refusal: Refusal) -> str:
    """What is wrong, by which rule, with which value: once each."""
    text = refusal.detail.rstrip(".")
    if refusal.rule is not None and refusal.rule not in text:
        text += f"; {refusal.field or 'it'} is {refusal.rule}"
    value = repr(refusal.value)[:100]
    if refusal.value is not None and value not in text:
        text += f", not {value}"
    return text


def _version(*, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("celeus"))
        raise typer.Exit


@cli.callback()
def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which it is.")
    ] = False,
) -> None:
    del version


@cli.command()
def demo(  # noqa: PLR0913 -- one parameter an option
    seed: Annotated[int, typer.Option(help="Decides which images are shown.")] = 0,
    precision: Annotated[float, typer.Option(help="Interval width to stop at.")] = 0.05,
    workers: Annotated[int, typer.Option(help="Judges at once.")] = 8,
    out: Annotated[Path, typer.Option(help="Folder of the picture.")] = Path(),
    *,
    keep: Annotated[bool, typer.Option(help="Leave the database there.")] = False,
    write_pool: Annotated[
        Path | None,
        typer.Option(help="Only write the pool to a file (JSON Lines), to label it by hand."),
    ] = None,
) -> None:
    """Certify a real classifier's error rate from few labels, on this machine."""
    try:
        from app.demo.byhand import write_pool as written
        from app.demo.run import Options, run_demo
    except ModuleNotFoundError as error:
        rule = "pip install 'celeus[demo]'"
        raise InvalidValue(f"the demo needs {error.name}: {rule}", rule=rule) from error

    if write_pool is not None:
        typer.echo(f"{written(write_pool, seed)} digits to label by hand: {write_pool}")
        return
    run_demo(Options(seed=seed, precision=precision, workers=workers, out=out, keep=keep))


if __name__ == "__main__":
    main()
