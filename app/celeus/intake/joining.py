"""Rows of several logs as one pool.

Rows of one id must be of one item: where their hashes differ, the logs are of two versions of a
data set. The guess of an item's loss (its surrogate) is the mean of what the models lost on it,

    g = (sum of the losses of k models + p) / (k + 1)    where all losses are 0 or 1
    g = (sum of the losses of k models) / k              else

with p the mean over the pool of what the models lost: a hard 0 or 1 says that the item is certain,
which another model's verdict is not, and so the pool's mean counts as one model more. It is p where
no model has a score. Of a model that has answered, what it left to other choices than its own,
1 - c with c its probability of its answer, may count as much: (g + 1 - c) / 2.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from celeus.intake.rows import Log, Row, refused
from celeus.intake.table.columns import clean
from celeus.intake.table.items import LABELLED

LONGEST_ID = 256
"""Characters of an item's id that a pool takes."""
FEWEST_ALIKE = 10
"""Items on which two models may well say the same."""
Means = dict[str, dict[str, float]]
"""Mean loss over repeats by item and model; nothing where there is no score."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a pool: the row that shows it, the guess of its loss, and its loss if known."""

    shown: Row
    guess: float | None
    loss: float | None = None
    id: str = ""

    @property
    def name(self) -> str:
        """The id that it has in the pool."""
        return self.id or self.shown.id


@dataclass(frozen=True, slots=True)
class JoinedItems:
    """The items of several logs.

    ``models`` are those whose losses make the guess, ``hard`` says that all of these are 0 or 1;
    ``unguessed`` items got the mean of all. ``truth`` is the model whose losses are held out.
    ``partial`` items are in the logs of some models only; ``left_out`` outputs are none.
    ``repeated`` items were answered several times by ``truth``, whose ``own_confidence`` is half
    of the guess where it is used.
    """

    items: list[Item]
    models: tuple[str, ...]
    truth: str | None
    hard: bool
    unguessed: int
    partial: int = 0
    left_out: int = 0
    repeated: int = 0
    own_confidence: bool = False

    @property
    def tests(self) -> bool:
        """Losses are known that a backtest can ask for."""
        return self.truth is not None

    @property
    def guessed(self) -> bool:
        """There is a surrogate."""
        return self.unguessed < len(self.items)

    @property
    def judged(self) -> list[Item]:
        """The items that the model held out has a score for."""
        return [item for item in self.items if item.loss is not None]


@dataclass(frozen=True, slots=True)
class Pair:
    """An item of two systems: what each answered, and its loss; ``guess`` is of other models.

    ``text_decides`` says that equal texts have equal losses: of agents, which are judged by what
    they did, or of texts that a judge reads, they need not.
    """

    a: Row
    b: Row
    loss: tuple[float | None, float | None]
    guess: float | None
    text_decides: bool = False

    @property
    def weight(self) -> float:
        """The number of times that the item counts."""
        return self.a.weight

    @property
    def difference(self) -> float:
        """The loss of a less that of b, where both are known."""
        return float(self.loss[0] or 0.0) - float(self.loss[1] or 0.0)

    @property
    def same(self) -> bool:
        """Both gave one answer, which decides the loss: a class, or a text where texts decide."""
        if self.a.prediction is not None and self.b.prediction is not None:
            return self.a.prediction == self.b.prediction
        return self.text_decides and bool(self.a.taken) and self.a.taken == self.b.taken


@dataclass(frozen=True, slots=True)
class Pairing:
    """The items that two systems answered; ``left_out`` has one of them no answer, or no row.

    ``repeated`` items were answered several times: their losses are means.
    """

    pairs: list[Pair]
    a: str
    b: str
    others: tuple[str, ...]
    left_out: int
    repeated: int = 0

    @property
    def tests(self) -> bool:
        """Losses are known that a backtest can ask for."""
        return True

    @property
    def guessed(self) -> bool:
        """There is a surrogate of other models."""
        return all(pair.guess is not None for pair in self.pairs)

    @property
    def text_decides(self) -> bool:
        """Equal texts are no difference."""
        return any(pair.text_decides for pair in self.pairs)

    @property
    def answers(self) -> str | None:
        """The field that all items carry of both systems: prediction, answer, or None."""
        rows = [row for pair in self.pairs for row in (pair.a, pair.b)]
        if all(row.prediction is not None for row in rows):
            return "prediction"
        return "answer" if all(row.answer_text is not None for row in rows) else None

    @property
    def judged(self) -> list[Pair]:
        """The pairs of which both losses are known."""
        return [pair for pair in self.pairs if None not in pair.loss]

    @property
    def differences(self) -> list[float]:
        """The loss of a less that of b, of the pairs of which both are known."""
        return [pair.difference for pair in self.judged]


