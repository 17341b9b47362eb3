# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All slices that one role keeps: made together, looked at together first, taken back together.

What the role keeps is remembered (:mod:`..settings.record`, owner ``slices``) before the first file
is written. A slice that is no longer wanted goes when nobody lives in it; until then it stays as it
is, with a warning, and the next run tries again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from .. import boot_unit
from ..atomic import read_text
from ..settings import record as records
from ..settings.model import Setting as Verdict
from ..settings.model import SettingsError
from .manage import ensure_absent, ensure_present
from .model import Outcome, SliceError, Wish
from .proof import place
from .unit_text import is_ours

OWNER = "slices"
_UNIT_HEAD = "# Written by steadygpu.host.systemd_slice, which also removes it."


@dataclass
class Together:
    """What was, or in check mode would be, done, and what each slice came to."""

    actions: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    diff: list[dict[str, str]] = field(default_factory=list)
    slices: dict[str, Outcome] = field(default_factory=dict)
    docker_parent_is_ours: bool = False

    @property
    def verdicts(self) -> list[Verdict]:
        """What is said of every property of every slice."""
        return [one for outcome in self.slices.values() for one in outcome.verdicts]

    def take_in(self, outcome: Outcome) -> None:
        """Add what one slice did."""
        self.actions += outcome.actions
        self.warnings += [said for said in outcome.warnings if said not in self.warnings]
        self.diff += outcome.diff


def ensure_slices(
    wishes: Sequence[Wish],
    check_mode: bool,
    docker_parent: bool = False,
    docker_owns_parent: bool = False,
    root: str = "/",
) -> Together:
    """Make exactly these slices be, of all that this role ever made. Raises SliceError.

    ``docker_parent``: one of them is about to be Docker's cgroup-parent. ``docker_owns_parent``:
    daemon.json has a cgroup-parent of ours, so that the memory of having set it is kept.
    """
    together = Together()
    old = _recorded(root)
    ordered = _parents_first(wishes)
    wanted = {wish.unit_path: wish for wish in ordered}
    going = list(
        reversed(_parents_first([_gone(path) for path in old.files if path not in wanted]))
    )
    _refuse_others(ordered, root)
    was_ours = bool(old.extra.get("docker_parent"))
    together.docker_parent_is_ours = was_ours and docker_owns_parent
    # Everything is looked at before anything is touched.
    foreseen = {wish.name: ensure_present(wish, check_mode=True) for wish in ordered}
    if check_mode:
        for name, outcome in foreseen.items():
            together.slices[name] = outcome
            together.take_in(outcome)
        for wish in going:
            together.take_in(_take_back(wish, ordered, True)[0])
        together.actions += _at_boot(ordered, True, root)
        return together
    extra = {"docker_parent": True} if docker_parent or together.docker_parent_is_ours else {}
    try:
        _remember([*old.files, *wanted], extra, root)
        for wish in ordered:
            outcome = foreseen[wish.name]
            if outcome.changed or not outcome.control_group:
                outcome = ensure_present(wish, check_mode=False, verified=True)
            together.slices[wish.name] = outcome
            together.take_in(outcome)
        left = []
        for wish in going:
            outcome, stays = _take_back(wish, ordered, False)
            together.take_in(outcome)
            left += [wish.unit_path] if stays else []
        together.actions += _at_boot(ordered, False, root)
        _remember([*wanted, *left], extra, root)
    except SliceError as error:
        done = ", ".join(together.slices)
        raise SliceError(f"{error}\nDone before: {done}" if done else str(error)) from error
    except (OSError, boot_unit.ForeignUnitError) as error:
        raise SliceError(str(error)) from error
    return together


def _refuse_others(wishes: Sequence[Wish], root: str) -> None:
    """Refuse the name of a partition of the role realtime, and a boot unit of somebody else."""
    try:
        realtime = records.load("realtime", root)
        if wishes:
            boot_unit.refuse_foreign(_unit(wishes), root)
    except (SettingsError, boot_unit.ForeignUnitError, OSError) as error:
        raise SliceError(str(error)) from error
    partitions = realtime.extra.get("partition_slices", []) if realtime else []
    for wish in wishes:
        if wish.name in partitions:
            raise SliceError(
                f"{wish.name} is the CPU partition of the role realtime (rt_scheduling), which "
                "writes its unit file: wanted another name here, or another partition there"
            )


def docker_key_is_ours(record_path: str) -> bool:
    """Does the record of daemon.json say that cgroup-parent is of this collection?"""
    try:
        said = json.loads(read_text(record_path) or "{}")
        return any(one["key"] == ["cgroup-parent"] for one in said.get("owned", []))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # docker_daemon itself says what is wrong with its record.
        return False


def _remember(paths: Sequence[str], extra: Mapping[str, bool], root: str) -> None:
    if paths or extra:
        records.save(records.Record(OWNER, files=tuple(sorted({*paths})), extra=dict(extra)), root)
    else:
        records.forget(OWNER, root)


def _recorded(root: str) -> records.Record:
    try:
        return records.load(OWNER, root) or records.Record(OWNER)
    except SettingsError as error:
        raise SliceError(str(error)) from error


def _parents_first(wishes: Sequence[Wish]) -> list[Wish]:
    return sorted(wishes, key=lambda wish: (wish.name.count("-"), wish.name))


def _gone(path: str) -> Wish:
    directory, name = os.path.split(path)
    return Wish(name, "", {}, directory)


def _take_back(wish: Wish, wanted: Sequence[Wish], check_mode: bool) -> tuple[Outcome, bool]:
    """Remove a slice nobody wants any more; True when it has to stay."""
    text = read_text(wish.unit_path)
    if text is None or not is_ours(text):
        # Somebody took it away, or over.
        return Outcome(), False
    try:
        if any(_is_below(one.name, wish.name) for one in wanted):
            # It cannot be stopped under those below it, so it goes on without limits.
            return ensure_present(replace(wish, description="Holds other slices"), check_mode), True
        return ensure_absent(wish, check_mode), False
    except SliceError as error:
        return Outcome(warnings=[f"{wish.name} stays until it is empty. {error}"]), True


def _is_below(name: str, parent: str) -> bool:
    return place(name).startswith(place(parent) + "/")


def _at_boot(wishes: Sequence[Wish], check_mode: bool, root: str) -> list[str]:
    """A unit that starts the slices at boot; else each would wait for its first container."""
    change = boot_unit.install if wishes else boot_unit.remove
    return change(_unit(wishes), check_mode, root)


def _unit(wishes: Sequence[Wish]) -> boot_unit.BootUnit:
    return boot_unit.BootUnit("steadygpu-slices.service", _boot_text(wishes))


def _boot_text(wishes: Sequence[Wish]) -> str:
    names = " ".join(wish.name for wish in wishes)
    return f"""\
{_UNIT_HEAD}
[Unit]
Description=Start the slices for GPU work
Wants={names}
After={names}
Before={boot_unit.ENGINES}

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true

[Install]
WantedBy=multi-user.target
"""
