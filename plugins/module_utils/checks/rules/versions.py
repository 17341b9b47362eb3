# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Versions with known vulnerabilities, judged as the distribution ships them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...packages import TOOLKIT_PACKAGES
from ...versions import parse
from ..host import HostPackage, HostView
from ..model import Hit, Severity
from ..place import place
from ..registry import rule
from ..versions.components import PACKAGES_OF, TITLES
from ..versions.matrix import ONLY, Exposure, Standing, exposures, package_of
from ..versions.order import compare, not_older
from ..versions.vendor import os_of

_SAYS = {
    Standing.OPEN: "",
    Standing.FIX_OUT: "",
    Standing.LEFT_OPEN: "; the distribution mended others since it was known and left this open",
    Standing.NOT_YET: "; the distribution has no package with the fix that we know of",
    Standing.UNTOLD: "; it is a distribution's build, which may carry the fix",
}


def _hits(component: str, host: HostView) -> Iterator[Hit]:
    """One hit for what is grave and one for what is not, by standing, naming all advisories."""
    groups: dict[tuple[bool, Standing, str], list[Exposure]] = {}
    for exposure in exposures(component, host):
        grave = exposure.severity > Severity.INFO
        groups.setdefault((grave, exposure.standing, exposure.fault.only), []).append(exposure)
    for (_grave, standing, only), group in groups.items():
        yield _hit(component, host, standing, only, group)


def _hit(
    component: str,
    host: HostView,
    standing: Standing,
    only: str,
    group: Sequence[Exposure],
) -> Hit:
    found = package_of(component, host)
    version = found[1].version if found else host.version(component)
    severity = max(exposure.severity for exposure in group)
    cves = ", ".join(sorted({exposure.cve for exposure in group}))
    goal = max((exposure.fixed for exposure in group), key=parse)
    if standing is Standing.FIX_OUT:
        goal = _newest([exposure.fixed for exposure in group])
    worst = max(group, key=lambda exposure: (exposure.fault.severity, exposure.fault.published))
    assumed = (ONLY[only],) if only and severity is Severity.INFO else ()
    name = group[0].package
    if standing is Standing.UNTOLD:
        assumed = (*assumed, "the distribution did not put the fix into this version")
    return Hit(
        at=place(host, component),
        seen=f"{TITLES[component]} {version} is open to {cves}: {worst.fault.what}"
        + _SAYS[standing],
        fix=_fix(component, standing, goal, name),
        commands=_commands(standing, name or component, version or ""),
        severity=severity,
        assumed=assumed,
    )


def _newest(versions: Sequence[str]) -> str:
    newest = versions[0]
    for version in versions[1:]:
        newest = version if compare(version, newest) > 0 else newest
    return newest


def _fix(component: str, standing: Standing, goal: str, package: str) -> str:
    if standing is Standing.FIX_OUT:
        return (
            f"Upgrade the package {package} to {goal}, which has the fix; it is in the "
            "distribution's security archive."
        )
    if standing is Standing.UNTOLD:
        return (
            f"Look for the advisory in the package's changelog; upstream's fix is in {goal}, and "
            "the distribution may have put it into an older number."
        )
    if standing in (Standing.LEFT_OPEN, Standing.NOT_YET):
        return (
            f"Follow the distribution's security tracker; upstream's fix is in {goal}, which a "
            "newer release of the distribution or the vendor's own repository brings."
        )
    if component == "runc":
        return f"Upgrade runc to {goal} or newer; Docker's own containerd.io brings its runc along."
    return f"Upgrade {TITLES[component]} to {goal} or newer."


def _commands(standing: Standing, package: str, version: str) -> tuple[str, ...]:
    rpm = (os_of(version) or "").startswith("rhel")
    if standing is Standing.FIX_OUT:
        upgrade = ("apt-get update", f"apt-get install --only-upgrade {package}")
        return (f"dnf upgrade {package}",) if rpm else upgrade
    if standing is Standing.UNTOLD:
        changes = "rpm -q --changelog" if rpm else "apt-get changelog"
        return (f"{changes} {package} | grep CVE-",)
    return ()


_REASON = (
    "A release with a known hole lets a container, an image or a local user do what isolation "
    "should prevent. A distribution's package is judged by what its vendor put into it, not by "
    "its number."
)


