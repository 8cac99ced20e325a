"""The packages of clouds are built alike: the same noun is the same file and the same class."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

CLOUDS = ("aws", "gcp")
#: Files of one cloud alone, and why.
ALONE = {
    "aws": {
        "anomalies": "monitors of unusual cost are made on AWS alone, which the plan says",
        "stop_function": "what stops a fleet over its budget is a function there",
    },
    "gcp": {
        "stop_workflow": "what stops a fleet over its budget is a workflow there",
    },
}
#: Components of one cloud alone, and names that only its package exports, and why.
PARTS_ALONE = {
    "aws": {
        "Alerts": "the topic that alarms are sent to; Google has channels",
        "security_group": "belongs to machines; a firewall of Google's to a network",
    },
    "gcp": {
        "Bounds": "ends a group's hours, which a schedule of Google's only begins",
        "Topic": "what a budget of Google's tells; on AWS alarms have one already",
        "Doors": "a firewall is told what to let in",
        "Interface": "each interface lies in a network of its own",
        "firewall": "belongs to a network; a security group of AWS's to machines",
    },
}


def files(root: Path, cloud: str) -> set[str]:
    return {path.stem for path in (root / "components" / "gputier" / cloud).glob("*.py")}


def components(root: Path, cloud: str, file: str) -> set[str]:
    path = root / "components" / "gputier" / cloud / f"{file}.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bases = {
        node.name: [ast.unparse(base) for base in node.bases]
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    made = ("pulumi.ComponentResource", "Fleet")
    return {name for name, of in bases.items() if any(base in made for base in of)}


@pytest.mark.parametrize(("cloud", "other"), [CLOUDS, CLOUDS[::-1]])
def test_a_file_is_in_every_clouds_package_or_has_a_reason(
    root: Path, cloud: str, other: str
) -> None:
    assert files(root, cloud) - files(root, other) == set(ALONE[cloud])


@pytest.mark.parametrize(("cloud", "other"), [CLOUDS, CLOUDS[::-1]])
def test_a_part_has_the_same_name_in_the_same_file_or_a_reason(
    root: Path, cloud: str, other: str
) -> None:
    alone = {
        name
        for file in files(root, cloud) & files(root, other)
        for name in components(root, cloud, file) - components(root, other, file)
    }
    exported = set(import_module(f"gputier.{cloud}").__all__)
    alone |= exported - set(import_module(f"gputier.{other}").__all__)
    assert alone == set(PARTS_ALONE[cloud])
