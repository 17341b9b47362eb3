# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A whole host observed: a recorded tree, a dpkg, a systemctl and an engine that answer."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import process
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    PackageState,
    RollbackError,
    State,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation import (
    gpu_seen,
    observe,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation.files import (
    MemorySink,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation.gpu_seen import (
    Seen,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.engine_server import (
    EngineServer,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.hardware.recorded_host import Host
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.recorded_bundles import (
    KUBERNETES,
    bundle,
    gpu_rules,
    program,
    specification,
)

ID = "4a" * 32
OTHER = "b7" * 32
MIG = [{"uuid": "GPU-0", "mig": False, "devices": None, "instances": None}]

# One block for each unit asked, as systemctl answers; docker.service runs.
SYSTEMCTL = """
printf '%s\\n' "$*" >> "{log}"
shift 2
for unit in "$@"; do
    active=inactive; load=not-found
    case $unit in docker.service) active={docker}; load=loaded ;; esac
    printf 'Id=%s\\nLoadState=%s\\nActiveState=%s\\n' "$unit" $load $active
    printf 'DropInPaths=\\nUnitFileState=\\n\\n'
done
"""
DPKG_QUERY = """
printf 'hi \\tdocker.io\\t26.1.5+dfsg1-9+b9\\n'
printf 'ii \\tlibnvidia-ml1\\t570.172.08-1\\n'
printf 'iF \\trunc\\t1.1.15\\n'
printf 'ii \\tbash\\t5.2\\n'
"""


class Recorded(Host):
    """The tree, its programs and its engine."""

    def __init__(self, root: Path, server: EngineServer) -> None:
        super().__init__(root / "host")
        self.server = server
        self.programs = root / "programs"
        self.asked = root / "asked"
        self.write("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/vda1 quiet\n")
        self.write("proc/sys/vm/swappiness", "60\n")
        self.write("etc/docker/daemon.json", '{"live-restore": true}\n')
        self.write("var/lib/dpkg/status", "")
        self.systemd()
        program(self.programs, "dpkg-query", DPKG_QUERY)

    def systemd(self, docker: str = "active") -> None:
        program(self.programs, "systemctl", SYSTEMCTL.format(log=self.asked, docker=docker))

    def listed(self, *containers: dict[str, Any]) -> None:
        """What the engine says of its running containers."""
        self.server.routes["GET /v1.51/containers/json"] = lambda body: (200, list(containers))

    def look(self, **named: Any) -> State:
        named = {"live": True, "deadline_s": 5, "socket": self.server.path, **named}
        return observe.observe(MemorySink(), root=self.root, **named)

    def unit_questions(self) -> list[str]:
        return self.asked.read_text().splitlines()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    with EngineServer(str(tmp_path / "docker.sock")) as server:
        recorded = Recorded(tmp_path, server)
        recorded.listed()
        monkeypatch.setattr(process, "_SEARCH_PATH", f"{recorded.programs}:/usr/bin:/bin")
        yield recorded


@pytest.fixture
def gpu_host(host: Recorded, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """With a driver, and a container that computes on GPU 0."""
    host.driver()
    bundle(host, ID, 100, specification(gpu_rules(0)))
    monkeypatch.setattr(gpu_seen, "read", lambda deadline_s: Seen(MIG, {100: 512}))
    return host


def test_a_host_without_gpus_is_known_whole(host: Recorded) -> None:
    state = host.look()
    assert state.unknown == {}
    assert state.files["/etc/docker/daemon.json"].kind == "file"
    assert state.units["docker.service"].active == "active"
    assert state.units["nvidia-persistenced.service"].load == "not-found"
    assert state.sysctls == {"vm.swappiness": "60"}
    assert state.packages == {
        "docker.io": PackageState("26.1.5+dfsg1-9+b9", held=True),
        "libnvidia-ml1": PackageState("570.172.08-1", held=False),
        "runc": PackageState("", held=False),
    }
    assert state.kernel_cmdline == "BOOT_IMAGE=/vmlinuz root=/dev/vda1 quiet"
    assert state.mig is None
    assert state.runtime == {"devices": {}, "driver": {}, "toolkit": {}, "containers": {}}
    assert len(host.unit_questions()) == 1


def test_a_gpu_host_tells_of_its_containers(gpu_host: Recorded) -> None:
    gpu_host.listed({"Id": ID, "Names": ["/trainer"], "Labels": {}})
    state = gpu_host.look()
    assert state.unknown == {}
    assert state.mig == MIG
    assert str(state.runtime["driver"]["version"]).startswith("NVIDIA UNIX Open Kernel Module")
    container = state.runtime["containers"][ID]
    assert container["name"] == "trainer"
    assert container["gpu_memory_mib"] == 512
    assert "c 195:0 rw allow" in container["device_rules"]
    assert "changed_files" not in container
    json.dumps(state.runtime)


def test_nobody_waits_for_a_container_s_lock(gpu_host: Recorded) -> None:
    gpu_host.listed({"Id": ID, "Names": ["/trainer"], "Labels": {}})
    gpu_host.look()
    asked = [line.split()[1].split("?")[0] for line in gpu_host.server.asked]
    assert asked == ["/_ping", "/v1.51/containers/json"]


def test_changed_files_of_those_who_ask(gpu_host: Recorded) -> None:
    labels = {"steadygpu.checkpoint": "files"}
    gpu_host.listed({"Id": ID, "Names": ["/trainer"], "Labels": labels})
    gpu_host.server.routes[f"GET /v1.51/containers/{ID}/changes"] = lambda body: (
        200,
        [{"Path": "/out", "Kind": 1}, {"Path": "/out/model.pt", "Kind": 1}],
    )
    state = gpu_host.look()
    assert state.runtime["containers"][ID]["changed_files"] == ["A /out/model.pt"]


def test_changed_files_that_cannot_be_read_leave_the_rest(gpu_host: Recorded) -> None:
    labels = {"steadygpu.checkpoint": "files"}
    gpu_host.listed({"Id": ID, "Names": ["/trainer"], "Labels": labels})
    state = gpu_host.look()
    assert list(state.unknown) == ["files of container trainer"]
    assert state.runtime["containers"][ID]["gpu_memory_mib"] == 512


def test_kubernetes_without_docker(gpu_host: Recorded) -> None:
    group = f"/kubepods.slice/cri-containerd-{OTHER}.scope"
    bundle(gpu_host, OTHER, 200, specification(gpu_rules(1)), KUBERNETES, group)
    program(gpu_host.programs, "ctr", "case $* in *list*) ;; *) exit 1 ;; esac\n")
    state = gpu_host.look()
    assert state.unknown == {}
    assert set(state.runtime["containers"]) == {ID, OTHER}


def test_a_stopped_docker_is_not_woken(gpu_host: Recorded) -> None:
    gpu_host.systemd(docker="inactive")
    state = gpu_host.look()
    # Its containers live on (live-restore), without the names that only it knows.
    assert state.runtime["containers"][ID]["name"] == ID[:12]
    assert state.unknown == {}
    assert gpu_host.server.asked == []


def test_an_engine_that_does_not_answer_costs_the_names_alone(gpu_host: Recorded) -> None:
    gpu_host.server.routes["GET /v1.51/containers/json"] = lambda body: (500, {"message": "busy"})
    state = gpu_host.look()
    assert "busy" in state.unknown["names of containers"]
    assert ID in state.runtime["containers"]


def test_containers_are_left_out_when_told(gpu_host: Recorded) -> None:
    state = gpu_host.look(containers=False)
    assert state.runtime["containers"] == {}
    assert gpu_host.server.asked == []


def test_a_sick_driver_makes_mig_unknown(
    gpu_host: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(deadline_s: float) -> Seen:
        raise RollbackError("NVML: no answer in 5 s")

    monkeypatch.setattr(gpu_seen, "read", refuse)
    state = gpu_host.look()
    assert state.mig is None
    assert state.unknown == {"mig": "NVML: no answer in 5 s"}
    assert state.runtime["containers"][ID]["gpu_memory_mib"] is None


def test_one_sick_gpu_leaves_the_others_layout_known(
    gpu_host: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Seen(MIG, {}, {3: "the GPU is lost"})
    monkeypatch.setattr(gpu_seen, "read", lambda deadline_s: seen)
    state = gpu_host.look()
    assert state.mig == MIG
    assert state.unknown == {"mig GPU 3": "the GPU is lost"}


def test_a_host_without_systemd_knows_the_rest(host: Recorded) -> None:
    program(host.programs, "systemctl", "echo 'Failed to connect to bus: Host is down' >&2; exit 1")
    state = host.look()
    assert list(state.unknown) == ["units"]
    assert "Host is down" in state.unknown["units"]
    assert state.packages


@pytest.mark.parametrize(
    "script",
    [
        "echo 'dpkg-query: error: status database is broken' >&2; exit 2",
        "printf 'ii \\tbash\\t5.2\\n'; exec sleep 600",
    ],
)
def test_half_a_list_of_packages_is_none(host: Recorded, script: str) -> None:
    program(host.programs, "dpkg-query", script + "\n")
    state = host.look(deadline_s=0.5)
    assert list(state.unknown) == ["packages"]
    assert state.packages == {}


def test_a_fault_of_our_own_costs_its_part_alone(
    host: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(root: str) -> dict[str, str]:
        raise KeyError("major")

    monkeypatch.setattr(observe.fingerprint, "devices", broken)
    state = host.look()
    assert state.unknown == {"devices": "KeyError: 'major'"}
    assert state.units


def test_a_program_that_hangs_ends_with_the_deadline(host: Recorded) -> None:
    program(host.programs, "systemctl", "exec sleep 600\n")
    start = time.monotonic()
    state = host.look(deadline_s=0.3)
    assert time.monotonic() - start < 10
    assert "no answer in time" in state.unknown["units"]
    assert state.files["/etc/docker/daemon.json"].kind == "file"


def test_files_are_no_part_that_may_fail(host: Recorded) -> None:
    class Full(MemorySink):
        """A store without room."""

        def put_file(self, fd: int) -> tuple[str, int]:
            raise RollbackError("no space left")

    with pytest.raises(RollbackError, match="no space left"):
        observe.observe(Full(), root=host.root, live=True, socket=host.server.path)


def test_a_tree_that_is_not_this_host_is_files_alone(gpu_host: Recorded) -> None:
    state = observe.observe(MemorySink(), root=gpu_host.root)
    assert state == State(files=state.files)
    assert state.files["/etc/docker/daemon.json"].kind == "file"
    assert not gpu_host.asked.exists()


def test_declared_paths_are_looked_at(host: Recorded) -> None:
    host.write("srv/site/settings.conf", "a = 1\n")
    state = observe.observe(MemorySink(), ["/srv/site/settings.conf"], root=host.root)
    assert state.files["/srv/site/settings.conf"].size == 6


def test_whose_state_it_is(tmp_path: Path) -> None:
    assert observe.host(str(tmp_path)).machine == ""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    told = observe.host(str(tmp_path))
    assert (told.machine, told.hostname) == ("0123456789abcdef" * 2, os.uname().nodename)


def test_the_time_by_two_clocks() -> None:
    first, second = observe.moment(), observe.moment()
    assert first.boot == second.boot != ""
    assert first.uptime <= second.uptime
    assert abs(first.wall - time.time()) < 60
