"""What Google Cloud takes together, and what of it a fleet has.

Sources, read in 2026: AI, the AI Hypercomputer guides on groups of machines and on placement and
workload policies; CE, the Compute Engine pages on instance placement, on target shapes of regional
groups, on accelerator-optimized machines; MM, GoogleCloudPlatform/magic-modules@d57784406a, from
which the provider is made; the cluster toolkit, GoogleCloudPlatform/cluster-toolkit@1047080. What
two of them contradict, such as a workload policy with flex-start, is not here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gputier_policies.fleets import RESOURCE_POLICY, SCALERS, Fleet
from gputier_policies.links import Links
from gputier_policies.machine import FLEX, GCP_GROUP, GCP_REGION_GROUP, SPOT
from gputier_policies.parts import GCP_LONE
from gputier_policies.traits import Combination, Trait, Traits, both, holds_of, some
from gputier_policies.values import UNKNOWN, Resource, items, yes

COMBINATIONS: tuple[Combination, ...] = (
    Combination(
        ("flex", "reservation"),
        "a flex-start machine takes no reservation, and says so:"
        ' reservation_affinity={"type": "NO_RESERVATION"}',
        "AI groups of flex-start machines; cluster toolkit",
    ),
    Combination(
        ("flex", "no duration"),
        "a flex-start machine says how long it runs, 10 minutes to 7 days:"
        ' scheduling={"max_run_duration": {"seconds": 604800}}',
        "MM; AI groups of flex-start machines",
    ),
    Combination(
        ("flex", "restarts"),
        'a flex-start machine is not restarted: scheduling={"automatic_restart": False}',
        "MM, sample of a resize request",
    ),
    Combination(
        ("flex group", "does not delete"),
        "a flex-start machine of a group is deleted at its end:"
        ' scheduling={"instance_termination_action": "DELETE"}',
        "AI groups of flex-start machines",
    ),
    Combination(
        ("flex group", "autoscaler"),
        "a group of flex-start machines grows by resize requests, and has no autoscaler",
        "AI groups of flex-start machines",
    ),
    Combination(
        ("flex group", "size"),
        "a group of flex-start machines starts with none and grows by resize requests:"
        " target_size=0",
        "AI groups of flex-start machines",
    ),
    Combination(
        ("flex group", "repairs"),
        "a flex-start machine that failed is not repaired, as it would queue again:"
        ' instance_lifecycle_policy={"default_action_on_failure": "DO_NOTHING"}',
        "AI groups of flex-start machines; cluster toolkit",
    ),
    Combination(
        ("flex group", "several zones"),
        "flex-start machines of a regional group start in one zone: one zone, or"
        ' distribution_policy_target_shape="ANY_SINGLE_ZONE"',
        "AI groups of flex-start machines",
    ),
    Combination(
        ("flex", "grace blackwell"),
        "A4X machines are not sold by flex-start: a reservation",
        "CE accelerator-optimized machines",
    ),
    Combination(
        ("spot", "specific reservation"),
        "a spot machine takes no reservation: leave reservation_affinity out",
        "AI, reservation affinity by provisioning model",
    ),
    Combination(
        ("spot", "restarts"),
        'a spot machine is not restarted: scheduling={"automatic_restart": False}',
        "MM, validation of preemptible machines",
    ),
    Combination(
        ("bound", "no specific reservation"),
        "RESERVATION_BOUND names its reservation: reservation_affinity={"
        '"type": "SPECIFIC_RESERVATION", "specific_reservation": {…}}',
        "AI, reservation affinity by provisioning model",
    ),
    Combination(
        ("gpu", "migrates"),
        "a machine with a GPU cannot be moved while it runs:"
        ' scheduling={"on_host_maintenance": "TERMINATE"}',
        "CE GPU host maintenance",
    ),
    Combination(
        ("small a3", "on demand"),
        "A3 High machines with fewer than 8 GPUs are sold as spot and flex-start alone",
        "CE accelerator-optimized machines",
    ),
    Combination(
        ("compact", "several zones"),
        "machines of a compact placement policy share a zone: one zone, or"
        ' distribution_policy_target_shape="ANY_SINGLE_ZONE"',
        "CE instance placement",
    ),
    Combination(
        ("compact", "n1"),
        "N1 machines take no compact placement policy: leave resource_policies out",
        "CE instance placement, series",
    ),
    Combination(
        ("adjacent", "a3"),
        "A3 machines are not placed at distance 1: max_distance=2",
        "CE instance placement; cluster toolkit",
    ),
    Combination(
        ("workload policy", "no workload series"),
        "a workload policy takes A4X, A4, A3 Ultra, A3 Mega, A3 High with 8 GPUs and H4D: a"
        " placement policy in the template instead",
        "CE workload policies",
    ),
    Combination(
        ("one shape", "redistributes"),
        "a group of this shape is not redistributed:"
        ' update_policy={"instance_redistribution_type": "NONE"}',
        "CE target shapes of regional groups",
    ),
    Combination(
        ("any shape", "autoscaler"),
        'an autoscaler takes the shapes EVEN and BALANCED: distribution_policy_target_shape="EVEN"',
        "CE target shapes of regional groups",
    ),
)
_WORKLOADS = r"(?:a4x?-|a3-(?:ultra|mega)gpu-|a3-highgpu-8g|h4d-|ct\d|tpu)"
_SHAPE = "distributionPolicyTargetShape"


def traits(fleet: Fleet, links: Links) -> Traits:
    """What a fleet has of the table's words."""
    runner = fleet.runner
    starts = [*fleet.templates, *([runner] if runner.type in GCP_LONE else [])]
    regional = runner.type == GCP_REGION_GROUP
    group = regional or runner.type == GCP_GROUP

    def each(path: str, holds: Callable[[Any], object]) -> Trait:
        if not starts and fleet.waits:
            return (UNKNOWN, fleet.waits)
        return some(((holds_of(one.at(path), holds), path) for one in starts), path)

    def its(path: str, holds: Callable[[Any], object]) -> Trait:
        return (holds_of(runner.at(path), holds), path) if group else (False, path)

    def typed(pattern: str) -> Trait:
        found = (
            (holds_of(m.type, lambda t: re.match(pattern, str(t))), m.path) for m in fleet.machines
        )
        return some(found, "machineType")

    flex, spot = _bought(fleet, FLEX), _bought(fleet, SPOT)
    affinity = "reservationAffinity.type"
    shape = its(_SHAPE, lambda word: word in ("BALANCED", "ANY", "ANY_SINGLE_ZONE"))
    policy = _policy(starts, links)
    restarts = "scheduling.automaticRestart"
    repair = "instanceLifecyclePolicy.defaultActionOnFailure"
    return {
        "gpu": (fleet.gpu, fleet.waits or "machineType"),
        "flex": flex,
        "flex group": flex if group else (False, flex[1]),
        "spot": spot,
        "bound": each("scheduling.provisioningModel", lambda word: word == "RESERVATION_BOUND"),
        "on demand": _on_demand(fleet),
        "reservation": each(affinity, lambda word: word != "NO_RESERVATION"),
        "specific reservation": each(affinity, lambda word: word == "SPECIFIC_RESERVATION"),
        "no specific reservation": each(affinity, lambda word: word != "SPECIFIC_RESERVATION"),
        "no duration": each("scheduling.maxRunDuration", lambda box: not box),
        "restarts": each(restarts, lambda flag: flag is None or yes(flag)),
        "does not delete": each(
            "scheduling.instanceTerminationAction", lambda word: word != "DELETE"
        ),
        "migrates": each("scheduling.onHostMaintenance", lambda word: word == "MIGRATE"),
        "autoscaler": _scaled(runner, links),
        "size": its("targetSize", lambda size: isinstance(size, int | float) and size > 0),
        "repairs": its(repair, lambda word: word != "DO_NOTHING"),
        "several zones": _zones(runner) if regional else (False, _ZONES),
        "compact": policy("groupPlacementPolicy.collocation", lambda word: word == "COLLOCATED"),
        "adjacent": policy("groupPlacementPolicy.maxDistance", lambda far: far == 1),
        "workload policy": its("resourcePolicies.workloadPolicy", lambda name: bool(name)),
        "no workload series": typed(rf"(?!{_WORKLOADS})"),
        "grace blackwell": typed(r"a4x-"),
        "small a3": typed(r"a3-highgpu-[124]g"),
        "a3": typed(r"a3-"),
        "n1": typed(r"n1-"),
        "one shape": shape,
        "any shape": its(_SHAPE, lambda word: word in ("ANY", "ANY_SINGLE_ZONE")),
        "redistributes": its(
            "updatePolicy.instanceRedistributionType", lambda word: word == "PROACTIVE"
        ),
    }


