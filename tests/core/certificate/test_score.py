"""Certificates that name a score: what they say, and that a forged one is found."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from celeus.core.certificate.verify import verify
from celeus.core.interval import Interval
from celeus.core.plans.plan import Claim
from celeus.core.pools.score import Score
from tests.core.certificate.test_weights import judged
from tests.core.certifying import (
    Case,
    Changes,
    World,
    drop,
    named_world,
    opened,
    paired_world,
    put,
    restated,
    where_of,
    zero_one_world,
)

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
