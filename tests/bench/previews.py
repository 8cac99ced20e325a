"""What `pulumi preview` of our program costs on a real engine, with a stand-in for AWS.

`python -m tests.bench.previews` prints rows; without a built command (`make pulumi`) it says so.
The times are of whole commands: the engine, the program and a provider that answers at once. A
real provider adds its own start and one call for each thing that it looks up.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.conftest import ROOT
from tests.engine import ours, pulumi_cli
from tests.engine.stack import Engine, Result, Stack

HEAD = "`pulumi preview` of a new stack, the engine real and AWS a stand-in"
EXAMPLES = ("dev", "staging", "prod")
SIZES = (1, 10, 25, 50)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.previews", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="times each preview is made")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="workloads in a stack")
    options = parser.parse_args()
    print(f"\n{HEAD}, best of {options.runs}\n")
    try:
        command = pulumi_cli.find()
    except pulumi_cli.NoPulumi as reason:
        print(reason)
        return
    print("| what | resources | s | what the policy pack adds |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, made in stacks(Path(folder), command, options.sizes):
            # By turns, so that what slows the machine down slows down both.
            results = [(made.preview(), _judged(made)) for _ in range(options.runs)]
            count = sum(results[0][0].counts.values())
            best, judged = (min(r.seconds for r in of) for of in zip(*results, strict=True))
            print(f"| {name} | {count} | {best:.1f} | {judged - best:+.1f} |", flush=True)


def _judged(stack: Stack) -> Result:
    """A preview under the policy pack, whatever it finds: the many workloads are over a ceiling."""
    config = ROOT / "policies" / f"config.{stack.name}.json"
    pack = ("--policy-pack", str(ROOT / "policies"), "--policy-pack-config", str(config))
    return stack.preview(*pack, fails=None)


def stacks(folder: Path, command: Path, sizes: Sequence[int]) -> Iterator[tuple[str, Stack]]:
    """The example stacks, and one with so many workloads of one kind, each locked."""
    for name in EXAMPLES:
        with Engine(folder / name, command) as engine:
            stack = _locked(engine, ROOT, name)
            ours.pin(stack, ours.AMI)
            yield f"example stack {name}", stack
    for size in sizes:
        place = folder / str(size)
        workloads = {f"job-{number}": dict(ours.JOB) for number in range(size)}
        declared = ours.project(place, {"dev": {"workloads": workloads}})
        with Engine(place / "engine", command) as engine:
            yield f"{size} workload{'s' * (size > 1)}", _locked(engine, declared, "dev")


def _locked(engine: Engine, folder: Path, name: str) -> Stack:
    with contextlib.redirect_stdout(io.StringIO()):  # the lock's own lines are no rows
        return ours.locked(engine, folder, name)


if __name__ == "__main__":
    main()
