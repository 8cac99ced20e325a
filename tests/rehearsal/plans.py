"""The workloads that are rehearsed, planned and rendered as `gputier render` does it."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from tests.node.machines import KINDS, Kind
from tests.rehearsal.pretence import kind_of

import gputier
from gputier.boot import Bundle, Rendered, Stack, render
from gputier.boot import settings as settings_of_a_boot
from gputier.catalog import load
from gputier.node import build
from gputier.plan import plan_workload
from gputier.workload import Workload

STACK = Stack("rehearsal", "prod")
RUN = "echo the workload runs > /var/lib/workload-ran\nexec sleep infinity\n"
#: A workload that shows on the console what earlier boots left on the scratch disks.
COUNTING = (
    "cat /proc/sys/kernel/random/boot_id >> /scratch/boots\n"
    'echo "workload: scratch knows $(wc -l < /scratch/boots) boots" > /dev/console\n'
    "exec sleep infinity\n"
)
#: Behind NVSwitch the bus shows so many of them (AWS p5: 4, A100 machines of Google: 6).
SWITCHES = 4
#: A driver of each branch that an image may have.
DRIVERS = {kind.driver.split(".")[0]: kind.driver for kind in KINDS.values()}


@dataclass(frozen=True, slots=True)
class Declared:
    """A workload as a person declares it, and the driver that its image has."""

    fields: Mapping[str, Any]
    environment: str = "prod"
    torch: str | None = None


#: A container has no NVMe disks, so its machines are of types without: Graviton with T4G at AWS
#: (nothing that runs here asks for the architecture), A100 and A2 at Google. The p5 is a virtual
#: machine with all eight of its disks.
DECLARED = {
    "group": Declared({
        "clouds": ["aws"], "gpu": {"models": ["T4G"]}, "cpu": {"architecture": "arm64"},
        "purpose": "inference", "scale": {"min": 1, "max": 4}, "validation": {"depth": "quick"},
        "software": {"run": RUN},
    }),
    "autohealed": Declared({
        "clouds": ["gcp"], "gpu": {"models": ["A100-40GB"], "count": 8}, "purpose": "inference",
        "scale": {"min": 1, "max": 4}, "validation": {"depth": "quick"}, "software": {"run": RUN},
    }),
    "divided": Declared({
        "clouds": ["gcp"], "gpu": {"models": ["A100-40GB"], "mig": "1g.5gb"},
        "purpose": "inference", "scale": {"min": 1, "max": 4}, "validation": {"depth": "quick"},
    }),
    "lone": Declared({
        "clouds": ["aws"], "gpu": {"models": ["T4G"]}, "cpu": {"architecture": "arm64"},
        "purpose": "development", "validation": {"gate": "enforce", "depth": "quick"},
        "software": {"run": RUN},
    }),
    "hopper": Declared({
        "clouds": ["aws"], "gpu": {"models": ["H100-80GB"], "count": 8}, "purpose": "inference",
        "scale": {"min": 1, "max": 4}, "validation": {"depth": "quick"},
        "software": {"run": COUNTING},
    }),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Given:
    """What a machine of a rehearsed workload is given, and the machine that it should be."""

    name: str
    rendered: Rendered
    kind: Kind
    bundle: bytes

    @property
    def settings(self) -> dict[str, Any]:
        return json.loads(self.rendered.settings)

    @property
    def cloud(self) -> str:
        return str(self.settings["cloud"])


@cache
def bundle() -> tuple[bytes, Bundle]:
    """The node bundle of this checkout, and what a lock would pin of it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "gputier-node.pyz")
        build.build(file)
        data = file.read_bytes()
    return data, Bundle(hashlib.sha256(data).hexdigest(), gputier.__version__)


@cache
def given(name: str, bundle_seconds: int = settings_of_a_boot.BUNDLE_SECONDS) -> Given:
    """Plan and render one of `DECLARED`.

    `bundle_seconds`: the fetcher's limit, where a rehearsal cannot wait ten minutes for it to end.
    """
    with mock.patch.object(settings_of_a_boot, "BUNDLE_SECONDS", bundle_seconds):
        return _given(name)


def _given(name: str) -> Given:
    declared, catalog = DECLARED[name], load()
    plan = plan_workload(name, Workload(**declared.fields), catalog, declared.environment)
    assert plan.chosen, f"no machine was chosen for {name}"
    data, pinned = bundle()
    rendered = render(plan, catalog, STACK, pinned)
    expect, settings = json.loads(rendered.expectation), json.loads(rendered.settings)
    switches = SWITCHES if settings["driver"].get("fabric_manager") else 0
    driver = settings["driver"].get("version") or DRIVERS[settings["driver"]["branch"]]
    kind = kind_of(expect, driver, switches, declared.torch)
    return Given(name, rendered, kind, data)
