"""The child process that verifies one certificate.

A hostile certificate can take nothing from the server but what its process was given: the kernel
ends it at any moment, whatever it is doing.
"""

import time
from collections.abc import Iterator, Mapping
from typing import IO

from celeus.core.certificates.report import Report
from celeus.core.certificates.verify import NOTHING_NOTED, verify
from celeus.errors import InvalidValue
from celeus.operations.certificates.npz import read_archive
from celeus.operations.runtime.verifications import too_costly
from celeus.operations.runtime.workers import Files, Frame, serve

LARGEST_CERTIFICATE_BYTES = 1 << 30


def verified(
    certificate: bytes,
    pool: IO[bytes] | None,
    trusted: bytes | None,
    noted: Mapping[int, bytes] = NOTHING_NOTED,
) -> Report:
    """The report on a certificate; refuses a pool's archive that cannot be read."""
    evidence = None if pool is None else read_archive(pool)
    return verify(certificate, evidence, trusted, noted)


def work(job: Frame, files: Files) -> Iterator[Frame]:
    """The report on the first file, with the second as its pool's archive."""
    start = time.process_time()
    certificate = files[0].read(LARGEST_CERTIFICATE_BYTES + 1)
    if len(certificate) > LARGEST_CERTIFICATE_BYTES:
        rule = f"at most {LARGEST_CERTIFICATE_BYTES} bytes"
        raise InvalidValue("It is too large for a certificate.", field="certificate", rule=rule)
    seconds, trusted, noted = (job.values[name] for name in ("seconds", "trusted", "noted"))
    report = verified(
        certificate,
        files[1] if len(files) > 1 else None,
        None if trusted is None else bytes.fromhex(trusted),
        {int(sequence): bytes.fromhex(head) for sequence, head in noted.items()},
    )
    if time.process_time() - start > seconds:
        # The kernel counts whole seconds only
        raise too_costly(f"{seconds:g} s of processor time")
    yield Frame(report.to_dict())


if __name__ == "__main__":
    serve(work)
