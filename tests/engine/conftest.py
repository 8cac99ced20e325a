"""`engine` is a real Pulumi engine with an empty AWS; `program` writes a small one to run on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from tests.engine import pulumi_cli
from tests.engine.stack import Engine

PROGRAMS = Path(__file__).resolve().parent / "programs"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every command of a real engine takes a second or more."""
    for item in items:
        ours = item.path.is_relative_to(PROGRAMS.parent)
        if ours and "engine" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")


@pytest.fixture(scope="session")
def pulumi() -> Path:
    """The real command. Without one the engine's tests are skipped, and fail where they are
    required: in continuous integration."""
    try:
        return pulumi_cli.find()
    except pulumi_cli.NoPulumi as reason:
        if os.environ.get("CI"):
            pytest.fail(str(reason))
        pytest.skip(str(reason))


@pytest.fixture
def engine(pulumi: Path, tmp_path: Path) -> Iterator[Engine]:
    with Engine(tmp_path / "engine", pulumi) as found:
        yield found


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], Path]:
    """`program("...")`: the folder of a project with this program; `aws` and `pulumi` are there."""

    def write(text: str) -> Path:
        folder = tmp_path / "tiny"
        folder.mkdir(exist_ok=True)
        (folder / "Pulumi.yaml").write_text("name: tiny\nruntime: python\n", encoding="utf-8")
        imports = "import pulumi\nimport pulumi_aws as aws\n"
        (folder / "__main__.py").write_text(imports + dedent(text), encoding="utf-8")
        return folder

    return write
