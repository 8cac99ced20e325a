"""What stands in user data: everybody who may describe a machine reads it, and so does everything
that runs on it."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from gputier_policies.machine import CONFIGURATION, INSTANCE, SPOT_FLEET, SPOT_INSTANCE, TEMPLATE
from gputier_policies.parts import AWS_MACHINES, GCP_MACHINES, Part, launches, whole
from gputier_policies.rule import Config, Findings, Rule, Undecided, Violation
from gputier_policies.values import Resource, is_map, items

_METADATA = "gcp:compute/projectMetadata:ProjectMetadata"
_METADATA_ITEM = "gcp:compute/projectMetadataItem:ProjectMetadataItem"
#: Where user data is; a program may give it as text or in base64, and a launch template's and a
#: spot fleet's come in base64 (pulumi_aws 7.51.1).
_USER_DATA: Mapping[str, tuple[str, ...]] = {
    INSTANCE: ("userData", "userDataBase64"),
    SPOT_INSTANCE: ("userData", "userDataBase64"),
    CONFIGURATION: ("userData", "userDataBase64"),
    TEMPLATE: ("userData",),
    SPOT_FLEET: ("userData",),
}
_LARGEST = 1 << 20  # bytes that one compressed text may grow to; EC2 takes 16 KiB of user data

#: Kinds of secrets by the shapes that their makers give them: GitHub's, GitLab's, Slack's and
#: Google's own pages on token formats, AWS's on unique identifiers, RFC 7468 and 7519.
_SHAPES: Mapping[str, re.Pattern[str]] = {
    "an AWS access key id": re.compile(r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Z0-9])"),
    "a private key": re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
    "a GitHub token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{50,})"),
    "a GitLab token": re.compile(r"\bgl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat)-[\w.-]{20,}"),
    "a Hugging Face token": re.compile(r"\b(?:hf_[A-Za-z]{34,}|api_org_[A-Za-z]{34,})\b"),
    "a Slack token": re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-\d-[A-Za-z0-9-]{20,}"),
    "a Google API key": re.compile(r"\bAIza[\w-]{35}(?![\w-])"),
    "a Google OAuth token": re.compile(r"\bya29\.[\w-]{20,}|\bGOCSPX-[\w-]{28}"),
    "an OpenAI or Anthropic key": re.compile(r"\bsk-(?:proj-|ant-|svcacct-)?[\w-]{32,}"),
    "an NGC key": re.compile(r"\bnvapi-[\w-]{40,}"),
    "a Weights & Biases key": re.compile(r"(?i)wandb_api_key\W{1,4}[0-9a-f]{40}\b"),
    "a Pulumi token": re.compile(r"\bpul-[0-9a-f]{40}\b"),
    "a JSON web token": re.compile(r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    "a password in an address": re.compile(
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@'\"$<>{}]{1,100}:([^\s/:@'\"$<>{}%]{4,200})@[\w.-]+"
    ),
}
_WORDS = r"(?:pass(?:word|wd|phrase)?|pwd|secret(?:[_-]?(?:access[_-]?)?key)?|token|api[_-]?key)"
#: A value that is written out: `PASSWORD=…`, `password: …`, `--password …`.
_ASSIGNED = re.compile(
    rf"(?i)(?<![a-z])(?:[a-z0-9]{{1,40}}[_-]){{0,6}}{_WORDS}(?:[_-][0-9]+)?[\"']?"
    rf"(?:\s*[:=]\s*|\s+)(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s,;)}}\]#]+)"
)
_FLAG = re.compile(rf"(?i)--(?:[a-z0-9]{{1,40}}-){{0,6}}{_WORDS}$")
#: Values that name where a secret is, or stand for one: they hold none.
_NOT_ONE = re.compile(
    r"(?i)[$<{`(%*]|^(?:/|\./|~|https?:|arn:|projects/|s3:|gs:|ssm:|file:|env:|op:|vault:)|^$"
    r"|^(?:true|false|yes|no|none|null|nil|required|optional|disabled|enabled|changeme|example|xxx+"
    r"|redacted|secret|password|token|str|string|bytes|int)$"
)
_WORD = re.compile(r"[a-z]+(?:[-_.][a-z]+)*|[A-Z]+(?:_[A-Z]+)*")
_SHORT = 6  # characters of a config value that could stand in a text by chance


class Found(NamedTuple):
    """A secret, without itself."""

    kind: str
    line: int
    length: int


def machine_forbids_secrets_in_user_data(machine: Resource, config: Config) -> Findings:
    """Only a name of a secret may stand there; the machine fetches it with its role when it
    starts."""
    hidden = machine.stack.secrets
    for text in _texts(machine):
        if text.path.startswith("metadata.") and text.path[9:] in items(config["allowed_keys"]):
            continue
        if text.unknown:
            yield Undecided(text.path)
            continue
        told: set[tuple[str, int]] = set()
        for readable, place in _readable(text.text):
            for found in secrets_in(readable, hidden):
                line = place or found.line
                if (found.kind, line) not in told:
                    told.add((found.kind, line))
                    yield _violation(text.path, found._replace(line=line))


def _violation(path: str, found: Found) -> Violation:
    return Violation(
        f"{path} holds {found.kind} on line {found.line} ({found.length} characters); replace it,"
        " keep it in AWS Secrets Manager, Parameter Store or Google's Secret Manager, and let the"
        " machine fetch it with its role"
    )


def _texts(machine: Resource) -> Iterator[Part]:
    root = whole(machine)
    if machine.type == _METADATA_ITEM:
        yield root.at("value")
        return
    if machine.type in _USER_DATA:
        for launch in launches(machine):
            yield from (launch.at(path) for path in _USER_DATA[machine.type])
        return
    yield root.at("metadataStartupScript")
    box = root.at("metadata")
    if box.unknown:
        yield box
    elif is_map(box.value):
        # Dots stand in no key of Google's (letters, digits, - and _).
        yield from (Part(f"metadata.{key}", box.value[key]) for key in sorted(box.value, key=str))


def _readable(text: str, place: int = 0, depth: int = 0) -> Iterator[tuple[str, int]]:
    """A text as it is, and what it holds in base64 and compressed: user data as a whole, a part of
    a MIME message, a file of a cloud-config. The number is the line where a part stands; 0: lines
    are the text's own."""
    yield text, place
    if depth == _DEEPEST:
        return
    for packed in _PACKED.finditer(text):
        inside = _unpacked(packed[0])
        if inside:
            alone = packed[0].strip() == text.strip()
            line = place or (0 if alone else text.count("\n", 0, packed.start()) + 1)
            yield from _readable(inside, line, depth + 1)


