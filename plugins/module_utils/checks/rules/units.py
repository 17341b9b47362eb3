# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on systemd's units and slices. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...slices.properties import PropertyError, advice, parse_properties
from ..documents.daemon_listeners import has_credentials
from ..documents.units import Setting, UnitFile
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule

_RESOURCES = "systemd.resource-control(5)"
_SECTIONS = ("Slice", "Service", "Scope")

# What people write and systemd ignores; slices/properties.py knows what there is instead.
_INVENTED = frozenset(
    [
        "CPUBurst",
        "CPURTRuntime",
        "MemoryBandwidth",
        "MemorySwappiness",
        "IOMax",
        "GPUMemoryMax",
        "GPUWeight",
        "GPUQuota",
    ]
)
# What services have and slices do not.
_ONLY_SERVICES = frozenset(("CPUAffinity", "NUMAMask", "NUMAPolicy"))
# Names of cgroup v1 that systemd translated for a while.
_OLD_NAMES = frozenset(("CPUShares", "MemoryLimit", "BlockIOWeight"))
# Values that are judged: their grammar is small and the same in every release.
_JUDGED = frozenset(
    [
        "CPUWeight",
        "IOWeight",
        "CPUQuota",
        "MemoryMin",
        "MemoryLow",
        "MemoryHigh",
        "MemoryMax",
        "MemorySwapMax",
        "TasksMax",
    ]
)


# What systemd takes beyond that: sums of sizes, blanks before the unit, parts of a thousand.
_TAKEN_TOO = re.compile(r"(\d+(\.\d+)?\s*[BKMGTPE]?\s*)+|\d+(\.\d+)?[%‰‱]")


def _fault(setting: Setting) -> str | None:
    """Why the value is none, in slices' own words."""
    try:
        parse_properties({setting.key: setting.value})
    except PropertyError as error:
        return str(error).partition("\n")[0]
    return None


@rule(
    "unit-nofile-infinity",
    "LimitNOFILE=infinity for an engine",
    Severity.WARNING,
    reads=UnitFile,
    reason="On newer systemd and kernels infinity is about a billion files, and containers "
    "inherit it. Programs that walk or allocate for every possible file become very slow or use "
    "gigabytes of memory.",
    fix="Write LimitNOFILE=1024:524288 (what systemd's default is), and give more to the "
    "container that needs it with --ulimit nofile=….",
    sources=("containerd issue 7566", "home-assistant/operating-system issue 2476"),
    cases=("CG-016",),
)
def unit_nofile_infinity(unit: UnitFile, host: HostView) -> Iterator[Hit]:
    """In the unit of dockerd or containerd, or in a drop-in of it."""
    setting = unit.last("Service", "LimitNOFILE")
    engine = unit.unit in ("docker.service", "containerd.service") or any(
        unit.named(name) for name in ("dockerd", "containerd")
    )
    if setting is not None and engine and "infinity" in setting.value.lower():
        yield Hit(setting.at, f"LimitNOFILE is {setting.value}.")


@rule(
    "slice-name-nests",
    "A slice inside another one",
    Severity.INFO,
    reads=UnitFile,
    reason="A dash in the name of a slice says where it lies: a-b.slice is inside a.slice, whose "
    "limits count too, and its cgroup is /sys/fs/cgroup/a.slice/a-b.slice. What is in a slice "
    "shares its budget.",
    fix="Look at the limits of the whole chain; a name without dashes stands alone.",
    sources=("systemd.slice(5)", "moby PR 20310"),
    row="163,165",
    cases=("SY-001",),
)
def slice_name_nests(unit: UnitFile, host: HostView) -> Iterator[Hit]:
    """gpu-batch.slice."""
    name = unit.unit if unit.unit.endswith(".slice") else _named_in(unit)
    stem = name[: -len(".slice")]
    if name and "-" in stem.strip("-") and not name.startswith("system-"):
        parent = stem.rpartition("-")[0] + ".slice"
        seen = f"{name} lies inside {parent}."
        yield Hit(unit.at, seen, commands=(f"systemctl show -p ControlGroup {name}",))


def _named_in(unit: UnitFile) -> str:
    """The slice that a Slice= of a service names."""
    setting = unit.last("Service", "Slice")
    value = setting.value if setting is not None else ""
    return value if value.endswith(".slice") else ""


@rule(
    "slice-delegate",
    "Delegate= on a slice",
    Severity.WARNING,
    reads=UnitFile,
    reason="Delegation belongs to services and scopes; systemd ignores it in a slice and takes "
    "controllers that it thinks unused out of the tree below.",
    fix="Put Delegate=yes into the service or scope inside the slice.",
    sources=(_RESOURCES + ", Delegate=", "greenplum-db/gpdb PR 16567"),
    cases=("SY-002",),
)
def slice_delegate(unit: UnitFile, host: HostView) -> Iterator[Hit]:
    """In [Slice]."""
    setting = unit.last("Slice", "Delegate")
    if setting is not None and setting.value.lower() not in ("no", "false", "0", "off", ""):
        yield Hit(setting.at, f"Delegate is {setting.value}.")


@rule(
    "unit-property-invented",
    "systemd has no such property",
    Severity.ERROR,
    reads=UnitFile,
    reason="systemd ignores unknown keys with a line in its log, and systemd-analyze verify "
    "ends with status 0 all the same.",
    fix="Use the property or the other means that there are.",
    sources=(_RESOURCES, "seen on systemd 257"),
    row="P22",
)
def unit_property_invented(unit: UnitFile, host: HostView) -> Iterator[Hit]:
    """CPUBurst=, GPUMemoryMax= and what belongs to services only."""
    for setting in unit.settings:
        invented = setting.section in _SECTIONS and setting.key in _INVENTED
        misplaced = setting.section == "Slice" and setting.key in _ONLY_SERVICES
        if invented or misplaced:
            instead = (_fault(setting) or "").partition(": ")[2]
            fix = instead[:1].upper() + instead[1:] + "." if instead else ""
            yield Hit(setting.at, f"[{setting.section}] has {setting.key}.", fix)


