"""The child process that verifies one certificate.

A hostile certificate can take nothing from the server but what its process was given: the kernel
ends it at any moment, whatever it is doing.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from cryptography.x509 import Certificate

from celeus.core.certificate.report import LARGEST_CERTIFICATE_BYTES
from celeus.core.certificate.stamps import roots_in
from celeus.core.certificate.verify import verify
from celeus.errors import InvalidValue, VerificationTooCostly
from celeus.operations.certificates.npz import read_archive
from celeus.operations.runtime.workers import Files, Frame, serve

LARGEST_ROOTS_BYTES = 4 << 20


def work(job: Frame, files: Files) -> Iterator[Frame]:
    """The report on a certificate, with what else is given; the job names the files."""
    start = time.process_time()
    seconds, trusted, noted = (job.values[name] for name in ("seconds", "trusted", "noted"))
    given = dict(zip(job.values["files"], files, strict=True))
    with _reading("certificate"):
        certificate = given["certificate"].read(LARGEST_CERTIFICATE_BYTES + 1)
    if len(certificate) > LARGEST_CERTIFICATE_BYTES:
        rule = f"at most {LARGEST_CERTIFICATE_BYTES} bytes"
        raise InvalidValue("It is too large for a certificate.", field="certificate", rule=rule)
    pool = read_archive(given["pool"]) if "pool" in given else None
    roots = _roots(given["timestamp_roots"]) if "timestamp_roots" in given else ()
    with _reading("items"):
        report = verify(
            certificate,
            pool,
            None if trusted is None else bytes.fromhex(trusted),
            {int(sequence): bytes.fromhex(head) for sequence, head in noted.items()},
            given.get("items"),
            roots=roots,
        )
    if time.process_time() - start > seconds:
        # The kernel counts whole seconds only
        raise VerificationTooCostly.of(f"{seconds:g} s of processor time")
    yield Frame(report.to_dict())


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Refuse a file that opens and cannot be read."""
    try:
        yield
    except OSError as error:
        message = f"The file cannot be read: {error.strerror}."
        raise InvalidValue(message, field=what, rule="a file that can be read") from error


def _roots(file: IO[bytes]) -> list[Certificate]:
    try:
        return roots_in(file.read(LARGEST_ROOTS_BYTES))
    except ValueError as error:
        raise InvalidValue(
            "The roots of a timestamping service cannot be read.",
            field="timestamp_roots",
            rule="certificates in PEM",
            value=str(error),
        ) from error


if __name__ == "__main__":
    serve(work)
