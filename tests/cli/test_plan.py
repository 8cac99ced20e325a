"""`gputier plan`: what is read, what is said, and that the JSON never changes by itself."""

from __future__ import annotations

import datetime
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.world import ID, PROD, Run

from gputier.catalog import Catalog
from gputier.cli import inputs, plan_text

FILE = """\
workloads:
  chat:
    gpu: {memory: 24GB}
    regions: {aws: [us-east-1]}
    clouds: [aws]
"""


class Stdin:
    """Standard input that holds a text."""

    def __init__(self, text: str) -> None:
        self._bytes = io.BytesIO(text.encode())

    @property
    def buffer(self) -> io.BytesIO:
        return self._bytes


def head(text: str) -> str:
    return text.split("\n", 1)[0]


def test_a_name_is_a_stack_and_a_path_is_a_file(run: Run, project: Path, small: Catalog) -> None:
    (project / "prod").write_text("not yaml: [", encoding="utf-8")
    (project / "other.yaml").write_text(FILE, encoding="utf-8")
    assert head(run("plan", "prod").out).startswith("prod   3 workloads")
    assert head(run("plan", "other.yaml").out).startswith("other   1 workload ")
    assert head(run("plan", "./other.yaml").out).startswith("other   1 workload ")
    assert run("plan", "./prod").err.startswith("error: prod: 1 problem")


def test_without_an_argument_every_stack_is_planned(
    run: Run, project: Path, small: Catalog
) -> None:
    ran = run("plan")
    heads = [line.split()[0] for line in ran.out.splitlines() if " workloads " in line]
    assert [name for name in heads if name in {"dev", "prod"}] == ["dev", "prod"]
    assert ran.code == 3, "one of them fits nowhere"


def test_a_file_may_come_by_standard_input(
    run: Run, small: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(FILE))
    assert head(run("plan", "-").out).startswith("stdin   1 workload   $588 a month")


