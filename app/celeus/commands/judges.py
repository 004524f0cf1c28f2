"""`celeus judge` and `celeus guess`: a model or a program as the truth, or as a guess of it."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celeus.commands.options import (
    HERE,
    All,
    AsJson,
    SessionId,
    Url,
    confirm_all,
    from_input,
    read_key,
)
from celeus.errors import InvalidValue

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.client.blocking import Session
    from celeus.client.results import Status
    from celeus.judges.cases import Case, Model, Opinion
    from celeus.judges.endpoint import Endpoint
    from celeus.judges.programs import Program
    from celeus.judges.verdicts import Verdicts

UNFINISHED = 3
"""Exit status of a run that goes on when it is started again; 1 is for errors."""
OPENAI = "https://api.openai.com/v1"
KEY = "OPENAI_API_KEY"
"""Environment variable with the key of the endpoint."""
WORKER = "CELEUS_WORKER"
"""Environment variable with a name that stays: what a killed run held comes back to it at once."""
CONCURRENCY = 16
KEEP = "--keep goes on with the earlier judgements; another session begins anew"

RubricFile = Annotated[
    Path | None,
    typer.Option(callback=from_input, help="TOML file with what the model is to judge by."),
]
ModelName = Annotated[str | None, typer.Option(help="Name of the model at the endpoint.")]
Executable = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="Judge by this command, in place of rubric and model: a line of JSON in for each"
        ' item, a line such as {"loss": 0} out.',
    ),
]
BaseUrl = Annotated[str, typer.Option(envvar="OPENAI_BASE_URL", help="Address of the endpoint.")]
Concurrency = Annotated[int, typer.Option(min=1, max=64, help="How many items to judge at once.")]
Price = Annotated[
    str | None,
    typer.Option(metavar="IN,OUT", help="Dollars for a million tokens in, and for a million out."),
]
MaxCost = Annotated[
    float | None,
    typer.Option(min=0.0, help="Dollars to stop at; the calls under way are still paid."),
]
CacheFile = Annotated[
    Path | None,
    typer.Option(help="File to keep verdicts in, so that none is paid for twice."),
]


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """The judge asked for, its prices, and the file of its verdicts."""

    rubric: Path | None
    model: str | None
    program: str | None
    base_url: str
    prices: tuple[float, float, float | None]
    cache: Path
    soft: bool = False
    """The probabilities of the verdicts are asked for."""

    @property
    def name(self) -> str:
        """The judge by name."""
        return self.model or (self.program or "").split()[0]


@dataclass(frozen=True, slots=True)
class Worker:
    """A judge at work; ``check`` refuses a case it could not judge, before anything is paid."""

    judge: "Program | Model"
    check: Callable[["Case"], object]
    endpoint: "Endpoint | None"
    verdicts: "Verdicts"

    def end(self) -> None:
        """Have nobody wait for another try."""
        if self.endpoint is not None:
            self.endpoint.end()

    def spent(self) -> dict[str, Any]:
        """Return earlier verdicts, calls, tokens and cost, for a program."""
        found: dict[str, Any] = {"taken_up": self.verdicts.taken_up}
        if self.endpoint is not None:
            spent = self.endpoint.spent
            found |= asdict(spent) | {"cost": spent.cost(self.endpoint.prices)}
        return found

    def bill(self) -> str:
        """Return earlier verdicts, calls, tokens and cost as text, with a semicolon before it."""
        earlier = self.verdicts.taken_up
        taken = f"; taken up: {earlier} verdicts from {self.verdicts.path}" if earlier else ""
        if self.endpoint is None:
            return taken
        spent, prices = self.endpoint.spent, self.endpoint.prices
        cost = f", ${spent.cost(prices):.4f}" if prices.tokens_in or prices.tokens_out else ""
        tokens = f"{spent.tokens_in} tokens in, {spent.tokens_out} out"
        return f"{taken}; {spent.calls} calls, {spent.retries} more tries, {tokens}{cost}"


def judge(  # noqa: PLR0913 -- one parameter an option
    session: SessionId,
    *,
    rubric: RubricFile = None,
    model: ModelName = None,
    program: Executable = None,
    base_url: BaseUrl = OPENAI,
    concurrency: Concurrency = CONCURRENCY,
    price: Price = None,
    max_cost: MaxCost = None,
    cache: CacheFile = None,
    all_: All = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Go on though the judge changed since it judged this.")
    ] = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Judge a session by a model or a program: what it says is the truth of this certificate.

    The certificate is then about the judge's verdicts, not about people's; `celeus guess` is for
    these. The rubric says what each verdict costs; two answers are judged in both orders if it is
    one for pairs. Exit status 3 where another run goes on: what it held comes back at once to the
    one of the same name, CELEUS_WORKER.
    """
    from celeus.client.blocking import Client
    from celeus.client.service import check_session
    from celeus.judges.trial import Readability, judge_session

    check_session(session)
    cache = cache or Path(f"{session}.verdicts.jsonl")
    prices = (*_price(price), max_cost)
    options = JudgeOptions(rubric, model, program, base_url, prices, cache)
    with _finished(), _working(options) as working, Client(url, read_key()) as client:
        judged = client.session(session)
        _check_begun(judged, working, all_=all_, keep=keep)
        readability = Readability(show)
        parts = (readability, concurrency, os.environ.get(WORKER), working.end)
        done = judge_session(judged, working.judge, *parts)
        counts = f"{done.labels} labels now, {done.unjudgeable} of them unjudgeable"
        line = (
            f"{session}: {options.name} is the truth here; {counts}; {where(judged)}"
            f"({done.state}){working.bill()}"
        )
        typer.echo(json.dumps(asdict(done) | working.spent()) if as_json else line)


