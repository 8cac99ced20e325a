"""Measurements: copies over PCIe and NVLink, all-reduce in the machine and between machines."""

from __future__ import annotations

import re
from typing import NamedTuple

from gputier.node import smi, thresholds
from gputier.node.checks.driver import card_of
from gputier.node.checks.links import no_links
from gputier.node.checks.thermal import LINK
from gputier.node.checks.tool import missing
from gputier.node.engine import Check, Context
from gputier.node.expect import Expectation
from gputier.node.host import Done
from gputier.node.result import (
    CONFIG,
    INCONCLUSIVE,
    REBOOT,
    REPLACE,
    WARNING,
    Finding,
    Garbled,
    healthy,
    inconclusive,
    only,
    unsupported,
    warning,
    worst,
)
from gputier.node.thresholds import Floor

COPIES = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce")
PEER = "device_to_device_memcpy_read_ce"
NCCL_ENV = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"}
# 256 MB is too small to judge an H100 (github.com/NVIDIA/nccl-tests/issues/212).
MESSAGE = "8G"
NETWORKS = {
    "efa": r"NET/OFI.*efa|Selected [Pp]rovider is efa|Using network (?:AWS )?Libfabric",
    "infiniband": r"Using network IB|NET/IB",
    "roce": r"Using network (?:IB|gIB)|NET/(?:IB|gIB)",
    "gpudirect-tcpx": r"GPUDirectTCPX",
    "gpudirect-tcpxo": r"FasTrak",
    "erdma": r"Using network IB|NET/IB",
}


class Bus(NamedTuple):
    """What nccl-tests print at the end: average bus bandwidth in GB/s, wrong values."""

    gb_s: float
    wrong: int


def host_copy(ctx: Context) -> Finding:
    """nvbandwidth between host and each GPU; meanwhile the link's generation is looked at."""
    seen: list[dict[str, str]] = []

    def look() -> None:
        ctx.memory.pop(f"query gpu {','.join(LINK)}", None)
        try:
            seen.extend(smi.query(ctx, LINK))
        except Garbled:
            seen.clear()

    done = ctx.run("nvbandwidth", "-t", *COPIES, "-i", "10", limit=120.0, during=look)
    finding = _bandwidth(ctx, done, "host-bandwidth", COPIES, thresholds.HOST_COPY)
    return worst([_link_under_load(ctx, seen), finding]) if seen and done.ok else finding


def _link_under_load(ctx: Context, rows: list[dict[str, str]]) -> Finding:
    wanted = ctx.expect.count("pcie.generation")
    slow = [
        f"GPU {row['index']}: Gen{row['pcie.link.gen.current']} while copying"
        for row in rows
        if wanted
        and (smi.number(row.get("utilization.gpu")) or 0) > 0
        and (smi.number(row.get("pcie.link.gen.current")) or wanted) < wanted
    ]
    if slow:
        return Finding(REBOOT, "; ".join(slow), f"Gen{wanted} under load")
    return healthy("the link's generation is right under load")


def peer_copy(ctx: Context) -> Finding:
    """nvbandwidth between every pair of GPUs."""
    done = ctx.run("nvbandwidth", "-t", PEER, "-i", "10", limit=180.0)
    return _bandwidth(ctx, done, "peer-bandwidth", (PEER,), thresholds.PEER_COPY)


def _bandwidth(
    ctx: Context, done: Done, check: str, tests: tuple[str, ...], measure: str
) -> Finding:
    card = card_of(ctx)
    floor = thresholds.floor(measure, card.name if card else None)
    expected = _floor_words(floor)
    if done.state == "missing":
        return missing(ctx, check, "nvbandwidth", expected)
    if not done.ok:
        return inconclusive(f"nvbandwidth: {done.how}: {done.says()}", expected)
    least = {test: min(cells(done.out, test), default=None) for test in tests}
    words = ", ".join(f"{test} ≥ {value} GB/s" for test, value in least.items())
    if any(value is None for value in least.values()):
        raise Garbled(f"nvbandwidth printed no table: {done.says()}")
    if floor is None:
        return unsupported(f"{words}; no floor with a source for this card")
    low = [f"{test} {value} GB/s" for test, value in least.items() if (value or 0) < floor.value]
    if low:
        return Finding(REPLACE, ", ".join(low), expected, source=floor.source)
    return healthy(words, expected)._replace(source=floor.source)


