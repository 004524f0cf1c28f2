"""`celeus attest`: name what a certificate is about, for tools that check supply chains."""

from pathlib import Path
from typing import Annotated

import typer

from celeus.commands.options import (
    SubjectOption,
    TrustConfig,
    check_file,
    from_input,
    read_trust_config,
)
from celeus.errors import InvalidValue
from celeus.files import content_of, open_file_or_pipe


def attest(  # noqa: PLR0913 -- one parameter an option
    certificate: Annotated[
        Path, typer.Argument(callback=from_input, help="The certificate, a JSON file.")
    ],
    *,
    subject: SubjectOption = None,
    key: Annotated[
        Path | None,
        typer.Option(envvar="CELEUS_SIGNING_KEY_FILE", help="The key that signed the certificate."),
    ] = None,
    sigstore: Annotated[
        bool,
        typer.Option(
            "--sigstore",
            help="Sign by your identity instead, in CI or by a browser; writes a bundle of"
            " Sigstore.",
        ),
    ] = False,
    trust_config: TrustConfig = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write; default: standard output.")
    ] = None,
) -> None:
    """Attest what a certificate is about: an in-toto statement in a signed DSSE envelope.

    A certificate that names its subject needs no --subject. `celeus verify` takes the attestation
    as it takes the certificate, and --subject there checks a file.
    """
    from celeus.core.certificate.attestation import attested
    from celeus.core.certificate.report import LARGEST_CERTIFICATE_BYTES
    from celeus.gates.reports import write
    from celeus.operations.certificates.signing_keys import read_key
    from celeus.subjects import subjects_of

    check_file(out)
    if trust_config is not None and not sigstore:
        raise InvalidValue("trust_config is for --sigstore", field="trust_config")
    subjects = subjects_of(subject)
    with open_file_or_pipe(certificate) as file:
        content = b"".join(content_of(file, LARGEST_CERTIFICATE_BYTES))
    if sigstore:
        from celeus.operations.certificates.sigstore_bundles import signed_bundle

        attestation = signed_bundle(content, subjects, read_trust_config(trust_config))
    elif key is not None:
        attestation = attested(content, subjects, read_key(key))
    else:
        rule = "given, or --sigstore"
        raise InvalidValue(f"key must be {rule}", field="key", rule=rule)
    if out is None:
        typer.echo(attestation.decode())
    else:
        write(out, attestation)
