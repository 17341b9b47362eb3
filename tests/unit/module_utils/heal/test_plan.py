# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From a host with faults to the steps that heal it, and to none on a sound one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.heal import given, plan, specs
from ansible_collections.steadygpu.host.plugins.module_utils.heal.model import (
    DeviceNode,
    GpuContainer,
    Sight,
    UnitState,
)

SPEC_PATH = "/var/run/cdi/nvidia.yaml"
SPEC_TEXT = "hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.550.163.01\n"
LOADED = UnitState("loaded", "enabled", "active", frozenset({"network-online.target"}))
ORDERED = replace(LOADED, after=frozenset({plan.REFRESH_SERVICE}))
MAJORS = {"nvidia": 195, "nvidia-uvm": 511, "nvidia-caps": 234, "pts": 136, "infiniband_verbs": 231}


def _device(index: int, mig: Any = None) -> dict[str, Any]:
    return {
        "index": index,
        "uuid": f"GPU-{index}",
        "minor": index,
        "pci_address": f"0000:0{index}:00.0",
        "error": None,
        "mig": mig or {"supported": True, "current": False, "pending": False, "devices": []},
    }


def _gpu(**changes: Any) -> dict[str, Any]:
    return {
        "source": "nvml",
        "driver": {
            "status": "loaded",
            "version": "550.163.01",
            "library_version": "550.163.01",
            "hidden": [],
        },
        "devices": [_device(0), _device(1)],
        "modules": {"nvidia": True, "nvidia_uvm": True},
        "nodes": [{"path": "/dev/nvidia-uvm", "major": 511, "minor": 0, "exists": True}],
        **changes,
    }


def _spec(*names: str, **changes: Any) -> dict[str, Any]:
    found = {"path": SPEC_PATH, "status": "valid", "kind": specs.KIND, "devices": list(names)}
    return {**found, **changes}


def _sight(gpu: dict[str, Any] | None = None, **changes: Any) -> Sight:
    spec = changes.pop("spec", _spec("0", "1", "GPU-0", "GPU-1", "all"))
    facts = {
        "gpu": gpu or _gpu(),
        "cdi": {"specs": [spec]},
        "docker": {"status": "running", "version": "28.5.2", "cdi": {"enabled": True}},
    }
    sound = Sight(
        facts=facts,
        units={plan.REFRESH_SERVICE: LOADED, plan.REFRESH_PATH: LOADED, plan.ENGINE: ORDERED},
        spec_texts={spec["path"]: SPEC_TEXT},
        majors=MAJORS,
        programs={"nvidia-modprobe": "/usr/bin/nvidia-modprobe", "nvidia-ctk": "/usr/bin/ctk"},
    )
    return replace(sound, **changes)


def _ids(sight: Sight) -> list[str]:
    return [step.id for step in plan.make(sight).steps]


def test_a_sound_host_needs_nothing() -> None:
    assert plan.make(_sight()) == plan.Plan()


def test_a_host_without_a_driver_needs_nothing_from_here() -> None:
    absent = {"source": "none", "driver": {"status": "absent"}, "devices": [], "modules": {}}
    assert plan.make(Sight(facts={"gpu": absent})) == plan.Plan()
    assert plan.make(Sight(facts={})) == plan.Plan()


# -- uvm ---------------------------------------------------------------------------------


def test_uvm_that_is_not_loaded_is_loaded_by_the_drivers_tool() -> None:
    (step,) = plan.make(_sight(_gpu(modules={"nvidia": True, "nvidia_uvm": False}))).steps
    assert (step.id, step.commands) == ("uvm", ("nvidia-modprobe -u -c 0",))
    without = _sight(_gpu(modules={"nvidia": True, "nvidia_uvm": False}), programs={})
    assert plan.make(without).steps[0].commands == ("modprobe nvidia_uvm",)


def test_a_missing_uvm_node_is_made() -> None:
    node = {"path": "/dev/nvidia-uvm", "major": 511, "minor": 0, "exists": False}
    assert _ids(_sight(_gpu(nodes=[node]))) == ["uvm"]


def test_without_the_nvidia_module_uvm_is_not_the_trouble() -> None:
    # As on WSL, where the driver is not a module of this kernel.
    assert _ids(_sight(_gpu(modules={"nvidia": False, "nvidia_uvm": False}))) == []


# -- CDI ---------------------------------------------------------------------------------

CUT = {
    "supported": True,
    "current": True,
    "pending": True,
    "devices": [{"uuid": "MIG-a"}, {"uuid": "MIG-b"}],
}


