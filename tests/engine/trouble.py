"""What went wrong in a call of the engine's, as its protocol has it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.engine import wire
from tests.engine.wire import Props, grpc, provider_pb2

any_pb2: Any = import_module("google.protobuf.any_pb2")
status_pb2: Any = import_module("pulumi.runtime.proto.status_pb2")


class told:  # noqa: N801 - reads as a statement: `with told(context):`
    """Turns what goes wrong into the call's error, so that the engine shows it."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        # gRPC's own abort raises a bare Exception, which is on its way already.
        if isinstance(error, Exception) and type(error) is not Exception:
            self._context.abort(grpc.StatusCode.UNKNOWN, f"{type(error).__name__}: {error}")


def half_made(context: Any, reason: str, made: str, inputs: Props, outputs: Props) -> None:
    """The cloud made it, and then something failed: the engine keeps it, marked as unfinished."""
    detail = any_pb2.Any()
    detail.Pack(
        provider_pb2.ErrorResourceInitFailed(
            id=made,
            properties=wire.to_struct({**outputs, **inputs}),
            inputs=wire.to_struct(inputs),
            reasons=[reason],
        )
    )
    code = grpc.StatusCode.UNKNOWN
    status = status_pb2.Status(code=code.value[0], message=reason, details=[detail])
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(code, reason)
