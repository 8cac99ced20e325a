"""What machines may do: each right against what the node asks the cloud for, and no more."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from tests.plan.world import planned

import gputier.node
from gputier.boot import Bundle, Stack, settings
from gputier.plan import IdentityPlan, WorkloadPlan
from gputier.plan.names import names_of

NODE = Path(gputier.node.__file__).parent
L4: dict[str, Any] = {"clouds": ["aws"], "gpu": {"models": ["L4"]}}
#: Services of which these actions know no resource (service authorization reference).
WITHOUT_RESOURCE = {"ssm", "ssmmessages", "cloudwatch", "ec2"}


def plan_of(**fields: Any) -> WorkloadPlan:
    return planned({**L4, **fields})


def identity(**fields: Any) -> IdentityPlan:
    plan = plan_of(**fields)
    assert plan.chosen is not None
    return plan.chosen.identity


def actions(found: IdentityPlan) -> set[str]:
    return {action for one in found.statements for action in one.actions}


SHAPES: dict[str, dict[str, Any]] = {
    "a group": {}, "a lone machine": {"purpose": "development"},
    "a container": {"software": {"container": {"image": "nginx:1"}}},
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_no_action_is_a_wildcard_and_everything_stands_only_where_nothing_else_can(
    shape: str,
) -> None:
    for one in identity(**SHAPES[shape]).statements:
        assert not any("*" in action for action in one.actions), one.sid
        assert len(one.why) > 20
        if "*" in one.resources:
            assert {action.partition(":")[0] for action in one.actions} <= WITHOUT_RESOURCE
            assert "no resource" in one.why, one.sid
        else:
            assert all(resource.startswith("arn:{partition}:") for resource in one.resources)


def test_statements_have_names_of_their_own_that_iam_takes() -> None:
    sids = [one.sid for one in identity().statements]
    assert len(set(sids)) == len(sids)
    assert all(re.fullmatch(r"[A-Za-z0-9]+", sid) for sid in sids)


def test_placeholders_are_the_five_that_whoever_makes_the_role_fills_in() -> None:
    text = str(identity().statements)
    found = set(re.findall(r"\{(\w+)\}", text))
    assert found == {"partition", "region", "account", "bucket", "group"}


def asked_of_autoscaling() -> set[str]:
    """Every action that the node's own client names in a call."""
    tree = ast.parse((NODE / "cloud" / "autoscaling.py").read_text(encoding="utf-8"))
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    return {
        call.args[0].value
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "_call"
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    }


def test_a_group_may_do_what_its_gate_calls_and_nothing_else_of_auto_scaling() -> None:
    allowed = {a for a in actions(identity()) if a.startswith("autoscaling:")}
    assert allowed == {f"autoscaling:{name}" for name in asked_of_autoscaling()}


def test_a_lone_machine_may_do_nothing_to_any_group() -> None:
    assert not any(a.startswith("autoscaling:") for a in actions(identity(purpose="development")))


def test_reports_and_state_are_the_workloads_own() -> None:
    """The keys that the node writes (docs/gates.md) lie below what it may write."""
    for was, name in ((None, "job"), ("former", "former")):
        writable = [
            resource
            for one in identity(was=was).statements
            if "s3:PutObject" in one.actions
            for resource in one.resources
        ]
        bucket = "arn:{partition}:s3:::{bucket}"
        assert writable == [
            f"{bucket}/reports/{name}/*", f"{bucket}/breaker/{name}.json",
            f"{bucket}/bad-hosts/{name}.json",
        ]  # fmt: skip


def test_every_object_is_of_the_accounts_own_bucket() -> None:
    for one in identity().statements:
        if any(action.startswith("s3:") for action in one.actions):
            assert ("StringEquals", "s3:ResourceAccount", "{account}") in one.conditions


def test_the_machine_and_its_rights_agree_on_what_things_are_called() -> None:
    """After a rename too: settings and rights both hold the first name."""
    plan = plan_of(was="former")
    assert plan.chosen is not None
    told: Any = settings.settings(plan, Stack("gputier", "dev"), Bundle("0" * 64, "1"))
    assert told["workload"] == plan.chosen.fleet.resources == "former"
    names = names_of("aws", "gputier", "dev", "former")
    assert (told["gate"]["group"], told["gate"]["hook"]) == (names.of("group"), names.of("hook"))


def test_an_existing_role_a_boundary_and_the_fate_of_reports_are_passed_on() -> None:
    assert identity(identity={"role": "gpu-node"}).role == "gpu-node"
    bound = "arn:aws:iam::123456789012:policy/bound"
    assert identity(identity={"permissions_boundary": bound}).permissions_boundary == bound
    assert identity().reports == "keep"
    assert identity(identity={"reports": "remove"}).reports == "remove"


def test_what_an_existing_role_needs_is_listed_all_the_same() -> None:
    assert identity(identity={"role": "gpu-node"}).statements == identity().statements


def test_google_has_no_statements_of_amazon() -> None:
    plan = planned({"clouds": ["gcp"]})
    assert plan.chosen is not None
    assert plan.chosen.identity.statements == ()
