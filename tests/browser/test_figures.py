"""The pages and the report write the same figures: two programs, one rule."""

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from playwright.sync_api import Page

from celeus.core.pools.losses import LossScale
from celeus.web.report.verdict import PERCENT, PHRASES, Contrast
from celeus.web.report.wording import Scaled, count, sure

WRITTEN = """async ({ url, cases }) => {
  const { count, lowerEnd, number, resolutionOf, sure, upperEnd } = await import(url);
  return cases.map(({ session, value, alpha, labels }) => {
    const width = resolutionOf(session);
    const ends = [lowerEnd(value, width), number(value, width), upperEnd(value, width)];
    return [...ends, sure(alpha), count(labels)];
  });
}"""
SCALES = [
    *((0.0, 1.0), (0.0, 5.0), (-2.5, 7.5), (0.0, 1e-9), (1e6, 1e6 + 1), (-1e9, 1e9)),
    *((1e9 - 2, 1e9), (-1e9, -1e9 + 2)),
]


def cases(rng: random.Random) -> list[dict[str, Any]]:
    found = []
    for lower, upper in SCALES:
        for share in [0.0, 1.0, 0.1, 0.2, 0.0199, *(10 ** rng.uniform(-5, 0) for _ in range(40))]:
            value = rng.choice([lower, upper, (lower + upper) / 2, rng.uniform(lower, upper)])
            session = {"scale": {"lower": lower, "upper": upper}, "width": share * (upper - lower)}
            alpha = rng.choice([0.05, 0.1, 0.001, 1e-6, 1e-9, round(rng.uniform(0.001, 0.5), 4)])
            labels = rng.randrange(10_000_000)
            found.append({"session": session, "value": value, "alpha": alpha, "labels": labels})
    return found


def in_report(case: dict[str, Any]) -> list[str]:
    session = case["session"]
    figures = Scaled(LossScale.of("bounded", **session["scale"]), session["width"])
    value = case["value"]
    ends = [figures.below(value), figures.nearest(value), figures.above(value)]
    return [*ends, sure(case["alpha"]), count(case["labels"])]


def test_the_pages_write_every_figure_as_the_report_does(signed_in: Callable[..., Page]) -> None:
    page = signed_in("read")
    page.goto("/docs")
    style = page.locator('link[href$="/celeus.css"]').get_attribute("href") or ""
    tried = cases(random.Random(7))  # noqa: S311 - only which figures are tried
    asked = {"url": style.replace("celeus.css", "js/format.js"), "cases": tried}
    written = page.evaluate(WRITTEN, asked)
    for case, figures in zip(tried, written, strict=True):
        assert figures == in_report(case), case
        below, above = (Decimal(figure.replace("\N{MINUS SIGN}", "-")) for figure in figures[:3:2])
        assert below <= Decimal(repr(case["value"])) <= above, case


SAID = """async ({ url, cases }) => {
  const { sentenceOf } = await import(url);
  return cases.map(({ session, contrast }) => sentenceOf(session, contrast));
}"""


def comparisons(rng: random.Random) -> list[dict[str, Any]]:
    found = []
    for unit, phrases in PHRASES.items():
        for _ in range(200):
            lower, upper = sorted(rng.choice([0.0, rng.gauss(0, 0.1), -1e-12]) for _ in range(2))
            session: dict[str, Any] = {"lower": lower, "upper": upper, "width": upper - lower}
            session |= {"estimate": rng.uniform(lower, upper), "alpha": rng.choice([0.05, 0.1])}
            session |= {"scale": {"lower": -1, "upper": 1}, "items": 20, "known": 8}
            session |= {"rounds": {"in_interval": rng.choice([0, 5, 12])}}
            session |= {"effective_items": rng.choice([None, 12.5])}
            session |= {"state": rng.choice(["active", "closed"])}
            answer = rng.choice(["undecided", "equivalent", "a_at_least_as_good"])
            verdict = {"margin": rng.choice([0.02, 0.07, 0.1]), "answer": answer, "round": 3}
            session |= {"verdict": rng.choice([None, verdict])}
            shift = PERCENT if unit in {"errors", "preferences"} else 0
            found.append({"session": session, "contrast": Contrast("x", "$&", shift, phrases)})
    return found


def test_the_pages_say_of_a_comparison_what_the_report_says(
    signed_in: Callable[..., Page],
) -> None:
    page = signed_in("read")
    page.goto("/docs")
    style = page.locator('link[href$="/celeus.css"]').get_attribute("href") or ""
    tried = comparisons(random.Random(7))  # noqa: S311 - only which are tried
    told = [{"session": it["session"], "contrast": it["contrast"].to_dict()} for it in tried]
    url = style.replace("celeus.css", "js/session/verdict.js")
    written = page.evaluate(SAID, {"url": url, "cases": told})
    for case, sentence in zip(tried, written, strict=True):
        assert sentence == case["contrast"].sentence(case["session"]), case["session"]
