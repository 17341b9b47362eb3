# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which paths belong to a checkpoint, and whose they are. Pure.

A pattern is an absolute path whose components may hold ``*``: any characters but a slash, and not
the dot that a hidden name begins with. ``**`` as the last component is everything below.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import cache

from .model import DIRECTORY, Area, RollbackError

# What a restore puts beside a path that others have changed, for a person to look at.
CONFLICT = ".steadygpu-conflict"
_KEPT = re.compile(r".*\.steadygpu-conflict(-[0-9]+)?", re.DOTALL)
# What a killed run of :mod:`.way_back.put_back` leaves.
_TEMPORARY = re.compile(r"\..*\.steadygpu-[0-9a-f]{8}", re.DOTALL)

_SPECS = ("/etc/cdi", "/run/cdi")
_UNITS = "/etc/systemd/system"
_ENGINE_UNITS = (
    "docker.service",
    "docker.socket",
    "containerd.service",
    "nvidia-persistenced.service",
    "nvidia-fabricmanager.service",
    "nvidia-cdi-refresh.service",
    "nvidia-cdi-refresh.path",
)


def _areas(owner: str, tells: str, *patterns: str, secret: bool = False) -> tuple[Area, ...]:
    return tuple(Area(pattern, owner, tells, secret) for pattern in patterns)


AREAS: tuple[Area, ...] = (
    # Ours by name: configuration, and what the collection remembers of the host.
    *_areas("own", "", "/etc/steadygpu/**", "/var/lib/steadygpu/owned/*"),
    *_areas("own", "", "/var/lib/steadygpu/bandwidth.json"),
    # Ours by name: units, and the links that enable them.
    *_areas(
        "own",
        "systemd",
        *(f"{_UNITS}/steadygpu-*.{kind}" for kind in ("service", "path", "timer", "socket")),
        f"{_UNITS}/multi-user.target.wants/steadygpu-*",
    ),
    # Ours by name: package sources and pins, device specs, kernel settings.
    *_areas(
        "own",
        "",
        "/etc/apt/keyrings/steadygpu-*",
        "/etc/apt/sources.list.d/steadygpu-*",
        "/etc/apt/preferences.d/steadygpu-*",
        "/etc/apt/apt.conf.d/52steadygpu",
        "/etc/needrestart/conf.d/steadygpu.conf",
        "/etc/yum.repos.d/steadygpu-*.repo",
        "/etc/cdi/steadygpu-*",
    ),
    *_areas("own", "sysctl", "/etc/sysctl.d/*steadygpu*.conf"),
    *_areas(
        "own",
        "boot",
        "/etc/modprobe.d/*steadygpu*",
        "/etc/modules-load.d/*steadygpu*",
        "/etc/default/grub.d/*steadygpu*.cfg",
    ),
    # What they set live comes back with the records in /var/lib/steadygpu/owned.
    *_areas("own", "", "/etc/udev/rules.d/*steadygpu*", "/etc/tmpfiles.d/*steadygpu*.conf"),
    # In whatever directory below it containerd imports; conf.d and config.d are not the only ones.
    *_areas("own", "", "/etc/containerd/*/*steadygpu.toml", "/etc/containerd/*/*/*steadygpu.toml"),
    # The engine's own files: our keys are merged into what others wrote.
    *_areas("shared", "docker", "/etc/docker/daemon.json"),
    *_areas(
        "shared",
        "",
        "/etc/containerd/config.toml",
        "/etc/containerd/conf.d/*.toml",
        "/etc/containerd/config.d/*.toml",
        "/etc/nvidia-container-runtime/config.toml",
        "/etc/nvidia-container-toolkit/**",
    ),
    # Device specs. /var/run is a link to /run on every host with systemd.
    *_areas(
        "shared",
        "",
        *(f"{directory}/*.{kind}" for directory in _SPECS for kind in ("yaml", "json")),
    ),
    # Slices have the names that their users gave them; `systemctl set-property` keeps its values
    # below system.control.
    *_areas(
        "shared",
        "systemd",
        f"{_UNITS}/*.slice",
        f"{_UNITS}/*.slice.d/*.conf",
        "/etc/systemd/system.control/*.slice.d/*.conf",
        *(f"{_UNITS}/{unit}.d/*.conf" for unit in _ENGINE_UNITS),
    ),
    *_areas("shared", "sysctl", "/etc/sysctl.d/*.conf", "/etc/sysctl.conf"),
    # Read by kernel-install when the next kernel comes, and by irqbalance when it starts.
    *_areas("shared", "boot", "/etc/kernel/cmdline"),
    *_areas("shared", "", "/etc/default/irqbalance", "/etc/sysconfig/irqbalance"),
    # Entries in them may contradict ours, and are then switched off where they stand.
    *_areas("shared", "", "/etc/apt/sources.list", "/etc/apt/sources.list.d/*"),
    # Holds on RHEL; on Debian they are in the package database.
    *_areas("shared", "", "/etc/dnf/plugins/versionlock.list", "/etc/dnf/versionlock.toml"),
    # Looked at, because a change there explains what broke; never restored. First what counts at
    # the next boot only, and may keep the host from booting.
    *_areas(
        "seen",
        "boot",
        "/etc/modprobe.d/*.conf",
        "/etc/modules-load.d/*.conf",
        "/etc/default/grub",
        "/etc/default/grub.d/*.cfg",
    ),
    # Credentials of registries and package sources.
    *_areas(
        "seen",
        "",
        "/etc/docker/certs.d/**",
        "/root/.docker/config.json",
        "/etc/containerd/certs.d/**",
        "/etc/apt/auth.conf.d/*",
        secret=True,
    ),
    # Others' preferences of packages, and units of the engine written by hand over the package's.
    *_areas(
        "seen",
        "",
        "/etc/apt/preferences",
        "/etc/apt/preferences.d/*",
        "/etc/yum.repos.d/*.repo",
    ),
    *_areas("seen", "systemd", *(f"{_UNITS}/{unit}" for unit in _ENGINE_UNITS)),
)

