"""Image ids in the lock: pinned once, kept, asked for again by name; renames keep what runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gputier import lock
from gputier.catalog import load
from gputier.errors import InvalidInput, Problem
from gputier.lock import Found, Lock
from gputier.lock.locked import locked_plan
from gputier.plan import StackPlan, plan_declaration
from gputier.workload import Declaration, read_text

TEXT = """
workloads:
  chat: {tier: entry, purpose: inference, gpu: {models: [L4]}}
  own: {gpu: {models: [L4]}, software: {image: ami-0def12345678abc00}}
  far: {gpu: {models: [L4]}, clouds: [gcp], software: {image: projects/p/global/images/ours}}
defaults: {clouds: [aws]}
"""
AMI = "ami-0abc12345678def00"


def declared(text: str = TEXT) -> Declaration:
    return read_text(text, "dev")


def planned(text: str = TEXT) -> StackPlan:
    return plan_declaration(declared(text), load())


def locked(text: str = TEXT) -> Lock:
    return lock.make_lock(planned(text), declared(text))


def there(region: str, family: str) -> Found:
    assert region == "us-east-1"
    assert family.startswith("/aws/service/deeplearning/ami/x86_64/")
    return Found(AMI, "/dev/sda1", 75)


def test_135_an_image_is_pinned_for_what_amazon_names_by_a_family() -> None:
    """pulumi/pulumi-eks#88: the newest image by default replaced machines."""
    before, plan = locked(), planned()
    families = lock.to_pin(before, plan)
    assert set(families) == {"chat"}  # not one's own
    after = lock.pin_images(before, plan, families, there)
    assert after.entries["chat"].image == AMI
    assert {n: after.entries[n] for n in ("own", "far")} == {
        n: before.entries[n] for n in ("own", "far")
    }


def test_a_pinned_image_is_asked_for_again_only_by_name() -> None:
    plan = planned()
    pinned = lock.pin_images(locked(), plan, lock.to_pin(locked(), plan), there)
    assert lock.to_pin(pinned, plan) == {}
    assert set(lock.to_pin(pinned, plan, ["chat", "own"])) == {"chat"}


def test_a_pinned_image_stays_when_the_lock_is_written_again_and_goes_with_an_upgrade() -> None:
    plan = planned()
    pinned = lock.pin_images(locked(), plan, lock.to_pin(locked(), plan), there)
    assert lock.merged(pinned, locked()) == pinned
    assert lock.merged(pinned, locked(), ["chat"]).entries["chat"].image.startswith("/aws/")


@pytest.mark.parametrize(
    ("found", "message", "hint"),
    [
        (Found(AMI, "/dev/xvda", 75), "has /dev/xvda as its root, not /dev/sda1",
         "say its system: `software.image.os`"),
        (Found(AMI, "/dev/sda1", 101), "needs 101 GiB, and the root has 100",
         "an image that fits: `software.image: ami-…`"),
    ],
    ids=["another root", "too large"],
)  # fmt: skip
def test_an_image_that_the_plans_root_volume_does_not_fit_is_refused(
    found: Found, message: str, hint: str
) -> None:
    before, plan = locked(), planned()

    def another(region: str, family: str) -> Found:
        return found

    with pytest.raises(InvalidInput) as caught:
        lock.pin_images(before, plan, lock.to_pin(before, plan), another)
    (problem,) = caught.value.problems
    assert problem.path == "workloads.chat.software.image"
    assert problem.message.endswith(message)
    assert problem.hint == hint


def test_everything_that_could_not_be_found_is_said_at_once() -> None:
    two = TEXT.replace("workloads:", "workloads:\n  more: {gpu: {models: [L4]}, nodes: 2}")
    before, plan = locked(two), planned(two)

    def nowhere(region: str, family: str) -> Found:
        raise InvalidInput(Problem("--images", f"{family} in {region}: no", ""))

    def by_turns(region: str, family: str) -> Found:
        raise InvalidInput(Problem("--images", f"no {len(seen)}", str(seen.append(region))))

    seen: list[str] = []
    with pytest.raises(InvalidInput) as caught:
        lock.pin_images(before, plan, lock.to_pin(before, plan), nowhere)
    assert len(caught.value.problems) == 1  # the same for both is said once
    with pytest.raises(InvalidInput) as caught:
        lock.pin_images(before, plan, lock.to_pin(before, plan), by_turns)
    assert len(caught.value.problems) == 2


def test_a_locked_plan_has_the_image_of_the_lock() -> None:
    plan = planned()
    pinned = lock.pin_images(locked(), plan, lock.to_pin(locked(), plan), there)
    found = locked_plan(pinned, declared(), "chat", load()).chosen
    assert found is not None
    image = found.boot.image
    assert (image.id, image.pinned, image.source) == (AMI, True, "lock")
    assert image.family is not None  # what `--images chat` would ask for


def test_a_family_that_was_locked_stays_when_the_catalogue_would_take_another() -> None:
    before = locked()
    other = "/aws/service/deeplearning/ami/x86_64/base-with-single-cuda-ubuntu-24.04/latest/ami-id"
    entries = {**before.entries, "chat": replace(before.entries["chat"], image=other)}
    found = locked_plan(Lock("dev", entries), declared(), "chat", load()).chosen
    assert found is not None
    image = found.boot.image
    assert (image.id, image.family, image.pinned) == (None, other, False)


def test_an_unpinned_lock_changes_nothing_of_the_plan() -> None:
    found = locked_plan(locked(), declared(), "chat", load()).chosen
    (chosen,) = [w.chosen for w in planned().workloads if w.name == "chat"]
    assert found is not None
    assert chosen is not None
    assert found.boot == chosen.boot


RENAMED = TEXT.replace("  chat: {", "  talk: {was: chat, ")


def test_a_renamed_workload_keeps_its_machine_and_its_image() -> None:
    plan = planned()
    old = lock.pin_images(locked(), plan, lock.to_pin(locked(), plan), there)
    declaration = declared(RENAMED)
    after = lock.merged(old, locked(RENAMED), (), lock.former_names(declaration))
    assert after.entries["talk"] == old.entries["chat"]
    assert "chat" not in after.entries
    assert lock.check_lock(after, declaration) == []
    found = locked_plan(after, declaration, "talk", load()).chosen
    assert found is not None
    assert found.fleet.resources == "chat"


def test_a_rename_without_its_former_name_is_a_new_workload() -> None:
    old = locked()
    entries = {**old.entries, "chat": replace(old.entries["chat"], image=AMI)}
    text = TEXT.replace("  chat:", "  talk:")
    after = lock.merged(Lock("dev", entries), locked(text), (), lock.former_names(declared(text)))
    assert after.entries["talk"].image != AMI
