"""The engine's Python language host, in the test's own process: runs programs and policy packs as
children of it.

Attached by PULUMI_DEBUG_LANGUAGES, so that no `pulumi-language-python` has to be installed. It
answers that a program needs no plugin: the engine then looks for none and downloads none.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from tests.engine import program, wire
from tests.engine.packs import Pack
from tests.engine.wire import Server, empty_pb2, engine_pb2, engine_pb2_grpc, grpc, language_pb2

PROGRAM = Path(program.__file__)


class LanguageHost:
    """Serves one engine at a time: the last handshake says whose."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._engine = ""
        self._children: set[subprocess.Popen[str]] = set()
        empty = empty_pb2.Empty
        self.server = Server(
            "pulumirpc.LanguageRuntime",
            {
                "Handshake": (self._handshake, language_pb2.LanguageHandshakeRequest),
                "GetPluginInfo": (self._info, empty),
                "GetRequiredPackages": (self._none, language_pb2.GetRequiredPackagesRequest),
                "GetProgramDependencies": (
                    self._dependencies,
                    language_pb2.GetProgramDependenciesRequest,
                ),
                "Run": (self._run, language_pb2.RunRequest),
                "InstallDependencies": (
                    lambda _r, _c: iter(()),
                    language_pb2.InstallDependenciesRequest,
                ),
                "RunPlugin": (self._plugin, language_pb2.RunPluginRequest),
                "About": (self._about, language_pb2.AboutRequest),
                "Cancel": (self._cancel, empty),
            },
            streams={"RunPlugin", "InstallDependencies"},
        )

    def stop(self) -> None:
        self.server.stop()

    def _handshake(self, request: Any, _context: Any) -> Any:
        self._engine = request.engine_address
        return language_pb2.LanguageHandshakeResponse()

    def _info(self, _request: Any, _context: Any) -> Any:
        return wire.plugin_pb2.PluginInfo(version=metadata.version("pulumi"))

    def _none(self, _request: Any, _context: Any) -> Any:
        return language_pb2.GetRequiredPackagesResponse()

    def _dependencies(self, _request: Any, _context: Any) -> Any:
        return language_pb2.GetProgramDependenciesResponse()

    def _about(self, _request: Any, _context: Any) -> Any:
        return language_pb2.AboutResponse(executable=sys.executable)

    def _run(self, request: Any, context: Any) -> Any:
        info = request.info
        command = [sys.executable, "-u", str(PROGRAM)]
        for name, value in (
            ("monitor", request.monitor_address),
            ("engine", self._engine),
            ("project", request.project),
            ("stack", request.stack),
            ("organization", request.organization),
            ("root", info.root_directory),
            ("pwd", request.pwd),
            ("parallel", str(request.parallel)),
        ):
            command += [f"--{name}", value]
        command += ["--dry-run"] * request.dryRun + [info.entry_point]
        child = subprocess.Popen(
            command,
            env={
                **self._environment,
                "PULUMI_CONFIG": json.dumps(dict(request.config)),
                "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
                # The program is a file outside this checkout; the child needs what tests import.
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._children.add(child)
        context.add_callback(lambda: _interrupt(child))
        assert child.stdout
        relay = threading.Thread(target=self._relay, args=(child.stdout, self._engine), daemon=True)
        relay.start()
        code = child.wait()
        relay.join()
        self._children.discard(child)
        if code == program.ALREADY_REPORTED:
            return language_pb2.RunResponse(bail=True)
        return language_pb2.RunResponse(error=f"the program ended with code {code}" if code else "")

    def _plugin(self, request: Any, context: Any) -> Iterator[Any]:
        """A policy pack; nothing else of ours is a plugin."""
        assert request.kind == "analyzer", request.kind
        yield from Pack(self._environment, request).run(context)

    def _relay(self, lines: IO[str], engine: str) -> None:
        """This process's own output is not the engine's: what a program prints goes to its log."""
        with grpc.insecure_channel(engine) as channel, lines:
            stub = engine_pb2_grpc.EngineStub(channel)
            for line in lines:
                # An engine that gave up reads no more, and the program is being stopped then.
                with suppress(grpc.RpcError):
                    stub.Log(engine_pb2.LogRequest(severity=engine_pb2.INFO, message=line))

    def _cancel(self, _request: Any, _context: Any) -> Any:
        for child in list(self._children):
            _interrupt(child)
        return empty_pb2.Empty()


def _interrupt(child: subprocess.Popen[str]) -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
