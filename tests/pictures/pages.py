"""Every page there is: how it is reached, and what has to be seen before its picture is taken."""

from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Page, expect

from tests.browser.labelling import ITEM
from tests.browser.test_paper import PAPER
from tests.pictures.pools import SAMPLE
from tests.pictures.world import NOBODY, World

PLANNED_MS = 90_000
Reached = Callable[[Page, World], None]


@dataclass(frozen=True)
class Shown:
    """A page: its name, who looks at it (their scopes; None: nobody is signed in), and the way."""

    name: str
    reach: Reached
    scopes: tuple[str, ...] | None = ()
    project: str | None = None
    whole: bool = True
    """In full length; else what fits on the screen, of what is endless or stays in sight."""


def _at(path: str, seen: str = "main h1") -> Reached:
    """The page at an address, which may name sessions as `{running}`."""

    def reach(page: Page, world: World) -> None:
        page.goto(path.format(**world.sessions, shared=world.shared, pool=world.pool))
        expect(page.locator(seen).first).to_be_visible()

    return reach


def _file(page: Page, _: World) -> None:
    page.goto("/sessions/new")
    page.get_by_label("A file", exact=True).check()
    page.set_input_files("#file", SAMPLE)
    expect(page.locator("#checked")).to_contain_text("every row is a valid item")


def _plan(page: Page, world: World) -> None:
    page.goto(f"/sessions/new?pool={world.pool}")
    expect(page.locator("#plan-result")).to_be_visible(timeout=PLANNED_MS)


def _session(name: str, seen: str) -> Reached:
    def reach(page: Page, world: World) -> None:
        page.goto(f"/sessions/{world.sessions[name]}")
        expect(page.locator(seen).first).to_be_visible()

    return reach


def _pressed(path: str, button: str, seen: str) -> Reached:
    """The page at an address, after a button is pressed that opens something on it."""

    def reach(page: Page, world: World) -> None:
        _at(path)(page, world)
        page.locator(button).first.click()
        expect(page.locator(seen).first).to_be_visible()

    return reach


def _silent(page: Page, world: World) -> None:
    _at("/", "tr[data-id] a")(page, world)
    page.context.set_offline(True)
    expect(page.locator("#silence")).not_to_be_empty(timeout=PLANNED_MS)


def _missing(page: Page, _: World) -> None:
    page.goto(f"/sessions/{NOBODY}")


def _printed(path: str, seen: str) -> Reached:
    def reach(page: Page, world: World) -> None:
        _at(path, seen)(page, world)
        page.set_viewport_size(PAPER)
        page.emulate_media(media="print")

    return reach


HEALTH = "#health .verdict"
PAGES = (
    Shown("login", _at("/login", "#key"), None),
    Shown("home", _at("/", "article"), ("label",)),
    Shown("dashboard-empty", _at("/"), project="empty"),
    Shown("dashboard", _at("/", "tr[data-id] a")),
    Shown("new-session", _at("/sessions/new", ".pool-name")),
    Shown("new-session-file", _file, project="empty"),
    Shown("new-session-plan", _plan),
    Shown("label-question", _at("/label/{running}", ITEM), ("label",), whole=False),
    Shown("label-chat", _at("/label/{chat}", ITEM), ("label",), whole=False),
    Shown("label-picture", _at("/label/{picture}", f"{ITEM} img"), ("label",), whole=False),
    Shown("label-comparison", _at("/label/{comparison}", ITEM), ("label",), whole=False),
    Shown("label-formula", _at("/label/{formula}", f"{ITEM} math"), ("label",), whole=False),
    Shown("label-done", _at("/label/{reached}", "#rest"), ("label",), whole=False),
    Shown("session-empty", _session("empty", ".nothing")),
    Shown("session-running", _session("running", HEALTH)),
    Shown("session-reached", _session("reached", HEALTH)),
    Shown("session-closed", _session("closed", HEALTH)),
    Shown("session-archived", _session("archived", HEALTH)),
    Shown("session-comparison", _session("comparison", HEALTH)),
    Shown("session-table", _session("table", "#claims td")),
    Shown("session-best", _session("best", "#ladder li")),
    Shown("report", _at("/v1/sessions/{closed}/report", ".claim")),
    Shown("report-comparison", _at("/v1/sessions/{comparison}/report", ".claim")),
    Shown("report-table", _at("/v1/sessions/{table}/report", "h1")),
    Shown("judged", _at("/sessions/{closed}/judged", "#judgements tbody tr")),
    Shown("judgement", _at("/sessions/{closed}/judged/3", "#history li")),
    Shown("items", _at("/sessions/{table}/items?metric=accuracy", "main li, main tr")),
    Shown(
        "judged-changed",
        _pressed("/sessions/{reached}/judged", "#judgements summary", ".correction"),
        whole=False,
    ),
    Shown("dashboard-tags", _pressed("/", "button.edit", "#tags"), whole=False),
    Shown(
        "label-comment",
        _pressed("/label/{running}", "#comment-open", "#comment"),
        ("label",),
        whole=False,
    ),
    Shown(
        "dialog-why",
        _pressed("/label/{running}", "#unjudgeable", "#why"),
        ("label",),
        whole=False,
    ),
    Shown(
        "dialog-picture",
        _pressed("/label/{picture}", "text=Enlarge", "dialog[open] img"),
        ("label",),
        whole=False,
    ),
    Shown(
        "dialog-precision",
        _pressed("/sessions/{running}", "text=New precision…", "#precision-asked"),
        whole=False,
    ),
    Shown(
        "dialog-close",
        _pressed("/sessions/{running}", "text=Close for good…", "#close-asked"),
        whole=False,
    ),
    Shown(
        "dialog-delete",
        _pressed("/sessions/{archived}", "text=Delete for good…", "#delete-asked"),
        whole=False,
    ),
    Shown(
        "dialog-remove",
        _pressed("/people", '#members button:text-is("Remove")', "[popover]:popover-open"),
        whole=False,
    ),
    Shown("people", _at("/people", "#members li")),
    Shown("webhooks", _at("/webhooks", ".hook")),
    Shown("shared", _at("{shared}", ".claim"), None),
    Shown("reference", _at("/reference"), whole=False),
    Shown("documentation", _at("/docs")),
    Shown("problems", _at("/docs/problems"), None),
    Shown("not-found", _missing),
    Shown("not-allowed", _at("/people"), ("read",)),
    Shown("silent", _silent),
    Shown("printed-session", _printed("/sessions/{closed}", HEALTH)),
    Shown("printed-report", _printed("/v1/sessions/{closed}/report", ".claim")),
    Shown("printed-judged", _printed("/sessions/{closed}/judged", "#judgements tbody tr")),
    # Last: what fails was broken for it
    Shown("failed", _at("/sessions/{broken}")),
)
