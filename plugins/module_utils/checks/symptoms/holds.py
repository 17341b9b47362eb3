# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the facts of a host say of a cause: True (it is so), False (it is not), None (unknown).

Pure. A host that is not live knows nothing, unless a value was given for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..host import HostView
from ..model import Needs

Holds = Callable[[HostView], "bool | None"]


def fact(host: HostView, *path: str) -> Any:
    """One value of ``gpu_host``; None where it is missing."""
    return _dig(host.facts, path)


def evidence(host: HostView, *path: str) -> Any:
    """One value of the evidence; None where it is missing."""
    return _dig(host.evidence, path)


def _dig(tree: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        tree = tree.get(step) if isinstance(tree, Mapping) else None
    return tree


def _certain(host: HostView, answer: bool) -> bool | None:
    """What a list does not hold is "not there" only where the list is that of a live host."""
    if answer:
        return True
    return False if host.live and host.gpus is not None else None


def module(name: str, loaded: bool = True) -> Holds:
    """Is a kernel module in the given state?"""

    def holds(host: HostView) -> bool | None:
        state = host.modules.get(name)
        return None if state is None else state is loaded

    return holds


def version(component: str, wanted: str) -> Holds:
    """Is the version of a component within a range, as :class:`Needs` writes it?"""
    need = Needs(component, wanted)

    def holds(host: HostView) -> bool | None:
        known = host.version(component)
        return None if known is None else need.covers(known)

    return holds


def both(*questions: Holds) -> Holds:
    """Do all hold? One that does not rules the cause out, one unknown leaves it open."""

    def holds(host: HostView) -> bool | None:
        answers = [question(host) for question in questions]
        if False in answers:
            return False
        return None if None in answers else True

    return holds


def rules_out(question: Holds) -> Holds:
    """What is necessary and not sufficient: False where it does not hold, else unknown."""

    def holds(host: HostView) -> bool | None:
        return False if question(host) is False else None

    return holds


def confirms(question: Holds) -> Holds:
    """What is sufficient and not necessary: True where it holds, else unknown."""

    def holds(host: HostView) -> bool | None:
        return True if question(host) else None

    return holds


def systemd_driver(host: HostView) -> bool | None:
    """Does the engine leave control groups to systemd?"""
    return None if host.cgroup_driver is None else host.cgroup_driver == "systemd"


def rootless(host: HostView) -> bool | None:
    """Is the engine rootless?"""
    return host.rootless


def cgroup_version(number: str) -> Holds:
    """Is this the version of the control groups?"""

    def holds(host: HostView) -> bool | None:
        known = host.version("cgroup")
        return None if known is None else known.split(".")[0] == number

    return holds


def _gpu_containers(host: HostView) -> list[Mapping[str, Any]] | None:
    found = evidence(host, "containers")
    if not isinstance(found, list):
        return None
    return [one for one in found if isinstance(one, Mapping) and one.get("running")]


def hook_containers(host: HostView) -> bool | None:
    """Does a running container have its GPU from the hook?"""
    found = _gpu_containers(host)
    return None if found is None else any(one.get("gpus") == "hook" for one in found)


def lost_devices(host: HostView) -> bool | None:
    """Has a running container lost a device that it was given?"""
    found = _gpu_containers(host)
    return None if found is None else any(one.get("lost") for one in found)


def hook_loses_devices(host: HostView) -> bool | None:
    """Hook-made containers under the systemd driver lose their GPU: is this such a host?"""
    if hook_containers(host) is False or systemd_driver(host) is False:
        return False
    return True if lost_devices(host) and hook_containers(host) else None


def driver_status(*wanted: str) -> Holds:
    """Is ``gpu.driver.status`` one of the given words?"""

    def holds(host: HostView) -> bool | None:
        status = fact(host, "gpu", "driver", "status")
        return None if status is None else status in wanted

    return holds


def driver_hidden(host: HostView) -> bool | None:
    """May this process not open GPU nodes that exist?"""
    hidden = fact(host, "gpu", "driver", "hidden")
    return None if hidden is None else bool(hidden)


def nvidia_on_bus(host: HostView) -> bool | None:
    """Is there an NVIDIA GPU on the PCI bus?"""
    # Facts of a host list every vendor; a text that names some does not.
    if not host.live:
        return True if "nvidia" in host.vendors else None
    return "nvidia" in host.vendors


def no_nvidia_on_bus(host: HostView) -> bool | None:
    """Is there none?"""
    known = nvidia_on_bus(host)
    return None if known is None else not known


def only_vendor(name: str) -> Holds:
    """Are all GPUs of this vendor?"""

    def holds(host: HostView) -> bool | None:
        # A text that names one vendor does not say that there is no other.
        return host.vendors == frozenset((name,)) if host.live and host.vendors else None

    return holds


def mixed_vendors(host: HostView) -> bool | None:
    """Are there GPUs of NVIDIA and of AMD?"""
    return _certain(host, frozenset(("nvidia", "amd")) <= host.vendors)


def hook_missing(host: HostView) -> bool | None:
    """Is the toolkit's hook not on the daemon's path?"""
    return None if host.hook_on_path is None else not host.hook_on_path


def runtime_missing(name: str) -> Holds:
    """Does the running engine not know a runtime of this name?"""

    def holds(host: HostView) -> bool | None:
        return None if host.runtimes is None else name not in host.runtimes

    return holds


def cdi_off(host: HostView) -> bool | None:
    """Has the engine CDI switched off?"""
    return None if host.cdi_enabled is None else not host.cdi_enabled


def no_cdi_devices(host: HostView) -> bool | None:
    """Does no spec name an NVIDIA device?"""
    if host.cdi_devices is None:
        return None
    return not any(name.startswith("nvidia.com/") for name in host.cdi_devices)


def mig_without_devices(host: HostView) -> bool | None:
    """Has a GPU MIG on and no MIG device?"""
    gpus = host.gpus or ()
    return _certain(host, any(gpu.mig and not gpu.mig_devices for gpu in gpus))


def mig_on(host: HostView) -> bool | None:
    """Has a GPU MIG on?"""
    return _certain(host, any(gpu.mig for gpu in host.gpus or ()))


def mig_pending(host: HostView) -> bool | None:
    """Does a GPU wait for a reset to change its MIG mode?"""
    return _certain(host, any(gpu.mig != gpu.mig_pending for gpu in host.gpus or ()))


def mig_not_in_cdi(host: HostView) -> bool | None:
    """Is a MIG device of the host missing in the CDI specs?"""
    if host.gpus is None or host.cdi_devices is None:
        return None
    uuids = [device.uuid for gpu in host.gpus for device in gpu.mig_devices]
    if not uuids:
        return _certain(host, False)
    named = {name.partition("=")[2] for name in host.cdi_devices}
    places = {
        f"{gpu.index}:{device.index}"
        for gpu in host.gpus
        for device in gpu.mig_devices
        if device.uuid not in named
    }
    return bool(places - named)


def nvswitch(host: HostView) -> bool | None:
    """Has the host NVSwitches?"""
    count = fact(host, "gpu", "nvswitches")
    return None if count is None else bool(count)


def fabric_manager_not_running(host: HostView) -> bool | None:
    """NVSwitches, and no fabric manager that runs?"""
    status = fact(host, "gpu", "fabric_manager", "status")
    if nvswitch(host) is False:
        return False
    return None if status is None or not nvswitch(host) else status != "running"


def fabric_manager_differs(host: HostView) -> bool | None:
    """Is the fabric manager of another release than the driver?"""
    manager = fact(host, "gpu", "fabric_manager", "version") or host.version("fabric_manager")
    driver = host.version("driver")
    if not manager or not driver:
        return None
    return str(manager) != driver


def toolkit_mode(*wanted: str) -> Holds:
    """Is the mode of the NVIDIA runtime one of these?"""

    def holds(host: HostView) -> bool | None:
        return None if host.toolkit_mode is None else host.toolkit_mode in wanted

    return holds


def selinux_enforcing(host: HostView) -> bool | None:
    """Does SELinux enforce?"""
    return None if host.selinux is None else host.selinux == "enforcing"


def secure_boot(host: HostView) -> bool | None:
    """Is Secure Boot on?"""
    state = fact(host, "gpu", "secure_boot")
    return {"enabled": True, "disabled": False}.get(state) if isinstance(state, str) else None


def gpu_error(host: HostView) -> bool | None:
    """Did a GPU answer with an error?"""
    return _certain(host, any(gpu.error for gpu in host.gpus or ()))


def xid_seen(*numbers: int) -> Holds:
    """Does the kernel log still hold one of these Xids? It forgets, so never False."""

    def holds(host: HostView) -> bool | None:
        devices = fact(host, "gpu", "devices")
        if not isinstance(devices, list):
            return None
        seen = {
            report.get("xid")
            for device in devices
            if isinstance(device, Mapping)
            for report in device.get("xids") or ()
            if isinstance(report, Mapping)
        }
        return True if seen & set(numbers) else None

    return holds


def sysctl(name: str, wanted: str) -> Holds:
    """Has a kernel parameter this value?"""

    def holds(host: HostView) -> bool | None:
        value = evidence(host, "sysctl", name)
        return None if value is None else str(value).strip() == wanted

    return holds


def text_has(path: str, pattern: str) -> Holds:
    """Does a line of a gathered file hold this, comments left out?"""

    def holds(host: HostView) -> bool | None:
        text = evidence(host, "texts", path)
        if not isinstance(text, str):
            return None
        lines = (line.split("#", 1)[0] for line in text.splitlines())
        return any(pattern in "".join(line.split()) for line in lines)

    return holds


def unattended(host: HostView) -> bool | None:
    """Does the host upgrade packages by itself, drivers included?"""
    enabled = evidence(host, "unattended_upgrades", "enabled")
    if enabled is None:
        return None
    blocked = evidence(host, "unattended_upgrades", "blacklist") or []
    return bool(enabled) and not any("nvidia" in str(entry) for entry in blocked)


def next_kernel_without_driver(host: HostView) -> bool | None:
    """Has the running kernel no NVIDIA module?"""
    running = evidence(host, "kernels", "running")
    built = evidence(host, "kernels", "driver_built_for")
    if not running or not isinstance(built, list):
        return None
    return running not in built
