"""lm-eval driven by a session: what is drawn is run, kept in a file, and then sent.

An item is a document by the name a log's reader gives it. Its payload holds the hashes of document,
prompt and target, so that the pool's digest says what was asked, and a session on items that ask
something else is refused. Of two models an item's answers are the names of these, which is all that
is known of them before they are run.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lm_eval.utils import sanitize_model_name

from celeus.client.blocking import Session
from celeus.client.label_loop import JudgeResult, Turn
from celeus.client.results import Status
from celeus.harnesses.lm_eval_documents import HASHES, Documents
from celeus.intake.formats.lm_eval import DRAWN_BY
from celeus.intake.joining import JoinedItems
from celeus.intake.rows import refused
from celeus.judges.verdicts import Verdicts, key_of
from celeus.runs.certify import certify, compare

UNEQUAL = (
    "The documents of these samples were drawn, and not equally likely: their plain mean is no"
    " estimate of the whole task."
)
LOSS = (0.0, 1.0)
"""The ends of every loss, whatever those of the score."""
SIDES = ("a", "b")


@dataclass(frozen=True, slots=True)
class Goal:
    """The question of a session, and when it stops; a margin needs two models.

    With ``target`` `runs` documents are run by chance, with ``repeats`` any number of times.
    """

    precision: float | None
    margin: float | None
    alpha: float
    budget: int | None
    target: str = "pool"
    repeats: bool = False
    success: str | None = None


@dataclass(frozen=True, slots=True)
class Test:
    """The documents for one model, or for two that are compared, with the guesses of others."""

    models: tuple[Documents, ...]
    guesses: Mapping[str, float | None]

    @classmethod
    def of(cls, models: Sequence[Documents], joined: JoinedItems | None) -> "Test":
        """Return the test, with guesses from logs of other models; refuses equal models."""
        first, *others = (model.settings for model in models)
        if first in others:
            raise refused(f"{first.name} is compared with itself: name two models", "compare")
        items = [] if joined is None else joined.items
        return cls(tuple(models), {item.name: item.guess for item in items})

    @property
    def first(self) -> Documents:
        """The documents for the first model; those for the other are the same."""
        return self.models[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The models, with all their arguments where the shorter names are the same."""
        settings = [model.settings for model in self.models]
        short = tuple(setting.name for setting in settings)
        if len({*short}) == len(short):
            return short
        return tuple(f"{setting.model}({setting.model_args})" for setting in settings)

    @property
    def two(self) -> bool:
        """True if two models are compared."""
        return len(self.models) > 1

    def rows(self) -> list[dict[str, Any]]:
        """The pool as it is uploaded."""
        rows = []
        for row in self.first.rows:
            entry: dict[str, Any] = {"id": row.id, "payload": self.hashes(row.id)}
            guess = self.guesses.get(row.id)
            guessed = {} if guess is None else {"surrogate": guess}
            if self.two:
                sides = zip(SIDES, self.names, strict=True)
                entry |= {side: {"answer": name} | guessed for side, name in sides}
            else:
                entry |= guessed | ({} if row.group is None else {"group": row.group})
            rows.append(entry)
        return rows

    def hashes(self, item: str) -> dict[str, str]:
        """Return the hashes of a document that all models share."""
        first, *others = (model.hashes(item) for model in self.models)
        return {
            name: value
            for name, value in first.items()
            if all(hashes[name] == value for hashes in others)
        }

    def digest(self, of: object) -> str:
        """A name for what is asked ``of`` a session, and all that its losses depend on."""
        settings = [asdict(model.settings) for model in self.models]
        return key_of(settings, asdict(self.first.options), self.rows(), of)[:16]

    def open(self, goal: Goal, file: Path) -> Session:
        """A session in this process, which goes on where the file has it."""
        rows, first = self.rows(), self.first
        if self.two:
            a, b = (
                [{"id": row["id"], "payload": row["payload"], **row[side]} for row in rows]
                for side in SIDES
            )
            return compare(
                a,
                b,
                None,
                margin=goal.margin,
                precision=goal.precision,
                loss=LOSS,
                names=(self.names[0], self.names[1]),
                alpha=goal.alpha,
                budget=goal.budget or "all",
                file=file,
            )
        return certify(
            rows,
            None,
            precision=goal.precision,
            # A run of several succeeds or fails, and nothing between
            loss=LOSS if goal.success is None else "zero_one",
            target=goal.target,
            repeats=goal.repeats,
            success=goal.success,
            score=(first.metric, "higher" if first.higher else "lower")
            if first.options.scale == LOSS
            else None,
            alpha=goal.alpha,
            budget=goal.budget or (None if goal.repeats else "all"),
            file=file,
        )

    def check(self, status: Status) -> None:
        """Refuse a session whose losses are of another kind."""
        if (status.systems is not None) != self.two:
            way = "leave out --compare" if self.two else "name the second model with --compare"
            held = "one system" if self.two else "two systems"
            raise refused(f"{status.id} is a session of {held}: {way}", "session")
        ends = (-1.0, 1.0) if self.two else LOSS
        scale = status.scale
        if scale is not None and not all(
            math.isclose(bound, end)
            for bound, end in zip((scale.lower, scale.upper), ends, strict=True)
        ):
            way = "its pool is to take losses from 0 to 1, as a bounded loss"
            raise refused(f"{status.id} has losses from {scale.lower:g} to {scale.upper:g}: {way}")

    def score(self, status: Status) -> tuple[float, float, float]:
        """Estimate, lower and upper end on the metric's scale; of two the lead of the second."""
        if status.estimate is None or status.lower is None or status.upper is None:
            raise refused(f"{status.id} has no interval: nothing is judged", "session")
        low, high = self.first.options.scale
        higher = self.first.higher
        # Of two models the loss is the first's less the second's
        factor = (high - low) * (1 if self.two == higher else -1)
        start = 0.0 if self.two else high if higher else low
        ends = [start + factor * bound for bound in (status.lower, status.upper)]
        return start + factor * status.estimate, min(ends), max(ends)


