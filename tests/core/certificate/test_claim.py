"""What only some claims have: a subject, a score, a panel, weights."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from celeus.core.certificate.document import signed
from celeus.core.certificate.verify import verify
from celeus.core.interval import Interval
from celeus.core.ledger import Observation, Rating
from celeus.core.plans.plan import Claim
from celeus.core.plans.subject import MOST_SUBJECTS, Subject
from celeus.core.pools.score import Score
from celeus.errors import InvalidValue
from tests.core.certifying import (
    KEY,
    Case,
    Changes,
    World,
    corrected,
    drop,
    forged,
    named_world,
    opened,
    paired_world,
    put,
    restated,
    weighted_world,
    where_of,
    zero_one_world,
)

MODEL = Subject("model.safetensors", "sha256", "ab" * 32)
COMMIT = Subject("github.com/org/repo", "gitCommit", "0" * 40)


def _certificate(*subject: Subject) -> bytes:
    case = opened(zero_one_world(60), claim=Claim(precision=0.1, subject=subject))
    case.go(8)
    return case.certificate()


def test_the_claim_names_what_the_plan_fixed() -> None:
    report = verify(_certificate(MODEL, COMMIT))
    assert report.valid, report.line
    assert report.claim is not None
    assert report.claim["subject"] == [
        {"name": "model.safetensors", "algorithm": "sha256", "digest": "ab" * 32},
        {"name": "github.com/org/repo", "algorithm": "gitCommit", "digest": "0" * 40},
    ]


def test_a_certificate_that_names_none_has_no_such_member() -> None:
    assert b'"subject"' not in _certificate()


def _other(body: dict[str, Any]) -> None:
    body["claim"]["subject"][0]["digest"] = "cd" * 32


def _added(body: dict[str, Any]) -> None:
    body["claim"]["subject"].append(COMMIT.to_dict())


def _dropped(body: dict[str, Any]) -> None:
    del body["claim"]["subject"]


def _planned(body: dict[str, Any]) -> None:
    _other(body)
    body["plan"]["subject"] = body["claim"]["subject"]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (_other, "claim.subject[0].digest"),
        (_added, "the length of claim.subject"),
        (_dropped, "claim.subject"),
    ],
)
def test_another_subject_is_found_out(change: Callable[[dict[str, Any]], None], where: str) -> None:
    assert where_of(verify(forged(_certificate(MODEL), change))) == where


def test_a_head_noted_at_the_opening_finds_a_subject_named_later() -> None:
    honest = _certificate(MODEL)
    noted = {0: bytes.fromhex(json.loads(honest)["chain"]["start"])}
    assert verify(honest, noted=noted).valid
    assert where_of(verify(forged(honest, _planned), noted=noted)) == "the head after chain.start"


@pytest.mark.parametrize(
    "subject",
    [
        (MODEL, MODEL),
        (MODEL, Subject(MODEL.name, "sha256", "cd" * 32)),
        tuple(Subject(f"{n}", "sha256", "ab" * 32) for n in range(MOST_SUBJECTS + 1)),
        (Subject("two\nlines", "sha256", "ab" * 32),),
        (Subject("n" * 201, "sha256", "ab" * 32),),
    ],
)
def test_subjects_are_few_and_named_apart(subject: tuple[Subject, ...]) -> None:
    with pytest.raises(InvalidValue, match="subject"):
        _certificate(*subject)


Document = dict[str, Any]


def named(world: World | None = None) -> Document:
    body: Document = json.loads(judged(world or named_world()).certificate())
    return body


def test_the_claim_speaks_the_score_and_keeps_the_loss() -> None:
    world = named_world()
    data = judged(world).certificate()
    document = json.loads(data)
    plain = json.loads(judged(zero_one_world(200)).certificate())
    assert document["claim"].keys() - plain["claim"].keys() == {"score"}
    assert document["pool"]["score"] == document["plan"]["score"]
    claim = document["claim"]
    for name in ("interval", "estimate", "labels"):
        assert claim[name] == plain["claim"][name], "the draws do not know the name"
    losses = Interval(**claim["interval"])
    expected = Score("accuracy", "higher", "share").values(
        losses, claim["estimate"], Interval(0.0, 1.0)
    )
    assert claim["score"] == expected
    report = verify(data, world.evidence, items=world.lines)
    assert report.valid, report.difference
    assert verify(data).valid


def nudged(name: str) -> Changes:
    return put(f"claim.score.{name}", to=lambda end: end + 1e-12)


def everywhere(name: str, value: str) -> Changes:
    return put(*(f"{part}.score.{name}" for part in ("plan", "pool", "claim")), to=value)


def told_as_loss(body: Document) -> None:
    claim = body["claim"]
    claim["score"] |= claim["interval"]


@pytest.mark.parametrize(
    ("forge", "where"),
    [
        (nudged("lower"), "claim.score.lower"),
        (nudged("upper"), "claim.score.upper"),
        (nudged("estimate"), "claim.score.estimate"),
        (put("claim.score.name", to="recall"), "claim.score.name"),
        (put("claim.score.better", to="lower"), "claim.score.better"),
        (told_as_loss, "claim.score.lower"),
        (drop("claim.score"), "claim.score"),
        (
            put("plan.score.name", "claim.score.name", to="recall"),
            "plan.score.name",
        ),
        (everywhere("better", "lower"), "claim.score"),
        (everywhere("unit", "number"), "pool.score.unit"),
    ],
)
def test_a_forged_score_is_found_in_what_the_issuer_signed(
    forge: Callable[[Document], None], where: str
) -> None:
    body = named()
    forge(body)
    assert where_of(verify(restated(body))).startswith(where)


def test_another_name_for_the_pool_is_found_beside_its_columns() -> None:
    body = named()
    everywhere("name", "recall")(body)
    assert where_of(verify(restated(body), named_world().evidence)) == "pool.score.name"


@pytest.mark.parametrize(
    ("score", "where"),
    [
        ({"name": "", "better": "higher", "unit": "share"}, "pool.score.name"),
        ({"name": "accuracy", "better": "more", "unit": "share"}, "pool.score.better"),
        ({"name": "accuracy", "better": "higher"}, "pool.score"),
        ({"name": 7, "better": "higher", "unit": "share"}, "pool.score.name"),
        (None, "pool.score"),
    ],
)
def test_scores_that_cannot_be_are_found(score: object, where: str) -> None:
    body = named(zero_one_world(200))
    body["pool"]["score"] = score
    assert where_of(verify(restated(body))).startswith(where)


def test_a_preference_has_no_score() -> None:
    case: Case = opened(paired_world(60), claim=Claim(precision=0.2))
    body = json.loads(case.certificate())
    body["pool"]["score"] = {"name": "win rate", "better": "higher", "unit": "share"}
    assert where_of(verify(restated(body))) == "pool.score"


def test_a_pool_is_another_by_the_name_of_its_score() -> None:
    pool = named_world(40).pool
    others = (None, Score("accuracy", "lower", "share"), Score("recall", "higher", "share"))
    digests = {replace(pool, score=score).digest for score in (pool.score, *others)}
    assert len(digests) == 1 + len(others)


@pytest.mark.parametrize(
    ("raters", "says"), [("pairs", "the mean over"), ("assigned", "assignment")]
)
def test_a_certificate_says_whose_judgements_losses_are(raters: str, says: str) -> None:
    world = zero_one_world(60)
    case = corrected(opened(world, "sharp", Claim(precision=0.1, raters=raters)))
    data = case.certificate(final=True)
    report = verify(data, world.evidence, items=world.lines)
    assert report.difference is None, report.line
    document = json.loads(data)
    texts = {one["code"]: one["text"] for one in document["claim"]["assumptions"]}
    assert document["plan"]["raters"] == raters
    assert says in texts["raters"]


PANEL = ("ann", "ben", "cid")


def panelled(rounds: int = 12) -> Case:
    """A session of two raters and a third, who differ on every third round."""
    world = zero_one_world(60)
    claim = Claim(precision=0.1, raters="assigned", protocol="two_then_third", panel=PANEL)
    case = opened(world, "sharp", claim)
    for _ in range(rounds):
        draw = case.draw()[0]
        ratings = case.state.question.ratings
        assert ratings is not None
        number = 0
        while not (result := ratings.outcome(draw.round)).decided:
            rater = ratings.turn(draw.round).raters[0]
            differs = number == 1 and draw.round % 3 == 0
            loss = abs(float(world.losses[draw.item]) - differs)
            case.enter(Rating(draw.round, rater, loss), rater=rater, worker=rater)
            number += 1
        assert result.loss is not None
        case.enter(Observation(draw.round, result.loss))
    return case


def test_every_outcome_is_found_from_the_judgements_of_the_raters() -> None:
    case = panelled()
    interim = verify(case.certificate(final=False), case.world.evidence)
    assert interim.difference is None, interim.line
    assert "raters" in interim.checked
    assert "turns" in interim.unchecked
    for evidence in (None, case.world.evidence):
        report = verify(case.certificate(), evidence)
        assert report.difference is None, report.line
        assert {"raters", "turns"} <= set(report.checked)
    claim = json.loads(case.certificate())["claim"]
    assert claim["raters"].pop("agreement") < 1.0
    assert claim["raters"] == {
        "protocol": "two_then_third",
        "panel": 3,
        "judgements": 28,
        "items": 12,
    }


def another_loss(ledger: list[Any]) -> None:
    """The loss of one rater, who agreed with the other."""
    one = next(it for it in ledger if it["kind"] == "rating")
    one["loss"] = 1 - one["loss"]


def another_rater(ledger: list[Any]) -> None:
    """The third of the panel in place of the one whose turn it was."""
    two = [it["detail"] for it in ledger if it["kind"] == "rating"][:2]
    third = next(name for name in PANEL if name not in {it["rater"] for it in two})
    two[0]["rater"] = third


def a_stranger(ledger: list[Any]) -> None:
    """Somebody who is not of the panel."""
    next(it for it in ledger if it["kind"] == "rating")["detail"]["rater"] = "eve"


def another_outcome(ledger: list[Any]) -> None:
    """Another loss than the raters came to."""
    one = next(it for it in ledger if it["kind"] == "observation")
    one["loss"] = 1 - one["loss"]


@pytest.mark.parametrize(
    ("forge", "where"),
    [
        (another_loss, "raters"),
        (another_rater, "raters"),
        (a_stranger, "ledger[1].detail.rater"),
        (another_outcome, "raters"),
    ],
)
def test_a_ledger_whose_raters_come_to_something_else_is_not_valid(
    forge: Callable[[list[Any]], None], where: str
) -> None:
    document = json.loads(panelled().certificate())
    forge(document["ledger"])
    assert where_of(verify(restated(document))) == where


def judged(world: World, policy: str = "sharp") -> Case:
    return corrected(opened(world, policy, Claim(precision=0.1)))


@pytest.mark.parametrize("policy", ["sharp", "uniform"])
@pytest.mark.parametrize("final", [True, False])
def test_a_weighted_mean_verifies_with_its_pool(policy: str, *, final: bool) -> None:
    world = weighted_world()
    data = judged(world, policy).certificate(final=final)
    document = json.loads(data)
    weight = world.pool.columns["weight"]
    effective = weight.sum() ** 2 / (weight**2).sum()
    assert document["claim"]["effective_items"] == pytest.approx(effective)
    report = verify(data, world.evidence, items=world.lines)
    assert report.valid, report.difference
    assert {"probabilities", "surrogates", "rounds", "claim"} <= set(report.checked)


def test_without_its_pool_it_is_not_verified() -> None:
    data = judged(weighted_world()).certificate()
    assert verify(data).line.startswith(
        "cannot be checked: the pool is missing, expected its columns, as"
    )


def other_weight(world: World) -> dict[str, Any]:
    """The pool's columns, where one item counts a little more."""
    columns = {name: column.copy() for name, column in world.pool.columns.items()}
    item = int(np.argsort(columns["weight"])[columns["weight"].size // 2])
    columns["weight"][item] *= 1.01
    return columns


def test_a_forged_weight_is_found_by_the_digest() -> None:
    world = weighted_world()
    evidence = replace(world.evidence, columns=other_weight(world))
    assert where_of(verify(judged(world).certificate(), evidence)).startswith("pool.columns")


def test_a_forged_weight_is_found_when_the_issuer_names_it_by_its_digest() -> None:
    """Plan and header say what the forged column says: the session is then another one."""
    honest = weighted_world()
    forged = World(replace(honest.pool, columns=other_weight(honest)), honest.losses)
    body: Document = json.loads(judged(honest).certificate())
    body["pool"] = forged.pool.header()
    assert forged.pool.weights is not None
    body["plan"]["weights"] = forged.pool.weights.to_dict()
    assert forged.pool.known is not None
    body["plan"]["known"] = forged.pool.known.to_dict()
    assert where_of(verify(restated(body), forged.evidence)).startswith(
        ("ledger", "rounds", "surrogates")
    )


@pytest.mark.parametrize("name", ["mean", "least", "largest", "effective_items"])
def test_forged_facts_are_found(name: str) -> None:
    world = weighted_world()
    body: Document = json.loads(judged(world).certificate())
    body["plan"]["weights"][name] *= 1.0 + 1e-6
    assert where_of(verify(restated(body), world.evidence)) == f"plan.weights.{name}"


@pytest.mark.parametrize("change", [{"least": 0.0}, {"least": -1.0}, {"least": 1e-9}, {"more": 1}])
def test_facts_that_cannot_be_are_found(change: dict[str, float]) -> None:
    world = weighted_world()
    body: Document = json.loads(judged(world).certificate())
    body["plan"]["weights"] |= change
    body.pop("signature")
    assert where_of(verify(signed(body, KEY), world.evidence)).startswith(
        ("plan.weight", "plan.weights")
    )


def test_a_plan_that_keeps_weights_to_itself_is_found() -> None:
    body: Document = json.loads(judged(weighted_world()).certificate())
    del body["plan"]["weights"]
    assert where_of(verify(restated(body))) == "whether pool.columns hold a weight"


def test_a_pool_without_weights_says_nothing_of_them() -> None:
    document = json.loads(judged(zero_one_world()).certificate())
    assert "weights" not in document["plan"]
    assert "effective_items" not in document["claim"]
