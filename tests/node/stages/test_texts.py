"""What systemd and mount read is what was meant: their own rules, undone in reverse."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gputier.node import fstab, units

# A process takes any argument without NUL; half a surrogate pair is no text.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
NAMES = st.from_regex(r"\A[A-Z_][A-Z0-9_]{0,8}\Z")
LINE = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], include_characters="\t"), max_size=40
)
ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
           "\\": "\\", '"': '"', "'": "'", "s": " "}  # fmt: skip


def words(line: str) -> list[str]:
    """systemd's extract_first_word with EXTRACT_UNQUOTE and EXTRACT_CUNESCAPE (v255)."""
    found: list[str] = []
    at = 0
    while at < len(line):
        while at < len(line) and line[at] in " \t\n\r":
            at += 1
        if at >= len(line):
            break
        word, quote = "", ""
        while at < len(line):
            char = line[at]
            if char == "\\":
                taken, at = unescape(line, at + 1)
                word += taken
                continue
            at += 1
            if quote and char == quote:
                quote = ""
            elif not quote and char in "\"'":
                quote = char
            elif not quote and char in " \t\n\r":
                break
            else:
                word += char
        assert not quote, "an unbalanced quote drops the line"
        found.append(word)
    return found


def unescape(line: str, at: int) -> tuple[str, int]:
    if line[at] == "x":
        code = int(line[at + 1 : at + 3], 16)
        assert 0 < code < 128
        return chr(code), at + 3
    return ESCAPES[line[at]], at + 1


def arguments(value: str) -> list[str]:
    """An Exec line as execve gets it: words, then specifiers, then variables."""
    assert "\n" not in value
    assert not value.endswith("\\"), "the next line would belong to it"
    found: list[str] = []
    for word in words(value):
        assert re.fullmatch(r"(?:[^%]|%%)*", word, re.S), "a specifier"
        plain = word.replace("%%", "%")
        assert re.fullmatch(r"(?:[^$]|\$\$)*", plain, re.S), "a variable"
        found.append(plain.replace("$$", "$"))
    return found


@example(["0\n"])
@given(st.lists(TEXT, max_size=6))
def test_a_command_runs_with_exactly_these_arguments(rest: list[str]) -> None:
    argv = ["/usr/bin/docker", *rest]
    assert arguments(units.command(argv)) == argv
    quiet = units.command(argv, quiet=True)
    assert quiet[0] == "-"
    assert arguments(quiet[1:]) == argv


@given(st.lists(TEXT, max_size=4))
def test_no_argument_is_a_separator_of_commands(rest: list[str]) -> None:
    line = units.command(["/bin/true", *rest])
    assert ";" not in re.sub(r'"(?:[^"\\]|\\.)*"', "", line).split(" ")


@pytest.mark.parametrize(
    "program", ["true", "/bin/true\n", "-/bin/true", "@/bin/true", "/bin/$X", "/b in", ""]
)
def test_a_program_is_a_plain_absolute_path(program: str) -> None:
    with pytest.raises(ValueError, match="absolute path"):
        units.command([program])


@given(NAMES, LINE)
def test_an_assignment_arrives_whole(name: str, value: str) -> None:
    (word,) = words(units.assignment(name, value))
    assert word.replace("%%", "%") == f"{name}={value}"


@given(st.dictionaries(NAMES, LINE, max_size=4))
def test_an_environment_file_arrives_whole(
    values: dict[str, str],
) -> None:
    content = units.environment_file(values)
    found: dict[str, str] = {}
    for line in content.splitlines() if values else []:
        name, _, quoted = line.partition("=")
        assert quoted[0] == quoted[-1] == '"'
        # parse_env_file: a backslash goes before these four only, else it stays.
        found[name] = re.sub(r'\\(["\\`$])', r"\1", quoted[1:-1])
    assert found == values


