"""Dashboard and session page as they are sent: who may see them, and what is written into them."""

import json
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from httpx import AsyncClient

from celeus.web.session.workers import Held, held, persons
from tests.api.sessions import test_judge_check as checks
from tests.api.sessions import test_table as tables
from tests.api.sessions.test_stalled import session_of, waiting
from tests.factories import drawn, judged_all, known_pool, labelled, observed, opened
from tests.keys import ADMIN, bearer, key_in
from tests.tabled import sheet

Visiting = Callable[..., AbstractAsyncContextManager[AsyncClient]]
NAME = '</script><script>alert("1")</script>'


def given(page: str, name: str) -> Any:  # noqa: ANN401 - whatever the page was given
    """The JSON that a page holds under this id."""
    found = re.search(
        rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.DOTALL
    )
    assert found is not None
    return json.loads(found[1])


async def test_the_dashboard_holds_the_first_rows_and_where_more_are(visiting: Visiting) -> None:
    def rows(page: str) -> list[str]:
        return re.findall(r'<tr role="row" id="(ses_\w+)"', page)

    async with visiting(ADMIN) as browser:
        browser.headers.update(bearer())
        pool = await known_pool(browser, 10)
        ids = [await opened(browser, pool, name=f"number {i}") for i in range(30)]
        del browser.headers["Authorization"]
        page = (await browser.get("/")).text
        assert rows(page) == ids[:5:-1]
        assert 'data-here href="/?limit=72">Show more' in page
        assert rows((await browser.get("/?limit=72")).text) == ids[::-1]
        rest = (await browser.get(f"/?after={ids[6]}&q=")).text
        assert rows(rest) == ids[5::-1]
        assert 'href="" hidden>Show more' in rest
        paused = (await browser.get("/?state=paused")).text
        assert rows(paused) == []
        assert "No sessions here" in paused


@pytest.mark.parametrize("query", ["state=unheard", "after=ses_1", "after=%00"])
async def test_what_no_page_asked_for_is_refused_by_a_page(visiting: Visiting, query: str) -> None:
    async with visiting(ADMIN) as browser:
        answer = await browser.get(f"/?{query}")
    assert answer.status_code == 422
    assert answer.headers["Content-Type"].startswith("text/html")


async def test_a_page_holds_a_session_its_plan_and_no_seed(visiting: Visiting) -> None:
    async with visiting(ADMIN) as browser:
        browser.headers.update(bearer())
        pool = await known_pool(browser, 30)
        session = await opened(browser, pool, name=NAME, precision=0.5)
        await labelled(browser, session, pool, 3)
        told = (await browser.get(f"/v1/sessions/{session}")).json()
        del browser.headers["Authorization"]
        answer = await browser.get(f"/sessions/{session}")
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    assert '"seed"' not in answer.text
    assert given(answer.text, "session") == told
    assert f"<td><code>{told['commitment']}</code></td>" in answer.text
    assert '<th scope="row">Precision at opening</th><td><bdi>0.5</bdi></td>' in answer.text
    assert "Invite a labeller" in answer.text


@pytest.mark.parametrize("kind", ["best", "table"])
async def test_a_page_has_the_answer_with_open_draws_at_their_worst(
    visiting: Visiting, kind: str
) -> None:
    async with visiting(ADMIN) as browser:
        browser.headers.update(bearer())
        session, says = await session_of(browser, kind)
        await waiting(browser, session, says, 3)
        del browser.headers["Authorization"]
        page = (await browser.get(f"/sessions/{session}")).text
    begins = "With the 3 labels that wait, and the open draw counted at its worst: "
    assert f'id="provisional">{begins}' in page


