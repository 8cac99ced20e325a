"""The stack's bucket of a region: node bundles, reports, and what a fleet remembers.

Its name is derived on both sides (`gputier/node/bucket.py`), so user data need not tell it. A
bundle is never deleted: a machine that reboots a year on fetches the one it was made with.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import pulumi
import pulumi_aws as aws

from gputier.aws.place import account_of
from gputier.boot import bucket_name
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
        tags: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:aws:Store", name, None, opts)
        self._label, self._region = name, region
        self._uploads: dict[str, aws.s3.BucketObjectv2] = {}
        stays = KEEP in reports.values()
        account = account_of(self).id
        self._bucket = aws.s3.Bucket(
            f"{name}-store",
            bucket=account.apply(self._bucket_name),
            region=region,
            force_destroy=not stays,
            tags=tags,
            opts=pulumi.ResourceOptions(parent=self, retain_on_delete=stays),
        )
        self.bucket = self._bucket.bucket
        self._guard(stays)
        self._expire(reports, stays)
        self.kept = self.bucket.apply(
            lambda bucket: f"bucket {bucket}: reports are kept" if stays else ""
        )
        self.register_outputs({"bucket": self.bucket, "kept": self.kept})

    def _bucket_name(self, account: str) -> str:
        return bucket_name(pulumi.get_project(), pulumi.get_stack(), account, self._region)

    def _guard(self, stays: bool) -> None:
        """Nobody else's: no public access, no ACLs, encrypted, and over TLS alone."""
        options = pulumi.ResourceOptions(parent=self, retain_on_delete=stays)
        aws.s3.BucketPublicAccessBlock(
            f"{self._label}-private",
            bucket=self.bucket,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            region=self._region,
            opts=options,
        )
        aws.s3.BucketOwnershipControls(
            f"{self._label}-owner",
            bucket=self.bucket,
            rule={"object_ownership": "BucketOwnerEnforced"},
            region=self._region,
            opts=options,
        )
        aws.s3.BucketServerSideEncryptionConfiguration(
            f"{self._label}-encrypted",
            bucket=self.bucket,
            rules=[{"apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"}}],
            region=self._region,
            opts=options,
        )
        aws.s3.BucketPolicy(
            f"{self._label}-tls",
            bucket=self.bucket,
            policy=self._bucket.arn.apply(over_tls),
            region=self._region,
            opts=options,
        )

    def _expire(self, reports: Mapping[str, str], stays: bool) -> None:
        rules: list[aws.s3.BucketLifecycleConfigurationRuleArgsDict] = [
            {
                "id": f"reports-{fleet}",
                "status": "Enabled",
                "filter": {"prefix": f"reports/{fleet}/"},
                "expiration": {"days": REPORT_DAYS},
            }
            for fleet, what in sorted(reports.items())
            if what != KEEP
        ]
        rules.append(
            {
                "id": "broken-off",
                "status": "Enabled",
                "filter": {"prefix": ""},
                "abort_incomplete_multipart_upload": {"days_after_initiation": ABORT_DAYS},
            }
        )
        aws.s3.BucketLifecycleConfiguration(
            f"{self._label}-expiry",
            bucket=self.bucket,
            region=self._region,
            rules=rules,
            opts=pulumi.ResourceOptions(parent=self, retain_on_delete=stays),
        )

    def upload(self, bundle: Bundle) -> pulumi.Resource:
        """The object of a pinned bundle, made once however many fleets run it. Machines that fetch
        it depend on it. Raises `ValueError` for a bundle of another release (`refused.py` tells
        people)."""
        if bundle.sha256 != current_bundle().sha256:
            raise ValueError(f"this release does not build bundle {bundle.sha256}")
        if bundle.sha256 not in self._uploads:
            self._uploads[bundle.sha256] = aws.s3.BucketObjectv2(
                f"{self._label}-bundle-{bundle.sha256[:12]}",
                bucket=self.bucket,
                region=self._region,
                key=f"bundles/{bundle.sha256}.pyz",
                source=pulumi.FileAsset(str(bundle_file())),
                content_type="application/zip",
                # Bytes that are not the pinned ones would be refused by every machine.
                source_hash=bundle.sha256,
                opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
            )
        return self._uploads[bundle.sha256]


def over_tls(arn: str) -> str:
    """The policy of a bucket that answers over TLS alone."""
    denied = {
        "Sid": "OverTlsAlone",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [arn, f"{arn}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [denied]})
