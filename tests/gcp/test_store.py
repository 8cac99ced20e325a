"""The stack's bucket on Google."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pulumi
import pytest
from tests.gcp import world

from gputier import testing
from gputier.gcp import Store
from gputier.lock import Bundle, current_bundle
from gputier.node.bucket import bucket_name

NAME = bucket_name("gputier", "test", world.PROJECT, world.REGION)


def store(*, uploads: int = 1, **reports: str) -> testing.Run:
    def program() -> None:
        made = Store(world.REGION, world.REGION, reports=reports, labels={"team": "vision"})
        for _ in range(uploads):
            made.upload(current_bundle())
        pulumi.export("kept", made.kept)

    return world.run(program)


def test_the_bucket_has_the_name_that_a_node_derives_and_is_nobody_elses() -> None:
    bucket = store(job="keep").find(f"Bucket {world.REGION}-store").inputs
    assert (bucket["name"], bucket["location"]) == (NAME, "US-CENTRAL1")
    assert bucket["publicAccessPrevention"] == "enforced"
    assert bucket["uniformBucketLevelAccess"] is True
    assert bucket["labels"] == {"team": "vision"}


def test_reports_that_are_kept_keep_the_bucket() -> None:
    kept = store(job="keep", other="remove")
    (bucket,) = kept.of_type("Bucket")
    assert bucket.options.retain_on_delete
    assert bucket.inputs["forceDestroy"] is False
    assert kept.outputs["kept"] == f"bucket {NAME}: reports are kept"
    (bucket,) = store(job="remove").of_type("Bucket")
    assert not bucket.options.retain_on_delete
    assert bucket.inputs["forceDestroy"] is True


def test_only_reports_that_are_not_kept_expire_and_bundles_never() -> None:
    (bucket,) = store(job="keep", other="remove").of_type("Bucket")
    assert bucket.inputs["lifecycleRules"] == [
        {
            "action": {"type": "Delete"},
            "condition": {"age": 30, "matchesPrefixes": ["reports/other/"]},
        },
        {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 7}},
    ]


def test_a_bundle_is_uploaded_once_under_its_digest_and_never_deleted() -> None:
    (bundle,) = store(uploads=2, job="keep").of_type("BucketObject")
    sha = current_bundle().sha256
    assert (bundle.inputs["name"], bundle.inputs["bucket"]) == (f"bundles/{sha}.pyz", NAME)
    assert hashlib.sha256(Path(bundle.inputs["source"].path).read_bytes()).hexdigest() == sha
    assert bundle.options.retain_on_delete


def test_a_bundle_of_another_release_is_a_bug() -> None:
    def program() -> None:
        Store("s", world.REGION, reports={}).upload(Bundle("0" * 64, "0.0.1"))

    with pytest.raises(ValueError, match="does not build bundle"):
        world.run(program)
