"""gRPC as the engine speaks it: a server made of plain functions, and its special values.

grpc, protobuf and boto3 carry no types, and the stubs of Pulumi's messages rest on theirs. They
are `Any` here, once, so that the rest of the harness is checked like everything else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, cast

# Children are started while servers run; gRPC's fork handlers would only complain about them.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

grpc: Any = import_module("grpc")
json_format: Any = import_module("google.protobuf.json_format")
struct_pb2: Any = import_module("google.protobuf.struct_pb2")
empty_pb2: Any = import_module("google.protobuf.empty_pb2")
provider_pb2: Any = import_module("pulumi.runtime.proto.provider_pb2")
plugin_pb2: Any = import_module("pulumi.runtime.proto.plugin_pb2")
language_pb2: Any = import_module("pulumi.runtime.proto.language_pb2")
engine_pb2: Any = import_module("pulumi.runtime.proto.engine_pb2")
engine_pb2_grpc: Any = import_module("pulumi.runtime.proto.engine_pb2_grpc")

Props = dict[str, Any]
# Stands for every value that a preview cannot know, whatever its type.
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
# The key under which a map says that it is none: a secret, an asset, a reference.
SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"
ASSET = "c44067f5952c0a294b673a41bacd8c17"
ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7"

# gRPC's own limit is 4 MiB, which the state of a big stack passes.
LIMIT = 400 * 1024 * 1024
OPTIONS = [("grpc.max_receive_message_length", LIMIT), ("grpc.max_send_message_length", LIMIT)]

# What an RPC does: the request and the call's context in, the answer out.
Method = tuple[Callable[[Any, Any], Any], Any]


class Server:
    """A gRPC service on a free port of this machine; a method not given is unimplemented. One of
    `streams` gives an iterator of answers."""

    def __init__(
        self, service: str, methods: Mapping[str, Method], streams: Collection[str] = ()
    ) -> None:
        self._server: Any = grpc.server(ThreadPoolExecutor(max_workers=16), options=OPTIONS)
        one, many = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        handlers = {
            name: (many if name in streams else one)(
                function,
                request_deserializer=request.FromString,
                response_serializer=_serialize,
            )
            for name, (function, request) in methods.items()
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, handlers),)
        )
        self.port: int = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def stop(self) -> None:
        self._server.stop(0).wait()


def _serialize(message: Any) -> bytes:
    return message.SerializeToString()


def to_dict(struct: Any) -> Props:
    """A message's properties; whole numbers become int, since the wire has only doubles."""
    return _whole(json_format.MessageToDict(struct))


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _whole(v) for k, v in cast(Props, value).items()}
    if isinstance(value, list):
        return [_whole(v) for v in cast(list[Any], value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def to_struct(properties: Mapping[str, Any]) -> Any:
    struct = struct_pb2.Struct()
    json_format.ParseDict(dict(properties), struct)
    return struct


def is_unknown(value: object) -> bool:
    return value == UNKNOWN


def has_unknown(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(has_unknown, cast(Props, value).values()))
    if isinstance(value, list):
        return any(map(has_unknown, cast(list[Any], value)))
    return is_unknown(value)


def secret(value: object) -> Props:
    return {SIGNATURE: SECRET, "value": value}
