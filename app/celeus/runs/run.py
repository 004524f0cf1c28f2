"""A session in this process: draws, judgements and certificates over a ledger in a file.

It opens, draws and judges by the service's own code (`celeus.core`), and its ledger and its
certificate are those that the service would have made of the same draws and judgements.
"""

import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from celeus import seeds
from celeus.client.refusals import faults
from celeus.core.canonical import canonical_json
from celeus.core.certificate.chain import chain_on, chain_start, record_of
from celeus.core.certificate.document import SessionFacts, certificate, position_of
from celeus.core.certificate.read_ledger import Transcript
from celeus.core.insights.claim_rows import ClaimQuery, Order, claims_document
from celeus.core.insights.label_rows import LabelContext, label_row
from celeus.core.insights.status import (
    Header,
    may_have_provisional,
    provisional_member,
    session_state,
    status_document,
)
from celeus.core.ledger import Amendment, Change, Event
from celeus.core.plain import Mismatch
from celeus.core.plans.plan_request import SessionRequest, plan_of
from celeus.core.plans.success import check_open
from celeus.core.pools.item import Item
from celeus.core.pools.rows.growth import Upload, pool_of_rows
from celeus.core.pools.systems import PLACES
from celeus.core.randomness import commitment
from celeus.core.runs.run_file import FORMAT, PoolForm
from celeus.core.session.correction import Checkpoints, advance, catch_up
from celeus.core.session.handout import Handout, OpenDraw, hand_out
from celeus.core.session.outcome import Judgement, detail_of, event_of
from celeus.core.session.provisional import WaitingRounds
from celeus.core.session.question import AnyPlan
from celeus.core.session.rounds import PENDING
from celeus.core.session.session import AnySession, begin_session, plan_from_values
from celeus.errors import (
    BadRows,
    Invalid,
    InvalidValue,
    LedgerBroken,
    ObservationConflict,
    SessionClosed,
)
from celeus.runs.fair_lock import FairLock
from celeus.runs.ledger_file import JUDGED, Contents, LedgerFile, spelled

NO_LEASE = 0
NO_LABEL: Mapping[str, Any] = MappingProxyType(
    dict.fromkeys(("sequence", "last_detail", "last_at", "person", "comment"))
    | {"is_rating": False, "corrections": 0}
)
RESPITE = 0.1
"""Seconds until a worker asks again after finding all items taken by others."""


def upload_of(form: PoolForm, rows: Sequence[object]) -> Upload:
    """Return the pool of these rows; raises a refusal with the first bad line."""
    try:
        return pool_of_rows(rows, form.growth, form.score)
    except BadRows as bad:
        more: dict[str, Any] = bad.more
        raise BadRows(f"{bad}{faults(more['errors'])}", **more) from None


