"""`celeus verify`, `celeus admin audit` and `signing-key`: make and check certificates."""

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from celeus.commands.common import DataDir, joined_database, settings_of
from celeus.commands.options import TrustConfig, from_input, read_trust_config
from celeus.errors import InvalidValue
from celeus.files import content_of, open_file_or_pipe
from celeus.shorten import one_line

if TYPE_CHECKING:
    # Not even for annotations at run time: these take most of a second.
    from celeus.core.certificate.attestation import Attestation, Signer
    from celeus.core.certificate.report import Report
    from celeus.core.plans.subject import Subject
    from celeus.operations.certificates.audit import Audit
    from celeus.settings import Settings

MOST_MEMORY_BYTES = 16 << 30
MOST_SECONDS = 86_400.0
BEGINNING = 200
"""Bytes of a file that tell an attestation from a certificate."""
DRAWS_TELL = (
    "draws depend on the losses before them: other losses, but for a few, would have led to other"
    " items. Judges who know which items they had can tell; this file alone cannot"
)

UNNAMED = "names no subject: which model or version was evaluated rests on the issuer's word"


def verify(  # noqa: PLR0913 -- one parameter an option
    file: Annotated[
        Path,
        typer.Argument(
            callback=from_input,
            help="The certificate, a JSON file; a bundle of it and its pool; or its attestation.",
        ),
    ],
    *,
    pool: Annotated[
        Path | None,
        typer.Option(
            callback=from_input, help="Its pool, as GET /v1/pools/{id}/columns.npz answers."
        ),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            callback=from_input,
            help="Its items as uploaded: lines of JSON with `id` and `payload`.",
        ),
    ] = None,
    public_key: Annotated[
        str | None,
        typer.Option(help="The issuer's public key: 64 hexadecimal digits, or a file of them."),
    ] = None,
    noted: Annotated[
        list[str] | None,
        typer.Option(
            help="SEQUENCE:HEAD, the ledger head that a status showed at that sequence; repeatable."
        ),
    ] = None,
    timestamp_roots: Annotated[
        Path | None,
        typer.Option(
            help="Root certificates of a timestamping service, in PEM: the opening must be stamped."
        ),
    ] = None,
    subject: Annotated[
        Path | None,
        typer.Option(help="A file that certificate or attestation has to name."),
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option(help="The identity that signed a bundle of Sigstore, such as an address."),
    ] = None,
    issuer: Annotated[
        str | None, typer.Option(help="The service that vouched for the identity, a URL.")
    ] = None,
    trust_config: TrustConfig = None,
    seconds: Annotated[
        float, typer.Option(help="Most processor time to spend; at most a day.")
    ] = 600.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check a certificate without its service: exit status 0 when it holds, 1 when it does not.

    2 when it cannot be checked: it is another file, a bound was reached, or it is of a table, the
    best of several, weights or bounds of losses and needs its pool. The last line says which.

    --pool also checks draws, probabilities and surrogates against the pool and the seed.
    --items also checks that these items, with these ids and payloads, are what was judged.
    --public-key also checks who signed it. --noted also checks that the ledger starts with the
    events it had when somebody noted `sequence` and `ledger_head` from the session's status.
    --timestamp-roots also checks when it was opened, by the word of a timestamping service.
    --identity and --issuer check who signed a bundle of Sigstore, with its roots fetched anew.
    """
    from celeus.core.certificate.attestation import FalseAttestation
    from celeus.operations.certificates.signing_keys import trusted_key

    paths = {
        "certificate": file,
        "pool": pool,
        "items": items,
        "timestamp_roots": timestamp_roots,
    }
    trusted = None if public_key is None else trusted_key(public_key)
    signer = _signer(identity, issuer, trust_config)
    opened = partial(_files, paths, signer, trust_config)
    try:
        report, subjects = _verified(opened, subject, trusted, noted or [], seconds)
    except FalseAttestation as error:
        _echo(f"celeus: does not hold: {error}", err=True)
        raise SystemExit(1) from None
    if as_json:
        more = {"verdict": report.verdict, "subjects": [asdict(named) for named in subjects]}
        signed = {} if signer is None else {"attested_by": asdict(signer)}
        typer.echo(json.dumps(report.to_dict() | more | signed, indent=2))
    elif report.checked:
        _print(report, subjects, signer)
    if not report.valid:
        _echo(f"celeus: {report.line}", err=True)
        raise SystemExit(1 if report.verdict == "does not hold" else 2)


def _signer(identity: str | None, issuer: str | None, trust_config: Path | None) -> "Signer | None":
    """Return the identity that has to have signed a bundle, if one is given; refuses half of it."""
    from celeus.core.certificate.attestation import Signer

    if identity and issuer:
        return Signer(identity, issuer)
    if (identity, issuer, trust_config) == (None, None, None):
        return None
    field = "issuer" if identity else "identity"
    rule = "given: a bundle of Sigstore is checked by --identity and --issuer"
    raise InvalidValue(f"{field} must be {rule}", field=field, rule=rule)


def _verified(
    opened: "Callable[[ExitStack], tuple[dict[str, IO[bytes]], tuple[Subject, ...]]]",
    subject: Path | None,
    trusted: bytes | None,
    noted: Sequence[str],
    seconds: float,
) -> "tuple[Report, tuple[Subject, ...]]":
    """Return the report on these files, and what they are about."""
    import asyncio

    from celeus.core.certificate.attestation import subjects_in
    from celeus.core.certificate.report import Report
    from celeus.operations.runtime.verifications import bounds_of, report_on
    from celeus.subjects import sha256_of

    # A NaN is neither.
    if not 0.0 < seconds <= MOST_SECONDS:
        rule = f"above 0, at most {MOST_SECONDS:g}"
        raise InvalidValue(f"seconds must be {rule}", field="seconds", rule=rule, value=seconds)
    bounds = bounds_of(seconds, MOST_MEMORY_BYTES)
    heads = dict(map(_head, noted))
    with ExitStack() as stack:
        files, subjects = opened(stack)
        digest = None if subject is None else sha256_of(subject)
        report = Report.from_dict(asyncio.run(report_on(files, trusted, bounds, heads)))
    if report.valid:
        subjects = subjects or subjects_in({"claim": report.claim})
        if digest is not None:
            _check_subject(f"{subject} is sha256:{digest}", digest, subjects)
    return report, subjects


def signing_key(
    file: Annotated[Path, typer.Argument(help="The file to write; it must not exist.")],
) -> None:
    """Make a key to sign certificates with, for CELEUS_SIGNING_KEY_FILE.

    Prints its public key, which `celeus verify --public-key` takes.
    """
    from celeus.core.certificate.ed25519 import public_of
    from celeus.operations.certificates.signing_keys import make_key

    typer.echo(public_of(make_key(file)).hex())


def audit(
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print counts and findings as JSON.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Recompute every session and pool of the database; exit status 1 on a difference.

    2 when the database cannot be checked.

    Run it after a restore: hash chains, states, trajectories and certificates must follow from
    plans, pools and ledgers, and the digests of pools' items from the items. Of deleted sessions
    it tells how many there were, and whether anything of them is left that should not be.
    """
    import asyncio

    from celeus.store.migrate import require_head

    settings = settings_of(data_dir=data_dir)
    with joined_database(settings) as url:
        require_head(url)
        result = asyncio.run(_audited(settings, url))
    if as_json:
        typer.echo(json.dumps(asdict(result), indent=2, default=str))
    else:
        _print_audit(result)
    if result.findings:
        _echo(f"celeus: {result.findings[0].line}", err=True)
        raise SystemExit(1)


