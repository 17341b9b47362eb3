# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Another release of the engine that does not prove itself: the former one is back, the job lives.

The way up and down is Molecule's scenario ``upgrade``.
"""

from __future__ import annotations

import pytest

NEXT = """
cd /etc/apt
sed s/trixie/forky/g sources.list > sources.list.d/next.list
printf 'Package: *\\nPin: release n=forky\\nPin-Priority: 100\\n' > preferences.d/next.pref
apt-get -q update
tar -C /usr -c bin/busybox | docker import - busybox
docker run --detach --name job --device nvidia.com/gpu=0 busybox /bin/busybox sleep 1000000
"""
PID = "docker inspect --format '{{.State.Pid}}' job"
RELEASE = "docker version --format '{{.Server.Version}}'"


@pytest.mark.sweep
def test_a_release_that_does_not_prove_itself_is_taken_back_under_the_running_job(host):
    host.sh(NEXT)
    pid, release = host.sh(PID), host.sh(RELEASE)
    newest = host.sh("apt-cache madison docker.io | head -1 | cut -d'|' -f2").strip()
    assert not newest.startswith(release)
    run = host.play(
        *("-e", f"migrate_engine_version={newest}"),
        # The proof asks for a GPU that this host does not have.
        *("-e", "verify_device=nvidia.com/gpu=99"),
        playbook="playbooks/migrate.yml",
    )
    assert run.rc != 0
    assert "bring docker.io" in run.output, run.output
    assert "The former packages and daemons are back" in run.output, run.output
    assert (host.sh(PID), host.sh(RELEASE)) == (pid, release)
    opened = host.sh("docker exec job /bin/busybox cat /dev/nvidia0 2>&1", check=False)
    assert "No such device or address" in opened
    assert "unconfirmed" not in host.sh("steadygpu checkpoint list")
