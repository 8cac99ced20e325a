"""What watches: alarms, dashboards, log groups, and the topics that tell somebody."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.engine.aws.found import plain
from tests.engine.aws.resource import Resource, only, pairs, tags_to_change
from tests.engine.aws.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import Props


def _retag(kind: Any, aws: Session, id_: str, olds: Props, news: Props) -> None:
    """CloudWatch and SNS tag a thing by its ARN."""
    gone, new = tags_to_change(olds, news)
    parameter = {"cloudwatch": "ResourceARN", "sns": "ResourceArn"}[kind.service]
    where = {parameter: kind.arn_of(aws, id_)}
    if gone:
        kind.call(aws, "UntagResource", **where, TagKeys=gone)
    if new:
        kind.call(aws, "TagResource", **where, Tags=pairs(new))


class MetricAlarm(Resource):
    token = "aws:cloudwatch/metricAlarm:MetricAlarm"
    service, creates, answer = "cloudwatch", "PutMetricAlarm", "=name"
    renames = {
        "name": "AlarmName",
        "okActions": "OKActions",
        "metricQueries": "Metrics",
        "evaluateLowSampleCountPercentiles": "EvaluateLowSampleCountPercentile",
    }
    chosen = frozenset({"evaluateLowSampleCountPercentiles"})
    again = True
    in_place = {"tags": _retag}

    def arn_of(self, aws: Session, id_: str) -> str:
        return self.arn(aws, f"alarm:{id_}")

    def request(self, aws: Session, inputs: Props) -> Props:
        made = super().request(aws, inputs)
        for query in made.get("Metrics", ()):
            # The provider's block is flat where the API has the metric inside of the statistic.
            if stat := query.pop("MetricStat", None):
                query["MetricStat"] = stat
        return made

    def check(self, aws: Session, inputs: Props) -> Any:
        metrics = inputs.get("metricQueries", ())
        flat = {**inputs, "metricQueries": [_query(q) for q in metrics]} if metrics else inputs
        yield from super().check(aws, flat)

    def create(self, aws: Session, inputs: Props) -> str:
        return super().create(aws, self._flat(inputs))

    def update(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        super().update(aws, id_, self._flat(olds), self._flat(news))

    def _flat(self, inputs: Props) -> Props:
        queries = inputs.get("metricQueries")
        return {**inputs, "metricQueries": [_query(q) for q in queries]} if queries else inputs

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        return only(self.call(aws, "DescribeAlarms", AlarmNames=[id_])["MetricAlarms"])

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(aws, id_, live, inputs)
        found["arn"] = live["AlarmArn"]
        found["dimensions"] = {d["Name"]: d["Value"] for d in live.get("Dimensions", ())}
        found.pop("metricQueries", None)
        tags = self.call(aws, "ListTagsForResource", ResourceARN=live["AlarmArn"])["Tags"]
        return {**found, "tags": plain(tags) or ({} if "tags" in inputs else None)}

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        self.call(aws, "DeleteAlarms", AlarmNames=[id_])


def _query(query: Props) -> Props:
    """`metric {metricName, namespace, period, stat}` -> the API's MetricStat{Metric, ...}."""
    metric = query.get("metric")
    if not metric:
        return query
    inner = {k: v for k, v in metric.items() if k in ("metricName", "namespace", "dimensions")}
    outer = {k: v for k, v in metric.items() if k in ("period", "stat", "unit")}
    rest = {k: v for k, v in query.items() if k != "metric"}
    return {**rest, "metricStat": {**outer, "metric": inner}}


class Dashboard(Resource):
    token = "aws:cloudwatch/dashboard:Dashboard"
    service, creates, answer = "cloudwatch", "PutDashboard", "=dashboardName"
    named = ("", "")
    again = True

    def check(self, aws: Session, inputs: Props) -> Any:
        yield from super().check(aws, inputs)
        body = inputs["dashboardBody"]
        if isinstance(body, str) and body[:1] == "{" and not isinstance(_parsed(body), dict):
            yield "dashboardBody", "InvalidParameterInput: the body is no JSON object"

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        return self.call(aws, "GetDashboard", DashboardName=id_)

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        self.call(aws, "DeleteDashboards", DashboardNames=[id_])


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


