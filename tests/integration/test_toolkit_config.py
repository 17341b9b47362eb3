# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The toolkit's configuration, changed under a container that has a GPU."""

from __future__ import annotations

import pytest

BUSYBOX = "tar -C /usr -c bin/busybox | docker import - busybox"
CONFIG = "/etc/nvidia-container-runtime/config.toml"
RUN = "docker run {} --device nvidia.com/gpu=0 busybox /bin/busybox {}"


@pytest.mark.sweep
def test_complaint_08_the_mode_is_pinned_under_a_running_container(host):
    host.sh(BUSYBOX)
    host.sh(f"sed -i '1i # site: ask ops before you edit' {CONFIG}")
    former = host.sh(f"cat {CONFIG}")
    job = host.sh(RUN.format("-d", "sleep 100000"))
    pid = host.sh("docker inspect --format '{{.State.Pid}}' " + job)
    mode = {"config": {"nvidia-container-runtime": {"mode": "jit-cdi"}}}

    done = host.module("toolkit_config", mode)
    assert (done["changed"], done["mode"]) == (True, "jit-cdi"), done
    assert host.sh(f"cat {CONFIG}") == former.replace('mode = "auto"', 'mode = "jit-cdi"')
    bogus = host.module("toolkit_config", {"config": {"nvidia-container-runtime": {"mode": "jit"}}})
    assert bogus["failed"]
    assert "did you mean jit-cdi?" in bogus["msg"]
    # What the packages do at an upgrade.
    host.sh(f"nvidia-ctk --quiet config --config-file={CONFIG} --in-place")
    again = host.module("toolkit_config", mode)
    assert (again["changed"], again["mode"]) == (False, "jit-cdi"), again

    assert host.sh("docker inspect --format '{{.State.Pid}}' " + job) == pid
    assert "nvidia0" in host.sh(f"docker exec {job} /bin/busybox ls /dev")
    assert "nvidia0" in host.sh(RUN.format("--rm", "ls /dev"))
    back = host.module("toolkit_config", {"state": "absent"})
    assert (back["changed"], back["mode"]) == (True, "auto"), back
