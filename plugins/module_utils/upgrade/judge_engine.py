# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a change of the engine means for its configuration, its clients and its data. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ..engine import daemon_keys
from ..versions import at_least
from . import releases
from .model import ERROR, INFO, WARNING, Host, Item, Move, listed


def configuration(host: Host, move: Move) -> Iterator[Item]:
    """Keys, flags and drivers that the other release does not know: it would not start."""
    target = move.after.get("docker", "")
    if host.config_fault:
        yield Item(
            "daemon-json-unreadable",
            ERROR,
            "daemon.json cannot be read",
            host.config_fault,
            "The new daemon would not start with it.",
            "Repair the file, or move it away.",
            "dockerd(8)",
        )
    if not target or not move.before.get("docker"):
        return
    yield from _keys(host, move, target)
    yield from _flags(host, move, target)
    yield from _drivers(host, move)


def _keys(host: Host, move: Move, target: str) -> Iterator[Item]:
    known = {name: daemon_keys.KEYS[name] for name in host.config if name in daemon_keys.KEYS}
    lost = [
        name
        for name, key in known.items()
        if key.in_release(move.before["docker"]) and not key.in_release(target)
    ]
    if lost:
        gone = sorted({known[name].gone for name in lost if known[name].gone})
        yield Item(
            "daemon-json-keys",
            ERROR,
            f"Docker {target} does not know keys of daemon.json",
            listed(lost),
            "dockerd refuses to start with a key that it does not know.",
            "Take these keys out of daemon.json first (the role engine takes its own out).",
            "moby daemon/config of each release",
            gone[-1] if gone else "",
        )
    features = host.config.get("features")
    lost = [
        name
        for name in (features if isinstance(features, dict) else {})
        if _feature_in(name, move.before["docker"]) and not _feature_in(name, target)
    ]
    if lost:
        yield Item(
            "daemon-json-features",
            WARNING,
            f"Docker {target} does not have what features switches",
            listed(lost),
            "dockerd ignores such a name without a word.",
            "Do without them, or stay at the release.",
            "moby daemon/config of each release",
        )


def _feature_in(name: str, version: str) -> bool:
    since = daemon_keys.FEATURES.get(name)
    return since is not None and (not since or at_least(version, since))


def _flags(host: Host, move: Move, target: str) -> Iterator[Item]:
    lost = [
        flag
        for flag in host.flags
        if daemon_keys.flag_in_release(flag.lstrip("-"), move.before["docker"])
        and not daemon_keys.flag_in_release(flag.lstrip("-"), target)
    ]
    if lost:
        yield Item(
            "unit-flags",
            ERROR,
            f"Docker {target} does not know flags of docker.service",
            listed(lost),
            "dockerd refuses to start with a flag that it does not know.",
            "Take them out of the unit, its drop-ins or the file with DOCKER_OPTS first.",
            "moby cmd/dockerd of each release",
        )


def _drivers(host: Host, move: Move) -> Iterator[Item]:
    storage = str(host.info.get("Driver") or host.config.get("storage-driver") or "")
    since = releases.STORAGE_GONE.get(storage)
    if since and move.gains("docker", since):
        yield Item(
            "storage-driver-gone",
            ERROR,
            f"Docker {since} and newer have no storage driver {storage}",
            f"this host's images and containers are in {storage}",
            "The daemon would not start, or would start with another driver and without them.",
            "Save the images (docker save), switch to overlay2, and load them again.",
            releases.DEPRECATED,
            since,
        )
    logging = str(host.config.get("log-driver") or host.flags.get("--log-driver") or "")
    since = releases.LOGGING_GONE.get(logging)
    if since and move.gains("docker", since):
        yield Item(
            "log-driver-gone",
            ERROR,
            f"Docker {since} and newer have no log driver {logging}",
            f"log-driver is {logging}",
            "Containers would not start.",
            "Choose another log driver first.",
            releases.DEPRECATED,
            since,
        )


