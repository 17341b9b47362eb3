# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role ``toolkit`` makes of a toolkit that somebody else brought."""

from __future__ import annotations

from typing import Any

import yaml

PACKAGES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)
DGX = "NVIDIA DGX Server 6.3.2"


def decided(controller: Any, *hosts: tuple[str | None, str]) -> list[tuple[bool, bool, bool]]:
    """For each image and version there: is it adopted, held, and all as wanted?"""
    variables: dict[str, Any] = {"__toolkit_record": {}}
    role = controller.collections / "ansible_collections/steadygpu/host/roles/toolkit"
    for part in ("defaults", "vars"):
        text = (role / part / "main.yml").read_text(encoding="utf-8")
        variables.update(yaml.safe_load(text))
    variables["toolkit_version"] = "1.20.0-1"
    asked = "{{ [__toolkit_adopted, __toolkit_hold, __toolkit_settled] }}"
    tasks: list[dict[str, Any]] = []
    for image, version in hosts:
        facts = {
            "os": {"family": "debian", "id": "ubuntu", "vendor_image": image},
            "packages": {
                "installed": {name: {"version": version, "held": False} for name in PACKAGES}
            },
        }
        tasks += [
            {"ansible.builtin.set_fact": {"gpu_host": facts, "cacheable": True}},
            {"ansible.builtin.debug": {"msg": asked}, "vars": variables},
        ]
    return [tuple(result["msg"]) for result in controller.play(*tasks)[1::2]]


def test_the_toolkit_of_a_vendors_image_stays_as_it_is(controller: Any) -> None:
    assert decided(
        controller,
        (DGX, "1.17.8-1"),
        (DGX, "1.21.0-1"),
        (None, "1.17.8-1"),
        (None, "1.21.0-1"),
        (None, "1.20.0-1"),
    ) == [
        (True, False, True),
        (True, False, True),
        (False, True, False),
        (True, True, False),
        (False, True, False),
    ]
