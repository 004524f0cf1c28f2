"""What is pressed is what is said on the screen, and what is stored: every control of every kind.

A table of kinds, each with its controls: where they are pressed, by which keys, the words that the
page says then, and what the ledger holds. Each is tried by mouse, touch and key, in windows wide,
narrow, low and enlarged; the item stays in view in all of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.evaluations import barriers
from tests.browser.labelling import ITEM, all_sent, compared, events, session_of, visit
from tests.browser.site import Site, at_night

SignedIn = Callable[..., Page]
Press = tuple[str, str | float]
"""The name of a line, or none, and the words of a button or a share of the line's scale."""
Stored = Callable[[dict[str, Any]], object]

PAYLOAD = {
    "question": "What is the capital of Australia, and since when?",
    "answer": "Canberra, which was chosen as a compromise between Sydney and Melbourne. " * 4,
}
CLASSES = ["account", "card", "cash", "transfer", "top up", "exchange", "refund", "fees"]
CLASSES += ["identity", "security", "app", "other"]
MANY = [f"bird {number}" for number in range(40)]
HIGHER = {"name": "grade", "better": "higher"}
METRICS = {
    "faithful": {"kind": "zero_one", "score": {"name": "faithfulness", "better": "higher"}},
    "toxicity": {"kind": "zero_one", "score": {"name": "toxicity", "better": "lower"}},
    "harmful": {"kind": "zero_one"},
    "grade": {"kind": "bounded", "lower": 0, "upper": 5, "score": HIGHER},
}
LEVELS = ["wrong", "poor", "good", "perfect"]


@dataclass(frozen=True)
class Control:
    """Something to press, the keys for the same, the words then, and what is stored.

    Without ``presses`` it is given by keys alone.
    """

    presses: tuple[Press, ...]
    keys: Sequence[str]
    said: str
    stored: object


@dataclass(frozen=True)
class Kind:
    """A form of judgement: how a session of it is made, and its controls.

    ``better`` are the words of the directions that its scales show. ``lines``: what is chosen is
    submitted by a button.
    """

    make: Callable[[Site], str]
    stored: Stored
    controls: Sequence[Control]
    better: Sequence[str] = ()
    lines: bool = False


def button(words: str, keys: str | Sequence[str], stored: object) -> Control:
    """A button that judges."""
    return Control((("", words),), keys, words, stored)


def table(site: Site) -> str:
    """A session on several metrics."""
    items = [
        {"id": f"item-{at}", "payload": PAYLOAD, "surrogates": dict.fromkeys(METRICS, 0.5)}
        for at in range(12)
    ]
    body = {"name": "answers", "metrics": METRICS, "items": items, "sealed": True}
    asked = {"precision": dict.fromkeys(METRICS, 0.5)}
    return _opened(site, body, asked)


def _opened(site: Site, body: dict[str, Any], asked: dict[str, Any]) -> str:
    with site.client() as client:
        made = client.post("/v1/pools", json=body)
        assert made.status_code == 201, made.text
        session = client.post("/v1/sessions", json={"pool_id": made.json()["id"]} | asked)
        assert session.status_code == 201, session.text
    return str(session.json()["id"])


def plain(loss: dict[str, Any] | None = None, **pool: Any) -> Callable[[Site], str]:  # noqa: ANN401
    """Make a session on one loss."""
    return lambda site: session_of(site, [PAYLOAD] * 12, loss, pool=pool)


def named(names: list[str]) -> Callable[[Site], str]:
    """Make a session on named classes."""
    payload = {"text": "The machine has swallowed my card. " * 4, "choices": names}
    return lambda site: session_of(
        site, [payload] * (len(names) + 3), members={"prediction": 0}, pool={}
    )


def pair(judged: str, **opening: Any) -> Callable[[Site], str]:  # noqa: ANN401
    """Make a session on two systems."""
    return lambda site: compared(site, judged, alpha=1e-9, **opening)[0]


def loss_of(event: dict[str, Any]) -> object:
    """Return the loss."""
    return event["loss"]


def losses_of(event: dict[str, Any]) -> object:
    """Return the losses, in the order of the pool."""
    return event["losses"]


def detail_of(*names: str) -> Stored:
    """Return these members of the detail that are there."""
    return lambda event: tuple(event["detail"].get(name) for name in names)


