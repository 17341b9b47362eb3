# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Skews of every kind on one host: the playbook names each, and heal mends its part."""

from __future__ import annotations

import re

COMPOSE = "services: {a: {image: x, gpus: [{count: 1, device_ids: ['0']}]}}"

# What is planted, and the rule that must name it.
SKEWS = {
    "sed -i 's/550.163.01/535.161.07/g' /run/cdi/nvidia.yaml": "cdi-spec-driver-differs",
    "sed -i '/^Package: libnvidia-container1$/,/^$/s/^Version: .*/Version: 1.16.2-1/' "
    "/var/lib/dpkg/status": "toolkit-packages-differ",
    'python3 -c \'import json; p="/etc/docker/daemon.json"; d=json.load(open(p)); '
    'd["default-runtime"]="nvidia"; d["runtimes"]={"nvidia":{"path":"nvidia-container-runtime"}}; '
    'json.dump(d, open(p,"w"))\'': "daemon-json-not-loaded",
    f'mkdir -p /srv/stack && echo "{COMPOSE}" >/srv/stack/compose.yaml': "count-and-device-ids",
    "printf '[Slice]\\nDelegate=yes\\n' >/etc/systemd/system/x.slice": "slice-delegate",
    "simgpu fail uvm_missing": "uvm-missing",
}


def test_checks_name_every_skew_and_heal_mends_what_is_safe(host, tmp_path):
    for command in SKEWS:
        host.sh(command)
    page = tmp_path / "fleet.html"
    run = host.play(
        *("-e", f"checks_page={page}", "-e", '{"checks_paths": ["/srv/stack"]}'),
        playbook="playbooks/checks.yml",
    )
    assert run.rc != 0, "errors were found"
    text = page.read_text()
    for rule in SKEWS.values():
        assert rule in run.output, run.output
        assert rule in text
    assert host.name in text

    healed = host.play("-e", "heal_apply=true", playbook="playbooks/heal.yml")
    assert healed.rc == 0, healed.output
    host.sh("test -c /dev/nvidia-uvm")
    host.sh("! grep -q 535.161.07 /run/cdi/nvidia.yaml")
    again = host.play("-e", "heal_apply=true", playbook="playbooks/heal.yml")
    assert re.search(rf"^{host.name}\s.*changed=0", again.output, re.MULTILINE), again.output
