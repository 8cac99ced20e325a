"""Machines that go, stop, or are replaced one after the other, and data that goes with them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gputier.review.preview import Change, State
from gputier.review.risk import (
    NOTE,
    WARNING,
    Finder,
    Risk,
    Rule,
    Scene,
    called,
    count,
    listed,
    sentence,
)
from gputier.review.risks_sizes import (
    ASG,
    AWS_INSTANCES,
    CLUSTERS,
    EKS_NODES,
    FLEETS,
    GCP_INSTANCES,
    GKE_NODES,
    GROUPS,
    INSTANCES,
    MIG,
    has_now,
)
from gputier.review.values import fields, items, number, yes
from gputier.review.world import at

REPLACED = Rule(
    "machines-replaced",
    WARNING,
    "Machines are replaced, with the property that forces it and how many they are.",
)
USER_DATA = Rule(
    "replaced-by-user-data",
    WARNING,
    "A machine is replaced because its user data changed, and nothing else did.",
)
DELETED = Rule("machines-deleted", WARNING, "Machines are deleted, and how many they are.")
FLEET = Rule("fleet-deleted", WARNING, "A whole fleet goes, with everything made for it.")
STOPPED = Rule("machine-stopped", WARNING, "A machine is stopped and started to change it.")
ROLLED = Rule(
    "machines-rolled",
    WARNING,
    "A rolling update replaces running machines, how many, and how many at a time.",
)
ONLY_NEW = Rule(
    "only-new-machines",
    NOTE,
    "A template changes and nothing takes it to the machines that run.",
)
RULES = (REPLACED, USER_DATA, DELETED, FLEET, STOPPED, ROLLED, ONLY_NEW)

_BOOT = frozenset({"userData", "userDataBase64", "metadataStartupScript"})
#: Changing these stops an EC2 instance (pulumi-aws, `ec2.Instance`), and a machine of Google's
#: (`allowStoppingForUpdate` in pulumi-gcp, `compute.Instance`).
_STOPS = {
    **dict.fromkeys(AWS_INSTANCES, ("instanceType", "userData", "userDataBase64")),
    **dict.fromkeys(
        GCP_INSTANCES,
        ("machineType", "minCpuPlatform", "serviceAccount", "enableDisplay"),
    ),
}
#: Where a group says which template its machines have.
_TEMPLATE = {
    ASG: ("launchTemplate", "launchConfiguration", "mixedInstancesPolicy"),
    **dict.fromkeys(MIG, ("versions", "instanceTemplate")),
    EKS_NODES: ("version", "releaseVersion", "launchTemplate"),
    GKE_NODES: ("version", "nodeConfig.imageType"),
}
#: Of an instance refresh nobody sized (EC2 Auto Scaling API, RefreshPreferences).
_HEALTHY_PERCENT = 90.0


def _quoted(names: tuple[str, ...]) -> str:
    return listed([f"`{name}`" for name in names])


def _replaced(scene: Scene) -> Iterator[Risk]:
    for change in scene.changes("replace", (*INSTANCES, *GROUPS, *CLUSTERS)):
        before = change.before
        if before is None or scene.goes(change.urn):
            continue
        prop = change.forced_by[0] if change.forced_by else None
        if change.type in INSTANCES and prop and set(change.forced_by) <= _BOOT:
            yield USER_DATA.at(change.urn, prop, _by_user_data(before, prop))
            continue
        n = has_now(before, scene.before)
        what = f"{sentence(called(before))} is replaced{_why(change)}: {_loss(before, n)}."
        if change.type in INSTANCES and prop:
            what += f" `ignoreChanges` on {_quoted(change.forced_by)} keeps it."
        yield (REPLACED.softly if n == 0 else REPLACED.at)(change.urn, prop, what)


def _by_user_data(state: State, prop: str) -> str:
    return (
        f"{sentence(called(state))} is replaced only because its user data changed: the machine"
        f" goes, with what lies on its root disk. `ignoreChanges` on `{prop}` keeps it"
        " (pulumi-aws#4446)."
    )


def _why(change: Change) -> str:
    if not change.forced_by:
        return ""
    verb = "changes" if len(change.forced_by) == 1 else "change"
    return f" because {_quoted(change.forced_by)} {verb}"


def _loss(state: State, n: float | None) -> str:
    if state.type in INSTANCES:
        return "the machine goes, with what lies on its root disk"
    if state.type in CLUSTERS:
        return "everything that runs in it goes"
    if n is None:
        return "its machines go, and new ones start"
    if n == 0:
        return "no machine runs in it"
    its = "its machine goes, and a new one starts"
    return its if n == 1 else f"its {n:g} machines go, and new ones start"


def _deleted(scene: Scene) -> Iterator[Risk]:
    for change in scene.changes("delete", (*INSTANCES, *GROUPS, *CLUSTERS)):
        before = change.before
        if before is None or _fleet(scene, before) is not None:
            continue
        n = has_now(before, scene.before)
        what = sentence(called(before))
        if before.retain:
            text = f"{what} stays in the cloud, and in its costs, and is no longer looked after."
            yield DELETED.at(change.urn, None, text)
        elif change.type in INSTANCES or change.type in CLUSTERS:
            yield DELETED.at(change.urn, None, f"{what} is deleted.")
        elif n == 0:
            yield DELETED.softly(change.urn, None, f"{what} is deleted; no machine runs in it.")
        else:
            yield DELETED.at(change.urn, None, f"{what} is deleted with {_its(n)}.")


def _its(n: float | None) -> str:
    return "its machines" if n is None else f"its {count(n, 'machine')}"


def _fleet(scene: Scene, state: State) -> str | None:
    """The fleet that goes and takes this with it."""
    urn = state.parent
    while urn is not None:
        change = scene.preview.changes.get(urn)
        if change is not None and change.op == "delete" and change.type in FLEETS:
            return urn
        found = change.state if change is not None else scene.before.states.get(urn)
        urn = found.parent if found is not None else None
    return None


def _fleets(scene: Scene) -> Iterator[Risk]:
    for fleet in scene.changes("delete", FLEETS):
        parts = [
            has_now(c.before, scene.before)
            for c in scene.changes("delete", (*INSTANCES, *GROUPS))
            if c.before is not None and _fleet(scene, c.before) == fleet.urn
        ]
        n = None if None in parts else sum(filter(None, parts))
        text = f"The fleet `{fleet.state.name}` goes whole: {_its(n)} and all that was made for it."
        yield FLEET.at(fleet.urn, None, text)


def _stopped(scene: Scene) -> Iterator[Risk]:
    for change in scene.changes("update", _STOPS):
        causes = [name for name in _STOPS[change.type] if _touches(change, name)]
        if not causes:
            continue
        text = f"{sentence(called(change.state))} is stopped and started: {_quoted(tuple(causes))}"
        verb = "changes" if len(causes) == 1 else "change"
        more = ""
        if set(causes) <= _BOOT:
            more = " The new user data is not run: cloud-init runs it at the first boot alone."
        yield STOPPED.at(change.urn, causes[0], f"{text} {verb}.{more}")


def _touches(change: Change, prefix: str) -> str | None:
    """The first changed path below a property."""
    below = (f"{prefix}.", f"{prefix}[")
    found = (path for path in sorted(change.changed) if path == prefix or path.startswith(below))
    return next(found, None)


def _templates(scene: Scene) -> Iterator[tuple[Change, State, str, float | None]]:
    """Groups that stay and get another template: (change, after, path, machines now)."""
    for change in scene.changes("update", _TEMPLATE):
        paths = (_touches(change, name) for name in _TEMPLATE[change.type])
        path = next(filter(None, paths), None)
        n = has_now(change.before, scene.before)
        if path is not None and change.after is not None and n != 0:
            yield change, change.after, path, n


def _rolled(scene: Scene) -> Iterator[Risk]:
    for change, after, path, n in _templates(scene):
        if not _rolls(after):
            continue
        how = _aws_pace(after, n) if change.type == ASG else _pace(after)
        text = f"{_who_rolls(after)} replaces {_its(n)}{how}, because `{path}` changes."
        yield ROLLED.at(change.urn, path, text + _and_back(after))


def _triggered(scene: Scene) -> Iterator[Risk]:
    """Refreshes that something else than the template starts."""
    for change in scene.changes("update", (ASG,)):
        after, n = change.after, has_now(change.before, scene.before)
        if after is None or n == 0 or any(_touches(change, name) for name in _TEMPLATE[ASG]):
            continue
        triggers = items(at(after.inputs, "instanceRefresh.triggers"))
        found = (_touches(change, _TAGS.get(str(name), str(name))) for name in triggers)
        path = next(filter(None, found), None)
        if path is not None:
            text = f"{_who_rolls(after)} replaces {_its(n)}{_aws_pace(after, n)}, because"
            yield ROLLED.at(change.urn, path, f"{text} `{path}` changes.{_and_back(after)}")


#: Triggers have the provider's names of properties.
_TAGS = {"tag": "tags", "tags": "tags"}


def _rolls(after: State) -> bool:
    if after.type == ASG:
        return bool(fields(after.inputs.get("instanceRefresh")))
    if after.type in MIG:
        return at(after.get("updatePolicy"), "type") == "PROACTIVE"
    return True


def _who_rolls(after: State) -> str:
    if after.type == ASG:
        return f"An instance refresh of {called(after)}"
    if after.type in MIG:
        return f"A proactive update of {called(after)}"
    return sentence(called(after))


def _and_back(after: State) -> str:
    if after.type == ASG:
        back = yes(at(after.inputs, "instanceRefresh.preferences.autoRollback"))
        if back:
            return " It goes back by itself when the new ones fail."
        return " Nothing takes it back when the new ones fail: `autoRollback` would."
    if after.type in MIG:
        return " With OPPORTUNISTIC they would stay until somebody replaces them."
    return ""


def _aws_pace(after: State, n: float | None) -> str:
    preferences = fields(at(after.inputs, "instanceRefresh.preferences"))
    least = number(preferences.get("minHealthyPercentage", _HEALTHY_PERCENT))
    most = number(preferences.get("maxHealthyPercentage", 100))
    if n == 1 or n is None or least is None:
        return ""
    if least >= 100 and most is not None and most > 100:
        return ", each once another is up"
    return _at_most(max(1, n - math.ceil(n * least / 100)), n)


def _at_most(once: float, n: float) -> str:
    if once >= n:
        return ", all at once"
    return ", one at a time" if once == 1 else f", up to {once:g} at a time"


#: Where a group says how many may be missing at a time: of Google's, of EKS, of GKE.
_MISSING = (
    ("updatePolicy.maxUnavailableFixed", ""),
    ("updatePolicy.maxUnavailablePercent", " %"),
    ("updateConfig.maxUnavailable", ""),
    ("updateConfig.maxUnavailablePercentage", " %"),
    ("upgradeSettings.maxUnavailable", ""),
)


def _pace(after: State) -> str:
    for path, unit in _MISSING:
        missing = number(at({p: after.get(p) for p in (path.split(".")[0],)}, path))
        if missing is not None:
            none = missing == 0
            return ", each once another is up" if none else f", up to {missing:g}{unit} at a time"
    return ""


def _only_new(scene: Scene) -> Iterator[Risk]:
    for change, after, path, n in _templates(scene):
        if _rolls(after) or "instancesDistribution" in path:
            continue
        whose = "Machines" if n is None else sentence(f"the {count(n, 'machine')}")
        keeps = "keeps" if n == 1 else "keep"
        way = (
            "an instance refresh takes it to those that run"
            if change.type == ASG
            else "a rolling action takes it to those that run"
        )
        text = f"{whose} of {called(after)} {keeps} the old template until replaced; {way}."
        yield ONLY_NEW.at(change.urn, path, text)


FINDERS: tuple[Finder, ...] = (
    _replaced,
    _deleted,
    _fleets,
    _stopped,
    _rolled,
    _triggered,
    _only_new,
)


def machines_replaced(scene: Scene) -> float | None:
    """How many machines go and come again: those of what is replaced or rolled. None where there
    are some and nobody knows how many."""
    parts = [
        has_now(change.before, scene.before)
        for change in scene.changes("replace", (*INSTANCES, *GROUPS))
        if not scene.goes(change.urn)
    ]
    parts += [n for _, after, _, n in _templates(scene) if _rolls(after)]
    return None if None in parts else sum(filter(None, parts))
