# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on daemon.json as such: is it JSON, does dockerd know its keys and their types. Pure."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ...engine.daemon_keys import (
    FEATURES,
    KEYS,
    NEWEST,
    flag_in_release,
    is_flag,
    key_of_flag,
    type_fault,
)
from ...versions import at_least, parse
from ..documents.daemon import DaemonConfig
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule

_CONFIG = "moby daemon/config/config.go"
_SEEN = "seen on Docker 26.1.5 and 28.5.2"

VALIDATE = "dockerd --validate --config-file /etc/docker/daemon.json"

# What people write and Docker does not have: what there is instead.
_INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "ai-scheduler": "No Docker release has a scheduler for GPUs: leave the key out.",
        "ai-metrics-interval": "No Docker release has a scheduler for GPUs: leave the key out.",
        "gpu-scheduler": "No Docker release has a scheduler for GPUs: leave the key out.",
        "feature-gates": 'Docker\'s switches are under "features", for example '
        '"features": {"cdi": true}; none of them schedules GPUs.',
        "gpu-manager": "Docker has no GPU manager: CDI specifications or the nvidia runtime "
        "give containers their GPUs.",
        "gpus": "The daemon has no such key: ask for GPUs per container, with --gpus or "
        "--device nvidia.com/gpu=0.",
        "cdi": 'The switch is "features": {"cdi": true}.',
        "cgroup-driver": 'Write "exec-opts": ["native.cgroupdriver=systemd"].',
        "cgroupdriver": 'Write "exec-opts": ["native.cgroupdriver=systemd"].',
        "native.cgroupdriver": 'Write "exec-opts": ["native.cgroupdriver=systemd"].',
        "nvidia": 'A runtime stands inside "runtimes": {"nvidia": {"path": '
        '"nvidia-container-runtime"}}.',
        "path": 'A runtime stands inside "runtimes": {"nvidia": {"path": …}}.',
        "runtimeArgs": 'It stands inside "runtimes": {"nvidia": {…}}.',
        "runtime": 'The keys are "runtimes" and "default-runtime".',
        "max-size": 'It stands inside "log-opts": {"max-size": "10m"}.',
        "max-file": 'It stands inside "log-opts": {"max-file": "3"}.',
        "ulimits": 'The key is "default-ulimits".',
        "shm-size": 'The key is "default-shm-size".',
        "auths": "It belongs to the client: ~/.docker/config.json.",
        "credsStore": "It belongs to the client: ~/.docker/config.json.",
        "credHelpers": "It belongs to the client: ~/.docker/config.json.",
        "httpProxy": 'Write "proxies": {"http-proxy": …}; httpProxy is a key of the client\'s '
        "~/.docker/config.json.",
        "httpsProxy": 'Write "proxies": {"https-proxy": …}; httpsProxy is a key of the client\'s '
        "~/.docker/config.json.",
        "noProxy": 'Write "proxies": {"no-proxy": …}; noProxy is a key of the client\'s '
        "~/.docker/config.json.",
        "io-weight": "The daemon has no such key: give --blkio-weight per container, or a slice "
        "by cgroup-parent.",
        "memory-bandwidth": "Docker cannot limit memory bandwidth; the kernel's way is resctrl.",
    }
)