@rule(
    "toolkit-vulnerable",
    "This NVIDIA Container Toolkit has known container escapes",
    Severity.ERROR,
    reads=HostView,
    reason=_REASON,
    fix="Upgrade the toolkit to 1.19.1 or newer, all four packages at one version.",
    sources=("NVIDIA security bulletins 5582, 5585, 5599, 5616, 5659 and 5850",),
    cases=("TK-019", "TK-020", "TK-021", "TK-022", "TK-023", "TK-025"),
)
def toolkit_vulnerable(host: HostView, known: HostView) -> Iterator[Hit]:
    """Below the floor of the toolkit."""
    yield from _hits("toolkit", host)


@rule(
    "runc-vulnerable",
    "This runc has known container escapes",
    Severity.ERROR,
    reads=HostView,
    reason=_REASON,
    fix="Upgrade runc to 1.2.8, 1.3.3, 1.4.0 or newer, or to the package with the fixes.",
    sources=("runc CHANGELOG", "Debian changelogs of runc", "RHSA-2025:19927"),
    cases=("RC-005", "RC-009"),
)
def runc_vulnerable(host: HostView, known: HostView) -> Iterator[Hit]:
    """Below the floor of runc."""
    yield from _hits("runc", host)


@rule(
    "containerd-vulnerable",
    "This containerd has known vulnerabilities",
    Severity.WARNING,
    reads=HostView,
    reason=_REASON,
    fix="Upgrade containerd to the last release of its branch.",
    sources=("containerd security advisories", "Debian changelogs of containerd"),
)
def containerd_vulnerable(host: HostView, known: HostView) -> Iterator[Hit]:
    """Most need Kubernetes on top and are infos where that is not known."""
    yield from _hits("containerd", host)


@rule(
    "docker-vulnerable",
    "This Docker Engine has known vulnerabilities",
    Severity.WARNING,
    reads=HostView,
    reason=_REASON,
    fix="Upgrade Docker Engine to the last release.",
    sources=("moby security advisories", "Debian changelogs of docker.io"),
)
def docker_vulnerable(host: HostView, known: HostView) -> Iterator[Hit]:
    """Those that need plugins, a Swarm or docker cp are infos elsewhere."""
    yield from _hits("docker", host)


@rule(
    "gpu-operator-vulnerable",
    "This GPU Operator brings components with known container escapes",
    Severity.ERROR,
    reads=HostView,
    reason=_REASON,
    fix="Upgrade the GPU Operator to 26.3.2 or newer.",
    sources=("NVIDIA security bulletins 5582, 5585, 5599, 5616, 5659 and 5850",),
    cases=("TK-019", "TK-020", "TK-021", "TK-022", "TK-023", "TK-025"),
)
def gpu_operator_vulnerable(host: HostView, known: HostView) -> Iterator[Hit]:
    """The operator's own number tells which toolkit it brings."""
    yield from _hits("gpu_operator", host)


@rule(
    "device-plugin-vulnerable",
    "This NVIDIA device plugin has a known vulnerability",
    Severity.WARNING,
    reads=HostView,
    reason=_REASON,
    fix="Upgrade the device plugin to 0.17.3 or newer.",
    sources=("NVIDIA security bulletin 5659",),
    cases=("TK-023",),
)
def device_plugin_vulnerable(host: HostView, known: HostView) -> Iterator[Hit]:
    """With its CDI strategies."""
    yield from _hits("device_plugin", host)


@rule(
    "mig-manager-vulnerable",
    "This MIG manager has a known vulnerability",
    Severity.WARNING,
    reads=HostView,
    reason=_REASON,
    fix="Upgrade the MIG manager to 0.12.2 or newer.",
    sources=("NVIDIA security bulletin 5659",),
    cases=("TK-023",),
)
def mig_manager_vulnerable(host: HostView, known: HostView) -> Iterator[Hit]:
    """It brings the toolkit's hooks along."""
    yield from _hits("mig_manager", host)


@rule(
    "dcgm-vulnerable",
    "This DCGM or its exporter answers profiling requests of anybody",
    Severity.WARNING,
    reads=HostView,
    reason=_REASON,
    fix="Upgrade DCGM to 4.5.3 and the exporter to 4.8.2 or newer, and do not publish its port.",
    sources=("NVIDIA security bulletin 5857",),
    cases=("SE-001",),
)
def dcgm_vulnerable(host: HostView, known: HostView) -> Iterator[Hit]:
    """DCGM and dcgm-exporter."""
    yield from _hits("dcgm", host)
    yield from _hits("dcgm_exporter", host)


