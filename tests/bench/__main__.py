"""`make bench`: what starting, searching and installing cost, beside gpuhunt.

Processes are timed whole, from outside, because that is what a person waits for; what happens
inside one process is timed in a fresh one. Nothing here is a test: a slow machine is not a bug.

    make bench ARGS="--runs 5 --only gpuhunt"
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

from packaging.requirements import Requirement

from gputier import catalog

ROOT = Path(__file__).resolve().parents[2]
GPUTIER = str(Path(sys.executable).with_name("gputier"))
# gpuhunt reads these from files; its other clouds it asks over the network.
PEER_CLOUDS = ("aws", "gcp", "azure")
PEER_FILES = (*PEER_CLOUDS, "verda", "lambdalabs", "nebius", "oci", "runpod", "cloudrift")
PEER_COLUMNS = (
    "instance_name",
    "location",
    "price",
    "cpu",
    "memory",
    "gpu_count",
    "gpu_name",
    "gpu_memory",
    "spot",
    "disk_size",
    "gpu_vendor",
    "flags",
    "cpu_arch",
    "provider_data",
)
PEER_QUERY = f"query(provider={list(PEER_CLOUDS)}, min_gpu_memory=24, min_gpu_count=1)"
NO_EXTRA = MappingProxyType[str, str]({})

WARM = """
import json, time
{setup}
def once():
    start = time.perf_counter()
    {statement}
    return time.perf_counter() - start
once()
print(json.dumps([once() for _ in range({runs})]))
"""
FIRST = """
import json, time
{setup}
start = time.perf_counter()
{statement}
print(json.dumps([time.perf_counter() - start]))
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One row: `measure(runs)` gives seconds, or bytes where `unit` is MB."""

    what: str
    reach: str
    measure: Callable[[int], list[float]]
    unit: str = "ms"

    def row(self, runs: int) -> str:
        values = self.measure(runs)
        scale, digits = {"ms": (1e3, 1), "MB": (1e-6, 1)}[self.unit]
        low, middle, high = (
            f"{value * scale:.{digits}f}"
            for value in (min(values), statistics.median(values), max(values))
        )
        return f"| {self.what} | {self.reach} | {low} | {middle} | {high} | {self.unit} |"


# What the commands run in. `main` adds a folder for compiled files that goes away: they are written
# once and read afterwards, as after an ordinary install, whatever the caller has set.
ENVIRONMENT = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}


def run(command: Sequence[str], extra: MappingProxyType[str, str] = NO_EXTRA) -> str:
    """Standard output. A command that fails is not timed: it ends the benchmark with its words."""
    done = subprocess.run(
        command, cwd=ROOT, env={**ENVIRONMENT, **extra}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"error: {' '.join(command)} exited {done.returncode}\n{done.stderr}")
    return done.stdout


def process(
    *command: str, extra: MappingProxyType[str, str] = NO_EXTRA
) -> Callable[[int], list[float]]:
    """Whole processes, after one that warms the file cache."""

    def measure(runs: int) -> list[float]:
        run(command, extra)
        values: list[float] = []
        for _ in range(runs):
            start = time.perf_counter()
            run(command, extra)
            values.append(time.perf_counter() - start)
        return values

    return measure


def first(setup: str, statement: str) -> Callable[[int], list[float]]:
    """A statement as the first of its kind in a process, a fresh process for each run."""
    code = FIRST.format(setup=setup, statement=statement)

    def measure(runs: int) -> list[float]:
        values = [json.loads(run([sys.executable, "-c", code]))[0] for _ in range(runs + 1)]
        return values[1:]

    return measure


def warm(
    setup: str, statement: str, extra: MappingProxyType[str, str] = NO_EXTRA
) -> Callable[[int], list[float]]:
    """A statement again and again in one process, after a first time that is not counted."""
    return lambda runs: json.loads(
        run([sys.executable, "-c", WARM.format(setup=setup, statement=statement, runs=runs)], extra)
    )


def write_peer_catalog(folder: Path) -> int:
    """Our prices in gpuhunt's format, as a folder and as its download; how many rows."""
    facts = catalog.load()
    count = 0
    for cloud in PEER_FILES:
        rows = list(_peer_rows(facts, cloud)) if cloud in PEER_CLOUDS else []
        count += len(rows)
        file = folder / f"{cloud}.csv"
        with file.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out)
            writer.writerow(PEER_COLUMNS)
            writer.writerows(rows)
        download = folder / cloud / "1"
        download.mkdir(parents=True)
        (folder / cloud / "version").write_text("1", encoding="utf-8")
        with zipfile.ZipFile(download / "catalog.zip", "w") as archive:
            archive.write(file, file.name)
    return count


def write_preview(folder: Path, resources: int) -> Path:
    """A preview of so many changed resources: real steps, each under a name of its own."""
    sample = ROOT / "tests" / "review" / "samples" / "prod-change.json"
    preview = json.loads(_text(str(sample)))
    changed = [step for step in preview["steps"] if step["op"] != "same"]
    steps: list[object] = []
    for number in range(resources):
        step = json.loads(json.dumps(changed[number % len(changed)]))
        for named in (step, step.get("oldState"), step.get("newState")):
            if named:
                named["urn"] += f"-{number}"
        steps.append(step)
    preview |= {"steps": steps, "changeSummary": {"update": resources}}
    path = folder / f"preview-{resources}.json"
    path.write_text(json.dumps(preview), encoding="utf-8")
    return path


