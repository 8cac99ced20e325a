"""The stack's bucket of a region: node bundles, reports, and what a fleet remembers.

Its name is derived on both sides (`gputier/node/bucket.py`), so user data need not tell it. A
bundle is never deleted: a machine that reboots a year on fetches the one it was made with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pulumi
import pulumi_gcp as gcp

from gputier.boot import bucket_name
from gputier.gcp.place import project_of
from gputier.lock import Bundle, bundle_file, current_bundle

KEEP = "keep"
#: Reports of a fleet that keeps none for long: a month is time enough to look at what failed. Ours.
REPORT_DAYS = 30
#: Parts of uploads that were broken off are billed and never seen.
ABORT_DAYS = 7


class Store(pulumi.ComponentResource):
    """One bucket for all fleets of a region and stack.

    `reports` maps each fleet's name to what happens to its reports: keep or remove. Where one keeps
    them the bucket stays when the stack is destroyed, and `kept` says so.
    """

    bucket: pulumi.Output[str]
    kept: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        region: str,
        *,
        reports: Mapping[str, str],
        labels: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:gcp:Store", name, None, opts)
        self._label, self._region = name, region
        self._uploads: dict[str, gcp.storage.BucketObject] = {}
        stays = KEEP in reports.values()
        made = gcp.storage.Bucket(
            f"{name}-store",
            name=project_of(self).id.apply(self._bucket_name),
            # As the API gives it back: written otherwise it would be another place.
            location=region.upper(),
            # Nobody else's: no ACLs, and no public access whatever a policy says.
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            force_destroy=not stays,
            lifecycle_rules=list(_expiry(reports)),
            labels=labels,
            opts=pulumi.ResourceOptions(parent=self, retain_on_delete=stays),
        )
        self.bucket = made.name
        self.kept = self.bucket.apply(
            lambda bucket: f"bucket {bucket}: reports are kept" if stays else ""
        )
        self.register_outputs({"bucket": self.bucket, "kept": self.kept})

    def _bucket_name(self, project: str) -> str:
        return bucket_name(pulumi.get_project(), pulumi.get_stack(), project, self._region)

    def upload(self, bundle: Bundle) -> pulumi.Resource:
        """The object of a pinned bundle, made once however many fleets run it. Machines that fetch
        it depend on it. Raises `ValueError` for a bundle of another release (`refused.py` tells
        people)."""
        if bundle.sha256 != current_bundle().sha256:
            raise ValueError(f"this release does not build bundle {bundle.sha256}")
        if bundle.sha256 not in self._uploads:
            self._uploads[bundle.sha256] = gcp.storage.BucketObject(
                f"{self._label}-bundle-{bundle.sha256[:12]}",
                bucket=self.bucket,
                # Named by its bytes: others would be another object.
                name=f"bundles/{bundle.sha256}.pyz",
                source=pulumi.FileAsset(str(bundle_file())),
                content_type="application/zip",
                opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
            )
        return self._uploads[bundle.sha256]


def _expiry(reports: Mapping[str, str]) -> Iterator[gcp.storage.BucketLifecycleRuleArgsDict]:
    for fleet, what in sorted(reports.items()):
        if what != KEEP:
            yield {
                "action": {"type": "Delete"},
                "condition": {"age": REPORT_DAYS, "matches_prefixes": [f"reports/{fleet}/"]},
            }
    yield {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": ABORT_DAYS}}
