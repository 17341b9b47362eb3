# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.containerd.names import Asked
from ansible_collections.steadygpu.host.plugins.module_utils.containerd.refusals import (
    ContainerdRefusedError,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.containerd.fake_containerd import (
    CRI2,
    CRI3,
    CRUN,
    IMAGES,
    NEW,
    OLD,
    STOCK,
    FakeContainerd,
)

IMPORTS = '# mine\nversion = 2\nimports = ["@/conf.d/*.toml"]  # keep\n'
# As NVIDIA's GPU operator writes it.
OPERATOR = """\
version = 2
[plugins."io.containerd.grpc.v1.cri".containerd]
  default_runtime_name = "nvidia"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
      BinaryName = "/usr/local/nvidia/toolkit/nvidia-container-runtime"
"""
LOG_LINE = {"plugins": {CRI3: {"max_container_log_line_size": 4096}}}


@pytest.fixture(params=[OLD, NEW])
def containerd(request: pytest.FixtureRequest, tmp_path: Path) -> FakeContainerd:
    host = FakeContainerd(tmp_path, request.param)
    host.write("config.toml", STOCK)
    return host


def _cri(host: FakeContainerd) -> str:
    return CRI2 if host.release == OLD else CRI3


def test_a_setting_is_set_and_all_else_stays(containerd: FakeContainerd) -> None:
    outcome = containerd.run(Asked(config=LOG_LINE))
    assert (outcome.applied, containerd.done) == ("restart", ["restart"])
    cri = containerd.value("plugins", _cri(containerd))
    assert cri["max_container_log_line_size"] == 4096
    assert cri["cni"]["conf_dir"] == "/etc/cni/net.d"
    assert "runc" in cri["containerd"]["runtimes"]
    assert STOCK.partition("\n")[2] in containerd.texts()["config.toml"]


def test_cg_012_a_runtime_gets_the_cgroup_driver_that_was_asked_for(
    containerd: FakeContainerd,
) -> None:
    containerd.run(CRUN)
    runtimes = containerd.value("plugins", _cri(containerd), "containerd", "runtimes")
    assert runtimes["crun"]["options"]["SystemdCgroup"] is True


def test_a_second_run_does_nothing(containerd: FakeContainerd) -> None:
    containerd.run(CRUN)
    before = containerd.texts()
    plan = containerd.plan(CRUN)
    assert (plan.changed, plan.how, plan.actions) == (False, "none", ())
    containerd.run(CRUN)
    assert (containerd.texts(), containerd.done) == (before, ["restart"])


def test_nothing_asked_touches_nothing_and_asks_little(containerd: FakeContainerd) -> None:
    plan = containerd.plan(Asked())
    assert (plan.changed, containerd.dumps) == (False, 0)
    containerd.write("config.toml", "[broken")
    assert not containerd.plan(Asked()).changed


def test_absent_gives_back_every_byte(containerd: FakeContainerd) -> None:
    before = containerd.texts()
    containerd.run(CRUN)
    containerd.run(Asked(config=LOG_LINE))
    containerd.run(Asked(), present=False)
    assert containerd.texts() == before
    assert not (containerd.world / "record.json").exists()
    assert not containerd.plan(Asked(), present=False).changed


def test_absent_takes_back_only_what_is_named(containerd: FakeContainerd) -> None:
    containerd.run(Asked(config=LOG_LINE, runtimes=CRUN.runtimes))
    containerd.run(Asked(config=LOG_LINE), present=False)
    cri = containerd.value("plugins", _cri(containerd))
    assert cri["max_container_log_line_size"] == 16384
    assert cri["containerd"]["runtimes"]["crun"]["options"]["BinaryName"] == "/usr/bin/crun"


def test_a_host_without_a_first_file_gets_one_and_loses_it_again(tmp_path: Path) -> None:
    host = FakeContainerd(tmp_path, NEW)
    host.run(CRUN)
    assert host.texts()["config.toml"].startswith("version = 3\n")
    assert CRI3 in host.texts()["conf.d/steadygpu.toml"]
    host.run(Asked(), present=False)
    assert host.texts() == {}


def test_what_is_right_already_stays_whose_it_is(containerd: FakeContainerd) -> None:
    asked = Asked(config={"plugins": {CRI3: {"cni": {"conf_dir": "/etc/cni/net.d"}}}})
    assert not containerd.plan(asked).changed
    assert containerd.plan(Asked(cdi=True)).changed == (containerd.release == OLD)


def test_complaint_04_a_foreign_rewrite_is_repaired(containerd: FakeContainerd) -> None:
    containerd.run(CRUN)
    containerd.write("config.toml", STOCK)  # somebody installed the package's file again
    containerd.write("conf.d/steadygpu.toml", "version = 2\n")
    plan = containerd.plan(CRUN)
    assert any("kept what somebody wrote" in action for action in plan.actions)
    containerd.run(CRUN)
    assert "crun" in containerd.value("plugins", _cri(containerd), "containerd", "runtimes")
    assert containerd.texts()["conf.d/steadygpu.toml.steadygpu-conflict"] == "version = 2\n"


def test_complaint_04_the_nvidia_runtime_of_somebody_else_stays(
    containerd: FakeContainerd,
) -> None:
    containerd.write("config.toml", IMPORTS)
    containerd.write("conf.d/99-nvidia.toml", OPERATOR)
    before = containerd.texts()
    containerd.run(CRUN)
    table = containerd.value("plugins", _cri(containerd), "containerd")
    assert table["default_runtime_name"] == "nvidia"
    assert set(table["runtimes"]) == {"runc", "nvidia", "crun"}
    texts = containerd.texts()
    assert {name: texts[name] for name in before} == before


@pytest.mark.parametrize("directory", ["conf.d", "config.d"])
def test_complaint_05_rt_015_the_directory_is_one_that_is_imported(
    containerd: FakeContainerd, directory: str
) -> None:
    containerd.write("config.toml", f'version = 2\nimports = ["@/{directory}/*.toml"]\n')
    other = {"conf.d": "config.d", "config.d": "conf.d"}[directory]
    containerd.write(f"{other}/99-nvidia.toml", OPERATOR)
    plan = containerd.plan(CRUN)
    assert plan.drop_in == str(containerd.world / f"etc/containerd/{directory}/steadygpu.toml")
    assert any(f"{other}/99-nvidia.toml" in warning for warning in plan.warnings)


def test_complaint_05_files_that_nobody_read_do_not_come_to_life(
    containerd: FakeContainerd,
) -> None:
    containerd.write("conf.d/99-nvidia.toml", OPERATOR)
    containerd.run(CRUN)
    runtimes = containerd.value("plugins", _cri(containerd), "containerd", "runtimes")
    assert set(runtimes) == {"runc", "crun"}


def test_complaint_06_imports_and_comments_stay(containerd: FakeContainerd) -> None:
    containerd.write("extra.toml", "version = 2\noom_score = -7\n")
    first = 'version = 2\n# ours\nimports = [\n  "@/extra.toml", # keep\n]\noom_score = 1 # why\n'
    containerd.write("config.toml", first)
    containerd.run(CRUN)
    text = containerd.texts()["config.toml"]
    for words in ("# ours", 'extra.toml", # keep', "oom_score = 1 # why", "conf.d/*.toml"):
        assert words in text
    assert containerd.value("oom_score") == -7
    containerd.run(Asked(), present=False)
    home = str(containerd.world / "etc/containerd")
    assert containerd.texts()["config.toml"] == first.replace("@", home)


@pytest.mark.parametrize(("version", "table"), [(2, CRI2), (3, CRI3)])
def test_complaint_06_rt_012_rt_013_the_version_is_that_of_the_first_file(
    tmp_path: Path, version: int, table: str
) -> None:
    host = FakeContainerd(tmp_path, NEW)
    host.write("config.toml", f"version = {version}\n")
    host.run(CRUN)
    text = host.texts()["conf.d/steadygpu.toml"]
    assert f"version = {version}\n" in text
    assert f'plugins."{table}"' in text
    host.write("config.toml", host.texts()["config.toml"].replace(f"= {version}", "= 3"))
    host.run(CRUN)  # containerd config migrate was run
    assert CRI3 in host.texts()["conf.d/steadygpu.toml"]
    assert host.done == ["restart"]  # the same settings under other names need none


def test_a_file_that_is_read_later_is_named(tmp_path: Path) -> None:
    host = FakeContainerd(tmp_path, NEW)
    host.write("config.toml", 'version = 2\nimports = ["@/conf.d/*.toml", "@/last.toml"]\n')
    host.write("last.toml", 'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\nenable_cdi=false')
    with pytest.raises(ContainerdRefusedError, match=r"enable_cdi is false in .*last\.toml"):
        host.plan(Asked(cdi=True))
    with pytest.raises(ContainerdRefusedError, match=r"last\.toml has it and is read after"):
        host.plan(Asked(cdi=True), takeover=True)


def test_somebody_elses_value_is_refused_and_can_be_taken_over(
    containerd: FakeContainerd,
) -> None:
    containerd.write("config.toml", IMPORTS)
    containerd.write("conf.d/99-nvidia.toml", OPERATOR)
    before = containerd.texts()
    mine = Asked(runtimes={"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}})
    with pytest.raises(ContainerdRefusedError) as caught:
        containerd.run(mine)
    for words in ("99-nvidia.toml", "/usr/local/nvidia", "/usr/bin/nvidia", "takeover"):
        assert words in str(caught.value)
    assert containerd.texts() == before
    containerd.run(mine, takeover=True)
    runtimes = containerd.value("plugins", _cri(containerd), "containerd", "runtimes")
    assert runtimes["nvidia"]["options"]["BinaryName"] == "/usr/bin/nvidia-container-runtime"
    containerd.run(Asked(), present=False)
    assert containerd.texts() == before


def test_a_later_name_is_read_last(containerd: FakeContainerd) -> None:
    containerd.write("config.toml", IMPORTS)
    containerd.write("conf.d/vendor.toml", OPERATOR)
    plan = containerd.plan(Asked(config=LOG_LINE))
    assert plan.drop_in is not None
    assert plan.drop_in.endswith("conf.d/zz-steadygpu.toml")


def test_what_containerd_1_repeats_follows_the_first_file(tmp_path: Path) -> None:
    host = FakeContainerd(tmp_path, OLD)
    host.write("config.toml", STOCK)
    host.run(CRUN)
    assert 'conf_dir = "/etc/cni/net.d"' in host.texts()["conf.d/steadygpu.toml"]
    text = host.texts()["config.toml"].replace("/etc/cni/net.d", "/srv/cni")
    host.write("config.toml", text)
    host.run(CRUN)
    assert host.value("plugins", CRI2, "cni", "conf_dir") == "/srv/cni"


def test_secrets_are_hidden_and_their_file_is_private(tmp_path: Path) -> None:
    host = FakeContainerd(tmp_path, NEW)
    auth = {"mirror.example.com": {"auth": {"username": "u", "password": "s3cr3t-word"}}}
    plan = host.plan(Asked(config={"plugins": {IMAGES: {"registry": {"configs": auth}}}}))
    assert "s3cr3t-word" not in " ".join(plan.actions)
    assert plan.files[0].mode == 0o600


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Asked(config={"version": 3}), "version cannot be set"),
        (Asked(config={"plugins": {"cri": {"enable_cdi": True}}}), "name of version 1"),
        (Asked(config={"plugins": {CRI3: {"enable_cdi": None}}}), "has no value"),
        (Asked(config={"plugins": {CRI3: {"enable_cdi": False}}}, cdi=True), "asked for twice"),
        (Asked(config={"plugins": {CRI3: {"enable_cdy": True}}}), "has no such setting"),
        (Asked(config={"gpu_scheduler": True}), "has no such setting"),
        (Asked(config={"plugins": {CRI3: {"enable_selinux": "yes"}}}), "cannot decode"),
        (Asked(runtimes={"x": {"type": "io.containerd.runtime.v1.linux"}}), "removed"),
        (Asked(runtimes={"x": {"shim": "y"}}), "runtimes.x.shim is not known"),
        (Asked(default_runtime="nope"), "default_runtime_name is nope"),
    ],
)
def test_what_no_container_could_start_with_is_refused(
    containerd: FakeContainerd, asked: Asked, words: str
) -> None:
    before = containerd.texts()
    with pytest.raises(ContainerdRefusedError, match=words):
        containerd.run(asked)
    assert (containerd.texts(), containerd.done) == (before, [])


