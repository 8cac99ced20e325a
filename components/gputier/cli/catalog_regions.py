"""`gputier catalog regions`: where a cloud sells GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from gputier.catalog import CLOUDS, Catalog, is_commercial
from gputier.cli import catalog_words as words
from gputier.cli import console
from gputier.cli.catalog_show import zones_text
from gputier.cli.command import Command
from gputier.cli.inputs import json_text, load_catalog
from gputier.cli.options import catalog_option, json_option
from gputier.cli.text import Column, Letters, flow, labelled, plural, table
from gputier.errors import ExitCode

SCHEMA = "gputier/catalog-regions/1"


class Region(NamedTuple):
    """A region: its zones, how many types a source lists and how many have a price there."""

    name: str
    commercial: bool
    zones: tuple[str, ...]
    offered: int
    priced: int
    price_as_of: str | None
    sources: tuple[str, ...]


@click.command(
    cls=Command,
    examples=(("gputier catalog regions aws", "with zones, offered types and prices"),),
)
@click.argument("cloud", type=click.Choice(CLOUDS), metavar="CLOUD")
@json_option("the regions")
@catalog_option
def regions(cloud: str, as_json: bool, catalog_directory: str | None) -> int:
    """The regions of a cloud: aws, gcp, azure, alibaba or tencent.

    GovCloud, China and sovereign regions are searched only when a workload names them.
    """
    catalog = load_catalog(catalog_directory)
    found = _found(catalog, cloud)
    if as_json:
        document = {
            "schema": SCHEMA,
            "catalog": {"id": catalog.id, "as_of": catalog.as_of},
            "cloud": cloud,
            "regions": [
                one._asdict() | {"zones": list(one.zones), "sources": list(one.sources)}
                for one in found
            ],
        }
        console.out(json_text(document))
    else:
        console.out("\n".join(_screen(catalog, cloud, found, console.width())))
    return ExitCode.OK


def _found(catalog: Catalog, cloud: str) -> list[Region]:
    rows = catalog.rows([cloud])
    offered = [catalog.zones(cloud, row.name) for row in rows]
    priced = [catalog.prices(cloud, name, use) for c, name, use in catalog.priced() if c == cloud]
    found: list[Region] = []
    for name in catalog.regions(cloud):
        prices = [one[name] for one in priced if name in one]
        found.append(
            Region(
                name,
                is_commercial(cloud, name),
                tuple(sorted(catalog.region_zones(cloud, name))),
                sum(name in one for one in offered),
                len({p.instance_type for p in prices if not p.instance_type.startswith("acc")}),
                max((p.as_of for p in prices), default=None),
                tuple(sorted({p.source for p in prices})),
            )
        )
    return found


_COLUMNS = (
    Column("region"),
    Column("kind", drop=5),
    Column("types offered", right=True),
    Column("types priced", right=True),
    Column("zones", wraps=True, drop=3),
    Column("newest price", drop=2),
    Column("from", drop=1),
)


def _screen(catalog: Catalog, cloud: str, found: Sequence[Region], width: int) -> list[str]:
    head = (
        f"{cloud}: {plural(len(found), 'region')} with GPUs",
        words.catalogue(catalog),
    )
    letters = Letters(source for one in found for source in one.sources)
    rows = [
        [
            one.name,
            "" if one.commercial else "only when named",
            str(one.offered) if one.offered else "unconfirmed",
            str(one.priced) if one.priced else "none",
            zones_text(one.name, one.zones) if one.zones else "unknown",
            one.price_as_of or "",
            letters.of(one.sources),
        ]
        for one in found
    ]
    return [
        *flow(head, width, 0),
        "",
        *table(_COLUMNS, rows, width),
        *labelled("from", letters.legend, width, 6),
    ]
