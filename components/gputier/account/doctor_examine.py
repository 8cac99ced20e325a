"""The whole of it: every question about a stack's fleets, asked of their clouds at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gputier.account import (
    doctor_aws,
    doctor_aws_account,
    doctor_aws_quotas,
    doctor_aws_reserved,
    doctor_gcp,
    doctor_gcp_account,
    doctor_gcp_quotas,
    session_aws,
    session_gcp,
)
from gputier.account.answers import BAD, FOR_ALL, Answer
from gputier.account.doctor import (
    LIMIT,
    Question,
    Subject,
    answer,
    ask_all,
    bad,
    ordered,
    unknown,
)
from gputier.account.doctor_aws import Aws
from gputier.account.doctor_checks import PLACED
from gputier.account.doctor_gcp import Gcp
from gputier.account.doctor_targets import NOWHERE, Targets
from gputier.account.session_aws import AwsSession
from gputier.account.session_gcp import GcpSession
from gputier.account.stack import StackAccount

NAMES = {"aws": "AWS", "gcp": "Google Cloud"}
NOBODY = "not asked: {cloud} could not be asked anything"


class Sessions(NamedTuple):
    """How a cloud is asked; each raises `CannotAsk` where it cannot be."""

    aws: Callable[[StackAccount], AwsSession] = lambda account: session_aws.session(account.aws)
    gcp: Callable[[StackAccount], GcpSession] = lambda account: session_gcp.session(account.gcp)


class Examined(NamedTuple):
    """Every answer, in the order of the checks."""

    answers: tuple[Answer, ...]

    def count(self, state: str) -> int:
        return sum(one.state == state for one in self.answers)

    @property
    def ok(self) -> bool:
        return not self.count(BAD)


def examine(
    subject: Subject,
    found: Targets,
    sessions: Sessions,
    say: Callable[[int, int], object],
    limit: float = LIMIT,
) -> Examined:
    """Ask everything there is to ask. `say(answered, of)` is told of progress."""
    clouds = dict(_clouds(subject, sessions))
    answers = [*_placed(found, subject)]
    ready: list[Question] = []
    callers = [questions[0] for questions in clouds.values()]
    for cloud, said in zip(clouds, ask_all(callers, say, limit), strict=True):
        who, *others = clouds[cloud]
        finding, kind = said
        answers.append(answer(who, finding))
        if kind in FOR_ALL:
            silent = unknown(NOBODY.format(cloud=NAMES[cloud]))
            answers += [answer(question, question.known or silent) for question in others]
        else:
            ready += others
    told = ask_all(ready, say, limit)
    answers += [answer(one, said[0]) for one, said in zip(ready, told, strict=True)]
    return Examined(tuple(ordered(answers)))


def _placed(found: Targets, subject: Subject) -> Iterator[Answer]:
    for name, why in found.unplaced:
        fix = f"gputier plan {subject.command}"
        finding = bad(why, fix) if why == NOWHERE else unknown(why)
        yield answer(Question(PLACED, (name,), "the catalogue", lambda f=finding: f), finding)


def _clouds(subject: Subject, sessions: Sessions) -> Iterator[tuple[str, list[Question]]]:
    """The clouds that fleets are on, with what is asked of each; who asks comes first."""
    on = {cloud: [target for target in subject.targets if target.cloud == cloud] for cloud in NAMES}
    if on["aws"]:
        aws = Aws(lambda: sessions.aws(subject.account), subject)
        parts = (doctor_aws_account, doctor_aws, doctor_aws_quotas, doctor_aws_reserved)
        yield "aws", [one for part in parts for one in part.questions(aws, on["aws"])]
    if on["gcp"]:
        gcp = Gcp(lambda: sessions.gcp(subject.account), subject)
        yield (
            "gcp",
            [
                one
                for part in (doctor_gcp_account, doctor_gcp, doctor_gcp_quotas)
                for one in part.questions(gcp, on["gcp"])
            ],
        )
