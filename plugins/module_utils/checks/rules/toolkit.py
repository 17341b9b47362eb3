# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on the NVIDIA Container Toolkit's config.toml: devices, modes and keys. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ...versions import at_least
from ..documents.toolkit import KEYS, MODES, ToolkitConfig
from ..host import HostView
from ..model import Hit, Needs, Severity
from ..registry import rule

_SOURCE = "NVIDIA/nvidia-container-toolkit api/config/v1 at 1.20.0"
_CLI = "nvidia-container-cli"
_RUNTIME = "nvidia-container-runtime"

# What was asked for and never was: what there is.
_INVENTED: Mapping[str, str] = MappingProxyType(
    {
        "gpu-memory-limit": "A hard limit of GPU memory needs MIG, or the driver R615 and "
        "nvidia-smi memory-limits; MPS limits those that co-operate.",
        "memory-limit": "A hard limit of GPU memory needs MIG, or the driver R615 and "
        "nvidia-smi memory-limits; MPS limits those that co-operate.",
        "require-uvm": "Load the module instead: nvidia-modprobe -u -c 0.",
        "load-uvm": "Load the module instead: nvidia-modprobe -u -c 0.",
        "require-gpu-uuid": "Name the GPU for the container: --device nvidia.com/gpu=GPU-….",
        "no-op": "The toolkit has no such mode.",
    }
)

# Tables that are the toolkit's own: others may keep theirs in the same file.
_TABLES = frozenset(name.partition(".")[0] for name in KEYS)


