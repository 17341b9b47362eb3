# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on the GPU operator's toolkit where k3s or rke2 brings containerd. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..documents.commands import CommandLine
from ..documents.kubernetes import ChartValues
from ..host import HostView
from ..model import Given, Hit, Severity
from ..registry import rule

_SOCKETS = ("CONTAINERD_SOCKET", "RUNTIME_SOCKET")
_CONFIGS = ("CONTAINERD_CONFIG", "RUNTIME_CONFIG")
_REASON = (
    "The toolkit would signal the containerd of k3s and write a file that only another containerd "
    "reads. k3s and rke2 have theirs below /var/lib/rancher; they find the nvidia runtime by "
    "themselves at their start, but not as the default one."
)
_FIX = (
    "Leave the file out and use the RuntimeClass nvidia, or set CONTAINERD_CONFIG="
    "/var/lib/rancher/k3s (or rke2)/agent/etc/containerd/config.toml.tmpl."
)
_SOURCES = ("NVIDIA/gpu-operator#406", "k3s documentation, NVIDIA container runtime")
_SET = re.compile(r"toolkit\.env\[(\d+)\]\.(name|value)=(.*)", re.DOTALL)


def _hit(env: Mapping[str, Given]) -> Iterator[Hit]:
    socket = next((env[name] for name in _SOCKETS if name in env), None)
    config = next((env[name] for name in _CONFIGS if name in env), None)
    if socket is None or config is None or "/run/k3s/" not in socket.value:
        return
    if config.value.startswith("/etc/containerd/"):
        seen = f"The socket is {socket.value}, the file is {config.value}."
        yield Hit(config.at, seen)


@rule(
    "operator-k3s-containerd-file",
    "The socket of k3s, and the file of another containerd",
    Severity.WARNING,
    reads=ChartValues,
    reason=_REASON,
    fix=_FIX,
    sources=_SOURCES,
)
def operator_k3s_containerd_file(values: ChartValues, host: HostView) -> Iterator[Hit]:
    """In the operator's values."""
    yield from _hit(values.env("toolkit"))


@rule(
    "helm-k3s-containerd-file",
    "Helm is told the socket of k3s, and the file of another containerd",
    Severity.WARNING,
    reads=CommandLine,
    reason=_REASON,
    fix=_FIX,
    sources=_SOURCES,
)
def helm_k3s_containerd_file(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """In ``--set toolkit.env[0].name=…``."""
    if line.name != "helm":
        return
    names: dict[str, str] = {}
    values: dict[str, Given] = {}
    for word in line.words:
        for part in word.value.removeprefix("--set=").removeprefix("--set-string=").split(","):
            match = _SET.fullmatch(part)
            if match and match.group(2) == "name":
                names[match.group(1)] = match.group(3)
            elif match:
                values[match.group(1)] = Given(match.group(3), word.at)
    yield from _hit({name: values[place] for place, name in names.items() if place in values})
