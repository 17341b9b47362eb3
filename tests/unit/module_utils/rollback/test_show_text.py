# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The difference as a person reads it in a terminal or a log."""

from __future__ import annotations

import re

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.rollback.difference import show_text
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    Change,
    Difference,
    Left,
)

FOUND = Difference(
    "12-9f86d081",
    "now",
    (
        Change("unit", "docker.service", "changed", "enabled, active", "enabled, failed"),
        Change("file", "/etc/a", "changed", "2 bytes", "3 bytes", ("@@ -1 +1 @@", "-a", "+bc")),
        Change("file", "/etc/b", "added", "", "directory, mode 0755, owner 0:0"),
        Change("package", "gone", "removed", "1.2", ""),
        Change("container", "x GPU memory", "changed", "1 MiB", "2 MiB", counts=False),
    ),
)


def test_the_whole_page() -> None:
    left = (
        Left("docker.io", "packages are only changed when told"),
        Left("docker.service", "waits", pending=True),
    )
    assert show_text.plain(FOUND, left) == (
        "12-9f86d081 → now: 2 files, 1 unit, 1 package\n"
        "\n"
        "Files\n"
        "  ~ /etc/a: 2 bytes → 3 bytes\n"
        "      @@ -1 +1 @@\n"
        "      -a\n"
        "      +bc\n"
        "  + /etc/b: directory, mode 0755, owner 0:0\n"
        "\n"
        "Units\n"
        "  ~ docker.service: enabled, active → enabled, failed\n"
        "\n"
        "Packages\n"
        "  - gone: 1.2\n"
        "\n"
        "Comes and goes by itself, or is not known\n"
        "  ~ x GPU memory: 1 MiB → 2 MiB\n"
        "\n"
        "Not restored\n"
        "  docker.io: packages are only changed when told\n"
        "  later: docker.service: waits\n"
    )


def test_no_difference_is_said() -> None:
    assert show_text.plain(Difference("a", "b")) == "a → b: no difference\n"


def test_colours_add_nothing_else() -> None:
    coloured = show_text.coloured(FOUND)
    assert "\033[31m      -a\033[0m" in coloured
    assert "\033[32m      +bc\033[0m" in coloured
    assert re.sub(r"\033\[\d+m", "", coloured) == show_text.plain(FOUND)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb é ×", "a\tb é ×"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\r", "a\\x0d"),
        ("a\nb", "a\\x0ab"),
        ("a\udcffb", "a\\xffb"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u2028b", "a\\u2028b"),
    ],
)
def test_nothing_in_a_name_or_file_reaches_the_terminal_unseen(text: str, shown: str) -> None:
    assert show_text.visible(text) == shown
    page = show_text.plain(
        Difference("a", "b", (Change("file", text, "added", "", text, (text,)),))
    )
    assert page.encode("utf-8").count(shown.encode("utf-8")) == 3


def test_a_long_file_does_not_bury_the_rest() -> None:
    long = Change("file", "/etc/cdi/nvidia.yaml", "added", lines=tuple(f"+{n}" for n in range(500)))
    text = show_text.plain(Difference("a", "b", (long,)))
    assert "+39" in text
    assert "+40" not in text
    assert "460 more lines" in text
