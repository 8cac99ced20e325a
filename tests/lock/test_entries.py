"""What a lock holds, keeps, compares and refuses."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.plan.world import Doctored

from gputier import lock
from gputier.catalog import Catalog, load
from gputier.errors import CannotPlace
from gputier.lock import Bundle, Change, Entry, Lock
from gputier.node.build import content
from gputier.plan import plan_declaration
from gputier.workload import Declaration, read_file, read_text

CHAT = "{tier: entry, purpose: inference, gpu: {models: [L4]}}"
TWO = f"workloads: {{chat: {CHAT}, box: {{gpu: {{memory: 48GB}}}}}}\ndefaults: {{clouds: [aws]}}\n"


def declared(text: str = TWO, name: str = "dev") -> Declaration:
    return read_text(text, name)


def locked(text: str = TWO, catalog: Catalog | None = None) -> Lock:
    declaration = declared(text)
    return lock.make_lock(plan_declaration(declaration, catalog or load()), declaration)


def without(*names: str) -> Doctored:
    """The catalogue with these AWS types gone."""
    gone = {("aws", name) for name in names}
    return Doctored(only=[where for where in load().types if where not in gone])


def entry(**fields: Any) -> Entry:
    values: dict[str, Any] = {
        "digest": "5c1e000000000000", "cloud": "aws", "region": "us-east-1",
        "zones": ("use1-az4", "use1-az6"), "instance_type": "g6.2xlarge",
        "catalog_type": "g6.2xlarge", "attached": None, "attached_ssds": 0, "nodes": 1,
        "machines": 1, "capacity": "on_demand", "availability": "confirmed",
        "usd_per_hour": 0.9776, "hours_per_month": 730.0, "price_basis": "listed",
        "price_as_of": "2026-08-26", "catalog": "a41f000000000000", "catalog_as_of": "2026-08-26",
        "bundle": "b0d1" * 16, "bundle_version": "0.1.0", "image": "ami-0abc12345678def00",
    }  # fmt: skip
    return Entry(**(values | fields))


def test_each_workload_is_locked_to_what_its_plan_chose() -> None:
    found = locked().entries["chat"]
    assert (found.cloud, found.instance_type, found.nodes) == ("aws", "g6.2xlarge", 1)
    assert found.usd_per_hour == 0.9776
    assert found.price_as_of == "2026-07-20"
    assert (found.catalog, found.catalog_as_of) == (load().id, load().as_of)


def test_a_composed_machine_is_locked_with_what_is_attached() -> None:
    text = "workloads: {t: {gpu: {models: [T4], count: 2}, clouds: [gcp], disk: {scratch: 300GiB}}}"
    found = locked(text).entries["t"]
    assert found.instance_type.startswith("n1-")
    assert (found.attached, found.attached_ssds) == ("2 × T4", 1)
    assert found.machine == f"{found.instance_type} + 2 × T4"


def test_hours_and_machines_are_those_that_the_price_is_for() -> None:
    schedule = '[{start: "0 8 * * mon-fri", stop: "0 20 * * mon-fri"}]'
    text = f"workloads: {{a: {{clouds: [aws], nodes: 3, schedule: {schedule}}}}}"
    found = locked(text).entries["a"]
    assert (found.machines, found.nodes) == (3, 3)
    assert found.hours_per_month == pytest.approx(260.75)
    assert found.usd_per_month == pytest.approx((found.usd_per_hour or 0) * 260.75)


def test_a_workload_is_locked_to_what_its_machines_boot() -> None:
    found = locked().entries["chat"]
    assert (found.bundle, found.bundle_version) == lock.current_bundle()
    assert found.bundle == hashlib.sha256(content()).hexdigest()
    assert found.image.endswith("base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id")


def test_a_new_release_alone_changes_no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a machine boots is in its user data: a change of it replaces machines."""
    old = locked()
    newer = Bundle("f" * 64, "0.2.0")
    monkeypatch.setattr("gputier.lock.entries.current_bundle", lambda: newer)
    new = locked()
    assert {e.bundle for e in new.entries.values()} == {newer.sha256}
    assert lock.merged(old, new) == old
    assert lock.compare(old, lock.merged(old, new)) == ()
    taken = lock.merged(old, new, ["chat"])
    assert (taken.entries["chat"].bundle, taken.entries["chat"].bundle_version) == newer
    assert taken.entries["box"] == old.entries["box"]
    (change,) = lock.compare(old, taken)
    assert lock.describe(change).endswith("same price, bundle 0.2.0 (ffffffff)")


