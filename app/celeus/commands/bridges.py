"""`celeus bridge`: people judge a session in the annotation tool they know."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from celeus.commands.judges import UNFINISHED, status_of, take_up, where
from celeus.commands.options import HERE, AsJson, SessionId, Url, read_key
from celeus.errors import InvalidValue, Refusal

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.bridges.loop import Queue
    from celeus.bridges.questions import Question
    from celeus.client.blocking import Session

HOLD, EVERY, SELDOM = 8, 1.0, 5.0
"""Items in the tool at once; seconds between two looks, and where a tool counts its requests."""
ToolName = Literal["label-studio", "mlflow", "langfuse", "langsmith", "argilla"]


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """A tool's address, and the options that only some tools have."""

    tool_url: str
    workspace: str | None
    project: int | None
    media_hosts: str | None

    def refuse(self, *names: str) -> None:
        """Refuse those of these options that are given, as the tool has no use for them."""
        for name in names:
            if getattr(self, name):
                rule = "left out, as this tool has none"
                option = f"--{name.replace('_', '-')}"
                raise InvalidValue(f"{option} must be {rule}", field=name, rule=rule)


Opened = Callable[[str, "Question"], tuple["Queue", str]]
"""Makes the queue of a session, and says where it is."""


def bridge(  # noqa: PLR0913 -- one parameter an option
    tool: Annotated[ToolName, typer.Argument(metavar="TOOL", help="The tool, one of these.")],
    session: SessionId,
    *,
    tool_url: Annotated[
        str | None, typer.Option(help="Address of the tool; default: that in the variable above.")
    ] = None,
    workspace: Annotated[
        str | None,
        typer.Option(
            help="Of Argilla, its name; of LangSmith, its id (LANGSMITH_WORKSPACE_ID): where the"
            " key opens several."
        ),
    ] = None,
    project: Annotated[
        int | None,
        typer.Option(
            min=1, help="Of Label Studio: number of a project of your own; default: one is made."
        ),
    ] = None,
    media_hosts: Annotated[
        str | None,
        typer.Option(
            help="Of Label Studio: hosts whose pictures are shown, separated by spaces; others are"
            " links. Default: CELEUS_MEDIA_HOSTS.",
        ),
    ] = None,
    hold: Annotated[
        int,
        typer.Option(min=1, max=256, help="Items in the tool at once; more than there are people."),
    ] = HOLD,
    every: Annotated[
        float | None,
        typer.Option(min=0.1, help="Seconds between two looks; default: 1, or 5 of a cloud."),
    ] = None,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Have people judge what a session draws in the annotation tool they know.

    The tool's secret is read from the environment.

    \b
    label-studio  LABEL_STUDIO_API_KEY, LABEL_STUDIO_URL: a project
    mlflow        MLFLOW_TRACKING_URI: a review queue of MLflow 3.14 or later
    langfuse      LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL
    langsmith     LANGSMITH_API_KEY, LANGSMITH_ENDPOINT
    argilla       ARGILLA_API_KEY, ARGILLA_API_URL: a dataset of Argilla 2
    """  # noqa: D301 -- click keeps the lines of such a paragraph
    variable, address, seconds, opening = _TOOLS[tool]
    options = ToolOptions(
        tool_url or os.environ.get(variable) or address, workspace, project, media_hosts
    )
    with opening(options) as opened, judged(session, url) as (served, question):
        queue, place = opened(session, question)
        seconds = seconds if every is None else every
        run(served, queue, place, hold, seconds, as_json=as_json)


@contextmanager
def _label_studio(options: ToolOptions) -> Iterator[Opened]:
    from celeus.bridges.label_studio import LabelStudio, open_tool

    options.refuse("workspace")
    with open_tool(options.tool_url, secret("LABEL_STUDIO_API_KEY")) as tool:

        def opened(session: str, question: "Question") -> tuple["Queue", str]:
            hosts = options.media_hosts
            if hosts is None:
                hosts = os.environ.get("CELEUS_MEDIA_HOSTS", "")
            queue = LabelStudio(tool, session, question, options.project, media_hosts=hosts.split())
            return queue, f"{tool.url}/projects/{queue.project}"

        yield opened


@contextmanager
def _mlflow(options: ToolOptions) -> Iterator[Opened]:
    from celeus.bridges.mlflow_queues import ReviewQueue

    # MLflow itself reads its address
    options.refuse("tool_url", "workspace", "project", "media_hosts")

    def opened(session: str, question: "Question") -> tuple["Queue", str]:
        queue = ReviewQueue(session, question)
        return queue, f"experiment {queue.experiment}"

    yield opened


@contextmanager
def _langfuse(options: ToolOptions) -> Iterator[Opened]:
    from celeus.bridges.langfuse import AnnotationQueue, open_tool

    options.refuse("workspace", "project", "media_hosts")
    pair = secret("LANGFUSE_PUBLIC_KEY"), secret("LANGFUSE_SECRET_KEY")
    with open_tool(options.tool_url, *pair) as tool:

        def opened(session: str, question: "Question") -> tuple["Queue", str]:
            queue = AnnotationQueue(tool, session, question)
            return queue, f"{tool.url}, queue {queue.id}"

        yield opened


@contextmanager
def _langsmith(options: ToolOptions) -> Iterator[Opened]:
    from celeus.bridges.langsmith import AnnotationQueue, open_tool

    options.refuse("project", "media_hosts")
    workspace = options.workspace or os.environ.get("LANGSMITH_WORKSPACE_ID")
    with open_tool(options.tool_url, secret("LANGSMITH_API_KEY"), workspace) as tool:

        def opened(session: str, question: "Question") -> tuple["Queue", str]:
            queue = AnnotationQueue(tool, session, question)
            return queue, f"queue {queue.id}"

        yield opened


@contextmanager
def _argilla(options: ToolOptions) -> Iterator[Opened]:
    from celeus.bridges.argilla import Dataset, open_tool

    options.refuse("project", "media_hosts")
    with open_tool(options.tool_url, secret("ARGILLA_API_KEY")) as tool:

        def opened(session: str, question: "Question") -> tuple["Queue", str]:
            queue = Dataset(tool, session, question, options.workspace)
            return queue, f"{tool.url}/dataset/{queue.id}/annotation-mode"

        yield opened


Opening = Callable[[ToolOptions], AbstractContextManager[Opened]]
_TOOLS: dict[str, tuple[str, str, float, Opening]] = {
    "label-studio": ("LABEL_STUDIO_URL", "http://127.0.0.1:8080", EVERY, _label_studio),
    "mlflow": ("", "", EVERY, _mlflow),
    "langfuse": ("LANGFUSE_BASE_URL", "https://cloud.langfuse.com", SELDOM, _langfuse),
    "langsmith": ("LANGSMITH_ENDPOINT", "https://api.smith.langchain.com", SELDOM, _langsmith),
    "argilla": ("ARGILLA_API_URL", "http://127.0.0.1:6900", EVERY, _argilla),
}
"""Variable of the address, its default, seconds between two looks, and how a tool is opened."""


def secret(name: str) -> str:
    """Return an environment variable's value; refuses an empty one or one unfit for a header."""
    value = os.environ.get(name, "")
    if not value or not (value.isascii() and value.isprintable()) or " " in value:
        raise InvalidValue(f"there is no secret in {name} that works: set it", field=name)
    return value


@contextmanager
def judged(session: str, url: str) -> Iterator[tuple["Session", "Question"]]:
    """A session of a service, and what it asks of people."""
    from celeus.bridges.loop import asked_of
    from celeus.client.blocking import Client
    from celeus.client.service import check_session

    check_session(session)
    with Client(url, read_key()) as client:
        served = client.session(session)
        yield served, asked_of(served)


def run(  # noqa: PLR0913 -- the options of a command
    session: "Session",
    queue: "Queue",
    place: str,
    hold: int,
    every: float,
    *,
    as_json: bool = False,
) -> None:
    """Go on until the session stops; exit with the status of what goes on where that is so."""
    from celeus.bridges.loop import bridge as bridged
    from celeus.bridges.loop import passes

    typer.echo(f"{session.id}: people judge it in {queue.name}, {place}", err=as_json)
    take_up(status_of(session), session.id)
    again = "run the command again, it goes on where it stopped"
    try:
        done = bridged(session, queue, hold=hold, every=every, warn=warn)
    except Refusal as refusal:
        if not passes(refusal):
            raise
        warn(f"{refusal}; {again}")
        raise typer.Exit(UNFINISHED) from None
    except KeyboardInterrupt:
        warn(f"stopped; {again}")
        raise typer.Exit(UNFINISHED) from None
    if as_json:
        typer.echo(json.dumps(asdict(done)))
        return
    counts = f"{done.labels} labels, {done.unjudgeable} of them unjudgeable, {done.amended} changed"
    typer.echo(
        f"{session.id}: {counts}, {done.overtaken} overtaken; {where(session)}({done.state})"
    )


def warn(text: str) -> None:
    """A line for whoever looks after it."""
    from celeus.shorten import one_line

    typer.echo(one_line(f"celeus: {text}"), err=True)
