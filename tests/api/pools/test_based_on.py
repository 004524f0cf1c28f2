"""A new version on the same pool: what a judged session leaves to it, over the wire."""

import json
import threading
from typing import Any

import numpy as np
import psycopg
import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from sqlalchemy import event

from celeus.core.certificate.report import Report
from celeus.core.certificate.verify import verify
from celeus.operations.certificates.audit import audit
from celeus.operations.pools import earlier
from celeus.store.database import Database
from tests.api.contract import client_with
from tests.factories import closed, drawn, evidence_of
from tests.keys import key_in
from tests.lineups import field as lineup
from tests.nightly import by_day
from tests.versions import NEW, OLD, ZERO_ONE, Versions, judge, judged, made

TWO = {"a": OLD, "b": NEW, "normalisation": "exact"}


def based(session: str, seen: str = "no", **more: object) -> dict[str, Any]:
    return {"session": session, "labels_seen": seen} | more


async def verified(client: AsyncClient, session: str, pool_id: str) -> Report:
    certificate = await client.get(f"/v1/sessions/{session}/certificate")
    report = verify(certificate.content, await evidence_of(client, pool_id))
    assert report.valid, report.line
    return report


async def test_true_labels_make_judged_items_known(client: AsyncClient) -> None:
    versions = Versions.of()
    source, was = await judged(client, versions, 25)
    pool = await made(client, items=versions.rows(versions.new), based_on=based(source))
    assert pool["known"] == {
        "items": 25,
        "reasons": {f"true label ({source})": 25},
        "bounded": 0,
        "bounds": {},
    }
    columns = (await evidence_of(client, pool["id"])).columns
    at = [int(one[1:]) for one in was]
    new = np.array(versions.losses(versions.new))
    assert (columns["loss_lower"][at] == new[at]).all()
    assert (columns["loss_upper"][at] == new[at]).all()
    assert (columns["known"] > 0).sum() == 25
    opened = await client.post("/v1/sessions", json={"pool_id": pool["id"]})
    session = opened.json()["id"]
    asked = await judge(client, session, lambda at: versions.said(versions.new, at))
    assert not {f"q{at}" for at in asked} & was.keys()
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert status["lower"] == status["upper"] == pytest.approx(new.mean())
    await closed(client, session)
    report = await verified(client, session, pool["id"])
    assert report.claim is not None
    told = {one["code"]: one["text"] for one in report.claim["assumptions"]}
    carried = ["known_losses", "earlier_judgements", "labels_seen"]
    assert list(told) == ["these_answers", *carried, "signed_losses"]
    assert f"those of {source}, whose certificate has the digest" in told["earlier_judgements"]
    assert told["labels_seen"].endswith("They did not.")
    page = await client.get(f"/v1/sessions/{session}/report")
    assert all(text.split(":")[0] in page.text for text in told.values())


async def test_a_run_of_a_system_is_known_of_no_other_run(client: AsyncClient) -> None:
    versions = Versions.of()
    for opening in ({"repeats": True, "budget": 40}, {"precision": 0.5}):
        source, _ = await judged(client, versions, 25, target="runs", **opening)
        body = {"name": "next", "loss": ZERO_ONE, "sealed": True, "based_on": based(source)}
        refused = await client.post("/v1/pools", json=body | {"items": versions.rows(versions.new)})
        assert refused.status_code == 422, refused.text
        assert "is chance, and is not known of another" in refused.json()["detail"]


async def test_a_pool_tells_what_it_is_based_on(client: AsyncClient) -> None:
    versions = Versions.of(20)
    source, _ = await judged(client, versions, 5)
    pool = await made(client, items=versions.rows(versions.new), based_on=based(source))
    old = (await client.get(f"/v1/sessions/{source}")).json()
    certificate = await client.get(f"/v1/sessions/{source}/certificate")
    assert pool["based_on"] == {
        "session": source,
        "pool": (await client.get(f"/v1/pools/{old['pool_id']}")).json()["digest"],
        "ledger": old["ledger_head"],
        "certificate": verify(certificate.content).digest,
        "labels_seen": "no",
        "answer": None,
        "system": None,
    }
    other = await made(client, items=versions.rows(versions.new))
    assert other["based_on"] is None


