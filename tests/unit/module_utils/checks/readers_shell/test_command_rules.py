# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on commands that know more when the host is known, and the field cases of commands."""

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.judge import judge
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers.shell import read_shell

TRAINER = {"id": "0123456789abcdef", "name": "trainer", "gpus": "hook", "running": True}


def said(text: str, host: HostView | None = None) -> dict[str, str]:
    """Rule to severity."""
    found = judge(read_shell(text, "f").documents, host or HostView())
    return {finding.rule: finding.severity.label for finding in found}


def with_containers(*containers: dict) -> HostView:
    return HostView(evidence={"containers": list(containers)})


@pytest.mark.parametrize(
    ("container", "severity"),
    [
        (TRAINER, "error"),
        ({**TRAINER, "gpus": "cdi"}, None),
        ({**TRAINER, "gpus": "none"}, None),
        ({**TRAINER, "name": "other"}, "info"),
    ],
)
def test_docker_update_of_a_known_container(container, severity):
    """CG-003."""
    found = said("docker update --cpu-quota 640000 trainer\n", with_containers(container))
    assert found.get("docker-update-loses-gpu") == severity


def test_a_reload_names_the_containers_that_lose_their_gpus():
    host = with_containers(TRAINER, {**TRAINER, "name": "cdi", "gpus": "cdi"})
    found = judge(read_shell("systemctl daemon-reload", "f").documents, host)
    assert [finding.seen for finding in found] == ["Running with GPUs by the hook: trainer."]
    assert said("systemctl daemon-reload") == {}
    assert said("systemctl daemon-reload", with_containers()) == {}


def test_a_reset_while_containers_use_gpus():
    assert said("nvidia-smi -r")["gpu-reset-needs-idle"] == "info"
    assert said("nvidia-smi -r", with_containers(TRAINER))["gpu-reset-needs-idle"] == "warning"


def test_switching_acs_off_in_a_guest():
    line = "setpci -s 3b:00.0 ECAP_ACS+0x6.w=0000"
    assert said(line, HostView(evidence={"virtual": "none"}))["acs-off"] == "info"
    assert said(line, HostView(evidence={"virtual": "kvm"}))["acs-off"] == "warning"


@pytest.mark.parametrize(
    ("case", "text", "rule"),
    [
        (
            "TK-030",
            "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
            "   # driver libraries live in /var/lib/nvidia/lib64\n",
            "cdi-generate-library-path",
        ),
        ("RB-001", "apt-get install nvidia-docker2=2.5.0-1\n", "toolkit-packages-in-part"),
        (
            "SY-003",
            "docker run --cgroup-parent=gpdb-16384.slice app"
            "   # the same slice's cgroup already holds processes directly\n",
            "cgroup-parent-holds-processes",
        ),
    ],
)
def test_a_field_case(case, text, rule):
    assert said(text)[rule] == "warning", case
