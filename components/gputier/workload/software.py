"""What runs on the machines and how a node proves itself: image, framework, container, gate.

All of it becomes part of a boot script, so that every value is text a shell can be given safely,
none is a secret, and all together stay small.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from gputier.workload import fields
from gputier.workload.base import Clash, Spec
from gputier.workload.complaints import complaint
from gputier.workload.shapes import as_items
from gputier.workload.software_values import (
    in_order,
    is_framework,
    is_host,
    is_image,
    is_package,
    is_plain,
    is_registry,
    is_safe,
    is_script,
    is_ssh_key,
    is_url,
    is_variables,
    is_version,
    no_secret,
    spelt,
)

Mpi = Literal["none", "horovod"]
GateMode = Literal["off", "report", "enforce"]
Depth = Literal["quick", "standard", "burn-in"]

#: What any cloud's user data may hold of it, in bytes; the plan knows what its own has room for
#: (plan/room.py). What is longer belongs in an image.
MOST_BYTES = 6_000

_OS_NAMES = {"al2023": "amazon-linux-2023", "amazonlinux-2023": "amazon-linux-2023",
             "jammy": "ubuntu-22.04", "noble": "ubuntu-24.04", "ubuntu": "ubuntu-24.04",
             "ubuntu-2204": "ubuntu-22.04", "ubuntu-2404": "ubuntu-24.04",
             "rocky": "rocky-9"}  # fmt: skip
Os = Literal["ubuntu-22.04", "ubuntu-24.04", "amazon-linux-2023", "rocky-9"]


class ImageChoice(Spec):
    """The machine image: one's own by its id, or what an image must hold."""

    id: (
        Annotated[
            str,
            BeforeValidator(
                is_safe(
                    r"ami-[0-9a-f]{8,17}|(projects/[a-z0-9:.\-]+/global/images/)"
                    r"(family/)?[a-z][a-z0-9\-]{0,62}|/aws/service/[A-Za-z0-9/_.\-]+",
                    "an image such as ami-0abc12345678def00,"
                    " projects/PROJECT/global/images/NAME or /aws/service/… of Systems Manager",
                )
            ),
        ]
        | None
    ) = Field(
        default=None,
        description="An image by id: `ami-…`, `projects/…/global/images/…` or a public parameter"
        " `/aws/service/…`. Default: gputier's choice for the cloud and the card.",
    )
    driver: Annotated[str, BeforeValidator(is_version)] | None = Field(
        default=None,
        description="NVIDIA driver that the machine has: a branch such as 580, or an exact"
        " version. With an id, what that image holds. Default: what card and framework allow.",
    )
    cuda: Annotated[str, BeforeValidator(is_version)] | None = Field(
        default=None,
        description="CUDA version that software on the machine is built for, such as 12.8."
        " Default: the framework's, else any.",
    )
    os: Annotated[Os, fields.choice(Os, _OS_NAMES)] | None = Field(
        default=None, description="Operating system. Default: ubuntu-24.04, where there is one."
    )


class Container(Spec):
    """A container that the machine runs once it has proved itself."""

    ORDERED = frozenset({"args"})

    image: Annotated[str, BeforeValidator(is_image)] = Field(
        description="Image: `nvcr.io/nvidia/pytorch:25.10-py3`, or with `@sha256:…` always the"
        " same one."
    )
    args: Annotated[
        tuple[Annotated[str, BeforeValidator(is_plain(1000)), AfterValidator(no_secret)], ...],
        fields.several("argument", 100, least=0),
    ] = Field(default=(), description="Arguments of its command, in order. Default: none.")
    env: (
        Annotated[
            Mapping[str, str],
            BeforeValidator(is_variables),
            AfterValidator(in_order),
            fields.Frozen,
        ]
        | None
    ) = Field(
        default=None,
        description="Variables of its environment; a secret is refused. Default: none.",
    )
    ports: Annotated[
        tuple[Annotated[int, fields.whole(1, 65535, "a port")], ...],
        BeforeValidator(lambda v: (v,) if isinstance(v, int) else v),
        fields.several("port", 20, least=0),
        fields.Once,
    ] = Field(default=(), description="Ports that the machine opens for it. Default: none.")


class Proxy(Spec):
    """The way out for machines that have none of their own."""

    http: Annotated[str, BeforeValidator(is_url)] | None = Field(
        default=None, description="Proxy for http: `http://proxy.internal:3128`. Default: none."
    )
    https: Annotated[str, BeforeValidator(is_url)] | None = Field(
        default=None, description="Proxy for https. Default: as `http`."
    )
    no_proxy: Annotated[
        tuple[Annotated[str, BeforeValidator(is_host)], ...],
        fields.several("host", 50, least=0),
        fields.Once,
    ] = Field(
        default=(),
        description="Hosts reached without it, beside the metadata service. Default: none more.",
    )

    def cross_checks(self) -> Iterator[Clash]:
        if self.http is None and self.https is None:
            yield Clash(
                (),
                complaint(" names no proxy", "such as {http: http://proxy.internal:3128}"),
                ("http", "https"),
            )


