"""What the Dockerfile says, read beside the settings and the files it names."""

import fnmatch
from pathlib import Path

from celeus.settings import Settings
from tests.docker.dockerfile import Stage, stages

ROOT = Path(__file__).parents[2]
BUILD, FINAL = stages(ROOT / "docker" / "Dockerfile")


def test_the_image_does_not_run_as_root() -> None:
    [useradd] = [step for step in FINAL.all("RUN") if step.startswith("useradd")]
    user, group = FINAL.one("USER").split(":")
    assert f"--uid {user} " in useradd
    assert user == group != "0"
    names = [name for name, _ in FINAL.said]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert FINAL.environment()["CELEUS_DATA_DIR"].startswith(FINAL.one("VOLUME"))


def test_both_stages_have_the_same_slim_python() -> None:
    assert BUILD.image == FINAL.image == "python:3.11-slim"


def test_every_variable_of_the_image_is_a_setting() -> None:
    known = {f"CELEUS_{name.upper()}" for name in Settings.model_fields}
    assert {name for name in FINAL.environment() if name.startswith("CELEUS_")} <= known


def test_what_the_build_copies_is_sent_to_it() -> None:
    rules = (ROOT / ".dockerignore").read_text().splitlines()
    sent = [rule.removeprefix("!") for rule in rules if rule.startswith("!")]
    assert "*" in rules
    for origins, _ in _copies(BUILD):
        for origin in origins:
            assert (ROOT / origin).exists()
            assert any(fnmatch.fnmatch(origin, rule) for rule in sent), f"{origin} is not sent"


def _copies(stage: Stage) -> list[tuple[list[str], str]]:
    """Origins and destination of every COPY from the context."""
    found = []
    for text in stage.all("COPY"):
        *origins, destination = text.split()
        found.append((origins, destination.removeprefix("./") or "."))
    return found
