"""The pages and the report write the same figures: two programs, one rule."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from celeus.core.insights.figures import count, sure

pytestmark = pytest.mark.nightly

WRITTEN = """async ({ url, cases }) => {
  const { count, sure } = await import(url);
  return cases.map(({ alpha, labels }) => [sure(alpha), count(labels)]);
}"""


def cases(rng: random.Random) -> list[dict[str, Any]]:
    alphas = [0.05, 0.1, 0.001, 1e-6, 1e-9, *(round(rng.uniform(0.001, 0.5), 4) for _ in range(40))]
    return [{"alpha": alpha, "labels": rng.randrange(10_000_000)} for alpha in alphas]


def test_the_pages_write_every_figure_as_the_report_does(signed_in: Callable[..., Page]) -> None:
    page = signed_in("read")
    page.goto("/docs")
    style = page.locator('link[href$="/celeus.css"]').get_attribute("href") or ""
    tried = cases(random.Random(7))  # noqa: S311 - only which figures are tried
    asked = {"url": style.replace("celeus.css", "js/format.js"), "cases": tried}
    written = page.evaluate(WRITTEN, asked)
    for case, figures in zip(tried, written, strict=True):
        assert figures == [sure(case["alpha"]), count(case["labels"])], case
