"""Every resource type of the stand-in, by its token."""

from __future__ import annotations

from tests.engine.aws import (
    addresses,
    anomalies,
    buckets,
    budgets,
    functions,
    groups,
    identity,
    instances,
    keys,
    monitoring,
    network,
    rules,
    templates,
    volumes,
)
from tests.engine.aws.resource import Resource

MODULES = (
    addresses,
    anomalies,
    buckets,
    budgets,
    functions,
    groups,
    identity,
    instances,
    keys,
    monitoring,
    network,
    rules,
    templates,
    volumes,
)
TYPES: dict[str, Resource] = {kind.token: kind for module in MODULES for kind in module.TYPES}
