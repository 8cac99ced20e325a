"""`gputier status` as it is typed: what is asked for, printed, watched, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.account.status_amazon import NOW, Account, ago, group, launch, machine
from tests.account.status_scenes import SCENES
from tests.account.status_world import asking, cannot
from tests.cli.schemas import Schemas
from tests.cli.world import Run

from gputier.account.status_ask import Sessions
from gputier.account.status_document import SCHEMA, document
from gputier.catalog import Catalog
from gputier.cli import console, status_run

GROUP = "demo-prod-chat"
ONE = "i-0aaaaaaaaaaaaaaaa"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Account:
    """One fleet of the stack `prod` runs; the clock stands still."""
    found = Account()
    found.groups = [group(GROUP, [(ONE, "InService")])]
    found.machines = [machine(GROUP, ONE, ago(hours=3))]
    found.activities = [launch(GROUP, ago(hours=3), ONE)]
    monkeypatch.setattr(status_run, "SESSIONS", Sessions(aws=asking(found), gcp=cannot()))
    monkeypatch.setattr(status_run, "now", NOW.timestamp)
    return found


@pytest.fixture
def locked(run: Run, project: Path, small: Catalog) -> Path:
    assert run("lock", "prod").code == 0
    return project


def test_a_stack_is_asked_for_by_its_lock_and_names(run: Run, locked: Path, aws: Account) -> None:
    ran = run("status", "prod")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("prod: its machine works, foundation and tuner are not deployed")
    assert "\nchat        1 of 1 work   aws us-east-1   g6.2xlarge" in ran.out
    asked = {p["AutoScalingGroupNames"][0] for _, call, _, p in aws.asked if "groups" in call}
    assert asked == {f"demo-prod-{name}" for name in ("chat", "foundation", "tuner")}


def test_every_stack_is_asked_for_where_none_is_named(run: Run, locked: Path, aws: Account) -> None:
    ran = run("status")
    assert ran.code == 0
    assert "dev: the lock has no machine, so nothing is deployed from here\n" in ran.out
    assert "\nboth  not locked\n" in ran.out
    assert "→ gputier lock dev" in ran.out
    assert "\n\nprod: its machine works" in ran.out


def test_a_fleet_that_is_not_well_is_no_failure_of_the_command(
    run: Run, locked: Path, aws: Account
) -> None:
    aws.groups = [group(GROUP)]
    assert run("status", "prod").code == 0


def test_where_nothing_could_be_asked_it_ends_with_2(
    run: Run, locked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fix = "pip install 'gputier[aws]'"
    monkeypatch.setattr(status_run, "SESSIONS", Sessions(aws=cannot("boto3 is not there", fix)))
    ran = run("status", "prod")
    assert ran.code == 2
    assert ran.out.startswith("prod: AWS could not be asked\n")
    assert f"⚠ could not ask AWS: boto3 is not there\n    → {fix}\n" in ran.out
    as_json = run("status", "prod", "--json")
    assert as_json.code == 2
    assert json.loads(as_json.out)["answered"] is False


def test_a_lock_that_was_edited_is_refused(run: Run, locked: Path, aws: Account) -> None:
    lock = locked / "stacks" / "gputier.prod.lock"
    lock.write_text(lock.read_text("utf-8").replace("nodes: 1", "nodes: 2"), "utf-8")
    ran = run("status", "prod")
    assert (ran.code, ran.out) == (4, "")
    assert "gputier.prod.lock" in ran.err


def test_a_stack_that_is_not_there_is_a_mistake(run: Run, locked: Path) -> None:
    ran = run("status", "prd")
    assert ran.code == 2
    assert "did you mean `prod`?" in ran.err


def test_standard_input_has_no_lock(run: Run, project: Path) -> None:
    assert run("status", "-").code == 2


@pytest.mark.parametrize("typed", ["1", "0", "100000", "soon", "prod"])
def test_watch_takes_seconds(run: Run, project: Path, typed: str) -> None:
    ran = run("status", "prod", "--watch", typed)
    assert ran.code == 2
    assert "--watch" in ran.err
    assert f"`{typed}`" in ran.err


def test_who_asks_is_who_the_stack_deploys_as(
    run: Run, project: Path, small: Catalog, aws: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def session(account: Any) -> Any:
        seen.append(account.aws.profile)
        return aws.session()

    monkeypatch.setattr(status_run, "SESSIONS", Sessions(aws=session))
    file = project / "stacks" / "Pulumi.prod.yaml"
    file.write_text(file.read_text("utf-8").replace("config:\n", "config:\n  aws:profile: ml\n"))
    run("lock", "prod")
    run("status", "prod")
    assert seen == ["ml"]


# --- watching --------------------------------------------------------------------------------


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Ctrl-C comes while the third look is waited for."""
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(status_run, "wait", wait)
    return waited


