"""Certificates of the best of several systems: what is forged about them is found out."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from celeus.core.canonical import canonical_json
from celeus.core.certificates.chain import Record, chain_head, chain_start, record_of
from celeus.core.certificates.document import Account, certificate, position_of, signed
from celeus.core.certificates.replay import Evidence
from celeus.core.certificates.schema import header_digest
from celeus.core.certificates.verify import verify
from celeus.core.ledger import Change, Event, JointObservation
from celeus.core.plans.best import BestPlan, make_best
from celeus.core.plans.plan import Claim
from celeus.core.pools.lineups import assemble_lineup
from celeus.core.pools.pool import CHAIN_START, Pool, chain
from celeus.core.pools.systems import Lineup
from celeus.core.randomness import commitment
from celeus.core.sessions.best.state import BestState
from tests.core.certifying import ISSUED_AT, KEY, ONLY_SESSION, SEED, SESSION
from tests.lineups import Field, body_of

Document = dict[str, Any]
AT = "2026-11-21T09:30:00.000000+00:00"


def sealed(made: Field) -> Pool:
    lineup = Lineup.of(made.names, ("zero_one", None, None), "exact")
    lines = list(range(1, len(made.items) + 1))
    batch = assemble_lineup(lines, list(made.items), lineup, None).batch
    reasons = tuple(sorted({one for one in batch.reasons if one}))
    known = np.array([one != "" for one in batch.reasons], dtype="<i4")
    digest = chain(CHAIN_START, batch.records())
    columns = batch.columns | {"known": known}
    return Pool(len(batch.ids), lineup.scale, columns, (), digest, reasons, lineup)


class Best:
    """A session judged truly, with its records."""

    def __init__(self, judged: str = "label", **claim: Any) -> None:  # noqa: ANN401
        _, self.made = body_of(judged, 80)
        self.pool = sealed(self.made)
        self.plan = make_best(self.pool, Claim(alpha=0.2, **claim), commitment(SEED))
        self.state = BestState.of(self.plan, self.pool, SEED)
        self.records: list[Record] = []

    @property
    def evidence(self) -> Evidence:
        pool = self.pool
        return Evidence(pool.columns, (), pool.items_digest, pool.reasons, pool.named)

    @property
    def lines(self) -> list[bytes]:
        return [json.dumps(item).encode() for item in self.made.items]

    def enter(self, event: Event, detail: dict[str, Any] | None = None) -> None:
        self.state.apply(event)
        self.records.append(record_of(self.state.sequence, event, detail, AT))

    def go(self, most: int = 1000) -> "Best":
        """Judge so many rounds, two at once, the later one first."""
        for _ in range(most):
            rounds: list[int] = []
            while self.state.can_draw and len(rounds) < 2:
                self.enter(self.state.propose(), {"worker": "ada"})
                rounds.append(self.state.drawn)
            for round_ in reversed(rounds):
                item = self.state.item(round_)
                detail = {"label": self.made.truth[item]} if self.made.judged == "label" else {}
                losses = tuple(self.made.losses[item])
                self.enter(JointObservation(round_, losses), detail | {"worker": "ada"})
            if not rounds:
                break
        return self

    def certificate(self, *, final: bool = True) -> bytes:
        if final:
            budget = self.state.stopping.budget
            detail = {"precision": None, "budget": budget, "state": "closed"}
            self.enter(Change(None, budget), detail)
        account = Account(
            session=SESSION,
            header=self.pool.header(),
            position=position_of(self.plan, self.state, amended=False),
            records=[canonical_json(dict(one)) for one in self.records],
            seed=SEED if final else None,
            issued_at=ISSUED_AT,
            supersedes=None,
            pool_sessions=ONLY_SESSION,
        )
        return certificate(account, KEY)


def forged(data: bytes, change: Callable[[Document], None]) -> bytes:
    """Signed anew by the issuer, digests and chain made anew as well."""
    body: Document = json.loads(data)
    del body["signature"]
    change(body)
    body["pool_digest"] = body["plan"]["pool_digest"] = header_digest(body["pool"])
    plan = BestPlan.from_dict(body["plan"])
    body["plan_digest"] = plan.digest
    start = chain_start(SESSION, bytes.fromhex(plan.digest))
    body["chain"] = {"start": start.hex(), "head": chain_head(start, body["ledger"]).hex()}
    return signed(body, KEY)


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("judged", ["label", "answers", "losses"])
def test_what_is_honest_verifies(judged: str, *, final: bool) -> None:
    best = Best(judged).go(1000 if final else 3)
    data = best.certificate(final=final)
    report = verify(data, best.evidence, items=best.lines)
    assert report.valid, report.line
    assert {"labels", "items", "probabilities", "rounds", "claim"} <= set(report.checked)
    assert ("draws" in report.checked) == final
    assert report.claim is not None
    assert (report.claim["best"]["winner"] is not None) == final
    assumed = [one["code"] for one in report.claim["assumptions"]]
    assert assumed == ([] if judged == "losses" else ["same_answers"])


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


def _surer(body: Document) -> None:
    body["plan"]["alpha"] = body["claim"]["alpha"] = 0.01


def _know_less(body: Document) -> None:
    body["plan"]["known"] -= 1


def _other_label(body: Document) -> None:
    detail = _first(body, "observation")["detail"]
    detail["label"] = (detail["label"] + 1) % 4


def _other_losses(body: Document) -> None:
    one = _first(body, "observation")
    one["losses"] = [1 - loss for loss in one["losses"]]


def _one_loss(body: Document) -> None:
    one = _first(body, "observation")
    one["loss"] = one.pop("losses")[0]


def _short(body: Document) -> None:
    _first(body, "observation")["losses"].pop()


def _beside(body: Document) -> None:
    _first(body, "observation")["losses"][0] = 0.5


def _skip(body: Document) -> None:
    one = _first(body, "observation")
    one["kind"] = "unjudgeable"
    del one["losses"]


def _other_item(body: Document) -> None:
    drawn = {one["item"] for one in body["ledger"] if one["kind"] == "draw"}
    _first(body, "draw")["item"] = next(at for at in range(80) if at not in drawn)


def _likelier(body: Document) -> None:
    one = _first(body, "draw")
    one["q"] *= 1.01


def _assume_nothing(body: Document) -> None:
    body["claim"]["assumptions"] = []


def _record(body: Document) -> None:
    body["surrogates"] = 0


def _other_beta(body: Document) -> None:
    body["plan"]["beta"] = 0.9


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (_put_back, "claim.best"),
        (_crown, "claim.best.winner"),
        (_crown_wholly, "claim.best"),
        (_earlier, "claim.best.systems"),
        (_rename, "pool.systems.names"),
        (_surer, "ledger["),
        (_know_less, "plan.known"),
        (_other_label, "ledger["),
        (_other_losses, "ledger["),
        (_one_loss, "ledger["),
        (_short, "the length of ledger["),
        (_beside, "ledger["),
        (_skip, "ledger["),
        (_other_item, "ledger["),
        (_likelier, "ledger["),
        (_assume_nothing, "claim.assumptions"),
        (_record, "surrogates"),
        (_other_beta, "ledger["),
    ],
)
def test_what_is_forged_is_found(change: Callable[[Document], None], where: str) -> None:
    best = Best().go()
    data = forged(best.certificate(), change)
    difference = verify(data, best.evidence).difference
    assert difference is not None
    assert where in difference.where


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
    best.state = BestState.of(best.plan, best.pool, SEED)
    difference = verify(best.go(5).certificate(), best.evidence, items=best.lines).difference
    assert difference is not None
    assert difference.where == "pool.columns.known"


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
    best.state = BestState.of(best.plan, best.pool, SEED)
    data = best.go(5).certificate()
    assert verify(data, best.evidence).valid
    difference = verify(data, best.evidence, items=best.lines).difference
    assert difference is not None
    assert (difference.where, difference.claimed) == ("pool.columns.answers", f"item {at}")


def test_a_pool_of_another_number_of_systems_is_found() -> None:
    best = Best()
    best.pool = _pool_with(best, surrogates=best.pool.columns["surrogates"][:, :3].copy())
    best.plan = replace(best.plan, pool_digest=best.pool.digest)
    difference = verify(best.go(3).certificate(), best.evidence).difference
    assert difference is not None
    assert difference.where == "pool.columns.surrogates"
