"""Values of `software`, each with its own complaint: text for a shell, and never a secret."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BeforeValidator

from gputier.workload import fields
from gputier.workload.complaints import complaint, shown
from gputier.workload.secrets import BY_REFERENCE, secret_entry, secret_text
from gputier.workload.shapes import as_map

FRAMEWORKS = ("pytorch", "tensorflow", "jax")
_FRAMEWORK_NAMES = {"torch": "pytorch", "tf": "tensorflow", "flax": "jax"}
_FRAMEWORK = re.compile(r"([a-z]+)==(\d{1,3}(?:\.\d{1,3}){1,2})(?:\+(cu\d{3}))?")


def no_secret(value: str) -> str:
    """The value itself, when nothing in it looks like a secret."""
    if what := secret_text(value):
        raise complaint(f" holds {what}: a secret never becomes text", BY_REFERENCE, place="hidden")
    return value


def is_plain(longest: int, lines: bool = False) -> Any:
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


def is_script(longest: int) -> BeforeValidator:
    plain = is_plain(longest, lines=True)

    def check(value: object) -> str:
        text = no_secret(plain(value))
        if not text.strip():
            raise complaint(" is empty", "or leave it out")
        return text

    check.__doc__ = f"shell text, up to {longest:,} bytes"
    return BeforeValidator(check)


def is_safe(pattern: str, rule: str, longest: int = 200) -> Any:
    """Text of a given form in which nothing looks like a secret; the secret is told first."""
    form = fields.is_text(pattern, rule, longest)

    def check(value: object) -> str:
        return form(no_secret(value) if isinstance(value, str) else value)

    check.__doc__ = rule
    return check


def is_version(value: object) -> str:
    """version such as 580 or 580.95.05"""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    return fields.is_text(r"\d{1,4}(\.\d{1,3}){0,2}", "a version such as 580 or 12.8", 20)(value)


def is_framework(value: object) -> str:
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
is_url = is_safe(
    r"https?://[A-Za-z0-9][A-Za-z0-9.\-]*(:\d{1,5})?(/[\w.~/+\-]*)?",
    "an address such as http://proxy.internal:3128",
)
is_host = fields.is_text(
    r"(\*\.|\.)?[A-Za-z0-9][A-Za-z0-9.\-:]*(/\d{1,3})?", "a host, a domain or a network", 100
)
is_registry = is_safe(
    r"[a-z0-9][a-z0-9.\-]*(:\d{1,5})?(/[a-z0-9._\-]+)*", "a registry such as mirror.internal:5000"
)
is_image = is_safe(
    r"[a-z0-9][a-z0-9.\-]*(:\d{1,5})?(/[a-z0-9._\-]+)*(:[\w.\-]{1,128})?(@sha256:[0-9a-f]{64})?",
    "a container image such as nvcr.io/nvidia/pytorch:25.10-py3",
    300,
)
_is_name = fields.is_text(
    r"[A-Za-z0-9][A-Za-z0-9.+_\-]*(=[A-Za-z0-9.+:~\-]+)?", "a package's name such as htop", 100
)
#: The driver's own packages: their versions are one decision, taken in the plan.
_DRIVER_PACKAGE = re.compile(
    r"(nvidia|libnvidia|cuda-drivers|kmod-nvidia|linux-modules-nvidia)\b.*"
)


def is_ssh_key(value: object) -> str:
    """public SSH key"""
    if isinstance(value, str) and "PRIVATE KEY" in value:
        raise complaint(
            " is a private key", "the public one ends in .pub; replace the pair", place="hidden"
        )
    return _is_key(value)


def is_package(value: object) -> str:
    """name of a package of the operating system"""
    name = _is_name(value)
    if _DRIVER_PACKAGE.fullmatch(name):
        raise complaint(
            f" names `{name}`, which would replace the driver that was planned",
            "ask for a driver in `software.image.driver`",
        )
    return name


_is_variable = fields.is_text(r"[A-Za-z_][A-Za-z0-9_]*", "a variable's name such as LOG_LEVEL", 80)
_is_value = is_plain(1000)


def is_variables(value: object) -> object:
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


def in_order(entries: dict[str, str]) -> dict[str, str]:
    return dict(sorted(entries.items()))


def spelt(field: str) -> BeforeValidator:
    """One word in place of a map stands for its most telling field."""

    def spell(value: object) -> object:
        return {field: value} if isinstance(value, str) else value

    return BeforeValidator(spell)
