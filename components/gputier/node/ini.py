"""One key in a file of sections (dnf.conf, pip.conf), every other line as it is."""

from __future__ import annotations

import re


def with_key(content: str, section: str, key: str, value: str) -> str:
    """The file with `key = value` in its section, which is made where it is absent."""
    rows = content.splitlines()
    line = f"{key}={value}"
    start = next((i for i, row in enumerate(rows) if row.strip() == f"[{section}]"), None)
    if start is None:
        return "\n".join([*rows, f"[{section}]", line]) + "\n"
    for at in range(start + 1, len(rows)):
        if re.match(r"\s*\[", rows[at]):
            break
        if re.match(rf"\s*{re.escape(key)}\s*[=:]", rows[at]):
            rows[at] = line
            return "\n".join(rows) + "\n"
    return "\n".join([*rows[: start + 1], line, *rows[start + 1 :]]) + "\n"
