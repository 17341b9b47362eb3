# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which paths belong to a checkpoint, and whose they are."""

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import boot_unit
from ansible_collections.steadygpu.host.plugins.module_utils.engine import (
    cdi,
    daemon_json,
    daemon_plan,
    toolkit,
)
from ansible_collections.steadygpu.host.plugins.module_utils.hardware import bandwidth_file
from ansible_collections.steadygpu.host.plugins.module_utils.mig import boot as mig_boot
from ansible_collections.steadygpu.host.plugins.module_utils.mig import cdi as mig_cdi
from ansible_collections.steadygpu.host.plugins.module_utils.mig import journal
from ansible_collections.steadygpu.host.plugins.module_utils.nccl import carrier
from ansible_collections.steadygpu.host.plugins.module_utils.rollback import scope
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    DIRECTORY,
    Area,
    RollbackError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.settings import record


def owner(path: str, declared: tuple[str, ...] = ()) -> str | None:
    area = scope.area_of(path, scope.areas(declared))
    return area.owner if area else None


# What this collection writes, by the names that its writers use.
OWN = [
    boot_unit.BootUnit("steadygpu-nccl.service", "").path,
    boot_unit.BootUnit("steadygpu-nccl.service", "").link,
    mig_boot.CONFIG,
    carrier.SPEC_PATH,
    carrier.FILE_PATH,
    daemon_plan.RECORD_PATH,
    bandwidth_file.where(),
    "/etc/apt/sources.list.d/steadygpu-toolkit.sources",
    "/etc/apt/preferences.d/steadygpu-toolkit.pref",
    "/etc/apt/keyrings/steadygpu-toolkit.asc",
    "/etc/apt/apt.conf.d/52steadygpu",
    "/etc/containerd/conf.d/steadygpu.toml",
    "/etc/containerd/conf.d/zz-steadygpu.toml",
    "/etc/containerd/imports/steadygpu.toml",
    "/etc/containerd/imports/late/steadygpu.toml",
    "/etc/needrestart/conf.d/steadygpu.conf",
    "/etc/yum.repos.d/steadygpu-toolkit.repo",
    "/etc/sysctl.d/90-steadygpu.conf",
    "/etc/modprobe.d/steadygpu.conf",
    "/etc/modules-load.d/steadygpu.conf",
    "/etc/default/grub.d/zz-steadygpu.cfg",
    "/etc/udev/rules.d/60-steadygpu-io.rules",
    "/etc/tmpfiles.d/steadygpu-numa.conf",
    record.path_of("numa"),
]
SHARED = [
    "/etc/kernel/cmdline",
    "/etc/default/irqbalance",
    "/etc/sysconfig/irqbalance",
    daemon_json.CONFIG_PATH,
    toolkit.CONFIG_PATH,
    mig_cdi.DEFAULT_PATH,
    *(f"{directory}/nvidia.yaml" for directory in cdi.DEFAULT_DIRECTORIES),
    "/etc/containerd/config.toml",
    "/etc/containerd/conf.d/99-nvidia.toml",
    "/etc/systemd/system/ai-workload.slice",
    "/etc/systemd/system/ai-workload.slice.d/10-ours.conf",
    "/etc/systemd/system.control/ai-workload.slice.d/50-CPUQuota.conf",
    "/etc/systemd/system/docker.service.d/override.conf",
    "/etc/systemd/system/docker.socket.d/override.conf",
    "/etc/sysctl.d/10-other.conf",
    "/etc/sysctl.conf",
    "/etc/apt/sources.list.d/other.list",
]
SEEN = [
    "/etc/modprobe.d/nvidia.conf",
    "/etc/default/grub",
    "/etc/systemd/system/docker.service",
    "/etc/apt/preferences.d/other.pref",
    "/etc/docker/certs.d/registry.example/ca.crt",
]


@pytest.mark.parametrize("path", OWN)
def test_what_only_this_collection_writes_is_its_own(path: str) -> None:
    assert owner(path) == "own"


@pytest.mark.parametrize("path", SHARED)
def test_what_others_write_too_is_shared(path: str) -> None:
    assert owner(path) == "shared"


