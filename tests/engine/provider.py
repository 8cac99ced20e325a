"""A stand-in resource provider: the engine's protocol on one side, a `Cloud` on the other.

What holds for every cloud is here: checks against the SDK's schema, names that a program leaves
out, differences and what they replace, what a preview cannot know, a failure that a test asks for.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from importlib import metadata
from typing import Any, NamedTuple

from tests.engine import replacement, schema, wire
from tests.engine.changes import changes
from tests.engine.trouble import half_made, told
from tests.engine.wire import UNKNOWN, Props, Server, empty_pb2, provider_pb2


class Refused(Exception):
    """Something that the cloud, or the stand-in for it, does not accept."""

    def __init__(self, prop: str, reason: str) -> None:
        super().__init__(f"{prop}: {reason}" if prop else reason)
        self.problem = (prop, reason)


@dataclass(frozen=True, slots=True)
class Target:
    """The resource that a call is about, and the configuration of the provider that manages it."""

    token: str
    name: str
    urn: str
    settings: Props
    id: str = ""


class State(NamedTuple):
    """What a look at the cloud finds of a resource."""

    inputs: Props
    outputs: Props


class Rpc(NamedTuple):
    """A call that the engine made: `Create` of an URN, in a preview or for real."""

    method: str
    urn: str
    token: str
    preview: bool


@dataclass(slots=True)
class Failure:
    """The next `method` of a type fails with `message`; `after` it took effect, if so asked."""

    token: str
    method: str
    message: str
    after: bool = False


class Cloud(ABC):
    """What a provider acts on. Every method may raise; Refused is the cloud's own refusal."""

    package: str

    @abstractmethod
    def check(self, target: Target, inputs: Props) -> list[schema.Problem]:
        """What the cloud would refuse, as far as it can be known without asking it."""

    @abstractmethod
    def prepare(self, target: Target, inputs: Props) -> Props:
        """The inputs with what the provider itself fills in, but for the name."""

    @abstractmethod
    def autoname(self, token: str) -> tuple[str, str]:
        """The input that a left-out name goes into and its form, such as ("name", "{}")."""

    @abstractmethod
    def unknown(self, token: str, inputs: Props) -> set[str]:
        """The outputs that only the cloud can tell, for a resource that is to be created."""

    @abstractmethod
    def unknown_after(self, token: str, changed: set[str]) -> set[str]:
        """The outputs that an update of these inputs changes."""

    def taken(self, target: Target, inputs: Props) -> bool:
        """Whether there is one of this name already."""
        return False

    def inside(self, token: str) -> frozenset[str]:
        """The inputs that the cloud adds to, inside of their blocks: as outputs they are its."""
        return frozenset()

    def expected(self, token: str, inputs: Props) -> Props:
        """Those of the inputs with UNKNOWN where the cloud is going to add something."""
        return {}

    @abstractmethod
    def create(self, target: Target, inputs: Props) -> str: ...

    @abstractmethod
    def read(self, target: Target, inputs: Props) -> State | None: ...

    @abstractmethod
    def update(self, target: Target, olds: Props, news: Props) -> None: ...

    @abstractmethod
    def delete(self, target: Target, inputs: Props) -> None: ...

    @abstractmethod
    def invoke(self, token: str, args: Props, settings: Props) -> Props: ...


@dataclass(slots=True)
class _Settings:
    """Configuration by connection: calls do not say which instance of a provider (region, alias)
    they are for, but the engine opens a connection for each."""

    of_peer: dict[str, Props] = field(default_factory=dict[str, Props])

    def get(self, context: Any) -> Props:
        return self.of_peer.get(context.peer(), {})


