"""The planner of the New-session page: a curve on which a precision is chosen."""

import itertools
import json
import re
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.evaluations import Evaluation, barriers
from tests.browser.site import NARROW, WIDE, Complaints, Site
from tests.browser.test_new_session import file_of, kept

pytestmark = pytest.mark.nightly

SignedIn = Callable[..., Page]
PLANNED_MS = 300_000
ITEMS = 150
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def pool_of(site: Site, *, hard: bool = False, items: int = ITEMS) -> str:
    """A pool of answers, most of which are right; its guesses are shares, or 0 and 1."""
    chance = np.random.default_rng(4)
    guesses = chance.random(items) < 0.2 if hard else chance.beta(0.5, 2.0, items).round(3)
    rows = [{"id": str(at), "surrogate": float(one)} for at, one in enumerate(guesses)]
    body = {"name": "answers", "loss": {"kind": "zero_one"}, "items": rows, "sealed": True}
    with site.client() as client:
        return str(client.post("/v1/pools", json=body).raise_for_status().json()["id"])


def planned(page: Page, pool: str) -> dict[str, Any]:
    """The page with a pool chosen and its plan made; the plan."""
    page.goto(f"/sessions/new?pool={pool}")
    return simulated(page)


def simulated(page: Page) -> dict[str, Any]:
    """The plan that the page keeps, once it is for the settings that are chosen."""
    expect(page.locator("#plan-told")).to_contain_text("Simulated just now", timeout=PLANNED_MS)
    told: dict[str, Any] = json.loads(page.locator("[name=plan]").input_value())["plan"]
    return told