async def test_unchanged_answers_are_known_and_other_old_losses_are_a_surrogate(
    client: AsyncClient,
) -> None:
    versions = Versions.of(answers="texts")
    source, was = await judged(client, versions, 30)
    on = based(source, "unknown", answer="answer")
    pool = await made(client, items=versions.rows(versions.new), based_on=on)
    same = was.keys() & versions.unchanged
    assert 0 < len(same) < 30
    assert pool["known"]["reasons"] == {f"unchanged answer ({source})": len(same)}
    columns = (await evidence_of(client, pool["id"])).columns
    assert {f"q{at}" for at in np.flatnonzero(columns["known"])} == same
    assert {f"q{at}" for at in np.flatnonzero(columns["round"])} == set(was)
    for name, loss in was.items():
        assert columns["surrogate.0"][int(name[1:])] == loss
    others = [at for at in range(60) if f"q{at}" not in was]
    assert columns["surrogate.0"][others] == pytest.approx(np.mean(list(was.values())))


async def test_a_surrogate_of_the_new_version_stays_beside_the_old_loss(
    client: AsyncClient,
) -> None:
    versions = Versions.of(answers="texts")
    source, was = await judged(client, versions, 30)
    rows = [row | {"surrogate": 0.25} for row in versions.rows(versions.new)]
    pool = await made(client, items=rows, based_on=based(source, answer="answer"))
    columns = (await evidence_of(client, pool["id"])).columns
    assert (columns["surrogate.0"] == 0.25).all()
    at = int(next(iter(was))[1:])
    assert columns["surrogate.1"][at] == was[f"q{at}"]


async def test_other_questions_and_new_items_are_judged_anew(client: AsyncClient) -> None:
    versions = Versions.of(30)
    source, _ = await judged(client, versions, 30)
    rows = versions.rows(versions.new)
    rows[3]["payload"]["question"] = "another one"
    rows[4]["id"] = "q1000"
    pool = await made(client, items=rows, based_on=based(source))
    assert pool["known"]["items"] == 28
    columns = (await evidence_of(client, pool["id"])).columns
    assert np.flatnonzero(columns["known"] == 0).tolist() == [3, 4]
    assert np.flatnonzero(columns["label"] == -1).tolist() == [3, 4]


async def test_the_ledgers_end_counts(client: AsyncClient) -> None:
    """A corrected judgement is the corrected one, and what nobody could judge is not known."""
    versions = Versions.of(30, answers="texts")
    source, was = await judged(client, versions, 20, close=False)
    names = list(was)
    said = {"reason": "a slip", "author": "bob"}
    for round_, body in ((1, {"loss": 1.0 - was[names[0]]}), (2, {"unjudgeable": "blurred"})):
        path = f"/v1/sessions/{source}/amendments"
        told = await client.post(path, json={"round": round_} | body | said)
        assert told.status_code == 200, told.text
    draw = (await drawn(client, source))["draws"][0]
    skipped = {"round": draw["round"], "unjudgeable": "torn", "worker": "ada"}
    await client.post(f"/v1/sessions/{source}/observe", json=skipped)
    await drawn(client, source)
    await closed(client, source)
    pool = await made(
        client, items=versions.rows(versions.old), based_on=based(source, answer="answer")
    )
    assert pool["known"]["items"] == 19
    columns = (await evidence_of(client, pool["id"])).columns
    first, second = (int(one[1:]) for one in names[:2])
    assert columns["loss_lower"][first] == columns["loss_upper"][first] == 1.0 - was[names[0]]
    assert columns["known"][[second, draw["item"]["index"]]].tolist() == [0, 0]