# Directories that every host has, or that others make: no restore removes them.
_STANDARD = frozenset(
    {
        "/",
        "/etc",
        "/etc/apt",
        "/etc/apt/apt.conf.d",
        "/etc/apt/preferences.d",
        "/etc/apt/sources.list.d",
        "/etc/containerd/*",
        "/etc/containerd/*/*",
        "/etc/default",
        "/etc/default/grub.d",
        "/etc/dnf",
        "/etc/dnf/plugins",
        "/etc/kernel",
        "/etc/modprobe.d",
        "/etc/modules-load.d",
        "/etc/sysconfig",
        "/etc/sysctl.d",
        "/etc/systemd",
        "/etc/systemd/system",
        "/etc/systemd/system/multi-user.target.wants",
        "/etc/tmpfiles.d",
        "/etc/udev",
        "/etc/udev/rules.d",
        "/etc/yum.repos.d",
        "/run",
        "/var",
        "/var/lib",
        # Ours, but the store lies in it.
        "/var/lib/steadygpu",
    }
)

# What no checkpoint may hold, and why. The store and the program are the way back itself.
_REFUSED: tuple[tuple[str, str], ...] = (
    (DIRECTORY, "checkpoints themselves lie there"),
    ("/var/lib/steadygpu/mig", "the journal of a MIG change under way lies there"),
    ("/usr/local/lib/steadygpu", "the program that restores lies there"),
    ("/usr/local/bin/steadygpu", "it is the program that restores"),
    ("/proc", "the kernel makes it"),
    ("/sys", "the kernel makes it"),
    ("/dev", "the kernel makes it"),
    ("/run", "it does not outlive a boot"),
    ("/var/lib/docker", "running containers live in it"),
    ("/var/lib/containerd", "running containers live in it"),
    ("/var/lib/kubelet", "running containers live in it"),
    ("/var/lib/dpkg", "only the package manager may change it"),
    ("/var/lib/rpm", "only the package manager may change it"),
    ("/usr/lib/sysimage", "only the package manager may change it"),
)


def areas(declared: Sequence[str] = ()) -> tuple[Area, ...]:
    """The areas to look at, the first that matches a path counts.

    ``declared`` are paths or patterns of the user's, restored as if they were ours; a directory
    means all that is in it. Raises RollbackError for a path that cannot be kept.
    """
    wanted = [_declared(path) for path in declared]
    first: list[Area] = []
    for path in wanted:
        # What is known of a path, such as who must learn of a change, stays known of it.
        within = [a for a in AREAS if _covers(path, a.pattern) and a.pattern != path]
        first += [Area(a.pattern, "own", a.tells, a.secret) for a in within]
        known = area_of(path, AREAS)
        tells, secret = (known.tells, known.secret) if known else ("", False)
        secret = secret or any(a.secret and _covers(a.pattern, path) for a in AREAS)
        first.append(Area(path, "own", tells, secret))
        if not path.endswith("/**"):
            first.append(Area(f"{path}/**", "own", tells, secret))
    return (*first, *AREAS)


def patterns(declared: Sequence[str] = ()) -> tuple[str, ...]:
    """What a checkpoint taken by this program looks at, as ``Checkpoint.looked`` keeps it."""
    return tuple(area.pattern for area in areas(declared))


def looked_at(path: str, looked: Sequence[str]) -> bool:
    """Would a program that looked at these patterns have seen ``path``? () stands for all."""
    return not looked or area_of(path, [Area(pattern, "own") for pattern in looked]) is not None