def guess(  # noqa: PLR0913 -- one parameter an option
    pool: Annotated[Path, typer.Argument(callback=from_input, help="Pool as JSON Lines.")],
    *,
    out: Annotated[Path, typer.Option(help="File to write the pool with its guesses to.")],
    rubric: RubricFile = None,
    model: ModelName = None,
    program: Executable = None,
    base_url: BaseUrl = OPENAI,
    concurrency: Concurrency = CONCURRENCY,
    price: Price = None,
    max_cost: MaxCost = None,
    cache: CacheFile = None,
    as_json: AsJson = False,
) -> None:
    """Guess the loss of every item of a pool by a model or a program; people are the truth.

    Each item gets the guess as its surrogate: the expected loss where the endpoint tells how
    likely each verdict is. A good guess saves labels, and a bad one never makes a certificate
    wrong. Exit status 3 where another run goes on, without paying twice.
    """
    from celeus.judges.guessing import guessed, opinions, read_pool, write_pool
    from celeus.judges.trial import Readability

    if out.is_dir() or not out.parent.is_dir():
        why = "it is a folder" if out.is_dir() else "its folder is not there"
        raise InvalidValue(f"{out} cannot be written: {why}", field="out")
    cache = cache or out.with_name(f"{out.name}.verdicts.jsonl")
    prices = (*_price(price), max_cost)
    options = JudgeOptions(rubric, model, program, base_url, prices, cache, soft=True)
    rows = read_pool(pool)
    with _finished(), _working(options) as working:
        for row in rows:
            working.check(row.case)
        readability = Readability(lambda _: None)

        def opinion_of(case: "Case") -> "Opinion":
            opinion = working.judge(case)
            readability.check(case.id, opinion)
            return opinion

        done = guessed(rows, opinions(rows, opinion_of, concurrency, working.end))
        write_pool(out, done.lines)
        line = (
            f"{out}: guesses of {options.name} on {len(rows)} items, {done.soft} soft, {done.hard}"
            f" hard, {done.untold} without a verdict; mean guess {done.mean:.3f}{working.bill()}"
        )
        counts = {"soft": done.soft, "hard": done.hard, "untold": done.untold, "mean": done.mean}
        found = {"items": len(rows), **counts} | working.spent()
        typer.echo(json.dumps(found) if as_json else line)


def show(line: str) -> None:
    """Write a line on how an answer was read to stderr."""
    typer.echo(line, err=True)


def status_of(session: "Session") -> "Status | None":
    """Return the session's status; None for a key that is not to see it."""
    from celeus.client.refusals import Problem

    try:
        return session.status()
    except Problem as problem:
        if problem.code != "scope_missing":
            raise
        return None


