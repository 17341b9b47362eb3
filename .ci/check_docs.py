"""Say which links in our Markdown pages lead nowhere, and which `make` targets do not exist."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# In a code block (fenced or indented) or in backticks; prose may make what it likes.
BLOCK_LINE = re.compile(r"^(?: {4}|\$ |)make((?: [a-z]+)+)", re.MULTILINE)
INLINE = re.compile(r"`make((?: [a-z]+)+)`")


def pages() -> list[Path]:
    """Every Markdown page that git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]


def anchors(page: Path) -> set[str]:
    """The fragments that the page's headings make, by the rule of the usual forges."""
    headings = HEADING.findall(CODE_BLOCK.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: Path) -> Iterator[str]:
    """Targets of relative links that are no file, or no heading of it."""
    for link in LINK.findall(CODE_BLOCK.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _separator, fragment = link.partition("#")
        target = (page.parent / path) if path else page
        if not target.exists():
            yield f"{page.relative_to(ROOT)}: link to {link}, but there is no {path}"
        elif fragment and fragment not in anchors(target):
            yield f"{page.relative_to(ROOT)}: link to {link}, but no heading makes #{fragment}"


def unknown_targets(page: Path) -> Iterator[str]:
    """Words after `make` that are no target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: *(.*)$", makefile, re.MULTILINE)
    lanes = re.search(r"^LANES := *(.*)$", makefile, re.MULTILINE)
    known = set(f"{phony and phony[1]} {lanes and lanes[1]}".split())
    text = page.read_text()
    code = CODE_BLOCK.findall(text) + re.findall(r"^ {4}make.*", text, re.MULTILINE)
    named = [words for block in code for words in BLOCK_LINE.findall(block)] + INLINE.findall(text)
    for word in " ".join(named).split():
        if word not in known:
            yield f"{page.relative_to(ROOT)}: `make {word}`, but the Makefile has no such target"


def main() -> int:
    """Print every fault; 1 when there is one."""
    faults = [
        fault
        for page in pages()
        for check in (dead_links, unknown_targets)
        for fault in check(page)
    ]
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
