"""`gputier catalog`: filters, one machine whole, side by side, overlays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.world import Run

from gputier.catalog import Catalog, load
from gputier.cli.catalog_show import zones_text


def names(run: Run, *arguments: str) -> list[str]:
    ran = run("catalog", *arguments, "--json")
    assert ran.code == 0, ran.err
    found: list[str] = [one["instance_type"] for one in json.loads(ran.out)["types"]]
    return found


FILTERS: dict[tuple[str, ...], list[str]] = {
    ("--gpu", "A10G"): ["g5.xlarge"],
    ("--gpu", "L4", "--gpu", "a10g", "--cloud", "aws"): [
        "g6.xlarge",
        "g6.2xlarge",
        "g5.xlarge",
        "g6.12xlarge",
    ],
    ("--memory", "80GB"): ["p5.48xlarge", "a3-highgpu-8g", "a3-edgegpu-8g"],
    ("--total-memory", "96GB", "--cloud", "aws"): ["g6.12xlarge", "p4d.24xlarge", "p5.48xlarge"],
    ("--gpus", "8", "--cloud", "gcp"): ["a3-highgpu-8g", "a3-edgegpu-8g"],
    ("--capability", "9.0", "--cloud", "aws"): ["p5.48xlarge"],
    ("--graphics", "vulkan", "--memory", "48GB"): ["g6e.xlarge", "g6e.4xlarge"],
    ("--encode", "--memory", "40GB"): ["g6e.xlarge", "g6e.4xlarge"],
    ("--decode", "--gpu", "A100"): ["a2-highgpu-1g", "p4d.24xlarge"],
    ("--vgpu", "--arch", "arm64"): [],
    ("--mig", "--cloud", "gcp", "--max-price", "5"): ["a2-highgpu-1g"],
    ("--nvlink", "--cloud", "aws"): ["p4d.24xlarge", "p5.48xlarge"],
    ("--fabric", "gpudirect-tcpx"): ["a3-highgpu-8g", "a3-edgegpu-8g"],
    ("--fabric", "any", "--cloud", "aws"): ["g6.12xlarge", "p4d.24xlarge", "p5.48xlarge"],
    ("--network", "1000Gbps"): ["p5.48xlarge", "a3-highgpu-8g"],
    ("--vcpu", "192"): ["p5.48xlarge", "a3-highgpu-8g", "a3-edgegpu-8g"],
    ("--host-memory", "1500GiB"): ["p5.48xlarge", "a3-highgpu-8g", "a3-edgegpu-8g"],
    ("--scratch", "5TiB", "--max-price", "1"): ["n1+nvidia-tesla-t4x1"],
    ("--arch", "arm64"): ["g5g.2xlarge"],
    ("--like", "tesla"): ["n1+nvidia-tesla-t4x1"],
    ("--region", "aws:eu-central-1", "--gpu", "L4"): ["g6.xlarge", "g6.2xlarge", "g6.12xlarge"],
    ("--region", "us-east4", "--memory", "24GB"): [
        "g2-standard-8",
        "a3-highgpu-8g",
        "a3-edgegpu-8g",
    ],
    ("--max-price", "0.55"): ["g4dn.xlarge", "Standard_NC4as_T4_v3", "n1+nvidia-tesla-t4x1"],
    ("--max-price", "0.40", "--spot", "--cloud", "aws"): [
        "g5g.2xlarge",
        "g4dn.xlarge",
        "g4dn.2xlarge",
    ],
    ("--cloud", "azure"): ["Standard_NC4as_T4_v3"],
    ("--cloud", "gcp", "--sort", "name", "--memory", "40GB"): [
        "a2-highgpu-1g",
        "a3-edgegpu-8g",
        "a3-highgpu-8g",
    ],
    ("--cloud", "gcp", "--sort", "memory", "--memory", "40GB"): [
        "a3-highgpu-8g",
        "a3-edgegpu-8g",
        "a2-highgpu-1g",
    ],
}


@pytest.mark.parametrize(("arguments", "expected"), FILTERS.items(), ids=map(" ".join, FILTERS))
def test_a_filter_keeps_what_meets_it_cheapest_first(
    arguments: tuple[str, ...], expected: list[str], run: Run, small: Catalog
) -> None:
    assert names(run, *arguments) == expected


def test_every_filter_is_tried_above() -> None:
    from gputier.cli.catalog_filters import Filters

    tried = {word.removeprefix("--").replace("-", "_") for words in FILTERS for word in words}
    assert set(Filters.__dataclass_fields__) <= tried


def test_a_price_is_of_the_regions_that_are_asked_for(run: Run, small: Catalog) -> None:
    ran = run("catalog", "--gpu", "A10G", "--region", "aws:eu-central-1", "--json")
    (found,) = json.loads(ran.out)["types"]
    assert found["cheapest"] == {
        "region": "eu-central-1",
        "usd_per_hour": 1.258,
        "host": None,
        "as_of": "2026-08-26",
        "source": "tsaol-aws-gpu",
    }


def test_a_composed_machine_is_priced_with_its_cheapest_host(run: Run, small: Catalog) -> None:
    ran = run("catalog", "--like", "tesla", "--json")
    (found,) = json.loads(ran.out)["types"]
    host = small.price("gcp", "n1-standard-4", "us-central1", "on_demand")
    gpu = small.price("gcp", "accelerator:nvidia-tesla-t4", "us-central1", "on_demand")
    assert host
    assert gpu
    assert found["cheapest"]["host"] == "n1-standard-4"
    assert found["cheapest"]["usd_per_hour"] == round(host.usd_per_hour + gpu.usd_per_hour, 6)
    assert found["vcpus"] is None
    assert found["vcpu_range"] == [1.0, 48.0]


def test_regions_that_must_be_named_lend_no_price_to_a_list(run: Run) -> None:
    """GovCloud and China are no ordinary account's: they never make a machine look cheap."""
    ran = run("catalog", "--cloud", "aws", "--json")
    regions = {one["cheapest"]["region"] for one in json.loads(ran.out)["types"] if one["cheapest"]}
    assert not {name for name in regions if name.startswith(("cn-", "us-gov-"))}
    assert load().price("aws", "g5.xlarge", "cn-northwest-1", "on_demand"), "nothing to lend"


