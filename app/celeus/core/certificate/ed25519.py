"""Ed25519 (RFC 8032): one signature for one message and key, so the same bytes sign the same."""

import base64
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ALGORITHM: Final = "Ed25519"
OF_DIGEST: Final = "Ed25519-SHA-256"
"""The signature is over the SHA-256 digest of what is signed: the library keeps the interpreter to
itself while it signs, 36 ms over the 15 MB of 40 000 rounds."""
PUBLIC_BYTES = 32
_SIGN_BIT = 1 << 255
_FIELD = 2**255 - 19
_OF_ORDER_EIGHT = (
    0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
    0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7,
)
_SMALL_ORDER = frozenset({0, 1, _FIELD - 1, _FIELD, _FIELD + 1, *_OF_ORDER_EIGHT})
"""The y of the points whose multiple by eight is zero, as they and their other spellings read."""


class NotAKey(ValueError):
    """The bytes are no Ed25519 key in PEM."""


def private_from_pem(pem: bytes) -> Ed25519PrivateKey:
    """The private key in an unencrypted PEM (PKCS 8); NotAKey for anything else."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise NotAKey("no unencrypted private key in PEM") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise NotAKey("a private key, but not of Ed25519")
    return key


def private_to_pem(key: Ed25519PrivateKey) -> bytes:
    """The private key as ``private_from_pem`` reads it."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def of_small_order(public: bytes) -> bool:
    """Return whether anybody can sign for this public key: eight times its point is zero."""
    return int.from_bytes(public, "little") % _SIGN_BIT in _SMALL_ORDER


def public_of(key: Ed25519PrivateKey) -> bytes:
    """The 32 bytes of the public key."""
    return key.public_key().public_bytes_raw()


def fingerprint(public: bytes) -> str:
    """The SHA-256 fingerprint of a public key, as `ssh-keygen -l` writes it."""
    key = Ed25519PublicKey.from_public_bytes(public)
    digest = serialization.ssh_key_fingerprint(key, hashes.SHA256())
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def public_to_pem(public: bytes) -> bytes:
    """The public key in PEM, as other tools read it."""
    return Ed25519PublicKey.from_public_bytes(public).public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def public_from_pem(pem: bytes) -> bytes:
    """The 32 bytes of a public key in PEM; NotAKey for anything else."""
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise NotAKey("no public key in PEM") from error
    if not isinstance(key, Ed25519PublicKey):
        raise NotAKey("a public key, but not of Ed25519")
    public = key.public_bytes_raw()
    if of_small_order(public):
        raise NotAKey("a public key that everybody can sign for")
    return public


def sign(message: bytes, key: Ed25519PrivateKey) -> bytes:
    """The 64 bytes of the signature."""
    return key.sign(message)


def signed_by(message: bytes, signature: bytes, public: bytes) -> bool:
    """Return whether the holder of ``public`` signed this message; any bytes may be given."""
    if len(public) != PUBLIC_BYTES or of_small_order(public):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        return False
    return True
