"""Certificates on the wire: fetch one, the key they are signed with, have one verified."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import IO, Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from app.api.dependencies import CallerOf, OpenRooms, Reads, SessionId
from app.api.problems import responses
from app.api.sessionschema import Time
from app.api.tags import still_holds
from app.api.uploads import spooled, too_large
from app.core.signing import ALGORITHM, public_to_pem
from app.errors import (
    Busy,
    InvalidValue,
    LedgerBroken,
    SessionNotFound,
    SigningKeyMissing,
    UnsupportedFormat,
    UploadTooLarge,
    VerificationBusy,
    VerificationTooCostly,
)
from app.operations import certificates
from app.operations.signers import public_key_in

router = APIRouter(tags=["certificates"])

LARGEST_KEY_BYTES = 1 << 16
KEY = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
REPORT: JsonDict = {
    "valid": True,
    "kind": "final",
    "session_id": "ses_019aa0b2c3d47e5f8a9b0c1d2e3f4a5c",
    "issued_at": "2026-11-21T14:00:00.000000+00:00",
    "digest": "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
    "claim": {"target": "pool", "alpha": 0.05, "interval": {"lower": 0.12, "upper": 0.17}},
    "signature": {"public_key": KEY, "valid": True, "trusted": None},
    "checked": ["form", "plan", "pool_header", "ledger", "chain", "commitment", "rounds"],
    "unchecked": {"draws": "it takes the pool's columns"},
    "difference": None,
}


class Certificate(BaseModel):
    """A certificate, as canonical JSON; docs/certificates.md tells of every member."""

    model_config = ConfigDict(extra="allow")

    format: Literal["celeus-certificate-1"]
    kind: Literal["final", "interim"]
    final: bool
    session_id: str
    issued_at: Time
    supersedes: str | None = Field(description="Digest of the last one before a correction.")
    method_version: str
    claim: dict[str, Any]
    plan: dict[str, Any]
    plan_digest: str
    pool: dict[str, Any]
    pool_digest: str
    commitment: str
    seed: str | None = Field(description="Hexadecimal; null in an interim certificate.")
    ledger: list[dict[str, Any]]
    chain: dict[str, str]
    surrogates: float
    rounds: dict[str, Any]
    signature: dict[str, str]


class PublicKey(BaseModel):
    """What certificates of this service are signed with."""

    algorithm: Literal["Ed25519"] = ALGORITHM
    public_key: str = Field(description="32 bytes in hexadecimal.", examples=[KEY])
    pem: str


class Difference(BaseModel):
    """The first place where a certificate says something else than what was found."""

    where: str
    claimed: str | float | bool | None
    found: str | float | bool | None


class Signature(BaseModel):
    """Who signed; ``trusted`` is null when no key to be trusted was given."""

    public_key: str | None
    valid: bool
    trusted: bool | None


class Report(BaseModel):
    """What a verification found, and what it could not check."""

    model_config = ConfigDict(json_schema_extra={"examples": [REPORT]})

    valid: bool
    kind: Literal["final", "interim"] | None
    session_id: str | None
    issued_at: str | None
    digest: str
    claim: dict[str, Any] | None = Field(description="As the certificate says it.")
    signature: Signature
    checked: list[str]
    unchecked: dict[str, str] = Field(description="What was not checked, and why.")
    difference: Difference | None


VERIFY_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            # A certificate, but whatever it is gets a report
            "application/json": {"schema": {}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["certificate"],
                    "properties": {
                        "certificate": {"type": "string", "format": "binary"},
                        "pool": {"type": "string", "format": "binary"},
                        "key": {"type": "string"},
                    },
                }
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
async def get_certificate(rooms: Reads, session_id: SessionId, request: Request) -> Response:
    """Interim while the session is open, the final one with the seed once it is closed.

    The bytes are canonical JSON (RFC 8785) and the ETag is their SHA-256. While nothing happens in
    the session they stay the same; those of the final certificate stay for ever.
    """
    issued = await certificates.issue(rooms, session_id)
    etag = f'"{issued.digest}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if still_holds(request, etag):
        return Response(status_code=304, headers=headers)
    name = f"ses_{session_id.hex}.certificate.json"
    headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return Response(issued.body, media_type="application/json", headers=headers)


@router.get(
    "/v1/certificates/key",
    operation_id="get_signing_key",
    summary="The public key certificates are signed with",
    responses=responses(SigningKeyMissing),
)
async def get_signing_key(rooms: OpenRooms, caller: CallerOf) -> PublicKey:
    """Note it once, from a place you trust, and give it to `celeus verify --key`."""
    del caller
    public = certificates.public_key(rooms)
    return PublicKey(public_key=public.hex(), pem=public_to_pem(public).decode())


@router.post(
    "/v1/certificates/verify",
    operation_id="verify_certificate",
    summary="Verify a certificate",
    response_model=Report,
    openapi_extra=VERIFY_BODY,
    responses=responses(
        InvalidValue, UploadTooLarge, VerificationTooCostly, UnsupportedFormat, VerificationBusy
    ),
)
async def verify_certificate(
    rooms: OpenRooms,
    caller: CallerOf,
    request: Request,
    key: Annotated[
        str | None, Query(pattern=r"^[0-9a-f]{64}$", description="The public key you trust.")
    ] = None,
) -> Response:
    """Of this service or any other: nothing is looked up, all is computed from what you send.

    The body is the certificate's bytes, or a form with `certificate`, and with `pool` (the answer
    of `columns.npz`) and `key` if you like. An answer 200 is a report; read its `valid`.
    """
    del caller
    settings = rooms.settings
    async with _received(request, settings.certificate_limit_bytes) as (certificate, pool, told):
        trusted = None if key is None else bytes.fromhex(key)
        if told is not None:
            trusted = public_key_in(told, "the form's key")
        report = await rooms.verifications.report_on(
            certificate, pool, trusted, settings.verification_seconds
        )
    return JSONResponse(report)


Received = tuple[IO[bytes], IO[bytes] | None, bytes | None]
"""The certificate, the archive of its pool, and the key to be trusted."""


@asynccontextmanager
async def _received(request: Request, limit_bytes: int) -> AsyncIterator[Received]:
    """What the body holds, in temporary files at their beginnings."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media == "application/json":
        received = 0

        def count(part: bytes) -> None:
            nonlocal received
            received += len(part)
            _check_size(received, limit_bytes)

        async with spooled(request, count) as file:
            yield file, None, None
    elif media == "multipart/form-data":
        form = await _form(request)
        try:
            yield _parts(form, limit_bytes)
        finally:
            await form.close()
    else:
        raise UnsupportedFormat(
            "The body is neither a certificate nor a form that holds one.",
            field="Content-Type",
            rule="application/json or multipart/form-data",
            value=media,
        )


