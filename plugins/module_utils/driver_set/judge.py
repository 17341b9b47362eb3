# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is refused, what waits for a reboot, and which settings are effective. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..settings.model import DIFFERS, EFFECTIVE, INERT, PENDING, UNSUPPORTED, Setting
from . import kernels, names, tables
from .model import CONTAINER, RUNFILE, View, Wish

_MODULE = "driver module"
_PROC = "/proc/driver/nvidia/version"


def flavour_of(wish: Wish, view: View) -> str:
    """Which kernel modules are meant: what was asked, what fits the GPUs, what is there."""
    if wish.flavour != "auto":
        return wish.flavour
    named = [name for name in wish.packages if names.is_kernel_side(name)]
    if named:
        return tables.OPEN if any("open" in name for name in named) else tables.PROPRIETARY
    if view.cards:
        return tables.flavour_for(view.cards)
    return view.flavour or tables.OPEN


def refuse_wish(wish: Wish, view: View) -> list[str]:
    """Why no driver may be installed here at all, whatever the package manager says."""
    wrong = list(tables.misfits(view.cards, flavour_of(wish, view), _branch(wish)))
    others = [name for name in wish.packages if not names.is_driver(name)]
    if others:
        wrong.append(
            f"{', '.join(others)} is no package of the driver: leave it out of packages. What the "
            "driver needs comes along; a newer version of it needs also_change"
        )
    if view.origin == RUNFILE:
        wrong.append(
            "the driver was installed by NVIDIA's installer, and packages beside it break both: "
            "remove it with nvidia-uninstall, reboot, and run again"
        )
    if view.origin == CONTAINER:
        wrong.append(
            "the driver comes from a container (/run/nvidia/driver), as the GPU Operator's does: "
            "change it there"
        )
    if view.is_vendor_image:
        wrong.append(
            f"{view.os.vendor_image} is an image of the machine's vendor, who upgrades driver, "
            "fabric manager and kernel together: use the vendor's way, and mode adopt here"
        )
    return wrong


def in_use(view: View) -> list[str]:
    """Whose work a new driver would cost, as a reason to refuse."""
    if not view.holders:
        return []
    told = "; ".join(view.holders[:8])
    more = f" and {len(view.holders) - 8} more" if len(view.holders) > 8 else ""
    return [
        f"GPUs are in use: {told}{more}. A new driver beside a loaded module makes every new CUDA "
        "program fail until the reboot that the running ones would not survive: let them end first"
    ]


def refuse_change(
    view: View,
    coming: Collection[str],
    headers: Collection[str],
    release: str | None,
) -> list[str]:
    """Why packages may not be changed now. ``coming`` are those that get another version.

    ``headers`` are packages of kernel headers that come along.
    """
    wrong = in_use(view)
    building = sorted(name for name in coming if names.builds_module(name))
    if not building:
        return wrong
    kernel = view.running
    if kernel is None or (not kernel.headers and f"linux-headers-{kernel.release}" not in headers):
        release_name = view.kernel or "the running kernel"
        wrong.append(
            f"{', '.join(building)} builds its module on this host, and the headers of "
            f"{release_name} are neither installed nor offered, so the running kernel would get no "
            f"module: install linux-headers-{release_name} (or kernel-devel-{release_name}), or "
            "boot the kernel whose headers the sources have"
        )
    if view.secure_boot == "enabled" and view.key_enrolled is not True:
        known = (
            "the list of enrolled keys cannot be read"
            if view.key_enrolled is None
            else "the firmware knows no key of this host's"
        )
        wrong.append(
            f"Secure Boot is on and {known}, so the kernel would not load the module that "
            f"{', '.join(building)} builds. Make a key where there is none (dkms generate_mok), "
            "enroll it (mokutil --import /var/lib/dkms/mok.pub, and confirm at the console at the "
            "next boot), or install modules that are signed by the distribution"
        )
    return wrong


def mismatched(view: View, release: str | None) -> list[str]:
    """Fabric manager and IMEX that are of another release than the driver, in words."""
    if release is None:
        return []
    wrong = []
    for name, other in sorted(names.in_step(view.versions).items()):
        if other == release:
            continue
        if names.is_fabric_manager(name) and view.nvswitches:
            wrong.append(
                f"{name} is {other} and the driver {release}: with {view.nvswitches} NVSwitches no "
                "CUDA program starts until both are of one release (error 802)"
            )
        elif names.is_imex(name):
            wrong.append(f"{name} is {other} and the driver {release}: IMEX needs one release")
    return wrong


