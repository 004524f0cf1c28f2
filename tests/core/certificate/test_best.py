"""Certificates of the best of several systems: what is forged about them is found out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from celeus.core.certificate.verify import verify
from celeus.core.plans.best_plan import make_best
from celeus.core.plans.plan import Claim
from celeus.core.pools.pool import Pool
from celeus.core.randomness import commitment
from celeus.core.session.session import begin_session
from tests.core.certifying import SEED, changed, drop, forged, put, where_of
from tests.core.contending import Best

Document = dict[str, Any]


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("judged", ["label", "answers", "losses"])
def test_what_is_honest_verifies(judged: str, *, final: bool) -> None:
    best = Best(judged).go(1000 if final else 3)
    data = best.certificate(final=final)
    report = verify(data, best.evidence, items=best.lines)
    assert report.valid, report.line
    assert {"labels", "items", "probabilities", "rounds", "claim"} <= set(report.checked)
    assert ("draws" in report.checked) == final
    assert ("sides" in report.checked) == (final and judged != "label")
    assert report.claim is not None
    assert (report.claim["best"]["winner"] is not None) == final
    assumed = [one["code"] for one in report.claim["assumptions"]]
    assert assumed == ["these_answers"] + ([] if judged == "losses" else ["same_answers"])


def test_texts_that_decide_nothing_are_not_assumed_to() -> None:
    best = Best("answers", None).go()
    assert best.plan.known == 0
    report = verify(best.certificate(), best.evidence, items=best.lines)
    assert report.valid, report.line
    assert report.claim is not None
    assert [one["code"] for one in report.claim["assumptions"]] == ["these_answers"]


def _first(body: Document, kind: str) -> Document:
    return next(one for one in body["ledger"] if one["kind"] == kind)


def _loser(body: Document) -> Document:
    one: Document = next(it for it in body["claim"]["best"]["systems"] if it["out"])
    return one


def _put_back(body: Document) -> None:
    """A system that is out may be the best again."""
    one = _loser(body)
    one |= {"out": False, "round": None}
    best = body["claim"]["best"]
    best |= {"winner": None, "standing": [best["winner"], one["name"]]}


def _crown(body: Document) -> None:
    body["claim"]["best"]["winner"] = _loser(body)["name"]


def _crown_wholly(body: Document) -> None:
    """Another winner, all through the claim."""
    best, loser = body["claim"]["best"], _loser(body)
    other = next(it for it in best["systems"] if it["name"] == best["winner"])
    other |= {"out": True, "round": loser["round"]}
    loser |= {"out": False, "round": None}
    best |= {"winner": loser["name"], "standing": [loser["name"]]}


def _earlier(body: Document) -> None:
    _loser(body)["round"] -= 1


def _rename(body: Document) -> None:
    """Winner and loser exchange their names, in the whole document."""
    names = body["plan"]["systems"]
    names[0], names[1] = names[1], names[0]
    body["pool"]["systems"]["names"] = names
    for one, name in zip(body["claim"]["best"]["systems"], names, strict=True):
        one["name"] = name


def _other_item(body: Document) -> None:
    drawn = {one["item"] for one in body["ledger"] if one["kind"] == "draw"}
    _first(body, "draw")["item"] = next(at for at in range(80) if at not in drawn)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (_put_back, "claim.best"),
        (_crown, "claim.best.winner"),
        (_crown_wholly, "claim.best"),
        (_earlier, "claim.best.systems"),
        (_rename, "pool.systems.names"),
        (put("plan.alpha", "claim.alpha", to=0.01), "ledger["),
        (put("plan.known", to=lambda known: known - 1), "plan.known"),
        (put("ledger[2].detail.label", to=lambda label: (label + 1) % 4), "ledger["),
        (put("ledger[2].losses", to=lambda losses: [1 - loss for loss in losses]), "ledger["),
        (changed(put("ledger[2].loss", to=0), drop("ledger[2].losses")), "ledger["),
        (drop("ledger[2].losses[-1]"), "the length of ledger["),
        (put("ledger[2].losses[0]", to=0.5), "ledger["),
        (changed(put("ledger[2].kind", to="unjudgeable"), drop("ledger[2].losses")), "ledger["),
        (_other_item, "ledger["),
        (put("ledger[0].q", to=lambda q: q * 1.01), "ledger["),
        (put("claim.assumptions", to=[]), "claim.assumptions"),
        (put("surrogates", to=0), "surrogates"),
        (put("plan.beta", to=0.9), "ledger["),
    ],
)
def test_what_is_forged_is_found(change: Callable[[Document], None], where: str) -> None:
    best = Best().go()
    data = forged(best.certificate(), change)
    assert where in where_of(verify(data, best.evidence))


@pytest.mark.parametrize(
    "change",
    [
        put("ledger[0].detail.order", to=lambda order: " ".join(reversed(order.split()))),
        drop("ledger[0].detail.order"),
    ],
)
@pytest.mark.parametrize("judged", ["answers", "losses"])
def test_answers_shown_in_another_order_are_found(
    change: Callable[[Document], None], judged: str
) -> None:
    best = Best(judged).go(5)
    assert (
        where_of(verify(forged(best.certificate(), change), best.evidence))
        == "the order of round 1"
    )


def _pool_with(best: Best, **columns: Any) -> Pool:  # noqa: ANN401
    pool = best.pool
    return replace(pool, columns={**pool.columns, **columns})


def test_a_known_item_that_is_not_is_found() -> None:
    """An item to which the answers differ is called known, all through pool and plan."""
    best = Best("answers")
    known = best.pool.columns["known"].copy()
    known[np.flatnonzero(known == 0)[0]] = 1
    best.pool = _pool_with(best, known=known)
    best.plan = replace(best.plan, pool_digest=best.pool.digest)
    best.state = begin_session(best.plan, best.pool, SEED)
    assert (
        where_of(verify(best.go(5).certificate(), best.evidence, items=best.lines))
        == "pool.columns.known"
    )


def test_answers_that_are_not_the_same_are_found_with_the_items() -> None:
    """Answers are called the same that are not: without the items nobody can tell."""
    best = Best("answers")
    answers = best.pool.columns["answers"].copy()
    at = int(np.flatnonzero(best.pool.columns["known"] == 0)[0])
    answers[at] = 0
    known = best.pool.columns["known"].copy()
    known[at] = 1
    best.pool = _pool_with(best, answers=answers, known=known)
    best.plan = make_best(best.pool, Claim(alpha=0.2), commitment(SEED))
    best.state = begin_session(best.plan, best.pool, SEED)
    data = best.go(5).certificate()
    assert verify(data, best.evidence).valid
    difference = verify(data, best.evidence, items=best.lines).difference
    assert difference is not None
    assert (difference.where, difference.claimed) == ("pool.columns.answers", f"item {at}")


def test_a_pool_of_another_number_of_systems_is_found() -> None:
    best = Best()
    best.pool = _pool_with(best, surrogates=best.pool.columns["surrogates"][:, :3].copy())
    best.plan = replace(best.plan, pool_digest=best.pool.digest)
    best.state.question.plan = best.plan
    assert where_of(verify(best.go(3).certificate(), best.evidence)) == "pool.columns.surrogates"
