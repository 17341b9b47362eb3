# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A set of packages goes to its versions together, or nothing happens and it is said why."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.evidence import software
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets import (
    apply,
    apt,
    guard,
    managers,
    plan,
    record,
)
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets.model import (
    FetchError,
    MissingError,
    PackageError,
    RefusedError,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.package_sets.machine import (
    Machine,
    bring,
    foresee,
)

NAMES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)
NEW = dict.fromkeys(NAMES, "1.20.0-1")
OLD = dict.fromkeys(NAMES, "1.19.1-1")


@pytest.fixture
def toolkit(machine: Machine) -> Machine:
    """The sources offer two versions of the toolkit."""
    machine.offers = {name: ["1.20.0-1", "1.19.1-1"] for name in NAMES}
    return machine


def test_complaint_10_09_rb_001_the_set_moves_together_and_is_held(toolkit: Machine) -> None:
    toolkit.has(**{NAMES[0]: "1.19.1-1", NAMES[3]: "1.18.0-1"})
    outcome = bring(toolkit, NEW)
    assert toolkit.versions == NEW
    assert toolkit.held == set(NAMES)
    assert len(toolkit.transactions()) == 1
    assert outcome.plan.changed
    assert f"install {NAMES[0]} 1.20.0-1 (was 1.19.1-1)" in plan.told(outcome.plan)


def test_pa_011_held_packages_move_as_a_whole_and_are_held_again(toolkit: Machine) -> None:
    toolkit.has(held=True, **OLD)
    bring(toolkit, NEW)
    assert (toolkit.versions, toolkit.held) == (NEW, set(NAMES))


def test_complaint_36_a_second_run_changes_nothing_with_a_newer_repository(
    toolkit: Machine,
) -> None:
    bring(toolkit, OLD)
    toolkit.asked.clear()
    toolkit.offers = {name: ["1.21.0-1", *toolkit.offers[name]] for name in NAMES}
    outcome = bring(toolkit, OLD)
    assert not outcome.plan.changed
    # Not even asked: the package database tells it.
    assert toolkit.asked == []
    assert toolkit.versions == OLD


def test_complaint_21_a_version_that_nobody_has_is_named_with_those_there_are(
    toolkit: Machine,
) -> None:
    wanted = {**NEW, NAMES[3]: "1.22.0-1"}
    with pytest.raises(RefusedError) as error:
        bring(toolkit, wanted)
    for words in (f"{NAMES[3]} 1.22.0-1", "1.20.0-1, 1.19.1-1", "files"):
        assert words in str(error.value)
    assert toolkit.installed == {}


def test_check_mode_says_what_will_be_done_and_does_nothing(toolkit: Machine) -> None:
    toolkit.has(**OLD)
    outcome = foresee(toolkit, NEW)
    assert (outcome.after, toolkit.versions, toolkit.held) == (NEW, OLD, set())
    assert toolkit.transactions() == []
    assert not (toolkit.root / "var/lib/steadygpu").exists()
    told = plan.told(outcome.plan)
    assert plan.told(bring(toolkit, NEW).plan) == told
    assert apply.difference(outcome)["before"].splitlines()[0] == f"{NAMES[2]} 1.19.1-1"
    assert apply.difference(outcome)["after"].splitlines()[0] == f"{NAMES[2]} 1.20.0-1 (held)"


def test_old_lists_are_read_anew_but_not_in_check_mode(machine: Machine) -> None:
    machine.updated = {"runc": ["1.3.6-1"]}
    outcome = foresee(machine, {"runc": "1.3.6-1"})
    assert (outcome.plan.unknown, outcome.plan.changed) == (True, True)
    assert outcome.after == {"runc": "1.3.6-1"}
    assert machine.ran("apt-get -q -o DPkg::Lock::Timeout=60 update") == []
    bring(machine, {"runc": "1.3.6-1"})
    assert machine.versions == {"runc": "1.3.6-1"}
    with pytest.raises(MissingError, match=r"runc 9 \(there is 1\.3\.6-1\)"):
        bring(machine, {"runc": "9"}, update_cache=False)


