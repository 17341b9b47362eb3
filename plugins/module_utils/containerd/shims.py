# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shims of running containers: who would lose what when containerd's unit is stopped.

A container lives in a shim, a process of its own that outlives containerd, if systemd lets it: all
shims are in the control group of the unit that started them.
"""

from __future__ import annotations

import base64
import contextlib
import glob
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass

from ..atomic import read_text
from ..engine import living


@dataclass(frozen=True)
class Shim:
    """One shim; ``in_unit``: it is in the control group of containerd's unit.

    ``version`` as in :class:`..engine.living.Shim`.
    """

    pid: int
    namespace: str
    container: str
    in_unit: bool
    version: int = 2

    @property
    def name(self) -> str:
        """``moby/0123456789ab``, for a person."""
        return f"{self.namespace}/{self.container[:12]}"


def shims_of(address: str, control_group: str, root: str = "/") -> tuple[Shim, ...]:
    """The shims of the containerd that listens at ``address``, by process id."""
    return tuple(
        Shim(
            shim.pid,
            shim.namespace or "?",
            shim.container or "?",
            any(_below(group, control_group) for group in shim.groups),
            shim.version,
        )
        for shim in living.shims(root)
        if living.plain(shim.address or address) == living.plain(address)
    )


def _below(group: str, unit: str) -> bool:
    return bool(unit) and (group == unit or group.startswith(unit + "/"))


def _read(path: str) -> str:
    # It may end while we look.
    with contextlib.suppress(OSError):
        return read_text(path) or ""
    return ""


def pods_with(program: str, state: str = "/run/containerd", root: str = "/") -> list[str]:
    """Running containers of Kubernetes that were started with ``program`` as their runtime.

    containerd keeps the options of the runtime beside the bundle of each running container.
    """
    pattern = os.path.join(
        root, state.lstrip("/"), "io.containerd.runtime.v2.task/k8s.io/*/options.json"
    )
    wanted = program.encode()
    return sorted(
        os.path.basename(os.path.dirname(path))[:12]
        for path in glob.glob(pattern)
        if any(wanted in piece for piece in _pieces(_read(path)))
    )


def _pieces(text: str) -> Iterator[bytes]:
    """A text and what its strings hold in base64, as protocol buffers are kept."""
    yield text.encode()
    with contextlib.suppress(ValueError, AttributeError):
        for value in json.loads(text).values():
            with contextlib.suppress(ValueError, TypeError):
                yield base64.b64decode(value, validate=True)
