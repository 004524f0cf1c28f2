"""Ask and tell: one request a label, and nothing judged twice or lost."""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx2
import numpy as np
import pytest

import celeus
from celeus import Client, Refusal, Turn
from celeus.client.label_loop import HEARTBEATS
from tests.client.pools import Counting, Exam
from tests.keys import ADMIN, key_in
from tests.pairs import body_of
from tests.servers import Service


def ledger_losses(session: celeus.Session) -> dict[int, float | None]:
    """The loss of every judged item, by its place; each stands in the ledger once."""
    entries = list(session.ledger())
    items = {entry.round: entry.item for entry in entries if entry.kind == "draw"}
    seen = [entry for entry in entries if entry.kind in {"observation", "unjudgeable"}]
    losses = {items[entry.round]: entry.loss for entry in seen}
    assert len(losses) == len(seen)
    return {place: loss for place, loss in losses.items() if place is not None}


def test_a_label_takes_one_request(service: Service, known: Exam) -> None:
    transport = Counting()
    with (
        httpx2.Client(transport=transport) as http,
        Client(service.url, ADMIN, http=http) as client,
    ):
        session = client.open_session(known.pool, precision=0.2)
        for item in session.draws():
            item.observe(known(item))
    labels = session_labels = transport.sent["POST observe"]
    assert session_labels == labels > 10
    assert transport.sent.total() == labels + 3, "the version, the opening, and the first item"


def test_threads_judge_nothing_twice(session: celeus.Session, known: Exam) -> None:
    asked: Counter[int] = Counter()

    def verdict(item: Turn) -> float:
        asked[item.index] += 1
        return known(item)

    done = session.judge(verdict, concurrency=8)
    assert set(asked.values()) == {1}
    assert (done.labels, done.overtaken) == (len(asked), 0)
    assert ledger_losses(session) == {place: known.losses[place] for place in asked}


def test_the_status_is_seen_after_every_label(session: celeus.Session, known: Exam) -> None:
    seen: list[celeus.Status] = []
    done = session.judge(known, concurrency=4, seen=seen.append)
    judged = sorted(status.rounds.judged for status in seen)
    assert judged[-1] == done.labels
    # A draw that looked stalled is handed out again, and its second answer may be seen too
    assert done.labels <= len(judged) <= done.labels + done.overtaken
    # Labels that came at once are committed at once: each is seen with the others
    assert all(labels >= place - done.overtaken for place, labels in enumerate(judged, start=1))
    assert max(seen, key=lambda status: status.sequence).state == session.status().state


def test_batches_take_a_request_each(session: celeus.Session, known: Exam) -> None:
    sizes: list[int] = []

    def verdicts(items: Sequence[Turn]) -> list[float]:
        sizes.append(len(items))
        return [known(item) for item in items]

    done = session.judge_many(verdicts, size=16)
    assert sum(sizes) == done.labels == len(ledger_losses(session))
    assert max(sizes) == 16
    assert len(sizes) <= done.labels / 16 + 2


def test_what_was_said_before_a_break_is_sent(session: celeus.Session, known: Exam) -> None:
    for item in session.draws():
        item.observe(known(item))
        break
    assert ledger_losses(session) == {item.index: known(item)}
    assert session.status().rounds.pending == 0


def test_an_item_of_which_nothing_is_said_ends_the_loop(session: celeus.Session) -> None:
    with pytest.raises(Refusal, match="was taken, and nothing was said of it"):
        for _ in session.draws():
            pass


def test_an_item_that_an_exception_kept_comes_back_at_once(session: celeus.Session) -> None:
    # As in a notebook, which keeps the exception, and the loop with it
    kept = session.draws()
    item = next(kept)
    assert next(session.draws()).round == item.round


def test_a_failure_of_the_judge_ends_the_judging_and_says_nothing_of_the_item(
    session: celeus.Session, known: Exam
) -> None:
    def verdict(item: Turn) -> float:
        if len(ledger_losses(session)) >= 5:
            raise RuntimeError("no such model")
        return known(item)

    with pytest.raises(RuntimeError, match="no such model"):
        session.judge(verdict, concurrency=4)
    assert None not in ledger_losses(session).values()


def test_batches_are_judged_in_the_callers_thread(session: celeus.Session, known: Exam) -> None:
    threads = set()

    def verdicts(items: Sequence[Turn]) -> list[float]:
        threads.add(threading.current_thread())
        return [known(item) for item in items]

    session.judge_many(verdicts, size=4)
    assert threads == {threading.main_thread()}


