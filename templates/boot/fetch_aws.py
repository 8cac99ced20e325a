"""Stage-0's fetcher on AWS: who am I from IMDSv2, the bundle from S3, ABANDON by the hook's name.

Requests are signed here, since no image has to have a cloud's command line.
"""

import hashlib
import hmac
import json
import sys
import time
import urllib.parse
from typing import Any, Dict, Optional

import fetching

NO_ROLE = "give the machine its role, and let it ask IMDSv2"
FORM = "application/x-www-form-urlencoded"


class Aws(fetching.Cloud):
    domain: str

    def get(self, path: str) -> str:
        """From the metadata service, with a token of its own: they are cheap."""
        base = self.ends.get("metadata", "http://169.254.169.254") + "/latest/"
        head = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
        got = self.ask(lambda: ("PUT", base + "api/token", head, None), local=True)
        if got.status == 200:
            head = {"X-aws-ec2-metadata-token": got.body.decode()}
            got = self.ask(lambda: ("GET", base + path, head, None), local=True)
        if got.status != 200:
            raise fetching.Failed("config", f"metadata, {path}: {got}", NO_ROLE)
        return got.body.decode().strip()

    def identify(self) -> Dict[str, str]:
        found = json.loads(self.get("dynamic/instance-identity/document"))
        self.domain = self.get("meta-data/services/domain")
        names = {"account": "accountId", "zone": "availabilityZone", "instance_id": "instanceId"}
        return dict({k: found[v] for k, v in names.items()}, cloud="aws", region=found["region"])

    def store(self, method: str, key: str, body: Optional[bytes] = None, path: str = "",
              version: Optional[str] = None) -> fetching.Answer:  # fmt: skip
        me, host = self.me, "https://s3.{}.{}".format(self.me["region"], self.domain)
        url = "{}/{}/{}".format(self.ends.get("s3", host), me["bucket"], key)
        head = {"x-amz-expected-bucket-owner": me["account"]}
        if version is not None:
            head["if-match" if version else "if-none-match"] = version or "*"
        final = () if path else (403, 404, 409, 412)
        return self.ask(lambda: self.signed("s3", method, url, head, body), path, final=final)

    def version(self, answer: fetching.Answer) -> str:
        return answer.headers["ETag"]

    def signed(self, service: str, method: str, url: str, head: Any, body: Any) -> Any:
        """Signature Version 4 (docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html)."""
        roles = "meta-data/iam/security-credentials/"
        keys = json.loads(self.get(roles + self.get(roles).split()[0]))
        if keys["Code"] != "Success":
            # A trust that was made a moment ago, too, is seen everywhere only after a while.
            raise OSError("the role: {}".format(keys.get("Message") or keys["Code"]))
        at, stamp = urllib.parse.urlsplit(url), time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        scope = "/".join((stamp[:8], self.me["region"], service, "aws4_request"))
        payload = hashlib.sha256(body or b"").hexdigest()
        head = dict(head, host=at.netloc)
        head.update({"x-amz-content-sha256": payload, "x-amz-date": stamp})
        head["x-amz-security-token"] = keys["Token"]
        names = sorted(head)
        signed = ";".join(names)
        asked = [
            method,
            at.path,
            at.query,
            *(n + ":" + head[n] for n in names),
            "",
            signed,
            payload,
        ]
        digest = hashlib.sha256("\n".join(asked).encode()).hexdigest()
        key = ("AWS4" + keys["SecretAccessKey"]).encode()
        text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, digest))
        for part in (*scope.split("/"), text):
            key = hmac.new(key, part.encode(), "sha256").digest()
        head["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={keys['AccessKeyId']}/{scope}, SignedHeaders={signed}, "
            f"Signature={key.hex()}"
        )
        return method, url, head, body

    def group(self, action: str, more: Any) -> None:
        gate = self.settings["gate"]
        if gate["kind"] != "lifecycle-hook":
            return
        url = "https://autoscaling.{}.{}".format(self.me["region"], self.domain)
        url = self.ends.get("autoscaling", url) + "/"
        form = dict(more, Action=action, Version="2011-01-01", AutoScalingGroupName=gate["group"])
        body, head = urllib.parse.urlencode(form).encode(), {"content-type": FORM}
        # 400 is the hook's "not waiting", which does not get better.
        got = self.ask(lambda: self.signed("autoscaling", "POST", url, head, body), final=(400,))
        if got.status != 200:
            raise fetching.Failed("config", f"{action}: {got}", "")

    def stop_fleet(self) -> None:
        self.group("SuspendProcesses", {"ScalingProcesses.member.1": "Launch"})

    def finish(self, bad: bool) -> None:
        what = {"LifecycleHookName": self.settings["gate"].get("hook")}
        what["LifecycleActionResult"] = "ABANDON" if bad else "CONTINUE"
        self.group("CompleteLifecycleAction", dict(what, InstanceId=self.me["instance_id"]))


if __name__ == "__main__":
    sys.exit(fetching.main(Aws))
