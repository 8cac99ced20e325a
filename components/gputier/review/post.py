"""One comment on a pull request: found again by its marker, edited, or made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from gputier.review.calls import CannotPost, Clock, Comment, Lost
from gputier.review.post_github import GitHub
from gputier.review.post_gitlab import GitLab

#: How often a comment is made at the most: once, and once more where an answer got lost and the
#: comment is not there.
MAKES = 2


class Platform(Protocol):
    """What posting needs of a platform. `limit` is the longest comment, in characters."""

    limit: int

    def comments(self) -> Iterator[Comment]:
        """Every comment of the pull request, the oldest first."""
        ...

    def create(self, body: str) -> Comment:
        """A new comment. Raises `Lost` when nobody knows whether it was made."""
        ...

    def edit(self, comment: Comment, body: str) -> Comment | None:
        """The comment with another body; None where it is not ours to edit."""
        ...

    def hide(self, comment: Comment) -> None:
        """Out of the way of readers, as one that was superseded."""
        ...


PLATFORMS: Mapping[str, Callable[[Mapping[str, str], Clock | None], Platform]] = {
    "github": GitHub,
    "gitlab": GitLab,
}


def post(
    platform: Platform, body: str, marker: str, *, create: bool, say: Callable[[str], None]
) -> str | None:
    """Post `body`, which begins with `marker`; the comment's address, None where there is none.

    A comment of ours is edited; several are left by jobs that ran at the same time, and all but the
    newest are hidden. Without `create` nothing new is made: what is there is only kept true.
    Raises `CannotPost`.
    """
    if len(body) > platform.limit:
        message = f"the comment has {len(body):,} characters, of {platform.limit:,}"
        raise CannotPost(message, "post what `--format markdown` prints")
    for _ in range(MAKES):
        *older, newest = [None, *_ours(platform, marker)]
        for one in filter(None, older):
            platform.hide(one)
        if newest is not None and newest.body.strip() == body.strip():
            say("the comment says so already")
            return newest.url
        edited = platform.edit(newest, body) if newest is not None else None
        if edited is not None:
            return edited.url
        if not create:
            return None
        try:
            return platform.create(body).url
        except Lost as trouble:
            say(f"an answer got lost ({trouble}): looking whether the comment is there")
    raise CannotPost("the answers to two new comments got lost", "run it again later")


def _ours(platform: Platform, marker: str) -> list[Comment]:
    return [one for one in platform.comments() if one.body.lstrip().startswith(marker)]
