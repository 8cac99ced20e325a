"""What `gputier init` does: everything is worked out first, then what is missing is written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from gputier.catalog import Catalog
from gputier.cli import console
from gputier.cli.init import CLOUDS, FORGES, InitArguments
from gputier.cli.init_files import STACKS, Choices, files, stack_file
from gputier.cli.init_locks import lock_file, locks, numbers
from gputier.cli.init_text import screen
from gputier.cli.inputs import load_catalog
from gputier.errors import ExitCode, InvalidInput, Problem
from gputier.plan.known import KnownNames

#: Pulumi's rule for a project's name (sdk/go/common/tokens, ValidateProjectName), short enough to
#: be the value of a tag and a part of a bucket's name.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")
#: Words that YAML takes for something else than text, in one of its versions.
_NO_TEXT = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
#: What every service of AWS takes in a tag's value (EC2 user guide, tag restrictions, 2026).
_TAG = re.compile(r"[A-Za-z0-9 _.:/=+@-]{1,256}")


class Written(NamedTuple):
    """What became of the files: new, the same as before, and kept because they differ."""

    new: tuple[str, ...]
    same: tuple[str, ...]
    kept: tuple[str, ...]


def run(typed: InitArguments) -> int:
    """Write what is missing; the exit code."""
    catalog = load_catalog(typed.catalog_directory)
    folder = Path(typed.folder).expanduser()
    choices = _choices(typed, folder, catalog)
    wanted = files(choices, numbers(choices, catalog))
    before = _sorted_out(folder, wanted)
    # A lock is of the file that lies there: of a kept one it is its owner's to write.
    ours = [s for s in STACKS if stack_file(s) not in before.kept]
    unlocked = {s: wanted[stack_file(s)] for s in ours if not _is(folder, lock_file(s))}
    locked = locks(choices, unlocked, catalog, images=typed.images and not typed.dry_run)
    missing = {lock_file(s): one.text for s, one in locked.items()}
    new = {**{path: wanted[path] for path in before.new}, **missing}
    if not typed.dry_run:
        _write(folder, new)
    found = before._replace(new=tuple(new))
    console.out("\n".join(screen(choices, typed, found, locked)))
    return ExitCode.OK


def _choices(typed: InitArguments, folder: Path, catalog: Catalog) -> Choices:
    """What was typed, checked. Raises `InvalidInput` with everything that is wrong."""
    name = typed.name or folder.absolute().resolve().name
    problems = [
        *_cloud_problems(typed.cloud),
        *_name_problems(name, bool(typed.name)),
        *_region_problems(typed.region, catalog),
        *_tag_problems(typed),
        *_folder_problems(folder),
    ]
    if problems:
        raise InvalidInput(problems)
    return Choices(
        name=name,
        clouds=CLOUDS[typed.cloud],
        region=typed.region,
        tier=typed.tier,
        forges=FORGES[typed.ci],
        owner=typed.owner or name,
        cost_center=typed.cost_center or name,
    )


def _cloud_problems(cloud: str) -> Iterator[Problem]:
    if cloud == "gcp":
        yield Problem(
            "--cloud",
            "a stack on Google Cloud needs a project, and its budget a billing account, which are"
            " not asked for here yet",
            "`--cloud both`, and then `gcp:project`, `clouds: [gcp]`, `regions` and"
            " `budget.billing_account` in the stacks' files; `gputier pick --cloud gcp` compares"
            " its machines",
        )


def _name_problems(name: str, typed: bool) -> Iterator[Problem]:
    if not _NAME.fullmatch(name) or name.lower() in _NO_TEXT:
        where = "--name" if typed else ""
        message = (
            f"`{name}` is no name for a project: a letter, and up to 39 letters, digits, dots,"
            " dashes and underscores"
        )
        yield Problem(where, message, "another one: --name my-gpus")


def _region_problems(region: str, catalog: Catalog) -> Iterator[Problem]:
    unknown = KnownNames(catalog).region("aws", region)
    if unknown:
        yield Problem("", f"--region{unknown.after}", unknown.hint)


def _tag_problems(typed: InitArguments) -> Iterator[Problem]:
    for option, value in (("--owner", typed.owner), ("--cost-center", typed.cost_center)):
        if value and not _TAG.fullmatch(value):
            message = f"`{value}` is no value for a tag"
            yield Problem(option, message, "up to 256 letters, digits, spaces and _.:/=+@-")


def _folder_problems(folder: Path) -> Iterator[Problem]:
    for place in (folder, *folder.absolute().parents):
        if place.is_dir():
            return
        if place.exists() or place.is_symlink():
            yield Problem("", f"{place} is a file, not a folder", "name another folder")
            return


def _is(folder: Path, path: str) -> bool:
    """Whether something has this name, be it a link to nothing."""
    return (folder / path).exists() or (folder / path).is_symlink()


def _sorted_out(folder: Path, wanted: Mapping[str, str]) -> Written:
    new: list[str] = []
    same: list[str] = []
    kept: list[str] = []
    for path, text in wanted.items():
        if not _is(folder, path):
            new.append(path)
        elif _reads(folder / path) == text.encode():
            same.append(path)
        else:
            kept.append(path)
    return Written(tuple(new), tuple(same), tuple(kept))


def _reads(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:  # a folder, a link to nothing, somebody else's
        return None


def _write(folder: Path, new: Mapping[str, str]) -> None:
    for path, text in new.items():
        file = folder / path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            # Exclusive: what somebody else has written in the meantime stays as well.
            with file.open("x", encoding="utf-8", newline="\n") as out:
                out.write(text)
        except OSError as error:
            reason = error.strerror or str(error)
            hint = "what was written before it stays; `gputier init` again writes the rest"
            raise InvalidInput(Problem("", f"{file}: {reason}", hint)) from None
