"""`gputier.testing`: a program runs without an engine, and what it did is plain data."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from gputier import testing
from gputier.testing import Options, Record, Secret


class Thing(pulumi.CustomResource):
    """Any provider's resource: one input and one output that only the provider can tell."""

    size: pulumi.Output[Any]
    address: pulumi.Output[Any]
    arn: pulumi.Output[Any]

    def __init__(
        self, name: str, size: pulumi.Input[Any] = None, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        props = {"size": size, "address": None, "arn": None}
        super().__init__("cloud:part/thing:Thing", name, props, opts)


class Whole(pulumi.ComponentResource):
    def __init__(self, name: str, *, registers: bool, part: bool = True) -> None:
        super().__init__("mine:parts:Whole", name)
        if part:
            self.thing = Thing("part", 1, pulumi.ResourceOptions(parent=self))
        if registers:
            self.register_outputs({"size": 1})


def test_a_program_gives_records_outputs_and_messages() -> None:
    def program() -> None:
        owner = pulumi.Config().require("owner")
        thing = Thing("one", owner)
        pulumi.log.warn("this costs something")
        pulumi.export("size", thing.size)
        pulumi.export("arn", thing.arn)
        pulumi.export("stack", f"{pulumi.get_project()}/{pulumi.get_stack()}")

    ran = testing.run(program, config={"project:owner": "ann"})
    assert ran.records == (
        Record("cloud:part/thing:Thing", "one", {"size": "ann"}, parent="", component=False),
    )
    assert ran.outputs == {"size": "ann", "arn": "arn:of:one", "stack": "project/dev"}
    assert ran.messages == (("warning", "this costs something"),)


def test_everything_has_happened_when_it_returns() -> None:
    seen: list[Any] = []

    def program() -> None:
        first = Thing("first", 1)
        second = Thing("second", first.id.apply(lambda id_: f"after {id_}"))
        second.size.apply(seen.append)

    ran = testing.run(program)
    assert seen == ["after first-id"]
    assert ran.find("Thing second").inputs == {"size": "after first-id"}


def test_records_come_in_one_order_whatever_the_program_s() -> None:
    names = ["b", "c", "a"]
    ran = testing.run(lambda: [Thing(name) for name in names])
    assert [record.label for record in ran.records] == ["Thing a", "Thing b", "Thing c"]


def test_a_component_is_the_parent_of_its_parts_and_says_what_it_registered() -> None:
    ran = testing.run(lambda: Whole("all", registers=True))
    whole = ran.find("Whole all")
    assert (whole.component, whole.outputs) == (True, {"size": 1})
    assert ran.find("Thing part").parent == "Whole all"
    forgot = testing.run(lambda: Whole("all", registers=False))
    assert forgot.find("Whole all").outputs is None, "a component has to register its outputs"


def test_the_options_that_decide_what_a_later_run_does_are_there() -> None:
    def program() -> None:
        first = Thing("first")
        Thing(
            "second",
            opts=pulumi.ResourceOptions(
                protect=True,
                depends_on=[first],
                ignore_changes=["size"],
                replace_on_changes=["address"],
                delete_before_replace=True,
                retain_on_delete=True,
                aliases=[pulumi.Alias(name="former")],
            ),
        )

    ran = testing.run(program)
    assert ran.find("Thing first").options == Options()
    assert ran.find("Thing second").options == Options(
        protect=True,
        depends_on=("Thing first",),
        ignore_changes=("size",),
        replace_on_changes=("address",),
        delete_before_replace=True,
        retain_on_delete=True,
        aliases=("former",),
    )


def test_an_explicit_provider_is_named() -> None:
    class Cloud(pulumi.ProviderResource):
        def __init__(self, name: str) -> None:
            super().__init__("cloud", name, {"region": "north"})

    def program() -> None:
        Thing("there", opts=pulumi.ResourceOptions(provider=Cloud("north")))

    ran = testing.run(program)
    assert ran.find("Thing there").options.provider == "north"
    assert ran.find("cloud north").inputs == {"region": "north"}


def test_a_secret_is_one_wherever_it_stands_and_does_not_print() -> None:
    def program() -> None:
        hidden = pulumi.Output.secret("hush")
        Thing("flat", hidden)
        Thing("deep", {"list": [{"key": hidden}]})
        pulumi.export("token", hidden)

    ran = testing.run(program)
    assert ran.find("Thing flat").inputs == {"size": Secret("hush")}
    deep = Secret({"list": [{"key": "hush"}]})
    assert ran.find("Thing deep").inputs == {"size": deep}, "Pulumi hides all that holds one"
    assert ran.outputs == {"token": Secret("hush")}
    assert "hush" not in repr(ran)


def test_the_test_says_what_the_provider_would() -> None:
    def outputs(type_: str, name: str, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"id": f"{name}!", "address": f"{type_} of size {inputs['size']}"}

    def program() -> None:
        thing = Thing("one", 3)
        pulumi.export("seen", pulumi.Output.all(thing.id, thing.address))

    ran = testing.run(program, outputs=outputs)
    assert ran.outputs == {"seen": ["one!", "cloud:part/thing:Thing of size 3"]}


def test_what_a_program_asks_a_provider_has_to_be_answered() -> None:
    def program() -> None:
        found = pulumi.runtime.invoke("cloud:part/getZone:getZone", {"near": "here"})
        pulumi.export("zone", found.value["zone"])

    def zone(args: dict[str, Any]) -> dict[str, Any]:
        return {"zone": f"{args['near']}-a"}

    answers = {"cloud:part/getZone:getZone": zone}
    assert testing.run(program, answers=answers).outputs == {"zone": "here-a"}
    fixed = testing.run(program, answers={"cloud:part/getZone:getZone": {"zone": "b"}})
    assert fixed.outputs == {"zone": "b"}
    with pytest.raises(LookupError, match="put it into `answers`"):
        testing.run(program)


def test_one_that_is_read_is_a_record_too() -> None:
    def program() -> None:
        Thing("there", opts=pulumi.ResourceOptions(id="thing-7"))

    (record,) = testing.run(program).records
    assert (record.label, record.options.import_id) == ("Thing there", "thing-7")


def test_what_a_program_raises_is_raised() -> None:
    def mistaken() -> None:
        raise pulumi.RunError("this cannot be")

    def late() -> None:
        Thing("one").id.apply(lambda _: 1 / 0)

    with pytest.raises(pulumi.RunError, match="this cannot be"):
        testing.run(mistaken)
    with pytest.raises(ZeroDivisionError):
        testing.run(late)


def test_a_run_leaves_nothing_to_the_next() -> None:
    testing.run(lambda: Thing("one"), config={"project:owner": "ann"}, stack="prod")

    def second() -> None:
        pulumi.export("owner", pulumi.Config().get("owner") or "nobody")
        pulumi.export("stack", pulumi.get_stack())

    ran = testing.run(second)
    assert (ran.records, ran.outputs) == ((), {"owner": "nobody", "stack": "dev"})


def test_a_record_is_found_by_its_label_and_by_its_type() -> None:
    ran = testing.run(lambda: [Thing("one"), Thing("two")])
    assert len(ran.of_type("Thing")) == len(ran.of_type("cloud:part/thing:Thing")) == 2
    assert ran.of_type("thing:Thing") == []
    with pytest.raises(LookupError, match="0 records of 'Thing three'; there are: Thing one"):
        ran.find("Thing three")
