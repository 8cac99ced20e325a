"""What machines without a way to the internet cannot be given."""

from __future__ import annotations

from collections.abc import Iterator

from gputier.errors import Problem
from gputier.plan.network import NetworkPlan
from gputier.plan.verdict import Verdict
from gputier.workload import Workload


def egress_problems(workload: Workload, chosen: Verdict, network: NetworkPlan) -> Iterator[Problem]:
    """Software that comes over the internet, where only the cloud's own services are reached. What
    is reached from a network that is adopted, nobody here knows."""
    if chosen.type.cloud != "aws" or network.egress != "endpoints" or network.adopted:
        return
    software = workload.software
    mirrors, proxy = software.mirrors, software.proxy
    if proxy is not None:
        return
    way = "an image that holds it, or `network.egress: nat`"
    missing = "`network.egress: endpoints` reaches AWS's own services alone"
    if software.framework and not (mirrors and mirrors.pip):
        message = f"{software.framework} is fetched over the internet, and {missing}"
        yield Problem("software.framework", message, f"`software.mirrors.pip`, {way}")
    if software.packages and not (mirrors and mirrors.apt):
        message = f"packages are fetched over the internet, and {missing}"
        yield Problem("software.packages", message, f"`software.mirrors.apt`, {way}")
    if software.container and not (mirrors and mirrors.container):
        message = f"{software.container.image} is fetched over the internet, and {missing}"
        yield Problem("software.container.image", message, f"`software.mirrors.container`, {way}")
