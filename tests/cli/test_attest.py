"""`celeus attest`, and what `celeus verify` says of an attestation."""

import base64
import hashlib
import json
import os
import resource
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from celeus.core.canonical import canonical_json
from celeus.core.certificate.attestation import attested, signed_bytes
from celeus.core.certificate.ed25519 import private_to_pem, sign
from celeus.core.plans.claim import Claim
from celeus.subjects import subject_of
from tests.cli.calling import Answer
from tests.core.certifying import KEY, OTHER_KEY, opened, zero_one_world

Run = Callable[..., Answer]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A certificate, the keys, and a model with its digest."""
    case = opened(zero_one_world(60))
    case.go(8)
    case.close()
    (tmp_path / "certificate.json").write_bytes(case.certificate())
    (tmp_path / "key.pem").write_bytes(private_to_pem(KEY))
    (tmp_path / "other.pem").write_bytes(private_to_pem(OTHER_KEY))
    (tmp_path / "model.bin").write_bytes(b"weights")
    return tmp_path


def test_a_certificate_is_attested_and_verified(run: Run, folder: Path) -> None:
    out = folder / "attestation.json"
    commit = f"github.com/org/repo@gitCommit:{'0' * 40}"
    subjects = ("--subject", folder / "model.bin", "--subject", commit)
    made = run("attest", folder / "certificate.json", *subjects, "--key", folder / "key.pem")
    assert made.status == 0
    out.write_text(made.out)
    digest = hashlib.sha256(b"weights").hexdigest()
    found = run("verify", out, "--subject", folder / "model.bin")
    assert found.status == 0, found.err
    assert found.out.startswith(f"about model.bin sha256:{digest}")
    assert "valid final certificate" in found.out
    told = json.loads(run("verify", out, "--json").out)
    assert told["subjects"][1]["algorithm"] == "gitCommit"
    other = run("verify", out, "--subject", folder / "key.pem")
    assert (other.status, other.out) == (1, "")
    assert other.err.startswith("celeus: does not hold: ")
    assert f"this is about model.bin sha256:{digest}" in other.err
    endless = run("verify", out, "--subject", "/dev/zero")
    assert (endless.status, endless.out) == (2, "")
    assert "/dev/zero must be a file, and no device" in endless.err


def test_a_file_without_an_end_is_refused(run: Run, folder: Path) -> None:
    model, key = ("--subject", folder / "model.bin"), ("--key", folder / "key.pem")
    # Where there is no bound memory ends, of this process alone
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, before[1]))
    try:
        answer = run("attest", "/dev/zero", *model, *key)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    refused = "celeus: /dev/zero must be a file, and no device\n"
    assert (answer.status, answer.out, answer.err) == (1, "", refused)


def test_a_certificate_may_come_through_a_pipe(run: Run, folder: Path) -> None:
    path = folder / "pipe"
    os.mkfifo(path)
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(path.write_bytes, (folder / "certificate.json").read_bytes())
        answer = run("verify", path)
        sent.result()
    assert answer.status == 0, answer.err


def test_what_cannot_be_attested_is_one_line(run: Run, folder: Path) -> None:
    certificate = folder / "certificate.json"
    model, key = ("--subject", folder / "model.bin"), ("--key", folder / "key.pem")
    for words, said in (
        ((certificate, *model, "--key", folder / "other.pem"), "the key that signed"),
        ((certificate, "--subject", "nothing", *key), "a file that is there, or NAME@sha256"),
        ((certificate, "--subject", "image@sha256:12", *key), "sha256 has 64"),
        ((folder / "model.bin", *model, *key), "a certificate"),
        ((folder / "none.json", *model, *key), "cannot be read"),
        ((certificate, *model, *key, "--out", "/dev/full"), "/dev/full cannot be written"),
    ):
        answer = run("attest", *words)
        assert (answer.status, answer.out) == (1, "")
        assert said in answer.err
        assert answer.err.count("\n") == 1
    plain = run("verify", certificate, "--subject", folder / "model.bin")
    assert plain.status == 2
    assert "nothing that is named: `celeus attest` names it" in plain.err


@pytest.fixture
def named(folder: Path) -> Path:
    """A certificate whose subject was named at the opening, and all that `folder` has."""
    subject = (subject_of(folder / "model.bin"),)
    case = opened(zero_one_world(60), claim=Claim(precision=0.1, subject=subject))
    case.go(8)
    case.close()
    (folder / "certificate.json").write_bytes(case.certificate())
    return folder


def test_verify_says_what_was_named_at_the_opening(run: Run, named: Path) -> None:
    certificate, model = named / "certificate.json", named / "model.bin"
    digest = hashlib.sha256(b"weights").hexdigest()
    found = run("verify", certificate, "--subject", model)
    assert found.status == 0, found.err
    assert f"about model.bin sha256:{digest}, named at the opening\n" in found.out
    assert json.loads(run("verify", certificate, "--json").out)["subjects"] == [
        {"name": "model.bin", "algorithm": "sha256", "digest": digest}
    ]
    other = run("verify", certificate, "--subject", named / "key.pem")
    assert (other.status, other.out) == (1, "")
    assert f"and this is about model.bin sha256:{digest}" in other.err


def test_verify_says_that_none_was_named(run: Run, folder: Path) -> None:
    out = run("verify", folder / "certificate.json").out
    assert "names no subject: which model or version was evaluated rests on the issuer" in out


def test_an_attestation_is_about_what_was_named(run: Run, named: Path) -> None:
    certificate, key = named / "certificate.json", ("--key", named / "key.pem")
    made = run("attest", certificate, *key)
    assert made.status == 0, made.err
    (named / "attestation.json").write_text(made.out)
    found = run("verify", named / "attestation.json", "--subject", named / "model.bin")
    assert found.status == 0, found.err
    assert found.out.count("about model.bin") == 1
    assert run("attest", certificate, "--subject", named / "model.bin", *key).out == made.out
    refused = run("attest", certificate, "--subject", named / "other.pem", *key)
    assert (refused.status, refused.out) == (1, "")
    assert "the certificate names model.bin sha256:" in refused.err


@pytest.mark.parametrize("change", [{"digest": {"sha256": "cd" * 32}}, {"name": "gpt-9"}])
def test_an_attestation_of_something_else_does_not_hold(
    run: Run, named: Path, change: dict[str, object]
) -> None:
    """Signed by the key itself, past what `celeus attest` refuses."""
    envelope = attested((named / "certificate.json").read_bytes(), [], KEY)
    statement = json.loads(base64.b64decode(json.loads(envelope)["payload"]))
    statement["subject"][0].update(change)
    payload = canonical_json(statement)
    parts = json.loads(envelope) | {"payload": base64.b64encode(payload).decode()}
    signature = sign(signed_bytes(payload), KEY)
    parts["signatures"] = [{"sig": base64.b64encode(signature).decode()}]
    (named / "forged.json").write_text(json.dumps(parts))
    found = run("verify", named / "forged.json")
    assert (found.status, found.out) == (1, "")
    assert "the certificate names model.bin" in found.err
