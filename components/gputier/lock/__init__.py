"""The lock: which machines one stack runs on, in a small text file that reads well in a review.

    from gputier.lock import check_lock, lock_path, read_lock
    problems = check_lock(read_lock(lock_path(declaration), declaration.name), declaration)

The digest is over the validated declaration; a newer catalogue or a newer gputier leaves an entry
with an unchanged digest alone.
"""

from gputier.lock.bundle import Bundle, bundle_file, current_bundle
from gputier.lock.entries import (
    Change,
    Cheaper,
    Entry,
    Lock,
    cheaper_than,
    check_lock,
    compare,
    describe,
    digest_of,
    former_names,
    lock_command,
    lock_path,
    make_lock,
    merged,
    unknown_names,
)
from gputier.lock.images import Found, held_image, pin_images, to_pin
from gputier.lock.text import VERSION, read_lock, render_lock, write_lock

__all__ = [
    "VERSION",
    "Bundle",
    "Change",
    "Cheaper",
    "Entry",
    "Found",
    "Lock",
    "bundle_file",
    "cheaper_than",
    "check_lock",
    "compare",
    "current_bundle",
    "describe",
    "digest_of",
    "former_names",
    "held_image",
    "lock_command",
    "lock_path",
    "make_lock",
    "merged",
    "pin_images",
    "read_lock",
    "render_lock",
    "to_pin",
    "unknown_names",
    "write_lock",
]
