"""A Python source as small as it can be made without changing what it means.

User data is limited, so that comments, docstrings and blank lines stay in the repository, and a
step of indentation is one space. Nothing is written anew: lines are left out by the positions that
the parser gives, so that every Python version gives the same text.
"""

from __future__ import annotations

import ast

#: Spaces of one step of indentation in our sources.
STEP = 4


def strip(source: str) -> str:
    """The same program. Raises `ValueError` when it would be another: a string over several lines
    or one with a hash after two spaces would lose a part of itself."""
    tree = ast.parse(source)
    dropped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            dropped |= _docstring(node)
    kept = [
        _narrowed(line)
        for number, line in enumerate(source.split("\n"), 1)
        if number not in dropped and line.strip() and not line.lstrip().startswith("#")
    ]
    text = "\n".join(kept) + "\n"
    if ast.dump(ast.parse(text)) != ast.dump(_without_docstrings(tree)):
        raise ValueError("the stripped source is another program")
    return text


def _docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> set[int]:
    """The lines of a docstring, unless it is all there is."""
    first = node.body[0] if node.body else None
    if ast.get_docstring(node, clean=False) is None or first is None or len(node.body) == 1:
        return set()
    return set(range(first.lineno, (first.end_lineno or first.lineno) + 1))


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and _docstring(node):
            del node.body[0]
    return tree


def _narrowed(line: str) -> str:
    body = line.lstrip(" ")
    steps, rest = divmod(len(line) - len(body), STEP)
    return " " * (steps + rest) + body.partition("  # ")[0].rstrip()
