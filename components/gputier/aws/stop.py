"""What stops a workload whose budget is exceeded: a topic that the budget alone may tell, and a
function that it calls (docs/adr/0016-what-stops-a-fleet-over-budget.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pulumi
import pulumi_aws as aws

from gputier.aws import stop_function
from gputier.aws.identity import RoleParts, allow, document, role_of
from gputier.aws.monitoring import topic_policy
from gputier.aws.place import Place, account_of
from gputier.aws.scaling import Hours
from gputier.plan.identity import GROUP_ARN, Statement

#: The newest that pulumi_aws knows (its enumeration Runtime, 7.51.1): the longest until it ages.
RUNTIME = "python3.14"
#: What Lambda calls: the runtime's SDK is handed to our code.
ENTRY = "import boto3\nimport stop\n\nhandler = stop.handler(boto3.client)\n"
SECONDS, MEGABYTES, LOG_DAYS = 60, 128, 30
#: Lambda's own least number of further tries is its default too (Lambda API 2015-03-31,
#: MaximumRetryAttempts: 0 to 2).
TRIES = 2


class Target(NamedTuple):
    """What is stopped: the function's settings, the values in its rights, and these."""

    settings: Mapping[str, pulumi.Input[str]]
    values: Mapping[str, pulumi.Input[str]]
    statements: tuple[Statement, ...]


def a_group(name: pulumi.Input[str]) -> Target:
    """An Auto Scaling group."""
    return Target({"GROUP": name}, {"group": name}, (EMPTY, SUSPEND))


def a_machine(machine: aws.ec2.Instance, hours: Hours) -> Target:
    """A lone machine, which its hours would start again."""
    settings: dict[str, pulumi.Input[str]] = {"MACHINE": machine.id}
    values: dict[str, pulumi.Input[str]] = {"machine": machine.arn}
    if hours.role is None or hours.halt is None:
        return Target(settings, values, (HALT_MACHINE,))
    settings |= {"HOURS": hours.role.name, "HALT": hours.halt.arn}
    values |= {"hours": hours.role.arn, "halt": hours.halt.arn}
    return Target(settings, values, (HALT_MACHINE, HALT_HOURS))


