"""The signing key: a PEM file that only its owner can read."""

import os
import secrets
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from celeus.core.certificate.ed25519 import (
    NotAKey,
    private_from_pem,
    private_to_pem,
    public_from_pem,
    public_of,
)
from celeus.errors import InvalidValue

OWNER_ALONE = 0o600
LARGEST_PEM = 1 << 16


def read_key(path: Path) -> Ed25519PrivateKey:
    """Read the private key in this file; refuses a file without one."""
    try:
        return private_from_pem(_beginning(path))
    except NotAKey as error:
        raise _unusable(path, f"it holds {error}") from error


def make_key(path: Path) -> Ed25519PrivateKey:
    """Create a private key in a new file that only its owner can read; never overwrites a file.

    The file is there with the whole key or not at all, whatever ends the process.
    """
    key = Ed25519PrivateKey.generate()
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        try:
            _write(draft, private_to_pem(key))
            # Unlike a renaming, never over a file that is there
            os.link(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    except FileExistsError as error:
        raise InvalidValue(
            f"{path} already exists, and the key in it may already be trusted by others",
            field="file",
            rule="a file that does not exist",
        ) from error
    except OSError as error:
        raise InvalidValue(f"{path} cannot be written: {error.strerror}", field="file") from error
    return key


def key_of_folder(folder: Path) -> Path:
    """The signing key in the data folder, created at the first start with the folder."""
    path = folder / "signing.pem"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            make_key(path)
    except OSError as error:
        raise InvalidValue(
            f"{folder} cannot hold the signing key: {error.strerror}", field="CELEUS_DATA_DIR"
        ) from error
    except InvalidValue:
        # Another service on this folder may have made it at this moment
        if not path.exists():
            raise
    return path


def trusted_key(text: str) -> bytes:
    """Parse a trusted public key: 64 hexadecimal digits, or a file with them or with PEM."""
    key = _from_digits(text)
    if key is not None:
        return key
    try:
        with Path(text).open("rb") as file:
            return public_key_in(file.read(LARGEST_PEM), text)
    except OSError as error:
        raise InvalidValue(
            f"{text} is no public key, and as a file it cannot be read: {error.strerror}",
            field="key",
            rule="64 hexadecimal digits, or a file that holds them or a public key in PEM",
        ) from error


def public_key_in(data: bytes, name: str) -> bytes:
    """The public key in the bytes of a file: 64 hexadecimal digits, or PEM."""
    digits = _from_digits(data.decode("latin-1").strip())
    if digits is not None:
        return digits
    try:
        return public_from_pem(data)
    except NotAKey:
        pass
    try:
        # The signer's own file tells its public key too.
        return public_of(private_from_pem(data))
    except NotAKey as error:
        raise InvalidValue(
            f"{name} holds no Ed25519 public key",
            field="key",
            rule="64 hexadecimal digits, or a public key in PEM",
        ) from error


def _write(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ALONE)
    with os.fdopen(handle, "wb") as file:
        # Whatever the umask has taken away or left
        os.fchmod(file.fileno(), OWNER_ALONE)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _from_digits(text: str) -> bytes | None:
    try:
        key = bytes.fromhex(text) if len(text) == 64 else b""
    except ValueError:
        return None
    return key if len(key) == 32 else None


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_PEM)
    except OSError as error:
        raise _unusable(path, f"it cannot be read: {error.strerror}") from error


def _unusable(path: Path, why: str) -> InvalidValue:
    return InvalidValue(
        f"{path} is not a signing key: {why}",
        field="CELEUS_SIGNING_KEY_FILE",
        rule="an Ed25519 private key in PEM, as `celeus admin signing-key FILE` makes it",
    )