_PACKED = re.compile(r"(?:[A-Za-z0-9+/]{60,}[ \t]*\r?\n[ \t]*)*[A-Za-z0-9+/]{20,}={0,2}")
_DEEPEST = 4  # base64 of a MIME message, in it a cloud-config, in it a compressed file


def _unpacked(packed: str) -> str:
    """What base64 says, where that is text or compressed text."""
    try:
        data = base64.b64decode("".join(packed.split()), validate=True)
        if data[:2] == b"\x1f\x8b":
            data = zlib.decompressobj(31).decompress(data, _LARGEST)
        return data.decode("utf-8")
    except (binascii.Error, ValueError, zlib.error):
        return ""


def secrets_in(text: str, hidden: Mapping[str, str] | None = None) -> Iterator[Found]:
    """Each secret in a text: known shapes, values that are written out beside a word such as
    `password`, and the values of `hidden`, the secret config of the stack."""
    for count, line in enumerate(_lines(text), 1):
        for kind, shape in _SHAPES.items():
            for match in shape.finditer(line):
                yield Found(kind, count, len(match[0]))
        for value in _written_out(line):
            yield Found("a secret that is written out", count, len(value))
    yield from _own(text, hidden or {})


def _lines(text: str) -> Iterable[str]:
    # A line is cut where no secret is that long, so that a megabyte without breaks costs no more.
    return (line[:20_000] for line in text.split("\n"))


def _written_out(line: str) -> Iterator[str]:
    for match in _ASSIGNED.finditer(line):
        value = match["value"].strip("\"'")
        gap = line[match.start() : match.start("value")]
        if not re.search(r"[:=]", gap) and not _FLAG.search(line[: match.start("value")].rstrip()):
            continue  # a word in a sentence
        if len(value) >= _SHORT and not _NOT_ONE.search(value) and not _WORD.fullmatch(value):
            yield value


def _own(text: str, hidden: Mapping[str, str]) -> Iterator[Found]:
    for key in sorted(hidden):
        value: Any = hidden[key]
        if isinstance(value, str) and len(value) >= _SHORT and value in text:
            line = text[: text.index(value)].count("\n") + 1
            yield Found(f"the value of the stack's secret {key}", line, len(value))


SECRETS = Rule(
    check=machine_forbids_secrets_in_user_data,
    description="No secret stands in user data, startup scripts or metadata: no token or key of a"
    " known shape, no password that is written out, no secret value of the stack's config.",
    remediation="Keep secrets in a secret store and let the machine fetch them with its role when"
    " it starts; replace one that has stood there.",
    severity="critical",
    url="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html",
    types=AWS_MACHINES | GCP_MACHINES | {_METADATA, _METADATA_ITEM},
    settings={
        "allowed_keys": {
            "type": "array",
            "items": {"type": "string"},
            "default": ["ssh-keys"],
            "description": "Keys of Google's metadata that are not read.",
        }
    },
)

RULES = (SECRETS,)
