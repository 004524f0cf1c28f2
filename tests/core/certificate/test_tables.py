"""Certificates of many claims about a table: what is forged about them is found out."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from celeus.core.canonical import canonical_json
from celeus.core.certificate.pool_checks import Evidence, check_table_pool
from celeus.core.certificate.verify import verify
from celeus.core.plain import Mismatch
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import Pool, dtype_of
from tests.core.certifying import changed, drop, forged, put, where_of
from tests.core.tabling import WISHES, Tabled, added_later
from tests.nightly import by_day

Document = dict[str, Any]


@cache
def issued(account: str = "each", *, final: bool = True) -> tuple[Tabled, bytes]:
    """A session of this account, and its certificate; one and the same for all tests."""
    tabled = Tabled(WISHES[account]).go(1000 if final else 20)
    if not final:
        tabled.enter(tabled.state.propose())
    return tabled, tabled.certificate(final=final)


@cache
def later(*, final: bool = True) -> tuple[Tabled, bytes]:
    """A session to which claims were added, and its certificate."""
    tabled = added_later()
    return tabled, tabled.certificate(final=final)


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("account", WISHES)
def test_what_is_honest_verifies(account: str, *, final: bool) -> None:
    tabled, data = issued(account, final=final)
    report = verify(data, tabled.evidence, items=tabled.lines)
    assert report.valid, report.line
    checked = {"labels", "items", "pool_columns", "probabilities", "rounds", "claim"}
    assert checked <= set(report.checked)
    assert ("draws" in report.checked) == final
    claim = report.claim
    assert claim is not None
    assert len(claim["claims"]) == len(tabled.plan.claims)
    for one, state in zip(claim["claims"], tabled.state.question.claims, strict=True):
        assert (one["lower"], one["upper"]) == (
            state.interval.lower,
            state.interval.upper,
        )
        assert one["score"]["lower"] <= one["score"]["estimate"] <= one["score"]["upper"]
    assert [one["code"] for one in claim["assumptions"]] == ["these_answers", "known_losses"]


def test_the_score_is_the_image_of_the_interval() -> None:
    _, data = issued()
    one = json.loads(data)["claim"]["claims"][0]
    assert one["score"]["name"] == "accuracy"
    assert one["score"]["lower"] == pytest.approx(1.0 - one["upper"], abs=1e-12)


def test_the_intervals_to_show_widen_as_fewer_are_picked() -> None:
    """The one for all is at the plan's own level; the truth of the pool lies in every one."""
    tabled, data = issued("selected")
    claims = json.loads(data)["claim"]["claims"]
    betting = tabled.plan.betting
    for one in claims:
        stages = one["picked"]
        assert [its["claims"] for its in stages] == [1, 2, 4, 8, betting]
        assert stages[-1]["level"] == pytest.approx(tabled.plan.alpha)
        widths = [its["upper"] - its["lower"] for its in stages]
        assert widths == sorted(widths, reverse=True)


def test_answers_yes_are_those_that_hold_at_once() -> None:
    tabled, data = issued("closed", final=True)
    claims = json.loads(data)["claim"]["claims"]
    proven = tabled.state.question.proven
    said = {
        (at, number): its["round"]
        for at, one in enumerate(claims)
        for number, its in enumerate(one["answers"])
        if its["answer"] == "yes"
    }
    assert said == proven
    assert said


def test_without_the_pool_nothing_is_said_to_hold() -> None:
    _, data = issued()
    report = verify(data)
    assert report.difference is not None
    assert report.difference.where == "the pool"
    assert {"form", "plan", "ledger", "chain"} <= set(report.checked)
    assert {"pool_columns", "labels", "draws", "claim"} <= set(report.unchecked)


def _claims(body: Document) -> list[Document]:
    claims: list[Document] = body["claim"]["claims"]
    return claims


def _first(body: Document, kind: str) -> Document:
    return next(one for one in body["ledger"] if one["kind"] == kind)


def _added(body: Document) -> None:
    _claims(body).append(dict(_claims(body)[1]))


def _added_everywhere(body: Document) -> None:
    _added(body)
    body["plan"]["claims"].append(dict(body["plan"]["claims"][1]))


def _order(body: Document) -> None:
    claims = _claims(body)
    claims[2], claims[3] = claims[3], claims[2]


