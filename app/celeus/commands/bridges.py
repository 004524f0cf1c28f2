"""`celeus bridge`: people judge a session in the annotation tool they know."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from celeus.commands.judges import UNFINISHED, status_of, take_up, where
from celeus.commands.options import HERE, LabelKeyFile, SessionId, Url, read_key
from celeus.errors import InvalidValue, Refusal

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.bridges.loop import Queue
    from celeus.bridges.questions import Question
    from celeus.client.blocking import Session

bridges = typer.Typer(
    help="Have people judge what a session draws, in Label Studio or another tool. The tool's"
    " secret is read from the environment.",
    no_args_is_help=True,
)

Hold = Annotated[
    int,
    typer.Option(min=1, max=256, help="Items in the tool at once; more than there are people."),
]
Every = Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")]
HOLD, EVERY, SELDOM = 8, 1.0, 5.0


@bridges.command("label-studio")
def label_studio(  # noqa: PLR0913 -- one parameter an option
    *,
    session: SessionId,
    tool_url: Annotated[
        str, typer.Option(envvar="LABEL_STUDIO_URL", help="Address of Label Studio.")
    ] = "http://127.0.0.1:8080",
    project: Annotated[
        int | None,
        typer.Option(min=1, help="Number of a project of your own; default: one is made."),
    ] = None,
    media_hosts: Annotated[
        str,
        typer.Option(
            envvar="CELEUS_MEDIA_HOSTS",
            help="Hosts whose pictures are shown, separated by spaces; others are links.",
        ),
    ] = "",
    hold: Hold = HOLD,
    every: Every = EVERY,
    url: Url = HERE,
    api_key_file: LabelKeyFile = None,
) -> None:
    """A project of Label Studio, with the token in LABEL_STUDIO_API_KEY, legacy or personal."""
    from celeus.bridges.label_studio import LabelStudio, open_tool

    token = secret("LABEL_STUDIO_API_KEY")
    with (
        open_tool(tool_url, token) as tool,
        judged(session, url, api_key_file) as (served, question),
    ):
        hosts = media_hosts.split()
        queue = LabelStudio(tool, session, question, project, media_hosts=hosts)
        run(served, queue, f"{tool.url}/projects/{queue.project}", hold, every)


@bridges.command()
def mlflow(
    *,
    session: SessionId,
    hold: Hold = HOLD,
    every: Every = EVERY,
    url: Url = HERE,
    api_key_file: LabelKeyFile = None,
) -> None:
    """A review queue of MLflow 3.14 or later, at MLFLOW_TRACKING_URI; with MLflow installed."""
    from celeus.bridges.mlflow_queues import ReviewQueue

    with judged(session, url, api_key_file) as (served, question):
        queue = ReviewQueue(session, question)
        run(served, queue, f"experiment {queue.experiment}", hold, every)


@bridges.command()
def langfuse(  # noqa: PLR0913 -- one parameter an option
    *,
    session: SessionId,
    tool_url: Annotated[
        str, typer.Option(envvar="LANGFUSE_BASE_URL", help="Address of Langfuse.")
    ] = "https://cloud.langfuse.com",
    hold: Hold = HOLD,
    every: Every = SELDOM,
    url: Url = HERE,
    api_key_file: LabelKeyFile = None,
) -> None:
    """An annotation queue of Langfuse; keys in LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY."""
    from celeus.bridges.langfuse import AnnotationQueue, open_tool

    pair = secret("LANGFUSE_PUBLIC_KEY"), secret("LANGFUSE_SECRET_KEY")
    with (
        open_tool(tool_url, *pair) as tool,
        judged(session, url, api_key_file) as (served, question),
    ):
        queue = AnnotationQueue(tool, session, question)
        run(served, queue, f"{tool.url}, queue {queue.id}", hold, every)


@bridges.command()
def langsmith(  # noqa: PLR0913 -- one parameter an option
    *,
    session: SessionId,
    tool_url: Annotated[
        str, typer.Option(envvar="LANGSMITH_ENDPOINT", help="Address of LangSmith.")
    ] = "https://api.smith.langchain.com",
    workspace: Annotated[
        str | None,
        typer.Option(envvar="LANGSMITH_WORKSPACE_ID", help="Its id, for keys of several."),
    ] = None,
    hold: Hold = HOLD,
    every: Every = SELDOM,
    url: Url = HERE,
    api_key_file: LabelKeyFile = None,
) -> None:
    """An annotation queue of LangSmith, with the key in LANGSMITH_API_KEY."""
    from celeus.bridges.langsmith import AnnotationQueue, open_tool

    key = secret("LANGSMITH_API_KEY")
    with (
        open_tool(tool_url, key, workspace) as tool,
        judged(session, url, api_key_file) as (served, question),
    ):
        queue = AnnotationQueue(tool, session, question)
        run(served, queue, f"queue {queue.id}", hold, every)


@bridges.command()
def argilla(  # noqa: PLR0913 -- one parameter an option
    *,
    session: SessionId,
    tool_url: Annotated[
        str, typer.Option(envvar="ARGILLA_API_URL", help="Address of Argilla.")
    ] = "http://127.0.0.1:6900",
    workspace: Annotated[
        str | None, typer.Option(help="Name of the workspace; default: the only one.")
    ] = None,
    hold: Hold = HOLD,
    every: Every = EVERY,
    url: Url = HERE,
    api_key_file: LabelKeyFile = None,
) -> None:
    """A dataset of Argilla 2, with the key in ARGILLA_API_KEY."""
    from celeus.bridges.argilla import Dataset, open_tool

    key = secret("ARGILLA_API_KEY")
    with open_tool(tool_url, key) as tool, judged(session, url, api_key_file) as (served, question):
        queue = Dataset(tool, session, question, workspace)
        run(served, queue, f"{tool.url}/dataset/{queue.id}/annotation-mode", hold, every)


def secret(name: str) -> str:
    """Return an environment variable's value; refuses an empty one or one unfit for a header."""
    value = os.environ.get(name, "")
    if not value or not (value.isascii() and value.isprintable()) or " " in value:
        raise InvalidValue(f"there is no secret in {name} that works: set it", field=name)
    return value


