# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a change of containerd and runc means. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ..checks.host import HostPackage, HostView
from ..checks.model import Severity
from ..checks.versions import matrix
from ..containerd.config import NEEDS_RELEASE, REMOVED_SHIMS
from ..engine import living
from ..versions import at_least
from . import releases
from .model import ERROR, INFO, WARNING, Host, Item, Move, listed

# The programs of the shims that are gone, by the name that a runtime has for them.
_OLD_PROGRAMS = ("containerd-shim", "containerd-shim-runc-v1")


def containerd(host: Host, move: Move) -> Iterator[Item]:
    """Its configuration file, its shims and its unit."""
    target = move.after.get("containerd", "")
    if not target or not move.before.get("containerd"):
        return
    yield from _file(host, move, target)
    yield from _shims(host, move)
    yield from newer_shims(host, target)
    if move.gains("containerd", releases.NOFILE_CONTAINERD):
        yield from _nofile(host)


def _file(host: Host, move: Move, target: str) -> Iterator[Item]:
    if host.containerd_fault:
        yield Item(
            "containerd-config-unreadable",
            ERROR,
            "containerd's configuration cannot be read",
            host.containerd_fault,
            "containerd would not start with it, and Docker neither.",
            "Repair the file.",
            releases.CONTAINERD_CONFIG_SOURCE,
        )
    if host.containerd_config is None:
        return
    for file in host.containerd_config.files:
        needs = NEEDS_RELEASE.get(file.version)
        if needs is not None and not at_least(target, needs):
            yield Item(
                "containerd-config-too-new",
                ERROR,
                f"containerd {target} does not read version {file.version} of its configuration",
                f"{file.path} says version = {file.version}",
                "It would not start, and Docker neither.",
                "Put back the file in the older version first; the newer containerd reads both.",
                releases.CONTAINERD_CONFIG_SOURCE,
                needs,
            )
    for version, release in sorted(NEEDS_RELEASE.items()):
        main = host.containerd_config.main
        if main.version < version and move.gains("containerd", release):
            yield Item(
                "containerd-config-older",
                INFO,
                f"containerd {release} and newer have version {version} of the configuration",
                f"{main.path} says version = {main.version}",
                "It is translated in memory at each start; the file stays as it is, so that the "
                "way back stays open.",
                "Nothing now. `containerd config migrate` prints the newer form.",
                releases.CONTAINERD_CONFIG_SOURCE,
                release,
            )


def _shims(host: Host, move: Move) -> Iterator[Item]:
    if not move.gains("containerd", releases.SHIMS_GONE):
        return
    named = []
    if host.containerd_config is not None:
        named = [
            f"runtime {one.name} in {one.file.path}"
            for one in host.containerd_config.runtimes()
            if one.kind in REMOVED_SHIMS
        ]
    runtimes = host.config.get("runtimes")
    for name, one in (runtimes if isinstance(runtimes, dict) else {}).items():
        if isinstance(one, dict) and one.get("runtimeType") in REMOVED_SHIMS:
            named.append(f"runtime {name} in daemon.json")
    named += [f"container {one.name}" for one in host.containers if one.runtime in REMOVED_SHIMS]
    alive = sum(shim.program in _OLD_PROGRAMS for shim in host.shims)
    if alive:
        named.append(f"{alive} running shim(s) of the first generation")
    if named:
        yield Item(
            "shims-gone",
            ERROR,
            "containerd 2.0 has no shims of the first generation",
            listed(named),
            "It neither starts nor finds containers of io.containerd.runtime.v1.linux and "
            "io.containerd.runc.v1.",
            "Name io.containerd.runc.v2 instead, and create such containers anew first.",
            releases.SHIMS_SOURCE,
            releases.SHIMS_GONE,
        )


def newer_shims(host: Host, target: str) -> Iterator[Item]:
    """Whom a containerd of release ``target`` ends, since it does not understand their shims."""
    lost = lost_to(host, target)
    if lost:
        yield Item(
            "shim-newer",
            ERROR,
            f"containerd {target} ends containers that a newer one has started",
            f"it would end: {listed(lost)}",
            "A shim that containerd 2.0 or newer has started speaks version 3. An older containerd "
            "says unsupported shim version when it starts, and ends the container; live-restore "
            "does not keep it.",
            "Wait until these have ended, or stop them; they can be started again afterwards. If "
            "they may end: migrate_accept with shim-newer and the reason.",
            releases.SHIM_VERSION_SOURCE,
            "2.0.0",
        )


def lost_to(host: Host, target: str) -> list[str]:
    """Their names: Docker's, or ``NAMESPACE/ID``."""
    known = {one.id: one.name for one in host.containers}
    return [
        known.get(shim.container, f"{shim.namespace}/{shim.container[:12]}")
        for shim in host.shims
        if shim.container and shim.version > living.speaks(target)
    ]


def _nofile(host: Host) -> Iterator[Item]:
    limits = host.config.get("default-ulimits")
    if isinstance(limits, dict) and "nofile" in limits:
        return
    yield Item(
        "nofile-1024",
        WARNING,
        "Containers start with a soft limit of 1024 open files",
        "default-ulimits of daemon.json has no nofile",
        "containerd.service no longer sets LimitNOFILE. Containers that run keep theirs; new "
        "and restarted ones get the soft limit of systemd, which data loaders and NCCL reach.",
        "Set default-ulimits.nofile (Soft and Hard, such as 1048576) in daemon.json, or give "
        "--ulimit nofile=… where it is needed.",
        releases.NOFILE_SOURCE,
        releases.NOFILE_CONTAINERD,
    )


def runc(host: Host, move: Move, packages: dict[str, str]) -> Iterator[Item]:
    """Faults of the other runc that this one has not. ``packages`` are those after the change."""
    after = _faults(host, packages.get("runc") or move.after.get("runc", ""))
    before = _faults(host, host.installed.get("runc") or move.before.get("runc", ""))
    worse = [cve for cve in after if cve not in before]
    if worse:
        # A way back must not hang on it.
        down = not at_least(move.after.get("docker"), move.before.get("docker", ""))
        yield Item(
            "runc-floor",
            WARNING if down else ERROR,
            "The other runc has security holes that this one has not",
            f"runc {packages.get('runc') or move.after.get('runc')}: {listed(worse)}",
            "They let a container out.",
            f"Take a package with the fixes ({after[worse[0]]} or newer), or say why it must be.",
            "docs/versions.md",
        )


def _faults(host: Host, version: str) -> dict[str, str]:
    """Grave open advisories of a runc package, each with the version that has the fix."""
    if not version:
        return {}
    view = HostView(
        live=True,
        versions={"runc": version},
        packages={"runc": HostPackage(version)},
        os=host.os,
    )
    return {
        one.cve: one.fixed
        for one in matrix.exposures("runc", view)
        if one.severity >= Severity.ERROR
    }
