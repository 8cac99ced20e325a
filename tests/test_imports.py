"""Who may import whom, as a table: the order of the layers is the architecture."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True)
class Row:
    """What a layer may import: `ours` are layers, `outside` are third-party packages."""

    ours: str = ""
    outside: str = ""


FACTS = "errors units workload catalog sizing"
CLOUDS = ("aws", "gcp", "azure", "alibaba", "tencent")
DEPLOYED = f"{FACTS} plan lock boot"

TABLE: dict[str, Row] = {
    "errors": Row(),
    "units": Row("errors"),
    "workload": Row("errors units", "pydantic pydantic_core yaml"),
    "catalog": Row("errors units"),
    "sizing": Row("errors units workload catalog"),
    "plan": Row(FACTS),
    "lock": Row(f"{FACTS} plan node"),
    "boot": Row(f"{FACTS} plan node templates", "jinja2"),
    "api": Row(f"{FACTS} plan lock"),
    # What clouds have alike.
    "deploy": Row(DEPLOYED, "pulumi"),
    # A cloud uploads the node's bundle.
    **{cloud: Row(f"{DEPLOYED} deploy node", f"pulumi pulumi_{cloud}") for cloud in CLOUDS},
    "review": Row(f"{DEPLOYED} templates", "jinja2 urllib3"),
    # Asked live, by packages that only its sessions load, when they are used.
    "account": Row(f"{DEPLOYED} node", "boto3 botocore google urllib3"),
    # boto3 asks AWS for image ids (`lock --images`), in one function of one command.
    # jinja2 writes the files of `gputier init`.
    "cli": Row(f"gputier {DEPLOYED} account review node templates", "click jinja2 boto3 botocore"),
    "gputier": Row("errors workload api plan"),
    # Not a package: stage-0's fetcher lies beside what it shares, on a machine without ours.
    "templates": Row("", "fetching"),
    "testing": Row("", "pulumi"),
    "node": Row(),
    "gputier_policies": Row("", "pulumi_policy"),
    # policies/__main__.py, which serves the pack.
    "__main__": Row("gputier_policies", "pulumi_policy"),
    # What a project's own `__main__.py` calls; an installed wheel has it.
    "program": Row(f"{DEPLOYED} deploy {' '.join(CLOUDS)}", "pulumi"),
    "stacks": Row("program"),
}

# A function-level import hides an edge of the table and is a cure for cycles elsewhere. Only these
# modules (`.*`: and what is below) may have one.
LAZY = {
    "gputier": "`import gputier` stays free: an exported name is loaded when it is first used",
    "gputier.plan": "the package can be called, which its caller's layer answers (docs/adr/0009)",
    "gputier.cli.*": "a command loads what it needs when it runs (docs/adr/0005)",
    "gputier.node.report": "only a report asks where its machine stands: HTTP and TLS, 90 ms",
    "gputier.workload.yaml12": "a workload made in Python or from flags reads no YAML: 9 ms",
    "gputier.workload.schedule": "only a schedule needs time zones: 3 ms",
    "gputier_policies.hours": "only a schedule needs time zones: 3 ms",
}
# Edges that the table cannot hold without a circle, each from one module.
EDGES = {("gputier.plan", "api"): "calling `gputier.plan` is calling `gputier.api.plan`"}
# Refresh code rewrites the catalogue from the clouds' own listings; planning must never reach it.
REFRESH = "gputier.catalog.refresh"
ROOTS = {"components": "", "policies": "", "templates": "gputier.templates", "stacks": "stacks"}


@dataclass(frozen=True, slots=True)
class Import:
    target: str
    line: int
    in_function: bool


def modules(tree: Path) -> Iterator[tuple[str, Path]]:
    """Every module of the product with its import name."""
    for folder, prefix in ROOTS.items():
        for path in sorted((tree / folder).rglob("*.py")):
            parts = path.relative_to(tree / folder).with_suffix("").parts
            name = ".".join(part for part in (prefix, *parts) if part)
            yield name.removesuffix(".__init__"), path


def layer(module: str) -> str:
    """`gputier.plan.need` → plan, `gputier` → gputier, `gputier_policies.cost` → itself."""
    parts = module.split(".")
    return parts[1] if parts[0] == "gputier" and len(parts) > 1 else parts[0]


def imports(source: ast.Module) -> Iterator[Import]:
    """Every import, also under `if TYPE_CHECKING`, in functions and by `import_module`."""
    stack: list[tuple[ast.AST, bool]] = [(source, False)]
    while stack:
        node, inside = stack.pop()
        for target in _targets(node):
            yield Import(target, getattr(node, "lineno", 0), inside)
        inside |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        stack += [(child, inside) for child in ast.iter_child_nodes(node)]


def _targets(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [name.name for name in names]
        case ast.ImportFrom(module=module, names=names, level=0):
            return [f"{module}.{name.name}" for name in names]
        case ast.ImportFrom(module=module, level=level):
            return ["." * level + (module or "")]
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__")
            | ast.Attribute(attr="import_module" | "__import__"),
            args=[ast.Constant(value=str(target)), *_],
        ):
            return [target]
        case _:
            return []


def violations(tree: Path) -> list[str]:
    """Each breach of the table as `module:line: what`, over the modules below `tree`."""
    found: list[str] = []
    for module, path in modules(tree):
        source = ast.parse(path.read_text(encoding="utf-8"), str(path))
        row = TABLE.get(layer(module))
        if row is None:
            found.append(f"{module}: `{layer(module)}` is a layer that the table does not know")
            continue
        for item in imports(source):
            found += [f"{module}:{item.line}: {why}" for why in _why_not(module, row, item)]
        found += [f"{module}: {why}" for why in _borrowed_tiers(module, source)]
    return found


def _why_not(module: str, row: Row, item: Import) -> Iterator[str]:
    top = item.target.split(".")[0]
    if item.in_function and not any(_within(module, place) for place in LAZY):
        yield f"imports {item.target} inside a function"
    if item.target.startswith("."):
        yield "relative import; write the whole name"
    elif item.target.endswith(".*"):
        yield f"{item.target} hides which names are used"
    elif top in {"gputier", "gputier_policies", "stacks"}:
        target = _imported_layer(item.target)
        known = {layer(module), *row.ours.split()}
        if target not in known and (module, target) not in EDGES:
            yield f"{layer(module)} may not import {target}"
        if _below(item.target, REFRESH) and not _may_refresh(module):
            yield "only cli may import the catalogue's refresh code"
    elif top not in sys.stdlib_module_names and top not in row.outside.split():
        yield f"{layer(module)} may not import {top}"


def _imported_layer(target: str) -> str:
    """`from gputier import plan` names a layer, `from gputier import Workload` the package."""
    name = layer(target)
    return name if name in TABLE or target.count(".") > 1 else target.split(".")[0]


def _within(module: str, place: str) -> bool:
    """Whether `module` is `place`, or below it where it ends in `.*`."""
    package = place.removesuffix(".*")
    return module == package or (place != package and module.startswith(f"{package}."))


def _below(module: str, place: str) -> bool:
    return module == place or module.startswith((f"{place}.", f"{place}_"))


def _may_refresh(module: str) -> bool:
    return layer(module) == "cli" or _below(module, REFRESH)


def _borrowed_tiers(module: str, source: ast.Module) -> Iterator[str]:
    """tiers.toml is read in one place, so that a floor has one meaning."""
    for node in ast.walk(source):
        named = isinstance(node, ast.Constant) and str(node.value)
        if named and re.fullmatch(r"\S*tiers\.toml", named) and layer(module) != "plan":
            yield "only plan reads tiers.toml"


def test_every_module_imports_only_what_the_table_allows(root: Path) -> None:
    assert violations(root) == []


def test_every_exception_is_still_needed(root: Path) -> None:
    """An exception that nothing uses is an open door."""
    lazy: set[str] = set()
    edges: set[tuple[str, str]] = set()
    for module, path in modules(root):
        for item in imports(ast.parse(path.read_text(encoding="utf-8"))):
            edges.add((module, _imported_layer(item.target)))
            if item.in_function:
                lazy |= {place for place in LAZY if _within(module, place)}
    assert lazy == set(LAZY)
    assert edges >= set(EDGES)


BREACHES = {
    "an inner layer imports an outer one": (
        "components/gputier/catalog/load.py",
        "from gputier.plan import need",
        "catalog may not import plan",
    ),
    "through the package": (
        "components/gputier/units.py",
        "from gputier import catalog",
        "units may not import catalog",
    ),
    "through the package's exports": (
        "components/gputier/sizing/parts.py",
        "from gputier import Workload",
        "sizing may not import gputier",
    ),
    "for types only": (
        "components/gputier/errors.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import gputier.units",
        "errors may not import units",
    ),
    "by name": (
        "components/gputier/plan/need.py",
        "import importlib\nCLI = importlib.import_module('gputier.cli')",
        "plan may not import cli",
    ),
    "the command line imports a cloud": (
        "components/gputier/cli/plan.py",
        "def run():\n    import gputier.aws.fleet",
        "cli may not import aws",
    ),
    "one cloud imports another": (
        "components/gputier/gcp/fleet.py",
        "from gputier.aws.fleet import GpuFleet",
        "gcp may not import aws",
    ),
    "the node imports ours": (
        "components/gputier/node/check.py",
        "from gputier.errors import Problem",
        "node may not import errors",
    ),
    "the judge imports the judged": (
        "policies/gputier_policies/cost.py",
        "import gputier.catalog",
        "gputier_policies may not import catalog",
    ),
    "pydantic past the edge": (
        "components/gputier/plan/select.py",
        "from pydantic import BaseModel",
        "plan may not import pydantic",
    ),
    "a cloud's SDK in the command line": (
        "components/gputier/cli/doctor.py",
        "def run():\n    import pulumi_aws",
        "cli may not import pulumi_aws",
    ),
    "relative": (
        "components/gputier/plan/price.py",
        "from . import need",
        "relative import; write the whole name",
    ),
    "star": (
        "components/gputier/plan/price.py",
        "from gputier.units import *",
        "gputier.units.* hides which names are used",
    ),
    "inside a function": (
        "components/gputier/plan/price.py",
        "def price():\n    import json",
        "imports json inside a function",
    ),
    "inside a branch of a function": (
        "components/gputier/plan/price.py",
        "def price(x):\n    if x:\n        import json",
        "imports json inside a function",
    ),
    "inside a function, elsewhere than the one module that may": (
        "components/gputier/workload/read.py",
        "def read():\n    import yaml",
        "imports yaml inside a function",
    ),
    "an edge that is one module's only": (
        "components/gputier/plan/select.py",
        "import gputier.api",
        "plan may not import api",
    ),
    "inside a method": (
        "components/gputier/lock.py",
        "class Lock:\n    def read(self):\n        from gputier.plan import need",
        "imports gputier.plan.need inside a function",
    ),
    "planning reaches the refresh code": (
        "components/gputier/catalog/load.py",
        "from gputier.catalog import refresh_aws",
        "only cli may import the catalogue's refresh code",
    ),
    "tiers read elsewhere": (
        "components/gputier/workload/read.py",
        "PATH = 'gputier/tiers.toml'",
        "only plan reads tiers.toml",
    ),
    "a new layer": (
        "components/gputier/helpers.py",
        "",
        "`helpers` is a layer that the table does not know",
    ),
}


@pytest.mark.parametrize(("file", "source", "message"), BREACHES.values(), ids=BREACHES.keys())
def test_a_breach_of_the_table_is_found(
    tmp_path: Path, file: str, source: str, message: str
) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(source, encoding="utf-8")
    found = violations(tmp_path)
    assert [line.split(": ", 1)[1] for line in found] == [message]


ALLOWED = {
    "components/gputier/__init__.py": "def __getattr__(name):\n    from gputier.workload import x",
    "components/gputier/cli/plan.py": "def run():\n    from gputier.catalog import refresh, load",
    "components/gputier/cli/__init__.py": "def run():\n    import json",
    "components/gputier/plan/__init__.py": "def call():\n    import gputier.api",
    "components/gputier/plan/tiers.py": "from gputier import errors\nPATH = 'tiers.toml'",
    "components/gputier/workload/model.py": "'''See tiers.toml'''\nfrom pydantic import Field",
    "components/gputier/catalog/refresh.py": "from gputier.catalog.refresh_aws import read",
    "components/gputier/aws/fleet.py": "import pulumi_aws\nfrom gputier.boot import render",
    "components/gputier/program.py": "import pulumi\nfrom gputier.aws import deploy",
    "stacks/__main__.py": "import sys\nfrom gputier.program import main",
}


@pytest.mark.parametrize(("file", "source"), ALLOWED.items(), ids=ALLOWED.keys())
def test_what_the_table_allows_is_not_flagged(tmp_path: Path, file: str, source: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(source, encoding="utf-8")
    assert violations(tmp_path) == []


def test_the_layers_have_no_cycle() -> None:
    seen: set[str] = set()
    waiting = dict(TABLE)
    while waiting:
        free = [name for name, row in waiting.items() if not set(row.ours.split()) - seen]
        assert free, f"these layers import each other in a circle: {sorted(waiting)}"
        seen.update(free)
        waiting = {name: row for name, row in waiting.items() if name not in free}


def test_contributing_shows_the_table(generated: Callable[[str, str, str], None]) -> None:
    lines = ["| layer | may import of ours | and of others |", "|---|---|---|"]
    for name, row in TABLE.items():
        ours, outside = (", ".join(text.split()) or "–" for text in (row.ours, row.outside))
        lines.append(f"| `{name}` | {ours} | {outside} |")
    generated("CONTRIBUTING.md", "imports", "\n".join(lines))


def loaded_by(statement: str, folder: Path) -> set[str]:
    """The top-level packages that a fresh interpreter loads for `statement`."""
    code = (
        "import sys; before = set(sys.modules)\n"
        f"{statement}\n"
        "print(*{name.split('.')[0] for name in set(sys.modules) - before})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_of_others(tmp_path: Path) -> None:
    assert loaded_by("import gputier", tmp_path) - sys.stdlib_module_names == {"gputier"}


def test_the_command_line_starts_without_pulumi_rich_and_pydantic(
    root: Path, tmp_path: Path
) -> None:
    """What `--help` and a typing error cost is what the entry point imports."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module = project["scripts"]["gputier"].split(":")[0]
    loaded = loaded_by(f"import {module}", tmp_path)
    assert loaded - sys.stdlib_module_names == {"gputier", "click"}
