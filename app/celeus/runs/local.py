"""Answers to the client's requests from this process: `celeus.Session` without a service."""

import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, Never

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from celeus.client.blocking import Client, Session
from celeus.client.calls import POOLS, page
from celeus.client.exchange import Answer, Request
from celeus.client.fingerprint import check_judge, fingerprint
from celeus.client.label_loop import HeldTurns, JudgeResult, Turn
from celeus.client.picture import POINTS
from celeus.client.results import Point
from celeus.core.certificate.ed25519 import NotAKey, private_from_pem, private_to_pem
from celeus.core.pools.item import Item
from celeus.core.pools.pool import archive_arrays
from celeus.core.pools.score import RIGHT_OR_WRONG
from celeus.core.session.outcome import Judgement, check_blind
from celeus.errors import InvalidValue, ObservationConflict, SessionClosed
from celeus.runs.report import report
from celeus.runs.run import Run

LEASE_SECONDS = 3600
"""Seconds of a lease. A worker of this process keeps its draws, so leases need no renewal."""
PROBLEM = ("code", "detail", "field", "rule", "value")
JUDGED = ("loss", "label", "unjudgeable", "losses", "preference", "grade", "runs")


class LocalClient(Client):
    """A client that answers the requests of one session from a ledger's file in this process."""

    def __init__(self, run: Run, key: Path) -> None:
        """Answer from ``run``; ``key`` is the file of the signing key, made if it is missing."""
        self.ledger = run
        self._key = key
        self._greeted = True
        self._routes: Mapping[tuple[str, str], Callable[[Request], object]] = {
            ("GET", ""): lambda _: run.status(),
            ("PATCH", ""): self._change,
            ("GET", "/task"): self._task,
            ("POST", "/next"): self._next,
            ("POST", "/observe"): self._observe,
            ("POST", "/release"): self._release,
            ("POST", "/amendments"): self._amend,
            ("GET", "/ledger"): self._records,
            ("GET", "/trajectory"): self._trajectory,
            ("GET", "/labels"): self._labels,
            ("GET", "/report"): lambda _: self._report(),
            ("GET", "/claims"): lambda request: run.claims(**request.query),
            ("GET", f"{POOLS}/pool_{run.session.hex()}/items"): self._items,
            ("GET", f"{POOLS}/pool_{run.session.hex()}/columns.npz"): lambda _: self._columns(),
            ("GET", "/certificate"): lambda _: run.certificate(signing_key(self._key)),
        }

    def close(self) -> None:
        """Release the file for other processes."""
        self.ledger.close_file()

    def _exchanged(self, request: Request) -> Answer:
        path = request.path.removeprefix(f"/v1/sessions/{self.ledger.id}")
        try:
            answer = self._routes.get((request.method, path), _refuse)(request)
        except (ObservationConflict, SessionClosed) as conflict:
            # Answers to a judge whom somebody else, or the end of the session, overtook
            problem = {name: getattr(conflict, name) for name in PROBLEM}
            return Answer(409, {}, json.dumps(problem, default=_plain).encode())
        body = answer if isinstance(answer, bytes) else json.dumps(answer, default=_plain).encode()
        return Answer(200, {}, body)

    @contextmanager
    def stream(self, request: Request) -> Iterator[Never]:
        """Refuse: events of this process need no stream."""
        _refuse(request)

    def _change(self, request: Request) -> object:
        changes = _body(request)
        if changes != {"state": "closed"}:
            raise InvalidValue(
                "A session in process keeps the settings it was opened with.",
                field=next(iter(changes.keys() - {"state"}), "state"),
                rule="left out; `close` ends the session",
            )
        return self.ledger.close()

    def _task(self, _: Request) -> object:
        pool = self.ledger.upload.pool
        takes_labels, systems = pool.scale.implied_by(pool.columns), pool.systems
        success = getattr(self.ledger.state.plan, "success", None)
        return {
            "loss": {"kind": pool.scale.kind, "scale": (pool.scale.lower, pool.scale.upper)},
            "score": pool.score and pool.score.to_dict(),
            "words": RIGHT_OR_WRONG if pool.score is None else pool.score.words,
            "takes_labels": takes_labels,
            "classes": pool.classes,
            "comparison": systems and systems.task(takes_labels=takes_labels),
            "runs": getattr(self.ledger.state.plan, "target", None) == "runs",
            "repeats": getattr(self.ledger.state.plan, "repeats", False),
            "success": success and success.to_dict() | {"settling": success.settling},
            "lease_seconds": LEASE_SECONDS,
        }

    def _next(self, request: Request) -> object:
        body = _body(request)
        runs = {made["round"]: made["runs"] for made in body.get("runs", ())}
        return self.ledger.next(body["worker"], body["count"], runs)

    def _observe(self, request: Request) -> object:
        body = _body(request)
        judgements = [_judgement(observation) for observation in body.get("observations", [body])]
        if self.ledger.upload.pool.named is not None:
            # Where nothing is shown of them, losses are those of systems that have just been run
            check_blind(
                [
                    judgement
                    for judgement in judgements
                    if self.ledger.shows_answers(judgement.round)
                ]
            )
        return self.ledger.observe(body["worker"], judgements, body["next"])

    def _release(self, request: Request) -> object:
        body = _body(request)
        workers = None if body.get("worker") is None else [body["worker"]]
        passed = body.get("pass") is True
        return {"released": self.ledger.release(workers, body.get("rounds"), passed=passed)}

    def _amend(self, request: Request) -> object:
        body = _body(request)
        author = body.get("author") or "the process"
        return self.ledger.amend(_judgement(body), author, body["reason"])

    def _records(self, request: Request) -> object:
        after, limit = _page(request)
        data = [json.loads(line) for line in islice(self.ledger.records, after, after + limit)]
        more = after + len(data) < len(self.ledger.records)
        return {"data": data, "next": after + len(data) if more else None}

    def _labels(self, request: Request) -> object:
        if filters := sorted(request.query.keys() - {"after", "limit"}):
            raise InvalidValue(
                f"Labels of a session in process have no filter {filters[0]}.",
                field=filters[0],
                rule="left out: all labels are returned",
            )
        after, limit = _page(request)
        labels = [label for label in self.ledger.labels() if label["sequence"] > after]
        more = len(labels) > limit
        return {"data": labels[:limit], "next": labels[limit - 1]["sequence"] if more else None}

    def _items(self, request: Request) -> object:
        begin, limit = int(request.query.get("after", -1)) + 1, _page(request)[1]
        upload = self.ledger.upload
        data = [
            {"index": index, "id": upload.ids[index], "payload": _payload(upload.payloads[index])}
            for index in range(begin, min(begin + limit, len(upload.ids)))
        ]
        last = begin + len(data) - 1
        return {"data": data, "next": last if last + 1 < len(upload.ids) else None}

    def _columns(self) -> bytes:
        file = BytesIO()
        np.savez(file, allow_pickle=False, **archive_arrays(self.ledger.upload.pool))
        return file.getvalue()

    def _report(self) -> bytes:
        query = {"points": POINTS, "limit": 10_000}
        path = f"/v1/sessions/{self.ledger.id}/trajectory"
        found: list[Point] = []
        if self.ledger.status()["lower"] is not None:
            found, _ = self.run(page(Point, path, query))
        return report(self.ledger, found).encode()

    def _trajectory(self, request: Request) -> object:
        after, limit = _page(request)
        state = self.ledger.state
        points = state.question.points
        left, wanted = len(points) - after, request.query.get("points")
        step = 1 if wanted is None else max(1, -(-left // int(wanted)))
        rounds = [
            round_
            for round_ in range(after + 1, len(points) + 1)
            if round_ % step == 0 or round_ == len(points)
        ]
        data = [
            {
                "round": round_,
                "sequence": self.ledger.state.sequence,
                "estimate": points[round_ - 1].estimate,
                "lower": points[round_ - 1].interval.lower,
                "upper": points[round_ - 1].interval.upper,
            }
            for round_ in rounds[:limit]
        ]
        return {"data": data, "next": data[-1]["round"] if len(rounds) > limit else None}


class LocalSession(Session):
    """A session of this process, where no lease ends: who stops judging leaves what they hold."""

    def __init__(self, run: Run, key: Path, *, keep: bool = False) -> None:
        super().__init__(LocalClient(run, key), run.id)
        self._run = run
        self._keeps = keep

    def draws(
        self, worker: str | None = None, *, wait_paused: bool = False
    ) -> Generator[Turn, None, None]:
        """Yield one item after the other, as `Session.draws`."""
        with self._names.use(worker) as name:
            try:
                yield from super().draws(name, wait_paused=wait_paused)
            finally:
                self._run.release([name])

    def _let_judge(self, workers: list[HeldTurns], verdict: Callable[[Any], object]) -> JudgeResult:
        score, names = self._run.upload.pool.score, [turns.worker for turns in workers]
        judge = fingerprint(verdict, scored=score is not None and score.better == "higher")
        if self._run.taken_up:
            check_judge(judge, self._run.earlier_judge, keep=self._keeps)
            self._run.taken_up = 0
        self._run.judges |= dict.fromkeys(names, str(judge))
        try:
            return super()._let_judge(workers, verdict)
        finally:
            for name in names:
                self._run.judges.pop(name, None)
            self._run.release(names)


def session_of(run: Run, key: Path, *, keep: bool = False) -> Session:
    """Return the session in the form that `celeus.Client` gives for a service.

    With ``keep`` it goes on with another judge than the one that judged before.
    """
    return LocalSession(run, key, keep=keep)


def signing_key(file: Path) -> Ed25519PrivateKey:
    """Return the key in a file; a missing file is made, readable only by its owner."""
    check_key(file)
    if not file.exists():
        made = file.with_name(f"{file.name}.{os.getpid()}")
        made.touch(mode=0o600)
        made.write_bytes(private_to_pem(Ed25519PrivateKey.generate()))
        # The file appears complete or not at all, and never replaces another
        with suppress(FileExistsError):
            os.link(made, file)
        made.unlink()
    return private_from_pem(file.read_bytes())


def check_key(file: Path) -> None:
    """Raise a refusal for a file that holds no key, or that cannot be made."""
    why = "there is no such folder"
    try:
        if file.exists():
            private_from_pem(file.read_bytes())
            return
        if file.parent.is_dir():
            return
    except (OSError, NotAKey) as error:
        why = str(error)
    rule = "a file with an Ed25519 private key in PEM, or one to be made"
    raise InvalidValue(
        f"{file} cannot sign certificates: {why}", field="key", rule=rule, value=str(file)
    )


def _body(request: Request) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(request.body or b"{}")
    return body


def _page(request: Request) -> tuple[int, int]:
    return int(request.query.get("after", 0)), int(request.query.get("limit", 1000))


def _judgement(values: Mapping[str, Any]) -> Judgement:
    return Judgement(values["round"], **{name: values.get(name) for name in JUDGED})


def _plain(value: object) -> object:
    if isinstance(value, Item):
        return {"index": value.index, "id": value.id, "payload": _payload(value.payload)}
    message = f"{type(value).__name__} is not in JSON"
    raise TypeError(message)


def _payload(text: str | bytes | None) -> object:
    return None if text is None else json.loads(text)


def _refuse(request: Request) -> Never:
    raise InvalidValue(
        f"A session in process has no {request.method} {request.path}: that is a service's.",
        field="session",
        rule="a session of a service",
    )
