# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on keys of daemon.json that take one of a few values, or exclude each other. Pure."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ...engine.daemon_keys import COMMON_LOG_OPTS, LOG_OPTS
from ...versions import at_least
from ..documents.daemon import DaemonConfig
from ..host import HostView
from ..model import Hit, Needs, Severity
from ..registry import rule

_CONFIG = "moby daemon/config/config.go and config_linux.go"

_CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "log-level": ("debug", "info", "warn", "error", "fatal", "panic", "trace"),
        "log-format": ("text", "json"),
        "default-ipc-mode": ("private", "shareable"),
        "default-cgroupns-mode": ("private", "host"),
        "firewall-backend": ("iptables", "nftables"),
    }
)


@rule(
    "daemon-value-unknown",
    "dockerd has no such value for this key",
    Severity.FATAL,
    reads=DaemonConfig,
    reason="dockerd checks these values at start and ends when one is unknown.",
    fix="Write one of the values that there are.",
    sources=(_CONFIG + " Validate",),
)
def daemon_value_unknown(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """A log level or mode that is none."""
    for name, choices in _CHOICES.items():
        node = doc.get(name)
        if node is None or not isinstance(node.value, str) or not node.value:
            continue
        value = node.value.lower() if name == "log-level" else node.value
        if value not in choices:
            seen = f"{name} is {node.value}; there are {', '.join(choices)}."
            yield Hit(doc.place(node), seen)
    for node in doc.texts("registry-mirrors"):
        if not node.value.isascii() or "<" in node.value or " " in node.value:
            continue  # words that stand for an address
        if not node.value.startswith(("http://", "https://")):
            seen = f"A registry mirror is {node.value}, without https:// before it."
            yield Hit(doc.place(node), seen, f'Write "https://{node.value}".')


_ADDRESSES = ("default-gateway", "default-gateway-v6", "ip", "host-gateway-ip")
_ADDRESS_LISTS = ("dns", "host-gateway-ips")
_SIZE = re.compile(r"\d+(\.\d+)? ?([kmgtp]i?)?b?", re.IGNORECASE)


@rule(
    "daemon-value-malformed",
    "A value in daemon.json that dockerd cannot read",
    Severity.FATAL,
    reads=DaemonConfig,
    reason="dockerd reads addresses, sizes, labels and hosts at start and ends when one of them "
    "is not of its form.",
    fix="Write the value in the form that is wanted.",
    sources=("moby daemon/config/config.go Validate", "seen on Docker 26.1.5 and 28.5.2"),
)
def daemon_value_malformed(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """What dockerd --validate refuses besides names and types."""
    for name in (*_ADDRESSES, *_ADDRESS_LISTS):
        node = doc.get(name)
        many = doc.texts(name) if name in _ADDRESS_LISTS else []
        for found in many or ([node] if node is not None else []):
            if isinstance(found.value, str) and found.value and not _is_address(found.value):
                yield Hit(doc.place(found), f"{name} is {found.value}, wanted is an IP address.")
    size = doc.get("default-shm-size")
    if size is not None and isinstance(size.value, str) and not _SIZE.fullmatch(size.value):
        seen = f"default-shm-size is {size.value}, wanted is a size such as 64M."
        yield Hit(doc.place(size), seen)
    for label in doc.texts("labels"):
        if "=" not in label.value.strip():
            seen = f"The label {label.value} has no value, wanted is key=value."
            yield Hit(doc.place(label), seen)
    for address in doc.texts("hosts"):
        proto, mark, _rest = address.value.partition("://")
        if mark and proto not in ("tcp", "unix", "fd", "npipe"):
            seen = f"hosts has {address.value}; there are tcp://, unix:// and fd://."
            yield Hit(doc.place(address), seen)
    proxy = doc.get("userland-proxy-path")
    path = proxy.words() if proxy is not None else ""
    used = path and doc.value("userland-proxy") is not False
    if proxy is not None and used and not path.startswith("/"):
        yield Hit(doc.place(proxy), f"userland-proxy-path is {path}, no absolute path.")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True


@rule(
    "log-opts-unknown",
    "The log driver has no such option",
    Severity.FATAL,
    reads=DaemonConfig,
    reason="dockerd hands log-opts to the default log driver at start and ends when it does not "
    "know one (failed to set log opts): options of json-file are not those of journald.",
    fix="Remove the option, or choose the log driver that has it.",
    sources=("moby daemon/logs.go and daemon/logger of 20.10.24, 26.1.5 and 29.7.2",),
)
def log_opts_unknown(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """An option of another driver, or none at all."""
    options = doc.get("log-opts")
    driver = doc.value("log-driver") or "json-file"
    known = LOG_OPTS.get(driver) if isinstance(driver, str) else None
    for key, _node in options.items() if options is not None and known is not None else ():
        if known is not None and key.name not in known and key.name not in COMMON_LOG_OPTS:
            near = difflib.get_close_matches(key.name, known, 1, 0.7)
            fix = f'Write "{near[0]}" if that is meant.' if near else ""
            seen = f"The log driver {driver} has no option {key.name}."
            yield Hit(doc.key_place("log-opts", key.name), seen, fix)
    buffered = options is not None and options.get("max-buffer-size") is not None
    if known is not None and buffered and doc.value("log-opts", "mode") != "non-blocking":
        place = doc.key_place("log-opts", "max-buffer-size")
        seen = "max-buffer-size is set, and mode is not non-blocking."
        yield Hit(place, seen, 'Add "mode": "non-blocking".')


_REMOVED_STORAGE: Mapping[str, str] = MappingProxyType(
    {"aufs": "24.0.0", "overlay": "24.0.0", "devicemapper": "25.0.0"}
)


@rule(
    "storage-driver-removed",
    "A storage driver that Docker removed",
    Severity.FATAL,
    reads=DaemonConfig,
    reason="dockerd does not start with a storage driver that its release does not have. Images "
    "and containers of the old driver are not seen by another one.",
    fix='Before the upgrade save what is needed (docker save), then set "storage-driver": '
    '"overlay2".',
    sources=("moby daemon/graphdriver at v23.0.0, v24.0.0 and v25.0.0",),
    needs=(Needs("docker", ">=24.0.0"),),
    unknown=Severity.WARNING,
)
def storage_driver_removed(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """aufs, overlay and devicemapper."""
    node = doc.get("storage-driver")
    gone = _REMOVED_STORAGE.get(str(node.value)) if node is not None else None
    docker = host.version("docker")
    if node is not None and gone and (docker is None or at_least(docker, gone)):
        yield Hit(doc.place(node), f"storage-driver is {node.value}, removed in Docker {gone}.")


@rule(
    "daemon-keys-exclude",
    "Keys of daemon.json that exclude each other",
    Severity.FATAL,
    reads=DaemonConfig,
    reason="dockerd does not start with both.",
    fix="Remove one of the two.",
    sources=("moby daemon/daemon_unix.go verifyDaemonSettings",),
)
def daemon_keys_exclude(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """A bridge of one's own with an address for Docker's, icc off without a firewall."""
    for address in ("bip", "bip6"):
        if doc.value("bridge") and doc.value(address):
            seen = f"bridge and {address} are both set."
            yield Hit(doc.key_place(address), seen)
    if doc.value("icc") is False and doc.value("iptables") is False:
        yield Hit(doc.key_place("icc"), "icc is false, and so is iptables.")
    if doc.get("host-gateway-ip") is not None and doc.get("host-gateway-ips") is not None:
        seen = "host-gateway-ip and host-gateway-ips are both set."
        yield Hit(doc.key_place("host-gateway-ip"), seen)
    embedded = doc.value("features", "embedded-containerd") is True
    if embedded and doc.value("cri-containerd") is True:
        seen = "features.embedded-containerd and cri-containerd are both on."
        yield Hit(doc.key_place("cri-containerd"), seen)


@rule(
    "cdi-spec-dir-is-a-file",
    "cdi-spec-dirs wants directories",
    Severity.ERROR,
    reads=DaemonConfig,
    reason="The engine looks for specs inside the directories that are named; a file is none, so "
    "no device is found.",
    fix="Name the directory that the spec is in.",
    sources=("moby daemon/cdi.go",),
)
def cdi_spec_dir_is_a_file(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """/etc/cdi/nvidia.yaml where /etc/cdi is wanted."""
    for node in doc.texts("cdi-spec-dirs"):
        if node.value.endswith((".yaml", ".yml", ".json")):
            directory = node.value.rpartition("/")[0] or "/"
            yield Hit(doc.place(node), f"{node.value} is a file.", f'Write "{directory}".')


@rule(
    "cdi-dirs-without-feature",
    "Directories for CDI, and CDI is off",
    Severity.ERROR,
    reads=DaemonConfig,
    reason="From 25.0 to 28.1 CDI is off unless features.cdi is true; directories alone do not "
    "switch it on.",
    fix='Add "features": {"cdi": true} and restart Docker.',
    sources=("moby daemon/cdi.go at v25.0.0, v27.5.0 and v28.2.0", "seen on Docker 26.1.5"),
    needs=(Needs("docker", ">=25.0.0,<28.2.0"),),
    unknown=Severity.INFO,
    row="P1",
)
def cdi_dirs_without_feature(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """cdi-spec-dirs without features.cdi."""
    directories = doc.get("cdi-spec-dirs")
    named = directories is not None and any(n.value for n in directories.elements())
    if named and doc.get("features", "cdi") is None:
        yield Hit(doc.key_place("cdi-spec-dirs"), "cdi-spec-dirs is set, features.cdi is not.")


@rule(
    "data-root-and-containerd-store",
    "data-root does not move images of the containerd store",
    Severity.INFO,
    reads=DaemonConfig,
    reason="With the containerd image store, the default of fresh installations from 29.0 on, "
    "images and containers' layers lie in containerd's own directory, /var/lib/containerd.",
    fix='Set root = "…" in /etc/containerd/config.toml as well.',
    sources=("docs.docker.com, containerd image store", "docs.docker.com, Engine 29 notes"),
    needs=(Needs("docker", ">=24.0.0"),),
    row="P6",
)
def data_root_and_containerd_store(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """Another data-root and the store that does not heed it."""
    path = doc.value("data-root")
    moved = isinstance(path, str) and path.rstrip("/") not in ("", "/var/lib/docker")
    if moved and doc.value("features", "containerd-snapshotter") is True:
        seen = f"data-root is {path}, and features.containerd-snapshotter is on."
        yield Hit(doc.key_place("data-root"), seen)


@rule(
    "userns-remap-and-gpus",
    "Remapped users and GPUs",
    Severity.INFO,
    reads=DaemonConfig,
    reason="With userns-remap root inside a container is nobody on the host: the NVIDIA hook, and "
    "device files that only a group may open, then refuse it.",
    fix="Start GPU containers with --userns=host, or give the device files to all users.",
    sources=("docs.docker.com, Isolate containers with a user namespace",),
)
def userns_remap_and_gpus(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """userns-remap beside a GPU runtime."""
    node = doc.get("userns-remap")
    gpus = any(name.startswith("nvidia") for name, _node in doc.runtimes())
    if node is not None and node.value and gpus:
        yield Hit(doc.key_place("userns-remap"), "userns-remap is set, with a runtime for GPUs.")