def test_an_unknown_name_in_a_filter_is_refused_with_all_others(run: Run, small: Catalog) -> None:
    ran = run("catalog", "--gpu", "L45", "--gpu", "L4", "--region", "us-est-1", "--region", "x:y")
    assert ran.code == 2
    assert ran.err.startswith("error: 3 problems")
    assert "--gpu: `L45` is not a GPU model in the catalogue" in ran.err
    assert "--region: `us-est-1` is not a region we know" in ran.err
    assert "--region: `x` is not a cloud" in ran.err


def test_nothing_found_is_an_answer(run: Run, small: Catalog) -> None:
    ran = run("catalog", "--memory", "1000GB")
    assert ran.code == 0
    assert ran.out.startswith("0 of 18 types")
    assert "nothing matches" in ran.out


def test_a_column_that_is_asked_for_stays_on_a_narrow_terminal(run: Run, small: Catalog) -> None:
    assert "network" not in run("catalog", "--cloud", "gcp", columns=60).out
    assert "network" in run("catalog", "--cloud", "gcp", "--network", "10Gbps", columns=80).out


def test_a_machine_is_shown_whole(run: Run, small: Catalog) -> None:
    text = run("catalog", "show", "p5.48xlarge").out
    for part in (
        "8 × H100 80 GB", "79.1 GiB usable", "192 vCPU", "2,048 GiB", "8 disks", "260,000 IOPS",
        "32 network cards", "up to 32 EFA interfaces", "GPUDirect RDMA yes", "capacity-block",
        "1-31:0:efa-only", "use1-az1, 2, 3, 4, 5, 6", "$55.04", "$19.49", "moto-5.2.5",
        "as of 2026-10-27",
    ):  # fmt: skip
        assert part in text, part


@pytest.mark.slow
def test_a_slice_without_graphics_is_said_to_draw_nothing(run: Run) -> None:
    """Tencent's GN7: the card draws, its slices do not, and the plan refuses them."""
    listed = ("catalog", "--cloud", "tencent", "--like", "GN7.")
    assert "GN7.LARGE20" in run(*listed).out
    assert "GN7.LARGE20" not in run(*listed, "--graphics", "opengl").out
    assert "none on this slice" in run("catalog", "show", "GN7.LARGE20").out


def test_every_machine_and_gpu_can_be_shown(run: Run) -> None:
    """On the packaged data: nothing there may break a screen."""
    catalog = load()
    for name in sorted({name for _cloud, name in catalog.types} | set(catalog.gpus)):
        ran = run("catalog", "show", name, columns=80)
        assert ran.code == 0
        assert max(map(len, ran.out.splitlines())) <= 80, name
        assert "None" not in ran.out, name


def test_a_wrong_name_is_helped_to_the_right_one(run: Run, small: Catalog) -> None:
    assert "did you mean `p5.48xlarge`?" in run("catalog", "show", "p5.48xlrge").err
    ran = run("catalog", "compare", "g6.xlarg", "g5.xlarg", "g6.xlarge")
    assert ran.err.startswith("error: 2 problems")


def test_one_machine_is_not_compared(run: Run, small: Catalog) -> None:
    ran = run("catalog", "compare", "g6.xlarge", "g6.xlarge")
    assert (ran.code, ran.out) == (2, "")
    assert "one machine cannot be compared" in ran.err


