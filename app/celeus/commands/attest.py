"""`celeus attest`: name what a certificate is about, for tools that check supply chains."""

from pathlib import Path
from typing import Annotated

import typer

from celeus.commands.options import SubjectOption, check_file, from_input
from celeus.files import content_of, open_file_or_pipe


def attest(
    certificate: Annotated[
        Path, typer.Argument(callback=from_input, help="The certificate, a JSON file.")
    ],
    *,
    subject: SubjectOption = None,
    key: Annotated[
        Path,
        typer.Option(envvar="CELEUS_SIGNING_KEY_FILE", help="The key that signed the certificate."),
    ],
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
    subjects = subjects_of(subject)
    with open_file_or_pipe(certificate) as file:
        content = b"".join(content_of(file, LARGEST_CERTIFICATE_BYTES))
    envelope = attested(content, subjects, read_key(key))
    if out is None:
        typer.echo(envelope.decode())
    else:
        write(out, envelope)
