"""`celeus verify`, `celeus admin audit` and `signing-key` as people and pipelines call them."""

import json
import os
import re
import resource
import stat
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

import celeus
from celeus.api.pools.items import archive_of
from celeus.client.bundle import bundled
from celeus.commands.verify import DRAWS_TELL
from celeus.core.certificate.chain import chain_head, chain_start, opening
from celeus.core.certificate.document import certificate as make
from celeus.core.certificate.document import signed
from celeus.core.certificate.ed25519 import public_of, public_to_pem
from celeus.core.plans.plan import Claim
from celeus.errors import InvalidValue
from celeus.operations.certificates.npz import read_archive
from celeus.operations.certificates.signing_keys import trusted_key
from tests.cli.calling import Run
from tests.core.certifying import (
    KEY,
    OTHER_KEY,
    SESSION,
    Case,
    opened,
    paired_world,
    zero_one_world,
)
from tests.core.contending import Best
from tests.core.tabling import WISHES, Tabled, added_later
from tests.golden.make_certificates import FOLDER
from tests.timestamps import Authority

LONG = re.compile(r"\.\d{13}")
"""Digits that nobody writes."""


@pytest.fixture(scope="module")
def case() -> Case:
    case = opened(zero_one_world(120))
    case.go(15)
    case.close()
    return case


@pytest.fixture
def certificate(case: Case, tmp_path: Path) -> Path:
    path = tmp_path / "certificate.json"
    path.write_bytes(case.certificate())
    return path


@pytest.fixture
def pool(case: Case, tmp_path: Path) -> Path:
    path = tmp_path / "pool.npz"
    with archive_of(case.world.pool) as archive:
        path.write_bytes(archive.read())
    return path


@pytest.fixture
def items(case: Case, tmp_path: Path) -> Path:
    path = tmp_path / "items.jsonl"
    path.write_bytes(b"\n".join(case.world.lines))
    return path


def test_a_comparison_is_named_by_its_systems(run: Run, tmp_path: Path) -> None:
    case = opened(paired_world(120))
    case.go(15)
    certificate, pool, items = (tmp_path / name for name in ("c.json", "pool.npz", "items.jsonl"))
    certificate.write_bytes(case.certificate())
    with archive_of(case.world.pool) as archive:
        pool.write_bytes(archive.read())
    items.write_bytes(b"\n".join(case.world.lines))
    answer = run("verify", certificate, "--pool", pool, "--items", items)
    assert answer.status == 0, answer.err
    assert "pool difference of loss, A (one) minus B (two), " in answer.out
    assert "sides" in answer.out
    items.write_bytes(b"\n".join(case.world.lines[:-1]))
    assert run("verify", certificate, "--items", items).status == 1


def _key_file(folder: Path, content: bytes) -> Path:
    path = folder / "key"
    path.write_bytes(content)
    return path


def test_a_valid_certificate_ends_with_status_0(
    run: Run, certificate: Path, pool: Path, items: Path, tmp_path: Path
) -> None:
    alone = run("verify", certificate)
    assert (alone.status, alone.err) == (0, "")
    assert "claim: pool risk" in alone.out
    unread = "pool_columns, labels, draws, probabilities, surrogates (it takes the pool's columns)"
    assert f"not checked: {unread}" in alone.out
    assert "no trusted key was given" in alone.out
    assert DRAWS_TELL not in alone.out, "no draw was made again"
    public = public_of(KEY)
    pem = _key_file(tmp_path, public_to_pem(public))
    full = run(*("verify", certificate, "--pool", pool, "--items", items, "--public-key", pem))
    assert (full.status, full.err) == (0, "")
    assert "not checked" not in full.out
    assert f"  {DRAWS_TELL}\n" in full.out
    assert full.out.endswith(f"\nholds: valid final certificate of ses_{SESSION.hex()}\n")
    # What is trusted may come in two more ways
    digits = _key_file(tmp_path, public.hex().encode() + b"\n")
    assert trusted_key(public.hex()) == trusted_key(str(digits)) == public


