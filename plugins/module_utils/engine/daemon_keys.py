# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every key of dockerd's configuration file: its type, its flag, and the releases that have it.

Pure. Sources: the fields and flags in moby ``daemon/config`` and ``cmd/dockerd`` (from 29.0
``daemon/command``) of each release from 18.09.0 to 29.7.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..versions import at_least

# Types of values as dockerd's decoder wants them.
TRUTH, NUMBER, TEXT, TEXTS = "true or false", "a number", "a text", "a list of texts"
TEXT_MAP, TRUTH_MAP = "an object whose values are texts", "an object of true and false"
OBJECT, OBJECT_MAP, LIST = "an object", "an object of objects", "a list"
# Keys that are still taken and no longer decoded.
ANY = "anything"


@dataclass(frozen=True)
class DaemonKey:
    """One key. ``flag`` is dockerd's flag for it without dashes, "" where there is none.

    ``since`` and ``gone`` are the first release with it and the first one without; "" for
    releases older than 18.09 and for keys that are still there.
    """

    name: str
    kind: str
    flag: str
    since: str = ""
    gone: str = ""

    def in_release(self, version: str) -> bool:
        """Does this release of Docker know the key?"""
        early = bool(self.since) and not at_least(version, self.since)
        late = bool(self.gone) and at_least(version, self.gone)
        return not early and not late


def _keys() -> Iterator[DaemonKey]:
    for kind, names in _PLAIN:
        for name in names.split():
            yield DaemonKey(name, kind, name)
    for name, kind, flag in _OTHER_FLAG:
        yield DaemonKey(name, kind, flag)
    for name, kind, flag, since, gone in _DATED:
        yield DaemonKey(name, kind, flag, since, gone)


# Keys that have been there since before 18.09 and whose flag has the same name.
_PLAIN = (
    (
        TRUTH,
        "cri-containerd debug experimental icc init ip-forward ip-masq iptables ipv6 live-restore "
        "no-new-privileges raw-logs selinux-enabled tls tlsverify userland-proxy",
    ),
    (
        NUMBER,
        "cpu-rt-period cpu-rt-runtime max-concurrent-downloads max-concurrent-uploads mtu "
        "network-control-plane-mtu network-diagnostic-port shutdown-timeout",
    ),
    (
        TEXT,
        "bip bridge cgroup-parent containerd data-root default-gateway default-gateway-v6 "
        "default-ipc-mode default-runtime default-shm-size exec-root fixed-cidr fixed-cidr-v6 "
        "group init-path ip log-driver log-level metrics-addr pidfile seccomp-profile "
        "storage-driver swarm-default-advertise-addr tlscacert tlscert tlskey userland-proxy-path "
        "userns-remap",
    ),
)

_OTHER_FLAG = (
    ("allow-nondistributable-artifacts", ANY, "allow-nondistributable-artifacts"),
    ("authorization-plugins", TEXTS, "authorization-plugin"),
    ("builder", OBJECT, ""),
    ("default-address-pools", LIST, "default-address-pool"),
    ("default-ulimits", OBJECT_MAP, "default-ulimit"),
    ("deprecated-key-path", ANY, ""),
    ("dns", TEXTS, "dns"),
    ("dns-opts", TEXTS, "dns-opt"),
    ("dns-search", TEXTS, "dns-search"),
    ("exec-opts", TEXTS, "exec-opt"),
    ("features", TRUTH_MAP, "feature"),
    ("hosts", TEXTS, "host"),
    ("insecure-registries", TEXTS, "insecure-registry"),
    ("labels", TEXTS, "label"),
    ("log-opts", TEXT_MAP, "log-opt"),
    ("node-generic-resources", TEXTS, "node-generic-resource"),
    ("registry-mirrors", TEXTS, "registry-mirror"),
    ("runtimes", OBJECT_MAP, "add-runtime"),
    ("storage-opts", TEXTS, "storage-opt"),
)

