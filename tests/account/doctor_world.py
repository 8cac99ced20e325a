"""The stacks that tests ask doctor about, and how they are asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.account.amazon_account import Amazon
from tests.account.google_account import Google

from gputier.account.answers import Answer
from gputier.account.doctor import LIMIT, Subject
from gputier.account.doctor_examine import Examined, Sessions, examine
from gputier.account.doctor_targets import Targets, targets
from gputier.account.session_aws import AwsSession
from gputier.account.session_gcp import GcpSession
from gputier.account.stack import StackAccount, read_account
from gputier.catalog import load
from gputier.workload import Declaration, read_stack

NOW = "2026-12-01T00:00:00Z"

#: By the name of a test's stack: what it declares.
STACKS = {
    "aws": """\
  aws:region: us-east-1
  aws:profile: ml
  aws:allowedAccountIds: ["111122223333"]
  gputier:defaults: {clouds: [aws]}
  gputier:workloads:
    chat:
      tier: entry
      purpose: inference
      model: {name: llama-3.1-8b, precision: fp8, context_tokens: 8192, concurrent_sequences: 4}
      scale: {min: 1, max: 6, metric: gpu_utilization, target: 70}
      budget: {usd_per_month: 600}
    tuner:
      gpu: {models: [L40S]}
      nodes: 2
      capacity: {use: spot, on_demand_base: 1}
""",
    "reserved": """\
  aws:region: us-east-1
  gputier:defaults: {clouds: [aws]}
  gputier:workloads:
    foundation:
      gpu: {models: [H100], count: 8}
      nodes: 4
      fabric: any
      capacity: {use: reservation, id: cr-0abc12345678def00, instance_type: p5.48xlarge,
                 zone: use1-az4, count: 4}
""",
    "block": """\
  aws:region: us-east-1
  gputier:defaults: {clouds: [aws]}
  gputier:workloads:
    foundation:
      gpu: {models: [H100], count: 8}
      nodes: 4
      capacity: {use: capacity_block, id: cr-0abc12345678def00, instance_type: p5.48xlarge,
                 zone: use1-az4, count: 4, start: "2026-12-10T11:30:00Z",
                 end: "2026-12-20T11:30:00Z"}
""",
    "watched": """\
  aws:region: us-east-1
  gputier:defaults: {clouds: [aws]}
  gputier:workloads:
    named:
      gpu: {models: [L4]}
      budget:
        usd_per_month: 600
        anomalies: arn:aws:ce::111122223333:anomalymonitor/5f0c9a1e-0000-4000-8000-000000000001
    own: {gpu: {models: [L4]}, budget: {usd_per_month: 600, anomalies: create}}
""",
    "own-network": """\
  aws:region: us-east-1
  gputier:defaults: {clouds: [aws]}
  gputier:workloads:
    desk:
      purpose: development
      gpu: {models: [L4]}
      network: {vpc: shared, subnets: [subnet-0aaa, private-b]}
      disk: {kms_key: create}
""",
    "prod": """\
  aws:region: us-east-1
  gputier:defaults: {clouds: [aws]}
  gputier:workloads:
    chat: {gpu: {models: [L4]}, software: {image: {id: ami-00000000000000000, os: ubuntu-24.04}}}
    own: {gpu: {models: [L4]}, software: {image: {id: ami-0abc12345678def00, os: ubuntu-24.04}}}
    moves: {gpu: {models: [L4]}}
""",
    "gcp": """\
  gcp:project: acme-ml
  gputier:workloads:
    chat:
      gpu: {models: [L4]}
      clouds: [gcp]
      regions: {gcp: [us-central1]}
      scale: {min: 1, max: 4, metric: gpu_utilization, target: 70}
      budget: {usd_per_month: 600, billing_account: 000000-111111-222222}
    render: {gpu: {models: [T4]}, clouds: [gcp], regions: {gcp: [us-central1]}, capacity: spot}
""",
    "gcp-fabric": """\
  gcp:project: acme-ml
  gputier:workloads:
    train:
      gpu: {models: [H200], count: 8}
      nodes: 2
      fabric: any
      clouds: [gcp]
      network: {vpc: host, subnets: [host-a]}
      capacity: {use: reservation, id: big, instance_type: a3-ultragpu-8g, zone: us-east4-b,
                 count: 2}