def reboot_reasons(view: View, nouveau_refused: bool = False) -> list[str]:
    """Why only a reboot makes what is installed the driver that runs; [] where it does."""
    reasons = []
    if view.loaded and view.on_disk and view.loaded != view.on_disk:
        reasons.append(f"the kernel runs driver {view.loaded}, and {view.on_disk} is installed")
    if view.modules.get("nouveau") and view.on_disk and nouveau_refused:
        reasons.append("nouveau has the GPUs until the next boot")
    return reasons


def settings(
    wish: Wish, view: View, release: str | None, files: Mapping[str, str | None]
) -> list[Setting]:
    """Everything that is kept, as the machine has it."""
    found = [*_module(view, release), *_in_step(view, release)]
    found += _library(view)
    if wish.uvm:
        found.append(_uvm(view))
    if wish.nouveau_off:
        found.append(_nouveau(view, files))
    if wish.hold:
        found += _held(view)
    if wish.persistence is not None:
        found.append(_persistence(view, wish.persistence))
    return found


def _branch(wish: Wish) -> int | None:
    return names.branch_of(names.release_of(wish.version) if wish.version else None)


def warnings(view: View) -> list[str]:
    """What a person should know although nothing failed."""
    told = []
    bare = kernels.without_driver(view.kernels)
    if bare:
        told.append(
            f"{', '.join(bare)} is installed as well and has no driver module, so booting it "
            "leaves this host without GPUs: install its headers and run dkms autoinstall -k, or "
            "remove it"
        )
    if view.origin in (RUNFILE, CONTAINER):
        from_where = "NVIDIA's installer" if view.origin == RUNFILE else "a container"
        told.append(f"the driver comes from {from_where}: no package of it can be held")
    if view.library and view.on_disk and view.loaded and view.library != view.on_disk:
        told.append(
            f"libnvidia-ml is {view.library} and the module on disk {view.on_disk}: a reboot does "
            "not mend that, bring all packages of the driver to one release (mode install)"
        )
    if view.secure_boot == "unknown" and any(map(names.builds_module, view.versions)):
        told.append("whether Secure Boot is on cannot be told; if so, modules of DKMS may not load")
    return told


def _module(view: View, release: str | None) -> list[Setting]:
    if view.loaded is None:
        if not view.cards and not view.versions:
            return []
        why = "no NVIDIA GPU is on the bus, so the module has nothing to drive"
        verdict = INERT
        if view.cards:
            verdict = DIFFERS
            why = f"the module is not loaded: modprobe nvidia, and look at dmesg ({_for(view)})"
            if view.modules.get("nouveau"):
                verdict, why = PENDING, "nouveau has the GPUs until the next boot"
            if all(card.driver == "vfio-pci" for card in view.cards):
                verdict, why = INERT, "every GPU is kept for virtual machines (vfio-pci)"
        return [Setting(_MODULE, release or "loaded", None, verdict, why, _PROC)]
    wanted = release or view.loaded
    if wanted == view.loaded:
        return [Setting(_MODULE, wanted, view.loaded, EFFECTIVE, "", _PROC)]
    if view.on_disk == wanted:
        why = "the new module is loaded at the next boot"
        return [Setting(_MODULE, wanted, view.loaded, PENDING, why, _PROC)]
    why = f"the kernel runs another release than the packages have ({_for(view)})"
    return [Setting(_MODULE, wanted, view.loaded, DIFFERS, why, _PROC)]


def _for(view: View) -> str:
    kernel = view.running
    if kernel is None or kernel.module is None:
        return f"there is no module for kernel {view.kernel}"
    return f"the file is {kernel.path}"


def _library(view: View) -> list[Setting]:
    if view.library is None or view.loaded is None:
        return []
    if view.library == view.loaded:
        return [Setting("libnvidia-ml", view.loaded, view.library, EFFECTIVE)]
    waits = view.library == view.on_disk
    why = (
        "NVML fails until the reboot that loads the module of its release"
        if waits
        else "NVML fails: library and module are of two releases"
    )
    return [Setting("libnvidia-ml", view.loaded, view.library, PENDING if waits else DIFFERS, why)]


