# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on NVIDIA's device plugin and GPU operator: flags, values and versions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ...versions import at_least, parse
from ..documents.kubernetes import ChartValues, KubeContainer, Workload
from ..host import HostView
from ..model import Given, Hit, Severity
from ..registry import rule

_MAIN = "NVIDIA/k8s-device-plugin cmd/nvidia-device-plugin/main.go"
_VALUES = "NVIDIA/gpu-operator deployments/gpu-operator/values.yaml"
_SECURITY = "NVIDIA security bulletins 5659 and 5850"
_FLAGS_NAMES = (
    "mig-strategy fail-on-init-error driver-root nvidia-driver-root dev-root nvidia-dev- "
    "root pass-device-specs device-list-strategy device-id-strategy gdrcopy-enabled gds- "
    "enabled mofed-enabled cdi-annotation-prefix help h nvidia-cdi-hook-path nvidia-ctk- "
    "path driver-root-ctr-path container-driver-root mps-root shared-devices-allocation- "
    "policy device-discovery-strategy version v imex-channel-ids imex-required kubelet- "
    "socket config-file cdi-feature-flags cdi-disable-hooks use-node-feature-api resource- "
    "config logtostderr"
)
_FLAGS = frozenset(_FLAGS_NAMES.split())
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "mig-strategy": ("none", "single", "mixed"),
    "device-list-strategy": ("envvar", "volume-mounts", "cdi-annotations", "cdi-cri"),
    "device-id-strategy": ("uuid", "index"),
    "device-discovery-strategy": ("auto", "nvml", "tegra"),
}
_INSTEAD = {
    "enable-cdi": "Write --device-list-strategy=cdi-cri (or cdi-annotations).",
    "cdi-enabled": "Write --device-list-strategy=cdi-cri (or cdi-annotations).",
    "compat-with-cpu-manager": "Write --pass-device-specs.",
}
_IN_CHART = {
    "mig-strategy": ("migStrategy",),
    "device-list-strategy": ("deviceListStrategy",),
    "device-id-strategy": ("deviceIDStrategy",),
    "device-discovery-strategy": ("deviceDiscoveryStrategy",),
}
_ENV = {name: name.upper().replace("-", "_") for name in _CHOICES}
_ENVVAR = "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED"
_MOUNTS = "ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS"
# What the values call a component, its name for people, the lowest version without known holes.
_FLOORS = (
    ("toolkit", "container toolkit", "1.19.1"),
    ("devicePlugin", "device plugin", "0.17.3"),
    ("gfd", "GPU feature discovery", "0.17.3"),
    ("migManager", "MIG manager", "0.12.2"),
)
_TAG = re.compile(r"k8s-device-plugin:v?(\d+\.\d+\.\d+)")


def _is_plugin(container: KubeContainer) -> bool:
    image = container.image.value if container.image else ""
    words = [given.value for given in container.words]
    if any("gpu-feature-discovery" in word or "mps-control" in word for word in words):
        return False
    return "k8s-device-plugin" in image or any("nvidia-device-plugin" in word for word in words)


def _plugin_flags(container: KubeContainer) -> Iterator[tuple[str, str, Given]]:
    """Name, value ("" for none) and place of each flag."""
    words = [
        Given(part, given.at, given.spelled)
        for given in container.words
        for part in (given.value.split() if given.value.count(" --") else [given.value])
    ]
    for number, given in enumerate(words):
        if not given.value.startswith("--"):
            continue
        name, equals, value = given.value[2:].partition("=")
        following = words[number + 1].value if number + 1 < len(words) else ""
        if not equals and not following.startswith("-"):
            value = following
        yield name, value, given


@rule(
    "device-plugin-unknown-flag",
    "A flag that NVIDIA's device plugin does not have",
    Severity.FATAL,
    reads=Workload,
    reason="The plugin ends with 'flag provided but not defined', and its pods are restarted again "
    "and again: the node offers no GPUs.",
    fix="Remove the flag.",
    sources=(_MAIN,),
    row="32",
)
def plugin_unknown_flag(load: Workload, host: HostView) -> Iterator[Hit]:
    """``--enable-cdi=true`` and others."""
    for container in filter(_is_plugin, load.containers):
        for name, _value, given in _plugin_flags(container):
            if name not in _FLAGS:
                # A flag of tomorrow is no error: only what we know to be invented is sure.
                severity = None if name in _INSTEAD else Severity.INFO
                seen = f"The device plugin is given --{name}."
                yield Hit(given.at, seen, _INSTEAD.get(name, ""), severity=severity)


