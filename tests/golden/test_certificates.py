"""Certificates issued by this version and earlier ones; they must verify for ever."""

from pathlib import Path

import pytest

from app.core.report import Report
from app.core.signing import public_of
from app.core.verification import verify
from app.operations.archives import read_archive
from tests.core.certifying import KEY
from tests.golden.make_certificates import CERTIFICATES, FOLDER, KINDS

ISSUED = sorted(path.name for path in FOLDER.glob("*.json"))
WITHOUT_SCORES = {"uniform", "no-surrogate", "evalue"}
"""Of these nothing but the columns themselves takes the pool."""


def _with_pool(path: Path) -> Report:
    _, pool, _, _ = path.name.split(".")
    with (FOLDER / f"{pool}.npz").open("rb") as archive:
        return verify(path.read_bytes(), read_archive(archive), public_of(KEY))


def test_every_certificate_that_was_made_is_kept() -> None:
    made = {
        f"{name}.{pool}.{kind}.json" for name, (pool, _) in CERTIFICATES.items() for kind in KINDS
    }
    assert made == set(ISSUED)


@pytest.mark.parametrize("name", ISSUED)
def test_a_certificate_once_issued_verifies_for_ever(name: str) -> None:
    final = ".final." in name
    policy = name.split(".", maxsplit=1)[0]
    alone = verify((FOLDER / name).read_bytes())
    assert alone.valid, alone.difference
    missing = {"pool_columns", "labels", "issuer"} | (set() if final else {"commitment", "draws"})
    if policy not in WITHOUT_SCORES:
        missing |= {"draws", "probabilities", "surrogates"}
    assert set(alone.unchecked) == missing
    beside = _with_pool(FOLDER / name)
    assert beside.valid, beside.difference
    assert set(beside.unchecked) == (set() if final else {"commitment", "draws"})
