"""The policy pack on a real engine: what it stops, what it fills in, and what it waits for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import ROOT
from tests.engine import ours
from tests.engine.stack import Engine, Result, Stack

POLICIES = ROOT / "policies"
PACK = ("--policy-pack", str(POLICIES))
IMDSV2 = "machine-requires-imdsv2"
UNDECIDED = "stack-limits-undecided"
TEMPLATE = """
    net = aws.ec2.Vpc("net", cidr_block="10.0.0.0/16")
    aws.ec2.LaunchTemplate(
        "web", instance_type="g6.xlarge", image_id="ami-0123456789abcdef0",
        metadata_options={"http_tokens": %s},
        vpc_security_group_ids=[net.default_security_group_id],
    )
"""
OPTIONAL = '"optional"'
#: As a value that only the cloud can tell is: nothing is known of it before the network is made.
LATER = 'net.id.apply(lambda _: "optional")'
Write = Callable[[str], Path]


def configured(folder: Path, config: dict[str, object]) -> tuple[str, ...]:
    file = folder / "config.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    return (*PACK, "--policy-pack-config", str(file))


def only(folder: Path, *rules: str, level: str = "mandatory") -> tuple[str, ...]:
    """The pack with these rules alone, and the line of what is undecided."""
    asked = dict.fromkeys(rules, level) | {UNDECIDED: "advisory"}
    return configured(folder, {"all": "disabled", **asked})


def told(result: Result) -> list[tuple[str, str, str]]:
    """(rule, level, resource) of each violation."""
    return [violation[:3] for violation in result.violations]


def test_a_mandatory_violation_fails_the_preview_although_other_properties_are_unknown(
    engine: Engine, program: Write, tmp_path: Path
) -> None:
    stack = engine.stack(program(TEMPLATE % OPTIONAL))
    result = stack.preview(*only(tmp_path, IMDSV2), fails=True)
    assert result.code == 1
    assert told(result) == [(IMDSV2, "mandatory", "web")]


def test_an_update_stops_before_the_machine_is_made(
    engine: Engine, program: Write, tmp_path: Path
) -> None:
    stack = engine.stack(program(TEMPLATE % OPTIONAL))
    result = stack.up(*only(tmp_path, IMDSV2), fails=True)
    assert told(result) == [(IMDSV2, "mandatory", "web")]
    assert not [call for call in engine.calls("Create") if "LaunchTemplate" in call.urn]


def test_an_unknown_value_is_one_advisory_line_and_decided_by_the_update(
    engine: Engine, program: Write, tmp_path: Path
) -> None:
    stack = engine.stack(program(TEMPLATE % LATER))
    options = only(tmp_path, IMDSV2)
    preview = stack.preview(*options)
    assert told(preview) == [(UNDECIDED, "advisory", "tiny-dev")]
    line = preview.violations[0][3].splitlines()[-1]
    assert line == (
        "1 rule will decide during the update, when the values are known:"
        " machine-requires-imdsv2 (web: metadataOptions.httpTokens)"
    )
    update = stack.up(*options, fails=True)
    assert told(update) == [(IMDSV2, "mandatory", "web")]
    assert not [call for call in engine.calls("Create") if "LaunchTemplate" in call.urn]


def test_a_remediation_that_is_switched_on_applies(
    engine: Engine, program: Write, tmp_path: Path
) -> None:
    stack = engine.stack(program(TEMPLATE % OPTIONAL))
    result = stack.up(*only(tmp_path, IMDSV2, level="remediate"))
    assert result.violations == []
    template = result.step("LaunchTemplate web")
    assert template.inputs["metadataOptions"] == {"httpTokens": "required"}


def test_an_advisory_rule_tells_and_lets_pass(
    engine: Engine, program: Write, tmp_path: Path
) -> None:
    stack = engine.stack(program(TEMPLATE % OPTIONAL))
    result = stack.preview(*only(tmp_path, IMDSV2, level="advisory"))
    assert told(result) == [(IMDSV2, "advisory", "web")]


def test_a_setting_of_the_wrong_kind_is_refused_before_anything_runs(
    engine: Engine, program: Write, tmp_path: Path
) -> None:
    stack = engine.stack(program(TEMPLATE % OPTIONAL))
    wrong = configured(tmp_path, {"machine-limits-price": {"usd_per_hour": "a lot"}})
    result = stack.preview(*wrong, fails=True)
    assert "machine-limits-price: usd_per_hour: Invalid type" in result.stdout + result.stderr


def analyzed(stack: Stack, *arguments: str, ok: tuple[int, ...]) -> str:
    """What `pulumi policy analyze` says of a stack's export, which asks no cloud and no backend."""
    exported = stack.project / "export.json"
    done = stack.engine.run(stack.project, "stack", "export", "-s", stack.name)
    exported.write_text(done.stdout, encoding="utf-8")
    command = ("policy", "analyze", "--file", str(exported), *arguments)
    done = stack.engine.run(stack.project, *command, ok=ok)
    return done.stdout + done.stderr


def test_the_rules_run_over_an_existing_state(
    engine: Engine, program: Write, tmp_path: Path
) -> None:
    stack = engine.stack(program(TEMPLATE % OPTIONAL))
    stack.up()
    said = analyzed(stack, *only(tmp_path, IMDSV2), ok=(1, 5))
    assert IMDSV2 in said
    assert "httpTokens is optional" in said


def test_a_machine_on_google_cloud_is_judged_in_the_same_words(
    engine: Engine, tmp_path: Path
) -> None:
    folder = tmp_path / "google"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: google\nruntime: python\n", encoding="utf-8")
    (folder / "__main__.py").write_text(
        """
import pulumi_gcp as gcp

gcp.compute.Instance(
    "web",
    machine_type="g2-standard-4",
    zone="us-central1-a",
    boot_disk={"initialize_params": {"image": "projects/p/global/images/i"}},
    network_interfaces=[{"network": "default", "access_configs": [{}]}],
)
""",
        encoding="utf-8",
    )
    stack = engine.stack(folder, config={"gcp:project": "p"})
    result = stack.preview(*only(tmp_path, "machine-forbids-public-address"), fails=True)
    assert told(result) == [("machine-forbids-public-address", "mandatory", "web")]


@pytest.mark.parametrize("name", ["dev", "staging", "prod"])
def test_our_own_stack_keeps_every_rule_of_its_environment(engine: Engine, name: str) -> None:
    """In the preview and in the update, where the values are known, and in the state afterwards."""
    stack = ours.locked(engine, ROOT, name)
    ours.pin(stack, ours.AMI)
    config = ("--policy-pack-config", str(POLICIES / f"config.{name}.json"))
    assert {level for _, level, _ in told(stack.preview(*PACK, *config))} <= {"advisory"}
    assert told(stack.up(*PACK, *config)) == []
    analyzed(stack, *PACK, *config, ok=(0,))
