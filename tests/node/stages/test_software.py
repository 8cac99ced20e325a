"""Packages, proxy, mirrors, keys, containers, framework: had from the image, else installed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.node.stages.box import Box, Python, changes, done, work

from gputier.node import pythons
from gputier.node.stages import (
    Work,
    container_toolkit,
    framework,
    mirrors,
    packages_extra,
    proxy,
    ssh_keys,
)

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ somebody@example"
PROXY = {"http": "http://proxy.corp:3128", "https": "http://proxy.corp:3128", "no_proxy": ".corp"}
TORCH = {"name": "torch", "version": "2.9.0", "cuda": "12.8",
         "index": "https://download.pytorch.org/whl/cu128"}  # fmt: skip


# --- the workload's packages --------------------------------------------------------------------


def test_packages_of_the_workload_are_installed_once() -> None:
    box = Box()
    box.offers["libaio1"] = ()
    result = done(packages_extra.run, work(box, packages=["libaio1"]))
    assert result.ok
    assert result.changed
    (install,) = (call for call in box.calls if " install " in call)
    assert "DPkg::Lock::Timeout" in install
    assert "--no-install-recommends" in install


def test_a_package_that_nobody_has_is_named_as_a_configuration_fault() -> None:
    result = done(packages_extra.run, work(Box(), packages=["no-such-thing"]))
    assert result.outcome == "config"
    assert "no-such-thing" in result.evidence


def test_without_a_network_nothing_is_proven_of_the_declaration() -> None:
    box = Box()
    box.network = False
    box.offers["libaio1"] = ()
    assert done(packages_extra.run, work(box, packages=["libaio1"])).outcome == "inconclusive"


def test_an_option_is_no_package() -> None:
    box = Box()
    result = done(packages_extra.run, work(box, packages=["--allow-unauthenticated"]))
    assert result.outcome == "config"
    assert changes(box) == []


# --- proxy --------------------------------------------------------------------------------------


def test_the_proxy_is_told_to_everybody_and_metadata_never_goes_through_it() -> None:
    box = Box()
    box.files["/etc/dnf/dnf.conf"] = "[main]\ngpgcheck=1\n"
    box.commands.add("dnf")
    assert done(proxy.run, work(box, proxy=PROXY)).changed
    for path in (proxy.SESSIONS, proxy.SHELLS, proxy.MANAGER,
                 "/etc/systemd/system/docker.service.d/10-gputier-proxy.conf"):  # fmt: skip
        text = box.files[path]
        assert "http://proxy.corp:3128" in text, path
        assert "169.254.169.254" in text, path
        assert "metadata.google.internal" in text, path
    assert 'Acquire::https::Proxy "http://proxy.corp:3128";' in box.files[proxy.APT]
    assert box.files["/etc/dnf/dnf.conf"] == "[main]\nproxy=http://proxy.corp:3128\ngpgcheck=1\n"
    (told,) = (call for call in box.calls if call.startswith("systemctl set-environment"))
    assert "no_proxy=localhost" in told


@pytest.mark.parametrize("name", ["http", "no_proxy"])
def test_no_proxy_address_becomes_a_command_of_a_shell(name: str, tmp_path: Path) -> None:
    box, ran, file = Box(), tmp_path / "ran", tmp_path / "proxy.sh"
    nasty = f"http://p:1/';touch${{IFS}}{ran};'$(touch${{IFS}}{ran})`touch${{IFS}}{ran}`"
    done(proxy.run, work(box, proxy={"http": "http://p:1", name: nasty}))
    file.write_text(box.files[proxy.SHELLS], encoding="utf-8")
    ask = f'. {file} && echo "${name.replace("http", "http_proxy")}"'
    shown = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert not ran.exists()
    assert "p:1/%27;" in shown.stdout


def test_a_proxy_s_password_is_told_to_nobody() -> None:
    box = Box()
    address = "http://me:hunter2@proxy.corp:3128"
    result = done(proxy.run, work(box, proxy={"http": address}))
    assert "hunter2" not in result.evidence
    assert "proxy.corp:3128" in result.evidence


def test_metadata_is_exempt_even_where_the_plan_names_no_exemption() -> None:
    box = Box()
    done(proxy.run, work(box, proxy={"https": "http://p:1"}))
    assert "no_proxy=localhost,127.0.0.1,::1,169.254.169.254" in box.files[proxy.SESSIONS]


# --- mirrors ------------------------------------------------------------------------------------

UBUNTU = """\
Types: deb
URIs: http://us-east-1.ec2.archive.ubuntu.com/ubuntu/ http://ports.ubuntu.com/ubuntu-ports/
Suites: noble
# See http://help.ubuntu.com/community
URIs: http://security.ubuntu.com/ubuntu
"""


def test_a_mirror_takes_the_place_of_every_archive_and_of_nothing_else() -> None:
    box = Box()
    path = f"{mirrors.APT_FOLDER}/ubuntu.sources"
    box.files[path] = UBUNTU
    box.files[f"{mirrors.APT_FOLDER}/nvidia.list"] = "deb https://x.nvidia.com/x /\n"
    declared = {"apt": "https://mirror.corp/ubuntu", "pip": "http://pypi.corp/simple"}
    assert done(mirrors.run, work(box, mirrors=declared)).ok
    assert box.files[path].count("https://mirror.corp/ubuntu/") == 3
    assert "help.ubuntu.com" in box.files[path]
    assert "archive.ubuntu.com" not in box.files[path]
    assert "nvidia.com" in box.files[f"{mirrors.APT_FOLDER}/nvidia.list"]
    assert box.files["/etc/pip.conf"] == (
        "[global]\ntrusted-host=pypi.corp\nindex-url=http://pypi.corp/simple\n"
    )
    since = len(box.calls)
    other = {"apt": "https://second.corp/ubuntu"}
    assert done(mirrors.run, work(box, mirrors=other)).changed
    assert "mirror.corp" not in box.files[path], "it starts from what the image said"
    assert "apt-get -q update" in changes(box, since)


def test_a_mirror_that_does_not_answer_is_found_out_at_once() -> None:
    box = Box()
    box.network = False
    box.files[mirrors.APT_LIST] = "deb http://archive.ubuntu.com/ubuntu noble main\n"
    result = done(mirrors.run, work(box, mirrors={"apt": "https://mirror.corp/ubuntu"}))
    assert result.outcome == "inconclusive"
    assert "mirror.corp" in result.evidence


def test_docker_keeps_its_other_settings_beside_the_mirror() -> None:
    box = Box()
    box.files[mirrors.DOCKER] = '{"log-driver": "journald"}'
    assert done(mirrors.run, work(box, mirrors={"container": "https://hub.corp"})).ok
    assert json.loads(box.files[mirrors.DOCKER]) == {
        "log-driver": "journald",
        "registry-mirrors": ["https://hub.corp"],
    }
    box.files[mirrors.DOCKER] = "[]"
    result = done(mirrors.run, work(box, mirrors={"container": "https://hub.corp"}))
    assert result.outcome == "config"


# --- keys ---------------------------------------------------------------------------------------

HOME = "/".join(("", "home", "ubuntu"))
OWN = f"{HOME}/.ssh/authorized_keys"


def test_declared_keys_are_added_and_other_keys_stay() -> None:
    box = Box()
    box.files[OWN] = "ssh-rsa AAAA admin@corp"
    assert done(ssh_keys.run, work(box, ssh_keys=[KEY])).changed
    text = box.files[OWN]
    assert text.startswith("ssh-rsa AAAA admin@corp\n")
    assert KEY in text
    assert box.modes[OWN] == 0o600
    assert f"chown ubuntu:1000 {OWN}" in box.calls
    other = KEY.replace("somebody", "another")
    done(ssh_keys.run, work(box, ssh_keys=[other]))
    assert KEY not in box.files[OWN], "only those declared"
    assert other in box.files[OWN]
    assert "admin@corp" in box.files[OWN]


def test_the_user_is_the_one_that_cloud_init_names() -> None:
    box = Box()
    box.files["/etc/cloud/cloud.cfg"] = (
        "system_info:\n  default_user:\n    lock_passwd: true\n    name: builder\n"
    )
    box.handlers["getent"] = lambda rest: (
        (0, "builder:x:7:7::/srv/builder:/bin/sh\n", "") if rest[-1] == "builder" else (2, "", "")
    )
    assert done(ssh_keys.run, work(box, ssh_keys=[KEY])).ok
    assert "/srv/builder/.ssh/authorized_keys" in box.files


@pytest.mark.parametrize("key", ["ssh-rsa", "-----BEGIN OPENSSH PRIVATE KEY-----", "hello world"])
def test_what_is_no_public_key_is_refused_and_not_repeated(key: str) -> None:
    box = Box()
    result = done(ssh_keys.run, work(box, ssh_keys=[KEY, key]))
    assert result.outcome == "config"
    assert "number 2" in result.evidence
    assert key not in result.evidence
    assert changes(box) == []


def test_root_writes_through_no_link_of_the_user() -> None:
    box = Box()
    box.links[f"{HOME}/.ssh"] = "/root/.ssh"
    result = done(ssh_keys.run, work(box, ssh_keys=[KEY]))
    assert result.outcome == "config"
    assert changes(box) == []


def test_an_image_that_nobody_logs_in_to_is_named() -> None:
    box = Box()
    box.handlers["getent"] = lambda _: (2, "", "")
    result = done(ssh_keys.run, work(box, ssh_keys=[KEY]))
    assert result.outcome == "config"
    assert "no login user" in result.evidence


# --- containers ---------------------------------------------------------------------------------


def toolkit(box: Box) -> Work:
    return work(box, 420.0, container_toolkit=True)


def test_docker_and_the_toolkit_are_installed_where_the_image_lacks_them() -> None:
    box = Box()
    assert done(container_toolkit.run, toolkit(box)).changed
    assert {"docker.io", "nvidia-container-toolkit"} <= set(box.installed)
    assert "nvidia" in box.runtimes
    assert box.calls.index("nvidia-ctk runtime configure --runtime=docker") < box.calls.index(
        "systemctl restart docker.service"
    ), "docker reads its runtimes only when it starts"


def test_the_toolkit_comes_from_nvidia_where_no_repository_has_it() -> None:
    box = Box()
    del box.offers["nvidia-container-toolkit"]
    result = done(container_toolkit.run, toolkit(box))
    assert container_toolkit.KEY in box.files
    assert f"signed-by={container_toolkit.KEY}" in box.files[container_toolkit.APT_SOURCE]
    assert result.outcome == "config"
    assert "nvidia-ctk is not in the image" in result.evidence


def test_incident_40_links_to_every_device_keep_gpus_in_running_containers() -> None:
    """nvidia-container-toolkit#48: a daemon-reload took the GPUs from running containers."""
    box = Box()
    done(container_toolkit.run, toolkit(box))
    assert {"195:0", "195:1", "195:255", "235:0"} <= set(box.names("/dev/char"))
    assert "create-dev-char-symlinks" in box.files[container_toolkit.RULE]
    box.reboot()
    since = len(box.calls)
    assert done(container_toolkit.run, toolkit(box)).changed
    assert "nvidia-ctk system create-dev-char-symlinks --create-all" in changes(box, since), (
        "/dev is new with every boot"
    )