def cells(text: str, test: str) -> list[float]:
    """The figures of one nvbandwidth table, without its headings and N/A."""
    part = re.split(rf"Running {re.escape(test)}\.?", text)
    if len(part) < 2:
        return []
    found: list[float] = []
    for line in re.split(r"^(?:SUM|Running) ", part[-1], flags=re.M)[0].splitlines():
        row = line.split()
        if len(row) > 1 and row[0].isdigit() and any("." in cell for cell in row[1:]):
            found += [float(cell) for cell in row[1:] if re.match(r"^\d+\.\d+$", cell)]
    return found


def all_reduce(ctx: Context) -> Finding:
    """nccl-tests over all GPUs of the machine; wrong values are worse than slow ones."""
    gpus, card = len(smi.gpus(ctx)), card_of(ctx)
    floor = thresholds.floor(thresholds.ALL_REDUCE, card.name if card else None)
    if floor and gpus < 8 and card and card.nvlinks in (12, 18):
        floor = floor if card.name == "H100-NVL-94GB" else None
    expected = _floor_words(floor)
    done = ctx.run(
        "all_reduce_perf", "-b", MESSAGE, "-e", MESSAGE, "-g", str(gpus), "-c", "1",
        limit=180.0, env=NCCL_ENV,
    )  # fmt: skip
    if done.state == "missing":
        return missing(ctx, "all-reduce", "all_reduce_perf", expected)
    ctx.memory["nccl log"] = done.text
    if not done.ok:
        return inconclusive(f"all_reduce_perf: {done.how}: {_nccl_says(done)}", expected)
    found = bus(done.out)
    if found.wrong:
        return Finding(REPLACE, f"{found.wrong} wrong values in an all-reduce", "no wrong value")
    words = f"{found.gb_s:.0f} GB/s bus bandwidth on {gpus} GPUs, {MESSAGE} messages"
    if floor is None:
        return unsupported(f"{words}; no floor with a source for this machine")
    if found.gb_s < floor.value:
        return Finding(REBOOT, words, expected, source=floor.source)
    return healthy(words, expected, short=f"all-reduce {found.gb_s:.0f} GB/s")


def bus(text: str) -> Bus:
    """The summary of an nccl-tests run. Raises Garbled without one."""
    speed = re.search(r"# Avg bus bandwidth\s*:\s*([\d.]+)", text)
    wrong = re.search(r"# Out of bounds values\s*:\s*(\d+)", text)
    if speed is None:
        raise Garbled(f"all_reduce_perf printed no summary: {text.strip()[-200:]!r}")
    return Bus(float(speed[1]), int(wrong[1]) if wrong else 0)


def _nccl_says(done: Done) -> str:
    lines = [line for line in done.text.splitlines() if re.search(r"WARN|error|Error", line)]
    return lines[0].strip()[:240] if lines else done.says()


def tcp_fallback(ctx: Context) -> Finding:
    """NCCL's own log names the network it took: Socket means that the fabric lies idle."""
    kind = ctx.expect.fabric or ""
    log = str(ctx.memory.get("nccl log", ""))
    expected = f"NCCL on {kind}"
    if not log:
        return unsupported("NCCL has not run here, so its log names no network")
    line = next((row for row in log.splitlines() if "Using network" in row), "")
    if re.search(NETWORKS.get(kind, r"$^"), log) and "Using network Socket" not in log:
        return healthy(line.strip() or f"NCCL took {kind}", expected)
    if not line:
        return inconclusive("NCCL's log names no network", expected)
    return Finding(CONFIG, f"silent fallback: {line.strip()}", expected)


def pairs(ctx: Context) -> Finding:
    """All-reduce with other machines, two at a time; a failed pair is tried with another peer.

    Fails with one peer and works with the next: the peer is bad. Fails with two: this one is.
    """
    kind, card = ctx.expect.text("machine.instance_type"), card_of(ctx)
    floor = thresholds.family_floor(thresholds.PAIRS, kind)
    expected = _floor_words(floor)
    gpus = ctx.expect.count("gpu.count") or len(smi.gpus(ctx))
    bad: list[str] = []
    for peer in ctx.expect.texts("fabric.peers"):
        done = ctx.run(
            "mpirun", "--allow-run-as-root", "-np", str(2 * gpus), "-H",
            f"localhost:{gpus},{peer}:{gpus}", "-x", "NCCL_DEBUG=INFO",
            "all_reduce_perf", "-b", "2G", "-e", MESSAGE, "-f", "2", "-c", "1", limit=300.0,
        )  # fmt: skip
        if done.state == "missing":
            return missing(ctx, "all-reduce-pairs", "mpirun", expected)
        said = _pair(done, floor)
        if said is None:
            words = f"with {peer}: ≥ the floor" if floor else f"with {peer}: no wrong value"
            if bad:
                return warning(f"{words}; the trouble is at the other end: {'; '.join(bad)}")
            return healthy(f"{words} ({card.name if card else 'GPUs'})", expected)
        bad.append(f"with {peer}: {said}")
        if len(bad) == 2:
            return Finding(REPLACE, "; ".join(bad), expected)
    return inconclusive("; ".join(bad) or "no peer answered", expected)


