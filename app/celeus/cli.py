"""The command line `celeus` and all its commands.

Every command imports what it needs when it runs, so that `celeus --help` answers at once.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from celeus.commands.attest import attest
from celeus.commands.bridges import bridges
from celeus.commands.claims import claims
from celeus.commands.compare import compare
from celeus.commands.gate import GateCommand, gate
from celeus.commands.imports import imports
from celeus.commands.judge_check import judge_check
from celeus.commands.judges import guess, judge
from celeus.commands.plan import plan
from celeus.commands.push import push
from celeus.commands.runs import runs
from celeus.commands.service.database import PASS_ON, database_tool
from celeus.commands.service.keys import keys
from celeus.commands.service.serve import migrate, openapi, serve
from celeus.commands.simulate import simulate
from celeus.commands.verify import audit, signing_key, verify
from celeus.errors import Refusal
from celeus.shorten import one_line

cli = typer.Typer(
    name="celeus",
    help="Certified evaluation scores from few labels.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

cli.add_typer(keys, name="keys")
cli.add_typer(imports, name="import")
cli.add_typer(bridges, name="bridge")
cli.add_typer(runs, name="run")
cli.command()(serve)
cli.command()(migrate)
cli.command("database", context_settings=PASS_ON)(database_tool)
cli.command()(openapi)
cli.command(cls=GateCommand)(gate)
cli.command()(claims)
cli.command()(judge)
cli.command()(guess)
cli.command(cls=GateCommand)(compare)
cli.command("judge-check", cls=GateCommand)(judge_check)
cli.command()(plan)
cli.command()(push)
cli.command()(verify)
cli.command()(attest)
cli.command()(audit)
cli.command("signing-key")(signing_key)
cli.command()(simulate)


EXTRAS = {
    "attest": "engine",
    "compare": "engine",
    "demo": "demo",
    "import": "engine",
    "judge-check": "engine",
    "push": "engine",
    "run": "engine",
    "signing-key": "engine",
    "simulate": "engine",
    "verify": "engine",
}
"""Extra that a command needs. `gate`, `claims`, `judge`, `guess`, `bridge`, `plan` and `push` need
none (except to close a run before), all others the server."""


def main() -> None:
    """Run the command line; a refusal is one line on stderr and exit status 1."""
    try:
        cli()
    except ModuleNotFoundError as error:
        package = (error.name or "celeus").partition(".")[0]
        if package == "celeus":
            raise
        command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
        extra = f"pip install 'celeus[{EXTRAS.get(command, 'server')}]'"
        typer.echo(f"celeus: {command} needs {package}, which is not installed: {extra}", err=True)
        raise SystemExit(1) from None
    except Refusal as refusal:
        typer.echo(one_line(f"celeus: {refusal.line}"), err=True)
        raise SystemExit(1) from None


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


@cli.command()
def demo(  # noqa: PLR0913 -- one parameter an option
    seed: Annotated[int, typer.Option(help="Seed of the choice of images.")] = 0,
    precision: Annotated[float, typer.Option(help="Interval width to stop at.")] = 0.05,
    workers: Annotated[int, typer.Option(help="How many judges work at once.")] = 8,
    out: Annotated[Path, typer.Option(help="Folder to write the picture to.")] = Path(),
    *,
    keep: Annotated[bool, typer.Option(help="Keep the database.")] = False,
    write_pool: Annotated[
        Path | None,
        typer.Option(help="Only write the pool as JSON Lines to this file, to label it by hand."),
    ] = None,
) -> None:
    """Certify a real classifier's error rate from few labels, on this machine."""
    from celeus.demo.by_hand import write_pool as written
    from celeus.demo.run import Options, run_demo

    if write_pool is not None:
        typer.echo(f"wrote {written(write_pool, seed)} digits to {write_pool}")
        return
    run_demo(Options(seed=seed, precision=precision, workers=workers, out=out, keep=keep))


if __name__ == "__main__":
    main()