async def test_judge_and_people_are_counted_two_by_two(visiting: Visiting) -> None:
    """On the page and in the report: the judge's verdicts below each other, people's beside."""
    items, losses = checks.answers()
    async with visiting(ADMIN) as browser:
        browser.headers.update(bearer())
        pool = await checks.pool_of(browser, items)
        session = await opened(browser, pool, check=checks.CHECK)
        await checks.judged(browser, session, losses, most=30)
        status = (await browser.get(f"/v1/sessions/{session}")).json()
        report = (await browser.get(f"/v1/sessions/{session}/report")).text
        del browser.headers["Authorization"]
        page = (await browser.get(f"/sessions/{session}")).text
        address = f"/sessions/{session}/judged?which=differs"
        assert f'href="{address}"' in page
        differing = (await browser.get(address)).text
    counts = status["table"]["check"]["counts"]
    expected = {
        (count["judge"], count["people"]): (f"{count['expected']:.0f}", str(count["judged"]))
        for count in counts
    }
    order = [(True, True), (True, False), (False, True), (False, False)]
    for text in (page, report):
        found = re.findall(r"<td>(\d+) <small>(\d+) judged</small></td>", text)
        assert found == [expected[cell] for cell in order]
        assert '<th scope="row">Judge: <bdi>pass</bdi></th>' in text
    differ = sum(count["judged"] for count in counts if count["judge"] != count["people"])
    assert differ > 0
    assert f"{differ} judgements" in differing


async def test_another_projects_session_is_not_found(visiting: Visiting, database_url: str) -> None:
    async with visiting(ADMIN) as browser:
        browser.headers.update(bearer())
        session = await opened(browser, await known_pool(browser, 10))
    async with visiting(key_in(database_url, "admin", project="theirs")) as stranger:
        foreign = await stranger.get(f"/sessions/{session}")
        missing = await stranger.get(f"/sessions/ses_{'0' * 32}")
        assert foreign.status_code == missing.status_code == 404
        assert session not in (await stranger.get("/")).text


