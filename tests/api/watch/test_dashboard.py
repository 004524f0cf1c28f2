"""The dashboard of `docker/watch`: it asks for metrics that there are, by labels that they have."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml  # type: ignore[import-untyped]

from tests.factories import known_pool, labelled, opened

ROOT = Path(__file__).parents[3]
DOCKER = ROOT / "docker"
METRIC = re.compile(r"\b(celeus_\w+)(?:\{([^}\"]*\"[^\"]*\"[^}]*)\})?")
SAMPLE = re.compile(r"^(celeus_\w+)(?:\{(.*)\})? ", re.MULTILINE)


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCKER / "watch" / "celeus.json").read_text())
    return found


def queries(dashboard: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


@pytest.mark.own_context
async def test_every_query_is_of_metrics_and_labels_that_there_are(
    client: httpx.AsyncClient, dashboard: dict[str, Any]
) -> None:
    pool = await known_pool(client)
    await labelled(client, await opened(client, pool), pool, 2)
    page = (await client.get("/metrics")).text
    labels: dict[str, set[str]] = {}
    for name, given in SAMPLE.findall(page):
        labels.setdefault(name, set()).update(re.findall(r'(\w+)="', given or ""))
    asked = queries(dashboard)
    assert len(asked) > 20
    for query in asked:
        (names, grouped) = METRIC.findall(query), re.findall(r"\bby \(([^)]*)\)", query)
        assert names, query
        for name, matched in names:
            assert name in labels, query
            wanted = set(re.findall(r'(\w+)="', matched))
            wanted |= {label.strip() for group in grouped for label in group.split(",")}
            assert wanted <= labels[name], query
    # What a query picks out is there, too
    (route,) = {route for query in asked for route in re.findall(r'route="([^"]*)"', query)}
    assert f'route="{route}"' in page


@pytest.mark.own_context
async def test_every_metric_of_ours_is_shown_and_explained(
    client: httpx.AsyncClient, dashboard: dict[str, Any]
) -> None:
    page = (await client.get("/metrics")).text
    explained = (ROOT / "docs" / "operations.md").read_text()
    shown = " ".join(queries(dashboard))
    families = re.findall(r"^# TYPE (celeus_\w+) (?:counter|gauge|histogram)$", page, re.MULTILINE)
    for name in families:
        if not name.endswith("_created"):
            assert f"`{name}`" in explained, name
            assert name in shown, name


def test_panels_have_titles_a_place_and_the_source_that_is_provisioned(
    dashboard: dict[str, Any],
) -> None:
    (source,) = yaml.safe_load((DOCKER / "watch" / "datasources.yaml").read_text())["datasources"]
    places = set()
    for panel in dashboard["panels"]:
        assert panel["title"]
        places.add((panel["gridPos"]["x"], panel["gridPos"]["y"]))
        for part in (panel, *panel["targets"]):
            assert part["datasource"] == {"type": source["type"], "uid": source["uid"]}
    assert len(places) == len(dashboard["panels"])
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_the_compose_file_brings_what_grafana_and_prometheus_read() -> None:
    read = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    services = read["services"]
    mounted = {
        (DOCKER / source, target)
        for name in ("prometheus", "grafana")
        for source, target, *_ in (mount.split(":") for mount in services[name]["volumes"])
        if source.startswith("./")
    }
    assert {path.name for path, _ in mounted} == {
        path.name for path in (DOCKER / "watch").iterdir()
    }
    targets = {path.name: target for path, target in mounted}
    (provider,) = yaml.safe_load((DOCKER / "watch" / "dashboards.yaml").read_text())["providers"]
    assert targets["celeus.json"].startswith(provider["options"]["path"] + "/")
    assert (
        services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
        == (targets["celeus.json"])
    )
    assert f"--config.file={targets['prometheus.yaml']}" in services["prometheus"]["command"]
    (job,) = yaml.safe_load((DOCKER / "watch" / "prometheus.yaml").read_text())["scrape_configs"]
    (secret,) = services["prometheus"]["secrets"]
    assert job["authorization"]["credentials_file"] == f"/run/secrets/{secret}"
    assert secret in read["secrets"]
    (found,) = job["dns_sd_configs"]
    assert (found["names"], found["port"]) == (["celeus"], 8000)
