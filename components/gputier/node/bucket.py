"""The name of a stack's bucket, derived on both sides: nobody has to tell the machine."""

from __future__ import annotations

import hashlib
import re

# What S3 and Cloud Storage both allow (docs.aws.amazon.com/AmazonS3 bucketnamingrules, 2026-08).
LONGEST = 63
SUFFIX = 8


def bucket_name(project: str, stack: str, account: str, region: str) -> str:
    """`gputier-<project>-<stack>-<account>-<region>` in lower case, other characters to `-`.

    `stack` may carry Pulumi's `organisation/project/` before it, which is dropped. A name over 63
    characters is cut, and 8 hex digits of the whole name's SHA-256 tell it from others cut alike.
    """
    own = stack.rsplit("/", 1)[-1]
    whole = re.sub(r"[^A-Za-z0-9-]", "-", f"gputier-{project}-{own}-{account}-{region}").lower()
    if len(whole) <= LONGEST:
        return whole
    digest = hashlib.sha256(whole.encode("ascii")).hexdigest()[:SUFFIX]
    return f"{whole[: LONGEST - SUFFIX - 1].rstrip('-')}-{digest}"
