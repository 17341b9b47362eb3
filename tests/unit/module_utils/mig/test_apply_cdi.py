# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CDI specification after a change, written by the lab's stand-in for nvidia-ctk."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.tests.unit.module_utils.mig.simulated import (
    CHECKOUT,
    Host,
)

HALVES = {"0": {"3g.20gb": 2}}
EMPTY = {"all": True}


class CdiHost:
    """A host with the toolkit, and with a kernel side that knows every instance of GPU 0."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.spec = host.root / "spec.json"
        self.broken = host.root / "broken"
        self.ctk = host.root / "nvidia-ctk"
        self.options: dict[str, Any] = {
            "specification": {
                "path": str(self.spec),
                "ctk": str(self.ctk),
                "socket": "/nowhere",
                "deadline_s": 60,
            }
        }
        toolkit = host.root / "toolkit"
        source = CHECKOUT / "tests" / "simgpu" / "toolkit" / "nvidia_ctk"
        shutil.copytree(source, toolkit / "nvidia_ctk")
        (toolkit / "VERSION").write_text("1.20.0\n")
        self.ctk.write_text(
            f"#!/bin/sh\n[ -e {self.broken} ] && {{ echo no driver >&2; exit 1; }}\n"
            f"export SIMGPU_ROOT={host.root} PYTHONPATH={toolkit}\n"
            f'exec {sys.executable} -m nvidia_ctk "$@"\n'
        )
        self.ctk.chmod(0o755)
        self._make_kernel_side()

    def _make_kernel_side(self) -> None:
        (self.host.root / "proc").unlink()
        minors = self.host.file("/proc/driver/nvidia-caps/mig-minors")
        nodes = self.host.file("/dev/nvidia-caps")
        for directory in (minors.parent, nodes):
            directory.mkdir(parents=True)
        lines, number = ["config 1", "monitor 2"], 2
        for instance in range(14):
            for part in ("", *(f"/ci{compute}" for compute in range(8))):
                number += 1
                lines.append(f"gpu0/gi{instance}{part}/access {number}")
                (nodes / f"nvidia-cap{number}").touch()
        minors.write_text("\n".join(lines) + "\n")

    def apply(self, layout: Any, **job: Any) -> dict[str, Any]:
        """Apply; the answer may be an error."""
        return self.host.do("apply", layout, options=dict(self.options, **job.pop("options", {})))

    @property
    def names(self) -> set[str]:
        """The devices in the specification."""
        return {one["name"] for one in json.loads(self.spec.read_text())["devices"]}


@pytest.fixture
def cdi(host: Host) -> CdiHost:
    """Eight A100 and the toolkit."""
    return CdiHost(host)


def test_mg_008_the_specification_has_the_new_devices_and_none_that_is_gone(cdi: CdiHost) -> None:
    done = cdi.apply(HALVES)
    first = set(cdi.host.uuids().values())
    assert first < cdi.names
    assert {"0:0", "0:1"} < cdi.names
    assert any(str(cdi.spec) in action for action in done["actions"])
    cdi.apply({"0": {"7g.40gb": 1}})
    assert set(cdi.host.uuids().values()) < cdi.names
    assert not first & cdi.names
    assert "0:1" not in cdi.names


def test_mg_008_a_stale_specification_is_found_although_the_layout_is_right(cdi: CdiHost) -> None:
    cdi.apply(HALVES)
    fresh = cdi.spec.read_text()
    cdi.spec.write_text(fresh.replace("MIG-", "MIG-0"))
    assert "is named and does not exist" in cdi.host.do(
        "foresee", HALVES, options=cdi.options
    )["actions"][0]  # fmt: skip
    done = cdi.apply(HALVES)
    assert done["status"] == "unchanged"
    assert done["changed"]
    assert cdi.spec.read_text() == fresh
    assert not cdi.apply(HALVES)["changed"]


def test_mg_006_mig_without_an_instance_leaves_no_name_of_a_device_that_is_gone(
    cdi: CdiHost,
) -> None:
    cdi.apply(HALVES)
    done = cdi.apply({"all": {}})
    assert done["status"] == "applied"
    assert "no GPU has an instance" in " ".join(done["warnings"])
    assert not cdi.spec.exists()


def test_mg_006_the_other_gpus_are_still_described(cdi: CdiHost) -> None:
    cdi.apply(HALVES)
    done = cdi.apply({"0": {}})
    assert done["status"] == "applied"
    assert not any(name.startswith("MIG-") for name in cdi.names)
    assert "1" in cdi.names


def test_a_tool_that_fails_ends_the_change_and_the_layout_before_comes_back(cdi: CdiHost) -> None:
    cdi.apply(HALVES)
    before, uuids = cdi.spec.read_text(), cdi.host.uuids()
    cdi.broken.touch()
    failed = cdi.apply({"0": {"7g.40gb": 1}})
    assert "no driver" in failed["error"]
    assert "The layout is as it was before" in failed["error"]
    assert cdi.host.uuids() == uuids
    assert cdi.spec.read_text() == before


def test_a_node_that_the_tool_left_out_is_named_and_ends_the_change(cdi: CdiHost) -> None:
    for node in cdi.host.file("/dev/nvidia-caps").iterdir():
        node.unlink()
    failed = cdi.apply(HALVES)
    assert "/dev/nvidia-caps/nvidia-cap" in failed["error"]
    assert "The layout is as it was before" in failed["error"]
    assert not cdi.spec.exists()
    assert cdi.host.places() == []


def test_without_the_tool_a_stale_specification_goes_and_it_is_said(cdi: CdiHost) -> None:
    cdi.apply(HALVES)
    cdi.ctk.unlink()
    done = cdi.apply({"0": {"7g.40gb": 1}})
    assert done["status"] == "applied"
    assert "is not on this host" in done["warnings"][0]
    assert not cdi.spec.exists()


def test_a_host_without_mig_and_without_a_specification_is_left_so(cdi: CdiHost) -> None:
    done = cdi.apply("all-disabled", options={"persist": False})
    assert (done["status"], done["actions"]) == ("unchanged", [])
    assert not Path(os.path.realpath(cdi.spec)).exists()