def area_of(path: str, areas: Sequence[Area]) -> Area | None:
    """The area that ``path`` belongs to, None where no checkpoint looks.

    A directory that leads to own or shared paths is in an area of its own: ``own`` where its name
    says so, else ``shared``, since /etc/cdi is not ours for having a file of ours in it. What a
    restore keeps beside a path, and temporary files of ours, belong to none.
    """
    path = canonical(path)
    if is_aside(posixpath.basename(path)):
        return None
    for area in areas:
        if _pattern(area.pattern).fullmatch(path):
            return area
    for area in areas:
        if any(_pattern(parent).fullmatch(path) for parent in parents(area)):
            return Area(path, "own" if "steadygpu" in path else "shared")
    return None


def parents(area: Area) -> tuple[str, ...]:
    """Patterns of the directories that lead to ``area`` and may be made for it, outermost first.

    None for an area that is only seen: nothing is made there.
    """
    if area.owner == "seen":
        return ()
    parts = area.pattern.split("/")[:-1]
    above = ("/".join(parts[:count]) for count in range(2, len(parts) + 1))
    return tuple(pattern for pattern in above if pattern not in _STANDARD)


def canonical(path: str) -> str:
    """``path`` by the name that checkpoints use: without needless slashes, /run for /var/run."""
    path = posixpath.normpath(path)
    if path.startswith("//"):
        path = path[1:]
    return path[4:] if path == "/var/run" or path.startswith("/var/run/") else path


def is_aside(name: str) -> bool:
    """Is a file of this name a temporary one of ours, or one kept beside a restored path?"""
    return is_temporary(name) or _KEPT.fullmatch(name) is not None


def is_temporary(name: str) -> bool:
    """Is this the name of what becomes a restored path, or of what a killed run left of one?"""
    return _TEMPORARY.fullmatch(name) is not None


def temporary_name(name: str, token: str) -> str:
    """Where the new form of ``name`` is made, in the same directory.

    ``token`` is 8 hexadecimal digits. No longer than a name may be.
    """
    # A name may have 255 bytes.
    short = os.fsdecode(os.fsencode(name)[:200])
    return f".{short}.steadygpu-{token}"


def is_literal(part: str) -> bool:
    """Does this component of a pattern name exactly one thing?"""
    return "*" not in part


def _declared(path: str) -> str:
    """The declared path as a pattern. Raises RollbackError."""
    if not path.startswith("/") or "\0" in path:
        raise RollbackError(
            f"{path!r} is not an absolute path and cannot be kept in a checkpoint; name it from /"
        )
    pattern = canonical(path)
    parts = pattern.split("/")[1:]
    if ".." in path.split("/"):
        raise RollbackError(f"{path} holds '..'; name the path that it leads to: {pattern}")
    if "**" in parts[:-1]:
        raise RollbackError(f"{path} holds ** before its end; only the last component may be **")
    for refused, reason in _REFUSED:
        if _overlap(pattern, refused):
            raise RollbackError(
                f"{path} cannot be kept in a checkpoint: it covers or lies in {refused}, and "
                f"{reason}; name paths outside of it"
            )
    if len(parts) < 2 or not all(is_literal(part) for part in parts[:2]):
        raise RollbackError(
            f"{path} is too much for a checkpoint, since a restore removes what was not there; "
            "name a file or directory at least two levels below /"
        )
    return pattern


def _overlap(pattern: str, path: str) -> bool:
    """Can ``pattern``, or what lies below it, be ``path``, above it or below it?"""
    for part, name in zip(pattern.split("/")[1:], path.split("/")[1:]):
        if part == "**":
            return True
        if part and not component(part).fullmatch(name):
            return False
    return True


def _covers(wide: str, pattern: str) -> bool:
    """Is everything that ``pattern`` matches at ``wide`` or below it?"""
    wide_parts, parts = wide.split("/")[1:], pattern.split("/")[1:]
    if wide_parts[-1] == "**":
        wide_parts = wide_parts[:-1]
        if len(parts) <= len(wide_parts):
            return False
    if len(parts) < len(wide_parts):
        return False
    return all(component(w).fullmatch(p) is not None for w, p in zip(wide_parts, parts))


@cache
def component(part: str) -> re.Pattern[str]:
    """One component of a pattern as a regular expression for a whole name."""
    hidden = r"(?!\.)" if part.startswith("*") else ""
    return re.compile(hidden + "[^/]*".join(map(re.escape, part.split("*"))), re.DOTALL)


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile("/".join(_expressions(pattern)), re.DOTALL)


def _expressions(pattern: str) -> Iterator[str]:
    for part in pattern.split("/"):
        yield ".+" if part == "**" else component(part).pattern
