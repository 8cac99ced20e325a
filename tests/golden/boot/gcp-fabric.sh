#!/bin/bash
# gputier, stage 0: files, one unit, and go. It may run at every boot; docs/boot.md explains it.
set -euo pipefail
umask 022
export LC_ALL=C
trap 'echo "gputier: stage 0 failed in line $LINENO" | tee /dev/console >&2 || true' ERR

verb=start
put() { # put PATH MODE [FILTER]: stdin becomes that file, whole or not at all
  mkdir -p "${1%/*}"
  "${3:-cat}" > "$1.new"
  if cmp -s "$1.new" "$1"; then rm "$1.new"; return; fi
  verb=restart # so too in an image of a used machine
  chmod "$2" "$1.new"
  mv -f "$1.new" "$1"
}

put /etc/gputier/expect.json 0644 <<'EOF'
{"cuda":{"min":"11.8"},
"depth":"quick",
"driver":{"min":"530"},
"fabric":{"kind":"gpudirect-tcpxo"},
"gate":"enforce",
"gpu":{"count":8,"model":"H100-80GB","nvlinks":18},
"host":{"memory_gib":1872.0,"vcpus":208},
"machine":{"cloud":"gcp","instance_type":"a3-megagpu-8g"},
"scratch":{"count":16,"gib":6000.0,"mount":"/scratch"}}
EOF

