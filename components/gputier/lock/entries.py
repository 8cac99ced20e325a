"""The lock: which machines one stack runs on, in a small text file that reads well in a review.

One block per workload, sorted, so that two branches that lock different workloads merge without a
conflict. Each block carries a seal over its own lines: a block edited by hand is an error that
names the command, never a machine nobody chose. The digest is over the validated declaration; a
newer catalogue or a newer gputier leaves a block with an unchanged digest alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gputier import units
from gputier.catalog import Catalog, load
from gputier.errors import CannotPlace, Problem, spelling_hint
from gputier.lock.bundle import current_bundle
from gputier.plan import StackPlan, WorkloadPlan
from gputier.plan.machine import Machine
from gputier.plan.price import cost_of
from gputier.workload import Declaration, digest


@dataclass(frozen=True, slots=True)
class Entry:
    """One workload's machine. `usd_per_hour` is for all its machines, None when unknown;
    `hours_per_month` is how long they run; `digest` is of the declaration it was chosen for.
    `bundle` is the SHA-256 of what its machines run to boot and prove themselves, `image` an id or
    a family; both are "" in a lock of a release that did not hold them. `driver` is the exact
    version that is installed at boot, "" where the image has one."""

    digest: str
    cloud: str
    region: str
    zones: tuple[str, ...]
    instance_type: str
    catalog_type: str
    attached: str | None  # "1 × T4": GPUs attached to an N1 machine
    attached_ssds: int
    nodes: int
    machines: int
    capacity: str
    availability: str
    usd_per_hour: float | None
    hours_per_month: float
    price_basis: str
    price_as_of: str | None
    catalog: str
    catalog_as_of: str
    bundle: str = ""
    bundle_version: str = ""
    image: str = ""
    driver: str = ""

    @property
    def usd_per_month(self) -> float | None:
        """What the machines cost in the hours they run."""
        return None if self.usd_per_hour is None else self.usd_per_hour * self.hours_per_month

    @property
    def machine(self) -> str:
        """What is bought, in words."""
        more = f" + {self.attached}" if self.attached else ""
        count = f"{self.machines} × " if self.machines > 1 else ""
        return f"{count}{self.instance_type}{more}"


@dataclass(frozen=True, slots=True)
class Lock:
    """All entries of a stack, by workload name."""

    stack: str
    entries: Mapping[str, Entry]


@dataclass(frozen=True, slots=True)
class Change:
    """What differs between two locks for one workload; money is None when a price is unknown."""

    name: str
    before: Entry | None
    after: Entry | None

    @property
    def usd_per_hour(self) -> float | None:
        before = self.before.usd_per_hour if self.before else 0.0
        after = self.after.usd_per_hour if self.after else 0.0
        return None if before is None or after is None else after - before

    @property
    def usd_per_month(self) -> float | None:
        """The difference a month, each side at the hours it runs."""
        before = self.before.usd_per_month if self.before else 0.0
        after = self.after.usd_per_month if self.after else 0.0
        return None if before is None or after is None else after - before


def lock_path(declaration: Declaration) -> Path:
    """`gputier.<stack>.lock` beside the file the declaration came from."""
    return Path(declaration.source).parent / f"gputier.{declaration.name}.lock"


def lock_command(declaration: Declaration) -> str:
    """What to type to lock this declaration: the stack's name, or the file it is in."""
    source = Path(declaration.source)
    stack = source.name == f"Pulumi.{declaration.name}.yaml"
    return f"gputier lock {declaration.name if stack else source}"


def make_lock(plan: StackPlan, declaration: Declaration) -> Lock:
    """The lock of a plan. Raises `CannotPlace` for what cannot be locked: a workload that fits
    nowhere, or whose only fit is on a cloud that gputier does not deploy."""
    problems: list[Problem] = []
    entries: dict[str, Entry] = {}
    for w in plan.workloads:
        path = f"workloads.{w.name}"
        if w.chosen is None:
            hint = f"`gputier plan {plan.name}` shows the nearest misses"
            problems.append(
                Problem(path, f"no machine fits `{w.name}`", hint, declaration.positions.at(path))
            )
        elif w.chosen.verdict.plan_only:
            cloud = w.chosen.verdict.type.cloud
            problems.append(
                Problem(
                    path,
                    f"`{w.name}` fits only on {cloud}, which is plan only: shown, never locked",
                    "add aws or gcp to its clouds",
                    declaration.positions.at(path),
                )
            )
        else:
            entries[w.name] = _entry(w, plan, declaration)
    if problems:
        raise CannotPlace(problems)
    return Lock(plan.name, entries)