def test_links_to_some_of_the_devices_are_not_enough() -> None:
    """The number of unified memory is another one at each boot; a GPU may come later."""
    box = Box()
    done(container_toolkit.run, toolkit(box))
    del box.links["/dev/char/235:0"]
    since = len(box.calls)
    assert done(container_toolkit.run, toolkit(box)).changed
    assert "nvidia-ctk system create-dev-char-symlinks --create-all" in changes(box, since)


def test_the_devices_are_described_anew_where_mig_divided_them() -> None:
    box = Box()
    box.files[container_toolkit.CDI] = 'devices:\n- name: "0"\n'
    job = work(box, 420.0, container_toolkit=True, mig={"profile": "1g.10gb", "count": 7})
    done(container_toolkit.run, job)
    assert f"nvidia-ctk cdi generate --output={container_toolkit.CDI}" in box.calls


def test_the_toolkit_s_own_unit_describes_the_devices_where_it_is_there() -> None:
    box = Box()
    box.units[container_toolkit.REFRESH] = {"LoadState": "loaded"}
    done(container_toolkit.run, toolkit(box))
    assert f"systemctl restart {container_toolkit.REFRESH}" in box.calls
    assert not any("cdi generate" in call for call in box.calls)


def test_a_docker_that_does_not_answer_is_named() -> None:
    box = Box()
    done(container_toolkit.run, toolkit(box))
    box.says("docker info", 1, "", "Cannot connect to the Docker daemon")
    result = done(container_toolkit.run, toolkit(box))
    assert result.outcome == "config"
    assert "Cannot connect" in result.evidence


