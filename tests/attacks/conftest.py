"""One real server that the attacks of a run share, with nothing in its database before each."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.attacks.world import client_of
from tests.servers import Service, running_services


@pytest.fixture(scope="session")
def signing_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a key to sign certificates with."""
    file = tmp_path_factory.mktemp("signing") / "key.pem"
    key = Ed25519PrivateKey.generate()
    file.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
    file.chmod(0o600)
    return file


@pytest.fixture(scope="session")
def running_service(
    postgres_url: str, shared_redis_url: str, signing_key: Path
) -> Iterator[Service]:
    """A server without limits on how often one may ask: they have tests of their own."""
    environment = {
        "CELEUS_FAILED_KEYS_PER_MINUTE": "0",
        "CELEUS_REQUESTS_PER_MINUTE": "0",
        "CELEUS_KEY_CACHE_SECONDS": "0",
        "CELEUS_SIGNING_KEY_FILE": str(signing_key),
    }
    with running_services(1, postgres_url, shared_redis_url, environment) as [service]:
        yield service


@pytest.fixture
def service(running_service: Service, database_url: str, redis_url: str) -> Service:
    """The server, over an empty database that knows the tests' key."""
    assert database_url
    assert redis_url
    return running_service


@pytest.fixture
def client(service: Service) -> Iterator[httpx.Client]:
    """A client whose key may do everything."""
    with client_of(service.url) as client:
        yield client
