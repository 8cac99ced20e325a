"""docs/cli.md and docs/json.md say what the command line does, word for word."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from tests.cli.schemas import KEYWORDS, Schemas, page
from tests.cli.test_main import commands
from tests.cli.world import RICH, Run
from tests.conftest import ROOT

from gputier.catalog import Catalog
from gputier.cli.app import root as command_line
from gputier.cli.command import Command, Group
from gputier.node.cli import main as node

Generated = Callable[[str, str, str], None]


def reference() -> str:
    """Every command as Markdown, in the order of the help."""
    by_path = dict(commands())
    lines: list[str] = []
    for path in _in_order():
        lines += _command(path, by_path[path])
    return "\n".join(lines)


def _in_order() -> Iterator[tuple[str, ...]]:
    for name in command_line.lazy:
        yield (name,)
        found = command_line.get_command(click.Context(command_line), name)
        if isinstance(found, Group):
            yield from ((name, inner) for inner in found.lazy)


def _command(path: tuple[str, ...], command: click.Command) -> Iterator[str]:
    settings: dict[str, Any] = dict(command.context_settings)
    context = click.Context(command, info_name=" ".join(["gputier", *path]), **settings)
    yield f"### gputier {' '.join(path)}"
    yield ""
    for paragraph in (command.help or "").split("\n\n"):
        text = paragraph.replace("\b\n", "").strip("\n")
        if paragraph.startswith("\b"):
            yield from ("```", *(line.strip() for line in text.split("\n")), "```", "")
        else:
            yield from (" ".join(text.split()), "")
    usage = command.get_usage(context).removeprefix("Usage: ")
    yield from ("```", " ".join(usage.split()), "```", "", "| option | does |", "|---|---|")
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record and isinstance(parameter, click.Option):
            name, text = (part.replace("|", "\\|") for part in record)
            yield f"| `{name}` | {' '.join(text.split())} |"
    assert isinstance(command, (Command, Group))
    yield from ("", "```")
    for example in command.examples:
        yield from (f"# {example.text}", f"$ {example.line}")
    yield from ("```", "")


def test_the_reference_of_commands_is_what_the_commands_say(generated: Generated) -> None:
    generated("docs/cli.md", "commands", reference())


@pytest.fixture(scope="module")
def schemas(root: Path) -> Schemas:
    return Schemas(root / "docs" / "schemas.json")


def test_the_page_lists_every_field_of_every_schema(generated: Generated, schemas: Schemas) -> None:
    generated("docs/json.md", "fields", page(schemas))


def test_every_field_is_explained_and_every_object_is_closed(schemas: Schemas) -> None:
    open_on_purpose = {"$defs/gpu", "gputier/catalog-type/1.facts", "$defs/type.facts"}
    for where, schema in schemas.all():
        assert set(schema) <= KEYWORDS, where
        for name, member in schema.get("properties", {}).items():
            assert schemas.resolve(member).get("description"), f"{where}.{name}"
        if "properties" in schema:
            assert set(schema["required"]) == set(schema["properties"]), where
            assert where in open_on_purpose or schema["additionalProperties"] is False, where


def test_every_shared_part_is_used(schemas: Schemas) -> None:
    used = {schema.get("$ref", "").removeprefix("#/$defs/") for _where, schema in schemas.all()}
    assert set(schemas.shared) <= used


#: A command line for each schema, in the order in which they build on each other.
PRINTED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("gputier/plan/1", ("plan", "prod")),
    ("gputier/plan/1", ("plan", "dev")),
    ("gputier/plan/1", ("plan", "rich.yaml")),
    ("gputier/plan/1", ("pick", "--gpu-memory", "24GB", "--spot")),
    ("gputier/plan/1", ("pick", "--gpu", "T4", "--cloud", "gcp", "--fractional", "allow")),
    ("gputier/size/1", ("size", "prod")),
    ("gputier/size/1", ("size", "dev")),
    ("gputier/tiers/1", ("tiers",)),
    ("gputier/why-not/1", ("plan", "prod", "--why-not", "g6e.xlarge")),
    ("gputier/why-not/1", ("plan", "dev", "--why-not", "p5.48xlarge")),
    ("gputier/lock-check/1", ("lock", "prod", "--check")),
    ("gputier/lock/1", ("lock", "prod")),
    ("gputier/render/1", ("render", "prod", "chat")),
    ("gputier/render/1", ("render", "prod", "foundation")),
    ("gputier/review/1", ("review", "change.json", "--base", "export.json")),
    ("gputier/review/1", ("review", "failed.json")),
    ("gputier/lock/1", ("lock", "prod", "--upgrade", "--catalog", "cheaper")),
    ("gputier/lock-check/1", ("lock", "prod", "--check", "--watch", "0")),
    ("gputier/lock-check/1", ("lock", "prod", "--watch", "0", "--catalog", "cheapest")),
    ("gputier/catalog-list/1", ("catalog",)),
    ("gputier/catalog-list/1", ("catalog", "--spot", "--region", "us-east-1")),
    ("gputier/catalog-type/1", ("catalog", "show", "p5.48xlarge")),
    ("gputier/catalog-type/1", ("catalog", "show", "n1+nvidia-tesla-t4x1")),
    ("gputier/catalog-gpu/1", ("catalog", "show", "H100-80GB")),
    ("gputier/catalog-models/1", ("catalog", "models")),
    ("gputier/catalog-models/1", ("catalog", "models", "no", "such")),
    ("gputier/catalog-gpus/1", ("catalog", "gpus")),
    ("gputier/catalog-regions/1", ("catalog", "regions", "aws")),
    ("gputier/catalog-compare/1", ("catalog", "compare", "g6.xlarge", "a2-highgpu-1g")),
    ("gputier/catalog-refresh/1", ("catalog", "refresh", "--from", "spot.json", "--out", "mine")),
)


#: Previews by the names that PRINTED has for them.
SAMPLES = {
    "change.json": "prod-change.json",
    "export.json": "prod-export.json",
    "failed.json": "bad-argument.json",
}


def prices(usd: float) -> str:
    return (
        "provider,region,zone,instance_type,purchase,usd_per_hour,currency,as_of,source\n"
        f"aws,us-east-1,,g6.2xlarge,on_demand,{usd},USD,2026-09-01,mine\n"
    )


@pytest.fixture
def furnished(project: Path) -> Path:
    """A project with everything that PRINTED reads."""
    (project / "rich.yaml").write_text(RICH, encoding="utf-8")
    for name, sample in SAMPLES.items():
        shutil.copy(ROOT / "tests" / "review" / "samples" / sample, project / name)
    for name, usd in (("cheaper", 0.5), ("cheapest", 0.1)):
        (project / name).mkdir()
        (project / name / "prices.csv").write_text(prices(usd), encoding="utf-8")
    entry = {
        "AvailabilityZone": "us-east-1a",
        "InstanceType": "g6.xlarge",
        "ProductDescription": "Linux/UNIX",
        "SpotPrice": "0.2811",
        "Timestamp": "2026-11-20T10:00:00+00:00",
    }
    (project / "spot.json").write_text(json.dumps({"SpotPriceHistory": [entry]}), encoding="utf-8")
    return project


def test_what_is_printed_is_what_is_documented(
    run: Run, furnished: Path, small: Catalog, schemas: Schemas
) -> None:
    seen: set[str] = set()
    for name, arguments in PRINTED:
        ran = run(*arguments, "--json")
        assert ran.out, f"{arguments}: {ran.err}"
        document = json.loads(ran.out)
        assert document["schema"] == name, arguments
        found = list(schemas.problems(document, schemas.documents[name]))
        assert not found, f"{' '.join(arguments)}: {found[:5]}"
        assert _in_schema_order(document, schemas, schemas.documents[name])
        seen.add(name)
    of_the_machine = {"gputier/node/1", "gputier/timeline/1"}  # its own command prints them
    of_the_account = {"gputier/doctor/1", "gputier/status/1"}  # tested where an account answers
    assert seen == set(schemas.documents) - of_the_machine - of_the_account


@pytest.mark.parametrize("name", ["healthy", "faulty"])
def test_what_a_node_prints_is_what_is_documented(
    root: Path, name: str, schemas: Schemas, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = root / "tests/golden/node" / name
    node(["replay", str(folder), "--expect", str(folder / "expect.json"), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["checks"]
    assert document["gpus"]
    assert not list(schemas.problems(document, schemas.documents["gputier/node/1"]))
    assert _in_schema_order(document, schemas, schemas.documents["gputier/node/1"])


def _in_schema_order(value: Any, schemas: Schemas, schema: Any) -> bool:
    """Whether a document's own fields come in the order in which the schema lists them."""
    wanted = list(schemas.resolve(schema)["properties"])
    return list(value) == wanted


