# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.rollback import scope
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    ABSENT,
    Checkpoint,
    Entry,
    Host,
    PackageState,
    Plan,
    Reason,
    RestoreOptions,
    RollbackError,
    State,
    UnitState,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back.plan import make_plan
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back.promises import (
    promised,
)

MACHINE = "0123456789abcdef"
DAEMON = "/etc/docker/daemon.json"
OWN = "/etc/steadygpu/agent.yml"
NO_OPTIONS = RestoreOptions()
RUNNING = UnitState("loaded", "active", "enabled")
STOPPED = UnitState("loaded", "inactive", "disabled")
MISSING = UnitState("not-found", "inactive", "")


def a_file(digest: str, mode: int = 0o644) -> Entry:
    return Entry("file", mode, digest=digest, size=1)


DIRECTORY = Entry("directory", 0o755)


def checkpoint(state: State, sequence: int = 1, machine: str = MACHINE) -> Checkpoint:
    host = Host(machine, "gpu01")
    return Checkpoint(f"{sequence}-00000000", sequence, 0.0, host, Reason(), state)


def files_plan(
    before: Mapping[str, Entry],
    now: Mapping[str, Entry],
    vouched: Mapping[str, Sequence[str]] | None = None,
    settled: Checkpoint | None = None,
    since_settled: Mapping[str, Sequence[str]] | None = None,
    window_open: bool = False,
) -> Plan:
    return make_plan(
        checkpoint(State(files=before)),
        State(files=now),
        vouched or {},
        settled,
        NO_OPTIONS,
        scope.areas(),
        MACHINE,
        since_settled=since_settled,
        window_open=window_open,
    )


def state_plan(
    before: State, now: State, options: RestoreOptions = NO_OPTIONS, machine: str = MACHINE
) -> Plan:
    target = checkpoint(before)
    return make_plan(target, now, {}, None, options, scope.areas(), machine)


def done(plan: Plan) -> list[tuple[str, str]]:
    return [(step.kind, step.subject) for step in plan.steps]


def left(plan: Plan) -> dict[str, str]:
    return {one.subject: one.reason for one in plan.left}


class TestSharedFiles:
    def test_what_only_others_changed_stays(self) -> None:
        plan = files_plan({DAEMON: a_file("old")}, {DAEMON: a_file("theirs")})
        assert not plan.steps
        assert "not by this collection" in left(plan)[DAEMON]

    def test_what_we_changed_goes_back(self) -> None:
        plan = files_plan({DAEMON: a_file("old")}, {DAEMON: a_file("ours")}, {DAEMON: ["ours"]})
        assert done(plan) == [("docker", DAEMON)]
        assert not plan.conflicts

    def test_what_we_and_then_others_changed_goes_back_and_theirs_is_kept(self) -> None:
        now = {DAEMON: a_file("theirs")}
        plan = files_plan({DAEMON: a_file("old")}, now, {DAEMON: ["ours"]})
        assert done(plan) == [("docker", DAEMON)]
        assert plan.conflicts == (DAEMON,)
        assert plan.steps[0].details["conflict"] is True

    def test_what_we_made_is_removed(self) -> None:
        path = "/etc/cdi/nvidia.yaml"
        plan = files_plan({}, {path: a_file("ours")}, {path: ["ours"]})
        assert done(plan) == [("file", path)]
        assert plan.steps[0].details["entry"]["kind"] == "absent"

    def test_what_others_made_stays(self) -> None:
        path = "/etc/cdi/vendor.yaml"
        plan = files_plan({}, {path: a_file("theirs")})
        assert not plan.steps
        assert path in left(plan)

    def test_what_we_removed_comes_back(self) -> None:
        plan = files_plan({DAEMON: a_file("old")}, {DAEMON: ABSENT}, {DAEMON: ["absent"]})
        assert done(plan) == [("docker", DAEMON)]
        assert not plan.conflicts

    def test_a_mode_that_others_changed_after_us_goes_back_without_a_copy(self) -> None:
        now = {DAEMON: a_file("old", 0o666)}
        plan = files_plan({DAEMON: a_file("old")}, now, {DAEMON: ["ours", "old"]})
        assert "mode 0644 (is 0666)" in plan.steps[0].text
        assert not plan.conflicts

    def test_a_link_in_its_place_is_nobody_s_to_undo(self) -> None:
        now = {DAEMON: Entry("link", 0o777, target="/srv/daemon.json")}
        plan = files_plan({DAEMON: a_file("old")}, now, {DAEMON: ["ours"]})
        assert not plan.steps
        assert "is a link now" in left(plan)[DAEMON]

    def test_what_an_earlier_restore_took_back_is_not_ours_any_more(self) -> None:
        # Ours, then restored (and settled so), then the user's.
        settled = checkpoint(State(files={DAEMON: a_file("old")}), sequence=3)
        before, now = {DAEMON: a_file("old")}, {DAEMON: a_file("theirs")}
        plan = files_plan(before, now, {DAEMON: ["ours", "old"]}, settled)
        assert not plan.steps
        again = files_plan(before, now, {DAEMON: ["ours"]}, settled, {DAEMON: ["ours"]})
        assert again.conflicts == (DAEMON,)

    def test_a_slice_has_an_actor_of_its_own_and_its_drop_ins_a_reload(self) -> None:
        unit = "/etc/systemd/system/gpu.slice"
        drop_in = "/etc/systemd/system/gpu.slice.d/50-weight.conf"
        now = {unit: a_file("a"), drop_in: a_file("b")}
        plan = files_plan({}, now, {unit: ["a"], drop_in: ["b"]})
        assert done(plan) == [("file", drop_in), ("slice", unit), ("systemd_reload", "systemd")]
        assert plan.steps[-1].details == {"paths": [drop_in]}