put /etc/gputier/boot.json 0644 <<'EOF'
{"breaker":{"after":2,"window_seconds":86400},
"bundle":{"delivery":"object","sha256":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","version":"0.1.0"},
"cloud":"gcp",
"driver":{"branch":"580","fabric_manager":true,"module":"open","source":"prebaked"},
"fabric":{"kind":"gpudirect-tcpxo"},
"gate":{"deadline_seconds":3420,"depth":"quick","kind":"health-endpoint","mode":"enforce","port":8080},
"instance_type":"a3-megagpu-8g",
"limits":{"bundle":274,"collectives":27,"driver":114,"fabric":390,"fabric-manager":223,"gate":387,"limits":55,"metrics":167,"packages":592,"persistence":83,"scratch":167,"services":55},
"metrics":{"agent":"ops-agent","config":{"metrics":{"processors":{"most":{"metrics_pattern":["workload.googleapis.com/gpu.dcgm.utilization","workload.googleapis.com/gpu.dcgm.sm.*","workload.googleapis.com/gpu.dcgm.pipe.*","workload.googleapis.com/gpu.dcgm.codec.*","workload.googleapis.com/gpu.dcgm.memory.*","workload.googleapis.com/gpu.dcgm.pcie.*","workload.googleapis.com/gpu.dcgm.nvlink.*","workload.googleapis.com/gpu.dcgm.clock.*","workload.googleapis.com/gpu.dcgm.energy_consumption"],"type":"exclude_metrics"},"processes":{"metrics_pattern":["agent.googleapis.com/gpu/processes/*","agent.googleapis.com/processes/*"],"type":"exclude_metrics"}},"receivers":{"dcgm":{"collection_interval":"60s","receiver_version":2,"type":"dcgm"},"hostmetrics":{"collection_interval":"60s","type":"hostmetrics"}},"service":{"pipelines":{"dcgm":{"processors":["most"],"receivers":["dcgm"]},"default_pipeline":{"processors":["processes"],"receivers":["hostmetrics"]}}}}}},
"nccl":{"NCCL_FASTRAK_CTRL_DEV":"enp0s12","NCCL_FASTRAK_IFNAME":"enp6s0,enp7s0,enp13s0,enp14s0,enp134s0,enp135s0,enp141s0,enp142s0","NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY":"/dev/aperture_devices","NCCL_SOCKET_IFNAME":"enp0s12"},
"project":"gputier",
"reboots":1,
"schema":"gputier/boot/1",
"scratch":{"count":16,"filesystem":"xfs","mount":"/scratch"},
"stack":"test",
"workload":"gcp-fabric"}
EOF

put /usr/local/lib/gputier/fetch.py 0644 <<'EOF'
"""Stage-0's fetcher, the part that all clouds share: get the bundle, or tell why not.

It runs at every boot, before anything of ours is on the machine, with whatever python3 the image
has: syntax of Python 3.8, standard library only. `fetch_aws.py` or `fetch_gcp.py` is the program,
and this file lies beside it (boot/stage0.py).

A secret is only ever in memory. Every wait has an end. A bundle whose SHA-256 is not the pinned one
is never run. Whatever stops it is told in a report of the node's own schema.
"""

import email.utils
import hashlib
import http.client
import json
import os
import re
import sys
import time
import urllib.error
import urllib.request
from typing import Any, Callable, Dict, NamedTuple, Optional

Json = Dict[str, Any]

LATE = 60.0  # s; a role or an object made a moment ago is seen everywhere within this
LAST_WORDS = 120.0  # s for the report, the breaker and the gate once there is no bundle
TRY = 15.0  # s for one request
CHUNK = 1 << 16
BUSY = (408, 425, 429, 500, 502, 503, 504)
# A signature that came late is no refusal; what mends it is a clock that is set meanwhile.
AGED = ("RequestTimeTooSkewed", "ExpiredToken")


class Failed(Exception):
    """Why there is no bundle: the outcome, what was seen, what to do."""

    def __init__(self, outcome: str, evidence: str, remedy: str) -> None:
        super().__init__(evidence)
        self.outcome, self.evidence, self.remedy = outcome, evidence, remedy


class Answer(NamedTuple):
    status: int
    headers: Any
    body: bytes

    def __str__(self) -> str:
        """For a message: the error of S3 and its kin, else how the text begins."""
        text = self.body.decode("utf-8", "replace")
        parts = re.findall("<(?:Code|Message)>([^<]*)", text) or [text]
        return " ".join([str(self.status), *parts]).strip()[:250]


class Stay(urllib.request.HTTPRedirectHandler):
    """A redirect would carry what is meant for one host to another."""

    def redirect_request(
        self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any
    ) -> None:
        return None


def opener(proxies: Dict[str, str]) -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(Stay, urllib.request.ProxyHandler(proxies))


class Cloud:
    """HTTP with an end, and what a program for one cloud fills in."""

    def __init__(self, settings: Json, ends: Dict[str, str]) -> None:
        self.settings, self.ends = settings, ends
        self.me: Dict[str, str] = {}
        self.end = time.monotonic() + settings["limits"]["bundle"]
        proxy = settings.get("proxy", {})
        os.environ["no_proxy"] = proxy.get("no_proxy", "")
        self.outer = opener({k: proxy[k] for k in ("http", "https") if k in proxy})
        # The metadata service is link-local: a proxy would ask its own.
        self.local = opener({})

    def once(self, asked: urllib.request.Request, path: str, local: bool) -> Answer:
        left = max(1.0, min(TRY, self.end - time.monotonic()))
        try:
            with (self.local if local else self.outer).open(asked, timeout=left) as got:
                if not path:
                    return Answer(got.status, got.headers, got.read())
                with open(path, "wb") as file:
                    for chunk in iter(lambda: got.read(CHUNK), b""):
                        file.write(chunk)
                        if time.monotonic() > self.end:
                            raise OSError("out of time in the middle of it")
                    file.flush()
                    os.fsync(file.fileno())
                return Answer(got.status, got.headers, b"")
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers, error.read(4096))

    def ask(self, make: Callable[[], Any], path: str = "", local: bool = False,
            final: Any = ()) -> Answer:  # fmt: skip
        """What `make()` = (method, url, headers, body) is answered; the body goes to `path`.

        It is made for each try, since signatures age. Statuses in `final` are an answer at once,
        other refusals once they have lasted.
        """
        began, pause = time.monotonic(), 1.0
        while True:
            url = "the metadata service"
            try:
                # In here too: making a signature asks for the role, which may be late.
                method, url, headers, data = make()
                asked = urllib.request.Request(url, data, headers, method=method)
                got = self.once(asked, path, local)
                why = str(got)
                lasting = time.monotonic() - began > LATE and not any(one in why for one in AGED)
                # The query APIs throttle with status 400.
                if got.status < 300 or (got.status in final and "Throttling" not in why):
                    return got
                if got.status not in BUSY and lasting:
                    return got
            except (OSError, http.client.HTTPException) as error:
                why = str(error)
            if time.monotonic() + pause > self.end:
                what = "no answer in time from {}: {}".format(url.split("?")[0], why)
                raise Failed("inconclusive", what, "see that machines reach it; boot again")
            time.sleep(pause)
            pause = min(pause * 2, 15.0)

    def identify(self) -> Dict[str, str]:
        raise NotImplementedError

    def store(self, method: str, key: str, body: Optional[bytes] = None, path: str = "",
              version: Optional[str] = None) -> Answer:  # fmt: skip
        """Ask the object store. A put with `version` stands only on that version; "": on none."""
        raise NotImplementedError

    def version(self, answer: Answer) -> str:
        raise NotImplementedError

    def stop_fleet(self) -> None:
        """No new machine of this group until somebody has looked."""
        raise NotImplementedError

    def finish(self, bad: bool) -> None:
        """Hand this machine back when it is `bad`, else let it come in."""
        raise NotImplementedError


