"""`celeus attest --sigstore`, and what `celeus verify` says of its bundles."""

import base64
import json
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sigstore.dsse import Statement
from sigstore.models import Bundle, ClientTrustConfig
from sigstore.oidc import IdentityToken
from sigstore.sign import SigningContext
from sigstore.verify import Verifier
from sigstore.verify.policy import Identity

from celeus.core.canonical import canonical_json
from celeus.core.certificate.attestation import PAYLOAD_TYPE, statement_of
from celeus.core.plans.claim import Claim
from celeus.subjects import subject_of
from tests.cli.calling import Run
from tests.core.certifying import opened, zero_one_world
from tests.sigstores import served, token

IDENTITY = "https://github.com/org/repo/.github/workflows/evaluate.yml@refs/heads/main"
ISSUER = "https://token.of.the.tests"
SIGNER = ("--identity", IDENTITY, "--issuer", ISSUER)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A certificate that names its model, an instance of Sigstore, and a CI job's token."""
    (tmp_path / "model.bin").write_bytes(b"weights")
    subject = (subject_of(tmp_path / "model.bin"),)
    case = opened(zero_one_world(60), claim=Claim(precision=0.1, subject=subject))
    case.go(8)
    case.close()
    (tmp_path / "certificate.json").write_bytes(case.certificate())
    monkeypatch.setenv("GITLAB_CI", "true")
    monkeypatch.setenv("SIGSTORE_ID_TOKEN", token(IDENTITY, ISSUER))
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    with served(tmp_path / "trust.json"):
        yield tmp_path


def trusting(folder: Path) -> tuple[object, ...]:
    return "--trust-config", folder / "trust.json"


@pytest.fixture
def bundle(run: Run, folder: Path) -> Path:
    path = folder / "bundle.json"
    words = ("attest", folder / "certificate.json", "--sigstore", *trusting(folder), "--out", path)
    made = run(*words)
    assert (made.status, made.out, made.err) == (0, "", "")
    return path


def test_a_bundle_is_verified_and_recomputed(run: Run, folder: Path, bundle: Path) -> None:
    model = ("--subject", folder / "model.bin")
    found = run("verify", bundle, *SIGNER, *trusting(folder), *model)
    assert (found.status, found.err) == (0, ""), found
    assert f"attested by {IDENTITY}, says {ISSUER}\n" in found.out
    assert "valid final certificate" in found.out
    told = json.loads(run("verify", bundle, *SIGNER, *trusting(folder), "--json").out)
    assert told["attested_by"] == {"identity": IDENTITY, "issuer": ISSUER}


def test_the_library_verifies_it_by_itself(folder: Path, bundle: Path) -> None:
    root = ClientTrustConfig.from_json((folder / "trust.json").read_text()).trusted_root
    policy = Identity(identity=IDENTITY, issuer=ISSUER)
    kind, payload = Verifier(trusted_root=root).verify_dsse(
        Bundle.from_json(bundle.read_bytes()), policy
    )
    assert kind == PAYLOAD_TYPE
    assert payload == statement_of((folder / "certificate.json").read_bytes(), [])