def test_no_verdict_is_told_as_such(session: celeus.Session, known: Exam) -> None:
    def judge(item: Turn) -> float | None:
        if item.index % 5:
            return known(item)
        item.unjudgeable("it is empty")
        return None

    done = session.judge(judge, concurrency=2)
    unjudged = sum(place % 5 == 0 for place in ledger_losses(session))
    assert done.unjudgeable == unjudged > 0


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (None, "returned nothing for .* call item.unjudgeable"),
        (True, "is it right or wrong"),
        (np.bool_(0), "is it right or wrong"),
        ("correct", "must be a loss as a number"),
        ([0.0, True], "is it right or wrong"),
    ],
)
@pytest.mark.parametrize("size", [None, 4])
def test_what_may_mean_its_opposite_is_refused_before_anything_is_told(
    session: celeus.Session, returned: object, says: str, size: int | None
) -> None:
    def several(items: Sequence[Turn]) -> list[object]:
        return [0.0] * (len(items) - 1) + [returned]

    def judge() -> celeus.JudgeResult:
        if size is None:
            return session.judge(lambda _: returned, concurrency=3)
        return session.judge_many(several, size=size)

    with pytest.raises(celeus.Refusal, match=says):
        judge()
    assert ledger_losses(session) == {}


def test_a_pool_that_names_a_score_is_judged_by_it(client: Client) -> None:
    score = {"name": "quality", "better": "higher"}
    rows = [{"id": f"s-{number}"} for number in range(40)]
    loss = {"kind": "bounded", "lower": 1, "upper": 5}
    pool = client.create_pool("stars", rows, loss=loss, score=score)
    session = client.open_session(pool, precision=0.01)
    with pytest.raises(celeus.Refusal, match=r"the quality of 's-.*' must be 1 to 5, and is 0.9"):
        session.judge(lambda _: 0.9)
    session.judge(lambda item: 4.6 if item.index % 2 else 5)
    assert set(ledger_losses(session).values()) == {1.4, 1.0}
    reported = session.status().score
    assert reported is not None
    assert reported.estimate == pytest.approx(4.8, abs=0.01)


def test_metrics_are_judged_by_the_scores_they_name(client: Client) -> None:
    score = {"name": "faithfulness", "better": "higher"}
    metrics = {
        "faithful": {"kind": "zero_one", "score": score},
        "length": {"kind": "bounded", "lower": 0, "upper": 9},
    }
    pool = client.create_pool(
        "sheet", [{"id": f"m-{number}"} for number in range(20)], metrics=metrics
    )
    session = client.open_session(pool, precision={"faithful": 0.3, "length": None})
    session.judge(lambda _: {"faithful": True, "length": 2.0})
    losses = [label.losses for label in session.labels()]
    assert losses
    assert all(of == {"faithful": 0.0, "length": 2.0} for of in losses)


def test_both_bad_is_kept_apart_from_a_tie(client: Client) -> None:
    body, _ = body_of("preference", 40)
    pool = client.create_pool("pair", body["items"], systems=body["systems"], loss=body["loss"])
    session = client.open_session(pool, precision=0.001)
    session.judge(lambda item: "tie (bothbad)" if item.index % 2 else "tie")
    words = {(label.preference, label.loss) for label in session.labels()}
    assert words == {("both_bad", 0.0), ("tie", 0.0)}
    judged = next(iter(session.labels()))
    session.amend(judged.round, "both are poor", preference="both_bad")


def test_a_batch_of_which_one_was_judged_keeps_the_others(
    session: celeus.Session, known: Exam
) -> None:
    rounds: list[int] = []

    def verdicts(items: Sequence[Turn]) -> list[float]:
        if not rounds:
            body = {"round": items[0].round, "loss": 1 - known(items[0]), "worker": "bob"}
            session.client.request("POST", f"/v1/sessions/{session.id}/observe", body)
        rounds.extend(item.round for item in items)
        return [known(item) for item in items]

    done = session.judge_many(verdicts, size=8)
    assert done.overtaken == 1
    assert done.labels == len(rounds) - 1


def test_what_one_passes_on_another_judges(session: celeus.Session, known: Exam) -> None:
    ada, bob = session.draws("ada"), session.draws("bob")
    first = next(ada)
    first.pass_on()
    second = next(ada)
    assert second.round != first.round
    taken = next(bob)
    assert taken.round == first.round, "the first to ask has it"
    taken.observe(known(taken))
    second.observe(known(second), comment="hard to read")
    ada.close()
    bob.close()
    assert ledger_losses(session) == {item.index: known(item) for item in (first, second)}
    assert [comment.comment for comment in session.comments()] == ["hard to read"]


