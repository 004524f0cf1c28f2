"""A plan as the page of a new session shows it: words, a curve and tables of what was simulated."""

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from httpx import AsyncClient

from celeus.api.insights.planning import PlanningAnswer
from celeus.web.claim_form import ClaimForm
from celeus.web.planner import KeptPlan
from tests.keys import ADMIN, key_in
from tests.web.test_signing_in import csrf

Visiting = Callable[..., AbstractAsyncContextManager[AsyncClient]]
PLACE = "/sessions/new/plan"


def spread(median: float, low: float, high: float) -> dict[str, float]:
    return {"median": median, "low": low, "high": high}


def point(precision: float, median: float) -> dict[str, Any]:
    labels = spread(median, median / 2, 2 * median)
    return {
        "precision": precision,
        "labels": labels,
        "reached": 1.0,
        "runs": 20,
        "extrapolated": False,
    }


def policy(name: str, *medians: float, **more: object) -> dict[str, Any]:
    """A policy that takes so many labels at widths of 0.2, 0.1 and 0.05, the last planned for."""
    curve = [point(0.2 / 2**at, median) for at, median in enumerate(medians)]
    simulated = {"runs": 1, "reached": 0.5, "labels": spread(7, 6, 8), "width": None}
    return {
        "policy": name,
        "refused": None,
        "warning": None,
        "smallest_width": {"assumed": 0.0, "middle": 0.0},
        "expected": curve[-1] if curve else None,
        "curve": curve,
        "surrogate_right": simulated | {"more_than": None},
        "surrogate_useless": {"runs": 0, "reached": None, "labels": None, "width": None}
        | {"more_than": 900},
    } | more


def plan(*policies: dict[str, Any], **more: object) -> dict[str, Any]:
    return {
        "pool_id": f"pool_{7:032x}",
        "items": 1000,
        "target": "pool",
        "alpha": 0.05,
        "precision": 0.05,
        "budget": 1000,
        "strategy": None,
        "seed": 0,
        "assumed_risk": 0.2,
        "informed": True,
        "fixed_sample": None,
        "policies": policies,
    } | more


REFUSED: dict[str, Any] = {
    "refused": {"code": "c", "detail": "too fine", "field": None, "smallest_reachable": 0.06},
    "smallest_width": None,
    "expected": None,
    "curve": [],
    "surrogate_right": None,
    "surrogate_useless": None,
}


async def shown(browser: AsyncClient, form: dict[str, str], status: int = 200) -> str:
    """The page's text for a plan, with its marks left out."""
    sent = form | {"csrf": csrf(browser)["X-CSRF-Token"]}
    answer = await browser.post(PLACE, data=sent)
    assert answer.status_code == status, answer.text
    text = re.sub(r"<small>", " ", answer.text)
    return re.sub(r"[ \n]+", " ", re.sub(r"<[^>]+>", "", text))


def wanted(plan_: dict[str, Any], **more: object) -> dict[str, str]:
    """A form with a plan that was made for its settings."""
    form = {"makes": "mean", "alpha": "0.05", "policy": "sharp", "precision": "0.05", "pace": "36"}
    form |= {name: str(value) for name, value in more.items()}
    claim = ClaimForm(None, {name: [value] for name, value in form.items()})
    kept = KeptPlan.of(claim, PlanningAnswer.model_validate(plan_))
    return form | {"plan": kept.model_copy(update={"items": 800}).model_dump_json()}