def clients(host: Host, move: Move) -> Iterator[Item]:
    """Who speaks a version of the API that the other daemon does not."""
    before = daemon_keys.api_range(move.before.get("docker", ""))
    after = daemon_keys.api_range(move.after.get("docker", ""))
    if before is None or after is None:
        return
    lowest = str(host.config.get("min-api-version") or after[0])
    highest = after[1]
    pinned = {f"container {one.name}": one.api_pin for one in host.containers if one.api_pin}
    pinned.update(host.pins)
    early = [f"{who} ({pin})" for who, pin in pinned.items() if not at_least(pin, lowest)]
    late = [f"{who} ({pin})" for who, pin in pinned.items() if not at_least(highest, pin)]
    release = "29.0.0" if at_least(lowest, "1.40") else "25.0.0"
    if early and not at_least(before[0], lowest):
        yield Item(
            "api-floor-pinned",
            ERROR,
            f"The new daemon refuses clients below API {lowest}",
            f"pinned by DOCKER_API_VERSION: {listed(early)}",
            "They would get: client version is too old.",
            "Take the variable away (clients agree on a version themselves), or set "
            "min-api-version in daemon.json for a client that cannot (29.0 and newer).",
            releases.API_SOURCE,
            release,
        )
    if late and at_least(before[1], highest) and before[1] != highest:
        yield Item(
            "api-ceiling-pinned",
            ERROR,
            f"The older daemon speaks API {highest} at most",
            f"pinned by DOCKER_API_VERSION: {listed(late)}",
            "They would get: client version is too new.",
            "Take the variable away: clients agree on a version themselves.",
            releases.API_SOURCE,
        )
    if not at_least(before[0], lowest):
        there = [one.name for one in host.containers if one.on_socket and not one.api_pin]
        seen = f"containers with Docker's socket: {listed(there)}" if there else "none seen here"
        yield Item(
            "api-floor",
            WARNING if there else INFO,
            f"The lowest API version goes from {before[0]} to {lowest}",
            seen,
            "Programs with an old client library (Docker 24 and older speaks 1.43 at most) and "
            "curl with a version in the path are refused.",
            "See that these images are newer than that, remote clients too. min-api-version "
            "in daemon.json lowers it again (29.0 and newer).",
            releases.API_SOURCE,
            release,
        )


def images(host: Host, move: Move) -> Iterator[Item]:
    """Where images and containers are kept, and who finds them there."""
    in_containerd = host.images_in_containerd
    wanted = host.feature("containerd-snapshotter")
    if in_containerd and move.loses("docker", releases.IMAGE_STORE_SINCE):
        lost, todo = True, "Save the images (docker save) and stay at 24.0 or newer."
    else:
        lost = (
            in_containerd and wanted is None and move.loses("docker", releases.IMAGE_STORE_DEFAULT)
        )
        todo = (
            "Set features.containerd-snapshotter: true in daemon.json while the newer daemon "
            "runs; it then changes nothing."
        )
    if lost:
        yield Item(
            "image-store-lost",
            ERROR,
            "The older daemon does not look into the containerd image store by itself",
            "images and containers are kept by containerd, "
            f"{len(host.containers)} container(s) in all",
            "It would start with an empty store: images and containers seem to be gone, and "
            "running containers are not adopted.",
            todo,
            releases.IMAGE_STORE_SOURCE,
            releases.IMAGE_STORE_DEFAULT,
        )
    elif move.gains("docker", releases.IMAGE_STORE_DEFAULT) and not in_containerd:
        yield Item(
            "image-store-stays",
            INFO,
            "Fresh installations of 29.0 keep images in containerd; this host does not change",
            f"storage driver {host.info.get('Driver') or 'not known'}",
            "A daemon that finds images in its former store goes on with it.",
            "Nothing. A move is a task of its own.",
            releases.IMAGE_STORE_SOURCE,
            releases.IMAGE_STORE_DEFAULT,
        )


def kernel(host: Host, move: Move) -> Iterator[Item]:
    """Control groups v1."""
    if host.cgroup_version == 1 and move.gains("docker", releases.CGROUP_V1_DEPRECATED):
        yield Item(
            "cgroup-v1",
            WARNING,
            "Docker 29.0 deprecates control groups v1",
            "this host uses v1",
            "It works until 2029 at the earliest. Limits of slices and GPU rules here need v2.",
            "Boot into v2: take systemd.unified_cgroup_hierarchy=0 off the kernel command line.",
            "Docker release notes 29.0",
            releases.CGROUP_V1_DEPRECATED,
        )
