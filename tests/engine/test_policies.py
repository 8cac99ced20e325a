"""The policy pack on a real engine: what it stops, what it fills in, and what it waits for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.conftest import ROOT
from tests.engine.stack import Engine

PACK = ("--policy-pack", str(ROOT / "policies"))
TEMPLATE = """
    aws.ec2.LaunchTemplate(
        "web", instance_type="g6.xlarge", image_id="ami-0123456789abcdef0",
        metadata_options={"http_tokens": "optional"},
    )
"""


def configured(folder: Path, config: dict[str, object]) -> tuple[str, ...]:
    file = folder / "config.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    return (*PACK, "--policy-pack-config", str(file))


def test_a_mandatory_violation_fails_the_preview(
    engine: Engine, program: Callable[[str], Path]
) -> None:
    stack = engine.stack(program(TEMPLATE))
    result = stack.preview(*PACK, fails=True)
    assert result.code == 1
    assert ("machine-requires-imdsv2", "mandatory", "web") in [v[:3] for v in result.violations]


def test_a_remediation_that_is_switched_on_applies(
    engine: Engine, program: Callable[[str], Path], tmp_path: Path
) -> None:
    stack = engine.stack(program(TEMPLATE))
    options = configured(tmp_path, {"all": "disabled", "machine-requires-imdsv2": "remediate"})
    result = stack.up(*options)
    assert result.violations == []
    template = result.step("LaunchTemplate web")
    assert template.inputs["metadataOptions"] == {"httpTokens": "required"}
