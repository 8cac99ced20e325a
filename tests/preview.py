"""What `pulumi preview` says of the example stacks, without an account: resource tree, count, cost.

`python -m tests.preview dev prod` runs the stacks' own program. Where `make pulumi` has built the
real command, and the development tools are there, that command previews against a stand-in for
AWS; elsewhere the SDK's mocks run the program. Both see the same resources.
"""

from __future__ import annotations

import json
import runpy
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import chdir
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

import yaml

from gputier.cli.money import per_hour, per_month
from gputier.lock import Entry, Lock, current_bundle, read_lock, write_lock
from tests.aws import world
from tests.engine import pulumi_cli

ROOT = Path(__file__).resolve().parents[1]
FLEET = "GpuFleet "
WIDTH = 110


class Made(NamedTuple):
    """A resource or component: labels as in `gputier.testing`."""

    label: str
    parent: str
    component: bool


def as_of_today(folder: Path, stack: str) -> None:
    """The lock of a copied stack with what a deployment needs and no example can have: images of
    somebody's account, and the node bundle of this checkout."""
    path = folder / f"gputier.{stack}.lock"
    lock = read_lock(path, stack)
    assert lock is not None
    bundle = current_bundle()
    entries = {
        name: replace(
            entry, image=world.AMI, bundle=bundle.sha256, bundle_version=bundle.version
        )
        for name, entry in lock.entries.items()
    }  # fmt: skip
    write_lock(path, Lock(stack, entries))


def by_mocks(stack: str) -> list[Made]:
    """What the program registers, run in a copy of the project."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        shutil.copy2(ROOT / "Pulumi.yaml", project)
        stacks = shutil.copytree(ROOT / "stacks", project / "stacks")
        as_of_today(stacks, stack)
        text = (stacks / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8")
        config: Mapping[str, Any] = yaml.safe_load(text)["config"]
        given = {k: v if isinstance(v, str) else json.dumps(v) for k, v in config.items()}
        with chdir(stacks):
            program = str(stacks / "__main__.py")
            run = world.run(
                lambda: runpy.run_path(program, run_name="__main__"), stack, config=given
            )
    return [Made(r.label, r.parent, r.component) for r in run.records]


def by_engine(cli: Path) -> Callable[[str], list[Made]]:
    """What the real command means to create, against a stand-in for AWS."""
    harness, ours = import_module("tests.engine.stack"), import_module("tests.engine.ours")

    def preview(stack: str) -> list[Made]:
        with tempfile.TemporaryDirectory() as folder, harness.Engine(Path(folder), cli) as engine:
            copy = engine.stack(ROOT, stack)
            as_of_today(ours.lock_of(copy).parent, stack)
            return list(created(copy.preview().events))

    return preview


def created(events: Iterable[Mapping[str, Any]]) -> Iterator[Made]:
    """The resources of an engine's events, without the stack and the providers."""
    for event in events:
        meant = event.get("resourcePreEvent", {}).get("metadata")
        if meant and meant["op"] == "create" and not meant["type"].startswith("pulumi:"):
            new = meant["new"]
            yield Made(_label(meant["urn"]), _label(new.get("parent", "")), not new.get("custom"))


def _label(urn: str) -> str:
    *_, types, name = urn.split("::") if urn else ("", "", "")
    return "" if types.startswith("pulumi:") or not types else f"{types.rsplit(':', 1)[-1]} {name}"


def tree(made: Iterable[Made], money: Mapping[str, Entry]) -> Iterator[str]:
    """Components as a tree, and what each makes in AWS, by type; a fleet with what it costs."""
    known = list(made)

    def below(parent: str, depth: int) -> Iterator[str]:
        for one in sorted(one for one in known if one.parent == parent and one.component):
            own = _listed(r.label for r in known if r.parent == one.label and not r.component)
            inner = list(below(one.label, depth + 1))
            entry = money.get(one.label.removeprefix(FLEET)) if FLEET in one.label else None
            if own or inner:
                told = "   ".join(filter(None, (one.label, _cost(entry) if entry else "", own)))
                indent = "  " * depth
                yield from wrap(told, WIDTH, initial_indent=indent, subsequent_indent=indent * 2)
                yield from inner

    yield from below("", 1)


def _listed(labels: Iterable[str]) -> str:
    counts = Counter(label.split()[0] for label in labels)
    return " · ".join(k if n == 1 else f"{k} × {n}" for k, n in sorted(counts.items()))


def _cost(entry: Entry) -> str:
    count = f"{entry.machines} × " if entry.machines > 1 else ""
    usd = f"{per_hour(entry.usd_per_hour)}   {per_month(entry.usd_per_month)}"
    return f"{count}{entry.instance_type}   {usd}"


def screen(stack: str, made: Iterable[Made]) -> Iterator[str]:
    """One stack."""
    found, lock = list(made), read_lock(ROOT / "stacks" / f"gputier.{stack}.lock", stack)
    assert lock is not None
    money = lock.entries
    parts = [entry.usd_per_month for entry in money.values()]
    total = None if None in parts else sum(part or 0.0 for part in parts)
    resources = sum(not one.component for one in found)
    yield f"{stack}   {resources} resources to create   machines {per_month(total)}"
    yield from tree(found, money)


def preview() -> tuple[str, Callable[[str], list[Made]]]:
    """How a stack is previewed here, in words, and the way to do it."""
    if not pulumi_cli.cached().is_file() or find_spec("moto") is None:
        return "by mocks; `make pulumi` builds the real command", by_mocks
    how = f"by pulumi {pulumi_cli.version()}, against a stand-in for AWS"
    return how, by_engine(pulumi_cli.cached())


def main(stacks: Iterable[str]) -> None:
    """Prints every stack."""
    how, of = preview()
    print(f"\nwhat `pulumi up` would create, {how}; images are stand-ins")  # noqa: T201
    for stack in stacks:
        print("", *screen(stack, of(stack)), sep="\n")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
