"""The pages and the report write the same figures: two programs, one rule."""

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import Page

from celeus.core.insights.figures import Figures, count, sure
from celeus.core.pools.losses import LossScale

pytestmark = pytest.mark.nightly

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
    figures = Figures(LossScale.of("bounded", **session["scale"]), session["width"])
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
