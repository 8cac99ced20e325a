"""Run a Pulumi program without an engine, and get what it registers as plain records.

For tests of programs that use gputier's components, ours and yours; it needs the Pulumi SDK and
nothing else, no `pulumi` command, no account, no network:

    from gputier import testing

    def program() -> None:
        bucket = aws.s3.Bucket("reports", force_destroy=True)
        pulumi.export("name", bucket.bucket)

    ran = testing.run(program, config={"project:owner": "ann"})
    assert ran.find("Bucket reports").inputs == {"forceDestroy": True}
    assert [record.label for record in ran.records] == ["Bucket reports"]

The program has run to its end, with every `apply` in it, when `run` returns, so ordinary asserts on
ordinary values see everything. An assertion inside of an `apply` is never needed, and Pulumi would
swallow its failure in most places.

There is no provider: an output is what the program gave as an input of the same name, `id` and
`arn` are made up, and anything else is None unless `outputs` says more. What a program asks a
provider (`get_ami` and the like) has to be in `answers`.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple, cast

from pulumi import runtime

Properties = dict[str, Any]
# (type, logical name, inputs) -> more outputs; for every resource that the program registers.
Outputs = Callable[[str, str, Properties], Mapping[str, Any]]
# What a look-up answers: the values, or a function of its arguments.
Answer = Mapping[str, Any] | Callable[[Properties], Mapping[str, Any]]

STACK = "pulumi:pulumi:Stack"
# The SDK's own monitor for tests has no types; as `Any` it is the one place without them.
_mocks: Any = import_module("pulumi.runtime.mocks")
_rpc: Any = import_module("pulumi.runtime.rpc")


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that the program marked as secret; Pulumi makes one of the whole input or output that
    holds a secret somewhere. Equal to another of the same value; printing it does not show the
    value, so that a failing assertion does not either."""

    value: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Options:
    """The resource options that decide what a later run does. Labels are as in Record.label."""

    protect: bool = False
    provider: str = ""  # the logical name of an explicit provider
    depends_on: tuple[str, ...] = ()  # labels, sorted; those that follow from inputs included
    ignore_changes: tuple[str, ...] = ()  # as the provider spells them
    replace_on_changes: tuple[str, ...] = ()
    delete_before_replace: bool = False
    retain_on_delete: bool = False
    aliases: tuple[str, ...] = ()  # former names, or whole URNs
    import_id: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """One resource or component that the program registered, or one that it read."""

    type: str  # the whole token, aws:ec2/vpc:Vpc
    name: str
    inputs: Properties  # as the provider gets them, in its spelling: {"cidrBlock": ...}
    parent: str  # the parent's label; "" for the stack
    component: bool
    options: Options = Options()
    outputs: Properties | None = None  # what a component registered; None when it never did

    @property
    def label(self) -> str:
        """`Vpc net`: the last part of the type and the logical name."""
        return f"{self.type.rsplit(':', 1)[-1]} {self.name}"


@dataclass(frozen=True, slots=True)
class Run:
    """What a program did."""

    records: tuple[Record, ...]  # by type and name: the order of registration is not stable
    outputs: Properties  # what it exports
    messages: tuple[tuple[str, str], ...]  # (level, text) of what it logged: info, warning, error

    def find(self, label: str) -> Record:
        """The one record of this label. LookupError: none, or several."""
        found = [record for record in self.records if record.label == label]
        if len(found) != 1:
            known = ", ".join(record.label for record in self.records)
            raise LookupError(f"{len(found)} records of {label!r}; there are: {known}")
        return found[0]

    def of_type(self, type_: str) -> list[Record]:
        """The records of a type, by its whole token or the last part of it."""
        return [r for r in self.records if type_ in (r.type, r.type.rsplit(":", 1)[-1])]


def run(
    program: Callable[[], object],
    *,
    project: str = "project",
    stack: str = "dev",
    config: Mapping[str, str] | None = None,
    answers: Mapping[str, Answer] | None = None,
    outputs: Outputs | None = None,
    preview: bool = False,
) -> Run:
    """Runs `program` to its end and gives what it registered. What it raises is raised.

    `config` is keyed as in a stack file, `project:key`. `answers` is keyed by function, such as
    `aws:index/getRegion:getRegion`; one that is asked and not answered is a LookupError. With
    `preview` the program is told that nothing will be made. Every run starts from nothing, so
    several may follow each other in one test.
    """
    world = _World(dict(answers or {}), outputs or (lambda _type, _name, _inputs: {}))
    # Pulumi keeps its state in context variables: a copy of the context is a state of our own.
    context = contextvars.copy_context()
    told = _Told(project, stack, preview, dict(config or {}))
    context.run(_in_context, program, world, told)
    return Run(tuple(world.finished()), world.exported, tuple(world.messages))


class _Told(NamedTuple):
    """What a program may ask about the deployment that it is part of."""

    project: str
    stack: str
    preview: bool
    config: dict[str, str]


def _in_context(program: Callable[[], object], world: _World, told: _Told) -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loops = [loop]
    # The monitor is called in threads, where the SDK makes a loop for itself and never closes it.
    threads = ThreadPoolExecutor(max_workers=8, initializer=_with_loop, initargs=(loops,))
    loop.set_default_executor(threads)
    try:
        world.monitor = _mocks.MockMonitor(world)
        logger = logging.Logger("gputier.testing")
        logger.addHandler(_Kept(world.messages))
        settings = _mocks.MockSettings(
            monitor=_Monitor(world),
            monitor_features=set(world.monitor.GetDeploymentInfo(None).supportedFeatures),
            engine=_mocks.MockEngine(logger),
            project=told.project,
            stack=told.stack,
            organization="organization",
            dry_run=told.preview,
        )
        runtime.configure(settings)
        runtime.set_all_config(told.config)
        loop.run_until_complete(runtime.run_in_stack(lambda: _nothing(program())))
    finally:
        threads.shutdown()
        for made in loops:
            made.close()
        asyncio.set_event_loop(None)


