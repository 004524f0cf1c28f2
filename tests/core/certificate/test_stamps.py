"""Time stamps of openings, by real authorities and by such as nobody knows."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

from celeus.core.certificate.chain import opening
from celeus.core.certificate.document import certificate
from celeus.core.certificate.report import Report
from celeus.core.certificate.stamps import LARGEST_STAMP, roots_in
from celeus.core.certificate.verify import verify
from tests.core.certifying import KEY, SESSION, Case, opened, zero_one_world
from tests.timestamps import Authority


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> list[Authority]:
    return [Authority(tmp_path_factory.mktemp(f"authority-{name}")) for name in ("one", "other")]


@pytest.fixture(scope="module")
def case() -> Case:
    case = opened(zero_one_world(60))
    case.go(5)
    return case


def stamped(case: Case, stamp: bytes) -> bytes:
    return certificate(replace(case.account(final=False), stamp=stamp), KEY)


def stamp(authority: Authority, message: bytes) -> bytes:
    builder = TimestampRequestBuilder(message, HashAlgorithm.SHA256)
    return authority.answer(builder.build().as_bytes())


def message(case: Case, session: bytes = SESSION) -> bytes:
    return opening(session, bytes.fromhex(case.plan.digest))


def checked(data: bytes, *roots: Path) -> Report:
    return verify(data, roots=[one for path in roots for one in roots_in(path.read_bytes())])


def test_a_stamp_of_the_opening_holds_before_the_roots_of_who_stamped(
    case: Case, authorities: list[Authority]
) -> None:
    one, other = authorities
    data = stamped(case, stamp(one, message(case)))
    report = checked(data, other.roots, one.roots)
    assert (report.valid, report.difference) == (True, None)
    assert "timestamp" in report.checked
    assert "timestamp" not in report.unchecked
    alone = checked(data)
    assert (alone.valid, alone.stamped_at) == (True, None)
    assert report.stamped_at is not None
    assert report.stamped_at in alone.unchecked["timestamp"]
    assert "timestamp" not in alone.checked


def test_a_stamp_of_another_authority_is_found(case: Case, authorities: list[Authority]) -> None:
    one, other = authorities
    report = checked(stamped(case, stamp(one, message(case))), other.roots)
    assert report.difference is not None
    assert (report.difference.where, report.stamped_at) == ("timestamp", None)
    assert "roots do not vouch for" in str(report.difference.claimed)


@pytest.mark.parametrize("with_roots", [True, False])
def test_a_stamp_of_another_opening_is_found(
    case: Case, authorities: list[Authority], *, with_roots: bool
) -> None:
    one = authorities[0]
    elsewhere = stamp(one, message(case, bytes(16)))
    report = checked(stamped(case, elsewhere), *([one.roots] if with_roots else []))
    assert report.difference is not None
    assert report.difference.where == "timestamp"
    start = json.loads(stamped(case, elsewhere))["chain"]["start"]
    assert report.difference.found == f"a time stamp of {start}"


def test_a_stamp_that_is_asked_for_has_to_be_there(
    case: Case, authorities: list[Authority]
) -> None:
    data = certificate(case.account(final=False), KEY)
    assert b"timestamp" not in data
    assert verify(data).unchecked.get("timestamp") is None
    report = checked(data, authorities[0].roots)
    assert report.difference is not None
    assert (report.difference.where, report.difference.claimed) == ("timestamp", None)


@pytest.mark.parametrize("junk", [b"", b"\x30\x00", b"junk", bytes(LARGEST_STAMP + 1)])
def test_what_is_no_stamp_is_found(case: Case, authorities: list[Authority], junk: bytes) -> None:
    report = checked(stamped(case, junk), authorities[0].roots)
    assert report.difference is not None
    assert report.difference.where == "timestamp"


def test_a_stamp_with_a_changed_byte_is_found_or_says_the_same(
    case: Case, authorities: list[Authority]
) -> None:
    one = authorities[0]
    whole = stamp(one, message(case))
    truth = checked(stamped(case, whole), one.roots).stamped_at
    for at in range(0, len(whole), 23):
        changed = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        report = checked(stamped(case, changed), one.roots)
        assert report.stamped_at in {None, truth}
        assert report.valid is (report.stamped_at == truth)
