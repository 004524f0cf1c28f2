"""A service that signs certificates, for the pages that lead to one."""

from collections.abc import Iterator

import pytest

from celeus.operations.certificates.signing_keys import make_key
from tests.servers import Service, running_services


@pytest.fixture(scope="module")
def signing(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that signs certificates."""
    key = tmp_path_factory.mktemp("key") / "signing.pem"
    make_key(key)
    environment = {"CELEUS_SIGNING_KEY_FILE": str(key)}
    with running_services(1, postgres_url, environment=environment) as (service,):
        yield service
