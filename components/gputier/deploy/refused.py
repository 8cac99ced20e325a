"""How what cannot be deployed is said: every reason of every fleet, before anything is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pulumi

from gputier.errors import InvalidInput, Problem
from gputier.lock import Bundle, current_bundle


def stack_name() -> str:
    """The stack's name as our commands take it, without an organisation."""
    return pulumi.get_stack().rsplit("/", 1)[-1]


def refuse(problems: Iterable[Problem]) -> None:
    """Raises `InvalidInput` with the problems, if there are any; a way out that is a command of
    ours names the stack."""
    found = [replace(one, hint=one.hint.replace("STACK", stack_name())) for one in problems]
    if found:
        raise InvalidInput(found)


def bundle_problems(name: str, bundle: Bundle) -> Iterator[Problem]:
    """A bundle that this release cannot build cannot be uploaded by it either."""
    if bundle.sha256 == current_bundle().sha256:
        return
    ours = current_bundle().version
    message = (
        f"the lock pins node bundle {bundle.sha256[:12]} of gputier {bundle.version}, and this is"
        f" another gputier ({ours}), which builds another one"
        if bundle.sha256
        else "the lock is of a release that pinned no node bundle"
    )
    hint = f"`gputier lock STACK --upgrade {name}` takes this release's"
    if bundle.sha256:
        hint += f"; or deploy with the gputier {bundle.version} that built it"
    yield Problem(f"workloads.{name}", message, hint)
