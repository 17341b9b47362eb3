# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A CDI specification that goes stale, one that stands in its way, and who makes it at boot."""

from __future__ import annotations

import json

import pytest
from conftest import LabHost

PATH = "/run/cdi/nvidia.yaml"
# An image of links into the host's /usr, so that a container needs no registry.
IMAGE = (
    "mkdir -p /root/image && cd /root/image && mkdir dev proc sys usr && "
    "ln -sf usr/bin bin && ln -sf usr/lib lib && ln -sf usr/lib64 lib64 && "
    "tar -c . | docker import - job"
)
RUN = "docker run --detach --volume /usr:/usr:ro --device nvidia.com/gpu=0 --name job job sleep 9d"


def test_a_stale_one_is_made_anew_and_a_running_container_does_not_notice(host: LabHost) -> None:
    host.sh(f"{IMAGE} && {RUN}")
    pid = host.sh("docker inspect --format '{{.State.Pid}}' job")

    # Fresh: nothing is run for it, so the tool may as well be away.
    host.sh("mv /usr/bin/nvidia-ctk /usr/bin/nvidia-ctk.away")
    fresh = host.module("cdi_spec", {"refresh": True})
    assert not fresh.get("failed"), fresh
    assert (fresh["changed"], fresh["stale"], fresh["refreshed_by"]) == (False, [], "vendor")
    host.sh("mv /usr/bin/nvidia-ctk.away /usr/bin/nvidia-ctk")

    # TK-029: the driver is another than that of the specification; MG-008: so is the layout.
    host.sh(f"sed -i 's/550.163.01/535.161.07/g; /GPU-/d' {PATH}")
    stale = host.module("cdi_spec", {"refresh": True})
    assert stale["changed"], stale
    assert "libraries of driver 535.161.07" in stale["stale"][0]
    assert any("it lacks GPU-" in reason for reason in stale["stale"])
    again = host.module("cdi_spec", {"refresh": True})
    assert (again["changed"], again["stale"]) == (False, [])

    # F1-TK-07: a second file with the same devices. The tool itself reports success.
    host.sh(f"cp {PATH} /run/cdi/old.yaml")
    assert "Found 0 CDI devices" in host.sh("nvidia-ctk cdi list 2>&1")
    refused = host.module("cdi_spec")
    assert "/var/run/cdi/old.yaml names nvidia.com/gpu=0" in refused["msg"]
    host.sh("rm /run/cdi/old.yaml")

    # F1-RT-15: from the next boot on (a reload reads the same) it is there before Docker starts.
    host.sh("systemctl daemon-reload")
    order = host.sh("systemctl show --property=After docker.service")
    assert "nvidia-cdi-refresh.service" in order
    assert host.sh("docker inspect --format '{{.State.Pid}}' job") == pid
    host.sh("docker run --rm --volume /usr:/usr:ro --device nvidia.com/gpu=1 job true")


@pytest.mark.sweep
def test_without_the_vendors_units_ours_make_it_at_boot(host: LabHost) -> None:
    host.sh(
        "systemctl disable -q --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service; "
        "rm -f /usr/lib/systemd/system/nvidia-cdi-refresh.*; "
        "rm -rf /etc/systemd/system/nvidia-cdi-refresh.service.d; "
        # The driver of a lab host is a unit.
        "mkdir /etc/systemd/system/steadygpu-cdi.service.d; "
        "printf '[Unit]\\nAfter=simgpu.service\\n' "
        ">/etc/systemd/system/steadygpu-cdi.service.d/lab.conf; systemctl daemon-reload"
    )
    made = host.module("cdi_spec", {"refresh": True, "device_name_strategy": ["index"]})
    assert (made["refreshed_by"], made["changed"]) == ("own", True), made
    assert not host.module("cdi_spec", {"refresh": True, "device_name_strategy": ["index"]})[
        "changed"
    ]
    host.reboot()
    shown = host.sh(
        "systemctl show --property=Result,ExecMainExitTimestampMonotonic steadygpu-cdi.service; "
        "systemctl show --property=ExecMainStartTimestampMonotonic docker.service"
    )
    told = dict(line.split("=") for line in shown.splitlines())
    assert told["Result"] == "success"
    assert int(told["ExecMainExitTimestampMonotonic"]) > 0
    assert int(told["ExecMainExitTimestampMonotonic"]) < int(
        told["ExecMainStartTimestampMonotonic"]
    )
    kept = host.module("cdi_spec", {"refresh": True, "device_name_strategy": ["index"]})
    assert (kept["changed"], kept["stale"]) == (False, []), json.dumps(kept)
    gone = host.module("cdi_spec", {"refresh": True, "state": "absent"})
    assert "remove /etc/systemd/system/steadygpu-cdi.service" in gone["actions"]
    host.sh('test -z "$(ls /etc/systemd/system/*/steadygpu-cdi* 2>/dev/null)"')