@rule(
    "driver-security-update",
    "A newer NVIDIA driver has security fixes",
    Severity.INFO,
    reads=HostView,
    reason="NVIDIA fixes the drivers of living branches several times a year; the holes need a "
    "local user or a process in a container with a GPU.",
    fix="Plan a driver upgrade: drain, upgrade, reboot.",
    sources=("NVIDIA security bulletins 5821 and 5861",),
)
def driver_security_update(host: HostView, known: HostView) -> Iterator[Hit]:
    """Never more than an info: every host is some bulletins behind."""
    yield from _hits("driver", host)


@rule(
    "fix-held-back",
    "A held package keeps a security fix away",
    Severity.WARNING,
    reads=HostView,
    reason="A hold keeps upgrades from changing a package. It also keeps out the fix of a known "
    "hole that is on offer.",
    fix="Release the hold, upgrade in a window, hold again.",
    sources=("apt-mark(8)", "NVIDIA security bulletin 5850"),
)
def fix_held_back(host: HostView, known: HostView) -> Iterator[Hit]:
    """Held, open to something above info, and the package on offer has the fix."""
    for component, name, installed, offered, cves in _on_offer(host):
        if host.packages[name].held:
            yield Hit(
                at=place(host, component),
                seen=f"{name} {installed} is held, and {offered} on offer mends {cves}",
                fix=f"Release the hold, upgrade {name} to {offered} in a window, hold it again.",
                commands=(
                    f"apt-mark unhold {name}",
                    f"apt-get install --only-upgrade {name}",
                    f"apt-mark hold {name}",
                ),
            )


@rule(
    "fix-on-offer",
    "An upgrade on offer fixes a known vulnerability",
    Severity.INFO,
    reads=HostView,
    reason="The configured package sources have a version with the fix.",
    fix="Upgrade the package.",
    sources=("apt-cache(8)",),
)
def fix_on_offer(host: HostView, known: HostView) -> Iterator[Hit]:
    """The same where nothing is held: the finding itself says how bad it is."""
    for component, name, installed, offered, cves in _on_offer(host):
        if not host.packages[name].held:
            yield Hit(
                at=place(host, component),
                seen=f"{name} {installed} can be upgraded to {offered}, which mends {cves}",
                commands=(f"apt-get install --only-upgrade {name}",),
            )


def _on_offer(host: HostView) -> Iterator[tuple[str, str, str, str, str]]:
    for component in PACKAGES_OF:
        found = package_of(component, host)
        if found is None:
            continue
        name, package = found
        offered = package.candidate
        if not offered or not_older(package.version, offered):
            continue
        grave = {e.cve for e in exposures(component, host) if e.severity > Severity.INFO}
        then = HostView(
            live=host.live,
            os=host.os,
            versions={**host.versions, component: offered},
            packages={name: HostPackage(offered)},
            facts=host.facts,
        )
        mended = grave - {e.cve for e in exposures(component, then)}
        if mended:
            yield component, name, package.version, offered, ", ".join(sorted(mended))


@rule(
    "toolkit-packages-differ",
    "The packages of the NVIDIA Container Toolkit are not of one version",
    Severity.ERROR,
    reads=HostView,
    reason="The four packages are released together and talk to each other without checks of "
    "their own before 1.18; since then they refuse a different version.",
    fix="Install all four at one version.",
    sources=("NVIDIA container toolkit release notes 1.18.0",),
    cases=("TK-018",),
)
def toolkit_packages_differ(host: HostView, known: HostView) -> Iterator[Hit]:
    """A partial upgrade."""
    installed = {
        name: host.packages[name].version for name in TOOLKIT_PACKAGES if name in host.packages
    }
    releases = {parse(version) for version in installed.values()}
    if len(releases) > 1:
        newest = _newest(list(installed.values()))
        listed = ", ".join(f"{name} {version}" for name, version in installed.items())
        packages = " ".join(f"{name}={newest}" for name in installed)
        yield Hit(
            at=place(host, "toolkit"),
            seen=f"the versions differ: {listed}",
            fix=f"Install all of them at one version, {newest} or newer (1.19.1 has the fixes of "
            "known escapes), and hold them as a set.",
            commands=(f"apt-get install {packages}",),
        )
