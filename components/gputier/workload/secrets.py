"""What looks like a secret, so that it is refused before it is text in a file, a plan or a script.

Patterns know the shape of a credential (an access key, a token with its issuer's prefix, a private
key, a password in a URL) or the name it was given. A name alone counts only with a value behind it
that is no reference: a path, an address in a secret store, or another variable.
"""

from __future__ import annotations

import re

#: What a refusal proposes.
BY_REFERENCE = (
    "keep it in the cloud's secret store and name it by reference: the machine's role reads it,"
    " such as `run: export KEY=$(aws secretsmanager get-secret-value …)`"
)

# Prefixes are the issuers' own; lengths are as short as they issue.
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("an AWS access key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("a GitHub token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,})")),
    ("a GitLab token", re.compile(r"\bglpat-[\w-]{16,}")),
    ("a Hugging Face token", re.compile(r"\bhf_[A-Za-z0-9]{16,}\b")),
    ("an NVIDIA API key", re.compile(r"\bnvapi-[\w-]{16,}")),
    ("an API key", re.compile(r"\bsk-[\w-]{20,}")),
    ("a Slack token", re.compile(r"\bxox[abeprs]-[\w-]{10,}")),
    ("a Google API key", re.compile(r"\bAIza[\w-]{35}")),
    ("a Docker token", re.compile(r"\bdckr_[a-z]{2,4}_[\w-]{16,}")),
    ("a signed token", re.compile(r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.")),
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY")),
    # Not where the password is a variable, and not a mere user such as ssh://git@host.
    (
        "a URL with a password in it",
        re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/@:]*:(?!\$)[^\s/@]+@|https?://[^\s/@:$]{16,}@"),
    ),
)
_NAME = (
    r"(?:[A-Za-z0-9]+[_-])*"
    r"(?:password|passwd|passphrase|pwd|secret|secret[_-]?key|token|api[_-]?key"
    r"|access[_-]?key(?:[_-]id)?|private[_-]?key|auth|credentials?|bearer)"
)
_SECRET_NAME = re.compile(_NAME, re.IGNORECASE)
# Words that models and tokenizers use: no credentials.
_PLAIN_NAME = re.compile(r"(?:.*_)?(?:pad|eos|bos|unk|sep|cls|mask|stop|image)_token", re.I)
_ASSIGNED = re.compile(rf"(?<![\w$-])(--?)?({_NAME})(=|\s+)[\"']?([^\s\"';|&]+)", re.IGNORECASE)
# A value that only says where the secret is: a variable, a command, a path, a store's address.
_REFERENCE = re.compile(r"[$`/<]|\.{1,2}/|arn:|projects/|secret://|ssm:|vault:|file:|~")


def secret_text(text: str) -> str:
    """What a text holds that looks like a secret, in words; "" for nothing."""
    for what, shape in _SHAPES:
        if shape.search(text):
            return what
    for flag, name, joint, value in _ASSIGNED.findall(text):
        # `token x` in a sentence is no assignment; `--token x` is.
        if (joint == "=" or flag) and secret_entry(name, value):
            return f"a value for `{name}`"
    return ""


def secret_entry(name: str, value: str) -> str:
    """The same of a named value, such as a variable of the environment."""
    if found := secret_text(value):
        return found
    named = _SECRET_NAME.fullmatch(name) and not _PLAIN_NAME.fullmatch(name)
    if not named or not value or _REFERENCE.match(value) or value.lower() in _TRUTHS:
        return ""
    return "what its name says is a secret"


_TRUTHS = frozenset(("true", "false", "0", "1", "none", "off", "on"))
