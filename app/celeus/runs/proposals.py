"""A gate for hill climbing: however many candidates are proposed, hardly ever a worse one passes.

Every candidate is tested against the incumbent by a session of its own, on draws that depend on a
new seed. The levels of the tests, and the file that keeps what was spent of alpha, make the promise
(docs/evidence/method.md#19-the-account-of-alpha):

    the probability that ever a candidate is accepted whose mean loss on the pool is not lower than
    that of the incumbent it replaces is at most alpha, however many are proposed
"""

import copy
import hashlib
import json
import math
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MethodType
from typing import Any, Self

import numpy as np

from celeus import seeds
from celeus.client.fingerprint import LOG, Fingerprint, check_judge, fingerprint
from celeus.client.label_loop import JudgedScore, finite, unboxed
from celeus.core.canonical import canonical_json
from celeus.core.interval import Interval
from celeus.core.multiplicity.selection import alpha_left, proposed_level
from celeus.core.plans.plan import check_alpha
from celeus.core.pools.rows.fields import FIELDS
from celeus.core.pools.score import Better
from celeus.core.pools.systems import Systems
from celeus.core.session.improvement import ImprovementTest
from celeus.errors import InvalidValue, LedgerBroken, Refusal
from celeus.runs.certify import Amount, score_of, session_folder
from celeus.runs.items import Row, bounded, item_rows, scale_of
from celeus.runs.ledger_file import AppendedFile
from celeus.shorten import shortened
from celeus.units import SHARES, check_asked_alpha, check_margin, number_on

FORMAT = "celeus-proposals-1"
_HEADER = re.compile(rb'\{"alpha":[-+.e\d]+,"format":"%b","incumbent":' % FORMAT.encode())
_PROPOSED = b'"kind":"proposed"'
ANEW = "another file: an account of its own"
UNUSED = FIELDS - {"id", "payload", "group", "weight"}
"""Members of an item that are about one output, where a gate has many."""
SHOWN_STEPS = 1000
"""Steps of the scale to which the figures of an answer are rounded."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item as a candidate and the judge see it."""

    id: str
    payload: Any


Judge = Callable[[Item, Any], object]
"""Function from an item and an output to the loss of the output, or its score if one is named."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The answer to a proposal.

    ``lower`` and ``upper`` hold the improvement, the incumbent's mean loss less the candidate's,
    with probability 1 - ``level``; they are rounded outwards. ``judged`` items were drawn.
    """

    number: int
    accepted: bool
    lower: float
    upper: float
    judged: int
    level: float

    def __str__(self) -> str:
        answer = "accepted" if self.accepted else "rejected"
        return (
            f"proposal {self.number} {answer}: better by {self.lower:g} to {self.upper:g},"
            f" {self.judged} items judged"
        )


@dataclass(frozen=True, slots=True)
class Budget:
    """The account after some proposals: of ``alpha`` there is ``left`` for all further ones.

    ``level`` is that of the next test. An accepted proposal costs nothing.
    """

    alpha: float
    left: float
    level: float
    proposals: int
    accepted: int
    judged: int


