"""What a certificate says, and that every one of our own holds."""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import rfc8785

from celeus.core.certificate.chain import chain_head, chain_start
from celeus.core.certificate.ed25519 import public_of, signed_by
from celeus.core.certificate.layout import Certificate
from celeus.core.certificate.verify import verify
from celeus.core.plans.plan import Claim
from celeus.core.plans.stopping import Question
from tests.core.certifying import (
    KEY,
    OTHER_KEY,
    SEED,
    SESSION,
    Case,
    bare_world,
    graded_world,
    opened,
    zero_one_world,
)
from tests.nightly import by_day

PUBLIC = public_of(KEY)


def _walked(case: Case) -> Case:
    """Draws ahead of losses, judgements out of order, unjudgeable rounds, corrections, a change."""
    case.go(25, hidden=[3, 11])
    case.draw(5)
    case.judge([28, 26, 30])
    case.amend(5, case.plan.upper)
    case.amend(6, None)
    case.amend(3, case.plan.lower)
    case.change(0.9 * (case.plan.precision or case.plan.scale.width / 10.0))
    case.judge([27])
    case.go(12, hidden=[33])
    return case


def _exhausted(case: Case) -> Case:
    while case.state.drawn < case.plan.items:
        case.go(1, hidden=[7])
    return case


QUESTIONS = (Question("at_most", 0.9), Question("at_least", 0.31))
BUILDS: dict[str, Callable[[], Case]] = {
    "sharp": lambda: _walked(opened(zero_one_world())),
    "sharp graded": lambda: _walked(opened(graded_world())),
    "sharp without a precision": lambda: _walked(opened(zero_one_world(), claim=Claim())),
    "sharp pairs": lambda: _walked(
        opened(zero_one_world(), claim=Claim("population", precision=0.2))
    ),
    "sharp kl": lambda: _walked(
        opened(graded_world(), claim=Claim("population", precision=4.0, population_bound="kl"))
    ),
    "sharp asked": lambda: _walked(
        opened(zero_one_world(), claim=Claim(precision=0.1, questions=QUESTIONS))
    ),
    "sharp exhausted": lambda: _exhausted(opened(zero_one_world(60))),
    "pairs exhausted": lambda: _exhausted(
        opened(zero_one_world(60), claim=Claim("population", precision=0.4))
    ),
    "sharp on nothing known": lambda: _walked(opened(bare_world())),
    "uniform": lambda: _walked(opened(zero_one_world(), "uniform")),
    "celeus": lambda: _walked(opened(graded_world(), "celeus")),
    "celeus exact": lambda: _walked(opened(graded_world(), "celeus", range="exact")),
    "celeus global": lambda: _walked(opened(graded_world(), "celeus", range="global")),
    "celeus exhausted": lambda: _exhausted(opened(zero_one_world(60), "celeus")),
    "celeus margin": lambda: _walked(
        opened(
            zero_one_world(),
            "celeus",
            Claim("population", precision=0.3, margin=0.02, margin_assumption="a mixing pool"),
        )
    ),
    "nothing drawn": lambda: opened(zero_one_world()),
    "nothing drawn of pairs": lambda: opened(
        zero_one_world(), claim=Claim("population", precision=0.2)
    ),
    "nothing judged": lambda: opened(zero_one_world(), "celeus"),
    "labels": lambda: opened(zero_one_world()),
}


@pytest.fixture(scope="module", params=by_day(11, BUILDS))
def case(request: pytest.FixtureRequest) -> Case:
    name = str(request.param)
    built = BUILDS[name]()
    if name == "nothing judged":
        built.draw(4)
    if name == "labels":
        built.labels = True
        built.go(30)
    return built


def test_a_certificate_holds_with_its_pool_and_without(case: Case) -> None:
    interim = case.certificate(final=False)
    alone, beside = verify(interim), verify(interim, case.world.evidence, PUBLIC)
    assert (alone.difference, beside.difference) == (None, None)
    assert alone.valid
    assert beside.valid
    assert set(beside.unchecked) == {"commitment", "draws", "items"}
    final = case.certificate(final=True)
    alone = verify(final)
    beside = verify(final, case.world.evidence, PUBLIC, items=case.world.lines)
    assert (alone.difference, beside.difference) == (None, None)
    assert beside.unchecked == {}
    known = not case.plan.policy.uses_scores
    missing = set() if known else {"draws", "probabilities", "surrogates"}
    assert set(alone.unchecked) == {"pool_columns", "items", "labels", "issuer"} | missing


