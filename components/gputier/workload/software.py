"""What runs on the machines and how a node proves itself: image, framework, container, gate.

All of it becomes part of a boot script, so that every value is text a shell can be given safely,
none is a secret, and all together stay small.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from gputier.workload import fields
from gputier.workload.base import Clash, Spec
from gputier.workload.complaints import complaint, shown
from gputier.workload.secrets import BY_REFERENCE, secret_entry, secret_text
from gputier.workload.shapes import as_items, as_map

Mpi = Literal["none", "horovod"]
GateMode = Literal["off", "report", "enforce"]
Depth = Literal["quick", "standard", "burn-in"]

FRAMEWORKS = ("pytorch", "tensorflow", "jax")
#: User data of AWS and Alibaba ends at 16 KB, ours included: what is longer belongs in an image.
MOST_BYTES = 6_000

_FRAMEWORK_NAMES = {"torch": "pytorch", "tf": "tensorflow", "flax": "jax"}
_FRAMEWORK = re.compile(r"([a-z]+)==(\d{1,3}(?:\.\d{1,3}){1,2})(?:\+(cu\d{3}))?")
_OS_NAMES = {"al2023": "amazon-linux-2023", "amazonlinux-2023": "amazon-linux-2023",
             "jammy": "ubuntu-22.04", "noble": "ubuntu-24.04", "ubuntu": "ubuntu-24.04",
             "ubuntu-2204": "ubuntu-22.04", "ubuntu-2404": "ubuntu-24.04",
             "rocky": "rocky-9"}  # fmt: skip
Os = Literal["ubuntu-22.04", "ubuntu-24.04", "amazon-linux-2023", "rocky-9"]


# --- values --------------------------------------------------------------------------------------


def _open(value: str) -> str:
    """The value itself, when nothing in it looks like a secret."""
    if what := secret_text(value):
        raise complaint(f" holds {what}: a secret never becomes text", BY_REFERENCE, place="hidden")
    return value


def _is_plain(longest: int, lines: bool = False) -> Any:
    """Text that a shell, a unit file and a JSON file can all be given."""

    def check(value: object) -> str:
        if isinstance(value, bool):
            value = str(value).lower()
        elif isinstance(value, int):
            value = str(value)
        if not isinstance(value, str):
            hint = f'quote it: "{value}"' if isinstance(value, float) else ""
            raise complaint(f" must be text, not {shown(value)}", hint)
        if len(value.encode("utf-8", "surrogatepass")) > longest:
            raise complaint(
                f" is longer than {longest:,} bytes, which all of a boot script has to share",
                "put it into the image or the container, or fetch it from storage when it runs",
            )
        if any(not (c.isprintable() or (lines and c in "\n\t")) for c in value):
            raise complaint(" holds control characters, which no script should be given")
        return value

    check.__doc__ = "shell text" if lines else "text"
    return check


def _script(longest: int) -> BeforeValidator:
    plain = _is_plain(longest, lines=True)

    def check(value: object) -> str:
        text = _open(plain(value))
        if not text.strip():
            raise complaint(" is empty", "or leave it out")
        return text

    check.__doc__ = f"shell text, up to {longest:,} bytes"
    return BeforeValidator(check)


def _safe(pattern: str, rule: str, longest: int = 200) -> Any:
    """Text of a given form in which nothing looks like a secret; the secret is told first."""
    form = fields.is_text(pattern, rule, longest)

    def check(value: object) -> str:
        return form(_open(value) if isinstance(value, str) else value)

    check.__doc__ = rule
    return check


def _version(value: object) -> str:
    """version such as 580 or 580.95.05"""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    return fields.is_text(r"\d{1,4}(\.\d{1,3}){0,2}", "a version such as 580 or 12.8", 20)(value)


def _framework(value: object) -> str:
    """framework and version: pytorch==2.9, tensorflow==2.19 or jax==0.8"""
    example = "such as pytorch==2.9, tensorflow==2.19 or jax==0.8"
    if not isinstance(value, str) or len(value) > 60:
        raise complaint(f" must be a framework and its version, not {shown(value)}", example)
    text = value.replace(" ", "")
    name = re.split(r"[^A-Za-z]", text)[0].lower()
    if name in _FRAMEWORK_NAMES:
        hint = f"did you mean `{_FRAMEWORK_NAMES[name]}{text[len(name) :]}`?"
        raise complaint(f" names `{name}`", hint)
    found = _FRAMEWORK.fullmatch(text)
    if name not in FRAMEWORKS:
        raise complaint(f" must be one of {', '.join(FRAMEWORKS)}, not {shown(value)}", example)
    if found is None:
        raise complaint(
            f" must say one version exactly, not {shown(value)}: another version may ask for"
            " another driver",
            example,
        )
    return found[0]


_is_key = fields.is_text(
    r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com)"
    r" [A-Za-z0-9+/]{40,}={0,2}( [\w.@+:-]{1,100})?",
    "a public SSH key such as `ssh-ed25519 AAAA… name`",
    1200,
)
_is_url = _safe(
    r"https?://[A-Za-z0-9][A-Za-z0-9.\-]*(:\d{1,5})?(/[\w.~/+\-]*)?",
    "an address such as http://proxy.internal:3128",
)
_is_host = fields.is_text(
    r"(\*\.|\.)?[A-Za-z0-9][A-Za-z0-9.\-:]*(/\d{1,3})?", "a host, a domain or a network", 100
)
_is_registry = _safe(
    r"[a-z0-9][a-z0-9.\-]*(:\d{1,5})?(/[a-z0-9._\-]+)*", "a registry such as mirror.internal:5000"
)
_is_image = _safe(
    r"[a-z0-9][a-z0-9.\-]*(:\d{1,5})?(/[a-z0-9._\-]+)*(:[\w.\-]{1,128})?(@sha256:[0-9a-f]{64})?",
    "a container image such as nvcr.io/nvidia/pytorch:25.10-py3",
    300,
)
_is_package = fields.is_text(
    r"[A-Za-z0-9][A-Za-z0-9.+_\-]*(=[A-Za-z0-9.+:~\-]+)?", "a package's name such as htop", 100
)
#: The driver's own packages: their versions are one decision, taken in the plan.
_DRIVER_PACKAGE = re.compile(
    r"(nvidia|libnvidia|cuda-drivers|kmod-nvidia|linux-modules-nvidia)\b.*"
)


def _ssh_key(value: object) -> str:
    """public SSH key"""
    if isinstance(value, str) and "PRIVATE KEY" in value:
        raise complaint(
            " is a private key", "the public one ends in .pub; replace the pair", place="hidden"
        )
    return _is_key(value)


def _package(value: object) -> str:
    """name of a package of the operating system"""
    name = _is_package(value)
    if _DRIVER_PACKAGE.fullmatch(name):
        raise complaint(
            f" names `{name}`, which would replace the driver that was planned",
            "ask for a driver in `software.image.driver`",
        )
    return name


_is_variable = fields.is_text(r"[A-Za-z_][A-Za-z0-9_]*", "a variable's name such as LOG_LEVEL", 80)
_is_value = _is_plain(1000)


def _variables(value: object) -> object:
    """map from variable to text"""
    written = as_map(value)
    if written is None:
        raise complaint(f" must be a map from variables to text, not {shown(value)}")
    if len(written) > 50:
        raise complaint(f" holds {len(written):,} variables; at most 50 make sense")
    given: dict[str, str] = {}
    for key, one in written.items():
        name, text = _is_variable(key), _is_value(one)
        if what := secret_entry(name, text):
            after = f" holds, in `{name}`, {what}: a secret never becomes text"
            raise complaint(after, BY_REFERENCE, place="hidden")
        given[name] = text
    return given


def _sorted(entries: dict[str, str]) -> dict[str, str]:
    return dict(sorted(entries.items()))


def _spelt(field: str) -> BeforeValidator:
    """One word in place of a map stands for its most telling field."""

    def spell(value: object) -> object:
        return {field: value} if isinstance(value, str) else value

    return BeforeValidator(spell)


# --- models --------------------------------------------------------------------------------------


class ImageChoice(Spec):
    """The machine image: one's own by its id, or what an image must hold."""

    id: (
        Annotated[
            str,
            BeforeValidator(
                _safe(
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
    driver: Annotated[str, BeforeValidator(_version)] | None = Field(
        default=None,
        description="NVIDIA driver that the machine has: a branch such as 580, or an exact"
        " version. With an id, what that image holds. Default: what card and framework allow.",
    )
    cuda: Annotated[str, BeforeValidator(_version)] | None = Field(
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

    image: Annotated[str, BeforeValidator(_is_image)] = Field(
        description="Image: `nvcr.io/nvidia/pytorch:25.10-py3`, or with `@sha256:…` always the"
        " same one."
    )
    args: Annotated[
        tuple[Annotated[str, BeforeValidator(_is_plain(1000)), AfterValidator(_open)], ...],
        fields.several("argument", 100, least=0),
    ] = Field(default=(), description="Arguments of its command, in order. Default: none.")
    env: (
        Annotated[
            Mapping[str, str],
            BeforeValidator(_variables),
            AfterValidator(_sorted),
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

    http: Annotated[str, BeforeValidator(_is_url)] | None = Field(
        default=None, description="Proxy for http: `http://proxy.internal:3128`. Default: none."
    )
    https: Annotated[str, BeforeValidator(_is_url)] | None = Field(
        default=None, description="Proxy for https. Default: as `http`."
    )
    no_proxy: Annotated[
        tuple[Annotated[str, BeforeValidator(_is_host)], ...],
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

    apt: Annotated[str, BeforeValidator(_is_url)] | None = Field(
        default=None, description="Mirror of the operating system's packages. Default: its own."
    )
    pip: Annotated[str, BeforeValidator(_is_url)] | None = Field(
        default=None,
        description="Index of Python wheels, which then has the framework's too. Default: the"
        " framework's own index.",
    )
    container: Annotated[str, BeforeValidator(_is_registry)] | None = Field(
        default=None, description="Registry that mirrors Docker Hub. Default: none."
    )


class Software(Spec):
    """What runs on the machines."""

    image: Annotated[ImageChoice, _spelt("id")] | None = Field(
        default=None,
        description="The machine image: an id, or a map. Default: gputier's choice, with a driver"
        " that the card and the framework allow.",
    )
    framework: Annotated[str, BeforeValidator(_framework)] | None = Field(
        default=None,
        description="A framework in one version: `pytorch==2.9`. The wheel is chosen by the driver"
        " and the card ([versions](versions.md)). `+cu126` behind it asks for that build."
        " Default: none.",
    )
    container: Annotated[Container, _spelt("image")] | None = Field(
        default=None, description="A container to run once the machine has proved itself."
    )
    run: Annotated[str, _script(4000)] | None = Field(
        default=None,
        description="A shell script to run once the machine has proved itself, as a systemd"
        " service.",
    )
    before_stop: Annotated[str, _script(2000)] | None = Field(
        default=None,
        description="A shell script that is run before a machine is taken away: save a"
        " checkpoint, stop taking requests.",
    )
    packages: Annotated[
        tuple[Annotated[str, BeforeValidator(_package)], ...],
        fields.several("package", 50, least=0),
        fields.Once,
    ] = Field(default=(), description="More packages of the operating system. Default: none.")
    proxy: Annotated[Proxy, _spelt("http")] | None = Field(
        default=None, description="A proxy for everything that is fetched. Default: none."
    )
    mirrors: Mirrors | None = Field(
        default=None, description="Private mirrors of packages, wheels and containers."
    )
    mpi: Annotated[Mpi, fields.choice(Mpi)] = Field(
        default="none", description="What starts processes on several machines: none or horovod."
    )
    ssh_keys: Annotated[
        tuple[Annotated[str, BeforeValidator(_ssh_key)], ...],
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
