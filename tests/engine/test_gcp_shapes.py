"""The stand-in Google Cloud by itself: every type is made, read back, changed and deleted."""

from __future__ import annotations

import pytest
from tests.engine import replacement, schema
from tests.engine.changes import changes
from tests.engine.gcp.direct import Direct
from tests.engine.gcp.resource import Resource
from tests.engine.gcp.sample import Sample
from tests.engine.gcp.samples import SAMPLES
from tests.engine.gcp.types import TYPES
from tests.engine.wire import Props

BY_NAME = [pytest.param(sample, id=sample.name) for sample in SAMPLES]
CHANGED = [pytest.param(sample, id=sample.name) for sample in SAMPLES if sample.change]
BY_HAND = [pytest.param(sample, id=sample.name) for sample in SAMPLES if sample.by_hand]


def made(sample: Sample) -> tuple[Direct, Resource, str, Props]:
    cloud = Direct()
    id_, inputs = cloud.create(sample.token, sample.inputs)
    return cloud, TYPES[sample.token], id_, inputs


def test_there_is_a_sample_of_every_type() -> None:
    assert {sample.token for sample in SAMPLES} == set(TYPES)


@pytest.mark.parametrize("sample", BY_NAME)
def test_what_was_made_reads_back_as_it_was_written(sample: Sample) -> None:
    cloud, _, id_, inputs = made(sample)
    state = cloud.read(sample.token, id_, inputs)
    assert state
    assert state.inputs == inputs
    needed = schema.outputs(sample.token) - schema.inputs(sample.token)
    assert set(state.outputs) & needed or not needed, "nothing that only Google can tell"


@pytest.mark.parametrize("sample", CHANGED)
def test_a_change_in_place_reads_back_and_is_one_that_the_provider_makes(sample: Sample) -> None:
    cloud, _, id_, inputs = made(sample)
    news = {**inputs, **sample.change}
    for found in changes(inputs, news):
        assert not replacement.replaces(sample.token, found, inputs, news), found.path
    cloud.update(sample.token, id_, inputs, news)
    state = cloud.read(sample.token, id_, news)
    assert state
    assert state.inputs == news


@pytest.mark.parametrize("sample", BY_HAND)
def test_what_somebody_did_by_hand_is_seen(sample: Sample) -> None:
    cloud, kind, id_, inputs = made(sample)
    service, _, path = key_of(cloud, kind, id_, inputs).partition("/")
    if sample.token.endswith(":RouterNat"):
        (nat,) = cloud.gcp.get(path)["nats"]
        cloud.gcp.set(path, {"nats": [{**nat, **sample.by_hand}]})
    else:
        cloud.gcp.set(path, sample.by_hand, service)
    state = cloud.read(sample.token, id_, inputs)
    assert state
    assert {found.top for found in changes(inputs, state.inputs)} == {sample.shows}


def key_of(cloud: Direct, kind: Resource, id_: str, inputs: Props) -> str:
    if kind.token.endswith(":RouterNat"):
        project, region, router, _ = id_.split("/")
        return f"compute/projects/{project}/regions/{region}/routers/{router}"
    if kind.token.endswith("logging/metric:Metric"):
        return f"logging/projects/acme/metrics/{id_}"
    return kind.key_of(id_, inputs)


@pytest.mark.parametrize("sample", BY_NAME)
def test_what_was_deleted_is_gone_and_leaves_nothing(sample: Sample) -> None:
    cloud = Direct()
    before = cloud.gcp.inventory()
    id_, inputs = cloud.create(sample.token, sample.inputs)
    cloud.delete(sample.token, id_, inputs)
    assert cloud.read(sample.token, id_, inputs) is None
    assert cloud.gcp.inventory() == before
    cloud.delete(sample.token, id_, inputs)  # gone already: no error


@pytest.mark.parametrize("sample", BY_NAME)
def test_what_somebody_deleted_is_found_gone(sample: Sample) -> None:
    cloud, kind, id_, inputs = made(sample)
    at = key_of(cloud, kind, id_, inputs)
    gone = [key for key in cloud.gcp.api.objects if key == at or key.startswith("policy/")]
    assert gone
    for key in gone:
        service, _, path = key.partition("/")
        cloud.gcp.remove(path, service)
    assert cloud.read(sample.token, id_, inputs) is None