BREACHES: dict[str, Callable[[Any], object]] = {
    "a field that is missing": lambda d: d.pop("name"),
    "a field that is not documented": lambda d: d.update(more=1),
    "another version": lambda d: d.update(schema="gputier/plan/2"),
    "a wrong kind": lambda d: d["workloads"][0].update(name=3),
    "a boolean for a number": lambda d: d["workloads"][0]["counts"].update(accepted=True),
    "a negative price": lambda d: d["workloads"][0]["chosen"].update(usd_per_hour=-1),
    "an unknown word": lambda d: d["workloads"][0]["chosen"].update(availability="perhaps"),
    "a wrong date": lambda d: d["catalog"].update(as_of="yesterday"),
    "null where something must be": lambda d: d["workloads"][0].update(need=None),
    "a wrong part of a map": lambda d: d["workloads"][0]["need"]["size"]["parts"].update(x="y"),
}


@pytest.mark.parametrize("breach", BREACHES.values(), ids=BREACHES)
def test_a_document_that_breaks_its_schema_is_found(
    breach: Callable[[Any], object], run: Run, project: Path, small: Catalog, schemas: Schemas
) -> None:
    document = json.loads(run("plan", "prod", "--json").out)
    breach(document)
    assert list(schemas.problems(document, schemas.documents["gputier/plan/1"]))
