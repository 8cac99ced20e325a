"""What people see, word for word: the screens at three widths, on a fixed catalogue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.world import RICH, Run, too_wide

from gputier.catalog import Catalog

Golden = Callable[[str, str], None]

PLANS = {
    "plan-prod": ("plan", "prod"),
    "plan-all": ("plan",),
    "plan-rich": ("plan", "rich.yaml"),
    "plan-explain": ("plan", "prod", "--explain"),
    "why-not": ("plan", "prod", "--why-not", "g6e.xlarge"),
    "size-prod": ("size", "prod"),
    "pick": ("pick", "--gpu-memory", "24GB", "--region", "aws:us-east-1", "--spot"),
    "pick-nothing": ("pick", "--gpu-memory", "96GB", "--cloud", "gcp"),
    "catalog": ("catalog", "--cloud", "aws", "--cloud", "gcp"),
    "catalog-spot": ("catalog", "--spot", "--region", "us-east-1"),
    "catalog-show": ("catalog", "show", "p5.48xlarge"),
    "catalog-show-attached": ("catalog", "show", "n1+nvidia-tesla-t4x1"),
    "catalog-show-gpu": ("catalog", "show", "H100-80GB"),
    "catalog-compare": ("catalog", "compare", "g6.xlarge", "g2-standard-8", "p4d.24xlarge"),
    "catalog-gpus": ("catalog", "gpus"),
    "catalog-models": ("catalog", "models", "mixtral"),
    "size-dev": ("size", "dev"),
    "catalog-regions": ("catalog", "regions", "aws"),
    "tiers": ("tiers",),
}


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("name", PLANS)
def test_a_screen_is_as_it_was_and_fits_the_terminal(
    name: str, columns: int, run: Run, golden: Golden, project: Path, small: Catalog
) -> None:
    (project / "rich.yaml").write_text(RICH, encoding="utf-8")
    ran = run(*PLANS[name], columns=columns)
    assert not too_wide(ran.out, columns)
    assert ran.out == "\n".join(line.rstrip() for line in ran.out.split("\n"))
    golden(f"cli/{name}-{columns}.txt", f"{ran.out}--- exit code {ran.code}\n{ran.err}")
