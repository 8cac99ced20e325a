"""Stage-0's fetcher on Google Cloud: who am I from the metadata service, the bundle from storage.

There is no ABANDON here: a machine that is given up is made anew by its group, and a fleet is
stopped by switching its autoscaler off and taking the machine out of the group's size.
"""

import json
import re
import sys
import urllib.parse
from typing import Any, Dict, Optional

import fetching


class Gcp(fetching.Cloud):
    stopped = False

    def get(self, path: str) -> str:
        base = self.ends.get("metadata", "http://169.254.169.254") + "/computeMetadata/v1/"
        head = {"Metadata-Flavor": "Google"}
        got = self.ask(lambda: ("GET", base + path, head, None), local=True)
        if got.status != 200:
            what = f"metadata, {path}: {got}"
            raise fetching.Failed("config", what, "give the machine its service account")
        return got.body.decode().strip()

    def identify(self) -> Dict[str, str]:
        zone = self.get("instance/zone").rsplit("/", 1)[-1]
        return {
            "cloud": "gcp",
            "account": self.get("project/project-id"),
            "region": zone.rsplit("-", 1)[0],
            "zone": zone,
            "instance_id": self.get("instance/id"),
        }

    def allowed(self, method: str, url: str, body: Optional[bytes]) -> Any:
        token = json.loads(self.get("instance/service-accounts/default/token"))
        head = {"Authorization": "Bearer " + token["access_token"]}
        if body is not None:
            head["Content-Type"] = "application/json"
        return method, url, head, body

    def store(self, method: str, key: str, body: Optional[bytes] = None, path: str = "",
              version: Optional[str] = None) -> fetching.Answer:  # fmt: skip
        base = self.ends.get("storage", "https://storage.googleapis.com")
        bucket, name = self.me["bucket"], urllib.parse.quote(key, safe="")
        url = f"{base}/storage/v1/b/{bucket}/o/{name}?alt=media"
        if method == "PUT":
            method = "POST"
            url = f"{base}/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}"
        if version is not None:
            url += "&ifGenerationMatch=" + (version or "0")
        final = () if path else (403, 404, 409, 412)
        return self.ask(lambda: self.allowed(method, url, body), path, final=final)

    def version(self, answer: fetching.Answer) -> str:
        return answer.headers["x-goog-generation"]

    def compute(self, method: str, path: str, what: Any = None) -> Any:
        base = self.ends.get("compute", "https://compute.googleapis.com")
        url = "{}/compute/v1/projects/{}/{}".format(base, self.me["account"], path)
        body = None if what is None else json.dumps(what).encode()
        got = self.ask(lambda: self.allowed(method, url, body), final=(404,))
        if got.status >= 300:
            raise fetching.Failed("config", f"{method} {path}: {got}", "")
        return json.loads(got.body)

    def group(self) -> str:
        """`zones/Z/instanceGroupManagers/NAME` or `regions/R/...`; "" for a lone machine."""
        if self.settings["gate"]["kind"] != "health-endpoint":
            return ""
        made_by = self.get("instance/attributes/created-by")
        found = re.search("(zones|regions)/[^/]+/instanceGroupManagers/[^/]+$", made_by)
        return found.group() if found else ""

    def ourselves(self) -> Any:
        return {
            "instances": [
                "zones/{}/instances/{}".format(self.me["zone"], self.get("instance/name"))
            ]
        }

    def stop_fleet(self) -> None:
        group = self.group()
        if not group:
            return
        scaler = self.compute("GET", group).get("status", {}).get("autoscaler")
        if scaler:
            place = "/".join(group.split("/")[:2])
            path = "{}/autoscalers?autoscaler={}".format(place, scaler.rsplit("/", 1)[-1])
            self.compute("PATCH", path, {"autoscalingPolicy": {"mode": "OFF"}})
        self.stopped = True
        self.compute("POST", group + "/deleteInstances", self.ourselves())

    def finish(self, bad: bool) -> None:
        group = self.group() if bad else ""
        if group and not self.stopped:
            self.compute("POST", group + "/recreateInstances", self.ourselves())


if __name__ == "__main__":
    sys.exit(fetching.main(Gcp))
