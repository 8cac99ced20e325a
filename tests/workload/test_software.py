"""What may run on a machine: safe for a shell, never a secret, small enough for user data."""

from __future__ import annotations

from typing import Any

import pytest

from gputier import errors
from gputier.workload import Software, Workload, read_text
from gputier.workload.problems import HIDDEN
from gputier.workload.secrets import secret_entry, secret_text
from gputier.workload.software import MOST_BYTES

KEY = "ssh-ed25519 " + "A" * 68


def made(**software: Any) -> Software:
    """What a workload with this software holds."""
    fields: dict[str, Any] = {"software": software}
    return Workload(**fields).software


def refused(software: dict[str, Any]) -> errors.Problem:
    with pytest.raises(errors.InvalidInput) as caught:
        made(**software)
    (problem,) = caught.value.problems
    return problem


def test_a_word_stands_for_the_field_that_says_most() -> None:
    found = made(
        image="ami-0abc12345678def00",
        container="nvcr.io/nvidia/pytorch:25.10-py3",
        proxy="http://proxy.internal:3128",
        packages="git",
        ssh_keys=KEY,
    )
    assert found.image
    assert found.image.id == "ami-0abc12345678def00"
    assert found.container
    assert found.container.image == "nvcr.io/nvidia/pytorch:25.10-py3"
    assert found.proxy
    assert found.proxy.http == "http://proxy.internal:3128"
    assert (found.packages, found.ssh_keys) == (("git",), (KEY,))


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ("pytorch==2.9", ("pytorch", "2.9", "")),
        ("pytorch == 2.9.1+cu126", ("pytorch", "2.9.1", "cu126")),
        ("jax==0.10.2", ("jax", "0.10.2", "")),
        ("tensorflow==2.21", ("tensorflow", "2.21", "")),
    ],
)
def test_a_framework_is_a_name_a_version_and_perhaps_a_build(
    written: str, parts: tuple[str, str, str]
) -> None:
    found = made(framework=written)
    assert (found.framework_name, found.framework_version, found.framework_build) == parts


