"""Files that the clouds' own commands printed: read, recognised by content, refused clearly."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from gputier.errors import InvalidInput, Problem

Json = dict[str, Any]
T = TypeVar("T")

# kind → the command whose output it is
COMMANDS: dict[str, str] = {
    "aws-types": "aws ec2 describe-instance-types",
    "aws-offerings": (
        "aws ec2 describe-instance-type-offerings --location-type availability-zone-id"
    ),
    "aws-prices": "aws pricing get-products --service-code AmazonEC2",
    "aws-spot": "aws ec2 describe-spot-price-history",
    "gcp-types": "gcloud compute machine-types list --format json",
    "gcp-accelerators": "gcloud compute accelerator-types list --format json",
    "gcp-skus": "the Cloud Billing Catalog's services/6F81-5844-456A/skus",
}
_AWS_KEYS = {
    "InstanceTypes": "aws-types",
    "InstanceTypeOfferings": "aws-offerings",
    "PriceList": "aws-prices",
    "SpotPriceHistory": "aws-spot",
}


class Document(NamedTuple):
    """One recognised file. `records` are the list's members, `as_of` the file's own date (UTC)."""

    path: Path
    kind: str
    records: list[Json]
    as_of: str
    last_page: bool


def read_documents(paths: Sequence[Path]) -> list[Document]:
    """All files, or InvalidInput with everything that is wrong with any of them."""
    documents: list[Document] = []
    found: list[Problem] = []
    for path in paths:
        try:
            documents.append(read_document(path))
        except InvalidInput as problem:
            found += problem.problems
    skus = [one for one in documents if one.kind == "gcp-skus"]
    if skus and not any(one.last_page for one in skus):
        found.append(_truncated(skus[-1].path, "nextPageToken", "give its other pages as well"))
    if found:
        raise InvalidInput(found)
    return documents


def read_document(path: Path) -> Document:
    """One file. Raises InvalidInput: unreadable, not JSON, cut short or of no known command."""
    value = _json(path)
    as_of = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC).date().isoformat()
    kind, records, more = _recognise(path, value)
    # A catalogue of 30,000 SKUs comes in pages of 5,000, one file each; the commands that
    # gather their pages themselves leave a token only when they were told to stop early.
    if more and kind != "gcp-skus":
        raise InvalidInput(
            _truncated(path, "NextToken", "run it without --max-items and --no-paginate")
        )
    if not records:
        raise InvalidInput(
            Problem(str(path), f"holds no records of `{COMMANDS[kind]}`", "check its filters")
        )
    return Document(path, kind, records, as_of, last_page=not more)


def _json(path: Path) -> object:
    try:
        text = path.read_text("utf-8-sig")
    except OSError as problem:
        raise InvalidInput(Problem(str(path), f"cannot be read: {problem.strerror}")) from None
    except UnicodeDecodeError:
        raise InvalidInput(Problem(str(path), "is not UTF-8 text")) from None
    try:
        return cast(object, json.loads(text))
    except json.JSONDecodeError as problem:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "")
        hint = (
            f"it begins `{first[:80]}`; give the JSON that the command prints"
            if not first.startswith(("{", "["))
            else "it looks cut short; run the command again"
        )
        message = f"is not JSON: {problem.msg} at line {problem.lineno}, column {problem.colno}"
        raise InvalidInput(Problem(str(path), message, hint)) from None
    except RecursionError:
        raise InvalidInput(Problem(str(path), "is nested too deeply to be such a file")) from None


def _recognise(path: Path, value: object) -> tuple[str, list[Json], bool]:
    if isinstance(value, dict):
        table = cast(Json, value)
        for key, kind in _AWS_KEYS.items():
            if key in table:
                more = bool(table.get("NextToken"))
                return kind, _members(path, kind, table[key]), more
        if "skus" in table:
            return "gcp-skus", _members(path, "gcp-skus", table["skus"]), _has_next(table)
        if "items" in table:
            records, kind = _gcp_list(path, table["items"])
            return kind, records, _has_next(table)
    if isinstance(value, list):
        members = cast(list[object], value)
        pages = [cast(Json, one) for one in members if isinstance(one, dict)]
        if pages and all("skus" in page for page in pages):
            records = [sku for page in pages for sku in _members(path, "gcp-skus", page["skus"])]
            return "gcp-skus", records, all(_has_next(page) for page in pages)
        records, kind = _gcp_list(path, members)
        return kind, records, False
    raise _unknown(path)


def _has_next(page: Json) -> bool:
    return bool(page.get("nextPageToken"))


def _gcp_list(path: Path, value: object) -> tuple[list[Json], str]:
    members = cast(list[object], value) if isinstance(value, list) else []
    records = [cast(Json, one) for one in members if isinstance(one, dict)]
    if not records or len(records) != len(members):
        raise _unknown(path)
    for kind, mark in (
        ("gcp-types", "guestCpus"),
        ("gcp-accelerators", "maximumCardsPerInstance"),
        ("gcp-skus", "skuId"),
    ):
        if all(mark in record for record in records):
            return records, kind
    raise _unknown(path)


def _members(path: Path, kind: str, value: object) -> list[Json]:
    if not isinstance(value, list):
        raise _unknown(path)
    found: list[Json] = []
    for number, one in enumerate(cast(list[object], value), 1):
        # `aws pricing` prints every product as a string of JSON inside the JSON.
        member = _inner(path, number, one) if isinstance(one, str) else one
        if not isinstance(member, dict):
            message = f"record {number} of `{COMMANDS[kind]}` is no object"
            raise InvalidInput(Problem(str(path), message, "run the command again"))
        found.append(cast(Json, member))
    return found


def _inner(path: Path, number: int, text: str) -> object:
    try:
        return cast(object, json.loads(text))
    except json.JSONDecodeError as problem:
        message = f"record {number} is not JSON: {problem.msg}"
        raise InvalidInput(Problem(str(path), message, "run the command again")) from None


def _truncated(path: Path, token: str, way_out: str) -> Problem:
    message = f"holds one page of several ({token} is set), so what is missing cannot be told"
    return Problem(str(path), message, way_out)


def _unknown(path: Path) -> InvalidInput:
    known = "\n".join(f"  {command}" for command in COMMANDS.values())
    return InvalidInput(
        Problem(str(path), "is not what any known command prints", f"known are:\n{known}")
    )


def each(document: Document, read: Callable[[Json], T], name: str) -> Iterator[T]:
    """`read` over every record; one it cannot read becomes InvalidInput naming it by `name`."""
    for number, record in enumerate(document.records, 1):
        try:
            yield read(record)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as problem:
            label = record.get(name)
            which = f"`{label}`" if isinstance(label, str) else f"record {number}"
            what = (
                f"has no {problem}"
                if isinstance(problem, KeyError)
                else f"cannot be read: {problem}"
            )
            message = f"{which} of `{COMMANDS[document.kind]}` {what}"
            hint = "run the command again without --query, so that whole records are printed"
            raise InvalidInput(Problem(str(document.path), message, hint)) from None


def of_kind(documents: Iterable[Document], kind: str) -> list[Document]:
    return [one for one in documents if one.kind == kind]