def test_settings_of_a_plugin_that_is_off_are_refused(containerd: FakeContainerd) -> None:
    containerd.write("config.toml", f'version = 2\ndisabled_plugins = ["{CRI2}"]\n')
    with pytest.raises(ContainerdRefusedError, match="disabled_plugins switches that off"):
        containerd.plan(CRUN)
    containerd.run(Asked(config={"oom_score": -9}))
    assert containerd.value("oom_score") == -9


def test_RT_017_a_file_of_version_1_is_explained(  # noqa: N802
    containerd: FakeContainerd,
) -> None:
    containerd.write("config.toml", 'disabled_plugins = ["cri"]\n')  # as Docker's package has it
    with pytest.raises(ContainerdRefusedError, match="is of version 1"):
        containerd.plan(CRUN)


def test_disabled_plugins_add_up(containerd: FakeContainerd) -> None:
    one, two = "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.native"
    containerd.write("config.toml", f'version = 2\ndisabled_plugins = ["{one}"]\n')
    containerd.run(Asked(config={"disabled_plugins": [two]}))
    assert containerd.value("disabled_plugins") == [one, two]
    assert not containerd.plan(Asked(config={"disabled_plugins": [two]})).changed


def test_a_broken_file_is_named_with_its_place(containerd: FakeContainerd) -> None:
    containerd.write("config.toml", IMPORTS)
    containerd.write("conf.d/a.toml", "version = 2\n[plugins\n")
    with pytest.raises(ContainerdRefusedError, match=r"conf\.d/a\.toml:2:\d+"):
        containerd.plan(CRUN)


def test_old_shims_and_removed_keys_are_told(containerd: FakeContainerd) -> None:
    text = STOCK + (
        '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.old]\n'
        'runtime_type = "io.containerd.runtime.v1.linux"\n'
        '[plugins."io.containerd.runtime.v1.linux"]\nno_shim = false\n'
    )
    containerd.write("config.toml", text)
    warnings = " ".join(containerd.plan(Asked()).warnings)
    assert "the runtime old has runtime_type io.containerd.runtime.v1.linux" in warnings
    assert "the plugin io.containerd.runtime.v1.linux" in warnings
