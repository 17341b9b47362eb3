# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person reads from ``steadygpu checkpoint``. Pure, but for looking up a checkpoint."""

from __future__ import annotations

from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils.rollback import model, view
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.difference import (
    compare,
    show_text,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.difference.show_text import (
    visible,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage.store import Store
from ansible_collections.steadygpu.host.plugins.module_utils.secrets import redact
from steadygpu_agent.table import table


def listing(found: dict[str, Any], unfinished: str, machine: str) -> str:
    """What ``list`` prints. ``found`` is what ``list --json`` does, ``unfinished`` the target of a
    restore that did not end, ``machine`` this host's id: others' checkpoints are told from ours.
    """
    rows = [["ID", "TAKEN (UTC)", "LABELS", "BY", "FOR"]]
    for one in found["checkpoints"]:
        taken = one["taken_at"].replace("T", " ")[:16]
        labels = ", ".join(one["labels"]) or "-"
        purpose = [f"of {visible(one['hostname'])}"] if one["machine"] != machine else []
        purpose += [words] if (words := _purpose(one)) else []
        who = visible(redact.phrase(one["who"]))
        rows.append([one["id"], taken, labels, who or "-", ", ".join(purpose) or "-"])
    none = "no checkpoints; steadygpu checkpoint take makes one"
    parts = [table(rows) if len(rows) > 1 else none]
    opened = found["window"]
    if opened is not None:
        left = opened["seconds_left"]
        time = f"{_duration(left)} left" if left else "its time is over"
        parts.append(
            f"A change is open since {opened['opened_at']}, {time}: {_purpose(opened) or 'unnamed'}"
            f"{', by ' + visible(opened['who']) if opened['who'] else ''}.\n"
            f"  steadygpu checkpoint confirm   keeps it\n"
            f"  steadygpu checkpoint restore   undoes it, back to {opened['base']}"
        )
    if unfinished:
        parts.append(
            f"A restore to {unfinished} was interrupted.\n  steadygpu checkpoint resume    ends it"
        )
    if found["pending"]:
        lines = ["Left by the last restore; restore the same again when nothing is in the way:"]
        lines += [f"  {line(one['subject'] + ': ' + one['reason'])}" for one in found["pending"]]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def about(store: Store, name: str) -> str:
    """A line that says which checkpoint it is, or that it is the host as it is now."""
    if name == compare.NOW:
        return "the host as it is now"
    for one in store.summaries():
        if one.id == name:
            shown = view.checkpoint(one)
            words = [f"{one.id} of {visible(one.host.hostname)}, taken {shown['taken_at']}"]
            words += [", ".join(one.labels)] if one.labels else []
            words += [f"by {visible(redact.phrase(one.reason.who))}"] if one.reason.who else []
            words += [purpose] if (purpose := _purpose(shown)) else []
            return "; ".join(words)
    return name


def contents(found: model.Difference) -> str:
    """What a checkpoint holds, from its difference to nothing."""
    lines: list[str] = []
    for part in show_text.parts(found.changes):
        lines += ["", show_text.TITLES.get(part, part)]
        for change in found.changes:
            if change.part == part and change.kind == "changed":
                # All else is new against nothing: this part could not be read.
                lines.append(f"  {visible(change.subject)}: {visible(change.after)}")
            elif change.part == part:
                text = show_text.told(change)
                lines.append(f"  {visible(change.subject)}" + (f": {text}" if text else ""))
    return "\n".join(lines)


def report(outcome: model.Outcome) -> str:
    """What was done, a line each."""
    lines = list(outcome.actions)
    lines += [f"kept what others wrote beside it: {path}" for path in outcome.conflicts]
    for one in outcome.left:
        later = "left for later" if one.pending else "left as it is"
        lines.append(f"{later}: {one.subject}: {one.reason}")
    lines += [f"note: {note}" for note in outcome.notes]
    return "".join(f"{line(one)}\n" for one in lines)


def line(text: str) -> str:
    """One line of what may have been several, such as what another program said."""
    return visible(" ".join(text.split()))


def _purpose(one: dict[str, Any]) -> str:
    words = [one["what"], one["why"], one["ticket"], one["window"]]
    return visible(redact.phrase(", ".join(word for word in words if word)))


def _duration(seconds: int) -> str:
    minutes = seconds // 60
    if minutes >= 120:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min" if minutes else f"{seconds} s"