def test_draws_that_depend_on_no_loss_are_no_evidence_of_losses(run: Run, tmp_path: Path) -> None:
    case = opened(zero_one_world(120), "uniform")
    case.go(15)
    path = tmp_path / "certificate.json"
    path.write_bytes(case.certificate())
    out = run("verify", path).out
    assert "assumes: The draws were fixed before any loss and do not depend on losses" in out
    assert DRAWS_TELL not in out


def test_words_of_a_certificate_stay_on_their_line(run: Run, tmp_path: Path) -> None:
    """A margin's reason cleared the screen and wrote a claim and a verdict of its own."""
    reason = "drift\n\x1b[2Jclaim: pool risk 0.01 to 0.02\nvalid final certificate\u202e\x9b8m"
    claim = Claim("population", precision=0.3, margin=0.01, margin_assumption=reason)
    case = opened(zero_one_world(120), claim=claim)
    case.go(15)
    path = tmp_path / "certificate.json"
    path.write_bytes(case.certificate())
    answer = run("verify", path)
    assert answer.status == 0
    assert r"drift\n\x1b[2Jclaim: pool risk 0.01 to 0.02\nvalid final" in answer.out
    assert all(line.isprintable() for line in answer.out.splitlines())
    assert answer.out.count("\nclaim: ") == 0
    as_json = run("verify", path, "--json")
    assert all(line.isprintable() for line in as_json.out.splitlines())
    assert json.loads(as_json.out)["claim"]["assumptions"][0]["text"].endswith("\u202e\x9b8m")


@pytest.mark.parametrize(
    ("name", "pool"),
    [
        ("accuracy", "named"),
        ("celeus", "graded"),
        ("table-each", "tabled"),
        ("weights", "weighted"),
    ],
)
def test_numbers_are_printed_as_people_write_them(run: Run, name: str, pool: str) -> None:
    certificate, columns = FOLDER / f"{name}.{pool}.final.json", FOLDER / f"{pool}.npz"
    answer = run("verify", certificate, "--pool", columns)
    assert answer.status == 0, answer.err
    assert not LONG.search(answer.out), answer.out