_ZONES = "distributionPolicyZones"


_MODEL = "scheduling.provisioningModel"


def _bought(fleet: Fleet, capacity: str) -> Trait:
    return _machine(fleet, "capacity", lambda found: found == capacity, _MODEL)


def _on_demand(fleet: Fleet) -> Trait:
    return _machine(fleet, "capacity", lambda found: found not in (SPOT, FLEX), _MODEL)


def _machine(fleet: Fleet, word: str, holds: Callable[[Any], object], path: str) -> Trait:
    if not fleet.machines and fleet.waits:
        return (UNKNOWN, fleet.waits)
    return some(((holds_of(getattr(m, word), holds), path) for m in fleet.machines), path)


def _scaled(runner: Resource, links: Links) -> Trait:
    found = next(links.pointing_at(runner, "target", *SCALERS), None)
    return (found is not None, f"autoscaler {found.name}" if found else "autoscaler")


def _zones(group: Resource) -> Trait:
    """Whether a regional group may start machines in several zones: it does in all of its region's
    unless it names one, or picks one."""
    shape, zones = group.at(_SHAPE), group.at(_ZONES)
    several = holds_of(zones, lambda names: len(items(names)) != 1)
    return both(_spread(shape), (several, _ZONES))


def _spread(shape: Any) -> Trait:
    return (holds_of(shape, lambda word: word != "ANY_SINGLE_ZONE"), _SHAPE)


_Has = Callable[[str, Callable[[Any], object]], Trait]


def _policy(starts: list[Resource], links: Links) -> _Has:
    """The resource policies of templates and machines, as far as they are in the program; of
    others nobody knows, and nothing is said."""
    found: list[Resource] = []
    for one in starts:
        # One text in pulumi_gcp 10.2.0, a list where the API says it.
        count = len(one.each("resourcePolicies"))
        for path in ("resourcePolicies", *(f"resourcePolicies[{n}]" for n in range(count))):
            policy = links.follow(one, path, RESOURCE_POLICY)
            if policy:
                found.append(policy)
        made = (links.stack.by_urn(urn) for urn in one.sources.get("resourcePolicies", ()))
        found += [policy for policy in made if policy and policy.type == RESOURCE_POLICY]

    def has(path: str, holds: Callable[[Any], object]) -> Trait:
        where = "resourcePolicies"
        return some(((holds_of(policy.at(path), holds), where) for policy in found), where)

    return has
