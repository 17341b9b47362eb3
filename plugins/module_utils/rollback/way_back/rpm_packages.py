# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""dnf and rpm on the way back: what they have, and doing it.

Edited configuration files of a removed package stay beside as ``.rpmsave``, by rpm's own hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...process import Completed, run
from ..model import RollbackError
from ..observation.package_names import DRIVER_PATTERNS

_DEADLINE_S = 1800.0
_FORM = "%{name}\t%{epoch}\t%{version}-%{release}\n"
# The locks are put back by the restore itself, and would hide the former versions.
_OPTIONS = ("-y", "-q", "--disableplugin=versionlock")


def available(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """By package and version (``[EPOCH:]VERSION-RELEASE``): what dnf is to be given for it."""
    argv = ["dnf", *_OPTIONS, "repoquery", "--showduplicates", "--qf", _FORM, *names]
    found: dict[str, dict[str, str]] = {name: {} for name in names}
    for line in run(argv, 120).stdout.splitlines():
        fields = line.split("\t")
        if len(fields) == 3 and fields[0] in found:
            name, epoch, version = fields
            shown = version if epoch in ("0", "", "(none)") else f"{epoch}:{version}"
            found[name][shown] = f"{name}-{shown}"
    return found


def install(arguments: Sequence[str]) -> None:
    """Bring the packages to these versions, up or down, in one transaction.

    ``dnf install`` of an exact version goes down as well (dnf's command reference). Driver and
    kernel are kept out of the transaction. Raises RollbackError.
    """
    excluded = [f"--exclude={pattern}" for pattern in DRIVER_PATTERNS]
    done = run(["dnf", *_OPTIONS, *excluded, "install", *arguments], _DEADLINE_S)
    _check(done, f"dnf install {' '.join(arguments)}")


def refuse_needed(names: Sequence[str]) -> None:
    """Raises RollbackError if another package needs one of these."""
    _check(run(["rpm", "-e", "--test", *names]), f"rpm -e {' '.join(names)}")


def remove(names: Sequence[str]) -> None:
    """Remove these packages and no other. Raises RollbackError."""
    refuse_needed(names)
    argv = ["dnf", *_OPTIONS, "--setopt=clean_requirements_on_remove=False", "remove", *names]
    _check(run(argv, _DEADLINE_S), f"dnf remove {' '.join(names)}")


def hold(packages: Mapping[str, bool]) -> None:
    """Lock packages to their version, or release them. Raises RollbackError."""
    for verb, held in (("add", True), ("delete", False)):
        names = [name for name in packages if packages[name] is held]
        if names:
            done = run(["dnf", "-y", "-q", "versionlock", verb, *names], 120)
            _check(done, f"dnf versionlock {verb} {' '.join(names)}")


def owner_of(path: str) -> str | None:
    """The package that brought ``path``; None for a file of nobody."""
    done = run(["rpm", "-qf", "--qf", "%{NAME}\n", path])
    return done.stdout.split("\n")[0] or None if done.ok else None


def _check(done: Completed, what: str) -> None:
    if not done.ok:
        raise RollbackError(f"{what} failed: {done.said}")
