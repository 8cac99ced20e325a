"""An init'ed project as its runners see it: each job of its workflows gets a copy, and is run."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.engine import ours
from tests.engine.stack import Engine
from tests.init import workflows
from tests.init.installed import Installed
from tests.init.workflows import Document, Ran

from gputier.lock import Lock, read_lock, write_lock

STATE = ("PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE")


def passed(ran: Ran | list[Ran]) -> list[Ran]:
    found = ran if isinstance(ran, list) else [ran]
    assert [one.code for one in found] == [0] * len(found), "\n".join(map(str, found))
    return found


@dataclass
class Repository:
    """A project in git, as far as runners see it: each job gets a copy, and keeps its artifacts."""

    folder: Path
    engine: Engine
    tools: Installed
    known: dict[str, str]  # what `${{ … }}` stands for
    artifacts: dict[str, bytes] = field(default_factory=dict[str, bytes])
    jobs: int = 0

    def checkout(self) -> Path:
        self.jobs += 1
        return shutil.copytree(self.folder, self.folder.parent / f"job-{self.jobs}")

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """What makes the command use this engine; where the state is, a workflow has to say."""
        said = ("PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE")
        own = self.engine.environment.items()
        engine = {k: v for k, v in own if k.startswith("PULUMI_") and k not in said}
        return self.tools.environment({**engine, "CI": "true", "NO_COLOR": "1", **more})

    def by_hand(self, script: str) -> Ran:
        """As a person at a desk, who has the environment of README.md active."""
        said = {k: self.engine.environment[k] for k in STATE}
        environment = self.environment(said)
        environment["PATH"] = f"{self.tools.folder / 'bin'}:{environment['PATH']}"
        return workflows.shell(script, self.folder, environment, script)

    def init(self, *stacks: str) -> None:
        """The stacks' state, made once and by hand: docs/ci.md says so."""
        for stack in stacks:
            passed(self.by_hand(f"pulumi stack init {stack}"))

    def lock(self, stack: str) -> Lock:
        found = read_lock(self.folder / "stacks" / f"gputier.{stack}.lock", stack)
        assert found
        return found

    def pin(self, stack: str, image: str = ours.AMI) -> None:
        """As `gputier lock STACK --images` does, which asks AWS."""
        was = self.lock(stack)
        entries = {name: replace(one, image=image) for name, one in was.entries.items()}
        write_lock(self.folder / "stacks" / f"gputier.{stack}.lock", Lock(stack, entries))

    # --- GitHub --------------------------------------------------------------------------------

    def github(self, file: str, job: str, **more: str) -> list[Ran]:
        """The steps of a job in order. After one that failed only those run that say so."""
        document = workflows.read(self.folder / ".github" / "workflows" / file)
        known = {**self.known, **{k.replace("_", ".", 1): v for k, v in more.items()}}
        folder, found = self.checkout(), list[Ran]()
        for step in workflows.steps(document["jobs"][job]):
            failed = any(ran.code for ran in found)
            if failed and "!cancelled()" not in step.get("if", ""):
                continue
            if "uses" in step:
                self._action(step, folder, known)
                continue
            found.append(self._step(document["jobs"][job], step, folder, known))
        return found

    def _step(self, job: Document, step: Document, folder: Path, known: Mapping[str, str]) -> Ran:
        files = {name: folder.parent / f"{folder.name}-{name}" for name in ("path", "summary")}
        for file in files.values():
            file.touch()
        environment = self.environment(
            {
                **workflows.environment(job, step, known),
                "GITHUB_PATH": str(files["path"]),
                "GITHUB_STEP_SUMMARY": str(files["summary"]),
                "GITHUB_REPOSITORY": "o/r",
                "GITHUB_REF": "refs/pull/7/merge",
                "GITHUB_API_URL": known["api"],
                "GPUTIER_CATALOG": known.get("catalog", ""),
            }
        )
        added = files["path"].read_text(encoding="utf-8").split()
        environment["PATH"] = ":".join([*added, environment["PATH"]])
        ran = workflows.shell(step["run"], folder, environment, step["name"])
        summary = files["summary"].read_text(encoding="utf-8")
        return ran._replace(summary=summary)

    def _action(self, step: Document, folder: Path, known: Mapping[str, str]) -> None:
        name = step["uses"].split("@")[0]
        given = {k: workflows.filled(str(v), known) for k, v in step.get("with", {}).items()}
        if name == "actions/upload-artifact":
            self.artifacts[given["name"]] = (folder / given["path"]).read_bytes()
        elif name == "actions/download-artifact":
            (folder / "plan.json").write_bytes(self.artifacts[given["name"]])

    # --- GitLab --------------------------------------------------------------------------------

    def gitlab(self, job: str, **more: str) -> Ran:
        jobs = workflows.read(self.folder / ".gitlab" / "gpu.yml")
        found, folder = workflows.combined(jobs, job), self.checkout()
        tokens = dict.fromkeys(found.get("id_tokens", {}), "a token")
        project = {key.removeprefix("vars."): v for key, v in self.known.items() if "." in key}
        environment = self.environment(
            {
                **project,
                "PULUMI_CONFIG_PASSPHRASE": self.known["secrets.PULUMI_CONFIG_PASSPHRASE"],
                **tokens,
                **found.get("variables", {}),
                **more,
            }
        )
        for name, content in self.artifacts.items():
            if f"gpu-{name}" in found.get("needs", []):
                (folder / "plan.json").write_bytes(content)
        ran = workflows.shell("\n".join(workflows.lines(jobs, found)), folder, environment, job)
        for path in found.get("artifacts", {}).get("paths", []):
            self.artifacts[job.removeprefix("gpu-")] = (folder / path).read_bytes()
        return ran
