"""A real Pulumi engine in a test: previews, updates and destroys, and what they did as plain data.

    engine = Engine(tmp_path, pulumi_cli.find())
    stack = engine.stack(PROGRAM, config={"max": "4"})
    assert stack.preview().counts == {"create": 12}
    stack.up()
    assert stack.up().changed == {}                      # a second run changes nothing
    engine.aws.client("autoscaling").set_desired_capacity(...)   # somebody did this by hand
    assert stack.refresh().changed == {"group": "update"}
    stack.destroy()
    assert engine.aws.inventory() == []

The engine, its state file and secrets are real, and so is every SDK that the program imports. The
providers are stand-ins (provider.py, aws/, gcp/), so a green test says that the program agrees with
the SDK's schema, with botocore's and moto's state or with Google's discovery documents; it does not
say that the cloud has the capacity, grants the permission or finishes in time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml
from tests.engine.aws.cloud import Aws
from tests.engine.gcp.cloud import Gcp
from tests.engine.language import LanguageHost
from tests.engine.provider import Failure, Provider, Rpc
from tests.engine.wire import Props

# Whoever runs the tests may be signed in to a cloud or to Pulumi: none of it may reach the engine.
OF_THE_CALLER = ("PULUMI_", "AWS_", "GOOGLE_", "CLOUDSDK_", "AZURE_")
PATIENCE = 300  # seconds for one command; the longest take ten


class PulumiFailed(AssertionError):
    """A command ended with an error; `result` has what it did until then."""

    def __init__(self, result: Result) -> None:
        super().__init__(f"pulumi {result.operation} ended with {result.code}\n{result.said}")
        self.result = result


@dataclass(frozen=True, slots=True)
class Step:
    """What the engine did, or would do, with one resource."""

    op: str  # create, update, replace, delete, same, refresh, read...; see Result.changed
    urn: str
    type: str
    name: str
    inputs: Props  # those that it has afterwards, before for a delete
    outputs: Props
    diff: dict[str, str]  # path -> add, delete, update; with -replace where it replaces
    replaced_for: tuple[str, ...]  # the inputs that force a replacement

    @property
    def label(self) -> str:
        """`Vpc net`: two resources of different types may have the same name."""
        return f"{self.type.rsplit(':', 1)[-1]} {self.name}"


@dataclass(frozen=True)
class Result:
    """One command: its steps in the order of the engine, and everything that it said."""

    operation: str
    code: int
    seconds: float
    events: list[Props]  # the engine's own, as documented for `--event-log`
    stdout: str
    stderr: str

    @cached_property
    def steps(self) -> list[Step]:
        return list(_steps(self.events))

    @cached_property
    def outputs(self) -> Props:
        """What the program exports, with `[secret]` for a secret; a preview knows some of it."""
        (found,) = [s.outputs for s in self.steps if s.type == "pulumi:pulumi:Stack"] or [{}]
        return found

    @cached_property
    def changed(self) -> dict[str, str]:
        """Label -> op of every resource that is not left as it is: {"Vpc net": "update"}. However
        many steps a replacement takes, it is a `replace`; a refresh that found a difference is the
        `update` or the `delete` of what is recorded."""
        found: dict[str, str] = {}
        for step in self.steps:
            if step.op in QUIET or step.type.startswith(OF_THE_ENGINE):
                continue
            found[step.label] = "replace" if step.op in PARTS_OF_REPLACING else step.op
        return found

    @cached_property
    def counts(self) -> dict[str, int]:
        """Op -> how many, as the engine's own summary counts them, the stack itself included."""
        for event in self.events:
            if "summaryEvent" in event:
                return event["summaryEvent"]["resourceChanges"]
        return {}

    @cached_property
    def messages(self) -> list[tuple[str, str]]:
        """(severity, text) of what was said: info, info#err, warning, error."""
        said = (event.get("diagnosticEvent") for event in self.events)
        shown = [(d["severity"], d["message"].strip()) for d in said if d]
        return [(severity, text) for severity, text in shown if severity != "debug"]

    @cached_property
    def violations(self) -> list[tuple[str, str, str, str]]:
        """(rule, level, resource, message) of every breach that a policy pack told, sorted."""
        told = [event["policyEvent"] for event in self.events if "policyEvent" in event]
        return sorted(
            (
                each["policyName"],
                each["enforcementLevel"],
                each.get("resourceUrn", "").rsplit("::", 1)[-1],
                each["message"].strip(),
            )
            for each in told
        )

    @property
    def errors(self) -> list[str]:
        return [text for severity, text in self.messages if severity == "error"]

    @property
    def said(self) -> str:
        return "\n".join(self.errors) or f"{self.stdout}\n{self.stderr}"

    def step(self, label: str) -> Step:
        """What happens to a resource; of a replacement's steps the `replace`."""
        found = [s for s in self.steps if s.label == label and s.op not in QUIET]
        whole = [s for s in found if s.op == "replace"] or found
        assert whole, f"nothing happens to {label}; changed: {self.changed}"
        return whole[0]