@pytest.mark.parametrize(
    ("names", "gpu", "words"),
    [
        (["0", "1", "2"], {}, "names 2, which is not there"),
        (["GPU-0", "GPU-1", "GPU-old"], {}, "names GPU-old"),
        (["gpu0", "gpu1", "gpu2"], {}, "names gpu2"),
        (["0", "GPU-0"], {}, "GPU 1 is not in it"),
        (["0", "1"], {"devices": [_device(0), _device(1, CUT)]}, "names 1"),
        (["0", "1:0"], {"devices": [_device(0), _device(1, CUT)]}, "MIG device 1:1 is not in it"),
        (["0", "1:0", "1:1", "1:2"], {"devices": [_device(0), _device(1, CUT)]}, "names 1:2"),
        (["0", "MIG-a", "MIG-b", "MIG-x"], {"devices": [_device(0), _device(1, CUT)]}, "MIG-x"),
    ],
)
def test_a_stale_specification_is_made_anew(
    names: list[str], gpu: dict[str, Any], words: str
) -> None:
    (step,) = plan.make(_sight(_gpu(**gpu), spec=_spec(*names))).steps
    assert step.id == f"cdi-spec:{SPEC_PATH}"
    assert words in step.seen


@pytest.mark.parametrize(
    "names",
    [
        ["0", "1", "all"],
        ["GPU-0", "GPU-1"],
        ["gpu0", "gpu1", "all"],
        ["0", "1", "GPU-0", "GPU-1", "all"],
        ["0", "1", "my-own-name"],
    ],
)
def test_one_that_fits_is_left_alone_however_it_names(names: list[str]) -> None:
    assert _ids(_sight(spec=_spec(*names))) == []


def test_mig_devices_may_be_named_in_each_of_three_ways() -> None:
    gpu = _gpu(devices=[_device(0), _device(1, CUT)])
    for names in (["0", "1:0", "1:1"], ["GPU-0", "MIG-a", "MIG-b"], ["gpu0", "mig1:0", "mig1:1"]):
        assert _ids(_sight(gpu, spec=_spec(*names))) == []


def test_libraries_of_another_driver_are_stale() -> None:
    """Field case TK-029."""
    text = SPEC_TEXT.replace("550.163.01", "535.161.07")
    (step,) = plan.make(_sight(spec_texts={SPEC_PATH: text})).steps
    assert "libraries of driver 535.161.07, and the host has 550.163.01" in step.seen


def test_the_names_stay_as_they_were() -> None:
    (step,) = plan.make(_sight(spec=_spec("gpu0", "all"))).steps
    assert "--device-name-strategy=type-index" in step.commands[0]
    assert specs.strategies(["0", "GPU-0", "all"]) == ("index", "uuid")
    assert specs.strategies(["1:0", "MIG-a"]) == ("index", "uuid")


@pytest.mark.parametrize(
    "gpu",
    [
        {"source": "procfs"},
        {"driver": {"status": "mismatch"}},
        {"driver": {"status": "loaded", "hidden": ["/dev/nvidia1"]}},
        {"devices": [_device(0), {**_device(1), "error": "GPU is lost"}]},
        {"devices": [_device(0), {**_device(1), "uuid": None}]},
        {"devices": [_device(0), _device(1, {"current": True, "devices": None})]},
    ],
)
def test_where_the_driver_does_not_tell_of_all_gpus_no_specification_is_judged(
    gpu: dict[str, Any],
) -> None:
    assert _ids(_sight(_gpu(**gpu), spec=_spec("7"))) == []


def test_a_file_of_somebody_else_is_left_to_a_person() -> None:
    found = plan.make(_sight(spec=_spec("7", path="/etc/cdi/mine.yaml")))
    assert found.steps == ()
    (left,) = found.by_hand
    assert "--output=/etc/cdi/mine.yaml" in left.commands[0]


def test_other_vendors_and_broken_files_are_not_touched() -> None:
    assert _ids(_sight(spec=_spec("7", kind="amd.com/gpu"))) == []
    assert _ids(_sight(spec=_spec("7", status="invalid"))) == []


def test_mig_without_instances_has_nothing_to_describe() -> None:
    """Field case MG-006."""
    empty = {"supported": True, "current": True, "pending": True, "devices": []}
    gpu = _gpu(devices=[_device(0, empty), _device(1, empty)])
    found = plan.make(_sight(gpu, spec=_spec("0", "1")))
    assert found.steps == ()
    assert "no GPU has an instance" in found.by_hand[0].why


# -- refresh units -----------------------------------------------------------------------


def _units(**changes: UnitState) -> dict[str, UnitState]:
    sound = {"service": LOADED, "path": LOADED, "engine": ORDERED, **changes}
    return {
        plan.REFRESH_SERVICE: sound["service"],
        plan.REFRESH_PATH: sound["path"],
        plan.ENGINE: sound["engine"],
    }


