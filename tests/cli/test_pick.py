"""`gputier pick`: every field is a flag, and the search is the plan's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.cli.world import Run

from gputier.catalog import Catalog
from gputier.cli.pick_flags import Flag, flags, workload_of
from gputier.workload import CapacityChoice, ScheduleEntry, Workload
from gputier.workload.base import Spec

FLAGS = flags()


def leaves(spec: type[Spec], prefix: str = "") -> list[str]:
    """Paths of everything that can be declared, down to single values."""
    found: list[str] = []
    for name, field in spec.model_fields.items():
        inner = [kind for kind in SPECS if kind.__name__ in str(field.annotation)]
        if inner and name not in ("capacity", "schedule"):
            found += leaves(inner[0], f"{prefix}{name}.")
        else:
            found.append(f"{prefix}{name}")
    return found


def subclasses(spec: type[Spec]) -> list[type[Spec]]:
    return [one for sub in spec.__subclasses__() for one in (sub, *subclasses(sub))]


# Longest names first: `Model` is part of no other, but `Gpu` could be.
SPECS = sorted(subclasses(Spec), key=lambda kind: -len(kind.__name__))


def test_every_field_of_a_workload_is_a_flag() -> None:
    wanted = set(leaves(Workload)) | {
        f"capacity.{name}" for name in CapacityChoice.model_fields if name != "use"
    }
    assert wanted == {flag.path for flag in FLAGS}


def test_flags_have_a_name_of_their_own_and_say_what_they_are() -> None:
    names = [flag.name for flag in FLAGS]
    assert len(set(names)) == len(names)
    assert all(flag.help.endswith(".") for flag in FLAGS)
    own = {"--spot", "--environment", "--explain", "--why-not", "--json", "--catalog"}
    assert not own & set(names)


def test_the_names_of_flags_are_public(golden: Any) -> None:
    golden("cli/pick-flags.txt", "".join(f"{flag.name}  {flag.path}\n" for flag in FLAGS))


EXAMPLES: dict[str, Any] = {
    "tier": "mid",
    "purpose": "inference",
    "model.name": "llama-3.1-8b",
    "gpu.models": ("L4", "A10G"),
    "gpu.memory": "24GB",
    "gpu.count": "2",
    "gpu.nvlink": "600GB/s",
    "gpu.video_encode": True,
    "cpu.architecture": "arm64",
    "regions": ("aws:us-east-1", "aws:us-west-2", "gcp:us-central1"),
    "capacity": ("spot", "on_demand"),
    "schedule": (("0 20 * * *", "0 6 * * *", "UTC"),),
    "scale.max": "3",
    "budget.usd_per_month": "500",
    "budget.alerts": ("50", "100"),
}


def test_flags_make_the_workload_that_a_file_would() -> None:
    values = {flag.parameter: EXAMPLES[flag.path] for flag in FLAGS if flag.path in EXAMPLES}
    made = Workload(**workload_of(values, FLAGS))
    assert made == Workload(
        tier="mid",
        purpose="inference",
        model={"name": "llama-3.1-8b"},  # pyright: ignore[reportArgumentType]
        gpu={"models": ["L4", "A10G"], "memory": "24GB", "count": 2, "nvlink": "600GB/s",
             "video_encode": True},  # pyright: ignore[reportArgumentType]
        cpu={"architecture": "arm64"},  # pyright: ignore[reportArgumentType]
        regions={"aws": ["us-east-1", "us-west-2"], "gcp": ["us-central1"]},  # pyright: ignore[reportArgumentType]
        capacity=["spot", "on_demand"],  # pyright: ignore[reportArgumentType]
        schedule=[{"start": "0 20 * * *", "stop": "0 6 * * *", "timezone": "UTC"}],  # pyright: ignore[reportArgumentType]
        scale={"max": 3},  # pyright: ignore[reportArgumentType]
        budget={"usd_per_month": 500, "alerts": [50, 100]},  # pyright: ignore[reportArgumentType]
    )  # fmt: skip


def test_silence_declares_nothing() -> None:
    assert workload_of({}, FLAGS) == {}


def chosen(run: Run, *arguments: str) -> dict[str, Any]:
    ran = run("pick", *arguments, "--json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert document["schema"] == "gputier/plan/1"
    found: dict[str, Any] = document["workloads"][0]["chosen"]
    return found


def test_a_pick_is_the_plan_of_the_same_file(run: Run, project: Path, small: Catalog) -> None:
    (project / "pick.yaml").write_text(
        "workloads:\n  pick:\n    gpu: {memory: 24GB, count: 4}\n    clouds: [aws]\n"
        "    regions: {aws: [us-east-1]}\n    capacity: spot\n    tier: mid\n",
        encoding="utf-8",
    )
    by_flags = run("pick", "--gpu-memory", "24GB", "--gpu-count", "4", "--region",
                   "aws:us-east-1", "--spot", "--tier", "mid", "--json")  # fmt: skip
    by_file = run("plan", "pick.yaml", "--json")
    assert by_flags.out == by_file.out


def test_regions_alone_name_the_clouds_too(run: Run, small: Catalog) -> None:
    found = chosen(run, "--gpu-memory", "24GB", "--region", "aws:eu-central-1")
    assert (found["cloud"], found["region"]) == ("aws", "eu-central-1")


def test_a_cloud_that_is_named_beside_regions_stays_open(run: Run, small: Catalog) -> None:
    found = chosen(
        run, "--gpu-memory", "24GB", "--region", "aws:eu-central-1", "--cloud", "aws",
        "--cloud", "gcp",
    )  # fmt: skip
    assert found["cloud"] == "gcp"


def test_a_reservation_can_be_described(run: Run, small: Catalog) -> None:
    found = chosen(
        run, "--capacity", "reservation", "--instance-type", "p5.48xlarge", "--capacity-zone",
        "use1-az4", "--capacity-count", "4", "--nodes", "4", "--cloud", "aws",
    )  # fmt: skip
    assert (found["instance_type"], found["zones"], found["machines"]) == (
        "p5.48xlarge",
        ["use1-az4"],
        4,
    )


def test_a_flag_without_its_value_means_yes(run: Run, small: Catalog) -> None:
    found = chosen(run, "--nvlink", "--gpu-count", "2", "--cloud", "aws")
    assert found["instance_type"] == "p4d.24xlarge"


def test_the_environment_counts(run: Run, small: Catalog) -> None:
    ran = run("pick", "--gpu-memory", "24GB", "--environment", "prod", "--json")
    assert json.loads(ran.out)["environment"] == "prod"


WRONG: dict[Sequence[str], tuple[str, str]] = {
    ("--gpu-memory", "24"): ("`--gpu-memory` needs a unit, not `24`", "24 needs a unit: 24GB"),
    ("--tier", "midd"): ("`--tier` must be entry, mid or high-end, not `midd`", "mean `mid`?"),
    ("--gpu", "H1000"): ("--gpu: `H1000` is not a GPU model in the catalogue", "did you mean"),
    ("--region", "us-east-1"): (
        "--region: needs a cloud before the region, not `us-east-1`",
        "such as aws:us-east-1",
    ),
    ("--region", "asw:us-east-1"): ("--region: needs a cloud before the region", "mean `aws`?"),
    ("--region", "aws:us-east-11"): ("--region: `us-east-11` is not a region of aws", "us-east-1"),
    ("--model", "lama-3.1-8b"): ("--model: no model `lama-3.1-8b`", "did you mean `llama-3.1-8b`?"),
    ("--precision", "fp8"): ("the model says nothing that can be sized", "give one of `--model`"),
    ("--capacity", "reservation"): (
        "it needs `--instance-type` and `--capacity-zone`",
        "such as --capacity reservation --instance-type",
    ),
    ("--spot", "--capacity", "on_demand"): ("--spot: is short for", "repeat --capacity"),
    ("--scale-min", "3", "--scale-max", "2"): (
        "`--scale-min` is 3, more than `--scale-max`, which is 2",
        "",
    ),
    ("--budget-alert", "50"): ("`--budget` is needed here", ""),
    ("--schedule", "0 25 * * *", "0 6 * * *", "UTC"): ("--schedule: hour 25", ""),
    ("--gpu-memmory", "24GB"): ("has no option `--gpu-memmory`", "did you mean `--gpu-memory`?"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "said"), WRONG.items(), ids=map(" ".join, WRONG))
def test_a_mistake_names_the_flag(
    arguments: Sequence[str], said: tuple[str, str], run: Run, small: Catalog
) -> None:
    ran = run("pick", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said[0] in ran.err
    assert said[1] in ran.err
    assert "pydantic" not in ran.err
    assert "`gpu." not in ran.err


def test_all_mistakes_are_said_at_once(run: Run, small: Catalog) -> None:
    ran = run("pick", "--gpu-memory", "24", "--tier", "midd", "--nodes", "x")
    assert ran.err.startswith("error: 3 problems")


def test_the_first_line_is_the_answer(run: Run, small: Catalog) -> None:
    ran = run("pick", "--gpu-memory", "24GB", "--region", "aws:us-east-1")
    assert ran.out.startswith("g6.xlarge   aws us-east-1   $0.80/h   $588/month")


def test_flags_that_are_shown_as_words_are_the_schemas_words() -> None:
    by_name = {flag.name: flag for flag in FLAGS}
    assert by_name["--tier"].words == ("entry", "mid", "high-end")
    assert by_name["--capacity"].words[:2] == ("on_demand", "spot")
    assert by_name["--gpu-memory"].words == ()
    assert isinstance(by_name["--gpu"], Flag)
    assert by_name["--gpu"].several
    assert by_name["--vgpu"].yes_no
    assert ScheduleEntry.model_fields.keys() == {"start", "stop", "timezone"}