def _in_step(view: View, release: str | None) -> list[Setting]:
    if release is None:
        return []
    found = []
    for name, other in sorted(names.in_step(view.versions).items()):
        if not (names.is_fabric_manager(name) or names.is_imex(name)):
            continue
        same = other == release
        why = "" if same else "it works with a driver of its own release only"
        verdict = EFFECTIVE if same else DIFFERS
        if not same and names.is_fabric_manager(name) and not view.nvswitches:
            verdict, why = INERT, "this host has no NVSwitch"
        found.append(Setting(name, release, other, verdict, why))
    return found


def _uvm(view: View) -> Setting:
    name, wanted = "nvidia-uvm before the engines", "loaded"
    if view.modules.get("nvidia_uvm"):
        return Setting(name, wanted, "loaded", EFFECTIVE, "", "/proc/modules")
    if view.loaded is None:
        return Setting(name, wanted, None, INERT, "the driver is not loaded", "/proc/modules")
    if not view.has_uvm:
        why = f"kernel {view.kernel} has no file of this module"
        return Setting(name, wanted, None, UNSUPPORTED, why, "/proc/modules")
    if view.on_disk not in (None, view.loaded):
        why = f"its file is of {view.on_disk} and the driver that runs of {view.loaded}"
        return Setting(name, wanted, None, PENDING, why, "/proc/modules")
    why = "CUDA fails without it: modprobe nvidia-uvm, and look at dmesg"
    return Setting(name, wanted, None, DIFFERS, why, "/proc/modules")


def _nouveau(view: View, files: Mapping[str, str | None]) -> Setting:
    if not view.modules.get("nouveau"):
        return Setting("nouveau", "not loaded", "not loaded", EFFECTIVE, "", "/proc/modules")
    if any(text and "blacklist nouveau" in text for text in files.values()):
        why = "it is kept out from the next boot on"
        return Setting("nouveau", "not loaded", "loaded", PENDING, why, "/proc/modules")
    why = "no NVIDIA module could take its place, so it stays: install a driver first"
    return Setting("nouveau", "not loaded", "loaded", INERT, why, "/proc/modules")


def _held(view: View) -> list[Setting]:
    name, wanted = "driver packages", "held"
    there = names.to_hold(view.installed.packages)
    if not there:
        return []
    if not view.can_hold:
        why = (
            "dnf 4 keeps a version with its plugin versionlock (python3-dnf-plugin-versionlock), "
            "which is not here; the locks of dnf 5 are not known to this collection"
        )
        return [Setting(name, wanted, "not held", UNSUPPORTED, why)]
    if view.is_vendor_image:
        why = (
            f"{view.os.vendor_image} is upgraded as a whole by its vendor, which holds would break"
        )
        return [Setting(name, wanted, "not held", INERT, why)]
    free = sorted(one for one in there if not view.installed.packages[one].held)
    if not free:
        return [Setting(name, wanted, "held", EFFECTIVE)]
    return [Setting(name, wanted, f"{len(free)} not held", DIFFERS, f"not held: {_some(free)}")]


def _persistence(view: View, wanted: bool) -> Setting:
    name, word = "nvidia-persistenced", "persistence mode on" if wanted else "stopped"
    if view.persistence == "absent":
        if not wanted:
            return Setting(name, word, "absent", EFFECTIVE)
        return Setting(name, word, "absent", UNSUPPORTED, "it is not installed on this host")
    seen = view.persistence
    if view.persistence_mode is not None:
        seen += f", persistence mode {'on' if view.persistence_mode else 'off'}"
    if wanted and view.unit.without_mode:
        if view.persistence_mode:
            return Setting(name, word, seen, EFFECTIVE)
        why = (
            "its unit starts it with --no-persistence-mode, and then it keeps no GPU open: give "
            "ExecStart in a drop-in of yours --persistence-mode"
        )
        return Setting(name, word, seen, UNSUPPORTED, why)
    why = "look at journalctl -b -u nvidia-persistenced"
    if (view.persistence == "running") != wanted:
        if wanted and view.loaded is None:
            return Setting(name, word, seen, INERT, "the driver is not loaded")
        return Setting(name, word, seen, DIFFERS, why)
    if wanted and view.persistence_mode is False:
        return Setting(name, word, seen, DIFFERS, f"it runs, but the mode is off: {why}")
    return Setting(name, word, seen, EFFECTIVE)


def _some(found: Sequence[str]) -> str:
    return ", ".join(found[:8]) + (f" and {len(found) - 8} more" if len(found) > 8 else "")
