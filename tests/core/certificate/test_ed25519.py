import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from celeus.core.certificate.ed25519 import (
    NotAKey,
    of_small_order,
    private_from_pem,
    private_to_pem,
    public_from_pem,
    public_of,
    public_to_pem,
    sign,
    signed_by,
)

KEY = Ed25519PrivateKey.from_private_bytes(
    bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
)


def test_the_first_vector_of_rfc_8032_is_reproduced() -> None:
    assert public_of(KEY).hex() == (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    )
    assert sign(b"", KEY).hex() == (
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555"
        "fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
    )


def test_a_signature_holds_for_its_message_and_key_alone() -> None:
    signature = sign(b"message", KEY)
    other = Ed25519PrivateKey.generate()
    assert signed_by(b"message", signature, public_of(KEY))
    assert not signed_by(b"massage", signature, public_of(KEY))
    assert not signed_by(b"message", signature, public_of(other))
    assert not signed_by(b"message", bytes(64), public_of(KEY))


@pytest.mark.parametrize("public", [b"", bytes(31), bytes(33), bytes(32), b"\xff" * 32])
@pytest.mark.parametrize("signature", [b"", bytes(63), b"\xff" * 64])
def test_bytes_that_are_no_key_or_signature_are_just_not_signed(
    public: bytes, signature: bytes
) -> None:
    assert not signed_by(b"message", signature, public)


def test_keys_come_back_from_pem() -> None:
    assert public_of(private_from_pem(private_to_pem(KEY))) == public_of(KEY)
    assert public_from_pem(public_to_pem(public_of(KEY))) == public_of(KEY)


def _foreign() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _locked() -> bytes:
    return KEY.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )


@pytest.mark.parametrize(
    "pem",
    [
        b"",
        b"no pem",
        b"-----BEGIN PRIVATE KEY-----\n",
        public_to_pem(public_of(KEY)),
        _foreign(),
        _locked(),
    ],
)
def test_anything_but_an_open_private_key_of_ed25519_is_refused(pem: bytes) -> None:
    with pytest.raises(NotAKey):
        private_from_pem(pem)


@pytest.mark.parametrize("pem", [b"", private_to_pem(KEY), _foreign()])
def test_anything_but_a_public_key_of_ed25519_is_refused(pem: bytes) -> None:
    with pytest.raises(NotAKey):
        public_from_pem(pem)


FIELD = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, FIELD) % FIELD
Affine = tuple[int, int]


def _sum(one: Affine, other: Affine) -> Affine:
    (x1, y1), (x2, y2) = one, other
    both = D * x1 * x2 * y1 * y2
    x = (x1 * y2 + x2 * y1) * pow(1 + both, -1, FIELD)
    return x % FIELD, (y1 * y2 + x1 * x2) * pow(1 - both, -1, FIELD) % FIELD


def _times(count: int, point: Affine) -> Affine:
    result = (0, 1)
    while count:
        if count & 1:
            result = _sum(result, point)
        point, count = _sum(point, point), count >> 1
    return result


def _point(y: int) -> Affine | None:
    """A point with this y, if there is one (RFC 8032, section 5.1.3)."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, FIELD) % FIELD
    x = pow(square, (FIELD + 3) // 8, FIELD)
    for root in (x, x * pow(2, (FIELD - 1) // 4, FIELD) % FIELD):
        if root * root % FIELD == square:
            return root, y
    return None


def test_keys_of_small_order_are_all_points_whose_multiple_by_eight_is_zero() -> None:
    torsion: set[int] = set()
    for y in range(2, 40):
        if (point := _point(y)) is not None:
            of_order_eight = _times(ORDER, point)
            torsion |= {_times(times, of_order_eight)[1] for times in range(8)}
    assert len(torsion) == 5
    # Below 2^255 there is room for a second spelling of the smallest; bit 255 is the sign of x
    spellings = {y + again for y in torsion for again in (0, FIELD) if y + again < 1 << 255}
    assert len(spellings) == 7
    for y in spellings:
        for sign_bit in (0, 1 << 255):
            assert of_small_order((y + sign_bit).to_bytes(32, "little"))
    assert not of_small_order(public_of(KEY))
    assert not of_small_order((2).to_bytes(32, "little"))


def test_a_key_of_small_order_is_no_key() -> None:
    neutral = (1).to_bytes(32, "little")
    forged = neutral + bytes(32)
    Ed25519PublicKey.from_public_bytes(neutral).verify(forged, b"any message")
    assert not signed_by(b"any message", forged, neutral)
    with pytest.raises(NotAKey, match="everybody"):
        public_from_pem(public_to_pem(neutral))
