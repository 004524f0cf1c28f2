"""Ed25519 (RFC 8032): one signature for one message and key, so the same bytes sign the same."""

from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ALGORITHM: Final = "Ed25519"
PUBLIC_BYTES = 32


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


def public_of(key: Ed25519PrivateKey) -> bytes:
    """The 32 bytes of the public key."""
    return key.public_key().public_bytes_raw()


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
    return key.public_bytes_raw()


def sign(message: bytes, key: Ed25519PrivateKey) -> bytes:
    """The 64 bytes of the signature."""
    return key.sign(message)


def signed_by(message: bytes, signature: bytes, public: bytes) -> bool:
    """Whether the holder of ``public`` signed exactly this message; any bytes may be given."""
    if len(public) != PUBLIC_BYTES:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        return False
    return True
