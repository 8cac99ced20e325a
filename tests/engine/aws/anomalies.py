"""Cost anomaly monitors and who hears of what they find. moto has neither: what botocore's model
takes is kept as it was asked for."""

from __future__ import annotations

import json
from typing import Any

from tests.engine.aws.resource import Resource, digest, pairs
from tests.engine.aws.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import Props, is_unknown


class Kept(Resource):
    service = "ce"
    kind_ = ""
    around = ""  # the member that holds the inputs

    def request(self, aws: Session, inputs: Props) -> Props:
        from_inputs = {k: v for k, v in self.inner(inputs).items() if v is not None}
        tags = inputs.get("tags")
        return {self.around: from_inputs, **({"ResourceTags": pairs(tags)} if tags else {})}

    def inner(self, inputs: Props) -> Props:
        raise NotImplementedError

    def create(self, aws: Session, inputs: Props) -> str:
        self.may(aws, inputs)
        made = self.request(aws, inputs)
        id_ = f"arn:aws:ce::{aws.account}:{self.kind_}/{digest(inputs['name'])}"
        aws.kept(self.kind_)[id_] = {"asked": made, "inputs": inputs}
        return id_

    def may(self, aws: Session, inputs: Props) -> None:
        """What AWS refuses for what is there already."""

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        return aws.kept(self.kind_).get(id_)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        return {**live["inputs"], "arn": id_}

    def _again(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        aws.kept(self.kind_)[id_] = {"asked": self.request(aws, news), "inputs": news}

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        del aws.kept(self.kind_)[id_]

    in_place = dict.fromkeys(
        ("name", "tags", "frequency", "monitorArnLists", "subscribers", "thresholdExpression"),
        _again,
    )


class Monitor(Kept):
    token = "aws:costexplorer/anomalyMonitor:AnomalyMonitor"
    creates, kind_, around = "CreateAnomalyMonitor", "anomalymonitor", "AnomalyMonitor"
    in_place = {name: Kept.in_place[name] for name in ("name", "tags")}

    def inner(self, inputs: Props) -> Props:
        text: Any = inputs.get("monitorSpecification")
        return {
            "MonitorName": inputs["name"],
            "MonitorType": inputs["monitorType"],
            "MonitorDimension": inputs.get("monitorDimension"),
            "MonitorSpecification": text if text is None or is_unknown(text) else _told(text),
        }

    def may(self, aws: Session, inputs: Props) -> None:
        """One of each of AWS's own dimensions in an account (its own words, 2026-05:
        github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/2515)."""
        others = [kept["inputs"] for kept in aws.kept(self.kind_).values()]
        dimension = inputs.get("monitorDimension")
        if dimension and dimension in [other.get("monitorDimension") for other in others]:
            raise Refused(
                "monitorDimension", "Limit exceeded on dimensional spend monitor creation"
            )


def _told(text: str) -> Props:
    """Without what is told as nothing, at any depth."""
    found: Props = json.loads(text)
    return {
        key: {k: v for k, v in value.items() if v is not None}
        for key, value in found.items()
        if value is not None
    }


class Subscription(Kept):
    token = "aws:costexplorer/anomalySubscription:AnomalySubscription"
    creates, kind_, around = (
        "CreateAnomalySubscription",
        "anomalysubscription",
        "AnomalySubscription",
    )
    chosen = frozenset({"accountId"})
    in_place = {name: way for name, way in Kept.in_place.items() if name != "name"}

    def inner(self, inputs: Props) -> Props:
        expression: Any = inputs["thresholdExpression"]
        read = expression["dimension"]
        return {
            "SubscriptionName": inputs["name"],
            "Frequency": inputs["frequency"],
            "MonitorArnList": inputs["monitorArnLists"],
            "Subscribers": [
                {"Type": to["type"], "Address": to["address"]} for to in inputs["subscribers"]
            ],
            "ThresholdExpression": {
                "Dimensions": {
                    "Key": read["key"],
                    "MatchOptions": read["matchOptions"],
                    "Values": read["values"],
                }
            },
        }


TYPES: tuple[Resource, ...] = (Monitor(), Subscription())