def _peer_rows(facts: catalog.Catalog, cloud: str) -> Iterator[tuple[object, ...]]:
    for kind in facts.rows([cloud]):
        if kind.vcpus is None or kind.memory_gib is None or kind.fractional:
            continue
        gpu = kind.gpu_model.split("-")[0]
        machine = (kind.vcpus, kind.memory_gib, kind.gpu_devices, gpu, kind.memory_class_gb)
        for purchase in ("on_demand", "spot"):
            for region, price in facts.prices(cloud, kind.name, purchase).items():
                place = (kind.name, region, price.usd_per_hour)
                rest = (purchase == "spot", "", "nvidia", "", "x86", "{}")
                yield (*place, *machine, *rest)


def installed(name: str) -> float:
    """Bytes of a distribution and everything that it requires, as installed here."""
    waiting, seen, total = [Requirement(name)], set[str](), 0
    while waiting:
        wanted = waiting.pop()
        if wanted.name in seen or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        seen.add(wanted.name)
        found = metadata.distribution(wanted.name)
        waiting += [Requirement(text) for text in found.requires or ()]
        if wanted.name != "gputier":  # an editable install has its files elsewhere
            places = (Path(str(found.locate_file(file))) for file in found.files or ())
            total += sum(place.stat().st_size for place in places if place.is_file())
    return total + (ours() if name == "gputier" else 0)


def ours() -> float:
    folders = ("components/gputier", "templates", "policies/gputier_policies")
    files = (path for folder in folders for path in (ROOT / folder).rglob("*"))
    return sum(p.stat().st_size for p in files if p.is_file() and "__pycache__" not in p.parts)


def cases(peer: Path, rows: int) -> Iterator[Case]:
    yield Case("`python -c pass`: the floor under every row", "", process(sys.executable, "-c", ""))
    yield Case("`gputier --help`", "< 200", process(GPUTIER, "--help"))
    yield Case("`gputier --version`", "", process(GPUTIER, "--version"))
    yield Case(
        "catalogue load, whole", "< 50", first("from gputier import catalog", "catalog.load()")
    )
    imported = "`import gputier.plan`: what planning loads"
    yield Case(imported, "", process(sys.executable, "-c", "import gputier.plan"))
    pick = ("pick", "--gpu-memory", "24GB", "--json")
    yield Case("one selection with its ledger, cold", "< 300", process(GPUTIER, *pick))
    selection = "import gputier; workload = gputier.Workload(gpu={'memory': '24GB'})"
    yield Case("the same, warm, in process", "< 10", warm(selection, "gputier.plan(workload)"))
    for stack in sorted((ROOT / "stacks").glob("Pulumi.*.yaml")):
        name = stack.name.split(".")[1]
        yield Case(f"`gputier plan {name}`, cold", "", process(GPUTIER, "plan", name))
    for size, reach in ((200, "< 1000"), (2000, "")):
        preview = str(write_preview(peer, size))
        what = f"`gputier review`: a preview of {size:,} changed resources"
        yield Case(what, reach, process(GPUTIER, "review", preview, "--format", "markdown"))
    yield from peer_cases(peer, rows)
    yield Case("install size: ours", "< 10", lambda _: [ours()], "MB")
    yield Case("install size: with dependencies", "", lambda _: [installed("gputier")], "MB")
    yield Case("install size: gpuhunt with its own", "", lambda _: [installed("gpuhunt")], "MB")


def peer_cases(folder: Path, rows: int) -> Iterator[Case]:
    version = metadata.version("gpuhunt")
    python = (sys.executable, "-c")
    yield Case(f"gpuhunt {version}: import", "", process(*python, "import gpuhunt"))
    query = f"import gpuhunt; assert gpuhunt.Catalog(auto_reload=False).{PEER_QUERY}"
    local = MappingProxyType({"GPUHUNT_CATALOG_DIR": str(folder)})
    what = f"gpuhunt {version}: one query of our {rows} prices, cold, from CSV"
    yield Case(what, "", process(*python, query, extra=local))
    served = MappingProxyType({"GPUHUNT_CATALOG_URL": folder.as_uri()})
    setup = "import gpuhunt; found = gpuhunt.Catalog(auto_reload=False); found.load()"
    what = f"gpuhunt {version}: the same, warm, in process"
    yield Case(what, "", warm(setup, f"assert found.{PEER_QUERY}", served))


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=15, help="times each thing is measured")
    parser.add_argument("--only", default="", metavar="WORDS", help="rows that contain these words")
    options = parser.parse_args()
    cpu = re.search(r"model name\s*: (.+)", _text("/proc/cpuinfo"))
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} × {cpu[1] if cpu else 'CPU'}")
    print(f"{options.runs} runs each\n")
    print("| what | reach | min | median | max | unit |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as compiled:
        ENVIRONMENT["PYTHONPYCACHEPREFIX"] = compiled
        rows = write_peer_catalog(Path(folder))
        for case in cases(Path(folder), rows):
            if options.only in case.what:
                print(case.row(options.runs), flush=True)
    if options.only in NODE:
        print(*node_rows(), sep="\n")
    if options.only in PREVIEWS:
        print(run((sys.executable, "-m", "tests.bench.previews")))


PREVIEWS = "`pulumi preview` of the example stacks and of many workloads"
NODE = "gputier-node: the validator, best of five runs"


def node_rows() -> Iterator[str]:
    """What the validator costs on a recorded eight-GPU node (tests/node/measure.py)."""
    measure = "from tests.node import measure; print(measure.as_json())"
    yield f"\n{NODE}\n\n| what | reach | best | unit |\n|---|---|---|---|"
    for one in json.loads(run((sys.executable, "-c", measure))):
        value = f"{one['value']:.3f}"
        yield f"| {one['name']} | {one['reach']} | {value} | {one['unit']} |"


def _text(file: str) -> str:
    return Path(file).read_text(encoding="utf-8") if Path(file).exists() else ""


if __name__ == "__main__":
    main()