async def _form(request: Request) -> FormData:
    # Whatever is no file is kept in memory: that is the key only.
    parser = MultiPartParser(
        request.headers,
        request.stream(),
        max_files=2,
        max_fields=1,
        max_part_size=LARGEST_KEY_BYTES,
    )
    try:
        return await parser.parse()
    except (MultiPartException, KeyError) as error:
        raise InvalidValue(
            "The form cannot be read.",
            field="body",
            rule="multipart/form-data with the files certificate and pool, and the text key",
            value=str(error),
        ) from error


def _parts(form: FormData, limit_bytes: int) -> Received:
    for name in form:
        if name not in {"certificate", "pool", "key"}:
            raise InvalidValue(
                "The form has a part that nothing is done with.",
                field=name,
                rule="certificate, pool or key",
            )
    certificate, pool, key = (form.get(name) for name in ("certificate", "pool", "key"))
    if not isinstance(certificate, UploadFile) or isinstance(pool, str):
        raise InvalidValue(
            "The form lacks the file of a certificate, or its pool is no file.",
            field="certificate",
            rule="a part with a file name",
        )
    _check_size(certificate.size or 0, limit_bytes)
    told = key.file.read(LARGEST_KEY_BYTES) if isinstance(key, UploadFile) else None
    if isinstance(key, str):
        told = key.encode()
    return _on_disk(certificate), None if pool is None else _on_disk(pool), told


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
