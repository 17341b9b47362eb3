# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules about the comments that switch rules off."""

from __future__ import annotations

from collections.abc import Iterator

from ..host import HostView
from ..model import Hit, Severity
from ..readers.ignores import IgnoreComment
from ..registry import all_rules, rule


@rule(
    "ignore-without-reason",
    "A comment switches a rule off without saying why",
    Severity.WARNING,
    reads=IgnoreComment,
    reason="The comment does nothing until it names the rules and gives a reason: whoever reads it "
    "next year must be able to tell whether it still holds.",
    fix="write: # steadygpu: ignore[rule-id] why this is right here",
    sources=("steadygpu docs/checks.md",),
)
def ignore_without_reason(comment: IgnoreComment, host: HostView) -> Iterator[Hit]:
    """A comment that lacks its rules or its reason."""
    if not comment.rules:
        yield Hit(comment.at, "the comment names no rule")
    elif not comment.reason:
        named = ", ".join(comment.rules)
        yield Hit(
            comment.at,
            f"no reason stands behind ignore[{named}]",
            fix=f"write: # steadygpu: ignore[{named}] why this is right here",
        )


@rule(
    "ignore-unknown-rule",
    "A comment switches off a rule that does not exist",
    Severity.WARNING,
    reads=IgnoreComment,
    reason="A mistyped id, or that of a rule that was renamed, switches nothing off.",
    fix="take the id from the brackets at the end of the finding's first line",
    sources=("steadygpu docs/checks.md",),
)
def ignore_unknown_rule(comment: IgnoreComment, host: HostView) -> Iterator[Hit]:
    """A comment that names a rule we do not have."""
    known = all_rules()
    for name in comment.rules:
        if name not in known:
            yield Hit(
                comment.at,
                f"there is no rule {name}",
                commands=("steadygpu rules",),
            )
