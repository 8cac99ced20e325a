"""Units: what starts at boot, what behind the gate, and the workload that alone is the point."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.node.stages.box import Box, Python, changes, done, work
from tests.node.stages.test_network import with_efa
from tests.node.stages.test_texts import arguments

from gputier.node import cli, gate, gpudirect, interruption, running, services, units
from gputier.node.stages import Work, collectives, metrics, workload
from gputier.node.stages import services as stage

HOOK = {"kind": "lifecycle-hook", "group": "g", "hook": "h"}
CONTAINER = {
    "image": "ghcr.io/org/serve:1",
    "args": ["--model", "a b", "100%", "$HOME"],
    "env": {"TOKEN": 'se"cr$et'},
    "ports": [8000],
}


def job(box: Box, **declared: object) -> Work:
    return work(box, 900.0, **{"workload": "chat", "gate": HOOK, **declared})  # type: ignore[arg-type]


def line(box: Box, key: str, name: str = units.WORKLOAD) -> list[str]:
    rows = box.files[f"{units.FOLDER}/{name}"].splitlines()
    return [row.split("=", 1)[1] for row in rows if row.startswith(f"{key}=")]


# --- the node's own -----------------------------------------------------------------------------


def test_every_unit_is_known_to_systemd_before_the_gate() -> None:
    box = Box()
    result = done(stage.run, job(box, run="train.sh"))
    assert result.ok
    for name in (services.WATCH, services.INTERRUPTION, services.JOINED, services.WAITING,
                 units.WORKLOAD):  # fmt: skip
        assert f"{units.FOLDER}/{name}" in box.files, name
    assert box.calls.count("systemctl daemon-reload") == 1
    assert box.units[services.WAITING]["ActiveState"] == "active"
    assert "ActiveState" not in box.units.get(services.WATCH, {}), "behind the gate"
    assert units.WORKLOAD not in box.units, "nothing but its own stage starts the workload"


@pytest.mark.parametrize(
    ("kind", "words"),
    [("health-endpoint", ""), ("application-health", " --application-health")],
)
def test_the_health_endpoint_is_up_before_there_is_a_verdict(kind: str, words: str) -> None:
    box = Box()
    done(stage.run, job(box, gate={"kind": kind, "port": 9000}))
    assert line(box, "ExecStart", services.SERVE) == [
        f"/usr/bin/env python3 /usr/local/bin/gputier-node serve --port 9000{words}"
    ]
    assert box.units[services.SERVE]["ActiveState"] == "active"


def test_a_gate_that_nobody_asks_has_no_health_endpoint() -> None:
    box = Box()
    done(stage.run, job(box))
    assert services.SERVE not in box.units


def test_a_service_whose_unit_changed_is_started_again() -> None:
    box = Box()
    done(stage.run, job(box, gate={"kind": "health-endpoint", "port": 9000}))
    since = len(box.calls)
    done(stage.run, job(box, gate={"kind": "health-endpoint", "port": 9001}))
    assert f"systemctl restart {services.SERVE}" in changes(box, since)


def test_every_service_of_ours_is_a_verb_of_the_program() -> None:
    box = Box()
    done(stage.run, job(box, gate={"kind": "health-endpoint"}))
    for name in (services.SERVE, services.WATCH, services.INTERRUPTION):
        (command,) = line(box, "ExecStart", name)
        # Not by itself: it lies below /var/lib, where SELinux lets systemd start nothing.
        assert command.startswith("/usr/bin/env python3 /usr/local/bin/gputier-node "), name
        assert command.split()[3] in cli.VERBS, name


def test_a_notice_stops_the_unit_that_is_the_workload() -> None:
    assert interruption.WORKLOAD == units.WORKLOAD == f"{running.NAME}.service"
    slowest = max(before + ending for before, ending in running.NOTICE.values())
    assert slowest < interruption.STOP_SECONDS


def test_no_unit_waits_for_the_boot_that_starts_it() -> None:
    """It is still running then: a start that is ordered behind it would never come."""
    box = Box()
    done(stage.run, job(box, run="train.sh", gate={"kind": "health-endpoint"}))
    for path, text in box.files.items():
        if path.startswith(units.FOLDER):
            assert "gputier-boot" not in text, path


def test_units_are_not_read_again_below_a_running_workload() -> None:
    box = Box()
    done(stage.run, job(box, run="train.sh"))
    box.files[gate.READY] = "healthy\n"
    box.units[units.WORKLOAD] = {"ActiveState": "active"}
    since = len(box.calls)
    again = job(box, run="train.sh", scratch={"mount": "/scratch"})
    done(stage.run, again)
    assert "systemctl daemon-reload" not in changes(box, since)
    assert "next boot" in again.warnings[0]


def test_what_an_earlier_plan_left_is_gone() -> None:
    """On this disk, or on the one that the machine's image was made of."""
    box = Box()
    declared = {
        "gate": {"kind": "health-endpoint"}, "container": CONTAINER, "before_stop": "save",
        "nccl": {"NCCL_NET_PLUGIN": "ofi"},
    }  # fmt: skip
    done(collectives.run, job(box, **declared))
    box.files[collectives.NCCL_CONF] += "NCCL_DEBUG=WARN\n"
    done(stage.run, job(box, **declared))
    for name in (services.METRICS, gpudirect.RXDM):
        box.files[f"{units.FOLDER}/{name}"] = "[Service]\nExecStart=/bin/true\n"
    result = done(stage.run, job(box))
    assert result.changed
    for name in (services.SERVE, services.METRICS, gpudirect.RXDM, units.WORKLOAD):
        assert f"{units.FOLDER}/{name}" not in box.files, name
        assert f"systemctl disable --now {name}" in box.calls, name
    for path in (running.ENVIRONMENT, running.BEFORE_STOP, collectives.ENVIRONMENT):
        assert path not in box.files, path
    assert box.files[collectives.NCCL_CONF] == "NCCL_DEBUG=WARN\n", "somebody's own line"
    assert not done(stage.run, job(box)).changed