@rule(
    "toolkit-config-syntax",
    "The toolkit's config.toml is not TOML",
    Severity.FATAL,
    reads=ToolkitConfig,
    reason="The NVIDIA runtime and its hook stop with an error when they cannot read the file: no "
    "container of that runtime starts.",
    fix="Correct the file at the place named.",
    sources=(_SOURCE,),
)
def toolkit_config_syntax(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """The file cannot be read."""
    if doc.broken is not None:
        yield Hit(doc.broken.at, f"The file cannot be read here: {doc.broken.said}.")


@rule(
    "no-cgroups-rootful",
    "no-cgroups = true keeps containers from their GPU",
    Severity.ERROR,
    reads=ToolkitConfig,
    reason="The hook then grants no device to the container's cgroup. It is meant for rootless "
    "engines; containers of a root engine get Failed to initialize NVML: Unknown Error.",
    fix="Set no-cgroups = false for the engine that runs as root; give a rootless engine CDI "
    "devices, or a config of its own by NVIDIA_CTK_CONFIG_FILE_PATH or XDG_CONFIG_HOME.",
    sources=("NVIDIA/nvidia-container-toolkit issues 381 and 580", "ublue-os/bluefin issue 3883"),
    row="117",
    cases=("CG-007",),
)
def no_cgroups_rootful(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """no-cgroups = true keeps containers from their GPU."""
    off = doc.truth(_CLI, "no-cgroups") is True
    if not off or host.rootless is True or doc.is_user_file or "rootless" in doc.at.file:
        return
    known = host.rootless is False
    yield Hit(
        doc.key_place(_CLI, "no-cgroups"),
        "no-cgroups is true.",
        commands=("sudo nvidia-ctk config --in-place --set nvidia-container-cli.no-cgroups=false",),
        severity=None if known else Severity.WARNING,
        assumed=() if known else ("an engine that runs as root",),
    )


@rule(
    "toolkit-mode-unknown",
    "The toolkit has no such mode",
    Severity.FATAL,
    reads=ToolkitConfig,
    reason="The runtime stops with invalid runtime mode, and nvidia-ctk config --set does not "
    "check it.",
    fix='Write mode = "auto", or one of legacy, csv, cdi and jit-cdi.',
    sources=("NVIDIA/nvidia-container-toolkit internal/modifier/mode.go", "seen with 1.20.0"),
)
def toolkit_mode_unknown(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """A mode of no release, or of a later one."""
    if doc.mode is None:
        return
    place, toolkit = doc.key_place(_RUNTIME, "mode"), host.version("toolkit")
    since = MODES.get(doc.mode)
    if since is None:
        yield Hit(place, f"mode is {doc.mode!r}.")
    elif since and toolkit is not None and not at_least(toolkit, since):
        yield Hit(place, f"mode is {doc.mode}, which came with {since}; this is {toolkit}.")


@rule(
    "toolkit-cdi-mode-and-gpus",
    "--gpus is refused in mode cdi",
    Severity.WARNING,
    reads=ToolkitConfig,
    reason="--gpus makes Docker call the hook, and before 1.18 the hook refuses to work unless "
    "the mode is legacy: invoking the NVIDIA Container Runtime Hook directly is not supported.",
    fix="Start containers with --device nvidia.com/gpu=all (or --runtime=nvidia), or upgrade the "
    "toolkit to 1.18.0 or newer.",
    sources=("dstackai/dstack issue 2306", "NVIDIA/nvidia-container-toolkit CHANGELOG 1.18.0-rc.1"),
    needs=(Needs("toolkit", "<1.18.0"),),
    unknown=Severity.INFO,
    cases=("TK-009",),
)
def toolkit_cdi_mode_and_gpus(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """Mode = cdi with an old toolkit."""
    skip = doc.truth("nvidia-container-runtime-hook", "skip-mode-detection") is True
    if doc.mode == "cdi" and not skip:
        yield Hit(doc.key_place(_RUNTIME, "mode"), "mode is cdi.")


@rule(
    "legacy-mode-loses-gpus",
    "Containers of the legacy mode can lose their GPU",
    Severity.ERROR,
    reads=ToolkitConfig,
    reason="The hook changes the container's device rules behind runc's back. With the systemd "
    "driver a daemon-reload or docker update writes the rules anew, without the GPU: the next "
    "use fails with Failed to initialize NVML: Unknown Error.",
    fix='Write mode = "auto" (jit-cdi from 1.18.0 on), or give containers CDI devices, and create '
    "running ones anew.",
    sources=(
        "NVIDIA/nvidia-container-toolkit issue 48 and discussion 1133",
        "NVIDIA container toolkit troubleshooting",
    ),
    row="26",
)
def legacy_mode_loses_gpus(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """The hook together with the systemd driver."""
    if doc.mode != "legacy" or host.cgroup_driver == "cgroupfs":
        return
    known = host.cgroup_driver == "systemd"
    yield Hit(
        doc.key_place(_RUNTIME, "mode"),
        "mode is legacy" + (" and the cgroup driver is systemd." if known else "."),
        severity=None if known else Severity.INFO,
        assumed=() if known else ("cgroup driver systemd",),
    )


@rule(
    "envvar-when-unprivileged",
    "Any image can ask for all GPUs",
    Severity.WARNING,
    reads=ToolkitConfig,
    reason="CUDA images set NVIDIA_VISIBLE_DEVICES=all. Where the NVIDIA runtime is the default, "
    "every container of such an image gets every GPU, whether it asked for one or not; on a "
    "shared host that goes past the scheduler.",
    fix="Set accept-nvidia-visible-devices-envvar-when-unprivileged = false and "
    "accept-nvidia-visible-devices-as-volume-mounts = true, with the device plugin's "
    "deviceListStrategy volume-mounts, or use CDI.",
    sources=("NVIDIA/k8s-device-plugin issue 87", "bottlerocket-os/bottlerocket PR 3718"),
    row="161",
    cases=("CO-005",),
)
def envvar_when_unprivileged(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """Accepted from anybody, said explicitly."""
    name = "accept-nvidia-visible-devices-envvar-when-unprivileged"
    if doc.truth(name) is not True:
        return
    # It matters only where every container passes through the NVIDIA runtime.
    default = host.default_runtime
    other = default is not None and not default.startswith("nvidia")
    yield Hit(
        doc.key_place(name),
        f"{name} is true.",
        severity=Severity.INFO if other else None,
        assumed=() if default is not None else ("the NVIDIA runtime is the default one",),
    )


@rule(
    "visible-devices-no-channel",
    "NVIDIA_VISIBLE_DEVICES is refused and nothing is in its place",
    Severity.WARNING,
    reads=ToolkitConfig,
    reason="Unprivileged containers then cannot ask for a GPU by the variable nor by a volume "
    "mount: insufficient privileges to read device list from NVIDIA_VISIBLE_DEVICES envvar.",
    fix="Set accept-nvidia-visible-devices-as-volume-mounts = true with the device plugin's "
    "deviceListStrategy volume-mounts, or hand out GPUs by CDI.",
    sources=("NVIDIA/k8s-device-plugin issue 203",),
    cases=("CO-006",),
)
def visible_devices_no_channel(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """Half of the hardening. With CDI it is whole."""
    name = "accept-nvidia-visible-devices-envvar-when-unprivileged"
    mounts = doc.truth("accept-nvidia-visible-devices-as-volume-mounts")
    if doc.truth(name) is False and mounts is not True and doc.mode != "cdi":
        seen = "The variable is not accepted, and volume mounts are not either."
        yield Hit(doc.key_place(name), seen)


@rule(
    "toolkit-unknown-key",
    "The toolkit does not know this key",
    Severity.WARNING,
    reads=ToolkitConfig,
    reason="The toolkit ignores keys that it does not know: what was meant does not happen.",
    fix="Remove the key, or write the one that is meant.",
    sources=("NVIDIA/nvidia-container-toolkit api/config/v1 from 1.10.0 to 1.20.0",),
    row="152,158",
)
def toolkit_unknown_key(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """Invented keys and slips of the pen; a key of which nothing is known is only told."""
    for path, _node in doc.leaves():
        name = ".".join(path)
        if name in KEYS or (len(path) > 1 and path[0] not in _TABLES):
            continue
        near = difflib.get_close_matches(name, KEYS, 1, 0.9)
        same_end = [key for key in KEYS if key.rpartition(".")[2] == path[-1]]
        meant = (near or same_end)[:1]
        fix = _INVENTED.get(path[-1]) or (f"Write {meant[0]} if that is meant." if meant else "")
        severity = None if fix else Severity.INFO
        yield Hit(doc.key_place(*path), f"{name} is no key of the toolkit.", fix, severity=severity)


@rule(
    "toolkit-key-release",
    "This key came with a later toolkit",
    Severity.WARNING,
    reads=ToolkitConfig,
    reason="A toolkit that is older than the key ignores it.",
    fix="Upgrade the toolkit, or remove the key.",
    sources=("NVIDIA/nvidia-container-toolkit api/config/v1 from 1.10.0 to 1.20.0",),
    needs=(Needs("toolkit", "<1.20.0"),),
    unknown=Severity.INFO,
)
def toolkit_key_release(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """Only where the toolkit's version is known."""
    toolkit = host.version("toolkit")
    for path, _node in doc.leaves() if toolkit is not None else ():
        since = KEYS.get(".".join(path), "")
        if since and not at_least(toolkit, since):
            seen = f"{'.'.join(path)} came with {since}; this is {toolkit}."
            yield Hit(doc.key_place(*path), seen)


@rule(
    "load-kmods-off",
    "The toolkit is told not to load kernel modules",
    Severity.INFO,
    reads=ToolkitConfig,
    reason="Without nvidia_uvm CUDA does not start; something else must load it at boot then, and "
    "nvidia-smi -L works without it, so it proves nothing.",
    fix="Load it at boot: nvidia-modprobe -u -c 0 in a unit, or nvidia-persistenced.",
    sources=("NVIDIA/libnvidia-container src/nvc.c",),
    row="156",
)
def load_kmods_off(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """load-kmods = false on a host where uvm is not known to be there."""
    loaded = host.modules.get("nvidia_uvm") or host.modules.get("uvm")
    if doc.truth(_CLI, "load-kmods") is False and not loaded:
        yield Hit(doc.key_place(_CLI, "load-kmods"), "load-kmods is false.")
