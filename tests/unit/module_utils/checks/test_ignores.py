# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Comments that switch rules off: where they hold, and that they need a reason."""

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks.model import (
    Finding,
    Position,
    Severity,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers.ignores import (
    read_ignores,
    without_ignored,
)


def finding(line: int, rule: str = "privileged") -> Finding:
    return Finding(rule, "t", Severity.WARNING, Position("f", line, 1), "s", "r", "f")


def left(text: str, *findings: Finding) -> list[tuple[str, int]]:
    kept, _ignored = without_ignored(findings, read_ignores(text, "f"))
    return [(one.rule, one.at.line) for one in kept]


def test_at_the_end_of_a_line_it_holds_for_that_line():
    text = "a\nb # steadygpu: ignore[privileged] a machine of our own\nc\n"
    assert left(text, finding(1), finding(2), finding(3)) == [
        ("privileged", 1),
        ("privileged", 3),
    ]


def test_behind_a_command_of_many_lines_it_holds_for_all_of_them():
    text = (
        "true\ndocker run \\\n  --privileged \\\n  x  # steadygpu: ignore[privileged] ours\ntrue\n"
    )
    assert left(text, finding(1), finding(2), finding(3), finding(4), finding(5)) == [
        ("privileged", 1),
        ("privileged", 5),
    ]


def test_above_a_command_or_a_block_it_holds_for_all_of_it():
    shell = "# steadygpu: ignore[privileged] ours\ndocker run \\\n --privileged x\ndocker run\n"
    assert left(shell, finding(2), finding(3), finding(4)) == [("privileged", 4)]
    compose = (
        "services:\n  # steadygpu: ignore[privileged] ours\n  a:\n    privileged: true\n\n"
        "    image: x\n  b:\n    privileged: true\n"
    )
    assert left(compose, finding(4), finding(6), finding(8)) == [("privileged", 8)]


def test_only_the_rules_it_names_and_only_with_a_reason():
    text = "a # steadygpu: ignore[privileged, host-network] ours\n"
    assert left(text, finding(1), finding(1, "host-network"), finding(1, "other")) == [("other", 1)]
    for bad in ("a # steadygpu: ignore[privileged]\n", "a # steadygpu: ignore ours\n"):
        assert left(bad, finding(1)) == [("privileged", 1)]


def test_for_the_whole_file():
    text = "a\n# steadygpu: ignore-file[privileged] a fixture of tests\n"
    assert left(text, finding(0), finding(1), finding(9)) == []


@pytest.mark.parametrize(
    "comment",
    [
        "<!-- steadygpu: ignore-file[privileged] an example -->",
        "; steadygpu: ignore-file[privileged] an example",
        "// steadygpu:ignore-file [privileged]: an example",
    ],
)
def test_other_languages_write_comments_otherwise(comment):
    (found,) = read_ignores(comment + "\n", "f")
    assert found.rules == ("privileged",)
    assert found.reason == "an example"


def test_how_many_were_switched_off_is_counted():
    comments = read_ignores("a # steadygpu: ignore[privileged] ours\n", "f")
    assert without_ignored([finding(1), finding(2)], comments) == ([finding(2)], 1)


def test_at_the_end_of_the_file_nothing_follows():
    assert left("# steadygpu: ignore[privileged] ours", finding(1)) == [("privileged", 1)]