@pytest.mark.parametrize("answers", ["classes", "texts"])
async def test_the_old_version_is_the_first_of_two(client: AsyncClient, answers: Any) -> None:  # noqa: ANN401
    versions = Versions.of(answers=answers)
    source, was = await judged(client, versions, 25)
    more = {"answer": "answer"} if answers == "texts" else {}
    pool = await made(
        client,
        items=versions.pairs(),
        systems=TWO,
        based_on=based(source, "yes", **more),
    )
    same = "same answer" if answers == "classes" else "same answer (exact)"
    expected = {same: len(versions.unchanged)}
    if answers == "classes":
        expected[f"true label ({source})"] = len(was.keys() - versions.unchanged)
    assert pool["known"]["reasons"] == expected
    (item,) = (await client.get(f"/v1/pools/{pool['id']}/items?limit=1")).json()["data"]
    assert item["payload"] == {"question": "question 0"}
    if answers == "texts":
        assert item["a"]["answer"] == f"option {versions.old[0]}"
    opened = await client.post(
        "/v1/sessions", json={"pool_id": pool["id"], "decide": {"margin": 0.05}}
    )
    session = opened.json()["id"]
    old, new = versions.losses(versions.old), versions.losses(versions.new)

    def said(at: int) -> dict[str, Any]:
        if answers == "classes":
            return {"label": versions.truth[at]}
        return {"losses": {"a": old[at], "b": new[at]}}

    await judge(client, session, said)
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert status["lower"] <= np.mean(np.subtract(old, new)) <= status["upper"]
    await closed(client, session)
    report = await verified(client, session, pool["id"])
    assert report.claim is not None
    told = {one["code"]: one["text"] for one in report.claim["assumptions"]}
    assert "They did: " in told["labels_seen"]


async def test_labels_go_on_from_version_to_version(client: AsyncClient) -> None:
    """A third version knows what was judged of the first and of the second one."""
    versions = Versions.of()
    first, was = await judged(client, versions, 20)
    pool = await made(client, items=versions.rows(versions.new), based_on=based(first))
    session = (await client.post("/v1/sessions", json={"pool_id": pool["id"]})).json()["id"]
    second = await judge(client, session, lambda at: versions.said(versions.new, at), 10)
    await closed(client, session)
    third = [(one + 1) % 4 for one in versions.new]
    pool = await made(client, items=versions.rows(third), based_on=based(session))
    assert pool["known"]["items"] == 30
    columns = (await evidence_of(client, pool["id"])).columns
    losses = np.array(versions.losses(third))
    known = np.flatnonzero(columns["known"])
    assert {f"q{at}" for at in known} == was.keys() | {f"q{at}" for at in second}
    assert (columns["loss_lower"][known] == losses[known]).all()


async def released(
    client: AsyncClient, versions: Versions, rounds: int, **on: str
) -> tuple[str, list[int]]:
    """A closed comparison of both versions, judged by left and right; the items judged."""
    pool = await made(client, items=versions.pairs(), systems=TWO, based_on=based(**on))
    session = (await client.post("/v1/sessions", json={"pool_id": pool["id"]})).json()["id"]
    old, new = versions.losses(versions.old), versions.losses(versions.new)
    items = []
    for _ in range(rounds):
        (draw,) = (await drawn(client, session))["draws"]
        at = draw["item"]["index"]
        left = (await client.get(f"/v1/sessions/{session}/rounds/{draw['round']}")).json()["left"]
        both = {"a": (old[at], new[at]), "b": (new[at], old[at])}[left]
        sides = {"losses": dict(zip(("left", "right"), both, strict=True))}
        said = {"label": versions.truth[at]} if versions.answers == "classes" else sides
        body = {"round": draw["round"], "worker": "ada"} | said
        assert (await client.post(f"/v1/sessions/{session}/observe", json=body)).is_success
        items.append(at)
    await closed(client, session)
    return str(session), items


