# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Can this host be provisioned at all? Pure: facts and wishes in, findings out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Callable

from ..versions import at_least

# CDI in the engine since 25.0; nvidia-ctk >= 1.19 writes CDI 0.7.0, read since 26.1.0
# (moby daemon/cdi.go; NVIDIA container-toolkit release notes 1.19.1).
ENGINE_MINIMUM = "26.1.0"
# The first toolkit without a known container escape: CVE-2026-24260 is fixed in 1.19.1
# (NVIDIA product security bulletin 5850).
TOOLKIT_MINIMUM = "1.19.1"
# The oldest kernel of a supported distribution, EL 9's. What cgroup v2 files Docker uses are older.
KERNEL_MINIMUM = "5.14"

# Distributions: the engine that their own packages bring, or None when the engine comes
# from Docker's repository. `tested` is true only for what runs in CI.
_PLATFORMS: Mapping[str, Mapping[str, Any]] = {
    "debian 12": {"engine": "20.10.24", "tested": True},
    "debian 13": {"engine": "26.1.5", "tested": True},
    "debian forky/sid": {"engine": "28.5.2", "tested": True},
    "ubuntu 22.04": {"engine": "27.5.1", "tested": False},
    "ubuntu 24.04": {"engine": "27.5.1", "tested": False},
    "rhel 9": {"engine": None, "tested": False},
}


@dataclass(frozen=True)
class Finding:
    """What is wrong with a host, what was seen and wanted, and the next step.

    ``severity`` is ``error`` (provisioning is refused) or ``warning``.
    """

    id: str
    severity: str
    title: str
    seen: str
    wanted: str
    fix: str


@dataclass(frozen=True)
class Wishes:
    """What the caller is about to do, as far as it decides what a host must have."""

    require_gpu: bool = True
    toolkit_version: str | None = None
    live_restore: bool = False
    engine_from_distribution: bool = True


Facts = Mapping[str, Any]
Rule = Callable[[Facts, Wishes], Iterator[Finding]]


def platform_key(os_facts: Mapping[str, Any]) -> str:
    """The name of a distribution in the platform table, for example ``debian 13``.

    Debian's testing and unstable have no version id.
    Rebuilds of RHEL count as RHEL of the same major version.
    """
    family, name = os_facts.get("family"), os_facts.get("id")
    version = str(os_facts.get("version_id") or "")
    if name == "debian":
        return "debian " + (version or "forky/sid")
    if family == "rhel":
        return "rhel " + version.split(".", maxsplit=1)[0]
    return f"{name} {version}".strip()


def _platform(facts: Facts, wishes: Wishes) -> Iterator[Finding]:
    key = platform_key(facts["os"])
    known = _PLATFORMS.get(key)
    if known is None:
        yield Finding(
            "PF-OS",
            "error",
            "this distribution is not supported",
            facts["os"].get("name") or key,
            "one of: " + ", ".join(sorted(_PLATFORMS)),
            "facts and checks work here; provisioning needs a supported distribution",
        )
    elif not known["tested"]:
        yield Finding(
            "PF-UNTESTED",
            "warning",
            "this distribution is supported by variables but not tested in CI",
            key,
            "a tested one: " + ", ".join(sorted(k for k, v in _PLATFORMS.items() if v["tested"])),
            "run with --check --diff first and read what it would do",
        )


def _python(facts: Facts, wishes: Wishes) -> Iterator[Finding]:
    if not at_least(facts["os"].get("python"), "3.9"):
        yield Finding(
            "PF-PYTHON",
            "error",
            "the Python of this host is too old for the agent",
            str(facts["os"].get("python")),
            "3.9 or newer",
            "point ansible_python_interpreter at a newer Python",
        )


def _kernel(facts: Facts, wishes: Wishes) -> Iterator[Finding]:
    release = facts["kernel"].get("release")
    if not at_least(release, KERNEL_MINIMUM):
        yield Finding(
            "PF-KERNEL",
            "error",
            "the kernel is too old",
            str(release),
            KERNEL_MINIMUM + " or newer",
            "upgrade the kernel and reboot",
        )


def _cgroup(facts: Facts, wishes: Wishes) -> Iterator[Finding]:
    cgroup = facts["cgroup"]
    if cgroup.get("version") != 2:
        yield Finding(
            "PF-CGROUP",
            "error",
            "slices and device rules need the unified cgroup hierarchy",
            "cgroup v{}".format(cgroup.get("version")),
            "cgroup v2",
            "boot with systemd.unified_cgroup_hierarchy=1",
        )
    elif "memory" not in cgroup.get("controllers", []):
        yield Finding(
            "PF-MEMORY-CONTROLLER",
            "error",
            "the memory controller is off: every memory limit would be silently ignored",
            "controllers: " + " ".join(cgroup.get("controllers", [])),
            "memory among them",
            "remove cgroup_disable=memory from the kernel command line and reboot",
        )


