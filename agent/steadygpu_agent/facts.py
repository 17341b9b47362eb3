# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``gpu_host`` gathered on the host itself, by the code the Ansible modules run."""

from __future__ import annotations

from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import inventory, model

GPU = "gpu"


class UnknownSectionError(Exception):
    """A section was asked for that no collector fills; the message names those there are."""


def collect(sections: list[str] | None, deadline_s: float) -> dict[str, Any]:
    """``ansible_facts['gpu_host']`` with all sections, or with those of ``sections``.

    The GPU driver is asked, for at most ``deadline_s`` seconds, only when its section is
    wanted; the container engine only when another one is. Raises UnknownSectionError.
    """
    wanted = set(sections or [])
    found: dict[str, Any] = {"schema": model.SCHEMA}
    if not wanted or GPU in wanted:
        found[GPU] = model.as_facts(inventory.collect(deadline_s=deadline_s))
    if not wanted or wanted - {GPU}:
        from ansible_collections.steadygpu.host.plugins.module_utils.engine import collect

        runtime = collect.collect()
        unknown = wanted - {GPU, *runtime}
        if unknown:
            raise UnknownSectionError(
                f"no section {', '.join(sorted(unknown))}; there are: "
                f"{', '.join([GPU, *sorted(runtime)])}"
            )
        found.update({key: runtime[key] for key in runtime if not wanted or key in wanted})
    return found