class Provider:
    """Serves one cloud to one engine; `rpcs` has what the engine called, in order."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.rpcs: list[Rpc] = []
        self.failures: list[Failure] = []
        self._settings = _Settings()
        self._lock = threading.RLock()
        empty, pb = empty_pb2.Empty, provider_pb2
        self.server = Server(
            "pulumirpc.ResourceProvider",
            {
                "Handshake": (self._handshake, pb.ProviderHandshakeRequest),
                "Attach": (lambda _r, _c: empty(), wire.plugin_pb2.PluginAttach),
                "GetPluginInfo": (self._info, empty),
                "CheckConfig": (self._check_config, pb.CheckRequest),
                "DiffConfig": (self._diff_config, pb.DiffRequest),
                "Configure": (self._configure, pb.ConfigureRequest),
                "Check": (self._check, pb.CheckRequest),
                "Diff": (self._diff, pb.DiffRequest),
                "Create": (self._create, pb.CreateRequest),
                "Read": (self._read, pb.ReadRequest),
                "Update": (self._update, pb.UpdateRequest),
                "Delete": (self._delete, pb.DeleteRequest),
                "Invoke": (self._invoke, pb.InvokeRequest),
                "Cancel": (lambda _r, _c: empty(), empty),
            },
        )

    def stop(self) -> None:
        self.server.stop()

    # --- the provider itself -----------------------------------------------------------------

    def _handshake(self, _request: Any, _context: Any) -> Any:
        # Without accept_secrets the engine unwraps secrets, and marks outputs of the same name.
        return provider_pb2.ProviderHandshakeResponse()

    def _info(self, _request: Any, _context: Any) -> Any:
        version = metadata.version(f"pulumi_{self.cloud.package}")
        return wire.plugin_pb2.PluginInfo(version=version)

    def _check_config(self, request: Any, _context: Any) -> Any:
        news = settings(wire.to_dict(request.news))
        problems = schema.check(f"pulumi:providers:{self.cloud.package}", news)
        return provider_pb2.CheckResponse(inputs=request.news, failures=_failures(problems))

    def _diff_config(self, request: Any, _context: Any) -> Any:
        token = f"pulumi:providers:{self.cloud.package}"
        return _difference(token, wire.to_dict(request.old_inputs), wire.to_dict(request.news))

    def _configure(self, request: Any, context: Any) -> Any:
        self._settings.of_peer[context.peer()] = settings(wire.to_dict(request.args))
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    # --- resources ---------------------------------------------------------------------------

    def _check(self, request: Any, context: Any) -> Any:
        target = self._target(request, context)
        with told(context), self._lock:
            inputs = self.cloud.prepare(target, wire.to_dict(request.news))
            problems = schema.check(target.token, inputs)
            if not problems:
                self._name(target, inputs, wire.to_dict(request.olds))
                problems = self.cloud.check(target, inputs)
        return provider_pb2.CheckResponse(
            inputs=wire.to_struct(inputs), failures=_failures(problems)
        )

    def _name(self, target: Target, inputs: Props, olds: Props) -> None:
        """The real provider adds random digits to the logical name; here they are a digest of the
        URN, so that results repeat and two stacks do not meet. What replaces a resource before it
        goes has other digits."""
        prop, form = self.cloud.autoname(target.token)
        prefixed = {"namePrefix", "bucketPrefix", f"{prop}Prefix"} & set(inputs)
        if not prop or prop in inputs or prefixed:
            return
        if kept := olds.get(prop):
            inputs[prop] = kept
            return
        for number in itertools.count():
            seed = f"{target.urn}{number or ''}"
            digest = hashlib.sha256(seed.encode()).hexdigest()[:7]
            inputs[prop] = form.format(f"{target.name}-{digest}")
            if not self.cloud.taken(target, inputs):
                return

    def _diff(self, request: Any, context: Any) -> Any:
        target = self._target(request, context)
        with told(context):
            olds, news = wire.to_dict(request.old_inputs), wire.to_dict(request.news)
            found = _difference(target.token, olds, news, set(request.ignoreChanges))
            prop, _ = self.cloud.autoname(target.token)
            # A name that was chosen is still taken while the old resource is there.
            chosen = prop in news and not re.search(r"-[0-9a-f]{7}$", str(news[prop]))
            row = replacement.table().get(target.token, {})
            always = bool(row.get("delete_before_replace"))
            found.deleteBeforeReplace = bool(found.replaces and (always or chosen))
            return found

    def _create(self, request: Any, context: Any) -> Any:
        target = self._note("Create", request, context)
        inputs = wire.to_dict(request.properties)
        if request.preview:
            unknown = dict.fromkeys(self.cloud.unknown(target.token, inputs), UNKNOWN)
            outputs = {**unknown, **inputs, **self.cloud.expected(target.token, inputs)}
            return provider_pb2.CreateResponse(properties=wire.to_struct(outputs))
        with told(context), self._lock:
            failure = self._failure(target.token, "create")
            made = replace(target, id=self.cloud.create(target, inputs))
            state, reason = self._seen(made, inputs)
            if reason or failure:
                why = reason or (failure and failure.message) or ""
                half_made(context, why, made.id, inputs, state.outputs)
        outputs = self._outputs(made, state, inputs)
        return provider_pb2.CreateResponse(id=made.id, properties=wire.to_struct(outputs))

    def _outputs(self, target: Target, state: State, inputs: Props) -> Props:
        """What the cloud says, and what was written where it says the same in another form."""
        found = {k: v for k, v in state.outputs.items() if k in self.cloud.inside(target.token)}
        return {**state.outputs, **inputs, **found}

    def _seen(self, made: Target, inputs: Props) -> tuple[State, str]:
        """What was made, or why a look at it failed: it is there all the same."""
        try:
            state = self.cloud.read(made, inputs)
        except Exception as error:
            return State(inputs, {}), f"{type(error).__name__}: {error}"
        gone = f"{made.token} is not there after it was created"
        return (state, "") if state else (State(inputs, {}), gone)

    def _read(self, request: Any, context: Any) -> Any:
        target = self._note("Read", request, context)
        inputs = wire.to_dict(request.inputs)
        with told(context), self._lock:
            state = self.cloud.read(target, inputs)
        if state is None:
            return provider_pb2.ReadResponse(id="")
        return provider_pb2.ReadResponse(
            id=request.id,
            properties=wire.to_struct(self._outputs(target, state, state.inputs)),
            inputs=wire.to_struct(state.inputs),
        )

    def _update(self, request: Any, context: Any) -> Any:
        target = self._note("Update", request, context)
        olds, news = wire.to_dict(request.old_inputs), wire.to_dict(request.news)
        if request.preview:
            changed = {change.top for change in changes(olds, news)}
            unknown = dict.fromkeys(self.cloud.unknown_after(target.token, changed), UNKNOWN)
            added = self.cloud.expected(target.token, {k: news[k] for k in news if k in changed})
            before = wire.to_dict(request.olds)
            kept = self.cloud.inside(target.token) & before.keys() - changed
            outputs = {**before, **unknown, **news, **added, **{k: before[k] for k in kept}}
            return provider_pb2.UpdateResponse(properties=wire.to_struct(outputs))
        with told(context), self._lock:
            self._failure(target.token, "update")
            self.cloud.update(target, olds, news)
            state = self.cloud.read(target, news)
            if state is None:
                raise Refused("", f"{target.token} {target.id} is gone")
            outputs = wire.to_struct(self._outputs(target, state, news))
        return provider_pb2.UpdateResponse(properties=outputs)

    def _delete(self, request: Any, context: Any) -> Any:
        target = self._note("Delete", request, context)
        with told(context), self._lock:
            self._failure(target.token, "delete")
            inputs = wire.to_dict(request.old_inputs) or wire.to_dict(request.properties)
            self.cloud.delete(target, inputs)
        return empty_pb2.Empty()

    def _invoke(self, request: Any, context: Any) -> Any:
        self.rpcs.append(Rpc("Invoke", "", request.tok, preview=False))
        try:
            with self._lock:
                args = wire.to_dict(request.args)
                found = self.cloud.invoke(request.tok, args, self._settings.get(context))
        except Refused as refused:
            return provider_pb2.InvokeResponse(failures=_failures([refused.problem]))
        return provider_pb2.InvokeResponse(**{"return": wire.to_struct(found)})

    # --- help --------------------------------------------------------------------------------

    def _target(self, request: Any, context: Any) -> Target:
        urn: str = request.urn
        return Target(
            token=request.type or urn.split("::")[2].split("$")[-1],
            name=request.name or urn.split("::")[-1],
            urn=urn,
            settings=self._settings.get(context),
            id=getattr(request, "id", ""),
        )

    def _note(self, method: str, request: Any, context: Any) -> Target:
        target = self._target(request, context)
        preview = bool(getattr(request, "preview", False))
        self.rpcs.append(Rpc(method, target.urn, target.token, preview))
        return target

    def _failure(self, token: str, method: str) -> Failure | None:
        """Raises the failure that was asked for; gives one that is to come after the effect."""
        for failure in self.failures:
            if (failure.token, failure.method) == (token, method):
                self.failures.remove(failure)
                if failure.after:
                    return failure
                raise Refused("", failure.message)
        return None


def settings(args: Props) -> Props:
    """A provider's configuration; the engine hands nested values over as JSON texts."""
    return {
        key: _parsed(value) for key, value in args.items() if key not in ("version", "__internal")
    }


def _parsed(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in ("{", "["):
        return json.loads(value)
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def _failures(problems: list[schema.Problem]) -> list[Any]:
    return [provider_pb2.CheckFailure(property=prop, reason=why) for prop, why in problems]


def _difference(token: str, olds: Props, news: Props, ignored: Collection[str] = ()) -> Any:
    found = [c for c in changes(olds, news) if c.top not in ignored]
    pb = provider_pb2.DiffResponse
    answer = pb(changes=pb.DIFF_SOME if found else pb.DIFF_NONE, hasDetailedDiff=True)
    for change in found:
        replaces = replacement.replaces(token, change, olds, news)
        answer.detailedDiff[change.path].kind = change.kind + replaces
        answer.detailedDiff[change.path].inputDiff = True
        if change.top not in answer.diffs:
            answer.diffs.append(change.top)
        if replaces and change.top not in answer.replaces:
            answer.replaces.append(change.top)
    return answer