@rule(
    "device-plugin-value",
    "A strategy that NVIDIA's device plugin does not know",
    Severity.FATAL,
    reads=Workload,
    reason="The plugin checks its strategies when it starts and ends where it does not know one: "
    "the node offers no GPUs.",
    fix="Write one of the strategies there are.",
    sources=(_MAIN, "NVIDIA/k8s-device-plugin api/config/v1/consts.go"),
)
def plugin_value(load: Workload, host: HostView) -> Iterator[Hit]:
    """A misspelled strategy, as a flag or in a variable."""
    for container in filter(_is_plugin, load.containers):
        for name, value, given in _plugin_flags(container):
            yield from _wrong(name, value, given)
        for name, variable in _ENV.items():
            set_to = container.env.get(variable)
            if set_to is not None:
                yield from _wrong(name, set_to.value, set_to)


def _wrong(name: str, value: str, given: Given) -> Iterator[Hit]:
    if name not in _CHOICES or not value or "$" in value or "{" in value:
        return
    several = value.split(",") if name == "device-list-strategy" else [value]
    for one in several:
        if one.strip() not in _CHOICES[name]:
            fix = f"Write one of: {', '.join(_CHOICES[name])}."
            yield Hit(given.at, f"{name} is {one.strip()}.", fix)


@rule(
    "device-plugin-chart-value",
    "A strategy in a chart's values that the device plugin does not know",
    Severity.FATAL,
    reads=ChartValues,
    reason="The chart passes the strategy on, and the plugin ends where it does not know it.",
    fix="Write one of the strategies there are.",
    sources=(_MAIN, _VALUES),
)
def plugin_chart_value(values: ChartValues, host: HostView) -> Iterator[Hit]:
    """The same in the values of the plugin's chart or of the operator."""
    for name, path in _IN_CHART.items():
        given = values.given(*path) if values.chart == "nvidia-device-plugin" else None
        if given is not None:
            yield from _wrong(name, given.value, given)
    if values.chart == "gpu-operator":
        environment = values.env("devicePlugin")
        for name, variable in _ENV.items():
            if variable in environment:
                yield from _wrong(name, environment[variable].value, environment[variable])
        strategy = values.given("mig", "strategy")
        if strategy is not None:
            yield from _wrong("mig-strategy", strategy.value, strategy)


@rule(
    "device-plugin-cve",
    "A device plugin with known holes",
    Severity.WARNING,
    reads=Workload,
    reason="Device plugins before 0.17.3 carry the toolkit's code with CVE-2025-23266 in it.",
    fix="Use k8s-device-plugin v0.17.3 or newer.",
    sources=(_SECURITY,),
    row="32",
)
def plugin_cve(load: Workload, host: HostView) -> Iterator[Hit]:
    """The tag of the plugin's image."""
    for container in load.containers:
        match = _TAG.search(container.image.value) if container.image else None
        if match is not None and container.image and not at_least(match.group(1), "0.17.3"):
            yield Hit(container.image.at, f"The image is k8s-device-plugin {match.group(1)}.")


@rule(
    "device-plugin-volume-mounts",
    "Device lists as volume mounts need the toolkit's consent",
    Severity.INFO,
    reads=Workload,
    reason="With volume-mounts the toolkit reads the wanted devices from mounts, which it does "
    "only where accept-nvidia-visible-devices-as-volume-mounts is true. Otherwise: insufficient "
    "privileges to read device list from NVIDIA_VISIBLE_DEVICES envvar.",
    fix="Set accept-nvidia-visible-devices-as-volume-mounts = true in the toolkit's config.toml.",
    sources=("NVIDIA/k8s-device-plugin#203",),
    cases=("CO-006",),
)
def plugin_volume_mounts(load: Workload, host: HostView) -> Iterator[Hit]:
    """``volume-mounts`` as a flag or in a variable."""
    for container in filter(_is_plugin, load.containers):
        given = container.env.get("DEVICE_LIST_STRATEGY")
        flags = [(v, g) for n, v, g in _plugin_flags(container) if n == "device-list-strategy"]
        for value, place in [*flags, *([(given.value, given)] if given is not None else [])]:
            if "volume-mounts" in value:
                yield Hit(place.at, "The device plugin lists devices as volume mounts.")


@rule(
    "operator-mixed-device-lists",
    "Variables and CDI at once under the GPU operator",
    Severity.WARNING,
    reads=ChartValues,
    reason="With cdi.enabled the operator sets NVIDIA_VISIBLE_DEVICES to void for pods, so that "
    "privileged pods that rely on the variable see no GPU; without, CDI names are not resolved. "
    "Listing envvar beside the cdi strategies does not make both work on one node.",
    fix="Choose one for a pool of nodes: remove envvar from DEVICE_LIST_STRATEGY, or the cdi ones "
    "with cdi.enabled: false.",
    sources=("NVIDIA/gpu-operator#2115", _VALUES),
    cases=("TK-043",),
)
def mixed_device_lists(values: ChartValues, host: HostView) -> Iterator[Hit]:
    """``envvar`` beside ``cdi-…`` with ``cdi.enabled``."""
    given = values.env("devicePlugin").get("DEVICE_LIST_STRATEGY")
    enabled = values.given("cdi", "enabled")
    if values.chart != "gpu-operator" or given is None:
        return
    listed = {one.strip() for one in given.value.split(",")}
    by_cdi = any(one.startswith("cdi-") for one in listed)
    if "envvar" in listed and by_cdi and (enabled is None or enabled.value == "true"):
        yield Hit(given.at, f"DEVICE_LIST_STRATEGY is {given.value}.")


