"""Files that are no known command's output, broken or cut short: refused, and nothing written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gputier.catalog.refresh import refresh
from gputier.catalog.refresh_io import COMMANDS
from gputier.errors import InvalidInput

Printed = Callable[[object], Path]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is not JSON"),
        ("An error occurred (UnauthorizedOperation)\n", "it begins `An error occurred"),
        ('{"InstanceTypes": [{"InstanceType": "p5', "it looks cut short"),
        ("[" * 100_000, "is n"),
        ('{"Reservations": []}', "is not what any known command prints"),
        ("[]", "is not what any known command prints"),
        ("42", "is not what any known command prints"),
        ('[{"name": "x"}, 3]', "is not what any known command prints"),
        ('{"InstanceTypes": {}}', "is not what any known command prints"),
        ('{"InstanceTypes": []}', "holds no records of `aws ec2 describe-instance-types`"),
        ('{"InstanceTypes": [3]}', "record 1 of `aws ec2 describe-instance-types` is no object"),
        ('{"PriceList": ["{"]}', "record 1 is not JSON"),
        ('{"InstanceTypes": [{"a": 1}], "NextToken": "x"}', "run it without --max-items"),
        ('{"InstanceTypes": [{"GpuInfo": {}}]}', "record 1 of"),
        (
            '{"InstanceTypes": [{"InstanceType": "p5.48xlarge", "GpuInfo": {"Gpus": [{}]}}]}',
            "with GPUs of no named maker",
        ),
        (
            '{"SpotPriceHistory": [{"InstanceType": "p5.48xlarge", "AvailabilityZone": "x"}]}',
            "`p5.48xlarge` of `aws ec2 describe-spot-price-history` has no 'ProductDescription'",
        ),
        ('[{"guestCpus": 4, "name": "g2-standard-4", "zone": "moon"}]', "its zone is `moon`"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_clearly_and_nothing_is_written(
    printed: Printed, tmp_path: Path, content: str, says: str
) -> None:
    out = tmp_path / "out"
    with pytest.raises(InvalidInput, match=re.escape(says)):
        refresh([printed(content)], out)
    assert not out.exists()
    assert all(path.name.startswith("printed-") for path in tmp_path.iterdir())


def test_every_bad_file_is_named_at_once(printed: Printed, tmp_path: Path) -> None:
    binary = tmp_path / "printed-binary"
    binary.write_bytes(b"\xff\xfe")
    files = [printed("nonsense"), printed("{}"), binary, tmp_path / "printed-missing", tmp_path]
    with pytest.raises(InvalidInput) as refusal:
        refresh(files, tmp_path / "out")
    assert [problem.path for problem in refusal.value.problems] == [str(path) for path in files]


def test_no_files_at_all_is_answered_with_the_commands(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refusal:
        refresh([], tmp_path / "out")
    for command in COMMANDS.values():
        assert command in refusal.value.problems[0].hint


def test_a_result_that_would_not_hold_together_is_not_written(
    described: Mapping[str, dict[str, Any]], printed: Printed, tmp_path: Path
) -> None:
    wrong = described["g5.xlarge"] | {"VCpuInfo": {"DefaultVCpus": 4000}}
    with pytest.raises(InvalidInput, match="would not hold together") as refusal:
        refresh([printed({"InstanceTypes": [wrong]})], tmp_path / "out")
    assert "aws g5.xlarge: vcpus is 4000" in refusal.value.problems[0].hint
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_refused(
    described: Mapping[str, dict[str, Any]], printed: Printed, tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    for out in (taken, taken / "below"):
        with pytest.raises(InvalidInput, match="cannot be written"):
            refresh([printed({"InstanceTypes": [described["g5.xlarge"]]})], out)
    assert taken.read_text() == "a file"
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_nothing_but_the_refresh_modules_and_the_command_line_imports_them(root: Path) -> None:
    importer = re.compile(r"^\s*(?:from|import) .*\brefresh", re.MULTILINE)
    for path in (root / "components" / "gputier").rglob("*.py"):
        if path.name.startswith("refresh") or "cli" in path.parts:
            continue
        assert not importer.search(path.read_text("utf-8")), path