class TestOurFiles:
    def test_they_go_back_without_a_vouch_while_a_change_is_open(self) -> None:
        # Roles write such files with Ansible's template module.
        plan = files_plan({OWN: a_file("old")}, {OWN: a_file("new")}, window_open=True)
        assert done(plan) == [("file", OWN)]
        assert not plan.conflicts

    def test_an_edit_outside_of_a_change_is_kept(self) -> None:
        plan = files_plan({OWN: a_file("old")}, {OWN: a_file("theirs")})
        assert done(plan) == [("file", OWN)]
        assert plan.conflicts == (OWN,)

    def test_an_edit_over_what_we_vouched_for_is_kept(self) -> None:
        before, now = {OWN: a_file("old")}, {OWN: a_file("theirs")}
        plan = files_plan(before, now, {OWN: ["ours"]}, window_open=True)
        assert plan.conflicts == (OWN,)

    def test_what_a_confirmed_change_left_behind_is_ours(self) -> None:
        settled = checkpoint(State(files={OWN: a_file("new")}), sequence=2)
        plan = files_plan({OWN: a_file("old")}, {OWN: a_file("new")}, settled=settled)
        assert done(plan) == [("file", OWN)]
        assert not plan.conflicts

    def test_a_new_one_is_removed_even_if_the_target_does_not_name_it(self) -> None:
        plan = files_plan({}, {OWN: a_file("new")}, window_open=True)
        assert plan.steps[0].details["entry"]["kind"] == "absent"

    def test_a_declared_path_is_treated_as_ours(self) -> None:
        path = "/srv/app/config"
        plan = make_plan(
            checkpoint(State(files={path: a_file("old")})),
            State(files={path: a_file("new")}),
            {},
            None,
            NO_OPTIONS,
            scope.areas([path]),
            MACHINE,
            window_open=True,
        )
        assert done(plan) == [("file", path)]

    def test_what_is_kept_beside_a_file_is_a_persons(self) -> None:
        plan = files_plan({}, {OWN + ".steadygpu-conflict": a_file("theirs")})
        assert plan == Plan()

    def test_a_device_is_told_and_left(self) -> None:
        plan = files_plan({OWN: Entry("other")}, {OWN: ABSENT})
        assert not plan.steps
        assert OWN in left(plan)


