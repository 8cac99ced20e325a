"""Every command of the runbooks is one that there is, with options that it has."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from gputier.cli.app import root
from gputier.node.cli import VERBS
from tests import runbooks

ROOT = Path(__file__).parents[1]
PAGES = runbooks.pages(ROOT)
#: Programs that the pages may name; what of them is checked where, is below and in tests/engine.
PROGRAMS = {
    "gputier", "gputier-node", "pulumi", "aws", "gcloud", "git", "systemctl", "nvidia-smi",
}  # fmt: skip


def understood(words: list[str]) -> bool:
    """Whether the command takes these arguments; they are read, and nothing is done."""
    command, name = root, ""
    try:
        while isinstance(command, click.Group):
            context = command.make_context(name, list(words), resilient_parsing=True)
            name, found, words = command.resolve_command(context, words)
            if found is None:
                return False
            command = found
        with command.make_context(name, list(words)):
            return True
    except click.ClickException:
        return False


def test_there_are_six_runbooks_and_each_has_commands() -> None:
    assert len(PAGES) == 6
    assert all(list(runbooks.commands(page)) for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_program_is_one_that_somebody_has(page: Path) -> None:
    assert {words[0] for words in runbooks.commands(page)} <= PROGRAMS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_ours_is_understood(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    inline = re.findall(r"`gputier ([^`]+)`", page.read_text(encoding="utf-8"))
    for words in [*runbooks.of(page, "gputier"), *(line.split() for line in inline)]:
        assert understood(words), words


@pytest.mark.parametrize("words", [["lock", "dev", "--drain"], ["drain"], ["plan", "dev", "chat"]])
def test_a_command_that_we_do_not_have_is_found(words: list[str]) -> None:
    assert not understood(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_node_is_one_of_its_verbs(page: Path) -> None:
    inline = re.findall(r"`gputier-node ([^`]+)`", page.read_text(encoding="utf-8"))
    for words in [*runbooks.of(page, "gputier-node"), *(line.split() for line in inline)]:
        assert words[0] in VERBS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_amazon_is_an_operation_with_its_parameters(page: Path) -> None:
    for words in runbooks.of(page, "aws"):
        assert runbooks.call(words).region == "us-east-1", words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_google_is_one_with_its_options(page: Path) -> None:
    for words in runbooks.of(page, "gcloud"):
        assert runbooks.gcloud(words), words


@pytest.mark.parametrize(
    "line",
    [
        "compute instances begin x --zone z",
        "compute instances start x --region r",
        "compute instances start x",
        "compute instance-groups managed resize x --region r",
    ],
)
def test_a_command_that_google_does_not_have_is_found(line: str) -> None:
    assert not runbooks.gcloud(line.split())


def test_a_command_becomes_what_it_asks_for() -> None:
    line = "autoscaling start-instance-refresh --region us-east-1 --auto-scaling-group-name x"
    asked = runbooks.call([*line.split(), "--preferences", "MinHealthyPercentage=90"])
    assert asked.operation == "StartInstanceRefresh"
    assert asked.params == {
        "AutoScalingGroupName": "x",
        "Preferences": {"MinHealthyPercentage": 90},
    }


@pytest.mark.parametrize(
    "line",
    [
        "autoscaling resume-everything",
        "autoscaling resume-processes --group x",
        "autoscaling resume-processes --scaling-processes Launch",
        "autoscaling resume-processes --auto-scaling-group-name",
        "ec2 get-console-output --instance-id i-0 --max-items",
        "s3 mv here there",
        "s3 ls --force s3://x",
    ],
)
def test_a_command_that_amazon_does_not_have_is_found(line: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        runbooks.call(line.split())