# --- framework ----------------------------------------------------------------------------------


def torch(box: Box, **changed: str) -> Work:
    return work(box, 900.0, framework={**TORCH, **changed})


def image(box: Box, path: str, version: str, cuda: str) -> None:
    box.pythons[path] = Python(packages={"torch": (version, cuda)})
    box.files[path] = ""


def test_the_image_s_own_build_is_used_where_it_is_the_planned_one() -> None:
    box = Box()
    image(box, "/opt/pytorch/bin/python3", "2.9.0+cu128", "12.8")
    result = done(framework.run, torch(box))
    assert result.ok
    assert not result.changed
    assert "/opt/pytorch/bin/python3" in result.evidence
    assert not any("pip" in call for call in box.calls)


def test_another_version_in_the_image_is_left_there_and_ours_is_made_beside_it() -> None:
    box = Box()
    image(box, "/opt/pytorch/bin/python3", "2.7.0+cu128", "12.8")
    result = done(framework.run, torch(box))
    assert result.ok
    assert result.changed
    assert pythons.OURS in result.evidence
    assert box.pythons["/opt/pytorch/bin/python3"].packages["torch"][0] == "2.7.0+cu128"
    (pip,) = (call for call in box.calls if "pip install" in call)
    assert "torch==2.9.0 numpy" in pip
    assert "--index-url https://download.pytorch.org/whl/cu128" in pip


