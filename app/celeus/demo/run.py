"""The demo from beginning to end: a server, two classifiers, eight judges, three policies."""

import asyncio
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from celeus.client.asynchronous import AsyncClient
from celeus.client.results import Point
from celeus.core.plans.plan import Claim
from celeus.demo.comparison import SessionEnd, simulated, truth_of
from celeus.demo.digits import TRAINING_IMAGES, Digits, digits
from celeus.demo.figure import Course, Setting, draw
from celeus.demo.screen import Session, count, percent, watch
from celeus.demo.server import Server, running_server
from celeus.errors import InvalidValue
from celeus.simulation.sessions import seed_of

MOST_WORKERS = 64
FIGURE_NAME = "celeus-demo.png"
SECONDS_PER_LABEL = 30
"""Seconds a careful person may need for a label; used for an illustration only."""
COMPARED = {
    "celeus": ("the published method, with the same surrogate", "tab:green"),
    "evalue": ("uniform draws, without a surrogate", "tab:orange"),
}
"""Policies compared with the default one: description and colour of each."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the demo; `out` is the folder of the picture, `keep` leaves the database there."""

    seed: int = 0
    precision: float = 0.05
    alpha: float = 0.05
    workers: int = 8
    out: Path = Path()
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """Results of the demo; `risk` is the truth, which a user of the service does not know."""

    items: int
    risk: float
    certified: SessionEnd
    compared: Sequence[SessionEnd]
    figure: Path


def run_demo(options: Options, console: Console | None = None) -> Summary:
    """Run the demo, tell its story on the console, and leave only the picture behind."""
    if not 1 <= options.workers <= MOST_WORKERS:
        rule = f"1 to {MOST_WORKERS}"
        raise InvalidValue(
            f"workers must be {rule}", field="workers", rule=rule, value=options.workers
        )
    console = console or Console(highlight=False)
    figure = options.out.absolute() / FIGURE_NAME
    figure.parent.mkdir(parents=True, exist_ok=True)
    console.print(Text("Starting a Celeus server with its own database …", style="dim"))
    with running_server(keep=options.keep) as server:
        material = digits(options.seed)
        server.await_ready()
        _introduce(console, material, options)
        certified = asyncio.run(_run_session(server, material, options, console))
        folder = server.folder
    summary = Summary(
        items=len(material.items),
        risk=material.risk,
        certified=certified,
        compared=_compared(material, options),
        figure=figure,
    )
    draw(figure, _courses(summary), Setting(material.risk, options.precision, summary.items))
    _conclude(console, summary, options)
    if options.keep:
        command = shlex.join(["celeus", "serve", "--data-dir", str(folder)])
        hint = f"The data stays; look at it with: {command}"
        console.print(Text(hint), soft_wrap=True)
    return summary


async def _run_session(
    server: Server, material: Digits, options: Options, console: Console
) -> SessionEnd:
    """Run a session of the default policy through the service."""
    async with AsyncClient(server.url, server.key) as client:
        pool = await client.create_pool("handwritten digits", material.items)
        session = await client.open_session(
            pool, strategy="A", precision=options.precision, alpha=options.alpha
        )
        title = f"{options.workers} judges label what the service asks for:"
        with watch(console, title) as on_session:
            await session.judge(
                lambda item: item.label(material.labels[item.id]),
                concurrency=options.workers,
                worker="judge",
                seen=lambda status: on_session(status.raw),
            )
        console.print()
        final = await session.status()
        return _certified(final.raw, await session.trajectory())


def _compared(material: Digits, options: Options) -> list[SessionEnd]:
    truth = truth_of(material)
    claim = Claim(alpha=options.alpha, precision=options.precision)
    seed = seed_of(options.seed, 0)
    return [simulated(truth, policy, claim, seed) for policy in COMPARED]


def _courses(summary: Summary) -> list[Course]:
    """Return the courses in drawing order: the one that ends first is on top."""
    certified = summary.certified
    beside = [Course(end.policy, COMPARED[end.policy][1], end.course) for end in summary.compared]
    return [*reversed(beside), Course(certified.policy, "tab:blue", certified.course)]


def _certified(final: Session, course: Sequence[Point]) -> SessionEnd:
    width = final["precision"]
    narrow = (point.round for point in course if point.upper - point.lower <= width)
    return SessionEnd(
        policy=final["policy"],
        labels=final["rounds"]["judged"],
        sufficed=next(narrow, final["round"]),
        lower=final["lower"],
        upper=final["upper"],
        estimate=final["estimate"],
        course=course,
    )


def _introduce(console: Console, material: Digits, options: Options) -> None:
    items = count(len(material.items))
    sure = f"{100 * (1 - options.alpha):g} %"
    _print(
        console,
        f"A classifier, trained on {TRAINING_IMAGES} handwritten digits, has read {items} others."
        " What share of them did it read wrongly? Usually a person would check them all.",
        "The service draws images one by one instead, more often those that tell most, asks for"
        f" their labels, and answers with an interval. With probability at least {sure} the true"
        " error rate lies in every one of these intervals, so that anyone may stop as soon as one"
        f" is narrow enough: here {100 * options.precision:g} percentage points.",
        "A second, weaker classifier serves as surrogate: where the two disagree, an error is"
        " likely. A bad surrogate saves no labels; it cannot make the interval wrong.",
    )


def _conclude(console: Console, summary: Summary, options: Options) -> None:
    certified = summary.certified
    if certified.always_held(summary.risk):
        truth = f"It lay inside all {count(len(certified.course))} intervals shown on the way."
    else:
        truth = (
            "It left the interval on the way: that may happen, in at most"
            f" {100 * options.alpha:g} % of all runs."
        )
    late = certified.labels - certified.sufficed
    in_hand = f"{count(certified.sufficed)} sufficed; judges had {late} more in hand"
    all_work, work = _hours(summary.items), _hours(certified.labels)
    rows = {
        "labels used": f"{count(certified.labels)} of {count(summary.items)} ({in_hand})",
        "interval": f"{percent(certified.lower)} to {percent(certified.upper)}",
        "estimate": percent(certified.estimate),
        "true error rate": f"{percent(summary.risk)} (known only because this is a demo)",
        **{
            f"policy {end.policy}": (f"{count(end.labels)} labels ({COMPARED[end.policy][0]})")
            for end in summary.compared
        },
        "everything": f"{count(summary.items)} labels; at {SECONDS_PER_LABEL} s each"
        f" {all_work} of work, against {work}",
    }
    console.print(Text("Summary", style="bold"))
    for name, value in rows.items():
        console.print(Text.assemble(f"  {name:<16}", (value, "bold" if name == "interval" else "")))
    console.print()
    _print(
        console,
        truth,
        "The other policies were asked for the same width on the same images, by the service's own"
        " code in this process, without the server; one session each.",
    )
    console.print(Text(f"The picture of it: {summary.figure}"), soft_wrap=True)


def _hours(labels: int) -> str:
    return f"{labels * SECONDS_PER_LABEL / 3600:.1f} h"


def _print(console: Console, *paragraphs: str) -> None:
    for paragraph in paragraphs:
        console.print(Text(paragraph), width=min(console.width, 88))
        console.print()