def _print_audit(result: "Audit") -> None:
    counts = (
        f"{result.sessions} sessions, {result.events} events, {result.certificates} certificates,"
        f" {result.pools} pools, {result.items} items"
    )
    if result.deleted:
        counts += f", {result.deleted} deleted sessions"
    typer.echo(f"{counts}: {len(result.findings)} differ")
    for finding in result.findings:
        _echo(finding.line)


async def _audited(settings: "Settings", url: str) -> "Audit":
    from celeus.operations.certificates.audit import audit as look
    from celeus.store.database import Database

    database = Database.connect(
        url,
        pool_size=1,
        lock_timeout_ms=settings.lock_timeout_ms,
        statement_timeout_ms=settings.statement_timeout_ms,
        pooler=settings.database_pooler,
    )
    try:
        return await look(database)
    finally:
        await database.close()


def _echo(line: str, *, err: bool = False) -> None:
    """Print a line that holds strangers' words: it stays one line, and moves no cursor."""
    typer.echo(one_line(line), err=err)


def _print(
    report: "Report", subjects: "tuple[Subject, ...]", signer: "Signer | None" = None
) -> None:
    for line in _about(report, subjects, signer):
        _echo(line)
    if report.claim is not None:
        _echo(_claim(report.claim))
        if report.sentence is not None:
            _echo(f"  {report.sentence}")
        table = _tabled(report.claim) if "claims" in report.claim and report.valid else ()
        for line in (*table, *_reservations(report.claim), *_evidence(report)):
            _echo(f"  {line}")
        for line in _circumstances(report, named=bool(subjects)):
            _echo(line)
    if report.stamped_at is not None:
        _echo(f"opened by {report.stamped_at}, says the stamp of a timestamping service")
    elif report.claim is not None and "timestamp" not in report.unchecked:
        _echo("no time stamp: when it was opened rests on the issuer's word")
    _echo(f"checked: {', '.join(report.checked)}")
    for line in _unchecked(report):
        _echo(line)
    if report.valid:
        _echo(report.line)