@contextmanager
def judged(
    session: str, url: str, api_key_file: Path | None
) -> Iterator[tuple["Session", "Question"]]:
    """A session of a service, and what it asks of people."""
    from celeus.bridges.loop import asked_of
    from celeus.client.blocking import Client
    from celeus.client.service import check_session

    check_session(session)
    with Client(url, read_key(api_key_file)) as client:
        served = client.session(session)
        yield served, asked_of(served)


def run(session: "Session", queue: "Queue", place: str, hold: int, every: float) -> None:
    """Go on until the session stops; exit with the status of what goes on where that is so."""
    from celeus.bridges.loop import bridge, passes

    typer.echo(f"{session.id}: people judge it in {queue.name}, {place}")
    take_up(status_of(session), session.id)
    again = "run the command again, it goes on where it stopped"
    try:
        done = bridge(session, queue, hold=hold, every=every, warn=warn)
    except Refusal as refusal:
        if not passes(refusal):
            raise
        warn(f"{refusal}; {again}")
        raise typer.Exit(UNFINISHED) from None
    except KeyboardInterrupt:
        warn(f"stopped; {again}")
        raise typer.Exit(UNFINISHED) from None
    counts = f"{done.labels} labels, {done.unjudgeable} of them unjudgeable, {done.amended} changed"
    typer.echo(
        f"{session.id}: {counts}, {done.overtaken} overtaken; {where(session)}({done.state})"
    )


def warn(text: str) -> None:
    """A line for whoever looks after it."""
    from celeus.shorten import one_line

    typer.echo(one_line(f"celeus: {text}"), err=True)