def test_watching_asks_again_until_ctrl_c_and_ends_well(
    run: Run, locked: Path, aws: Account, three: list[float]
) -> None:
    ran = run("status", "prod", "--watch", "7")
    assert (ran.code, ran.err, three) == (0, "", [7.0, 7.0, 7.0])
    assert ran.out.count("prod: its machine works") == 3
    assert "\x1b" not in ran.out, "nothing is cleared where nobody looks"
    assert "\n\nprod: its machine works" in ran.out


def test_watching_without_seconds_waits_half_a_minute(
    run: Run, locked: Path, aws: Account, three: list[float]
) -> None:
    run("status", "prod", "--watch")
    assert three == [30.0, 30.0, 30.0]


def test_who_asks_is_found_once_and_the_files_are_read_anew(
    run: Run, locked: Path, aws: Account, three: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def session(_account: Any) -> Any:
        made.append("session")
        return aws.session()

    monkeypatch.setattr(status_run, "SESSIONS", Sessions(aws=session))
    first = status_run._asked  # pyright: ignore[reportPrivateUsage]
    reads: list[str] = []

    def asked(typed: Any) -> Any:
        reads.append("files")
        if len(reads) == 3:
            (locked / "stacks" / "gputier.prod.lock").unlink()
        return first(typed)

    monkeypatch.setattr(status_run, "_asked", asked)
    ran = run("status", "prod", "--watch", "5")
    assert (len(made), len(reads)) == (1, 3)
    assert "prod: the lock has no machine" in ran.out


def test_watching_in_json_prints_a_document_each_time(
    run: Run, locked: Path, aws: Account, three: list[float]
) -> None:
    text = run("status", "prod", "--json", "--watch", "5").out
    decoder = json.JSONDecoder()
    found: list[Any] = []
    while text := text.strip():
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:]
    assert [value["schema"] for value in found] == [SCHEMA] * 3


def test_a_terminal_is_cleared_before_each_look(
    run: Run, locked: Path, aws: Account, three: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_terminal(_stream: Any) -> bool:
        return True

    monkeypatch.setattr(console, "is_terminal", is_terminal)
    monkeypatch.setenv("TERM", "xterm")
    ran = run("status", "prod", "--watch", "5")
    assert ran.out.count("\x1b[H\x1b[2J") == 3
    assert ran.out.startswith("\x1b[H\x1b[2J")
    assert ran.err.count("asking for the fleets of prod") == 1
    monkeypatch.setenv("TERM", "dumb")
    three.clear()
    assert "\x1b[2J" not in run("status", "prod", "--watch", "5").out


CHILD = """
import sys
from tests.account.status_world import cannot
from gputier.account.status_ask import Sessions
from gputier.cli import status_run
from gputier.cli.__main__ import run
status_run.SESSIONS = Sessions(aws=cannot(), gcp=cannot())
sys.argv = ["gputier", "status", "prod", "--watch", "5"]
run()
"""


@pytest.fixture
def child(locked: Path, root: Path) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", CHILD],
        cwd=locked,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def test_a_signal_ends_it_without_a_word(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    assert child.stdout.readline() == "prod: AWS could not be asked\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=20)
    assert (child.returncode, err) == (0, "")


def test_it_ends_when_its_reader_has_left(
    locked: Path, aws: Account, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    reading = [True, True, False]
    monkeypatch.setattr(status_run, "_is_read", lambda: reading.pop(0))
    waited: list[float] = []
    monkeypatch.setattr(status_run, "wait", waited.append)
    assert run("status", "prod", "--watch", "5").code == 0
    assert waited == [5.0]


def test_what_goes_to_nobody_from_the_start_goes_on(
    locked: Path, aws: Account, three: list[float], monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setattr(status_run, "_is_read", lambda: False)
    assert run("status", "prod", "--watch", "5").code == 0
    assert len(three) == 3


# --- the document ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def schemas(root: Path) -> Schemas:
    return Schemas(root / "docs" / "schemas.json")


@pytest.mark.parametrize("name", SCENES)
def test_each_scene_is_as_the_schema_says(name: str, schemas: Schemas) -> None:
    found = json.loads(json.dumps(document(SCENES[name]())))
    schema = schemas.documents[SCHEMA]
    assert list(schemas.problems(found, schema)) == []
    assert list(found) == list(schema["properties"])


def test_a_stack_without_a_lock_is_as_the_schema_says(
    run: Run, project: Path, aws: Account, schemas: Schemas
) -> None:
    ran = run("status", "dev", "--json")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert list(schemas.problems(found, schemas.documents[SCHEMA])) == []
    assert {one["state"] for one in found["workloads"]} == {"not-locked"}
