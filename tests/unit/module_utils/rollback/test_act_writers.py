# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever this collection writes on a host it has vouched for, or it does not write."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import boot_unit, vouched
from ansible_collections.steadygpu.host.plugins.module_utils.engine import (
    cdi_generate,
    daemon_apply,
)
from ansible_collections.steadygpu.host.plugins.module_utils.hardware import bandwidth_file
from ansible_collections.steadygpu.host.plugins.module_utils.mig import boot, cdi, nvml_mig, targets
from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import Wanted
from ansible_collections.steadygpu.host.plugins.module_utils.nccl import fingerprint, manage
from ansible_collections.steadygpu.host.plugins.module_utils.topology import remembered
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.fake_docker import (
    NVIDIA,
    Host,
)

SPEC = "/etc/cdi/nvidia.yaml"
STALE = "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: 0\n- name: MIG-1\n"
UNIT = boot_unit.BootUnit("steadygpu-x.service", "# Written by x.\n")


def at(root: str, path: str) -> str:
    return root + path


def cdi_spec(root: str, present: bool) -> None:
    after = "cdiVersion: 0.6.0\n" if present else None
    cdi_generate.carry_out(cdi_generate.SpecPlan(at(root, SPEC), "before", after, ()), root)


def mig_spec(root: str, present: bool) -> None:
    nobody = nvml_mig.Reading("550.1", ())
    settings = cdi.Settings(path=at(root, SPEC), ctk="no-such-tool")
    if present:
        cdi.put_back("cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n", nobody, settings, root)
    else:
        os.makedirs(at(root, "/etc/cdi"), exist_ok=True)
        Path(at(root, SPEC)).write_text(STALE)
        cdi.refresh(nobody, settings, check_mode=False, root=root)


def mig_boot(root: str, present: bool) -> None:
    if present:
        boot.persist(boot.Config((targets.Target("GPU-1", Wanted(False)),)), False, root)
    else:
        boot.forget(False, root)


def unit(root: str, present: bool) -> None:
    (boot_unit.install if present else boot_unit.remove)(UNIT, False, root)


def bandwidth(root: str, present: bool) -> None:
    if present:
        bandwidth_file.write(remembered.Record("nvbandwidth", ["GPU-1"], [[None]], [[1.0]]), root)
    else:
        bandwidth_file.forget(root)


def nccl(root: str, present: bool) -> None:
    pair = at(root, "/etc/steadygpu/nccl/topology.xml"), at(root, "/etc/cdi/steadygpu-nccl.json")
    wanted = manage.Wanted(file_path=pair[0], spec_path=pair[1], root=root)
    now = fingerprint.Stamp(())
    there = [Path(path).read_text() if os.path.exists(path) else None for path in pair]
    found = manage.Found("absent", "absent", now, *there)
    after = ("<system/>\n", "{}\n") if present else (None, None)
    manage.carry_out(manage.Plan(wanted, found, *after, (), "", unit_actions=("the unit",)))


WRITERS: dict[str, tuple[Callable[[str, bool], None], list[str]]] = {
    "cdi_generate": (cdi_spec, [SPEC]),
    "mig.cdi": (mig_spec, [SPEC]),
    "mig.boot": (mig_boot, [boot.CONFIG, "/etc/systemd/system/steadygpu-mig.service"]),
    "boot_unit": (unit, [UNIT.path, UNIT.link]),
    "bandwidth_file": (bandwidth, ["/" + bandwidth_file.PATH]),
    "nccl": (
        nccl,
        [
            "/etc/steadygpu/nccl/topology.xml",
            "/etc/cdi/steadygpu-nccl.json",
            "/etc/systemd/system/steadygpu-nccl.service",
        ],
    ),
}


def token(path: str) -> str:
    if os.path.islink(path):
        return f"link:{os.readlink(path)}"
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_written_and_removed_is_vouched_for(tmp_path: Path, name: str) -> None:
    write, paths = WRITERS[name]
    root = str(tmp_path)
    write(root, True)
    said = vouched.since(0, root)
    assert {path: said[path][-1] for path in paths} == {
        path: token(at(root, path)) for path in paths
    }
    write(root, False)
    assert not any(os.path.lexists(at(root, path)) for path in paths)
    assert {vouched.since(0, root)[path][-1] for path in paths} == {"absent"}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("present", [True, False])
def test_what_cannot_be_vouched_for_is_not_changed(
    tmp_path: Path, name: str, present: bool
) -> None:
    write, paths = WRITERS[name]
    root = str(tmp_path)
    if not present:
        write(root, True)
    before = [os.path.lexists(at(root, path)) for path in paths]
    ledger = tmp_path / vouched.LEDGER.lstrip("/")
    ledger.parent.mkdir(parents=True, exist_ok=True)
    (ledger.parent / "sequence").write_text("damaged")
    with pytest.raises(OSError, match="sequence"):
        write(root, present)
    if name != "mig.cdi":  # whose stale file this test makes itself
        assert [os.path.lexists(at(root, path)) for path in paths] == before


def test_docker_is_vouched_for_with_all_that_stands_in_the_file_on_the_way(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write('{"labels": ["a=1"]}')
    docker = host.docker(running=("train",))
    seen: set[str] = set()
    reload = docker.reload

    def reload_and_look() -> None:
        seen.add(token(host.path))
        reload()

    docker.reload = reload_and_look  # type: ignore[method-assign]
    host.run(docker, {**NVIDIA, "default-runtime": "nvidia"})
    host.run(docker, {}, present=False)
    said = vouched.since(0)
    # With the new keys, with neutral ones in their place, and as before.
    assert len({*seen, token(host.path)}) == 3
    assert {*seen, token(host.path)} <= set(said[host.path])
    assert said[host.record][-1] == "absent"
    assert host.text() == '{"labels": ["a=1"]}'


def test_docker_keeps_its_file_when_it_cannot_be_vouched_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path)
    host.write('{"debug": true}')
    (tmp_path / "sequence").write_text("damaged")
    monkeypatch.setattr(vouched, "_ledger", lambda root: str(tmp_path / "vouched.jsonl"))
    with pytest.raises(daemon_apply.DaemonFailedError, match="sequence"):
        host.run(host.docker(), NVIDIA)
    assert host.text() == '{"debug": true}'
