"""Runs one policy pack for an engine, as `pulumi-language-python` does.

A pack reads project, stack and config from its environment, but the engine tells them only once it
has connected. So the engine is given a small server of ours: it waits for `ConfigureStack`, starts
the pack with what that says, and passes every call on as it came.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import IO, Any

from tests.engine.wire import OPTIONS, grpc, language_pb2

analyzer_pb2: Any = import_module("pulumi.runtime.proto.analyzer_pb2")
PATIENCE = 60  # seconds until a pack has to serve


class Pack:
    """One run of a pack; `run` gives what it prints and last how it ended."""

    def __init__(self, environment: Mapping[str, str], request: Any) -> None:
        self._environment = dict(environment)
        self._folder: str = request.info.program_directory
        self._arguments: list[str] = list(request.args)
        self._environment.update(pair.split("=", 1) for pair in request.env if "=" in pair)
        self._told: Any = None
        self._asked, self._ready = threading.Event(), threading.Event()
        self._channel: Any = None
        self._reason = ""

    # --- grpc.GenericRpcHandler ----------------------------------------------------------------

    def service(self, details: Any) -> Any:
        method: str = details.method
        known = {"Handshake": self._handshake, "ConfigureStack": self._configure}
        found = known.get(method.rsplit("/", 1)[-1]) or partial(self._forward, method)
        return grpc.unary_unary_rpc_method_handler(found)

    def _handshake(self, _body: bytes, _context: Any) -> bytes:
        return b""

    def _configure(self, body: bytes, _context: Any) -> bytes:
        self._told = analyzer_pb2.AnalyzerStackConfigureRequest.FromString(body)
        self._asked.set()
        return b""

    def _forward(self, method: str, body: bytes, context: Any) -> bytes:
        self._asked.set()  # `pulumi policy analyze` of a file never says which stack it is
        self._ready.wait(PATIENCE)
        channel = self._channel
        if channel is None:
            context.abort(grpc.StatusCode.UNKNOWN, f"the policy pack did not start\n{self._reason}")
            return b""
        try:
            return channel.unary_unary(method)(body)
        except grpc.RpcError as error:
            return context.abort(error.code(), error.details())

    # --- the pack's process --------------------------------------------------------------------

    def run(self, context: Any) -> Iterator[Any]:
        server: Any = grpc.server(ThreadPoolExecutor(16), options=OPTIONS)
        server.add_generic_rpc_handlers((self,))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield language_pb2.RunPluginResponse(stdout=f"{port}\n".encode())
        while not self._asked.wait(0.1):
            if not context.is_active():
                return
        child = self._start()
        context.add_callback(lambda: child.poll() is None and child.kill())
        try:
            if self._channel is not None:
                yield from _printed(child)
        finally:
            if child.poll() is None:
                child.kill()
            child.wait()
            server.stop(0)

    def _connect(self, port: int) -> None:
        channel: Any = grpc.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS)
        if self._told is not None:
            told = self._told.SerializeToString()
            channel.unary_unary("/pulumirpc.Analyzer/ConfigureStack")(told)
        self._channel = channel

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-u", "-m", "pulumi.policy", *self._arguments, self._folder]
        child = subprocess.Popen(
            command,
            cwd=self._folder,
            env={**self._environment, **self._stack()},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert child.stdout
        line = child.stdout.readline()  # its port, before anything else
        if line.strip().isdigit():
            self._connect(int(line))
        else:
            out, error = child.communicate(timeout=PATIENCE)
            self._reason = (line + out + error).decode(errors="replace")[-4000:]
        self._ready.set()
        return child

    def _stack(self) -> dict[str, str]:
        # The pack is a folder outside of this checkout; it imports what tests import.
        here = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        if self._told is None:
            return here
        return {
            **here,
            "PULUMI_CONFIG": json.dumps(dict(self._told.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(self._told.config_secret_keys)),
            "PULUMI_DRY_RUN": "true" if self._told.dry_run else "false",
            "PULUMI_ORGANIZATION": self._told.organization or "organization",
            "PULUMI_PROJECT": self._told.project,
            "PULUMI_STACK": self._told.stack,
        }


def _printed(child: subprocess.Popen[bytes]) -> Iterator[Any]:
    """A child's output as the engine takes it, and its exit code."""
    lines: queue.Queue[Any] = queue.Queue()

    def pump(pipe: IO[bytes], name: str) -> None:
        with pipe:
            for chunk in iter(pipe.readline, b""):
                lines.put(language_pb2.RunPluginResponse(**{name: chunk}))
        lines.put(None)

    pipes = [pipe for pipe in (child.stdout, child.stderr) if pipe]
    for pipe, name in zip(pipes, ("stdout", "stderr"), strict=True):
        threading.Thread(target=pump, args=(pipe, name), daemon=True).start()
    for _ in pipes:
        while (answer := lines.get()) is not None:
            yield answer
    yield language_pb2.RunPluginResponse(exitcode=child.wait())
