"""Budgets, parameters and schedules: the small services around a fleet."""

from __future__ import annotations

from typing import Any

from tests.engine.aws import request
from tests.engine.aws.found import plain
from tests.engine.aws.resource import Resource, pairs, tags_to_change
from tests.engine.aws.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import Props, is_unknown

NOTIFIED = ("notificationType", "comparisonOperator", "threshold", "thresholdType")
LIMITS = frozenset({"limitAmount", "limitUnit"})
ELSEWHERE = LIMITS | {"accountId", "namePrefix", "notifications", "costFilters", "tags"}
PERIOD = {"timePeriodStart": "Start", "timePeriodEnd": "End"}


class Budget(Resource):
    token = "aws:budgets/budget:Budget"
    service, creates = "budgets", "CreateBudget"
    renames = {"name": "BudgetName"}
    chosen = frozenset({"accountId", "timePeriodStart", "limitUnit", "limitAmount", "costFilters"})

    def request(self, aws: Session, inputs: Props) -> Props:
        form = request.shape(self.service, self.creates)
        left = {k: v for k, v in inputs.items() if k not in {*ELSEWHERE, *PERIOD}}
        budget = request.Translation(self.creates, self.renames).structure(
            form.members["Budget"], left
        )
        if "limitAmount" in inputs:
            unit = inputs.get("limitUnit", "USD")
            budget["BudgetLimit"] = {"Amount": inputs["limitAmount"], "Unit": unit}
        if filters := inputs.get("costFilters"):
            budget["CostFilters"] = (
                filters if is_unknown(filters) else {f["name"]: f["values"] for f in filters}
            )
        notices = [self._notice(notice) for notice in inputs.get("notifications", ())]
        tags = inputs.get("tags")
        return {
            "AccountId": inputs.get("accountId", aws.account),
            "Budget": budget,
            **({"NotificationsWithSubscribers": notices} if notices else {}),
            **({"ResourceTags": pairs(tags)} if tags else {}),
        }

    def _notice(self, notice: Props) -> Props:
        emails = notice.get("subscriberEmailAddresses", ())
        topics = notice.get("subscriberSnsTopicArns", ())
        if is_unknown(emails) or is_unknown(topics):
            emails, topics = (), ()
        people = [{"SubscriptionType": "EMAIL", "Address": to} for to in emails]
        people += [{"SubscriptionType": "SNS", "Address": to} for to in topics]
        told = {name[:1].upper() + name[1:]: notice[name] for name in NOTIFIED}
        return {
            "Notification": {**told, "Threshold": float(told["Threshold"])},
            "Subscribers": people,
        }

    def create(self, aws: Session, inputs: Props) -> str:
        made = self.request(aws, inputs)
        self.call(aws, self.creates, **made)
        return f"{made['AccountId']}:{inputs['name']}"

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        account, name = id_.split(":", 1)
        return self.call(aws, "DescribeBudget", AccountId=account, BudgetName=name)["Budget"]

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(aws, id_, live, inputs)
        limit = live.get("BudgetLimit", {})
        return {
            **{k: v for k, v in found.items() if k not in ("costFilters", "costTypes")},
            "accountId": id_.split(":", 1)[0],
            "arn": f"arn:aws:budgets::{aws.account}:budget/{live['BudgetName']}",
            "limitAmount": limit.get("Amount"),
            "limitUnit": limit.get("Unit"),
        }

    def update(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        """moto cannot update one: it goes and comes again, which nobody watches in between."""
        self.delete(aws, id_, olds)
        self.create(aws, news)

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        account, name = id_.split(":", 1)
        self.call(aws, "DeleteBudget", AccountId=account, BudgetName=name)


class Parameter(Resource):
    token = "aws:ssm/parameter:Parameter"
    service, creates, answer = "ssm", "PutParameter", "=name"
    renames = {"insecureValue": "Value"}
    apart = frozenset({"tags", "overwrite", "arn"})
    chosen = frozenset({"arn", "dataType", "keyId", "tier", "insecureValue", "value"})
    restless = {"version": ("value", "insecureValue", "description", "type")}

    def create(self, aws: Session, inputs: Props) -> str:
        name = super().create(aws, inputs)
        self._tags(aws, name, {}, inputs)
        return name

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        return self.call(aws, "GetParameter", Name=id_, WithDecryption=True)["Parameter"]

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        value = "insecureValue" if "insecureValue" in inputs else "value"
        found = super().describe(aws, id_, live, inputs)
        return {**found, "value": live["Value"], value: live["Value"], "arn": live["ARN"]}

    def _put(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        self.call(aws, self.creates, **self.request(aws, news), Overwrite=True)

    def _tags(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        gone, new = tags_to_change(olds, news)
        where = {"ResourceType": "Parameter", "ResourceId": id_}
        if gone:
            self.call(aws, "RemoveTagsFromResource", **where, TagKeys=gone)
        if new:
            self.call(aws, "AddTagsToResource", **where, Tags=pairs(new))

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        self.call(aws, "DeleteParameter", Name=id_)

    in_place = {
        "tags": _tags,
        **dict.fromkeys(("value", "insecureValue", "description", "type", "tier", "keyId"), _put),
    }


class Schedule(Resource):
    """A call of AWS's at set times, such as stopping a lone machine in the evening."""

    token = "aws:scheduler/schedule:Schedule"
    service, creates = "scheduler", "CreateSchedule"
    apart = frozenset({"namePrefix"})
    chosen = frozenset({"groupName", "state"})

    def check(self, aws: Session, inputs: Props) -> Any:
        yield from super().check(aws, inputs)
        when = inputs["scheduleExpression"]
        if not is_unknown(when) and not when.startswith(("cron(", "rate(", "at(")):
            yield (
                "scheduleExpression",
                f"ValidationException: {when!r} is neither cron, rate nor at",
            )

    def create(self, aws: Session, inputs: Props) -> str:
        self.call(aws, self.creates, **self.request(aws, inputs))
        return f"{inputs.get('groupName', 'default')}/{inputs['name']}"

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        group, name = id_.split("/", 1)
        return self.call(aws, "GetSchedule", GroupName=group, Name=name)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found: Any = plain(super().describe(aws, id_, live, inputs))
        return {k: v for k, v in found.items() if k not in ("startDate", "endDate")}

    def update(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        if olds.get("name") != news.get("name"):
            raise Refused("name", "a schedule keeps its name")
        self.call(aws, "UpdateSchedule", **self.request(aws, news))

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        group, name = id_.split("/", 1)
        self.call(aws, "DeleteSchedule", GroupName=group, Name=name)


TYPES: tuple[Resource, ...] = (Budget(), Parameter(), Schedule())
