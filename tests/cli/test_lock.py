"""`gputier lock`: written, kept, checked, upgraded, watched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.world import PROD, Run

from gputier.catalog import Catalog

LOCK = Path("stacks") / "gputier.prod.lock"


def change(project: Path, old: str, new: str) -> None:
    assert old in PROD
    path = project / "stacks" / "Pulumi.prod.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def cheaper(project: Path) -> str:
    """An overlay in which a machine that fits `chat` costs next to nothing."""
    overlay = project / "cheaper"
    overlay.mkdir()
    (overlay / "prices.csv").write_text(
        "provider,region,zone,instance_type,purchase,usd_per_hour,currency,as_of,source\n"
        "aws,us-east-1,,g6e.4xlarge,on_demand,0.2,USD,2026-09-01,mine\n",
        encoding="utf-8",
    )
    return str(overlay)


def test_the_lock_is_written_beside_the_stack(run: Run, project: Path, small: Catalog) -> None:
    ran = run("lock", "prod")
    assert ran.code == 0
    assert ran.out.startswith(f"{LOCK}: written, 3 workloads, 3 changed, +$162,049 a month")
    assert "\n  chat: new, g6.2xlarge in us-east-1, +$0.98/h, +$" in ran.out
    assert LOCK.read_text(encoding="utf-8").startswith("# gputier lock 1")


def test_a_second_run_changes_nothing(run: Run, project: Path, small: Catalog) -> None:
    run("lock", "prod")
    before = LOCK.stat()
    ran = run("lock", "prod")
    assert ran.out == f"{LOCK}: up to date, 3 workloads\n"
    assert LOCK.stat().st_mtime_ns == before.st_mtime_ns


def test_check_is_quiet_about_what_is_fresh(run: Run, project: Path, small: Catalog) -> None:
    run("lock", "prod")
    assert run("lock", "prod", "--check") == (0, f"{LOCK}: fresh, 3 workloads\n", "")


def test_check_finds_a_missing_lock(run: Run, project: Path, small: Catalog) -> None:
    ran = run("lock", "prod", "--check")
    assert ran == (
        4,
        "",
        f"error: {LOCK}: there is no lock yet\nhint: run `gputier lock prod`\n",
    )


def test_check_shows_what_changed_at_its_place(run: Run, project: Path, small: Catalog) -> None:
    run("lock", "prod")
    change(project, "8192", "16384")
    ran = run("lock", "prod", "--check")
    assert ran.code == 4
    assert ran.out == f"{LOCK}: stale, 3 workloads\n"
    assert "error: stacks/Pulumi.prod.yaml: 1 problem" in ran.err
    assert "workload `chat` changed since it was locked on g6.2xlarge" in ran.err


def test_check_needs_no_catalogue(
    run: Run, project: Path, small: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("lock", "prod")
    monkeypatch.setenv("GPUTIER_CATALOG", "nosuch")
    assert run("lock", "prod", "--check").code == 0


def test_a_newer_catalogue_changes_no_locked_machine_until_it_is_asked_to(
    run: Run, project: Path, small: Catalog
) -> None:
    run("lock", "prod")
    overlay = ("--catalog", cheaper(project))
    assert run("lock", "prod", *overlay).out == f"{LOCK}: up to date, 3 workloads\n"
    ran = run("lock", "prod", "--upgrade", "chat", *overlay)
    assert ran.code == 0
    assert "chat: g6.2xlarge in us-east-1 → g6e.4xlarge in us-east-1, −$0.78/h" in ran.out
    assert "tuner" not in ran.out
    ran = run("lock", "prod", "--upgrade", *overlay)
    assert "tuner" in ran.out


def test_watch_finds_a_saving_and_changes_nothing(run: Run, project: Path, small: Catalog) -> None:
    run("lock", "prod")
    before = LOCK.read_bytes()
    overlay = ("--catalog", cheaper(project))
    ran = run("lock", "prod", "--watch", "10%", *overlay)
    assert ran.code == 4
    assert (
        "chat: the lock's g6.2xlarge in us-east-1 is now 389 % dearer than the best pick: $0.98/h,"
        " and g6e.4xlarge in us-east-1 is $0.20/h (80 % less)"
    ) in ran.out
    assert "to take it: gputier lock prod --upgrade chat" in ran.out
    assert run("lock", "prod", "--watch", "99", *overlay).code == 0
    assert run("lock", "prod", "--watch", "10").code == 0
    assert LOCK.read_bytes() == before


def test_watch_takes_the_price_of_the_locked_machine_from_the_same_catalogue(
    run: Run, project: Path, small: Catalog
) -> None:
    """The locked machine is the cheapest already; that its own price fell is no better pick."""
    overlay = ("--catalog", cheaper(project))
    assert run("lock", "prod", *overlay).code == 0
    (project / "cheaper" / "prices.csv").write_text(
        (project / "cheaper" / "prices.csv").read_text(encoding="utf-8").replace(",0.2,", ",0.1,"),
        encoding="utf-8",
    )
    assert run("lock", "prod", "--watch", "10", *overlay).code == 0


def test_what_fits_nowhere_is_not_locked_and_nothing_is_written(
    run: Run, project: Path, small: Catalog
) -> None:
    ran = run("lock", "dev")
    assert ran.code == 3
    assert "no machine fits" in ran.err
    assert not (project / "stacks" / "gputier.dev.lock").exists()


def test_a_lock_edited_by_hand_is_refused(run: Run, project: Path, small: Catalog) -> None:
    run("lock", "prod")
    LOCK.write_text(LOCK.read_text(encoding="utf-8").replace("g6.2xlarge", "g6.xlarge"), "utf-8")
    for arguments in ((), ("--check",), ("--watch", "5")):
        ran = run("lock", "prod", *arguments)
        assert (ran.code, ran.out) == (4, "")
        assert "was edited by hand" in ran.err


REFUSED = {
    ("prod", "chat"): "`chat` is not needed here",
    ("prod", "--upgrade", "chatt"): "`chatt` is not a workload of prod",
    ("prod", "--upgrade", "--check"): "--upgrade writes, and --check and --watch only look",
    ("-",): "standard input has no lock beside it",
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.items(), ids=map(" ".join, REFUSED))
def test_what_makes_no_sense_is_refused(
    arguments: tuple[str, ...], message: str, run: Run, project: Path, small: Catalog
) -> None:
    ran = run("lock", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert not LOCK.exists()


def test_json_says_what_was_written_and_what_is_stale(
    run: Run, project: Path, small: Catalog
) -> None:
    written = json.loads(run("lock", "prod", "--json").out)
    assert [c["workload"] for c in written["changes"]] == ["chat", "foundation", "tuner"]
    assert written["entries"]["chat"]["instance_type"] == "g6.2xlarge"
    change(project, "8192", "16384")
    ran = run("lock", "prod", "--check", "--json")
    checked = json.loads(ran.out)
    assert (ran.code, checked["ok"]) == (4, False)
    assert checked["problems"][0]["workload"] == "chat"
    assert checked["problems"][0]["line"] == 5


def test_json_of_a_missing_lock_is_json_too(run: Run, project: Path, small: Catalog) -> None:
    ran = run("lock", "prod", "--check", "--json")
    assert ran.code == 4
    assert json.loads(ran.out)["problems"][0]["workload"] is None