def test_a_comparison_has_a_column_for_each_machine(run: Run, small: Catalog) -> None:
    lines = run("catalog", "compare", "g6.xlarge", "p5.48xlarge").out.splitlines()
    rows = {line[:14].strip(): line[14:].split() for line in lines}
    assert rows[""] in (["g6.xlarge", "p5.48xlarge"], [])
    assert rows["vCPU"] == ["4", "192"]
    assert rows["on demand"] == ["$0.80/h", "$55.04/h"]
    assert rows["source"]


def test_models_are_what_a_workload_may_name(run: Run) -> None:
    every = run("catalog", "models", "--json")
    found = json.loads(every.out)["models"]
    assert len(found) > 405 + 33
    assert {one["kind"] for one in found} >= {"llm", "image", "video", "speech", "3d", "hpc", "vdi"}
    lines = run("catalog", "models", "llama", "3.1", "8b").out.splitlines()
    assert any(line.startswith("meta-llama/Llama-3.1-8B-Instruct ") for line in lines)
    assert "\n  models " in run("catalog", "--help").out


def test_a_model_that_nothing_confirms_is_shown_so(run: Run) -> None:
    found = json.loads(run("catalog", "models", "--json").out)["models"]
    doubted = next(one for one in found if one["layers"] and not one["verified"])
    lines = run("catalog", "models", doubted["name"]).out.splitlines()
    (line,) = [line for line in lines if line.startswith(doubted["name"] + " ")]
    assert line.rstrip().endswith(" no")


def test_a_search_without_an_answer_names_the_other_inputs(run: Run) -> None:
    ran = run("catalog", "models", "no-such-model")
    assert "no model is named so" in ran.out
    assert "model.config" in ran.out
    assert ran.code == 0


ZONES: dict[tuple[str, tuple[str, ...]], str] = {
    ("us-east-1", ("use1-az1", "use1-az2", "use1-az6")): "use1-az1, 2, 6",
    ("us-central1", ("us-central1-a", "us-central1-b")): "a, b",
    ("eastus", ("eastus-1", "eastus-2")): "1, 2",
    ("us-east-1", ("use1-az1",)): "use1-az1",
    ("us-east-1", ()): "not offered",
    ("x", ("p", "q")): "p, q",
}


@pytest.mark.parametrize(("region", "zones"), ZONES)
def test_zones_are_shown_without_what_repeats(region: str, zones: tuple[str, ...]) -> None:
    assert zones_text(region, zones) == ZONES[region, zones]


def spot_file(folder: Path) -> Path:
    entry = {
        "AvailabilityZone": "us-east-1a",
        "InstanceType": "g6.xlarge",
        "ProductDescription": "Linux/UNIX",
        "SpotPrice": "0.2811",
        "Timestamp": "2026-11-20T10:00:00+00:00",
    }
    path = folder / "spot.json"
    path.write_text(json.dumps({"SpotPriceHistory": [entry]}), encoding="utf-8")
    return path


def test_a_refresh_makes_an_overlay_that_is_then_read(
    run: Run, project: Path, small: Catalog
) -> None:
    ran = run("catalog", "refresh", "--from", str(spot_file(project)), "--out", "mine")
    assert ran.code == 0, ran.err
    assert "1 in prices.csv" in ran.out
    assert "--catalog mine" in ran.err
    shown = run("catalog", "show", "g6.xlarge", "--catalog", "mine", "--json")
    prices: list[dict[str, Any]] = json.loads(shown.out)["prices"]["spot"]
    assert [p["usd_per_hour"] for p in prices if p["region"] == "us-east-1"] == [0.2811]


def test_a_refresh_goes_where_the_environment_says(
    run: Run, project: Path, small: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUTIER_CATALOG", str(project / "theirs"))
    ran = run("catalog", "refresh", "--from", str(spot_file(project)), "--json")
    assert json.loads(ran.out)["path"] == str(project / "theirs")
    assert (project / "theirs" / "prices.csv").is_file()


def test_several_files_follow_one_from(run: Run, project: Path, small: Catalog) -> None:
    first = spot_file(project)
    second = project / "again.json"
    second.write_bytes(first.read_bytes())
    ran = run("catalog", "refresh", "--from", str(first), str(second), "--out", "mine", "--json")
    assert [one["path"] for one in json.loads(ran.out)["files"]] == [str(first), str(second)]


def test_a_file_that_nobody_understands_writes_nothing(
    run: Run, project: Path, small: Catalog
) -> None:
    (project / "x.json").write_text("{}", encoding="utf-8")
    ran = run("catalog", "refresh", "--from", "x.json", "--out", "mine")
    assert (ran.code, ran.out) == (2, "")
    assert not (project / "mine").exists()
