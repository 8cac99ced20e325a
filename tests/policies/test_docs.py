"""The page about policies: its tables are those of the rules."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path

from gputier_policies import RULES

PAGE = "docs/policies.md"
Generated = Callable[[str, str, str], None]


def test_the_page_lists_every_rule(generated: Generated) -> None:
    rows = ["| rule | severity | what holds | clouds |", "|---|---|---|---|"]
    for rule in sorted(RULES, key=lambda each: each.name):
        about = f"[why]({rule.url})" if rule.url else ""
        what = f"{rule.description} {rule.remediation} {about}".strip()
        rows.append(
            f"| `{rule.name}` | {rule.severity} | {what} | {', '.join(clouds(rule.types))} |"
        )
    generated(PAGE, "rules", "\n".join(rows))


def clouds(types: frozenset[str]) -> list[str]:
    named = {"aws": "AWS", "gcp": "Google Cloud"}
    return [
        word
        for cloud, word in named.items()
        if not types or any(t.startswith(f"{cloud}:") for t in types)
    ]


def test_the_page_lists_every_setting(generated: Generated) -> None:
    rows = ["| rule | setting | default | what |", "|---|---|---|---|"]
    for rule in sorted(RULES, key=lambda each: each.name):
        for name, schema in rule.settings.items():
            default = json.dumps(schema["default"])
            rows.append(f"| `{rule.name}` | `{name}` | `{default}` | {schema['description']} |")
    generated(PAGE, "settings", "\n".join(rows))


def test_the_page_shows_the_configuration_of_production(root: Path, generated: Generated) -> None:
    text = (root / "policies" / "config.prod.json").read_text(encoding="utf-8")
    generated(PAGE, "config", f"```json\n{text.rstrip()}\n```")


def test_the_page_lists_what_can_be_fixed(generated: Generated) -> None:
    rows = [f"- `{rule.name}`: {rule.remediation}" for rule in RULES if rule.remedy]
    generated(
        PAGE, "remedies", "\n".join(textwrap.fill(r, 105, subsequent_indent="  ") for r in rows)
    )
