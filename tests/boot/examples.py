"""Plans to render: every workload of the example stacks, and kinds of machines beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gputier.boot import Bundle, Rendered, Stack, render
from gputier.catalog import Catalog, load
from gputier.plan import WorkloadPlan, plan_declaration, plan_workload
from gputier.workload import Workload, read_file

#: Not today's: what is rendered does not change with the node's code, and neither do the goldens.
BUNDLE = Bundle("0123456789abcdef" * 4, "0.1.0")
STACK = Stack("gputier", "test")

#: Workloads that no example stack has: the other cloud, the other fabrics, all software at once.
MORE: Mapping[str, Mapping[str, Any]] = {
    "gcp-one": {"gpu": {"models": ["A100-40GB"]}, "clouds": ["gcp"]},
    "gcp-install": {"gpu": {"models": ["L4"]}, "clouds": ["gcp"],
                    "software": {"image": {"driver": "580.95.05"}, "framework": "pytorch==2.9"}},
    "gcp-g4": {"gpu": {"models": ["RTX-PRO-6000-SE"]}, "clouds": ["gcp"]},
    "aws-install": {"gpu": {"models": ["RTX-PRO-4500-SE"]}, "clouds": ["aws"]},
    "gcp-n1": {"gpu": {"models": ["T4"]}, "clouds": ["gcp"], "cpu": {"count": 4},
               "disk": {"data": "100GB"}},
    "gcp-fabric": {"gpu": {"models": ["H100"], "count": 8}, "nodes": 2, "fabric": "any",
                   "clouds": ["gcp"], "purpose": "training"},
    "aws-efa": {"tier": "high-end", "purpose": "training", "nodes": 4, "clouds": ["aws"],
                "gpu": {"models": ["A100-80GB"], "count": 8}},
    "aws-mig": {"gpu": {"mig": "1g.10gb", "count": 8}, "clouds": ["aws"]},
    "aws-alone": {"purpose": "development", "gpu": {"models": ["L4"]}, "clouds": ["aws"],
                  "disk": {"data": "200GB"}},
    "aws-software": {
        "gpu": {"models": ["L4"]}, "clouds": ["aws"], "purpose": "inference",
        "software": {
            "framework": "pytorch==2.9", "packages": ["htop", "jq"],
            "run": "set -e\ncd /srv\nexec python3 serve.py --greeting 'it'\\''s up' \"$HOME\"\n",
            "before_stop": "curl -fsS localhost:8000/drain || true",
            "proxy": {"http": "http://proxy.internal:3128", "no_proxy": ["10.0.0.0/8"]},
            "mirrors": {"apt": "http://apt.internal/ubuntu", "pip": "https://pip.internal/simple"},
            "ssh_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH0123456789abcdefghijklmnopqrst op"],
        },
    },
    "aws-container": {
        "gpu": {"models": ["L4"]}, "clouds": ["aws"], "purpose": "inference",
        "software": {"container": {
            "image": "nvcr.io/nvidia/tritonserver:25.10-py3", "ports": [8000],
            "args": ["tritonserver", "--model-repository=/data/models"], "env": {"LOG": "info"},
        }},
    },
}  # fmt: skip


class Example(NamedTuple):
    """A plan, and the stack it is deployed in."""

    plan: WorkloadPlan
    stack: Stack


@cache
def catalog() -> Catalog:
    return load()


def planned(environment: str = "prod", name: str = "job", **fields: Any) -> WorkloadPlan:
    return plan_workload(name, Workload(**fields), catalog(), environment)


@cache
def examples() -> Mapping[str, Example]:
    return dict(_examples())


def _examples() -> Iterator[tuple[str, Example]]:
    for path in sorted((Path(__file__).parents[2] / "stacks").glob("Pulumi.*.yaml")):
        declaration = read_file(path)
        for plan in plan_declaration(declaration, catalog()).workloads:
            yield (
                f"{declaration.name}-{plan.name}",
                Example(plan, Stack("gputier", declaration.name)),
            )
    for name, fields in MORE.items():
        yield name, Example(planned(name=name, **fields), STACK)


def rendered(example: Example, bundle: Bundle = BUNDLE, inline: bytes | None = None) -> Rendered:
    return render(example.plan, catalog(), example.stack, bundle, inline)
