"""`celeus attest`: name what a certificate is about, for tools that check supply chains."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from celeus.commands.options import check_file, content_of, open_file_or_pipe
from celeus.errors import InvalidValue

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.core.certificate.attestation import Subject


def attest(
    certificate: Annotated[Path, typer.Argument(help="The certificate, a JSON file.")],
    *,
    subject: Annotated[
        list[str],
        typer.Option(
            metavar="FILE|NAME@sha256:DIGEST",
            help="What was evaluated: a file, or a name and a digest, also sha512 or gitCommit;"
            " may be given again.",
        ),
    ],
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

    check_file(out)
    subjects = [_subject(text) for text in subject]
    with open_file_or_pipe(certificate) as file:
        content = b"".join(content_of(file, LARGEST_CERTIFICATE_BYTES))
    envelope = attested(content, subjects, read_key(key))
    if out is None:
        typer.echo(envelope.decode())
    else:
        write(out, envelope)


def _subject(text: str) -> "Subject":
    from celeus.core.certificate.attestation import Subject

    path = Path(text)
    if path.is_file():
        return Subject(path.name, "sha256", sha256_of(path))
    if "@" not in text:
        rule = "a file that is there, or NAME@sha256:DIGEST"
        raise InvalidValue(f"subject must be {rule}", field="subject", rule=rule, value=text)
    return Subject.of(text)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits; refuses one that cannot be read."""
    with open_file_or_pipe(path, "subject") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
