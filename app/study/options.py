"""Options that several commands of `celeus study` share."""

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[Path, typer.Option(help="Folder of what is written.")]
EvalData = Annotated[Path, typer.Option(help="Folder of the real pools (.npz).")]
Processes = Annotated[
    int | None, typer.Option(min=1, help="Processes at once; all processors by default.")
]
Seeds = Annotated[int, typer.Option(min=1, help="Sessions of every policy and claim.")]
Quick = Annotated[bool, typer.Option("--quick", help="A small run of a few seconds: is it whole?")]
OUT = Path("study")
"""Where studies are written unless they are told."""
