# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packages on the way back: which may change, and what the package manager is told."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_control import (
    EngineState,
)
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets import (
    apt,
    dnf,
    guard,
    occupants,
)
from ansible_collections.steadygpu.host.plugins.module_utils.packages import Installed, Package
from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    Done,
    RollbackError,
    Step,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back import (
    act_packages,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine import shim_process
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.acting import (
    Former,
    Programs,
    failed,
)

TOOLKIT = "nvidia-container-toolkit", "libnvidia-container1"
OLD = dict.fromkeys(TOOLKIT, "1.17.8-1")
MADISON = """\
nvidia-container-toolkit |   1.18.1-1 | https://nvidia.github.io/stable/deb/amd64  Packages
nvidia-container-toolkit |   1.17.8-1 | https://nvidia.github.io/stable/deb/amd64  Packages
libnvidia-container1 |   1.18.1-1 | https://nvidia.github.io/stable/deb/amd64  Packages
libnvidia-container1 |   1.17.8-1 | https://nvidia.github.io/stable/deb/amd64  Packages
 docker.io | 26.1.5+dfsg1-9 | http://packages.example/debian trixie/main amd64 Packages
 docker.io | 26.1.5+dfsg1-9 | http://packages.example/debian trixie/main Sources
"""
DOWN = """\
Inst libnvidia-container1 [1.18.1-1] (1.17.8-1 NVIDIA:stable [amd64]) []
Inst nvidia-container-toolkit [1.18.1-1] (1.17.8-1 NVIDIA:stable [amd64])
Conf libnvidia-container1 (1.17.8-1 NVIDIA:stable [amd64])
"""


@dataclass
class Machine:
    """What is installed, the programs that are there and with what they ran, and the containers."""

    root: Path
    manager: str = "dpkg"
    installed: dict[str, Package] = field(default_factory=dict)
    programs: Programs = field(default_factory=lambda: Programs({}))
    containers: list[str] = field(default_factory=list)
    half_done: dict[str, str] = field(default_factory=dict)
    environments: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def read_installed(self, _root: str = "/") -> Installed:
        return Installed(self.manager, self.installed, self.half_done)

    def interrupted(self, **half_done: str) -> None:
        """A dpkg was killed and has left these packages half done; a dash is written as ``_``."""
        updates = self.root / "var/lib/dpkg/updates"
        updates.mkdir(parents=True, exist_ok=True)
        (updates / "0001").write_text("")
        self.half_done = {name.replace("_", "-"): version for name, version in half_done.items()}

    def kept(self) -> set[str]:
        """The programs that were told to leave engines alone."""
        return {name for name, env in self.environments if env.get(guard.VARIABLE) == guard.UNITS}

    def has(self, version: str, *names: str) -> None:
        """These are installed."""
        self.installed.update({name: Package(version, False) for name in names})

    def install(self, packages: dict[str, str]) -> Done:
        step = Step("package_install", "", "", {"packages": packages})
        return act_packages.install(step, Former().context(str(self.root)), "/nowhere")

    def remove(self, *names: str) -> Done:
        step = Step("package_remove", "", "", {"packages": list(names)})
        return act_packages.remove(step, Former().context(str(self.root)), "/nowhere")

    def hold(self, packages: dict[str, bool]) -> Done:
        step = Step("hold", "", "", {"packages": packages})
        return act_packages.hold(step, Former().context(str(self.root)))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)

    def run(*arguments: Any, **more: Any) -> Completed:
        made.environments.append((arguments[0][0], dict(more.get("env") or {})))
        return made.programs.run(*arguments, **more)

    def containers(names: Any, _socket: str, _context: Any) -> list[str]:
        engine = act_packages._SETS["the engine"] & set(names)
        return made.containers if engine else []

    monkeypatch.setattr(apt, "run", run)
    monkeypatch.setattr(dnf, "run", run)
    monkeypatch.setattr(act_packages.packages, "read_installed", made.read_installed)
    monkeypatch.setattr(act_packages, "_containers", containers)
    return made


# -- apt ---------------------------------------------------------------------------------


