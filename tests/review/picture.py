"""Pictures of the comment, as a real browser shows it: `python -m tests.review.picture`.

Needs Chromium. The style is near that of a pull request; the Markdown is read by markdown-it as
GitHub's is (tables, HTML in between).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from markdown_it import MarkdownIt

from gputier.catalog import load
from gputier.review.comment import comment
from gputier.review.preview import Preview
from gputier.review.read import read
from gputier.review.review import Beside, review
from tests.conftest import ROOT

SAMPLES = ROOT / "tests" / "review" / "samples"
PICTURES = ROOT / "docs"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
STYLE = """
body { font: 14px/1.5 "DejaVu Sans", system-ui, sans-serif; color: #1f2328; background: #fff;
  margin: 0; padding: 16px; width: 928px; }
.head { background: #f6f8fa; border: 1px solid #d1d9e0; border-radius: 6px 6px 0 0;
  padding: 8px 16px; color: #59636e; }
.body { border: 1px solid #d1d9e0; border-top: 0; border-radius: 0 0 6px 6px; padding: 16px; }
table { border-collapse: collapse; margin: 0 0 16px; }
th, td { border: 1px solid #d1d9e0; padding: 6px 13px; }
code { background: #818b981f; padding: .2em .4em; border-radius: 6px; font-size: 85%; }
p { margin: 0 0 16px; }
"""


def main() -> None:
    """Writes the pictures of docs/review.md: the change to prod that the demo shows, with its
    details open, and the comment of a preview that failed."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit("there is no Chromium here: install one, such as Debian's package chromium")
    base = Beside(_sample("prod-export"))
    change = comment(review(_sample("prod-change"), load(), base))
    _draw(browser, change.replace("<details>", "<details open>"), "review-comment", 720)
    _draw(browser, comment(review(_sample("bad-argument"), load())), "review-failed", 260)


def _sample(name: str) -> Preview:
    return read((SAMPLES / f"{name}.json").read_bytes(), name)


def _draw(browser: str, text: str, name: str, height: int) -> None:
    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    page = (
        f"<!doctype html><meta charset=utf-8><style>{STYLE}</style><div class=head>"
        f"<b>gputier</b> commented</div><div class=body>{body}</div>"
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "comment.html"
        file.write_text(page, encoding="utf-8")
        subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             f"--window-size=960,{height}", f"--screenshot={PICTURES / f'{name}.png'}",
             file.as_uri()],
            check=True, capture_output=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
