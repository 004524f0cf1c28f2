"""Read a Dockerfile: its stages, and what each says."""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Stage:
    """One stage: the image it begins with, and its instructions in order."""

    image: str
    said: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        """What every such instruction says."""
        return [text for name, text in self.said if name == instruction]

    def one(self, instruction: str) -> str:
        """What the only such instruction says."""
        [text] = self.all(instruction)
        return text

    def environment(self) -> dict[str, str]:
        """Names and values of ENV."""
        pairs = [pair for text in self.all("ENV") for pair in shlex.split(text)]
        return dict(pair.split("=", 1) for pair in pairs)


def stages(path: Path) -> list[Stage]:
    """The stages of a Dockerfile; comments and line ends are taken out."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    found: list[Stage] = []
    for line in re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines():
        if not line.strip():
            continue
        name, _, text = line.partition(" ")
        if name == "FROM":
            found.append(Stage(text.split()[0]))
        else:
            found[-1].said.append((name, text.strip()))
    return found
