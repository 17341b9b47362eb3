# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The version matrix: what of it a host is exposed to, and the table for the docs. Pure."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ...versions import parse
from ..host import HostPackage, HostView
from ..inside import inside, mapping, words
from ..model import Severity
from . import vendor
from .components import PACKAGES_OF, TITLES
from .faults import FAULTS, Fault
from .order import at_least_one, not_older
from .pairs import CDI_0_7, CUDA_DRIVER, FIRST_FOR_MODEL, LAST_BRANCH, MIG_DRIVER
from .regressions import REGRESSIONS


class Standing(enum.Enum):
    """How a version stands to a fault that its release number says it has."""

    OPEN = "open"  # upstream's own release: the number tells all
    FIX_OUT = "fix out"  # the distribution has a newer package with the fix
    LEFT_OPEN = "left open"  # the distribution mended others since it was known, and not this one
    NOT_YET = "not yet"  # the distribution's newest known package is older than the advisory
    UNTOLD = "untold"  # built by a distribution of whose package nothing is known


@dataclass(frozen=True)
class Exposure:
    """One advisory (of ``fault.cves``) that is open on a host, and how bad that is there.

    ``fixed`` is the version to go to. ``package`` is the one that is judged, "" for none.
    """

    fault: Fault
    cve: str
    severity: Severity
    standing: Standing
    fixed: str
    package: str = ""


def _cri(host: HostView) -> bool | None:
    """Does a kubelet use containerd? That packages of one are missing proves nothing."""
    words = ("kubelet", "k3s", "rke2", "kubeadm")
    return True if any(name in host.packages for name in words) else None


def _authz(host: HostView) -> bool | None:
    if not mapping(host.facts, "docker"):
        return None
    flags = mapping(host.facts, "docker", "flags")
    keys = words(host.facts, "docker", "daemon_json", "keys")
    return "--authorization-plugin" in flags or "authorization-plugins" in keys


def _swarm(host: HostView) -> bool | None:
    active = inside(host.facts, "docker", "swarm", "active")
    return active if isinstance(active, bool) else None


def _systemd_driver(host: HostView) -> bool | None:
    return None if host.cgroup_driver is None else host.cgroup_driver == "systemd"


def _lxc(host: HostView) -> bool | None:
    # Few engines run in LXC: where nothing says so, nothing is said.
    return host.evidence.get("virtual") == "lxc"


def _texts_say(host: HostView, pattern: str) -> bool:
    """Does a file of a live host have it? A version that somebody names asks about all cases."""
    if not host.live:
        return True
    found = mapping(host.evidence, "texts").values()
    return any(re.search(pattern, text, re.MULTILINE) for text in found if isinstance(text, str))


def _pids_zero(host: HostView) -> bool | None:
    return _texts_say(host, r"pids[-_]limit\W{1,4}0(?!\d)")


def _affinity(host: HostView) -> bool | None:
    return _texts_say(host, r"^\s*CPUAffinity=\S")


def _shares(host: HostView) -> bool | None:
    return _texts_say(host, r"cpu[-_]shares\W{1,4}\d")


def _tun(host: HostView) -> bool | None:
    return _texts_say(host, r"/dev/net/tun|NET_ADMIN")


def _cgroup_v1(host: HostView) -> bool | None:
    version = host.version("cgroup")
    return False if version is None else version == "1"


# What a host must have to be exposed: True, False, or None where it is not known.
EXPOSED: Mapping[str, Callable[[HostView], bool | None]] = {
    "": lambda host: True,
    "cri": _cri,
    "authz": _authz,
    "swarm": _swarm,
    "systemd_driver": _systemd_driver,
    "rootless": lambda host: host.rootless,
    "lxc": _lxc,
    "cgroup_v1": _cgroup_v1,
    "pids_zero": _pids_zero,
    "affinity": _affinity,
    "shares": _shares,
    "tun": _tun,
}

# The same for people.
ONLY: Mapping[str, str] = {
    "cri": "Kubernetes uses this containerd (CRI)",
    "authz": "the engine has authorization plugins",
    "swarm": "the engine is in a Swarm",
    "systemd_driver": "the engine uses the systemd cgroup driver",
    "rootless": "the engine is rootless",
    "lxc": "the engine runs in an LXC container",
    "cgroup_v1": "the host uses cgroup v1",
    "pids_zero": "something sets a pids limit of 0",
    "affinity": "a unit of the engine sets CPUAffinity=",
    "shares": "something sets CPU shares",
    "tun": "a container uses /dev/net/tun",
}


def weighed(severity: Severity, only: str, host: HostView) -> Severity | None:
    """The severity on this host: an info where exposure is not known, None where it is not."""
    exposed = EXPOSED[only](host)
    if exposed is None:
        return Severity.INFO
    return severity if exposed else None


def package_of(component: str, host: HostView) -> tuple[str, HostPackage] | None:
    """The package that a component's version comes from: its release is the same."""
    version = host.version(component)
    for name in PACKAGES_OF.get(component, ()):
        package = host.packages.get(name)
        if package is not None and version and parse(package.version) == parse(version):
            return name, package
    return None