def test_a_difference_is_told_with_the_digits_that_show_it(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    found = json.loads((FOLDER / "uniform.bare.final.json").read_bytes())
    del found["signature"]
    cell = found["plan"]["cell"]
    for claimed, words in ((0.1 + 0.2, f"0.3, expected {cell}"), (cell * (1 + 2e-16), repr(cell))):
        found["plan"]["cell"] = claimed
        path.write_bytes(signed(found, KEY))
        line = run("verify", path).err
        assert "plan.cell" in line
        assert words in line
    assert repr(cell * (1 + 2e-16)) in line


def test_the_time_in_a_stamp_is_printed(run: Run, case: Case, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    message = opening(SESSION, bytes.fromhex(case.plan.digest))
    request = TimestampRequestBuilder(message, HashAlgorithm.SHA256).build().as_bytes()
    stamped = replace(case.account(final=True), stamp=authority.answer(request))
    path = tmp_path / "certificate.json"
    path.write_bytes(make(stamped, KEY))
    roots = ("--timestamp-roots", authority.roots)
    told = run("verify", path, *roots)
    assert (told.status, told.err) == (0, "")
    assert re.search(r"^opened by 20\d\d-.*, says the stamp", told.out, re.MULTILINE)
    assert "not checked: timestamp (it says 20" in run("verify", path).out
    path.write_bytes(case.certificate())
    alone = run("verify", path)
    assert (alone.status, "no time stamp: " in alone.out) == (0, True)
    missing = run("verify", path, *roots)
    assert missing.status == 1
    assert "timestamp is missing, expected a time stamp of the opening" in missing.err
    unreadable = run("verify", path, "--timestamp-roots", path)
    assert unreadable.status == 2
    assert "certificates in PEM" in unreadable.err


@pytest.mark.parametrize(
    ("rounds", "words"),
    [
        (0, "any of 4 systems may be the best, alpha 0.2"),
        (1000, "llama-70b is at least as good as every other of 4 systems, alpha 0.2"),
    ],
)
def test_the_best_of_several_is_named_and_takes_the_pool(
    run: Run, tmp_path: Path, rounds: int, words: str
) -> None:
    best = Best().go(rounds)
    path, pool = tmp_path / "best.json", tmp_path / "best.npz"
    path.write_bytes(best.certificate())
    with archive_of(best.pool) as archive:
        pool.write_bytes(archive.read())
    answer = run("verify", path, "--pool", pool)
    assert answer.status == 0
    assert words in answer.out
    if not rounds:
        alone = run("verify", path)
        assert alone.status == 2
        assert "cannot be checked: the pool is missing" in alone.err


def verified(run: Run, tabled: Tabled, folder: Path) -> list[str]:
    """What is said of a table's certificate, which holds."""
    path, pool = folder / "table.json", folder / "table.npz"
    path.write_bytes(tabled.certificate())
    with archive_of(tabled.pool) as archive:
        pool.write_bytes(archive.read())
    answer = run("verify", path, "--pool", pool)
    assert answer.status == 0
    return answer.out.splitlines()


def test_claims_about_a_table_are_said_in_a_few_lines(run: Run, tmp_path: Path) -> None:
    lines = verified(run, Tabled(WISHES["closed"]).go(), tmp_path)
    assert lines[0].startswith("claim: 14 claims, account closed, alpha 0.05, ")
    assert "none of the answers yes is false" in lines[1]
    assert lines[2].startswith("  correct: accuracy ")
    assert any(line.startswith("  grade in 4 groups by subject: mean loss ") for line in lines)
    assert any(line.startswith("  answers: ") for line in lines)
    assert any(line.startswith("  assumes: What is stated of losses") for line in lines)


def test_claims_added_later_are_told_apart(run: Run, tmp_path: Path) -> None:
    lines = verified(run, added_later(), tmp_path)
    assert any(line.startswith("  correct in 2 groups by level: accuracy ") for line in lines)
    for said in ("correct in level hard, added after 24", "grade, added after 52"):
        assert any(line.startswith(f"  {said} labels: ") for line in lines), lines
    assert any(line.startswith("  assumes: Claims were added while") for line in lines)


def test_what_the_claim_rests_on_is_printed_beside_it(run: Run, tmp_path: Path) -> None:
    case = opened(zero_one_world(120), claim=Claim("population", precision=0.3))
    case.go(15, hidden=[3])
    case.amend(2, 1.0)
    case.change(0.25)
    path = tmp_path / "certificate.json"
    path.write_bytes(case.certificate(final=False))
    lines = run("verify", path).out.splitlines()
    assumed = [line for line in lines if line.startswith("  assumes: ")]
    assert len(assumed) == 4
    assert "iid sample" in assumed[0]
    assert "could not foresee" in assumed[1]
    assert "  1 items could not be judged: each counts as any loss it may have" in lines
    assert "settings changed once" in lines[0]


def test_the_report_is_printed_as_json(run: Run, certificate: Path, pool: Path) -> None:
    # The most seconds there may be
    asked = ("verify", certificate, "--pool", pool, "--json", "--seconds", "86400")
    report = json.loads(run(*asked).out)
    assert report["valid"] is True
    assert report["claim"]["labels"] == 15
    assert set(report["unchecked"]) == {"issuer", "items"}


def test_a_forged_certificate_ends_with_status_1_and_one_line(
    run: Run, certificate: Path, pool: Path
) -> None:
    document = json.loads(certificate.read_bytes())
    del document["signature"]
    document["claim"]["interval"]["upper"] -= 0.01
    certificate.write_bytes(signed(document, KEY))
    answer = run("verify", certificate, "--pool", pool, "--json")
    assert answer.status == 1
    assert answer.err.startswith("celeus: does not hold: claim.interval.upper is 0.")
    assert answer.err.count("\n") == 1
    told = json.loads(answer.out)
    assert (told["difference"]["where"], told["verdict"]) == (
        "claim.interval.upper",
        "does not hold",
    )


def test_somebody_elses_signature_is_not_the_one_trusted(
    run: Run, certificate: Path, case: Case
) -> None:
    certificate.write_bytes(case.certificate(key=OTHER_KEY))
    answer = run("verify", certificate, "--public-key", public_of(KEY).hex())
    assert answer.status == 1
    assert "signature.public_key" in answer.err


def test_a_head_that_was_noted_has_to_be_met_again(run: Run, certificate: Path, case: Case) -> None:
    start = chain_start(SESSION, bytes.fromhex(case.plan.digest))
    heads = [f"{at}:{chain_head(start, case.records[:at]).hex()}" for at in (0, 7)]
    met = run("verify", certificate, "--noted", heads[0], "--noted", heads[1])
    assert met.status == 0
    assert "noted" in met.out
    missed = run("verify", certificate, "--noted", heads[1].replace("7:", "8:"))
    assert missed.status == 1
    assert "the head after ledger[7]" in missed.err
    for unreadable in ("", "7", "7:abc", "x:" + "00" * 32, "-1:" + "00" * 32):
        answer = run("verify", certificate, f"--noted={unreadable}")
        assert answer.status == 2
        assert "the noted head cannot be read" in answer.err


def _packed(pool: Path) -> None:
    with np.load(pool) as arrays:
        np.savez_compressed(pool, allow_pickle=False, **dict(arrays))


def _bomb(pool: Path) -> None:
    with zipfile.ZipFile(pool, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("surrogate.0.npy", bytes(1 << 24))


def _pickled(pool: Path) -> None:
    np.savez(pool, allow_pickle=True, groups=np.array([{}], dtype=object))


def _large(pool: Path) -> None:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999,), }".ljust(117)
    data = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header + b"\n"
    with zipfile.ZipFile(pool, "w") as archive:
        archive.writestr("surrogate.0.npy", data)


def _traversing(pool: Path) -> None:
    with zipfile.ZipFile(pool, "a") as archive:
        archive.writestr("../../surrogate.1.npy", b"")


def _none(pool: Path) -> None:
    pool.write_bytes(b"")


def _unreadable(pool: Path) -> None:
    pool.unlink()
    pool.symlink_to("/proc/self/mem")


HARMS = [_packed, _bomb, _pickled, _large, _traversing, _none, _unreadable]


@pytest.mark.parametrize("harm", HARMS)
def test_an_archive_that_is_not_ours_is_refused(pool: Path, harm: Callable[[Path], None]) -> None:
    harm(pool)
    refused = pytest.raises(InvalidValue, match=r"^The pool's archive is not usable: ")
    with pool.open("rb") as archive, refused:
        read_archive(archive)


def test_what_is_refused_in_the_archive_is_one_line(
    run: Run, certificate: Path, pool: Path
) -> None:
    _bomb(pool)
    answer = run("verify", certificate, "--pool", pool)
    assert answer.status == 2
    assert answer.err.startswith("celeus: cannot be checked: The pool's archive is not usable: ")
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["missing.json"],
        ["."],
        [os.devnull],
        ["/dev/zero"],
        ["{pool}"],
        ["{picture}"],
        ["{other}"],
        ["{cut}"],
        ["{cut_letter}"],
        ["{cut_bundle}"],
        ["{listed}"],
        ["{wrapped}"],
        ["{certificate}", "--items", "{picture}"],
        ["{certificate}", "--pool", "/dev/zero"],
        ["{certificate}", "--pool", "{picture}"],
        ["{certificate}", "--items", "/dev/zero"],
        ["{certificate}", "--subject", "/dev/zero"],
        ["{certificate}", "--subject", "{picture}"],
        ["{certificate}", "--pool", "missing.npz"],
        ["{certificate}", "--public-key", "missing"],
        ["{certificate}", "--public-key", "{certificate}"],
        ["{certificate}", "--seconds", "0.001"],
        # It opens, and cannot be read.
        ["/proc/self/mem"],
        ["{certificate}", "--items", "/proc/self/mem"],
        ["{certificate}", "--public-key", "/proc/self/mem"],
    ],
)
def test_what_cannot_be_checked_ends_with_status_2_and_one_line(
    run: Run, certificate: Path, pool: Path, tmp_path: Path, arguments: list[str]
) -> None:
    files = {"certificate": certificate, "pool": pool}
    whole, columns = certificate.read_bytes(), pool.read_bytes()
    contents = {
        "picture": b"\x89PNG\r\n\x1a\n" + bytes(64),
        "other": b'{"format":"sarif","runs":[]}',
        "cut": whole[:-40],
        "cut_letter": whole[:-40] + "ü".encode()[:1],
        "cut_bundle": bundled(whole, columns)[:-40],
        "listed": b"[" + whole + b"]",
        "wrapped": json.dumps({"certificate": json.loads(whole)}, indent=2).encode(),
    }
    for name, content in contents.items():
        files[name] = tmp_path / name
        files[name].write_bytes(content)
    answer = run("verify", *(argument.format(**files) for argument in arguments))
    assert answer.status == 2
    assert answer.err.startswith("celeus: cannot be checked: ")
    assert answer.err.count("\n") == 1
    assert "checked: nothing" not in answer.out


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("there-is-none.pub", "No such file or directory"),
        ("", "Is a directory"),
        ("file/key.pub", "Not a directory"),
        ("n" * 300, "File name too long"),
        ("/proc/self/mem", "Input/output error"),
    ],
)
def test_a_public_key_that_cannot_be_read_is_named_with_the_reason(
    run: Run, certificate: Path, tmp_path: Path, name: str, why: str
) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / name
    answer = run("verify", certificate, "--public-key", path)
    assert answer.status == 2
    assert f"{path} is no public key, and as a file it cannot be read: {why}" in answer.err
    assert "signing key" not in answer.err
    assert "CELEUS_" not in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("seconds", ["0", "-1", "86401", "1e300", "inf", "nan"])