class Proposals:
    """A gate that accepts a candidate where it is better than the incumbent, which it then becomes.

    ``items`` are read as by `celeus.certify`; of each the id and the payload count, which may be
    any value. Guesses and known losses, which are those of one output, are refused. A candidate is
    a function from an item to its output, outputs by id, or any other value, such as a prompt, that
    ``judge`` is given as the output of every item; objects are copied. ``judge`` is given an item
    and an output and returns the loss, or what ``score`` names. ``margin`` is the least improvement
    worth finding: a candidate is rejected once an interval at level 0.1 says that it is not better
    by more; one that is, is lost so with probability at most 0.1. ``normalisation``: where the text
    of an output decides its loss, equal ones make no difference and need no judge, as in
    `celeus.compare`. ``budget`` is the most items to judge for one proposal.

    The very texts of the incumbent are rejected, and nothing is spent.

    The promise is about the items, and about the first answer of candidate and judge on each, where
    these answer by chance: who proposes the same again then has new answers, some of them better.

    What was spent of alpha is kept in ``file``, by default one for these items in the folder
    `.celeus`: called again with the same arguments, and the incumbent as it then was, the account
    goes on. A proposal that was not brought to its end counts as rejected.
    """

    def __init__(  # noqa: PLR0913 -- what a gate is opened with, each by its name
        self,
        items: object,
        judge: Judge,
        *,
        incumbent: object,
        margin: Amount,
        loss: str | tuple[float, float] = "zero_one",
        score: tuple[str, Better] | None = None,
        normalisation: str | None = None,
        alpha: Amount = 0.05,
        budget: int | None = None,
        file: str | os.PathLike[str] | None = None,
    ) -> None:
        self._scale = scale_of(loss)
        ends = self._scale.lower, self._scale.upper
        kind = (loss, None, None) if isinstance(loss, str) else bounded(loss)
        self._systems = Systems.of(("candidate", "incumbent"), kind, normalisation)
        named = score_of(score, self._scale, None)
        self._scored = named is not None
        higher = named is not None and named.better == "higher"
        name, whole = "loss" if named is None else named.name, self._scale.kind == "zero_one"
        self._score = JudgedScore(name, higher, whole, *ends)
        self.alpha, self.margin = _number(alpha, "alpha"), _number(margin, "margin", ends)
        check_alpha(self.alpha)
        check_asked_alpha(self.alpha)
        check_margin(self.margin, (-self._scale.width, self._scale.width), "margin")
        self._most = _most(budget)
        self._judge = judge
        self._items = _items_of(item_rows(items, self._scale))
        self._incumbent = _Outputs(incumbent, self._items, "incumbent")
        self._losses: dict[str, float] = {}
        self._lock = threading.Lock()
        settings = {"alpha": self.alpha, "margin": self.margin, "loss": self._scale.to_dict()}
        settings["score"] = None if named is None else [named.name, named.better]
        given = self._incumbent.candidate
        # A judge that is more than its code says itself what it is known by
        known = getattr(judge, "fingerprint", None)
        by = known if isinstance(known, Fingerprint) else fingerprint(judge)
        self._account = _Account.open(file, self._items, settings, given, by)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file of the account for other processes."""
        self._account.file.close()

    @property
    def incumbent(self) -> object:
        """The candidate that was accepted last, or the first incumbent."""
        return _copied(self._incumbent.candidate, "incumbent")

    def budget(self) -> Budget:
        """Return what is left of alpha, and what the proposals so far have cost."""
        account = self._account
        return Budget(
            self.alpha,
            alpha_left(self.alpha, account.failed),
            proposed_level(self.alpha, account.failed),
            account.proposals,
            account.accepted,
            account.judged,
        )

    def propose(self, candidate: object) -> Proposal:
        """Test a candidate; accepted, it is the incumbent from now on.

        What ``candidate`` or ``judge`` raises comes through, and the proposal counts as rejected.
        """
        # A fork made during a proposal inherits a lock that nobody there releases
        self._account.file.check_process()
        with self._lock:
            outputs = _Outputs(candidate, self._items, "candidate")
            if outputs.is_function_of(self._incumbent):
                rule = "another function or object than the incumbent"
                message = f"the candidate must be {rule}, also where what it reads has changed"
                raise InvalidValue(message, field="candidate", rule=rule)
            same = np.array([self._same(outputs, item) for item in self._items])
            equal = bool(same.all()) or self._equal(outputs)
            level = 0.0 if equal else proposed_level(self.alpha, self._account.failed)
            number = self._account.begin(level, outputs.candidate)
            if equal:
                self._account.end(accepted=False, judged=0)
                return Proposal(number, accepted=False, lower=0.0, upper=0.0, judged=0, level=0.0)
            # Drawn after the candidate and its level are fixed
            seed = seeds.new_seed()
            test = ImprovementTest.begin(self._scale, same, level, self.margin, seed)
            losses: dict[str, float] = {}
            try:
                self._run(test, outputs, losses)
            except BaseException:
                # What it raised is what counts
                with suppress(Refusal):
                    self._account.end(accepted=False, judged=len(losses))
                raise
            accepted = test.outcome == "better"
            self._account.end(accepted=accepted, judged=len(losses))
            if accepted:
                self._incumbent, self._losses = outputs, losses
            improvement = self._shown(test.session.question.interval)
            return Proposal(number, accepted, *improvement, len(losses), level)

    def _run(self, test: ImprovementTest, outputs: "_Outputs", losses: dict[str, float]) -> None:
        """Judge items until the test ends; fills ``losses``, of the candidate, by id."""
        while test.outcome == "undecided" and len(losses) < self._most:
            draw = test.draw()
            item = self._items[draw.item]
            losses[item.id] = self._loss(item, outputs)
            if item.id not in self._losses:
                self._losses[item.id] = self._loss(item, self._incumbent)
            test.judge(draw, losses[item.id] - self._losses[item.id])

    def _equal(self, outputs: "_Outputs") -> bool:
        """Return whether the candidate has the very texts of the incumbent."""
        pairs = ((outputs.known(item), self._incumbent.known(item)) for item in self._items)
        return all(isinstance(text, str) and text == incumbent for text, incumbent in pairs)

    def _same(self, outputs: "_Outputs", item: Item) -> bool:
        """Return whether the incumbent is known to give the same output, with nothing run."""
        first, second = outputs.known(item), self._incumbent.known(item)
        if not isinstance(first, str) or not isinstance(second, str):
            return False
        return self._systems.same(first, second)

    def _loss(self, item: Item, outputs: "_Outputs") -> float:
        # What one of them changes in an item or output, no other call is given
        output = outputs.of(copy.deepcopy(item))
        value = self._judge(copy.deepcopy(item), output)
        if not self._scored and isinstance(unboxed(value), bool):
            rule = 'a number, or name what is returned, as score=("accuracy", "higher")'
            message = f"the loss of {item.id!r} is {value}: is it right or wrong? Return {rule}"
            raise InvalidValue(message, field="judge", rule=rule, value=bool(value))
        return self._score.loss(value, item.id)

    def _shown(self, difference: Interval) -> tuple[float, float]:
        """Return the improvement, rounded outwards."""
        width = self._scale.width
        least = math.floor(-difference.upper / width * SHOWN_STEPS)
        most = math.ceil(-difference.lower / width * SHOWN_STEPS)
        return least * width / SHOWN_STEPS, most * width / SHOWN_STEPS


class _Outputs:
    """The outputs of a candidate: given by id, made by a function, or the same for every item."""

    def __init__(self, candidate: object, items: Sequence[Item], field: str) -> None:
        self.candidate = _copied(candidate, field)
        self._by_id = self.candidate if isinstance(self.candidate, dict) else None
        if self._by_id is not None:
            missing = next((item.id for item in items if item.id not in self._by_id), None)
            if missing is not None:
                rule = "outputs of all items by id, a function of an item, or a text"
                message = f"the {field} has no output for {missing!r}: expected {rule}"
                raise InvalidValue(message, field=field, rule=rule, value=missing)

    def is_function_of(self, other: "_Outputs") -> bool:
        """Return whether both are one function or object, of which there is no copy."""
        first, second = self.candidate, other.candidate
        if isinstance(first, MethodType):
            return first == second
        return callable(first) and first is second

    def known(self, item: Item) -> object:
        """Return the output if equal has to be run for it, else None."""
        if callable(self.candidate):
            return None
        return self.candidate if self._by_id is None else self._by_id[item.id]

    def of(self, item: Item) -> object:
        """Return the output of an item, which is the caller's own."""
        if callable(self.candidate):
            return self.candidate(item)
        return copy.deepcopy(self.known(item))


