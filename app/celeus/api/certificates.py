"""Certificates on the wire: fetch one, the key they are signed with, have one verified."""

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import IO, Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from celeus.api.access.auth import context_of
from celeus.api.access.parameters import CallerOf, Manages, OpenContext, Reads, SessionId
from celeus.api.pools.pool_models import BYTES
from celeus.api.sessions.session_models import Origin
from celeus.api.wire.etags import KnownTags, still_holds
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.api.wire.records import Time
from celeus.api.wire.uploads import media_of, spooled, too_large, unless_gone
from celeus.core.certificate.ed25519 import ALGORITHM, public_to_pem
from celeus.errors import (
    Busy,
    InvalidValue,
    LedgerBroken,
    ProcessEnded,
    SessionNotFound,
    SigningKeyMissing,
    UnsupportedFormat,
    UploadTooLarge,
    VerificationBusy,
    VerificationTooCostly,
)
from celeus.operations.certificates import issue
from celeus.operations.certificates.signing_keys import public_key_in
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.process_cache import IssuedCertificate
from celeus.operations.runtime.verifications import bounds_of, report_on

router = APIRouter(tags=["certificates"], route_class=JsonRoute)

LARGEST_KEY_BYTES = 1 << 16
FILES = ("certificate", "pool", "items", "timestamp_roots")
PART_BYTES = 1 << 18
KEY = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
REPORT: JsonDict = {
    "valid": True,
    "kind": "final",
    "session_id": "ses_019aa0b2c3d47e5f8a9b0c1d2e3f4a5c",
    "issued_at": "2026-11-21T14:00:00.000000+00:00",
    "digest": "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
    "claim": {"target": "pool", "alpha": 0.05, "interval": {"lower": 0.12, "upper": 0.17}},
    "sentence": "error rate 14.3 % (12.0 to 17.0), valid at every look with 95 % confidence,"
    " based on 402 labels.",
    "pool_sessions": {
        "number": 1,
        "total": 1,
        "others_open": 0,
        "others_certified": 0,
        "others_closed_without_certificate": 0,
    },
    "origin": None,
    "signature": {"public_key": KEY, "valid": True, "trusted": None},
    "stamped_at": None,
    "checked": ["form", "plan", "pool_header", "ledger", "chain", "commitment", "rounds"],
    "unchecked": {"draws": "it takes the pool's columns"},
    "difference": None,
}


class Certificate(BaseModel):
    """A certificate, as canonical JSON; docs/certificates.md tells of every member."""

    model_config = ConfigDict(extra="allow")

    format: Literal["celeus-certificate-2"] = Field(description="Version of this document's form.")
    kind: Literal["final", "interim"] = Field(
        description="`interim` while the session may go on, then `final`."
    )
    final: bool = Field(description="Whether the session is closed and the seed told.")
    session_id: str = Field(description="`ses_` and 32 hexadecimal digits.")
    issued_at: Time = Field(description="Time of its last event, or of the opening.")
    supersedes: str | None = Field(description="Digest of the last one issued before a correction.")
    pool_sessions: dict[str, int] | None = Field(
        description="Which session of its pool this is, and the fate of the others; null of one"
        " that was pushed."
    )
    method_version: str = Field(description="The version of the mathematics that the plan fixed.")
    claim: dict[str, Any] = Field(
        description="What is certified: interval, estimate, alpha, counts of rounds, assumptions."
    )
    plan: dict[str, Any] = Field(description="Every choice made before the first draw.")
    plan_digest: str = Field(description="SHA-256 of the plan's canonical JSON.")
    pool: dict[str, Any] = Field(
        description="Header of the pool: items, scale of the loss, columns with their digests."
    )
    pool_digest: str = Field(description="SHA-256 of that header's canonical JSON.")
    commitment: str = Field(
        description="SHA-256 of the secret seed, published before the first draw."
    )
    seed: str | None = Field(description="Hexadecimal; null in an interim certificate.")
    ledger: list[dict[str, Any]] = Field(
        description="Every event in order: draws, judgements, corrections, changes."
    )
    chain: dict[str, str] = Field(
        description="`start` and `head` of the hash chain over the ledger."
    )
    surrogates: float = Field(
        description="Sum of the surrogates of the whole pool before the first round."
    )
    rounds: dict[str, Any] = Field(
        description="Columns of what the interval was computed from, a value for each folded round."
    )
    signature: dict[str, str] = Field(
        description="`algorithm`, `public_key` and `value`, over all other members."
    )
    origin: Origin | None = Field(
        None, description="When it was pushed; left out of a session that ran here."
    )
    timestamp: str | None = Field(
        None, description="RFC 3161 stamp of `chain.start`, base64; left out where there is none."
    )


