# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The difference as one page: whole, harmless, and with a place for everything."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.rollback.difference import show_html
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    Change,
    Difference,
    Left,
)

VOID = {"meta"}
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "span", "small"),
    *("nav", "a", "b", "section", "div", "dl", "dt", "dd", "details", "summary", "pre", "del"),
    *("ins", "footer"),
}


class Page(HTMLParser):
    """What a browser would see: elements, links, and the text by element."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """An element ends: the innermost that is open."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Text that is shown, or the style sheet."""
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All that is shown."""
        return "".join(self.texts)


def changed(subject: str, *lines: str, counts: bool = True) -> Change:
    """A file that differs."""
    return Change("file", subject, "changed", "1 byte", "2 bytes", lines, counts)


def test_a_page_has_a_summary_sections_and_what_is_not_restored() -> None:
    found = Difference(
        "12-9f86d081",
        "now",
        (
            changed("/etc/a", "@@ -1 +1 @@", "-a", "+b"),
            Change("unit", "docker.service", "removed", "enabled, active", ""),
            changed("/etc/c", counts=False),
        ),
    )
    left = [Left("docker.io", "only when told"), Left("docker.service", "busy", pending=True)]
    page = Page(show_html.page(found, left, [("Before", "taken by anna")]))
    assert page.open == []
    for words in (
        "12-9f86d081 → now",
        "1 file, 1 unit",
        "taken by anna",
        "removed",
        "enabled, active",
        "1 byte → 2 bytes",
        "docker.io",
        "only when told",
        "later docker.service",
    ):
        assert words in page.text
    names = {value for name, value in page.attributes if name == "id"}
    links = {value[1:] for name, value in page.attributes if name == "href"}
    assert names == links == {"file", "unit", "aside", "left"}
    assert ("class", "m") in page.attributes
    assert ("class", "p") in page.attributes


def test_two_that_are_the_same() -> None:
    page = Page(show_html.page(Difference("a", "b")))
    assert "The two are the same" in page.text
    assert "nav" not in page.tags


def test_the_page_asks_for_nothing_and_allows_only_its_own_style() -> None:
    text = show_html.page(Difference("a", "b", (changed("/etc/a", "+x"),)))
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in text
    assert "url(" not in style
    page = Page(text)
    assert set(page.tags) <= ALLOWED
    assert all(value.startswith("#") for name, value in page.attributes if name == "href")
    assert not any(
        name.startswith("on") or name in ("src", "style") for name, unused in page.attributes
    )


def test_a_long_diff_is_folded() -> None:
    short = show_html.page(Difference("a", "b", (changed("/etc/a", "+x"),)))
    long = show_html.page(Difference("a", "b", (changed("/etc/a", *["+x"] * 500),)))
    assert "<details open>" in short
    assert "<details>" in long


@settings(max_examples=50)
@given(
    text=st.text(max_size=40)
    | st.sampled_from(["<script>alert(1)</script>", '"><img src=x onerror=1>', "</pre></style>"])
)
def test_nothing_in_a_file_becomes_a_part_of_the_page(text: str) -> None:
    change = Change("file", text, "changed", text, text, (text, f"+{text}"))
    found = Difference(text, text, (change, Change(text, text, text, text, text)))
    page = Page(show_html.page(found, [Left(text, text)], [(text, text)]))
    assert set(page.tags) <= ALLOWED
    assert not any(name.startswith("on") or name == "src" for name, unused in page.attributes)
    assert page.open == []