def bucket_name(project: str, stack: str, account: str, region: str) -> str:
    """As node/bucket.py has it, which is not on the machine yet."""
    whole = "-".join(("gputier", project, stack.split("/")[-1], account, region))
    name = re.sub("[^A-Za-z0-9-]", "-", whole).lower()
    if len(name) <= 63:
        return name
    return name[:54].rstrip("-") + "-" + hashlib.sha256(name.encode()).hexdigest()[:8]


def write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def digest(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def bundle(cloud: Cloud, state: str) -> str:
    """The verified bundle's path; fetched unless it lies there already."""
    pinned = cloud.settings["bundle"]
    wanted = pinned["sha256"]
    path = f"{state}/bundle/{wanted}.pyz"
    if digest(path) == wanted:
        return path
    if pinned["delivery"] == "inline":
        raise Failed("config", "the bundle that came with the user data is another one",
                     "render the user data again from the lock")  # fmt: skip
    os.makedirs(os.path.dirname(path), exist_ok=True)
    key, new = f"bundles/{wanted}.pyz", path + ".new"
    what = "{} in {}".format(key, cloud.me["bucket"])
    found = ""
    for _ in range(2):  # again, since a proxy or a broken line may have spoiled the first
        got = cloud.store("GET", key, path=new)
        if got.status >= 300:
            told = "`pulumi up` writes the bundle and the role that may read it"
            raise Failed("config", f"{what}: {got}", told)
        found = digest(new)
        if found == wanted:
            os.chmod(new, 0o755)  # noqa: S103 (a program, and no secret)
            os.replace(new, path)
            return path
        os.remove(new)
    raise Failed("config", f"{what} has SHA-256 {found}", "`pulumi up` writes it again")


def link(path: str, target: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path + ".new"):
        os.remove(path + ".new")
    os.symlink(target, path + ".new")
    os.replace(path + ".new", path)


def report(cloud: Cloud, error: Failed, seconds: float) -> Json:
    """Schema gputier/node/1, with the one check there was."""
    settings, me, system = cloud.settings, cloud.me, os.uname()
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip()
    told = {"outcome": error.outcome, "remedy": error.remedy, "seconds": round(seconds, 3)}
    check = dict(told, name="bundle", title="node bundle", evidence=error.evidence,
                 expected=settings["bundle"]["sha256"], source="lock", stage="bundle",
                 short="no bundle", because=[])  # fmt: skip
    machine = {k: me.get(k) for k in ("cloud", "instance_id", "region", "zone")}
    machine.update(instance_type=settings["instance_type"], boot_id=boot, hostname=system.nodename)
    versions = {"gputier-node": settings["bundle"]["version"], "kernel": system.release}
    return dict(
        told, schema="gputier/node/1", checks=[check], causes=["bundle"], not_applicable=[],
        warnings=[], depth=settings["gate"]["depth"], gate=settings["gate"]["mode"], usd=None,
        stages=[], gpus=[], machine=machine, versions=dict(versions, driver=None, os=None),
        host={"gpus": [], "placement": {}}, at=int(time.time()),
    )  # fmt: skip


def tell(cloud: Cloud, error: Failed, seconds: float, root: str) -> None:
    """Report, breaker, gate, in this order; one that fails does not stop the next."""
    found = report(cloud, error, seconds)
    text = json.dumps(found, indent=1)
    write(root + "var/lib/gputier/report.json", text)
    say(f"{error.outcome}: {error.evidence}; {error.remedy}")
    if not cloud.me:
        return
    workload, instance = cloud.settings["workload"], cloud.me["instance_id"]
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    key = f"reports/{workload}/{instance}/{stamp}-{error.outcome}.json"
    # A machine that has been in service is no new one, and nobody waits for its word.
    new = joined(root) != instance
    enforced = cloud.settings["gate"]["mode"] == "enforce" and new
    for step in (
        lambda: cloud.store("PUT", key, text.encode()),
        lambda: enforced and tripped(cloud, error) and cloud.stop_fleet(),
        # Nobody is kept out by a gate that does not enforce, and silence would be a refusal.
        lambda: new and cloud.finish(enforced),
    ):
        cloud.end = time.monotonic() + LAST_WORDS
        try:
            step()
        except (Failed, ValueError, KeyError, TypeError) as more:
            say(str(more))


def joined(root: str) -> Any:
    """The instance that came in from this disk: an image made of it brings the file along."""
    try:
        with open(root + "var/lib/gputier/joined.json") as file:
            return json.load(file)["instance"]
    except (OSError, ValueError, LookupError, TypeError):
        return None


def tripped(cloud: Cloud, error: Failed) -> bool:
    """Note this fault as node/breaker.py does; whether it has now come too often in a row.

    A store that refuses us refuses every machine of this fleet: that is too often already. One that
    cannot be reached says nothing, and raises.
    """
    limits, me = cloud.settings["breaker"], cloud.me["instance_id"]
    key, config = "breaker/{}.json".format(cloud.settings["workload"]), error.outcome == "config"
    mine = {"instance": me, "outcome": error.outcome, "reason": "bundle@bundle"}
    lost = False
    for _ in range(9):
        got = cloud.store("GET", key)
        state: Json = json.loads(got.body) if got.status == 200 else {}
        # By the store's clock, which all machines share.
        now = email.utils.parsedate_to_datetime(got.headers["Date"]).timestamp()
        nodes = [n for n in state.get("nodes", ()) if n["instance"] != me]
        nodes = [n for n in nodes if now - n["at"] <= limits["window_seconds"]]
        nodes.append(dict(mine, at=now))
        alike = [n for n in nodes if (n["outcome"], n["reason"]) == ("config", mine["reason"])]
        over = config and len(alike) >= limits["after"]
        state.update(schema="gputier/breaker/1", nodes=nodes[-200:])
        if over:
            state["tripped"] = {"instance": me, "reason": mine["reason"], "at": now}
        body = json.dumps(state, sort_keys=True).encode()
        put = cloud.store("PUT", key, body, version=cloud.version(got) if got.status == 200 else "")
        if put.status < 300:
            return over
        lost = put.status in (409, 412)
        if not lost and put.status != 404:
            break
        time.sleep(1)
    # Others that were faster each time are no refusal.
    return config and not lost


def say(text: str) -> None:
    print("gputier: " + text, file=sys.stderr, flush=True)


def main(kind: Callable[[Json, Dict[str, str]], Cloud], root: str = "/") -> int:
    began = time.monotonic()
    etc, state = root + "etc/gputier/", root + "var/lib/gputier"
    with open(etc + "boot.json") as file:
        settings = json.load(file)
    ends: Dict[str, str] = {}
    if os.path.exists(etc + "endpoints.json"):
        with open(etc + "endpoints.json") as file:
            ends = json.load(file)
    cloud = kind(settings, ends)
    try:
        me = cloud.identify()
        own = (settings["project"], settings["stack"], me["account"], me["region"])
        me["bucket"] = bucket_name(*own)
        cloud.me = me
        write(state + "/identity.json", json.dumps(me, sort_keys=True))
        link(root + "usr/local/bin/gputier-node", bundle(cloud, state))
    except (Failed, OSError, ValueError, LookupError) as error:
        if not isinstance(error, Failed):
            error = Failed("inconclusive", repr(error), "look at the machine's console")
        tell(cloud, error, time.monotonic() - began, root)
        return 1
    say("bundle there after %.1f s" % (time.monotonic() - began))
    return 0


"""Stage-0's fetcher on Google Cloud: who am I from the metadata service, the bundle from storage.

There is no ABANDON here: a machine that is given up is made anew by its group, and a fleet is
stopped by switching its autoscaler off and taking the machine out of the group's size.
"""

import json
import re
import sys
import urllib.parse
from typing import Any, Dict, Optional

fetching = sys.modules[__name__]


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
EOF

put /etc/systemd/system/gputier-boot.service 0644 <<'EOF'
[Unit]
Description=gputier: prepare this machine and prove it
Wants=network-online.target
After=network-online.target multi-user.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/env python3 /usr/local/lib/gputier/fetch.py
ExecStart=/usr/bin/env python3 /usr/local/bin/gputier-node boot
TimeoutStartSec=infinity
StandardOutput=journal+console
StandardError=journal+console

[Install]
WantedBy=multi-user.target
EOF

if [[ "${verb}" == restart ]]; then # a reload may fail a running unit
  systemctl daemon-reload
  systemctl enable --quiet gputier-boot.service
fi
systemctl "${verb}" --no-block gputier-boot.service
