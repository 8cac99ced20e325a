"""What AWS runs when a workload's budget says that it is exceeded: no machine runs from then on.

This file is the function's code as it stands (`stop.py` uploads it): it imports nothing but the
standard library, and the SDK of Lambda's runtime is handed to it. A message is a reason to look,
and no more: whether more was spent than declared is asked of the budget itself, so that a test
message, one that comes twice or one that comes late does nothing wrong. All it does may be done
twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

#: As the loop breaker does it (docs/gates.md): no schedule, policy or refresh launches anything
#: while this is suspended, and a deployment leaves it as it finds it.
LAUNCH = "Launch"
#: SNS takes a subject of less than 100 characters (SNS API 2010-03-31, Publish).
SUBJECT = 99
#: boto3's: a service and its region become a client.
Client = Callable[[str, str], Any]


def handler(client: Client) -> Callable[[object, object], str]:
    """Lambda's entry. An error is raised: Lambda tries again, and tells the topic in the end."""

    def handle(_event: object, _context: object) -> str:
        said = look(os.environ, client)
        print(said)  # noqa: T201 - Lambda keeps it in the function's log
        return said

    return handle


def look(settings: Mapping[str, str], client: Client) -> str:
    """Stops the workload when its budget is exceeded, and tells people; says what was done."""
    spent, limit = spending(settings, client)
    if spent <= limit:
        return f"{settings['BUDGET']}: {spent} of {limit} USD are spent, nothing is stopped"
    told = "\n".join(
        [
            f"{settings['BUDGET']}: {spent} USD are spent this month, and {limit} are declared.",
            *(_group(settings, client) if "GROUP" in settings else _machine(settings, client)),
            "Nothing starts it again by itself, in another month either, and neither does"
            " `pulumi up`. To resume it, see the runbook over-budget of gputier.",
        ]
    )
    topic = settings["TOPIC"]
    client("sns", topic.split(":")[3]).publish(
        TopicArn=topic, Subject=f"stopped over budget: {settings['BUDGET']}"[:SUBJECT], Message=told
    )
    return told


def spending(settings: Mapping[str, str], client: Client) -> tuple[Decimal, Decimal]:
    """What was spent this month and what is declared, USD."""
    found = client("budgets", settings["AWS_REGION"]).describe_budget(
        AccountId=settings["ACCOUNT"], BudgetName=settings["BUDGET"]
    )["Budget"]
    spent, limit = found["CalculatedSpend"]["ActualSpend"], found["BudgetLimit"]
    if spent["Unit"] != limit["Unit"]:
        raise ValueError(f"spent in {spent['Unit']} and declared in {limit['Unit']}")
    return Decimal(spent["Amount"]), Decimal(limit["Amount"])


def _group(settings: Mapping[str, str], client: Client) -> Iterator[str]:
    """First nothing is launched any more, and then the group is emptied: in this order nothing
    raises it in between."""
    name, scaling = settings["GROUP"], client("autoscaling", settings["AWS_REGION"])
    scaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=[LAUNCH])
    yield f"Launches of the group {name} are suspended."
    scaling.update_auto_scaling_group(AutoScalingGroupName=name, MinSize=0, DesiredCapacity=0)
    yield "Its machines are ended, those in standby apart."


def _machine(settings: Mapping[str, str], client: Client) -> Iterator[str]:
    """First its schedule may not start it any more, and then it is stopped."""
    region, machine = settings["AWS_REGION"], settings["MACHINE"]
    if role := settings.get("HOURS"):
        client("iam", region).attach_role_policy(RoleName=role, PolicyArn=settings["HALT"])
        yield f"Its schedule may not start it: {settings['HALT']} is attached to {role}."
    client("ec2", region).stop_instances(InstanceIds=[machine])
    yield f"The machine {machine} is stopped; its disks stay, and cost what they did."
