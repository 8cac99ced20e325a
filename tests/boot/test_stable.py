"""What changes user data, and with it machines, and what does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.boot.examples import BUNDLE, STACK, Example, catalog, planned, rendered

import gputier
from gputier.boot import Bundle, Stack, render
from gputier.catalog import load
from gputier.catalog.load import Catalog
from gputier.plan import plan_workload
from gputier.workload import Discount, Workload

#: Everything is pinned, so that a change of what is declared changes no choice.
BASE: Mapping[str, Any] = {
    "purpose": "inference",
    "gpu": {"models": ["L4"]},
    "clouds": ["aws"],
    "regions": {"aws": ["us-east-1"]},
    "capacity": {"use": "on_demand", "instance_type": "g6.2xlarge"},
    "software": {"run": "exec /srv/start"},
}


def text(**fields: Any) -> str:
    return rendered(Example(planned(**{**BASE, **fields}), STACK)).text


STANDS: Mapping[str, Mapping[str, Any]] = {
    "a schedule": {"schedule": [{"start": "0 8 * * mon-fri", "stop": "0 18 * * mon-fri",
                                 "timezone": "Europe/Berlin"}]},
    "scaling": {"scale": {"min": 1, "max": 6, "metric": "gpu_utilization", "target": 70}},
    "another maximum": {"scale": {"min": 1, "max": 9, "metric": "gpu_utilization", "target": 70}},
    "a budget": {"budget": {"usd_per_month": 400, "alerts": [50, 100]}},
    "a price ceiling": {"max_usd_per_hour": 20},
    "hours": {"hours_per_month": 200},
    "a leaning": {"prefer": "speed"},
    "more regions to choose from": {"regions": {"aws": ["us-east-1", "us-west-2"]}},
    "the way out": {"network": {"egress": "public"}},
    "spot": {"capacity": {"use": "spot", "instance_type": "g6.2xlarge"}},
    "a speed of the volume": {"disk": {"throughput": "200MB/s"}},
    "tags": {"tags": {"team": "vision"}},
    "how a change is rolled out": {"rollout": "new-machines"},
    "a role of one's own": {"identity": {"role": "gpu-node"}},
    "a bound of its rights": {"identity": {"permissions_boundary": "arn:aws:iam::1:policy/b"}},
    "the fate of reports": {"identity": {"reports": "remove"}},
    "a key": {"disk": {"kms_key": "create"}},
    "a network of one's own": {"network": {"vpc": "vpc-0abc", "subnets": ["subnet-0abc"]}},
    "its present name said as a former one": {"was": "job"},
    "floors that the machine meets": {"memory": "16GiB", "cpu": {"count": 4}},
}  # fmt: skip


@pytest.mark.parametrize("name", STANDS)
def test_what_no_boot_reads_leaves_user_data_alone(name: str) -> None:
    assert text(**STANDS[name]) == text(), name


CHANGES: Mapping[str, Mapping[str, Any]] = {
    "another machine": {"capacity": {"use": "on_demand", "instance_type": "g6.4xlarge"}},
    "a data volume": {"disk": {"data": "100GB"}},
    "what runs": {"software": {"run": "exec /srv/other"}},
    "what runs before a stop": {"software": {"run": "exec /srv/start", "before_stop": "sync"}},
    "a container": {"software": {"container": {"image": "nginx:1"}}},
    "a framework": {"software": {"run": "exec /srv/start", "framework": "pytorch==2.9"}},
    "packages": {"software": {"run": "exec /srv/start", "packages": ["htop"]}},
    "a proxy": {"software": {"run": "exec /srv/start", "proxy": {"http": "http://p:3128"}}},
    "a mirror": {"software": {"run": "exec /srv/start", "mirrors": {"pip": "https://p/simple"}}},
    "the gate": {"validation": {"gate": "report"}},
    "the depth": {"validation": {"depth": "standard"}},
    "a lone machine": {"purpose": "development"},
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_boot_reads_changes_user_data(name: str) -> None:
    assert text(**CHANGES[name]) != text(), name


def test_machines_that_work_together_are_told_of_their_fabric() -> None:
    fields: dict[str, Any] = {"gpu": {"models": ["A100-80GB"], "count": 8}, "clouds": ["aws"],
                              "purpose": "training"}  # fmt: skip
    alone, four = (
        rendered(Example(planned(**fields, nodes=nodes), STACK)).text for nodes in (1, 4)
    )
    assert '"FI_PROVIDER":"efa"' not in alone
    assert '"FI_PROVIDER":"efa"' in four


def test_a_renamed_workload_keeps_its_user_data() -> None:
    renamed = Example(planned(name="new", was="job", **BASE), STACK)
    assert rendered(renamed).text == text()


def test_a_snapshot_of_a_data_volume_is_its_contents_and_not_the_machines() -> None:
    blank = text(disk={"data": "100GB"})
    assert text(disk={"data": "100GB", "snapshot": "snap-0abc"}) == blank


def test_a_price_that_changes_replaces_no_machine(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text(
        "provider,region,zone,instance_type,purchase,usd_per_hour,currency,as_of,source\n"
        "aws,us-east-1,,g6.2xlarge,on_demand,0.0123,USD,2026-09-01,mine\n",
        encoding="utf-8",
    )
    cheaper: Catalog = load(tmp_path)
    assert cheaper.id != catalog().id
    plan = plan_workload("job", Workload(**BASE), cheaper, "prod")
    before = planned(**BASE)
    assert plan.chosen
    assert before.chosen
    assert plan.chosen.usd_per_hour != before.chosen.usd_per_hour
    assert render(plan, cheaper, STACK, BUNDLE).text == text()


def test_a_discount_replaces_no_machine() -> None:
    granted = (Discount(cloud="aws", families=("g6",), percent=27, reason="a savings plan"),)
    plan = plan_workload("job", Workload(**BASE), catalog(), "prod", granted)
    assert render(plan, catalog(), STACK, BUNDLE).text == text()


def test_a_new_release_replaces_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of the version is what the lock pins."""
    before = text()
    monkeypatch.setattr(gputier, "__version__", "9.9.9")
    monkeypatch.setattr("gputier.node.__version__", "9.9.9")
    assert text() == before
    assert "9.9.9" not in before


@pytest.mark.parametrize(
    "example",
    [
        Example(planned(**BASE), Stack("other", "test")),
        Example(planned(**BASE), Stack("gputier", "other")),
        Example(planned(name="other", **BASE), STACK),
        Example(planned("dev", **BASE), STACK),
    ],
    ids=["project", "stack", "workload", "environment"],
)
def test_another_place_is_another_machine(example: Example) -> None:
    assert rendered(example).text != text()


def test_the_organisation_of_a_stack_changes_nothing() -> None:
    example = Example(planned(**BASE), Stack("gputier", "acme/gputier/test"))
    assert rendered(example).text == text()


def test_another_bundle_is_another_boot() -> None:
    example = Example(planned(**BASE), STACK)
    assert rendered(example, Bundle("f" * 64, "0.1.0")).text != text()
