"""Facts about GPUs, machines, prices and places: typed records and pure look-ups.

    from gputier.catalog import load
    catalog = load()
    catalog.types["aws", "p5.48xlarge"].usable_gib

Nothing here decides anything. `docs/catalog.md` says what the data holds and how to renew it.
"""

from gputier.catalog.interfaces import CardLayout, Interface, parse_layout
from gputier.catalog.load import HOME_REGIONS, Catalog, load
from gputier.catalog.records import (
    CLOUDS,
    GENERATIONS,
    INTERCONNECTS,
    LIFECYCLES,
    PURCHASES,
    Gpu,
    HostMachine,
    InstanceType,
    ItemPrice,
    Price,
    SpotAdvice,
    ZoneCap,
)
from gputier.catalog.regions import is_commercial, region_of_zone
from gputier.catalog.software import (
    SOURCED,
    UNVERIFIED,
    Branch,
    Capability,
    CardDriver,
    CudaDriver,
    MachineImage,
    SoftwareFacts,
    Wheel,
    parse_version,
)

__all__ = [
    "CLOUDS",
    "GENERATIONS",
    "HOME_REGIONS",
    "INTERCONNECTS",
    "LIFECYCLES",
    "PURCHASES",
    "SOURCED",
    "UNVERIFIED",
    "Branch",
    "Capability",
    "CardDriver",
    "CardLayout",
    "Catalog",
    "CudaDriver",
    "Gpu",
    "HostMachine",
    "InstanceType",
    "Interface",
    "ItemPrice",
    "MachineImage",
    "Price",
    "SoftwareFacts",
    "SpotAdvice",
    "Wheel",
    "ZoneCap",
    "is_commercial",
    "load",
    "parse_layout",
    "parse_version",
    "region_of_zone",
]