OPENINGS: list[Callable[[], Case]] = [
    lambda: opened(zero_one_world(50)),
    lambda: opened(graded_world(50)),
    lambda: opened(zero_one_world(50), claim=Claim()),
    lambda: opened(zero_one_world(50), claim=Claim(precision=0.2, questions=QUESTIONS)),
    lambda: opened(zero_one_world(50), claim=Claim(questions=QUESTIONS, budget=20)),
    lambda: opened(zero_one_world(50), claim=Claim("population", precision=0.45)),
    lambda: opened(bare_world(50), "uniform"),
    lambda: opened(graded_world(50), "celeus", range="exact"),
    lambda: opened(zero_one_world(50), "celeus", Claim("population", precision=0.7)),
]


def _wandered(case: Case, chance: np.random.Generator) -> Case:
    """Whatever may happen to a session, in any order, to the last item or not."""
    for _ in range(int(chance.integers(1, 80))):
        state, step = case.state, int(chance.integers(8))
        judged = [one.draw.round for one in state.rounds if one.answered_at]
        out = [one.draw.round for one in state.rounds if not one.answered_at]
        room = min(case.plan.items, state.stopping.budget) - state.drawn
        if step <= 2 and room:
            case.draw(int(chance.integers(1, min(room, 4) + 1)))
        elif step <= 5 and out:
            one = int(chance.choice(out))
            case.judge([one], hidden=[one] if chance.random() < 0.1 else [])
        elif step == 6 and judged:
            ends = [case.plan.lower, case.plan.upper, None]
            case.amend(int(chance.choice(judged)), ends[int(chance.integers(3))])
        elif step == 7:
            finer = (case.plan.precision or case.plan.scale.width / 5.0) * chance.uniform(0.98, 1.3)
            budget = int(chance.integers(max(state.drawn, 1), case.plan.items + 1))
            precision = None if chance.random() < 0.2 else float(finer)
            case.change(precision, budget, state=str(chance.choice(["active", "paused"])))
    return case


@pytest.mark.parametrize("seed", by_day(22, range(66)))
def test_wherever_a_session_went_its_certificates_hold(seed: int) -> None:
    case = _wandered(OPENINGS[seed % len(OPENINGS)](), np.random.default_rng(seed))
    for final in (False, True):
        data = case.certificate(final=final)
        for evidence in (None, case.world.evidence):
            report = verify(data, evidence, PUBLIC)
            assert report.valid, report.difference
            assert report.claim is not None
            assert report.claim["rounds"]["in_interval"] == case.state.folded


def test_a_certificate_is_canonical_json_signed_over_all_the_rest(case: Case) -> None:
    data = case.certificate(final=False)
    document = json.loads(data)
    assert rfc8785.dumps(document) == data
    required = {each.name for each in fields(Certificate)} - set(Certificate.optional)
    assert document.keys() == required
    signature = document.pop("signature")
    public = bytes.fromhex(signature["public_key"])
    digest = hashlib.sha256(rfc8785.dumps(document)).digest()
    assert signed_by(digest, bytes.fromhex(signature["value"]), public)
    assert case.certificate(final=False) == data


def test_what_a_certificate_names_by_digest_can_be_computed_by_anybody(case: Case) -> None:
    document: dict[str, Any] = json.loads(case.certificate(final=False))
    assert document["plan_digest"] == hashlib.sha256(rfc8785.dumps(document["plan"])).hexdigest()
    assert document["pool_digest"] == hashlib.sha256(rfc8785.dumps(document["pool"])).hexdigest()
    start = chain_start(SESSION, bytes.fromhex(document["plan_digest"]))
    assert document["chain"]["start"] == start.hex()
    assert document["chain"]["head"] == chain_head(start, document["ledger"]).hex()
    assert document["commitment"] == hashlib.sha256(SEED).hexdigest()


