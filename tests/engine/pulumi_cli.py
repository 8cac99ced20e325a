"""The real `pulumi` command: built once from the module that cli/go.mod pins, then kept.

`python -m tests.engine.pulumi_cli` builds it where it is not there yet, which takes minutes, and
prints where it is.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.go_tool import NoTool as NoPulumi
from tests.go_tool import Tool

__all__ = ["COMMAND", "PULUMI", "NoPulumi", "build", "cached", "find", "main", "version"]

COMMAND = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
PULUMI = Tool(
    "pulumi",
    folder=Path(__file__).resolve().parent / "cli",
    package=COMMAND,
    requirement="github.com/pulumi/pulumi/pkg/v3",
    make="make pulumi",
    without="engine tests",
    tags="osusergo,grpcnotrace",
    flags="-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version={version}",
)
version, cached, find = PULUMI.version, PULUMI.cached, PULUMI.find
build, main = PULUMI.build, PULUMI.main

if __name__ == "__main__":
    sys.exit(main())