class Run:
    """A session in this process. Its methods may be called by several threads at once.

    ``taken_up`` counts the judgements that were in its file when it was opened; ``earlier_judge``
    is the fingerprint of the last function that judged, as far as one is known.
    """

    def __init__(
        self, file: LedgerFile, header: Mapping[str, Any], upload: Upload, plan: AnyPlan
    ) -> None:
        self.file = file
        self.session = bytes.fromhex(header["session"])
        self.upload = upload
        self.plan = plan
        self.lifecycle = "active"
        self.revision = 1
        self._seed = bytes.fromhex(header["seed"])
        self.form: Mapping[str, Any] = header["pool"]
        self._created_at: str = header["created_at"]
        self._state = begin_session(plan, upload.pool, self._seed)
        self._checkpoints = Checkpoints()
        self._records: list[bytes] = []
        self._new: list[bytes] = []
        self._last: str | None = None
        self._head = chain_start(self.session, bytes.fromhex(plan.digest))
        self._holders: dict[int, frozenset[str]] = {}
        self._late: dict[int, frozenset[str]] = {}
        self._passed: set[tuple[int, str]] = set()
        self._open_runs: dict[int, int] = {}
        self.judges: dict[str, str] = {}
        """The fingerprints of functions that judge now, by worker."""
        self.taken_up = 0
        self.earlier_judge: str | None = None
        self._provisional: tuple[int, dict[str, Any]] = 0, {}
        self._lock = FairLock()

    @classmethod
    def open(
        cls,
        path: Path,
        form: PoolForm,
        rows: Sequence[Mapping[str, Any]],
        request: SessionRequest,
    ) -> Self:
        """Return the session in the file, continued where it was, or a new one.

        Refuses a file whose session was opened with other items or asked for something else.
        """
        file = LedgerFile(path)
        try:
            contents = file.read()
            if contents is None:
                return cls._begin(file, form, rows, request)
            upload = upload_of(form, rows)
            opened_with = contents.header.get("pool"), contents.rows
            known = opened_with == (form.to_dict(), spelled(rows))
            run = cls._of(file, contents, upload if known else None)
            asked = plan_of(request, upload.pool, run.plan.commitment)
            for field, same in (
                ("items", upload.pool.digest == run.upload.pool.digest),
                ("precision", asked.digest == run.plan.digest),
            ):
                if not same:
                    differing = "items" if field == "items" else "settings"
                    raise InvalidValue(
                        f"{path} holds a session that was opened with other {differing}.",
                        field=field,
                        rule="those it was opened with, or another file",
                    )
        except BaseException:
            file.close()
            raise
        return run

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Return the session in the file, as it was left."""
        if not path.is_file():
            raise InvalidValue(
                f"there is no file {path}", field="file", rule="the file of a session"
            )
        file = LedgerFile(path)
        try:
            contents = file.read()
            if contents is None:
                message = f"{path} holds no session"
                raise InvalidValue(message, field="file", rule="the file of a session")
            return cls._of(file, contents)
        except BaseException:
            file.close()
            raise

    @classmethod
    def _begin(
        cls,
        file: LedgerFile,
        form: PoolForm,
        rows: Sequence[Mapping[str, Any]],
        request: SessionRequest,
    ) -> Self:
        """Return a new session; if it is refused, its file is removed."""
        seed = seeds.new_seed()
        try:
            upload = upload_of(form, rows)
            plan = plan_of(request, upload.pool, commitment(seed))
        except BaseException:
            file.path.unlink()
            raise
        header = {
            "created_at": now(),
            "format": FORMAT,
            "items": len(rows),
            "plan": plan.to_dict(),
            "pool": form.to_dict(),
            "seed": seed.hex(),
            "session": uuid.uuid4().hex,
        }
        run = cls(file, header, upload, plan)
        try:
            file.begin(header, rows)
        except BaseException:
            file.path.unlink()
            raise
        return run

    @classmethod
    def _of(cls, file: LedgerFile, contents: Contents, upload: Upload | None = None) -> Self:
        """Return the session in a file; ``upload`` is its pool if that exists already."""
        header = contents.header
        try:
            if upload is None:
                rows = file.parsed(contents.rows)
                upload = upload_of(PoolForm.from_dict(header["pool"]), rows)
            plan = plan_from_values(header["plan"])
            seed = bytes.fromhex(header["seed"])
            run = cls(file, header, upload, plan)
        except Mismatch as mismatch:
            raise _broken(
                file, f"{mismatch.where or 'its plan'} is not {mismatch.found}"
            ) from mismatch
        except (KeyError, TypeError, ValueError, Invalid) as error:
            raise _broken(file, f"its header or its items cannot be read ({error})") from error
        if plan.pool_digest != upload.pool.digest:
            raise _broken(file, "its items are not those of its plan")
        if plan.commitment != commitment(seed):
            raise _broken(file, "its seed is not that of its plan")
        transcript = Transcript(plan, upload.pool.scale)
        try:
            for record in contents.records:
                transcript.read(record)
        except Mismatch as mismatch:
            raise _broken(file, f"{mismatch.where}: {mismatch.claimed}") from mismatch
        run._replay(transcript, contents.lines)
        run._open_runs = dict(contents.runs)
        return run

    def _replay(self, transcript: Transcript, lines: Sequence[bytes]) -> None:
        catch_up(self._state, transcript.events, self._checkpoints)
        self._records = list(lines)
        self._head = chain_on(self._head, lines)
        self._last = transcript.records[-1]["at"] if transcript.records else None
        self.taken_up = self._state.observed
        judges = (record.get("detail", {}).get("judge") for record in transcript.records[::-1])
        self.earlier_judge = next((judge for judge in judges if judge is not None), None)
        self.lifecycle = transcript.state
        self.revision += transcript.amendments

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_file()

    def close_file(self) -> None:
        """Release the file for other processes; the session stays open for judgements."""
        self.file.close()

    @property
    def id(self) -> str:
        """Id of the session."""
        return f"ses_{self.session.hex()}"

    @property
    def last_at(self) -> str | None:
        """Time of the last event."""
        return self._last

    @property
    def state(self) -> AnySession:
        """State of the session after the last event."""
        return self._state

    @property
    def records(self) -> Sequence[bytes]:
        """Ledger of the session, each event as canonical JSON."""
        return self._records

    def status(self) -> dict[str, Any]:
        """Return the session's status, with the members of the service's status document.

        Where judgements wait for an open draw, it has the answer that counts it at its worst.
        """
        with self._lock:
            document = self._status()
            if not may_have_provisional(document):
                return document
            sequence, member = self._provisional
            if sequence == document["sequence"]:
                return document | member
            waiting = WaitingRounds.of(self._state)
        member = provisional_member(waiting, self.upload.pool)
        self._provisional = document["sequence"], member
        return document | member

    def claims(
        self, sort: Order = "plan", metric: str | None = None, column: str | None = None
    ) -> dict[str, Any]:
        """Return the claims of a table, with the members of the service's answer."""
        with self._lock:
            return claims_document(self._state, self.id, ClaimQuery(sort, metric, column))

    def labels(self) -> list[dict[str, Any]]:
        """Return every judgement as it stands, with the members of the service's labels."""
        with self._lock:
            pool = self.upload.pool
            common = LabelContext.of(self.plan, pool, self._state.folded)
            rows: dict[int, dict[str, Any]] = {}
            for record in map(json.loads, self._records):
                detail, row = record.get("detail", {}), rows.get(record.get("round"), {})
                if record["kind"] == "draw":
                    rows[record["round"]] = {
                        **NO_LABEL,
                        "id": self.upload.ids[record["item"]],
                        "item": record["item"],
                        "q": record["q"],
                        "round": record["round"],
                        "drawn_at": record["at"],
                        "left_system": detail.get("left"),
                    }
                elif record["kind"] in JUDGED:
                    losses = {name: record.get(name) for name in ("loss", "losses")}
                    first = {name: record[name] for name in ("sequence", "at")}
                    row |= losses | first | {"detail": detail}
                elif record["kind"] == "amendment":
                    row |= {"loss": record.get("loss"), "last_detail": detail}
                    row |= {"last_at": record["at"], "corrections": row["corrections"] + 1}
            judged = [row for row in rows.values() if row["sequence"] is not None]
            judged.sort(key=lambda row: int(row["sequence"]))
            return [label_row(common, row) for row in judged]

    def shows_answers(self, round_: int) -> bool:
        """Return whether the judge of a round sees answers without the systems' names."""
        if not 1 <= round_ <= self._state.drawn:
            return True
        draw = self._draw(round_)
        answers = [value for place in PLACES for value in (draw.get(place) or {}).values()]
        return not answers or any(value is not None for value in answers)

    def next(
        self, worker: str, count: int, runs: Mapping[int, int] = MappingProxyType({})
    ) -> dict[str, Any]:
        """Return up to ``count`` draws for a worker, as `celeus.core.session.handout` says.

        Draws held by a process that was killed have no worker. ``runs`` are those made of rounds
        that it holds, none of which settles its round: who goes on makes none of them again.
        """
        with self._lock:
            self._keep_runs(worker, runs)
            return self._writing(lambda: self._offer(worker, count))

    def _keep_runs(self, worker: str, runs: Mapping[int, int]) -> None:
        for round_, made in runs.items():
            check_open(getattr(self.plan, "success", None), made)
            held = worker in self._holders.get(round_, ())
            if held and made > self._open_runs.get(round_, 0):
                line = {"kind": "runs", "round": round_, "runs": made}
                self.file.append([canonical_json(line)])
                self._open_runs[round_] = made

    def observe(self, worker: str, judgements: Sequence[Judgement], count: int) -> dict[str, Any]:
        """Record all judgements or none, and return up to ``count`` next draws for the worker.

        The same judgement again changes nothing, nor does one of a round that another holder has
        judged first; another one of the same round is refused.
        """
        with self._lock:
            return self._writing(lambda: self._judge(worker, judgements, count))

    def release(
        self,
        workers: Collection[str] | None = None,
        rounds: Collection[int] | None = None,
        *,
        passed: bool = False,
    ) -> list[int]:
        """Leave what the workers hold to whoever asks next, and return its rounds.

        All workers, and all rounds, where none are given. What is ``passed`` on comes back to its
        holder when nothing else is left for them.
        """
        with self._lock:
            released = []
            for round_, holders in self._holders.items():
                leaving = holders if workers is None else holders.intersection(workers)
                if leaving and (rounds is None or round_ in rounds):
                    self._holders[round_] = holders - leaving
                    self._passed |= {(round_, worker) for worker in leaving if passed}
                    released.append(round_)
            return sorted(released)

    def amend(self, judgement: Judgement, author: str, reason: str) -> dict[str, Any]:
        """Correct the judgement of a round, and return the status afterwards."""
        with self._lock:
            return self._writing(lambda: self._amend(judgement, author, reason))

    def close(self) -> dict[str, Any]:
        """Close the session for good; its certificate then discloses the seed for verification."""
        with self._lock:
            return self._writing(self._close)

    def certificate(self, key: Ed25519PrivateKey) -> bytes:
        """Return the session's current certificate, signed with ``key``."""
        with self._lock:
            account = SessionFacts(
                session=self.session,
                header=self.upload.pool.header(),
                position=position_of(self._state),
                records=list(self._records),
                seed=self._seed if self.lifecycle == "closed" else None,
                issued_at=self._last or self._created_at,
                supersedes=None,
                pool_sessions=None,
            )
            return certificate(account, key)

    def _writing(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Run ``work`` and return its result once the events it appended are on the disk."""
        try:
            answer = work()
        except BaseException:
            if self._new:
                # The state is ahead of the file, which is authoritative
                self.file.append(self._new)
                self._new = []
            raise
        if self._new:
            self.file.append(self._new)
            self._new = []
        return answer

    def _append(self, event: Event, detail: Mapping[str, Any]) -> None:
        advance(self._state, event, self._checkpoints)
        self.revision += isinstance(event, Amendment)
        # A clock may be set back
        self._last = max(now(), self._last or self._created_at)
        record = canonical_json(record_of(self._state.sequence, event, detail, self._last))
        self._head = chain_on(self._head, [record])
        self._records.append(record)
        self._new.append(record)

    def _status(self) -> dict[str, Any]:
        header = Header(
            session=self.id,
            pool=f"pool_{self.session.hex()}",
            lifecycle=self.lifecycle,
            revision=self.revision,
            lease_seconds=NO_LEASE,
            created_at=self._created_at,
            ledger_head=self._head.hex(),
        )
        return status_document(header, self._state, self.upload.pool)

    def _offer(self, worker: str, count: int) -> dict[str, Any]:
        word = session_state(self.lifecycle, self._state.stop_reason)
        draws: list[dict[str, Any]] = []
        if word == "active" or (not count and word != "closed"):
            handout = self._hand_out(worker, count)
            draws = [self._draw(round_) for round_ in handout.rounds]
            if not draws and word == "active":
                word = "all_leased" if handout.wait is None else "waiting"
        waits = RESPITE if word in {"all_leased", "waiting"} else None
        return {"state": word, "draws": draws, "retry_after": waits}

    def _hand_out(self, worker: str, count: int) -> Handout:
        """Return the rounds that a worker holds from now on, new ones drawn and included."""
        state = self._state
        nobody: frozenset[str] = frozenset()
        draws = [
            OpenDraw(
                round_,
                self._holders.get(round_, nobody),
                passed=(round_, worker) in self._passed,
            )
            for round_ in range(state.rounds.ready + 1, state.drawn + 1)
            if state.answer(round_) is PENDING
        ]
        handout = hand_out(
            draws,
            worker,
            count,
            judged=state.observed,
            room=count if state.can_draw else 0,
            front_first=not state.fixes_raters,
        )
        rounds = list(handout.rounds)
        while len(rounds) < len(handout.rounds) + handout.new and state.can_draw:
            draw = state.propose()
            placed = state.question.arrangement(draw.round, draw.item)
            self._append(draw, {"worker": worker} | placed)
            rounds.append(draw.round)
        for round_ in rounds:
            self._holders[round_] = self._holders.get(round_, nobody) | {worker}
        return replace(handout, rounds=tuple(rounds))

    def _draw(self, round_: int) -> dict[str, Any]:
        index = self._state.item(round_)
        payload = self.upload.payloads[index]
        item = Item(
            index=index,
            id=self.upload.ids[index],
            payload=None if payload is None else payload.decode(),
        )
        parts = self._state.presented(self.upload.pool, item, round_)
        seen: Item = parts.pop("item")
        made = self._open_runs.get(round_)
        return {"round": round_, "item": seen, **parts} | ({"runs": made} if made else {})

    def _judge(self, worker: str, judgements: Sequence[Judgement], count: int) -> dict[str, Any]:
        losses = [self._state.outcome(self.upload.pool, judgement) for judgement in judgements]
        fresh: dict[int, int] = {}
        for place, (judgement, loss) in enumerate(zip(judgements, losses, strict=True)):
            round_ = judgement.round
            if worker in self._late.get(round_, ()):
                continue
            answer, runs = self._state.answer(round_), self._state.runs_made.get(round_)
            if round_ in fresh:
                answer, runs = losses[fresh[round_]], judgements[fresh[round_]].runs
            if answer is PENDING:
                self._must_be_open()
                made = self._open_runs.get(round_, 0)
                if judgement.runs is not None and judgement.runs <= made:
                    raise ObservationConflict(
                        f"round {round_} has {made} runs already, none of which settles it",
                        field="runs",
                        rule="a judgement with a later run",
                        value=judgement.runs,
                    )
                fresh[round_] = place
            elif loss != answer or judgement.runs != runs:
                raise ObservationConflict(
                    f"round {round_} already has another judgement; correct it with an amendment",
                    field="round",
                    rule="one judgement per round",
                    value=round_,
                )
        for place in fresh.values():
            judgement = judgements[place]
            detail = detail_of(judgement) | {"worker": worker}
            if worker in self.judges:
                detail["judge"] = self.judges[worker]
            self._append(event_of(judgement, losses[place]), detail)
            others = self._holders.pop(judgement.round, frozenset()) - {worker}
            if others:
                self._late[judgement.round] = others
        receipts = [
            {"round": judgement.round, "duplicate": worker in self._late.get(judgement.round, ())}
            for judgement in judgements
        ]
        offer = self._offer(worker, count) if count else self._standing()
        return {"session": self._status(), "receipts": receipts} | offer

    def _standing(self) -> dict[str, Any]:
        word = session_state(self.lifecycle, self._state.stop_reason)
        return {"state": word, "draws": [], "retry_after": None}

    def _amend(self, judgement: Judgement, author: str, reason: str) -> dict[str, Any]:
        self._must_be_open()
        if not self._state.question.correctable:
            raise InvalidValue(
                "A judgement can be corrected where the session has one interval.",
                field="round",
                rule="a session that measures one risk",
                value=judgement.round,
            )
        loss = self._state.corrected(self.upload.pool, judgement)
        if self._state.answer(judgement.round) is PENDING:
            raise InvalidValue(
                f"round {judgement.round} is not judged yet", field="round", rule="a judged round"
            )
        if isinstance(loss, tuple):
            message = "one risk has one loss a round"
            raise TypeError(message)
        detail = detail_of(judgement) | {"author": author, "reason": reason}
        self._append(Amendment(judgement.round, loss), detail)
        return {"session": self._status()} | self._standing()

    def _close(self) -> dict[str, Any]:
        if self.lifecycle != "closed":
            rule = self._state.stopping
            detail = {"precision": rule.precision, "budget": rule.budget, "state": "closed"}
            asks = getattr(self.plan, "asks", False)
            stop = rule.stop_when_decided if asks else None
            if asks:
                detail["stop_when_decided"] = stop
            self._append(Change(rule.precision, rule.budget, stop), detail)
            self.lifecycle = "closed"
        return self._status()

    def _must_be_open(self) -> None:
        if self.lifecycle == "closed":
            raise SessionClosed(
                "the session is closed for good", field="session", rule="an open session"
            )


def now() -> str:
    """Return the current time in the format of ledger and certificate."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _broken(file: LedgerFile, why: str) -> LedgerBroken:
    return LedgerBroken(
        f"{file.path} was changed: {why}.",
        field="file",
        rule="a file as it was written",
        value=str(file.path),
    )
