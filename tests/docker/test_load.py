"""What the image loads when it is built, against what its lock installs."""

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from tests.docker.images import ROOT

APP = ROOT / "app"


def left_out() -> tuple[str, ...]:
    """The modules that docker/load.py does not load."""
    program = ast.parse((ROOT / "docker" / "load.py").read_text())
    [value] = [node.value for node in program.body if isinstance(node, ast.Assign)]
    found: tuple[str, ...] = ast.literal_eval(value)
    return found


def imported(path: Path) -> Iterator[str]:
    """The packages that a module imports when it is loaded."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module.split(".")[0]


def test_what_the_image_loads_is_in_its_lock() -> None:
    lock = (ROOT / "requirements" / "server.lock").read_text()
    locked = set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE))
    installed = {
        name: {re.sub(r"[-_.]+", "-", one).lower() for one in distributions}
        for name, distributions in packages_distributions().items()
    }
    missing = {}
    for path in APP.glob("celeus/**/*.py"):
        module = ".".join(path.relative_to(APP).with_suffix("").parts)
        if "node_modules" in path.parts or module.startswith(left_out()):
            continue
        others = set(imported(path)) - sys.stdlib_module_names - {"celeus"}
        if lacking := [name for name in others if not installed.get(name, set()) & locked]:
            missing[module] = lacking
    assert missing == {}