def test_a_shell_reads_an_environment_file_as_it_was_meant() -> None:
    values = {"A": "quotes \" and ' and `id` and $HOME and \\n", "B": "", "C": "a b  c#d;e%f"}
    script = units.environment_file(values) + 'printf "%s\\0" "$A" "$B" "$C"'
    out = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert out.split("\0")[:3] == list(values.values())


@pytest.mark.parametrize("value", ["a\nb", "\x1b[0m", "a\0b"])
def test_a_value_that_systemd_would_drop_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="control character"):
        units.environment_file({"A": value} if "\n" not in value else {"A": value + "\x07"})


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "A\n", "A=B"])
def test_a_name_that_no_shell_takes_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a variable"):
        units.environment_file({name: "x"})
    with pytest.raises(ValueError, match="not the name of a variable"):
        units.assignment(name, "x")


@pytest.mark.parametrize("value", ["a\nb", "ends in \\", "a\0b"])
def test_a_description_is_one_line(value: str) -> None:
    with pytest.raises(ValueError, match="not one line"):
        units.text(value)
    assert units.text("100 %") == "100 %%"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_itself_finds_nothing_wrong_with_a_unit(tmp_path: Path) -> None:
    argv = ["/bin/echo", "", "50 %", "$HOME", "${X}", '"', "'", "\\", ";", "tab\tnew\nline", "ü€"]
    made = units.unit(
        "gputier-odd.service",
        Unit=[("Description", units.text("100 % $x"))],
        Service=[
            ("ExecStart", units.command(argv)),
            ("Environment", units.assignment("A", 'quote " percent % dollar $ back \\')),
        ],
    )
    path = tmp_path / made.name
    path.write_text(made.text, encoding="utf-8")
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True
    )
    assert made.name not in checked.stderr, checked.stderr


# --- fstab --------------------------------------------------------------------------------------

OTHERS = st.lists(
    st.sampled_from(
        [
            "# /etc/fstab: static file system information\n",
            "\n",
            "LABEL=cloudimg-rootfs\t/\text4\tdiscard,errors=remount-ro\t0 1\n",
            "LABEL=UEFI /boot/efi vfat umask=0077 0 1\n",
            "server:/a\\040b /mnt/a\\040b nfs defaults 0 0\n",
            "   # LABEL=gputier /scratch xfs defaults 0 0\n",
            "UUID=1 /other xfs defaults,x-gputier 0 0\n",
            "garbage\n",
        ]
    ),
    max_size=6,
)
POINTS = st.sampled_from(["/scratch", "/data", "/mnt/b c", "/ü", "/x\\y", "/#1"])


@given(OTHERS, POINTS, st.booleans(), st.booleans())
def test_our_line_is_the_only_change_to_fstab(
    others: list[str], point: str, old: bool, cut: bool
) -> None:
    wanted = fstab.Entry("new", point, "xfs")
    lines = list(others)
    if old:
        lines.insert(len(lines) // 2, fstab.Entry("old", point, "ext4").line)
        lines.append(f"LABEL=gputier {fstab.escaped(point)} xfs defaults,nofail 0 0\n")
    content = "".join(lines)
    if cut and not old and lines[-1:] != ["\n"]:
        content = content.removesuffix("\n")
    found = fstab.with_entry(content, wanted)
    assert found.count(wanted.line) == 1
    rest = found.replace(wanted.line, "", 1).splitlines()
    assert rest == [line.rstrip("\n") for line in others]
    assert fstab.with_entry(found, wanted) == found
    assert fstab.without(found, point).splitlines() == rest


@given(POINTS)
def test_a_mount_point_is_one_cell_and_comes_back(point: str) -> None:
    cell = fstab.escaped(point)
    assert len(cell.split()) == 1
    assert not cell.startswith("#")
    assert fstab.unescaped(cell) == point


def test_a_line_of_somebody_else_is_said_and_not_overwritten() -> None:
    with pytest.raises(fstab.Taken, match="/dev/sdb /data"):
        fstab.with_entry("/dev/sdb /data ext4 defaults 0 2\n", fstab.Entry("1", "/data", "xfs"))
