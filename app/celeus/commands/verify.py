"""`celeus verify`, `celeus audit` and `celeus signing-key`: what trust is checked with."""

import json
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from app.commands.common import DataDir, joined_database, settings_of
from app.errors import InvalidValue

if TYPE_CHECKING:
    # Not even for annotations at run time: these take most of a second.
    from app.core.report import Report
    from app.operations.audits import Audit
    from app.settings import Settings

LARGEST_CERTIFICATE_BYTES = 1 << 30
MOST_MEMORY_BYTES = 16 << 30


def verify(  # noqa: PLR0913 -- one parameter an option
    file: Annotated[Path, typer.Argument(help="The certificate.")],
    *,
    pool: Annotated[
        Path | None, typer.Option(help="Its pool: the answer of GET /v1/pools/{id}/columns.npz.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="The public key you trust: 64 hexadecimal digits or a file.")
    ] = None,
    noted: Annotated[
        list[str] | None,
        typer.Option(help="A head of the chain noted earlier, SEQUENCE:HEAD; 0 at the opening."),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Processor time it may take.")] = 600.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check a certificate without its service: exit status 0 when it holds, 1 when it does not.

    With --pool also that the draws, their probabilities and the surrogates are those the pool and
    the seed lead to; with --key who signed it; with --noted that its ledger begins as one did whose
    `ledger_head` somebody noted from a status, `sequence` and all.
    """
    from app.operations.signers import trusted_key
    from app.operations.verifying import limited, verified

    trusted = None if key is None else trusted_key(key)
    heads = dict(map(_noted, noted or []))
    with limited(seconds, MOST_MEMORY_BYTES):
        certificate = _bytes_of(file)
        if pool is None:
            report = verified(certificate, None, trusted, heads)
        else:
            with _opened(pool) as archive:
                report = verified(certificate, archive, trusted, heads)
    if as_json:
        typer.echo(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        _print(report)
    if not report.valid:
        typer.echo(f"celeus: {report.line}", err=True)
        raise SystemExit(1)


def signing_key(
    file: Annotated[Path, typer.Argument(help="The file to make; none may be there.")],
) -> None:
    """Make a key that certificates are signed with, for CELEUS_SIGNING_KEY_FILE.

    Prints its public key, which those who verify have to know.
    """
    from app.core.signing import public_of
    from app.operations.signers import make_key

    typer.echo(public_of(make_key(file)).hex())


def audit(data_dir: DataDir = None) -> None:
    """Fold every session of the database anew and compare; exit status 1 when something differs.

    For after a restore: chains, states, trajectories and certificates have to follow from plans,
    pools and ledgers.
    """
    import asyncio

    settings = settings_of(data_dir=data_dir)
    with joined_database(settings) as url:
        done = asyncio.run(_audited(settings, url))
    counts = f"{done.sessions} sessions, {done.events} events, {done.certificates} certificates"
    older = f", {done.unchained} sessions older than chains" if done.unchained else ""
    typer.echo(f"{counts}{older}: {len(done.findings)} differ")
    for finding in done.findings:
        typer.echo(finding.line)
    if done.findings:
        typer.echo(f"celeus: {done.findings[0].line}", err=True)
        raise SystemExit(1)


async def _audited(settings: "Settings", url: str) -> "Audit":
    from app.operations.audits import audit as look
    from app.store.database import Database

    found = Database.connect(
        url,
        pool_size=1,
        lock_timeout_ms=settings.lock_timeout_ms,
        statement_timeout_ms=settings.statement_timeout_ms,
    )
    try:
        return await look(found)
    finally:
        await found.close()


def _print(report: "Report") -> None:
    if report.claim is not None:
        typer.echo(_claim(report.claim))
    typer.echo(f"checked: {', '.join(report.checked) or 'nothing'}")
    for name, reason in report.unchecked.items():
        typer.echo(f"not checked: {name} ({reason})")
    if report.valid:
        typer.echo(report.line)


def _claim(claim: dict[str, object]) -> str:
    """The claim in one line, as far as it has the members of one."""
    interval = claim.get("interval")
    ends = (
        f"{interval.get('lower')} to {interval.get('upper')}" if isinstance(interval, dict) else "?"
    )
    return (
        f"claim: {claim.get('target')} risk {ends}, alpha {claim.get('alpha')},"
        f" {claim.get('labels')} labels"
    )


def _noted(text: str) -> tuple[int, bytes]:
    sequence, _, head = text.partition(":")
    try:
        found = int(sequence), bytes.fromhex(head)
    except ValueError:
        found = -1, b""
    if found[0] < 0 or len(found[1]) != 32:
        rule = "SEQUENCE:HEAD, a whole number and 64 hexadecimal digits"
        raise InvalidValue("a head noted cannot be read", field="noted", rule=rule, value=text)
    return found


def _opened(file: Path) -> IO[bytes]:
    try:
        return file.open("rb")
    except OSError as error:
        raise InvalidValue(f"{file} cannot be read: {error.strerror}", field="file") from error


def _bytes_of(file: Path) -> bytes:
    with _opened(file) as opened:
        found = opened.read(LARGEST_CERTIFICATE_BYTES + 1)
    if len(found) > LARGEST_CERTIFICATE_BYTES:
        rule = f"at most {LARGEST_CERTIFICATE_BYTES} bytes"
        raise InvalidValue(f"{file} is too large for a certificate", field="file", rule=rule)
    return found
