"""Certificates issued by this version and earlier ones; they must verify for ever."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
import rfc8785

from celeus.core.certificates.ed25519 import public_of
from celeus.core.certificates.report import Report
from celeus.core.certificates.verify import verify
from celeus.operations.certificates.npz import read_archive
from tests.core.certifying import KEY
from tests.golden.make_certificates import BEST, CERTIFICATES, FOLDER, KINDS, TABLES

ISSUED = sorted(path.name for path in FOLDER.glob("*.json"))
WITHOUT_SCORES = {"uniform", "no-surrogate", "evalue", "evalue-ahead"}
"""Of these nothing but the columns themselves takes the pool."""
NEEDS_POOL = {"weights", *BEST, *TABLES}
"""These are nothing without it."""


def _with_pool(path: Path) -> Report:
    _, pool, _, _ = path.name.split(".")
    with (FOLDER / f"{pool}.npz").open("rb") as archive:
        return verify(path.read_bytes(), read_archive(archive), public_of(KEY))


@pytest.mark.parametrize("name", ISSUED)
def test_every_digest_is_taken_over_rfc_8785(name: str) -> None:
    """By the library alone, as somebody else's verifier would."""
    data = (FOLDER / name).read_bytes()
    document = json.loads(data)
    assert rfc8785.dumps(document) == data
    for part in ("plan", "pool"):
        assert document[f"{part}_digest"] == sha256(rfc8785.dumps(document[part])).hexdigest()
    session = bytes.fromhex(document["session_id"].removeprefix("ses_"))
    head = sha256(b"celeus-ledger-1" + session + bytes.fromhex(document["plan_digest"])).digest()
    assert document["chain"]["start"] == head.hex()
    for record in document["ledger"]:
        head = sha256(head + rfc8785.dumps(record)).digest()
    assert document["chain"]["head"] == head.hex()


def test_every_certificate_that_was_made_is_kept() -> None:
    made = {
        f"{name}.{pool}.{kind}.json"
        for name, (pool, _) in (*CERTIFICATES.items(), *BEST.items(), *TABLES.items())
        for kind in KINDS
    }
    assert made == set(ISSUED)


@pytest.mark.parametrize("name", ISSUED)
def test_a_certificate_once_issued_verifies_for_ever(name: str) -> None:
    final = ".final." in name
    policy = name.split(".", maxsplit=1)[0]
    beside = _with_pool(FOLDER / name)
    assert beside.valid, beside.difference
    of_the_seed = set() if final else {"commitment", "draws"}
    if policy in {"two-systems", "best-by-losses"} and not final:
        of_the_seed |= {"sides"}
    assert set(beside.unchecked) == {"items"} | of_the_seed
    alone = verify((FOLDER / name).read_bytes())
    if policy in NEEDS_POOL:
        assert alone.difference is not None
        assert alone.difference.where == "the pool"
        return
    assert alone.valid, alone.difference
    missing = {"pool_columns", "items", "labels", "issuer"} | of_the_seed
    if policy not in WITHOUT_SCORES:
        missing |= {"draws", "probabilities", "surrogates"}
    assert set(alone.unchecked) == missing