@dataclass(frozen=True, slots=True)
class Work:
    """A test under way; no run is made twice, whoever is killed between."""

    test: Test
    kept: Verdicts

    def judge(self, session: Session, hold: int, worker: str) -> JudgeResult:
        """Run what the session draws, ``hold`` documents at once, until it asks for no more."""

        def judge_turns(turns: Sequence[Turn]) -> list[None]:
            for turn in turns:
                self._check(turn)
            losses = zip(*(self._losses(name, turns) for name in self.models), strict=True)
            for turn, of in zip(turns, losses, strict=True):
                self._record(turn, of)
            return [None] * len(turns)

        return session.judge_many(judge_turns, size=hold, worker=worker)

    @property
    def models(self) -> dict[str, Documents]:
        """The models by name."""
        return dict(zip(self.test.names, self.test.models, strict=True))

    def _losses(self, name: str, turns: Sequence[Turn]) -> list[float | None]:
        model = self.models[name]
        new = [turn for turn in turns if self.kept.get(_key(name, turn)) is None]
        while new:
            # A document that is drawn twice is run twice, one run after the other
            batch = {turn.id: turn for turn in reversed(new)}
            ran = model.run([*batch])
            # All before any is kept: a score that is none is refused here
            for item, lines in ran.items():
                model.loss(item, lines)
            for item, lines in ran.items():
                kept = {"lines": lines, "of": [name, item]}
                self.kept.keep(_key(name, batch[item]), kept)
            new = [turn for turn in new if turn is not batch[turn.id]]
        return [model.loss(turn.id, self.kept[_key(name, turn)]["lines"]) for turn in turns]

    def _record(self, turn: Turn, losses: tuple[float | None, ...]) -> None:
        """Record the losses of an item, or that there are none."""
        if None in losses:
            turn.unjudgeable(f"lm-eval has no finite {self.test.first.metric} of it")
        elif turn.left is None or turn.right is None:
            turn.observe(losses[0])
        else:
            of = dict(zip(self.test.names, losses, strict=True))
            turn.observe({"left": of[str(turn.left.answer)], "right": of[str(turn.right.answer)]})

    def _check(self, turn: Turn) -> None:
        """Refuse an item that is none of the documents."""
        if not self.test.first.has(turn.id):
            raise refused(f"the session draws {turn.id!r}, which is no document here", "session")
        shown = {None if answer is None else answer.answer for answer in (turn.left, turn.right)}
        if shown != ({*self.test.names} if self.test.two else {None}):
            way = "open it on the pool that --write-pool writes with the same options"
            what = " and ".join(self.test.names)
            raise refused(f"the session is not one of {what}: {way}", "session")
        expected = self.test.hashes(turn.id)
        given = turn.payload if isinstance(turn.payload, dict) else {}
        for member in HASHES:
            if member in given and given[member] != expected.get(member):
                what = {"doc_hash": "document"}.get(member, member.removesuffix("_hash"))
                why = f"its {what} is another one in the pool: take the same settings and versions"
                raise refused(f"item {turn.id} is not the same here: {why}", "session")

    def files(self, status: Status, folder: Path) -> dict[Path, bytes]:
        """Samples and results of each model, as lm-eval names and writes them."""
        created = datetime.fromisoformat(status.created_at)
        date = created.replace(tzinfo=None).isoformat(timespec="microseconds").replace(":", "-")
        files: dict[Path, bytes] = {}
        for name, model in self.models.items():
            place = folder / sanitize_model_name(name)
            totals = Counter(model.task_of(row.id) for row in model.rows)
            samples: dict[str, list[dict[str, Any]]] = {}
            kept = self._lines(name)
            for row in model.rows:
                if lines := kept.get(row.id):
                    samples.setdefault(model.task_of(row.id), []).extend(lines)
            for task, lines in samples.items():
                drawn = [line | {DRAWN_BY: status.id} for line in lines]
                text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in drawn)
                files[place / f"samples_{task}_{date}.jsonl"] = text.encode()
            run = {task: len({line["doc_id"] for line in lines}) for task, lines in samples.items()}
            counts = {
                task: {"original": all_, "effective": run.get(task, 0)}
                for task, all_ in totals.items()
            }
            results = {
                **self._found(status),
                **model.results,
                "n-samples": counts,
                "date": created.timestamp(),
            }
            text = json.dumps(results, indent=2, default=str)
            files[place / f"results_{date}.json"] = text.encode()
        return files

    def _lines(self, name: str) -> dict[str, list[dict[str, Any]]]:
        """Return the log's lines of a model by document, of all runs of it."""
        found: dict[str, list[dict[str, Any]]] = {}
        for kept in self.kept:
            if kept.get("of", ())[:1] == [name]:
                found.setdefault(kept["of"][1], []).extend(kept["lines"])
        return found

    def _found(self, status: Status) -> dict[str, Any]:
        """Return the estimate and its ends as a tool's score, with its name."""
        first, metric = self.test.first, self.test.first.metric
        what: dict[str, Any] = {}
        if self.test.two:
            metric += "_difference"
            what = {"difference": f"{self.test.names[1]} less {self.test.names[0]}"}
        if status.success is not None:
            metric += f"_{status.success.replace(' ', '_')}"
        tasks = ",".join(first.settings.tasks)
        limit = first.settings.limit
        of = tasks if limit is None else f"{tasks} (the first {limit} of each task)"
        what |= {
            "of": f"the mean {metric} over {'all runs of ' if status.target == 'runs' else ''}"
            f"{status.items} documents of {of}",
            "average": first.average(),
            "session": status.id,
            "labels": status.rounds.judged,
            **({} if status.runs is None else {"runs": status.runs}),
            "alpha": status.alpha,
            "sentence": status.sentence,
            "samples": UNEQUAL,
        }
        ends = zip(("", "_lower", "_upper"), self.test.score(status), strict=True)
        scores: dict[str, Any] = {f"{metric}{end},{first.filter}": value for end, value in ends}
        scores[f"{metric}_stderr,{first.filter}"] = "N/A"
        return {"results": {tasks: {"alias": tasks, **scores}}, "celeus": what}


def _key(name: str, turn: Turn) -> str:
    """The key of a run: of a model, and of a draw, which may have several."""
    return key_of(name, turn.id, turn.round, turn.runs)
