"""The health check on Google: more patient than a reboot, and in time for a new machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputier.boot.deadlines import INITIAL_DELAY_SECONDS, Deadline, Row
from gputier.boot.health import HealthCheck, health_check, reboot_seconds
from gputier.plan.boot import GatePlan

ENFORCE = GatePlan("health-endpoint", "enforce", "quick")
STAGES = ("packages", "driver", "services")


def boot(validate: int = 210, other: int = 300) -> Deadline:
    rows = [Row(name, name, other, "") for name in ("power-on", "bundle", *STAGES)]
    more = [Row("validate", "", validate, ""), Row("reboots", "", 200, "")]
    return Deadline((*rows, *more), 3540, "autohealing waits 3,600 s at most", 3600, 3420)


def of(found: Deadline, gate: GatePlan = ENFORCE) -> HealthCheck:
    check = health_check(found, gate)
    assert check
    return check


def test_a_machine_that_reboots_and_proves_itself_again_is_not_given_up() -> None:
    check = of(boot())
    # 180 s for the reboot, 5 s for each of three stages and one more, and the validation.
    assert reboot_seconds(boot()) == 200
    assert check.needed_seconds == 410
    assert (check.interval_seconds, check.failures) == (45, 10)
    assert check.room_seconds > check.needed_seconds
    assert check.note is None


@given(validate=st.integers(0, 1500), other=st.integers(100, 500))
def test_a_good_machine_is_seen_before_autohealing_acts(validate: int, other: int) -> None:
    found = boot(validate, other)
    if not found.fits:
        with pytest.raises(ValueError, match="autohealing waits"):
            health_check(found, ENFORCE)
        return
    check = of(found)
    assert found.total_seconds + check.interval_seconds <= INITIAL_DELAY_SECONDS
    assert check.room_seconds > reboot_seconds(found), "a reboot alone never ends a machine"
    assert check.timeout_seconds <= check.interval_seconds <= 300
    assert (check.note is None) == (check.room_seconds > check.needed_seconds)


def test_a_long_validation_in_a_long_boot_is_said_to_have_too_little_room() -> None:
    check = of(boot(validate=1230, other=410))
    assert check.room_seconds < check.needed_seconds
    assert check.note
    assert f"has {check.room_seconds} s to prove itself again" in check.note


def test_a_gate_that_only_reports_repairs_nothing() -> None:
    assert of(boot()).repairs
    assert not of(boot(), ENFORCE._replace(mode="report")).repairs
    assert of(boot(1230, 410), ENFORCE._replace(mode="report")).note is None


@pytest.mark.parametrize(
    "gate", [ENFORCE._replace(mode="off"), GatePlan("file", "report", "quick")], ids=str
)
def test_nobody_asks_a_machine_without_a_gate_or_without_a_group(gate: GatePlan) -> None:
    assert health_check(boot(), gate) is None
