# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu rules``: what the checks know, and the whole text of one rule."""

from __future__ import annotations

import sys
import textwrap
from typing import Any

_UNUSABLE = 2


def register(commands: Any) -> None:
    """Add ``rules`` to the sub-parsers of the command."""
    rules = commands.add_parser(
        "rules",
        help="list the rules of steadygpu check, or show one",
        description="List the rules of steadygpu check by severity, or show all of one rule.",
    )
    rules.add_argument("id", nargs="?", metavar="ID", help="the rule to show")
    rules.set_defaults(run=lambda arguments: show(arguments.id))


def show(name: str | None) -> int:
    """Print every rule in a line, or one in full: 0, 2 for a rule there is not."""
    from ansible_collections.steadygpu.host.plugins.module_utils.checks import registry
    from steadygpu_agent.check_run import printable_output
    from steadygpu_agent.table import table

    printable_output()
    rules = registry.all_rules()
    if name is None:
        by_severity = sorted(rules.values(), key=lambda rule: (-rule.severity, rule.id))
        rows = [[rule.id, rule.severity.label, rule.title] for rule in by_severity]
        print(table([["RULE", "SEVERITY", "WHAT IT FINDS"], *rows]))
        return 0
    if name not in rules:
        import difflib

        near = difflib.get_close_matches(name, rules, n=3)
        hint = f"; is it {' or '.join(near)}?" if near else "; steadygpu rules lists them"
        print(f"steadygpu rules: there is no rule {name!r}{hint}", file=sys.stderr)
        return _UNUSABLE
    print(page(rules[name]))
    return 0


def page(rule: Any) -> str:
    """One rule for a person. Pure."""
    facts = [
        ("why", rule.reason),
        ("fix", rule.fix),
        ("versions", "; ".join(str(need) for need in rule.needs) or "all"),
        ("sources", "; ".join(rule.sources)),
    ]
    lines = [f"{rule.id} ({rule.severity.label}): {rule.title}"]
    for word, said in facts:
        head = f"  {word}: ".ljust(12)
        lines += textwrap.wrap(said, 100, initial_indent=head, subsequent_indent=" " * 12)
    return "\n".join(lines)