def test_a_file_that_is_gone_from_the_source_is_looked_for_anew(machine: Machine) -> None:
    machine.offers = {"runc": ["1.3.6-1", "1.3.5-1"]}
    machine.updated = {"runc": ["1.3.6-2"]}
    machine.fails = ["E: Failed to fetch http://a/runc.deb  404  Not Found"]
    bring(machine, {"runc": "1.3.*"})
    assert machine.versions == {"runc": "1.3.6-2"}
    machine.fails = ["E: Failed to fetch http://a/runc.deb  404  Not Found"]
    machine.offers = {"runc": ["1.3.6-3"]}
    with pytest.raises(FetchError, match="404"):
        bring(machine, {"runc": "candidate"}, update_cache=False)


# -- beyond the set ------------------------------------------------------------------------


def test_what_changes_or_removes_others_is_refused_and_named(machine: Machine) -> None:
    machine.has(libc6="2.41", podman="5", runc="1.1")
    machine.offers = {"runc": ["1.3"]}
    machine.brings, machine.drops = {"libc6": "2.42"}, ["podman"]
    with pytest.raises(RefusedError) as error:
        bring(machine, {"runc": "1.3"})
    assert (error.value.would_change, error.value.would_remove) == (("libc6",), ("podman",))
    for words in ("change libc6 to 2.42", "remove podman", "also_change and also_remove"):
        assert words in str(error.value)
    assert machine.transactions() == []
    outcome = bring(machine, {"runc": "1.3"}, also_change=["libc*"], also_remove=["podman"])
    assert (outcome.plan.also_changed, outcome.plan.also_removed) == (["libc6"], ["podman"])
    assert machine.held == {"runc"}


def test_a_new_dependency_is_fine(machine: Machine) -> None:
    machine.offers = {"docker.io": ["28.5.2"]}
    machine.brings = {"tini": "0.19"}
    outcome = bring(machine, {"docker.io": "28.5.2"})
    assert outcome.plan.new == ["tini"]
    assert machine.held == {"docker.io"}


@pytest.mark.parametrize("name", ["nvidia-driver-580", "linux-image-6.12.0-cloud-amd64"])
def test_driver_and_kernel_are_never_changed(machine: Machine, name: str) -> None:
    machine.has(**{name: "1"})
    machine.offers = {"runc": ["1.3"], name: ["2"]}
    with pytest.raises(RefusedError, match="never changed here"):
        bring(machine, {name: "2"})
    machine.brings = {name: "2"}
    with pytest.raises(RefusedError, match=name):
        bring(machine, {"runc": "1.3"}, also_change=["*"])
    # But its owner may have it held.
    bring(machine, {name: "present"})
    assert (machine.versions, machine.held) == ({name: "1"}, {name})


def test_a_member_that_is_as_wanted_is_not_changed_by_the_way(machine: Machine) -> None:
    machine.has(containerd="1.7")
    machine.offers = {"docker.io": ["28"]}
    machine.brings = {"containerd": "2.1"}
    wanted = {"docker.io": "present", "containerd": "present"}
    for act in (foresee, bring):
        with pytest.raises(RefusedError) as error:
            act(machine, wanted)
        assert error.value.would_change == ("containerd",)
    # A version that was asked for outdoes what may change besides.
    with pytest.raises(RefusedError, match=r"change containerd to 2\.1"):
        bring(machine, {**wanted, "containerd": "1.*"}, also_change=["*"])
    assert machine.transactions() == []
    outcome = bring(machine, wanted, also_change=["containerd"])
    assert outcome.after == machine.versions == {"docker.io": "28", "containerd": "2.1"}
    assert "install containerd 2.1 (was 1.7)" in plan.told(outcome.plan)
    assert not bring(machine, wanted).plan.changed


def test_a_member_is_not_removed_by_the_way(machine: Machine) -> None:
    machine.has(containerd="1.7")
    machine.offers = {"docker-ce": ["29"]}
    machine.drops = ["containerd"]
    wanted = {"docker-ce": "29", "containerd": "present"}
    with pytest.raises(RefusedError) as error:
        bring(machine, wanted, also_remove=["*"])
    assert error.value.would_remove == ("containerd",)


