"""What the kernel log and the driver itself say went wrong: Xid, SXid, recovery action.

Read first, because a GPU whose firmware hangs makes every later tool hang, and read again last.
"""

from __future__ import annotations

from collections.abc import Collection

from gputier.node import klog, smi, xids
from gputier.node.engine import Check, Context
from gputier.node.result import (
    HEALTHY,
    INCONCLUSIVE,
    REBOOT,
    REPLACE,
    USABLE,
    WARNING,
    Finding,
    healthy,
    inconclusive,
    only,
    unsupported,
    warning,
    worst,
)

EXPECTED = "no fatal Xid since this boot"
REMEDIES = {
    WARNING: "nothing now; `watch` keeps an eye on it",
    REBOOT: "reboot once: the GPU has to be reset; the second time the machine is replaced",
    REPLACE: "this host is bad: give the machine back",
    INCONCLUSIVE: "let the service read the kernel log (root, or group systemd-journal)",
}


def xid(ctx: Context) -> Finding:
    """The codes in the log before anything is asked of the GPUs."""
    log = klog.kernel(ctx)
    ctx.memory["judged"] = {event.line for event in xids.find(log.text or "")}
    return judge(log, links_down=False)


def xid_after(ctx: Context) -> Finding:
    """The log once more: what the checks themselves brought to light counts."""
    links_down = ctx.outcome("nvlink") not in (None, *USABLE)
    judged: set[str] = ctx.memory.get("judged", set())
    return judge(klog.kernel(ctx, again=True), links_down, judged)


def judge(log: klog.Log, links_down: bool, judged: Collection[str] = ()) -> Finding:
    """The worst code of a log decides; the evidence is its line. Of lines that were judged
    before only those count again that mean something else with links down."""
    if log.text is None:
        return inconclusive(f"no kernel log: {log.source}", EXPECTED)
    if not log.text.strip():
        return warning(f"the kernel log of this boot is empty ({log.source})", EXPECTED)
    found = xids.latest(xids.find(log.text))
    events = [
        event
        for event in found
        if event.line not in judged
        or xids.action(event, links_down) != xids.action(event, links_down=False)
    ]
    if not events:
        words = (
            f"none in {log.source}"
            if not found
            else f"none that `xid` has not judged ({len(found)})"
        )
        return healthy(words, EXPECTED, short="no new Xid" if found else "no Xid")
    return worst([_one(event, links_down) for event in events])


def _one(event: xids.Event, links_down: bool) -> Finding:
    row = xids.TABLE.get(event.code)
    meaning = row.meaning if row else "not in our table"
    outcome = xids.action(event, links_down)
    words = f"Xid {event.code} ({meaning}) on {event.device}: {event.line}"
    return Finding(outcome, words, EXPECTED, short="no fatal Xid")


def sxid(ctx: Context) -> Finding:
    """NVSwitch errors: fatal ones end the fabric of the whole machine."""
    log = klog.kernel(ctx)
    if log.text is None:
        return inconclusive(f"no kernel log: {log.source}")
    findings: list[Finding] = []
    for event in xids.find_switch(log.text):
        text = event.detail.lower()
        fatal = "fatal" in text and "non-fatal" not in text
        findings.append(
            Finding(REPLACE if fatal else WARNING, event.line, "no fatal SXid since this boot")
        )
    return worst(findings) if findings else healthy("none", "no fatal SXid", short="no SXid")


ACTIONS = {
    "none": HEALTHY,
    "reset": REBOOT,
    "gpu reset": REBOOT,
    "reboot": REBOOT,
    "node reboot": REBOOT,
    "drain and reset": REBOOT,
    "drain p2p": WARNING,
}


def recovery(ctx: Context) -> Finding:
    """Newer drivers (from branch 565) say themselves what a GPU needs."""
    rows = smi.query(ctx, ("index", "gpu_recovery_action"))
    said = [(row["index"], row.get("gpu_recovery_action")) for row in rows]
    if all(smi.absent(text) for _, text in said):
        said = [
            (str(i), smi.look(tree, "GPU Recovery Action")) for i, tree in enumerate(smi.trees(ctx))
        ]
    known = [(index, text) for index, text in said if text and not smi.absent(text)]
    if not known:
        return unsupported("this driver does not name a recovery action")
    findings = [
        Finding(
            ACTIONS.get(text.lower(), INCONCLUSIVE), f"GPU {index}: recovery action {text}", "None"
        )
        for index, text in known
    ]
    return worst(findings)


CHECKS_FIRST = (
    Check("xid", "Xid", xid, "hardware", REMEDIES, xids.SOURCE),
    Check(
        "sxid",
        "SXid",
        sxid,
        "hardware",
        only(REMEDIES, REPLACE, WARNING, INCONCLUSIVE),
        "DCGM_FR_SXID_ERROR: isolate",
    ),
)
CHECKS_HEALTH = (
    Check(
        "recovery-action",
        "recovery action",
        recovery,
        "health",
        {
            WARNING: "peer-to-peer traffic of this GPU has to drain; watch it",
            REBOOT: "reboot once: the driver asks for a reset of the GPU",
            INCONCLUSIVE: "the driver names an action that this version does not know",
        },
        "nvidia-smi -q, GPU Recovery Action (driver 565 and newer)",
        needs=("driver",),
    ),
)
CHECKS_LAST = (Check("xid-after", "Xid at the end", xid_after, "end", REMEDIES, xids.SOURCE),)
