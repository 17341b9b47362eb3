# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on CDI specifications. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...engine import cdi_versions
from ...engine.cdi import docker_reads
from ...trees.node import Node
from ...versions import at_least, parse
from ..documents.cdi import CdiSpec, device_paths
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule

_SPEC = "cncf-tags/container-device-interface SPEC.md"
_VERSIONS = "cncf-tags/container-device-interface specs-go/version.go at v1.1.0"
_GENERATE = "sudo nvidia-ctk cdi generate --output={0}"


def _regenerate(doc: CdiSpec) -> tuple[str, ...]:
    path = doc.at.file if doc.at.file.startswith("/") else "/etc/cdi/nvidia.yaml"
    return (_GENERATE.format(path), "nvidia-ctk cdi list")


@rule(
    "cdi-spec-invalid",
    "A CDI specification that no engine reads",
    Severity.ERROR,
    reads=CdiSpec,
    reason="Engines leave out a spec that they cannot read, and say so only in their logs: its "
    "devices are unresolvable.",
    fix="Generate it anew, or correct what is named.",
    sources=(_SPEC, _VERSIONS),
)
def cdi_spec_invalid(doc: CdiSpec, host: HostView) -> Iterator[Hit]:
    """What engine/cdi.py says of it."""
    if doc.spec.status == "valid":
        return
    reason = doc.spec.reason or "it cannot be read"
    place = doc.at
    if doc.broken is not None:
        place = doc.broken.at
    else:
        for key in ("cdiVersion", "kind", "devices"):
            if reason.startswith((key, "device names")) and doc.get(key) is not None:
                place = doc.key_place(key)
    yield Hit(place, f"The spec is not usable: {reason}.", commands=_regenerate(doc))


def _wanted_version(doc: CdiSpec) -> tuple[str, str, Node | None]:
    """The lowest CDI version that has what the spec uses, what that is, and where."""
    found: list[tuple[str, str, Node | None]] = [("0.1.0", "", None)]
    for edits in doc.edits():
        rdt = edits.get("intelRdt")
        if rdt is not None:
            watched = rdt.get("enableMonitoring")
            monitored = rdt.get("schemata") or (watched is not None and watched.value is True)
            found.append(("1.1.0" if monitored else "0.7.0", "intelRdt", rdt))
        for key, version in (("additionalGids", "0.7.0"), ("netDevices", "1.1.0")):
            node = edits.get(key)
            if node is not None and node.elements():
                found.append((version, key, node))
        for group, key, version in (
            ("deviceNodes", "hostPath", "0.5.0"),
            ("mounts", "type", "0.4.0"),
        ):
            inside = edits.get(group)
            for entry in inside.elements() if inside is not None else ():
                node = entry.get(key)
                if node is not None and node.value:
                    found.append((version, f"{group}.{key}", node))
    for name, device in doc.devices():
        if name[:1].isdigit():
            found.append(("0.5.0", "a device name that starts with a digit", device.get("name")))
        notes = device.get("annotations")
        if notes is not None and notes.value:
            found.append(("0.6.0", "annotations", notes))
    notes = doc.get("annotations")
    if notes is not None and notes.value:
        found.append(("0.6.0", "annotations", notes))
    if "." in (doc.spec.kind or "").partition("/")[2]:
        found.append(("0.6.0", "a dot in the class", doc.get("kind")))
    return max(found, key=lambda entry: parse(entry[0]))


@rule(
    "cdi-spec-version-too-low",
    "The spec uses what its version does not have",
    Severity.ERROR,
    reads=CdiSpec,
    reason="Engines refuse such a spec (the spec version must be at least …) and go on without "
    "its devices.",
    fix="Raise cdiVersion, if the engine reads that, or generate the spec anew.",
    sources=(_VERSIONS,),
)
def cdi_spec_version_too_low(doc: CdiSpec, host: HostView) -> Iterator[Hit]:
    """AdditionalGids in a spec of 0.5.0, and the like."""
    said = doc.spec.cdi_version
    if doc.spec.status != "valid" or said is None or not doc.root.value:
        return
    wanted, what, node = _wanted_version(doc)
    if not at_least(said, wanted) and node is not None:
        seen = f"cdiVersion is {said}; {what} needs {wanted}."
        yield Hit(doc.place(node), seen, f'Write cdiVersion: "{wanted}".')