def test_another_image_is_told() -> None:
    change = Change("chat", entry(), entry(image="ami-0def00000000abc12"))
    assert lock.describe(change).endswith("same price, another image")


def before_bundles(entries: Lock) -> Lock:
    """A lock as releases wrote it that pinned no bundle."""
    old = {
        n: replace(e, bundle="", bundle_version="", image="") for n, e in entries.entries.items()
    }
    return Lock(entries.stack, old)


def test_a_lock_from_before_bundles_is_stale_and_the_command_completes_it() -> None:
    declaration, new = declared(), locked()
    old = before_bundles(new)
    problems = lock.check_lock(old, declaration)
    assert len(problems) == 2
    assert "did not pin what machines boot" in problems[0].message
    assert problems[0].hint.startswith("run `gputier lock dev`")
    assert lock.merged(old, new) == new
    assert lock.check_lock(lock.merged(old, new), declaration) == []


def test_it_keeps_a_machine_that_would_not_be_chosen_today() -> None:
    old, new = before_bundles(locked()), locked()
    other = replace(old.entries["chat"], catalog_type="g5.xlarge", instance_type="g5.xlarge")
    kept = lock.merged(Lock("dev", {**old.entries, "chat": other}), new)
    assert kept.entries["chat"] == other  # still stale: the hint names --upgrade
    (problem,) = lock.check_lock(kept, declared())
    assert "--upgrade chat" in problem.hint


def test_what_fits_nowhere_is_not_locked() -> None:
    with pytest.raises(CannotPlace, match="no machine fits `a`"):
        locked("workloads: {a: {gpu: {memory: 80GB}, max_usd_per_hour: 0.1}}")


def test_a_cloud_that_is_plan_only_is_not_locked() -> None:
    with pytest.raises(CannotPlace, match="fits only on azure, which is plan only"):
        locked("workloads: {a: {clouds: [azure], gpu: {memory: 24GB}}}")


# ---- what is kept -------------------------------------------------------------------------------


def test_a_newer_catalogue_keeps_the_machine_of_an_unchanged_declaration() -> None:
    before = locked()
    cheaper = without("g6.2xlarge")
    after = lock.merged(before, locked(catalog=cheaper))
    assert after == before


def test_a_changed_declaration_is_chosen_anew_and_the_other_kept() -> None:
    before = locked()
    text = TWO.replace("models: [L4]", "models: [L40S]")
    after = lock.merged(before, locked(text, without("g6e.xlarge")))
    assert after.entries["chat"].instance_type.startswith("g6e")
    assert after.entries["box"] == before.entries["box"]


def test_upgrade_chooses_anew_what_it_names() -> None:
    before = locked()
    fewer = without("g6.2xlarge", "g6e.xlarge")
    after = lock.merged(before, locked(catalog=fewer), ["box"])
    assert after.entries["chat"] == before.entries["chat"]
    assert after.entries["box"].instance_type != before.entries["box"].instance_type


def test_what_is_no_longer_declared_leaves_the_lock() -> None:
    one = f"workloads: {{chat: {CHAT}}}\ndefaults: {{clouds: [aws]}}\n"
    assert set(lock.merged(locked(), locked(one)).entries) == {"chat"}


# ---- check --------------------------------------------------------------------------------------


def test_a_fresh_lock_has_no_problem() -> None:
    assert lock.check_lock(locked(), declared()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            TWO.replace("[L4]", "[L40S]"),
            "workload `chat` changed since it was locked on g6.2xlarge",
        ),
        (TWO.replace("chat:", "talk:"), "workload `talk` is not in the lock"),
        (TWO.replace("chat:", "talk:"), "the lock holds `chat`, which is no longer declared"),
    ],
)
def test_what_is_stale_names_the_workload_and_the_command(text: str, message: str) -> None:
    problems = lock.check_lock(locked(), declared(text))
    found = next(p for p in problems if p.message == message)
    assert found.hint == "run `gputier lock dev`"


