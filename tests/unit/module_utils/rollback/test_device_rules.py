# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils import process
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation import (
    device_rules,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.hardware.recorded_host import Host
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.recorded_bundles import (
    KUBERNETES,
    bundle,
    gpu_rules,
    program,
    specification,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.recorded_bundles import (
    process as one_process,
)

ID = "4a" * 32
OTHER = "b7" * 32
MAJORS = frozenset({195, 236, 511})


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """An empty root."""
    return Host(tmp_path)


def test_rules_as_text_in_an_order_that_means_the_same() -> None:
    assert device_rules.rules(specification(gpu_rules(10, 2))) == [
        "a *:* rwm deny",
        "b *:* m allow",
        "c *:* m allow",
        "c 1:3 rwm allow",
        "c 195:2 rw allow",
        "c 195:10 rw allow",
        "c 195:255 rw allow",
    ]


def test_a_rule_that_takes_back_stays_behind_what_it_takes_back() -> None:
    taken = {"allow": False, "type": "c", "major": 195, "minor": 0, "access": "rw"}
    assert device_rules.rules(specification([*gpu_rules(0), taken]))[-3:] == [
        "c 195:0 rw allow",
        "c 195:255 rw allow",
        "c 195:0 rw deny",
    ]


@pytest.mark.parametrize(
    ("spec", "has"),
    [
        (specification(), False),
        (specification(gpu_rules(0)), True),
        (specification([{"allow": True, "type": "c", "major": 236, "minor": 4}]), True),
        # Privileged: all devices, and their nodes where the host has any.
        (specification([{"allow": True, "access": "rwm"}]), False),
        (specification([{"allow": True, "access": "rwm"}], ["/dev/nvidia0"]), True),
        # The legacy hook injects what the variable asks for.
        (
            specification(
                env=["NVIDIA_VISIBLE_DEVICES=all"], hooks=["/usr/bin/nvidia-container-runtime-hook"]
            ),
            True,
        ),
        (
            specification(
                env=["NVIDIA_VISIBLE_DEVICES=void"],
                hooks=["/usr/bin/nvidia-container-runtime-hook"],
            ),
            False,
        ),
        (specification(hooks=["/usr/bin/nvidia-container-runtime-hook"]), False),
        # An image's variable alone gives nothing.
        (specification(env=["NVIDIA_VISIBLE_DEVICES=all"]), False),
    ],
)
def test_who_has_a_gpu(spec: dict[str, Any], has: bool) -> None:
    assert device_rules.has_gpu(spec, MAJORS) is has


def test_nvidia_s_majors_are_not_all_fixed() -> None:
    characters = "Character devices:\n  1 mem\n195 nvidia\n236 nvidia-caps\n511 nvidia-uvm\n"
    text = characters + "\nBlock devices:\n259 blkext\n"
    assert device_rules.nvidia_majors(text) == MAJORS
    assert device_rules.nvidia_majors("") == {195}


def test_containers_of_all_engines_are_found_alike(host: Host) -> None:
    bundle(host, ID, 100, specification(gpu_rules(0)), runtime="/usr/bin/nvidia-container-runtime")
    group = f"/kubepods.slice/kubepods-burstable.slice/cri-containerd-{OTHER}.scope"
    bundle(host, OTHER, 200, specification(gpu_rules(1)), KUBERNETES, group)
    userdata = f"run/containers/storage/overlay-containers/{'c' * 64}/userdata"
    host.write(f"{userdata}/config.json", json.dumps(specification(gpu_rules(2))))
    host.write(f"{userdata}/pidfile", "300")
    one_process(host, 300, f"/machine.slice/libpod-{'c' * 64}.scope/container")
    found = device_rules.running(host.root)
    assert [(one.id, one.namespace, one.pid, one.scope, one.runtime) for one in found] == [
        (ID, "moby", 100, f"docker-{ID}.scope", "nvidia-container-runtime"),
        (OTHER, "k8s.io", 200, f"cri-containerd-{OTHER}.scope", "runc"),
        ("c" * 64, "", 300, f"libpod-{'c' * 64}.scope", ""),
    ]


def test_a_container_of_the_cgroupfs_driver_has_no_scope(host: Host) -> None:
    bundle(host, "job", 100, specification(), group="/default/job")
    assert [(one.id, one.group, one.scope) for one in device_rules.running(host.root)] == [
        ("job", "/default/job", None)
    ]


def test_what_does_not_run_is_not_listed(host: Host) -> None:
    bundle(host, "1" * 64, 100, specification())
    Path(host.root, "proc/100/cgroup").unlink()  # stopped
    bundle(host, "2" * 64, 101, specification(), group="/user.slice/session-1.scope")  # another's
    bundle(host, "3" * 64, 102, specification())
    bundle(host, "4" * 64, 103, specification())
    for path, text in (("3" * 64 + "/init.pid", ""), ("4" * 64 + "/config.json", '{"oci')):
        host.write(f"run/containerd/io.containerd.runtime.v2.task/moby/{path}", text)
    assert device_rules.running(host.root) == []


def test_a_container_in_a_group_of_its_maker_s_choice(host: Host) -> None:
    spec = specification(cgroups_path="ai.slice:job:seven")
    bundle(host, ID, 100, spec, group="/ai.slice/job-seven.scope")
    assert [one.scope for one in device_rules.running(host.root)] == ["job-seven.scope"]


SHOWN = """\
Id=docker-a.scope
LoadState=loaded
DevicePolicy=strict
DeviceAllow=/dev/char/195:10 rw
DeviceAllow=/dev/char/195:2 rw
DeviceAllow=char-pts rwm

Id=docker-gone.scope
LoadState=not-found
DevicePolicy=auto
DeviceAllow=
"""


def test_what_systemd_will_write_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "systemctl", f"cat <<'END'\n{SHOWN}END\n")
    monkeypatch.setattr(process, "_SEARCH_PATH", f"{tmp_path}:/usr/bin:/bin")
    assert device_rules.of_scopes(["docker-a.scope", "docker-gone.scope"], 5) == {
        "docker-a.scope": [
            "systemd DevicePolicy=strict",
            "systemd DeviceAllow=/dev/char/195:2 rw",
            "systemd DeviceAllow=/dev/char/195:10 rw",
            "systemd DeviceAllow=char-pts rwm",
        ]
    }


def test_a_host_without_systemd_has_no_scopes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_SEARCH_PATH", str(tmp_path))
    assert device_rules.of_scopes(["docker-a.scope"], 5) == {}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["linux", "resources", "devices", "hooks", "process", "env", "major"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["linux", "hooks", "process"]), _JSON))
def test_an_odd_specification_is_read(spec: dict[str, Any]) -> None:
    assert isinstance(device_rules.has_gpu(spec, MAJORS), bool)
    assert all(isinstance(rule, str) for rule in device_rules.rules(spec))
