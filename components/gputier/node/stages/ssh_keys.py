"""Who may log in: the declared keys for the image's own user, everybody else's left alone."""

from __future__ import annotations

import re
from typing import NamedTuple

from gputier.node.stages import Halt, StageResult, Work, config, ok

CLOUD_CONFIG = ("/etc/cloud/cloud.cfg.d", "/etc/cloud/cloud.cfg")
# Who the images' makers let in, where cloud-init does not say.
USERS = ("ubuntu", "ec2-user", "rocky", "admin", "debian", "azureuser", "cloud-user", "chronos")
BEGIN, END = "# gputier: begin (written at every boot)", "# gputier: end"
BLOCK = re.compile(rf"^{re.escape(BEGIN)}\n.*?^{re.escape(END)}\n", re.M | re.S)
KINDS = r"ssh-(?:ed25519|rsa)|ecdsa-sha2-nistp(?:256|384|521)|sk-[\w@.-]+"
KEY = re.compile(rf"(?:{KINDS}) [A-Za-z0-9+/]+=*(?: .*)?")


class User(NamedTuple):
    name: str
    group: str
    home: str


def run(work: Work) -> StageResult:
    """The declared keys in the user's file, between two marks; nothing else in it changes."""
    keys = work.settings.texts("ssh_keys")
    bad = [str(number) for number, key in enumerate(keys, 1) if not KEY.fullmatch(key)]
    if bad:
        return config(
            f"`software.ssh_keys`: number {', '.join(bad)} is no public key of OpenSSH",
            "give the text of the .pub file, one key each",
        )
    user = _user(work)
    folder, path = f"{user.home}/.ssh", f"{user.home}/.ssh/authorized_keys"
    if work.host.link(folder) or work.host.link(path):
        # Root writes here: never through a link that the user may have put there.
        return config(f"{path} is a symbolic link", "make it a file in the image")
    content = work.host.read(path) or ""
    rest = BLOCK.sub("", content)
    rest += "" if rest.endswith("\n") or not rest else "\n"
    wanted = rest + "".join(f"{line}\n" for line in (BEGIN, *keys, END))
    if wanted == content:
        return ok(f"{len(keys)} keys of {user.name}")
    owner = f"{user.name}:{user.group}"
    work.must(
        f"make {folder}", "install", "-d", "-m", "700", "-o", user.name, "-g", user.group, folder,
        limit=10.0,
    )  # fmt: skip
    try:
        work.host.write(path, wanted, 0o600)
    except OSError as error:
        return config(f"{path} cannot be written: {error}")
    work.must(f"give {path} to {user.name}", "chown", owner, path, limit=10.0)
    if work.host.which("restorecon"):
        work.run("restorecon", "-R", folder, limit=10.0)
    return ok(f"{len(keys)} keys for {user.name}", True)


def _user(work: Work) -> User:
    """The image's login user: cloud-init's default, else one of those known. Raises Halt."""
    for name in filter(None, (_declared(work), *USERS)):
        done = work.run("getent", "passwd", name, limit=10.0)
        cells = done.out.strip().split(":")
        if done.ok and len(cells) >= 7 and cells[5].startswith("/"):
            return User(cells[0], cells[3], cells[5].rstrip("/"))
    raise Halt(
        config(
            f"no login user on this image: neither cloud-init's nor {', '.join(USERS)}",
            "use an image with cloud-init, or the cloud's own log-in instead of keys",
        )
    )


def _declared(work: Work) -> str | None:
    """`system_info: default_user: name:` of cloud-init; the last file that says so counts."""
    folder, main = CLOUD_CONFIG
    found: str | None = None
    for path in (main, *(f"{folder}/{name}" for name in work.host.names(folder))):
        text = work.host.read(path) or ""
        match = re.search(r"^\s*default_user:\s*\n(?:\s+.*\n)*?\s+name:\s*([\w-]+)", text, re.M)
        found = match[1] if match else found
    return found
