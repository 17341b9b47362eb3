# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A package manager at work: its scripts leave engines alone, and what a killed run left is ended.

For whoever changes packages: a set that is wanted, or a restore.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Union

from .. import file_lock, packages, units
from ..slices import reader
from . import dnf, guard, plan
from .apt import Apt
from .model import RefusedError

Manager = Union[Apt, dnf.Dnf]

_LOCK = "run/steadygpu-packages.lock"


@contextlib.contextmanager
def alone(root: str, wait_s: float) -> Iterator[None]:
    """Keep other runs of ours away. Raises RefusedError when one does not end in time, OSError."""
    path = os.path.join(root, _LOCK)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        lock = file_lock.acquire(path, wait_s)
    except file_lock.HeldError as error:
        raise RefusedError(
            f"another run of steadygpu.host, process {error.owner}, has been changing packages for "
            f"{wait_s:.0f} s; wait until it has ended"
        ) from error
    try:
        yield
    finally:
        file_lock.release(lock)


@contextlib.contextmanager
def engines_kept(
    manager: Manager, root: str = "/", removing: Collection[str] = ()
) -> Iterator[Mapping[str, str]]:
    """Yields the environment in which scripts of packages leave engines alone.

    ``removing`` are packages that go: an engine among them has to be stopped, so nothing is kept
    then. Raises OSError, UnitError.
    """
    if plan.engines_removed(removing) or (removing and not isinstance(manager, Apt)):
        # Scripts of rpm stop the units of a package that goes, and no others.
        yield {}
    elif isinstance(manager, Apt):
        with guard.engines_kept(root, manager.busy) as environment:
            yield environment
    else:
        yield dnf.NOTHING_RESTARTS
        if reader.has_systemd(root):
            units.daemon_reload()


def wait_until_free(manager: Manager, root: str, wait_s: float) -> None:
    """Wait for whoever changes packages; only then the guard of a killed run is taken away.

    Its package manager may have outlived it, and still asks. Raises RefusedError, OSError.
    """
    manager.wait_until_free(wait_s)
    if guard.left_behind(root):
        guard.remove(root)


def finish(manager: Manager, root: str, endangered: Callable[[], Sequence[str]]) -> tuple[str, ...]:
    """Finish what was left half done, with engines kept; the names of that.

    Nobody may be at work: his journal looks like that of one that was killed. ``endangered`` tells
    who may lose a GPU. Raises RefusedError before anything is finished, PackageError, OSError.
    """
    if not manager.interrupted():
        return ()
    left = tuple(packages.read_installed(root).unfinished)
    drivers = [name for name in left if packages.never_changed(name)]
    if drivers:
        raise RefusedError(
            f"an interrupted dpkg has left {', '.join(drivers)} half done. Packages of the driver "
            "and the kernel are not touched here: run dpkg --configure -a when nobody needs a GPU"
        )
    plan.refuse_endangered(left or ("what an interrupted dpkg left",), endangered())
    with engines_kept(manager, root) as environment:
        manager.finish_interrupted(environment)
    return left or ("its journal",)
