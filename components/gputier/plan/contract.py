"""The version contract: which driver, kernel module, wheel and image go together on a machine.

A card takes drivers between two branches, a wheel has code for some cards and asks for a driver,
an image brings a driver or none. All of it is known before a machine is bought (the catalogue's
tables wheels, cuda_drivers, driver_branches, gpu_drivers and images; docs/versions.md), so that a
combination that cannot work is refused here and not found out on the machine.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from gputier.catalog import (
    UNVERIFIED,
    Branch,
    Catalog,
    Gpu,
    InstanceType,
    MachineImage,
    Wheel,
    parse_version,
)
from gputier.plan.reasons import Reason
from gputier.workload import Software

RULE = "software"
#: Operating systems in the order they are taken where none is declared.
OS_ORDER = ("ubuntu-24.04", "ubuntu-22.04", "amazon-linux-2023", "rocky-9")
#: Branches in the order they are installed: one that is kept for long first.
KIND_ORDER = ("lts", "production", "ended", "new-feature")
#: The first branch whose open kernel module is meant for data-centre use
#: (github.com/NVIDIA/open-gpu-kernel-modules, release notes of 515).
FIRST_OPEN_BRANCH = 515


class Agreed(NamedTuple):
    """What goes together on one machine. `driver` is exact where it is installed; of an image it is
    what is known of it: exact, or a branch; None where the image is somebody's own and does not
    say. `doubts` are the parts that rest on no source."""

    image: MachineImage | None
    driver: str | None
    prebaked: bool
    module: str
    wheel: Wheel | None
    driver_min: str | None
    driver_max: str | None
    doubts: tuple[str, ...]


class _Bounds(NamedTuple):
    """Drivers that will do: at least `low`, at most branch `high`; None is no bound."""

    low: str | None
    high: str | None

    def hold(self, driver: str) -> bool:
        return not self.under(driver) and not self.over(driver)

    def under(self, driver: str) -> bool:
        return self.low is not None and not _reaches(driver, self.low)

    def over(self, driver: str) -> bool:
        return self.high is not None and parse_version(driver)[0] > parse_version(self.high)[0]

    def raised(self, low: str | None) -> _Bounds:
        """The same with a higher floor, where `low` is one."""
        if low is None or (self.low and parse_version(self.low) >= parse_version(low)):
            return self
        return self._replace(low=low)

    def __str__(self) -> str:
        if self.low and self.high:
            return f"a driver from {self.low} to branch {self.high}"
        return f"driver ≥ {self.low}" if self.low else f"a driver up to branch {self.high}"


def _reaches(driver: str, wanted: str) -> bool:
    """Whether a driver is as new as wanted, as far as its version is known: a branch alone may
    be any release of it."""
    has = parse_version(driver)
    return has >= parse_version(wanted)[: len(has)]


class Contract:
    """The contract of one workload's software, asked about one instance type after the other."""

    def __init__(self, catalog: Catalog, software: Software) -> None:
        self._catalog = catalog
        self._facts = catalog.software
        self._software = software
        self._image = software.image
        self._memo: dict[tuple[object, ...], Agreed | Reason] = {}
        self._by_cpu: dict[str, list[Wheel]] = {}
        # Types that an image names one by one; the others of a family are alike.
        self._named = frozenset[str]().union(*(i.machines for i in self._facts.images))

    def refusal(self, row: InstanceType) -> Reason | None:
        """Why the declared software cannot run on this type, with what to relax."""
        found = self.ask(row)
        return found if isinstance(found, Reason) else None

    def ask(self, row: InstanceType) -> Agreed | Reason:
        """What goes together on this type, or why nothing does."""
        kind = row.name if row.name in self._named else row.family
        key = (row.cloud, kind, row.gpu_model, row.cpu_arch, row.fractional)
        known = self._memo.get(key)
        if known is None:
            known = self._memo[key] = self._asked(row)
        return known

    def _asked(self, row: InstanceType) -> Agreed | Reason:
        gpu = self._catalog.gpus[row.gpu_model]
        for refused in (self._wrong_cloud(row), _no_guest_driver(row, self._has_own_image)):
            if refused:
                return refused
        bounds = self._card_bounds(gpu)
        wheel: Wheel | None = None
        for refused in (self._wrong_cuda(gpu), self._wrong_driver(gpu, bounds)):
            if refused:
                return refused
        if self._image and self._image.cuda:
            bounds = bounds.raised(self._cuda_floor(parse_version(self._image.cuda)[0]))
        if self._software.framework:
            chosen = self._wheel(row, gpu, bounds)
            if isinstance(chosen, Reason):
                return chosen
            wheel = chosen
            bounds = bounds.raised(self._cuda_floor(wheel.cuda_major))
        declared = self._declared_driver
        if declared and not bounds.hold(declared):  # for `image.cuda`; wheels were chosen by it
            return _driver_reason(str(bounds), f"`software.image.driver` is {declared}", bounds)
        return self._with_image(row, gpu, bounds, wheel)

    # --- what is declared ------------------------------------------------------------------------

    @property
    def _has_own_image(self) -> bool:
        return bool(self._image and self._image.id)

    @property
    def _listed(self) -> MachineImage | None:
        """The declared image where the table has it."""
        name = self._image.id if self._image else None
        return next((one for one in self._facts.images if one.name == name), None)

    @property
    def _declared_driver(self) -> str | None:
        """The driver the machine is said to have: declared, or known of the declared image."""
        if self._image and self._image.driver:
            return self._image.driver
        return self._listed.driver if self._listed else None

    def _wrong_cloud(self, row: InstanceType) -> Reason | None:
        name = (self._image.id if self._image else None) or ""
        owner = "gcp" if name.startswith("projects/") else "aws" if name else ""
        if not owner or owner == row.cloud:
            return None
        relax = f"software.image: one of {row.cloud}, or clouds: [{owner}]"
        return Reason(RULE, f"{owner}, whose image is declared", row.cloud, relax)

    # --- driver ----------------------------------------------------------------------------------

    def _card_bounds(self, gpu: Gpu) -> _Bounds:
        card = self._facts.cards.get(gpu.model)
        last = gpu.driver_branch_last
        return _Bounds(card.driver_min if card else None, last.removeprefix("R") if last else None)

    def _cuda_floor(self, major: int) -> str | None:
        found = self._facts.cuda.get(major)
        return found.driver_min if found else None

    def _wrong_driver(self, gpu: Gpu, bounds: _Bounds) -> Reason | None:
        declared = self._declared_driver
        if declared is None or bounds.hold(declared):
            return None
        has = f"{gpu.model}, with driver {declared} declared"
        return _driver_reason(f"{gpu.model}: {bounds}", has, bounds)

    def _wrong_cuda(self, gpu: Gpu) -> Reason | None:
        declared = self._image.cuda if self._image else None
        if declared is None:
            return None
        first, last = gpu.cuda_toolkit_min, gpu.cuda_toolkit_last
        wanted = parse_version(declared)
        if first and wanted < parse_version(first):
            needed, relax = f"CUDA ≥ {first}", f"software.image.cuda: {first}"
        elif last and wanted > parse_version(last):
            needed, relax = f"CUDA ≤ {last}", f"software.image.cuda: {last}"
        else:
            return None
        return Reason(RULE, f"{gpu.model}: {needed}", f"CUDA {declared} declared", relax)

    def _module(self, gpu: Gpu, branch: str | None) -> str:
        """Open where the card takes it: Blackwell has no other, Volta and older none."""
        card = self._facts.cards.get(gpu.model)
        old = branch is not None and parse_version(branch)[0] < FIRST_OPEN_BRANCH
        return "proprietary" if old or (card and card.module == "proprietary") else "open"

    # --- wheel -----------------------------------------------------------------------------------

    def _wheel(self, row: InstanceType, gpu: Gpu, bounds: _Bounds) -> Wheel | Reason:
        """The framework's own default where card and driver allow it, else the newest build that
        they do."""
        name, declared = self._software.framework or "", self._declared_driver
        builds = self._by_cpu.get(row.cpu_arch)
        if builds is None:
            builds = self._by_cpu[row.cpu_arch] = self._builds(row.cpu_arch)
        if not builds:
            return self._no_build(row, gpu)
        serving = [one for one in builds if one.serves(gpu.compute_capability)]
        if not serving:
            return self._no_kernels(row, gpu, builds)
        for one in serving:
            floor = self._cuda_floor(one.cuda_major)
            needed = bounds.raised(floor)
            if declared is not None and needed.hold(declared):
                return one
            if declared is None and (floor is None or not bounds.over(floor)):
                return one
        least = min((self._cuda_floor(w.cuda_major) or "0" for w in serving), key=parse_version)
        what = f"driver {declared}" if declared else str(bounds)
        way = f"software.image.driver: {parse_version(least)[0]}"
        return Reason(RULE, f"{name}: driver ≥ {least}", what, f"{way}, or another framework")

    def _builds(self, cpu_arch: str) -> list[Wheel]:
        s = self._software
        found = [
            one
            for one in self._facts.wheels
            if one.framework == s.framework_name
            and one.cpu_arch == cpu_arch
            and one.is_of(s.framework_version)
            and s.framework_build in ("", one.build)
        ]
        return sorted(found, key=lambda w: (not w.default, [-n for n in parse_version(w.cuda)]))

    def _no_build(self, row: InstanceType, gpu: Gpu) -> Reason:
        has = f"{row.cpu_arch}, for which there is none"
        relax = self._other_version(row, gpu) or "cpu.architecture: x86_64, or a container"
        return Reason(RULE, f"a CUDA wheel of {self._software.framework}", has, relax)

    def _no_kernels(self, row: InstanceType, gpu: Gpu, builds: Sequence[Wheel]) -> Reason:
        served = sorted({str(c) for w in builds for c in w.capabilities}, key=_by_number)
        needed = f"{self._software.framework}: compute capability {' '.join(served)}"
        has = f"{gpu.model} is {gpu.compute_capability:.1f}"
        relax = self._other_version(row, gpu) or "software.container: one built for this card"
        return Reason(RULE, needed, has, relax)

    def _other_version(self, row: InstanceType, gpu: Gpu) -> str:
        """The nearest version of the framework whose wheels this machine runs, to paste."""
        s = self._software
        here = parse_version(s.framework_version)
        versions = [
            parse_version(w.version)
            for w in self._facts.wheels
            if w.framework == s.framework_name
            and w.cpu_arch == row.cpu_arch
            and w.serves(gpu.compute_capability)
        ]
        if not versions:
            return ""
        newer = [v for v in versions if v > here]
        nearest = min(newer) if newer else max(versions)
        return f"software.framework: {s.framework_name}=={'.'.join(map(str, nearest))}"

    # --- image -----------------------------------------------------------------------------------

    def _with_image(
        self, row: InstanceType, gpu: Gpu, bounds: _Bounds, wheel: Wheel | None
    ) -> Agreed | Reason:
        if self._has_own_image:
            return self._agreed(gpu, (self._listed, self._declared_driver, True), bounds, wheel)
        offered = self._offered(row)
        if isinstance(offered, Reason):
            return offered
        for image in offered:
            if image.driver and self._will_do(image.driver, bounds) and _is_for(image, row):
                return self._agreed(gpu, (image, image.driver, True), bounds, wheel)
        plain = next((image for image in offered if image.driver is None), None)
        driver = self._installed(gpu, bounds)
        if isinstance(driver, Reason):
            return driver
        return self._agreed(gpu, (plain, driver, False), bounds, wheel)

    def _agreed(
        self,
        gpu: Gpu,
        driven: tuple[MachineImage | None, str | None, bool],
        bounds: _Bounds,
        wheel: Wheel | None,
    ) -> Agreed:
        """The agreement on an image, its driver and whether it brings it; and its doubts."""
        image, driver, prebaked = driven
        card = self._facts.cards.get(gpu.model)
        rests_on = (
            (image, "the image's name or driver"),
            (wheel, f"the cards that {self._software.framework} serves"),
            (None if prebaked else card, f"the oldest driver for {gpu.model}"),
        )
        doubts = tuple(what for row, what in rests_on if row and row.status == UNVERIFIED)
        return Agreed(image, driver, prebaked, self._module(gpu, driver), wheel, *bounds, doubts)

    def _offered(self, row: InstanceType) -> list[MachineImage] | Reason:
        """The images for this processor, first choice first; none on a cloud without any here."""
        wanted = self._image.os if self._image else None
        ours = [i for i in self._facts.images if i.cloud == row.cloud and not i.framework]
        found = [i for i in ours if i.cpu_arch == row.cpu_arch and wanted in (None, i.os)]
        if ours and wanted and not found:
            there = sorted({i.os for i in ours if i.cpu_arch == row.cpu_arch}, key=OS_ORDER.index)
            has = f"{row.cloud} has {', '.join(there) or 'none'} for {row.cpu_arch}"
            relax = f"software.image.os: {there[0] if there else 'leave it out'}"
            return Reason(RULE, f"an image with {wanted}", has, relax)
        return sorted(found, key=_image_order)

    def _will_do(self, driver: str, bounds: _Bounds) -> bool:
        declared = self._declared_driver
        if declared is None:
            return bounds.hold(driver)
        if "." in declared:
            return driver == declared
        return parse_version(driver)[0] == parse_version(declared)[0]

    def _installed(self, gpu: Gpu, bounds: _Bounds) -> str | Reason:
        """The exact version to install: declared, of the declared branch, or of one that is kept
        for long, within what card and wheel take. Only versions of which packages are known: what
        no repository has would be found out on the machine."""
        declared = self._declared_driver
        if declared and "." in declared:
            return declared
        order = sorted(self._facts.branches, key=_branch_order)
        wanted = [b for b in order if declared in (None, b.branch)]
        fits = (b.install for b in wanted if b.install and bounds.hold(b.install))
        found = next(fits, None)
        if found:
            return found
        needed = f"{gpu.model}: {bounds}"
        held = [b.branch for b in wanted if bounds.hold(b.newest or b.branch)]
        if not held:
            return _driver_reason(needed, "no branch between them", bounds)
        relax = "software.image: your own, which has the driver"
        return Reason(RULE, needed, f"no packages of branch {', '.join(held)}", relax)