def bounded(name: str, upper: float, *, turned: bool) -> list[Control]:
    """Places of a scale from 0 to a whole number: typed, and pressed where no pixel is missed."""
    controls = []
    for share in (0, 0.2, 0.5, 0.8, 1):
        value = f"{share * upper:g}"
        presses = ((name, share),) if share in {0, 0.5, 1} else ()
        stored = (1 - share) * upper if turned else share * upper
        # Where a keyboard has a comma for the point
        typed = value.replace(".", ",") if share == 0.5 else value
        controls.append(
            Control(presses, [*typed, "Enter"], f"{name}: {value}", pytest.approx(stored))
        )
    return controls


def every_metric(first: int, second: int, third: int, grade: float) -> Control:
    """All metrics of the table, by these values of their scores."""
    words = (
        ("not faithful", "faithful")[first],
        ("no toxicity", "toxicity")[second],
        ("good", "bad")[third],
    )
    presses: list[Press] = [*zip(list(METRICS)[:3], words, strict=True), ("grade", grade / 5)]
    said = f"{words[0]}, {words[1]}, harmful: {words[2]}, grade: {grade:g}"
    keys = [str(first), str(second), str(third), *f"{grade:g}", "Enter"]
    return Control(tuple(presses), keys, said, [1 - first, second, third, 5 - grade])


SIDES = detail_of("loss_left", "loss_right")
PREFERRED = detail_of("preference", "grade")
KINDS: dict[str, Kind] = {
    "right": Kind(plain(), loss_of, [button("Correct", "1", 0), button("Wrong", "2", 1)]),
    "faithful": Kind(
        plain(score={"name": "faithfulness", "better": "higher"}),
        loss_of,
        [button("faithful", "1", 0), button("not faithful", "2", 1)],
    ),
    "harm": Kind(
        plain(score={"name": "harm rate", "better": "lower"}),
        loss_of,
        [button("no harm", "1", 0), button("harm", "2", 1)],
    ),
    "metrics": Kind(
        table,
        losses_of,
        [
            every_metric(1, 0, 0, 5),
            every_metric(0, 1, 1, 0),
            every_metric(1, 1, 0, 2.5),
            Control(
                tuple((name, "Cannot tell") for name in METRICS),
                ["u", "u", "u", "u", "Enter"],
                "faithful: cannot tell, toxicity: cannot tell, harmful: cannot tell,"
                " grade: cannot tell",
                [None] * 4,
            ),
        ],
        ["0 worst", "5 best"],
        lines=True,
    ),
    "loss": Kind(
        plain({"kind": "bounded", "lower": 0, "upper": 5}),
        loss_of,
        bounded("Loss", 5, turned=False),
        ["0 best", "5 worst"],
        lines=True,
    ),
    "grade": Kind(
        plain({"kind": "bounded", "lower": 0, "upper": 5}, score=HIGHER),
        loss_of,
        bounded("grade", 5, turned=True),
        ["0 worst", "5 best"],
        lines=True,
    ),
    "share": Kind(
        plain({"kind": "bounded", "lower": 0, "upper": 1}, score=HIGHER),
        loss_of,
        bounded("grade", 1, turned=True),
        ["0 worst", "1 best"],
        lines=True,
    ),
    "points": Kind(
        plain({"kind": "bounded", "lower": 0, "upper": 100}, score=HIGHER),
        loss_of,
        bounded("grade", 100, turned=True),
        ["0 worst", "100 best"],
        lines=True,
    ),
    "levels": Kind(
        plain(
            {"kind": "bounded", "lower": 0, "upper": 3},
            score=HIGHER,
            levels=[{"name": name, "grade": at} for at, name in enumerate(LEVELS)],
        ),
        loss_of,
        [Control((("", name),), str(at), f"{at} {name}", 3 - at) for at, name in enumerate(LEVELS)],
        ["Higher is better."],
    ),
    "classes": Kind(
        named(CLASSES),
        detail_of("label"),
        [button(name, "1234567890qw"[at], (at,)) for at, name in enumerate(CLASSES)],
    ),
    "many": Kind(
        named(MANY),
        detail_of("label"),
        [
            Control((("option", MANY[at]),), [*MANY[at], "Enter"], MANY[at], (at,))
            for at in (0, 7, 39)
        ],
    ),
    "preference": Kind(
        pair("preference"),
        PREFERRED,
        [
            button("Left is better", ["ArrowLeft"], ("left", None)),
            button("Equally good", ["ArrowDown"], ("tie", None)),
            button("Both are bad", ["x"], ("both_bad", None)),
            button("Right is better", ["ArrowRight"], ("right", None)),
        ],
    ),
    "grades": Kind(
        pair("preference", grades=7),
        PREFERRED,
        [
            Control((("Which is better", share), ("", "Submit")), [*keys, "Enter"], words, stored)
            for share, keys, words, stored in (
                (0, ["Home"], "Left is better by 7", ("left", 7)),
                (0.5, ["ArrowDown"], "Equally good", ("tie", None)),
                (1, ["End"], "Right is better by 7", ("right", 7)),
            )
        ]
        + [button("Both are bad", ["x"], ("both_bad", None))],
        ["left is better", "right is better"],
    ),
    "sides": Kind(
        pair("losses"),
        SIDES,
        [
            button("Left correct, right wrong", ["ArrowLeft"], (0, 1)),
            button("Both correct", ["ArrowUp"], (0, 0)),
            button("Both wrong", ["ArrowDown"], (1, 1)),
            button("Left wrong, right correct", ["ArrowRight"], (1, 0)),
        ],
    ),
    "both": Kind(
        pair("losses", loss={"kind": "bounded", "lower": 0, "upper": 10}),
        SIDES,
        [
            Control(
                (("Loss of the left answer", 1), ("Loss of the right answer", 0.5)),
                ["1", "0", "Enter", "5", "Enter"],
                "Loss of the left answer: 10, Loss of the right answer: 5",
                (10, 5),
            )
        ],
        ["0 best", "10 worst"],
        lines=True,
    ),
}