def _pair(done: Done, floor: Floor | None) -> str | None:
    if not done.ok:
        return f"{done.how}: {_nccl_says(done)}"
    found = bus(done.out)
    if found.wrong:
        return f"{found.wrong} wrong values"
    if floor and found.gb_s < floor.value:
        return f"{found.gb_s:.0f} GB/s"
    return None


def _floor_words(floor: Floor | None) -> str:
    return f"≥ {floor.value:g} {floor.unit}" if floor else "no floor with a source"


def efa_loopback(ctx: Context) -> Finding:
    """fi_pingpong on each EFA device, from the machine to itself, past shared memory."""
    floor = thresholds.floor(thresholds.LOOPBACK, "*")
    from_log = re.findall(r"domain: (\S+)", str(ctx.memory["fi_info"].out))
    names = sorted({re.sub(r"-(?:rdm|dgrm)$", "", name) for name in from_log})
    findings = [_pingpong(ctx, name, floor) for name in names]
    return worst(findings) if findings else inconclusive("fi_info names no device")


def _pingpong(ctx: Context, name: str, floor: Floor | None) -> Finding:
    env = {"FI_EFA_ENABLE_SHM_TRANSFER": "0", "FI_EFA_DEVICE_NAME": name}
    command = ("fi_pingpong", "-e", "rdm", "-p", "efa", "-d", f"{name}-rdm", "-S", "1048576")
    clients: list[Done] = []

    def client() -> None:
        clients.append(ctx.run(*command, "localhost", limit=15.0, env=env))

    server = ctx.run(*command, limit=20.0, env=env, during=client)
    expected = _floor_words(floor)
    if server.state == "missing":
        return missing(ctx, "efa-loopback", "fi_pingpong", expected)
    done = clients[0] if clients else server
    speeds = re.findall(r"^\s*1m\s.*?\s([\d.]+)\s+[\d.]+\s+[\d.]+\s*$", done.out, re.M)
    if not done.ok or not speeds:
        return Finding(CONFIG, f"{name}: {done.how}: {done.says()}", expected)
    gbit = float(speeds[-1]) * 8 / 1000
    words = f"{name}: {gbit:.0f} Gbit/s"
    if floor and gbit < floor.value:
        return Finding(REPLACE, words, expected, source=floor.source)
    return healthy(words, expected)


def rdma_loopback(ctx: Context) -> Finding:
    """ib_write_bw on each active port, from the machine to itself."""
    rate = ctx.expect.number("fabric.gbps") or 400.0
    floor = thresholds.floor(thresholds.FABRIC, f"{rate:.0f}")
    expected = _floor_words(floor)
    findings: list[Finding] = []
    for name in ctx.host.names("/sys/class/infiniband"):
        if name.startswith("mlx5_an"):
            continue
        done = _write_bw(ctx, name)
        if done.state == "missing":
            return missing(ctx, "rdma-loopback", "ib_write_bw", expected)
        row = re.search(r"^\s*8388608\s+\d+\s+[\d.]+\s+([\d.]+)", done.out, re.M)
        if not done.ok or row is None:
            findings.append(inconclusive(f"{name}: {done.how}: {done.says()}", expected))
        elif floor and float(row[1]) < floor.value:
            findings.append(Finding(REPLACE, f"{name}: {row[1]} Gbit/s", expected))
        else:
            findings.append(healthy(f"{name}: {row[1]} Gbit/s", expected))
    return worst(findings) if findings else inconclusive("no RDMA device to be seen", expected)