def contract_of(catalog: Catalog, software: Software) -> Contract:
    """The contract of this software, with what it was already asked."""
    # Frozen by its configuration, and so hashable, which the type does not say.
    return _contract(catalog, cast("Hashable", software))


@lru_cache(maxsize=64)
def _contract(catalog: Catalog, software: Hashable) -> Contract:
    return Contract(catalog, cast("Software", software))


def _by_number(capability: str) -> tuple[int, ...]:
    return parse_version(capability.removesuffix("+PTX"))


def _no_guest_driver(row: InstanceType, own_image: bool) -> Reason | None:
    """A provider's slice runs under its vGPU driver only, which is licensed with the machine and
    which no public image or repository has."""
    if not row.fractional or own_image:
        return None
    relax = "software.image: your own with the provider's GRID driver, or gpu.fractional: forbid"
    return Reason(RULE, "a card that takes NVIDIA's public driver", "a vGPU slice", relax)


def _driver_reason(needed: str, has: str, bounds: _Bounds) -> Reason:
    way = bounds.high or (str(parse_version(bounds.low)[0]) if bounds.low else "leave it out")
    return Reason(RULE, needed, has, f"software.image.driver: {way}")


def _is_for(image: MachineImage, row: InstanceType) -> bool:
    named = {row.name, row.family, f"{row.family}:{row.gpu_model}"}
    return not image.machines.isdisjoint(named)


def _image_order(image: MachineImage) -> tuple[object, ...]:
    newest = [-part for part in parse_version(image.driver)] if image.driver else [1]
    return (OS_ORDER.index(image.os), newest, image.name)


def _branch_order(branch: Branch) -> tuple[int, int]:
    return (KIND_ORDER.index(branch.kind), -parse_version(branch.branch)[0])
