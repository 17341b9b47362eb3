# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep settings of one owner: recorded, written, read back; or put back what was there before.

The order survives a kill at any point: the record of the former values, then files, then live
values, then what is no longer wanted. The next run finds the record and completes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .. import vouched
from ..atomic import read_text
from . import files as own_files
from . import record as records
from . import sysctl_files
from .live import writable, write_live
from .model import (
    BOOT_PARAMETER_ABSENT,
    DIFFERS,
    LINE,
    SYSCTL,
    UNSUPPORTED,
    Setting,
    SettingsError,
    Target,
)
from .readback import below, live_path, live_value, read_back, same_value
from .record import NO_FILE, Former, Record


@dataclass
class Outcome:
    """What was, or in check mode would be, done, and what the machine holds now."""

    actions: list[str] = field(default_factory=list)
    diff: list[dict[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Was, or would, anything be done?"""
        return bool(self.actions)

    def differing(self) -> list[Setting]:
        """What is not as wanted although nothing was refused."""
        return [setting for setting in self.settings if setting.verdict == DIFFERS]


class Keeper:
    """All settings of one ``owner`` at a time: what is not given is taken back."""

    def __init__(self, owner: str, check_mode: bool = False, root: str = "/") -> None:
        self._owner = owner
        self._check_mode = check_mode
        self._root = root

    def keep(
        self,
        targets: Sequence[Target],
        files: Mapping[str, str | None] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """Make all ``targets`` effective, and the machine's files hold what ``files`` says.

        ``files`` maps a path to its text, which begins with ``files.MARK``, or to None. Raises
        SettingsError when the kernel refuses a value, or a file is somebody else's: then the host
        is as it was before.
        """
        _refuse_twice(targets)
        files = dict(files or {})
        old = records.load(self._owner, self._root)
        try:
            for path, text in files.items():
                if text is not None:
                    own_files.refuse_foreign(path, self._root)
            self._refuse_outvoted(targets, files)
            formers = tuple(self._former(target, old) for target in targets)
        except OSError as error:
            raise SettingsError(f"{error.filename}: {error.strerror}") from error
        kept = tuple(sorted(path for path, text in files.items() if text is not None))
        new = Record(self._owner, formers, kept, dict(extra or {}))
        return self._change(old, new, files)

    def absent(self) -> Outcome:
        """Put back every former value, and take away every file. Raises SettingsError."""
        old = records.load(self._owner, self._root)
        if old is None:
            return Outcome()
        return self._change(old, None, {})

    def _refuse_outvoted(self, targets: Sequence[Target], files: Mapping[str, str | None]) -> None:
        """Refuse a value that the next boot would take away again."""
        keys = {target.path: target.wanted for target in targets if target.kind == SYSCTL}
        for path, text in files.items():
            named = {key: value for key, value in keys.items() if key in (text or "")}
            for said in sysctl_files.outvoted(named, path, self._root):
                raise SettingsError(
                    f"{said.path} sets {said.key.replace('/', '.')} to {said.value} and is read "
                    f"after {path}, so the next boot would take it back from {self._owner}; remove "
                    "that line, or leave the setting out here"
                )

    def _former(self, target: Target, old: Record | None) -> Former:
        for former in (*old.formers, *old.returning) if old else ():
            if former.target.identity == target.identity:
                return self._renewed(target, former)
        return Former(target, live_value(target, self._root) if target.is_live else None)

    def _renewed(self, target: Target, former: Former) -> Former:
        left = former.left
        if left is None and former.target.wanted != target.wanted:
            # What the kernel holds until the new value is written.
            left = former.target.wanted
        value = former.value
        never_written = value is None and left in (None, NO_FILE) and target.kind != LINE
        if target.is_live and never_written:
            # There was no file then; what it holds now that it is there is the former value.
            value = live_value(target, self._root)
            value = None if left is None and same_value(target, value, target.wanted) else value
        return Former(target, value, left)

    def _change(
        self, old: Record | None, new: Record | None, files: Mapping[str, str | None]
    ) -> Outcome:
        outcome = Outcome()
        before = old or Record(self._owner)
        after = new or Record(self._owner)
        wanted = {former.target.identity for former in after.formers}
        every = (*before.formers, *before.returning)
        dropped = [one for one in every if one.target.identity not in wanted]
        texts = {**dict.fromkeys(before.files), **files}
        run = _Run(self._root, self._check_mode, outcome)
        run.watch([records.path_of(self._owner), *texts])
        try:
            if not self._check_mode and (new or old):
                # What is to be put back stays known until it is.
                paths = tuple(sorted({*before.files, *after.files}))
                both = Record(self._owner, after.formers, paths, after.extra, tuple(dropped))
                records.save(both, self._root)
            for path, text in sorted(texts.items()):
                run.file(path, text)
            for former in after.formers:
                run.wanted(former)
            # Backwards: of a pair such as runtime and period, one bounds the other.
            returning = [run.put_back(former) for former in reversed(dropped)]
            outcome.settings = [run.read(former.target) for former in after.formers]
            last = self._last(new, outcome.settings, [one for one in reversed(returning) if one])
            if not outcome.actions and _says_else(old, last):
                verb = "remember" if last else "forget"
                outcome.actions.append(f"{verb} the settings of {self._owner}")
            if not self._check_mode and last:
                records.save(last, self._root)
            elif not self._check_mode:
                records.forget(self._owner, self._root)
        except (SettingsError, OSError) as error:
            said = error if isinstance(error, SettingsError) else _words(error)
            raise SettingsError(f"{said}\n{run.undo()}") from error
        run.live_diff()
        return outcome

    def _last(
        self, new: Record | None, settings: Sequence[Setting], returning: Sequence[Former]
    ) -> Record | None:
        """What is left to remember at the end of a run."""
        if new is None:
            return Record(self._owner, returning=tuple(returning)) if returning else None
        formers = tuple(
            Former(former.target, former.value, _left(former.target, setting))
            for former, setting in zip(new.formers, settings)
        )
        return Record(new.owner, formers, new.files, new.extra, tuple(returning))


def _left(target: Target, setting: Setting) -> str | None:
    if not target.is_live:
        return None
    if setting.verdict == UNSUPPORTED:
        return NO_FILE
    return setting.effective if setting.verdict == DIFFERS else None


def _says_else(old: Record | None, new: Record | None) -> bool:
    """Are other settings kept than before? What an owner notes for itself changes no host."""

    def said(record: Record | None) -> object:
        if record is None:
            return None
        # A boot parameter that has gone with the last boot is no longer looked for.
        targets = sorted(
            (*one.target.identity, one.target.wanted)
            for one in record.formers
            if one.target.kind != BOOT_PARAMETER_ABSENT
        )
        return targets, sorted(record.files), len(record.returning)

    return said(old) != said(new)


class _Run:
    """The changes of one run, and the way back from them."""

    def __init__(self, root: str, check_mode: bool, outcome: Outcome) -> None:
        self._root = root
        self._check_mode = check_mode
        self._outcome = outcome
        self._texts: dict[str, str | None] = {}
        self._modes: dict[str, int] = {}
        self._values: list[tuple[Target, str | None, str]] = []

    def watch(self, paths: Iterable[str]) -> None:
        """Remember the texts of files that may be changed."""
        for path in paths:
            place = below(self._root, path)
            self._texts[path] = None if os.path.islink(place) else read_text(place)
            if self._texts[path] is not None:
                self._modes[path] = stat.S_IMODE(os.stat(place).st_mode)

    def file(self, path: str, text: str | None) -> None:
        """Write or remove one file. Raises SettingsError and OSError."""
        actions, diff = own_files.ensure_text(path, text, self._check_mode, self._root)
        self._outcome.actions += actions
        self._outcome.diff += diff

    def wanted(self, former: Former) -> None:
        """Make a live value what is wanted, where it is not. Raises SettingsError."""
        target = former.target
        if not target.is_live:
            return
        seen = live_value(target, self._root)
        if same_value(target, seen, target.wanted) or not self._there(target):
            return
        action = f"set {target.name} to {target.wanted} (was {seen or 'unset'})"
        if self._check_mode and former.left is not None and former.left == seen:
            # An earlier run wrote it, and this is what the kernel made of it.
            return
        self._outcome.actions.append(action)
        self._write(target, seen, target.wanted)
        if not self._check_mode and live_value(target, self._root) == seen:
            # Taken without an error and without an effect: nothing was changed.
            self._outcome.actions.remove(action)
            self._values.pop()

    def put_back(self, former: Former) -> Former | None:
        """Give the former value back, unless somebody changed it after us.

        What the kernel refuses, or grants in part, is told and comes back, to be tried again.
        """
        target = former.target
        if not target.is_live or not self._there(target):
            return None
        seen = live_value(target, self._root)
        back = former.value if former.value is not None else target.neutral or None
        if back is None or same_value(target, seen, writable(target, back)):
            return None
        back = writable(target, back)
        ours = (target.wanted, former.left)
        if not any(one is not None and same_value(target, seen, one) for one in ours):
            self._outcome.warnings.append(
                f"{target.name} is {seen}, which is neither what was kept ({target.wanted}) nor "
                f"what was there before ({back}): somebody changed it, and it was left alone"
            )
            return None
        action = f"put {target.name} back to {back} (was {seen or 'unset'})"
        if self._check_mode:
            if former.left is not None and former.left == seen:
                # An earlier run tried, and this is what the kernel made of it.
                return former
            self._outcome.actions.append(action)
            self._values.append((target, seen, back))
            return None
        why = ""
        try:
            write_live(target, back, self._root)
        except OSError as error:
            why = f": {_words(error)}"
        now = live_value(target, self._root)
        if now != seen:
            self._outcome.actions.append(action)
            self._values.append((target, seen, now or "unset"))
        if same_value(target, now, back):
            return None
        self._outcome.warnings.append(
            f"{target.name} could not be put back to {back} and is {now}{why}. Each run tries it "
            "again, and most values are the kernel's own after a reboot"
        )
        return replace(former, left=now)

    def read(self, target: Target) -> Setting:
        """The setting as it is, or in check mode as it is before the run."""
        return read_back(target, self._root)

    def live_diff(self) -> None:
        """The live values as one diff."""
        if not self._values:
            return
        before = [f"{target.name} = {seen or 'unset'}\n" for target, seen, _new in self._values]
        after = [f"{target.name} = {new}\n" for target, _seen, new in self._values]
        self._outcome.diff.append(
            {
                "before_header": "live values",
                "after_header": "live values",
                "before": "".join(before),
                "after": "".join(after),
            }
        )

    def undo(self) -> str:
        """Put everything of this run back, and say how it went."""
        if self._check_mode:
            return "Nothing was changed."
        faults = []
        for target, seen, _new in reversed(self._values):
            back = seen if seen is not None else target.neutral or None
            try:
                if back is not None and not same_value(target, self._now(target), back):
                    write_live(target, back, self._root)
            except OSError as error:
                faults.append(f"{target.name} could not be put back to {back}: {_words(error)}")
        for path, text in self._texts.items():
            place = below(self._root, path)
            try:
                if text is None and not os.path.islink(place):
                    vouched.remove(place, self._root)
                elif text is not None and read_text(place) != text:
                    vouched.write(place, text, self._modes.get(path), self._root)
            except OSError as error:
                faults.append(f"{path} could not be put back: {_words(error)}")
        return "\n".join(faults) or "The host is as it was before."

    def _now(self, target: Target) -> str | None:
        with contextlib.suppress(OSError):
            return live_value(target, self._root)
        return None

    def _there(self, target: Target) -> bool:
        return os.path.exists(below(self._root, live_path(target)))

    def _write(self, target: Target, seen: str | None, value: str) -> None:
        self._values.append((target, seen, value))
        if self._check_mode:
            return
        try:
            write_live(target, value, self._root)
        except OSError as error:
            raise SettingsError(
                f"{target.name}: the kernel refused {value!r} for {live_path(target)}, which holds "
                f"{seen!r}: {_words(error)}" + (f". {target.note}" if target.note else "")
            ) from error


def _refuse_twice(targets: Sequence[Target]) -> None:
    seen: dict[tuple[str, ...], Target] = {}
    for target in targets:
        other = seen.setdefault(target.identity, target)
        if other is not target:
            raise SettingsError(
                f"{target.name} is wanted twice: as {other.wanted!r} and as {target.wanted!r}"
            )


def _words(error: OSError) -> str:
    name = errno.errorcode.get(error.errno or 0, "")
    said = error.strerror or str(error)
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{said}" + (f" ({name})" if name else "")
