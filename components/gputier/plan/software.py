"""What is declared to run, before any machine is looked at: its name, and what nobody knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gputier.catalog import Catalog, Wheel, parse_version
from gputier.errors import Problem, spelling_hint
from gputier.workload import Software, Workload


def asks(software: Software) -> bool:
    """Whether the declared software decides which machines will do."""
    return any((software.framework, software.image, software.container, software.run))


def in_words(software: Software) -> str:
    """What the contract is asked about, as one value."""
    image = software.image
    parts = [software.framework, image and image.id]
    parts += [f"driver {image.driver}"] if image and image.driver else []
    parts += [f"CUDA {image.cuda}"] if image and image.cuda else []
    parts += [image.os] if image and image.os else []
    parts += ["a container"] if software.container else []
    return ", ".join(part for part in parts if part) or "a script"


def software_problems(catalog: Catalog, workload: Workload, path: str) -> Iterator[Problem]:
    """Versions that no table has: nobody knows then which driver and card they take."""
    s, facts = workload.software, catalog.software
    at = f"{path}.software"
    if s.framework:
        ours = [w for w in facts.wheels if w.framework == s.framework_name]
        same = [w for w in ours if w.is_of(s.framework_version)]
        builds = sorted({w.build for w in same})
        if not same:
            yield _unknown_version(f"{at}.framework", s, ours)
        elif s.framework_build and s.framework_build not in builds:
            message = f"{s.framework_name} {s.framework_version} has no build {s.framework_build}"
            yield Problem(f"{at}.framework", message, f"it has {', '.join(builds)}")
    image = s.image
    branches = [b.branch for b in facts.branches]
    if image and image.driver and not image.id:
        branch = image.driver.partition(".")[0]
        if branch not in branches:
            hint = spelling_hint(branch, branches, otherwise=f"known are {', '.join(branches)}")
            yield Problem(f"{at}.image.driver", f"there is no driver branch {branch} here", hint)


def _unknown_version(path: str, software: Software, ours: Iterable[Wheel]) -> Problem:
    known = sorted({w.version for w in ours}, key=parse_version)
    listed = f"known are {', '.join(known)}" if known else "the catalogue has none"
    return Problem(
        path,
        f"{software.framework_name} {software.framework_version} is not in the catalogue, so that"
        " nobody knows which driver and cards it takes",
        f"{listed}; rows of your own in wheels.csv add to them (docs/versions.md)",
    )
