"""One short look at the metadata service, by whoever judges or watches this machine.

A machine that booted with settings is asked over HTTP, by the addresses of its image. Any other one
is asked by curl through the seam to the host, so that a recording has the answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gputier.node.cloud import endpoints, identity, metadata
from gputier.node.cloud.http import Answer, Ask, NoAnswer, Patience, Web
from gputier.node.host import Host

# Everybody on a machine sees arguments, so a secret comes to curl by a pipe ("-H @-" since 7.55;
# Ubuntu 20.04 has 7.68, Amazon Linux 2023 has 8), and to the shell by its environment.
HEADER = "GPUTIER_HEADER"
PIPED = ("sh", "-c", f'printf "%s\\n" "${HEADER}" | "$0" "$@"')


class ByCurl(Web):
    """Asks by curl, once, and never by a proxy."""

    def ask(
        self,
        make: Callable[[], Ask],
        patience: Patience,
        again: Callable[[Answer], bool] = lambda _: False,  # noqa: ARG002 (the shape of Web's)
    ) -> Answer:
        """The answer. Raises NoAnswer."""
        ask = make()
        argv = ["curl", "-s", "-i", "-m", f"{patience.each:g}", "--noproxy", "*"]
        if ask.method != "GET":
            argv += ["-X", ask.method]
        env: dict[str, str] = {}
        for name, value in ask.headers.items():
            if name == metadata.TOKEN:
                argv = [*PIPED, *argv, "-H", "@-"]
                env[HEADER] = f"{name}: {value}"
            else:
                argv += ["-H", f"{name}: {value}"]
        done = self.host.run((*argv, ask.url), patience.each + 1.0, env)
        answer = _answer(done.out) if done.ok else None
        if answer is None:
            raise NoAnswer(ask, f"curl: {done.how}", 1, unsure=False)
        return answer


def _answer(text: str) -> Answer | None:
    """What curl shows with `-i`: the status, the headers, an empty line, the body."""
    head, *body = re.split(r"\r?\n\r?\n", text, maxsplit=1)
    status = re.match(r"HTTP/\S+ (\d{3})\b", head)
    if status is None:
        return None
    rows = (line.partition(":") for line in head.splitlines()[1:])
    headers = {name.strip().lower(): value.strip() for name, _, value in rows}
    return Answer(int(status[1]), headers, "".join(body).encode("utf-8"))


def of(host: Host, cloud: str) -> metadata.Metadata | None:
    """The service of this machine's cloud, None for one whose service is not known here. Raises
    WrongInput for an endpoints file that cannot be used."""
    if identity.load(host) is None:
        return metadata.of(cloud, ByCurl(host), {})
    return metadata.of(cloud, Web(host), endpoints.read(host))