def test_a_verification_of_more_than_a_day_is_refused(
    run: Run, certificate: Path, seconds: str
) -> None:
    answer = run("verify", certificate, "--seconds", seconds)
    assert answer.status == 2
    assert "above 0, at most 86400" in answer.err


def test_a_signing_key_is_made_once_for_its_owner_alone(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "signing.pem"
    made = run("admin", "signing-key", path)
    assert made.status == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    public = made.out.strip()
    assert len(bytes.fromhex(public)) == 32
    again = run("admin", "signing-key", path)
    assert again.status == 1
    assert "already exists" in again.err
    assert run("admin", "signing-key", tmp_path / "no" / "where").status == 1


def test_a_signing_key_that_finds_no_room_leaves_no_file(run: Run, tmp_path: Path) -> None:
    """Half a key would keep the service from ever starting again."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, before[1]))
    try:
        answer = run("admin", "signing-key", tmp_path / "signing.pem")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert answer.status == 1
    assert "cannot be written" in answer.err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"no key", None])
def test_a_service_whose_signing_key_is_none_does_not_start(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    database_url: str,
    content: bytes | None,
) -> None:
    path = tmp_path / "signing.pem"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("CELEUS_DATABASE_URL", database_url)
    monkeypatch.setenv("CELEUS_SIGNING_KEY_FILE", str(path))
    answer = run("serve", "--port", "0")
    assert answer.status == 1
    assert f"{path} is not a signing key" in answer.err.splitlines()[-1]


def test_an_audit_of_an_empty_database_finds_nothing(
    run: Run, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELEUS_DATABASE_URL", database_url)
    answer = run("admin", "audit")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out == "0 sessions, 0 events, 0 certificates, 0 pools, 0 items: 0 differ\n"
    counts = json.loads(run("admin", "audit", "--json").out)
    assert (counts["sessions"], counts["findings"]) == (0, [])
    with psycopg.connect(database_url) as db:
        assert db.execute("SELECT count(*) FROM sessions").fetchall() == [(0,)]


def test_a_claim_about_draws_of_several_runs_says_what_success_is(run: Run, tmp_path: Path) -> None:
    items = [{"id": f"task {number}"} for number in range(4)]
    asked: dict[str, Any] = {"target": "runs", "repeats": True, "success": "all of 2"}
    asked |= {"precision": 0.6, "file": tmp_path / "run.jsonl"}
    session = celeus.certify(items, lambda _: 0.0, **asked)
    session.close()
    file = tmp_path / "certificate.json"
    file.write_bytes(session.certificate())
    assert "claim: runs risk where success is all of 2 runs 0" in run("verify", file).out
