# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a checkpoint is made of, what is under way, and the way back. Values only, no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# Where everything of this package lies; readable by root only.
DIRECTORY = "/var/lib/steadygpu/rollback"

# Labels that the collection sets itself.
STABLE = "stable"  # the state of the last confirmed change
BEFORE_CHANGE = "before-change"  # the state before the last confirmed change that changed something
BEFORE_RESTORE = "before-restore"  # the state that the last restore replaced


class RollbackError(Exception):
    """Says what was seen, what was wanted and what to do. Nothing was lost."""


class BusyError(RollbackError):
    """Somebody else's run, or window, is in the way; nothing was changed."""


class NewerStoreError(RollbackError):
    """The store was written by a newer program."""


# -- what a checkpoint holds ------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One path as it was.

    ``kind`` is ``file``, ``link``, ``directory``, ``absent`` or ``other`` (a device, socket or
    FIFO: told, never restored). ``mode`` are permission bits. ``digest`` is the SHA-256 of a
    file's content in hexadecimal, which is also its name in the store. ``xattrs`` are those that
    can be set back (not the kernel's own measurements such as ``security.ima``).
    """

    kind: str
    mode: int = 0
    uid: int = 0
    gid: int = 0
    xattrs: Mapping[str, bytes] = field(default_factory=dict)
    digest: str | None = None
    size: int = 0
    target: str | None = None

    @property
    def there(self) -> bool:
        """Is there anything at the path?"""
        return self.kind != "absent"


ABSENT = Entry("absent")


@dataclass(frozen=True)
class UnitState:
    """One systemd unit: ``LoadState``, ``ActiveState``, ``UnitFileState``, its drop-ins' paths."""

    load: str
    active: str
    enabled: str
    drop_ins: tuple[str, ...] = ()


@dataclass(frozen=True)
class PackageState:
    """An installed package; what is not installed is not named.

    ``version`` is "" for one that a package manager which was killed has left half done.
    """

    version: str
    held: bool


@dataclass(frozen=True)
class State:
    """A host at one moment.

    ``files`` by absolute path; every named path and every parent directory below which we may
    create something is there, ``absent`` if it is. ``sysctls`` are live values by dotted name.
    ``mig`` is :func:`..mig.targets.to_json` of every GPU, None where there is no driver to ask.
    ``runtime`` is what :mod:`.observation.fingerprint` sees, in JSON types: told and compared,
    never restored. ``unknown`` says of a part (``units``, ``mig`` …) why it could not be read: such
    a part is empty, is not compared and is not restored.
    """

    files: Mapping[str, Entry] = field(default_factory=dict)
    units: Mapping[str, UnitState] = field(default_factory=dict)
    sysctls: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, PackageState] = field(default_factory=dict)
    mig: Sequence[Mapping[str, Any]] | None = None
    kernel_cmdline: str = ""
    runtime: Mapping[str, Any] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reason:
    """Why there is a change: free text for a person. ``what`` names the play or role.

    ``window`` is the maintenance window that the change belongs to.
    """

    who: str = ""
    why: str = ""
    ticket: str = ""
    window: str = ""
    what: str = ""


@dataclass(frozen=True)
class Host:
    """Whose state it is; ``machine`` is the machine-id."""

    machine: str
    hostname: str


@dataclass(frozen=True)
class Checkpoint:
    """A saved state. ``id`` is ``<sequence>-<8 hexadecimal digits of the state's digest>``.

    ``sequence`` counts up in one store whatever the clock does; ``taken_at`` are seconds since
    the epoch by the host's clock. ``declared`` are the paths beyond :mod:`.scope` that the user
    named. ``looked`` are the patterns that were looked at: what a later program looks at beyond
    them was not absent then, it was not known. Empty means all.
    """

    id: str
    sequence: int
    taken_at: float
    host: Host
    reason: Reason
    state: State
    declared: tuple[str, ...] = ()
    looked: tuple[str, ...] = ()


# -- whose a path is --------------------------------------------------------------------


@dataclass(frozen=True)
class Area:
    """Paths that a checkpoint looks at, and what a restore may do with them.

    ``pattern`` is an absolute path whose components may hold ``*``; ``**`` as the last component
    means everything below. ``owner``:

    - ``own``: the name says that the file is ours (or the user declared it): always restored;
    - ``shared``: others write it too: restored only where this collection has written it since;
    - ``seen``: saved and compared, never restored.

    ``tells`` names who must learn of a change: ``docker``, ``systemd``, ``sysctl``, ``boot`` or "".
    ``secret``: the content is never shown, not even redacted.
    """

    pattern: str
    owner: str
    tells: str = ""
    secret: bool = False