@rule(
    "daemon-json-syntax",
    "daemon.json is not JSON",
    Severity.FATAL,
    reads=DaemonConfig,
    reason="dockerd refuses a file that is not one JSON object and does not start; a daemon that "
    "runs already keeps its old settings, so a runtime in the file seems to be missing.",
    fix="Correct the file at the place named, then let dockerd itself check it.",
    sources=(_CONFIG, _SEEN),
    cases=("RT-001",),
)
def daemon_json_syntax(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """The file cannot be read."""
    if doc.broken is None:
        return
    seen = f"The file cannot be read here: {doc.broken.said}."
    if "appears twice" in doc.broken.said:
        # Go's decoder takes the last one without a word.
        fix = "Keep one of the two: dockerd takes the last and drops the first without a word."
        yield Hit(doc.broken.at, seen, fix, (VALIDATE,), Severity.WARNING)
    else:
        yield Hit(doc.broken.at, seen, commands=(VALIDATE,))


@rule(
    "daemon-json-byte-order-mark",
    "daemon.json begins with a byte order mark",
    Severity.INFO,
    reads=DaemonConfig,
    reason="Docker before 23.0 takes the mark for a part of the JSON and does not start.",
    fix="Save the file as UTF-8 without a byte order mark.",
    sources=("moby daemon/config/config.go at v20.10.24 and v23.0.0",),
)
def daemon_json_byte_order_mark(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """U+FEFF at the start."""
    if doc.text.startswith("\ufeff"):
        docker = host.version("docker")
        old = docker is not None and not at_least(docker, "23.0.0")
        seen = "The first character is U+FEFF."
        yield Hit(doc.at, seen, severity=Severity.FATAL if old else None)


def _newer_than_known(host: HostView) -> bool:
    docker = parse(host.version("docker"))
    return bool(docker) and docker[:2] > parse(NEWEST)[:2]


@rule(
    "daemon-unknown-key",
    "dockerd does not know this key",
    Severity.FATAL,
    reads=DaemonConfig,
    reason="dockerd compares every key of the file with its options and does not start when one "
    "is unknown: the following directives don't match any configuration option.",
    fix="Remove the key, or write the one that is meant.",
    sources=(_CONFIG + " findConfigurationConflicts", _SEEN),
    row="44,45,80",
)
def daemon_unknown_key(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """A key that no release has."""
    # Other programs have a daemon.json too: one without any word of Docker's is not judged hard.
    paths = [path for path, _node in doc.keys_looked_at()]
    ours = any(p[0] in KEYS or is_flag(p[0]) or _DOCKERS.search(p[0]) for p in paths)
    ours = ours or doc.at.file.endswith("/docker/daemon.json") or any(_meant(p) for p in paths)
    for path in paths:
        name = path[-1]
        if name in KEYS or is_flag(name) or (len(path) == 2 and _wrong_anyway(path[0])):
            continue
        where = f'"{name}"' if len(path) == 1 else f'"{name}" inside "{path[0]}"'
        seen = f"{where} is no option of dockerd."
        severity = Severity.INFO if _newer_than_known(host) or not ours else None
        yield Hit(doc.key_place(*path), seen, _meant(path), (VALIDATE,), severity)


# Words that make a key one that somebody wrote for Docker.
_DOCKERS = re.compile(
    r"gpu|nvidia|cuda|mig|docker|container|runtime|cgroup|sched|memory|cpu|swarm|registr|storage"
    r"|image|cdi|feature|log-|default-",
    re.IGNORECASE,
)


def _wrong_anyway(parent: str) -> bool:
    """Is this object where another type must be? Then that is what there is to say."""
    return parent in KEYS and parent != "proxies"


def _meant(path: tuple[str, ...]) -> str:
    name = path[-1]
    if name in _INSTEAD:
        return _INSTEAD[name]
    if path == ("proxies", "default"):
        return (
            'Write "http-proxy", "https-proxy" and "no-proxy" directly inside "proxies"; the '
            "form with default is that of the client's ~/.docker/config.json."
        )
    near = difflib.get_close_matches(name.lower().replace("_", "-"), KEYS, 1, 0.75)
    return f'Write "{near[0]}" if that is meant, else remove the key.' if near else ""


@rule(
    "daemon-key-ignored",
    "dockerd accepts this key and does nothing with it",
    Severity.ERROR,
    reads=DaemonConfig,
    reason="The check for unknown keys lets the name of a flag pass, and looks at the members of "
    "an object as if they stood at the top; the decoder then reads neither.",
    fix="Write the key that the file has for it.",
    sources=(_CONFIG + " configValuesSet, findConfigurationConflicts", _SEEN),
)
def daemon_key_ignored(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """A flag's name in the file, or an object that no option is."""
    told = set()
    for path, _node in doc.keys_looked_at():
        name = path[-1]
        known = name in KEYS or is_flag(name)
        if len(path) == 1 and name not in KEYS and is_flag(name):
            # Docker's own example has this one, with the default as its value.
            own = name == "containerd-plugins-namespace"
            seen = f'"{name}" is a flag, not a key of the file.'
            docker = host.version("docker")
            severity = Severity.INFO if own else None
            if docker is not None and not flag_in_release(name, docker):
                severity = Severity.FATAL  # then it is unknown altogether
            yield Hit(doc.key_place(name), seen, _key(name), severity=severity)
        elif len(path) == 2 and known and path[0] not in KEYS and path[0] not in told:
            told.add(path[0])
            seen = f'"{path[0]}" is no option; "{name}" inside it is read by nobody.'
            yield Hit(doc.key_place(path[0]), seen, f'Move "{name}" to the top level.')
    for key, node in doc.root.items():
        if node.value == {} and key.name not in KEYS:
            seen = f'"{key.name}" is no option of dockerd; it is empty, so nobody complains.'
            yield Hit(doc.key_place(key.name), seen, "Remove it.")


def _key(flag: str) -> str:
    if flag in ("http-proxy", "https-proxy", "no-proxy"):
        return f'Write "proxies": {{"{flag}": …}}.'
    if flag == "containerd-plugins-namespace":
        return "Give it as a flag: the file has no working key for it (a fault of Docker)."
    key = key_of_flag(flag)
    return f'The key is "{key.name}": {key.kind}.' if key else "It can only be given as a flag."


@rule(
    "daemon-key-release",
    "This key is not in every release of Docker",
    Severity.FATAL,
    reads=DaemonConfig,
    reason="dockerd does not start with a key that its release does not have: one that came "
    "later, or one that was removed.",
    fix="Remove the key on hosts whose Docker does not have it.",
    sources=("moby daemon/config of each release from 18.09.0 to 29.7.2",),
)
def daemon_key_release(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """A key of another release."""
    docker = host.version("docker")
    for key, _node in doc.root.items():
        known = KEYS.get(key.name)
        if known is None or not (known.since or known.gone) or _node.value in ("", {}):
            continue
        if docker is not None:
            if not known.in_release(docker):
                verb = "came with" if known.since and not known.gone else "was removed in"
                seen = f'"{key.name}" {verb} Docker {known.since or known.gone}; this is {docker}.'
                yield Hit(doc.key_place(key.name), seen, _replacement(key.name))
        elif known.gone:
            # Nothing that is still maintained has what was removed before 25.0.
            old = not at_least(known.gone, "25.0.0")
            yield Hit(
                doc.key_place(key.name),
                f'"{key.name}" was removed in Docker {known.gone}.',
                _replacement(key.name),
                severity=Severity.WARNING if old else Severity.INFO,
                assumed=(f"docker >={known.gone}",),
            )
        elif at_least(known.since, "28.0.0"):
            yield Hit(
                doc.key_place(key.name),
                f'"{key.name}" needs Docker {known.since} or newer.',
                severity=Severity.INFO,
                assumed=(f"docker <{known.since}",),
            )


def _replacement(name: str) -> str:
    return {
        "graph": 'Write "data-root" instead of "graph".',
        "oom-score-adjust": "Set OOMScoreAdjust= in docker.service instead.",
        "api-cors-header": "Put a reverse proxy before the API where a browser must reach it.",
    }.get(name, "")


@rule(
    "daemon-key-type",
    "A value in daemon.json has the wrong type",
    Severity.FATAL,
    reads=DaemonConfig,
    reason="dockerd decodes the file into typed fields and does not start when a value has "
    "another type: json: cannot unmarshal … into Go struct field.",
    fix="Write the value as the type that is wanted.",
    sources=(_CONFIG, _SEEN),
)
def daemon_key_type(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """What json.Unmarshal refuses."""
    for key, node in doc.root.items():
        known = KEYS.get(key.name)
        fault = type_fault(known.kind, node.plain()) if known else None
        if fault is None:
            continue
        path = (key.name, *fault[0])
        wrong = doc.get(*path) or node
        if _SECRET.search(path[-1]):
            seen, fix = f'"{".".join(path)}" is not {fault[1]}.', ""
        else:
            seen = f'"{".".join(path)}" is {_shown(wrong.plain())}, wanted is {fault[1]}.'
            fix = _retyped(path, wrong.plain(), fault[1])
        yield Hit(doc.place(wrong), seen, fix, (VALIDATE,))


# Values whose key says this are never printed, nor are addresses of proxies.
_SECRET = re.compile(r"token|passw|secret|credential|proxy", re.IGNORECASE)


def _shown(value: object) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return json.dumps(value, ensure_ascii=False)[:60]


def _retyped(path: tuple[str, ...], value: object, wanted: str) -> str:
    name = path[-1]
    if wanted == "a text" and isinstance(value, (int, float)):
        return f'Write "{name}": "{json.dumps(value)}".'
    if wanted == "true or false" and str(value).lower() in ("true", "false"):
        return f'Write "{name}": {str(value).lower()}, without quotes.'
    if wanted == "a list of texts" and isinstance(value, str):
        return f'Write "{name}": ["{value}"].'
    if wanted.startswith("a whole number") and str(value).isdigit():
        return f'Write "{name}": {value}, without quotes.'
    return ""


@rule(
    "daemon-unknown-feature",
    "dockerd ignores this feature",
    Severity.WARNING,
    reads=DaemonConfig,
    reason="dockerd accepts any name under features and does nothing with one that it does not "
    "know; nothing is logged.",
    fix="Remove it, or write the name that is meant.",
    sources=("moby daemon/config and the users of Features at 26.1.5, 28.5.2 and 29.7.2", _SEEN),
    row="44",
)
def daemon_unknown_feature(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """Features.GPUScheduler and its like."""
    features = doc.get("features")
    for key, _node in features.items() if features else ():
        since = FEATURES.get(key.name)
        docker = host.version("docker")
        place = doc.key_place("features", key.name)
        if since is None:
            near = difflib.get_close_matches(key.name.lower(), FEATURES, 1, 0.75)
            fix = f'Write "{near[0]}" if that is meant.' if near else ""
            severity = Severity.INFO if _newer_than_known(host) else None
            seen = f"features.{key.name} is a feature of no Docker release."
            yield Hit(place, seen, fix, severity=severity)
        elif since and docker is not None and not at_least(docker, since):
            yield Hit(place, f"features.{key.name} came with Docker {since}; this is {docker}.")


@rule(
    "nvidia-ctk-drops-features",
    "nvidia-ctk would drop these features",
    Severity.INFO,
    reads=DaemonConfig,
    reason="nvidia-ctk runtime configure --runtime=docker --cdi.enabled replaces the whole "
    "features object; without containerd-snapshotter the images seem to be gone after the "
    "next restart.",
    fix="Set features.cdi with an editor (or this collection) instead, or compare the file before "
    "and after and put the others back.",
    sources=("NVIDIA/nvidia-container-toolkit PR 2049", "seen with nvidia-ctk 1.20.0"),
    cases=("RT-008",),
)
def nvidia_ctk_drops_features(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """Features beside which cdi is still to be switched on."""
    features = doc.get("features")
    names = [key.name for key, _node in features.items()] if features else []
    # Docker Desktop writes buildkit into every file, and it is on without it.
    worth = set(names) - {"buildkit"} or any(n.startswith("nvidia") for n, _r in doc.runtimes())
    if names and "cdi" not in names and worth and host.cdi_enabled is not True:
        seen = "features has {} and no cdi.".format(", ".join(sorted(names)))
        yield Hit(doc.key_place("features"), seen)