class PublicKey(BaseModel):
    """The key that checks the signatures of this service's certificates."""

    algorithm: Literal["Ed25519"] = Field(
        ALGORITHM, description="What kind of signature it checks."
    )
    public_key: str = Field(description="32 bytes in hexadecimal.", examples=[KEY])
    pem: str = Field(description="The same key as SubjectPublicKeyInfo in PEM, for other programs.")


class Difference(BaseModel):
    """The first place where a certificate says something else than what was found."""

    where: str = Field(description="Member of the certificate, with its place in a list.")
    claimed: str | float | bool | None = Field(description="What the certificate says there.")
    found: str | float | bool | None = Field(description="What was computed instead.")


class Signature(BaseModel):
    """The signer; ``trusted`` is null when no key to be trusted was given."""

    public_key: str | None = Field(
        description="32 bytes in hexadecimal; null where the certificate names none."
    )
    valid: bool = Field(description="Whether the holder of that key signed exactly this.")
    trusted: bool | None = Field(
        description="Whether it is the key you trust; null where you gave none."
    )


class Report(BaseModel):
    """The findings of a verification, and what it could not check."""

    model_config = ConfigDict(json_schema_extra={"examples": [REPORT]})

    valid: bool = Field(description="Whether everything that could be checked holds.")
    kind: Literal["final", "interim"] | None = Field(
        description="As the certificate says; null where it cannot be read."
    )
    session_id: str | None = Field(
        description="As the certificate says; null where it cannot be read."
    )
    issued_at: str | None = Field(
        description="Time of its last event, as it says; null where it cannot be read."
    )
    digest: str = Field(description="SHA-256 of the bytes that were sent.")
    claim: dict[str, Any] | None = Field(description="As the certificate says it.")
    sentence: str | None = Field(
        description="What it says, for people; null where it does not hold."
    )
    pool_sessions: dict[str, int] | None = Field(
        description="Sessions of the pool, as the certificate says; only the service knows them:"
        " null of a session in a process of its own."
    )
    origin: Origin | None = Field(
        description="When it was pushed to its service; null of a session that ran there, or was"
        " never pushed."
    )
    signature: Signature = Field(description="By whom, and whether it holds.")
    stamped_at: str | None = Field(
        description="When it was opened at the latest, by a time stamp the roots vouch for."
    )
    checked: list[str] = Field(
        description="Names of the checks that were made and hold; docs/certificates.md explains"
        " each."
    )
    unchecked: dict[str, str] = Field(description="What was not checked, and why.")
    difference: Difference | None = Field(
        description="The first check that fails; null where none does."
    )


VERIFY_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The certificate byte by byte as it was issued, or a form that holds it.",
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "title": "VerificationForm",
                    "required": ["certificate"],
                    "properties": {
                        "certificate": BYTES | {"description": "The certificate as it was issued."},
                        "pool": BYTES
                        | {"description": "Its pool: the answer of `columns.npz`, unchanged."},
                        "items": BYTES
                        | {"description": "Lines of JSON with `id` and `payload` of every item."},
                        "timestamp_roots": BYTES
                        | {"description": "Certificates in PEM of time stampers you trust."},
                        "key": {
                            "type": "string",
                            "description": "The public key you trust, in hexadecimal or as PEM.",
                        },
                    },
                },
                "encoding": {
                    "certificate": {"contentType": "application/json"},
                    "pool": {"contentType": "application/octet-stream"},
                    "items": {"contentType": "application/x-ndjson"},
                    "timestamp_roots": {"contentType": "application/x-pem-file"},
                },
                "example": {"certificate": '{"chain":{…},"claim":{…},…}', "key": KEY},
            },
            # Behind the form, which generators take: a certificate that they make anew of its
            # members has other bytes than those that were signed
            "application/json": {
                "schema": {"type": "object", "additionalProperties": True},
                "example": {"format": "celeus-certificate-2", "kind": "interim", "final": False},
            },
        },
    }
}


