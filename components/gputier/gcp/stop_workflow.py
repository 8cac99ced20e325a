"""What Google runs when a budget says what was spent: too much, and no machine runs from then on.

The text of a workflow in the language of Cloud Workflows, for a group and for a lone machine. It is
the same for every fleet: what differs is in its environment. A budget tells its state several times
a day, whatever was spent (docs.cloud.google.com/billing, budgets-programmatic-notifications, 2025),
and Google keeps what was spent nowhere else, so here the message is what is believed: of this
budget, and of this month alone. A message that comes twice finds everything stopped already.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Step = Mapping[str, Mapping[str, Any]]
#: Months of a budget begin in Pacific time (billingbudgets v1 discovery of 2026-11, Filter,
#: calendarPeriod). A day is added to a month's first moment, which messages give in one zone or the
#: other: it is in that month in both.
MONTHS = "America/Los_Angeles"
DAY_SECONDS = 86400
#: Two moments of one month, as the first characters of a date.
MONTH = "text.substring(time.format({0}, zone), 0, 7)"
#: Whom a log entry of this severity is worth a word (gcp/stop.py).
SEVERITY = "WARNING"


def group_source(*, scaled: bool, regional: bool) -> str:
    """The workflow of a group in one zone or in a region, with an autoscaler or without."""
    kind = "regionInstanceGroupManagers" if regional else "instanceGroupManagers"
    where = {"project": _env("PROJECT"), ("region" if regional else "zone"): _env("WHERE")}
    group = {**where, "instanceGroupManager": _env("NAME")}
    scaler = "regionAutoscalers" if regional else "autoscalers"
    looks: list[Step] = [_call("look", f"{kind}.get", group, "group")]
    acts: list[Step] = [_call("empty", f"{kind}.resize", {**group, "size": 0})]
    stopped = 'default(map.get(group, "targetSize"), 0) == 0'
    if scaled:
        own = {**where, "autoscaler": _env("AUTOSCALER")}
        off = {**own, "body": {"autoscalingPolicy": {"mode": "OFF"}}}
        looks.append(_call("look_at_scaling", f"{scaler}.get", own, "scaler"))
        # First nothing raises the size any more, then it is none.
        acts.insert(0, _call("stop_scaling", f"{scaler}.patch", off))
        stopped += ' and map.get(scaler.autoscalingPolicy, "mode") == "OFF"'
    return _source(looks, stopped, acts)


def machine_source() -> str:
    """The workflow of a lone machine: what starts it by the clock is taken from it, and then it is
    stopped. Its disks stay, local ones apart."""
    at = {"project": _env("PROJECT"), "zone": _env("WHERE"), "instance": _env("NAME")}
    hours = 'default(map.get(machine, "resourcePolicies"), [])'
    looks: list[Step] = [
        _call("look", "instances.get", at, "machine"),
        {"hours": {"assign": [{"hours": _is(hours)}]}},
    ]
    body = {"resourcePolicies": _is("hours")}
    detach = _call("detach", "instances.removeResourcePolicies", {**at, "body": body})
    acts: list[Step] = [
        {"scheduled": {"switch": [{"condition": _is("len(hours) > 0"), "steps": [detach]}]}},
        # Google wants to be told what becomes of local disks, on which nothing outlives a stop.
        _call("stop", "instances.stop", {**at, "discardLocalSsd": True}),
    ]
    return _source(looks, 'machine.status == "TERMINATED" and len(hours) == 0', acts)


def _source(looks: Sequence[Step], stopped: str, acts: Sequence[Step]) -> str:
    """The whole text: is it ours and of this month, is too much spent, is anything to stop."""
    begun = f"time.parse(told.costIntervalStart) + {DAY_SECONDS}"
    now, then = MONTH.format("sys.now()"), MONTH.format(begun)
    ours = 'attributes.budgetId == sys.get_env("BUDGET")'
    account = 'attributes.billingAccountId == sys.get_env("BILLING_ACCOUNT")'
    steps: list[Step] = [
        {
            "read": {
                "assign": [
                    {"zone": MONTHS},
                    {"attributes": _is("event.data.message.attributes")},
                    {"told": _is("json.decode(base64.decode(event.data.message.data))")},
                ]
            }
        },
        _unless("ours", f"{ours} and {account}", "a message of another budget"),
        _unless("this_month", f"{now} == {then}", "a message of another month"),
        _unless("spent", "told.costAmount > told.budgetAmount", "no more is spent than declared"),
        *looks,
        {"running": {"switch": [{"condition": _is(stopped), "return": "it is stopped already"}]}},
        *acts,
        {
            "say": {
                "call": "sys.log",
                "args": {"severity": SEVERITY, "text": _is(SAID)},
            }
        },
        {"done": {"return": "it is stopped"}},
    ]
    return json.dumps({"main": {"params": ["event"], "steps": steps}}, indent=1) + "\n"


SAID = (
    '"over budget: " + sys.get_env("NAME") + " is stopped, " + string(told.costAmount) + " "'
    ' + told.currencyCode + " are spent this month, and " + string(told.budgetAmount)'
    ' + " are declared. See the runbook over-budget of gputier."'
)


def _unless(name: str, condition: str, why: str) -> Step:
    """Ends the workflow, saying why, unless the condition holds."""
    return {name: {"switch": [{"condition": _is(f"not ({condition})"), "return": why}]}}


def _call(name: str, method: str, args: Mapping[str, Any], result: str | None = None) -> Step:
    """A call of Compute Engine that waits until it is done (Workflows reference, connectors)."""
    found: dict[str, Any] = {"call": f"googleapis.compute.v1.{method}", "args": dict(args)}
    return {name: {**found, "result": result} if result else found}


def _env(name: str) -> str:
    return _is(f'sys.get_env("{name}")')


def _is(expression: str) -> str:
    return f"${{{expression}}}"