def digest_of(declaration: Declaration, name: str) -> str:
    """Digest of one validated workload with what else decides its machine."""
    return digest(declaration.workloads[name], declaration.environment, declaration.discounts)


def _entry(w: WorkloadPlan, plan: StackPlan, declaration: Declaration) -> Entry:
    if w.chosen is None:
        raise ValueError(f"{w.name} has no machine")
    v, boot, bundle = w.chosen.verdict, w.chosen.boot, current_bundle()
    cost = v.cost
    attached = f"{v.type.attached_count} × {v.type.gpu_model}" if v.machine.host else None
    return Entry(
        digest=digest_of(declaration, w.name),
        cloud=v.type.cloud,
        region=v.region,
        zones=w.chosen.zones,
        instance_type=v.machine.instance_type,
        catalog_type=v.type.name,
        attached=attached,
        attached_ssds=v.machine.ssd_count,
        nodes=v.machine.nodes,
        machines=v.machines,
        capacity=v.use,
        availability=v.availability,
        usd_per_hour=None if cost is None or cost.total is None else round(cost.total, 6),
        hours_per_month=round(w.chosen.scaling.hours_per_month, 2),
        price_basis=cost.basis if cost else "unknown",
        price_as_of=cost.as_of if cost else None,
        catalog=plan.catalog_id,
        catalog_as_of=plan.catalog_as_of,
        bundle=bundle.sha256,
        bundle_version=bundle.version,
        image=boot.image.id or boot.image.family or "",
        driver=boot.driver.version or "",
    )


def former_names(declaration: Declaration) -> dict[str, str]:
    """Renamed workloads: name → the name it had."""
    return {name: w.was for name, w in declaration.workloads.items() if w.was}


def merged(
    old: Lock | None,
    new: Lock,
    upgrade: Iterable[str] = (),
    former: Mapping[str, str] | None = None,
) -> Lock:
    """What to write: an entry whose declaration did not change keeps its machine, bundle, image and
    driver, unless it is named in `upgrade`: a new release alone changes no machine's user data.
    `former` are the names that renamed workloads had: a rename keeps the machine too."""
    kept = dict(new.entries)
    wanted = set(upgrade)
    standing = dict(old.entries) if old else {}
    for name, was in (former or {}).items():
        if was in standing and name not in standing:
            standing[name] = standing[was]
    for name, entry in standing.items():
        fresh = kept.get(name)
        if fresh is not None and name not in wanted and fresh.digest == entry.digest:
            kept[name] = _completed(entry, fresh)
    return Lock(new.stack, kept)


def _completed(entry: Entry, fresh: Entry) -> Entry:
    """An entry of a release that pinned no bundle, or no driver, with today's where the machine is
    the same."""
    if (entry.cloud, entry.catalog_type) != (fresh.cloud, fresh.catalog_type):
        return entry
    if not entry.bundle:
        bundle = {"bundle": fresh.bundle, "bundle_version": fresh.bundle_version}
        return replace(entry, **bundle, image=fresh.image, driver=fresh.driver)
    # On the same image the same is to be installed; another may have its driver.
    if not entry.driver and entry.image == fresh.image:
        return replace(entry, driver=fresh.driver)
    return entry


def compare(old: Lock | None, new: Lock) -> tuple[Change, ...]:
    """Workloads whose entry differs, sorted by name."""
    before: Mapping[str, Entry] = old.entries if old else {}
    names = sorted({*before, *new.entries})
    return tuple(
        Change(n, before.get(n), new.entries.get(n))
        for n in names
        if before.get(n) != new.entries.get(n)
    )


def check_lock(lock: Lock, declaration: Declaration) -> list[Problem]:
    """What is stale: nothing is selected, only digests are compared."""
    stale = (stale_entry(lock, declaration, name) for name in declaration.workloads)
    found = [problem for problem in stale if problem]
    for name in lock.entries:
        if name not in declaration.workloads:
            message = f"the lock holds `{name}`, which is no longer declared"
            found.append(Problem(name, message, f"run `{lock_command(declaration)}`"))
    return found


def stale_entry(lock: Lock, declaration: Declaration, name: str) -> Problem | None:
    """Why the entry of a declared workload is stale; None where it is not."""
    command, entry = lock_command(declaration), lock.entries.get(name)
    place = declaration.positions.at(f"workloads.{name}")
    if entry is None:
        return Problem(name, f"workload `{name}` is not in the lock", f"run `{command}`", place)
    if entry.digest != digest_of(declaration, name):
        message = f"workload `{name}` changed since it was locked on {entry.machine}"
        return Problem(name, message, f"run `{command}`", place)
    if not entry.bundle:
        message = f"the lock of `{name}` is of a release that did not pin what machines boot"
        hint = f"run `{command}`; where that changes nothing, `{command} --upgrade {name}`"
        return Problem(name, message, hint, place)
    return None