@pytest.mark.parametrize("answers", ["classes", "texts"])
async def test_releases_go_on_from_one_comparison_to_the_next(
    client: AsyncClient,
    database: Database,
    answers: Any,  # noqa: ANN401
) -> None:
    """The version that was the new one of two is the old one of the next two."""
    versions = Versions.of(answers=answers)
    more = {"answer": "answer"} if answers == "texts" else {}
    first, was = await judged(client, versions, 10)
    session, second = await released(client, versions, 6, session=first, **more)
    given = [(one + 1) % 4 for one in versions.new]
    # One item is answered as before.
    given[second[0]] = versions.new[second[0]]
    third = Versions(versions.truth, versions.new, given, answers)
    on = based(session, system=NEW, **more)
    labelled = 16 if answers == "classes" else 1
    alone = await made(client, items=third.rows(given), based_on=on)
    assert (alone["based_on"]["system"], alone["known"]["items"]) == ("b", labelled)
    columns = (await evidence_of(client, alone["id"])).columns
    known, new, losses = (
        np.flatnonzero(columns["known"]),
        third.losses(third.old),
        third.losses(given),
    )
    assert (columns["loss_lower"][known] == np.array(losses)[known]).all()
    assert np.flatnonzero(columns["round"]).tolist() == sorted(second)
    if answers == "texts":
        assert columns["surrogate.0"][second].tolist() == [new[at] for at in second]
    pair = await made(client, items=third.pairs(), systems=TWO | {"a": NEW, "b": "v3"}, based_on=on)
    (item,) = (await client.get(f"/v1/pools/{pair['id']}/items?limit=1")).json()["data"]
    assert item["payload"] == {"question": "question 0"}
    columns = (await evidence_of(client, pair["id"])).columns
    known = np.flatnonzero(columns["known"])
    assert known.size == labelled
    assert (columns["loss_lower"][known] == np.subtract(new, losses)[known]).all()
    assert was
    assert (await audit(database)).findings == []


async def test_an_upload_in_parts_is_the_same_pool(client: AsyncClient) -> None:
    versions = Versions.of()
    source, _ = await judged(client, versions, 25)
    rows, digests = versions.rows(versions.new), set()
    for parts in ([rows], [rows[:20], rows[20:]]):
        body = {"name": "exam", "loss": ZERO_ONE, "based_on": based(source)}
        path = f"/v1/pools/{(await client.post('/v1/pools', json=body)).json()['id']}"
        for part in parts:
            answer = await client.post(
                f"{path}/items",
                content="\n".join(map(json.dumps, part)),
                headers={"Content-Type": "application/x-ndjson"},
            )
            assert answer.status_code == 200, answer.text
        digests.add((await client.post(f"{path}/seal")).json()["digest"])
    assert len(digests) == 1


async def test_of_two_rows_of_one_id_the_good_one_gets_what_is_its_own(client: AsyncClient) -> None:
    versions = Versions.of(20)
    source, _ = await judged(client, versions, 20)
    pool = await made(client, sealed=False, based_on=based(source))
    first, *others = versions.rows(versions.new)
    bad, another = first | {"prediction": "?"}, first | {"payload": {"question": "another"}}
    lines = "\n".join(json.dumps(row) for row in (bad, another, *others))
    kind = {"Content-Type": "application/x-ndjson"}
    path = f"/v1/pools/{pool['id']}"
    added = await client.post(f"{path}/items?on_error=skip", content=lines, headers=kind)
    assert added.status_code == 200, added.text
    assert (await client.post(f"{path}/seal")).json()["items"] == 20
    columns = (await evidence_of(client, pool["id"])).columns
    assert (columns["round"][0], columns["label"][0], columns["known"][0]) == (0, -1, 0)
    assert (columns["label"][1:] == versions.truth[1:]).all()


async def test_a_table_of_the_new_versions_answers_is_read(client: AsyncClient) -> None:
    versions = Versions.of(20)
    source, _ = await judged(client, versions, 10)
    whole = {"systems": TWO, "based_on": based(source)}
    expected = await made(client, items=versions.pairs(), **whole)
    body = {"name": "exam", "loss": ZERO_ONE} | whole
    path = f"/v1/pools/{(await client.post('/v1/pools', json=body)).json()['id']}"
    table = "id,prediction_b\n" + "".join(f"q{at},{one}\n" for at, one in enumerate(versions.new))
    media = {"Content-Type": "text/csv"}
    answer = await client.post(f"{path}/items", content=table, headers=media)
    assert answer.status_code == 200, answer.text
    assert (await client.post(f"{path}/seal")).json()["digest"] == expected["digest"]