def test_what_pulumi_prints_is_read_from_a_file_and_from_standard_input(
    run: Run, small: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workloads = {"chat": {"gpu": {"memory": "24GB"}, "clouds": ["aws"]}}
    text = json.dumps({"gputier:workloads": {"value": "", "objectValue": workloads}})
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    from_file = run("plan", "--config", str(tmp_path / "config.json"))
    monkeypatch.setattr(sys, "stdin", Stdin(text))
    from_stdin = run("plan", "--config", "-")
    assert (from_file.code, from_stdin.code) == (0, 0)
    assert head(from_stdin.out).startswith("stdin   1 workload")
    assert from_file.out.splitlines()[2:-1] == from_stdin.out.splitlines()[2:-1]


def test_the_first_line_of_a_choice_says_that_it_rests_on_a_borrowed_price(
    run: Run, project: Path, small: Catalog
) -> None:
    lines = run("plan", "dev").out.splitlines()
    (first,) = [line for line in lines if line.startswith("both ")]
    assert first.endswith("price borrowed")
    assert "1 choice rests on a borrowed price" in "\n".join(lines[:2])


def test_an_unknown_price_is_said_and_never_zero(run: Run, small: Catalog) -> None:
    ran = run("pick", "--gpu", "H100", "--region", "gcp:us-central1", "--exclude-gpu", "L4",
              "--capacity", "flex_start")  # fmt: skip
    assert ran.code == 0
    assert "price unknown" in head(ran.out)
    assert "$0" not in ran.out.split("around")[0]


def test_a_plan_in_which_something_fits_nowhere_is_still_printed_whole(
    run: Run, project: Path, small: Catalog
) -> None:
    ran = run("plan", "dev")
    assert ran.code == 3
    assert "\nplain " in ran.out
    assert "stacks/Pulumi.dev.yaml" in ran.err
    assert "6:5    never:\n         ^^^^^ no machine fits workload `never` (0 of 12)" in ran.err
    ran = run("plan", "dev", "--json")
    assert ran.code == 3
    assert json.loads(ran.out)["workloads"][1]["chosen"] is None
    assert "`relaxations`" in ran.err


def test_warnings_about_what_was_not_read_go_to_stderr(
    run: Run, project: Path, small: Catalog
) -> None:
    path = project / "stacks" / "Pulumi.prod.yaml"
    path.write_text("environment: [shared]\n" + PROD, encoding="utf-8")
    ran = run("plan", "prod")
    assert "note: stacks/Pulumi.prod.yaml takes config from ESC environments" in ran.err
    assert "ESC" not in ran.out


CLOCKS = {
    datetime.date(2026, 8, 26): "",
    datetime.date(2027, 2, 22): "",
    datetime.date(2027, 2, 23): "note: the catalogue's newest price is of 2026-08-26, 181 days ago",
    datetime.date(2026, 8, 25): "note: this machine's clock says 2026-08-25, and the catalogue's",
}


@pytest.mark.parametrize(("now", "note"), CLOCKS.items(), ids=map(str, CLOCKS))
def test_a_stale_clock_or_catalogue_is_a_note_and_changes_nothing(
    now: datetime.date,
    note: str,
    run: Run,
    project: Path,
    small: Catalog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = run("plan", "prod", "--json").out
    monkeypatch.setattr(inputs, "today", lambda: now)
    ran = run("plan", "prod", "--json")
    assert ran.out == expected
    assert ran.err.startswith(note)
    assert bool(ran.err) == bool(note)


def test_an_overlay_is_named_by_option_or_environment(
    run: Run, project: Path, small: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    overlay = project / "mine"
    overlay.mkdir()
    (overlay / "prices.csv").write_text(
        "provider,region,zone,instance_type,purchase,usd_per_hour,currency,native_per_hour,as_of,"
        "source,note\naws,us-east-1,,g6e.xlarge,on_demand,0.5,USD,0.5,2026-09-01,mine,\n",
        encoding="utf-8",
    )
    arguments = ("pick", "--gpu-memory", "48GB", "--region", "aws:us-east-1", "--json")
    by_option = run(*arguments, "--catalog", "mine")
    monkeypatch.setenv("GPUTIER_CATALOG", "mine")
    by_environment = run(*arguments)
    assert by_option.out == by_environment.out
    document = json.loads(by_option.out)
    assert document["catalog"]["id"] != ID
    assert document["catalog"]["as_of"] == "2026-09-01"
    assert document["workloads"][0]["chosen"]["usd_per_hour"] == 0.5


def why_not(run: Run, name: str, *target: str) -> list[str]:
    return run("plan", *target, "--why-not", name).out.splitlines()


def test_why_not_answers_for_each_workload(run: Run, project: Path, small: Catalog) -> None:
    answers = why_not(run, "p5.48xlarge", "prod")
    assert answers[0] == (
        "chat on p5.48xlarge: fits, but costs $55.04/h, 56.3 × the pick (g6.2xlarge, $0.98/h);"
        " place 4 of 4"
    )
    assert answers[-1] == "foundation on p5.48xlarge: this is the pick, $220.16/h in us-east-1"


def test_why_not_aligns_every_reason(run: Run, project: Path, small: Catalog) -> None:
    head, *reasons = why_not(run, "g6e.xlarge", "prod")[2:5]
    assert head == "tuner on g6e.xlarge: rejected by 2 rules (it costs $1.61/h in us-east-1)"
    assert [" ".join(line.split()) for line in reasons] == [
        "vCPU needs ≥ 8 vCPU has 4 vCPU → cpu.count: 4",
        "network needs ≥ 10 Gbps has 2.5 Gbps sustained, up to 20 Gbps"
        " → network.bandwidth: 2.5Gbps",
    ]
    for word in ("needs", "has", "→"):
        assert len({line.index(word) for line in reasons}) == 1


def test_why_not_says_when_the_cloud_is_not_allowed(
    run: Run, project: Path, small: Catalog
) -> None:
    (line, *_rest) = why_not(run, "Standard_NC4as_T4_v3", "prod")
    assert line == (
        "chat on Standard_NC4as_T4_v3: is sold by azure, and this workload allows aws only"
        "   → clouds: add azure"
    )


WRONG_TYPES = {
    "g6e.xlarg": "did you mean `g6e.xlarge`?",
    "P5.48XLARGE": "did you mean `p5.48xlarge`?",
    "H100": "`gputier catalog --gpu H100-80GB` lists the machines that carry it",
    "n1-standard-8": "name what it would carry: n1+nvidia-tesla-t4x1, …",
}


@pytest.mark.parametrize(("name", "hint"), WRONG_TYPES.items())
def test_why_not_of_no_type_helps_to_the_right_one(
    name: str, hint: str, run: Run, project: Path, small: Catalog
) -> None:
    ran = run("plan", "prod", "--why-not", name)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.rstrip().endswith(f"hint: {hint}")


WHY_NOT_FILES = {
    "an unknown price": (
        "gpu: {models: [H100]}\n    clouds: [aws, gcp]\n    zones: [use1-az1, us-central1-a]",
        "a3-edgegpu-8g",
        "fits, but its price is unknown, and priced machines come first; see the pick"
        " (p5.48xlarge, $55.04/h)",
    ),
    "plan only": (
        "gpu: {memory: 16GB}\n    clouds: [aws, azure]",
        "Standard_NC4as_T4_v3",
        "fits, but azure is plan only: shown, never locked; the pick (g4dn.xlarge, $0.53/h) can be"
        " deployed",
    ),
    "another preference": (
        "gpu: {memory: 24GB}\n    clouds: [aws]\n    prefer: speed",
        "g6.xlarge",
        "fits for $0.80/h, but comes after the pick (p5.48xlarge, $55.04/h) by speed; place 7 of 8",
    ),
}


@pytest.mark.parametrize(("body", "name", "answer"), WHY_NOT_FILES.values(), ids=WHY_NOT_FILES)
def test_why_not_says_what_else_than_the_price_decided(
    body: str, name: str, answer: str, run: Run, project: Path, small: Catalog
) -> None:
    (project / "w.yaml").write_text(f"workloads:\n  job:\n    {body}\n", encoding="utf-8")
    lines = why_not(run, name, "w.yaml")
    assert " ".join(line.strip() for line in lines) == f"job on {name}: {answer}"


def test_why_not_as_json_has_the_same_verdicts(run: Run, project: Path, small: Catalog) -> None:
    ran = run("plan", "prod", "--why-not", "g6e.xlarge", "--json")
    document = json.loads(ran.out)
    verdicts = [(w["name"], w["verdict"], len(w["reasons"])) for w in document["workloads"]]
    assert verdicts == [
        ("chat", "rejected", 1),
        ("tuner", "rejected", 2),
        ("foundation", "rejected", 9),
    ]


def test_explain_has_every_rejected_machine_with_every_reason(
    run: Run, project: Path, small: Catalog
) -> None:
    text = run("plan", "prod", "--explain", columns=160).out
    document = json.loads(run("plan", "prod", "--json").out)
    for workload in document["workloads"]:
        _, part = text.split(f"\n{workload['name']}: why\n")
        part = part.split(": why\n")[0]
        rejected = part.split("rejected, the nearest first")[1]
        for row in workload["rejected"]:
            assert f"    {row['instance_type']} " in rejected
        count = sum(len(row["reasons"]) for row in workload["rejected"])
        titles = {reason["title"] for row in workload["rejected"] for reason in row["reasons"]}
        assert sum(rejected.count(f"  {title}  ") for title in titles) >= count


def test_several_stacks_as_json_are_a_document_each(
    run: Run, project: Path, small: Catalog
) -> None:
    decoder = json.JSONDecoder()
    rest = run("plan", "--json").out
    names: list[str] = []
    while rest.strip():
        document: dict[str, Any]
        document, end = decoder.raw_decode(rest.lstrip())
        names.append(document["name"])
        rest = rest.lstrip()[end:]
    assert names == ["dev", "prod"]


BROKEN = {
    "a tab": "workloads:\n\tchat: {}\n",
    "a duplicate key": "workloads:\n  a: {}\n  a: {}\n",
    "nothing": "",
    "a list": "- a\n",
    "not YAML": "workloads: [\n",
    "an alias bomb": "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
    "workloads: [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n",
    "wrong kinds": "workloads: {a: {gpu: 3, nodes: many, capacity: [1], scale: x, model: []}}\n",
    "unknown words": "workloads: {a: {teir: mid, gpu: {modles: [x]}}}\n",
    "an unknown GPU": "workloads: {a: {gpu: {models: [H1000]}}}\n",
    "an unknown model": "workloads: {a: {model: {name: lama-3.1-8b}}}\n",
    "an unknown region": "workloads: {a: {regions: {aws: [us-east-11]}}}\n",
    "a secret": "workloads: {a: {gpu: {secure: AAAB}}}\n",
}


@pytest.mark.parametrize("command", ["plan", "size", "lock"])
@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_answered_in_our_words(
    text: str, command: str, run: Run, project: Path, small: Catalog
) -> None:
    (project / "w.yaml").write_text(text, encoding="utf-8")
    ran = run(command, "w.yaml")
    if command == "size" and ("[H1000]" in text or "us-east-11" in text):
        assert ran.code == 0, "a size needs neither GPU names nor regions"
        return
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    for foreign in ("Traceback", "pydantic", "validation error", "input_value", "yaml."):
        assert foreign not in ran.err


def test_a_file_that_is_not_text_is_refused(run: Run, project: Path, small: Catalog) -> None:
    (project / "w.yaml").write_bytes(b"\xff\xfe\x00")
    ran = run("plan", "w.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert "Traceback" not in ran.err


def test_a_cheaper_machine_that_nobody_confirms_is_always_shown(
    run: Run, project: Path, small: Catalog
) -> None:
    (project / "mine").mkdir()
    (project / "mine" / "prices.csv").write_text(
        "provider,region,zone,instance_type,purchase,usd_per_hour,currency,as_of,source\n"
        "gcp,us-central1,,a3-highgpu-8g,on_demand,11,USD,2026-08-01,mine\n",
        encoding="utf-8",
    )
    arguments = ("--gpu", "H100", "--catalog", "mine")
    text = run("pick", *arguments).out
    assert text.startswith("p5.48xlarge ")
    assert (
        "a3-highgpu-8g can be had: $11.00/h in gcp us-central1, but no source lists it in any"
        in " ".join(text.split())
    )
    answer = run("pick", *arguments, "--why-not", "a3-highgpu-8g").out
    assert "fits for $11.00/h, but no source confirms where it is sold; see the pick" in answer


def test_only_so_many_floors_are_priced_on_one_screen(
    run: Run, project: Path, small: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = (
        "pick",
        "--purpose",
        "vdi",
        "--tier",
        "entry",
        "--cpu-count",
        "8",
        "--cloud",
        "gcp",
    )
    whole = run(*arguments).out
    binding = len(json.loads(run(*arguments, "--json").out)["workloads"][0]["floor_costs"])
    assert binding > 1
    assert "more floor" not in whole
    monkeypatch.setattr(plan_text, "MOST_FLOORS", binding - 1)
    assert "and 1 more floor, with --explain" in run(*arguments).out


def test_json_keeps_the_characters_people_read(run: Run, project: Path, small: Catalog) -> None:
    assert "×" in run("size", "prod", "--json").out
