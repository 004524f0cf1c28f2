"""Attestations signed by an identity through Sigstore, for which nobody keeps a key.

A short-lived certificate of Fulcio ties a key made for one signature to the identity, and the log
Rekor keeps the signature. A bundle holds both, so it is verified without asking either.
"""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import requests
from sigstore.dsse import Statement
from sigstore.errors import VerificationError
from sigstore.models import Bundle, ClientTrustConfig
from sigstore.oidc import IdentityToken, Issuer, detect_credential
from sigstore.sign import SigningContext
from sigstore.verify import Verifier
from sigstore.verify.policy import Identity
from tuf.api.exceptions import DownloadError

from celeus.core.certificate.attestation import (
    PAYLOAD_TYPE,
    Attestation,
    FalseAttestation,
    Signer,
    read_statement,
    statement_of,
)
from celeus.core.plans.subject import Subject
from celeus.errors import InvalidValue
from celeus.strict_json import json_of

_DIGESTS = ("sha256", "sha512")
"""Digests of a subject that the library takes."""
_UNREACHABLE = (requests.ConnectionError, requests.Timeout, DownloadError)


def signed_bundle(
    certificate: bytes, subjects: Sequence[Subject], trust_config: bytes | None
) -> bytes:
    """Return the bundle of a statement on a certificate, signed by the caller's identity.

    That is the identity of the CI job this runs in, else of whoever signs in with a browser.
    ``trust_config`` describes another instance of Sigstore than the public one. Raises
    InvalidValue as ``statement_of`` does, and for what is missing.
    """
    payload = statement_of(certificate, subjects)
    try:
        statement = Statement(payload)
    except Exception as error:
        rule = f"named by {' or '.join(_DIGESTS)} for Sigstore"
        raise InvalidValue(f"subject must be {rule}", field="subject", rule=rule) from error
    config = _config(trust_config)
    with _refusals("Sigstore did not sign it"):
        context = SigningContext.from_trust_config(config)
        with context.signer(_identity(config)) as signer:
            return signer.sign_dsse(statement).to_json().encode()


def read_bundle(content: bytes, signer: Signer, trust_config: bytes | None) -> Attestation:
    """Return what a bundle attests, once it is known that ``signer`` signed it.

    Whether the certificate itself holds is not looked at. Raises FalseAttestation where somebody
    else signed or anything was changed, InvalidValue for what cannot be checked.
    """
    with _refusals("the bundle cannot be read"):
        bundle = Bundle.from_json(content)
        enveloped = json_of(content).get("dsseEnvelope") is not None
    if not enveloped:
        rule = "a bundle of an attestation"
        raise InvalidValue(f"file must be {rule}", field="file", rule=rule)
    config = _config(trust_config)
    with _refusals("the bundle cannot be verified"):
        verifier = Verifier(trusted_root=config.trusted_root)
        policy = Identity(identity=signer.identity, issuer=signer.issuer)
        try:
            kind, payload = verifier.verify_dsse(bundle, policy)
        except VerificationError as error:
            raise FalseAttestation(f"Sigstore: {error}") from error
    if kind != PAYLOAD_TYPE:
        rule = f"an envelope of {PAYLOAD_TYPE}"
        raise InvalidValue(f"payloadType must be {rule}", field="payloadType", rule=rule)
    return read_statement(payload)


def _config(content: bytes | None) -> ClientTrustConfig:
    """The roots and addresses given, else those of the public instance, fetched anew."""
    # Its warnings would stand beside our one line
    logging.getLogger("sigstore").setLevel(logging.ERROR)
    if content is None:
        with _refusals("the roots of Sigstore, which --trust-config gives, were not fetched"):
            return ClientTrustConfig.production()
    with _refusals("trust_config must be a trust configuration of Sigstore"):
        return ClientTrustConfig.from_json(content.decode())


def _identity(config: ClientTrustConfig) -> IdentityToken:
    if token := detect_credential():
        return IdentityToken(token)
    if not sys.stdin.isatty():
        rule = "that of a CI job with an ID token, or of a person at a terminal"
        raise InvalidValue(f"the identity must be {rule}", field="sigstore", rule=rule)
    return Issuer(config.signing_config.get_oidc_url()).identity_token()


@contextmanager
def _refusals(what: str) -> Iterator[None]:
    """Say in one line why the library did not do it: its exceptions are of many kinds."""
    try:
        yield
    except (FalseAttestation, InvalidValue):
        raise
    except Exception as error:
        causes = list(_causes(error))
        if any(isinstance(cause, _UNREACHABLE) for cause in causes):
            why = "no connection to it"
        else:
            said = (str(cause) for cause in causes)
            why = next(filter(None, said), type(error).__name__)
        raise InvalidValue(f"{what}: {why}", field="sigstore") from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and those it came of."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