# `same` and `read` change nothing, and a `refresh` that found nothing is one of them.
QUIET = {"same", "read", "refresh"}
# The stack and the providers are resources too; no test means them by "everything".
OF_THE_ENGINE = ("pulumi:pulumi:Stack", "pulumi:providers:")
PARTS_OF_REPLACING = {"replace", "create-replacement", "delete-replaced", "discard-replaced"}


def _steps(events: list[Props]) -> Iterator[Step]:
    """From the engine's events: what it set out to do, with what came of it."""
    after: dict[tuple[str, str], Props] = {}
    for event in events:
        if "resOutputsEvent" in event:
            found = event["resOutputsEvent"]["metadata"]
            after[found["urn"], found["op"]] = found
    refreshed = [key for key in after if key[1] in ("update", "delete", "refresh")]
    for event in events:
        if "resourcePreEvent" not in event:
            continue
        meant: Props = event["resourcePreEvent"]["metadata"]
        key = (meant["urn"], meant["op"])
        if meant["op"] == "refresh":
            # What a refresh found is known only afterwards, and then it is an update or a delete.
            key = next((k for k in refreshed if k[0] == meant["urn"]), key)
        yield _step(after.get(key, meant), meant)


def _step(found: Props, meant: Props) -> Step:
    state: Props = found.get("new") or found.get("old") or {}
    diff: Props = found.get("detailedDiff") or meant.get("detailedDiff") or {}
    return Step(
        op=found["op"],
        urn=found["urn"],
        type=found["type"],
        name=found["urn"].rsplit("::", 1)[-1],
        inputs=state.get("inputs") or {},
        outputs=state.get("outputs") or {},
        diff={path: change.get("diffKind", "update") for path, change in diff.items()},
        replaced_for=tuple(meant.get("keys") or ()),
    )


