# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a user says of a host that is not at hand: ``docker=26.1.5,gpus=4``. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .host import Gpu, HostView, MigDevice, cpu_list
from .versions.components import TITLES


class AssumeError(ValueError):
    """An assumption that cannot be read: the message names it and what is wanted."""


@dataclass(frozen=True)
class Assumptions:
    """A patch for a :class:`HostView`.

    ``versions`` go over those known, ``implied`` only beside them. ``fields`` are fields of the
    view. ``gpus`` replaces the GPUs; ``mig`` has MIG profiles by GPU index, ``uuids`` the UUID of
    each GPU and those of its MIG devices; both add what is missing of GPUs.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    implied: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    gpus: tuple[Gpu, ...] | None = None
    mig: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    uuids: tuple[tuple[str, tuple[str, ...]], ...] = ()


_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_VERSION = re.compile(r"(?:\d+:)?v?\d[\w.+~:-]*\Z")
_GPUS = re.compile(r"(\d{1,3})(?:\s*x\s*(\S.*))?\Z")
_PROFILE = re.compile(r"(?:\d+c\.)?\d+g\.\d+gb(?:\+[a-z.]+)*\Z")
_UUID = re.compile(r"(GPU|MIG)-[0-9a-fA-F-]{8,40}\Z")
_NO_LINUX = ("windows", "macos", "darwin", "linux", "freebsd")
_KEY = re.compile(r"\s*([A-Za-z_]\w*)\s*=")


def _truth(text: str) -> bool:
    try:
        return _TRUTH[text.lower()]
    except KeyError:
        raise AssumeError("wanted is true or false") from None


def _word(text: str) -> str:
    return text


def _os(text: str) -> str:
    """A Linux distribution as os-release names it; an engine of another system is none of ours."""
    name, _blank, release = " ".join(text.lower().split()).partition(" ")
    if not re.fullmatch(r"[a-z][a-z0-9._-]*", name) or name in _NO_LINUX:
        raise AssumeError("wanted is a Linux distribution and its release such as debian 12")
    return f"{name} {release}".strip()


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split("+") if word.strip())


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in words:
            raise AssumeError("wanted is one of " + ", ".join(words))
        return text.lower()

    return read


def _cpus(text: str) -> str:
    """A count, or a kernel list."""
    if text.isdecimal():
        if not 0 < int(text) <= 4096:
            raise AssumeError("wanted is a number of CPUs or a list such as 0-7,16-23")
        return f"0-{int(text) - 1}"
    return _list(text)


def _list(text: str) -> str:
    try:
        if cpu_list(text):
            return text
    except ValueError:
        pass
    raise AssumeError("wanted is a list of CPUs such as 0-7,16-23")


def _nodes(text: str) -> dict[int, str]:
    found = {}
    for part in text.split(";"):
        node, colon, cpus = part.strip().partition(":")
        if not colon or not node.isdecimal():
            raise AssumeError("wanted is NODE:CPUS;NODE:CPUS such as 0:0-7;1:8-15")
        found[int(node)] = _list(cpus.strip())
    return found


def _memory(text: str) -> int:
    match = re.match(r"(\d+)\s*([mgt]?)i?b?\Z", text.lower())
    if not match:
        raise AssumeError("wanted is a size such as 64g")
    return int(match.group(1)) << {"": 0, "m": 0, "g": 10, "t": 20}[match.group(2)]


# Key to the field of HostView and to how its value is read.
_FIELDS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "os": ("os", _os),
    "cpus": ("cpus", _cpus),
    "numa": ("nodes", _nodes),
    "memory": ("memory_mib", _memory),
    "vendors": ("vendors", _words),
    "runtimes": ("runtimes", _words),
    "default_runtime": ("default_runtime", _word),
    "cgroup_driver": ("cgroup_driver", _one_of("systemd", "cgroupfs")),
    "toolkit_mode": ("toolkit_mode", _one_of("auto", "legacy", "csv", "cdi", "jit-cdi")),
    "rootless": ("rootless", _truth),
    "selinux": ("selinux", _one_of("enforcing", "permissive", "disabled")),
    "selinux_types": ("selinux_types", _words),
    "weights_work": ("weights_work", _truth),
    "live_restore": ("live_restore", _truth),
    "cdi": ("cdi_enabled", _truth),
    "cdi_devices": ("cdi_devices", _words),
    "hook": ("hook_on_path", _truth),
    "cmdline": ("cmdline", _word),
}

KEYS: tuple[str, ...] = tuple(sorted({*TITLES, *_FIELDS, "gpus", "mig", "uuids"}))


def parse(text: str) -> Assumptions:
    """``docker=26.1.5,os=debian 12,gpus=4`` as a patch; AssumeError for what cannot be read.

    A comma belongs to the value when no ``key=`` follows it (``cpus=0-3,8-11``), and in
    ``cmdline`` also when the word before ``=`` is no key of ours (``isolcpus=2,nohz=off``).
    """
    values: dict[str, str] = {}
    last = ""
    for piece in text.split(","):
        match = _KEY.match(piece)
        named = match.group(1) if match else ""
        if named in KEYS or (named and last != "cmdline"):
            last = named
            values[last] = piece[match.end() :].strip() if match else ""
        elif last:
            values[last] += "," + piece
        elif piece.strip():
            raise AssumeError(f"{piece.strip()!r} is not an assumption; wanted is key=value")
    return from_mapping(values)


def from_mapping(values: Mapping[str, Any]) -> Assumptions:
    """The same from a mapping, as test data and configuration have it."""
    versions: dict[str, str] = {}
    fields: dict[str, Any] = {}
    gpus: tuple[Gpu, ...] | None = None
    mig: dict[int, tuple[str, ...]] = {}
    uuids: tuple[tuple[str, tuple[str, ...]], ...] = ()
    for key, given in values.items():
        value = str(given).strip()
        if not value:
            raise AssumeError(f"assumption {key}: there is no value")
        try:
            if key == "gpus":
                gpus = _read_gpus(value)
            elif key == "mig":
                mig = _read_mig(value)
            elif key == "uuids":
                uuids = _read_uuids(value)
            elif key in _FIELDS:
                name, read = _FIELDS[key]
                fields[name] = read(value)
            elif key == "cgroup":
                versions[key] = _one_of("1", "2")(value.lower().removeprefix("v"))
            elif key in TITLES:
                versions[key] = _version(value)
            else:
                raise AssumeError("not known; known are " + ", ".join(KEYS))
        except AssumeError as error:
            raise AssumeError(f"assumption {key}={value}: {error}") from None
    if "nodes" in fields and "cpus" not in fields:
        fields["cpus"] = ",".join(fields["nodes"].values())
    # Who names one Docker means its client too, unless that is known to be another.
    implied = {"docker_cli": versions["docker"]} if "docker" in versions else {}
    return Assumptions(versions, implied, fields, gpus, mig, uuids)


def apply(host: HostView, assumed: Assumptions) -> HostView:
    """The host as it would be if the assumptions held; ``live`` stays what it was."""
    gpus = host.gpus if assumed.gpus is None else assumed.gpus
    if assumed.mig:
        gpus = _with_mig(gpus or (), assumed.mig)
    if assumed.uuids:
        gpus = _with_uuids(gpus or (), assumed.uuids)
    fields = dict(assumed.fields)
    if gpus and not host.vendors and "vendors" not in fields:
        fields["vendors"] = frozenset({"nvidia"})
    return replace(
        host,
        versions={**assumed.implied, **host.versions, **assumed.versions},
        gpus=gpus,
        **fields,
    )


def _version(text: str) -> str:
    if not _VERSION.match(text):
        raise AssumeError("wanted is a version that starts with a number")
    return text


def _read_gpus(text: str) -> tuple[Gpu, ...]:
    match = _GPUS.match(text)
    if not match:
        raise AssumeError("wanted is a number, or a number and a model: 2x NVIDIA A100")
    return tuple(Gpu(index=index, name=match.group(2)) for index in range(int(match.group(1))))


def _read_mig(text: str) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    for part in text.split(";"):
        gpu, colon, profiles = part.strip().partition(":")
        # A plus joins profiles and also names media engines: 1g.10gb+me.
        names = tuple(re.split(r"\+(?=\d)", profiles.strip()))
        if (
            not colon
            or not re.match(r"\d{1,3}\Z", gpu)
            or not all(_PROFILE.match(name) for name in names)
        ):
            raise AssumeError("wanted is GPU:PROFILE+PROFILE such as 0:1g.10gb+2g.20gb")
        found[int(gpu)] = names
    return found


def _read_uuids(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """In the order of ``nvidia-smi -L``: each GPU, and behind it its MIG devices."""
    found: list[tuple[str, list[str]]] = []
    for uuid in (part.strip() for part in text.split("+")):
        match = _UUID.match(uuid)
        if not match or (match.group(1) == "MIG" and not found):
            raise AssumeError("wanted is GPU-…+MIG-…+GPU-… in the order of nvidia-smi -L")
        if match.group(1) == "GPU":
            found.append((uuid, []))
        else:
            found[-1][1].append(uuid)
    return tuple((gpu, tuple(devices)) for gpu, devices in found)


def _with_uuids(
    gpus: tuple[Gpu, ...], uuids: tuple[tuple[str, tuple[str, ...]], ...]
) -> tuple[Gpu, ...]:
    by_index = {gpu.index: gpu for gpu in gpus}
    for index, (uuid, devices) in enumerate(uuids):
        gpu = replace(by_index.get(index, Gpu(index=index)), uuid=uuid)
        if devices:
            profiles = [device.profile for device in gpu.mig_devices] + [""] * len(devices)
            named = tuple(
                MigDevice(at, name, profile)
                for at, (name, profile) in enumerate(zip(devices, profiles))
            )
            gpu = replace(gpu, mig=True, mig_pending=True, mig_devices=named)
        by_index[index] = gpu
    return tuple(by_index[index] for index in sorted(by_index))


def _with_mig(gpus: tuple[Gpu, ...], mig: Mapping[int, tuple[str, ...]]) -> tuple[Gpu, ...]:
    by_index = {gpu.index: gpu for gpu in gpus}
    for index in range(max(mig) + 1):
        by_index.setdefault(index, Gpu(index=index))
    for index, profiles in mig.items():
        devices = tuple(MigDevice(at, "", profile) for at, profile in enumerate(profiles))
        by_index[index] = replace(by_index[index], mig=True, mig_pending=True, mig_devices=devices)
    return tuple(by_index[index] for index in sorted(by_index))