def test_an_engine_is_not_removed_by_the_way_while_there_are_containers(machine: Machine) -> None:
    machine.has(containerd="1.7")
    machine.offers = {"docker-ce": ["29"]}
    machine.drops, machine.containers = ["containerd"], ["train"]
    with pytest.raises(RefusedError, match=r"containerd would be removed .* train"):
        bring(machine, {"docker-ce": "29"}, also_remove=["containerd"])
    machine.containers = []
    bring(machine, {"docker-ce": "29"}, also_remove=["containerd"])
    assert machine.versions == {"docker-ce": "29"}


# -- nobody's job --------------------------------------------------------------------------


def test_complaint_39_scripts_of_packages_leave_engines_alone(machine: Machine) -> None:
    machine.has(**{"docker.io": "26.1.5", "containerd": "1.7", "runc": "1.1"})
    machine.offers = {"docker.io": ["28.5.2"], "containerd": ["2.1"], "runc": ["1.3"]}
    machine.pids = {"docker.service": 10, "containerd.service": 11}
    wanted = {"docker.io": "28.5.2", "runc": "1.3", "containerd": "2.1"}
    assert foresee(machine, wanted).restart_pending == ["docker.service", "containerd.service"]
    outcome = bring(machine, wanted)
    assert machine.policy_said == ["docker.service 101", "containerd.service 101", "cron.service 0"]
    assert not (machine.root / "usr/sbin/policy-rc.d").exists()
    assert outcome.restart_pending == ["docker.service", "containerd.service"]
    assert outcome.restarted == []


