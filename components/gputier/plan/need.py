"""What is asked of a machine: tier, purpose, sizing and the workload's own words as floors.

`need_of` turns a workload into a `Need`. Each rule has at most one floor; the larger of tier and
purpose counts, and a workload's own word replaces both, which is recorded as an override.
`Need.without(rule)` is the same need with one floor dropped: the price of a floor is the
difference between two selections, never a formula of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gputier import sizing
from gputier.plan.software import asks, in_words
from gputier.plan.tiers import Floor, FloorValue, purposes, tiers
from gputier.sizing import Sizing
from gputier.workload import Workload
from gputier.workload.declare import PRODUCTION

#: Purposes that take as many machines as the model needs; the others stay on one.
SPREADS_OVER_NODES = frozenset({"training"})


class Override(NamedTuple):
    """A tier's or purpose's floor that the workload's own word replaced; `per` scaled it."""

    rule: str
    origin: str
    was: FloorValue
    now: FloorValue | None
    per: str = ""


@dataclass(frozen=True)
class Need:
    """Everything selection asks of a candidate. `sizes` caches sizing per number of GPUs."""

    name: str
    workload: Workload
    environment: str
    purpose: str
    floors: Mapping[str, Floor]
    leanings: tuple[Floor, ...]
    overrides: tuple[Override, ...]
    sizes: dict[tuple[int, float], Sizing | None] = field(
        default_factory=dict[tuple[int, float], Sizing | None], compare=False
    )

    @property
    def kept_free(self) -> float:
        """Share of the card that stays free, 0 when no tier asks for it."""
        floor = self.floors.get("kept_free")
        return floor.number if floor else 0.0

    def sizing(self, gpus: int) -> Sizing | None:
        """The size on `gpus` GPUs working together; None when no model is declared."""
        key = (gpus, self.kept_free)
        if key not in self.sizes:
            self.sizes[key] = sizing.size(self.workload, gpus=gpus, kept_free=self.kept_free)
        return self.sizes[key]

    def without(self, rule: str) -> Need:
        """The same need with one floor dropped."""
        return replace(self, floors={r: f for r, f in self.floors.items() if r != rule})

    @property
    def memory_floor_gib(self) -> float:
        """GPU memory per GPU asked for without a model: what `needed` means then."""
        floor = self.floors.get("gpu_memory")
        return floor.number if floor else 0.0

    @property
    def spreads(self) -> bool:
        """True when the number of machines follows from the need."""
        w = self.workload
        return self.purpose in SPREADS_OVER_NODES and w.nodes is None and not scales(w)


def purpose_of(workload: Workload) -> str:
    """The purpose, declared or implied by the model (the schema fills it in); "" without either."""
    return workload.purpose or ""


def scales(workload: Workload) -> bool:
    """True when the number of machines may change while the fleet runs."""
    return workload.scale.min is not None or workload.scale.max is not None


def need_of(name: str, workload: Workload, environment: str = "dev") -> Need:
    """All floors of a workload, each with who asks for it and why."""
    purpose = purpose_of(workload)
    sources = [tiers()[workload.tier]] if workload.tier else []
    if purpose:
        sources.append(purposes()[purpose])
    floors: dict[str, Floor] = {}
    leanings: list[Floor] = []
    for source in sources:
        for floor in source.require:
            floors[floor.rule] = _larger(floors.get(floor.rule), floor)
        leanings += source.prefer
        if source.kept_free:
            floors["kept_free"] = Floor(
                "kept_free",
                source.kept_free,
                f"{source.kind} {source.name}",
                "room against out-of-memory",
                source.kept_free_requirement,
            )
    overrides: list[Override] = []
    for rule, value, why in _own_words(workload):
        _override(
            floors,
            overrides,
            Floor(rule, value, "workload", why) if value is not None else None,
            rule,
        )
    for floor in (*_defaults(workload, purpose, environment), *_resolved_precision(workload)):
        floors.setdefault(floor.rule, floor)
    return Need(name, workload, environment, purpose, floors, tuple(leanings), tuple(overrides))


def _larger(a: Floor | None, b: Floor) -> Floor:
    if a is None or isinstance(a.value, (str, tuple)) or a.per != b.per:
        return b
    return a if a.number >= b.number else b


def _override(
    floors: dict[str, Floor], overrides: list[Override], own: Floor | None, rule: str
) -> None:
    standing = floors.pop(rule, None)
    if own is not None:
        floors[rule] = own
    if standing is None:
        return
    replaced = own is None or standing.per or not _same(own.value, standing.value)
    raised = (
        own is not None
        and not standing.per
        and not isinstance(own.value, (str, tuple))
        and not isinstance(standing.value, (str, tuple))
        and own.number >= standing.number
    )
    if replaced and not raised:
        overrides.append(
            Override(
                rule, standing.origin, standing.value, own.value if own else None, standing.per
            )
        )