class Mirrors(Spec):
    """Where packages, wheels and containers come from in place of their public homes."""

    apt: Annotated[str, BeforeValidator(is_url)] | None = Field(
        default=None, description="Mirror of the operating system's packages. Default: its own."
    )
    pip: Annotated[str, BeforeValidator(is_url)] | None = Field(
        default=None,
        description="Index of Python wheels, which then has the framework's too. Default: the"
        " framework's own index.",
    )
    container: Annotated[str, BeforeValidator(is_registry)] | None = Field(
        default=None, description="Registry that mirrors Docker Hub. Default: none."
    )


class Software(Spec):
    """What runs on the machines."""

    image: Annotated[ImageChoice, spelt("id")] | None = Field(
        default=None,
        description="The machine image: an id, or a map. Default: gputier's choice, with a driver"
        " that the card and the framework allow.",
    )
    framework: Annotated[str, BeforeValidator(is_framework)] | None = Field(
        default=None,
        description="A framework in one version: `pytorch==2.9`. The wheel is chosen by the driver"
        " and the card ([versions](versions.md)). `+cu126` behind it asks for that build."
        " Default: none.",
    )
    container: Annotated[Container, spelt("image")] | None = Field(
        default=None, description="A container to run once the machine has proved itself."
    )
    run: Annotated[str, is_script(4000)] | None = Field(
        default=None,
        description="A shell script to run once the machine has proved itself, as a systemd"
        " service.",
    )
    before_stop: Annotated[str, is_script(2000)] | None = Field(
        default=None,
        description="A shell script that is run before a machine is taken away: save a"
        " checkpoint, stop taking requests.",
    )
    packages: Annotated[
        tuple[Annotated[str, BeforeValidator(is_package)], ...],
        fields.several("package", 50, least=0),
        fields.Once,
    ] = Field(default=(), description="More packages of the operating system. Default: none.")
    proxy: Annotated[Proxy, spelt("http")] | None = Field(
        default=None, description="A proxy for everything that is fetched. Default: none."
    )
    mirrors: Mirrors | None = Field(
        default=None, description="Private mirrors of packages, wheels and containers."
    )
    mpi: Annotated[Mpi, fields.choice(Mpi)] = Field(
        default="none", description="What starts processes on several machines: none or horovod."
    )
    ssh_keys: Annotated[
        tuple[Annotated[str, BeforeValidator(is_ssh_key)], ...],
        fields.several("key", 10, least=0),
        fields.Once,
    ] = Field(
        default=(),
        description="Public SSH keys that may log in. Default: none; the cloud's own session"
        " service needs no key.",
    )

    @property
    def framework_name(self) -> str:
        """`pytorch` of `pytorch==2.9`; "" without a framework."""
        return (self.framework or "").partition("==")[0]

    @property
    def framework_version(self) -> str:
        """`2.9` of `pytorch==2.9+cu126`."""
        return (self.framework or "").partition("==")[2].partition("+")[0]

    @property
    def framework_build(self) -> str:
        """`cu126` of `pytorch==2.9+cu126`; "" when the build is left to the plan."""
        return (self.framework or "").partition("+")[2]

    def cross_checks(self) -> Iterator[Clash]:
        if self.run is not None and self.container is not None:
            yield Clash(
                ("container",),
                complaint(
                    " and `run` are both what the machine is for, and it does one thing",
                    "keep one of them; `run` may start containers itself",
                    place="key",
                ),
                ("run", "container"),
            )
        if self.mpi == "horovod" and self.framework_name not in ("pytorch", "tensorflow"):
            yield Clash(
                ("mpi",),
                complaint(
                    " is horovod, which is built into pytorch or tensorflow",
                    "declare `framework`, such as pytorch==2.9, or remove `mpi`",
                ),
                ("mpi", "framework"),
            )
        if self.framework_build and self.framework_name != "pytorch":
            yield Clash(
                ("framework",),
                complaint(
                    f" asks for the build {self.framework_build}, and only pytorch has such builds",
                    f"write {self.framework_name}=={self.framework_version}",
                ),
                ("framework",),
            )
        size = len(json.dumps(_plain(self), ensure_ascii=False).encode())
        if size > MOST_BYTES:
            yield Clash(
                (),
                complaint(
                    f" is {size:,} bytes, and a machine's user data has room for"
                    f" {MOST_BYTES:,} of it",
                    "put scripts and settings into the container, or fetch them in `run`",
                    place="key",
                ),
                tuple(type(self).model_fields),
            )


def _plain(value: object) -> Any:
    if isinstance(value, Spec):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    if (items := as_items(value)) is not None:
        return [_plain(item) for item in items]
    return value


class Validation(Spec):
    """How a machine proves itself before it takes work."""

    gate: Annotated[GateMode, fields.choice(GateMode)] | None = Field(
        default=None,
        description="What the result of the checks does: enforce (a bad machine is replaced),"
        " report (it is told and takes work), off (no checks). Default: enforce in prod, report"
        " elsewhere and for a lone machine.",
    )
    depth: Annotated[Depth, fields.choice(Depth)] | None = Field(
        default=None,
        description="How deep it looks: quick (about a minute), standard (several), burn-in"
        " (standard, and long tests after it has joined). Default: the tier's, else quick.",
    )
