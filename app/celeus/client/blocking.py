# Generated from asynchronous.py by `make generate`: change that file, not this one.
"""The client of a service over HTTP that blocks: `celeus.Client`."""

import os
import time
from collections.abc import (
    Callable,
    Generator,
    Iterator,
    Sequence,
)
from contextlib import closing, contextmanager
from typing import Any, Self, TypeVar

import httpx2

from celeus.client import calls
from celeus.client.bundle import bundled
from celeus.client.calls import EventStream
from celeus.client.exchange import (
    KEEPS_ANSWERS,
    Answer,
    Flow,
    LostAnswer,
    Outcome,
    Pause,
    Request,
    checked,
    created,
    get,
    greeted,
    member,
    post,
)
from celeus.client.fingerprint import check_resume, fingerprint
from celeus.client.label_loop import HeldTurns, JudgeResult, Seen, Turn, workers_of
from celeus.client.picture import POINTS, Picture, picture
from celeus.client.reading import read
from celeus.client.results import (
    Claim,
    Comment,
    Entry,
    Item,
    Label,
    Plan,
    Point,
    Pool,
    Status,
    Tombstone,
)
from celeus.client.rows import frame_of
from celeus.client.service import LIMITS, REQUEST_SECONDS, Service, check_session, reason
from celeus.client.threads import WorkerNames, held, judge_together

T = TypeVar("T")


