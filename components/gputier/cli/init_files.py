"""The files of a new project, as text by path. Nothing here touches a disk."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from typing import NamedTuple

import jinja2

import gputier

STACKS = ("dev", "staging", "prod")
#: The example workload of each tier.
WORKLOADS = {"entry": "chat", "mid": "tuner", "high-end": "foundation"}
#: What the workflows install, as this release is tested with it.
PYTHON, PULUMI, RUFF = "3.12", "3.274.1", "0.17.6"
#: A best pick that is cheaper by more than this fails the nightly run, percent.
WATCH_PERCENT = 10

COMMON = {
    "Pulumi.yaml": "Pulumi.yaml",
    "README.md": "README.md",
    "requirements.txt": "requirements.txt",
    ".gitignore": "gitignore",
    "stacks/__main__.py": "stacks/__main__.py",
    "policies/PulumiPolicy.yaml": "policies/PulumiPolicy.yaml",
    "policies/__main__.py": "policies/__main__.py",
}
FORGES = {
    "github": {
        ".github/dependabot.yml": "github/dependabot.yml",
        ".github/workflows/gpu-review.yml": "github/gpu-review.yml",
        ".github/workflows/gpu-deploy.yml": "github/gpu-deploy.yml",
        ".github/workflows/gpu-environment.yml": "github/gpu-environment.yml",
        ".github/workflows/gpu-nightly.yml": "github/gpu-nightly.yml",
    },
    "gitlab": {
        ".gitlab-ci.yml": "gitlab/gitlab-ci.yml",
        ".gitlab/gpu.yml": "gitlab/gpu.yml",
    },
}


class Numbers(NamedTuple):
    """What a stack's plan costs, as limits with room: its budget, and what the policies allow."""

    budget: int  # USD a month
    usd_per_hour: int  # for one machine
    usd_per_month: int  # for one fleet
    machines: int
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choices:
    """What a project is made from."""

    name: str
    clouds: tuple[str, ...]
    region: str
    tier: str
    forges: tuple[str, ...]
    owner: str
    cost_center: str

    @property
    def home(self) -> str:
        """The cloud that the machines are on; another is signed in to."""
        return self.clouds[0]

    @property
    def workload(self) -> str:
        return WORKLOADS[self.tier]

    @property
    def extras(self) -> str:
        """What of gputier the project installs: `[aws,policy,post]`."""
        post = ("post",) if self.forges else ()
        return f"[{','.join((*self.clouds, 'policy', *post))}]"


def files(choices: Choices, numbers: Mapping[str, Numbers]) -> dict[str, str]:
    """Every file by its path, in the order in which people read them. `numbers` are by stack; locks
    come later, because they are of the stacks' files."""
    return dict(_files(choices, numbers))


def _files(choices: Choices, numbers: Mapping[str, Numbers]) -> Iterator[tuple[str, str]]:
    for path, template in COMMON.items():
        yield path, _rendered(template, choices)
    for stack in STACKS:
        own = numbers[stack]
        yield stack_file(stack), stack_text(choices, stack, own.budget)
        limits = _rendered("policies/config.json", choices, stack=stack, numbers=own)
        yield f"policies/config.{stack}.json", limits
    for forge in choices.forges:
        for path, template in FORGES[forge].items():
            yield path, _rendered(template, choices)


def stack_file(stack: str) -> str:
    return f"stacks/Pulumi.{stack}.yaml"


def stack_text(choices: Choices, stack: str, budget: int) -> str:
    """The declaration of one environment."""
    return _rendered("stacks/Pulumi.yaml", choices, stack=stack, budget=budget)


def _rendered(template: str, choices: Choices, **more: object) -> str:
    fixed = {
        "workload": choices.workload,
        "extras": choices.extras,
        "home": choices.home,
        "version": gputier.__version__,
        "python": PYTHON,
        "pulumi_version": PULUMI,
        "ruff": RUFF,
        "stacks": STACKS,
        "watch_percent": WATCH_PERCENT,
    }
    made = _environment().get_template(f"{template}.j2")
    return made.render(asdict(choices), **fixed, **more)


@functools.cache
def _environment() -> jinja2.Environment:
    """Square brackets, because workflows and shells have braces of their own."""
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 (YAML and Python of checked names; nothing is HTML)
        block_start_string="[%",
        block_end_string="%]",
        variable_start_string="[[",
        variable_end_string="]]",
        comment_start_string="[#",
        comment_end_string="#]",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _source(name: str) -> str:
    return (resources.files("gputier.templates") / "init" / name).read_text(encoding="utf-8")
