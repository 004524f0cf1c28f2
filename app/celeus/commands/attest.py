"""`celeus attest`: name what a certificate is about, for tools that check supply chains."""

from pathlib import Path
from typing import Annotated

import typer

from celeus.commands.options import check_file
from celeus.files import content_of, open_ending


def attest(
    certificate: Annotated[Path, typer.Argument(help="The certificate, a JSON file.")],
    *,
    subject: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|NAME@sha256:DIGEST",
            help="What was evaluated: a file, or a name and a digest, also sha512 or gitCommit;"
            " may be given again; default: what the certificate names.",
        ),
    ] = None,
    key: Annotated[
        Path,
        typer.Option(envvar="CELEUS_SIGNING_KEY_FILE", help="The key that signed the certificate."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="File to write; default: standard output.")
    ] = None,
) -> None:
    """Attest what a certificate is about: an in-toto statement in a signed DSSE envelope.

    `celeus verify` takes it as it takes the certificate, and --subject there checks a file.
    """
    from celeus.core.certificate.attestation import attested
    from celeus.core.certificate.report import LARGEST_CERTIFICATE_BYTES
    from celeus.gates.reports import write
    from celeus.operations.certificates.signing_keys import read_key
    from celeus.subjects import subjects_of

    check_file(out)
    subjects = subjects_of(subject)
    with open_ending(certificate) as file:
        content = b"".join(content_of(file, LARGEST_CERTIFICATE_BYTES))
    envelope = attested(content, subjects, read_key(key))
    if out is None:
        typer.echo(envelope.decode())
    else:
        write(out, envelope)
