# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Has this host to reboot so that what was set acts, and was it rebooted for that already?

A reason is a sentence. It holds while the running kernel is not what was asked for; and one that a
reboot did not cure is never a reason for another one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass

from .. import vouched
from ..atomic import read_text
from ..settings import record as records
from ..settings.model import PENDING, SettingsError
from ..settings.readback import read_back

# Outside of what a checkpoint holds: a change that is undone because its reboot was in vain must
# not take the memory of that reboot with it.
MEMORY = "/var/lib/steadygpu/reboot.json"
_BOOT_ID = "proc/sys/kernel/random/boot_id"
# Debian and Ubuntu: packages that ask for a reboot, one a line.
_OTHERS = "run/reboot-required.pkgs"
_VERSION = 1


@dataclass(frozen=True)
class Memory:
    """Why the host was last rebooted, and the boot in which that was decided.

    ``after`` is the first boot after it that was looked at, "" as long as none was.
    """

    boot_id: str
    reasons: tuple[str, ...]
    after: str = ""


@dataclass(frozen=True)
class Verdict:
    """``reasons`` ask for a reboot; ``in_vain`` hold although the host was rebooted for them.

    ``undecided`` were noted in an earlier boot, and whoever noted them has not looked since.
    ``others`` are packages that ask for one, which is not our affair.
    """

    boot_id: str
    reasons: tuple[str, ...] = ()
    in_vain: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()


def look(told: Sequence[str] = (), root: str = "/") -> Verdict:
    """Look at the host. ``told`` are reasons that the caller knows. Raises SettingsError."""
    boot_id = _line(root, _BOOT_ID)
    recorded, undecided = _recorded(boot_id, root)
    reasons = list(dict.fromkeys([*told, *recorded]))
    in_vain = _in_vain(reasons, _memory(root), boot_id)
    others = (_text(root, _OTHERS) or "").split()
    return Verdict(
        boot_id,
        tuple(one for one in reasons if one not in in_vain),
        tuple(in_vain),
        tuple(sorted(set(others))),
        tuple(one for one in dict.fromkeys(undecided) if one not in reasons),
    )


def begin(verdict: Verdict, root: str = "/") -> None:
    """Remember, before the reboot, what it is for. Raises OSError."""
    memory = _memory(root)
    undecided = [one for one in verdict.undecided if memory and one in memory.reasons]
    reasons = (*verdict.in_vain, *undecided, *verdict.reasons)
    _write(Memory(verdict.boot_id, reasons), root)


def forget_cured(verdict: Verdict, root: str = "/") -> None:
    """Let what a boot has cured be a reason again one day. Raises OSError.

    Once a boot: what is undone after the reboot was in vain no longer holds, and is not cured.
    """
    memory = _memory(root)
    if memory is None or verdict.boot_id in (memory.boot_id, memory.after):
        return
    undecided = [one for one in verdict.undecided if one in memory.reasons]
    if verdict.in_vain or undecided:
        kept = (*verdict.in_vain, *undecided)
        _write(Memory(memory.boot_id, kept, verdict.boot_id), root)
    else:
        vouched.remove(os.path.join(root, MEMORY.lstrip("/")), root)


def _in_vain(reasons: Sequence[str], memory: Memory | None, boot_id: str) -> list[str]:
    """Pure. In the boot in which it was decided, the reboot has not happened yet."""
    if memory is None or memory.boot_id == boot_id:
        return []
    return [one for one in reasons if one in memory.reasons]


def _recorded(boot_id: str, root: str) -> tuple[list[str], list[str]]:
    """What the records of all owners say: settings that are pending, and reasons of their own.

    The second list has reasons that an owner noted in another boot.
    """
    found: list[str] = []
    undecided: list[str] = []
    for owner in records.owners(root):
        record = records.load(owner, root)
        if record is None:
            continue
        for former in record.formers:
            setting = read_back(former.target, root)
            if setting.verdict == PENDING:
                found.append(f"{setting.name}: wanted {setting.wanted}, and it acts after a boot")
        for one in record.extra.get("reboot") or []:
            if isinstance(one, dict) and one.get("reason"):
                here = one.get("boot_id") == boot_id
                (found if here else undecided).append(str(one["reason"]))
    return found, undecided


def _memory(root: str) -> Memory | None:
    text = _text(root, MEMORY)
    if text is None:
        return None
    try:
        said = json.loads(text)
        if said["version"] != _VERSION:
            raise ValueError(f"version {said['version']!r}, this reads {_VERSION}")
        reasons = tuple(str(one) for one in said["reasons"])
        return Memory(str(said["boot_id"]), reasons, str(said.get("after", "")))
    except (ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"{MEMORY} is not what this program writes ({type(error).__name__}: {error}). It tells "
            "for what the host was rebooted: remove it, and a reboot is allowed once more"
        ) from error


def _write(memory: Memory, root: str) -> None:
    said = {"version": _VERSION, **vars(memory), "reasons": list(memory.reasons)}
    text = json.dumps(said, indent=2, sort_keys=True) + "\n"
    vouched.write(os.path.join(root, MEMORY.lstrip("/")), text, mode=0o600, root=root)


def _line(root: str, path: str) -> str:
    return (_text(root, path) or "").strip()


def _text(root: str, path: str) -> str | None:
    try:
        return read_text(os.path.join(root, path.lstrip("/")))
    except OSError:
        return None