def test_files_that_are_only_seen_stay() -> None:
    grub = "/etc/default/grub"
    plan = files_plan({grub: a_file("old")}, {grub: a_file("new")}, {grub: ["new"]})
    assert not plan.steps
    assert "never put back" in left(plan)[grub]


def test_what_an_older_program_did_not_look_at_stays() -> None:
    """A new area of a newer release is not "absent" in an old checkpoint."""
    new, known = "/etc/steadygpu/new.json", "/etc/sysctl.d/90-steadygpu.conf"
    target = replace(checkpoint(State()), looked=("/etc/sysctl.d/*steadygpu*.conf",))
    now = State(files={"/etc/steadygpu": DIRECTORY, new: a_file("x"), known: a_file("y")})
    plan = make_plan(target, now, {}, None, NO_OPTIONS, scope.areas(), MACHINE, window_open=True)
    assert done(plan) == [("file", known)]
    assert "was not looked at" in left(plan)[new]
    assert "was not looked at" in left(plan)["/etc/steadygpu"]


SPECIFICATION = "/run/cdi/nvidia.yaml"


def spec_plan(loaded: str, want: Entry = ABSENT) -> Plan:
    target = State({SPECIFICATION: want}, runtime={"driver": {"version": "550.1"}})
    now = State({SPECIFICATION: a_file("new")}, runtime={"driver": {"version": loaded}})
    vouched = {SPECIFICATION: ["new"]}
    areas = scope.areas()
    return make_plan(checkpoint(target), now, vouched, None, NO_OPTIONS, areas, MACHINE)


def test_a_cdi_specification_of_another_driver_does_not_come_back() -> None:
    assert done(spec_plan("550.1", a_file("old"))) == [("file", SPECIFICATION)]
    plan = spec_plan("570.2", a_file("old"))
    assert not plan.steps
    assert "nvidia-ctk cdi generate" in left(plan)[SPECIFICATION]
    assert done(spec_plan("570.2")) == [("file", SPECIFICATION)], "removing it breaks nothing"


class TestDirectories:
    def test_parents_are_made_before_files_and_outermost_first(self) -> None:
        before = {
            "/etc/steadygpu": DIRECTORY,
            "/etc/steadygpu/a": DIRECTORY,
            "/etc/steadygpu/a/x": a_file("x"),
        }
        plan = files_plan(before, {}, window_open=True)
        assert [step.subject for step in plan.steps] == sorted(before)

    def test_ours_are_removed_after_files_and_innermost_first(self) -> None:
        now = {
            "/etc/steadygpu": DIRECTORY,
            "/etc/steadygpu/a": DIRECTORY,
            "/etc/steadygpu/a/x": a_file("x"),
        }
        plan = files_plan({}, now, window_open=True)
        assert [step.subject for step in plan.steps] == sorted(now, reverse=True)

    def test_a_shared_one_that_we_filled_goes_when_it_is_empty_again(self) -> None:
        ours, theirs = "/etc/cdi/steadygpu-a.yaml", "/etc/cdi/vendor.yaml"
        now = {"/etc/cdi": DIRECTORY, ours: a_file("a")}
        before = {"/etc/cdi": ABSENT}
        plan = files_plan(before, now, window_open=True)
        assert [step.subject for step in plan.steps] == [ours, "/etc/cdi"]
        plan = files_plan(before, {**now, theirs: a_file("b")}, window_open=True)
        assert [step.subject for step in plan.steps] == [ours]
        assert theirs in left(plan)["/etc/cdi"]

    def test_one_that_a_package_made_stays(self) -> None:
        plan = files_plan({"/etc/docker": ABSENT}, {"/etc/docker": DIRECTORY})
        assert not plan.steps
        assert "/etc/docker" in left(plan)

    def test_daemon_json_goes_before_its_directory(self) -> None:
        now = {"/etc/docker": DIRECTORY, DAEMON: a_file("ours")}
        plan = files_plan({"/etc/docker": ABSENT, DAEMON: ABSENT}, now, {DAEMON: ["ours"]})
        assert done(plan) == [("docker", DAEMON), ("file", "/etc/docker")]


