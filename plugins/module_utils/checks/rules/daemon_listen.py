# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on daemon.json and the world outside: listeners, flags of the unit, proxies. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...engine.daemon_keys import KEYS, SHORT_FLAGS
from ..documents.daemon import DaemonConfig
from ..documents.daemon_listeners import has_credentials, is_loopback, is_tcp
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule

_LISTEN = "moby daemon/command/daemon.go loadListeners"

TCP_REASON = (
    "Whoever can open a connection to the engine's API is root on this host. Without tlsverify "
    "nobody is asked who they are; on the loopback address that is every user and every container "
    "with the host's network."
)
TCP_FIX = (
    "Listen on the unix socket only and reach it through ssh (docker -H ssh://user@host), or set "
    "tlsverify with tlscacert, tlscert and tlskey."
)


@rule(
    "docker-api-without-tls",
    "The Docker API listens on TCP without TLS",
    Severity.ERROR,
    reads=DaemonConfig,
    reason=TCP_REASON,
    fix=TCP_FIX,
    sources=(_LISTEN, "docs.docker.com, Protect the Docker daemon socket"),
)
def docker_api_without_tls(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """Hosts with tcp:// and no client certificates asked for."""
    if doc.value("tlsverify") is True:
        return
    if doc.value("tls") is True and doc.value("tlsverify") is not False:
        return  # tls alone implies tlsverify
    flags = unit_flags(host) or {}
    if flags.get("--tlsverify", "false") == "true":
        return
    for node in doc.texts("hosts"):
        if is_tcp(node.value):
            local = is_loopback(node.value)
            seen = f"hosts has {node.value}; tlsverify is not set."
            yield Hit(doc.place(node), seen, severity=Severity.WARNING if local else None)


@rule(
    "daemon-tls-without-certificate",
    "TLS without a certificate in daemon.json",
    Severity.FATAL,
    reads=DaemonConfig,
    reason="tls and tlsverify in the file want tlscert and tlskey beside them; the defaults in "
    "~/.docker count for flags only. dockerd ends with Could not load X509 key pair.",
    fix='Add "tlscert": "/etc/docker/cert.pem" and "tlskey": "/etc/docker/key.pem".',
    sources=("moby daemon/command/daemon.go newAPIServerTLSConfig", "seen on 26.1.5 and 28.5.2"),
)
def daemon_tls_without_certificate(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """Tls or tlsverify on, and no pair of certificate and key."""
    flags = unit_flags(host) or {}
    for name in ("tlsverify", "tls"):
        if doc.value(name) is True:
            missing = [
                key
                for key in ("tlscert", "tlskey")
                if not doc.value(key) and f"--{key}" not in flags
            ]
            if missing:
                yield Hit(doc.key_place(name), f"{name} is on; {' and '.join(missing)} is not set.")
            return


def unit_flags(host: HostView) -> Mapping[str, str] | None:
    """The flags that the daemon's unit gives it, by long name with dashes; None: not known."""
    named = host.evidence.get("dockerd_flags")
    if isinstance(named, dict):
        return named
    docker = host.facts.get("docker")
    flags = docker.get("flags") if isinstance(docker, dict) else None
    return flags if isinstance(flags, dict) else None


@rule(
    "daemon-flag-and-file",
    "One option as a flag and in daemon.json",
    Severity.FATAL,
    reads=DaemonConfig,
    reason="dockerd does not start when an option is both a flag of its unit and a key of the "
    "file, even with the same value: the following directives are specified both as a flag and "
    "in the configuration file. Only runtimes are merged.",
    fix="Keep it in one place: take the flag out of ExecStart with a drop-in, or the key out of "
    "the file.",
    sources=("moby daemon/config/config.go findConfigurationConflicts", "seen on Docker 26.1.5"),
    cases=("RT-009",),
)
def daemon_flag_and_file(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """The flags are known and one is a key too."""
    flags = unit_flags(host)
    for key, _node in doc.root.items() if flags is not None else ():
        known = KEYS.get(key.name)
        if flags is None or known is None or not known.flag or key.name == "runtimes":
            continue
        spelled = [
            f"--{known.flag}",
            *(f"-{s}" for s, flag in SHORT_FLAGS.items() if flag == known.flag),
        ]
        flag = next((name for name in spelled if name in flags), None)
        if flag is not None:
            seen = f'"{key.name}" is in the file, and the unit has {flag}.'
            yield Hit(doc.key_place(key.name), seen, _way_out(key.name))


def _way_out(key: str) -> str:
    if key == "hosts":
        return (
            "Remove hosts from the file, or start dockerd without -H in a drop-in: [Service], "
            "ExecStart= (empty), ExecStart=/usr/bin/dockerd."
        )
    return ""


@rule(
    "daemon-hosts-and-stock-unit",
    "hosts in daemon.json and the stock unit",
    Severity.INFO,
    reads=DaemonConfig,
    reason="The docker.service of the packages starts dockerd with -H fd://, and the same option "
    "in the file keeps it from starting, unless a drop-in takes the flag away.",
    fix="Remove hosts from the file, or start dockerd without -H in a drop-in: [Service], "
    "ExecStart= (empty), ExecStart=/usr/bin/dockerd.",
    sources=("moby contrib/init/systemd/docker.service", "docs.docker.com, dockerd hosts"),
)
def daemon_hosts_and_stock_unit(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """The unit is not known."""
    if unit_flags(host) is None and doc.get("hosts") is not None:
        yield Hit(
            doc.key_place("hosts"),
            "The file has hosts.",
            commands=("systemctl cat docker.service | grep ExecStart",),
            assumed=("the docker.service of the package",),
        )


@rule(
    "proxy-credentials",
    "A proxy's password in a file that everybody can read",
    Severity.WARNING,
    reads=DaemonConfig,
    reason="daemon.json is readable by every user, and docker info shows the proxy to everybody "
    "in the group docker.",
    fix="Use a proxy without a password, or a local one that adds it; else make the file readable "
    "by root alone.",
    sources=("docs.docker.com, Daemon proxy configuration",),
)
def proxy_credentials(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """Names only: the value is a secret."""
    for name in ("http-proxy", "https-proxy"):
        node = doc.get("proxies", name)
        if node is not None and isinstance(node.value, str) and has_credentials(node.value):
            place = doc.key_place("proxies", name)
            yield Hit(place, f"proxies.{name} has a user and a password.")