def _with_loop(loops: list[asyncio.AbstractEventLoop]) -> None:
    loops.append(asyncio.new_event_loop())
    asyncio.set_event_loop(loops[-1])


def _nothing(_result: object) -> None:
    """A program's result means nothing to Pulumi; only an awaitable would be waited for."""


class _Kept(logging.Handler):
    def __init__(self, messages: list[tuple[str, str]]) -> None:
        super().__init__(logging.INFO)
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        self._messages.append((record.levelname.lower(), record.getMessage()))


class _World:
    """The SDK's `Mocks`: answers for every provider, and remembers what was asked of them."""

    def __init__(self, answers: dict[str, Answer], outputs: Outputs) -> None:
        self.monitor: Any = None
        self.messages: list[tuple[str, str]] = []
        self.exported: Properties = {}
        self._answers, self._outputs = answers, outputs
        self._records: dict[str, Record] = {}
        self._registered: dict[str, Properties] = {}

    def call(self, args: Any) -> Properties:
        answer = self._answers.get(args.token)
        if answer is None:
            raise LookupError(f"the program asks for {args.token}: put it into `answers`")
        return dict(answer(_whole(args.args)) if callable(answer) else answer)

    def new_resource(self, args: Any) -> tuple[str, Properties]:
        given = {"arn": f"arn:of:{args.name}"} if args.custom else {}
        inputs: Properties = _whole(args.inputs)
        more = dict(self._outputs(args.typ, args.name, inputs))
        id_: str = more.pop("id", args.resource_id or f"{args.name}-id")
        return id_, {**given, **inputs, **more}

    def remember(self, urn: str, record: Record) -> None:
        if record.type != STACK:
            self._records[urn] = record

    def register(self, urn: str, outputs: Properties) -> None:
        if _of_urn(urn)[0] == STACK:
            self.exported = outputs
        else:
            self._registered[urn] = outputs

    def finished(self) -> Iterator[Record]:
        for urn in sorted(self._records, key=lambda u: (self._records[u].type, u)):
            found = self._records[urn]
            yield Record(
                type=found.type,
                name=found.name,
                inputs=found.inputs,
                parent=found.parent,
                component=found.component,
                options=found.options,
                outputs=self._registered.get(urn),
            )


class _Monitor:
    """The SDK's monitor for tests, with a look at each request, where the options are."""

    def __init__(self, world: _World) -> None:
        self._world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.monitor, name)

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        answer = self._world.monitor.RegisterResource(request)
        record = Record(
            type=request.type,
            name=request.name,
            inputs=_plain(_rpc.deserialize_properties(request.object)),
            parent=_label(request.parent),
            component=not request.custom,
            options=_options(request),
        )
        self._world.remember(answer.urn, record)
        return answer

    def ReadResource(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        answer = self._world.monitor.ReadResource(request)
        inputs = _plain(_rpc.deserialize_properties(request.properties))
        options = Options(import_id=request.id)
        parent = _label(request.parent)
        record = Record(
            request.type, request.name, inputs, parent, component=False, options=options
        )
        self._world.remember(answer.urn, record)
        return answer

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        outputs = _plain(_rpc.deserialize_properties(request.outputs))
        self._world.register(request.urn, outputs)
        return self._world.monitor.RegisterResourceOutputs(request)


def _options(request: Any) -> Options:
    return Options(
        protect=request.protect,
        provider=request.provider.rsplit("::", 2)[-2] if request.provider else "",
        depends_on=tuple(sorted({_label(urn) for urn in request.dependencies})),
        ignore_changes=tuple(request.ignoreChanges),
        replace_on_changes=tuple(request.replaceOnChanges),
        delete_before_replace=request.deleteBeforeReplace,
        retain_on_delete=request.retainOnDelete,
        aliases=tuple(alias.urn or alias.spec.name for alias in request.aliases),
        import_id=request.importId,
    )


def _of_urn(urn: str) -> tuple[str, str]:
    """The type and the logical name."""
    *_, types, name = urn.split("::")
    return types.rsplit("$", 1)[-1], name


def _label(urn: str) -> str:
    type_, name = _of_urn(urn) if urn else (STACK, "")
    return "" if type_ == STACK else f"{type_.rsplit(':', 1)[-1]} {name}"


def _whole(value: Any) -> Any:
    """Whole numbers as int: Pulumi's wire has only floating point."""
    if isinstance(value, list):
        return [_whole(item) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in cast(Properties, value).items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _plain(value: Any) -> Any:
    """Plain data, with what is secret as Secret."""
    if isinstance(value, list):
        return [_plain(item) for item in cast(list[Any], value)]
    if not isinstance(value, dict):
        return _whole(value)
    found = cast(Properties, value)
    if _rpc.is_rpc_secret(found):
        return Secret(_plain(_rpc.unwrap_rpc_secret(found)))
    return {key: _plain(item) for key, item in found.items()}


__all__ = ["Answer", "Options", "Outputs", "Properties", "Record", "Run", "Secret", "run"]
