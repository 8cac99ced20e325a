"""What a vendor offers for download, taken only with the vendor's own signature on it."""

from __future__ import annotations

import re
from typing import NamedTuple

from gputier.node import distro, having, proxies
from gputier.node.host import Done
from gputier.node.stages import Halt, Work, config

FOLDER = "/var/lib/gputier/fetched"


class Signed(NamedTuple):
    """A file, its detached signature, the key, and the fingerprint that the vendor publishes."""

    name: str
    url: str
    signature: str
    key: str
    fingerprint: str

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.name}"


def download(work: Work, url: str, path: str, limit: float = 300.0) -> None:
    """A file by https, through the declared proxy. Raises Halt."""
    having.command(work, "curl", "curl")
    folder = path.rsplit("/", 1)[0]
    work.must(f"make {folder}", "mkdir", "-p", folder, limit=10.0)
    done = work.run(
        "curl", "-fsSL", "--retry", "4", "--retry-all-errors", "--connect-timeout", "10",
        "-o", path, url, limit=limit, env=proxies.variables(work.settings),
    )  # fmt: skip
    if not done.ok:
        raise Halt(having.failed(f"{url} was not downloaded", done))


def signed(work: Work, file: Signed, limit: float = 300.0) -> str:
    """The path of the file, its signature proved. Raises Halt; an unproved file is removed."""
    _full_gpg(work)
    for url, path in (
        (file.url, file.path),
        (file.signature, file.path + ".sig"),
        (file.key, file.path + ".key"),
    ):
        download(work, url, path, limit)
    home = f"{FOLDER}/{file.name}.gnupg"
    work.must("make a keyring", "install", "-d", "-m", "700", home, limit=10.0)
    gpg = ("gpg", "--batch", "--homedir", home)
    work.must("read the key", *gpg, "--import", file.path + ".key", limit=30.0)
    check = (*gpg, "--status-fd", "1", "--verify", file.path + ".sig", file.path)
    done = work.run(*check, limit=60.0)
    if not _proved(done, file.fingerprint):
        work.run("rm", "-f", file.path, limit=10.0)
        raise Halt(
            config(
                f"{file.url} is not signed by {file.fingerprint}: {done.says()}",
                "something between changed the file, or the vendor changed the key: see its page",
            )
        )
    return file.path


def _proved(done: Done, fingerprint: str) -> bool:
    """gpg's own words for programs: VALIDSIG with the fingerprint; "good" alone is any key's."""
    found = re.findall(r"^\[GNUPG:\] VALIDSIG (.+)$", done.out, re.M)
    return done.ok and any(fingerprint in line.split() for line in found)


def _full_gpg(work: Work) -> None:
    """Amazon Linux 2023 has a cut-down GnuPG, which a full one has to be swapped for."""
    if distro.family(work) == distro.DNF and distro.installed(work, "gnupg2-minimal"):
        argv = ("dnf", "-y", "-q", "swap", "gnupg2-minimal", "gnupg2-full")
        done = work.run(*argv, limit=work.left())
        if not done.ok:
            raise Halt(having.failed("gnupg2-full was not installed", done))
    having.command(work, "gpg", "gnupg" if distro.family(work) == distro.APT else "gnupg2-full")