@pytest.mark.parametrize("path", SEEN)
def test_what_counts_but_is_not_restored_is_seen(path: str) -> None:
    assert owner(path) == "seen"


@pytest.mark.parametrize(
    "path",
    [
        f"{DIRECTORY}/labels.json",
        f"{journal.DIRECTORY}/journal.json",
        "/usr/local/lib/steadygpu/current/x.py",
        boot_unit.COMMAND,
        "/etc/passwd",
        "/etc/cdi/nvidia.txt",
        "/etc/cdi/nested/nvidia.yaml",
        "/etc/cdi/.nvidia.yaml.swp.yaml",
        "/etc/steadygpu/mig.json.steadygpu-conflict",
        "/etc/steadygpu/mig.json.steadygpu-conflict-2",
        "/etc/steadygpu/.mig.json.steadygpu-0123abcd",
        "/etc/containerd/imports/99-other.toml",
        "/etc/containerd/imports",
        "/etc/systemd/system",
    ],
)
def test_no_checkpoint_looks_there(path: str) -> None:
    assert owner(path) is None


@pytest.mark.parametrize(
    ("path", "whose"),
    [("/etc/steadygpu", "own"), ("/etc/cdi", "shared"), ("/etc/docker", "shared"), ("/etc", None)],
)
def test_a_directory_is_ours_only_by_its_name(path: str, whose: str | None) -> None:
    assert owner(path) == whose


def test_the_docker_configuration_tells_docker_and_its_directory_does_not() -> None:
    config = scope.area_of("/etc/docker/daemon.json", scope.AREAS)
    directory = scope.area_of("/etc/docker", scope.AREAS)
    assert config is not None
    assert directory is not None
    assert (config.tells, directory.tells) == ("docker", "")


def test_the_two_names_of_run_are_one() -> None:
    assert scope.canonical("/var/run//cdi/nvidia.yaml") == "/run/cdi/nvidia.yaml"
    assert scope.canonical("/var/running") == "/var/running"


def test_declared_paths_are_restored_and_stay_secret() -> None:
    declared = ("/srv/app/", "/etc/docker", "/etc/modprobe.d/nvidia.conf")
    areas = scope.areas(declared)
    assert owner("/srv/app", declared) == "own"
    assert owner("/srv/app/a/.hidden", declared) == "own"
    assert owner("/srv/apple", declared) is None
    assert owner("/etc/modprobe.d/nvidia.conf", declared) == "own"
    key = scope.area_of("/etc/docker/certs.d/registry.example/key.pem", areas)
    assert key == Area("/etc/docker/certs.d/**", "own", secret=True)
    config = scope.area_of("/etc/docker/daemon.json", areas)
    assert config == Area("/etc/docker/daemon.json", "own", "docker")
    inside = scope.areas(["/etc/docker/certs.d/registry.example"])
    assert inside[0].secret


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("etc/x", "is not an absolute path"),
        ("/etc/../var/x", r"holds '\.\.'"),
        ("/", "covers or lies in /var/lib/steadygpu/rollback"),
        ("/var/lib", "checkpoints themselves"),
        ("/var/lib/*/rollback/x", "checkpoints themselves"),
        ("/var/**", "checkpoints themselves"),
        (f"{DIRECTORY}/objects", "checkpoints themselves"),
        ("/usr/local/bin/*", "the program that restores"),
        ("/proc/sys/vm", "/proc"),
        ("/sys/fs", "/sys"),
        ("/dev/shm/x", "/dev"),
        ("/run/x", "/run"),
        ("/var/run/x", "/run"),
        ("/var/lib/docker/volumes/x", "running containers"),
        ("/etc", "two levels below"),
        ("/srv/*", "two levels below"),
        ("/srv/**/x", "only the last component"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_reason(path: str, why: str) -> None:
    with pytest.raises(RollbackError, match=why):
        scope.areas([path])


def test_a_temporary_name_is_no_longer_than_a_name_may_be() -> None:
    name = scope.temporary_name("ü" * 127, "0123abcd")
    assert len(name.encode()) <= 255
    assert scope.is_temporary(name)
    assert not scope.is_temporary(".bashrc")