def _order_everywhere(body: Document) -> None:
    _order(body)
    claims = body["plan"]["claims"]
    claims[2], claims[3] = claims[3], claims[2]


def _values_exchanged(body: Document) -> None:
    """Two groups exchange their names, all through pool, plan and claim."""
    body["pool"]["group_columns"]["level"].reverse()
    for claims in (_claims(body), body["plan"]["claims"]):
        for one in claims:
            if one["column"] == "level":
                one["value"] = {"easy": "hard", "hard": "easy"}[one["value"]]


def _told(body: Document) -> None:
    """What nobody could tell is told."""
    one = next(one for one in body["ledger"] if None in one.get("losses", []))
    one["losses"][1] = 0


def _item(body: Document) -> None:
    drawn = {one["item"] for one in body["ledger"] if one["kind"] == "draw"}
    _first(body, "draw")["item"] = next(at for at in range(220) if at not in drawn)


def _met(body: Document) -> None:
    one = next(one for one in _claims(body) if one["met"] is not None)
    one["met"] -= 1


def _metric(body: Document) -> None:
    """The loss is called a score of another direction, all through the document."""
    same = [one for one in _claims(body) if one["metric"] == "correct"]
    for one in (body["plan"]["metrics"][0], body["pool"]["metrics"][0], *same):
        one["score"]["better"] = "lower"


@pytest.mark.parametrize(
    ("change", "where"),
    by_day(
        12,
        [
            (put("claim.claims[2].level", to=0.01), "claim.claims[2].level"),
            (
                put("claim.claims[0].level", "plan.claims[0].level", to=0.01),
                "claim.claims[0]",
            ),
            (drop("claim.claims[3]"), "the length of claim.claims"),
            (drop("claim.claims[3]", "plan.claims[3]"), "plan.claims"),
            (_added, "the length of claim.claims"),
            (_added_everywhere, "plan.claims"),
            (_order, "claim.claims[2]"),
            (_order_everywhere, "plan.claims"),
            (_values_exchanged, "pool.group_columns"),
            (put("claim.claims[1].upper", to=lambda end: end - 0.001), "claim.claims[1].upper"),
            (put("claim.claims[1].lower", to=lambda end: end - 0.001), "claim.claims[1].lower"),
            (
                put("claim.claims[0].score.upper", to=lambda end: end - 1e-9),
                "claim.claims[0].score.upper",
            ),
            (
                put("claim.claims[0].estimate", to=lambda estimate: estimate + 0.001),
                "claim.claims[0].estimate",
            ),
            (put("claim.account", to="together"), "claim.account"),
            (
                put("claim.account", "plan.account", to="together"),
                "plan.claims.level",
            ),
            (put("claim.account", "plan.account", to="selected"), "picked"),
            (put("claim.promises.all", to="All of them hold."), "claim.promises.all"),
            (put("ledger[2].losses[0]", to=lambda loss: 1 - loss), ""),
            (_told, ""),
            (put("ledger[2].losses", to=[None, None]), ""),
            (drop("ledger[2].losses[1]"), "the length of ledger["),
            (put("ledger[2].losses[1]", to=5.5), "ledger["),
            (changed(put("ledger[2].loss", to=0), drop("ledger[2].losses")), "ledger["),
            (_item, "ledger["),
            (put("ledger[0].q", to=lambda q: q * 1.01), "ledger["),
            (put("claim.claims[4].items", to=lambda items: items + 1), "claim.claims[4].items"),
            (put("plan.claims[1].known", to=lambda known: known + 1), "plan.claims"),
            (_met, "met"),
            (put("claim.assumptions", to=[]), "claim.assumptions"),
            (put("surrogates", to=0), "surrogates"),
            (_metric, "pool.metrics"),
            (
                put("plan.claims[0].precision", "claim.claims[0].precision", to=0.1),
                "claim.claims[0]",
            ),
        ],
    ),
)
def test_what_is_forged_is_found(change: Callable[[Document], None], where: str) -> None:
    tabled, data = issued()
    assert where in where_of(verify(forged(data, change), tabled.evidence))


def _unproven(body: Document) -> None:
    """A yes that holds by itself is called one of those that hold at once."""
    its = next(its for one in _claims(body) for its in one["answers"] if its["answer"] != "yes")
    its |= {"answer": "yes", "round": 3}


def _shown(body: Document) -> None:
    _claims(body)[0]["picked"][0] = _claims(body)[0]["picked"][-1]