def _copied(candidate: object, field: str) -> object:
    """Return a copy of a candidate: what the caller changes later is another candidate.

    Functions, and callable objects that cannot be copied, are returned as they are.
    """
    try:
        if isinstance(candidate, Mapping) and not callable(candidate):
            return copy.deepcopy(dict(candidate))
        return copy.deepcopy(candidate)
    except Exception as error:  # also PicklingError, whose module nothing here may import
        if callable(candidate):
            return candidate
        rule = "a text, outputs by id, a function of an item, or another value that can be copied"
        message = f"the {field} must be {rule}: {error}"
        raise InvalidValue(message, field=field, rule=rule) from error


class _Account:
    """The file of a gate: a header, and two lines a proposal.

    The first one is on the disk before a loss is seen, so that no level comes back. A file whose
    levels are not those of its answers is refused; that the last lines were cut off or changed is
    not found.
    """

    def __init__(self, file: AppendedFile, alpha: float) -> None:
        self.file = file
        self._alpha = alpha
        self._level: float | None = None
        """The level of a proposal that has no answer yet."""
        self.proposals = self.accepted = self.failed = self.judged = 0
        self._incumbent = self._candidate = ""

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None,
        items: Sequence[Item],
        settings: Mapping[str, Any],
        incumbent: object,
        judge: Fingerprint,
    ) -> Self:
        """Return the account in a file, or a new one; refuses another one's settings."""
        # In another order they are the same items, and no reason for a new alpha
        rows = [[item.id, item.payload] for item in sorted(items, key=lambda item: item.id)]
        digest = hashlib.sha256(canonical_json(rows))
        settings = {**settings, "format": FORMAT, "items": digest.hexdigest()}
        account = cls(AppendedFile(_path(path, digest.hexdigest())), settings["alpha"])
        try:
            account._read(settings, incumbent, judge)
        except BaseException:
            account.file.close()
            raise
        return account

    def begin(self, level: float, candidate: object) -> int:
        """Write down a proposal and the level that it spends; return its number."""
        self._enter({"kind": "proposed", "level": level, "candidate": str(fingerprint(candidate))})
        return self.proposals

    def end(self, *, accepted: bool, judged: int) -> None:
        """Write down the answer to the last proposal."""
        self._enter({"kind": "answered", "accepted": accepted, "judged": judged})

    def _enter(self, record: dict[str, Any]) -> None:
        self.file.append([canonical_json(record)])
        self._take(record)

    def _take(self, record: Mapping[str, Any]) -> None:
        if record["kind"] == "proposed":
            self.proposals += 1
            # Until it is accepted
            self.failed += record["level"] > 0.0
            self._candidate, self._level = record["candidate"], record["level"]
            return
        self._level = None
        self.judged += record["judged"]
        if record["accepted"]:
            self.accepted += 1
            self.failed -= 1
            self._incumbent = self._candidate

    def _read(self, settings: Mapping[str, Any], incumbent: object, judge: Fingerprint) -> None:
        """Take in the file, and check that the gate is the same; a new file gets a header."""
        whole, data = self.file.whole_lines()
        if not whole:
            known = {"incumbent": str(fingerprint(incumbent)), "judge": str(judge)}
            line = canonical_json({**settings, **known})
            # Cut off while it was written, it may be another gate's: nothing was spent yet
            begun = _HEADER.match(data) and _PROPOSED not in data
            if not begun and not line.startswith(data):
                raise self._foreign()
            self.file.cut(0)
            self.file.append([line])
            LOG.warning("celeus: a new account of alpha begins in %s", self.file.path.resolve())
            return
        try:
            header, *records = map(json.loads, whole.splitlines())
        except (RecursionError, ValueError) as error:
            raise self._foreign() from error
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise self._foreign()
        for field, value in settings.items():
            if header.get(field) != value:
                raise InvalidValue(
                    f"{self.file.path} keeps the proposals to a gate with other {field}.",
                    field=field,
                    rule=f"{shortened(header.get(field))}, or {ANEW}",
                    value=value,
                )
        self._incumbent = str(header.get("incumbent"))
        for record in records:
            if not self._follows(record):
                raise self._foreign()
            self._take(record)
        if fingerprint(incumbent).against(self._incumbent).verdict == "changed":
            last = "the candidate accepted last" if self.accepted else "that of the beginning"
            raise InvalidValue(
                f"The incumbent is not the one that {self.file.path} has.",
                field="incumbent",
                rule=f"{last}, to go on where the gate was",
            )
        check_judge(judge, header.get("judge"), keep=False, ways=ANEW)
        self.file.cut(len(whole))

    def _follows(self, record: object) -> bool:
        """Return whether a record may be the next one."""
        match record:
            case {"kind": "proposed", "level": int() | float() as level, "candidate": str()}:
                return level in (0.0, proposed_level(self._alpha, self.failed))
            case {"kind": "answered", "accepted": bool() as accepted, "judged": int() as judged}:
                if self._level is None or isinstance(judged, bool):
                    return False
                return judged == 0 and not accepted if self._level == 0.0 else judged >= 0
        return False

    def _foreign(self) -> LedgerBroken:
        path = self.file.path
        return LedgerBroken(
            f"{path} is no file of proposals, or was changed; nothing was written to it.",
            field="file",
            rule="a new file, or one as it was written",
            value=str(path),
        )