REFUSALS: dict[str, tuple[dict[str, Any], str, str, str]] = {
    # what is written: path, a part of the message, a part of the hint
    "torch": ({"framework": "torch==2.9"}, "framework", "names `torch`", "`pytorch==2.9`"),
    "no version": ({"framework": "pytorch"}, "framework", "one version exactly", "pytorch==2.9"),
    "a range": ({"framework": "pytorch>=2"}, "framework", "one version exactly", "pytorch==2.9"),
    "another": ({"framework": "mxnet==1"}, "framework", "must be one of pytorch", "such as"),
    "a build of jax": ({"framework": "jax==0.8+cu126"}, "framework", "only pytorch", "jax==0.8"),
    "no image": ({"image": "my image"}, "image", "must be an image such as ami-", ""),
    "a shell in an image": ({"image": "ami-0abc1234; reboot"}, "image", "must be an image", ""),
    "a shell in a container": ({"container": "a;reboot"}, "container", "container image", ""),
    "an unknown system": (
        {"image": {"os": "noble"}}, "image.os", "must be ubuntu-22.04", "ubuntu-24.04"),
    "a driver's package": (
        {"packages": ["libnvidia-gl-580"]}, "packages[0]", "replace the driver", "image.driver"),
    "an option as a package": ({"packages": ["-oDebug"]}, "packages[0]", "a package's name", ""),
    "two things to do": ({"run": "a", "container": "b"}, "container", "does one thing", "keep one"),
    "horovod alone": ({"mpi": "horovod"}, "mpi", "built into pytorch", "declare `framework`"),
    "horovod and jax": (
        {"mpi": "horovod", "framework": "jax==0.8"}, "mpi", "built into pytorch", "framework"),
    "a proxy of nothing": ({"proxy": {"no_proxy": ["a"]}}, "proxy", "names no proxy", "http"),
    "a private key": (
        {"ssh_keys": "-----BEGIN OPENSSH PRIVATE KEY-----"}, "ssh_keys", "a private key", ".pub"),
    "no key": ({"ssh_keys": ["ssh-rsa short"]}, "ssh_keys[0]", "a public SSH key", ""),
    "a port": ({"container": {"image": "a", "ports": [0]}}, "container.ports[0]", "a port", ""),
    "a variable": (
        {"container": {"image": "a", "env": {"a b": "c"}}}, "container.env", "variable's name", ""),
    "a fraction": (
        {"container": {"image": "a", "env": {"RATE": 0.5}}}, "container.env", "text", 'quote it'),
    "a bell": ({"run": "echo \a"}, "run", "control characters", ""),
    "nothing": ({"run": "  "}, "run", "is empty", "leave it out"),
    "a long script": ({"run": "x" * 4001}, "run", "longer than 4,000 bytes", "fetch it"),
    "too much together": (
        {"run": "x" * 4000, "before_stop": "y" * 2000}, "", f"room for {MOST_BYTES:,}", "fetch"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("software", "path", "message", "hint"), REFUSALS.values(), ids=REFUSALS.keys()
)
def test_what_no_script_should_be_given_is_refused(
    software: dict[str, Any], path: str, message: str, hint: str
) -> None:
    problem = refused(software)
    assert problem.path == f"software.{path}".rstrip(".")
    assert message in problem.message
    assert hint in problem.hint


SECRETS: dict[str, dict[str, Any]] = {
    "a token in a script": {"run": "export HF_TOKEN=abc123"},
    "a token by its shape": {"run": "login hf_" + "a" * 24},
    "an access key": {"before_stop": "x AKIA" + "A" * 16},
    "a flag's value": {"run": "serve --api-key topsecret"},
    "a password in a proxy": {"proxy": "http://me:pass@proxy:1"},
    "a password in a mirror": {"mirrors": {"pip": "https://me:pass@mirror/simple"}},
    "a password in an image": {"image": "https://me:pass@registry/x"},
    "a variable by its name": {"container": {"image": "a", "env": {"DB_PASSWORD": "hunter2"}}},
    "a variable by its shape": {"container": {"image": "a", "env": {"X": "ghp_" + "a" * 30}}},
    "an argument": {"container": {"image": "a", "args": ["--token=topsecret"]}},
    "a key": {"run": "echo '-----BEGIN RSA PRIVATE KEY-----'"},
}


@pytest.mark.parametrize("software", SECRETS.values(), ids=SECRETS.keys())
def test_a_secret_is_refused_and_never_repeated(software: dict[str, Any]) -> None:
    problem = refused(software)
    assert "a secret never becomes text" in problem.message
    assert "by reference" in problem.hint
    for word in ("abc123", "aaaa", "AAAA", "topsecret", "pass@", "hunter2"):
        assert word not in problem.message + problem.hint


@pytest.mark.parametrize(
    "text",
    [
        "export HF_TOKEN=$(aws secretsmanager get-secret-value --secret-id hf)",
        "export HF_TOKEN=$TOKEN",
        "curl --token-file /run/token https://host:8080/path",
        "git clone ssh://git@github.com/a/b",
        "git clone https://x:$TOKEN@host/a",
        "python run.py --max-tokens 4096 --eos_token=<eos>",
        "the token is read from a file",
        "AUTH=none serve",
    ],
)
def test_a_reference_is_no_secret(text: str) -> None:
    assert secret_text(text) == ""
    assert made(run=text).run == text


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("PASSWORD", "x1", True),
        ("MY_API_KEY", "x1", True),
        ("AWS_SECRET_ACCESS_KEY", "x1", True),
        ("TOKEN", "/run/secrets/token", False),
        ("TOKEN", "arn:aws:secretsmanager:eu-west-1:1:secret:a", False),
        ("TOKENIZERS_PARALLELISM", "false", False),
        ("EOS_TOKEN", "end", False),
        ("TOKEN", "", False),
        ("MAX_TOKENS", "4096", False),
    ],
)
def test_a_name_counts_only_with_a_value_that_is_no_reference(
    name: str, value: str, secret: bool
) -> None:
    assert bool(secret_entry(name, value)) is secret


def test_the_line_of_a_file_that_holds_a_secret_is_never_printed() -> None:
    text = (
        "workloads:\n  chat:\n    software:\n      container:\n        image: a\n"
        "        env: {DB_PASSWORD: hunter2}\n        ports: [0]\n"
        "    nodez: 1\n"
    )
    with pytest.raises(errors.InvalidInput) as caught:
        read_text(text, "w.yaml")
    said = str(caught.value)
    assert "hunter2" not in said
    assert HIDDEN in said
    assert "nodez: 1" in said  # other lines are shown as ever


def test_no_other_problem_shows_the_line_either() -> None:
    text = 'workloads: {chat: {software: {container: {image: a, env: {PWD: "hunter2"}}}, nodez: 1}}'
    with pytest.raises(errors.InvalidInput) as caught:
        read_text(text, "w.yaml")
    assert len(caught.value.problems) == 2
    assert "hunter2" not in str(caught.value)


def framework(name: str) -> dict[str, Any]:
    return {"software": {"framework": name}}


def test_a_format_whose_kernels_are_pytorchs_asks_for_pytorch() -> None:
    fields: dict[str, Any] = {
        "model": {"name": "llama-3.1-8b", "precision": "nf4", "context_tokens": 4096}
    }
    with pytest.raises(errors.InvalidInput, match="has kernels for pytorch only"):
        Workload(**fields, **framework("jax==0.8"))
    assert Workload(**fields, **framework("pytorch==2.9"))


def test_numbers_and_truths_of_a_variable_are_text() -> None:
    found = made(container={"image": "a", "env": {"N": 4, "ON": True}})
    assert found.container
    assert found.container.env == {"N": "4", "ON": "true"}
