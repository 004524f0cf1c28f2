"""`make size`: lines by room, functions, files and words of docs, beside their aims."""

import ast
import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
AIMS = {
    "lines of app/": 55_000,
    "lines of tests/": 50_000,
    "files": 1_000,
    "words of docs/": 45_000,
}
"""Aims, not limits: a number that asks for something ugly is not followed."""


def tracked() -> list[Path]:
    """The files that git keeps."""
    command = ["git", "ls-files", "-z"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    paths = (ROOT / name for name in found.stdout.decode().split("\0") if name)
    return [path for path in paths if path.is_file()]


def room_of(path: Path) -> str:
    """The folder that a module is counted in: two levels of the package, one of everything else."""
    parts = path.relative_to(ROOT).parts[:-1]
    if parts[:2] == ("app", "celeus"):
        return "/".join(parts[:3])
    return "/".join(parts[:2]) if parts[:1] == ("tests",) else "/".join(parts[:1])


def main() -> None:
    """Print the tables."""
    files = tracked()
    lines: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for path in (path for path in files if path.suffix == ".py"):
        text = path.read_text()
        lines[room_of(path)] += text.count("\n")
        if path.is_relative_to(ROOT / "app"):
            nodes = list(ast.walk(ast.parse(text)))
            kinds["modules"] += 1
            kinds["functions"] += sum(
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes
            )
            kinds["classes"] += sum(isinstance(node, ast.ClassDef) for node in nodes)
    for room, count in sorted(lines.items()):
        print(f"{count:8,} {room}")  # noqa: T201 - what the command is for
    found = {
        "lines of app/": sum(count for room, count in lines.items() if room.startswith("app")),
        "lines of tests/": sum(count for room, count in lines.items() if room.startswith("tests")),
        "files": len(files),
        "words of docs/": sum(
            len(path.read_text().split())
            for path in files
            if path.suffix == ".md" and path.is_relative_to(ROOT / "docs")
        ),
    }
    for what, count in kinds.items():
        print(f"{count:8,} {what} of app/")  # noqa: T201 - as above
    for what, count in found.items():
        print(f"{count:8,} {what} (aim: at most {AIMS[what]:,})")  # noqa: T201 - as above


if __name__ == "__main__":
    main()