def _about(
    report: "Report", subjects: "tuple[Subject, ...]", signer: "Signer | None"
) -> Iterator[str]:
    """Yield lines on what was evaluated, and on whose word that rests."""
    source = "says whoever signed the certificate"
    if signer is not None:
        yield f"attested by {signer.identity}, says {signer.issuer}"
        source = f"says {signer.identity}"
    if report.valid and report.claim is not None and "subject" in report.claim:
        source = "named at the opening"
    yield from (f"about {subject}, {source}" for subject in subjects)


def _unchecked(report: "Report") -> Iterator[str]:
    """Yield a line for each reason why checks were not made, with these checks."""
    reasons: dict[str, list[str]] = {}
    for name, reason in report.unchecked.items():
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        yield f"not checked: {', '.join(names)} ({reason})"


def _circumstances(report: "Report", *, named: bool) -> Iterator[str]:
    """Yield lines on what the claim leaves open: its subject, sessions beside it, where it ran."""
    from celeus.core.certificate.report import origin_line, pool_sessions_line

    if report.valid and not named:
        yield UNNAMED
    yield pool_sessions_line(report.pool_sessions)
    if report.origin is not None:
        yield origin_line(report.origin)


def _claim(claim: dict[str, object]) -> str:
    """The claim in one line, as far as it has the members of one."""
    from celeus.core.insights.figures import ends
    from celeus.core.insights.sentences import quantity
    from celeus.gates.questions import settings_line

    settings = settings_line(fixed=claim.get("fixed") is True, changes=claim.get("changes"))
    alpha = claim.get("alpha")
    if isinstance(alpha, float):
        alpha = f"{alpha:.12g}"
    more = f"alpha {alpha}, {claim.get('labels')} labels, settings {settings}"
    best = claim.get("best")
    if isinstance(best, dict):
        return f"claim: {_best(best)}, {more}"
    claims = claim.get("claims")
    if isinstance(claims, list):
        return f"claim: {len(claims)} claims, account {claim.get('account')}, {more}"
    interval = claim.get("interval")
    stated = [interval.get(end) for end in ("lower", "upper")] if isinstance(interval, dict) else []
    numbers = [end for end in stated if isinstance(end, int | float)]
    certain = ends(*numbers) if len(numbers) == 2 else "?"
    systems = claim.get("systems")
    compared = (
        f"difference of loss, A ({systems.get('a')}) minus B ({systems.get('b')}),"
        if isinstance(systems, dict)
        else "risk"
    )
    effective, weights = claim.get("effective_items"), ""
    weighted = isinstance(effective, int | float)
    if weighted:
        weights = f", weights as of {effective:.0f} equal items"
    success = claim.get("success")
    success = success if isinstance(success, str) else None
    measured = quantity(compared, weighted=weighted, success=success)
    return f"claim: {claim.get('target')} {measured} {certain}{weights}, {more}"


