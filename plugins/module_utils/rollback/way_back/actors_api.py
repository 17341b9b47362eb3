# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the way back needs from a host, and what each kind of step means. No I/O.

Details of a step, in JSON types, by its kind:

=================== ============================================== ===========================
kind                subject                                        details
=================== ============================================== ===========================
``package_install`` the names, for a person (one step for the set) ``packages``: name -> version
``file``            path                                           as below
``slice``           path of a slice unit below /etc/systemd/system as below
``settings``        path of a record of :mod:`...settings`         as below
``systemd_reload``  ``systemd``                                    ``paths``: what changed
``unit``            unit                                           ``enabled``, ``active``
``boot``            ``boot``                                       ``paths``: what changed
``sysctl``          dotted name                                    ``value``
``mig``             UUIDs, separated by commas                     ``gpus``: as in State.mig
``docker``          path of daemon.json                            as below
``containerd``      ``containerd.service``                         ``paths``: what changed
``package_remove``  the names, for a person (one step for the set) ``packages``: list of names
``hold``            the names, for a person (one step for the set) ``packages``: name -> held
=================== ============================================== ===========================

A step for a path has ``entry`` (what it shall be, :func:`..codec.entry_to_json`), ``expected`` (the
token, see :func:`token`, of what the plan found there) and ``conflict``. An actor need not
look at the last two: before it is called, the entry's content was vouched for and what others wrote
was kept beside the path. Steps of the kind ``file`` need no actor, see :mod:`.carry_out`.

``docker`` may have ``waits``, why an earlier restore left its restart to somebody else, and
``said``, when it told so, in seconds since the epoch: it still is so if the daemon has not started
since.

``unit``: ``enabled`` is the wanted ``UnitFileState`` (``enabled`` or ``disabled``), ``active`` the
wanted ``ActiveState`` (``active`` or ``inactive``); a key that is not there is not to be touched.

``containerd``, ``systemd_reload``: the files are in place already; the actor makes them count as
far as that costs nobody anything, and tells the rest as ``Left`` with ``pending``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from ..model import Checkpoint, Done, Entry, Host, Moment, RestoreOptions, State, Step

PACKAGE_INSTALL = "package_install"
FILE = "file"
SLICE = "slice"
SETTINGS = "settings"
SYSTEMD_RELOAD = "systemd_reload"
BOOT = "boot"
UNIT = "unit"
SYSCTL = "sysctl"
MIG = "mig"
DOCKER = "docker"
CONTAINERD = "containerd"
PACKAGE_REMOVE = "package_remove"
HOLD = "hold"

# Kinds whose subject is a path that becomes exactly what ``details["entry"]`` says.
PATH_KINDS = frozenset({FILE, SLICE, SETTINGS, DOCKER})


@dataclass(frozen=True)
class Context:
    """What an actor may use beside its step.

    ``content`` opens the content of a digest (verified; raises RollbackError when it is missing or
    damaged). ``root`` is where the host's tree lies, ``/`` on a real host; subjects are paths as
    seen from it.
    """

    content: Callable[[str], BinaryIO]
    options: RestoreOptions
    target: Checkpoint
    root: str = "/"


# Does one step; doing it again does nothing more. What it could not, or should not, do now it tells
# as ``Done.left``. Raises RollbackError (from OSError where there was one, so that a full disk is
# told from the rest); nothing is half done then.
Actor = Callable[[Step, Context], Done]


class RestoreHost(Protocol):
    """The host that is brought back."""

    @property
    def root(self) -> str:
        """Where its tree lies: ``/``, or a scratch directory in tests."""

    def observe(self, sink: Any, declared: Sequence[str]) -> State:
        """What it is now; contents of files go to ``sink`` (``put_file``, ``put``)."""

    def machine(self) -> Host:
        """Which host it is."""

    def moment(self) -> Moment:
        """The time, by both clocks."""

    def actors(self) -> Mapping[str, Actor]:
        """Who does the steps, by kind. A kind that is not there is told as left."""


def token(entry: Entry | None) -> str:
    """What a path holds, as one word to compare; no metadata.

    The digest of a file (as the ledger of :mod:`...vouched` has it), ``absent`` (also for None),
    ``link:<target>``, ``directory`` or ``other``.
    """
    if entry is None:
        return "absent"
    if entry.kind == "file":
        return entry.digest or "file"
    if entry.kind == "link":
        return f"link:{entry.target}"
    return entry.kind
