"""`gputier catalog refresh`: what the clouds' own commands print → a person's own overlay.

    refresh([Path("types.json"), Path("spot.json")], Path("~/gpu-catalog").expanduser())

Nothing here talks to a cloud. Each file is recognised by its content (`refresh_io.COMMANDS`), read,
checked, and its rows written to a directory that `load(directory)` merges over the packaged data.
Nothing is written when the result would not pass `integrity`.
"""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gputier.catalog import integrity, refresh_aws, refresh_gcp, refresh_io, refresh_skus
from gputier.catalog.load import Catalog, load
from gputier.catalog.refresh_harvest import Cells, Harvest
from gputier.catalog.tables import KEYS
from gputier.errors import InvalidInput, Problem

# Types first: what they add is then known to the offerings and prices of the same run.
READERS = {**refresh_aws.READERS, **refresh_gcp.READERS}
_MOST_SHOWN = 20


class Report(NamedTuple):
    """What one refresh read, wrote and left out."""

    out: Path
    files: tuple[tuple[Path, str, int], ...]  # path, the command it is of, records
    written: Mapping[str, int]  # table → rows written by this run
    new_types: tuple[str, ...]  # `aws g9.xlarge`
    gone: tuple[str, ...]  # `aws g5g.xlarge: no longer in euc1-az1`
    refused: tuple[str, ...]  # rows that are wrong on their face, one line each
    unknown: tuple[str, ...]  # GPUs that gpus.csv does not have
    ignored: Mapping[str, int]  # reason → records that are no business of a GPU catalogue
    catalog_id: str
    as_of: str

    def lines(self) -> tuple[str, ...]:
        """The report as people read it."""
        found = [f"{path}: {count} records of `{command}`" for path, command, count in self.files]
        rows = ", ".join(f"{count} in {name}.csv" for name, count in sorted(self.written.items()))
        found.append(f"wrote to {self.out}: {rows}")
        for title, members in (
            ("new types", self.new_types),
            ("no longer offered", self.gone),
            ("refused", self.refused),
            ("unknown GPUs (a row of gpus.csv beside these files would add them)", self.unknown),
            ("ignored", tuple(f"{count} {why}" for why, count in sorted(self.ignored.items()))),
        ):
            found += _listed(title, members)
        found.append(f"catalogue {self.catalog_id}, newest price {self.as_of}")
        return tuple(found)


def _listed(title: str, members: Sequence[str]) -> list[str]:
    if not members:
        return []
    more = len(members) - _MOST_SHOWN
    rest = [f"  … and {more} more"] if more > 0 else []
    return [f"{title}:", *[f"  {member}" for member in members[:_MOST_SHOWN]], *rest]


def refresh(files: Sequence[Path], out: Path) -> Report:
    """Read `files` and write or extend the overlay in `out`.

    Raises InvalidInput, and writes nothing, for a file that is of no known command, broken or cut
    short, when the catalogue with the new rows would not hold together, and when `out` cannot be
    written.
    """
    if not files:
        known = "\n".join(f"  {command}" for command in refresh_io.COMMANDS.values())
        raise InvalidInput(Problem("", "no files were given", f"give what these print:\n{known}"))
    documents = refresh_skus.merge(refresh_io.read_documents(files))
    overlay = out if out.is_dir() and any(out.glob("*.csv")) else None
    base = load(overlay)
    harvest = Harvest(base)
    for kind, reader in READERS.items():
        for document in refresh_io.of_kind(documents, kind):
            reader(document, harvest)
    _supersede(harvest)
    if not harvest.rows:
        reasons = _listed("refused", harvest.refused) + _listed("unknown GPUs", harvest.unknown)
        reasons += [f"{count} {why}" for why, count in sorted(harvest.ignored.items())]
        message = "the files hold nothing for a catalogue of NVIDIA GPU machines"
        raise InvalidInput(Problem("", message, "\n".join(reasons)))
    try:
        result = _write(harvest, overlay, out)
    except OSError as problem:
        message = f"cannot be written: {problem.strerror or problem}"
        raise InvalidInput(Problem(str(out), message, "name another directory")) from None
    return Report(
        out=out,
        files=tuple((d.path, refresh_io.COMMANDS[d.kind], len(d.records)) for d in documents),
        written={name: len(rows) for name, rows in harvest.rows.items()},
        new_types=tuple(
            sorted(
                f"{one.cloud} {one.name}"
                for key, one in result.types.items()
                if key not in base.types
            )
        ),
        gone=tuple(_gone(base, result)),
        refused=tuple(sorted(set(harvest.refused))),
        unknown=tuple(sorted(set(harvest.unknown))),
        ignored=dict(harvest.ignored),
        catalog_id=result.id,
        as_of=result.as_of,
    )


