"""The node runs on the oldest Python that an image may have: syntax is not all there is to it."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.node.clouds import CONFIG, HEALTHY, world

FOUND = (
    *(str(p) for p in sorted(Path.home().glob(".pyenv/versions/3.8*/bin/python3.8"))),
    shutil.which("python3.8"),
)
OLDEST = next((python for python in FOUND if python), None)
needs_oldest = pytest.mark.skipif(OLDEST is None, reason="no Python 3.8 on this machine")
# Subscripts that are evaluated fail there: `Mapping[str, int]` as a value, not as an annotation.
BUILT_IN = {"dict", "list", "tuple", "set", "frozenset", "type"}


def early_generics(source: str) -> list[int]:
    """Lines on which a generic of newer Pythons is evaluated when the module is loaded or run."""
    tree = ast.parse(source)
    names = set(BUILT_IN)
    annotations: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "collections.abc":
            names |= {alias.asname or alias.name for alias in node.names}
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(part, ast.AST):
                annotations |= {id(inner) for inner in ast.walk(part)}
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and id(node) not in annotations
        and isinstance(node.value, ast.Name)
        and node.value.id in names
    ]


def modules(root: Path) -> Iterator[Path]:
    yield from sorted((root / "components/gputier/node").rglob("*.py"))


def test_no_generic_is_evaluated_that_python_3_8_cannot_subscript(root: Path) -> None:
    found = {str(p): early_generics(p.read_text(encoding="utf-8")) for p in modules(root)}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("from collections.abc import Mapping\nA = Mapping[str, int]", [2]),
        ("A: dict[str, int] = {}\ndef f(x: list[int]) -> tuple[int]: ...", []),
        ("class A(dict[str, int]): ...", [1]),
        ("def f():\n    return list[int]()", [2]),
        ("x = {}\ny = x['a']", []),
    ],
)
def test_an_early_generic_is_found(source: str, lines: list[int]) -> None:
    assert early_generics(source) == lines


@needs_oldest
def test_every_module_is_loaded_by_the_oldest_python(root: Path) -> None:
    folder = root / "components"
    names = [
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        for path in modules(root)
        if path.name != "__main__.py"
    ]
    code = (
        f"import sys, importlib; sys.path.insert(0, {str(folder)!r})\n"
        "for name in sys.argv[1:]: importlib.import_module(name)"
    )
    done = subprocess.run(
        [str(OLDEST), "-S", "-W", "error", "-c", code, *names],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


SETTLE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from gputier.node import gates, settings
from gputier.node.cloud import identity
from gputier.node.host import Host
host = Host(sys.argv[2])
gate = gates.of(settings.read(host.read(settings.FILE)), identity.load(host), host)
gate.heartbeat()
settled = gate.settle(json.loads(sys.stdin.read()))
print(json.dumps([settled.open, [step.value for step in settled.failed], settled.exit]))
"""


@needs_oldest
@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.parametrize("cloud", ["aws", "gcp"])
def test_the_oldest_python_tells_a_verdict(root: Path, tmp_path: Path, cloud: str) -> None:
    kind = "lifecycle-hook" if cloud == "aws" else "health-endpoint"
    with world(tmp_path, cloud) as there:
        gate = {"kind": kind, "mode": "enforce", "group": "tuner", "hook": "tuner-launch"}
        boot = {"schema": "gputier/boot/1", "workload": "tuner", "cloud": cloud, "gate": gate}
        there.host.write("/etc/gputier/boot.json", json.dumps(boot))
        for report, wanted in ((HEALTHY, "[true, [], 0]"), (CONFIG, "[false, [], 30]")):
            done = subprocess.run(
                [str(OLDEST), "-S", "-c", SETTLE, str(root / "components"), str(tmp_path)],
                input=json.dumps(report), capture_output=True, text=True, check=False, timeout=60,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            assert done.stdout.strip() == wanted
        assert len(there.store.keys("reports/tuner/")) == 2