@rule(
    "cdi-spec-version-unknown",
    "No release of CDI has this version",
    Severity.ERROR,
    reads=CdiSpec,
    reason="Engines take only the versions that there are, and leave the spec out otherwise.",
    fix="Write one of 0.3.0, 0.4.0, 0.5.0, 0.6.0, 0.7.0, 0.8.0, 1.0.0 and 1.1.0.",
    sources=(_VERSIONS,),
)
def cdi_spec_version_unknown(doc: CdiSpec, host: HostView) -> Iterator[Hit]:
    """0.7.1, 0.9.0; a version above the newest we know may be one."""
    said = doc.spec.cdi_version
    if doc.spec.status != "valid" or said is None or parse(said) > (1, 1, 0):
        return
    known = {(0, minor, 0) for minor in range(1, 9)} | {(1, 0, 0), (1, 1, 0)}
    if parse(said) not in known:
        yield Hit(doc.key_place("cdiVersion"), f"cdiVersion is {said}.")


# Who reads it beside Docker, of those whose version somebody may name.
_OTHERS = ("containerd", "podman")


@rule(
    "cdi-version-above-engine",
    "The engine does not read this CDI version",
    Severity.ERROR,
    reads=CdiSpec,
    reason="An engine leaves out a spec of a version that came after it. CDI 0.7.0, which toolkit "
    "1.19 writes, needs Docker 26.1, containerd 1.7.16 or Podman 5.1.",
    fix="Upgrade the engine, or generate the spec with --feature-flag "
    "no-additional-gids-for-device-nodes.",
    sources=("NVIDIA container toolkit, CDI support", "moby vendor.mod of each release"),
    row="P13",
)
def cdi_version_above_engine(doc: CdiSpec, host: HostView) -> Iterator[Hit]:
    """Docker is known, or what it must be is told."""
    said, docker = doc.spec.cdi_version, host.version("docker")
    if doc.spec.status != "valid" or said is None:
        return
    place = doc.key_place("cdiVersion")
    if docker is not None and not docker_reads(docker, said):
        yield Hit(place, f"cdiVersion is {said}; Docker {docker} does not read it.")
    elif docker is None and at_least(said, "0.7.0"):
        for component in _OTHERS:
            known = host.version(component)
            if known and not host.live and not cdi_versions.reads(component, known, said):
                yield Hit(place, f"cdiVersion is {said}; {component} is {known}.")
                return
        wanted = cdi_versions.since("docker", said)
        if not host.live and wanted:
            seen = f"cdiVersion is {said}, which needs Docker {wanted} or newer."
            yield Hit(place, seen, severity=Severity.INFO, assumed=(f"docker <{wanted}",))


@rule(
    "cdi-spec-driver-differs",
    "The spec names files of another driver",
    Severity.ERROR,
    reads=CdiSpec,
    reason="The spec lists the driver's libraries with their version. After a change of the "
    "driver those files are gone, and every start fails: no such file or directory.",
    fix="Generate the spec anew after every change of the driver; toolkit 1.18.0 and newer do it "
    "with nvidia-cdi-refresh.",
    sources=(
        "NVIDIA/nvidia-container-toolkit issues 450, 692 and 856",
        "podman issues 23935 and 26233",
    ),
    cases=("TK-029",),
)
def cdi_spec_driver_differs(doc: CdiSpec, host: HostView) -> Iterator[Hit]:
    """Against the host's driver, or against itself."""
    if not doc.is_nvidia:
        return
    files = list(doc.driver_files())
    driver = host.version("driver")
    versions = sorted({version for version, _node in files}, key=parse)
    if driver is not None:
        other = [(version, node) for version, node in files if version != driver]
        if other:
            version, node = other[0]
            seen = f"The spec is for driver {version}; this host has {driver}."
            yield Hit(doc.place(node), seen, commands=_regenerate(doc))
    elif len(versions) > 1:
        node, *_more = [node for version, node in files if version == versions[0]]
        seen = f"The spec names files of the drivers {' and '.join(versions)}."
        yield Hit(doc.place(node), seen, commands=_regenerate(doc))
    elif versions and not host.live:
        seen = f"The spec is for driver {versions[0]}."
        assumed = (f"driver =={versions[0]}",)
        yield Hit(doc.place(files[0][1]), seen, severity=Severity.INFO, assumed=assumed)


_MIG_NAME = re.compile(r"(\d+:\d+|MIG-[0-9a-fA-F-]{8,})$")


