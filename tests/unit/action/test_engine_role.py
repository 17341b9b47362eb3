# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role ``engine`` makes of a host: install, finish what was cut, hold, or leave alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

DEBIAN = ("docker.io", "docker-cli", "containerd", "runc")


@dataclass
class Seen:
    """A host of which facts were read: packages that are held, that are not, and half done."""

    status: str
    held: Sequence[str] = ()
    free: Sequence[str] = ()
    half: Sequence[str] = ()
    image: str | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """As ``runtime_facts`` gives them."""
        installed = {name: {"version": "1", "held": True} for name in self.held}
        installed.update({name: {"version": "1", "held": False} for name in self.free})
        return {
            "os": {"family": "debian", "id": "debian", "vendor_image": self.image},
            "docker": {"status": self.status},
            "packages": {
                "installed": installed,
                "unfinished": sorted(self.half),
                "guarded": True,
            },
        }


def decided(controller: Any, *hosts: Seen) -> list[tuple[bool, bool, set[str]]]:
    """For each host: is there no engine, is all as wanted, and the set that is brought or kept."""
    variables: dict[str, Any] = {}
    role = controller.collections / "ansible_collections/steadygpu/host/roles/engine"
    for part in ("defaults", "vars"):
        text = (role / part / "main.yml").read_text(encoding="utf-8")
        variables.update(yaml.safe_load(text))
    asked = "{{ [__engine_absent, __engine_settled, __engine_set] }}"
    tasks: list[dict[str, Any]] = []
    for seen in hosts:
        tasks += [
            {"ansible.builtin.set_fact": {"gpu_host": seen.facts, "cacheable": True}},
            {"ansible.builtin.debug": {"msg": asked}, "vars": variables},
        ]
    told = [result["msg"] for result in controller.play(*tasks)[1::2]]
    assert all(set(packages.values()) <= {"present"} for _absent, _settled, packages in told)
    return [(absent, settled, set(packages)) for absent, settled, packages in told]


def test_an_engine_that_was_cut_on_its_way_is_neither_there_nor_settled(controller: Any) -> None:
    assert decided(
        controller,
        # Killed after docker.io was unpacked, before its client came.
        Seen("stopped", free=["runc", "containerd"], half=["docker.io"]),
        # Killed in a change of the release, under a daemon that runs on: what is there is finished.
        Seen("running", held=["docker-cli", "containerd", "runc"], half=["docker.io"]),
        # Somebody else's engine: nothing of ours is put beside it.
        Seen("stopped", free=["containerd.io"], half=["docker-ce", "docker-ce-cli"]),
        # Killed before there was a daemon.
        Seen("absent", free=["runc"], half=["containerd"]),
    ) == [
        (True, False, set(DEBIAN)),
        (False, False, set(DEBIAN)),
        (False, False, {"containerd.io", "docker-ce", "docker-ce-cli"}),
        (True, False, set(DEBIAN)),
    ]


def test_an_engine_that_is_there_is_held_and_nothing_more(controller: Any) -> None:
    assert decided(
        controller,
        Seen("absent"),
        Seen("running", held=DEBIAN, half=["gcc"]),
        Seen("stopped", held=["docker.io"], free=["runc"]),
        Seen("running", free=["moby-engine", "moby-runc"]),
        # No package brought it.
        Seen("running"),
        # Its vendor upgrades it as a whole.
        Seen("running", free=DEBIAN, image="NVIDIA DGX Server 6.3.2"),
    ) == [
        (True, False, set(DEBIAN)),
        (False, True, set(DEBIAN)),
        (False, False, {"docker.io", "runc"}),
        (False, False, {"moby-engine", "moby-runc"}),
        (False, True, set()),
        (False, True, set(DEBIAN)),
    ]