# --- the workload's unit ------------------------------------------------------------------------


def test_a_run_is_a_script_that_needs_no_quoting() -> None:
    box = Box()
    text = 'set -e\necho "100% of $HOME" > /scratch/x\n'
    done(stage.run, job(box, run=text, scratch={"mount": "/scratch"}))
    assert box.files[running.SCRIPT] == text
    assert box.modes[running.SCRIPT] == 0o600
    assert line(box, "ExecStart") == [f"/bin/bash {running.SCRIPT}"]
    assert line(box, "ConditionPathExists") == ["/run/gputier/ready"]
    assert line(box, "WorkingDirectory") == ["/scratch"]
    assert "-/etc/gputier/nccl.env" in line(box, "EnvironmentFile")


def test_the_framework_s_python_is_the_first_on_the_path() -> None:
    box = Box()
    box.files["/opt/pytorch/bin/python3"] = ""
    box.pythons["/opt/pytorch/bin/python3"] = Python(packages={"torch": ("2.9.0", "12.8")})
    done(stage.run, job(box, run="x", framework={"name": "torch", "version": "2.9"}))
    assert line(box, "Environment")[0].startswith('"PATH=/opt/pytorch/bin:')


def test_a_container_gets_its_arguments_as_they_were_declared() -> None:
    box = Box()
    done(stage.run, job(box, container=CONTAINER, data={"mount": "/data"}))
    (command,) = line(box, "ExecStart")
    argv = arguments(command)
    assert argv[-5:] == ["ghcr.io/org/serve:1", "--model", "a b", "100%", "$HOME"]
    assert argv[argv.index("--gpus") : argv.index("--gpus") + 2] == ["--gpus", "all"]
    assert argv[argv.index("--publish") :][:2] == ["--publish", "8000:8000"]
    assert "/data:/data" in argv


def test_a_value_of_the_environment_is_in_no_argument() -> None:
    box = Box()
    done(stage.run, job(box, container=CONTAINER))
    assert "se" + '"' not in box.files[f"{units.FOLDER}/{units.WORKLOAD}"]
    assert box.files[running.ENVIRONMENT] == 'TOKEN="se\\"cr\\$et"\n'
    assert box.modes[running.ENVIRONMENT] == 0o600
    assert all('se"cr' not in call for call in box.calls)
    (command,) = line(box, "ExecStart")
    assert arguments(command)[arguments(command).index("--env") :][:2] == ["--env", "TOKEN"]