@rule(
    "operator-half-hardened",
    "The variable is refused and nothing else is open",
    Severity.ERROR,
    reads=ChartValues,
    reason="The toolkit is told not to take GPUs from the variable of unprivileged pods. Without "
    "CDI and without volume mounts the device plugin has no other way to hand them over: "
    "insufficient privileges to read device list from NVIDIA_VISIBLE_DEVICES envvar.",
    fix=f"Set {_MOUNTS}=true for the toolkit and DEVICE_LIST_STRATEGY=volume-mounts for the "
    "device plugin, or use cdi.enabled: true.",
    sources=("NVIDIA/k8s-device-plugin#203", "bottlerocket-os/bottlerocket#3718"),
    cases=("CO-006",),
)
def half_hardened(values: ChartValues, host: HostView) -> Iterator[Hit]:
    """The variable refused, ``cdi.enabled: false``, and half of volume mounts or none."""
    toolkit, plugin = values.env("toolkit"), values.env("devicePlugin")
    refused, mounts = toolkit.get(_ENVVAR), toolkit.get(_MOUNTS)
    enabled = values.given("cdi", "enabled")
    if values.chart != "gpu-operator" or refused is None or refused.value != "false":
        return
    strategy = plugin.get("DEVICE_LIST_STRATEGY")
    by_mounts = strategy is not None and "volume-mounts" in strategy.value
    by_cdi = strategy is not None and "cdi-" in strategy.value
    if by_cdi or (mounts is not None and mounts.value == "true" and by_mounts):
        return
    # The operator's own default is CDI since 25.10: only where it is off this is sure.
    severity = None if enabled is not None and enabled.value == "false" else Severity.INFO
    if enabled is None or enabled.value == "false":
        seen = f"{_ENVVAR} is false, and volume mounts are not set up."
        yield Hit(refused.at, seen, severity=severity)


@rule(
    "operator-component-cve",
    "A component of the GPU operator with known holes",
    Severity.WARNING,
    reads=ChartValues,
    reason="The values hold a component at a version with known holes, also when the operator "
    "itself is updated. Toolkits before 1.19.1 have CVE-2026-24260, before 1.17.8 CVE-2025-23266: "
    "a container can become root on the node.",
    fix="Remove the version so that the operator's own counts (26.3.2 or newer), or raise it.",
    sources=(_SECURITY,),
    row="78",
)
def component_cve(values: ChartValues, host: HostView) -> Iterator[Hit]:
    """``toolkit.version`` and others below their floors."""
    if values.chart != "gpu-operator":
        return
    for key, called, floor in _FLOORS:
        given = values.given(key, "version")
        if given is not None and parse(given.value) and not at_least(given.value, floor):
            fix = f"Remove {key}.version, or write v{floor} or newer."
            yield Hit(given.at, f"{key}.version is {given.value} ({called}).", fix)


@rule(
    "operator-open-kernel-modules",
    "An old key for the open kernel modules",
    Severity.INFO,
    reads=ChartValues,
    reason="driver.useOpenKernelModules is deprecated; driver.kernelModuleType says auto, open or "
    "proprietary, and Blackwell and newer need the open ones.",
    fix="Write driver.kernelModuleType: auto.",
    sources=(_VALUES,),
)
def open_kernel_modules(values: ChartValues, host: HostView) -> Iterator[Hit]:
    """``driver.useOpenKernelModules``."""
    given = values.given("driver", "useOpenKernelModules")
    if values.chart == "gpu-operator" and given is not None:
        yield Hit(given.at, f"driver.useOpenKernelModules is {given.value}.")


@rule(
    "device-plugin-mps-mixed",
    "MPS sharing together with mixed MIG",
    Severity.FATAL,
    reads=ChartValues,
    reason="The plugin refuses sharing by MPS with mig-strategy mixed and ends.",
    fix="Use time-slicing with mixed MIG, or mig-strategy none or single without MIG devices.",
    sources=(_MAIN,),
)
def mps_mixed(values: ChartValues, host: HostView) -> Iterator[Hit]:
    """``migStrategy: mixed`` beside a configuration that shares by MPS."""
    strategy = values.given("migStrategy") or values.given("mig", "strategy")
    if strategy is None or strategy.value != "mixed":
        return
    for path in (("config", "map"), ("devicePlugin", "config", "data")):
        node = values.tree.get(*path)
        for key, text in node.items() if node is not None else ():
            if re.search(r"^[ \t]+mps:[ \t]*$", text.words(), re.MULTILINE):
                yield Hit(strategy.at, f"mig strategy is mixed, and {key.name} shares by MPS.")