async def test_labels_are_told_at_the_precision_planned_and_read_off_between_points(
    visiting: Visiting,
) -> None:
    both = plan(policy("sharp", 25, 100, 400), policy("uniform", 50, 200, 800))
    async with visiting(ADMIN) as browser:
        text = await shown(browser, wanted(both))
        assert "about 400 labels 200 to 800 in most cases, 50\u202f% of the pool" in text
        assert "about 4 hours at 36 s a label." in text
        assert "From 20 simulated sessions that suppose the surrogate better and worse" in text
        assert "sharp (chosen)400 200–800about 4 hours" in text
        assert "uniform7 one session, 50\u202f% arrivemore than 900" in text
        text = await shown(browser, wanted(both, pace=3600))
        assert "about 400 hours at 3600 s a label." in text, "hours of work, and no days"
        # Half way on logarithmic scales, between 100 at 0.1 and 400 at 0.05
        between = 0.1 / 2**0.5
        text = await shown(browser, wanted(both, precision=between))
        assert "about 200 labels 100 to 400" in text
        assert "Read off the curve" in text
        # Beside the curve
        text = await shown(browser, wanted(both, precision=0.01))
        assert "These numbers are for other settings. about 400 labels" in text
        form = wanted(both) | {"alpha": "0.1"}
        assert "These numbers are for other settings." in await shown(browser, form)


async def test_a_cheaper_policy_is_offered_and_one_that_cannot_be_opened_says_why(
    visiting: Visiting,
) -> None:
    policies = policy("sharp", 25, 100, 200), policy("celeus", 25, 100, 400)
    async with visiting(ADMIN) as browser:
        text = await shown(browser, wanted(plan(*policies), policy="celeus"))
        assert "Use sharp" in text
        assert "Use" not in await shown(browser, wanted(plan(*policies)))
        text = await shown(browser, wanted(plan(policy("sharp", **REFUSED), policies[1])))
        assert "sharp cannot be opened for this: too fine." in text
        assert "The smallest width it can reach with this pool is 0.06." in text
        assert "not below 0.06" in text
        floor = {"assumed": 0.08, "middle": 0.1}
        above = plan(policy("sharp", 25, smallest_width=floor), target="population")
        text = await shown(browser, wanted(above))
        assert "out of reach A width of 0.05 takes more items than this pool has" in text
        assert "is no narrower than 0.08, or 0.1 if the mean loss is in the middle" in text


async def test_a_table_is_told_claim_by_claim(visiting: Visiting) -> None:
    def claim(value: str | None, median: float) -> dict[str, Any]:
        simulated = {"runs": 20, "reached": 1.0, "labels": spread(median, 1, 999), "width": None}
        about = {"metric": "grade", "column": value and "topic", "value": value, "items": 9}
        both = {"surrogate_right": None, "surrogate_useless": simulated | {"more_than": None}}
        return about | {"level": 0.05, "precision": 0.1} | both

    stream = claim(None, 300)["surrogate_useless"] | {"reached": 0.75}
    one = policy("sharp", 1, surrogate_right=None, surrogate_useless=stream)
    claims = [claim(f"topic {at}", at) for at in range(1, 70)]
    table = plan(one, claims=claims, precision=None, assumed_risks={"grade": 0.25})
    async with visiting(ADMIN) as browser:
        text = await shown(browser, wanted(table, makes="metrics"))
    assert "about 300 labels until every target is met, 1 to 999 in 20 simulated sessions" in text
    assert "38\u202f% of the pool; in 25\u202f% of them it never was." in text
    assert "topic 69 grade69 topic 68 grade68" in text
    assert "And 9 more, faster." in text
    assert "Simulated with a mean loss of 0.25 for grade." in text


async def test_what_is_no_plan_is_refused(visiting: Visiting) -> None:
    async with visiting(ADMIN) as browser:
        await shown(browser, wanted(plan(policy("sharp", 25, 100))) | {"plan": "{}"}, 422)


async def test_who_may_not_open_a_session_is_shown_no_plan(
    visiting: Visiting, database_url: str
) -> None:
    form = wanted(plan(policy("sharp", 25, 100, 400)))
    async with visiting(key_in(database_url, "label")) as labeller:
        await shown(labeller, form, 403)
    async with visiting(ADMIN) as browser:
        answer = await browser.post(PLACE, data=form)
        assert answer.status_code == 403
