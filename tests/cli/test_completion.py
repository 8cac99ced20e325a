"""Shell completion: the scripts, and the words they ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.cli.world import Run

from gputier.catalog import Catalog

#: What was typed, and words that must be offered, and one that must not.
TYPED = {
    "gputier ": ({"plan", "lock", "size", "pick", "tiers", "catalog", "completion"}, "prod"),
    "gputier catalog ": ({"show", "compare", "gpus", "models", "regions", "refresh"}, "frobnicate"),
    "gputier plan ": ({"dev", "prod", "w.yaml"}, "plan"),
    "gputier plan p": ({"prod"}, "dev"),
    "gputier plan --exp": ({"--explain"}, "--json"),
    "gputier plan prod --why-not g6.": ({"g6.xlarge", "g6.12xlarge"}, "g5.xlarge"),
    "gputier lock prod --upgrade t": ({"tuner"}, "chat"),
    "gputier catalog show p4": ({"p4d.24xlarge"}, "p5.48xlarge"),
    "gputier catalog --gpu H": ({"H100-80GB"}, "L4"),
    "gputier catalog --region aws:us-e": ({"aws:us-east-1"}, "gcp:us-east4"),
    "gputier catalog regions a": ({"aws", "azure", "alibaba"}, "gcp"),
    "gputier pick --gpu-m": ({"--gpu-memory"}, "--gpu"),
    "gputier completion ": ({"bash", "zsh", "fish"}, "tcsh"),
}


@pytest.mark.parametrize(("typed", "expected"), TYPED.items(), ids=TYPED)
def test_the_next_word_is_offered(
    typed: str,
    expected: tuple[set[str], str],
    run: Run,
    project: Path,
    small: Catalog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (project / "w.yaml").write_text("workloads: {}\n", encoding="utf-8")
    monkeypatch.setenv("_GPUTIER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split(" ")) - 1))
    ran = run()
    offered = {line.partition(",")[2] for line in ran.out.splitlines()}
    assert expected[0] <= offered
    assert expected[1] not in offered
    assert ran.err == ""


def test_completion_never_complains(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("[broken", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("_GPUTIER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "gputier plan ")
    monkeypatch.setenv("COMP_CWORD", "2")
    ran = run()
    assert (ran.out, ran.err) == ("\n" * ran.out.count("\n"), "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_names_our_variable(shell: str, run: Run) -> None:
    ran = run("completion", shell)
    assert ran.code == 0
    assert f"_GPUTIER_COMPLETE={shell}_complete" in ran.out
    assert os.environ.get("_GPUTIER_COMPLETE") is None