def test_the_right_version_for_another_cuda_is_not_the_planned_build() -> None:
    box = Box()
    image(box, "/opt/pytorch/bin/python3", "2.9.0+cu130", "13.0")
    result = done(framework.run, torch(box))
    assert pythons.OURS in result.evidence


def test_a_build_without_cuda_is_found_out() -> None:
    box = Box()
    box.wheels[("torch", "2.9.0")] = ""
    result = done(framework.run, torch(box))
    assert result.outcome == "config"
    assert "built without CUDA" in result.evidence


def test_a_version_that_no_index_has_is_a_fault_of_the_declaration() -> None:
    result = done(framework.run, torch(Box(), version="9.9"))
    assert result.outcome == "config"
    assert "No matching distribution found for torch==9.9" in result.evidence


def test_an_index_that_nobody_reaches_proves_nothing() -> None:
    box = Box()
    box.installed["python3-venv"] = "1"
    box.network = False
    assert done(framework.run, torch(box)).outcome == "inconclusive"


def test_a_python_too_old_for_wheels_is_passed_over() -> None:
    box = Box()
    box.pythons["python3"] = Python((3, 9))
    result = done(framework.run, torch(box))
    assert result.outcome == "config"
    assert "no python of 3.10 or newer" in result.evidence
    box.pythons["python3.12"] = Python((3, 12))
    box.commands.add("python3.12")
    box.offers["python3.12-venv"] = ()
    assert done(framework.run, torch(box)).ok
    assert f"python3.12 -m venv --clear {pythons.FOLDER}" in box.calls


def test_jax_comes_with_the_cuda_of_its_extra() -> None:
    box = Box()
    wanted = {"name": "jax", "version": "0.8.1", "cuda": "13.0"}
    result = done(framework.run, work(box, 900.0, framework=wanted))
    assert result.ok
    assert any("jax[cuda13]==0.8.1" in call for call in box.calls)


def test_pip_goes_by_the_proxy_and_the_mirror() -> None:
    box = Box()
    job = work(box, 900.0, framework=TORCH, proxy=PROXY, mirrors={"pip": "http://pypi.corp/simple"})
    assert done(framework.run, job).ok
    at = next(n for n, call in enumerate(box.calls) if "pip install" in call)
    assert "--extra-index-url http://pypi.corp/simple --trusted-host pypi.corp" in box.calls[at]
    assert box.envs[at]["https_proxy"] == "http://proxy.corp:3128"


def test_a_full_disk_is_named_as_such() -> None:
    box = Box()
    box.pythons[pythons.OURS] = Python()
    box.files[pythons.OURS] = ""
    box.says(f"{pythons.OURS} -m pip install", 1, "", "OSError: [Errno 28] No space left on device")
    result = done(framework.run, torch(box))
    assert result.outcome == "config"
    assert "more room" in result.remedy