class Client:
    """A service at ``url`` asked with ``key``; by default what CELEUS_URL and CELEUS_KEY say.

    Threads may share a blocking client; the other one has the same methods, to be awaited, and
    asynchronous iterators for lists, `draws` and `follow`. What goes wrong is a `celeus.Refusal`:
    `Problem` where the service declines, `Unreachable` where nobody answers, both after several
    tries unless ``retry`` is False. ``http`` is a client of httpx2 to be used instead of one of its
    own.
    """

    _greeted = False
    _retry = True

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        http: httpx2.Client | None = None,
        retry: bool = True,
    ) -> None:
        self._service = Service.of(url, key)
        self._own = http is None
        self._http = http or httpx2.Client(timeout=REQUEST_SECONDS, limits=LIMITS)
        self._retry = retry

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections; not those of a client that was given."""
        if self._own:
            self._http.close()

    def run(self, flow: Flow[T]) -> T:
        """Run a flow of `celeus.client.calls` to its end and return its value."""
        if not self._greeted:
            self._run(greeted(self._service.url))
            self._greeted = True
        return self._run(flow)

    def _run(self, flow: Flow[T]) -> T:
        outcome: Outcome = None
        while True:
            try:
                step = flow.send(outcome)
            except StopIteration as ended:
                value: T = ended.value
                return value
            if isinstance(step, Pause):
                if not self._retry:
                    checked(outcome)
                time.sleep(step.seconds)
                outcome = None
            else:
                outcome = self._exchanged(step)

    def _exchanged(self, request: Request) -> Answer | LostAnswer:
        try:
            with self.stream(request) as answer:
                return Answer(answer.status_code, answer.headers, answer.read())
        except httpx2.HTTPError as error:
            return LostAnswer(f"{self._service.url} cannot be reached: {reason(error)}")

    @contextmanager
    def stream(self, request: Request) -> Iterator[httpx2.Response]:
        """Send a request and yield the answer before its body is read."""
        body = request.body if request.parts is None else request.parts()
        with self._http.stream(
            request.method,
            self._service.url + request.path,
            params=request.query or None,
            headers={**self._service.headers, **request.headers},
            content=body,
            timeout=httpx2.USE_CLIENT_DEFAULT if request.seconds is None else request.seconds,
            follow_redirects=False,
        ) as answer:
            yield answer

    def request(self, method: str, path: str, body: object = None, **query: object) -> Any:  # noqa: ANN401 -- JSON
        """Send a request of docs/api.md, such as to `/v1/claims`, and return the answer's JSON."""
        if method == "GET":
            return self.run(get(path, **query))
        if method == "POST" and KEEPS_ANSWERS.fullmatch(path):
            return self.run(created(path, body))
        return self.run(post(path, body, method))

    def create_pool(
        self,
        name: str,
        items: object = None,
        **members: Any,  # noqa: ANN401 -- members of the contract
    ) -> Pool:
        """Create a sealed pool of a frame, a Dataset, dicts, or the path of a table or a log.

        It is there with all its items or not at all. Further members: ``loss`` (`zero_one` unless
        said otherwise), ``score``, ``metrics``, ``levels``, ``systems``, ``based_on``,
        ``instructions`` for judges, and ``mapping``, roles by columns, such as
        `{"Frage": "question"}`: without it they follow from names and values, unless columns are
        members of an item. Without items it is open for `add_items`.

        What a file leaves open is asked: NeedsAnswer lists the questions. The answers are members:
        ``answer`` is the column that is judged, ``better`` `higher` or `lower`, ``scale`` such as
        `(1, 5)`, ``missing`` values that stand for no score, ``repeats`` (`items`, `runs`,
        `first`, `mean` or `COLUMN=VALUE`) for rows of one id, ``rows`` (`with_id`, `all`) where
        some have none.
        """
        form = calls.pool_form(name, **members)
        if items is None:
            return read(Pool, self.run(created(calls.POOLS, form)))
        return self.run(calls.create_filled_pool(form, items))

    def add_items(self, pool: Pool | str, items: object) -> int:
        """Add items to an open pool, all or none; return how many were added."""
        return self.run(calls.add_items(calls.id_of(pool), items))

    def seal_pool(self, pool: Pool | str) -> Pool:
        """Seal a pool, which then takes no more items, and return it."""
        return read(Pool, self.run(post(f"{calls.POOLS}/{calls.id_of(pool)}/seal")))

    def delete_pool(self, pool: Pool | str) -> None:
        """Delete an archived pool without sessions, for good."""
        self.run(calls.body_at(f"{calls.POOLS}/{calls.id_of(pool)}", "DELETE"))

    def pool(self, pool: str) -> Pool:
        """Return a pool by its id."""
        return self.run(calls.get_pool(pool))

    def pools(self) -> Iterator[Pool]:
        """Yield all pools, newest first."""
        return self.pages(Pool, calls.POOLS)

    def items(self, pool: Pool | str) -> Iterator[Item]:
        """Yield the items of a pool, in the order of their upload."""
        return self.pages(Item, f"{calls.POOLS}/{calls.id_of(pool)}/items")

    def plan(self, pool: Pool | str, **asked: Any) -> Plan:  # noqa: ANN401
        """Return how many labels a session would take: a forecast, and nothing is kept.

        ``asked`` has the members of an opening, such as ``precision``, ``questions`` and
        ``policies``; without any the service suggests a precision.
        """
        return self.run(calls.plan(pool, asked))

    def open_session(
        self,
        pool: Pool | str,
        *,
        resume: str | None = None,
        keep: bool = False,
        fresh: bool = False,
        **opening: Any,  # noqa: ANN401 -- members of the contract
    ) -> "Session":
        """Open a session; ``opening`` has the members of docs/api.md, such as ``precision``.

        With ``resume``, a name, return the session of that name if there is one that is not closed
        or archived, so that a program started again goes on where it was. Refuses one of other
        items or settings, and has `judge` refuse a function that changed since it judged, unless
        ``keep`` is True. With ``fresh`` closes the session that is there, and opens another one.
        """
        check_resume(resume, keep=keep, fresh=fresh)
        if resume is None:
            status = self.run(calls.open_session(pool, opening))
            return Session(self, status.id)
        status = self.run(calls.resume_session(pool, resume, opening, fresh=fresh))
        return Session(self, status.id, keep=keep)

    def push(self, file: str | os.PathLike[str]) -> "Session":
        """Send the file of a run in process; return the closed session made of it."""
        status = self.run(calls.push(file))
        return Session(self, status.id)

    def session(self, session: str) -> "Session":
        """Return a session by its id, without asking the service for it."""
        check_session(session)
        return Session(self, session)

    def sessions(
        self, pool: Pool | str | None = None, state: str | None = None
    ) -> Iterator[Status]:
        """Yield the status of all sessions, newest first."""
        pool_id = None if pool is None else calls.id_of(pool)
        return self.pages(Status, calls.SESSIONS, pool_id=pool_id, state=state)

    def tombstones(self, pool: Pool | str | None = None) -> Iterator[Tombstone]:
        """Yield what is left of deleted sessions, those opened last first."""
        pool_id = None if pool is None else calls.id_of(pool)
        return self.pages(Tombstone, calls.TOMBSTONES, pool_id=pool_id)

    def pages(self, kind: type[T], path: str, **query: object) -> Iterator[T]:
        """Yield the results of all pages of a list."""
        after: object = None
        while True:
            found, after = self.run(calls.page(kind, path, {**query, "after": after}))
            yield from found
            if after is None:
                return