def test_rb_001_the_whole_set_goes_down_in_one_transaction(machine: Machine) -> None:
    machine.has("1.18.1-1", *TOOLKIT)
    machine.programs = Programs({"apt-cache": MADISON, "apt-get -s": DOWN, "apt-get": ""})
    assert machine.install(OLD) == Done(True)
    real = [line for line in machine.programs.ran("apt-get") if " -s " not in line]
    assert len(real) == 1
    for words in (
        "nvidia-container-toolkit=1.17.8-1",
        "libnvidia-container1=1.17.8-1",
        "--allow-downgrades",
        "--force-confold",
    ):
        assert words in real[0]
    machine.installed.clear()
    machine.has("1.17.8-1", *TOOLKIT)
    assert machine.install(OLD) == Done()


def test_a_set_of_which_one_is_gone_from_the_sources_stays_whole(machine: Machine) -> None:
    machine.has("1.18.1-1", *TOOLKIT)
    madison = MADISON.replace("libnvidia-container1 |   1.17.8-1", "libnvidia-container1 | 1.17.0")
    machine.programs = Programs({"apt-cache": madison})
    done = machine.install(OLD)
    assert (done.changed, {left.subject for left in done.left}) == (False, set(TOOLKIT))
    for words in ("libnvidia-container1 1.17.8-1", "1.17.0, 1.18.1-1"):
        assert words in done.left[0].reason


def test_a_version_that_only_apts_cache_has_is_taken_from_there(machine: Machine) -> None:
    archives = machine.root / "var/cache/apt/archives"
    archives.mkdir(parents=True)
    (archives / "docker.io_1%3a20.10.24_amd64.deb").write_bytes(b"")
    machine.has("26.1.5", "docker.io")
    simulated = "Inst docker.io [26.1.5] (1:20.10.24 . [amd64])\n"
    machine.programs = Programs({"apt-cache": MADISON, "apt-get -s": simulated, "apt-get": ""})
    assert machine.install({"docker.io": "1:20.10.24"}) == Done(True)
    assert machine.programs.asked[-1].endswith("/docker.io_1%3a20.10.24_amd64.deb")


@pytest.mark.parametrize("also", ["Remv docker-compose [2.26]", "Inst runc [1.1] (1.0 x [amd64])"])
def test_what_apt_would_do_beyond_the_set_is_refused(machine: Machine, also: str) -> None:
    machine.has("1.18.1-1", *TOOLKIT)
    machine.programs = Programs({"apt-cache": MADISON, "apt-get -s": f"{DOWN}{also}\n"})
    done = machine.install(OLD)
    assert not done.changed
    assert also.split()[1] in done.left[0].reason


def test_a_new_dependency_is_no_reason_unless_it_is_a_driver(machine: Machine) -> None:
    machine.has("1.18.1-1", *TOOLKIT)
    new = "Inst libseccomp2 (2.6 Debian [amd64])\n"
    machine.programs = Programs({"apt-cache": MADISON, "apt-get -s": DOWN + new, "apt-get": ""})
    assert machine.install(OLD).changed
    new = "Inst nvidia-driver (550 NVIDIA [amd64])\n"
    machine.programs = Programs({"apt-cache": MADISON, "apt-get -s": DOWN + new})
    assert "nvidia-driver" in machine.install(OLD).left[0].reason


def test_an_engine_stays_while_there_are_containers(machine: Machine) -> None:
    machine.has("28.0", "docker.io")
    machine.has("1.18.1-1", *TOOLKIT)
    machine.containers = ["train", "stopped-one"]
    machine.programs = Programs({"apt-cache": MADISON, "apt-get -s": DOWN, "apt-get": ""})
    done = machine.install({**OLD, "docker.io": "26.1.5+dfsg1-9"})
    assert done.changed
    assert [(left.subject, left.pending) for left in done.left] == [("docker.io", True)]
    assert "train, stopped-one" in done.left[0].reason
    assert "docker.io=" not in machine.programs.asked[-1]
    machine.containers = []
    machine.programs = Programs({"apt-cache": MADISON, "apt-get -s": "", "apt-get": ""})
    assert machine.install({"docker.io": "26.1.5+dfsg1-9"}) == Done(True)


@pytest.mark.parametrize("name", ["nvidia-driver-550", "linux-image-6.1.0-28-amd64"])
def test_rb_004_pa_010_driver_and_kernel_are_not_changed_even_when_asked(
    machine: Machine, name: str
) -> None:
    machine.has("2", name)
    machine.programs = Programs({"apt-cache": f" {name} | 1 | http://x stable Packages\n"})
    for done in (machine.install({name: "1"}), machine.remove(name)):
        assert (done.changed, done.left[0].subject) == (False, name)
        assert "driver and the kernel" in done.left[0].reason


