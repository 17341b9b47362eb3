# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``gpu_facts`` as a play uses it, on a machine that may have no GPU at all."""

from __future__ import annotations

GATHER = {"steadygpu.host.gpu_facts": {}}
OTHER = {
    "ansible.builtin.set_fact": {
        "gpu_host": {"schema": 1, "docker": {"status": "running"}, "gpu": {"stale": True}},
        "cacheable": True,
    }
}
SHOW = {"ansible.builtin.debug": {"msg": "{{ ansible_facts['gpu_host'] }}"}}


def test_gathered_in_one_round_trip_beside_the_sections_of_the_other_module(controller):
    _set, gathered, shown = controller.play(OTHER, GATHER, SHOW)
    assert not gathered.get("changed")
    assert controller.round_trips == 1
    assert shown["msg"]["docker"] == {"status": "running"}
    assert set(shown["msg"]["gpu"]["driver"]) >= {"status", "version", "reason"}
    assert "stale" not in shown["msg"]["gpu"]


def test_check_mode_gathers_too_and_a_deadline_of_nothing_is_refused(controller):
    checked, failed = controller.play(
        GATHER, {"steadygpu.host.gpu_facts": {"deadline_s": 0}}, check=True
    )
    assert checked["ansible_facts"]["gpu_host"]["schema"] == 1
    assert checked["ansible_facts"]["gpu_host"]["gpu"]["numa_nodes"] is not None
    assert failed["failed"]
    assert "deadline_s is 0; wanted is a number of seconds above 0" in failed["msg"]
