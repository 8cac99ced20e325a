"""The table of docs/workload.md: what each field becomes on each cloud."""

from __future__ import annotations

from collections.abc import Iterable

from tests.fields.walk import (
    CLOUDS,
    NO_CHOICE,
    PLAN_ALONE,
    Change,
    changed,
    differences,
    is_plans,
)
from tests.plan.test_every_field import CASES

from gputier.errors import Problem

MACHINE = "chooses the machine"
#: Of many differences so many are named.
MOST = 4
HEAD = "| field | AWS | Google |\n|---|---|---|"


def text() -> str:
    """The whole table, and below it the fields that choose a machine and no more."""
    cells = {path: [cell(cloud, path) for cloud in CLOUDS] for path in CASES}
    choosing = [f"`{path}`" for path, found in cells.items() if set(found) == {MACHINE}]
    rows = [row(path, *found) for path, found in cells.items() if set(found) != {MACHINE}]
    below = f"Chosen by, on both clouds alike: {', '.join(choosing)}."
    return "\n".join([HEAD, *rows, "", below])


def row(path: str, aws: str, gcp: str) -> str:
    """One line of the table."""
    same = "the same" if aws == gcp and not aws.startswith("refused") else gcp
    return f"| `{path}` | {aws} | {same} |"


def cell(cloud: str, path: str) -> str:
    """What a field is on this cloud."""
    if CASES[path].refused:
        return "refused by the schema"
    if path in NO_CHOICE[cloud]:
        return NO_CHOICE[cloud][path]
    if path in PLAN_ALONE[cloud]:
        return f"of the plan alone: {PLAN_ALONE[cloud][path]}"
    if is_plans(cloud, path):
        return MACHINE
    return _cell(changed(cloud, path))


def _cell(change: Change) -> str:
    if change.after.problems:
        return "; ".join(sorted(map(_refused, change.said)))
    if change.before.machine != change.after.machine:
        return f"{MACHINE}, and what is deployed of it"
    return _listed(differences(change))


def _refused(problem: Problem) -> str:
    way = f" ({problem.hint})" if problem.hint else ""
    return f"refused: {problem.message}{way}".replace("|", "\\|").replace("\n", " ")


def _listed(found: Iterable[str]) -> str:
    names = list(dict.fromkeys(found))
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(f"`{name}`" if "." in name else name for name in names[:MOST]) + more
