"""The settings of a boot: unknown keys a warning, wrong ones named all at once."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from tests.node.booting import EVERYTHING

from gputier.node import settings, stages
from gputier.node.result import EXIT


def read(**declared: Any) -> settings.Settings:
    return settings.read(json.dumps({"schema": settings.SCHEMA, **declared}))


def test_what_is_absent_is_not_done() -> None:
    names = [stage.name for stage in stages.applying(read())]
    assert names == ["packages", "services", "validate", "gate", "burn-in"]


def test_the_defaults_are_careful() -> None:
    found = read()
    assert (found.mode, found.depth, found.gate_kind) == ("enforce", "quick", "file")
    assert (found.reboots, found.deadline_seconds, found.breaker_after) == (1, 3600, 2)


def test_no_reboot_is_a_number_of_reboots() -> None:
    assert read(reboots=0).reboots == 0


def test_unknown_keys_are_warnings() -> None:
    found = read(colour="red", gate={"mode": "report", "smell": 1}, nccl={"ANY_NAME": "1"})
    assert [text.split("`")[1] for text in found.warnings] == ["colour", "gate.smell"]
    assert found.mode == "report"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"schema": "gputier/boot/2"}, "schema"),
    ({"schema": None}, "schema: it is missing"),
    ({"gate": {"kind": "gatling"}}, "gate.kind"),
    ({"gate": {"port": 0}}, "gate.port: 0 is not a port"),
    ({"gate": {"kind": "lifecycle-hook"}}, "gate.hook"),
    ({"gate": {"deadline_seconds": 0}}, "gate.deadline_seconds"),
    ({"bundle": {"sha256": "abc"}}, "bundle.sha256"),
    ({"limits": {"driver": -1}}, "limits"),
    ({"driver": {"source": "install"}}, "driver.version"),
    ({"driver": {"source": "install", "version": "580.1", "branch": "new"}}, "driver.branch"),
    ({"driver": {"fabric_manager": "yes"}}, "driver.fabric_manager"),
    ({"scratch": {"mount": "scratch"}}, "scratch.mount"),
    ({"data": {"filesystem": "ntfs"}}, "data.filesystem"),
    ({"nccl": {"A B": "1"}}, "nccl"),
    ({"nccl": {"A": "1\n2"}}, "nccl"),
    ({"nccl": {"A": 1}}, "nccl"),
    ({"framework": {"index": "ftp://x"}}, "framework.index"),
    ({"proxy": {"http": "proxy:3128"}}, "proxy.http"),
    ({"container": {"ports": [0]}}, "container.ports"),
    ({"container": {"args": [1]}}, "container.args"),
    ({"metrics": {"config": []}}, "metrics.config"),
    ({"run": " "}, "run"),
    ({"run": "x", "container": {"image": "y"}}, "not both"),
    ({"ssh_keys": "ssh-rsa"}, "ssh_keys"),
]


@pytest.mark.parametrize(("declared", "words"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_value_is_refused_with_its_place(declared: dict[str, Any], words: str) -> None:
    with pytest.raises(settings.BadSettings) as caught:
        read(**declared)
    assert words in str(caught.value)


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(settings.BadSettings) as caught:
        read(gate={"mode": 1, "port": "x"}, reboots=-1, run="")
    assert len(caught.value.problems) == 4


def test_shell_text_is_kept_as_it_was_written() -> None:
    text = "\n  cat <<EOF\n x\nEOF\n"
    assert read(run=text).text("run") == text
    assert read(container={"args": ["", " "]}).texts("container.args") == ("", " ")


# --- the table of stages ------------------------------------------------------------------------


def test_everything_that_can_be_asked_for_has_a_stage() -> None:
    found = read(**EVERYTHING)
    assert stages.applying(found) == stages.STAGES
    assert len(stages.BY_NAME) == len(stages.STAGES)


@pytest.mark.parametrize("stage", stages.STAGES, ids=lambda stage: stage.name)
def test_every_stage_has_a_module_a_limit_and_a_reason_for_it(stage: stages.Stage) -> None:
    name = f"{stages.__name__}.{stage.module}"
    assert callable(importlib.import_module(name).run)
    for limit in stage.limits:
        assert limit.seconds > stages.MARGIN_SECONDS
        assert len(limit.why) > 8
    assert stage.default(read()) == stage.limits[-1], "the last always holds"


def test_a_limit_follows_the_settings() -> None:
    driver = stages.BY_NAME["driver"]
    prebaked = read(driver={"source": "prebaked"})
    installed = read(driver={"source": "install", "version": "580.95.05"})
    assert driver.seconds(prebaked) < driver.seconds(installed)
    assert driver.seconds(read(limits={"driver": 7})) == 7
    depths = [
        stages.BY_NAME["validate"].seconds(read(gate={"depth": depth}))
        for depth in ("quick", "standard", "burn-in")
    ]
    assert depths == sorted(depths)


def test_the_stages_before_the_validation_are_the_preparation() -> None:
    names = [stage.name for stage in stages.preparing(read(**EVERYTHING))]
    assert names == [stage.name for stage in stages.STAGES][: len(names)]
    assert not {"validate", "gate", "workload"} & set(names)


@pytest.mark.parametrize("make", [stages.config, stages.replace, stages.inconclusive])
def test_a_result_without_a_remedy_gets_the_outcomes_own(make: Any) -> None:
    found = make("why")
    assert found.outcome in EXIT
    assert found.remedy
    assert not found.ok