_DATED = (
    ("allow-direct-routing", TRUTH, "allow-direct-routing", "28.2.0", ""),
    ("api-cors-header", TEXT, "api-cors-header", "", "28.0.0"),
    ("bip6", TEXT, "bip6", "28.0.0", ""),
    ("bridge-accept-fwmark", TEXT, "bridge-accept-fwmark", "29.0.0", ""),
    ("cdi-spec-dirs", TEXTS, "cdi-spec-dir", "25.0.0", ""),
    ("cluster-advertise", TEXT, "cluster-advertise", "", "24.0.0"),
    ("cluster-store", TEXT, "cluster-store", "", "24.0.0"),
    ("cluster-store-opts", TEXT_MAP, "cluster-store-opt", "", "24.0.0"),
    ("containerd-namespace", TEXT, "containerd-namespace", "19.03.3", ""),
    ("default-cgroupns-mode", TEXT, "default-cgroupns-mode", "20.10.0", ""),
    ("default-network-opts", OBJECT_MAP, "default-network-opt", "24.0.0", ""),
    ("default-stop-timeout", NUMBER, "default-stop-timeout", "29.7.0", ""),
    ("disable-legacy-registry", TRUTH, "disable-legacy-registry", "", "19.03.0"),
    ("firewall-backend", TEXT, "firewall-backend", "29.0.0", ""),
    ("graph", TEXT, "graph", "", "24.0.0"),
    ("host-gateway-ip", TEXT, "host-gateway-ip", "20.10.0", ""),
    ("host-gateway-ips", TEXTS, "host-gateway-ip", "28.0.0", ""),
    ("ip-forward-no-drop", TRUTH, "ip-forward-no-drop", "28.0.0", ""),
    ("ip6tables", TRUTH, "ip6tables", "20.10.0", ""),
    ("log-format", TEXT, "log-format", "25.0.0", ""),
    ("max-download-attempts", NUMBER, "max-download-attempts", "20.10.0", ""),
    ("min-api-version", TEXT, "", "29.0.0", ""),
    ("nri-opts", OBJECT, "nri-opts", "29.2.0", ""),
    ("oom-score-adjust", NUMBER, "oom-score-adjust", "", "26.0.0"),
    ("proxies", TEXT_MAP, "", "23.0.0", ""),
    ("rootless", TRUTH, "rootless", "19.03.0", ""),
)

# The newest release whose sources these tables were read from.
NEWEST = "29.7.2"

KEYS: Mapping[str, DaemonKey] = MappingProxyType({key.name: key for key in _keys()})

# Objects that dockerd takes as they are; of any other object it looks at the members as if they
# stood at the top (moby daemon/config/config.go flatOptions), so an object of an unknown name
# is no error as long as its members have known names.
KEPT_WHOLE = frozenset(
    (
        "builder",
        "cluster-store-opts",
        "default-network-opts",
        "default-ulimits",
        "features",
        "log-opts",
        "nri-opts",
        "runtimes",
    )
)

# Flags that are no key of the file.
_ONLY_FLAGS: Mapping[str, str] = MappingProxyType(
    {
        "config-file": "",
        "containerd-plugins-namespace": "19.03.3",
        "help": "",
        "http-proxy": "23.0.0",
        "https-proxy": "23.0.0",
        "no-proxy": "23.0.0",
        "restart": "",
        "validate": "23.0.0",
        "version": "",
    }
)
_ONLY_SWITCHES = frozenset(("help", "restart", "validate", "version"))
# The flag for features is younger than the key.
_FLAG_SINCE: Mapping[str, str] = MappingProxyType({"feature": "27.3.0"})

SHORT_FLAGS: Mapping[str, str] = MappingProxyType(
    {
        "b": "bridge",
        "D": "debug",
        "G": "group",
        "g": "graph",
        "H": "host",
        "h": "help",
        "l": "log-level",
        "p": "pidfile",
        "r": "restart",
        "s": "storage-driver",
        "v": "version",
    }
)

# What is switched under ``features``, and the first release that has it. dockerd takes any name
# and does nothing with one it does not know.
FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "buildkit": "",
        "cdi": "25.0.0",
        "containerd-migration": "29.0.0",
        "containerd-snapshotter": "24.0.0",
        "embedded-containerd": "29.7.0",
        "swarm-nftables": "29.6.0",
        "time-namespaces": "29.5.0",
        "windows-dns-proxy": "26.1.0",
    }
)

# Drivers that every daemon has; a plugin brings others.
LOG_DRIVERS = frozenset(
    [
        "awslogs",
        "fluentd",
        "gcplogs",
        "gelf",
        "journald",
        "json-file",
        "local",
        "logentries",
        "none",
        "splunk",
        "syslog",
    ]
)

