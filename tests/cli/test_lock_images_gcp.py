"""`gputier lock --images` against Google's own documents: what is asked, and each way it fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.account.google_account import FORBIDDEN, GONE, Google, Refusal
from tests.cli.world import Run

from gputier.account.answers import CannotAsk
from gputier.account.session_gcp import GcpSession
from gputier.account.stack import GcpAccount
from gputier.cli import lock_images, lock_images_gcp
from gputier.lock import read_lock
from gputier.lock.images import held_image, is_id
from gputier.plan import ImagePlan

STACK = """\
config:
  gcp:project: acme-ml
  gputier:defaults: {clouds: [gcp], regions: {gcp: [us-central1, europe-west4]}}
  gputier:workloads:
    chat: {purpose: inference, gpu: {models: [L4]}}
    far: {purpose: inference, gpu: {models: [L4]}, regions: {gcp: [europe-west4]}}
"""
PATH = "projects/ubuntu-os-cloud/global/images"
FAMILY = f"{PATH}/family/ubuntu-2404-lts-amd64"
NAME = "ubuntu-2404-noble-amd64-v20261120"
LOCK = Path("gputier.prod.lock")


class Cloud(Google):
    """Google, and who asked it."""

    def __init__(self) -> None:
        super().__init__()
        self.accounts: list[GcpAccount] = []

    def as_stack(self, account: GcpAccount) -> GcpSession:
        self.accounts.append(account)
        return self.session()

    def has_image(self, gib: int = 10, name: str = NAME) -> None:
        self.has("compute", FAMILY, {"name": name, "diskSizeGb": str(gib)})


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cloud:
    made = Cloud()
    monkeypatch.setattr(lock_images_gcp, "session", made.as_stack)
    monkeypatch.chdir(tmp_path)
    Path("Pulumi.yaml").write_text("name: shop\nruntime: python\n", encoding="utf-8")
    Path("Pulumi.prod.yaml").write_text(STACK, encoding="utf-8")
    return made


def images() -> list[str]:
    lock = read_lock(LOCK, "prod")
    assert lock
    return [entry.image for entry in lock.entries.values()]


def test_images_are_pinned_by_name_and_a_family_is_asked_for_once(run: Run, cloud: Cloud) -> None:
    assert run("lock", "prod").code == 0
    assert images() == [FAMILY, FAMILY]
    cloud.has_image()
    ran = run("lock", "prod", "--images")
    assert ran.code == 0, ran.err
    assert images() == [f"{PATH}/{NAME}"] * 2
    assert cloud.asked == ["compute.images.getFromFamily"]
    assert [account.project for account in cloud.accounts] == ["acme-ml"]
    assert "up to date" in run("lock", "prod", "--images").out
    assert run("lock", "prod", "--check").code == 0
    assert len(cloud.asked) == 1, "what is pinned is asked for again only by name"


def test_a_newer_image_is_taken_for_a_named_workload_alone(run: Run, cloud: Cloud) -> None:
    cloud.has_image()
    run("lock", "prod", "--images")
    cloud.has_image(name="ubuntu-2404-noble-amd64-v20261130")
    assert run("lock", "prod", "--images", "far").code == 0
    assert images() == [f"{PATH}/{NAME}", f"{PATH}/ubuntu-2404-noble-amd64-v20261130"]


def test_what_is_pinned_is_the_plan_s_image_and_does_not_move(run: Run, cloud: Cloud) -> None:
    planned = ImagePlan(None, FAMILY, "ubuntu-24.04", None, None, False, "catalogue")
    cloud.has_image()
    run("lock", "prod", "--images")
    lock = read_lock(LOCK, "prod")
    assert lock
    held = held_image(lock.entries["chat"], planned)
    assert (held.id, held.pinned, held.source) == (f"{PATH}/{NAME}", True, "lock")
    assert not is_id(FAMILY)


FAILURES = {
    "no such family": (GONE, f"{FAMILY}: NOT_FOUND", "it needs compute.images.getFromFamily"),
    "no right": (FORBIDDEN, "PERMISSION_DENIED", "it needs compute.images.getFromFamily"),
    "not enabled": (
        Refusal(403, "PERMISSION_DENIED", "off", "SERVICE_DISABLED", "compute.googleapis.com"),
        "compute.googleapis.com is not enabled", "gcloud services enable compute.googleapis.com",
    ),
    "too large": (
        {"name": NAME, "diskSizeGb": "4000"},
        "needs 4000 GiB", "an image that fits: `software.image: projects/…/global/images/NAME`",
    ),
    "no way there": (CannotAsk("no route", "Google has to be reached"), "no route",
                     "Google has to be reached"),
}  # fmt: skip


@pytest.mark.parametrize("failure", FAILURES)
def test_what_cannot_be_pinned_is_said_and_the_lock_stays(
    run: Run, cloud: Cloud, failure: str
) -> None:
    answer, said, way_out = FAILURES[failure]
    run("lock", "prod")
    before = LOCK.read_bytes()
    cloud.has("compute", FAMILY, answer)
    ran = run("lock", "prod", "--images")
    assert ran.code == 2
    assert said in ran.err
    assert way_out in ran.err
    assert LOCK.read_bytes() == before


def test_each_cloud_is_asked_for_its_own(
    run: Run, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(account: object) -> object:
        raise AssertionError(account)

    monkeypatch.setattr(lock_images, "session", nobody)
    cloud.has_image()
    assert run("lock", "prod", "--images").code == 0
