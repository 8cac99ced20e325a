"""The agent that sends the GPUs' figures, started only behind the gate.

A machine that is not let in yet is not part of its group: figures of it with the group's name would
have the group scaled by a machine that does no work. An agent that cannot be had is a warning: the
machine works without it.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from gputier.node import distro, fetched, having, services, units
from gputier.node.fetched import Signed
from gputier.node.host import Host
from gputier.node.stages import Halt, StageResult, Work, ok

CLOUDWATCH, OPS_AGENT = "cloudwatch", "ops-agent"


class Agent(NamedTuple):
    """An agent: its own unit, a file that shows that it is installed, where its settings are."""

    unit: str
    proof: str
    config: str


AGENTS = {
    CLOUDWATCH: Agent(
        "amazon-cloudwatch-agent.service",
        "/opt/aws/amazon-cloudwatch-agent/bin/amazon-cloudwatch-agent-ctl",
        "/etc/gputier/cloudwatch.json",
    ),
    # JSON is YAML too, which is what this agent reads.
    OPS_AGENT: Agent(
        "google-cloud-ops-agent.service",
        "/opt/google-cloud-ops-agent/libexec/google_cloud_ops_agent_engine",
        "/etc/google-cloud-ops-agent/config.yaml",
    ),
}
CWAGENT = "amazon-cloudwatch-agent"
SITE = "https://amazoncloudwatch-agent.s3.amazonaws.com"
# docs.aws.amazon.com, AmazonCloudWatch, verify-CloudWatch-Agent-Package-Signature.
FINGERPRINT = "937616F3450B7D806CBD9725D58167303B789C72"
GOOGLE = "https://packages.cloud.google.com"
GOOGLE_KEY = "/etc/apt/keyrings/google-cloud-ops-agent.asc"


def run(work: Work) -> StageResult:
    """The agent installed and configured, and bound to the open gate."""
    agent = AGENTS[work.settings.agent or CLOUDWATCH]
    try:
        installed = _installed(work, agent)
    except Halt as halt:
        work.warnings.append(f"no GPU metrics: {halt.result.evidence}")
        return ok(f"without {work.settings.agent}: it is not in the image and not to be had")
    changed = _configured(work, agent) or installed
    # It would start at boot by itself, long before the gate.
    changed = _not_by_itself(work, agent) or changed
    unit = services.metrics(agent.unit, _dcgm(work))
    changed = units.install(work, unit) or changed
    changed = units.enable(work, unit.name) or changed
    return ok(f"{work.settings.agent} starts when the gate opens", changed)


def _configured(work: Work, agent: Agent) -> bool:
    text = json.dumps(work.settings.table("metrics.config"), indent=1, sort_keys=True) + "\n"
    changed = work.put(agent.config, text)
    if changed and work.settings.agent == CLOUDWATCH:
        # Checks the file and translates it; without `-s` it starts nothing.
        argv = (agent.proof, "-a", "fetch-config", "-m", "ec2", "-c", f"file:{agent.config}")
        done = work.run(*argv, limit=60.0)
        if not done.ok:
            work.warnings.append(f"the agent does not take its settings: {having.last(done)}")
    return changed


def _not_by_itself(work: Work, agent: Agent) -> bool:
    enabled = work.run("systemctl", "is-enabled", agent.unit, limit=10.0).out.strip() == "enabled"
    if enabled:
        work.must("hold the agent back", "systemctl", "disable", agent.unit, limit=30.0)
    active = units.is_active(work, agent.unit)
    if active:
        work.must("hold the agent back", "systemctl", "stop", agent.unit, limit=60.0)
    return enabled or active


def _dcgm(work: Work) -> bool:
    """Whether the agent asks DCGM, whose own service has to run then."""
    shown = work.run("systemctl", "show", "-p", "LoadState", services.DCGM, limit=10.0)
    asked = "dcgm" in json.dumps(work.settings.table("metrics.config"))
    there = "LoadState=loaded" in shown.out
    if asked and not there:
        work.warnings.append("temperature, ECC and Xid figures come from DCGM, which is not here")
    return asked and there


# --- installed ----------------------------------------------------------------------------------


def _installed(work: Work, agent: Agent) -> bool:
    if work.host.exists(agent.proof):
        return False
    (_cloudwatch if agent is AGENTS[CLOUDWATCH] else _ops_agent)(work)
    return True


def _cloudwatch(work: Work) -> None:
    """From the repositories (Amazon Linux), else AWS's own package with AWS's signature."""
    if distro.family(work) == distro.DNF:
        having.packages(work, (CWAGENT,), "the CloudWatch agent")
        return
    machine = work.run("dpkg", "--print-architecture", limit=10.0).out.strip() or "amd64"
    folder = f"{SITE}/ubuntu/{machine}/latest/{CWAGENT}.deb"
    file = Signed(f"{CWAGENT}.deb", folder, f"{folder}.sig", f"{SITE}/assets/{CWAGENT}.gpg",
                  FINGERPRINT)  # fmt: skip
    distro.install(work, fetched.signed(work, file, limit=90.0))


def _ops_agent(work: Work) -> None:
    """Google's repository for this release, as its own script names it."""
    release = _release(work.host)
    if distro.family(work) == distro.APT:
        fetched.download(work, f"{GOOGLE}/apt/doc/apt-key.gpg", GOOGLE_KEY, limit=60.0)
        source = f"deb [signed-by={GOOGLE_KEY}] {GOOGLE}/apt google-cloud-ops-agent-{release}-all"
        work.put("/etc/apt/sources.list.d/google-cloud-ops-agent.list", f"{source} main\n")
    else:
        address = f"{GOOGLE}/yum/repos/google-cloud-ops-agent-{release}-$basearch-all"
        work.put(
            "/etc/yum.repos.d/google-cloud-ops-agent.repo",
            "[google-cloud-ops-agent]\nname=google-cloud-ops-agent\n"
            f"baseurl={address}\nenabled=1\ngpgcheck=1\n"
            f"gpgkey={GOOGLE}/yum/doc/yum-key.gpg {GOOGLE}/yum/doc/rpm-package-key.gpg\n",
        )
    having.packages(work, ("google-cloud-ops-agent",), "the Ops Agent")


def _release(host: Host) -> str:
    """`noble` of Ubuntu, `el9` of Rocky: how Google's repositories are named."""
    text = host.read("/etc/os-release") or ""
    found = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.M))
    name = found.get("VERSION_CODENAME")
    return name or f"el{found.get('VERSION_ID', '9').split('.')[0]}"