@pytest.mark.parametrize(
    ("account", "change", "where"),
    [("closed", _unproven, "answers"), ("selected", _shown, "picked")],
)
def test_what_the_account_alone_promises_is_checked(
    account: str, change: Callable[[Document], None], where: str
) -> None:
    tabled, data = issued(account)
    assert where in where_of(verify(forged(data, change), tabled.evidence))


@pytest.mark.parametrize(
    ("column", "item", "value"),
    [
        ("group_subject", 40, 2),
        ("group_level", 0, 7),
        ("surrogate_correct", 3, 0.987),
        ("surrogate_grade", 3, -1.0),
        ("known_grade", 9, 0.05),
        ("known_grade", 10, np.inf),
    ],
)
def test_another_column_is_found(column: str, item: int, value: float) -> None:
    tabled, data = issued()
    other = tabled.pool.columns[column].copy()
    other[item] = value
    pool = replace(tabled.pool, columns={**tabled.pool.columns, column: other})
    assert "pool" in where_of(verify(data, Evidence.of(pool)))


def test_another_group_of_an_item_is_found_however_the_pool_is_sealed() -> None:
    """The digests are made anew: then draws, facts or intervals are others."""
    tabled, data = issued()
    other = Tabled(WISHES["each"])
    code = other.pool.columns["group_subject"].copy()
    code[40], code[41] = code[41], code[40]
    columns = {**other.pool.columns, "group_subject": code}

    def reseal(body: Document) -> None:
        body["pool"] = json.loads(canonical_json(replace(other.pool, columns=columns).header()))

    evidence = Evidence.of(replace(tabled.pool, columns=columns))
    assert verify(forged(data, reseal), evidence).difference is not None


def test_a_budget_changed_on_the_way_is_an_assumption() -> None:
    tabled = Tabled(WISHES["together"]).go(5)
    tabled.budget(60)
    report = verify(tabled.go().certificate(), tabled.evidence)
    assert report.valid, report.line
    assert report.claim is not None
    codes = [one["code"] for one in report.claim["assumptions"]]
    assert codes == ["these_answers", "known_losses", "unforeseen_draws"]
    assert report.claim["changes"] == 1


@pytest.mark.parametrize("final", [False, True])
def test_claims_added_later_are_said_to_be_so_and_verify(*, final: bool) -> None:
    tabled, data = later(final=final)
    report = verify(data, tabled.evidence, items=tabled.lines)
    assert report.valid, report.line
    claim = report.claim
    assert claim is not None
    opened, added = claim["claims"][:-2], claim["claims"][-2:]
    assert not any("added" in one for one in opened)
    assert [(one["metric"], one["value"], one["level"], one["added"]) for one in added] == [
        ("correct", "hard", 0.012, 24),
        ("grade", None, 0.008, 52),
    ]
    assert added[0]["labels"] < claim["labels"] - 24
    # A round whose grade is known is no bet of it.
    assert 0 < added[1]["labels"] <= claim["labels"] - 52
    assert claim["reserve"] == 0.0
    assumption = claim["assumptions"][-1]
    assert assumption["code"] == "later_claims"
    told = "correct, level hard (at level 0.012, after 24 labels); grade (at level 0.008, after 52"
    assert told in assumption["text"]


def _additions(body: Document) -> list[Document]:
    return [one for one in body["ledger"] if one["kind"] == "addition"]


def _moved(body: Document, which: int, by: int) -> None:
    """An addition stands so many events earlier, and what follows is numbered anew."""
    ledger = body["ledger"]
    at = ledger.index(_additions(body)[which])
    ledger.insert(at - by, ledger.pop(at))
    times = sorted(one["at"] for one in ledger)
    for number, (one, time) in enumerate(zip(ledger, times, strict=True)):
        one |= {"sequence": number + 1, "at": time}
        if one["kind"] == "draw":
            one["seen"] = number


def _earlier(body: Document) -> None:
    _moved(body, 0, 4)


def _earlier_without_a_want(body: Document) -> None:
    _moved(body, 1, 4)


def _amid_draws(body: Document) -> None:
    _moved(body, 1, 1)


def _first_of_all(body: Document) -> None:
    """As if the claim had been one of the opening's."""
    _moved(body, 0, body["ledger"].index(_additions(body)[0]))