class Stop(pulumi.ComponentResource):
    """`topic` is what the budget tells, `told` where people hear of it."""

    topic: pulumi.Output[str]

    def __init__(
        self,
        place: Place,
        target: Target,
        *,
        told: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:aws:Stop", place.name, None, opts)
        self._place, self._target, self._told = place, target, told
        self._name, self._account = place.names.of("stop"), account_of(self)
        topic = self._topic()
        function = self._function(*self._role())
        self._called_by(topic, function)
        self.topic = topic.arn
        self.register_outputs({"topic": self.topic})

    def _options(self, *after: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=list(after))

    def _topic(self) -> aws.sns.Topic:
        """Of its own: who tells this one ends machines, and nobody but Budgets may."""
        place = self._place
        topic = aws.sns.Topic(
            place.logical("stop"),
            name=self._name,
            region=place.region,
            tags=place.tags,
            opts=self._options(),
        )
        policy = pulumi.Output.all(topic.arn, self._account.id).apply(
            lambda known: topic_policy(*known, services=("budgets",), sid="Budgets")
        )
        aws.sns.TopicPolicy(
            place.logical("stop"),
            arn=topic.arn,
            policy=policy,
            region=place.region,
            opts=self._options(),
        )
        return topic

    def _role(self) -> tuple[aws.iam.Role, aws.iam.RolePolicy]:
        place, account = self._place, self._account
        made = role_of(RoleParts(place, "stop", None, "lambda"), None, self)
        values = {
            "partition": account.partition,
            "region": place.region,
            "account": account.id,
            "budget": place.names.of("budget"),
            "told": self._told,
            "function": self._name,
            **self._target.values,
        }
        text = document((*self._target.statements, *ALWAYS), values)
        return made, allow(place.logical("stop"), made, text, self)

    def _function(self, role: aws.iam.Role, rights: aws.iam.RolePolicy) -> aws.lambda_.Function:
        place = self._place
        log = aws.cloudwatch.LogGroup(
            place.logical("stop"),
            name=f"/aws/lambda/{self._name}",
            retention_in_days=LOG_DAYS,
            region=place.region,
            tags=place.tags,
            opts=self._options(),
        )
        return aws.lambda_.Function(
            place.logical("stop"),
            name=self._name,
            description="Stops a workload whose budget is exceeded",
            runtime=RUNTIME,
            handler="index.handler",
            code=pulumi.AssetArchive(
                {name: pulumi.StringAsset(text) for name, text in code().items()}
            ),
            role=role.arn,
            timeout=SECONDS,
            memory_size=MEGABYTES,
            environment={
                "variables": {
                    "ACCOUNT": self._account.id,
                    "BUDGET": place.names.of("budget"),
                    "TOPIC": self._told,
                    **self._target.settings,
                }
            },
            region=place.region,
            tags=place.tags,
            # A log group that Lambda makes by itself is kept for ever.
            opts=self._options(rights, log),
        )

    def _called_by(self, topic: aws.sns.Topic, function: aws.lambda_.Function) -> None:
        place = self._place
        may = aws.lambda_.Permission(
            place.logical("stop"),
            statement_id="Budget",
            action="lambda:InvokeFunction",
            function=function.name,
            principal="sns.amazonaws.com",
            source_arn=topic.arn,
            region=place.region,
            opts=self._options(),
        )
        aws.sns.TopicSubscription(
            place.logical("stop"),
            topic=topic.arn,
            protocol="lambda",
            endpoint=function.arn,
            region=place.region,
            opts=self._options(may),
        )
        # A fleet that could not be stopped is worth a message more than one that was.
        aws.lambda_.FunctionEventInvokeConfig(
            place.logical("stop"),
            function_name=function.name,
            maximum_retry_attempts=TRIES,
            destination_config={"on_failure": {"destination": self._told}},
            region=place.region,
            opts=self._options(),
        )


def code() -> Mapping[str, str]:
    """The function's files, as they stand in this release."""
    ours = Path(stop_function.__file__).read_text(encoding="utf-8")
    return {"index.py": ENTRY, "stop.py": ours}


EMPTY = Statement(
    "Empty",
    ("autoscaling:UpdateAutoScalingGroup",),
    (GROUP_ARN,),
    (("NumericEqualsIfExists", "autoscaling:MinSize", "0"),),
    "end the group's machines; with a smallest size of none, and no other",
)
SUSPEND = Statement(
    "StopLaunches",
    ("autoscaling:SuspendProcesses",),
    (GROUP_ARN,),
    (),
    "nothing is launched again, by a schedule or a deployment either",
)
HALT_MACHINE = Statement(
    "StopMachine", ("ec2:StopInstances",), ("{machine}",), (), "stop the machine, its disks stay"
)
HALT_HOURS = Statement(
    "HaltHours",
    ("iam:AttachRolePolicy",),
    ("{hours}",),
    (("ArnEquals", "iam:PolicyARN", "{halt}"),),
    "take from its schedule the right to start it: one policy, which allows nothing",
)
ALWAYS = (
    Statement(
        "AskBudget",
        ("budgets:ViewBudget",),
        ("arn:{partition}:budgets::{account}:budget/{budget}",),
        (),
        "what was spent and what is declared, whatever a message says",
    ),
    Statement(
        "TellPeople", ("sns:Publish",), ("{told}",), (), "say what was done, or that it was not"
    ),
    Statement(
        "Log",
        ("logs:CreateLogStream", "logs:PutLogEvents"),
        ("arn:{partition}:logs:{region}:{account}:log-group:/aws/lambda/{function}:*",),
        (),
        "its own log, for a month",
    ),
)