def _same(a: FloorValue, b: FloorValue) -> bool:
    """Equal, whatever the order in which names are listed."""
    return set(a) == set(b) if isinstance(a, tuple) and isinstance(b, tuple) else a == b


#: A word of the workload: (rule, value or None to drop the tier's floor, where it is written).
Word = tuple[str, FloorValue | None, str]


def _own_words(w: Workload) -> list[Word]:
    words: list[Word] = []
    for words_of in (_gpu_words, _machine_words, _model_words):
        words += words_of(w)
    return words


def _gpu_words(w: Workload) -> list[Word]:
    gpu = w.gpu
    words: list[Word] = []
    if gpu.models:
        words.append(("gpu_model", gpu.models, "gpu.models"))
    if gpu.exclude:
        words.append(("gpu_exclude", gpu.exclude, "gpu.exclude"))
    plain: tuple[tuple[str, FloorValue | None, str], ...] = (
        ("gpu_count", gpu.count, "gpu.count"),
        ("gpu_memory", gpu.memory, "gpu.memory"),
        ("total_memory", gpu.total_memory, "gpu.total_memory"),
        ("compute_capability", gpu.compute_capability, "gpu.compute_capability"),
    )
    words += [word for word in plain if word[1] is not None]
    if gpu.nvlink is not None:
        words.append(("nvlink", None if gpu.nvlink is False else gpu.nvlink, "gpu.nvlink"))
    if gpu.graphics is not None:
        words.append(("graphics", gpu.graphics or None, "gpu.graphics"))
    for rule in ("video_encode", "video_decode", "vgpu"):
        own = getattr(gpu, rule)
        if own is not None:
            words.append((rule, own or None, f"gpu.{rule}"))
    if gpu.mig:
        words.append(("mig", gpu.mig, "gpu.mig"))
    return words


def _machine_words(w: Workload) -> list[Word]:
    words: list[Word] = []
    if w.cpu.count is not None:
        words.append(("vcpu", w.cpu.count, "cpu.count"))
    if w.memory is not None:
        words.append(("host_memory", w.memory, "memory"))
    if w.network.bandwidth is not None:
        words.append(("network", w.network.bandwidth, "network.bandwidth"))
    if w.network.placement is not None:
        wanted = w.network.placement
        words.append(("placement", None if wanted == "none" else wanted, "network.placement"))
    if w.fabric is not None:
        words.append(("fabric", None if w.fabric == "none" else w.fabric, "fabric"))
    for rule, value in (
        ("scratch", w.disk.scratch),
        ("disk_throughput", w.disk.throughput),
        ("disk_iops", w.disk.iops),
    ):
        if value is not None:
            words.append((rule, value, f"disk.{rule.removeprefix('disk_')}"))
    if asks(w.software):
        words.append(("software", in_words(w.software), "software"))
    if w.max_usd_per_hour is not None:
        words.append(("price_ceiling", w.max_usd_per_hour, "max_usd_per_hour"))
    return words


def _model_words(w: Workload) -> list[Word]:
    words: list[Word] = []
    if w.model and w.model.precision:
        words.append(("precision", w.model.precision, "model.precision"))
    return words


def _resolved_precision(w: Workload) -> list[Floor]:
    """The precision that sizing took where the workload says none, if the card must have it: what
    the model is stored in, or bf16 for training. A model served at 16 bit runs in fp16 as well."""
    model = w.model
    if model is None or model.precision is not None:
        return []
    sized = sizing.size(w, gpus=1)
    taken = sized.precision if sized else ""
    if taken == "fp8":
        return [Floor("precision", taken, "model", "the model is stored in FP8")]
    if taken == "bf16" and model.training is not None and model.training.method != "qlora":
        return [
            Floor("precision", taken, "default", "training is in bf16 unless you say otherwise")
        ]
    return []


def _defaults(w: Workload, purpose: str, environment: str) -> list[Floor]:
    found: list[Floor] = []
    architecture = w.cpu.architecture
    if architecture != "any":
        declared = "architecture" in w.cpu.model_fields_set
        found.append(
            Floor(
                "architecture",
                architecture,
                "workload" if declared else "default",
                "images and wheels are built for one architecture",
            )
        )
    fractional = w.gpu.fractional or ("allow" if purpose == "vdi" else "forbid")
    if fractional == "forbid":
        found.append(Floor("fractional", "forbid", "default", "a slice is not a whole GPU"))
    if environment in PRODUCTION:
        found.append(
            Floor(
                "consumer_card",
                "forbid",
                f"environment {environment}",
                "no ECC and no enterprise driver on consumer cards",
                "31",
            )
        )
    elif purpose != "development":
        found.append(
            Floor(
                "consumer_card",
                "forbid",
                "default",
                "consumer cards are for development only",
                "31",
            )
        )
    return found