def test_an_apt_that_fails_is_an_error_with_its_words(machine: Machine) -> None:
    machine.has("1.18.1-1", *TOOLKIT)
    machine.programs = Programs(
        {"apt-cache": MADISON, "apt-get -s": DOWN, "apt-get": failed("E: no space left", 100)}
    )
    with pytest.raises(RollbackError, match="no space left"):
        machine.install(OLD)
    machine.programs = Programs({"apt-cache": MADISON, "apt-get -s": failed("E: unmet")})
    with pytest.raises(RollbackError, match="cannot be done: E: unmet"):
        machine.install(OLD)


def test_a_dpkg_that_was_killed_is_finished_first(machine: Machine) -> None:
    updates = machine.root / "var/lib/dpkg/updates"
    updates.mkdir(parents=True)
    machine.has("1.18.1-1", *TOOLKIT)
    answers: dict[str, Completed | str] = {"apt-cache": MADISON, "apt-get -s": DOWN, "apt-get": ""}
    machine.programs = Programs({**answers, "dpkg": ""})
    machine.install(OLD)
    assert machine.programs.ran("dpkg") == []
    (updates / "0001").write_text("")
    machine.install(OLD)
    assert "--configure -a" in machine.programs.ran("dpkg")[0]


def test_what_is_finished_and_brought_leaves_engines_alone(machine: Machine) -> None:
    machine.has("1.18.1-1", *TOOLKIT)
    answers: dict[str, Completed | str] = {"apt-cache": MADISON, "apt-get -s": DOWN, "apt-get": ""}
    machine.programs = Programs({**answers, "dpkg": ""})
    machine.interrupted(docker_io="28.5.2")
    machine.install(OLD)
    assert machine.kept() == {"dpkg", "apt-get"}
    assert not guard.left_behind(str(machine.root))


def test_an_engine_that_goes_back_is_restarted_by_its_packages(machine: Machine) -> None:
    machine.has("28.0", "docker.io")
    machine.programs = Programs({"apt-cache": MADISON, "apt-get -s": "", "apt-get": "", "dpkg": ""})
    machine.interrupted()
    assert machine.install({"docker.io": "26.1.5+dfsg1-9"}) == Done(True)
    assert machine.kept() == {"dpkg"}


def test_what_is_removed_leaves_engines_alone_unless_it_is_one(machine: Machine) -> None:
    machine.has("1.18.1-1", *TOOLKIT)
    machine.has("26.1.5", "docker.io")
    machine.programs = Programs({"apt-get": "", "dpkg-query": "", "dpkg --force": ""})
    machine.remove("docker.io")
    assert machine.kept() == set()
    machine.remove(*TOOLKIT)
    assert machine.kept() == {"apt-get"}
    machine.interrupted()
    machine.remove("docker.io")
    assert machine.kept() == {"apt-get", "dpkg"}


def test_a_driver_that_is_half_done_is_left_to_its_owner(machine: Machine) -> None:
    machine.has("1.18.1-1", *TOOLKIT)
    answers: dict[str, Completed | str] = {"apt-cache": MADISON, "apt-get": "", "dpkg": ""}
    machine.programs = Programs(answers)
    machine.interrupted(nvidia_kernel_dkms="550")
    for act in (lambda: machine.install(OLD), lambda: machine.remove(*TOOLKIT)):
        with pytest.raises(RollbackError, match="left nvidia-kernel-dkms half done"):
            act()
    # Where apt would finish it without a word of dpkg's journal.
    machine.programs = Programs({**answers, "apt-get -s": "Conf nvidia-kernel-dkms (550 x [a])\n"})
    for done in (machine.install(OLD), machine.remove(*TOOLKIT)):
        assert (done.changed, len(done.left)) == (False, 2)
        assert "nvidia-kernel-dkms" in done.left[0].reason
    assert [line for line in machine.programs.ran("apt-get") if " -s " not in line] == []
    assert machine.programs.ran("dpkg ") == []
    assert machine.kept() == set()