def test_a_session_that_is_closed_or_paused_ends_the_loop(
    session: celeus.Session, known: Exam
) -> None:
    for item in session.draws():
        item.observe(known(item))
        session.change(state="paused")
    assert len(ledger_losses(session)) == 1
    session.change(state="active")
    for item in session.draws():
        item.observe(known(item))
        session.close()
    assert len(ledger_losses(session)) == 1


def test_a_lease_is_renewed_while_a_judge_thinks(
    client: Client, service: Service, known: Exam
) -> None:
    session = client.open_session(known.pool, budget=2, lease_seconds=1)
    transport = Counting()

    def verdict(item: Turn) -> float:
        deadline = time.monotonic() + 60
        # By then the lease that each of the two had at first has ended
        while transport.sent["POST next"] < 2 * (1 + HEARTBEATS):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return known(item)

    with (
        httpx2.Client(transport=transport) as http,
        Client(service.url, ADMIN, http=http) as judge,
    ):
        done = judge.session(session.id).judge(verdict, concurrency=2)
    assert (done.labels, done.overtaken) == (2, 0)
    leased = client.open_session(known.pool, lease_seconds=1)
    draws = leased.draws("ada")
    assert next(draws).keep() is True


def test_a_blind_key_judges(service: Service, database_url: str, known: Exam) -> None:
    with Client(service.url, ADMIN) as client:
        session = client.open_session(known.pool, precision=0.2).id
    with Client(service.url, key_in(database_url, "label")) as client:
        done = client.session(session).judge(known, concurrency=2)
        assert done.state in {"target_reached", "exhausted"}
        with pytest.raises(celeus.Problem, match="keys create --name me --scope read"):
            client.session(session).status()


@pytest.mark.parametrize("judged", ["label", "losses", "preference"])
def test_two_systems_are_compared(client: Client, judged: str) -> None:
    body, pair = body_of(judged, 60)
    members = {name: body[name] for name in ("systems", "loss")}
    pool = client.create_pool("pair", body["items"], **members)
    session = client.open_session(pool, decide={"margin": 0.2})
    for item in session.draws():
        if judged == "label":
            item.label(pair.truth[item.index])
            continue
        assert item.left is not None
        row = pair.items[item.index]
        on_left = "a" if row["a"]["answer"] == item.left.answer else "b"
        judgement = pair.said(item.index, on_left)
        item.take(judgement.get("losses") or judgement.get("preference"))
    verdict = session.status().verdict
    assert verdict is not None
    assert verdict.answer != "undecided"


def test_a_panel_is_asked_again_until_it_agrees(client: Client, known: Exam) -> None:
    panel = ["ada", "ben"]
    session = client.open_session(
        known.pool, budget=3, raters="assigned", protocol="consensus", panel=panel
    )

    def rate(name: str) -> list[int | None]:
        turns = []
        for item in session.draws(name):
            turns.append(item.turn)
            item.observe(panel.index(name) if item.turn == 1 else known(item))
        return turns

    with ThreadPoolExecutor(len(panel)) as threads:
        assert [sorted(map(str, ratings)) for ratings in threads.map(rate, panel)] == [
            list("111222")
        ] * 2
    status = session.status()
    assert (status.rounds.judged, status.raters and status.raters["judgements"]) == (3, 12)


@pytest.mark.parametrize("loss", [float("nan"), "often", object()])
def test_what_is_no_loss_is_refused_where_it_is_said(session: celeus.Session, loss: object) -> None:
    item = next(session.draws())
    with pytest.raises(Refusal, match=r"a loss of 'q.*' must be a finite number"):
        item.observe(loss)


def test_as_many_judges_as_a_client_serves(session: celeus.Session, known: Exam) -> None:
    with pytest.raises(Refusal, match="concurrency must be 1 to 64"):
        session.judge(known, concurrency=0)
    with pytest.raises(Refusal, match="size must be 1 to 256"):
        session.judge_many(lambda items: [known(item) for item in items], size=1000)


def test_what_is_added_to_a_judgement_is_read_again(session: celeus.Session, known: Exam) -> None:
    comments = []
    for item in session.draws():
        comments.append((item.round, item.id, f"about {item.id}"))
        if len(comments) == 2:
            item.unjudgeable("cut off", comment=comments[-1][2])
            break
        item.observe(known(item), comment=comments[-1][2])
    assert [
        (comment.round, comment.item, comment.comment) for comment in session.comments()
    ] == comments
