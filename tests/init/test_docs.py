"""docs/ci.md and a new project's README say what the workflows need, and nothing else."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.conftest import ROOT
from tests.init.guide import commands
from tests.init.test_workflows import project

from gputier.cli.init_files import FORGES

CI = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
NAMED = re.compile(r"(?:vars|secrets)\.(\w+)|\$(AWS_\w+_ROLE|GCP_\w+_SERVICE_ACCOUNT|GCP_W\w+)")


def needed() -> set[str]:
    """Every variable and secret that a workflow reads and somebody has to set."""
    found = {"GITLAB_TOKEN"}
    for path, text in project(("aws", "gcp")).items():
        if path.startswith((".github", ".gitlab")):
            found |= {a or b for a, b in NAMED.findall(text)}
    return found


def test_every_variable_and_secret_is_explained_where_it_is_set() -> None:
    assert len(needed()) == 8
    (table,) = re.findall(r"^\| name \| where \| on \|\n(.*?)\n\n", CI, re.DOTALL | re.MULTILINE)
    assert set(re.findall(r"`([A-Z][A-Z_]+)`", table)) == needed()
    readme = project(("aws", "gcp"))["README.md"]
    assert set(re.findall(r"`([A-Z][A-Z_]+)`", readme)) == needed()


def test_every_workflow_file_is_in_the_table() -> None:
    for path in (*FORGES["github"], *FORGES["gitlab"]):
        assert f"`{path}`" in CI, path


@pytest.mark.parametrize("name", ["github-preview", "github-deploy", "gitlab-deploy"])
def test_a_trust_policy_is_json_and_trusts_one_repository(name: str) -> None:
    (statement,) = policy(name)["Statement"]
    assert statement["Action"] == "sts:AssumeRoleWithWebIdentity"
    said = statement["Condition"]["StringEquals"]
    (subjects,) = [value for key, value in said.items() if key.endswith(":sub")]
    (audience,) = [value for key, value in said.items() if key.endswith(":aud")]
    assert audience == "sts.amazonaws.com"
    for subject in [subjects] if isinstance(subjects, str) else subjects:
        assert "*" not in subject
        assert "OWNER/REPOSITORY" in subject or "GROUP/PROJECT" in subject
    issuer = statement["Principal"]["Federated"].split("oidc-provider/")[1]
    assert {key.rsplit(":", 1)[0] for key in said} == {issuer}


def test_what_may_change_trusts_an_environment_and_what_may_read_does_not() -> None:
    assert "environment:prod" in json.dumps(policy("github-deploy"))
    assert "environment" not in json.dumps(policy("github-preview"))


def test_the_reading_role_changes_nothing() -> None:
    changing = re.compile(r":(?!(Get|List|Describe|View|Decrypt)).*")
    for statement in policy("preview-rights")["Statement"]:
        actions = statement["Action"]
        for action in [actions] if isinstance(actions, str) else actions:
            assert not changing.search(action), action


def policy(name: str) -> Any:
    (text,) = re.findall(rf"<!-- policy: {name} -->\n```json\n(.*?)```", CI, re.DOTALL)
    return json.loads(text)


def test_the_guides_commands_are_read_as_they_are_meant() -> None:
    page = (
        "```console\n$ one 'a'   # exits with 4: why\nprinted\n$ cat <<'END'\n> a\n>\n> END\n```\n"
        "```sh\nnot typed\n```\n"
    )
    first, second = commands(page)
    assert first == ("one 'a'", 4, ("printed",))
    assert second == ("cat <<'END'\na\n\nEND", 0, ())
