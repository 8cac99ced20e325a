"""The machines' account: of a fleet's own, with the plan's grants and nothing more."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
from tests.gcp import world
from tests.gcp.world import planned

from gputier import testing
from gputier.gcp import Identity, place_of
from gputier.plan import WorkloadPlan
from gputier.plan.identity_gcp import GROUP, Grant, condition, email, role_id

L4: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}
ENFORCED: dict[str, Any] = {**L4, "validation": {"gate": "enforce"}}
ACCOUNT = "gputier-test-job-node"
MEMBER = f"serviceAccount:{ACCOUNT}@{world.PROJECT}.iam.gserviceaccount.com"


def identity(plan: WorkloadPlan, **more: Any) -> testing.Run:
    def program() -> None:
        assert plan.chosen
        made = Identity(place_of(plan), plan.chosen.identity, bucket="reports-here", **more)
        pulumi.export("email", made.email)

    return world.run(program)


def rights(plan: WorkloadPlan) -> dict[str, Grant]:
    assert plan.chosen
    return {grant.key: grant for grant in plan.chosen.identity.grants}


def test_a_fleet_has_an_account_of_its_own_with_the_plans_grants() -> None:
    plan = planned(**ENFORCED)
    run = identity(plan)
    assert run.find("Account job-account").inputs["accountId"] == ACCOUNT
    assert run.outputs["email"] == MEMBER.removeprefix("serviceAccount:")
    made = [*run.of_type("BucketIAMMember"), *run.of_type("IAMMember")]
    assert {one.name.removeprefix("job-") for one in made} == set(rights(plan))
    assert {one.inputs["member"] for one in made} == {MEMBER}


def test_objects_are_granted_by_name_and_no_more_of_the_bucket() -> None:
    run = identity(planned(**L4))
    root = "projects/_/buckets/reports-here/objects/"
    told = {r.name: r.inputs["condition"]["expression"] for r in run.of_type("BucketIAMMember")}
    assert told == {
        "job-bundle": f'resource.name.startsWith("{root}bundles/")',
        "job-reports": f'resource.name.startsWith("{root}reports/job/")',
        "job-state": f'resource.name == "{root}breaker/job.json"'
        f' || resource.name == "{root}bad-hosts/job.json"',
    }


def test_nothing_but_metrics_logs_and_the_own_role_is_of_the_project() -> None:
    run = identity(planned(**ENFORCED))
    own = f"projects/{world.PROJECT}/roles/gputier_test_job_node"
    assert {r.name: r.inputs["role"] for r in run.of_type("IAMMember")} == {
        "job-metrics": "roles/monitoring.metricWriter",
        "job-logs": "roles/logging.logWriter",
        "job-group": own,
    }
    assert run.find("IAMCustomRole job-group").inputs["permissions"] == list(GROUP)


@pytest.mark.parametrize(
    "fields",
    [L4, {**L4, "validation": {"gate": "off"}}, {**L4, "purpose": "development"}],
    ids=["report", "off", "lone"],
)
def test_only_a_gate_that_keeps_somebody_out_may_do_something_to_groups(
    fields: dict[str, Any],
) -> None:
    assert "group" not in rights(planned(**fields))
    assert identity(planned(**fields)).of_type("IAMCustomRole") == []


@pytest.mark.parametrize(
    "given",
    ["ml-nodes", f"ml-nodes@{world.PROJECT}.iam.gserviceaccount.com",
     f"projects/p/serviceAccounts/ml-nodes@{world.PROJECT}.iam.gserviceaccount.com"],
)  # fmt: skip
def test_an_account_of_ones_own_is_used_and_given_nothing(given: str) -> None:
    run = identity(planned(**L4, identity={"role": given}))
    assert run.outputs["email"] == f"ml-nodes@{world.PROJECT}.iam.gserviceaccount.com"
    assert [r.label for r in run.records if not r.component] == []


def test_an_account_that_is_passed_in_comes_before_the_plans() -> None:
    run = identity(planned(**L4, identity={"role": "planned"}), account="a@b.example")
    assert run.outputs["email"] == "a@b.example"


def test_rights_follow_the_first_name_of_a_workload() -> None:
    found = rights(planned(**L4, was="former"))
    assert found["reports"].below == ("reports/former/",)
    assert found["state"].objects == ("breaker/former.json", "bad-hosts/former.json")


def test_amazon_has_no_grants_of_google() -> None:
    plan = planned(**L4, clouds=["aws"], regions={"aws": ["us-east-1"]})
    assert plan.chosen
    assert plan.chosen.identity.grants == ()


def test_every_object_that_a_node_touches_lies_below_a_grant() -> None:
    """docs/gates.md, permissions of a node: what is read, and what is written."""
    found = rights(planned(**L4))
    assert found["bundle"].role == "roles/storage.objectViewer"
    assert found["reports"].role == "roles/storage.objectCreator"
    assert found["state"].role == "roles/storage.objectUser"
    assert condition(found["metrics"], "b") is None


def test_a_roles_id_and_an_address_are_as_google_takes_them() -> None:
    assert role_id("web-prod-chat-node") == "web_prod_chat_node"
    assert email("node", "acme") == "node@acme.iam.gserviceaccount.com"