class Session:
    """A session of a service: judge it, follow it, read it."""

    def __init__(self, client: Client, session: str, *, keep: bool | None = None) -> None:
        """Judge the session of this id; ``keep`` is None unless it was opened to be resumed."""
        self.client = client
        self.id = session
        self._keep = keep
        self._path = f"{calls.SESSIONS}/{session}"
        self._names = WorkerNames(session)

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    def status(self) -> Status:
        """Return its status."""
        return self.client.run(calls.get_session(self.id))

    def change(self, **settings: Any) -> Status:  # noqa: ANN401 -- members of the contract
        """Set ``precision``, ``budget``, ``stop_when_decided``, ``state`` or ``instructions``."""
        return self.client.run(calls.change_session(self.id, settings))

    def close(self) -> Status:
        """Close it for good; its certificate is final then."""
        return self.change(state="closed")

    def delete(self, purge: str | None = None) -> Tombstone:
        """Delete the archived session for good; return what is left of it.

        ``purge`` is its name or its id, needed where certificates were issued for it.
        """
        return self.client.run(calls.delete_session(self.id, purge))

    def draws(
        self, worker: str | None = None, *, wait_paused: bool = False
    ) -> Generator[Turn, None, None]:
        """Yield one item after the other, until nothing more is asked for.

        Say `observe`, `label`, `prefer` or `unjudgeable` of each. ``worker`` names who judges.
        Without one it is a name that this object (and thread) has for itself, and that a program
        started again on this machine gets again: an item that an exception or a crash kept from
        being judged comes back at once. Leave it early with `contextlib.closing`: what was said is
        sent then.
        """
        with self._names.use(worker) as name:
            turns = HeldTurns(self.id, name, wait_paused=wait_paused)
            with closing(held(self.client, turns)) as batches:
                for batch in batches:
                    yield batch[0]

    def judge(
        self,
        verdict: Callable[[Turn], object],
        *,
        concurrency: int = 8,
        worker: str | None = None,
        seen: Seen | None = None,
    ) -> JudgeResult:
        """Have a function judge several items at once, until nothing more is asked for.

        It is given an item and returns a loss, losses or a preference; of a pool that names a score
        it returns the score, in its direction, in place of the loss. Where it cannot tell it calls
        `item.unjudgeable` and returns None. What it raises ends the judging, and the item is not
        judged. Leases are renewed while it thinks. A blocking client calls it in threads, with a
        ``concurrency`` of 1 in the caller's; the other one also takes a coroutine function.
        ``seen`` is called, in whatever thread, with the status after each label; not with a key
        that may not see it.
        """
        return self._judged(verdict, worker, concurrency, None, seen)

    def judge_many(
        self,
        verdicts: Callable[[Sequence[Turn]], Any],
        *,
        size: int = 32,
        worker: str | None = None,
        seen: Seen | None = None,
    ) -> JudgeResult:
        """Have a function judge up to ``size`` items at once, with one verdict for each.

        It is called in the caller's thread.
        """
        return self._judged(verdicts, worker, 1, size, seen)

    def follow(self) -> Iterator[Status]:
        """Yield its status whenever something happens, until it is closed."""
        stream = EventStream(self.id)
        while not stream.closed:
            outcome: Answer | LostAnswer = LostAnswer("the stream of events ended")
            try:
                with self.client.stream(stream.request()) as answer:
                    if answer.is_success:
                        stream.failures = 0
                        for event in httpx2.EventSource(answer, max_event_size=None):
                            yield stream.event(event.id, event.data)
                    else:
                        outcome = Answer(answer.status_code, answer.headers, answer.read())
            except httpx2.HTTPError as error:
                outcome = LostAnswer(f"the stream of events broke: {reason(error)}")
            if not stream.closed:
                time.sleep(stream.pause(outcome))

    def trajectory(self, points: int | None = None) -> list[Point]:
        """Return the interval round by round, thinned evenly to about ``points``."""
        if points is not None:
            path, query = f"{self._path}/trajectory", {"points": points, "limit": 10_000}
            found, _ = self.client.run(calls.page(Point, path, query))
            return found
        pages = self.client.pages(Point, f"{self._path}/trajectory", limit=10_000)
        return list(pages)

    def ledger(self) -> Iterator[Entry]:
        """Yield the events of its ledger, in order."""
        return self.client.pages(Entry, f"{self._path}/ledger", limit=10_000)

    def labels(self, **wanted: Any) -> Iterator[Label]:  # noqa: ANN401 -- members of the contract
        """Yield every judgement as it stands, in the order of the judgements.

        Labels are no uniform sample: the mean of their losses is not the score.

        ``wanted`` are filters of docs/api.md, such as ``above`` and ``person``, and ``payload``.
        """
        query = {"limit": 1_000, **wanted}
        return self.client.pages(Label, f"{self._path}/labels", **query)

    def frame(self, **wanted: Any) -> Any:  # noqa: ANN401 -- a DataFrame; pandas is no part of us
        """Return the `labels` as a DataFrame of pandas."""
        return frame_of([label.raw for label in self.labels(**wanted)])

    def claims(self, **wanted: Any) -> list[Claim]:  # noqa: ANN401 -- members of the contract
        """Return the claims of a session with metrics or groups, as they stand.

        ``wanted`` are `sort`, `metric` and `column` of docs/api.md.
        """
        document = self.client.run(get(f"{self._path}/claims", **wanted))
        return [read(Claim, claim) for claim in member(document, "data")]

    def comments(self) -> Iterator[Comment]:
        """Yield what judges added to their judgements, in the order of rounds."""
        return self.client.pages(Comment, f"{self._path}/comments", limit=1_000)

    def amend(
        self,
        round: int,  # noqa: A002 -- the contract's word
        reason: str,
        **judgement: Any,  # noqa: ANN401 -- members of the contract
    ) -> Status | None:
        """Correct a judged round by ``loss``, ``label``, ``losses`` or the like.

        None to a key that may not see where the session stands.
        """
        form = {"round": round, "reason": reason, **judgement}
        document = self.client.run(post(f"{self._path}/amendments", form))
        status = member(document, "session")
        return read(Status, status) if "estimate" in status else None

    def certificate(self) -> bytes:
        """Return the signed certificate, byte by byte; final once the session is closed."""
        return self.client.run(calls.body_at(f"{self._path}/certificate"))

    def bundle(self) -> bytes:
        """Return the certificate and the pool's columns in one file, for `celeus verify`.

        It holds ids and payloads of no items. Certificates of tables and of the best of several
        systems are verified with these columns only, others more thoroughly.
        """
        return bundled(self.certificate(), self.columns())

    def columns(self) -> bytes:
        """Return the columns of the session's pool, an `.npz`, for `celeus verify --pool`."""
        pool = (self.status()).pool_id
        return self.client.run(calls.body_at(f"{calls.POOLS}/{pool}/columns.npz"))

    def report(self) -> str:
        """Return the report, an HTML page that loads nothing."""
        page = self.client.run(calls.body_at(f"{self._path}/report"))
        return page.decode()

    def picture(self) -> Picture:
        """Return the interval by labels, for a notebook."""
        status = self.status()
        return picture(status, [] if status.lower is None else self.trajectory(POINTS))

    def _repr_html_(self) -> str:
        return self.picture().html

    def _judged(
        self,
        verdict: Callable[[Any], object],
        worker: str | None,
        concurrency: int,
        size: int | None,
        seen: Seen | None,
    ) -> JudgeResult:
        if self._keep is not None:
            task = self.client.run(calls.task_of(self.id))
            judge = fingerprint(verdict, scored=task.turned)
            self.client.run(calls.take_up(self.id, judge, keep=self._keep))
            self._keep = None
        with self._names.use(worker) as name:
            workers = workers_of(self.id, name, concurrency, size, seen)
            return self._let_judge(workers, verdict)

    def _let_judge(self, workers: list[HeldTurns], verdict: Callable[[Any], object]) -> JudgeResult:
        return judge_together(self.client, workers, verdict)