def test_a_claim_says_what_it_rests_on() -> None:
    def codes(case: Case) -> list[str]:
        claim = json.loads(case.certificate(final=False))["claim"]
        return [one["code"] for one in claim["assumptions"]]

    world = zero_one_world()
    corrected = ["one_version", "independent_corrections"]
    assert codes(opened(world)) == ["these_answers"]
    assert codes(opened(world, claim=Claim("population", precision=0.2))) == ["iid_sample"]
    assert codes(BUILDS["sharp"]()) == ["these_answers", "unforeseen_draws", *corrected]
    signed = ["unforeseen_draws", "signed_losses", *corrected]
    assert codes(BUILDS["celeus margin"]()) == ["margin", *signed]
    margin = json.loads(BUILDS["celeus margin"]().certificate(final=False))["claim"]
    assert "a mixing pool" in margin["assumptions"][0]["text"]


def test_a_claim_counts_the_changes_of_its_settings() -> None:
    def settings(case: Case) -> tuple[bool, int]:
        claim = json.loads(case.certificate(final=False))["claim"]
        return claim["fixed"], claim["changes"]

    case = opened(zero_one_world(), claim=Claim(precision=0.2))
    case.go(3)
    assert settings(case) == (False, 0)
    for precision in (0.1, 0.1, 0.3):
        case.change(precision)
    case.change(0.3, budget=90)
    case.change(0.3, state="paused")
    assert settings(case) == (False, 3)
    fixed = opened(zero_one_world(), claim=Claim(precision=0.2, fixed=True))
    fixed.change(0.2, state="paused")
    assert settings(fixed) == (True, 0)


def test_a_claim_counts_labels_and_what_nobody_could_judge() -> None:
    case = opened(zero_one_world())
    case.go(10, hidden=[2, 4])
    case.draw(3)
    case.judge([13])
    claim = json.loads(case.certificate(final=False))["claim"]
    assert (claim["labels"], claim["unjudgeable"]) == (8, 2)
    assert claim["rounds"] == {
        "drawn": 13,
        "judged": 11,
        "in_interval": 10,
        "pending": 2,
        "waiting": 1,
    }


def test_an_interim_certificate_holds_nothing_of_the_seed() -> None:
    data = BUILDS["sharp"]().certificate(final=False)
    document = json.loads(data)
    assert document["seed"] is None
    assert SEED.hex().encode() not in data
    assert (document["kind"], document["final"]) == ("interim", False)


def test_a_second_completion_is_told_of_only_where_it_differs() -> None:
    case = opened(zero_one_world())
    case.go(10)
    assert json.loads(case.certificate(final=False))["rounds"]["other"]["round"] == []
    case.go(5, hidden=[12])
    rounds = json.loads(case.certificate(final=False))["rounds"]["other"]["round"]
    assert rounds == [13, 14, 15]


def test_the_issuer_is_named_and_trusted_only_when_somebody_says_so() -> None:
    data = BUILDS["nothing drawn"]().certificate(final=False)
    public = PUBLIC.hex()
    told = verify(data)
    assert told.valid
    assert told.signature.trusted is None
    reason = f"signed by {public}; no trusted key was given"
    assert told.unchecked["issuer"] == reason
    assert verify(data, trusted=PUBLIC).signature.trusted
    foreign = verify(data, trusted=public_of(OTHER_KEY))
    assert not foreign.valid
    assert foreign.signature.valid
    assert foreign.difference is not None
    assert foreign.difference.where == "signature.public_key"


def test_many_corrections_in_a_row_cost_one_fold() -> None:
    case = opened(zero_one_world())
    case.go(120)
    chance = np.random.default_rng(5)
    for _ in range(300):
        round_ = int(chance.integers(1, 121))
        case.amend(round_, float(chance.integers(0, 2)))
    case.go(3)
    data = case.certificate()
    # A fold of 120 rounds takes some 20 ms: folded after each correction they would take 6 s.
    began = time.process_time()
    report = verify(data, case.world.evidence)
    assert report.valid, report.difference
    assert time.process_time() - began < 2.0
