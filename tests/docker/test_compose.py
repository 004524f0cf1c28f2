"""The compose file: valid, complete, confined, and speaking of settings that exist."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml  # type: ignore[import-untyped]

from celeus.settings import Settings
from celeus.store.database import async_url
from tests.servers import free_port, redis_program

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
REQUIRED = re.compile(r"\$\{(\w+):\?[^}]*\}")
"""A variable that has to be set."""
OURS = ("migrate", "celeus")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """The services, with the merges resolved."""
    read = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    found: dict[str, Any] = read["services"]
    assert set(read["volumes"]) == {"celeus", "postgres", "prometheus"}
    return found


def test_there_is_a_database_a_cache_the_migrations_and_the_service(
    services: dict[str, Any],
) -> None:
    watching = {name for name, service in services.items() if "profiles" in service}
    assert set(services) - watching == {"postgres", "redis", "migrate", "celeus", "haproxy"}
    assert watching == {"prometheus", "grafana"}
    assert services["migrate"]["command"] == ["admin", "migrate"]
    assert "command" not in services["celeus"], "the image serves by default"


def test_what_keeps_running_has_a_health_check(services: dict[str, Any]) -> None:
    for name in ("postgres", "redis", "celeus", "haproxy", "prometheus", "grafana"):
        assert services[name]["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}, name
        assert services[name]["restart"] == "unless-stopped"
    assert "/readyz" in services["celeus"]["healthcheck"]["test"][-1]


def test_the_service_starts_after_the_migrations_and_these_after_the_database(
    services: dict[str, Any],
) -> None:
    after = {name: service.get("depends_on", {}) for name, service in services.items()}
    assert after["migrate"] == {"postgres": {"condition": "service_healthy"}}
    assert after["celeus"]["migrate"] == {"condition": "service_completed_successfully"}


def test_both_run_the_image_of_the_dockerfile_and_keep_its_volume(services: dict[str, Any]) -> None:
    dockerfile = (DOCKER / "Dockerfile").read_text()
    for name in OURS:
        build = services[name]["build"]
        assert (DOCKER / build["context"] / build["dockerfile"]).resolve() == DOCKER / "Dockerfile"
        (volume,) = services[name]["volumes"]
        # Where a data folder is named the service makes its signing key, if nobody names one
        assert f"\nVOLUME {volume.removeprefix('celeus:')}\n" in dockerfile
        assert f"CELEUS_DATA_DIR={volume.removeprefix('celeus:')}/" in dockerfile


def test_all_are_confined(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert {"mem_limit", "cpus", "pids_limit"} <= set(service), name
        assert name == "postgres" or "cap_add" not in service, name


def test_images_of_others_have_exact_versions(services: dict[str, Any]) -> None:
    others = ("postgres", "redis", "haproxy", "prometheus", "grafana")
    images = [services[name]["image"] for name in others]
    base = re.search(r"^ARG PYTHON_IMAGE=(.*)$", (DOCKER / "Dockerfile").read_text(), re.MULTILINE)
    assert base is not None
    for image in (*images, base[1]):
        assert re.search(r":v?\d+\.\d+(\.\d+)?(-\w+)*\}?$", image), image


def test_every_variable_is_a_setting_with_a_value_it_takes(
    services: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in OURS:
        for variable, value in services[name]["environment"].items():
            assert variable.removeprefix("CELEUS_").lower() in Settings.model_fields
            filled = REQUIRED.sub(r"\1", re.sub(r"\$\{\w+:-(.*)\}", r"\1", value))
            monkeypatch.setenv(variable, filled)
        settings = Settings()
        assert settings.database_url is not None
        parsed = async_url(settings.database_url)
        told = services["postgres"]["environment"]
        assert (parsed.username, parsed.database) == (told["POSTGRES_USER"], told["POSTGRES_DB"])
        assert (parsed.host, parsed.password) == ("postgres", "POSTGRES_PASSWORD")
        assert settings.redis_url == "redis://:REDIS_PASSWORD@redis:6379/0"


def test_the_service_believes_the_proxy_before_it_and_nobody_else(
    services: dict[str, Any],
) -> None:
    address = services["haproxy"]["networks"]["default"]["ipv4_address"]
    in_front = services["haproxy"]["environment"]["CELEUS_TRUSTED_PROXIES"]
    assert services["celeus"]["environment"]["CELEUS_TRUSTED_PROXIES"] == f"{address} {in_front}"
    assert services["celeus"]["environment"]["CELEUS_WORKERS"] == "1", "each has an address"
    (mounted,) = services["haproxy"]["volumes"]
    assert (DOCKER / mounted.partition(":")[0]).is_file()


def test_no_password_is_written_down(services: dict[str, Any]) -> None:
    assert REQUIRED.fullmatch(services["postgres"]["environment"]["POSTGRES_PASSWORD"])
    assert REQUIRED.fullmatch(services["redis"]["environment"]["REDISCLI_AUTH"])


def test_the_command_of_redis_asks_for_the_password(services: dict[str, Any]) -> None:
    program, port = redis_program(), free_port()
    *shell, line = services["redis"]["command"]
    # Compose's own way to write a dollar, and an address that nobody else has
    address = f"--bind 127.0.0.1 --port {port}"
    line = line.replace("$$", "$").replace("redis-server -", f"{program} - {address}")
    own = {"PATH": os.environ["PATH"], "REDISCLI_AUTH": "letters4and5digits"}
    # A group of its own: the shell stays above the server
    command = [*shell, line]
    with subprocess.Popen(
        command, env=own, stdout=subprocess.DEVNULL, start_new_session=True
    ) as server:
        try:
            deadline = time.monotonic() + 60
            with redis.Redis(port=port, password="letters4and5digits") as client:  # noqa: S106
                while server.poll() is None and time.monotonic() < deadline:
                    try:
                        client.ping()
                        break
                    except redis.ConnectionError:
                        time.sleep(0.02)
                assert client.config_get("maxmemory") == {"maxmemory": str(256 << 20)}
            with (
                redis.Redis(port=port) as stranger,
                pytest.raises(redis.AuthenticationError),
            ):
                stranger.ping()
        finally:
            os.killpg(server.pid, signal.SIGTERM)


def test_nothing_is_reachable_from_outside_unless_asked_for(services: dict[str, Any]) -> None:
    published = {name: service.get("ports", []) for name, service in services.items()}
    assert published == {
        "postgres": [],
        "redis": [],
        "migrate": [],
        "celeus": [],
        "haproxy": ["${CELEUS_PUBLISHED:-127.0.0.1:8000}:8000"],
        "prometheus": [],
        "grafana": ["${GRAFANA_PUBLISHED:-127.0.0.1:3000}:3000"],
    }


@pytest.mark.parametrize("part", ["build", "demo", "server"])
def test_the_smaller_locks_are_parts_of_the_whole(part: str) -> None:
    def pinned(name: str) -> set[str]:
        text = (ROOT / "requirements" / f"{name}.lock").read_text().strip()
        return set(re.split(r"\n(?=\S)", text))

    assert pinned(part) <= pinned("requirements")