async def test_a_file_of_a_new_version_becomes_a_pool_at_once(client: AsyncClient) -> None:
    versions = Versions.of(20)
    source, _ = await judged(client, versions, 10)
    whole = {
        "systems": TWO,
        "based_on": based(source, "unknown"),
    }
    expected = await made(client, items=versions.pairs(), **whole)
    table = "id,prediction_b\n" + "".join(f"q{at},{one}\n" for at, one in enumerate(versions.new))
    params = {"name": "exam", "kind": "zero_one", "system_a": OLD, "system_b": NEW}
    params["normalisation"] = "exact"
    given = {"based_on": source, "labels_seen": "unknown"}

    async def sent(**more: str) -> Any:  # noqa: ANN401
        media = {"Content-Type": "text/csv"}
        return await client.post(
            "/v1/pool-files", params=params | more, content=table, headers=media
        )

    looked = await sent(**given, dry_run="true")
    assert (looked.status_code, looked.json()["items"]) == (200, 20)
    answer = await sent(**given)
    assert answer.status_code == 201, answer.text
    assert answer.json()["pool"]["digest"] == expected["digest"]
    refused = await sent(based_on=source)
    assert (refused.status_code, refused.json()["field"]) == (422, "labels_seen")
    refused = await sent(labels_seen="no")
    assert (refused.status_code, refused.json()["field"]) == (422, "labels_seen")
    refused = await sent(based_on="ses_1", labels_seen="no")
    assert (refused.status_code, refused.json()["code"]) == (404, "session_not_found")


