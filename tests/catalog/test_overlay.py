"""A person's own overlay: its rows win by key, and a malformed one is refused clearly."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gputier.catalog import Catalog, load
from gputier.errors import InvalidInput

Overlay = Callable[..., Path]


def test_an_overlay_row_wins_by_key_and_changes_the_identity(
    catalog: Catalog, overlay: Overlay
) -> None:
    here = {"provider": "aws", "region": "us-east-1", "instance_type": "g6.xlarge"}
    place = overlay(
        "prices", {**here, "purchase": "on_demand"}, usd_per_hour="0.7", as_of="2026-12-01"
    )
    other = load(place)
    price = other.price("aws", "g6.xlarge", "us-east-1", "on_demand")
    assert price is not None
    assert (price.usd_per_hour, price.as_of) == (0.7, "2026-12-01")
    assert other.as_of == "2026-12-01"
    assert other.id != catalog.id
    assert load(place).id == other.id
    assert other.price("aws", "g6.2xlarge", "us-east-1", "on_demand") == catalog.price(
        "aws", "g6.2xlarge", "us-east-1", "on_demand"
    )
    assert catalog.price("aws", "g6.xlarge", "us-east-1", "on_demand") != price


def test_an_overlay_adds_types_and_needs_only_the_columns_it_knows(tmp_path: Path) -> None:
    header = (
        "instance_type,family,gpu_model,gpu_model_confidence,gpu_count,gpu_devices,"
        "gpu_memory_gib,vcpus,memory_gib,cpu_arch,interconnect,placement_group,lifecycle,"
        "source,as_of\n"
    )
    row = "g9.xlarge,g9,L4,provider,1,1,24,4,16,x86_64,none,cluster,current,mine,2026-12-01\n"
    (tmp_path / "aws.csv").write_text(header + row)
    catalog = load(tmp_path)
    one = catalog.types["aws", "g9.xlarge"]
    assert (one.vcpus, one.usable_gib) == (4, 22.0)
    assert one.network_sustained_gbps is None
    assert one.on_demand is None
    assert len(catalog.rows(["aws"])) == 77


def test_an_overlay_replaces_a_types_zones_in_a_region_and_can_take_them_away(
    catalog: Catalog, tmp_path: Path
) -> None:
    (tmp_path / "offerings.csv").write_text(
        "provider,region,zone,instance_type,source,as_of\n"
        "aws,us-east-1,use1-az6,p5.48xlarge,mine,2026-12-01\n"
        "aws,us-west-2,,p5.48xlarge,mine,2026-12-01\n"
    )
    zones = load(tmp_path).zones("aws", "p5.48xlarge")
    assert zones["us-east-1"] == ("use1-az6",)
    assert "us-west-2" not in zones
    before = catalog.zones("aws", "p5.48xlarge")
    assert "us-west-2" in before
    assert zones["us-east-2"] == before["us-east-2"]


def test_an_overlay_price_without_a_figure_makes_it_unknown(overlay: Overlay) -> None:
    here = {"provider": "aws", "region": "us-east-1", "instance_type": "g6.xlarge"}
    place = overlay("prices", {**here, "purchase": "spot"}, usd_per_hour="")
    assert load(place).price("aws", "g6.xlarge", "us-east-1", "spot") is None


def test_zone_prices_of_an_overlay_stand_beside_the_regions_figure(overlay: Overlay) -> None:
    here = {"provider": "aws", "region": "us-east-1", "instance_type": "g6.xlarge"}
    place = overlay("prices", {**here, "purchase": "spot"}, zone="use1-az4", usd_per_hour="0.2")
    other = load(place)
    regional = other.price("aws", "g6.xlarge", "us-east-1", "spot")
    assert regional is not None
    assert regional.usd_per_hour != 0.2
    zonal = other.zone_prices("aws", "g6.xlarge", "us-east-1", "spot")
    assert {zone: price.usd_per_hour for zone, price in zonal.items()} == {"use1-az4": 0.2}
    assert other.zone_prices("aws", "g6.xlarge", "us-west-2", "spot") == {}


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("pricez.csv", "a\n1\n", "is no file of a catalogue"),
        ("prices.csv", "", "the file is empty"),
        ("prices.csv", "provider,region\naws\n", "line 2 has 1 cells"),
        ("prices.csv", "provider,region\naws,us-east-1\n", "has no column zone, instance_type"),
        ("aws.csv", "instance_type,vcpu\ng9.xlarge,4\n", "has a column `vcpu`"),
        ("aws.csv", 'instance_type,notes\n"g9.xlarge,4\n', "is not a CSV file"),
    ],
)
def test_a_malformed_overlay_is_refused_clearly(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=re.escape(says)):
        load(tmp_path)


def test_an_overlay_that_is_not_there_or_empty_is_refused_with_the_way_out(
    tmp_path: Path,
) -> None:
    with pytest.raises(InvalidInput, match="gputier catalog refresh"):
        load(tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="holds no catalogue files"):
        load(tmp_path)


def test_an_overlay_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="is not UTF-8 text"):
        load(tmp_path)


def test_a_byte_order_mark_from_a_spreadsheet_does_no_harm(
    overlay: Overlay, catalog: Catalog
) -> None:
    place = overlay("aws", {"instance_type": "g5.xlarge"}, vcpus="8")
    file = place / "aws.csv"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert load(place).types["aws", "g5.xlarge"].vcpus == 8
    assert catalog.types["aws", "g5.xlarge"].vcpus == 4
