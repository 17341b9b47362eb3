# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a topology file reaches containers: a CDI spec with one device. Pure.

``docker run --device steadygpu.dev/nccl=topology`` mounts the file and sets NCCL_TOPO_FILE. A
spec that is withdrawn keeps its device and injects nothing that NCCL reads: a container that asks
for a device no spec has would not start any more, and a job after a reboot must start.
"""

from __future__ import annotations

import json
from typing import Any

SPEC_PATH = "/etc/cdi/steadygpu-nccl.json"
FILE_PATH = "/etc/steadygpu/nccl-topology.xml"
# Not NCCL's own default (/var/run/nvidia-topologyd/…): what else a host mounts there stays.
CONTAINER_PATH = "/run/steadygpu/nccl-topology.xml"
KIND = "steadygpu.dev/nccl"
DEVICE = "topology"
VARIABLE = "NCCL_TOPO_FILE"

# A mount and a variable need no newer one, and every Docker with CDI reads it (25.0 reads 0.6.0).
_CDI_VERSION = "0.5.0"


def spec(file_path: str) -> str:
    """The spec that injects ``file_path`` of the host."""
    mount = {
        "hostPath": file_path,
        "containerPath": CONTAINER_PATH,
        "options": ["ro", "nosuid", "nodev", "noexec", "bind"],
    }
    return _text({"env": [f"{VARIABLE}={CONTAINER_PATH}"], "mounts": [mount]})


def withdrawn_spec() -> str:
    """The spec after a file went stale. CDI refuses a device that edits nothing at all."""
    return _text({"env": ["STEADYGPU_NCCL_TOPOLOGY=withdrawn"]})


def state(text: str | None) -> str:
    """``absent``, ``injected``, ``withdrawn``, or ``foreign`` for a spec of somebody else."""
    if text is None:
        return "absent"
    try:
        document = json.loads(text)
    except ValueError:
        return "foreign"
    if not isinstance(document, dict) or document.get("kind") != KIND:
        return "foreign"
    return "withdrawn" if document == json.loads(withdrawn_spec()) else "injected"


def _text(edits: dict[str, Any]) -> str:
    document = {
        "cdiVersion": _CDI_VERSION,
        "kind": KIND,
        "devices": [{"name": DEVICE, "containerEdits": edits}],
    }
    return json.dumps(document, indent=2) + "\n"
