"""Docstrings say what a thing returns, does or is; none opens as a riddle."""

import ast
from pathlib import Path

import celeus

ROOT = Path(celeus.__file__).parent
RIDDLES = {"How", "Of", "What", "When", "Where", "Whether", "Which", "Who", "Why"}


def test_no_docstring_opens_with_a_question() -> None:
    opened = []
    for path in ROOT.rglob("*.py"):
        if "node_modules" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    if text.split()[:1] and text.split()[0].strip(",;:") in RIDDLES:
                        opened.append(f"{path.relative_to(ROOT)}:{node.lineno}: {text[:60]}")
    assert not opened