def test_with_a_fabric_the_container_uses_the_machine_s_network() -> None:
    box = Box()
    box.files["/etc/gputier/nccl.env"] = 'NCCL_NET="gIB"\n'
    done(stage.run, job(box, container=CONTAINER, fabric={"kind": "roce", "interfaces": 8}))
    argv = arguments(line(box, "ExecStart")[0])
    assert "--network=host" in argv
    assert "--device=/dev/infiniband" in argv
    assert "NCCL_NET" in argv
    assert "--publish" not in argv


@pytest.mark.parametrize(("cloud", "notice"), [("aws", 120), ("gcp", 30)])
def test_before_stop_runs_while_the_workload_does_and_ends_within_the_notice(
    cloud: str, notice: int
) -> None:
    box = Box()
    done(stage.run, job(box, cloud=cloud, container=CONTAINER, before_stop="save"))
    save, stop = line(box, "ExecStop")
    (_, _, script) = arguments(save[1:])
    assert script.startswith('test -n "$MAINPID" || exit 0; exec timeout')
    assert running.BEFORE_STOP in script
    before, ending = running.NOTICE[cloud]
    assert f" {before} " in script
    assert stop == f"-/usr/bin/docker stop --time {ending} gputier-workload"
    assert before + ending < notice
    assert box.files[running.BEFORE_STOP] == "save\n"


def test_before_stop_alone_is_a_unit_that_only_ends() -> None:
    box = Box()
    done(stage.run, job(box, before_stop="save"))
    assert line(box, "RemainAfterExit") == ["yes"]
    assert "MAINPID" not in line(box, "ExecStop")[0]


def test_a_workload_that_systemd_cannot_be_told_is_a_fault_of_the_declaration() -> None:
    box = Box()
    result = done(stage.run, job(box, container={**CONTAINER, "env": {"A": "\x1b[0m"}}))
    assert result.outcome == "config"
    assert "A" in result.evidence


# --- the workload's start -----------------------------------------------------------------------


def ready(box: Box, **declared: object) -> Work:
    done(stage.run, job(box, **declared))
    box.files[gate.READY] = "healthy\n"
    return job(box, **declared)


def test_the_workload_is_started_and_seen_to_stay_up() -> None:
    box = Box()
    result = done(workload.run, ready(box, run="train.sh"))
    assert result.ok
    assert "active (running)" in result.evidence
    assert (
        "systemctl daemon-reload"
        not in box.calls[box.calls.index("write " + running.SCRIPT) :][-3:]
    )


def test_a_workload_that_crashes_at_once_is_found_out() -> None:
    box = Box()
    box.workload = "crashed"
    result = done(workload.run, ready(box, run="no-such-command"))
    assert result.outcome == "config"
    assert "exit status 127" in result.evidence


def test_a_workload_that_ran_to_its_end_is_not_run_again_in_this_boot() -> None:
    box = Box()
    box.workload = "finished"
    first = ready(box, run="true")
    assert done(workload.run, first).ok
    since = len(box.calls)
    assert done(workload.run, job(box, run="true")).ok
    assert changes(box, since) == []


def test_a_gate_that_shut_meanwhile_starts_nothing() -> None:
    box = Box()
    box.workload = "shut"
    result = done(workload.run, ready(box, run="true"))
    assert result.outcome == "inconclusive"


def test_an_image_is_pulled_once_and_a_moved_tag_changes_nothing_at_a_reboot() -> None:
    box = Box()
    box.commands |= {"docker", "/usr/bin/docker"}
    box.registry.add(CONTAINER["image"])  # type: ignore[arg-type]
    assert "pulled" in done(workload.run, ready(box, container=CONTAINER)).evidence
    box.reboot()
    since = len(box.calls)
    assert "is there" in done(workload.run, ready(box, container=CONTAINER)).evidence
    assert not any("pull" in call for call in changes(box, since))


def test_an_image_that_may_not_be_pulled_names_the_role() -> None:
    box = Box()
    box.commands |= {"docker", "/usr/bin/docker"}
    result = done(workload.run, ready(box, container=CONTAINER))
    assert result.outcome == "config"
    assert "role" in result.remedy


# --- metrics ------------------------------------------------------------------------------------