def rows_of(logs: Iterable[Log]) -> list[Row]:
    """The rows of all logs."""
    return [row for log in logs for row in log.rows]


def join(
    rows: Sequence[Row], truth: str | None = None, *, own_confidence: bool = False
) -> JoinedItems:
    """The pool of these rows, with the losses of ``truth`` held out.

    Its items are those of ``truth``, or all. Refuses rows of one id and of two items. With
    ``own_confidence`` half of the guess is how unsure ``truth`` was of its answers, which is known
    before people judge these, and unknown of a model that is yet to run.
    """
    models, others = _models(rows, () if truth is None else (truth,))
    of_truth = [row for row in rows if truth in (None, row.model)]
    _check_whole(of_truth)
    verdicts = _verdicts(of_truth)
    kept = {
        name: replace(row, known=verdicts.get(name))
        for name, row in _first_rows(of_truth, rows).items()
    }
    of_kept = [row for row in rows if row.id in kept]
    _check_shared(of_kept, truth, others)
    logs = Counter(name for name, _ in {(row.id, row.model) for row in of_kept})
    means = _means(of_kept)
    guesses, hard, unguessed = _guesses(list(kept), means, others)
    if own_confidence:
        guesses, unguessed = _with_doubts(guesses, kept), 0
    items = [
        Item(row, guesses.get(name), None if truth is None else means[name].get(truth))
        for name, row in kept.items()
    ]
    if truth is not None and all(item.loss is None for item in items):
        raise refused(f"no item has a score of {truth}", "truth")
    answers = Counter(row.id for row in rows if row.model == truth)
    return JoinedItems(
        *(items, others, truth, hard, unguessed),
        partial=sum(count < len(models) for count in logs.values()),
        repeated=sum(count > 1 for count in answers.values()),
        own_confidence=own_confidence,
    )


def _verdicts(rows: Sequence[Row]) -> dict[str, float]:
    """The losses of items that people have said, the mean over the repeats of each.

    Refuses verdicts on the answers of several models that differ.
    """
    found: dict[str, float] = {}
    for name, of_models in _means(rows, lambda row: row.known).items():
        if len({*of_models.values()}) > 1:
            how = "hold one of them out with --truth, or make an item of every answer"
            what = f"verdicts on the answers of {' and '.join(of_models)} to item {name} differ"
            raise refused(f"{what}, so that none is its loss: {how} with --each-output", "truth")
        found.update((name, loss) for loss in of_models.values())
    return found