@dataclass(frozen=True)
class Look:
    """A window, and how what is in it is pressed."""

    way: str
    width: int
    height: int
    zoom: float = 1

    def options(self) -> dict[str, Any]:
        """Return what a context is made with."""
        size = {"width": round(self.width / self.zoom), "height": round(self.height / self.zoom)}
        touch = self.way == "touch"
        # Enlarging makes fewer and larger pixels of a style sheet
        return {
            "viewport": size,
            "device_scale_factor": self.zoom,
            "has_touch": touch,
            "is_mobile": touch,
        }


LOOKS = {
    "phone": Look("touch", 390, 844),
    "landscape": Look("touch", 844, 390),
    "desktop-mouse": Look("mouse", 1440, 900),
    "desktop-keys": Look("key", 1440, 900),
    "low-mouse": Look("mouse", 640, 400),
    "low-keys": Look("key", 640, 400),
    "zoomed-mouse": Look("mouse", 1440, 900, zoom=2),
    "zoomed-keys": Look("key", 1440, 900, zoom=2),
}
ANNOUNCED = """() => {
    const live = document.getElementById("announcer");
    window.announced = [];
    window.listening?.disconnect();
    window.listening = new MutationObserver(() => announced.push(live.textContent));
    window.listening.observe(live, { childList: true });
}"""
"""Keeps what is announced from now on: the next item, once it is there, is announced after it."""
BY_DAY = {("phone", "grade"), ("landscape", "metrics"), ("desktop-keys", "metrics")}
BY_DAY |= {("zoomed-mouse", "classes")}
TABLE = [
    (look, kind) if (look, kind) in BY_DAY else at_night(look, kind)
    for look in LOOKS
    for kind in KINDS
]


@pytest.mark.parametrize(("look", "kind"), TABLE)
def test_what_was_stored_is_what_was_said_on_the_screen(
    server: Site, signed_in: SignedIn, look: str, kind: str
) -> None:
    window, form = LOOKS[look], KINDS[kind]
    session = form.make(server)
    page = signed_in("label", **window.options())
    visit(page, session)
    assert_in_view(page)
    assert barriers(page) == []
    for words in form.better:
        expect(page.locator("#answers")).to_contain_text(words)
    controls = [one for one in form.controls if window.way == "key" or one.presses]
    for control in controls:
        judged = page.locator(ITEM).get_attribute("data-round")
        if form.lines:
            assert_nothing_chosen(page)
        read(page)
        page.evaluate(ANNOUNCED)
        judge(page, control, window.way, submits=form.lines)
        expect(page.locator(f'#item[data-round="{judged}"]')).to_have_count(0)
        assert page.evaluate("announced[0]").startswith(f"{control.said}. ")
        page.locator(ITEM).wait_for()
        assert_in_view(page)
    all_sent(page)
    stored = [form.stored(event) for event in events(server, session, "observation")]
    assert stored == [control.stored for control in controls]


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["mouse", "key"])
def test_an_answer_that_was_not_seen_is_shown_and_not_judged(
    server: Site, signed_in: SignedIn, way: str
) -> None:
    """On a low screen the second of two answers lies below."""
    control = KINDS["sides"].controls[0]
    session = KINDS["sides"].make(server)
    page = signed_in("label", **LOOKS["low-mouse"].options())
    visit(page, session)
    judged = page.locator(f'#item[data-round="{page.locator(ITEM).get_attribute("data-round")}"]')
    judge(page, control, way)
    expect(page.locator("#unseen")).to_be_visible()
    expect(judged.locator(".payload-side").last).to_be_in_viewport()
    judge(page, control, way)
    expect(judged).to_have_count(0)
    all_sent(page)
    assert len(events(server, session, "observation")) == 1