def exposures(component: str, host: HostView) -> Iterator[Exposure]:
    """What is open of a component's known faults; nothing where its version is not known."""
    version = host.version(component)
    if version is None or not parse(version):
        return
    found = package_of(component, host)
    name = found[0] if found else vendor.usual_package(PACKAGES_OF.get(component, ()))
    full = found[1].version if found else version
    for fault in FAULTS:
        if fault.component == component and _has(fault, full):
            severity = weighed(fault.severity, fault.only, host)
            for cve in fault.cves if severity else ():
                standing, fixed = _standing(fault, cve, name, full, host.os)
                if standing is not None and severity is not None:
                    eased = _eased(severity, standing)
                    yield Exposure(fault, cve, eased, standing, fixed, name)


def _has(fault: Fault, version: str) -> bool:
    if fault.since and parse(version) < parse(fault.since):
        return False
    return not at_least_one(version, fault.fixed, fault.width)


def _standing(
    fault: Fault, cve: str, package: str, version: str, os: str | None
) -> tuple[Standing | None, str]:
    upstream = goal(version, fault)
    known = vendor.rows(vendor.os_of(version) or os, package)
    if not vendor.built_by_distribution(version, package):
        # "runc 1.1.5" on Debian 12 is what people write for its 1.1.5+ds1-1+deb12u1.
        shipped = any(parse(row.since) == parse(version) for row in known)
        return (Standing.UNTOLD if shipped else Standing.OPEN), upstream
    since = vendor.fixed_in(known, cve)
    if since is not None:
        # A version as a program prints it has no revision to compare.
        if "-" not in version:
            return Standing.UNTOLD, since
        return (None, since) if not_older(version, since) else (Standing.FIX_OUT, since)
    if not known or "-" not in version:
        return Standing.UNTOLD, upstream
    row = vendor.newest(known, version) or known[-1]
    left = row.date >= fault.published
    return (Standing.LEFT_OPEN if left else Standing.NOT_YET), upstream


def _eased(severity: Severity, standing: Standing) -> Severity:
    return severity if standing in (Standing.OPEN, Standing.FIX_OUT) else Severity.INFO


def goal(version: str, fault: Fault) -> str:
    """The release to go to: that of the own branch where there is one, else the next newer."""
    have = parse(version)
    own = [one for one in fault.fixed if parse(one)[: fault.width] == have[: fault.width]]
    newer = [one for one in fault.fixed if parse(one) > have]
    return (own or newer or [fault.fixed[-1]])[0]


def table() -> str:
    """The matrix as a page of Markdown, docs/versions.md."""
    parts = [
        "# Versions that are known to be broken",
        "",
        "`steadygpu check --host` and `steadygpu explain` judge versions by these tables, which "
        "are data in `plugins/module_utils/checks/versions/`.",
        "",
        "## Known vulnerabilities",
        "",
        "The first good release of each branch. A package of a distribution is judged by the "
        "table of patched packages below.",
        "",
        "| component | advisory | first good releases | what it allows | severity | source |",
        "|---|---|---|---|---|---|",
    ]
    parts += [_fault_row(fault) for fault in FAULTS]
    parts += [
        "",
        "## Patched by the distribution",
        "",
        "An advisory that was known when the vendor made a package, and that the package does not "
        "name, was left open there: an info. One that came later is a warning until the vendor "
        "has spoken. A distribution that is not listed is never judged by numbers alone.",
        "",
        "| distribution | package | from version | carries the fixes of | source |",
        "|---|---|---|---|---|",
    ]
    parts += [
        f"| {row.os} | {row.package} | {row.since} | {', '.join(row.cves)} | {row.source} |"
        for row in vendor.PATCHED
    ]
    parts += [
        "",
        "## Known regressions",
        "",
        "| component | bad releases | what happens | rule | source |",
        "|---|---|---|---|---|",
    ]
    parts += [
        f"| {row.component} | {_cell(' or '.join(row.bad))} | {_cell(row.title)} | "
        f"`{row.id}` | {_cell('; '.join(row.sources))} |"
        for row in REGRESSIONS
    ]
    parts += [
        "",
        "## What goes together",
        "",
        "| this | needs | from version |",
        "|---|---|---|",
    ]
    parts += [f"| CUDA {cuda}, all of it | driver | {first} |" for cuda, first in CUDA_DRIVER]
    parts += [f"| MIG on {model} | driver | {first} |" for model, first in MIG_DRIVER]
    parts += [
        f"| {title} | driver and CUDA | branch {branch}, CUDA {cuda} |"
        for title, _pattern, branch, cuda in FIRST_FOR_MODEL
    ]
    parts += [
        f"| {name.title()} GPU | driver | none after the {last} branch |"
        for name, last in LAST_BRANCH
    ]
    parts += [
        f"| CDI 0.7.0, written by nvidia-ctk 1.19 | {TITLES[component]} | {first} |"
        for component, first in CDI_0_7.items()
    ]
    return "\n".join(parts) + "\n"


def _fault_row(fault: Fault) -> str:
    what = fault.what + (f"; only where {ONLY[fault.only]}" if fault.only else "")
    cells = (
        fault.component,
        ", ".join(fault.cves),
        ", ".join(fault.fixed) + (f" (bad from {fault.since})" if fault.since else ""),
        what,
        fault.severity.label,
        fault.source,
    )
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
