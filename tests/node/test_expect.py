"""The expectation: every key optional, unknown ones a warning, wrong ones named all at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gputier.node import expect
from gputier.node.cli import main


def test_an_empty_expectation_is_fine() -> None:
    found = expect.read("{}")
    assert (found.depth, found.gate, found.fabric, found.warnings) == ("quick", "enforce", None, ())


def test_unknown_keys_are_warnings_wherever_they_stand() -> None:
    found = expect.read('{"gpu": {"colour": 1, "count": 8}, "new": {"x": 1}}')
    assert found.count("gpu.count") == 8
    assert [text.split("`")[1] for text in found.warnings] == ["gpu.colour", "new"]


def test_null_is_absent() -> None:
    assert not expect.read('{"gpu": {"count": null}, "fabric": null}').has("gpu.count")


WRONG: list[tuple[Any, str]] = [
    ([], "one JSON object"),
    ({"gpu": 8}, "gpu: 8 is not an object"),
    ({"gpu": {"count": -1}}, "gpu.count: -1 is not a whole number"),
    ({"gpu": {"count": 1.5}}, "gpu.count: 1.5"),
    ({"gpu": {"count": True}}, "gpu.count: true"),
    ({"gpu": {"pci_ids": "2330"}}, "gpu.pci_ids"),
    ({"driver": {"min": "new"}}, "driver.min"),
    ({"framework": {"name": "caffe"}}, "framework.name"),
    ({"fabric": {"kind": "tokenring"}}, "fabric.kind"),
    ({"scratch": {"mount": "scratch"}}, "scratch.mount"),
    ({"limits": {"checks": {"xid": 0}}}, "limits.checks"),
    ({"limits": {"total_seconds": "long"}}, "limits.total_seconds"),
    ({"depth": "deep"}, "depth: \"deep\" is not one of quick, standard, burn-in"),
    ({"gate": "open"}, "gate"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "words"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_value_is_refused_with_its_place(data: Any, words: str) -> None:
    with pytest.raises(expect.BadExpectation) as caught:
        expect.read(json.dumps(data))
    assert words in str(caught.value)


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(expect.BadExpectation) as caught:
        expect.read('{"gate": 1, "depth": 2, "gpu": {"count": "x"}}')
    assert len(caught.value.problems) == 3


def test_versions_may_be_numbers_and_carry_a_local_part() -> None:
    found = expect.read('{"driver": {"min": 570}, "cuda": {"min": 12.8}, "framework": '
                        '{"name": "pytorch", "version": "2.9.0+cu128"}}')  # fmt: skip
    assert found.text("driver.min") == "570"
    assert found.text("cuda.min") == "12.8"
    assert (found.text("framework.name"), found.text("framework.version")) == (
        "torch",
        "2.9.0+cu128",
    )


@pytest.mark.parametrize("text", ["{", '{"gate": 1}', ""])
def test_a_bad_expectation_exits_with_2(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUTIER_SYSROOT", str(tmp_path))
    path = tmp_path / "e.json"
    path.write_text(text, encoding="utf-8")
    assert main(["check", "--expect", str(path)]) == 2
    assert "expectation" in capsys.readouterr().err


def test_a_missing_expectation_exits_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUTIER_SYSROOT", str(tmp_path))
    assert main(["check", "--expect", str(tmp_path / "no.json")]) == 2
    assert main(["check"]) == 2


def test_every_documented_key_is_read_by_something(root: Path) -> None:
    """A key that nothing reads is refused, not documented."""
    folder = root / "components/gputier/node"
    texts = [p.read_text("utf-8") for p in folder.rglob("*.py")]
    code = "\n".join(texts)
    unread = [path for path in expect.FIELDS if code.count(f'"{path}"') < 2]
    assert unread == []
