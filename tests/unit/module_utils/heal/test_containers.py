# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which containers have lost a GPU: by their bundles and the kernel's rules, in a made tree."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.heal import (
    containers,
    device_program,
    given,
    kernel_filter,
)
from ansible_collections.steadygpu.host.plugins.module_utils.heal.model import (
    DeviceNode,
    GpuContainer,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation import (
    device_rules,
)

ID = "0123456789abcdef" * 4
DEVICES = "Character devices:\n  1 mem\n195 nvidia\n511 nvidia-uvm\n\nBlock devices:\n  8 sd\n"
GPU = {
    "devices": [
        {"index": 0, "uuid": "GPU-a", "minor": 0},
        {"index": 1, "uuid": "GPU-b", "minor": 1},
    ]
}

NULL = DeviceNode("/dev/null", "c", 1, 3)
GPU0 = DeviceNode("/dev/nvidia0", "c", 195, 0)
GPU1 = DeviceNode("/dev/nvidia1", "c", 195, 1)
CONTROL = DeviceNode("/dev/nvidiactl", "c", 195, 255)


class Host:
    """A tree with one container, and a kernel that allows some devices."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.nodes = [NULL, GPU0, CONTROL]
        self.allowed = {(1, 3)}
        self.shown: dict[str, list[str]] = {}
        patch.setattr(containers, "_nodes", lambda pid, root: list(self.nodes))
        patch.setattr(kernel_filter, "programs", lambda directory: [b"program"])
        patch.setattr(device_program, "allows", self._allows)
        patch.setattr(device_rules, "of_scopes", lambda scopes, deadline_s: self.shown)
        (root / "proc/42").mkdir(parents=True)
        (root / "proc/devices").write_text(DEVICES)
        (root / "proc/42/cgroup").write_text(f"0::/system.slice/docker-{ID}.scope\n")
        self.bundle = root / f"run/containerd/io.containerd.runtime.v2.task/moby/{ID}"
        self.bundle.mkdir(parents=True)
        (self.bundle / "init.pid").write_text("42")
        self.spec()

    def _allows(self, programs: Any, kind: int, major: int, minor: int, access: int) -> bool:
        return (major, minor) in self.allowed

    def spec(self, visible: str | None = "0", hook: bool = True, **linux: Any) -> None:
        """Write the bundle's specification."""
        hooks = [{"path": "/usr/bin/nvidia-container-runtime-hook"}] if hook else []
        document = {
            "process": {
                "env": [f"NVIDIA_VISIBLE_DEVICES={visible}"] if visible is not None else []
            },
            "hooks": {"prestart": hooks},
            "linux": {"cgroupsPath": f"system.slice:docker:{ID}", **linux},
        }
        (self.bundle / "config.json").write_text(json.dumps(document))

    def read(self) -> tuple[GpuContainer, ...]:
        """What is seen."""
        return containers.read(GPU, {ID: "trainer"}, str(self.root))


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host with a container that the hook gave GPU 0, and that lost it."""
    return Host(tmp_path, monkeypatch)


def test_a_gpu_of_the_hook_that_the_kernel_refuses_is_lost(host: Host) -> None:
    (one,) = host.read()
    assert (one.name, one.by_hook, one.is_dockers) == ("trainer", True, True)
    assert one.lost == (GPU0, CONTROL)
    assert one.others == (NULL,)
    assert one.scope == f"docker-{ID}.scope"


def test_a_gpu_that_may_be_opened_is_not(host: Host) -> None:
    host.allowed |= {(195, 0), (195, 255)}
    (one,) = host.read()
    assert one.lost == ()
    assert one.given == (GPU0, CONTROL)


def test_a_node_that_the_container_made_itself_was_not_given(host: Host) -> None:
    # Docker grants CAP_MKNOD: it must not be handed GPU 1 because it made /dev/nvidia1.
    host.nodes.append(GPU1)
    (one,) = host.read()
    assert GPU1 not in one.given
    assert GPU1 not in one.lost


def test_what_was_asked_and_never_came_is_not_granted(host: Host) -> None:
    host.spec(visible="all")
    (one,) = host.read()
    assert GPU1 not in one.given


def test_devices_of_the_specification_count_as_given(host: Host) -> None:
    node = {"path": "/dev/nvidia0", "type": "c", "major": 195, "minor": 0}
    rule = {"allow": True, "type": "c", "major": 195, "minor": 0, "access": "rwm"}
    host.spec(visible=None, hook=False, devices=[node], resources={"devices": [rule]})
    (one,) = host.read()
    assert (one.by_hook, one.given, one.lost) == (False, (GPU0,), (GPU0,))


def test_a_device_that_was_given_to_read_only_is_not_lost(host: Host) -> None:
    # docker run --device /dev/nvidia0:/dev/nvidia0:r
    node = {"path": "/dev/nvidia0", "type": "c", "major": 195, "minor": 0}
    rule = {"allow": True, "type": "c", "major": 195, "minor": 0, "access": "rm"}
    host.spec(visible=None, hook=False, devices=[node], resources={"devices": [rule]})
    (one,) = host.read()
    assert (one.given, one.lost) == ((), ())


def test_a_scope_that_the_container_named_itself_is_not_its_scope(host: Host) -> None:
    # A systemd inside moves itself; init.scope is also the host's, and that of its first process.
    inside = f"0::/system.slice/docker-{ID}.scope/a/init.scope\n"
    (host.root / "proc/42/cgroup").write_text(inside)
    (one,) = host.read()
    assert one.scope == f"docker-{ID}.scope"
    (host.root / "proc/42/cgroup").write_text(f"0::/{ID}/init.scope\n")
    (one,) = host.read()
    assert one.scope is None


def test_what_only_a_rule_allows_must_not_be_taken_either(host: Host) -> None:
    # --device-cgroup-rule 'c 189:* rmw': its nodes come and go.
    rule = {"allow": True, "type": "c", "major": 189, "access": "rwm"}
    host.spec(resources={"devices": [rule]})
    host.allowed.add((189, given.ANY_MINOR))
    (one,) = host.read()
    (usb,) = [node for node in one.others if node != NULL]
    strict = ["DevicePolicy=strict"]
    assert not given.systemd_allows(strict, usb, {"usb_device": 189})
    known = [*strict, "DeviceAllow=char-usb_device rwm"]
    assert given.systemd_allows(known, usb, {"usb_device": 189})


def test_where_the_environment_decides_nothing_it_is_not_believed(host: Host) -> None:
    path = host.root / "etc/nvidia-container-runtime/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("accept-nvidia-visible-devices-envvar-when-unprivileged = false\n")
    (one,) = host.read()
    assert (one.given, one.lost) == ((), ())
    assert "NVIDIA_VISIBLE_DEVICES" in one.unclear


def test_a_device_that_a_slice_refuses_is_named(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def allows(programs: list[bytes], kind: int, major: int, minor: int, access: int) -> bool:
        return major != 195 if programs == [b"slice"] else (major, minor) == (1, 3)

    def programs(directory: str) -> list[bytes]:
        return [b"slice"] if directory.endswith("system.slice") else [b"slice", b"scope"]

    monkeypatch.setattr(device_program, "allows", allows)
    monkeypatch.setattr(kernel_filter, "programs", programs)
    (one,) = host.read()
    assert one.barred == ("/dev/nvidia0", "/dev/nvidiactl")


def test_devices_that_somebody_has_set_since_are_named(host: Host) -> None:
    folder = host.root / f"run/systemd/system.control/docker-{ID}.scope.d"
    folder.mkdir(parents=True)
    (folder / "50-DeviceAllow.conf").write_text("[Scope]\nDeviceAllow=\nDeviceAllow=/dev/null rw\n")
    (one,) = host.read()
    assert one.decided.endswith("50-DeviceAllow.conf")
    # What a former repair has left is no decision against the GPU.
    (folder / "50-DeviceAllow.conf").write_text(
        "[Scope]\nDeviceAllow=/dev/nvidia0 rwm\nDeviceAllow=/dev/nvidiactl rwm\n"
    )
    (one,) = host.read()
    assert one.decided == ""


def test_a_process_that_took_the_number_of_an_ended_container_is_not_it(host: Host) -> None:
    (one,) = host.read()
    (host.root / "proc/42/cgroup").write_text("0::/user.slice\n")
    assert "ended" in containers.again(one, str(host.root)).unclear


def test_a_mount_that_may_never_answer_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "proc/42/root/dev"
    for name in ("shm/many", "net", "mine/below"):
        (shared / name).mkdir(parents=True)
    (tmp_path / "proc/42/mountinfo").write_text(
        "1 0 0:1 / /dev rw - tmpfs tmpfs rw\n2 1 0:2 / /dev/mine rw - fuse.sshfs x rw\n"
    )
    looked = []
    walk = os.walk

    def noting(top: str, onerror: Any) -> Any:
        for found in walk(top, onerror=onerror):
            looked.append(os.path.relpath(found[0], top))
            yield found

    monkeypatch.setattr(os, "walk", noting)
    assert list(containers._nodes(42, str(tmp_path))) == []
    assert looked == [".", "net"]


def test_a_privileged_container_loses_nothing(host: Host) -> None:
    rule = {"allow": True, "access": "rwm"}
    host.spec(resources={"devices": [rule]})
    assert host.read() == ()


def test_a_container_without_a_gpu_is_none_of_ours(host: Host) -> None:
    host.spec(visible="none")
    assert host.read() == ()


def test_what_systemd_keeps_for_it_is_told(host: Host) -> None:
    scope = f"docker-{ID}.scope"
    host.shown = {scope: ["systemd DevicePolicy=strict", "systemd DeviceAllow=/dev/null rwm"]}
    (one,) = host.read()
    assert one.allowed == ("DevicePolicy=strict", "DeviceAllow=/dev/null rwm")


@pytest.mark.parametrize(
    "error",
    [
        kernel_filter.FilterError("bpf: Operation not permitted"),
        device_program.UnknownProgramError("it calls a function of the kernel"),
    ],
)
def test_a_kernel_that_does_not_tell_makes_it_unclear_not_lost(
    host: Host, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(directory: str) -> list[bytes]:
        raise error

    monkeypatch.setattr(kernel_filter, "programs", refuse)
    (one,) = host.read()
    assert one.lost == ()
    assert str(error) in one.unclear


def test_a_gpu_that_is_gone_makes_it_unclear(host: Host) -> None:
    host.spec(visible="GPU-gone")
    (one,) = host.read()
    assert "GPU-gone" in one.unclear
