"""Reading declarations from text, and projects from a few files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gputier import errors
from gputier.workload import Declaration, read_text

PROJECT = "name: demo\nruntime: python\nmain: stacks\nstackConfigDir: stacks\n"


@pytest.fixture
def said() -> Callable[[str], str]:
    """`said(text)`: what a person is told about a file of this content."""

    def run(text: str) -> str:
        with pytest.raises(errors.InvalidInput) as caught:
            read_text(text, "w.yaml")
        return str(caught.value)

    return run


@pytest.fixture
def declared() -> Callable[[str], Declaration]:
    """`declared(text)`: the declaration in a plain file of this content."""
    return lambda text: read_text(text, "w.yaml")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """`project({"dev": "config: …"})`: a Pulumi project with these stack files, as cwd."""

    def make(stacks: Mapping[str, str], pulumi: str = PROJECT) -> Path:
        (tmp_path / "stacks").mkdir()
        (tmp_path / "Pulumi.yaml").write_text(pulumi, encoding="utf-8")
        for name, text in stacks.items():
            (tmp_path / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return make