def changed(bundle: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the statement of a bundle, and nothing else of it."""
    document = json.loads(bundle.read_text())
    statement = json.loads(base64.b64decode(document["dsseEnvelope"]["payload"]))
    change(statement)
    document["dsseEnvelope"]["payload"] = base64.b64encode(canonical_json(statement)).decode()
    bundle.write_text(json.dumps(document))


@pytest.mark.parametrize(
    "change",
    [
        lambda statement: statement["subject"][0].update(name="other"),
        lambda statement: statement.update(predicateType="https://slsa.dev/provenance/v1"),
        lambda statement: statement["predicate"]["claim"].update(lower=0.4),
    ],
)
def test_one_that_was_changed_does_not_hold(
    run: Run, folder: Path, bundle: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    changed(bundle, change)
    found = run("verify", bundle, *SIGNER, *trusting(folder))
    assert (found.status, found.out) == (1, "")
    assert found.err == "celeus: does not hold: Sigstore: DSSE: invalid signature\n"


def signed(folder: Path, bundle: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Sign a statement by the right identity, past what `celeus attest` refuses."""
    statement = json.loads(statement_of((folder / "certificate.json").read_bytes(), []))
    change(statement)
    config = ClientTrustConfig.from_json((folder / "trust.json").read_text())
    context = SigningContext.from_trust_config(config)
    with context.signer(IdentityToken(token(IDENTITY, ISSUER))) as signer:
        made = signer.sign_dsse(Statement(canonical_json(statement)))
    bundle.write_text(made.to_json())


SIGNED: list[tuple[Callable[[dict[str, Any]], object], int, str]] = [
    (lambda it: it["subject"][0].update(name="gpt-9"), 1, "the certificate names model.bin"),
    (lambda it: it["predicate"]["claim"].update(lower=0.4), 1, "does not hold"),
    (lambda it: it.update(predicateType="https://slsa.dev/provenance/v1"), 2, "predicateType"),
    (lambda it: it.update(predicate={"buildType": "x"}), 2, "cannot be checked"),
]


@pytest.mark.parametrize("case", range(len(SIGNED)))
def test_what_the_identity_signed_is_checked_as_well(
    run: Run, folder: Path, bundle: Path, case: int
) -> None:
    change, status, said = SIGNED[case]
    signed(folder, bundle, change)
    found = run("verify", bundle, *SIGNER, *trusting(folder))
    assert found.status == status, found
    assert said in found.err


def test_another_identity_issuer_or_root_does_not_hold(
    run: Run, folder: Path, bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / "trust.json"
    with served(other):
        pass
    for words in (
        ("--identity", "mallory@example.org", "--issuer", ISSUER, *trusting(folder)),
        ("--identity", IDENTITY, "--issuer", "https://elsewhere", *trusting(folder)),
        (*SIGNER, "--trust-config", other),
    ):
        found = run("verify", bundle, *words)
        assert (found.status, found.out) == (1, ""), words
        assert found.err.startswith("celeus: does not hold: Sigstore: ")
        assert found.err.count("\n") == 1


def test_what_cannot_be_checked_is_one_line(run: Run, folder: Path, bundle: Path) -> None:
    whole = bundle.read_text()
    cut = folder / "cut.json"
    cut.write_text(whole[: len(whole) // 2])
    document = json.loads(whole)
    del document["dsseEnvelope"]
    other = folder / "artifact.json"
    signature = {"messageDigest": {"algorithm": "SHA2_256", "digest": ""}, "signature": "AA=="}
    other.write_text(json.dumps(document | {"messageSignature": signature}))
    trusted = trusting(folder)
    for words, said in (
        ((cut, *SIGNER, *trusted), "the bundle cannot be read"),
        ((other, *SIGNER, *trusted), "a bundle of an attestation"),
        ((bundle,), "identity must be given, and --issuer"),
        ((bundle, "--identity", IDENTITY), "issuer must be given"),
        ((bundle, *trusted), "identity must be given"),
        ((folder / "certificate.json", *SIGNER), "this is no bundle of Sigstore"),
        ((bundle, *SIGNER, "--trust-config", folder / "model.bin"), "trust_config must be"),
    ):
        found = run("verify", *words)
        assert (found.status, found.out) == (2, ""), words
        assert found.err.startswith("celeus: cannot be checked: ")
        assert said in found.err
        assert found.err.count("\n") == 1, found.err


def test_what_is_missing_to_sign_is_one_line(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = folder / "certificate.json"

    def refused(*words: object) -> str:
        answer = run("attest", certificate, *words)
        assert (answer.status, answer.out) == (1, "")
        assert answer.err.count("\n") == 1, answer.err
        return answer.err

    assert "key must be given, or --sigstore" in refused()
    assert "trust_config is for --sigstore" in refused(*trusting(folder))
    document = json.loads((folder / "trust.json").read_text())
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        for services in ("caUrls", "rekorTlogUrls"):
            document["signingConfig"][services][0]["url"] = url
        nowhere = folder / "nowhere.json"
        nowhere.write_text(json.dumps(document))
        assert "no connection to it" in refused("--sigstore", "--trust-config", nowhere)
    monkeypatch.setenv("SIGSTORE_ID_TOKEN", "no token")
    assert "Malformed token" in refused("--sigstore", *trusting(folder))
    monkeypatch.delenv("GITLAB_CI")
    assert "a CI job with an ID token" in refused("--sigstore", *trusting(folder))


def test_a_subject_the_library_does_not_take_is_refused(run: Run, folder: Path) -> None:
    case = opened(zero_one_world(60))
    case.go(8)
    case.close()
    (folder / "certificate.json").write_bytes(case.certificate())
    commit = ("--subject", f"github.com/org/repo@gitCommit:{'0' * 40}")
    found = run("attest", folder / "certificate.json", "--sigstore", *commit, *trusting(folder))
    assert (found.status, found.out) == (1, "")
    assert "subject must be named by sha256 or sha512 for Sigstore" in found.err


def test_the_extra_is_named_where_it_is_missing(
    run: Run, folder: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = ("requests", "sigstore", "tuf")
    for name in [name for name in sys.modules if name.partition(".")[0] in needs]:
        monkeypatch.delitem(sys.modules, name)
    module = "celeus.operations.certificates.sigstore_bundles"
    monkeypatch.delitem(sys.modules, module, raising=False)
    for name in needs:
        monkeypatch.setitem(sys.modules, name, None)
    needed = "needs requests, which is not installed: pip install 'celeus[sigstore]'\n"
    attested = run("attest", folder / "certificate.json", "--sigstore", *trusting(folder))
    assert (attested.status, attested.err) == (1, f"celeus: attest {needed}")
    verified = run("verify", bundle, *SIGNER, *trusting(folder))
    assert (verified.status, verified.err) == (2, f"celeus: cannot be checked: verify {needed}")