def test_the_apt_of_a_restore_that_was_killed_is_waited_for(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(machine.root)
    seen: list[bool] = []
    machine.has("1.18.1-1", *TOOLKIT)
    guard.install(root)

    def ends(_self: apt.Apt, _timeout_s: float) -> None:
        seen.append(guard.left_behind(root))
        machine.has("1.17.8-1", *TOOLKIT)

    monkeypatch.setattr(apt.Apt, "wait_until_free", ends)
    assert machine.install(OLD) == Done(True)
    assert (seen, guard.left_behind(root), machine.programs.asked) == ([True], False, [])


def test_packages_that_were_not_there_are_purged_and_edited_files_kept(machine: Machine) -> None:
    edited, same = machine.root / "etc/x.toml", machine.root / "etc/y.toml"
    edited.parent.mkdir()
    edited.write_text("mine")
    same.write_text("theirs")
    md5 = hashlib.md5(b"theirs", usedforsecurity=False).hexdigest()
    machine.has("1.18.1-1", *TOOLKIT)
    machine.programs = Programs(
        {
            "apt-get -s": "".join(f"Purg {name} [1.18.1-1]\n" for name in TOOLKIT),
            "dpkg-query": f"\n /etc/x.toml {md5}\n /etc/y.toml {md5}\n /etc/gone {md5} obsolete\n",
            "apt-get": "",
        }
    )
    done = machine.remove(*TOOLKIT, "never-there")
    assert (done.changed, done.left) == (True, ())
    assert [note.partition(" ")[0] for note in done.notes] == ["/etc/x.toml"]
    assert (machine.root / "etc/x.toml.steadygpu-conflict").read_text() == "mine"
    assert not (machine.root / "etc/y.toml.steadygpu-conflict").exists()
    assert " purge " in machine.programs.asked[-1]
    machine.installed.clear()
    assert machine.remove(*TOOLKIT) == Done()


def test_a_package_that_was_not_there_and_is_half_done_is_purged(machine: Machine) -> None:
    machine.has("26.1.5", "runc")
    machine.programs = Programs({"apt-get": "", "dpkg-query": "", "dpkg --force": ""})
    machine.interrupted(libnvidia_container1="1.18.1-1")
    assert machine.remove(*TOOLKIT).changed
    assert "--configure -a" in machine.programs.ran("dpkg --force")[0]
    assert machine.programs.ran("apt-get")[-1].endswith(" purge libnvidia-container1")


def test_dockers_images_and_volumes_outlive_its_package(machine: Machine) -> None:
    # The postrm of docker.io deletes /var/lib/docker when it is purged, later as well.
    machine.has("26.1.5", "docker.io", "containerd", "runc")
    machine.programs = Programs({"apt-get": "", "dpkg-query": ""})
    done = machine.remove("docker.io", "containerd", "runc")
    assert done.changed
    real = [line for line in machine.programs.ran("apt-get") if " -s " not in line]
    assert [line.endswith(" remove docker.io") for line in real] == [True, False]
    assert real[1].endswith(" purge containerd runc")
    assert "volumes" in done.notes[0]


def test_no_package_is_touched_while_a_daemon_reload_may_take_a_gpu(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine.root / "run/systemd/system").mkdir(parents=True)
    monkeypatch.setattr(act_packages.reload, "endangered", lambda _socket: ["train"])
    machine.has("1.18.1-1", *TOOLKIT)
    machine.programs = Programs({"apt-cache": MADISON, "apt-get": "", "dpkg-query": ""})
    for done in (machine.install(OLD), machine.remove(*TOOLKIT)):
        assert not done.changed
        assert {(left.subject, left.pending) for left in done.left} == {(n, True) for n in TOOLKIT}
        assert "take the GPU from train" in done.left[0].reason
    assert machine.programs.asked == []
    monkeypatch.setattr(act_packages.reload, "endangered", lambda _socket: [])
    assert machine.remove(*TOOLKIT).changed


def test_a_package_that_somebody_elses_needs_is_not_removed(machine: Machine) -> None:
    machine.has("1.18.1-1", *TOOLKIT)
    machine.programs = Programs({"apt-get -s": "Purg other [1]\nRemv libnvidia-container1 [1]\n"})
    done = machine.remove(*TOOLKIT)
    assert not done.changed
    assert "other" in done.left[0].reason


def test_an_engine_is_not_removed_while_there_are_containers(machine: Machine) -> None:
    machine.has("1", "docker.io", "containerd", "runc")
    machine.containers = ["old"]
    done = machine.remove("docker.io", "containerd", "runc")
    assert (done.changed, len(done.left), machine.programs.asked) == (False, 3, [])


def test_holds_come_and_go_where_they_differ(machine: Machine) -> None:
    machine.installed = {"a": Package("1", True), "b": Package("1", False), "c": Package("1", True)}
    machine.programs = Programs({"dpkg --set-selections": ""})
    assert machine.hold({"a": False, "b": True, "c": True, "gone": True}) == Done(True)
    assert machine.programs.stdin == ["a install\nb hold\n"]
    assert machine.hold({"c": True}) == Done()


def test_the_owner_of_a_program_is_found_on_a_merged_usr(machine: Machine) -> None:
    machine.programs = Programs(
        {"dpkg-query -S": failed("no path"), "dpkg-query -S /bin/x": "pkg: /bin/x\n"}
    )
    assert act_packages.owner_of("/usr/bin/x") == "pkg"
    assert act_packages.owner_of("/opt/y") is None


# -- dnf ---------------------------------------------------------------------------------


QUERY = """\
nvidia-container-toolkit\t0\t1.17.8-1

nvidia-container-toolkit\t0\t1.18.1-1
libnvidia-container1\t0\t1.17.8-1
docker-ce\t3\t28.5.2-1.el9
"""


def test_dnf_goes_down_in_one_transaction_without_driver_and_kernel(machine: Machine) -> None:
    machine.manager = "rpm"
    machine.has("1.18.1-1", *TOOLKIT)
    machine.has("3:29.0.0-1.el9", "docker-ce")
    machine.programs = Programs({"dnf": "", "dnf -y -q --disableplugin=versionlock repo": QUERY})
    assert machine.install({**OLD, "docker-ce": "3:28.5.2-1.el9"}) == Done(True)
    line = machine.programs.asked[-1]
    for words in (
        "install docker-ce-3:28.5.2-1.el9 libnvidia-container1-1.17.8-1 nvidia-container-toolkit-",
        "--exclude=kernel",
        "--exclude=cuda-drivers*",
    ):
        assert words in line


def test_dnf_removes_what_nobody_needs_and_nothing_else(machine: Machine) -> None:
    machine.manager = "rpm"
    machine.has("1", *TOOLKIT)
    machine.programs = Programs({"rpm -e --test": "", "dnf": ""})
    assert machine.remove(*TOOLKIT) == Done(True)
    assert "clean_requirements_on_remove=False remove" in machine.programs.asked[-1]
    machine.programs = Programs({"rpm -e --test": failed("is needed by (installed) other")})
    with pytest.raises(RollbackError, match="needed by"):
        machine.remove(*TOOLKIT)


def test_dnf_locks(machine: Machine) -> None:
    machine.manager = "rpm"
    machine.installed = {"a": Package("1", True), "b": Package("1", False)}
    machine.programs = Programs({"dnf": ""})
    assert machine.hold({"a": False, "b": True}) == Done(True)
    assert [line.partition("versionlock ")[2] for line in machine.programs.asked] == [
        "add b",
        "delete a",
    ]


def test_a_host_without_its_package_manager_is_an_error(machine: Machine) -> None:
    machine.has("1", *TOOLKIT)
    for act in (lambda: machine.install(OLD), lambda: machine.remove(*TOOLKIT)):
        with pytest.raises(RollbackError, match="no such program"):
            act()


# -- whom an engine's package would end ----------------------------------------------------


@pytest.mark.parametrize(
    ("status", "task", "wanted"),
    [
        ("stopped", False, ["old"]),
        ("absent", True, ["old"]),
        ("unreachable", False, ["those of an engine that does not answer (test)"]),
    ],
)
def test_every_container_counts_whether_it_runs_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, task: bool, wanted: list[str]
) -> None:
    where = tmp_path / "var/lib/docker/containers/c"
    where.mkdir(parents=True)
    (where / "hostconfig.json").write_text('{"Runtime": "runc"}')
    (where / "config.v2.json").write_text('{"Name": "/old"}')
    state = EngineState(status, reason="test")
    monkeypatch.setattr(occupants.DockerDaemon, "state", lambda _self: state)
    context = Former().context(str(tmp_path))
    assert act_packages._containers(["containerd"], "/nowhere", context) == wanted
    assert act_packages._containers(["nvidia-container-toolkit"], "/nowhere", context) == []


def test_containers_of_another_engine_count_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim_process.shim(tmp_path, identity="pod", namespace="k8s.io")
    shim_process.container(tmp_path, "/kubepods.slice/cri-containerd-pod.scope")
    monkeypatch.setattr(occupants.DockerDaemon, "state", lambda _self: EngineState("absent"))
    context = Former().context(str(tmp_path))
    assert act_packages._containers(["runc"], "/nowhere", context) == ["k8s.io/pod"]