def _tabled(claim: dict[str, Any]) -> Iterator[str]:
    """Yield lines on a table's claims: of all items, of groups, and of how they hold together."""
    from celeus.core.insights.sentences import score_figures
    from celeus.core.interval import Interval

    def score_text(stated: dict[str, Any]) -> str:
        score = stated["score"]
        scale = Interval(min(0.0, score["lower"]), max(1.0, score["upper"]))
        return f"{score['name']} {score_figures(score, scale)}"

    promises = claim["promises"]
    yield f"{promises['one']} {promises['all']} {promises['picked']}"
    parts: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
    later = [stated for stated in claim["claims"] if "added" in stated]
    for stated in claim["claims"][: len(claim["claims"]) - len(later)]:
        parts.setdefault((stated["metric"], stated["column"]), []).append(stated)
    for (metric, column), claims in parts.items():
        if column is None:
            yield from (f"{metric}: {score_text(stated)}" for stated in claims)
            continue
        if claim["account"] == "selected":
            yield f"{metric} in {len(claims)} groups by {column}: show those picked by `picked`"
            continue
        least, most = (
            pick(claims, key=lambda stated: float(stated["score"]["estimate"]))
            for pick in (min, max)
        )
        yield (
            f"{metric} in {len(claims)} groups by {column}: {score_text(least)} in"
            f" {least['value']}, {score_text(most)} in {most['value']}"
        )
    for stated in later:
        part = "" if stated["column"] is None else f" in {stated['column']} {stated['value']}"
        name = f"{stated['metric']}{part}"
        yield f"{name}, added after {stated['added']} labels: {score_text(stated)}"
    answers = [its["answer"] for stated in claim["claims"] for its in stated["answers"]]
    if answers:
        counts = ", ".join(f"{answers.count(word)} {word}" for word in ("yes", "no", "undecided"))
        yield f"answers: {counts}"


def _best(best: dict[str, object]) -> str:
    """Return a line naming a system that no other beats, or those that one such is among."""
    systems, standing = (best.get(name) for name in ("systems", "standing"))
    count = len(systems) if isinstance(systems, list) else "?"
    if best.get("winner") is not None:
        return f"{best['winner']} is at least as good as every other of {count} systems"
    if isinstance(standing, list) and len(standing) == count:
        return f"any of {count} systems may be the best"
    names = ", ".join(map(str, standing)) if isinstance(standing, list) else "?"
    return f"none of {count} systems is better than the best of {names}"


def _reservations(claim: dict[str, object]) -> Iterator[str]:
    """Yield lines on the claim's assumptions and on items it does not cover."""
    assumptions = claim.get("assumptions")
    for assumption in assumptions if isinstance(assumptions, list) else []:
        if isinstance(assumption, dict):
            yield f"assumes: {assumption.get('text')}"
    if unjudgeable := claim.get("unjudgeable"):
        yield f"{unjudgeable} items could not be judged: each counts as any loss it may have"
    if claim.get("emptied"):
        yield "no candidate is left: an event of probability at most alpha has happened"


def _evidence(report: "Report") -> Iterator[str]:
    """Yield what the draws tell of the losses, where they depend on them and were made again."""
    claim = report.claim
    if claim is None or not report.valid or not claim["labels"] or "draws" not in report.checked:
        return
    if all(assumption["code"] != "signed_losses" for assumption in claim["assumptions"]):
        yield DRAWS_TELL


def _head(text: str) -> tuple[int, bytes]:
    sequence, _, head = text.partition(":")
    try:
        noted = int(sequence), bytes.fromhex(head)
    except ValueError:
        noted = -1, b""
    if noted[0] < 0 or len(noted[1]) != 32:
        rule = "SEQUENCE:HEAD: a whole number and 64 hexadecimal digits"
        raise InvalidValue("the noted head cannot be read", field="noted", rule=rule, value=text)
    return noted