def _check_begun(session: "Session", working: Worker, *, all_: bool, keep: bool) -> None:
    """Refuse to judge all unasked, and to go on where another judge began."""
    from celeus.client.fingerprint import check_judge

    status, verdicts, judge = status_of(session), working.verdicts, working.judge.fingerprint
    if status is not None and _is_endless(status):
        what = f"without a precision or a question all {status.budget} items would be judged"
        confirm_all(what, "the session a precision or a budget", all_=all_)
    take_up(status, session.id)
    earlier = verdicts.judge_of(session.id)
    if earlier is not None or (status is not None and status.rounds.judged):
        check_judge(judge, earlier, keep=keep, ways=KEEP)
    verdicts.set_judge(session.id, str(judge))


def take_up(status: "Status | None", session: str) -> None:
    """Say how many judgements a session has already, to whom may see that."""
    from celeus.client.fingerprint import taken_up

    if status is not None:
        taken_up(status.rounds.judged, session, status.active_at)


def where(session: "Session") -> str:
    """The session's own sentence; nothing for a key that is not to see it."""
    status = status_of(session)
    sentence = "" if status is None else status.sentence
    return f"{sentence.rstrip('.')} " if sentence else ""


def _is_endless(status: "Status") -> bool:
    """Return True if the session stops only when all its items are judged."""
    asked = (status.precision, status.verdict, status.best, *status.decisions)
    wanted = (status.table or {"wanted": 0})["wanted"]
    most = status.items - status.known
    return all(target is None for target in asked) and not wanted and status.budget >= most


def _price(written: str | None) -> tuple[float, float]:
    """Return the prices of a million tokens in and out that are written as IN,OUT."""
    try:
        tokens_in, tokens_out = map(float, (written or "0,0").split(","))
    except ValueError:
        tokens_in = tokens_out = -1.0
    if min(tokens_in, tokens_out) < 0.0:
        rule = "the dollars for a million tokens in and out, as 0.4,1.6"
        raise InvalidValue(f"price must be {rule}", field="price", rule=rule, value=written)
    return tokens_in, tokens_out


@contextmanager
def _finished() -> Iterator[None]:
    """Exit with the status of a run that goes on where that is so."""
    from celeus.judges.endpoint import Unfinished
    from celeus.shorten import one_line

    try:
        yield
    except Unfinished as error:
        typer.echo(one_line(f"celeus: {error}"), err=True)
        raise typer.Exit(UNFINISHED) from None


@contextmanager
def _working(options: JudgeOptions) -> Iterator[Worker]:
    """The judge that is wished for, until the end."""
    from celeus.judges.cases import Model
    from celeus.judges.endpoint import Endpoint, Prices, key_of
    from celeus.judges.programs import Program
    from celeus.judges.rubrics import read_rubric
    from celeus.judges.verdicts import Verdicts

    prices = Prices(*options.prices)
    with ExitStack() as stack:
        if options.program is not None:
            if options.rubric is not None or options.model is not None or any(options.prices):
                rule = "--program takes neither --rubric nor --model, and has no price"
                raise InvalidValue(rule, field="program")
            verdicts = stack.enter_context(Verdicts(options.cache))
            program = stack.enter_context(Program(options.program, verdicts))
            yield Worker(program, lambda _: None, None, verdicts)
            return
        if options.rubric is None or options.model is None:
            raise InvalidValue("give a --rubric and a --model, or a --program", field="rubric")
        rubric, key = read_rubric(options.rubric), key_of(KEY)
        if options.soft and rubric.alike is not None:
            first, other = rubric.alike
            raise InvalidValue(
                f"{options.rubric}: the verdicts {first!r} and {other!r} may share their first"
                " token, whose probability is the guess: rename one so that they begin"
                " differently, or of a scale of numbers take those of one digit; celeus judge"
                " takes them as they are",
                field="rubric",
            )
        if key is None and options.base_url == OPENAI:
            raise InvalidValue(f"there is no key in {KEY}: set it", field=KEY)
        endpoint = Endpoint(options.base_url, key, options.model, prices, key_env=KEY)
        stack.enter_context(endpoint)
        verdicts = stack.enter_context(Verdicts(options.cache))
        model = Model(endpoint, rubric, verdicts)
        yield Worker(model, model.shown, endpoint, verdicts)