CLOUDWATCH = {"agent": "cloudwatch", "config": {"metrics": {"namespace": "CWAgent"}}}
OPS = {"agent": "ops-agent", "config": {"metrics": {"receivers": {"dcgm": {"type": "dcgm"}}}}}


def agent(box: Box, name: str) -> None:
    box.files[metrics.AGENTS[name].proof] = ""
    box.commands.add(metrics.AGENTS[name].proof)


def test_the_agent_is_held_back_until_the_gate_is_open() -> None:
    """Figures with the group's name, of a machine that is not in it, would scale the group."""
    box = Box()
    agent(box, "cloudwatch")
    own = "amazon-cloudwatch-agent.service"
    box.units[own] = {"LoadState": "loaded", "ActiveState": "active", "UnitFileState": "enabled"}
    result = done(metrics.run, job(box, metrics=CLOUDWATCH))
    assert result.ok
    assert box.units[own] == {
        "LoadState": "loaded",
        "ActiveState": "inactive",
        "UnitFileState": "disabled",
    }
    assert line(box, "ExecStart", services.METRICS) == [f"/usr/bin/systemctl start {own}"]
    assert line(box, "WantedBy", services.METRICS) == [services.JOINED]
    assert not any(f"start {own}" in call for call in box.calls)
    fetch = "-a fetch-config -m ec2 -c file:/etc/gputier/cloudwatch.json"
    assert any(call.endswith(fetch) for call in box.calls), "without -s, which would start it"


def test_the_agent_s_settings_are_the_plan_s() -> None:
    box = Box()
    agent(box, "ops-agent")
    box.units[services.DCGM] = {"LoadState": "loaded"}
    done(metrics.run, job(box, metrics=OPS))
    assert json.loads(box.files["/etc/google-cloud-ops-agent/config.yaml"]) == OPS["config"]
    assert line(box, "ExecStart", services.METRICS) == [
        "-/usr/bin/systemctl start nvidia-dcgm.service",
        "/usr/bin/systemctl start google-cloud-ops-agent.service",
    ]


def test_an_agent_that_is_not_there_is_installed_with_its_signature() -> None:
    box = Box()
    box.signer = metrics.FINGERPRINT
    box.offers["amazon-cloudwatch-agent.deb"] = (metrics.AGENTS["cloudwatch"].proof,)
    box.commands.add(metrics.AGENTS["cloudwatch"].proof)
    assert done(metrics.run, job(box, metrics=CLOUDWATCH)).changed
    assert metrics.AGENTS["cloudwatch"].proof in box.files


@pytest.mark.parametrize("declared", [CLOUDWATCH, OPS], ids=["aws", "gcp"])
def test_an_agent_that_cannot_be_had_is_a_warning_and_no_refusal(declared: object) -> None:
    box = Box()
    box.network = False
    wanted = job(box, metrics=declared)
    result = done(metrics.run, wanted)
    assert result.ok
    assert "no GPU metrics" in wanted.warnings[0]
    assert f"{units.FOLDER}/{services.METRICS}" not in box.files


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_itself_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    box = with_efa()
    gated = {"kind": "health-endpoint"}
    declared = {"container": CONTAINER, "before_stop": "save", "scratch": {"mount": "/scratch"}}
    done(stage.run, job(box, gate=gated, fabric={"kind": "efa", "interfaces": 8}, **declared))
    agent(box, "ops-agent")
    done(metrics.run, job(box, metrics=OPS))
    daemon = gpudirect.daemon(job(box, fabric={"kind": "gpudirect-tcpxo"}), "gpudirect-tcpxo")
    texts = {path: box.files[path] for path in box.files if path.startswith(f"{units.FOLDER}/g")}
    for path, text in {**texts, daemon.path: daemon.text}.items():
        (tmp_path / path.rsplit("/", 1)[-1]).write_text(text, encoding="utf-8")
    made = sorted(str(path) for path in tmp_path.iterdir())
    assert len(made) >= 8
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *made], capture_output=True, text=True
    )
    # Programs and services of a node, which this machine need not have.
    ours = [line for line in checked.stderr.splitlines() if "gputier" in line]
    absent = ("is not executable", "not found", "Failed to add dependency", "not loaded properly")
    assert [line for line in ours if not any(words in line for words in absent)] == []
