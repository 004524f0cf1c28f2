"""Have certificates verified in a process of its own, one at a time."""

import asyncio
import json
import os
import sys
from typing import IO, Any

from app.errors import InvalidValue, Refusal, VerificationBusy, VerificationTooCostly

PATIENCE = 2.0
"""How long the process may take by the clock, in times of its processor time."""


class Verifications:
    """At most one at a time in this process."""

    def __init__(self) -> None:
        self._busy = False

    async def report_on(
        self,
        certificate: IO[bytes],
        pool: IO[bytes] | None,
        trusted: bytes | None,
        seconds: float,
    ) -> dict[str, Any]:
        """What `verify` reports on the certificate in this file, with its pool's archive if given.

        Refuses while another one is under way, an archive that cannot be read, and what takes
        longer than ``seconds``.
        """
        if self._busy:
            raise VerificationBusy("Another certificate is being verified; try again.")
        self._busy = True
        try:
            answer = await _answered(certificate, pool, trusted, seconds)
        finally:
            self._busy = False
        if "refusal" in answer:
            raise _refusal(**answer["refusal"])
        report: dict[str, Any] = answer["report"]
        return report


async def _answered(
    certificate: IO[bytes], pool: IO[bytes] | None, trusted: bytes | None, seconds: float
) -> dict[str, Any]:
    command = [sys.executable, "-m", "app.operations.verifying", str(seconds)]
    if trusted is not None:
        command += ["--key", trusted.hex()]
    if pool is not None:
        command += ["--pool", str(pool.fileno())]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=certificate,
        stdout=asyncio.subprocess.PIPE,
        pass_fds=() if pool is None else (pool.fileno(),),
        # Its threads would only be in the way of those who judge.
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(PATIENCE * seconds + 10.0):
            out, _ = await process.communicate()
    except TimeoutError:
        raise _too_costly() from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        # Killed by the machine, most likely for its memory.
        raise _too_costly()
    answer: dict[str, Any] = json.loads(out)
    return answer


def _refusal(code: str, detail: str, field: str, rule: str) -> Refusal:
    kind = VerificationTooCostly if code == VerificationTooCostly.code else InvalidValue
    return kind(detail, field=field, rule=rule)


def _too_costly() -> VerificationTooCostly:
    return VerificationTooCostly(
        "The verification did not end in time, or was ended for its memory.",
        field="certificate",
        rule="verified within the limits of this service",
    )