def _systemd(facts: Facts, wishes: Wishes) -> Iterator[Finding]:
    if not facts["systemd"].get("version"):
        yield Finding(
            "PF-SYSTEMD",
            "error",
            "slices and services need systemd as the init system",
            "no systemd",
            "systemd",
            "use a host that boots with systemd; a container is not one",
        )


def _engine(facts: Facts, wishes: Wishes) -> Iterator[Finding]:
    docker = facts["docker"]
    config = docker["daemon_json"]
    if config.get("status") == "invalid":
        yield Finding(
            "PF-DAEMON-JSON",
            "error",
            "{} is broken: the engine would not start again".format(config.get("path")),
            str(config.get("reason")),
            "a JSON object",
            "repair the file by hand; it is never overwritten",
        )
    if docker["status"] == "unreachable":
        yield Finding(
            "PF-ENGINE-UNREACHABLE",
            "error",
            "Docker is there but does not answer",
            str(docker.get("reason")),
            "an answer on its socket",
            "look at: journalctl -b -u docker",
        )
    if wishes.live_restore and (docker.get("swarm") or {}).get("active"):
        yield Finding(
            "PF-SWARM-LIVE-RESTORE",
            "error",
            "Docker does not start on a Swarm node with live-restore",
            "an active Swarm node",
            "engine_config without live-restore",
            "set engine_config for this host without live-restore, and drain it before changes",
        )
    if docker["status"] == "absent":
        offered = _PLATFORMS.get(platform_key(facts["os"]), {}).get("engine")
        if wishes.engine_from_distribution and offered and not at_least(offered, ENGINE_MINIMUM):
            yield _engine_too_old(
                "{}'s own package is Docker {}".format(platform_key(facts["os"]), offered)
            )
    elif docker.get("version") and not at_least(docker["version"], ENGINE_MINIMUM):
        yield _engine_too_old("Docker {}".format(docker["version"]))


def _engine_too_old(seen: str) -> Finding:
    return Finding(
        "PF-ENGINE-OLD",
        "error",
        "this Docker cannot read the CDI specs that give a container its GPU for good",
        seen,
        f"Docker {ENGINE_MINIMUM} or newer",
        "use Debian 13, or install a newer docker-ce yourself: the role adopts it",
    )


def _toolkit(facts: Facts, wishes: Wishes) -> Iterator[Finding]:
    wanted = wishes.toolkit_version
    if wanted and not at_least(wanted, TOOLKIT_MINIMUM):
        yield Finding(
            "PF-TOOLKIT-CVE",
            "error",
            "this version of the NVIDIA Container Toolkit has known container escapes",
            wanted,
            TOOLKIT_MINIMUM + " or newer (CVE-2026-24260 and older ones)",
            f"set toolkit_version to {TOOLKIT_MINIMUM}-1 or newer",
        )


_DRIVER_FIX = {
    "absent": "install the driver (driver_mode: install), or set preflight_require_gpu: false",
    "not_loaded": "modprobe nvidia; if that fails look at dmesg (Secure Boot, kernel headers)",
    "mismatch": "reboot, or unload and reload the module: the library was upgraded under it",
    "unresponsive": "look for Xid errors in dmesg; a GPU may have fallen off the bus",
}


def _driver(facts: Facts, wishes: Wishes) -> Iterator[Finding]:
    driver, devices = facts["gpu"]["driver"], facts["gpu"]["devices"]
    severity = "error" if wishes.require_gpu else "warning"
    if driver["status"] != "loaded":
        yield Finding(
            "PF-DRIVER-" + driver["status"].upper().replace("_", "-"),
            severity,
            "the NVIDIA driver is not usable",
            "{}: {}".format(driver["status"], driver.get("reason")),
            "a loaded driver that answers",
            _DRIVER_FIX.get(driver["status"], "look at dmesg"),
        )
    elif not devices:
        yield Finding(
            "PF-NO-GPU",
            severity,
            "the driver sees no GPU",
            "0 devices",
            "at least one",
            "look at lspci -d 10de: and dmesg",
        )
    for device in devices:
        if device.get("error"):
            yield Finding(
                "PF-GPU-ERROR",
                "warning",
                "GPU {} does not answer".format(device.get("index")),
                str(device["error"]),
                "a healthy GPU",
                "look for Xid errors in dmesg; it is left out, the others are used",
            )


_RULES: list[Rule] = [
    _platform,
    _python,
    _systemd,
    _kernel,
    _cgroup,
    _driver,
    _engine,
    _toolkit,
]


def findings(facts: Facts, wishes: Wishes | None = None) -> list[dict[str, str]]:
    """Everything that stands in the way, all at once, errors first.

    ``facts`` is ``ansible_facts['gpu_host']`` with the sections of both facts modules.
    Raises KeyError when a section is missing: gather both first.
    """
    found = [finding for rule in _RULES for finding in rule(facts, wishes or Wishes())]
    return [asdict(finding) for finding in sorted(found, key=lambda f: f.severity != "error")]
