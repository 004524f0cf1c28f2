"""One loop for all tools: what a session draws goes into a queue, what people say comes back.

The queue holds only what has been drawn, so that no order of the tool's own decides what is judged,
and it is shown nothing of an item but what its judge may see. All that the loop knows it can ask
for again, of the session and of the queue: one that was killed goes on where it was.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from celeus.bridges.questions import Judgement, Question, Task, question_of
from celeus.bridges.tool import PASSING, SERVER_ERRORS, ToolUnavailable
from celeus.client.blocking import Session
from celeus.client.exchange import get, member, post
from celeus.client.label_loop import MOST_HELD, OVERTAKEN, STOPPED
from celeus.client.reading import read
from celeus.client.refusals import Problem, Unreachable
from celeus.client.results import Draw
from celeus.errors import Conflict, Invalid, InvalidValue, Refusal

LONGEST_UNASKED = 10.0
"""Seconds after which the session is asked for its state, also while nobody judges."""
RENEWALS = 3
"""Renewals of a lease within its time."""
PATIENCE = 600.0
"""Seconds that a tool or a service may be away."""
LONGEST_PAUSE = 30.0
DECLINED = frozenset({409, 422})


@dataclass(frozen=True, slots=True)
class Verdict:
    """A person's answer to a task; ``judgement`` is None if it is none, and ``why`` says why."""

    judgement: Judgement | None
    by: str = ""
    why: str = ""


class Queue(Protocol):
    """A place in a tool where people judge; raises `ToolUnavailable` while it does not answer."""

    name: str
    """Name of the tool."""

    def put(self, tasks: Sequence[Task]) -> None:
        """Have people judge these, which are not there yet."""

    def done(self) -> Mapping[str, Verdict | None]:
        """Return every item of the queue, by mark: its verdict, or None while there is none."""

    def take_back(self, marks: Collection[str]) -> None:
        """Remove those of these items that nobody has begun."""


@dataclass(slots=True)
class BridgeResult:
    """Counts of a bridge's labels, the unjudgeable among them, corrections and late answers.

    `overtaken` counts items that somebody else had judged meanwhile, `state` is the last one of the
    session.
    """

    state: str = "active"
    labels: int = 0
    unjudgeable: int = 0
    amended: int = 0
    overtaken: int = 0


def asked_of(session: Session) -> Question:
    """Return the question a session asks people; refuses a session whose judgements fit no form."""
    return question_of(session.client.run(get(f"/v1/sessions/{session.id}/task")))


def bridge(
    session: Session,
    queue: Queue,
    *,
    hold: int = 8,
    every: float = 1.0,
    warn: Callable[[str], None] = lambda _: None,
) -> BridgeResult:
    """Have people judge a session in a tool until it asks for nothing more.

    At most ``hold`` items are in the queue at once, which has to be more than there are people; it
    is looked at ``every`` so many seconds. ``warn`` is called with a line on what somebody should
    look after. Raises `celeus.Refusal` for what cannot go on, and where tool or service are away
    for ten minutes (`passes` distinguishes them); run again, it goes on.
    """
    if not 1 <= hold <= MOST_HELD:
        rule = f"1 to {MOST_HELD}"
        raise InvalidValue(f"hold must be {rule}", field="hold", rule=rule, value=hold)
    loop = _Loop(session, queue, hold, warn)
    away_since: float | None = None
    pause = every
    while True:
        try:
            loop.turn()
        except Refusal as refusal:
            away_since = away_since or time.monotonic()
            if not passes(refusal) or time.monotonic() - away_since > PATIENCE:
                raise
            warn(f"{refusal}; trying again")
            pause = min(2 * pause, LONGEST_PAUSE)
        else:
            away_since, pause = None, every
            if loop.done.state in STOPPED:
                return loop.done
        time.sleep(pause)


