"""Stripping leaves the program, and nothing that only its readers need."""

from __future__ import annotations

from pathlib import Path

import pytest

from gputier.boot.stage0 import PROGRAMS, fetcher
from gputier.boot.strip import strip

SOURCE = '''\
"""A module."""
# why
import os  # after it


class A:
    """What it is."""

    x: int = 1

    def f(self) -> str:
        """How."""
        # inside
        return (
            "a # b"
            "c"
        )
'''


def test_comments_docstrings_and_blank_lines_go_and_a_step_is_one_space() -> None:
    assert strip(SOURCE) == (
        "import os\nclass A:\n x: int = 1\n def f(self) -> str:\n  return (\n"
        '   "a # b"\n   "c"\n  )\n'
    )


def test_a_docstring_that_is_all_there_is_stays() -> None:
    assert strip('class A:\n    """Only this."""\n') == 'class A:\n """Only this."""\n'


def test_a_hash_in_a_string_is_none_of_our_comments() -> None:
    assert strip('x = "a # b"\n') == 'x = "a # b"\n'


@pytest.mark.parametrize(
    "source", ['x = """a\n    b"""\n', 'x = "a  # b"\n', 'x = """a\n# b"""\n'], ids=repr
)
def test_what_would_become_another_program_is_refused(source: str) -> None:
    with pytest.raises((ValueError, SyntaxError)):
        strip(source)


def test_the_fetcher_that_has_to_be_small_carries_nothing_for_its_readers() -> None:
    text = fetcher("aws")
    assert '"""' not in text
    assert not [line for line in text.split("\n") if line.lstrip().startswith("#")]


def test_the_fetcher_that_may_be_large_is_the_source_itself(root: Path) -> None:
    text = fetcher("gcp")
    for name in ("fetching.py", PROGRAMS["gcp"]):
        source = (root / "templates" / "boot" / name).read_text(encoding="utf-8")
        joined = source.replace("\nimport fetching\n", "\nfetching = sys.modules[__name__]\n")
        assert joined in text