@dataclass(frozen=True, slots=True)
class Cheaper:
    """A best pick of today that undercuts the locked machine, USD per hour of the workload."""

    name: str
    locked: Entry
    locked_usd_per_hour: float
    best: Entry
    percent: float


def cheaper_than(
    lock: Lock,
    plan: StackPlan,
    declaration: Declaration,
    percent: float,
    catalog: Catalog | None = None,
) -> tuple[Cheaper, ...]:
    """Workloads whose best pick of today is cheaper than the locked machine by more than
    `percent`. The locked machine counts at its price of today, in its own region and bought its
    own way; without one, at the price it was locked at. A stale entry is not compared: its pick
    differs because the declaration does. `catalog` is the plan's, by default the
    packaged one."""
    known = catalog or load()
    found: list[Cheaper] = []
    for w in plan.workloads:
        entry = lock.entries.get(w.name)
        if entry is None or w.chosen is None or w.chosen.verdict.plan_only:
            continue
        best = _entry(w, plan, declaration)
        if best.digest != entry.digest:
            continue
        today = _price_today(entry, w, declaration, known)
        today = entry.usd_per_hour if today is None else today
        if today is None or best.usd_per_hour is None or not today:
            continue
        saving = 100 * (1 - best.usd_per_hour / today)
        if saving > percent:
            found.append(Cheaper(w.name, entry, today, best, saving))
    return tuple(found)


def _price_today(
    entry: Entry, w: WorkloadPlan, declaration: Declaration, catalog: Catalog
) -> float | None:
    """USD per hour of the locked machines where and how they are bought; None when unknown."""
    type_ = catalog.types.get((entry.cloud, entry.catalog_type))
    choice = next((c for c in w.need.workload.capacity if c.use == entry.capacity), None)
    if type_ is None or choice is None:
        return None
    host = next((h for h in catalog.hosts() if h.name == entry.instance_type), None)
    machine = Machine(type_, host, entry.attached_ssds, entry.nodes, None, 0.0)
    discounts = declaration.discounts
    return cost_of(catalog, machine, entry.region, choice, discounts, entry.machines).total


def unknown_names(names: Iterable[str], declaration: Declaration) -> list[Problem]:
    """Workloads named on the command line that are not declared."""
    known = list(declaration.workloads)
    return [
        Problem(
            "",
            f"`{name}` is not a workload of {declaration.name}",
            spelling_hint(name, known, otherwise=f"it declares {', '.join(known)}"),
        )
        for name in names
        if name not in known
    ]


def describe(change: Change) -> str:
    """One line of what changed and the money."""
    before, after = change.before, change.after
    if after is None:
        return f"{change.name}: removed, {_money(change)}"
    if before is None:
        return f"{change.name}: new, {after.machine} in {after.region}, {_money(change)}"
    same = (before.machine, before.region, before.capacity) == (
        after.machine,
        after.region,
        after.capacity,
    )
    more = "".join(_boots_anew(before, after))
    if same:
        what = f"same machine, {after.machine} in {after.region}"
        return f"{change.name}: {what}, {_money(change)}{more}"
    return f"{change.name}: {_place(before)} → {_place(after)}, {_money(change)}{more}"


def _boots_anew(before: Entry, after: Entry) -> Iterator[str]:
    """What makes new machines of a workload boot otherwise than those that run."""
    if before.bundle != after.bundle:
        yield f", bundle {after.bundle_version} ({after.bundle[:8]})"
    if before.image != after.image:
        yield ", another image"
    if before.driver != after.driver:
        yield f", driver {after.driver or 'of the image'}"


def _place(entry: Entry) -> str:
    bought = "" if entry.capacity == "on_demand" else f" {entry.capacity}"
    return f"{entry.machine} in {entry.region}{bought}"


def _money(change: Change) -> str:
    hour, month = change.usd_per_hour, change.usd_per_month
    if hour is None or month is None:
        return "price unknown"
    if not hour and not month:
        return "same price"
    signs = ["+" if money > 0 else "−" if money < 0 else "±" for money in (hour, month)]
    each = units.usd_per_hour(abs(hour)), f"{units.usd(abs(month))} a month"
    return ", ".join(sign + money for sign, money in zip(signs, each, strict=True))