def simulations(page: Page) -> list[str]:
    """The requests that simulate, from now on."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or ""))
    return asked


def count(number: float) -> str:
    return f"{round(number):,}".replace(",", "\u202f")


def opened(page: Page, site: Site) -> dict[str, Any]:
    """The session that the page opens."""
    page.get_by_role("button", name="Open the session").click()
    page.wait_for_url(re.compile(r"/sessions/ses_[0-9a-f]{32}$"))
    session = page.url.rsplit("/", 1)[-1]
    with site.client() as client:
        found: dict[str, Any] = client.get(f"/v1/sessions/{session}").raise_for_status().json()
        return found


def test_the_page_leads_with_what_is_expected_and_keeps_it_with_the_session(
    signed_in: SignedIn, server: Site
) -> None:
    page = signed_in("manage", "read")
    told = planned(page, pool_of(server))
    suggested = told["suggested_precision"]
    assert told["precision"] == suggested["precision"]
    assert [one["policy"] for one in told["policies"]] == ["sharp", "uniform"]
    precision = page.get_by_role("textbox", name="Precision")
    expect(precision).to_have_value(str(suggested["precision"]))
    expect(page.locator("#precision-help")).to_contain_text(f"Suggested: {suggested['reason']}")
    labels = told["policies"][0]["expected"]["labels"]
    figure = page.locator("#plan-result .figure")
    expect(figure).to_contain_text(f"about {count(labels['median'])} labels")
    expect(figure).to_contain_text(f"{count(labels['low'])} to {count(labels['high'])} in most")
    for note in told["notes"]:
        expect(page.locator("#plan-result")).to_contain_text(note)
    both = page.locator("#plan-result table").first
    for policy in told["policies"]:
        row = both.get_by_role("row", name=re.compile(f"^{policy['policy']}"))
        expect(row).to_contain_text(count(policy["expected"]["labels"]["median"]))
    session = opened(page, server)
    assert session["precision"] == suggested["precision"]
    assert session["planned_labels"] == {name: round(one) for name, one in labels.items()}


@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["phone", "desktop"])
def test_a_file_is_planned_for_before_its_pool_is_made_and_not_again_afterwards(
    signed_in: SignedIn, server: Site, viewport: ViewportSize
) -> None:
    chance = np.random.default_rng(4)
    guesses = chance.beta(0.5, 2.0, ITEMS).round(3)
    lines = "".join(f"Question {at}?,{guess}\n" for at, guess in enumerate(guesses))
    page = signed_in("manage", "read", viewport=viewport)
    page.goto("/sessions/new")
    content = f"question,surrogate\n{lines}".encode()
    page.set_input_files("#file", file_of("answers.csv", content))
    plan = simulated(page)
    labels = plan["policies"][0]["expected"]["labels"]
    figure = page.locator("#plan-result .figure")
    expect(figure).to_contain_text(f"about {count(labels['median'])} labels")
    expect(page.locator("#columns-line")).to_have_text(
        f"{ITEMS} rows: question, guess of the loss."
    )
    expect(page.get_by_role("textbox", name="Precision")).to_have_value(str(plan["precision"]))
    button = page.get_by_role("button", name="Open the session")
    expect(button).to_be_disabled()
    expect(page.locator("#open-help")).to_have_text("First create the pool.")
    above = "([plan, button]) => plan.getBoundingClientRect().y < button.getBoundingClientRect().y"
    assert page.evaluate(above, [figure.element_handle(), button.element_handle()])
    assert barriers(page) == []
    assert kept(server) == []
    asked = simulations(page)
    page.get_by_role("button", name="Create the pool").click()
    expect(button).to_be_enabled()
    assert not [sent for sent in asked if "simulate" in sent]
    session = opened(page, server)
    assert session["planned_labels"] == {name: round(one) for name, one in labels.items()}
    assert session["precision"] == plan["precision"]


def test_a_plan_goes_with_the_file_that_it_is_for(
    signed_in: SignedIn, complaints: Complaints
) -> None:
    """Another kind of loss is planned anew, and a file that cannot be read has no plan."""
    complaints.expect("422")
    page = signed_in("manage", "read")
    page.goto("/sessions/new")
    content = "question,surrogate\n" + "".join(f"Q {at}?,{at % 9 / 9:.2f}\n" for at in range(ITEMS))
    page.set_input_files("#file", file_of("a.csv", content.encode()))
    first = simulated(page)["precision"]
    page.get_by_role("radio", name="A grade").check()
    expect(page.get_by_role("textbox", name="Precision")).not_to_have_value(
        str(first), timeout=PLANNED_MS
    )
    assert simulated(page)["precision"] > 0.1, "on a scale of 5"
    page.set_input_files("#file", file_of("b.csv", b"a,b\n1,\n"))
    expect(page.locator("#plan-result")).to_be_hidden()
    expect(page.locator("#plan-told")).to_contain_text("Choose what to evaluate")


def test_a_precision_is_chosen_by_keyboard_and_takes_its_labels_along(
    signed_in: SignedIn, server: Site
) -> None:
    page = signed_in("manage", "read")
    told = planned(page, pool_of(server))
    slider = page.get_by_role("slider", name="Precision on the curve")
    slider.focus()
    page.keyboard.press("ArrowRight")
    field = page.get_by_role("textbox", name="Precision")
    finer = float(field.input_value())
    assert finer < told["precision"]
    figure = page.locator("#plan-result .figure")
    before = count(told["policies"][0]["expected"]["labels"]["median"])
    expect(figure).not_to_contain_text(f"about {before} labels")
    said = figure.inner_text()
    median = int(re.sub(r"\D", "", said.split("labels")[0]))
    assert median > told["policies"][0]["expected"]["labels"]["median"]
    expect(slider).to_have_attribute("aria-valuetext", re.compile(f"^{finer}: about"))
    expect(page.locator("#plan-told")).to_have_text("Simulated just now, at other precisions.")
    expect(page.locator("#plan-result")).to_contain_text("Read off the curve")
    field.fill("0.0001")
    expect(page.locator("#plan-told")).to_have_text("These numbers are for other settings.")
    field.fill(str(finer))
    session = opened(page, server)
    assert session["precision"] == finer
    assert session["planned_labels"]["median"] == median


def test_a_curve_begins_where_no_label_is_needed(signed_in: SignedIn, server: Site) -> None:
    """Two of three losses are known: the interval is narrower from the start."""
    told = {"known": {"loss": 0.0, "reason": "the answer is empty"}}
    rows = [
        {"id": str(at), "surrogate": at % 10 / 10} | (told if at % 3 else {}) for at in range(900)
    ]
    body = {"name": "known", "loss": {"kind": "zero_one"}, "items": rows, "sealed": True}
    with server.client() as client:
        pool = client.post("/v1/pools", json=body).raise_for_status().json()["id"]
    page = signed_in("manage", "read")
    first = planned(page, pool)["policies"][0]["curve"][0]
    assert first["labels"]["high"] == 0.0
    expect(page.locator(".curve [role=img]")).to_be_visible()
    field = page.get_by_role("textbox", name="Precision")
    slider = page.get_by_role("slider", name="Precision on the curve")
    slider.focus()
    page.keyboard.press("Home")
    expect(field).to_have_value(str(first["precision"]))
    expect(slider).to_have_attribute("aria-valuetext", re.compile("about 0 labels, 0 to 0"))
    page.keyboard.press("ArrowRight")
    expect(slider).not_to_have_attribute("aria-valuetext", re.compile("about 0 labels"))
    page.keyboard.press("Home")
    session = opened(page, server)
    assert session["planned_labels"] == {"median": 0, "low": 0, "high": 0}


@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["narrow", "wide"])
def test_a_precision_is_chosen_by_pointing_at_the_curve(
    signed_in: SignedIn, server: Site, viewport: dict[str, int]
) -> None:
    page = signed_in("manage", viewport=viewport)
    planned(page, pool_of(server))
    field = page.get_by_role("textbox", name="Precision")
    over = page.locator(".curve .spots")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    found = []
    page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 30)
    page.mouse.down()
    for share in (0.1, 0.5, 0.9):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + 30)
        found.append(float(field.input_value()))
    page.mouse.up()
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 3
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 30)
    assert float(field.input_value()) == found[-1], "nothing is chosen without pressing"


def test_hours_follow_the_pace_that_is_set(signed_in: SignedIn, server: Site) -> None:
    page = signed_in("manage")
    told = planned(page, pool_of(server))
    pace = page.get_by_label("Seconds a label takes")
    expect(pace).to_have_attribute("placeholder", "30")
    expect(page.locator("#pace-help")).to_contain_text("is an assumption")
    median = told["policies"][0]["expected"]["labels"]["median"]
    figure = page.locator("#plan-result .figure")
    pace.fill("3600")
    expect(figure).to_contain_text(f"about {count(median)} hours at")
    pace.fill("36")
    expect(figure).to_contain_text("at 36 s a label")
    page.get_by_text("All numbers").click()
    precision = f"{told['precision']:g}"
    row = page.get_by_role("row", name=re.compile(f"^{re.escape(precision)}"))
    expect(row).to_contain_text(f"{median / 100:.3g}")
    expect(page.locator("#plan-told")).to_have_text("Simulated just now with these settings.")


def test_the_pace_of_programs_is_not_taken_for_that_of_people(
    signed_in: SignedIn, server: Site
) -> None:
    with server.client() as client:
        evaluation = Evaluation(client, 150)
        session = evaluation.opened(precision=0.05)
        for _ in range(6):
            evaluation.judged(session, 10)
    page = signed_in("manage", "read")
    told = planned(page, evaluation.pool)
    assert told["pace"]["seconds_per_label"] < 1
    pace = page.get_by_label("Seconds a label takes")
    expect(pace).to_have_attribute("placeholder", "30")
    expect(page.locator("#pace-help")).to_contain_text("is that of programs")
    page.get_by_role("radio", name="Programs").check()
    expect(pace).to_have_attribute("placeholder", re.compile(r"^0\.\d"))
    expect(page.locator("#plan-result .figure")).to_contain_text("less than a minute")


def test_a_cheaper_policy_is_taken_without_another_simulation(
    signed_in: SignedIn, server: Site
) -> None:
    page = signed_in("manage", "read")
    planned(page, pool_of(server))
    page.get_by_text("Policy, budget and leases").click()
    page.get_by_label("Policy", exact=True).select_option("celeus")
    expect(page.locator("#plan-told")).to_have_text("These numbers are for other settings.")
    page.get_by_role("button", name="Plan again").click()
    sharp = next(one for one in simulated(page)["policies"] if one["policy"] == "sharp")
    asked = simulations(page)
    page.get_by_role("button", name="Use sharp").click(timeout=PLANNED_MS)
    median = count(sharp["expected"]["labels"]["median"])
    expect(page.locator("#plan-result .figure")).to_contain_text(f"about {median} labels")
    expect(page.locator("#plan-result tr.picked")).to_contain_text("sharp")
    expect(page.get_by_label("Policy", exact=True)).to_have_value("sharp")
    expect(page.locator("#plan-told")).to_have_text("Simulated just now with these settings.")
    expect(page.get_by_role("button", name="Use sharp")).to_have_count(0)
    assert not [sent for sent in asked if "simulate" in sent]


def test_the_numbers_behind_the_chart_are_a_table(signed_in: SignedIn, server: Site) -> None:
    page = signed_in("manage")
    told = planned(page, pool_of(server))
    expect(page.get_by_role("img", name="Labels by precision")).to_be_visible()
    page.get_by_text("All numbers").click()
    curve = page.get_by_role("region", name="Labels by precision")
    rows = curve.get_by_role("row")
    points = told["policies"][0]["curve"]
    expect(rows).to_have_count(1 + len(points))
    for at, point in enumerate(points):
        expect(rows.nth(at + 1)).to_contain_text(count(point["labels"]["median"]))
    expect(page.get_by_role("region", name="The two bounds")).to_contain_text("knows nothing")


def test_a_curve_that_begins_without_labels_is_drawn(signed_in: SignedIn, server: Site) -> None:
    """Of a pool of which most is known: a coarse interval needs none."""
    known = {"known": {"loss": 0, "reason": "unchanged"}, "surrogate": 0.0}
    rows = [
        {"id": str(at)} | ({"surrogate": at % 9 / 10} if at % 5 == 0 else known)
        for at in range(400)
    ]
    body = {"name": "known", "loss": {"kind": "zero_one"}, "items": rows, "sealed": True}
    with server.client() as client:
        pool = client.post("/v1/pools", json=body).raise_for_status().json()["id"]
    page = signed_in("manage")
    told = planned(page, pool)
    assert told["policies"][0]["curve"][0]["labels"]["median"] == 0
    expect(page.locator(".curve [role=img]")).to_be_visible()
    slider = page.get_by_role("slider", name="Precision on the curve")
    slider.press("Home")
    expect(page.locator("#plan-result .figure")).to_contain_text("no labels")
    slider.press("End")
    expect(page.locator("#plan-result .figure")).to_contain_text("about")


def test_certain_guesses_are_said_not_to_be_taken_at_their_word(
    signed_in: SignedIn, server: Site
) -> None:
    page = signed_in("manage")
    planned(page, pool_of(server, hard=True))
    result = page.locator("#plan-result")
    expect(result).to_contain_text("none is taken as certain")
    expect(result).to_contain_text(re.compile("of the items guessed 0 had a loss of 1"))
    expect(result).to_contain_text("A fixed sample that is judged whole")


INSIDE = """() => {
    const planner = document.getElementById("planner");
    const right = (one) => one.getBoundingClientRect().right;
    const fits = (one) => one.closest(".table-scroll") !== null || right(one) <= right(planner);
    const { scrollWidth } = document.documentElement;
    return scrollWidth <= innerWidth && [...planner.querySelectorAll("svg, table")].every(fits);
}"""


def test_the_planner_is_in_nobodys_way(signed_in: SignedIn, server: Site) -> None:
    page = signed_in("manage")
    planned(page, pool_of(server, hard=True))
    page.get_by_text("All numbers").click()
    # One plan, as it takes seconds, seen in all ways
    for scheme, size in itertools.product(SCHEMES, (NARROW, WIDE)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(ViewportSize(width=size["width"], height=size["height"]))
        page.wait_for_function(INSIDE)
        assert barriers(page) == [], (scheme, size)