def test_the_environment_and_the_discounts_are_part_of_the_declaration() -> None:
    before = locked()
    for more in ("environment: prod\n", "discounts: [{cloud: aws, families: [g6], percent: 5,"
                 " reason: savings}]\n"):  # fmt: skip
        assert len(lock.check_lock(before, declared(TWO + more))) == 2


def test_a_models_config_is_part_of_the_declaration_by_its_content(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    shape = '{"num_hidden_layers": LAYERS, "hidden_size": 2048, "vocab_size": 32000,'
    shape += ' "num_attention_heads": 16, "intermediate_size": 8192}'
    file = tmp_path / "w.yaml"
    file.write_text("workloads: {a: {clouds: [aws], model: {config: config.json}}}\n")
    digests: list[str] = []
    for layers in ("16", "32"):
        config.write_text(shape.replace("LAYERS", layers))
        digests.append(lock.digest_of(read_file(file), "a"))
    assert digests[0] != digests[1]


# ---- compare and watch --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (None, entry(), "a: new, g6.2xlarge in us-east-1, +$0.98/h, +$713.65 a month"),
        (entry(), None, "a: removed, −$0.98/h, −$713.65 a month"),
        (
            entry(hours_per_month=100.0),
            entry(instance_type="g6e.xlarge", usd_per_hour=1.861, hours_per_month=100.0),
            "a: g6.2xlarge in us-east-1 → g6e.xlarge in us-east-1, +$0.88/h, +$88.34 a month",
        ),
        (
            entry(),
            entry(capacity="spot", usd_per_hour=0.5),
            "a: g6.2xlarge in us-east-1 → g6.2xlarge in us-east-1 spot, −$0.48/h, −$348.65 a month",
        ),
        (entry(), entry(catalog="b"), "a: same machine, g6.2xlarge in us-east-1, same price"),
        (
            entry(),
            entry(hours_per_month=365.0),
            "a: same machine, g6.2xlarge in us-east-1, ±$0.00/h, −$356.82 a month",
        ),
        (
            entry(),
            entry(usd_per_hour=None),
            "a: same machine, g6.2xlarge in us-east-1, price unknown",
        ),
    ],
)  # fmt: skip
def test_a_change_says_what_and_how_much(
    before: Entry | None, after: Entry | None, text: str
) -> None:
    assert lock.describe(Change("a", before, after)) == text


def test_comparing_names_only_what_differs() -> None:
    old = Lock("dev", {"a": entry(), "b": entry(), "c": entry()})
    new = Lock("dev", {"b": entry(), "c": entry(region="us-west-2"), "d": entry()})
    assert [c.name for c in lock.compare(old, new)] == ["a", "c", "d"]
    assert [c.name for c in lock.compare(None, new)] == ["b", "c", "d"]


def test_a_cheaper_pick_of_today_is_told_when_it_saves_more_than_asked() -> None:
    declaration = declared()
    plan = plan_declaration(declaration, load())
    dear = locked(catalog=without("g6.2xlarge"))
    assert dear.entries["chat"].instance_type != "g6.2xlarge"
    (found,) = lock.cheaper_than(dear, plan, declaration, 10)
    assert (found.name, found.best.instance_type) == ("chat", "g6.2xlarge")
    today = found.locked_usd_per_hour
    assert found.percent == pytest.approx(100 * (1 - 0.9776 / today))
    assert lock.cheaper_than(dear, plan, declaration, found.percent + 0.01) == ()


def test_a_stale_entry_is_not_watched() -> None:
    declaration = declared(TWO.replace("[L4]", "[T4]"))
    plan = plan_declaration(declaration, load())
    assert [c.name for c in lock.cheaper_than(locked(), plan, declaration, 0)] == []


def test_an_unknown_workload_on_the_command_line_is_said_with_what_there_is() -> None:
    (problem,) = lock.unknown_names(["chta"], declared())
    assert problem.message == "`chta` is not a workload of dev"
    assert problem.hint == "did you mean `chat`?"