class TestUnits:
    def test_enabling_and_running_go_back(self) -> None:
        plan = state_plan(
            State(units={"a.service": RUNNING, "b.service": STOPPED}),
            State(units={"a.service": STOPPED, "b.service": RUNNING}),
        )
        assert [(step.subject, dict(step.details)) for step in plan.steps] == [
            ("a.service", {"enabled": "enabled", "active": "active"}),
            ("b.service", {"enabled": "disabled", "active": "inactive"}),
        ]
        assert plan.steps[0].text == "start and enable a.service"

    def test_what_a_package_brought_since_is_left_to_the_package(self) -> None:
        plan = state_plan(
            State(units={"docker.service": MISSING}), State(units={"docker.service": RUNNING})
        )
        assert plan == Plan()

    def test_what_is_gone_with_its_package_is_told(self) -> None:
        plan = state_plan(
            State(units={"docker.service": RUNNING}), State(units={"docker.service": MISSING})
        )
        assert not plan.steps
        assert "docker.service" in left(plan)

    def test_a_unit_of_ours_is_stopped_before_its_file_goes(self) -> None:
        unit = "steadygpu-mig.service"
        path = f"/etc/systemd/system/{unit}"
        now = State(files={path: a_file("x")}, units={unit: RUNNING})
        plan = make_plan(
            checkpoint(State()), now, {}, None, NO_OPTIONS, scope.areas(), MACHINE, window_open=True
        )
        assert done(plan) == [("unit", unit), ("file", path), ("systemd_reload", "systemd")]
        assert plan.steps[0].details == {"active": "inactive"}

    def test_a_unit_of_ours_comes_back_after_its_file(self) -> None:
        unit = "steadygpu-mig.service"
        path = f"/etc/systemd/system/{unit}"
        link = f"/etc/systemd/system/multi-user.target.wants/{unit}"
        before = State(
            files={path: a_file("x"), link: Entry("link", target=path)}, units={unit: RUNNING}
        )
        plan = make_plan(checkpoint(before), State(), {}, None, NO_OPTIONS, scope.areas(), MACHINE)
        assert [kind for kind, _subject in done(plan)] == ["file", "file", "systemd_reload", "unit"]
        # The link enables it.
        assert plan.steps[-1].details == {"active": "active"}

    def test_a_socket_is_stopped_before_it_could_wake_its_service(self) -> None:
        units = ("docker.service", "docker.socket")
        plan = state_plan(
            State(units=dict.fromkeys(units, STOPPED)),
            State(units=dict.fromkeys(units, RUNNING)),
        )
        assert [step.subject for step in plan.steps] == ["docker.socket", "docker.service"]

    def test_a_masked_unit_is_told(self) -> None:
        masked = replace(STOPPED, enabled="masked")
        plan = state_plan(State(units={"a.service": STOPPED}), State(units={"a.service": masked}))
        assert not plan.steps
        assert "masked" in left(plan)["a.service"]

    def test_docker_has_its_configuration_before_it_is_started(self) -> None:
        before = State(files={DAEMON: a_file("old")}, units={"docker.service": RUNNING})
        failed = replace(RUNNING, active="failed")
        now = State(files={DAEMON: a_file("bad")}, units={"docker.service": failed})
        vouched = {DAEMON: ["bad"]}
        plan = make_plan(checkpoint(before), now, vouched, None, NO_OPTIONS, scope.areas(), MACHINE)
        assert done(plan) == [("docker", DAEMON), ("unit", "docker.service")]


