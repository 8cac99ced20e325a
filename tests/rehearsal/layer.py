"""What an image of a rehearsal brings beside the plain distribution: files laid over its root."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.rehearsal.needs import PATH

SLACK_MIB = 24


@dataclass(slots=True)
class Layer:
    """Files, folders and links by their absolute path on the machine."""

    files: dict[str, tuple[bytes, int]] = field(default_factory=dict[str, tuple[bytes, int]])
    links: dict[str, str] = field(default_factory=dict[str, str])
    folders: list[str] = field(default_factory=list[str])

    def put(self, path: str, text: str | bytes, mode: int = 0o644) -> None:
        data = text.encode() if isinstance(text, str) else text
        self.files[path] = (data, mode)

    def script(self, path: str, text: str) -> None:
        self.put(path, text, 0o755)

    def link(self, path: str, target: str) -> None:
        self.links[path] = target

    def copy(self, source: Path, path: str, pattern: str = "**/*") -> None:
        """A folder's files, without what Python compiled."""
        for file in sorted(source.glob(pattern)):
            if file.is_file() and "__pycache__" not in file.parts:
                mode = 0o755 if file.stat().st_mode & 0o100 else 0o644
                self.put(f"{path}/{file.relative_to(source)}", file.read_bytes(), mode)

    def enable(self, unit: str, target: str = "multi-user.target") -> None:
        self.link(f"/etc/systemd/system/{target}.wants/{unit}", f"/etc/systemd/system/{unit}")

    def write(self, root: Path) -> None:
        """Lay it out below `root`."""
        for path in self.folders:
            (root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        for path, (data, mode) in self.files.items():
            target = root / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(mode)
        for path, target in self.links.items():
            link = root / path.lstrip("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(target)

    def disk(self, file: Path) -> Path:
        """The same as a file system in a file, which the initrd lays over the root disk."""
        tree = file.with_suffix(".tree")
        self.write(tree)
        size = sum(len(data) for data, _ in self.files.values()) // 2**20 + SLACK_MIB
        options = ["-q", "-F", "-t", "ext4", "-O", "^has_journal", "-E", "root_owner=0:0"]
        subprocess.run(
            ["mke2fs", *options, "-d", str(tree), str(file), f"{size}M"],
            env={"PATH": PATH},
            check=True,
            capture_output=True,
        )
        shutil.rmtree(tree)
        return file