def assert_in_view(page: Page) -> None:
    """The dock takes at most 40 % of the height, and the item is seen above it."""
    seen = page.evaluate("""() => {
        const [item, dock] = ["item", "dock"].map(
            (id) => document.getElementById(id).getBoundingClientRect());
        const shown = Math.min(item.bottom, dock.top) - Math.max(item.top, 0);
        return { dock: dock.height / innerHeight, whole: shown >= item.height - 1,
            item: shown / innerHeight,
            sideways: document.documentElement.scrollWidth - innerWidth };
    }""")
    assert seen["dock"] <= 0.401, seen
    assert seen["whole"] or seen["item"] >= 0.33, seen
    assert seen["sideways"] <= 0, seen


def judge(page: Page, control: Control, way: str, *, submits: bool = False) -> None:
    """Judge by the keys of a control, or by pressing it and what submits what it chooses."""
    if way == "key":
        for key in control.keys:
            page.keyboard.press(key)
    else:
        for press in control.presses + ((("", "Submit"),) if submits else ()):
            pressed(page, press, way)


def read(page: Page) -> None:
    """Bring into view what is judged, part after part, as nobody may judge what was not seen."""
    for part in page.locator("#item .payload-side").all():
        part.evaluate("""async (part) => {
            part.scrollIntoView({ block: "start" });
            await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
        }""")


def assert_nothing_chosen(page: Page) -> None:
    """No slider shows a place, no button is pressed, and assistive tools are told so."""
    for slider in page.locator("#answers input[type=range]").all():
        assert slider.get_attribute("aria-valuetext") == "not chosen"
        assert "chosen" not in (slider.get_attribute("class") or "")
    expect(page.locator("#answers [aria-pressed=true]")).to_have_count(0)
    expect(page.get_by_role("button", name="Submit")).to_be_disabled()


def pressed(page: Page, press: Press, way: str) -> None:
    """Press once where a button or a place of a scale is, by mouse or by finger."""
    line, what = press
    place = page.locator("#answers")
    if line == "option":
        place = place.get_by_role("option", name=str(what), exact=True)
    elif line:
        place = place.get_by_role("group", name=line, exact=True)
    if isinstance(what, str):
        if what == "Submit":
            place = page.locator("#give")
        elif line != "option":
            place = place.locator("button").filter(has=page.get_by_text(what, exact=True))
        touched(place, way)
        return
    slider = place.locator("input[type=range]")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box is not None
    # The middle of a thumb of 24 pixels does not come nearer to the ends
    at = {"x": 12 + what * (box["width"] - 24), "y": box["height"] / 2}
    at["x"] = min(max(at["x"], 1 if what == 0 else 0), box["width"] - (1 if what == 1 else 0))
    touched(slider, way, at)


def touched(place: Locator, way: str, at: dict[str, float] | None = None) -> None:
    """Click or tap."""
    position: Any = at
    if way == "touch":
        place.tap(position=position)
    else:
        place.click(position=position)


@pytest.mark.parametrize("look", ["desktop-mouse", at_night("phone")])
def test_every_place_of_a_scale_is_chosen_by_one_press(
    server: Site, signed_in: SignedIn, look: str
) -> None:
    """Also the ends and the middle, where a thumb that was not shown would stand."""
    session = KINDS["grade"].make(server)
    page = signed_in("label", **LOOKS[look].options())
    for percent in (0, 5, 25, 50, 75, 95, 100):
        visit(page, session)
        assert_nothing_chosen(page)
        pressed(page, ("grade", percent / 100), LOOKS[look].way)
        output = page.locator("#answers output")
        expect(output).not_to_have_text("not chosen")
        exactly = 0 if percent in {0, 50, 100} else 0.1
        assert float(output.inner_text()) == pytest.approx(percent / 20, abs=exactly)
        expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", output.inner_text())
        expect(page.locator("#give")).to_be_enabled()