def _higher_level(body: Document) -> None:
    _additions(body)[0]["detail"]["level"] = _claims(body)[-2]["level"] = 0.02


def _other_share(body: Document) -> None:
    """The sum of both is the same."""
    for which in (0, 1):
        _additions(body)[which]["detail"]["level"] = _claims(body)[which - 2]["level"] = 0.01


def _not_added(body: Document) -> None:
    body["ledger"].remove(_additions(body)[1])
    del _claims(body)[-1]


def _asked_more(body: Document) -> None:
    _additions(body)[0]["detail"]["precision"] = _claims(body)[-2]["precision"] = 0.5


def _other_group(body: Document) -> None:
    for one in (_additions(body)[0]["detail"], _claims(body)[-2]):
        one["value"] = "easy"


def _nobody(body: Document) -> None:
    _additions(body)[0]["detail"]["metric"] = "nobody"


def _no_questions(body: Document) -> None:
    del _additions(body)[1]["detail"]["questions"]


@pytest.mark.parametrize(
    ("change", "where"),
    by_day(
        6,
        [
            (_earlier, "ledger["),
            (_earlier_without_a_want, "claim.claims"),
            (_amid_draws, "ledger["),
            (_first_of_all, "ledger["),
            (_higher_level, "].level"),
            (_other_share, ""),
            (drop("claim.claims[-1].added"), "added"),
            (put("claim.claims[-1].added", to=0), "added"),
            (_not_added, "ledger["),
            (_asked_more, ""),
            (_other_group, ""),
            (_nobody, "].claim"),
            (_no_questions, "detail.questions"),
            (put("claim.reserve", to=0.02), "claim.reserve"),
            (put("plan.reserve", to=0.03), "plan.claims.level"),
            (put("plan.fixed", to=True), "].fixed"),
        ],
    ),
)
def test_a_claim_forged_to_be_added_otherwise_is_found(
    change: Callable[[Document], None], where: str
) -> None:
    tabled, data = later()
    assert where in where_of(verify(forged(data, change), tabled.evidence))


def _plain(**columns: list[float]) -> Pool:
    """A pool of one loss, with what it states of each."""
    arrays = {name: np.array(values, dtype=dtype_of(name)) for name, values in columns.items()}
    return Pool(3, LossScale.of("zero_one"), arrays, (), bytes(32), reasons=("obvious",))


@pytest.mark.parametrize(
    ("columns", "where"),
    [
        ({"loss_lower": [-3, 0, 0], "loss_upper": [-3, 1, 1], "known": [1, 0, 0]}, ""),
        ({"loss_lower": [1, 0, 0], "loss_upper": [1, 1, 1], "known": [0, 0, 0]}, ""),
        ({"loss_lower": [1, 0, 0], "loss_upper": [1, 1, 1], "known": [2, 0, 0]}, ".known"),
        ({"loss_lower": [1, 0, 0], "known": [1, 0, 0]}, ""),
    ],
    ids=["off the scale", "without a reason", "no such reason", "one bound alone"],
)
def test_losses_forged_to_be_known_are_found(columns: dict[str, list[float]], where: str) -> None:
    with pytest.raises(Mismatch) as raised:
        check_table_pool(_plain(**columns))
    assert raised.value.where == f"pool.columns{where}"


def test_known_losses_stated_in_order_pass() -> None:
    check_table_pool(_plain(loss_lower=[1, 0, 0], loss_upper=[1, 1, 1], known=[1, 0, 0]))


def test_a_known_loss_of_a_metric_lies_on_its_scale_and_beside_no_bounds() -> None:
    tabled, data = issued()
    half = np.full(tabled.pool.items, np.nan)
    half[0] = 0.5
    bounds = {"loss_lower": np.zeros(tabled.pool.items)}
    for column, where in (
        ({"known_correct": half}, "pool.columns.known_correct"),
        (bounds, "pool.columns"),
    ):
        pool = replace(tabled.pool, columns={**tabled.pool.columns, **column})
        header = json.loads(canonical_json(pool.header()))
        forgery = forged(data, put("pool", to=header))
        assert where_of(verify(forgery, Evidence.of(pool))) == where


def test_no_label_stands_beside_several_losses() -> None:
    tabled, data = issued()
    forgery = forged(data, put("ledger[2].detail", to={"worker": "ada", "label": 0}))
    assert where_of(verify(forgery, tabled.evidence)) == "ledger[2].detail"
