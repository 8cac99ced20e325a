"""Who a stack deploys as: the providers' own settings in the stack's file, read without Pulumi."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from gputier import errors
from gputier.workload import Declaration, project, yaml12

#: Settings of the providers that say who asks (pulumi-aws 7.51, pulumi-gcp 10.2: `config/vars.py`).
AWS_KEYS = (
    "profile",
    "region",
    "assumeRoles",
    "assumeRole",  # how pulumi-aws 6 and older spelt it
    "assumeRoleWithWebIdentity",
    "sharedConfigFiles",
    "sharedCredentialsFiles",
    "accessKey",
    "secretKey",
    "token",
    "allowedAccountIds",
    "forbiddenAccountIds",
)
GCP_KEYS = (
    "project",
    "region",
    "impersonateServiceAccount",
    "impersonateServiceAccountDelegates",
    "credentials",
    "accessToken",
    "billingProject",
)


class Role(NamedTuple):
    """A role that is assumed before anything is asked."""

    arn: str
    external_id: str = ""
    session_name: str = ""


class AwsAccount(NamedTuple):
    """`aws:…` of a stack. Empty: as the AWS command line finds it. The provider refuses accounts
    that are not `allowed` or are `forbidden`."""

    profile: str = ""
    region: str = ""
    roles: tuple[Role, ...] = ()
    config_files: tuple[str, ...] = ()
    credentials_files: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()


class GcpAccount(NamedTuple):
    """`gcp:…` of a stack. `credentials` is a path or the text of a key. Empty: as gcloud finds
    it."""

    project: str = ""
    region: str = ""
    service_account: str = ""
    delegates: tuple[str, ...] = ()
    credentials: str = ""
    billing_project: str = ""


class StackAccount(NamedTuple):
    """Who a stack deploys as. `warnings` say what of it cannot be known here."""

    name: str
    aws: AwsAccount = AwsAccount()
    gcp: GcpAccount = GcpAccount()
    warnings: tuple[str, ...] = ()


def stack_account(declaration: Declaration) -> StackAccount:
    """The settings in the declaration's own file, and those of the project below them. A plain file
    has none."""
    path = Path(declaration.folder) / Path(declaration.source).name
    if project.stack_of(path) is None or not path.is_file():
        return StackAccount(declaration.name)
    document = yaml12.read(yaml12.load(path), project.shown_path(path)).root.entries or {}
    here = project.find(path.parent)
    own = document["config"][1].plain() if "config" in document else None
    config = _qualified(_of_project(here) if here else {}, here) | _qualified(own, here)
    wanted = [f"aws:{key}" for key in AWS_KEYS] + [f"gcp:{key}" for key in GCP_KEYS]
    found = {key: config[key] for key in wanted if key in config}
    hidden = sorted(key for key, value in found.items() if _is_secret(value))
    open_ = {key: value for key, value in found.items() if key not in hidden}
    return StackAccount(
        declaration.name, _aws(open_), _gcp(open_), tuple(_warnings(declaration, open_, hidden))
    )


def _of_project(here: project.Project) -> Any:
    """`config:` of the project: a value, or a map with `value` (or `default`, for a type)."""
    document = yaml12.read(yaml12.load(here.file), project.shown_path(here.file)).root.entries or {}
    config = _map(document["config"][1].plain()) if "config" in document else {}
    values: dict[str, Any] = {}
    for key, value in config.items():
        fields = _map(value)
        values[key] = next((fields[k] for k in ("value", "default") if k in fields), value)
    return values


def _qualified(config: Any, here: project.Project | None) -> dict[str, Any]:
    return {project.qualified(k, here.name if here else ""): v for k, v in _map(config).items()}


def _aws(config: Mapping[str, Any]) -> AwsAccount:
    roles = _list(config.get("aws:assumeRoles")) or _list(config.get("aws:assumeRole"))
    return AwsAccount(
        profile=_text(config.get("aws:profile")),
        region=_text(config.get("aws:region")),
        roles=tuple(role for raw in roles if (role := _role(raw)).arn),
        config_files=_words(config.get("aws:sharedConfigFiles")),
        credentials_files=_words(config.get("aws:sharedCredentialsFiles")),
        allowed=_accounts(config.get("aws:allowedAccountIds")),
        forbidden=_accounts(config.get("aws:forbiddenAccountIds")),
    )


def _role(raw: Any) -> Role:
    if isinstance(raw, str):
        return Role(raw)
    fields = _map(raw)
    names = ("roleArn", "externalId", "sessionName")
    return Role(*(_text(fields.get(name)) for name in names))


def _gcp(config: Mapping[str, Any]) -> GcpAccount:
    return GcpAccount(
        project=_text(config.get("gcp:project")),
        region=_text(config.get("gcp:region")),
        service_account=_text(config.get("gcp:impersonateServiceAccount")),
        delegates=_words(config.get("gcp:impersonateServiceAccountDelegates")),
        credentials=_text(config.get("gcp:credentials")),
        billing_project=_text(config.get("gcp:billingProject")),
    )


def _warnings(
    declaration: Declaration, config: Mapping[str, Any], hidden: list[str]
) -> Iterable[str]:
    for key in hidden:
        yield (
            f"`{key}` of {declaration.source} is encrypted, and only Pulumi can read it; who asks"
            " here is found without it"
        )
    for key in ("aws:accessKey", "aws:secretKey", "aws:token", "gcp:accessToken"):
        if key in config:
            yield f"`{key}` is not read here: name a profile or a role"
    if "aws:assumeRoleWithWebIdentity" in config:
        yield (
            "`aws:assumeRoleWithWebIdentity` is not read here; AWS_ROLE_ARN and"
            " AWS_WEB_IDENTITY_TOKEN_FILE do the same"
        )


def _is_secret(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_secret, cast("list[Any]", value)))
    fields = _map(value)
    return "secure" in fields or any(map(_is_secret, fields.values()))


def _map(value: Any) -> dict[str, Any]:
    found = _unfolded(value)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _list(value: Any) -> list[Any]:
    """A list; one alone stands for a list of one."""
    found = _unfolded(value)
    if found is None or found == "":
        return []
    return cast("list[Any]", found) if isinstance(found, list) else [found]


def _unfolded(value: Any) -> Any:
    """`pulumi config set` stores maps and lists as JSON text."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _words(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in _list(value))


def _accounts(value: Any) -> tuple[str, ...]:
    """Twelve digits each: a YAML number has lost the zeros in front."""
    return tuple(word.zfill(12) for word in _words(value))


def _text(value: Any) -> str:
    if value is None or isinstance(value, (dict, list)):
        return ""
    return str(value)


def read_account(declaration: Declaration) -> StackAccount:
    """`stack_account`; a file that cannot be read again has no settings, and that is said."""
    try:
        return stack_account(declaration)
    except (errors.InvalidInput, OSError) as error:
        said = str(error).partition("\n")[0]
        return StackAccount(declaration.name, warnings=(f"the stack's settings: {said}",))