def test_disabled_refresh_units_are_enabled_without_a_reload() -> None:
    disabled = replace(LOADED, file_state="disabled")
    steps = plan.make(_sight(units=_units(service=disabled, path=disabled))).steps
    commands = [command for step in steps for command in step.commands]
    assert commands == [
        "systemctl enable --no-reload nvidia-cdi-refresh.path",
        "systemctl start nvidia-cdi-refresh.path",
        "systemctl enable --no-reload nvidia-cdi-refresh.service",
    ]


@pytest.mark.parametrize(
    "unit",
    [UnitState(), replace(LOADED, file_state="masked"), replace(LOADED, file_state="static")],
)
def test_units_that_are_not_there_or_masked_are_somebodys_decision(unit: UnitState) -> None:
    assert _ids(_sight(units=_units(service=unit, path=unit))) == []


def test_docker_is_ordered_after_the_refresh() -> None:
    (step,) = plan.make(_sight(units=_units(engine=LOADED))).steps
    assert step.id == "cdi-order"
    assert "TimeoutStartSec" in plan.DROP_IN_TEXT


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (plan.DROP_IN, plan.DROP_IN_TEXT),
        (f"/etc/systemd/system/{plan.ENGINE}.d/a.conf", f"[Unit]\nAfter={plan.REFRESH_SERVICE}\n"),
    ],
)
def test_an_order_that_waits_for_the_next_boot_is_not_made_twice(path: str, text: str) -> None:
    assert _ids(_sight(units=_units(engine=LOADED), drop_ins={path: text})) == []


def test_an_order_that_would_be_a_cycle_is_refused() -> None:
    late = replace(LOADED, after=frozenset({"multi-user.target"}))
    found = plan.make(_sight(units=_units(engine=LOADED, service=late)))
    assert found.steps == ()
    assert "cycle" in found.by_hand[0].why


# -- containers --------------------------------------------------------------------------

GPU0 = DeviceNode("/dev/nvidia0", "c", 195, 0)
CONTROL = DeviceNode("/dev/nvidiactl", "c", 195, 255)
NULL = DeviceNode("/dev/null", "c", 1, 3)
VERBS = DeviceNode("/dev/infiniband/uverbs0", "c", 231, 192)
TRAINER = GpuContainer(
    id="a" * 64,
    name="trainer",
    namespace="moby",
    pid=42,
    group=f"/system.slice/docker-{'a' * 64}.scope",
    scope=f"docker-{'a' * 64}.scope",
    by_hook=True,
    given=(GPU0, CONTROL),
    lost=(GPU0, CONTROL),
    others=(NULL,),
    allowed=("DevicePolicy=strict", "DeviceAllow=/dev/char/1:3 rwm", "DeviceAllow=char-pts rwm"),
)


def test_a_container_gets_back_exactly_what_it_was_given_in_one_call() -> None:
    """Field case CG-001."""
    found = plan.make(_sight(containers=(TRAINER,)))
    (step,) = found.steps
    assert step.commands == (
        f"systemctl set-property --runtime {TRAINER.scope} "
        "'DeviceAllow=/dev/nvidia0 rwm' 'DeviceAllow=/dev/nvidiactl rwm'",
    )
    assert step.undo.endswith(
        "DeviceAllow= 'DeviceAllow=/dev/char/1:3 rwm' 'DeviceAllow=char-pts rwm'"
    )
    assert found.recreate == ("container trainer",)


def test_what_still_works_is_granted_again_with_what_was_lost() -> None:
    # Each set-property makes all rules anew: the second GPU would be lost by repairing the first.
    step = plan.make(_sight(containers=(replace(TRAINER, lost=(CONTROL,)),))).steps[0]
    assert "/dev/nvidia0" in step.commands[0]


def test_a_container_that_lost_nothing_is_left_alone() -> None:
    assert plan.make(_sight(containers=(replace(TRAINER, lost=()),))) == plan.Plan()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"others": (NULL, VERBS)}, "would take that from it"),
        ({"scope": None}, "cgroupfs"),
        ({"namespace": "k8s.io"}, "not Docker's"),
        ({"allowed": ()}, "systemd does not say"),
        ({"allowed": ("DevicePolicy=auto",)}, "a grant would begin to"),
        (
            {"allowed": ("DevicePolicy=auto", "DeviceAllow=/dev/fuse rw"), "others": (VERBS,)},
            "would take that from it",
        ),
        ({"decided": "/run/systemd/system.control/x"}, "somebody's decision"),
        ({"barred": ("/dev/nvidia0",)}, "somebody's decision"),
    ],
)
def test_where_a_repair_could_cost_something_a_person_decides(
    changes: dict[str, Any], words: str
) -> None:
    found = plan.make(_sight(containers=(replace(TRAINER, **changes),)))
    assert found.steps == ()
    assert words in found.by_hand[0].why


