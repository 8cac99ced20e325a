"""The commands of the runbooks, and AWS's command line as far as they use it.

`aws autoscaling resume-processes --auto-scaling-group-name x` is the operation ResumeProcesses with
{"AutoScalingGroupName": "x"}: botocore's models, which the real command line is made from, say so.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

#: Options of every command (AWS CLI command reference, global options), and of those with pages.
GLOBAL = {"region": 1, "query": 1, "output": 1, "max-items": 1}
#: `aws s3` is the command line's own and in no model (AWS CLI command reference, s3, version 2).
S3 = {"ls": {"recursive": 0}, "cp": {"recursive": 0}, "rb": {"force": 0}}


_MANAGED = "compute instance-groups managed"
_WHERE = frozenset({"region", "zone"})
#: The commands of gcloud that the pages use, by their words: the options that each needs (one of a
#: set) and those that it may have (gcloud reference; recalled and so unverified).
GCLOUD: Mapping[str, tuple[Sequence[frozenset[str]], frozenset[str]]] = {
    f"{_MANAGED} describe": ((_WHERE,), frozenset()),
    f"{_MANAGED} resize": ((_WHERE, frozenset({"size"})), frozenset()),
    f"{_MANAGED} update-autoscaling": ((_WHERE, frozenset({"mode"})), frozenset()),
    "compute instances describe": ((frozenset({"zone"}),), frozenset()),
    "compute instances start": ((frozenset({"zone"}),), frozenset()),
    "logging read": ((), frozenset({"limit"})),
    "workflows executions list": ((frozenset({"location"}),), frozenset({"limit"})),
}


class Call(NamedTuple):
    """What an `aws` command asks for. `params` is None for the commands of `aws s3`."""

    service: str
    operation: str
    params: dict[str, Any] | None
    region: str


def pages(root: Path) -> list[Path]:
    return sorted((root / "docs" / "runbooks").glob("*.md"))


def commands(page: Path) -> Iterator[list[str]]:
    """Every command of a page's `sh` blocks, in words, `sudo` left out."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^ *```sh\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield words[1:] if words[0] == "sudo" else words


def of(page: Path, program: str) -> list[list[str]]:
    """The arguments of each command of one program."""
    return [words[1:] for words in commands(page) if words[0] == program]


def call(words: Sequence[str]) -> Call:
    """The operation and parameters of an `aws` command's arguments. Raises `ValueError` for what
    AWS's command line would refuse."""
    service, operation, *rest = words
    if service == "s3":
        options = {**S3.get(operation, {}), **GLOBAL}
        found = _split(rest, options) if operation in S3 else {operation: ["?"]}
        if operation not in S3:
            raise ValueError(f"aws s3 {operation}")
        return Call(service, operation, None, "".join(found.get("region", [])))
    model = _model(service)
    names = {_kebab(name): name for name in model.operation_names}
    if operation not in names:
        raise ValueError(f"aws {service} {operation}: no such operation")
    shape = model.operation_model(names[operation]).input_shape
    members: dict[str, Any] = {_kebab(n): (n, s) for n, s in shape.members.items()}
    options = dict(GLOBAL)
    for option, (_, member) in members.items():
        options[option] = {"boolean": 0, "list": -1}.get(member.type_name, 1)
        if member.type_name == "boolean":
            options[f"no-{option}"] = 0
    given = _split(rest, options)
    params: dict[str, Any] = {}
    for option, values in given.items():
        yes = option.removeprefix("no-") if option not in members else option
        if yes in members:
            name, member = members[yes]
            params[name] = (
                yes == option if member.type_name == "boolean" else _value(member, values)
            )
    _validate(params, shape)
    return Call(service, names[operation], params, "".join(given.get("region", [])))


def gcloud(words: Sequence[str]) -> bool:
    """Whether there is such a command of gcloud: one name or filter, and its options."""
    at = next((n for n, word in enumerate(words) if word.startswith("--")), len(words))
    known = GCLOUD.get(" ".join(words[: at - 1]))
    given = [word[2:] for word in words[at:] if word.startswith("--")]
    if known is None or len(words) != at + 2 * len(given):
        return False
    needed, more = known
    allowed = more.union(*needed)
    return set(given) <= allowed and all(len(one & set(given)) == 1 for one in needed)


def _model(service: str) -> Any:
    session: Any = import_module("botocore.session").get_session()
    return session.get_service_model(service)


def _validate(params: Mapping[str, Any], shape: Any) -> None:
    report: Any = import_module("botocore.validate").ParamValidator().validate(params, shape)
    if report.has_errors():
        raise ValueError(report.generate_report())


def _split(words: Sequence[str], options: Mapping[str, int]) -> dict[str, list[str]]:
    """Option → its values; -1 of `options` is any number of them."""
    found: dict[str, list[str]] = {}
    now, left = "", 0
    for word in words:
        if word.startswith("--"):
            now = word[2:]
            if now not in options:
                raise ValueError(f"no option --{now}")
            found[now], left = [], options[now]
        elif left:
            found[now].append(word)
            left -= 1
    for option, values in found.items():
        if options[option] and not values:
            raise ValueError(f"--{option} has no value")
    return found


def _value(shape: Any, values: Sequence[str]) -> Any:
    if shape.type_name == "list":
        return [_value(shape.member, [value]) for value in values]
    (value,) = values
    if shape.type_name == "structure":
        pairs = [pair.split("=", 1) for pair in value.split(",")]
        return {key: _value(shape.members[key], [text]) for key, text in pairs}
    return int(value) if shape.type_name in ("integer", "long") else value


def _kebab(name: str) -> str:
    xform: Any = import_module("botocore").xform_name
    return xform(name, "-")
