"""`celeus`: serve, migrate, simulate, study, openapi and demo.

Every command imports what it needs when it runs, so that `celeus --help` answers at once.
"""

import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.errors import InvalidValue, Refusal
from app.study.commands import study

if TYPE_CHECKING:
    # Not even for annotations at run time: these take most of a second.
    from fastapi import FastAPI

    from app.settings import Settings

cli = typer.Typer(
    name="celeus",
    help="Certified evaluation scores from few labels.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

cli.add_typer(study, name="study")

DRAIN_SECONDS = 10
"""How long open streams may hold up a stop."""

DataDir = Annotated[
    Path | None, typer.Option(help="Folder of the private PostgreSQL (CELEUS_DATA_DIR).")
]


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
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes that answer.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Serve over HTTP; without CELEUS_DATABASE_URL on a private PostgreSQL in --data-dir.

    SIGTERM ends everything it started. What is left out comes from the environment
    (CELEUS_HOST, CELEUS_PORT, CELEUS_WORKERS).
    """
    import uvicorn

    settings = _settings(host=host, port=port, workers=workers, data_dir=data_dir)
    free = _free_port(settings.host, settings.port)
    with _database(settings) as url, _metrics_of(settings.workers):
        # A worker is a process of its own: what it needs to know travels by the environment.
        os.environ["CELEUS_DATABASE_URL"] = url
        address = f"http://{settings.host}:{free}"
        typer.echo(f"celeus {_place(settings)}: {address}, reference at {address}/docs", err=True)
        uvicorn.run(
            "app.cli:application",
            factory=True,
            host=settings.host,
            port=free,
            workers=settings.workers,
            log_level=settings.log_level,
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )


def application() -> "FastAPI":
    """The application for the settings of the environment: what a worker starts."""
    from app.main import create_app

    return create_app(_settings())


@cli.command()
def migrate(data_dir: DataDir = None) -> None:
    """Bring the database to the schema of this version."""
    from app.store.migrations import head, upgrade

    settings = _settings(data_dir=data_dir)
    with _database(settings) as url:
        # The private one has been migrated at its start; again is nothing.
        upgrade(url)
    typer.echo(f"celeus: the database is at {head()}")


@cli.command()
def openapi(
    out: Annotated[Path | None, typer.Option(help="File to write instead of stdout.")] = None,
) -> None:
    """Print the contract on the wire."""
    document = json.dumps(application().openapi(), indent=2, ensure_ascii=False) + "\n"
    if out is None:
        sys.stdout.write(document)
    else:
        out.write_text(document, encoding="utf-8")


@cli.command()
def simulate(  # noqa: PLR0913 -- one parameter an option
    file: Annotated[Path, typer.Argument(help="An .npz with loss, surrogate, proxy?, group?.")],
    *,
    policy: Annotated[str, typer.Option(help="Who is asked for, and how bets are made.")] = (
        "sharp"
    ),
    target: Annotated[str, typer.Option(help="pool or population")] = "pool",
    precision: Annotated[float, typer.Option(help="Interval width to stop at.")] = 0.05,
    alpha: Annotated[float, typer.Option(help="Probability of ever being wrong.")] = 0.05,
    runs: Annotated[int, typer.Option(help="Sessions, each with a seed of its own.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the study.")] = 0,
    lower: Annotated[float, typer.Option(help="Least possible loss.")] = 0.0,
    upper: Annotated[float, typer.Option(help="Largest possible loss.")] = 1.0,
    population_bound: Annotated[
        str | None, typer.Option(help="pairs, hoeffding, kl or clopper_pearson")
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", help="A parameter of the policy, such as beta=0.2."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Judge a pool whose losses are known, without a server, and count the labels."""
    from rich.console import Console

    from app.core.plan import Claim
    from app.study.files import read_truth
    from app.study.report import Study
    from app.study.simulation import seed_of
    from app.study.simulation import simulate as run_session

    if runs < 1:
        raise InvalidValue("runs must be at least 1", field="runs", rule="at least 1", value=runs)
    chosen = _policy(policy, parameter or [])
    claim = Claim(target, alpha, precision, population_bound=population_bound)  # type: ignore[arg-type]
    truth = read_truth(file, lower, upper)
    found = [run_session(truth, chosen, claim, seed_of(seed, run))[0] for run in _watched(runs)]
    study = Study(str(file), truth, chosen, claim, seed, found)
    if as_json:
        typer.echo(json.dumps(study.to_dict(), indent=2))
    else:
        Console().print(study.to_table())


@cli.command()
def demo(
    seed: Annotated[int, typer.Option(help="Decides which images are shown.")] = 0,
    precision: Annotated[float, typer.Option(help="Interval width to stop at.")] = 0.05,
    workers: Annotated[int, typer.Option(help="Judges at once.")] = 8,
    out: Annotated[Path, typer.Option(help="Folder of the picture.")] = Path(),
    *,
    keep: Annotated[bool, typer.Option(help="Leave the database there.")] = False,
) -> None:
    """Certify a real classifier's error rate from few labels, on this machine."""
    try:
        from app.demo.run import Options, run_demo
    except ModuleNotFoundError as error:
        rule = "pip install 'celeus[demo]'"
        raise InvalidValue(f"the demo needs {error.name}: {rule}", rule=rule) from error

    run_demo(Options(seed=seed, precision=precision, workers=workers, out=out, keep=keep))


def _settings(**given: Any) -> "Settings":  # noqa: ANN401 -- one type per setting
    """Settings of the environment, with the options that were given in their place."""
    from pydantic import ValidationError

    from app.settings import Settings

    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InvalidValue(
            f"{field}: {first['msg']}, not {first['input']!r}", field=field, rule=first["msg"]
        ) from error


def _free_port(host: str, port: int) -> int:
    """The port, or a free one for 0; refused when taken, before anything is started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        # As the server will: a port whose last connections linger is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise InvalidValue(
                f"cannot listen on {host}:{port}: {error.strerror}", field="port", value=port
            ) from error
        number: int = probe.getsockname()[1]
        return number


def _place(settings: "Settings") -> str:
    if settings.database_url is None:
        return f"with its own PostgreSQL in {settings.data_dir}"
    return "on the database of CELEUS_DATABASE_URL"


@contextmanager
def _database(settings: "Settings") -> Iterator[str]:
    """Address of the database: the one named, else a private one, migrated, until the end."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    from app.store.embedded import postgres
    from app.store.migrations import upgrade

    with postgres(settings.data_dir) as url:
        upgrade(url)
        yield url


@contextmanager
def _metrics_of(workers: int) -> Iterator[None]:
    """A folder in which several processes add up their metrics, unless one is named."""
    if workers == 1 or "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="celeus-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        yield


def _policy(name: str, pairs: list[str]) -> Any:  # noqa: ANN401 -- app.core is imported late
    from app.core.policies import POLICIES, policy_named

    parameters: dict[str, Any] = {}
    for pair in pairs:
        field, _, text = pair.partition("=")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        default = getattr(POLICIES.get(name), field, None)
        if isinstance(default, float) and type(value) is int:
            value = float(value)
        if default is not None and type(value) is not type(default):
            rule = f"a {type(default).__name__}"
            raise InvalidValue(f"{field} must be {rule}", field=field, rule=rule, value=text)
        parameters[field] = value
    return policy_named(name, **parameters)


def _watched(runs: int) -> Iterator[int]:
    """The numbers of the runs; a bar shows them when a person watches."""
    if not sys.stderr.isatty():
        yield from range(runs)
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(range(runs), "simulating", console=Console(stderr=True), transient=True)


if __name__ == "__main__":
    main()
