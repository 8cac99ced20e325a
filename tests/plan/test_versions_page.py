"""docs/versions.md, made from the catalogue's tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

from gputier.catalog import UNVERIFIED, load

Generated = Callable[[str, str, str], None]
PAGE = "docs/versions.md"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def marked(source: str, as_of: str, status: str) -> str:
    doubt = " (*unverified*)" if status == UNVERIFIED else ""
    return f"{source}, {as_of}{doubt}"


def test_the_page_lists_every_wheel_with_the_driver_it_needs(generated: Generated) -> None:
    facts = load().software
    head = ("release", "CPU", "build", "CUDA", "driver", "compute capability", "index", "source")
    rows = [
        (
            f"{w.framework} {w.version}", w.cpu_arch,
            f"**{w.build}**" if w.default else w.build, w.cuda,
            f"≥ {facts.cuda[w.cuda_major].driver_min}", " ".join(map(str, w.capabilities)),
            w.index_url.removeprefix("https://"), marked(w.source, w.as_of, w.status),
        )
        for w in facts.wheels
    ]  # fmt: skip
    note = "**Bold** is the framework's own default.\n\n"
    generated(PAGE, "wheels", note + table(head, rows))


def test_the_page_lists_cuda_and_the_branches(generated: Generated) -> None:
    facts = load().software
    cuda = table(
        ("built for CUDA", "oldest driver", "source"),
        (
            (f"{c.cuda_major}.x", c.driver_min, marked(c.source, c.as_of, c.status))
            for c in facts.cuda.values()
        ),
    )
    branches = table(
        ("branch", "kind", "came with CUDA", "newest known", "installed", "source"),
        (
            (
                b.branch, b.kind, b.cuda, b.newest or "", b.install or "no packages",
                marked(b.source, b.as_of, b.status),
            )
            for b in facts.branches
        ),
    )  # fmt: skip
    generated(PAGE, "cuda", f"{cuda}\n\n{branches}")


def test_the_page_lists_every_card(generated: Generated) -> None:
    catalog = load()
    cards = catalog.software.cards
    rows = [
        (
            ", ".join(sorted(g.model for g in same)), f"{first.compute_capability:.1f}",
            first.cuda_toolkit_min or "", first.cuda_toolkit_last or "",
            cards[first.model].driver_min, (first.driver_branch_last or "").removeprefix("R"),
            cards[first.model].module,
            marked(cards[first.model].source, cards[first.model].as_of, cards[first.model].status),
        )
        for _key, group in groupby(
            sorted(catalog.gpus.values(), key=lambda g: (g.compute_capability, cards[g.model][1:])),
            key=lambda g: (
                g.compute_capability, g.cuda_toolkit_min, g.cuda_toolkit_last,
                g.driver_branch_last, cards[g.model][1:],
            ),
        )
        for same in [list(group)]
        for first in [same[0]]
    ]  # fmt: skip
    head = ("card", "compute capability", "first CUDA", "last CUDA", "oldest driver", "last branch",
            "kernel module", "source")  # fmt: skip
    generated(PAGE, "cards", table(head, rows))


def test_the_page_lists_every_image(generated: Generated) -> None:
    rows = [
        (
            i.cloud, f"`{i.name}`", f"{i.os} {i.cpu_arch}", i.driver or "none", i.cuda or "",
            i.framework or "", " ".join(sorted(i.machines)) or "any",
            marked(i.source, i.as_of, i.status),
        )
        for i in load().software.images
    ]  # fmt: skip
    head = ("cloud", "image", "system", "driver", "CUDA", "framework", "machines", "source")
    generated(PAGE, "images", table(head, rows))
