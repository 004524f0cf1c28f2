"""Pools as people have them, with losses that are known: what the pictures show."""

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from celeus.demo.by_hand import write_pool
from celeus.demo.digits import digits
from tests.docs.pages import ROOT

SAMPLE = ROOT / "app" / "celeus" / "web" / "static" / "sample.csv"
MOST_DIGITS = 300
GRADES = (
    ("wrong", "Says what is not so, or answers something else."),
    ("weak", "Partly right; somebody who acts on it loses time."),
    ("good", "Right, and leaves out something that matters."),
    ("perfect", "Right, complete, and no longer than it has to be."),
)
INSTRUCTIONS = """\
Judge the **last reply** only: is it right, and does it say what the customer has to do next?

- The refund rules are in the system prompt.
- A reply that promises what the shop cannot do is *wrong*, however polite it is.
"""


@dataclass(frozen=True)
class Known:
    """A request that makes a pool, and what is said of an item by its place."""

    body: dict[str, Any]
    said: Callable[[int], dict[str, Any]]


def _losses(chance: np.random.Generator, guess: np.ndarray) -> list[float]:
    return [float(one) for one in chance.random(len(guess)) < guess]


def _pool(name: str, items: Sequence[dict[str, Any]], **members: object) -> dict[str, Any]:
    loss = {"kind": "zero_one"}
    return {"name": name, "loss": loss, "items": list(items), "sealed": True} | members


def questions() -> Known:
    """Short answers beside references: the sample that comes with the service, many times over."""
    chance = np.random.default_rng(7)
    asked = list(csv.DictReader(SAMPLE.read_text(encoding="utf-8").splitlines()))
    items: list[dict[str, Any]] = []
    guesses: list[float] = []
    for turn, row in product(range(8), asked):
        guess = round(float(chance.beta(0.7, 2.2)), 2)
        guesses.append(guess)
        payload = {name: row[name] for name in ("question", "answer", "reference")}
        items.append({"id": f"q{turn}-{len(items):03}", "surrogate": guess, "payload": payload})
    losses = _losses(chance, np.array(guesses))
    body = _pool("Capitals, small model", items, score={"name": "error rate", "better": "lower"})
    return Known(body, lambda item: {"loss": losses[item]})


THINGS = ("running shoes", "espresso machine", "rain jacket", "desk lamp", "bicycle helmet")
TROUBLES = (
    ("arrived with a broken part", "send a photo of the part, and a new one is on its way"),
    ("is the wrong size", "send it back in its box within 30 days; the label is attached"),
    ("has not come after nine days", "the parcel is in Graz and arrives on Thursday"),
    ("was charged twice", "the second payment goes back to your card in five days"),
)


def chats() -> Known:
    """Replies of a shop's assistant, graded from 0 to 3."""
    chance = np.random.default_rng(5)
    items: list[dict[str, Any]] = []
    for at, (thing, (trouble, help_)) in enumerate(product(THINGS * 3, TROUBLES)):
        order = 48210 + at
        found = {"order": order, "status": "delivered", "refundable": True}
        messages = [
            {
                "role": "system",
                "content": "You are the assistant of a shop. Refunds take five days. "
                "Never promise a date of delivery that the carrier has not given.",
            },
            {"role": "user", "content": f"Hi! My {thing} {trouble}. Order {order}. What now?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {
                            "name": "find_order",
                            "arguments": json.dumps({"order": order}),
                        },
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": json.dumps(found)},
            {
                "role": "assistant",
                "content": f"I am sorry to hear that. For your **{thing}**: {help_}.\n\n"
                "1. You need not do anything else.\n2. If it is not solved by Friday, write again.",
            },
        ]
        guess = round(float(3 * chance.beta(1.5, 3)), 2)
        payload = {"messages": messages}
        items.append({"id": f"chat-{order}", "surrogate": guess, "payload": payload})
    levels = [
        {"name": name, "grade": grade, "help": help_} for grade, (name, help_) in enumerate(GRADES)
    ]
    body = _pool(
        "Shop assistant, October",
        items,
        loss={"kind": "bounded", "lower": 0, "upper": 3},
        score={"name": "quality", "better": "higher"},
        levels=levels,
        instructions=INSTRUCTIONS,
    )
    grades = [
        float(np.clip(np.rint(one["surrogate"] + chance.normal(0, 0.6)), 0, 3)) for one in items
    ]
    return Known(body, lambda item: {"loss": grades[item]})


def pictures() -> Known:
    """Handwritten digits; a judge says which one it is."""
    truth = digits(0).labels
    with TemporaryDirectory() as folder:
        file = Path(folder) / "digits.jsonl"
        write_pool(file)
        lines = file.read_text().splitlines()[:MOST_DIGITS]
    items = [json.loads(line) for line in lines]
    return Known(
        _pool("Handwritten digits", items), lambda item: {"label": truth[items[item]["id"]]}
    )


