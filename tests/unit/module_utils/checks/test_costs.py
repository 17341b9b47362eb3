# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A command that can cost a job is never printed without saying so."""

from __future__ import annotations

import re

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks.costs import cost, costs
from ansible_collections.steadygpu.host.plugins.module_utils.checks.explain import all_symptoms

# Words that no harmless command has.
GRAVE = re.compile(
    r"\b(reboot|rmmod|prune|purge|drain|--gpu-reset|shutdown)\b|\bmodprobe -r\b|\brestart docker\b"
    r"|\bdaemon-reload\b|\bdocker (rm|kill|stop|restart)\b|\bsnap remove\b|\brevert\b"
)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("systemctl restart docker", "live-restore"),
        ("sudo systemctl --now restart docker.service", "live-restore"),
        ("systemctl daemon-reload", "legacy hook"),
        ("modprobe -r nvidia_drm nvidia_modeset nvidia_uvm nvidia", "idle"),
        ("nvidia-smi --gpu-reset -i 0", "idle"),
        ("reboot", "everything"),
        ("snap remove docker", "images"),
        ("docker system prune", "deletes"),
        ("apt-get install nvidia-container-toolkit", "scripts"),
        ("docker compose up -d --force-recreate", "recreates"),
        ("docker compose config", ""),
        ("systemctl reload docker", ""),
        ("systemctl start docker", ""),
        ("nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml", ""),
        ("nvidia-smi -q", ""),
        ("sysctl -w kernel.numa_balancing=0", ""),
        ("steadygpu heal", ""),
    ],
)
def test_what_a_command_may_cost(command, told):
    assert told in cost(command)
    assert bool(cost(command)) is bool(told)


def test_each_price_is_told_once_with_the_command_that_asks_it():
    told = costs(["systemctl restart docker", "systemctl restart docker", "reboot"])
    assert len(told) == 2
    assert told[0].startswith("systemctl restart docker ends running containers unless")
    assert told[1] == "reboot ends everything that runs on the host"


def test_no_grave_command_of_any_cause_is_without_its_price():
    free = [
        (cause.id, command)
        for symptom in all_symptoms()
        for cause in symptom.causes
        for command in cause.commands
        if GRAVE.search(command) and not cost(command)
    ]
    assert free == []
