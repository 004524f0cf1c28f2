"""Certificates of sessions with several raters say whose judgements the losses are."""

import json

import pytest

from celeus.core.certificates.verify import verify
from celeus.core.plans.plan import Claim
from tests.core.certifying import corrected, opened, zero_one_world


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