def _gone(base: Catalog, result: Catalog) -> Iterator[str]:
    """Zones that a type was sold in before this run and is not after it."""
    for cloud, name in sorted(base.types):
        now = result.zones(cloud, name)
        for region, zones in base.zones(cloud, name).items():
            lost = [zone for zone in zones if zone not in now.get(region, ())]
            if lost:
                yield f"{cloud} {name}: no longer in {', '.join(lost)}"


def _supersede(harvest: Harvest) -> None:
    """Spot and committed prices above a new on-demand price.

    A spot price of this run stays, as the on-demand price: that it saves nothing is what is known.
    A committed price of this run is refused. What an older refresh or the packaged data say was
    before a price cut, and is unknown by now.
    """
    new = {_place(row): row for row in harvest.added("prices") if not row["zone"]}
    for (cloud, name, region, purchase), row in list(new.items()):
        full = new.get((cloud, name, region, "on_demand"))
        limit = float(full["usd_per_hour"]) if full else _on_demand(harvest, cloud, name, region)
        usd = float(row["usd_per_hour"])
        if purchase == "on_demand" or limit is None or usd <= limit:
            continue
        if purchase == "spot":
            note = f"the market's {usd:g} is above on demand"
            row |= {"usd_per_hour": f"{limit:g}", "native_per_hour": f"{limit:g}", "note": note}
        else:
            harvest.drop("prices", row)
            del new[cloud, name, region, purchase]
            figures = f"{purchase} at {usd:g} USD, above on demand at {limit:g}"
            harvest.refused.append(f"{cloud} {name} in {region}: {figures}")
    for (cloud, name, region, purchase), row in new.items():
        if purchase != "on_demand":
            continue
        for kind in ("spot", "reserved_1y", "reserved_3y"):
            old = harvest.base.price(cloud, name, region, kind)
            if (
                old is not None
                and (cloud, name, region, kind) not in new
                and old.usd_per_hour > float(row["usd_per_hour"])
            ):
                gone = {"purchase": kind, "usd_per_hour": "", "native_per_hour": ""}
                note = f"unknown: {old.usd_per_hour:g} of {old.as_of} is above on demand by now"
                harvest.add("prices", {**row, **gone, "note": note})


def _place(row: Cells) -> tuple[str, str, str, str]:
    return row["provider"], row["instance_type"], row["region"], row["purchase"]


def _on_demand(harvest: Harvest, cloud: str, name: str, region: str) -> float | None:
    price = harvest.base.price(cloud, name, region, "on_demand")
    return price.usd_per_hour if price else None


def _write(harvest: Harvest, overlay: Path | None, out: Path) -> Catalog:
    """Written aside, loaded, checked, and only then moved into place."""
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        if overlay is not None:
            for path in overlay.glob("*.csv"):
                shutil.copyfile(path, aside / path.name)
        for name in harvest.rows:
            _write_table(harvest, name, aside / f"{name}.csv")
        result = load(aside)
        found = integrity.problems(result)
        if found:  # what an older overlay already had is not this run's doing
            before = set(integrity.problems(harvest.base))
            found = tuple(one for one in found if one not in before)
        if found:
            message = "the catalogue would not hold together; nothing was written"
            raise InvalidInput(Problem(str(out), message, "\n".join(found[:_MOST_SHOWN])))
        out.mkdir(exist_ok=True)
        for path in sorted(aside.glob("*.csv")):
            path.replace(out / path.name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return result


def _write_table(harvest: Harvest, name: str, path: Path) -> None:
    columns = harvest.base.columns(name)
    new = list(harvest.added(name))
    key = KEYS[name]
    taken = {tuple(row[column] for column in key) for row in new}
    kept = [row for row in _existing(path, columns) if tuple(row[c] for c in key) not in taken]
    rows = sorted([*kept, *new], key=lambda row: [row[column] for column in columns])
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), "utf-8", newline="\n")


def _existing(path: Path, columns: Iterable[str]) -> list[Cells]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [
            {column: row.get(column) or "" for column in columns} for row in csv.DictReader(file)
        ]
