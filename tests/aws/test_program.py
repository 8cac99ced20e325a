"""The program of every stack: what it deploys, and how it says what is wrong."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from tests.aws import world

from gputier import testing
from gputier.workload.engine import read_engine

CHAT = """\
config:
  aws:region: us-east-1
  gputier:defaults: {clouds: [aws]}
  gputier:workloads:
    chat:
      purpose: inference
      gpu: {models: [L4]}
"""
Write = Callable[[str], Path]
Deploy = Callable[[], testing.Run]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    """`written("...")`: a project whose stack `dev` has this file; its folder of stacks."""

    def write(text: str) -> Path:
        (tmp_path / "Pulumi.yaml").write_text(
            "name: gputier\nruntime: python\nstackConfigDir: stacks\n", encoding="utf-8"
        )
        folder = tmp_path / "stacks"
        folder.mkdir(exist_ok=True)
        (folder / "Pulumi.dev.yaml").write_text(text, encoding="utf-8")
        return folder

    return write


def lock(folder: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "gputier.cli", "lock", "dev", "--upgrade"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip


def config(folder: Path) -> dict[str, str]:
    """What the engine makes of the file: text, and objects as JSON."""
    found: dict[str, Any] = yaml.safe_load((folder / "Pulumi.dev.yaml").read_text("utf-8"))
    return {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in found["config"].items()
    }


def deployed(folder: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> testing.Run:
    monkeypatch.chdir(folder)
    return world.run(
        lambda: runpy.run_path(str(root / "stacks" / "__main__.py"), run_name="__main__"),
        "dev",
        config=config(folder),
    )


def test_what_is_locked_is_deployed_and_told_for_each_workload(
    written: Write, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(CHAT)
    lock(folder)
    run = deployed(folder, root, monkeypatch)
    assert run.find("Group chat-group").inputs["name"] == "gputier-dev-chat"
    assert set(run.outputs) == {"chat", "kept"}
    assert set(run.outputs["chat"]) == {
        "machine", "usd_per_hour", "usd_per_month", "group_name", "connect", "gate_state",
        "dashboard_url", "alerts_topic",
    }  # fmt: skip


def refused(folder: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    with pytest.raises(pulumi.RunError) as mistake:
        deployed(folder, root, monkeypatch)
    return str(mistake.value)


def test_without_a_lock_it_names_the_command(
    written: Write, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = refused(written(CHAT), root, monkeypatch)
    assert "gputier.dev.lock: there is no lock yet" in text
    assert "hint: run `gputier lock dev`" in text


def test_a_stale_lock_names_the_workload_and_the_command(
    written: Write, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock(written(CHAT))
    folder = written(CHAT.replace("models: [L4]", "models: [T4]"))
    text = refused(folder, root, monkeypatch)
    assert "chat" in text
    assert "`gputier lock dev" in text


def test_a_mistake_has_its_file_line_and_hint(
    written: Write, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(CHAT.replace("purpose: inference", "porpose: inference"))
    text = refused(folder, root, monkeypatch)
    assert "error: Pulumi.dev.yaml: 1 problem" in text
    assert "6:7" in text
    assert "did you mean `purpose`?" in text


def test_what_cannot_be_deployed_has_its_line_too(
    written: Write, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(CHAT.replace("  gputier:d", "  gputier:environment: prod\n  gputier:d"))
    lock(folder)
    text = refused(folder, root, monkeypatch)
    assert "error: Pulumi.dev.yaml: 1 problem" in text
    assert "names another image with each release" in text
    assert "`gputier lock dev --images`" in text


def test_the_engines_reading_of_a_file_is_the_files(written: Write) -> None:
    folder = written(CHAT)
    found = read_engine(config(folder), (), "dev", folder)
    assert found.positions.at("workloads.chat.purpose") is not None
    assert Path(found.source).name == "Pulumi.dev.yaml"


def test_what_the_engine_says_counts_where_the_file_says_otherwise(written: Write) -> None:
    """`pulumi up --config`, an ESC environment, or config of the whole project."""
    folder = written(CHAT)
    told = config(folder) | {"gputier:environment": "staging"}
    found = read_engine(told, (), "dev", folder)
    assert (found.name, found.environment) == ("dev", "staging")
    assert Path(found.source) == folder / "Pulumi.dev.yaml", "the lock lies beside it"


def test_a_stack_may_have_no_file(tmp_path: Path, written: Write) -> None:
    folder = written(CHAT)
    found = read_engine(config(folder), (), "other", folder)
    assert found.name == "other"
    assert Path(found.source) == folder / "Pulumi.other.yaml"


def test_a_text_that_begins_like_an_object_is_a_text(written: Write) -> None:
    folder = written(CHAT)
    told = config(folder) | {"aws:profile": "[team"}
    assert "chat" in read_engine(told, (), "dev", folder).workloads


def test_a_secret_among_workloads_is_refused(written: Write) -> None:
    folder = written(CHAT)
    with pytest.raises(Exception, match="secret"):
        read_engine(config(folder), {"gputier:workloads"}, "none", folder)
