"""`gputier init`: what is written, what is kept, and what is refused before anything is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.world import Run, too_wide

import gputier
from gputier.cli import init_run, lock_images
from gputier.cli.init_files import STACKS, WORKLOADS
from gputier.lock import Found, read_lock

AMI = "ami-0123456789abcdef0"
COMMON = {
    ".gitignore",
    "Pulumi.yaml",
    "README.md",
    "policies/PulumiPolicy.yaml",
    "policies/__main__.py",
    "requirements.txt",
    "stacks/__main__.py",
    *(f"policies/config.{stack}.json" for stack in STACKS),
    *(f"stacks/Pulumi.{stack}.yaml" for stack in STACKS),
    *(f"stacks/gputier.{stack}.lock" for stack in STACKS),
}
GITHUB = {
    ".github/dependabot.yml",
    *(f".github/workflows/gpu-{n}.yml" for n in ("review", "deploy", "environment", "nightly")),
}
GITLAB = {".gitlab-ci.yml", ".gitlab/gpu.yml"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def inside(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() or p.is_symlink()}


def contents(folder: Path) -> dict[str, bytes]:
    return {path: (folder / path).read_bytes() for path in inside(folder)}


@pytest.mark.parametrize(
    ("ci", "more"),
    [("github", GITHUB), ("gitlab", GITLAB), ("both", GITHUB | GITLAB), ("none", set[str]())],
)
def test_a_new_folder_gets_everything(run: Run, here: Path, ci: str, more: set[str]) -> None:
    ran = run("init", "shop", "--ci", ci)
    assert (ran.code, ran.err) == (0, "")
    assert inside(here / "shop") == COMMON | more
    count = len(COMMON | more)
    assert ran.out.splitlines()[0] == f"shop: {count} files written to shop"


@pytest.mark.parametrize("tier", WORKLOADS)
def test_every_stack_is_locked_and_within_its_budget(run: Run, here: Path, tier: str) -> None:
    assert run("init", "--tier", tier, "--name", "shop", "--region", "us-east-2").code == 0
    for stack in STACKS:
        assert run("lock", stack, "--check").code == 0
        planned = run("plan", stack, "--json")
        assert planned.code == 0
        (workload,) = json.loads(planned.out)["workloads"]
        chosen = workload["chosen"]
        assert (chosen["region"], workload["name"]) == ("us-east-2", WORKLOADS[tier])
        used = run("plan", stack).out
        (share,) = [line for line in used.splitlines() if line.strip().startswith("budget")]
        percent = int(share.split("the plan takes ")[1].split()[0])
        assert 65 <= percent <= 80, share
        limits = json.loads((here / "policies" / f"config.{stack}.json").read_text("utf-8"))
        assert limits["stack-requires-environment"] == {"environment": stack}
        lock = read_lock(here / "stacks" / f"gputier.{stack}.lock", stack)
        assert lock
        (entry,) = lock.entries.values()
        assert entry.usd_per_hour
        each = entry.usd_per_hour / entry.machines
        assert each < limits["machine-limits-price"]["usd_per_hour"] <= 2.2 * each + 1


def test_a_second_run_says_that_there_is_nothing_to_do(run: Run, here: Path) -> None:
    run("init", "shop")
    before = contents(here / "shop")
    ran = run("init", "shop")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("shop: nothing to write, every file is there\n")
    assert "kept" not in ran.out
    assert contents(here / "shop") == before


def test_what_is_missing_is_written_again_and_nothing_else(run: Run, here: Path) -> None:
    run("init", "shop")
    before = contents(here / "shop")
    (here / "shop" / "stacks" / "gputier.dev.lock").unlink()
    (here / "shop" / "policies" / "__main__.py").unlink()
    assert run("init", "shop").out.startswith("shop: 2 files written to shop\n")
    assert contents(here / "shop") == before


def test_a_file_that_is_there_is_kept_and_named_with_what_the_project_needs(
    run: Run, here: Path
) -> None:
    (here / "Pulumi.yaml").write_text("name: old\nruntime: python\n", encoding="utf-8")
    (here / ".gitlab-ci.yml").write_text("build: {script: [make]}\n", encoding="utf-8")
    (here / "README.md").symlink_to("nowhere")
    before = contents_of(here, "Pulumi.yaml", ".gitlab-ci.yml")
    ran = run("init", "--name", "shop", "--ci", "gitlab")
    assert ran.code == 0
    assert contents_of(here, "Pulumi.yaml", ".gitlab-ci.yml") == before
    assert (here / "README.md").is_symlink()
    assert "it needs `main: stacks` and `stackConfigDir: stacks`" in ran.out
    assert "it needs `include: [{local: .gitlab/gpu.yml}]`" in ran.out
    assert "  README.md" in ran.out
    assert "stacks/gputier.dev.lock" in inside(here)


def contents_of(folder: Path, *paths: str) -> list[bytes]:
    return [(folder / path).read_bytes() for path in paths]


def test_a_stack_of_somebodys_own_is_kept_and_its_lock_is_left_to_them(
    run: Run, here: Path
) -> None:
    own = here / "stacks" / "Pulumi.dev.yaml"
    own.parent.mkdir()
    own.write_text("config: {aws:region: us-west-2}\n", encoding="utf-8")
    ran = run("init", "--name", "shop")
    assert ran.code == 0
    assert own.read_text("utf-8") == "config: {aws:region: us-west-2}\n"
    assert "stacks/gputier.dev.lock" not in inside(here)
    assert "stacks/gputier.prod.lock" in inside(here)
    assert "`gputier lock dev` writes its lock" in ran.out


def test_a_dry_run_lists_the_same_files_and_writes_none(run: Run, here: Path) -> None:
    ran = run("init", "shop", "--dry-run")
    assert inside(here) == set()
    head, *listed = ran.out.splitlines()
    assert head == f"shop: {len(COMMON | GITHUB)} files would be written to shop"
    assert {line.strip() for line in listed} == COMMON | GITHUB


REFUSED = {
    "a cloud that asks for more": (("--cloud", "gcp"), 2, "needs a project"),
    "a region that nobody knows": (("--region", "us-esat-1"), 2, "hint: did you mean `us-"),
    "a name that is none": (("--name", "my gpus"), 2, "--name my-gpus"),
    "a name that YAML reads otherwise": (("--name", "yes"), 2, "--name my-gpus"),
    "a tag that is none": (("--owner", "a\nb"), 2, "--owner"),
    "a tier that is none": (("--tier", "huge"), 2, "entry"),
    "a region without such machines": (
        ("--tier", "high-end", "--region", "ap-southeast-5"),
        3,
        "gputier pick --tier high-end",
    ),
}


@pytest.mark.parametrize(("flags", "code", "said"), REFUSED.values(), ids=REFUSED)
def test_a_mistake_is_refused_before_anything_is_written(
    run: Run, here: Path, flags: tuple[str, ...], code: int, said: str
) -> None:
    ran = run("init", "shop", *flags)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert inside(here) == set()


def test_all_mistakes_are_said_at_once(run: Run, here: Path) -> None:
    (here / "file").touch()
    ran = run("init", "file/shop", "--region", "nowhere", "--cost-center", "€")
    assert ran.code == 2
    for said in ("is a file, not a folder", "`nowhere`", "--cost-center"):
        assert said in ran.err


def test_the_name_is_the_folders_and_tags_are_text_whatever_they_hold(run: Run, here: Path) -> None:
    (here / "my-gpus").mkdir()
    run("init", "my-gpus", "--owner", "1e3", "--cost-center", "r&d: x".replace("&", "-"))
    project = yaml.safe_load((here / "my-gpus" / "Pulumi.yaml").read_text("utf-8"))
    assert project["name"] == "my-gpus"
    stack = yaml.safe_load((here / "my-gpus" / "stacks" / "Pulumi.prod.yaml").read_text("utf-8"))
    (workload,) = stack["config"]["gputier:workloads"].values()
    assert workload["tags"] == {"owner": "1e3", "cost-center": "r-d: x"}


def test_images_are_pinned_when_asked_for(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def looker(_account: object) -> object:
        def look(region: str, family: str) -> Found:
            asked.append((region, family))
            return Found(AMI, "/dev/sda1", 75)

        return look

    monkeypatch.setattr(lock_images, "looker", looker)
    ran = run("init", "shop", "--images")
    assert ran.code == 0, ran.err
    assert {region for region, _ in asked} == {"us-east-1"}
    for stack in STACKS:
        lock = read_lock(here / "shop" / "stacks" / f"gputier.{stack}.lock", stack)
        assert lock
        assert [entry.image for entry in lock.entries.values()] == [AMI]
    assert "gputier lock prod --images" not in ran.out
    assert "gputier lock prod --images" in run("init", "other").out


def test_a_dry_run_asks_nobody(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def looker(_account: object) -> object:
        raise AssertionError("AWS was asked")

    monkeypatch.setattr(lock_images, "looker", looker)
    assert run("init", "shop", "--images", "--dry-run").code == 0


def test_a_file_that_appears_in_the_meantime_is_kept(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = here / "shop" / "Pulumi.yaml"
    real = init_run.locks

    def locks(*args: Any, **more: Any) -> Any:
        late.parent.mkdir()
        late.write_text("somebody else's\n", encoding="utf-8")
        return real(*args, **more)

    monkeypatch.setattr(init_run, "locks", locks)
    ran = run("init", "shop")
    assert ran.code == 2
    assert "File exists" in ran.err
    assert late.read_text("utf-8") == "somebody else's\n"


def test_both_clouds_are_signed_in_to_and_machines_are_said_to_be_on_one(
    run: Run, here: Path
) -> None:
    ran = run("init", "shop", "--cloud", "both")
    assert "put them on Google Cloud" in ran.out
    review = (here / "shop/.github/workflows/gpu-review.yml").read_text("utf-8")
    assert "aws-actions/configure-aws-credentials@" in review
    assert "google-github-actions/auth@" in review
    wanted = (here / "shop/requirements.txt").read_text("utf-8")
    assert f"\ngputier[aws,gcp,policy,post]=={gputier.__version__}\n" in wanted


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_screen_fits(run: Run, here: Path, columns: int) -> None:
    (here / ".gitignore").write_text("x\n", encoding="utf-8")
    ran = run("init", "--name", "shop", columns=columns)
    long = [line for line in too_wide(ran.out, columns) if "pip install" not in line]
    assert [line for line in long if "#" not in line] == []
