"""`celeus mcp`: tools for agents over the Model Context Protocol."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celeus.commands.options import HERE, NUMBER, Url, read_key
from celeus.errors import InvalidValue

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.agents.evaluation import Settings

LOCAL = ("127.0.0.1", "::1", "localhost")
"""Hosts at which the library turns away requests that a web page sends under another name."""
Evaluated = Annotated[
    Path | None,
    typer.Option(help="Items to test candidates on, which no agent sees."),
]
ProgramOption = Annotated[
    str | None,
    typer.Option(
        help="Program that evaluates a candidate on an item, in the form of `celeus judge"
        ' --program`: reads {"id": …, "payload": {"item": …, "candidate": …}}, writes {"loss": 0}.',
    ),
]
Incumbent = Annotated[
    Path | None,
    typer.Option(
        help="File with the incumbent, a text; a candidate that is accepted is written there.",
    ),
]


def mcp(  # noqa: PLR0913 -- one parameter an option
    *,
    url: Url = HERE,
    http: Annotated[
        bool, typer.Option("--http", help="Serve streamable HTTP at /mcp, not standard input.")
    ] = False,
    host: Annotated[
        str,
        typer.Option(
            help="With --http: address to listen at. Beyond this machine every client sends a key"
            " of its own as `Authorization: Bearer`."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="With --http: port.")] = 8765,
    items: Evaluated = None,
    program: ProgramOption = None,
    incumbent: Incumbent = None,
    margin: Annotated[
        str | None,
        typer.Option(
            metavar=NUMBER,
            help="Least improvement worth finding, such as 0.02 or 2pt.",
        ),
    ] = None,
    alpha: Annotated[
        str,
        typer.Option(
            metavar=NUMBER,
            help="Probability that ever one is accepted that is not better.",
        ),
    ] = "0.05",
    budget: Annotated[
        int | None,
        typer.Option(min=1, help="Most items judged for a proposal."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="File that keeps what was spent of alpha; default: one for these items in .celeus"
            " of the working directory.",
        ),
    ] = None,
) -> None:
    """Serve Celeus to agents: tools to open, judge, look, compare and gate.

    With --items, --program, --incumbent and --margin also a gate for hill climbing: `propose` and
    `budget`. Without a key there is that gate alone.
    """
    from celeus.agents.mcp_server import Tools, server_of

    required = {"items": items, "program": program, "incumbent": incumbent, "margin": margin}
    settings = _settings(required, {"alpha": alpha, "budget": budget, "file": file})
    key, local = read_key(), host in LOCAL
    if key is None and settings is None and not http:
        message = "there is no key: set CELEUS_KEY, or CELEUS_KEY_FILE"
        raise InvalidValue(message, field="CELEUS_KEY")
    if settings is not None and http and not local:
        # Whoever may propose spends alpha, and no key says who that is
        rule = "an address of this machine beside --items"
        raise InvalidValue(f"--host must be {rule}", field="host", rule=rule, value=host)
    with ExitStack() as stack:
        evaluation = None
        if settings is not None:
            from celeus.agents.evaluation import evaluating

            evaluation = stack.enter_context(evaluating(settings))
        tools = Tools(url, key if local or not http else None) if key or http else None
        server = server_of(tools, evaluation)
        if http:
            typer.echo(f"celeus: tools at http://{host}:{port}/mcp", err=True)
            server.run("streamable-http", host=host, port=port)
        else:
            server.run("stdio")


def _settings(required: Mapping[str, Any], others: Mapping[str, Any]) -> "Settings | None":
    """Return the settings of a gate for proposals, None without; refuses a part of them."""
    missing = [f"--{name}" for name, value in required.items() if value is None]
    if len(missing) == len(required):
        return None
    if missing:
        rule = f"all of {', '.join(f'--{name}' for name in required)}"
        message = f"a gate for proposals needs {', '.join(missing)}: give {rule}"
        raise InvalidValue(message, field=missing[0], rule=rule)
    from celeus.agents.evaluation import Settings

    return Settings(**required, **others)