def test_a_unit_that_was_restarted_all_the_same_is_told(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.has(**{"docker.io": "26.1.5"})
    machine.offers = {"docker.io": ["28.5.2"]}
    machine.pids = {"docker.service": 10}
    scripts = machine._scripts
    monkeypatch.setattr(
        machine, "_scripts", lambda env: machine.pids.update({"docker.service": 12}) or scripts(env)
    )
    outcome = bring(machine, {"docker.io": "28.5.2"})
    assert (outcome.restarted, outcome.restart_pending) == (["docker.service"], [])


def test_complaint_11_nothing_is_touched_while_a_reload_may_take_a_gpu(machine: Machine) -> None:
    machine.has(runc="1.1")
    machine.offers = {"runc": ["1.3"]}
    machine.victims = ["train"]
    for act in (bring, foresee):
        with pytest.raises(RefusedError, match="take the GPU from train"):
            act(machine, {"runc": "1.3"})
    # A hold runs no script.
    bring(machine, {"runc": "present"})
    assert (machine.versions, machine.held) == ({"runc": "1.1"}, {"runc"})


# -- somebody else's ------------------------------------------------------------------------


def test_a_newer_set_of_the_vendor_is_adopted(toolkit: Machine) -> None:
    toolkit.has(**NEW)
    outcome = bring(toolkit, OLD, hold=False)
    assert (outcome.plan.adopted, outcome.plan.changed) == (True, False)
    assert (toolkit.versions, toolkit.asked) == (NEW, [])
    with pytest.raises(RefusedError, match="on_newer: downgrade"):
        bring(toolkit, OLD, on_newer="refuse")
    assert bring(toolkit, OLD, on_newer="downgrade").after == OLD


def test_a_newer_set_of_ours_goes_down_when_less_is_wanted(toolkit: Machine) -> None:
    bring(toolkit, NEW)
    bring(toolkit, OLD)
    assert toolkit.versions == OLD
    assert toolkit.held == set(NAMES)


def test_a_set_of_which_one_is_newer_is_brought_together(toolkit: Machine) -> None:
    toolkit.has(**{**OLD, NAMES[0]: "1.20.0-1"})
    # All are at the wanted version or newer, but they do not fit each other.
    bring(toolkit, OLD)
    assert toolkit.versions == OLD


def test_a_pattern_keeps_what_matches_and_takes_the_newest(machine: Machine) -> None:
    machine.offers = {"docker-ce": ["5:29.0.1-1~x", "5:28.5.2-1~x", "5:28.5.1-1~x"]}
    bring(machine, {"docker-ce": "5:28.5.*"})
    assert machine.versions == {"docker-ce": "5:28.5.2-1~x"}
    machine.has(**{"docker-ce": "5:28.5.1-1~x"})
    bring(machine, {"docker-ce": "5:28.5.*"}, hold=False)
    assert machine.versions == {"docker-ce": "5:28.5.1-1~x"}
    machine.installed.clear()
    machine.has(**{"docker-ce": "5:29.0.1-1~x"})
    (machine.root / record.PATH.lstrip("/")).unlink()
    with pytest.raises(RefusedError, match="newer than wanted"):
        bring(machine, {"docker-ce": "5:28.5.*"})


def test_present_and_candidate(machine: Machine) -> None:
    machine.offers = {"docker.io": ["28.5.2"], "runc": ["1.3"]}
    machine.has(runc="1.1")
    outcome = bring(machine, {"docker.io": "present", "runc": "present"})
    assert machine.versions == outcome.after == {"docker.io": "28.5.2", "runc": "1.1"}
    assert bring(machine, {"runc": "candidate"}).after == {"runc": "1.3"}
    outcome = bring(machine, {"runc": "candidate"})
    assert (outcome.plan.changed, outcome.plan.transaction) == (False, False)


def test_holds_of_others_stay(machine: Machine) -> None:
    machine.has(held=True, runc="1.1")
    machine.has(tini="1")
    bring(machine, {"runc": "present", "tini": "present"})
    bring(machine, {"runc": "present", "tini": "present"}, hold=False)
    assert machine.held == {"runc"}


# -- files ---------------------------------------------------------------------------------


def test_complaint_33_files_are_enough_without_any_source(machine: Machine) -> None:
    directory = machine.root / "srv"
    directory.mkdir()
    for name in ("runc_1.3_amd64.deb", "tini_0.19_amd64.deb", "readme.txt"):
        (directory / name).write_text("")
    machine.offers = {"runc": ["9"]}
    outcome = bring(machine, {"runc": "1.3"}, files=[str(directory)], offline=True)
    assert outcome.after == {"runc": "1.3"}
    assert machine.ran("apt-cache") == []
    (line,) = machine.transactions()
    for words in (
        f"--with-source={directory}/tini_0.19_amd64.deb",
        "Dir::Etc::sourcelist=/dev/null",
        "runc=1.3",
    ):
        assert words in line
    with pytest.raises(RefusedError, match="the files hold no runc 2"):
        bring(machine, {"runc": "2"}, files=[str(directory)], offline=True)
    with pytest.raises(RefusedError, match="is not on this host"):
        bring(machine, {"runc": "2"}, files=[str(directory / "none.deb")])


def test_the_files_themselves_are_the_set_when_none_is_named(machine: Machine) -> None:
    path = machine.root / "runc_1.3_amd64.deb"
    path.write_text("")
    assert bring(machine, files=[str(path)]).after == {"runc": "1.3"}
    assert machine.held == {"runc"}
    assert not bring(machine, files=[str(path)]).plan.changed


def test_check_mode_before_the_files_were_copied(machine: Machine) -> None:
    outcome = foresee(machine, {"runc": "1.3"}, files=["/srv/none"], offline=True)
    assert (outcome.plan.unknown, outcome.after) == (True, {"runc": "1.3"})


# -- after a kill ----------------------------------------------------------------------------


def test_what_an_interrupted_dpkg_left_is_finished_under_guard(machine: Machine) -> None:
    machine.has(runc="1.3")
    (machine.root / "var/lib/dpkg/updates/0001").write_text("")
    machine.half_done = ["docker.io"]
    assert "docker.io" in plan.told(foresee(machine, {"runc": "1.3"}).plan)[0]
    outcome = bring(machine, {"runc": "1.3"})
    assert outcome.plan.unfinished == ("docker.io",)
    assert machine.policy_said[0] == "docker.service 101"
    assert not bring(machine, {"runc": "1.3"}).plan.changed


def test_a_driver_that_is_half_done_is_left_to_its_owner(machine: Machine) -> None:
    machine.has(runc="1.1")
    machine.offers = {"runc": ["1.3"]}
    machine.half_done = ["nvidia-kernel-dkms"]
    with pytest.raises(RefusedError, match="nvidia-kernel-dkms"):
        bring(machine, {"runc": "1.3"})
    (machine.root / "var/lib/dpkg/updates/0001").write_text("")
    with pytest.raises(RefusedError, match="dpkg --configure -a when nobody"):
        bring(machine, {"runc": "1.3"})


def test_another_package_manager_is_waited_for(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.offers = {"runc": ["1.3"]}
    holders = [4711, 4711, None, None]
    monkeypatch.setattr(apt, "_holder", lambda _path: holders.pop(0))
    monkeypatch.setattr(apt.time, "sleep", lambda _s: None)
    bring(machine, {"runc": "1.3"})
    monkeypatch.setattr(apt, "_holder", lambda _path: 4711)
    with pytest.raises(RefusedError, match="process 4711 has held"):
        bring(machine, {"runc": "1.4"}, lock_timeout_s=0)


def test_a_lock_of_another_process_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lock"
    assert apt._holder(str(path)) is None
    path.touch()
    assert apt._holder(str(path)) is None
    answer = struct.pack("hhqqi4x", 1, 0, 0, 0, 4711)
    monkeypatch.setattr(apt.fcntl, "fcntl", lambda *_arguments: answer)
    assert apt._holder(str(path)) == 4711


def test_the_guard_of_a_killed_run_stays_as_long_as_its_apt_works(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(machine.root)
    seen: list[bool] = []
    machine.has(runc="1.3")
    guard.install(root)

    def works(_self: apt.Apt, _timeout_s: float) -> None:
        seen.append(guard.left_behind(root))
        raise RefusedError("process 4711 has held the lock")

    with monkeypatch.context() as patch:
        patch.setattr(apt.Apt, "wait_until_free", works)
        with pytest.raises(RefusedError, match="4711"):
            bring(machine, {"runc": "present"})
    assert (seen, guard.left_behind(root)) == ([True], True)
    bring(machine, {"runc": "present"})
    assert not guard.left_behind(root)


def test_what_the_apt_of_a_killed_run_brought_meanwhile_is_there(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.offers = {"runc": ["1.3"]}
    monkeypatch.setattr(apt.Apt, "wait_until_free", lambda _self, _s: machine.has(runc="1.3"))
    bring(machine, {"runc": "1.3"})
    assert (machine.transactions(), machine.held) == ([], {"runc"})


def test_a_package_manager_at_work_is_seen(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not apt.Apt(str(machine.root)).busy()
    monkeypatch.setattr(apt, "_holder", lambda path: 4711 if path.endswith("/lock") else None)
    assert apt.Apt(str(machine.root)).busy()


def test_two_runs_of_ours_do_not_mix(machine: Machine) -> None:
    machine.has(runc="1.3")
    with managers.alone(str(machine.root), 1), pytest.raises(RefusedError, match="another run of"):
        bring(machine, {"runc": "present"}, lock_timeout_s=0)


def test_an_apt_that_did_not_do_what_it_said_is_an_error(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.offers = {"runc": ["1.3"]}
    machine.fails = ["E: Sub-process /usr/bin/dpkg returned an error code (1)"]
    with pytest.raises(PackageError, match="error code"):
        bring(machine, {"runc": "1.3"})
    assert not (machine.root / "usr/sbin/policy-rc.d").exists()
    frozen = machine.read_installed()
    monkeypatch.setattr(apply.packages, "read_installed", lambda *_a: frozen)
    with pytest.raises(PackageError, match=r"runc is at no version \(wanted 1\.3\)"):
        bring(machine, {"runc": "1.3"})


# -- taking back -----------------------------------------------------------------------------


def test_absent_takes_back_only_what_was_ours(machine: Machine) -> None:
    machine.has(containerd="1.7", other="1")
    machine.offers = {"docker.io": ["28"], "containerd": ["2.1"]}
    bring(machine, {"docker.io": "28", "containerd": "2.1"})
    bring(machine, {"other": "present"})
    machine.containers = ["old"]
    with pytest.raises(RefusedError, match=r"docker\.io would be removed .* old"):
        bring(machine, present=False)
    machine.containers = []
    outcome = bring(machine, present=False)
    assert machine.versions == {"containerd": "2.1", "other": "1"}
    assert machine.held == set()
    assert machine.policy_said[3:] == ["no policy"]
    assert outcome.plan.notes == ("containerd stays at 2.1: it was there before, at 1.7",)
    assert not (machine.root / record.PATH.lstrip("/")).exists()
    assert not bring(machine, present=False).plan.changed


def test_absent_of_single_packages(machine: Machine) -> None:
    machine.offers = {"runc": ["1"], "tini": ["1"]}
    bring(machine, {"runc": "1", "tini": "1"})
    machine.has(foreign="1")
    bring(machine, {"tini": "whatever", "foreign": "present"}, present=False)
    assert set(machine.versions) == {"runc", "foreign"}
    assert list(record.read(str(machine.root))) == ["runc"]


def test_what_is_taken_back_leaves_engines_alone(machine: Machine) -> None:
    machine.offers = {"tini": ["1"]}
    bring(machine, {"tini": "1"})
    machine.policy_said.clear()
    bring(machine, present=False)
    assert machine.policy_said == ["docker.service 101", "containerd.service 101", "cron.service 0"]
    assert machine.versions == {}


def test_a_record_that_cannot_be_understood_is_no_reason_to_guess(machine: Machine) -> None:
    path = machine.root / record.PATH.lstrip("/")
    path.parent.mkdir(parents=True)
    machine.has(runc="1")
    for text in ("{", "[]", json.dumps({"version": 2, "packages": {}})):
        path.write_text(text)
        with pytest.raises(RefusedError, match="cannot be understood"):
            bring(machine, {"runc": "1"})


def test_complaint_29_dr_003_upgrades_of_the_host_swap_no_driver_and_restart_no_engine(
    machine: Machine,
) -> None:
    machine.has(runc="1")
    wish = {"runc": "present"}
    assert len(foresee(machine, wish, guard_upgrades=True).plan.guards) == 2
    outcome = bring(machine, wish, guard_upgrades=True)
    assert plan.told(outcome.plan)[1:] == [
        "write /etc/needrestart/conf.d/steadygpu.conf",
        "write /etc/apt/apt.conf.d/52steadygpu",
    ]
    blacklist = (machine.root / "etc/apt/apt.conf.d/52steadygpu").read_text()
    patterns = software.parse_unattended(blacklist)["blacklist"]
    for name in ("nvidia-driver-580", "libnvidia-compute-580", "docker.io", "runc"):
        assert any(re.match(pattern, name) for pattern in patterns)
    assert not any(re.match(pattern, "runcible") for pattern in patterns)
    restart = (machine.root / "etc/needrestart/conf.d/steadygpu.conf").read_text()
    (expression,) = re.findall(r"qr\((.+)\)\}", restart)
    for unit in ("docker.service", "containerd.service", "nvidia-persistenced.service"):
        assert re.match(expression, unit)
    assert not re.match(expression, "cron.service")
    assert not bring(machine, wish, guard_upgrades=True).plan.changed
    bring(machine, present=False)
    assert not (machine.root / "etc/apt/apt.conf.d/52steadygpu").exists()


def test_a_file_that_is_written_is_a_change(machine: Machine) -> None:
    machine.has(held=True, runc="1")
    wish = {"runc": "present"}
    assert not bring(machine, wish).plan.changed
    assert foresee(machine, wish, guard_upgrades=True).plan.changed
    assert bring(machine, wish, guard_upgrades=True).plan.changed
    assert not bring(machine, wish, guard_upgrades=True).plan.changed
    assert bring(machine, present=False).plan.changed
    assert not bring(machine, present=False).plan.changed