def _files(
    paths: Mapping[str, Path | None],
    signer: "Signer | None",
    trust_config: Path | None,
    stack: ExitStack,
) -> "tuple[dict[str, IO[bytes]], tuple[Subject, ...]]":
    """Open the files, attestations and bundles as what is in them; also what they are about."""
    files: dict[str, IO[bytes]] = {
        name: stack.enter_context(open_file_or_pipe(path))
        for name, path in paths.items()
        if path is not None
    }
    files["certificate"] = _ending(files["certificate"], stack)
    found = _attestation(files["certificate"], signer, trust_config)
    if found is not None:
        files["certificate"] = stack.enter_context(TemporaryFile())  # noqa: SIM115 -- the stack closes it
        files["certificate"].write(found.certificate)
        files["certificate"].seek(0)
    bundled = _unbundled(files["certificate"], stack)
    if "pool" in files and bundled:
        raise InvalidValue("pool must be left out beside a bundle", field="pool")
    return files | bundled, () if found is None else found.subjects


def _ending(file: IO[bytes], stack: ExitStack) -> IO[bytes]:
    """Return a file that can be read from its end: of a pipe or a device, a copy."""
    from celeus.core.certificate.report import LARGEST_CERTIFICATE_BYTES

    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    copy = stack.enter_context(TemporaryFile())  # noqa: SIM115 -- the stack closes it
    copy.writelines(content_of(file, LARGEST_CERTIFICATE_BYTES))
    copy.seek(0)
    return copy


def _attestation(
    file: IO[bytes], signer: "Signer | None", trust_config: Path | None
) -> "Attestation | None":
    """Return what an attestation holds, None for another file; refuses one it has no signer of."""
    from celeus.core.certificate.attestation import (
        is_envelope,
        is_sigstore_bundle,
        read_attestation,
    )
    from celeus.core.certificate.report import LARGEST_CERTIFICATE_BYTES

    try:
        beginning = file.read(BEGINNING)
    except OSError:
        # Whoever reads all of it says so
        beginning = b""
    file.seek(0)
    if is_sigstore_bundle(beginning) and signer is not None:
        from celeus.operations.certificates.sigstore_bundles import read_bundle

        content = b"".join(content_of(file, LARGEST_CERTIFICATE_BYTES))
        return read_bundle(content, signer, read_trust_config(trust_config))
    if is_sigstore_bundle(beginning):
        rule = "given, and --issuer: this is a bundle of Sigstore, which any identity can sign"
        raise InvalidValue(f"identity must be {rule}", field="identity", rule=rule)
    if signer is not None:
        rule = "left out: this is no bundle of Sigstore"
        raise InvalidValue(f"identity must be {rule}", field="identity", rule=rule)
    if not is_envelope(beginning):
        return None
    return read_attestation(b"".join(content_of(file, LARGEST_CERTIFICATE_BYTES)))


def _check_subject(found: str, digest: str, subjects: "tuple[Subject, ...]") -> None:
    from celeus.core.certificate.attestation import FalseAttestation

    if not subjects:
        message = "this is about nothing that is named: `celeus attest` names it"
        raise InvalidValue(message, field="subject", rule="left out where none is named")
    if all((subject.algorithm, subject.digest) != ("sha256", digest) for subject in subjects):
        names = ", ".join(map(str, subjects))
        raise FalseAttestation(f"{found}, and this is about {names}")


def _unbundled(file: IO[bytes], stack: ExitStack) -> dict[str, IO[bytes]]:
    """Return the parts of a bundle as files, none of a certificate."""
    from celeus.client.bundle import CERTIFICATE, COLUMNS, parts_of

    parts = {
        name: stack.enter_context(TemporaryFile())  # noqa: SIM115 -- the stack closes it
        for name in (CERTIFICATE, COLUMNS)
    }
    if not parts_of(file, parts):
        return {}
    return {"certificate": parts[CERTIFICATE], "pool": parts[COLUMNS]}
