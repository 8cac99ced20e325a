"""Where declarations come from: stacks, files, standard input, `pulumi config --json`."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gputier import errors
from gputier.workload import (
    Declaration,
    digest,
    find_stacks,
    read_config_json,
    read_file,
    read_stack,
    read_text,
    resolve,
    yaml12,
)
from gputier.workload.read import is_file

CHAT = "config:\n  gputier:workloads:\n    chat: {gpu: {count: 1}}\n"
PLAIN = "workloads:\n  chat: {gpu: {count: 1}}\n"


def told(call: Callable[[], object]) -> str:
    with pytest.raises(errors.InvalidInput) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("argument", "file"),
    [
        ("-", True),
        ("dev", False),
        ("dev.1", False),
        ("yaml", False),
        ("dev.yaml", True),
        ("dev.yml", True),
        ("dev.json", True),
        ("./dev", True),
        ("stacks/dev", True),
        ("/dev", True),
        ("org/project/dev", True),
        ("--", False),
        ("", False),
    ],
)
def test_an_argument_names_a_file_or_a_stack_by_its_looks(argument: str, file: bool) -> None:
    assert is_file(argument) is file


def test_a_stack_is_read_from_the_project_above(project: Callable[..., Path]) -> None:
    top = project({"dev": CHAT, "prod": CHAT})
    deep = top / "stacks" / "deep" / "er"
    deep.mkdir(parents=True)
    read = read_stack("dev", deep)
    assert (read.name, read.source, read.environment) == ("dev", "stacks/Pulumi.dev.yaml", "dev")
    assert list(read.workloads) == ["chat"]
    assert read.workloads["chat"].gpu.count == 1
    assert Path(read.folder) == top / "stacks"
    assert find_stacks(deep) == ("dev", "prod")


def test_the_nearest_project_counts(project: Callable[..., Path]) -> None:
    top = project({"dev": CHAT})
    inner = top / "inner"
    inner.mkdir()
    (inner / "Pulumi.yaml").write_text("name: inner\nruntime: yaml\n", encoding="utf-8")
    (inner / "Pulumi.qa.yml").write_text(CHAT, encoding="utf-8")
    assert find_stacks(inner) == ("qa",)
    assert read_stack("qa", inner).source == "inner/Pulumi.qa.yml"


def test_an_old_project_names_the_folder_of_its_stacks_as_config(
    project: Callable[..., Path],
) -> None:
    top = project({"dev": CHAT}, "name: demo\nruntime: python\nconfig: stacks\n")
    assert find_stacks(top) == ("dev",)


@pytest.mark.parametrize(
    ("stack", "text", "environment"),
    [
        ("prod", CHAT, "prod"),
        ("production", CHAT, "production"),
        ("staging", CHAT, "dev"),
        ("prod-eu", CHAT, "dev"),
        ("prod", f"{CHAT}  gputier:environment: staging\n", "staging"),
        ("dev", f"{CHAT}  gputier:environment: prod\n", "prod"),
    ],
)
def test_the_environment_is_declared_or_follows_the_stacks_name(
    project: Callable[..., Path], stack: str, text: str, environment: str
) -> None:
    top = project({stack: text})
    assert read_stack(stack, top).environment == environment


def test_every_stack_is_read_when_none_is_named(project: Callable[..., Path]) -> None:
    other = "config:\n  web:replicas: 3\n"
    top = project(
        {"prod": CHAT, "dev": CHAT, "web": other, "empty": "", "salt": "encryptionsalt: x"}
    )
    assert [read.name for read in resolve(None, top)] == ["dev", "prod"]


def test_the_problems_of_every_stack_are_told_together(project: Callable[..., Path]) -> None:
    wrong = "config:\n  gputier:workloads: {a: {nodes: 0}}\n"
    top = project({"dev": wrong, "prod": wrong, "qa": CHAT})
    text = told(lambda: resolve(None, top))
    assert "stacks/Pulumi.dev.yaml: 1 problem" in text
    assert "stacks/Pulumi.prod.yaml: 1 problem" in text


def test_an_unknown_stack_gets_the_nearest_name_and_the_list(project: Callable[..., Path]) -> None:
    top = project({"dev": CHAT, "prod": CHAT})
    assert told(lambda: resolve("prd", top)) == (
        "error: no stack `prd` in stacks\nhint: did you mean `prod`? stacks here: dev and prod"
    )
    assert told(lambda: resolve("qa", top)) == (
        "error: no stack `qa` in stacks\nhint: stacks here: dev and prod"
    )
    (top / "qa").write_text(PLAIN, encoding="utf-8")
    assert "to read the file of that name: ./qa" in told(lambda: resolve("qa", top))


def test_no_project_is_said_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for argument in (None, "dev"):
        text = told(lambda argument=argument: resolve(argument, tmp_path))
        assert "no Pulumi.yaml in" in text
        assert "name a file: gputier plan workloads.yaml" in text
    assert find_stacks(tmp_path) == ()


def test_a_project_without_stacks_or_workloads_says_so(project: Callable[..., Path]) -> None:
    top = project({})
    assert "no stack has settings in stacks" in told(lambda: resolve(None, top))
    assert "no stack has settings in stacks" in told(lambda: resolve("dev", top))
    (top / "stacks" / "Pulumi.web.yaml").write_text("config: {web:x: 1}\n", encoding="utf-8")
    text = told(lambda: resolve(None, top))
    assert "no stack of stacks declares workloads: web" in text
    assert "stacks/Pulumi.web.yaml declares no workloads" in told(lambda: resolve("web", top))


def test_other_projects_keys_and_encrypted_values_are_left_alone(
    project: Callable[..., Path],
) -> None:
    text = (
        "encryptionsalt: v1:abc\nsecretsprovider: passphrase\n"
        "config:\n"
        "  aws:region: us-east-1\n"
        "  other:token:\n    secure: AAABAJ\n"
        "  other:odd: {1: x, y: !custom z, octal: 010, y: again}\n"
        "  other:nested: [{a: {secure: AAABAJ}}]\n"
        "  gputier:workloads:\n    chat: {gpu: {count: 1}}\n"
    )
    top = project({"dev": text})
    assert list(read_stack("dev", top).workloads) == ["chat"]


def test_faults_and_secrets_below_our_own_keys_are_refused(project: Callable[..., Path]) -> None:
    text = (
        "config:\n"
        "  gputier:environment: {secure: AAAB}\n"
        "  gputier:workloads:\n"
        "    a: {nodes: 010, gpu: {secure: AAAB}, tier: entry, tier: mid}\n"
    )
    top = project({"dev": text})
    told_text = told(lambda: read_stack("dev", top))
    assert "4 problems" in told_text
    assert "an encrypted value in `gputier:environment`" in told_text
    assert "an encrypted value in `gputier:workloads`" in told_text
    assert "`010` begins with 0" in told_text
    assert "key `tier` is given twice, first in line 4" in told_text
    assert "AAAB" not in "".join(line for line in told_text.splitlines() if "secure" not in line)


def test_a_misspelt_key_of_ours_is_refused(project: Callable[..., Path]) -> None:
    top = project({"dev": "config:\n  gputier:workload: {a: }\n"})
    text = told(lambda: read_stack("dev", top))
    assert "unknown key `gputier:workload`" in text
    assert "did you mean `gputier:workloads`?" in text
    assert "declares no workloads" not in text, "the misspelt key is the reason"


def test_keys_are_known_in_each_of_pulumis_spellings(project: Callable[..., Path]) -> None:
    text = "config:\n  gputier:config:workloads: {a: {nodes: 2}}\n"
    assert read_stack("dev", project({"dev": text})).workloads["a"].nodes == 2


def test_bare_keys_belong_to_the_project(project: Callable[..., Path]) -> None:
    own = "config:\n  workloads: {a: {nodes: 2}}\n"
    top = project({"dev": own}, "name: gputier\nruntime: python\nstackConfigDir: stacks\n")
    assert read_stack("dev", top).workloads["a"].nodes == 2
    (top / "Pulumi.yaml").write_text("name: web\nstackConfigDir: stacks\n", encoding="utf-8")
    assert "declares no workloads" in told(lambda: read_stack("dev", top))


@pytest.mark.parametrize(
    ("config", "declared", "regions"),
    [
        ("aws:region: us-west-2", "", {"aws": ("us-west-2",)}),
        ("gcp:region: us-central1", "", {"gcp": ("us-central1",)}),
        ("aws:region: us-west-2", "clouds: [gcp]", None),
        ("aws:region: us-west-2", "clouds: gcp", None),
        ("aws:region: us-west-2", "regions: {aws: [eu-west-1]}", {"aws": ("eu-west-1",)}),
        (
            "aws:region: us-west-2",
            "regions: {gcp: [us-central1]}",
            {"gcp": ("us-central1",)},
        ),
        (
            "aws:region: us-west-2",
            "clouds: [aws, gcp], regions: {gcp: [us-central1]}",
            {"gcp": ("us-central1",), "aws": ("us-west-2",)},
        ),
        ("aws:region: us-west-2\n  gputier:defaults: {regions: {aws: eu-west-1}}", "",
         {"aws": ("eu-west-1",)}),
        ("other:x: 1", "", None),
    ],
)  # fmt: skip
def test_the_providers_region_is_the_clouds_where_nothing_else_is_said(
    project: Callable[..., Path], config: str, declared: str, regions: Any
) -> None:
    text = f"config:\n  {config}\n  gputier:workloads:\n    a: {{{declared}}}\n"
    assert read_stack("dev", project({"dev": text})).workloads["a"].regions == regions


def test_a_region_that_cannot_be_read_is_a_warning(project: Callable[..., Path]) -> None:
    text = "config:\n  aws:region: {secure: AAAB}\n  gputier:workloads: {a: }\n"
    read = read_stack("dev", project({"dev": text}))
    assert read.workloads["a"].regions is None
    assert read.warnings == (
        "`aws:region` is no plain region's name, so it does not limit where aws machines are"
        " looked for",
    )


def test_config_from_elsewhere_is_a_warning_that_names_the_way_out(
    project: Callable[..., Path],
) -> None:
    pulumi = (
        "name: demo\nruntime: python\nstackConfigDir: stacks\n"
        "config:\n  aws:region: {value: us-east-1}\n  gputier:defaults: {default: {}}\n  web:x: 1\n"
    )
    top = project({"dev": f"environment: [team/dev]\n{CHAT}", "prod": CHAT}, pulumi)
    way_out = "pulumi config --json --open | gputier plan --config -"
    first, second = read_stack("dev", top).warnings
    assert first.startswith("stacks/Pulumi.dev.yaml takes config from ESC environments")
    assert second.startswith("Pulumi.yaml sets `aws:region` and `gputier:defaults` for every stack")
    assert first.endswith(way_out)
    assert second.endswith(way_out)
    assert len(read_stack("prod", top).warnings) == 1


def test_what_the_stack_sets_itself_needs_no_warning(project: Callable[..., Path]) -> None:
    pulumi = "name: demo\nstackConfigDir: stacks\nconfig: {aws:region: us-east-1}\n"
    text = f"environment: []\n{CHAT}  aws:region: us-west-2\n"
    assert read_stack("dev", project({"dev": text}, pulumi)).warnings == ()


def test_text_that_the_cli_stored_is_read_as_the_json_it_is(project: Callable[..., Path]) -> None:
    text = (
        "config:\n"
        '  gputier:max_price_age_days: "30"\n'
        '  gputier:discounts: \'[{"cloud": "aws", "families": ["p5"], "percent": 10,'
        ' "reason": "x"}]\'\n'
        '  gputier:workloads: \'{"a": {"nodes": "2"}}\'\n'
    )
    read = read_stack("dev", project({"dev": text}))
    assert read.workloads["a"].nodes == 2
    assert read.max_price_age_days == 30
    assert read.discounts[0].percent == 10


def test_a_mistake_in_stored_json_is_placed_at_the_text(project: Callable[..., Path]) -> None:
    text = 'config:\n  gputier:workloads: \'{"a": {"nodes": 0}}\'\n'
    assert "2:22" in told(lambda: read_stack("dev", project({"dev": text})))


def test_stored_text_that_is_broken_is_said_once() -> None:
    text = told(lambda: read_text("workloads: '{\"a\": '\n", "f.yaml"))
    assert text.count("hint") <= 1
    assert "in the text of `workloads`: the file ends too early" in text
    assert "1:12" in text


def test_defaults_fill_in_only_where_a_workload_is_silent() -> None:
    read = read_text(
        "defaults: {clouds: aws, zones: [us-east-1a], capacity: spot, prefer: value,"
        " regions: {aws: us-east-1, gcp: us-central1}}\n"
        "workloads:\n"
        "  silent:\n"
        "  outspoken: {clouds: [gcp], zones: [us-central1-a], capacity: on_demand, prefer: price}\n"
        "  null-is-silent: {clouds: null, capacity: ~}\n",
        "f.yaml",
    )
    silent, outspoken, empty = read.workloads.values()
    assert silent == empty
    assert silent.clouds == ("aws",)
    assert silent.regions == {"aws": ("us-east-1",)}
    assert silent.zones == ("us-east-1a",)
    assert (silent.capacity[0].use, silent.prefer) == ("spot", "value")
    assert outspoken.clouds == ("gcp",)
    assert outspoken.regions == {"gcp": ("us-central1",)}
    assert outspoken.zones == ("us-central1-a",)
    assert (outspoken.capacity[0].use, outspoken.prefer) == ("on_demand", "price")


def test_workloads_keep_the_order_of_the_file() -> None:
    read = read_text("workloads: {zeta: , alpha: , mid: }", "f.yaml")
    assert list(read.workloads) == ["zeta", "alpha", "mid"]


@pytest.mark.parametrize("name", ["a", "a1", "chat-7b", "x" * 40])
def test_names_that_can_name_resources_are_taken(name: str) -> None:
    assert list(read_text(f"workloads: {{{name}: }}", "f.yaml").workloads) == [name]


@pytest.mark.parametrize("name", ["A", "1a", "a_b", "a-", "-a", "a.b", "x" * 41, "ä", '""', "a b"])
def test_names_that_cannot_are_refused_with_the_rule(name: str) -> None:
    text = told(lambda: read_text(f"workloads: {{{name}: {{}}}}", "f.yaml"))
    assert "must be lower-case letters, digits and dashes" in text


def test_a_stacks_own_file_may_be_named_as_a_file(project: Callable[..., Path]) -> None:
    top = project({"prod": CHAT})
    (read,) = resolve("stacks/Pulumi.prod.yaml", top)
    assert (read.name, read.environment) == ("prod", "prod")
    assert read.workloads == read_stack("prod", top).workloads


def test_a_plain_file_is_read_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w").mkdir()
    path = tmp_path / "w" / "my.yaml"
    path.write_text("workloads: {a: {model: {config: c.json}}}\n", encoding="utf-8")
    (read,) = resolve("w/my.yaml", tmp_path)
    assert (read.name, read.source, read.environment) == ("my", "w/my.yaml", "dev")
    model = read.workloads["a"].model
    assert model is not None
    assert model.config_path == Path("w/c.json")


def test_json_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"workloads": {"a": {"nodes": 2}}}, indent="\t"), encoding="utf-8")
    assert read_file(path).workloads["a"].nodes == 2


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Stdin:
        buffer = io.BytesIO(PLAIN.encode())

    monkeypatch.setattr("sys.stdin", Stdin())
    (read,) = resolve("-", tmp_path)
    assert (read.name, read.source) == ("stdin", "<stdin>")
    assert list(read.workloads) == ["chat"]


def test_standard_input_without_end_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Endless(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            assert size > 0, "reading to the end would never come back"
            return b"#" * size

    class Stdin:
        buffer = Endless()

    monkeypatch.setattr("sys.stdin", Stdin())
    assert "at most 1 MiB" in told(lambda: resolve("-", tmp_path))


def test_a_missing_file_gets_the_nearest_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "workloads.yaml").write_text(PLAIN, encoding="utf-8")
    assert told(lambda: resolve("./workload.yaml", tmp_path)) == (
        "error: there is no file workload.yaml\nhint: did you mean `workloads.yaml`?"
    )
    assert told(lambda: resolve("no/w.yaml", tmp_path)) == (
        "error: there is no file no/w.yaml\nhint: there is no folder no"
    )


def test_a_stack_with_a_slash_before_it_is_met_with_its_name(project: Callable[..., Path]) -> None:
    top = project({"dev": CHAT})
    assert "for the stack of that name: dev" in told(lambda: resolve("org/demo/dev", top))


def test_a_folder_and_the_projects_own_file_are_no_declarations(
    project: Callable[..., Path],
) -> None:
    top = project({"dev": CHAT})
    assert told(lambda: resolve("stacks/", top)).startswith("error: stacks is a folder")
    assert told(lambda: resolve("./Pulumi.yaml", top)) == (
        "error: Pulumi.yaml is the project's own file\nhint: name a stack (dev), or a file with"
        " `workloads`"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(PLAIN, encoding="utf-8")
    path.chmod(0)
    assert "may not be read by you" in told(lambda: read_file(path))


def test_a_huge_file_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(50 * 2**20)  # sparse: nothing of it exists but its size
    monkeypatch.setattr(yaml12, "decode", None)  # reading on would end in it
    text = told(lambda: read_file(path))
    assert "50.0 MiB; a declaration is at most 1 MiB" in text


@pytest.mark.parametrize("text", ["[]", "- a\n", "5", "just text"])
def test_a_file_that_is_no_map_says_what_one_is(text: str) -> None:
    assert "a declaration is a map with the key `workloads`" in told(
        lambda: read_text(text, "f.yaml")
    )


def test_a_stack_whose_config_is_no_map_is_refused(project: Callable[..., Path]) -> None:
    top = project({"dev": "config: [1]\n"})
    assert "`config` must be a map" in told(lambda: read_stack("dev", top))


def test_bytes_are_read_as_utf8() -> None:
    assert read_text(b"\xef\xbb\xbf" + PLAIN.encode(), "f.yaml").workloads["chat"].gpu.count == 1
    assert "does not belong in a text file" in told(lambda: read_text(b"a: \xff\n", "f.yaml"))


CONFIG = {
    "aws:region": {"value": "us-east-1", "secret": False},
    "other:token": {"secret": True},
    "gputier:environment": {"value": "prod", "secret": False},
    "gputier:max_price_age_days": {"value": "30", "secret": False},
    "gputier:workloads": {
        "value": '{"chat":{"gpu":{"count":1}}}',
        "objectValue": {"chat": {"gpu": {"count": 1}}},
        "secret": False,
    },
}


def test_the_clis_own_json_is_read() -> None:
    read = read_config_json(json.dumps(CONFIG, indent=2))
    assert (read.name, read.environment, read.max_price_age_days) == ("stdin", "prod", 30)
    assert read.workloads["chat"].gpu.count == 1
    assert read.workloads["chat"].regions == {"aws": ("us-east-1",)}
    assert read_config_json(json.dumps(CONFIG).encode()).workloads == read.workloads


def test_the_clis_json_without_objects_is_read_from_the_text() -> None:
    config = {"gputier:workloads": {"value": '{"chat":{"nodes":2}}'}}
    assert read_config_json(json.dumps(config)).workloads["chat"].nodes == 2


@pytest.mark.parametrize(
    "entry",
    [{"secret": True}, {"value": "[secret]", "secret": True}, {"objectValue": {}, "secret": True}],
)
def test_the_clis_json_with_a_secret_of_ours_is_refused(entry: dict[str, Any]) -> None:
    text = told(lambda: read_config_json(json.dumps({"gputier:workloads": entry})))
    assert "an encrypted value in `gputier:workloads`" in text
    assert "1 problem" in text


def test_a_mistake_in_the_clis_json_is_placed_in_it() -> None:
    config = {"gputier:workloads": {"objectValue": {"chat": {"nodes": 0}}, "secret": False}}
    text = told(lambda: read_config_json(json.dumps(config, indent=2)))
    assert "<stdin>: 1 problem" in text
    assert '5:18   "nodes": 0' in text


@pytest.mark.parametrize("text", ["[]", '{"a": 1}', '{"workloads": {"chat": {}}}', "5"])
def test_json_of_another_kind_is_refused(text: str) -> None:
    assert "pulumi config --json" in told(lambda: read_config_json(text)) or text in ("[]", "5")
    told(lambda: read_config_json(text))


def test_the_same_declaration_has_one_digest_wherever_it_was_read(
    project: Callable[..., Path],
) -> None:
    body = {
        "gpu": {"memory": "24GB"},
        "capacity": {"use": "capacity_block", "instance_type": "p5.48xlarge", "zone": "use1-az4",
                     "start": "2026-11-01"},
    }  # fmt: skip
    stack = f"config: {{aws:region: us-east-1, gputier:workloads: {{a: {json.dumps(body)}}}}}"
    # What the engine hands to a program: dates in Go's words, numbers as JSON has them.
    engine = {**body, "capacity": {**body["capacity"], "start": "2026-11-01 00:00:00 +0000 UTC"}}
    config = {
        "aws:region": {"value": "us-east-1"},
        "gputier:workloads": {"objectValue": {"a": engine}},
    }
    top = project({"dev": stack})
    reads: list[Declaration] = [read_stack("dev", top), read_config_json(json.dumps(config))]
    assert len({digest(r.workloads["a"], r.environment, r.discounts) for r in reads}) == 1


def test_positions_are_kept_for_those_who_complain_later() -> None:
    read = read_text(
        "defaults: {clouds: [aws]}\nworkloads:\n  a:\n    gpu: {models: [H1OO]}\n", "f"
    )
    at = read.positions.at("workloads.a.gpu.models[0]")
    assert at is not None
    assert (at.line, at.column, at.length) == (4, 20, 4)
    filled = read.positions.at("workloads.a.clouds")
    assert filled is not None
    assert (filled.line, filled.column) == (1, 20)
    silent = read.positions.at("workloads.a.nodes")
    assert silent is not None
    assert (silent.line, silent.column) == (3, 3)
