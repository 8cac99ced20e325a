"""What a node asks of the cloud it runs in: metadata, object storage, its own group.

No cloud SDK and no cloud command line: the image may have neither, and both would put credentials
where others can read them. Secrets live in memory only; no exception and no `repr` here shows one.
"""

from __future__ import annotations


class Trouble(Exception):
    """The cloud could not be asked, or said no. Its words hold no secret."""


class Refused(Trouble):
    """A service answered, and the answer is no: `status`, the service's own `code` and message."""

    def __init__(self, what: str, status: int, code: str = "", message: str = "") -> None:
        words = ": ".join(part for part in (code, message) if part)
        super().__init__(f"{what}: {words or 'refused'} ({status})")
        self.status = status
        self.code = code
        self.message = message

    @property
    def denied(self) -> bool:
        """Whether the machine's identity lacks the permission, or the thing is not there at all:
        S3 answers 403 for a missing key when listing is not allowed."""
        return self.status in (401, 403)