async def test_the_earlier_session_is_read_once(client: AsyncClient, app: FastAPI) -> None:
    versions = Versions.of(30)
    source, _ = await judged(client, versions, 10)
    read: list[str] = []

    def note(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        read.extend(statement.split("\n") if "WITH said AS" in statement else [])

    engine = app.state.context.database._engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    pool = await made(client, sealed=False, based_on=based(source))
    assert not read
    kind = {"Content-Type": "application/x-ndjson"}
    for row in versions.rows(versions.new)[:5]:
        path = f"/v1/pools/{pool['id']}/items"
        answer = await client.post(path, content=json.dumps(row), headers=kind)
        assert answer.status_code == 200, answer.text
    event.remove(engine, "before_cursor_execute", note)
    assert sum("WITH said AS" in line for line in read) == 1


async def test_a_comparison_has_the_weights_of_the_session_it_is_based_on(
    client: AsyncClient,
) -> None:
    versions = Versions.of(20)
    rows = versions.rows(versions.old)
    for at, row in enumerate(rows):
        row["weight"] = 1.0 + at
    old = await made(client, items=rows)
    session = (await client.post("/v1/sessions", json={"pool_id": old["id"]})).json()["id"]
    await judge(client, session, lambda at: versions.said(versions.old, at), 5)
    await closed(client, session)
    body: dict[str, Any] = {
        "systems": TWO,
        "based_on": based(session),
    }
    pool = await made(client, items=versions.pairs(), **body)
    columns = (await evidence_of(client, pool["id"])).columns
    assert columns["weight"].tolist() == [1.0 + at for at in range(20)]
    pairs = versions.pairs()
    pairs[0]["weight"], pairs[1]["weight"] = 1.0, 7.0
    body |= {"name": "exam", "loss": ZERO_ONE, "items": pairs}
    answer = await client.post("/v1/pools", json=body)
    assert answer.json()["code"] == "bad_rows"
    assert [(one["line"], one["field"]) for one in answer.json()["errors"]] == [(2, "weight")]
    # Of a version alone the weights are those it comes with, or none.
    alone = await made(client, items=versions.rows(versions.new), based_on=based(session))
    assert "weight" not in alone["columns"]


async def test_where_all_is_known_the_answer_is_exact(client: AsyncClient) -> None:
    versions = Versions.of(30)
    source, _ = await judged(client, versions, 30)
    pool = await made(client, items=versions.rows(versions.new), based_on=based(source))
    refused = await client.post("/v1/sessions", json={"pool_id": pool["id"]})
    assert (refused.status_code, refused.json()["code"]) == (422, "nothing_to_judge")
    assert refused.json()["value"] == pytest.approx(np.mean(versions.losses(versions.new)))
    audited = await client.post("/v1/sessions", json={"pool_id": pool["id"], "audit": True})
    assert audited.json()["known"] == 0


async def test_a_population_is_claimed_only_where_no_labels_were_seen(client: AsyncClient) -> None:
    versions = Versions.of()
    source, _ = await judged(client, versions, 25)
    for seen, status in (("yes", 422), ("unknown", 422), ("no", 201)):
        pool = await made(client, items=versions.rows(versions.new), based_on=based(source, seen))
        body = {"pool_id": pool["id"], "target": "population"}
        answer = await client.post("/v1/sessions", json=body)
        assert answer.status_code == status, answer.text
        if status == 422:
            assert answer.json()["field"] == "target"
            assert f"labels_seen {seen}" in answer.json()["rule"]


async def test_who_compares_with_a_version_that_saw_labels_cannot_say_no(
    client: AsyncClient,
) -> None:
    versions = Versions.of()
    source, _ = await judged(client, versions, 20)
    tuned = await made(client, items=versions.rows(versions.new), based_on=based(source, "yes"))
    session = (await client.post("/v1/sessions", json={"pool_id": tuned["id"]})).json()["id"]
    await judge(client, session, lambda at: versions.said(versions.new, at), 3)
    await closed(client, session)
    items = [{"id": f"q{at}", "b": {"prediction": one}} for at, one in enumerate(versions.old)]
    pair = {"items": items, "systems": TWO | {"a": NEW, "b": OLD}}
    body = {"name": "exam", "loss": ZERO_ONE, "based_on": based(session)} | pair
    refused = await client.post("/v1/pools", json=body)
    assert (refused.status_code, refused.json()["field"]) == (422, "based_on.labels_seen")
    pool = await made(client, based_on=based(session, "unknown"), **pair)
    body = {"pool_id": pool["id"], "target": "population"}
    assert (await client.post("/v1/sessions", json=body)).json()["field"] == "target"
    # A version of its own, whose makers saw nothing, is a sample whatever others saw.
    await made(client, items=versions.rows(versions.old), based_on=based(session, "no"))


async def test_texts_of_classes_can_be_preferred(client: AsyncClient) -> None:
    versions = Versions.of(20)
    items = [
        row | {"payload": {"answer": f"option {row['prediction']}"}}
        for row in versions.rows(versions.old)
    ]
    pool = await made(client, items=items)
    session = (await client.post("/v1/sessions", json={"pool_id": pool["id"]})).json()["id"]
    await judge(client, session, lambda at: versions.said(versions.old, at), 5)
    await closed(client, session)
    rows = [
        {"id": f"q{at}", "b": {"answer": f"option {one}"}} for at, one in enumerate(versions.new)
    ]
    body = {
        "loss": {"kind": "preference"},
        "systems": TWO,
        "items": rows,
    }
    told = await made(client, based_on=based(session, answer="answer"), **body)
    assert told["known"]["reasons"] == {"same answer (exact)": len(versions.unchanged)}


async def test_what_another_session_left_is_not_stated_by_hand(client: AsyncClient) -> None:
    versions = Versions.of(20)
    source, was = await judged(client, versions, 5)
    other, _ = await judged(client, versions, 5)
    rows = versions.rows(versions.new)
    at = next(at for at, row in enumerate(rows) if row["id"] not in was)
    rows[at]["known"] = {"loss": 0, "reason": f"unchanged answer ({other})"}
    body = {"name": "exam", "loss": ZERO_ONE, "items": rows, "sealed": True}
    bare = await client.post("/v1/pools", json=body)
    assert (bare.status_code, bare.json()["field"]) == (422, "known.reason")
    refused = await client.post("/v1/pools", json=body | {"based_on": based(source)})
    assert refused.json()["errors"][0]["field"] == "known.reason"


async def test_an_audit_of_pools_that_differ_in_what_is_empty_finds_nothing(
    client: AsyncClient, database: Database
) -> None:
    rows = [{"id": f"q{at}", "prediction": 0} for at in range(3)]
    pool = await made(client, items=rows)
    session = (await client.post("/v1/sessions", json={"pool_id": pool["id"]})).json()["id"]
    await judge(client, session, lambda _: {"loss": 1})
    await closed(client, session)
    basis = based(session, answer="answer")
    same = await made(client, items=[row | {"payload": {}} for row in rows], based_on=basis)
    assert same["known"]["items"] == 3
    await made(client, sealed=False, based_on=basis)
    assert (await audit(database)).findings == []


async def test_wrong_sessions_are_refused_by_name(
    client: AsyncClient, app: FastAPI, database_url: str
) -> None:
    versions = Versions.of(20)
    texts = Versions.of(20, answers="texts")
    source, _ = await judged(client, versions, 10)
    still_open, _ = await judged(client, versions, 10, close=False)
    unjudged, _ = await judged(client, versions, 0)
    of_texts, _ = await judged(client, texts, 10)
    pair = await made(client, items=versions.pairs(), systems=TWO, based_on=based(source))
    of_two = (await client.post("/v1/sessions", json={"pool_id": pair["id"]})).json()["id"]
    await closed(client, of_two)
    async with client_with(app, key_in(database_url, "admin", project="theirs")) as other:
        theirs, _ = await judged(other, versions, 10)
    nobody = f"ses_{'0' * 32}"
    rows = versions.rows(versions.new)
    for session, status, code, field in (
        (theirs, 404, "session_not_found", "based_on.session"),
        (nobody, 404, "session_not_found", "based_on.session"),
        ("pool_1", 404, "session_not_found", "based_on.session"),
        (still_open, 409, "session_not_closed", "based_on.session"),
        (unjudged, 422, "invalid_value", "based_on.session"),
        (of_two, 422, "invalid_value", "based_on.system"),
        (of_texts, 422, "invalid_value", "based_on.answer"),
    ):
        body = {"name": "exam", "loss": ZERO_ONE, "items": rows, "based_on": based(session)}
        refused = await client.post("/v1/pools", json=body)
        problem = refused.json()
        assert (refused.status_code, problem["code"], problem["field"]) == (status, code, field)
    for change, field in (
        ({"loss": {"kind": "bounded", "lower": 0, "upper": 1}}, "loss"),
        ({"items": [row | {"id": f"other {row['id']}"} for row in rows]}, "based_on.session"),
        ({"based_on": {"session": source}}, "based_on.labels_seen"),
        ({"based_on": based(source, "perhaps")}, "based_on.labels_seen"),
        ({"based_on": based(source, anwser="x")}, "based_on.anwser"),
        ({"based_on": based(source, system=OLD)}, "based_on.system"),
        ({"based_on": based(of_two, system="version-9")}, "based_on.system"),
    ):
        body = {"name": "exam", "loss": ZERO_ONE, "items": rows, "based_on": based(source)}
        refused = await client.post("/v1/pools", json=body | {"sealed": True} | change)
        assert refused.status_code == 422
        problem = refused.json()
        assert field in [problem.get("field"), *(one["field"] for one in problem.get("errors", ()))]


async def test_a_search_for_the_best_leaves_nothing_to_one_version(client: AsyncClient) -> None:
    several = await lineup(client, "losses")
    asked = {"pool_id": several.id, "best": True}
    session = (await client.post("/v1/sessions", json=asked)).json()["id"]
    await closed(client, session)
    for more in ({}, {"answer": "x"}, {"system": several.names[0]}):
        body = {"name": "exam", "loss": ZERO_ONE, "based_on": based(session, **more)}
        problem = (await client.post("/v1/pools", json=body)).json()
        assert problem["field"] == "based_on.session"
        assert "best of several" in problem["detail"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"a": {"prediction": 1}}, "a"),
        ({"id": "q1000"}, "id"),
        ({"payload": {"question": "another"}}, "payload"),
        ({"known": {"loss": 0, "reason": "unchanged answer (SOURCE)"}}, "known.reason"),
        ({"known": {"loss": 0, "reason": "I know"}}, "known"),
        ({"b": None}, "b"),
        ({"b": {"prediction": "1"}}, "b.prediction"),
    ],
)
async def test_rows_that_do_not_fit_are_refused_by_line(
    client: AsyncClient, change: dict[str, Any], field: str
) -> None:
    versions = Versions.of(20)
    source, _ = await judged(client, versions, 20)
    rows = versions.pairs()
    at = next(at for at, row in enumerate(rows) if row["id"] not in versions.unchanged)
    rows[at] |= json.loads(json.dumps(change).replace("SOURCE", source))
    body = {"name": "exam", "loss": ZERO_ONE, "items": rows, "based_on": based(source)}
    refused = await client.post("/v1/pools", json=body | {"systems": TWO})
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_rows")
    assert [(one["line"], one["field"]) for one in refused.json()["errors"]] == [(at + 1, field)]


