"""Previews of any program: values that nobody expects make a review poorer, and never break it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gputier.review.comment import LIMIT, comment
from gputier.review.cost import Elsewhere, Priced, Unpriced
from gputier.review.document import document
from gputier.review.page import page
from gputier.review.preview import SECRET, UNKNOWN
from gputier.review.prices import PRICERS
from gputier.review.read import read
from gputier.review.review import Review, review
from gputier.review.text import text
from tests.review.test_read import SAMPLES
from tests.review.worlds import catalog, state, world

ODD: list[Any] = [None, True, 0, -1, 2.5, 10**12, "", "x", "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
                  "[secret]", [], ["x"], [[]], [None], {}, {"x": 1}, [{"x": [1]}]]  # fmt: skip
SIDES = ("oldState", "newState")
SHOWN: tuple[Callable[[Review], object], ...] = (comment, text, page, document)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Everything that can be put in place of something: (container, key)."""
    inside: Any = value.items() if isinstance(value, dict) else ()  # pyright: ignore
    if isinstance(value, list):
        inside = enumerate(value)  # pyright: ignore
    for key, inner in inside:
        yield value, key
        yield from places(inner)


@settings(max_examples=60)
@given(data=st.data())
def test_a_preview_with_odd_values_in_it_is_reviewed_all_the_same(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["create", "update", "replace", "prod-change"]))
    preview = json.loads((SAMPLES / f"{name}.json").read_text("utf-8"))
    sides = [step[side] for step in preview["steps"] for side in SIDES if step.get(side)]
    for _ in range(data.draw(st.integers(1, 8))):
        inside = list(places(data.draw(st.sampled_from(sides)).get("inputs")))
        if inside:
            container, key = data.draw(st.sampled_from(inside))
            container[key] = copy.deepcopy(data.draw(st.sampled_from(ODD)))
    found = review(read(json.dumps(preview).encode(), name), catalog())
    assert len(comment(found)) <= LIMIT
    for show in SHOWN:
        assert show(found)
    for row in found.rows:
        assert row.priced.usd_per_month >= 0


NAMES = st.sampled_from(
    ["instanceType", "launchTemplate", "mixedInstancesPolicy", "desiredCapacity", "minSize",
     "maxSize", "size", "type", "iops", "throughput", "scalingConfig", "instanceTypes", "region",
     "computeResources", "networkInterfaces", "rootBlockDevice", "blockDeviceMappings",
     "targetCapacitySpecification", "launchTemplateConfigs", "machineType", "zone", "bootDisk",
     "scheduling", "guestAccelerators", "nodeConfig", "nodeCount", "autoscaling", "versions",
     "targetSize", "productionVariants", "vpcEndpointType", "subnetIds", "sku", "location",
     "hardwareProfile", "instanceMarketOptions", "capacityReservationSpecification"]
)  # fmt: skip
VALUES = st.recursive(
    st.sampled_from([*ODD, UNKNOWN, SECRET, "p5.48xlarge", "a3-highgpu-8g", "us-east-1", 3]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150)
@given(token=st.sampled_from(sorted(PRICERS)), inputs=st.dictionaries(NAMES, VALUES, max_size=5))
def test_every_type_has_an_answer_for_whatever_it_is_asked_with(
    token: str, inputs: dict[str, Any]
) -> None:
    one = state(token)._replace(inputs=inputs)
    found = PRICERS[token](world(one), one)
    assert isinstance(found, Priced | Unpriced | Elsewhere)
    if isinstance(found, Priced):
        assert found.usd_per_month >= 0
        assert found.low <= found.high + 1e-9