TOPICS = ("heat pumps", "city trees", "the tides of the Wadden Sea", "old bridges", "bees in towns")
FIRST = (
    "Report on {0}: costs fell by a fifth in three years. The authors see two reasons, larger "
    "numbers and simpler rules, and warn that the second is about to end."
)
SECOND = (
    "The report is about {0}. It says that many things have changed and that more will change. "
    "Costs are mentioned several times."
)


def comparison() -> Known:
    """Two summaries of one report, side by side."""
    chance = np.random.default_rng(3)
    items, better = [], []
    for at in range(160):
        topic = TOPICS[at % len(TOPICS)]
        pair = [FIRST.format(topic), SECOND.format(topic)]
        second = bool(chance.random() < 0.35)
        better.append("b" if second else "a")
        answers = pair[::-1] if second else pair
        sides = {
            side: {"answer": answer, "surrogate": round(float(chance.random()), 2)}
            for side, answer in zip("ab", answers, strict=True)
        }
        payload = {"question": f"Summarise the report on {topic} in two sentences."}
        items.append({"id": f"report-{at:03}", "payload": payload} | sides)
    body = _pool(
        "Summaries, two models",
        items,
        loss={"kind": "preference"},
        systems={"a": "harbour-2", "b": "meadow-1"},
    )
    return Known(body, lambda item: {"preference": better[item]})


def formulas() -> Known:
    """Answers with formulas beside the reference."""
    chance = np.random.default_rng(9)
    items = []
    for at in range(120):
        n = 2 + at % 7
        payload = {
            "question": rf"Compute $$\int_0^1 x^{{{n}}}\,\mathrm{{d}}x$$"
            r" and say why it is below $\tfrac{1}{2}$.",
            "answer": {
                "markdown": rf"By the power rule $\int_0^1 x^{{{n}}}\,\mathrm{{d}}x = "
                rf"\left[\tfrac{{x^{{{n + 1}}}}}{{{n + 1}}}\right]_0^1 = \tfrac{{1}}{{{n + 1}}}$."
                "\n\nIt is below one half because $x^k \\le x$ on $[0, 1]$."
            },
            "reference": rf"$\frac{{1}}{{{n + 1}}}$",
        }
        items.append({"id": f"int-{at:03}", "surrogate": 0.2, "payload": payload})
    losses = _losses(chance, np.full(len(items), 0.2))
    score = {"name": "accuracy", "better": "higher"}
    return Known(_pool("Integrals", items, score=score), lambda item: {"loss": losses[item]})


SUBJECTS = ("biology", "chemistry", "contract law", "geography", "music", "nutrition")


def table() -> Known:
    """Two metrics in six groups."""
    chance = np.random.default_rng(4)
    guess = chance.beta(0.8, 2.4, 540).round(3)
    harm = (guess / 5).round(3)
    losses = [
        {"accuracy": float(chance.random() < one), "harm": float(chance.random() < other)}
        for one, other in zip(guess.tolist(), harm.tolist(), strict=True)
    ]
    items = [
        {
            "id": f"a-{at:03}",
            "payload": {"text": f"Answer {at} of the exam."},
            "surrogates": {"accuracy": one, "harm": other},
            "groups": {"subject": SUBJECTS[at % len(SUBJECTS)]},
        }
        for at, (one, other) in enumerate(zip(guess.tolist(), harm.tolist(), strict=True))
    ]
    metrics = {
        "accuracy": {"kind": "zero_one", "score": {"name": "accuracy", "better": "higher"}},
        "harm": {"kind": "zero_one", "score": {"name": "harmful answers", "better": "lower"}},
    }
    body = {"name": "Exam answers", "metrics": metrics, "items": items, "sealed": True}
    return Known(body, lambda item: {"losses": losses[item]})


RUNNERS = {"harbour-2": 0.84, "meadow-1": 0.78, "ridge-9b": 0.66, "brook-mini": 0.41}
ANSWERS = ("yes", "no", "partly", "cannot be said")


def lineup() -> Known:
    """Four systems that answer the same questions."""
    chance = np.random.default_rng(2)
    items, truth = [], []
    for at in range(240):
        right = int(chance.integers(0, 4))
        truth.append(right)
        answers = {}
        for name, able in RUNNERS.items():
            own = right if chance.random() < able else int((right + chance.integers(1, 4)) % 4)
            guess = round(float(chance.beta(1, 3)), 2)
            answers[name] = {"prediction": own, "surrogate": guess}
        payload = {"question": f"Does clause {at} bind both sides?", "choices": list(ANSWERS)}
        items.append({"id": f"clause-{at:03}", "payload": payload, "answers": answers})
    body = _pool("Clauses, four models", items, systems={"names": list(RUNNERS)})
    return Known(body, lambda item: {"label": truth[item]})