class TestLiveSettings:
    def test_a_value_goes_back_with_a_file_of_ours(self) -> None:
        path = "/etc/sysctl.d/90-steadygpu.conf"
        before = State(sysctls={"vm.swappiness": "60"})
        now = State(files={path: a_file("x")}, sysctls={"vm.swappiness": "1"})
        plan = make_plan(
            checkpoint(before), now, {}, None, NO_OPTIONS, scope.areas(), MACHINE, window_open=True
        )
        assert done(plan) == [("file", path), ("sysctl", "vm.swappiness")]
        assert plan.steps[1].details == {"value": "60"}

    def test_a_value_that_others_set_stays(self) -> None:
        plan = state_plan(
            State(sysctls={"vm.swappiness": "60"}), State(sysctls={"vm.swappiness": "1"})
        )
        assert not plan.steps
        assert "not by this collection" in left(plan)["vm.swappiness"]

    def test_a_value_that_was_set_by_hand_after_a_restore_stays(self) -> None:
        path = "/etc/sysctl.d/90-steadygpu.conf"
        before = State(sysctls={"vm.swappiness": "60"})
        plan = make_plan(
            checkpoint(before),
            State(sysctls={"vm.swappiness": "1"}),
            {path: ["ours", "absent"]},
            checkpoint(before, sequence=3),
            NO_OPTIONS,
            scope.areas(),
            MACHINE,
        )
        assert not plan.steps
        assert "vm.swappiness" in left(plan)

    def test_a_value_that_was_not_recorded_is_told(self) -> None:
        plan = state_plan(State(), State(sysctls={"net.core.somaxconn": "9"}))
        assert "net.core.somaxconn" in left(plan)

    def test_only_gpus_that_differ_change_their_layout(self) -> None:
        def gpu(uuid: str, mig: bool) -> dict[str, object]:
            return {"uuid": uuid, "mig": mig, "devices": None, "instances": None}

        before = State(mig=[gpu("GPU-a", False), gpu("GPU-b", True), gpu("GPU-gone", True)])
        now = State(mig=[gpu("GPU-a", True), gpu("GPU-b", True), gpu("GPU-new", True)])
        plan = state_plan(before, now)
        assert done(plan) == [("mig", "GPU-a")]
        assert plan.steps[0].details == {"gpus": [gpu("GPU-a", False)]}
        assert {"GPU-gone", "GPU-new"} <= {*left(plan)}

    def test_no_driver_on_either_side_is_told(self) -> None:
        layout = State(mig=[{"uuid": "GPU-a", "mig": False}])
        assert "MIG" in left(state_plan(layout, State()))
        assert "MIG" in left(state_plan(State(), layout))

    def test_the_kernel_command_line_is_told(self) -> None:
        plan = state_plan(State(kernel_cmdline="quiet"), State(kernel_cmdline="quiet iommu=pt"))
        assert not plan.steps
        assert "iommu=pt" in left(plan)["kernel command line"]


@pytest.mark.parametrize(
    ("subject", "kind"),
    [("systemd", "systemd_reload"), ("containerd.service", "containerd"), (DAEMON, "docker")],
)
def test_what_an_earlier_restore_left_is_tried_again_though_no_file_shows_it(
    subject: str, kind: str
) -> None:
    files = {DAEMON: a_file("old"), "/etc/containerd/config.toml": a_file("old")}
    target, now = checkpoint(State(files=files)), State(files=files)
    said = {subject: {"waits": "containers run", "said": 1.0}}
    plan = make_plan(target, now, {}, None, NO_OPTIONS, scope.areas(), MACHINE, again=said)
    assert done(plan) == [(kind, subject)]
    assert not state_plan(target.state, now).steps


def test_secrets_of_the_kernel_do_not_appear_in_what_is_told() -> None:
    name = "net.ipv4.tcp_fastopen_key"
    before = State(kernel_cmdline="quiet rd.iscsi.password=hunter22", sysctls={name: "a1b2c3d4-1"})
    now = State(kernel_cmdline="quiet", sysctls={name: "a1b2c3d4-2"})
    ours = {"/etc/sysctl.d/90-steadygpu.conf": ["ours"]}
    for vouched in ({}, ours):
        plan = make_plan(checkpoint(before), now, vouched, None, NO_OPTIONS, scope.areas(), MACHINE)
        told = " ".join([*left(plan).values(), *(step.text for step in plan.steps)])
        assert name in [*left(plan), *(step.subject for step in plan.steps)]
        assert "hunter22" not in told
        assert "a1b2c3d4" not in told


