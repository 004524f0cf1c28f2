"""The subject of a session: fixed in its plan, said in its claim, and verified."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from celeus.core.certificate.verify import verify
from celeus.core.plans.claim import Claim
from celeus.core.plans.subject import MOST_SUBJECTS, Subject
from celeus.errors import InvalidValue
from tests.core.certifying import forged, opened, where_of, zero_one_world

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