# -- a change under way -----------------------------------------------------------------


@dataclass(frozen=True)
class Moment:
    """A time that survives a jumping clock: ``wall`` in seconds since the epoch, ``uptime`` in
    seconds by CLOCK_BOOTTIME, valid within ``boot`` (the kernel's boot id).
    """

    wall: float
    uptime: float
    boot: str


@dataclass(frozen=True)
class Window:
    """An open change: begun, and neither confirmed nor undone.

    ``run`` identifies the run that opened it, ``base`` is the checkpoint to go back to, and
    ``joined`` names what has joined since.
    """

    id: str
    run: str
    base: str
    opened: Moment
    confirm_within_s: float
    reason: Reason = Reason()
    joined: tuple[str, ...] = ()

    def seconds_left(self, now: Moment) -> float:
        """Until it expires; 0 or less when it has.

        Within one boot the wall clock does not count. After a reboot it does, and one that shows
        a time before the opening cannot be trusted: then the window has expired.
        """
        if now.boot == self.opened.boot:
            return self.confirm_within_s - (now.uptime - self.opened.uptime)
        passed = now.wall - self.opened.wall
        return self.confirm_within_s - passed if passed >= 0 else 0.0


# -- the way back -----------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One thing to do on the way back, the same however often it is done.

    ``kind`` says which actor does it (see :mod:`.way_back.actors`), ``subject`` is the path, unit,
    package or setting, ``text`` tells a person, ``details`` are JSON types that the actor knows.
    """

    kind: str
    subject: str
    text: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Left:
    """What a restore did not bring back, and why; ``pending`` if doing it again later may help."""

    subject: str
    reason: str
    pending: bool = False


@dataclass(frozen=True)
class Plan:
    """The way back: ``steps`` in order; ``conflicts`` are the paths that others changed since,
    whose content is kept beside; ``left`` is what stays as it is.
    """

    steps: tuple[Step, ...] = ()
    conflicts: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()


@dataclass(frozen=True)
class RestoreOptions:
    """``packages``: may packages be installed, downgraded and removed. ``other_host``: may a
    checkpoint of another machine be restored here. ``deadline_s`` bounds each reload or restart.
    ``reason`` says who goes back, and why.
    """

    packages: bool = False
    other_host: bool = False
    deadline_s: float = 120.0
    reason: Reason = Reason()


@dataclass(frozen=True)
class RestoreJournal:
    """A restore that has begun. ``target`` is where it goes, ``replaced`` the checkpoint of what
    was there. ``window`` is the id of the window that it ends, or "".
    """

    target: str
    replaced: str
    window: str
    options: RestoreOptions
    plan: Plan


@dataclass(frozen=True)
class Done:
    """What an actor did: ``changed``, and ``left`` where it could not, or should not, now."""

    changed: bool = False
    left: tuple[Left, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class Outcome:
    """What came of begin, confirm or restore, for modules and the CLI.

    ``checkpoint`` is the checkpoint that counts (base, after, target). ``actions`` tell what was
    or would be done to the host, ``notes`` what is worth knowing, ``warnings`` what needs a look.
    """

    changed: bool = False
    checkpoint: str = ""
    actions: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    window: Window | None = None
    opened: bool = False


# -- the difference of two states -------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """One thing that differs. All texts are redacted already.

    ``part`` is ``file``, ``unit``, ``sysctl``, ``package``, ``mig``, ``kernel``, ``device``,
    ``driver``, ``toolkit`` or ``container``; ``kind`` ``added``, ``removed`` or ``changed``.
    ``before`` and ``after`` are one line each, ``lines`` a unified diff of text where there is one.
    ``counts`` is False for what comes and goes by itself, such as memory in use: it is told, but
    two states that differ in nothing else are the same.
    """

    part: str
    subject: str
    kind: str
    before: str = ""
    after: str = ""
    lines: tuple[str, ...] = ()
    counts: bool = True


@dataclass(frozen=True)
class Difference:
    """What differs between two states; ``before`` and ``after`` name them (an id, or ``now``)."""

    before: str
    after: str
    changes: tuple[Change, ...] = ()

    @property
    def empty(self) -> bool:
        """Are the two the same in all that counts?"""
        return not any(change.counts for change in self.changes)
