"""Names that only others know are asked for while a declaration is checked, and told in one go."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from gputier import errors
from gputier.workload import Model, Workload, known, read_text

TEXT = """\
workloads:
  chat:
    purpos: inference
    gpu: {models: [H100, H1OO], exclude: [L4]}
    regions: {aws: [us-east-1, us-eats-1]}
    model: {name: lama}
"""


class FewNames:
    """Knows one GPU, one region and one model."""

    def gpu(self, name: str) -> known.Unknown | None:
        return None if name in ("H100", "L4") else known.Unknown(f" is no GPU: {name}", "H100?")

    def region(self, cloud: str, name: str) -> known.Unknown | None:
        good = (cloud, name) == ("aws", "us-east-1")
        return None if good else known.Unknown(f" is no region of {cloud}", "us-east-1?")

    def instance_type(self, name: str) -> known.Unknown | None:
        return None if name == "p5.48xlarge" else known.Unknown(" is no type", "p5.48xlarge?")

    def model(self, model: Model) -> Iterable[tuple[str, known.Unknown]]:
        if model.name != "llama":
            yield "name", known.Unknown(" is no model", "llama?")


def test_unknown_names_are_told_beside_misspelt_fields_each_at_its_item() -> None:
    with known.asking(FewNames()), pytest.raises(errors.InvalidInput) as caught:
        read_text(TEXT, "w.yaml")
    told = {
        p.path: (p.message, p.position and (p.position.line, p.position.column))
        for p in caught.value.problems
    }
    of = "of workload `chat`"
    assert told == {
        "workloads.chat.purpos": (f"unknown field `purpos` {of}", (3, 5)),
        "workloads.chat.gpu.models[1]": (f"`gpu.models[1]` {of} is no GPU: H1OO", (4, 26)),
        "workloads.chat.model.name": (f"`model.name` {of} is no model", (6, 19)),
        "workloads.chat.regions.aws[1]": (f"`regions.aws[1]` {of} is no region of aws", (5, 32)),
    }


def test_names_that_are_known_pass() -> None:
    with known.asking(FewNames()):
        made = Workload.model_validate(
            {
                "gpu": {"models": "H100"},
                "regions": {"aws": "us-east-1"},
                "model": {"name": "llama"},
                "capacity": {"use": "on_demand", "instance_type": "p5.48xlarge"},
            }
        )
    assert made.gpu.models == ("H100",)


def test_an_unknown_instance_type_is_told() -> None:
    with known.asking(FewNames()), pytest.raises(errors.InvalidInput, match="is no type"):
        Workload.model_validate({"capacity": {"use": "on_demand", "instance_type": "p9"}})


def test_nobody_is_asked_outside() -> None:
    with known.asking(FewNames()):
        assert known.asked() is not None
    assert known.asked() is None
    assert Workload.model_validate({"gpu": {"models": "H1OO"}}).gpu.models == ("H1OO",)
