"""The repository keeps its shape: folders, links, decisions, and one way to check it."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

TOP = {
    ".ci",
    ".github",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "Pulumi.yaml",
    "README.md",
    "components",
    "docs",
    "policies",
    "pyproject.toml",
    "stacks",
    "templates",
    "tests",
}
TEXT = {".md", ".py", ".toml", ".yaml", ".yml", ".j2", ".txt", ".csv", ".lock", ".json", ".sh"}
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
# Somebody's own machine: it means nothing to the next reader and tells more than it should.
PRIVATE = re.compile(r"(?<![\w.:/~-])/(?:home|Users|root)/\w+|\b[A-Z]:\\Users\\")
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
ADR_PARTS = ("Context", "Options", "Decision", "Consequence")


def ignored(root: Path) -> Callable[[Path], bool]:
    """Whether .gitignore leaves a path out; git itself is not needed."""
    lines = (root / ".gitignore").read_text(encoding="utf-8").split()

    def check(path: Path) -> bool:
        parts = path.relative_to(root).parts
        return parts[0] == ".git" or any(
            fnmatch.fnmatch(parts[0], line.strip("/"))
            if line.startswith("/")
            else any(fnmatch.fnmatch(part, line.strip("/")) for part in parts)
            for line in lines
        )

    return check


def kept_files(root: Path) -> list[Path]:
    """Every file of the repository that .gitignore does not leave out."""
    is_ignored = ignored(root)
    return [
        path
        for top in sorted(root.iterdir())
        if not is_ignored(top)
        for path in ([top] if top.is_file() else sorted(top.rglob("*")))
        if path.is_file() and not is_ignored(path)
    ]


def text_files(root: Path) -> Iterator[tuple[Path, str]]:
    for path in kept_files(root):
        if path.suffix in TEXT or path.name in {"Makefile", "run", "LICENSE"}:
            yield path, path.read_text(encoding="utf-8")


def anchor(heading: str) -> str:
    """The anchor that forges give a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return kept.replace(" ", "-")


def broken_links(page: Path) -> Iterator[str]:
    """Links of a page to files or headings that do not exist; web addresses are not followed."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, heading = unquote(link).partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists():
            yield f"{page.name}: {link}: no such file"
        elif heading and heading not in map(anchor, HEADING.findall(target.read_text("utf-8"))):
            yield f"{page.name}: {link}: no such heading"


def test_the_top_level_holds_what_it_should_and_nothing_else(root: Path) -> None:
    is_ignored = ignored(root)
    names = {path.name for path in root.iterdir() if not is_ignored(path)}
    assert names >= TOP
    # Dot files are left to people's editors and version managers.
    assert sorted(name for name in names - TOP if not name.startswith(".")) == []


def test_every_link_in_the_documentation_resolves(root: Path) -> None:
    pages = [path for path in kept_files(root) if path.suffix == ".md"]
    assert [problem for page in pages for problem in broken_links(page)] == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b`: c\n[ok](page.md) [ok](#a-b-c) [web](https://example.org/x) `[code](no.md)`\n"
        "[gone](gone.md) [gone](#gone) [gone](page.md#gone)",
        encoding="utf-8",
    )
    assert list(broken_links(page)) == [
        "page.md: gone.md: no such file",
        "page.md: #gone: no such heading",
        "page.md: page.md#gone: no such heading",
    ]


def test_every_decision_that_is_cited_exists(root: Path) -> None:
    numbers = {path.name[:4] for path in (root / "docs/adr").glob("*.md")}
    for path, text in text_files(root):
        cited = set(re.findall(r"docs/adr/(\d{4})", text))
        assert cited <= numbers, f"{path.relative_to(root)} cites {sorted(cited - numbers)}"


def test_nothing_names_the_machine_it_was_written_on(root: Path) -> None:
    """A path of one machine is a lie on the next: here, the checkout's own place or a home."""
    for path, text in text_files(root):
        found = PRIVATE.search(text)
        assert not found, f"{path.relative_to(root)}: {found and found[0]}"
        assert f"{root}/" not in text, f"{path.relative_to(root)} names this checkout's place"


@pytest.mark.parametrize("text", ["see /" + "home/ann/x", "/" + "Users/ann"])
def test_a_private_place_is_found(text: str) -> None:
    assert PRIVATE.search(text)


@pytest.mark.parametrize("text", ["/proc/self", "~/.local/bin", "https://x.org/home/y", "a/home/b"])
def test_a_public_place_is_left_alone(text: str) -> None:
    assert not PRIVATE.search(text)


def test_nothing_is_left_unfinished(root: Path) -> None:
    here = Path(__file__).resolve()
    for path, text in text_files(root):
        found = UNFINISHED.search(text)
        assert path == here or not found, f"{path.relative_to(root)}: {found and found[0]}"


def test_decisions_are_numbered_without_gaps_and_have_their_parts(root: Path) -> None:
    pages = sorted((root / "docs/adr").glob("*.md"))
    assert [page.name[:4] for page in pages] == [f"{n + 1:04}" for n in range(len(pages))]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert re.match(rf"# {page.name[:4]}:? \S", text), page.name
        parts = tuple(re.findall(r"^## (.+)$", text, re.MULTILINE))
        assert parts == ADR_PARTS, f"{page.name} has the parts {parts}"


def test_the_changelog_says_for_each_release_what_it_replaces(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert releases[0].startswith(project["version"]), "the newest release is not on top"
    for release in releases:
        assert "*Replaces resources*: " in release, release.splitlines()[0]


def test_continuous_integration_runs_exactly_what_check_runs(root: Path) -> None:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    (check,) = re.findall(r"^check: ([\w ]+?) *##", makefile, re.MULTILINE)
    script = (root / ".ci/run").read_text(encoding="utf-8")
    assert re.findall(r"^make (\w+)$", script, re.MULTILINE) == check.split()
    assert check.split()[-1] == "test", "the log has to end with pytest's summary"
    workflow = (root / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert re.search(r"^ +- run: (?:sudo .* )?bash \.ci/run$", workflow, re.MULTILINE)


def test_the_workflow_tries_every_python_that_the_package_allows(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    workflow = (root / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    (matrix,) = re.findall(r"^ +python: \[(.+)\]$", workflow, re.MULTILINE)
    versions = re.findall(r'"([\d.]+)"', matrix)
    assert project["requires-python"] == f">={versions[0]}"
    known = [line.rsplit(" ", 1)[1] for line in project["classifiers"] if ":: 3." in line]
    assert versions == known


def test_contributing_lists_the_commands(
    root: Path, generated: Callable[[str, str, str], None]
) -> None:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(r"^(\w+):.*?## (.+)$", makefile, re.MULTILINE)
    (phony,) = re.findall(r"^\.PHONY: (.+) FORCE$", makefile, re.MULTILINE)
    assert [name for name, _ in commands] == phony.split(), "each command says what it does"
    table = ["| command | what it does |", "|---|---|"]
    table += [f"| `make {name}` | {text} |" for name, text in commands]
    generated("CONTRIBUTING.md", "commands", "\n".join(table))