@rule(
    "cdi-mig-without-caps",
    "A MIG device without its capability files",
    Severity.ERROR,
    reads=CdiSpec,
    reason="A MIG device needs its files in /dev/nvidia-caps; without them CUDA sees no device. "
    "When the nodes are not there at the time, nvidia-ctk writes a spec without them and ends "
    "with status 0.",
    fix="Make the nodes, then generate the spec anew.",
    sources=("NVIDIA MIG user guide, Device nodes and capabilities", "seen with nvidia-ctk 1.20.0"),
)
def cdi_mig_without_caps(doc: CdiSpec, host: HostView) -> Iterator[Hit]:
    """What the tool leaves out in silence."""
    whole = doc.get("containerEdits")
    common = device_paths(whole) if whole is not None else []
    for name, device in doc.devices() if doc.is_nvidia else ():
        edits = device.get("containerEdits")
        paths = [*common, *(device_paths(edits) if edits is not None else [])]
        if _MIG_NAME.match(name) and paths and not any("nvidia-cap" in path for path in paths):
            commands = ("sudo nvidia-modprobe -m", *_regenerate(doc))
            seen = f"The device {name} has no node in /dev/nvidia-caps."
            yield Hit(doc.place(device), seen, commands=commands)
            return


@rule(
    "cdi-spec-without-uvm",
    "A spec without /dev/nvidia-uvm",
    Severity.WARNING,
    reads=CdiSpec,
    reason="CUDA needs the node. It is missing when the spec was made before nvidia_uvm was "
    "loaded; nvidia-smi works in such a container and CUDA does not.",
    fix="Load the module, then generate the spec anew.",
    sources=("NVIDIA/nvidia-container-toolkit pkg/nvcdi", "NVIDIA/libnvidia-container src/nvc.c"),
    row="156",
)
def cdi_spec_without_uvm(doc: CdiSpec, host: HostView) -> Iterator[Hit]:
    """The control nodes are there and this one is not."""
    paths = [path for edits in doc.edits() for path in device_paths(edits)]
    if doc.is_nvidia and "/dev/nvidiactl" in paths and "/dev/nvidia-uvm" not in paths:
        commands = ("sudo nvidia-modprobe -u -c 0", *_regenerate(doc))
        place = doc.key_place("containerEdits") if doc.get("containerEdits") else doc.at
        yield Hit(place, "The spec has /dev/nvidiactl and no /dev/nvidia-uvm.", commands=commands)


@rule(
    "cdi-spec-gpu-gone",
    "The spec names a GPU that this host does not have",
    Severity.ERROR,
    reads=CdiSpec,
    reason="The spec was made with other GPUs, or before they changed places.",
    fix="Generate the spec anew.",
    sources=("NVIDIA container toolkit, CDI support",),
)
def cdi_spec_gpu_gone(doc: CdiSpec, host: HostView) -> Iterator[Hit]:
    """UUIDs and places against the GPUs that are known."""
    if not doc.is_nvidia or host.gpus is None or (host.live and not host.gpus):
        return
    uuids = {gpu.uuid for gpu in host.gpus} | {
        device.uuid for gpu in host.gpus for device in gpu.mig_devices
    }
    known = bool(uuids) and None not in uuids and "" not in uuids
    places = {gpu.index for gpu in host.gpus}
    for name, device in doc.devices():
        gone_uuid = known and name.startswith(("GPU-", "MIG-")) and name not in uuids
        gone_place = name.isdigit() and int(name) not in places
        if gone_uuid or gone_place:
            seen = f"The device {name} is none of this host's {len(places)} GPUs."
            yield Hit(doc.place(device), seen, commands=_regenerate(doc))


@rule(
    "oci-hook-arguments",
    "A hook that relies on what engines do not do",
    Severity.WARNING,
    reads=CdiSpec,
    reason="Nothing puts variables into a hook's arguments: it gets the container's id and pid as "
    "JSON on its standard input. The stage prestart is deprecated; it runs before createRuntime.",
    fix="Read the state from standard input, and use createRuntime or createContainer.",
    sources=("opencontainers/runtime-spec config.md, POSIX-platform hooks",),
    row="36,38",
)
def oci_hook_arguments(doc: CdiSpec, host: HostView) -> Iterator[Hit]:
    """A hook that relies on what engines do not do."""
    for edits in doc.edits():
        hooks = edits.get("hooks")
        for hook in hooks.elements() if hooks is not None else ():
            name = hook.get("hookName")
            if name is not None and name.words().lower() == "prestart":
                yield Hit(doc.place(name), "The stage of a hook is prestart.")
            args = hook.get("args")
            for word in args.elements() if args is not None else ():
                if "${" in word.words():
                    yield Hit(doc.place(word), f"An argument of a hook has {word.words()[:60]}.")