class _Loop:
    def __init__(
        self, session: Session, queue: Queue, hold: int, warn: Callable[[str], None]
    ) -> None:
        self.done = BridgeResult()
        self._session, self._queue, self._hold, self._warn = session, queue, hold, warn
        self._path = f"/v1/sessions/{session.id}"
        self._worker = f"bridge to {queue.name}"
        self._numbers = f"{session.id}/{'b' if self._is_blind() else ''}"
        task = session.client.run(get(f"{self._path}/task"))
        self._renewed_in = min(member(task, "lease_seconds") / RENEWALS, LONGEST_UNASKED)
        self._due = 0.0
        self._held: dict[str, Task] = {}
        self._put: set[str] = set()
        self._sent: dict[int, Judgement] = {}
        self._settled: dict[int, Judgement] = {}
        self._overtaken: set[int] = set()
        self._warned: set[str] = set()

    def turn(self) -> None:
        """Ask, look, tell, and have the queue hold what the session has drawn."""
        if time.monotonic() >= self._due:
            self._take(self._post("next", {"count": self._hold}))
        there = self._look()
        self._send(there)
        waiting = {mark for mark, verdict in there.items() if verdict is None}
        if self.done.state in STOPPED:
            self._queue.take_back(waiting)
            # Judgements that came in the meantime count
            self._send(self._look())
        elif self.done.state != "paused":
            fresh = [
                task for mark, task in self._held.items() if mark not in there.keys() | self._put
            ]
            if fresh:
                self._queue.put(fresh)
                self._put |= {task.mark for task in fresh}
            if others := waiting - self._held.keys():
                self._queue.take_back(others)

    def _is_blind(self) -> bool:
        """Return True if this key sees rounds under numbers other than the ledger's."""
        try:
            self._session.status()
        except Problem as problem:
            if problem.code != "scope_missing":
                raise
            return True
        return False

    def _post(self, what: str, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 -- JSON
        form = {"worker": self._worker, **body}
        return self._session.client.run(post(f"{self._path}/{what}", form))

    def _take(self, answer: Mapping[str, Any]) -> None:
        """Know what is held by an answer to who holds it."""
        self.done.state = member(answer, "state")
        draws = [read(Draw, draw) for draw in member(answer, "draws")]
        self._held = {task.mark: task for task in map(self._task, draws)}
        self._due = time.monotonic() + (self._renewed_in if draws else 0.0)

    def _task(self, draw: Draw) -> Task:
        sides = () if draw.left is None or draw.right is None else (draw.left, draw.right)
        mark = f"{self._numbers}{draw.round}"
        return Task(mark, draw.item.id, draw.item.payload, sides)

    def _look(self) -> Mapping[str, Verdict | None]:
        """Return this session's items in the queue, with their verdicts."""
        mine = f"{self._session.id}/"
        there = {
            mark: verdict for mark, verdict in self._queue.done().items() if mark.startswith(mine)
        }
        self._put -= there.keys()
        if not all(mark.removeprefix(self._numbers).isdecimal() for mark in there):
            raise InvalidValue(
                f"The queue in {self._queue.name} was filled with another key: keys that may read"
                " the session and keys that may only judge know its rounds by other numbers.",
                field="CELEUS_KEY",
                rule="a key with the scopes of the first one",
            )
        return there

    def _send(self, there: Mapping[str, Verdict | None]) -> None:
        """Send the session new judgements, and correct those that changed in the tool."""
        fresh: dict[int, Judgement] = {}
        for mark, verdict in there.items():
            if verdict is None:
                continue
            round_ = int(mark.removeprefix(self._numbers))
            if verdict.judgement is None:
                self._warn_once(f"{mark} in {self._queue.name}: {verdict.why}")
            elif round_ in self._overtaken or self._settled.get(round_) == verdict.judgement:
                continue
            elif round_ in self._sent:
                self._amend(round_, verdict)
            else:
                fresh[round_] = verdict.judgement
        for start in range(0, len(fresh), MOST_HELD):
            part = dict(list(fresh.items())[start : start + MOST_HELD])
            self._observe(part, there)

    def _observe(
        self, judgements: Mapping[int, Judgement], there: Mapping[str, Verdict | None]
    ) -> None:
        body = [{"round": round_, **words} for round_, words in judgements.items()]
        try:
            answer = self._post("observe", {"observations": body, "next": self._hold})
        except Refusal as refusal:
            if not _is_declined(refusal):
                raise
            # All or none: which of them it is, shows one after the other
            for round_ in judgements if len(judgements) > 1 else ():
                self._observe({round_: judgements[round_]}, there)
            if len(judgements) == 1:
                ((round_, words),) = judgements.items()
                self._settled[round_] = words
                verdict = there[f"{self._numbers}{round_}"] or Verdict(words)
                self._declined(round_, verdict, refusal)
            return
        for (round_, words), receipt in zip(
            judgements.items(), member(answer, "receipts"), strict=True
        ):
            if member(receipt, "duplicate"):
                self._overtake(round_)
                continue
            self._settled[round_] = self._sent[round_] = words
            self.done.labels += 1
            self.done.unjudgeable += "unjudgeable" in words
        self._take(answer)

    def _overtake(self, round_: int) -> None:
        """Note that somebody else's judgement counts: one given here changes nothing."""
        self._overtaken.add(round_)
        self.done.overtaken = len(self._overtaken)

    def _declined(self, round_: int, verdict: Verdict, refusal: Refusal) -> None:
        if refusal.code in OVERTAKEN:
            if self._is_own(round_):
                self._amend(round_, verdict)
            else:
                self._overtake(round_)
        elif refusal.code == "session_closed":
            self.done.state = "closed"
        else:
            mark = f"{self._numbers}{round_}"
            self._warn_once(f"{mark} in {self._queue.name}: {refusal}")

    def _amend(self, round_: int, verdict: Verdict) -> None:
        """Correct a judgement that changed in the tool."""
        judgement = verdict.judgement or {}
        self._settled[round_] = judgement
        by = f" by {verdict.by}" if verdict.by else ""
        try:
            self._session.amend(round_, f"{self._changed}{by}", **judgement)
        except Refusal as refusal:
            if not _is_declined(refusal) and refusal.code != "scope_missing":
                raise
            self._warn_once(f"round {round_} was {self._changed}{by}, and stays: {refusal}")
        else:
            self._sent[round_] = judgement
            self.done.amended += 1

    @property
    def _changed(self) -> str:
        return f"changed in {self._queue.name}"

    def _is_own(self, round_: int) -> bool:
        """Return True if a round's last entry came over a bridge; False if it cannot be read."""
        last = None
        try:
            for entry in self._session.ledger():
                if entry.round == round_ and entry.kind != "draw":
                    last = entry
        except Problem as problem:
            if problem.code != "scope_missing":
                raise
        if last is None:
            return False
        reason = str(last.detail.get("reason", ""))
        return last.detail.get("worker") == self._worker or reason.startswith(self._changed)

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._warn(text)


def passes(refusal: Refusal) -> bool:
    """Return True if trying again later may succeed."""
    if isinstance(refusal, Problem):
        return (
            refusal.code == "busy" or refusal.status in PASSING or refusal.status >= SERVER_ERRORS
        )
    return isinstance(refusal, ToolUnavailable | Unreachable)


def _is_declined(refusal: Refusal) -> bool:
    """Return True if the refusal rejects the judgement itself, and not the moment or the access."""
    if isinstance(refusal, Problem):
        return refusal.status in DECLINED and not passes(refusal)
    return isinstance(refusal, Conflict | Invalid)
