# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on ldconfig in the NVIDIA Container Toolkit's config.toml. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ...trees.node import Node
from ...versions import at_least
from ..documents.toolkit import ToolkitConfig
from ..host import HostView
from ..model import Hit, Needs, Severity
from ..registry import rule

_CLI = "nvidia-container-cli"


def _ldconfig(doc: ToolkitConfig) -> Node | None:
    node = doc.get(_CLI, "ldconfig")
    return node if node is not None and isinstance(node.value, str) and node.value else None


@rule(
    "ldconfig-of-the-container",
    "ldconfig is not the host's",
    Severity.ERROR,
    reads=ToolkitConfig,
    reason="Without @ the path is one inside the container, which its image controls. From 1.17.3 "
    "the toolkit refuses it (not host-relative); before, an image without a usable ldconfig gets "
    "no libnvidia-ml into its cache.",
    fix='Put @ before the path: ldconfig = "@/sbin/ldconfig".',
    sources=(
        "NVIDIA/nvidia-container-toolkit PR 812, issue 830 and CHANGELOG 1.17.3",
        "NVIDIA/nvidia-docker issue 1424",
    ),
    cases=("TK-006", "TK-007"),
)
def ldconfig_of_the_container(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """No leading @, and nobody allowed it."""
    node = _ldconfig(doc)
    allowed = doc.truth("features", "allow-ldconfig-from-container") is True
    if node is not None and not node.value.startswith("@") and not allowed:
        fix = f'Write ldconfig = "@{node.value}".'
        yield Hit(doc.place(node), f"ldconfig is {node.value}, without @.", fix)


@rule(
    "ldconfig-from-container-allowed",
    "Images may run their own ldconfig as root of the host",
    Severity.WARNING,
    reads=ToolkitConfig,
    reason="The switch brings back what CVE-2024-0132 and its successors used: a program of the "
    "image runs before the container is closed.",
    fix="Remove allow-ldconfig-from-container and allow-cuda-compat-libs-from-container.",
    sources=(
        "NVIDIA security bulletins 5582 and 5616",
        "NVIDIA/nvidia-container-toolkit api/config/v1/features.go",
    ),
)
def ldconfig_from_container_allowed(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """The two opt-outs of the fixes."""
    for name in ("allow-ldconfig-from-container", "allow-cuda-compat-libs-from-container"):
        if doc.truth("features", name) is True:
            yield Hit(doc.key_place("features", name), f"features.{name} is true.")


def _is_debian_like(os_name: str) -> bool:
    return os_name.startswith(("ubuntu", "debian", "linuxmint", "pop"))


@rule(
    "ldconfig-real-elsewhere",
    "ldconfig.real is a file of Debian and Ubuntu",
    Severity.ERROR,
    reads=ToolkitConfig,
    reason="Other distributions have only /sbin/ldconfig; before 1.15.0 the toolkit does not look "
    "for it: ldcache error: open failed: /sbin/ldconfig.real: no such file or directory.",
    fix='Write ldconfig = "@/sbin/ldconfig"; from 1.15.0 the toolkit finds the right one itself.',
    sources=("NVIDIA/nvidia-container-toolkit CHANGELOG 1.15.0-rc.1", "OE4T/meta-tegra PR 1427"),
    needs=(Needs("toolkit", "<1.15.0"),),
    unknown=Severity.INFO,
    cases=("TK-004",),
)
def ldconfig_real_elsewhere(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """The path of another distribution."""
    node = _ldconfig(doc)
    if node is None or not node.value.endswith("ldconfig.real"):
        return
    if host.os is None:
        assumed = ("a host other than Debian or Ubuntu",)
        seen = f"ldconfig is {node.value}."
        yield Hit(doc.place(node), seen, severity=Severity.INFO, assumed=assumed)
    elif not _is_debian_like(host.os):
        yield Hit(doc.place(node), f"ldconfig is {node.value}; this host is {host.os}.")


@rule(
    "ldconfig-is-a-wrapper",
    "On Ubuntu /sbin/ldconfig is a script",
    Severity.ERROR,
    reads=ToolkitConfig,
    reason="The script cannot run inside the container's root: ldcache error: process "
    "/sbin/ldconfig failed with error code: 127. From 1.15.0 the toolkit takes ldconfig.real "
    "itself.",
    fix='Write ldconfig = "@/sbin/ldconfig.real", or upgrade the toolkit.',
    sources=(
        "NVIDIA/nvidia-docker issue 587",
        "NVIDIA/nvidia-container-toolkit CHANGELOG 1.15.0-rc.1",
    ),
    needs=(Needs("toolkit", "<1.15.0"),),
    unknown=Severity.INFO,
    cases=("TK-005",),
)
def ldconfig_is_a_wrapper(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """The plain path where it is a script."""
    node = _ldconfig(doc)
    if node is None or node.value not in ("@/sbin/ldconfig", "@/usr/sbin/ldconfig"):
        return
    if host.os is None:
        # What most installers write: worth a word only where the toolkit may be that old.
        toolkit = host.version("toolkit")
        if toolkit is None or not at_least(toolkit, "1.15.0"):
            assumed = ("Ubuntu",)
            seen = f"ldconfig is {node.value}."
            yield Hit(doc.place(node), seen, severity=Severity.INFO, assumed=assumed)
    elif host.os.startswith("ubuntu"):
        yield Hit(doc.place(node), f"ldconfig is {node.value}; this host is {host.os}.")