@rule(
    "unit-property-old",
    "A property with its name of cgroup v1",
    Severity.INFO,
    reads=UnitFile,
    reason="systemd translated these for a while and newer releases no longer do.",
    fix="Write CPUWeight=, MemoryMax= or IOWeight=; their scales differ.",
    sources=(_RESOURCES + ", Deprecated options",),
)
def unit_property_old(unit: UnitFile, host: HostView) -> Iterator[Hit]:
    """CPUShares=, MemoryLimit=, BlockIOWeight=."""
    for setting in unit.settings:
        if setting.section in _SECTIONS and setting.key in _OLD_NAMES:
            yield Hit(setting.at, f"[{setting.section}] has {setting.key}={setting.value}.")


@rule(
    "unit-property-value",
    "A value that systemd ignores",
    Severity.ERROR,
    reads=UnitFile,
    reason="systemd ignores a value that it cannot read, with a line in its log: the limit is "
    "not set.",
    fix="Write the value as the manual has it.",
    sources=(_RESOURCES, "seen on systemd 257"),
)
def unit_property_value(unit: UnitFile, host: HostView) -> Iterator[Hit]:
    """MemoryMax=8Gi, CPUQuota=3, IOWeight=0."""
    for setting in unit.settings:
        if setting.section not in _SECTIONS or setting.key not in _JUDGED:
            continue
        # Empty resets it; a specifier such as %i becomes something else.
        if not setting.value or re.search(r"%[a-zA-Z%]", setting.value):
            continue
        sized = setting.key.startswith(("Memory", "CPUQuota"))
        taken = "%" not in setting.value and _TAKEN_TOO.fullmatch(setting.value)
        if sized and taken and (setting.key != "CPUQuota" or not setting.value[-1].isalnum()):
            continue
        fault = _fault(setting)
        if fault is not None:
            wanted = fault.partition(": ")[2]
            seen = f"{setting.key} is {setting.value}: {wanted or fault}."
            yield Hit(setting.at, seen)


@rule(
    "slice-memory-high-near-max",
    "MemoryHigh just under MemoryMax",
    Severity.WARNING,
    reads=UnitFile,
    reason="Work that grows into the gap is throttled for minutes before the OOM killer may act.",
    fix="Keep MemoryHigh at or below 90% of MemoryMax, or leave it out.",
    sources=("kernel Documentation/admin-guide/cgroup-v2.rst", "seen on Linux 6.12"),
)
def slice_memory_high_near_max(unit: UnitFile, host: HostView) -> Iterator[Hit]:
    """What slices/properties.py advises."""
    for section in _SECTIONS:
        values = {
            key: setting.value
            for key in ("MemoryHigh", "MemoryMax")
            for setting in (unit.last(section, key),)
            if setting is not None and setting.value
        }
        high = unit.last(section, "MemoryHigh")
        if len(values) < 2 or high is None:
            continue
        try:
            told = advice(parse_properties(values))
        except PropertyError:
            continue
        if told:
            seen = f"MemoryHigh is {values['MemoryHigh']}, MemoryMax is {values['MemoryMax']}."
            yield Hit(high.at, seen)


@rule(
    "unit-io-weight-inert",
    "IOWeight needs iocost or BFQ",
    Severity.WARNING,
    reads=UnitFile,
    reason="The kernel honours io.weight only on disks with the BFQ scheduler or with iocost "
    "switched on; elsewhere it is accepted and does nothing.",
    fix="Choose BFQ for the disk or switch iocost on, or limit with IOReadBandwidthMax= and "
    "IOWriteBandwidthMax=.",
    sources=("kernel Documentation/admin-guide/cgroup-v2.rst, IO",),
    row="162,163",
)
def unit_io_weight_inert(unit: UnitFile, host: HostView) -> Iterator[Hit]:
    """In a unit; told only, where the disks are not known."""
    if host.weights_work is True:
        return
    known = host.weights_work is False
    for setting in unit.settings:
        weight = setting.section in _SECTIONS and setting.key in ("IOWeight", "IODeviceWeight")
        if weight and setting.value:
            yield Hit(
                setting.at,
                f"{setting.key} is {setting.value}.",
                severity=None if known else Severity.INFO,
                assumed=() if known else ("neither BFQ nor iocost",),
            )


_PROXY = re.compile(r"\b((?:https?|ftp|all)_proxy)=[\"']?([^\s\"']+)", re.IGNORECASE)


@rule(
    "unit-proxy-credentials",
    "A proxy's password in a unit",
    Severity.WARNING,
    reads=UnitFile,
    reason="Unit files are readable by every user, and systemctl show prints their variables.",
    fix="Put the variable into an EnvironmentFile= that only root can read, or use a proxy "
    "without a password.",
    sources=("systemd.exec(5), Environment=", "docs.docker.com, Daemon proxy configuration"),
)
def unit_proxy_credentials(unit: UnitFile, host: HostView) -> Iterator[Hit]:
    """Names only: the value is a secret."""
    for setting in unit.all("Service", "Environment"):
        for name, url in _PROXY.findall(setting.value):
            if has_credentials(url):
                yield Hit(setting.at, f"{name} has a user and a password.")