class LogGroup(Resource):
    token = "aws:cloudwatch/logGroup:LogGroup"
    service, creates, answer = "logs", "CreateLogGroup", "=name"
    renames = {"name": "logGroupName"}
    apart = frozenset({"retentionInDays", "skipDestroy", "namePrefix"})
    chosen = frozenset({"logGroupClass"})

    def create(self, aws: Session, inputs: Props) -> str:
        name = super().create(aws, inputs)
        self._retain(aws, name, {}, inputs)
        return name

    def _retain(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        if days := news.get("retentionInDays"):
            self.call(aws, "PutRetentionPolicy", logGroupName=id_, retentionInDays=days)
        elif olds.get("retentionInDays"):
            self.call(aws, "DeleteRetentionPolicy", logGroupName=id_)

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        groups = self.call(aws, "DescribeLogGroups", logGroupNamePrefix=id_)["logGroups"]
        return only(group for group in groups if group["logGroupName"] == id_)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(aws, id_, live, inputs)
        tags = self.call(aws, "ListTagsLogGroup", logGroupName=id_)["tags"]
        arn = live["arn"].removesuffix(":*")
        retained = live.get("retentionInDays", 0 if "retentionInDays" in inputs else None)
        return {
            **found,
            "name": id_,
            "arn": arn,
            "retentionInDays": retained,
            "tags": tags or ({} if "tags" in inputs else None),
        }

    def _tags(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        gone, new = tags_to_change(olds, news)
        if gone:
            self.call(aws, "UntagLogGroup", logGroupName=id_, tags=gone)
        if new:
            self.call(aws, "TagLogGroup", logGroupName=id_, tags=new)

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        if not inputs.get("skipDestroy"):
            self.call(aws, "DeleteLogGroup", logGroupName=id_)

    in_place = {"retentionInDays": _retain, "tags": _tags}


# Inputs that are attributes in SNS: texts in a map.
TOPIC: Mapping[str, str] = {
    "displayName": "DisplayName",
    "kmsMasterKeyId": "KmsMasterKeyId",
    "policy": "Policy",
    "deliveryPolicy": "DeliveryPolicy",
    "fifoTopic": "FifoTopic",
    "contentBasedDeduplication": "ContentBasedDeduplication",
    "signatureVersion": "SignatureVersion",
    "tracingConfig": "TracingConfig",
}
SUBSCRIPTION: Mapping[str, str] = {
    "deliveryPolicy": "DeliveryPolicy",
    "filterPolicy": "FilterPolicy",
    "filterPolicyScope": "FilterPolicyScope",
    "rawMessageDelivery": "RawMessageDelivery",
    "redrivePolicy": "RedrivePolicy",
    "subscriptionRoleArn": "SubscriptionRoleArn",
}


class Sns(Resource):
    service = "sns"
    attributes: Mapping[str, str] = {}

    def arn_of(self, aws: Session, id_: str) -> str:
        return id_

    def request(self, aws: Session, inputs: Props) -> Props:
        ours = {k: v for k, v in inputs.items() if k in self.attributes}
        others = {k: v for k, v in inputs.items() if k not in ours}
        values = {self.attributes[name]: _attribute(value) for name, value in ours.items()}
        return {**super().request(aws, others), **({"Attributes": values} if values else {})}

    def described(self, live: Props) -> Props:
        return {name: live[member] for name, member in self.attributes.items() if member in live}


def _attribute(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _topic_attributes(_kind: Any, aws: Session, id_: str, olds: Props, news: Props) -> None:
    for name, member in TOPIC.items():
        if olds.get(name) != news.get(name):
            value = {"AttributeName": member, "AttributeValue": _attribute(news.get(name, ""))}
            aws.client("sns").set_topic_attributes(TopicArn=id_, **value)


class Topic(Sns):
    token = "aws:sns/topic:Topic"
    creates, answer = "CreateTopic", "TopicArn"
    attributes = TOPIC
    apart = frozenset({"namePrefix"})
    chosen = frozenset({"policy", "signatureVersion", "beginningArchiveTime"})
    in_place = {"tags": _retag, **dict.fromkeys(TOPIC, _topic_attributes)}

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        return self.call(aws, "GetTopicAttributes", TopicArn=id_)["Attributes"]

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        tags = plain(self.call(aws, "ListTagsForResource", ResourceArn=id_)["Tags"])
        return {
            **self.described(live),
            "arn": id_,
            "name": id_.rsplit(":", 1)[1],
            "owner": live["Owner"],
            "tags": tags or ({} if "tags" in inputs else None),
        }

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        self.call(aws, "DeleteTopic", TopicArn=id_)


class TopicSubscription(Sns):
    token = "aws:sns/topicSubscription:TopicSubscription"
    creates, answer = "Subscribe", "SubscriptionArn"
    named = ("", "")
    attributes = SUBSCRIPTION
    renames = {"topic": "TopicArn"}
    apart = frozenset({"confirmationTimeoutInMinutes", "endpointAutoConfirms"})

    def request(self, aws: Session, inputs: Props) -> Props:
        return {**super().request(aws, inputs), "ReturnSubscriptionArn": True}

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        found = self.call(aws, "GetSubscriptionAttributes", SubscriptionArn=id_)
        return found["Attributes"]

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        return {
            **self.described(live),
            "arn": id_,
            "topic": live["TopicArn"],
            "endpoint": live["Endpoint"],
            "protocol": live["Protocol"],
            "ownerId": aws.account,
            "pendingConfirmation": live.get("PendingConfirmation") == "true",
        }

    def _attributes(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        for name, member in SUBSCRIPTION.items():
            if olds.get(name) != news.get(name):
                value = {"AttributeName": member, "AttributeValue": _attribute(news.get(name, ""))}
                self.call(aws, "SetSubscriptionAttributes", SubscriptionArn=id_, **value)

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        self.call(aws, "Unsubscribe", SubscriptionArn=id_)

    in_place = dict.fromkeys(SUBSCRIPTION, _attributes)


class TopicPolicy(Sns):
    token = "aws:sns/topicPolicy:TopicPolicy"
    creates = "SetTopicAttributes"
    named = ("", "")
    again = True

    def request(self, aws: Session, inputs: Props) -> Props:
        policy = {"AttributeName": "Policy", "AttributeValue": inputs["policy"]}
        return {"TopicArn": inputs["arn"], **policy}

    def create(self, aws: Session, inputs: Props) -> str:
        self.call(aws, self.creates, **self.request(aws, inputs))
        return inputs["arn"]

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        return self.call(aws, "GetTopicAttributes", TopicArn=id_)["Attributes"]

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        return {"arn": id_, "policy": live["Policy"], "owner": live["Owner"]}

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        """A topic always has a policy: the provider puts back the owner's own."""
        everything = {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{aws.account}:root"},
            "Action": ["sns:Publish", "sns:Subscribe"],
            "Resource": id_,
        }
        document = json.dumps({"Version": "2012-10-17", "Statement": [everything]})
        policy = {"AttributeName": "Policy", "AttributeValue": document}
        if not id_.startswith("arn:"):
            raise Refused("arn", f"{id_} is no topic")
        self.call(aws, "SetTopicAttributes", TopicArn=id_, **policy)


TYPES: tuple[Resource, ...] = (
    MetricAlarm(),
    Dashboard(),
    LogGroup(),
    Topic(),
    TopicSubscription(),
    TopicPolicy(),
)