FORGERIES = {
    "round": "UPDATE chunks SET data = decode(repeat('01000000', count), 'hex')"
    " WHERE pool_id = %(pool)s AND \"column\" = 'round'",
    "label": "UPDATE chunks SET data = decode(repeat('01000000', count), 'hex')"
    " WHERE pool_id = %(pool)s AND \"column\" = 'label'",
    "known loss": "UPDATE chunks SET data = decode(repeat('000000000000e03f', count), 'hex')"
    " WHERE pool_id = %(pool)s AND \"column\" = 'loss_lower'",
    "payload": "UPDATE items SET payload = '{}' WHERE pool_id = %(old)s",
    "question": "UPDATE items SET payload = '{}' WHERE pool_id = %(old)s",
    "based_on.labels_seen": 'UPDATE pools SET based_on = based_on || \'{"labels_seen": "?"}\''
    " WHERE pool_id = %(pool)s",
    "based_on.ledger": 'UPDATE pools SET based_on = based_on || \'{"ledger": "00"}\''
    " WHERE pool_id = %(pool)s",
    "based_on": 'UPDATE pools SET based_on = based_on || \'{"session": "ses_00"}\''
    " WHERE pool_id = %(pool)s",
}


@pytest.mark.parametrize("forged", by_day(5, [None, "judgement", *FORGERIES]))
async def test_an_audit_compares_a_pool_with_its_sessions_ledger(
    client: AsyncClient, database: Database, database_url: str, forged: str | None
) -> None:
    answers: Any = "classes" if forged in {"label", "question", None} else "texts"
    versions = Versions.of(30, answers=answers)
    source, _ = await judged(client, versions, 20)
    on = based(source, answer="answer") if answers == "texts" else based(source)
    pool = await made(client, items=versions.rows(versions.new), based_on=on)
    old = (await client.get(f"/v1/sessions/{source}")).json()["pool_id"]
    with psycopg.connect(database_url) as db:
        names = {"pool": pool["id"].removeprefix("pool_"), "old": old.removeprefix("pool_")}
        if forged == "judgement":
            db.execute("UPDATE events SET loss = 1 - loss WHERE kind = 2")
        elif forged is not None:
            assert db.execute(FORGERIES[forged], names).rowcount
    findings = [one for one in (await audit(database)).findings if one.name == pool["id"]]
    if forged is None:
        assert findings == []
        return
    (found,) = findings
    names = {"judgement": "known loss", "based_on.labels_seen": "based_on", "question": "payload"}
    where = names.get(forged, forged)
    assert found.where.split(", ")[-1] == where


async def test_what_a_session_leaves_is_read_beside_the_event_loop(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred thousand judgements would hold up all others, for every upload of a row."""
    versions = Versions.of(20)
    source, _ = await judged(client, versions, 12)
    here, read = threading.get_ident(), list[bool]()

    class Noted(earlier.LastJudgement):
        def __init__(self, *row: Any) -> None:  # noqa: ANN401 -- as the ledger has it
            super().__init__(*row)
            read.append(threading.get_ident() == here)

    monkeypatch.setattr(earlier, "LastJudgement", Noted)
    body = {"name": "new", "loss": ZERO_ONE, "based_on": based(source)}
    pool = (await client.post("/v1/pools", json=body)).json()["id"]
    assert read == []
    rows = "\n".join(map(json.dumps, versions.rows(versions.new)))
    media = {"Content-Type": "application/x-ndjson"}
    answer = await client.post(f"/v1/pools/{pool}/items", content=rows, headers=media)
    assert answer.status_code == 200, answer.text
    assert read == [False] * 12