def _items_of(rows: Sequence[Row]) -> list[Item]:
    if not rows:
        raise InvalidValue("there are no items", field="items", rule="at least one item")
    items: list[Item] = []
    for number, row in enumerate(rows, start=1):
        if "id" not in row or "weight" in row:
            rule = "items with an id each, which all count the same"
            raise InvalidValue(f"item {number} has no id, or a weight", field="items", rule=rule)
        if unused := sorted(row.keys() & UNUSED):
            rule = (
                "items without that column: a file that lacks it or, of a table, where the log"
                " names it, celeus.read_items(…, mapping=…) with a mapping that leaves it out"
            )
            message = (
                f"item {number} has {unused[0]}, which a gate does not use, as it is about one"
                f" output: expected {rule}"
            )
            raise InvalidValue(message, field="items", rule=rule)
        items.append(Item(str(row["id"]), row.get("payload")))
    if len({item.id for item in items}) < len(items):
        raise InvalidValue("an id is there twice", field="items", rule="every id once")
    return items


def _path(path: str | os.PathLike[str] | None, digest: str) -> Path:
    if path is not None:
        return Path(path)
    return session_folder() / f"{digest[:16]}.proposals.jsonl"


def _number(value: object, name: str, scale: tuple[float, float] = SHARES[0]) -> float:
    return number_on(scale, value, name) if isinstance(value, str) else finite(value, name, name)


def _most(budget: int | None) -> float:
    if budget is None:
        return math.inf
    number = finite(budget, "budget", "budget")
    if isinstance(unboxed(budget), bool) or not (number.is_integer() and number >= 1.0):
        rule = "a whole number of at least 1, or left out"
        raise InvalidValue(f"budget must be {rule}", field="budget", rule=rule, value=budget)
    return number
