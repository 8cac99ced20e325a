"""`python -m tests.standins KIND --bind ADDRESS:PORT [--config JSON]`, until it is stopped.

What a fault is and what can be set: `server.py`. GET /_standin/seen lists what was asked.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from typing import Any

from tests.standins import metadata
from tests.standins.autoscaling import Autoscaling
from tests.standins.compute import Compute
from tests.standins.object_store import S3, Gcs
from tests.standins.server import Fault, StandIn
from tests.standins.signature import Credentials

KINDS = ("metadata", "s3", "storage", "autoscaling", "compute")


def make(kind: str, config: dict[str, Any]) -> StandIn:
    """The stand-in of a kind; `config` are its arguments, `faults` and `cloud` among them."""
    found = dict(config)
    found["faults"] = [Fault(**fault) for fault in found.get("faults", ())]
    if kind == "metadata":
        cloud = found.pop("cloud", "aws")
        if cloud == "aws":
            values = {**metadata.aws_values(), **found.pop("values", {})}
            return metadata.Aws(values, Credentials(), **found)
        values = metadata.gcp_values() if cloud == "gcp" else metadata.azure_values()
        return metadata.CLOUDS[cloud]({**values, **found.pop("values", {})}, **found)
    if kind == "s3":
        return S3(found.pop("bucket"), credentials=[Credentials()], **found)
    if kind == "storage":
        return Gcs(found.pop("bucket"), **found)
    if kind == "autoscaling":
        return Autoscaling(credentials=[Credentials()], **found)
    return Compute(**found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.standins", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--bind", default="127.0.0.1:0", metavar="ADDRESS:PORT")
    parser.add_argument("--config", default="{}", metavar="JSON")
    parser.add_argument("--late", type=float, default=0.0, help="seconds until it listens")
    options = parser.parse_args()
    address, _, port = options.bind.rpartition(":")
    service = make(options.kind, json.loads(options.config))
    service.start(address, int(port), options.late)
    sys.stdout.write(f"{service.url}\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main()