def test_what_cannot_be_told_is_no_fault() -> None:
    blind = replace(TRAINER, given=(), lost=(), others=(), unclear="its rules cannot be read")
    found = plan.make(_sight(containers=(blind,)))
    assert (found.steps, found.by_hand) == ((), ())
    assert "docker exec trainer nvidia-smi -L" in found.unclear[0]
    assert plan.make(_sight(containers=(replace(blind, by_hook=False),))) == plan.Plan()


def test_only_keeps_steps_by_kind_and_by_id() -> None:
    sick = _sight(_gpu(modules={"nvidia": True, "nvidia_uvm": False}), containers=(TRAINER,))
    assert [s.id for s in plan.make(sick, ["uvm"]).steps] == ["uvm"]
    assert [s.id for s in plan.make(sick, ["gpu-access:trainer"]).steps] == ["gpu-access:trainer"]
    # Healed by now, or on another host: nothing to do, and no error.
    assert plan.make(sick, ["gpu-access:gone"]).steps == ()
    with pytest.raises(plan.UnknownStepError, match="kinds are uvm"):
        plan.make(sick, ["gpus"])


# -- what was given ----------------------------------------------------------------------

CAPS = {(1, 3, None): 21, (1, 3, 0): 22}
PART = {"uuid": "MIG-a", "gpu_instance": 3, "compute_instance": 0}


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ("all", {"/dev/nvidia0", "/dev/nvidia1"}),
        ("0", {"/dev/nvidia0"}),
        ("GPU-1", {"/dev/nvidia1"}),
        ("0,GPU-1", {"/dev/nvidia0", "/dev/nvidia1"}),
        ("none", None),
        ("", None),
    ],
)
def test_a_request_is_the_nodes_of_its_gpus(value: str, paths: set[str] | None) -> None:
    nodes = {node.path for node in given.of_request(value, _gpu(), MAJORS, {})}
    controls = {"/dev/nvidiactl", "/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}
    assert nodes == (set() if paths is None else paths | controls)


@pytest.mark.parametrize("value", ["MIG-a", "1:0"])
def test_a_mig_device_is_its_gpu_and_two_capabilities(value: str) -> None:
    gpu = _gpu(devices=[_device(0), _device(1, {**CUT, "devices": [PART]})])
    nodes = {node.path for node in given.of_request(value, gpu, MAJORS, CAPS)}
    caps = {"/dev/nvidia-caps/nvidia-cap21", "/dev/nvidia-caps/nvidia-cap22"}
    assert caps | {"/dev/nvidia1"} <= nodes
    assert "/dev/nvidia0" not in nodes


def test_a_gpu_that_is_not_known_makes_the_request_unclear() -> None:
    with pytest.raises(given.UnclearError, match="GPU-9"):
        given.of_request("0,GPU-9", _gpu(), MAJORS, {})


@pytest.mark.parametrize(
    ("lines", "node", "allowed"),
    [
        (["DevicePolicy=auto"], GPU0, True),
        (["DevicePolicy=closed"], NULL, True),
        (["DevicePolicy=closed"], GPU0, False),
        (["DevicePolicy=strict"], NULL, False),
        (["DevicePolicy=strict", "DeviceAllow=/dev/nvidia0 rwm"], GPU0, True),
        (["DevicePolicy=strict", "DeviceAllow=/dev/nvidia0 r"], GPU0, False),
        (["DevicePolicy=strict", "DeviceAllow=/dev/char/195:0 rw"], GPU0, True),
        (["DevicePolicy=strict", "DeviceAllow=/dev/block/195:0 rw"], GPU0, False),
        (["DevicePolicy=strict", "DeviceAllow=char-nvidia* rw"], GPU0, True),
        (["DevicePolicy=strict", "DeviceAllow=char-195 rw"], GPU0, True),
        (["DevicePolicy=strict", "DeviceAllow=char-* m"], GPU0, False),
        (["DevicePolicy=strict", "DeviceAllow=char-infiniband_verbs rw"], VERBS, True),
        (["DevicePolicy=strict", "DeviceAllow=block-* rw"], VERBS, False),
    ],
)
def test_what_systemd_would_allow(lines: list[str], node: DeviceNode, allowed: bool) -> None:
    assert given.systemd_allows(lines, node, MAJORS) == allowed


def test_a_container_may_have_a_gpu_under_another_name() -> None:
    assert given.host_path(DeviceNode("/dev/nvidia0", "c", 195, 3)) == "/dev/nvidia3"
    assert given.host_path(CONTROL) == "/dev/nvidiactl"
