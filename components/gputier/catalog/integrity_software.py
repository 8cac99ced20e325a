"""What must hold for the tables of software, ours or one with a person's overlay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gputier.catalog.load import Catalog
from gputier.catalog.software import parse_version


def wheels_are_sane(catalog: Catalog) -> Iterator[str]:
    """A wheel's CUDA has a driver, its index an address, and a release one default at most."""
    facts = catalog.software
    defaults: Counter[tuple[str, str, str]] = Counter()
    for one in facts.wheels:
        where = f"{one.framework} {one.version} {one.build} {one.cpu_arch}"
        defaults[one.framework, one.version, one.cpu_arch] += one.default
        if one.cuda_major not in facts.cuda:
            yield f"{where}: no row says which driver CUDA {one.cuda_major} needs"
        if not one.index_url.startswith("https://"):
            yield f"{where}: index_url is `{one.index_url}`, no https address"
        if one.build.startswith("cu") and one.build[2:].isdigit():
            named = f"{one.build[2:4]}.{one.build[4:]}"
            if named != one.cuda:
                yield f"{where}: CUDA is {one.cuda}, and the build says {named}"
    for release, count in defaults.items():
        if count > 1:
            yield f"{' '.join(release)}: {count} builds are the default"


def drivers_cover_every_card(catalog: Catalog) -> Iterator[str]:
    """Each card has a row, bounds in order, and a kernel module that its age allows."""
    facts = catalog.software
    branches = {one.branch for one in facts.branches}
    for model, gpu in catalog.gpus.items():
        card = facts.cards.get(model)
        if card is None:
            yield f"{model}: no row says which driver it needs"
            continue
        last = (gpu.driver_branch_last or "").removeprefix("R")
        if last and last not in branches:
            yield f"{model}: its last branch, {last}, has no row of its own"
        if last and parse_version(card.driver_min)[0] > int(last):
            yield f"{model}: needs {card.driver_min}, after its last branch {last}"
        # Open modules begin with Turing; Blackwell has no other.
        fits = "proprietary" if gpu.compute_capability < 7.5 else "either"
        if gpu.architecture.startswith("Blackwell"):
            fits = "open"
        if card.module != fits:
            yield f"{model}: module is {card.module}, and {gpu.architecture} takes {fits}"
    for model in facts.cards:
        if model not in catalog.gpus:
            yield f"gpu_drivers: `{model}` is no GPU of the catalogue"


def branches_and_cuda_agree(catalog: Catalog) -> Iterator[str]:
    """A branch's releases are of that branch, and run the CUDA it came with. What is installed is
    an exact version, which a branch alone is not."""
    facts = catalog.software
    for one in facts.branches:
        for release in filter(None, (one.newest, one.install)):
            if release.split(".")[0] != one.branch:
                yield f"branch {one.branch}: {release} is of another branch"
        if one.install and "." not in one.install:
            yield f"branch {one.branch}: {one.install} is no exact version to install"
        if one.install and parse_version(one.install) > parse_version(one.newest or one.branch):
            yield f"branch {one.branch}: {one.install} is newer than the newest known"
        needed = facts.cuda.get(parse_version(one.cuda)[0])
        if needed and parse_version(needed.driver_min)[0] > int(one.branch):
            yield f"branch {one.branch}: CUDA {one.cuda} needs {needed.driver_min}"


def images_are_for_known_machines(catalog: Catalog) -> Iterator[str]:
    """An image with a driver names machines of its cloud and processor; one without is for all."""
    named: dict[str, set[str]] = {}
    for (cloud, name), row in catalog.types.items():
        words = (name, row.family, f"{row.family}:{row.gpu_model}")
        for word in words:
            named.setdefault(f"{cloud} {row.cpu_arch}", set()).add(word)
    for one in catalog.software.images:
        known = named.get(f"{one.cloud} {one.cpu_arch}", set[str]())
        for word in sorted(one.machines - known - NOT_LISTED):
            yield f"{one.name}: `{word}` is no machine of {one.cloud} on {one.cpu_arch}"
        if bool(one.driver) != bool(one.machines):
            yield f"{one.name}: a driver and the machines it is for go together"


#: Machines that an image's notes name and that no cloud lists for sale.
NOT_LISTED = frozenset({"p6e-gb300"})