""",
    "gcp-stops": """\
  gcp:project: acme-ml
  gputier:workloads:
    chat:
      gpu: {models: [L4]}
      clouds: [gcp]
      regions: {gcp: [us-central1]}
      scale: {min: 1, max: 4}
      schedule: [{start: "0 8 * * mon-fri", stop: "0 18 * * mon-fri", timezone: UTC}]
      budget:
        {usd_per_month: 600, action: scale-to-zero, billing_account: 000000-111111-222222}
""",
    "gcp-h100": """\
  gcp:project: acme-ml
  gputier:workloads:
    train: {gpu: {models: [H100], count: 8}, clouds: [gcp], regions: {gcp: [us-central1]}}
""",
    "by-name": """\
  aws:region: us-east-1
  gputier:defaults: {clouds: [aws]}
  gputier:workloads:
    named: {gpu: {models: [L4]}, zones: [us-east-1a, us-east-1b]}
    group:
      gpu: {models: [H100], count: 8}
      capacity: {use: reservation, instance_type: p5.48xlarge, zone: use1-az4, count: 1,
                 id: "arn:aws:resource-groups:us-east-1:111122223333:group/gpus"}
    unnamed:
      gpu: {models: [H100], count: 8}
      capacity: {use: reservation, instance_type: p5.48xlarge, zone: use1-az4, count: 1}
""",
    "gcp-prod": """\
  gputier:environment: prod
  gputier:defaults: {clouds: [gcp], regions: {gcp: [us-central1]}}
  gputier:workloads:
    own: {gpu: {models: [L4]}, software: {image: {id: projects/imgs/global/images/mine,
                                                  os: ubuntu-24.04}}}
    moves: {gpu: {models: [L4]}}
    shared:
      gpu: {models: [L4]}
      capacity: {use: reservation, id: projects/owner/reservations/gpus,
                 instance_type: g2-standard-4, zone: us-central1-a, count: 1}
""",
    "nowhere": """\
  gputier:workloads:
    never: {purpose: rendering, gpu: {memory: 96GB, models: [T4]}, clouds: [aws]}
    azure: {gpu: {memory: 16GB}, clouds: [azure]}
""",
}


@cache
def declared(stack: str) -> tuple[Declaration, Targets, StackAccount]:
    """A stack of the tests, planned once."""
    with TemporaryDirectory() as folder:
        write(stack, Path(folder))
        declaration = read_stack(stack, Path(folder))
        return declaration, targets(declaration, None, load()), read_account(declaration)


def subject(stack: str) -> Subject:
    """A stack of the tests as it is examined."""
    declaration, found, account = declared(stack)
    production = declaration.is_production
    return Subject(stack, stack, "shop", production, found.found, account, load(), NOW)


def write(stack: str, folder: Path) -> None:
    """A project with a stack of the tests."""
    (folder / "Pulumi.yaml").write_text("name: shop\nruntime: python\n", "utf-8")
    text = f"config:\n{STACKS[stack]}"
    (folder / f"Pulumi.{stack}.yaml").write_text(text, encoding="utf-8")


def quiet(_answered: int, _of: int) -> None:
    """Says nothing of progress."""


class World(NamedTuple):
    """The accounts that stacks are asked about."""

    amazon: Amazon
    google: Google

    @staticmethod
    def nobody() -> AwsSession:
        """Who asks before anybody is signed in."""
        raise AssertionError("nobody is to be asked")

    @property
    def sessions(self) -> Sessions:
        def aws(account: StackAccount) -> AwsSession:
            return self.amazon.session(account.aws.region)

        def gcp(_account: StackAccount) -> GcpSession:
            return self.google.session()

        return Sessions(aws, gcp)

    def ask(
        self,
        stack: str,
        *,
        limit: float = LIMIT,
        say: Callable[[int, int], object] = quiet,
        sessions: Sessions | None = None,
    ) -> Examined:
        found = declared(stack)[1]
        return examine(subject(stack), found, sessions or self.sessions, say, limit)

    def answers(self, stack: str, check: str) -> list[Answer]:
        return [one for one in self.ask(stack).answers if one.check == check]
