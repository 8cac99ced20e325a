"""`gputier render`: what a node is given, from the lock, and why not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.schemas import Schemas
from tests.cli.world import Run

from gputier.catalog import Catalog
from gputier.lock import Lock, read_lock, write_lock
from gputier.node import expect
from gputier.node import settings as node


@pytest.fixture
def locked(run: Run, project: Path, small: Catalog) -> Path:
    """A project whose stack prod is locked."""
    assert run("lock", "prod").code == 0
    return project


def test_the_user_data_goes_to_stdout_and_what_it_weighs_to_stderr(run: Run, locked: Path) -> None:
    ran = run("render", "prod", "chat")
    assert ran.code == 0
    assert ran.out.startswith("#!/bin/bash\n")
    size = len(ran.out.encode())
    assert f"{size:,} of 12,288 bytes (script " in ran.err
    assert "boot: at most " in ran.err


def test_each_part_is_what_the_script_holds(run: Run, locked: Path) -> None:
    whole = run("render", "prod", "chat").out
    parts = {part: run("render", "prod", "chat", "--part", part) for part in
             ("expect", "settings", "fetcher", "deadline")}  # fmt: skip
    assert all(part.code == 0 and not part.err for part in parts.values())
    assert parts["expect"].out in whole
    assert parts["settings"].out in whole
    assert "class Aws(" in parts["fetcher"].out
    assert "power-on" in parts["deadline"].out
    assert expect.read(parts["expect"].out).text("gpu.model") == "L4"
    read = node.read(parts["settings"].out)
    assert read.text("gate.group") == "demo-prod-chat"
    assert read.text("gate.hook") == "demo-prod-chat-prove"


def test_the_bundle_is_the_one_that_the_lock_pins(run: Run, locked: Path) -> None:
    lock = locked / "stacks" / "gputier.prod.lock"
    found = read_lock(lock, "prod")
    assert found
    digest = found.entries["chat"].bundle
    assert f'"sha256":"{digest}"' in run("render", "prod", "chat").out


def test_the_json_says_the_same(run: Run, locked: Path, root: Path) -> None:
    document = json.loads(run("render", "prod", "foundation", "--json").out)
    text = run("render", "prod", "foundation").out
    assert document["user_data"] == text
    assert document["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert document["bytes"] == sum(document["parts"].values())
    assert document["deadline"]["hook_seconds"] == 900
    schemas = Schemas(root / "docs" / "schemas.json")
    assert not list(schemas.problems(document, schemas.documents["gputier/render/1"]))


def test_without_a_lock_nothing_is_rendered(run: Run, project: Path, small: Catalog) -> None:
    ran = run("render", "prod", "chat")
    assert (ran.code, ran.out) == (4, "")
    assert "there is no lock yet" in ran.err
    assert "run `gputier lock prod`" in ran.err


def test_a_stale_lock_renders_nothing(run: Run, locked: Path) -> None:
    file = locked / "stacks" / "Pulumi.prod.yaml"
    file.write_text(file.read_text().replace("context_tokens: 8192", "context_tokens: 4096", 1))
    ran = run("render", "prod", "chat")
    assert (ran.code, ran.out) == (4, "")
    assert "changed since it was locked" in ran.err
    assert run("render", "prod", "tuner").code == 0, "another workload's block is not this one's"


def test_a_better_machine_of_today_is_not_rendered(run: Run, locked: Path, tmp_path: Path) -> None:
    """A newer catalogue never changes a locked machine: the lock decides, to the byte."""
    before = run("render", "prod", "chat").out
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "prices.csv").write_text(
        "provider,region,zone,instance_type,purchase,usd_per_hour,currency,as_of,source\n"
        "aws,us-east-1,,g6.2xlarge,on_demand,90,USD,2026-09-01,mine\n"
    )
    overlay = ("--catalog", str(tmp_path / "mine"))
    chosen = json.loads(run("plan", "prod", "--json", *overlay).out)["workloads"][0]["chosen"]
    assert chosen["instance_type"] != "g6.2xlarge"
    assert run("render", "prod", "chat", *overlay).out == before
    assert '"instance_type":"g6.2xlarge"' in before


def test_a_price_that_rose_above_the_ceiling_takes_no_machine_away(
    run: Run, project: Path, small: Catalog, tmp_path: Path
) -> None:
    file = project / "stacks" / "Pulumi.prod.yaml"
    file.write_text(
        file.read_text().replace("    chat:\n", "    chat:\n      max_usd_per_hour: 2\n")
    )
    assert run("lock", "prod").code == 0
    before = run("render", "prod", "chat").out
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "prices.csv").write_text(
        "provider,region,zone,instance_type,purchase,usd_per_hour,currency,as_of,source\n"
        "aws,us-east-1,,g6.2xlarge,on_demand,90,USD,2026-09-01,mine\n"
    )
    assert before
    assert run("render", "prod", "chat", "--catalog", str(tmp_path / "mine")).out == before


@pytest.mark.parametrize(
    "lost",
    [
        {"catalog_type": "g9.2xlarge"},
        {"region": "us-west-9"},
        {"capacity": "spot"},
        {"nodes": 3},
        {"attached_ssds": 2},
    ],
    ids=str,
)
def test_a_machine_that_the_catalogue_lost_is_told(
    run: Run, locked: Path, lost: Mapping[str, Any]
) -> None:
    path = locked / "stacks" / "gputier.prod.lock"
    lock = read_lock(path, "prod")
    assert lock
    entries = {**lock.entries, "chat": replace(lock.entries["chat"], **lost)}
    write_lock(path, Lock("prod", entries))
    ran = run("render", "prod", "chat")
    assert (ran.code, ran.out) == (4, "")
    assert "does not offer for it any more" in ran.err
    assert "run `gputier lock prod --upgrade chat`" in ran.err


def test_an_unknown_workload_is_spelt_out(run: Run, locked: Path) -> None:
    ran = run("render", "prod", "chatt")
    assert ran.code == 2
    assert "did you mean `chat`?" in ran.err


def test_a_bundle_that_does_not_fit_is_refused_with_the_table(run: Run, locked: Path) -> None:
    ran = run("render", "prod", "chat", "--inline")
    assert (ran.code, ran.out) == (2, "")
    assert "12,288 is the most for aws: bundle " in ran.err
    assert "without --inline" in ran.err
