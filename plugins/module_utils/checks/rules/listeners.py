# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on engines and agents that listen where anybody can reach them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.container import ContainerSpec
from ..host import HostView
from ..model import Given, Hit, Severity
from ..registry import rule
from .run_values import image, place, shown, subject

_LOOPBACK = ("127.", "localhost", "[::1]", "::1")
_PUBLISHED = re.compile(
    r"(?:(?P<ip>\[[0-9a-fA-F:]+\]|[^:/]+|):)??(?:(?P<host>\d*(?:-\d+)?):)?"
    r"(?P<port>\d{1,5})(?:-(?P<last>\d{1,5}))?(?:/(?P<protocol>tcp|udp|sctp))?"
)

# What listens there and lets in whoever comes.
_AGENTS = {
    5555: (re.compile(r"(^|/)dcgm$"), "DCGM's host engine"),
    50051: (re.compile(r"nvidia-container-toolkit|gpu-scheduler|gpu-allocator"), "a GPU agent"),
}


def published(spec: ContainerSpec, port: int) -> Given | None:
    """Where the container's port is published on more than the loopback address."""
    for given in spec.all("publish"):
        match = _PUBLISHED.fullmatch(given.value.strip())
        if match is None or match.group("protocol") == "udp":
            continue
        first = int(match.group("port"))
        last = int(match.group("last") or first)
        address = match.group("ip") or ""
        if first <= port <= last and not address.startswith(_LOOPBACK):
            return given
    return None


@rule(
    "engine-port-published",
    "Docker's port without TLS is published",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="2375 is the engine's API without TLS: whoever reaches it is root on the host, or in "
    "the engine behind it. Published ports bypass most host firewalls.",
    fix="Do not publish it, or bind it to 127.0.0.1; across machines use ssh:// or TLS on 2376.",
    sources=(
        "docs.docker.com Protect the Docker daemon socket",
        "docs.docker.com packet filtering",
    ),
)
def engine_port_published(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A filtering socket proxy answers less than an engine, but to anybody too."""
    given = published(spec, 2375)
    if given:
        name, _tag = image(spec)
        proxy = "proxy" in name
        severity = Severity.WARNING if proxy else None
        yield Hit(given.at, f"{shown(given)} opens 2375 of {place(spec)}.", severity=severity)


@rule(
    "engine-without-tls",
    "An engine is told to listen without TLS",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="Everything on the same network can use the engine without a password; an engine in a "
    "privileged container is root on the host.",
    fix="Leave DOCKER_TLS_CERTDIR at its default and let clients use 2376, or keep the engine on "
    "its unix socket.",
    sources=("docker-library/docker README", "docs.docker.com Protect the Docker daemon socket"),
)
def engine_without_tls(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Docker in Docker: a note where the port stays inside the container network."""
    name, tag = image(spec)
    if not (re.search(r"(^|/)docker$", name) and "dind" in tag):
        return
    where = None
    cert_dir = spec.env.get("DOCKER_TLS_CERTDIR")
    if cert_dir and cert_dir.value == "" and (cert_dir.spelled or spec.how != "run"):
        where = cert_dir
    for word in spec.command:
        if re.search(r"tcp://(0\.0\.0\.0|\[?::\]?|\*)?:2375|^--tls=false$", word.value):
            where = word
    if where:
        network = spec.last("network")
        outside = published(spec, 2375) or (network and network.value == "host")
        seen = f"{subject(spec)} serves the engine's API without TLS."
        yield Hit(where.at, seen, severity=None if outside else Severity.INFO)


@rule(
    "docker-host-without-tls",
    "An engine is used over plain TCP",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="DOCKER_HOST=tcp:// without TLS means that the engine at that address lets everybody "
    "in, and that what passes can be read and changed.",
    fix="Use ssh://user@host, or TLS on 2376 with DOCKER_TLS_VERIFY=1.",
    sources=("docs.docker.com Protect the Docker daemon socket",),
)
def docker_host_without_tls(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A name may be another container on the same network: a note. An address is a machine."""
    given = spec.env.get("DOCKER_HOST")
    match = re.fullmatch(r"tcp://([^/:]+|\[.+\])(?::(\d+))?/?", given.value) if given else None
    if given is None or match is None or match.group(1).startswith(_LOOPBACK):
        return
    verify = spec.env.get("DOCKER_TLS_VERIFY")
    if (verify and verify.value not in ("", "0")) or match.group(2) == "2376":
        return
    machine = re.fullmatch(r"\d+(\.\d+){3}", match.group(1))
    seen = f"{subject(spec)} has DOCKER_HOST={given.value}."
    yield Hit(given.at, seen, severity=None if machine else Severity.INFO)


@rule(
    "agent-port-published",
    "An agent without a password is published",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="The service lets in whoever reaches it, and it acts on the host's GPUs.",
    fix="Bind it to 127.0.0.1, or use a unix socket.",
    sources=("NVIDIA DCGM user guide, nv-hostengine", "docs.docker.com packet filtering"),
    row="41",
)
def agent_port_published(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only of images known to have such a port."""
    name, _tag = image(spec)
    for port, (pattern, what) in _AGENTS.items():
        given = published(spec, port)
        if given and pattern.search(name):
            yield Hit(given.at, f"{shown(given)} opens {what} to the network.")
