"""Every resource type of the stand-in, by its token."""

from __future__ import annotations

from tests.engine.gcp import (
    disks,
    groups,
    identity,
    instances,
    members,
    monitoring,
    network,
    policies,
    scaling,
    stopping,
    storage,
    templates,
)
from tests.engine.gcp.resource import Resource

MODULES = (
    disks,
    groups,
    identity,
    instances,
    members,
    monitoring,
    network,
    policies,
    scaling,
    stopping,
    storage,
    templates,
)
TYPES: dict[str, Resource] = {kind.token: kind for module in MODULES for kind in module.TYPES}