async def test_judges_see_neither_dashboard_nor_session(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(ADMIN) as browser:
        browser.headers.update(bearer())
        session = await opened(browser, await known_pool(browser, 10))
    async with visiting(key_in(database_url, "label")) as judge:
        for path, status in (("/", 200), (f"/sessions/{session}", 403), ("/people", 403)):
            answer = await judge.get(path)
            assert answer.status_code == status
            for told in ("estimate", "interval", "0.5", "precision", "budget"):
                assert told not in answer.text, path
            assert (f"/label/{session}" in answer.text) is (path == "/")


async def test_how_a_file_was_read_is_for_those_who_manage(
    visiting: Visiting, database_url: str
) -> None:
    content = b"id,question,answer,secret column\n1,Why?,Because,x\n2,How?,Thus,y\n"
    async with visiting() as admin:
        admin.headers.update(bearer())
        roles = {"id": "id", "question": "question", "answer": "answer"}
        query = {"name": "read", "kind": "zero_one", "mapping": json.dumps(roles)}
        form = {"Content-Type": "text/csv"}
        made = await admin.post("/v1/pool-files", params=query, content=content, headers=form)
        assert made.status_code == 201, made.text
        pool = made.json()["pool"]
        asked = {"pool_id": pool["id"]}
        session = (await admin.post("/v1/sessions", json=asked)).json()["id"]
    said = pool["intake"]
    assert "secret column" in {column["name"] for column in said["columns"]}
    for scopes, intake in ((["manage", "read"], said), (["read"], None)):
        async with visiting(key_in(database_url, *scopes)) as browser:
            page = (await browser.get(f"/sessions/{session}")).text
            assert ("How the file was read" in page) is (intake is not None)
            assert ("secret column" in page) is (intake is not None)
    async with visiting(key_in(database_url, "label")) as judge:
        for path in (f"/v1/pools/{pool['id']}", f"/sessions/{session}", "/sessions/new"):
            refused = await judge.get(path)
            assert refused.status_code == 403, path
            assert "secret column" not in refused.text
        for path in (f"/label/{session}", f"/v1/sessions/{session}/task"):
            shown = await judge.get(path)
            assert shown.status_code == 200, path
            assert "secret column" not in shown.text


async def test_a_labellers_start_page_tells_where_there_is_work(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting() as admin, visiting(key_in(database_url, "label")) as judge:
        admin.headers.update(bearer())
        pool = await known_pool(admin, 4)
        active, paused, closed, small = [await opened(admin, pool) for _ in range(4)]
        for session, change in ((paused, {"state": "paused"}), (closed, {"state": "closed"})):
            changed = await admin.patch(f"/v1/sessions/{session}", json=change)
            assert changed.status_code == 200
        # Somebody else holds every item of it
        await admin.post(f"/v1/sessions/{small}/next", json={"worker": "w", "count": 4})
        # Every item is out once, and may be run again
        again = await opened(admin, pool, target="runs", repeats=True, precision=0.4)
        await admin.post(f"/v1/sessions/{again}/next", json={"worker": "w", "count": 4})
        page = (await judge.get("/")).text
        assert f"/label/{active}" in page
        assert f"/label/{again}" in page
        assert page.count("Start labelling") == 2
        assert page.count("Nothing to label at the moment") == 2
        assert page.count("<article") == 4, "what is closed is listed for those who labelled there"
        async with visiting(key_in(database_url, "label", project="other")) as other:
            assert "nothing to label for you" in (await other.get("/")).text


async def test_what_a_program_runs_several_times_is_not_a_persons_to_judge(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting() as admin, visiting(key_in(database_url, "label")) as judge:
        admin.headers.update(bearer())
        pool, runs = await known_pool(admin, 4), {"target": "runs", "precision": 0.7}
        counted, again, once = [
            await opened(admin, pool, **runs, **asked)
            for asked in ({"success": "any of 3"}, {"repeats": True}, {})
        ]
        page = (await judge.get(f"/label/{counted}")).text
        assert "A program judges this session" in page
        assert "up to 3 runs of a system, of which any has to succeed" in page
        assert "<button" not in page.partition("<main")[2]
        assert "js/label.js" not in page, "nobody holds what nobody can judge"
        page = (await judge.get(f"/label/{again}")).text
        assert "each time it is another run" in page
        assert "js/label.js" in page
        assert "another run" not in (await judge.get(f"/label/{once}")).text
        home = (await judge.get("/")).text
        async with visiting(ADMIN) as owner:
            for session, judged in ((counted, False), (again, True), (once, True)):
                led = f'href="/label/{session}"'
                assert (led in home) is judged
                assert (led in (await owner.get(f"/sessions/{session}")).text) is judged


async def test_whoever_is_not_signed_in_is_led_there_and_back(visiting: Visiting) -> None:
    async with visiting() as nobody:
        answer = await nobody.get("/?state=active")
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith("/login?next=/%3Fstate")


async def test_without_scripts_a_session_leads_to_its_report_and_shows_its_claims(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(ADMIN) as browser:
        browser.headers.update(bearer())
        pool = await sheet(browser)
        session = await tables.opened(browser, pool, groups=["topic"])
        await judged_all(browser, session, pool.said, most=8)
        del browser.headers["Authorization"]
        page = (await browser.get(f"/sessions/{session}")).text
        anew = (await browser.get(f"/sessions/{session}?order=doubt")).text
    [without] = re.findall(r"<noscript><p>This page .*?</noscript>", page)
    assert f'href="/v1/sessions/{session}/report"' in without
    # Two metrics, of all items and of three topics
    for shown in (page, anew):
        assert shown.count('class="band"') == 2 * (1 + 3)
        assert f'href="/sessions/{session}/items?column=topic&amp;value=' in shown
    async with visiting(key_in(database_url, "label")) as blind:
        for path in ("surrogate", "judged", "judged/1", "items"):
            assert (await blind.get(f"/sessions/{session}/{path}")).status_code == 403


async def test_items_of_a_claim_stand_with_what_was_judged_of_them(visiting: Visiting) -> None:
    async with visiting(ADMIN) as browser:
        browser.headers.update(bearer())
        pool = await known_pool(browser, 60)
        session = await opened(browser, pool, account="together", name="Exam")
        await labelled(browser, session, pool, 3)
        del browser.headers["Authorization"]
        page = (await browser.get(f"/sessions/{session}/items?judged=true")).text
        assert "3 items." in page
        assert page.count("</bdi>: Correct") + page.count("</bdi>: Wrong") == 3
        assert len(given(page, "draws")["draws"]) == 3
        page = (await browser.get(f"/sessions/{session}/items")).text
        assert "50 items on this page, and there are more." in page
        assert page.count("not judged") == 47
        assert "10 items." in (await browser.get(f"/sessions/{session}/items?after=49")).text
        assert (await browser.get(f"/sessions/{session}/items?column=none")).status_code == 422


async def test_where_items_are_run_again_pages_count_draws(visiting: Visiting) -> None:
    asked = {"target": "runs", "repeats": True, "success": "any of 2", "precision": 0.4}
    async with visiting(ADMIN) as browser:
        browser.headers.update(bearer())
        session = await opened(browser, await known_pool(browser, 2), **asked)
        draws = (await drawn(browser, session, 4))["draws"]
        for draw in draws[:3]:
            answer = await observed(browser, session, draw["round"], loss=0, runs=1)
            assert answer.status_code == 200
        del browser.headers["Authorization"]
        page = (await browser.get(f"/sessions/{session}")).text
        rows = (await browser.get("/")).text
    assert "of at most 49 draws" in page
    assert "1 draw with judges" in page
    assert "error rate where success is any of 2 runs, over all runs" in page
    assert "error rate where success is any of 2 runs</bdi>" in rows


NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def worker(name: str, *rounds: int, seconds: int = 240, last: str | None = None) -> dict[str, Any]:
    ends = (NOW + timedelta(seconds=seconds)).isoformat()
    return {
        "worker": name,
        "labels_minute": 1,
        "labels_hour": 4,
        "last_label_at": last,
        "draws": [{"round": round_, "expires_at": ends} for round_ in rounds],
    }


def session(judged: int, in_interval: int, state: str = "active") -> dict[str, Any]:
    return {"state": state, "rounds": {"judged": judged, "in_interval": in_interval}}


def test_windows_of_a_person_are_added_up() -> None:
    earlier, later = "2026-11-27T11:58:00+00:00", "2026-11-27T11:59:00+00:00"
    windows = [
        worker("Ada 0123456789ab", 3, last=later),
        worker("Ada ba9876543210", 5, seconds=80, last=earlier),
        worker("program"),
    ]
    ada, program = persons(windows, NOW)
    assert (ada.name, ada.minute, ada.hour, ada.last) == ("Ada", 2, 8, later)
    assert (list(ada.rounds), ada.left) == ([3, 5], "80\u202fs")
    assert (program.last, list(program.rounds), program.left) == (None, [], "")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (session(3, 2), "1 label waits for an item drawn earlier, which Ada holds."),
        (session(9, 7), "2 labels wait for an item drawn earlier, which is free for whoever asks"),
    ],
)
def test_labels_wait_for_the_first_round_that_is_not_judged(
    told: dict[str, Any], words: str
) -> None:
    found = held(told, persons([worker("Ada", 3, 4)], NOW))
    assert isinstance(found, Held)
    assert found.words.startswith(words)
    assert list(found.rounds) == ([3, 4] if found.first == 3 else [])


@pytest.mark.parametrize("told", [session(3, 3), session(3, 2, "paused"), session(3, 2, "closed")])
def test_nothing_is_said_where_no_label_waits_or_nobody_judges(told: dict[str, Any]) -> None:
    assert held(told, persons([worker("Ada", 3)], NOW)) is None