@router.get(
    "/v1/sessions/{session_id}/certificate",
    operation_id="get_certificate",
    summary="The certificate of a session",
    response_model=Certificate,
    responses=responses(SessionNotFound, LedgerBroken, Busy, SigningKeyMissing)
    | {304: {"description": "The ETag still holds."}},
)
async def get_certificate(
    context: Reads, session_id: SessionId, known: KnownTags = None
) -> Response:
    """Interim while the session is open, the final one with the seed once it is closed.

    The bytes are canonical JSON (RFC 8785) and the ETag is their SHA-256. While nothing happens in
    the session they stay the same; those of the final certificate stay for ever. Reading keeps
    nothing but the final certificate, which is issued then if it was not before.
    """
    digest = None if known is None else await issue.present_digest(context, session_id)
    if digest is not None and still_holds(known, f'"{digest}"'):
        return Response(status_code=304, headers=_headers(session_id, digest))
    certificate = await issue.current(context, session_id)
    if still_holds(known, f'"{certificate.digest}"'):
        return Response(status_code=304, headers=_headers(session_id, certificate.digest))
    return _sent(certificate, 200, _headers(session_id, certificate.digest))


@router.post(
    "/v1/sessions/{session_id}/certificate",
    operation_id="issue_certificate",
    summary="Issue the certificate of a session",
    status_code=201,
    response_model=Certificate,
    responses=responses(SessionNotFound, LedgerBroken, Busy, SigningKeyMissing),
)
async def issue_certificate(context: Manages, session_id: SessionId, request: Request) -> Response:
    """The same bytes as GET, and the service remembers that it issued them.

    Certificates after the next correction name this one in `supersedes`. Closing a session issues
    its final certificate, or where there was no signing key then, the first request for it.
    """
    issued = await issue.issue(context, session_id)
    headers = _headers(session_id, issued.digest) | {"Location": request.url.path}
    return _sent(issued, 201, headers)


def _sent(issued: IssuedCertificate, status: int, headers: dict[str, str]) -> Response:
    """In parts, as fast as they are read: whoever reads slowly holds up one part."""
    body = issued.body

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(body), PART_BYTES):
            yield body[start : start + PART_BYTES]

    length = {"Content-Length": str(len(body))}
    return StreamingResponse(parts(), status, headers | length, media_type="application/json")


def _headers(session_id: UUID, digest: str) -> dict[str, str]:
    name = f"ses_{session_id.hex}.certificate.json"
    return {
        "ETag": f'"{digest}"',
        "Cache-Control": "no-cache",
        "Content-Disposition": f'attachment; filename="{name}"',
    }


@router.get(
    "/v1/certificates/key",
    operation_id="get_signing_key",
    summary="The public key certificates are signed with",
    responses=responses(SigningKeyMissing),
)
async def get_signing_key(context: OpenContext, caller: CallerOf) -> PublicKey:
    """Note it once, from a place you trust, and give it to `celeus verify --public-key`."""
    del caller
    public = issue.public_key(context)
    return PublicKey(public_key=public.hex(), pem=public_to_pem(public).decode())