class Engine:
    """One Pulumi engine with an empty backend, an empty AWS and an empty Google Cloud. Use it as a
    context, one at a time in a process: moto's state is the process's."""

    def __init__(self, folder: Path, cli: Path) -> None:
        self._folder, self._cli = folder, cli
        for name in ("home", "state", "events"):
            (folder / name).mkdir(parents=True)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(OF_THE_CALLER)}
        self.aws, self.gcp = Aws(), Gcp()
        self.provider, self.gcp_provider = Provider(self.aws), Provider(self.gcp)
        self._language = LanguageHost(kept)
        self.environment = {
            **kept,
            "CI": "true",
            "NO_COLOR": "1",
            "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "of no use outside of this test",
            "PULUMI_DEBUG_COMMANDS": "true",  # for --event-log
            "PULUMI_DEBUG_LANGUAGES": f"python:{self._language.server.port}",
            "PULUMI_DEBUG_PROVIDERS": (
                f"aws:{self.provider.server.port},gcp:{self.gcp_provider.server.port}"
            ),
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._language.stop()
        self.provider.stop()
        self.gcp_provider.stop()
        self.aws.stop()

    def stack(
        self,
        program: Path,
        name: str = "dev",
        *,
        config: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> Stack:
        """A new stack of the project in `program`, a folder with a Pulumi.yaml. The engine works on
        a copy, because `pulumi stack init` writes into the stack's file."""
        project = self._copied(program)
        stack = Stack(self, project, name)
        stack.configure(config)
        self.run(project, "stack", "init", name)
        stack.configure(secrets=secrets)
        return stack

    def _copied(self, program: Path) -> Path:
        copy = self._folder / "projects" / program.name
        if copy.exists():
            return copy  # another stack of the same project
        project = yaml.safe_load((program / "Pulumi.yaml").read_text(encoding="utf-8"))
        # Of a project with its program in a folder (`main`), only that and the stacks' files.
        copy.mkdir(parents=True)
        skip = shutil.ignore_patterns("__pycache__", ".*")
        for part in {project.get("main", "."), project.get("stackConfigDir", ".")}:
            shutil.copytree(program / part, copy / part, ignore=skip, dirs_exist_ok=True)
        project["runtime"] = {"name": "python"}  # the test's own interpreter, not a .venv beside it
        (copy / "Pulumi.yaml").write_text(yaml.safe_dump(project), encoding="utf-8")
        for file in (copy / project.get("stackConfigDir", ".")).glob("Pulumi.*.yaml"):
            _without_secrets(file)
        return copy

    def run(self, folder: Path, *arguments: str, ok: Sequence[int] = (0,)) -> Any:
        """A command of Pulumi's, finished; AssertionError when it ends otherwise than `ok` says."""
        done = subprocess.run(
            [str(self._cli), *arguments, "--non-interactive"],
            cwd=folder,
            env=self.environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=False,
        )
        shown = f"pulumi {' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert not ok or done.returncode in ok, shown
        return done

    def events_file(self) -> Path:
        return self._folder / "events" / f"{time.time_ns()}.jsonl"

    # --- what a test does to the cloud -------------------------------------------------------

    def fail_once(self, type_: str, method: str, message: str, *, after: bool = False) -> None:
        """The next `create`, `update` or `delete` of a type fails with `message`: before it had an
        effect or, as when a wait runs out, `after` (create only)."""
        provider = self.gcp_provider if type_.startswith("gcp:") else self.provider
        provider.failures.append(Failure(type_, method, message, after))

    def calls(self, *methods: str) -> list[Rpc]:
        """What AWS's provider was really asked to do (previews left out), in order; then
        Google's."""
        rpcs = (*self.provider.rpcs, *self.gcp_provider.rpcs)
        return [r for r in rpcs if r.method in methods and not r.preview]


def _without_secrets(file: Path) -> None:
    """A committed stack file is encrypted for somebody else's passphrase or key."""
    stack: Props = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    for key in ("encryptionsalt", "secretsprovider", "encryptedkey"):
        stack.pop(key, None)
    config: Props = stack.get("config") or {}
    plain: Props = {k: v for k, v in config.items() if not (isinstance(v, dict) and "secure" in v)}
    file.write_text(yaml.safe_dump({**stack, "config": plain}), encoding="utf-8")


class Stack:
    """One stack: each operation gives its Result, or raises PulumiFailed with it."""

    def __init__(self, engine: Engine, project: Path, name: str) -> None:
        self.engine, self.project, self.name = engine, project, name

    def configure(
        self, config: Mapping[str, str] | None = None, *, secrets: Mapping[str, str] | None = None
    ) -> None:
        """Sets values in the stack's file. A name without a namespace is the project's own."""
        if config:
            # As `pulumi config set` does, which takes a third of a second for it.
            file = self._file()
            text = file.read_text(encoding="utf-8") if file.exists() else ""
            found: Props = yaml.safe_load(text) or {}
            values = {
                k if ":" in k else f"{self._project['name']}:{k}": v for k, v in config.items()
            }
            found["config"] = {**(found.get("config") or {}), **values}
            file.write_text(yaml.safe_dump(found), encoding="utf-8")
        if secrets:
            hidden = [x for k, v in secrets.items() for x in ("--secret", f"{k}={v}")]
            self.engine.run(self.project, "config", "set-all", "-s", self.name, *hidden)

    @property
    def _project(self) -> Props:
        return yaml.safe_load((self.project / "Pulumi.yaml").read_text(encoding="utf-8"))

    def _file(self) -> Path:
        folder = self.project / self._project.get("stackConfigDir", ".")
        return folder / f"Pulumi.{self.name}.yaml"

    def preview(self, *arguments: str, fails: bool | None = False) -> Result:
        """`fails` says how it has to end; None: either way."""
        return self._operate("preview", *arguments, fails=fails)

    def up(self, *arguments: str, fails: bool = False) -> Result:
        return self._operate("up", "--yes", "--skip-preview", *arguments, fails=fails)

    def refresh(self, *arguments: str, fails: bool = False) -> Result:
        return self._operate("refresh", "--yes", "--skip-preview", *arguments, fails=fails)

    def destroy(self, *arguments: str, fails: bool = False) -> Result:
        return self._operate("destroy", "--yes", "--skip-preview", *arguments, fails=fails)

    def preview_json(self, *arguments: str) -> Props:
        """What `pulumi preview --json` prints, which is what `gputier review` reads."""
        done = self.engine.run(self.project, "preview", "-s", self.name, "--json", *arguments)
        return json.loads(done.stdout)

    def outputs(self, *, secrets: bool = False) -> Props:
        shown = ["--show-secrets"] if secrets else []
        done = self.engine.run(self.project, "stack", "output", "-s", self.name, "--json", *shown)
        return json.loads(done.stdout)

    def state(self) -> list[Props]:
        """The resources of the state file, as `pulumi stack export` gives them."""
        done = self.engine.run(self.project, "stack", "export", "-s", self.name)
        return json.loads(done.stdout)["deployment"].get("resources") or []

    def _operate(self, operation: str, *arguments: str, fails: bool | None) -> Result:
        log, began = self.engine.events_file(), time.monotonic()
        command = (operation, "-s", self.name, "--event-log", str(log), *arguments)
        done = self.engine.run(self.project, *command, ok=())
        seconds = time.monotonic() - began
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        result = Result(
            operation=operation,
            code=done.returncode,
            seconds=seconds,
            events=[json.loads(line) for line in lines],
            stdout=done.stdout,
            stderr=done.stderr,
        )
        if fails is not None and bool(done.returncode) != fails:
            raise PulumiFailed(result)
        return result
