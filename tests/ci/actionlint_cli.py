"""The real `actionlint`, which reads GitHub's workflow files as GitHub does.

`python -m tests.ci.actionlint_cli` builds it where it is not there yet and prints where it is.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.go_tool import Tool

ACTIONLINT = Tool(
    "actionlint",
    folder=Path(__file__).resolve().parent / "actionlint",
    package="github.com/rhysd/actionlint/cmd/actionlint",
    requirement="github.com/rhysd/actionlint",
    make="make pulumi",
    without="check of the workflow files",
)

if __name__ == "__main__":
    sys.exit(ACTIONLINT.main())