@router.post(
    "/v1/certificates/verify",
    operation_id="verify_certificate",
    summary="Verify a certificate",
    response_model=Report,
    openapi_extra=VERIFY_BODY,
    responses=responses(
        InvalidValue,
        UploadTooLarge,
        VerificationTooCostly,
        UnsupportedFormat,
        VerificationBusy,
        ProcessEnded,
    ),
)
async def verify_certificate(
    caller: CallerOf,
    request: Request,
    key: Annotated[
        str | None, Query(pattern=r"^[0-9a-f]{64}$", description="The public key you trust.")
    ] = None,
) -> Response:
    """It may come from any service: nothing is looked up, all is computed from what you send.

    The body is the certificate's bytes, or a form with `certificate`, and with `pool` (the answer
    of `columns.npz`), `items` (lines of JSON with `id` and `payload`), `timestamp_roots` (PEM) and
    `key` if you like. An answer 200 is a report; read its `valid`. A key has one verification at a
    time, from the first byte of its upload on.
    """
    context = context_of(request, caller)
    async with (
        context.gates.verifications_of_keys.of(caller.key_id),
        _received(request, context.settings.certificate_limit_bytes) as (files, own_key),
    ):
        trusted = None if key is None else bytes.fromhex(key)
        if own_key is not None:
            trusted = public_key_in(own_key, "the form's key")
        report = await unless_gone(request, _verified(context, files, trusted))
    return JSONResponse(report)


async def _verified(
    context: Context, files: Mapping[str, IO[bytes]], trusted: bytes | None
) -> dict[str, Any]:
    async with context.process(VerificationBusy):
        return await report_on(files, trusted, bounds_of(context.settings.verification_seconds))


Received = tuple[Mapping[str, IO[bytes]], bytes | None]
"""The certificate with its pool's archive and items, by their names, and the key to be trusted."""


@asynccontextmanager
async def _received(request: Request, limit_bytes: int) -> AsyncIterator[Received]:
    """Yield the parts of the body as temporary files at their beginnings."""
    media = media_of(request)
    if media == "application/json":
        received = 0

        def count(part: bytes) -> None:
            nonlocal received
            received += len(part)
            _check_size(received, limit_bytes)

        async with spooled(request, count) as file:
            yield {"certificate": file}, None
    elif media == "multipart/form-data":
        form = await _form(request)
        try:
            yield _parts(form, limit_bytes)
        finally:
            await form.close()
    else:
        raise UnsupportedFormat(
            "The body must be a certificate or a form that contains one.",
            field="Content-Type",
            rule="application/json or multipart/form-data",
            value=media,
        )


async def _form(request: Request) -> FormData:
    # Whatever is no file is kept in memory: that is the key only.
    parser = MultiPartParser(
        request.headers,
        request.stream(),
        max_files=len(FILES),
        max_fields=1,
        max_part_size=LARGEST_KEY_BYTES,
    )
    try:
        return await parser.parse()
    except (MultiPartException, KeyError) as error:
        raise InvalidValue(
            "The form could not be parsed.",
            field="body",
            rule=f"multipart/form-data with the files {', '.join(FILES)}, and the text key",
            value=str(error),
        ) from error


def _parts(form: FormData, limit_bytes: int) -> Received:
    for name in form:
        if name not in {*FILES, "key"}:
            raise InvalidValue(
                "The form has an unknown part.",
                field=name,
                rule=f"{', '.join(FILES)} or key",
            )
    parts = {name: form.get(name) for name in FILES}
    files = {name: part for name, part in parts.items() if isinstance(part, UploadFile)}
    for name, part in parts.items():
        if isinstance(part, str) or (name == "certificate" and part is None):
            rule = "a part with a file name"
            raise InvalidValue(f"The form needs {name} as a file.", field=name, rule=rule)
    _check_size(files["certificate"].size or 0, limit_bytes)
    key = form.get("key")
    named = key.file.read(LARGEST_KEY_BYTES) if isinstance(key, UploadFile) else None
    if isinstance(key, str):
        named = key.encode()
    return {name: _on_disk(file) for name, file in files.items()}, named


def _on_disk(part: UploadFile) -> IO[bytes]:
    """The part as a file that another process can be given."""
    file = part.file
    if isinstance(file, tempfile.SpooledTemporaryFile):
        file.rollover()
    file.seek(0)
    return file


def _check_size(size: int, limit_bytes: int) -> None:
    if size > limit_bytes:
        raise too_large(limit_bytes, size)
