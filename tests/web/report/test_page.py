"""The report over HTTP: one page that needs nothing but itself, for every state of a session."""

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response

from celeus.core.certificate.document import digest_of
from celeus.settings import Settings
from tests.api.contract import client_with
from tests.clients import serving
from tests.factories import (
    KnownPool,
    closed,
    drawn,
    judged,
    known_pool,
    labelled,
    observed,
    opened,
    status_of,
)
from tests.keys import bearer, key_in

VOID = {"meta", "link", "br", "hr", "img", "input", "line", "path", "rect"}
LOADING = {"src", "href", "srcset", "data", "action", "background", "poster", "xlink:href"}
HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>&amp;'


@dataclass
class Page(HTMLParser):
    """The page's elements and its text; anything not closed, or closed twice, is an error."""

    open: list[str] = field(default_factory=list)
    seen: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.pieces.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.pieces).split())


def read(answer: Response) -> Page:
    """The page of an answer, well-formed, alone in the world and without a script."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    page = Page()
    page.feed(answer.text)
    page.close()
    assert page.open == [], "something is left open"
    for tag, attributes in page.seen:
        assert tag not in {"script", "link", "img", "iframe", "object", "form", "base"}, tag
        assert not LOADING & attributes.keys(), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
    ids = [attributes["id"] for _, attributes in page.seen if "id" in attributes]
    assert len(set(ids)) == len(ids)
    for _, attributes in page.seen:
        for name in (attributes.get("aria-labelledby") or "").split():
            assert name in ids
    assert not re.search(r"url\(\s*['\"]?(?!#)|@import", answer.text)
    assert "nan" not in page.text.lower().split()
    return page


async def report(client: AsyncClient, session: str) -> Page:
    return read(await client.get(f"/v1/sessions/{session}/report"))


async def digest(client: AsyncClient, session: str) -> str:
    answer = await client.get(f"/v1/sessions/{session}/certificate")
    assert answer.status_code == 200, answer.text
    return digest_of(answer.content)


async def test_the_browser_is_told_to_load_and_run_nothing(client: AsyncClient) -> None:
    session = await opened(client, await known_pool(client, 40))
    answer = await client.get(f"/v1/sessions/{session}/report")
    read(answer)
    [style] = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = answer.headers["Content-Security-Policy"]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    )
    assert policy.removesuffix("; frame-ancestors 'none'").replace("'", "&#39;") in answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_it_says_how_the_file_was_read_and_what_was_hidden(client: AsyncClient) -> None:
    rows = "".join(f"Why {at}?,So {at}.,{at % 2},gpt\n" for at in range(40))
    body = f"question,answer,grade,{HOSTILE.replace(',', '').replace(chr(34), '')}\n{rows}"
    query = {
        "name": "read",
        "kind": "zero_one",
        "mapping": json.dumps({"question": "question", "answer": "answer", "grade": "score"}),
        "better": "lower",
    }
    headers = {"Content-Type": "text/csv"}
    made = await client.post("/v1/pool-files", params=query, content=body, headers=headers)
    assert made.status_code == 201, made.text
    asked = {"pool_id": made.json()["pool"]["id"], "precision": 0.2}
    session = (await client.post("/v1/sessions", json=asked)).json()["id"]
    page = await report(client, session)
    assert "40 rows of csv (separated by comma): 40 items. better: lower." in page.text
    assert "gradescore given" in page.text
    assert "Hidden from judges<script>alert(1)</script>" in page.text


async def test_before_the_first_label_nothing_is_claimed(client: AsyncClient) -> None:
    session = await opened(client, await known_pool(client, 40), precision=0.2)
    page = await report(client, session)
    assert (
        "Nothing is judged yet: all we know is that the error rate on these 40 items lies"
        " between 0 and 100 %." in page.text
    )
    assert "Interim" in page.text
    assert "No label is in the interval." in page.text
    assert await digest(client, session) in page.text


async def test_a_manager_reads_the_claim_and_an_auditor_finds_the_certificate(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool, precision=0.2, alpha=0.01)
    status = (await labelled(client, session, pool, 300))["session"]
    assert status["stop_reason"] == "target_reached"
    interim = await report(client, session)
    await closed(client, session)
    final = await report(client, session)
    claim = re.search(
        r"We are 99 % sure that the error rate on these 300 items is between (\d+(?:\.\d+)?) and"
        r" (\d+(?:\.\d+)?) %, however often anybody looked; (\d+) of 300 items were judged\.",
        final.text,
    )
    assert claim is not None
    low, high, count = float(claim[1]) / 100, float(claim[2]) / 100, int(claim[3])
    noise, step = 1e-12, 10.0 ** -(2 + len(claim[1].partition(".")[2]))
    assert low - noise <= status["lower"] < low + step, "rounded outwards"
    assert high - step - noise < status["upper"] <= high + noise
    assert count == status["round"]
    assert f"that width was reached with label {count}" in final.text
    assert "Interim: the session is open" in interim.text
    assert "Final: the session is closed" in final.text
    certificate = await digest(client, session)
    assert certificate in final.text
    assert certificate not in interim.text
    key = (await client.get("/v1/certificates/key")).json()["public_key"]
    for told in (session, pool.id, key, status["commitment"], "celeus verify", "celeus-3"):
        assert told in final.text
    left = 300 - count
    assert f"{left} of 300 items ({left / 3:.1f} %) were never judged" in final.text
    assert "the claim is about the answers that came, one to each item" in final.text


async def test_an_interim_report_names_the_certificate_that_can_be_had(
    client: AsyncClient,
) -> None:
    """An issued one is not kept, and is another once the pool has one session more."""
    pool = await known_pool(client, 40)
    session = await opened(client, pool)
    await labelled(client, session, pool, 4)
    issued = await client.post(f"/v1/sessions/{session}/certificate")
    await opened(client, pool)
    page = await report(client, session)
    assert await digest(client, session) in page.text
    assert digest_of(issued.content) not in page.text


async def test_what_nobody_could_judge_is_not_called_judged(client: AsyncClient) -> None:
    session = await opened(client, await known_pool(client, 10))
    for draw in (await drawn(client, session, 10))["draws"]:
        body = {"round": draw["round"], "unjudgeable": "torn", "worker": "ada"}
        answer = await client.post(f"/v1/sessions/{session}/observe", json=body)
        assert answer.status_code == 200
    page = await report(client, session)
    assert "; 0 of 10 items were judged" in page.text
    assert "Items in the interval that could not be judged: 10." in page.text


async def test_every_count_names_drawn_judged_or_in_the_interval(client: AsyncClient) -> None:
    pool = await known_pool(client, 50)
    session = await opened(client, pool)
    await labelled(client, session, pool, 4)
    held = (await drawn(client, session, 10))["draws"]
    for draw in held[1:8]:
        status = (await judged(client, session, pool, draw))["session"]
    assert status["rounds"] == {
        "drawn": 14,
        "judged": 11,
        "in_interval": 4,
        "pending": 3,
        "waiting": 7,
    }
    await closed(client, session)
    page = await report(client, session)
    assert "11 of 50 items were judged; 4 of these are in the interval" in page.text
    assert "39 of 50 items (78.0 %) were never judged" in page.text
    assert "After 4 labels in the interval the error rate lies" in page.text
    assert "14 drawn, 11 judged, 4 in the interval" in page.text
    certificate = (await client.get(f"/v1/sessions/{session}/certificate")).json()
    assert certificate["claim"]["rounds"] == status["rounds"]


async def test_labels_behind_an_open_draw_are_judged_before_they_are_in_the_interval(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client, 50)
    session = await opened(client, pool)
    for draw in (await drawn(client, session, 3))["draws"][1:]:
        await judged(client, session, pool, draw)
    page = await report(client, session)
    assert "No label is in the interval yet: all we know is" in page.text
    assert "2 of 50 items were judged; none of these is in the interval" in page.text
    assert "Nothing is judged yet" not in page.text


async def test_the_table_behind_the_chart_holds_its_last_point(client: AsyncClient) -> None:
    pool = await known_pool(client, 120)
    session = await opened(client, pool)
    status = (await labelled(client, session, pool, 75))["session"]
    answer = await client.get(f"/v1/sessions/{session}/report")
    read(answer)
    rows = re.findall(r'<tr><th scope="row">(\d+)</th><td>([\d.]+)', answer.text)
    assert [int(rows[-1][0]), len(rows) <= 25] == [status["round"], True]
    [band] = re.findall(r'class="band" d="M([^"]+)Z"', answer.text)
    assert band.count("L") == 2 * (status["round"] + 1) - 1


async def test_questions_are_told_with_their_answers(client: AsyncClient) -> None:
    pool = await known_pool(client)
    asked = [{"side": "at_most", "threshold": 0.9}, {"side": "at_least", "threshold": 0.901}]
    session = await opened(client, pool, questions=asked)
    page = await report(client, session)
    assert "Is the error rate at most 90 %?Undecided so far" in page.text
    assert "Is the error rate at least 90.1 %?Undecided so far" in page.text
    await labelled(client, session, pool, 60)
    page = await report(client, session)
    assert re.search(r"Is the error rate at most 90 %\?Yes, since label \d+", page.text)
    assert re.search(r"Is the error rate at least 90\.1 %\?No, since label \d+", page.text)


async def test_what_could_not_be_judged_and_what_was_corrected_is_told(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool, precision=0.1)
    for _ in range(3):
        draw = (await drawn(client, session))["draws"][0]
        body = {"round": draw["round"], "unjudgeable": HOSTILE, "worker": HOSTILE}
        await client.post(f"/v1/sessions/{session}/observe", json=body)
    await labelled(client, session, pool, 20)
    path = f"/v1/sessions/{session}"
    mended = {"round": 1, "loss": 0, "author": HOSTILE, "reason": HOSTILE}
    assert (await client.post(f"{path}/amendments", json=mended)).status_code == 200
    await client.patch(path, json={"precision": 0.3, "budget": 200})
    page = await report(client, session)
    assert "could not be judged: 2. Each counts" in page.text
    assert "Losses corrected since they were given: 1." in page.text
    assert "Losses were corrected: the claim holds for this version" in page.text
    assert "Changes on the way1, of precision, budget or stop" in page.text
    assert "10 points, now 30 points" in page.text
    assert "300 draws, now 200" in page.text


async def test_a_pool_judged_to_the_end_is_known_exactly(client: AsyncClient) -> None:
    pool = await known_pool(client, 30)
    session = await opened(client, pool, alpha=1e-9)
    await labelled(client, session, pool, 30)
    page = await report(client, session)
    known = f"is exactly {100 * pool.risk:.2f} %."
    assert f"Every one of the 30 items was judged: the error rate on these 30 items {known}" in (
        page.text
    )
    assert "none: every item was drawn" in page.text


async def test_a_claim_about_a_population_names_what_it_rests_on(client: AsyncClient) -> None:
    pool = await known_pool(client, 600)
    sampled = await opened(client, pool, target="population", precision=0.3)
    vouched = await opened(
        client,
        pool,
        target="population",
        population_bound="margin",
        margin=0.02,
        margin_assumption=HOSTILE,
        alpha2=0,
    )
    for session in (sampled, vouched):
        await labelled(client, session, pool, 40)
    page = await report(client, sampled)
    assert "on all items of the kind these 600 were taken from" in page.text
    assert "The pool is an iid sample of the population the claim speaks of" in page.text
    page = await report(client, vouched)
    assert "vouches that the two differ by at most 2 points" in page.text
    assert f"The reason given: {HOSTILE}" in page.text


@pytest.mark.parametrize(
    ("loss", "quantity"),
    [
        ({"kind": "bounded", "lower": -2.5, "upper": 7.5}, "mean loss"),
        ({"kind": "bounded", "lower": 0.0, "upper": 1e-9}, "mean loss"),
        ({"kind": "bounded", "lower": 1e9, "upper": 1e9 + 8}, "mean loss"),
        ({"kind": "bounded", "lower": -1e14, "upper": 1e14}, "mean loss"),
        ({"kind": "cross_entropy", "upper": 5.0}, "mean cross-entropy loss"),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_losses_of_any_scale_are_told_in_their_own_figures(
    loss: dict[str, Any], quantity: str, client: AsyncClient
) -> None:
    low, high = loss.get("lower", 0.0), loss["upper"]
    items = [{"id": str(number), "surrogate": (low + high) / 2} for number in range(50)]
    form = {"name": HOSTILE, "loss": loss, "items": items, "sealed": True}
    made = (await client.post("/v1/pools", json=form)).json()
    session = await opened(client, KnownPool(made["id"], []))
    told = await report(client, session)
    assert f"the {quantity} on these 50 items lies between" in told.text
    for _ in range(12):
        draw = (await drawn(client, session))["draws"][0]
        share = draw["item"]["index"] % 3 / 2
        body = {"round": draw["round"], "loss": low + share * (high - low), "worker": "ada"}
        answer = await client.post(f"/v1/sessions/{session}/observe", json=body)
        assert answer.status_code == 200, answer.text
    page = await report(client, session)
    claim = re.search(
        rf"the {quantity} on these 50 items is between (-?[\d.]+) and (-?[\d.]+), how",
        page.text.replace("\N{MINUS SIGN}", "-"),
    )
    assert claim is not None, page.text
    status = answer.json()["session"]
    slack = 1e-13 * max(abs(low), abs(high))
    assert float(claim[1]) <= status["lower"] + slack
    assert float(claim[2]) >= status["upper"] - slack
    assert float(claim[2]) - float(claim[1]) <= 1.3 * status["width"] + slack
    assert f"Report on {HOSTILE}" in page.text


async def test_a_hostile_name_stays_text(client: AsyncClient) -> None:
    form = {
        "name": HOSTILE,
        "loss": {"kind": "zero_one"},
        "items": [{"id": "a", "surrogate": 0.5}, {"id": "b", "surrogate": 0.5}],
        "sealed": True,
    }
    made = (await client.post("/v1/pools", json=form)).json()
    answer = await client.get(
        f"/v1/sessions/{await opened(client, KnownPool(made['id'], []))}/report"
    )
    assert HOSTILE in read(answer).text
    assert HOSTILE not in answer.text


async def test_a_session_with_a_name_is_called_by_it(client: AsyncClient) -> None:
    pool = await known_pool(client, 40)
    page = await report(client, await opened(client, pool, name=f"Spring {HOSTILE}"))
    assert f"Report on Spring {HOSTILE}" in page.text
    assert "known, 40 items" in page.text


async def test_without_a_key_to_sign_the_report_says_so(
    client: AsyncClient, settings: Settings
) -> None:
    session = await opened(client, await known_pool(client, 40))
    async with serving(settings, signing_key_file=None) as keyless:
        page = await report(keyless, session)
    assert "The service has no key to sign certificates with." in page.text
    assert "--public-key" not in page.text


async def test_a_hundred_thousand_rounds_make_a_small_page(
    client: AsyncClient, database_url: str
) -> None:
    pool = await known_pool(client, 300)
    session = await opened(client, pool, precision=0.01)
    await labelled(client, session, pool, 3)
    status = (await client.get(f"/v1/sessions/{session}")).json()
    many = 100_000
    status |= {"round": many, "sequence": 2 * many, "lower": 0.4, "upper": 0.41, "width": 0.01}
    status["rounds"] |= {"drawn": many, "judged": many, "in_interval": many}
    with psycopg.connect(database_url) as db:
        row = db.execute("SELECT session_id, project_id FROM sessions").fetchone()
        db.execute("UPDATE sessions SET status = %s", [json.dumps(status)])
        db.execute(
            "INSERT INTO trajectory (session_id, project_id, round, sequence, estimate,"
            " lower, upper) SELECT %s, %s, n, 2 * n, 0.405, 0.405 - 0.4 / sqrt(n), 0.405 + 0.4"
            " / sqrt(n) FROM generate_series(4, %s) AS n",
            [*(row or ()), many],
        )
        db.execute(
            "INSERT INTO events (session_id, sequence, project_id, kind, round, loss, at) SELECT"
            " %s, 2 * n, %s, 2, n, 0, now() FROM generate_series(4, %s) AS n",
            [*(row or ()), many],
        )
    answer = await client.get(f"/v1/sessions/{session}/report")
    page = read(answer)
    assert "100 000 of" in page.text
    assert "The report of a long open session names no certificate" in page.text
    assert len(answer.content) < 60_000


async def test_reports_are_for_keys_that_read_in_their_own_project(
    client: AsyncClient, database_url: str, app: FastAPI
) -> None:
    session = await opened(client, await known_pool(client, 40))
    path = f"/v1/sessions/{session}/report"
    blind = await client.get(path, headers=bearer(key_in(database_url, "label")))
    assert (blind.status_code, blind.json()["code"]) == (403, "scope_missing")
    other = bearer(key_in(database_url, "admin", project="other"))
    foreign = await client.get(path, headers=other)
    assert (foreign.status_code, foreign.json()["code"]) == (404, "session_not_found")
    async with client_with(app, None) as nobody:
        assert (await nobody.get(path)).status_code == 401


async def test_the_report_speaks_the_score_that_the_pool_declares(client: AsyncClient) -> None:
    items = [{"id": str(number), "surrogate": 0.5} for number in range(60)]
    form = {"name": "p", "loss": {"kind": "zero_one"}, "items": items, "sealed": True}
    score = {"name": '<b>"acc"</b> {x}', "better": "higher"}
    made = (await client.post("/v1/pools", json=form | {"score": score})).json()
    pool = KnownPool(made["id"], [int(number % 4 == 0) for number in range(60)])
    asked = [{"side": "at_most", "threshold": 0.9}]
    session = await opened(client, pool, questions=asked, stop_when_decided=False)
    status = (await labelled(client, session, pool, 30))["session"]
    told = status["score"]
    page = await report(client, session)
    assert status["sentence"] in page.text.replace(" %", "\N{NARROW NO-BREAK SPACE}%")
    assert (told["lower"], told["upper"]) == (
        pytest.approx(1.0 - status["upper"]),
        pytest.approx(1.0 - status["lower"]),
    )
    assert re.search(r'the <b>"acc"</b> \{x\} on these 60 items is between [\d.]+ and', page.text)
    assert 'Is the <b>"acc"</b> {x} at least 10 %?' in page.text
    assert "(higher is better)" in page.text


async def test_draws_of_several_runs_are_said_to_be_that(client: AsyncClient) -> None:
    asked: dict[str, Any] = {"target": "runs", "repeats": True, "success": "all of 3"}
    asked["questions"] = [{"side": "at_most", "threshold": 0.5}]
    session = await opened(client, await known_pool(client, 4), precision=0.4, **asked)
    draws = (await drawn(client, session, 7))["draws"]
    waiting: list[dict[str, Any]] = [{"loss": 0, "runs": 3}] * 4 + [
        {"loss": 1, "runs": 2},
        {"unjudgeable": "crashed", "runs": 1},
    ]
    for draw, said in zip(draws[1:], waiting, strict=True):
        assert (await observed(client, session, draw["round"], **said)).status_code == 200
    status = await status_of(client, session)
    assert status["runs"] == 0, "none is in the interval"
    page = await report(client, session)
    quantity = "error rate where success is all of 3 runs"
    assert f"the {quantity}, over all runs on these 4 items, lies between 0 and 100" in page.text
    assert "6 draws from 4 items were judged; none of these is in the interval" in page.text
    assert f"Draws judged6of at most {status['budget']}, on 4 items; 0 in the interval" in page.text
    assert (await observed(client, session, 1, loss=1, runs=1)).status_code == 200
    status = await status_of(client, session)
    assert status["runs"] == 15
    assert status["sentence"].startswith(f"{quantity}, over all runs, ")
    assert status["sentence"].endswith(", based on 6 labels of 15 runs.")
    text = (await report(client, session)).text
    assert f"Is the {quantity} at most 50 %?" in text
    assert "of a draw, 0 (a success: all of 3 runs) or 1" in text
