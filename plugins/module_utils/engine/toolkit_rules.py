# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What in a toolkit's configuration does harm, although the toolkit takes it. Pure.

Sources: NVIDIA/nvidia-container-toolkit ``api/config/v1/cli.go``, its CHANGELOG (1.15.0-rc.1,
1.17.3, 1.18.0-rc.1), issues 48, 381, 580 and 830; NVIDIA security bulletins 5582 and 5616.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Callable

from ..versions import at_least

# The first bytes of a file, None where there is none.
Head = Callable[[str], "bytes | None"]

_CLI, _RUNTIME = "nvidia-container-cli", "nvidia-container-runtime"
_FINDS_LDCONFIG = "1.15.0"
_HOST_LDCONFIG_ONLY = "1.17.3"
_HOOK_IN_CDI_MODE = "1.18.0"


@dataclass(frozen=True)
class Judgement:
    """``errors`` keep containers from starting or from their GPUs; ``warnings`` may be meant so."""

    errors: tuple[str, ...]
    warnings: tuple[str, ...]


def judge(config: Mapping[str, Any], toolkit: str | None, head: Head) -> Judgement:
    """Judge the whole configuration to come, for a release of the toolkit (None: not known)."""
    errors = tuple(_ldconfig(config, toolkit, head))
    return Judgement(errors, tuple(_warnings(config, toolkit)))


def _ldconfig(config: Mapping[str, Any], toolkit: str | None, head: Head) -> Iterator[str]:
    said = _at(config, _CLI, "ldconfig")
    if not isinstance(said, str) or not said:
        return
    if not said.startswith("@"):
        allowed = _at(config, "features", "allow-ldconfig-from-container") is True
        if not allowed and (toolkit is None or at_least(toolkit, _HOST_LDCONFIG_ONLY)):
            yield (
                f"{_CLI}.ldconfig is {said}, a path in the container, which the toolkit refuses "
                f'since {_HOST_LDCONFIG_ONLY}: write "@{said}" for the host\'s'
            )
        return
    path = said[1:]
    finds = toolkit is None or at_least(toolkit, _FINDS_LDCONFIG)
    plain = path[: -len(".real")] if path.endswith(".real") else path
    start = head(path)
    if start is None and not (finds and head(plain) is not None):
        yield f"{_CLI}.ldconfig is {said}, and this host has no {path}: no container would start"
    elif start is not None and start.startswith(b"#!") and not finds:
        real = plain + ".real"
        way = f'write "@{real}"' if head(real) is not None else "upgrade the toolkit"
        yield (
            f"{_CLI}.ldconfig is {said}, a script, which cannot run inside a container "
            f"(error code 127); {toolkit} does not look for the program itself: {way}"
        )


def _warnings(config: Mapping[str, Any], toolkit: str | None) -> Iterator[str]:
    mode = _at(config, _RUNTIME, "mode")
    if mode == "legacy":
        yield (
            "mode legacy gives GPUs behind the engine's back: with the systemd cgroup driver a "
            "daemon-reload or docker update takes them away from running containers; auto and "
            "jit-cdi do not have this fault"
        )
    skips = _at(config, f"{_RUNTIME}-hook", "skip-mode-detection") is True
    old = toolkit is not None and not at_least(toolkit, _HOOK_IN_CDI_MODE)
    if mode in ("cdi", "csv") and old and not skips:
        yield (
            f"with mode {mode} a toolkit before {_HOOK_IN_CDI_MODE} refuses docker run --gpus "
            "(invoking the hook directly is not supported): use --device nvidia.com/gpu=all"
        )
    if _at(config, _CLI, "no-cgroups") is True:
        yield (
            f"{_CLI}.no-cgroups is true: containers of an engine that runs as root get Failed to "
            "initialize NVML: Unknown Error; it is meant for rootless engines"
        )
    for name in ("allow-ldconfig-from-container", "allow-cuda-compat-libs-from-container"):
        if _at(config, "features", name) is True:
            yield f"features.{name} is true, which lets images run or bring code of the host's root"


def _at(config: Mapping[str, Any], *path: str) -> Any:
    place: Any = config
    for name in path:
        place = place.get(name) if isinstance(place, Mapping) else None
    return place
