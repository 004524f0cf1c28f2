"""The compose file: valid, complete, and speaking of settings that exist."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from celeus.settings import Settings
from celeus.store.database import async_url
from tests.docker.dockerfile import stages

DOCKER = Path(__file__).parents[2] / "docker"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """The services, with the merges resolved."""
    read = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    found: dict[str, Any] = read["services"]
    assert set(read["volumes"]) == {"postgres"}
    return found


def test_there_is_a_database_a_cache_the_migrations_and_the_service(
    services: dict[str, Any],
) -> None:
    assert set(services) == {"postgres", "redis", "migrate", "celeus"}
    assert services["migrate"]["command"] == ["migrate"]
    assert "command" not in services["celeus"], "the image serves by default"


def test_what_keeps_running_has_a_health_check(services: dict[str, Any]) -> None:
    for name in ("postgres", "redis", "celeus"):
        assert services[name]["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}, name
        assert services[name]["restart"] == "unless-stopped"
    assert "/readyz" in services["celeus"]["healthcheck"]["test"][-1]


def test_the_service_starts_after_the_migrations_and_these_after_the_database(
    services: dict[str, Any],
) -> None:
    after = {name: service.get("depends_on", {}) for name, service in services.items()}
    assert after["migrate"] == {"postgres": {"condition": "service_healthy"}}
    assert after["celeus"]["migrate"] == {"condition": "service_completed_successfully"}


def test_both_run_the_image_of_the_dockerfile(services: dict[str, Any]) -> None:
    for name in ("migrate", "celeus"):
        build = services[name]["build"]
        dockerfile = (DOCKER / build["context"] / build["dockerfile"]).resolve()
        assert dockerfile == (DOCKER / "Dockerfile").resolve()
        assert len(stages(dockerfile)) == 2


def test_every_variable_is_a_setting_with_a_value_it_takes(
    services: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("migrate", "celeus"):
        for variable, value in services[name]["environment"].items():
            assert variable.removeprefix("CELEUS_").lower() in Settings.model_fields
            monkeypatch.setenv(variable, re.sub(r"\$\{\w+:-(.*)\}", r"\1", value))
        settings = Settings()
        assert settings.database_url is not None
        address = settings.database_url.replace("${POSTGRES_PASSWORD:?set POSTGRES_PASSWORD}", "x")
        parsed = async_url(address)
        told = services["postgres"]["environment"]
        assert (parsed.username, parsed.database) == (told["POSTGRES_USER"], told["POSTGRES_DB"])
        assert parsed.host == "postgres"
        assert settings.redis_url == "redis://redis:6379/0"


def test_no_password_is_written_down(services: dict[str, Any]) -> None:
    assert services["postgres"]["environment"]["POSTGRES_PASSWORD"].startswith("${")
    assert "celeus:${POSTGRES_PASSWORD" in services["celeus"]["environment"]["CELEUS_DATABASE_URL"]


def test_nothing_is_reachable_from_outside_unless_asked_for(services: dict[str, Any]) -> None:
    published = {name: service.get("ports", []) for name, service in services.items()}
    assert published == {
        "postgres": [],
        "redis": [],
        "migrate": [],
        "celeus": ["${CELEUS_PUBLISHED:-127.0.0.1:8000}:8000"],
    }
