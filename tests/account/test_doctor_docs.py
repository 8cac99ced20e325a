"""docs/doctor.md says what doctor checks and reads, row by row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gputier.account.doctor_checks import CHECKS, Check
from gputier.account.stack import AWS_KEYS, GCP_KEYS

Generated = Callable[[str, str, str], None]
CLOUDS = {"": "either", "aws": "AWS", "gcp": "Google"}
#: Settings that are known of, and said not to be read.
UNREAD = ("accessKey", "secretKey", "token", "accessToken", "assumeRoleWithWebIdentity")


def _row(check: Check) -> str:
    rights = "<br>".join(f"`{call}`" for call in check.calls) or "–"
    return f"| `{check.name}` | {CLOUDS[check.cloud]} | {check.what} | {rights} | {check.fix} |"


def test_the_page_lists_every_check(generated: Generated) -> None:
    lines = ["| check | cloud | good when | right to ask | way out |", "|---|---|---|---|---|"]
    generated("docs/doctor.md", "checks", "\n".join([*lines, *map(_row, CHECKS)]))


def test_the_page_lists_every_setting(generated: Generated) -> None:
    rows = ["| cloud | settings of the provider | not read |", "|---|---|---|"]
    for name, cloud, keys in (("AWS", "aws", AWS_KEYS), ("Google", "gcp", GCP_KEYS)):
        read = ", ".join(f"`{cloud}:{key}`" for key in keys if key not in UNREAD)
        unread = ", ".join(f"`{cloud}:{key}`" for key in keys if key in UNREAD)
        rows.append(f"| {name} | {read} | {unread} |")
    generated("docs/doctor.md", "settings", "\n".join(rows))


def test_the_page_shows_a_run(generated: Generated, root: Path) -> None:
    text = (root / "tests/golden/doctor/dev-120.txt").read_text("utf-8")
    shown = text.partition("\n--- standard error")[0]
    generated("docs/doctor.md", "example", f"```\n{shown.rstrip()}\n```")