def _write_bw(ctx: Context, name: str) -> Done:
    """Server and client of one device on this machine; the client's end counts."""
    command = ("ib_write_bw", "-s", "8388608", "-x", "0", "-F", "--report_gbits", "-d", name)
    clients: list[Done] = []

    def client() -> None:
        clients.append(ctx.run(*command, "localhost", limit=20.0))

    server = ctx.run(*command, limit=25.0, during=client)
    return clients[0] if clients and server.state != "missing" else server


def divided(expect: Expectation) -> str | None:
    """Why a test of whole cards does not apply: neither NCCL nor peer copies nor DCGM's levels
    from 3 on work on instances, and floors are for whole cards."""
    return "the plan divides the GPUs (MIG)" if expect.mig() else None


def _one_gpu(expect: Expectation) -> str | None:
    one = "the plan has one GPU" if (expect.count("gpu.count") or 2) < 2 else None
    return divided(expect) or one


def _no_peer_copy(expect: Expectation) -> str | None:
    return divided(expect) or no_links(expect)


def _no_fabric(expect: Expectation) -> str | None:
    return None if expect.fabric else "the plan has no fabric"


def _no_efa(expect: Expectation) -> str | None:
    return None if expect.fabric == "efa" else "the plan's fabric is not EFA"


def _no_rdma(expect: Expectation) -> str | None:
    asked = expect.fabric in ("infiniband", "roce")
    return None if asked else "the plan's fabric is neither InfiniBand nor RoCE"


def _no_peers(expect: Expectation) -> str | None:
    return None if expect.texts("fabric.peers") else "no peers are named yet"


REMEDIES = {
    REPLACE: "this host is slower than what was paid for: give the machine back",
    REBOOT: "reboot once; the second time the machine is replaced",
    CONFIG: "install what is missing in the image, or see the security group and the plugin",
    WARNING: "look at the other machine of the pair",
    INCONCLUSIVE: "see what the tool says and run the check again",
}
NEEDS = ("gpu-count", "cuda-kernel")
CHECKS = (
    Check("host-bandwidth", "host bandwidth", host_copy, "load",
          only(REMEDIES, REPLACE, REBOOT, CONFIG, INCONCLUSIVE), thresholds.AZNHC,
          seconds=150.0, needs=NEEDS, depth="standard", applies=divided, tools=("nvbandwidth",)),
    Check("peer-bandwidth", "GPU to GPU bandwidth", peer_copy, "load",
          only(REMEDIES, REPLACE, CONFIG, INCONCLUSIVE), thresholds.AZNHC,
          seconds=200.0, needs=(*NEEDS, "nvlink"), depth="standard", applies=_no_peer_copy,
          tools=("nvbandwidth",)),
    Check("all-reduce", "all-reduce", all_reduce, "load",
          only(REMEDIES, REPLACE, REBOOT, CONFIG, INCONCLUSIVE), thresholds.AZNHC,
          seconds=200.0, needs=(*NEEDS, "nvlink"), depth="standard", applies=_one_gpu,
          tools=("nccl", "nccl-tests", "all_reduce_perf")),
    Check("tcp-fallback", "network of NCCL", tcp_fallback, "load",
          only(REMEDIES, CONFIG, INCONCLUSIVE),
          "github.com/ofiwg/libfabric/issues/12708 (NCCL silently on TCP)", needs=("all-reduce",),
          depth="standard", applies=_no_fabric),
    Check("efa-loopback", "EFA loopback", efa_loopback, "load", only(REMEDIES, REPLACE, CONFIG),
          "github.com/awslabs/awsome-distributed-ai health checks, check 6", seconds=900.0,
          needs=("fabric-in-use",), depth="standard", applies=_no_efa,
          tools=("efa", "fi_pingpong")),
    Check("rdma-loopback", "RDMA loopback", rdma_loopback, "load",
          only(REMEDIES, REPLACE, CONFIG, INCONCLUSIVE), thresholds.AZNHC,
          seconds=240.0, needs=("fabric-in-use",), depth="standard", applies=_no_rdma,
          tools=("ib_write_bw", "perftest")),
    Check("all-reduce-pairs", "all-reduce in pairs", pairs, "load",
          only(REMEDIES, REPLACE, CONFIG, WARNING, INCONCLUSIVE), thresholds.CHS,
          seconds=900.0, needs=("all-reduce", "fabric-in-use"), depth="burn-in",
          applies=_no_peers, tools=("mpirun",)),
)  # fmt: skip
