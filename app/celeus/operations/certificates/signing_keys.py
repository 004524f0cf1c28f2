"""The key that signs certificates: a file in PEM that nobody but its owner may read."""

import os
import secrets
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from app.core.signing import (
    NotAKey,
    private_from_pem,
    private_to_pem,
    public_from_pem,
    public_of,
)
from app.errors import InvalidValue

OWNER_ALONE = 0o600
LARGEST_PEM = 1 << 16


def read_key(path: Path) -> Ed25519PrivateKey:
    """The private key in this file; refused when there is none."""
    try:
        return private_from_pem(_beginning(path))
    except NotAKey as error:
        raise _unusable(path, f"it holds {error}") from error


def make_key(path: Path) -> Ed25519PrivateKey:
    """A new key in a new file, readable by its owner alone; a file that is there is left alone.

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
            f"{path} is there already: whoever trusts the key in it would not trust another one",
            field="file",
            rule="a file that does not exist",
        ) from error
    except OSError as error:
        raise InvalidValue(f"{path} cannot be written: {error.strerror}", field="file") from error
    return key


def key_of_folder(folder: Path) -> Path:
    """The key of a private database's service, made at its first start."""
    path = folder / "signing.pem"
    if not path.exists():
        make_key(path)
    return path


def trusted_key(text: str) -> bytes:
    """The public key somebody trusts: 64 hexadecimal digits, or a file with them or with PEM."""
    found = _from_digits(text)
    if found is not None:
        return found
    path = Path(text)
    if not path.is_file():
        raise InvalidValue(
            "the trusted key is neither a key nor a file",
            field="key",
            rule="64 hexadecimal digits, or a file that holds them or a public key in PEM",
            value=text,
        )
    return public_key_in(_beginning(path), str(path))


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
            f"{name} holds no public key of Ed25519",
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
        found = bytes.fromhex(text) if len(text) == 64 else b""
    except ValueError:
        return None
    return found if len(found) == 32 else None


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_PEM)
    except OSError as error:
        raise _unusable(path, f"it cannot be read: {error.strerror}") from error


def _unusable(path: Path, why: str) -> InvalidValue:
    return InvalidValue(
        f"{path} is no signing key: {why}",
        field="CELEUS_SIGNING_KEY_FILE",
        rule="an Ed25519 private key in PEM, as `celeus signing-key FILE` makes it",
    )