def _models(rows: Sequence[Row], named: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The models of the logs, and those beside ``named``, whose losses make the guesses."""
    _check_same_items(rows)
    _check_scores(rows)
    models = tuple(dict.fromkeys(row.model for row in rows))
    for name in named:
        _check_model(name, models)
    return models, tuple(model for model in models if model not in named)


def _first_rows(chosen: Sequence[Row], rows: Sequence[Row]) -> dict[str, Row]:
    """The first of the chosen rows of every item, in the order in which all rows name items."""
    first = {row.id: row for row in reversed(chosen)}
    return {row.id: first[row.id] for row in rows if row.id in first}


def _with_doubts(guesses: Mapping[str, float], kept: Mapping[str, Row]) -> dict[str, float]:
    """The guesses, each the mean of itself and of how unsure the model of these rows was."""
    unsure = {name: _unsure(row) for name, row in kept.items()}
    return {name: (guesses.get(name, doubt) + doubt) / 2 for name, doubt in unsure.items()}


def _unsure(row: Row) -> float:
    """The probability a model gave to other choices than its own."""
    if row.confidence is None:
        where = f"item {row.id}: logs of lm-eval do, of multiple choice by acc"
        raise refused(f"the log of {row.model} does not say how sure it was of {where}")
    return 1.0 - row.confidence


def _check_shared(rows: Sequence[Row], truth: str | None, others: Sequence[str]) -> None:
    """Refuse logs of models that have no row among those of the items of the held-out model."""
    sharing = {row.model for row in rows}
    for name in others:
        if name not in sharing:
            how = "leave it out, or name its items alike"
            raise refused(f"no item of {truth} is in the log of {name}: {how}", "truth")


def guessed(items: Sequence[Row], rows: Sequence[Row]) -> JoinedItems:
    """The pool of items that nobody has answered yet, guessed by the models of ``rows``.

    Refuses rows of other items, and of another version of one.
    """
    names = [item.id for item in items]
    known = {*names}
    kept = [row for row in rows if row.id in known]
    if rows and not kept:
        raise refused(f"the logs are of other items: none of them is {names[0]}", "log")
    _check_same_items([*items, *kept])
    _check_scores(kept)
    models = tuple(dict.fromkeys(row.model for row in kept))
    means: Means = {name: {} for name in names}
    means |= _means(kept)
    guesses, hard, unguessed = _guesses(names, means, models)
    with_guesses = [Item(item, guesses.get(item.id)) for item in items]
    return JoinedItems(with_guesses, models, None, hard, unguessed)


def each_output(rows: Sequence[Row]) -> JoinedItems:
    """A pool with an item for every output, guessed by its own score: for people who check it.

    What has no answer is no output, unless nothing has one. Refuses two outputs of one name.
    """
    _check_same_items(rows)
    _check_whole([row for row in rows if row.drawn])
    models = tuple(dict.fromkeys(row.model for row in rows))
    repeated = any(row.repeat > 1 for row in rows)
    named: dict[str, Row] = {}
    given = [row for row in rows if row.answer_text is not None] or rows
    for row in given:
        name = f"{row.model}/{row.id}" if len(models) > 1 else row.id
        name = f"{name}/{row.repeat}" if repeated else name
        if named.setdefault(name, row) is not row:
            how = "name the models with --model, one a log"
            raise refused(f"two outputs would be called {name}: {how}", "model")
        _check_name(name)
    means = {name: {} if row.loss is None else {"": row.loss} for name, row in named.items()}
    guesses, hard, unguessed = _guesses(list(named), means, ("",))
    items = [Item(row, guesses.get(name), id=name) for name, row in named.items()]
    return JoinedItems(items, models, None, hard, unguessed, left_out=len(rows) - len(given))


def compare(rows: Sequence[Row], a: str, b: str, *, text_decides: bool = False) -> Pairing:
    """The items that both answered, guessed by the models beside them.

    With ``text_decides`` equal texts are no difference; refused where the logs score them apart.
    """
    _, others = _models(rows, (a, b))
    if a == b:
        raise refused(f"{a} is compared with itself: name two models", "compare")
    of_both = [row for row in rows if row.model in {a, b}]
    repeated = {row.id for row in of_both if row.repeat > 1}
    _check_whole([row for row in of_both if row.drawn])
    answers = _answers_of_both(of_both, a, b)
    if not answers:
        raise refused(f"no item has an answer of both {a} and {b}", "compare")
    means = _means(row for row in rows if row.id in answers)
    guesses = _guesses(list(answers), means, others)[0]
    pairs = [
        Pair(*both, (means[name].get(a), means[name].get(b)), guesses.get(name), text_decides)
        for name, both in answers.items()
    ]
    compared = Pairing(
        *(pairs, a, b, others, len({row.id for row in of_both}) - len(pairs)),
        repeated=len(repeated & {*answers}),
    )
    if not compared.repeated:
        _check_decided(compared)
    return compared


def _check_decided(compared: Pairing) -> None:
    """Refuse pairs of one answer and two scores: what was answered does not decide the loss."""
    apart = [pair.a.id for pair in compared.judged if pair.same and pair.loss[0] != pair.loss[1]]
    if apart:
        what = f"{len(apart)} equal answers have two scores, that of item {apart[0]} first"
        way = "leave out --text-decides"
        if not compared.text_decides:
            way = "the logs are not of one way of scoring"
        raise refused(f"{what}: {way}", "text_decides")


def _answers_of_both(rows: Sequence[Row], a: str, b: str) -> dict[str, tuple[Row, Row]]:
    """The rows of a and b by item, of the items that both answered.

    Where no row has an answer, the items that both have a row of.
    """
    of_a, of_b = ({row.id: row for row in rows if row.model == name} for name in (a, b))
    names = dict.fromkeys(row.id for row in rows)
    both = {name: (of_a[name], of_b[name]) for name in names if name in of_a and name in of_b}
    if all(row.answer_text is None for row in (*of_a.values(), *of_b.values())):
        return both
    return {
        name: pair
        for name, pair in both.items()
        if all(row.answer_text is not None for row in pair)
    }


def _check_model(name: str, models: Sequence[str]) -> None:
    if name not in models:
        raise refused(f"no log is of {name!r}, only of {', '.join(models)}", "model")


def _check_whole(rows: Sequence[Row]) -> None:
    """Refuse items that stand in the log of a session alone: the pool would be what it drew."""
    whole = {row.id for row in rows if not row.drawn}
    alone = next((row for row in rows if row.id not in whole), None)
    if alone is not None:
        why = "they were not drawn equally likely, and stand for no others"
        way = "the results of that run have the interval; beside whole logs this one can be a guess"
        raise refused(
            f"the log of {alone.model} has only documents that a session drew: {why}; {way}", "log"
        )


def _check_same_items(rows: Sequence[Row]) -> None:
    """Refuse rows of one id that are of two items."""
    first: dict[str, Row] = {}
    for row in rows:
        seen = first.setdefault(row.id, row)
        if not seen.check and row.check:
            first[row.id] = row
        elif row.check and seen.check != row.check:
            why = "the logs are of two versions of the data set; take those of one"
            both = f"the logs of {seen.model} and {row.model}"
            if not seen.model:
                both = f"the data set and in the log of {row.model}"
            raise refused(f"item {row.id} is not the same in {both}: {why}")
        _check_name(row.id)


def _check_scores(rows: Sequence[Row]) -> None:
    counts = Counter(row.model for row in rows if row.loss is not None)
    for model in dict.fromkeys(row.model for row in rows):
        if not counts[model]:
            why = "all are errors or have none; leave its log out"
            raise refused(f"no item has a score of {model}: {why}")


def _check_name(name: str) -> None:
    if not 0 < len(clean(name)) <= LONGEST_ID or "\0" in name:
        raise refused(f"the id {name[:40]!r}… is no text of 1 to {LONGEST_ID} characters")


def copies(rows: Sequence[Row]) -> list[str]:
    """Return a line for every pair of models with equal answers: a copy knows what is held out."""
    answers: dict[str, dict[tuple[str, int], tuple[str | None, float | None]]] = {}
    for row in rows:
        answers.setdefault(row.model, {})[row.id, row.repeat] = (row.answer_text, row.loss)
    first: dict[frozenset[Any], str] = {}
    lines = []
    for model, of_model in answers.items():
        other = first.setdefault(frozenset(of_model.items()), model)
        if other != model and len(of_model) >= FEWEST_ALIKE and len({*of_model.values()}) > 1:
            both = f"{other} and {model} have the same answers and scores on all {len(of_model)}"
            lines.append(f"{both} items: if one is a copy of the other, leave it out")
    return lines


def _means(
    rows: Iterable[Row], loss_of: Callable[[Row], float | None] = lambda row: row.loss
) -> Means:
    losses: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        of_item = losses.setdefault(row.id, {})
        loss = loss_of(row)
        if loss is not None:
            of_item.setdefault(row.model, []).append(loss)
    return {
        name: {model: math.fsum(some) / len(some) for model, some in of_item.items()}
        for name, of_item in losses.items()
    }


def _guesses(
    names: Sequence[str], means: Means, models: Sequence[str]
) -> tuple[dict[str, float], bool, int]:
    """The guess of every item, whether losses are hard, and of how many items nothing is known."""
    losses_of = {
        name: [means[name][model] for model in models if model in means[name]] for name in names
    }
    every = [loss for losses in losses_of.values() for loss in losses]
    if not every:
        return {}, False, len(names)
    hard = all(loss in {0.0, 1.0} for loss in every)
    mean = math.fsum(every) / len(every)
    guesses = {}
    for name, losses in losses_of.items():
        known = [*losses, mean] if hard or not losses else losses
        guesses[name] = math.fsum(known) / len(known)
    return guesses, hard, sum(not losses for losses in losses_of.values())


def kind_of(rows: Sequence[Row], *, outputs: bool = False) -> str:
    """The kind of loss of a pool of these rows: zero_one, or bounded where any lies between.

    The loss of an item is the mean over its repeats, unless the items are ``outputs``.
    """
    losses: list[float | None] = []
    for loss_of in (lambda row: row.loss, lambda row: row.known):
        if outputs:
            losses += map(loss_of, rows)
        else:
            for of_item in _means(rows, loss_of).values():
                losses += of_item.values()
    return "zero_one" if {0.0, 1.0, None}.issuperset(losses) else "bounded"


def mean_loss(items: Iterable[Item]) -> float:
    """The mean of the losses that are known, by weight."""
    known = [(item.loss, item.shown.weight) for item in items if item.loss is not None]
    total = math.fsum(loss * weight for loss, weight in known)
    return total / math.fsum(weight for _, weight in known)


def ndjson(joined: JoinedItems | Pairing) -> bytes:
    """The pool as the service takes it, a line an item."""
    lines = _pairs(joined) if isinstance(joined, Pairing) else lines_of(joined)
    return b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)


def lines_of(joined: JoinedItems) -> Iterator[dict[str, Any]]:
    """The items of a pool as the service takes them."""
    has_reference = joined.truth is not None or any(item.id for item in joined.items)
    grouped = all(item.shown.group for item in joined.items)
    weighted = any(item.shown.weight != 1 for item in joined.items)
    for item in joined.items:
        payload = payload_of(item.shown)
        if has_reference and item.shown.answer_text is not None:
            payload["answer"] = clean(item.shown.answer_text)
        line: dict[str, Any] = {"id": clean(item.name)}
        if payload:
            line["payload"] = payload
        if item.guess is not None:
            line["surrogate"] = item.guess
        if weighted:
            line["weight"] = item.shown.weight
        if item.shown.known is not None:
            line["known"] = {"loss": item.shown.known, "reason": LABELLED}
        if grouped:
            line["group"] = clean(str(item.shown.group))
        yield line


def _pairs(compared: Pairing) -> Iterator[dict[str, Any]]:
    """The lines of pairs: both answers, each with its own score as the guess of its loss."""
    if compared.repeated:
        raise refused("items were answered several times: a pool of pairs takes one answer each")
    carried = compared.answers
    weighted = any(pair.weight != 1 for pair in compared.pairs)
    scored = [_tempered([pair.loss[side] for pair in compared.pairs]) for side in range(2)]
    for index, pair in enumerate(compared.pairs):
        line: dict[str, Any] = {"id": clean(pair.a.id)}
        payload, other = payload_of(pair.a), pair.b.more
        payload = {
            name: value for name, value in payload.items() if other.get(name, value) == value
        }
        if payload:
            line["payload"] = payload
        if weighted:
            line["weight"] = pair.weight
        for side, row, guesses in (("a", pair.a, scored[0]), ("b", pair.b, scored[1])):
            line[side] = {"surrogate": guesses[index]}
            if carried == "prediction":
                line[side]["prediction"] = row.prediction
            elif carried is not None:
                line[side] |= _answered(row, taken=compared.text_decides)
        yield line


def _answered(row: Row, *, taken: bool) -> dict[str, Any]:
    """The answer of a side; where its text decides the part that was scored, beside the whole."""
    answer_text, part = clean(str(row.answer_text)), clean(str(row.taken))
    if not taken or answer_text == part:
        return {"answer": answer_text}
    return {"answer": part, "payload": {"whole answer": answer_text}}


def _tempered(losses: list[float | None]) -> list[float]:
    """The losses of one model as guesses."""
    means: Means = {
        str(index): {} if loss is None else {"": loss} for index, loss in enumerate(losses)
    }
    guesses = _guesses(list(means), means, ("",))[0]
    return [guesses[str(index)] for index in range(len(losses))]


def payload_of(row: Row) -> dict[str, Any]:
    """The payload of an item: what a judge is shown."""
    payload: dict[str, Any] = {}
    if row.question is not None:
        payload["question"] = clean(row.question)
    if row.choices:
        payload["choices"] = [clean(choice) for choice in row.choices]
    if row.reference is not None:
        payload["reference"] = clean(row.reference)
    return payload | dict(row.more)


def arrays(joined: JoinedItems | Pairing) -> dict[str, list[Any]]:
    """The known losses as `celeus dev simulate` reads them, without the items that have none."""
    if isinstance(joined, Pairing):
        return _arrays_of_pairs(joined)
    items = joined.judged
    guess = [0.5 if item.guess is None else item.guess for item in items]
    found: dict[str, list[Any]] = {
        "loss": [float(item.loss or 0.0) for item in items],
        "surrogate": guess,
    }
    if any(item.shown.weight != 1 for item in items):
        found["weight"] = [item.shown.weight for item in items]
    return found


def _arrays_of_pairs(compared: Pairing) -> dict[str, list[Any]]:
    """Losses of both."""
    pairs = compared.judged
    if not pairs:
        raise refused(f"no item has a score of both {compared.a} and {compared.b}", "compare")
    a = [float(pair.loss[0] or 0.0) for pair in pairs]
    b = [float(pair.loss[1] or 0.0) for pair in pairs]
    found: dict[str, list[Any]] = {"loss_a": a, "loss_b": b}
    if any(pair.weight != 1 for pair in pairs):
        found["weight"] = [pair.weight for pair in pairs]
    if any(pair.same for pair in pairs) and not compared.repeated:
        found["answer_a"] = [0] * len(pairs)
        found["answer_b"] = [0 if pair.same else 1 for pair in pairs]
    if compared.guessed:
        found["surrogate_a"] = found["surrogate_b"] = [pair.guess for pair in pairs]
    return found