# The options of those log drivers that most hosts use; other names keep dockerd from starting.
LOG_OPTS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "json-file": frozenset(
            (
                "compress",
                "env",
                "env-regex",
                "labels",
                "labels-regex",
                "max-file",
                "max-size",
                "tag",
            )
        ),
        "local": frozenset(("compress", "max-file", "max-size")),
        "journald": frozenset(("env", "env-regex", "labels", "labels-regex", "tag")),
    }
)
# Options of every driver.
COMMON_LOG_OPTS = frozenset(
    (
        "mode",
        "max-buffer-size",
        "cache-disabled",
        "cache-max-size",
        "cache-max-file",
        "cache-compress",
    )
)

_KEY_OF_FLAG = {
    key.flag: key for key in sorted(KEYS.values(), key=lambda key: key.name) if key.flag
}


def key_of_flag(flag: str) -> DaemonKey | None:
    """The key that a flag (without dashes) sets; None for flags that are no key."""
    return _KEY_OF_FLAG.get(flag)


def is_flag(flag: str) -> bool:
    """Has any release had this flag (without dashes)?"""
    return flag in _KEY_OF_FLAG or flag in _ONLY_FLAGS


def all_flags() -> list[str]:
    """The names of all flags, without dashes."""
    return sorted({*_KEY_OF_FLAG, *_ONLY_FLAGS})


def flag_in_release(flag: str, version: str) -> bool:
    """Does this release of Docker have the flag?"""
    since = _FLAG_SINCE.get(flag) or _ONLY_FLAGS.get(flag, "")
    if since and not at_least(version, since):
        return False
    keys = [key for key in KEYS.values() if key.flag == flag]
    return not keys or any(key.in_release(version) for key in keys)


def is_switch(flag: str) -> bool:
    """Does the flag stand alone, without a value behind it?"""
    key = key_of_flag(flag)
    return flag in _ONLY_SWITCHES or (key is not None and key.kind == TRUTH)


def type_fault(kind: str, value: Any) -> tuple[tuple[str, ...], str] | None:
    """Where in ``value``, as JSON gives it, the type is wrong, and what is wanted there.

    ``null`` is right everywhere: dockerd then keeps its default.
    """
    if value is None or kind == ANY:
        return None
    wrong = None
    if kind in (TEXT_MAP, TRUTH_MAP, OBJECT_MAP):
        wanted_type = {TEXT_MAP: str, TRUTH_MAP: bool, OBJECT_MAP: dict}[kind]
        words = {TEXT_MAP: TEXT, TRUTH_MAP: TRUTH, OBJECT_MAP: OBJECT}[kind]
        if not isinstance(value, dict):
            return (), kind
        for name, inside in value.items():
            if inside is not None and not isinstance(inside, wanted_type):
                return (name,), words
        return None
    if kind == TEXTS:
        good = isinstance(value, list) and all(isinstance(word, str) for word in value)
        wrong = None if good else kind
    elif kind == NUMBER:
        good = isinstance(value, int) and not isinstance(value, bool)
        wrong = None if good else "a whole number without quotes"
    else:
        simple = {TRUTH: bool, TEXT: str, OBJECT: dict, LIST: list}[kind]
        wrong = None if isinstance(value, simple) else kind
    return None if wrong is None else ((), wrong)


# Highest and lowest API versions, newest release first: (release, highest, lowest)
# (moby daemon/config/config.go and api/common.go of each release).
_API = (
    ("29.6.0", "1.55", "1.40"),
    ("29.3.0", "1.54", "1.40"),
    ("29.2.0", "1.53", "1.44"),
    ("29.0.0", "1.52", "1.44"),
    ("28.3.0", "1.51", "1.24"),
    ("28.2.0", "1.50", "1.24"),
    ("28.1.0", "1.49", "1.24"),
    ("28.0.0", "1.48", "1.24"),
    ("27.2.0", "1.47", "1.24"),
    ("27.0.0", "1.46", "1.24"),
    ("26.0.0", "1.45", "1.24"),
    ("25.0.0", "1.44", "1.24"),
    ("24.0.0", "1.43", "1.12"),
    ("23.0.0", "1.42", "1.12"),
    ("20.10.0", "1.41", "1.12"),
)


def api_range(docker_version: str) -> tuple[str, str] | None:
    """The lowest and the highest API version that a daemon speaks by default; None: not known."""
    for release, highest, lowest in _API:
        if at_least(docker_version, release):
            return lowest, highest
    return None