class TestPackages:
    before = State(
        packages={
            "docker.io": PackageState("26.1", True),
            "runc": PackageState("1.1", False),
            "nvidia-driver": PackageState("550", False),
        }
    )
    now = State(
        packages={
            "docker.io": PackageState("28.5", False),
            "nvidia-container-toolkit": PackageState("1.17", True),
            "nvidia-driver": PackageState("560", False),
        }
    )

    def test_they_stay_unless_told(self) -> None:
        plan = state_plan(self.before, self.now)
        assert not plan.steps
        assert "packages: true" in left(plan)["docker.io"]

    def test_they_go_back_in_one_transaction_when_told(self) -> None:
        plan = state_plan(self.before, self.now, RestoreOptions(packages=True))
        *steps, reload = plan.steps
        assert reload.kind == "systemd_reload", "units of the removed package are gone"
        assert [(step.kind, step.details["packages"]) for step in steps] == [
            ("package_install", {"docker.io": "26.1", "runc": "1.1"}),
            ("package_remove", ["nvidia-container-toolkit"]),
            ("hold", {"docker.io": True}),
        ]

    def test_what_an_interrupted_package_manager_left_goes_or_is_brought(self) -> None:
        before = State(packages={"runc": PackageState("1.1", False)})
        half = PackageState("", False)
        now = State(packages={"runc": half, "libnvidia-container1": half})
        steps = state_plan(before, now, RestoreOptions(packages=True)).steps
        assert [(step.kind, step.details["packages"]) for step in steps[:2]] == [
            ("package_install", {"runc": "1.1"}),
            ("package_remove", ["libnvidia-container1"]),
        ]
        plan = state_plan(now, before, RestoreOptions(packages=True))
        assert "half done" in left(plan)["runc"]
        assert not plan.steps or plan.steps[0].kind != "package_install"

    def test_the_driver_never_goes_back(self) -> None:
        plan = state_plan(self.before, self.now, RestoreOptions(packages=True))
        assert "never changed by a restore" in left(plan)["nvidia-driver"]


class TestWhatIsNotComparable:
    def test_another_machine_is_refused(self) -> None:
        with pytest.raises(RollbackError, match="another machine"):
            state_plan(State(), State(), machine="fedcba")

    def test_another_machine_gives_files_but_no_packages_units_and_mig(self) -> None:
        before = State(
            files={OWN: a_file("x")},
            units={"a.service": RUNNING},
            packages={"runc": PackageState("1", False)},
            mig=[{"uuid": "GPU-a", "mig": True}],
        )
        options = RestoreOptions(packages=True, other_host=True)
        plan = state_plan(before, State(mig=[]), options, machine="fedcba")
        assert done(plan) == [("file", OWN)]
        assert {*left(plan)} == {"units", "packages", "mig"}

    @pytest.mark.parametrize("side", ["before", "now"])
    def test_a_part_that_was_not_read_is_skipped_and_told(self, side: str) -> None:
        whole = State(units={"a.service": RUNNING})
        none = State(unknown={"units": "systemd did not answer"})
        plan = state_plan(none, whole) if side == "before" else state_plan(whole, none)
        assert not plan.steps
        (told,) = plan.left
        assert "systemd did not answer" in told.reason
        assert told.pending == (side == "now")


def test_what_a_plan_promises_is_the_target() -> None:
    before = State(
        files={OWN: a_file("1" * 64), DAEMON: ABSENT},
        units={"a.service": RUNNING},
        packages={"runc": PackageState("1", True)},
        mig=[{"uuid": "GPU-a", "mig": True}],
    )
    now = State(
        files={OWN: ABSENT, DAEMON: a_file("2" * 64)},
        units={"a.service": STOPPED},
        packages={"runc": PackageState("2", False), "containerd": PackageState("2", False)},
        mig=[{"uuid": "GPU-a", "mig": False}],
    )
    options = RestoreOptions(packages=True)
    vouched = {DAEMON: ["2" * 64]}
    plan = make_plan(checkpoint(before), now, vouched, None, options, scope.areas(), MACHINE)
    assert promised(now, plan) == before
