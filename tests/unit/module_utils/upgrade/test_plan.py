# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.containerd import (
    config as containerd_config,
)
from ansible_collections.steadygpu.host.plugins.module_utils.upgrade import (
    judge,
    judge_regressions,
    offers,
    plan,
)
from ansible_collections.steadygpu.host.plugins.module_utils.upgrade.model import (
    Container,
    Daemon,
    Host,
    Item,
    Move,
    Shim,
)
from ansible_collections.steadygpu.host.plugins.module_utils.upgrade.wanted import Offers
from ansible_collections.steadygpu.host.tests.unit.module_utils.upgrade.upgrade_hosts import (
    FORKY,
    JOB,
    MADISON,
    RUNNING,
    TRIXIE,
    host,
    move,
)

UP = move(("26.1.5", "28.5.2"), ("1.7.24", "2.1.9"))
DOWN = move(("28.5.2", "26.1.5"), ("2.1.9", "1.7.24"))
BOTH = Offers(offers.parse_madison(MADISON))


def found(seen: Host, way: Move, packages: dict[str, str] | None = None) -> dict[str, Item]:
    """The items by id."""
    return {item.id: item for item in judge.judge(seen, way, packages or {})}


def blocking(seen: Host, way: Move, packages: dict[str, str] | None = None) -> set[str]:
    return {name for name, item in found(seen, way, packages).items() if item.severity == "error"}


def test_the_job_of_a_well_kept_host_blocks_nothing_up_or_down() -> None:
    assert blocking(host(), UP, FORKY) == set()
    there = host(versions=dict(UP.after, runc="1.3.6"), installed=FORKY)
    assert blocking(there, DOWN, TRIXIE) == set()
    assert found(host(), UP, FORKY)["live-restore-over-releases"].severity == "info"


def test_every_item_says_what_was_seen_why_and_what_to_do() -> None:
    bad = host(config={"graph": "/srv"}, info={}, endangered=("container old",), cgroup_version=1)
    for item in judge.judge(bad, move(("20.10.24", "29.5.0"), ("1.6.20", "2.3.0")), FORKY):
        assert all((item.id, item.title, item.seen, item.why, item.todo, item.source)), item


# -- what would die ----------------------------------------------------------------------


def test_complaint_39_without_live_restore_every_container_is_named_and_nothing_is_done() -> None:
    for changes in ({"info": {}}, {"config": {}}):
        item = found(host(**changes), UP)["live-restore-off"]
        assert item.severity == "error"
        assert "trainer" in item.seen
        assert "reload" in item.todo
    assert "live-restore-off" not in found(host(info={}, containers=()), UP)


def test_a_swarm_node_is_drained_first() -> None:
    info = {"Swarm": {"LocalNodeState": "active"}, "LiveRestoreEnabled": False}
    assert blocking(host(info=info), UP) == {"swarm-node"}


def test_an_engine_that_does_not_answer_is_not_taken_for_empty() -> None:
    gone = host(status="unreachable", reason="no answer within 30 s", containers=())
    assert "no answer within 30 s" in found(gone, UP)["engine-unreachable"].seen


def test_complaint_11_a_gpu_of_the_legacy_hook_stops_the_packages() -> None:
    item = found(host(endangered=("container old",)), UP)["daemon-reload-takes-gpu"]
    assert (item.severity, item.seen) == ("error", "container old")


def test_shims_that_systemd_would_kill() -> None:
    inside = (Shim("containerd.service", "containerd-shim-runc-v2"),)
    kept = Daemon(there=True, active=True, kill_mode="process")
    killed = replace(kept, kill_mode="control-group")
    assert "kill-mode" not in found(host(shims=inside, containerd=kept), UP)
    assert (
        "KillMode=control-group"
        in found(host(shims=inside, containerd=killed), UP)["kill-mode"].seen
    )
    assert "kill-mode" not in found(host(shims=(), containerd=killed), UP)


def test_complaint_37_units_that_systemd_stops_with_docker_are_named() -> None:
    bound = Daemon(there=True, active=True, kill_mode="process", bound=("trainer.service",))
    item = found(host(docker=bound), UP)["bound-to-docker"]
    assert (item.severity, item.seen) == ("error", "trainer.service")


@pytest.mark.parametrize(
    ("key", "value", "info", "blocks"),
    [
        ("storage-driver", "btrfs", {"Driver": "overlay2"}, True),
        ("features", {"containerd-snapshotter": True}, {"Driver": "overlay2"}, True),
        ("features", {"containerd-snapshotter": False}, {"Driver": "overlay2"}, False),
        ("exec-opts", ["native.cgroupdriver=cgroupfs"], {"CgroupDriver": "systemd"}, True),
        ("exec-opts", ["native.cgroupdriver=systemd"], {"CgroupDriver": "systemd"}, False),
    ],
)
def test_keys_that_wait_for_a_restart_and_that_live_restore_does_not_cover(
    key: str, value: Any, info: dict[str, Any], blocks: bool
) -> None:
    there = {"LiveRestoreEnabled": True, "ServerVersion": "26.1.5", **info}
    seen = host(config={"live-restore": True, key: value}, info=there)
    assert ("keys-in-waiting" in blocking(seen, UP)) is blocks
    assert "keys-in-waiting" not in found(replace(seen, containers=()), UP)


@pytest.mark.parametrize(
    ("config", "flags", "lies_in", "blocks"),
    [
        ({"data-root": "/srv/docker"}, {}, "/var/lib/docker", True),
        ({"data-root": "/srv/docker"}, {}, "/srv/docker", False),
        # Taken out of the file since the daemon started.
        ({}, {}, "/srv/docker", True),
        ({}, {"--data-root": "/srv/docker"}, "/srv/docker", False),
        ({}, {}, "/var/lib/docker", False),
    ],
)
def test_a_daemon_that_would_look_for_its_data_elsewhere(
    config: dict[str, Any], flags: dict[str, str], lies_in: str, blocks: bool
) -> None:
    info = {"LiveRestoreEnabled": True, "DockerRootDir": lies_in}
    seen = host(config={"live-restore": True, **config}, flags=flags, info=info)
    item = found(seen, UP).get("keys-in-waiting")
    assert (item is not None) is blocks
    assert item is None or item.seen == f"data-root (the data lies in {lies_in})"
    # A script may give flags that nobody sees.
    unseen = replace(seen, flags_known=False)
    assert ("keys-in-waiting" in found(unseen, UP)) is (blocks and bool(config))
    assert "keys-in-waiting" not in found(replace(seen, config_fault="no JSON"), UP)


def test_keys_of_which_the_daemon_tells_nothing_are_a_warning_where_the_file_is_newer() -> None:
    seen = host(config={"live-restore": True, "bip": "10.9.0.1/24"})
    assert "keys-maybe-in-waiting" not in found(seen, UP)
    item = found(replace(seen, config_newer=True), UP)["keys-maybe-in-waiting"]
    assert (item.severity, item.seen.endswith("bip")) == ("warning", True)


def test_stopped_containers_that_start_with_the_daemon_and_unknown_ones_are_named() -> None:
    asleep = replace(JOB, name="asleep", running=False, restart="always")
    unknown = Container("ab", "unknown", looked_into=False)
    items = found(host(containers=(JOB, asleep, unknown)), UP)
    assert items["starts-with-daemon"].seen.endswith(": asleep")
    assert items["not-looked-into"].seen == "unknown"
    calm = replace(asleep, restart="unless-stopped")
    assert not {"starts-with-daemon", "not-looked-into"} & set(found(host(containers=(calm,)), UP))


def test_releases_that_nobody_tried_are_a_warning() -> None:
    item = found(host(), move(("24.0.7", "28.5.2")))["live-restore-over-releases"]
    assert item.severity == "warning"
    assert "live-restore-over-releases" not in found(host(), move(("28.5.1", "28.5.2")))


# -- configuration -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "way", "blocks"),
    [
        ("graph", ("20.10.24", "24.0.0"), True),
        ("oom-score-adjust", ("25.0.0", "26.0.0"), True),
        ("api-cors-header", ("27.5.1", "28.0.0"), True),
        ("api-cors-header", ("26.1.5", "27.5.1"), False),
        ("cdi-spec-dirs", ("26.1.5", "24.0.7"), True),
        ("bip6", ("28.5.2", "26.1.5"), True),
        ("live-restore", ("20.10.24", "29.7.0"), False),
        ("no-such-key", ("20.10.24", "29.7.0"), False),
    ],
)
def test_rt_009_keys_that_the_other_release_does_not_know(
    key: str, way: tuple[str, str], blocks: bool
) -> None:
    seen = host(config={"live-restore": True, "features": {"cdi": True}, key: True})
    item = found(seen, move(way)).get("daemon-json-keys")
    assert (item is not None) is blocks
    assert item is None or item.seen == key


def test_flags_of_the_unit_count_like_keys() -> None:
    seen = host(flags={"--host": "fd://", "--oom-score-adjust": "-500", "--feature": "cdi=true"})
    assert found(seen, move(("25.0.0", "26.0.0")))["unit-flags"].seen == "--oom-score-adjust"
    assert found(seen, move(("28.5.2", "26.1.5")))["unit-flags"].seen == "--feature"


def test_a_secret_in_a_key_or_flag_is_not_shown() -> None:
    secret = "http://user:hunter2@proxy.example.com"
    seen = host(
        config={"proxies": {"http-proxy": secret}, "live-restore": True},
        flags={"--http-proxy": secret},
    )
    told = repr(judge.judge(seen, move(("26.1.5", "20.10.24")), {}))
    assert "proxies" in told
    assert "hunter2" not in told


def test_drivers_that_are_gone() -> None:
    aufs = host(info={"Driver": "aufs", "LiveRestoreEnabled": True})
    assert "storage-driver-gone" in blocking(aufs, move(("20.10.24", "24.0.0")))
    assert "storage-driver-gone" not in blocking(aufs, move(("20.10.24", "23.0.6")))
    logs = host(config={"log-driver": "logentries", "live-restore": True})
    assert "log-driver-gone" in blocking(logs, move(("24.0.7", "25.0.0")))


def test_a_broken_daemon_json_is_found_before_the_new_daemon_finds_it() -> None:
    seen = host(config_fault="/etc/docker/daemon.json: line 1 column 2: wanted a name")
    assert "daemon-json-unreadable" in blocking(seen, UP)


def test_rt_022_clients_below_the_floor_of_29() -> None:
    pinned = replace(JOB, api_pin="1.41")
    way = move(("28.5.2", "29.0.0"))
    item = found(host(containers=(pinned,), pins={"old.service": "1.43"}), way)["api-floor-pinned"]
    assert item.severity == "error"
    assert "container trainer (1.41), old.service (1.43)" in item.seen
    # From 29.3 on the floor is 1.40 again, and min-api-version lowers it before.
    assert "api-floor-pinned" not in found(host(containers=(pinned,)), move(("28.5.2", "29.3.0")))
    lowered = {"live-restore": True, "min-api-version": "1.24"}
    assert "api-floor-pinned" not in found(host(containers=(pinned,), config=lowered), way)


def test_who_holds_the_socket_is_named_when_the_floor_rises() -> None:
    portal = Container("ab", "portal", running=True, on_socket=True)
    item = found(host(containers=(portal,)), move(("28.5.2", "29.0.0")))["api-floor"]
    assert (item.severity, "portal" in item.seen) == ("warning", True)
    assert found(host(), move(("28.5.2", "29.0.0")))["api-floor"].severity == "info"
    assert "api-floor" not in found(host(containers=(portal,)), UP)


def test_a_client_pinned_above_what_an_older_daemon_speaks() -> None:
    pinned = replace(JOB, api_pin="1.48")
    assert "api-ceiling-pinned" in blocking(host(containers=(pinned,)), DOWN)
    assert "api-ceiling-pinned" not in found(host(containers=(pinned,)), UP)


@pytest.mark.parametrize(
    ("case", "runc", "more", "row", "severity"),
    [
        ("RC-006", "1.3.3", {"in_lxc": True}, "runc-procfs-in-lxc", "warning"),
        ("RC-006", "1.3.3", {}, "runc-procfs-in-lxc", None),
        ("RC-007", "1.3.3", {}, "runc-tmpfs-mode", "info"),
        ("RC-007", "1.3.4", {}, "runc-tmpfs-mode", None),
        ("RC-008", "1.3.4", {}, "runc-exec-stuck", "warning"),
        ("RC-008", "1.3.6+ds1-1", {}, "runc-exec-stuck", None),
        ("RC-010", "1.4.0", {}, "runc-pids-limit-zero", "info"),
    ],
)
def test_rc_006_007_008_010_what_the_other_runc_breaks_is_in_the_plan(
    case: str, runc: str, more: dict[str, Any], row: str, severity: str | None
) -> None:
    way = Move({"runc": "1.1.15"}, {"runc": runc})
    items = {one.id: one for one in judge_regressions.regressions(host(**more), way, {})}
    assert (items[row].severity if row in items else None) == severity, case
    back = Move({"runc": runc}, {"runc": "1.1.15"})
    here = host(installed={}, **more)
    assert row not in {one.id for one in judge_regressions.regressions(here, back, {})}


@pytest.mark.parametrize("value", ["0", "false", "F", "FALSE"])
def test_live_restore_that_the_unit_switches_off_is_off(value: str) -> None:
    told = {"LiveRestoreEnabled": True}
    assert not host(info=told, config={}, flags={"--live-restore": value}).live_restore
    assert host(info=told, config={}, flags={"--live-restore": "true"}).live_restore


def test_a_container_that_the_newer_containerd_started_blocks_the_way_down() -> None:
    unit, program = "containerd.service", "containerd-shim-runc-v2"
    old = Shim(unit, program, "moby", JOB.id)
    newer = Shim(unit, program, "moby", "ab" * 32, 3)
    pod = Shim(unit, program, "k8s.io", "cd" * 32, 3)
    ended = Shim(unit, program, "moby", "", 3)
    later = Container("ab" * 32, "later", running=True, pid=9)
    seen = host(containers=(JOB, later), shims=(old, newer, pod, ended))
    item = found(seen, DOWN)["shim-newer"]
    assert (item.severity, item.seen) == ("error", "it would end: later, k8s.io/cdcdcdcdcdcd")
    assert "shim-newer" not in found(seen, UP)
    assert "shim-newer" not in found(host(shims=(old, ended)), DOWN)


def test_images_in_containerd_are_not_lost_on_the_way_down() -> None:
    info: dict[str, Any] = {
        "LiveRestoreEnabled": True,
        "Driver": "overlayfs",
        "DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]],
    }
    way = move(("29.5.0", "28.5.2"))
    assert "image-store-lost" in blocking(host(info=info), way)
    said = {"live-restore": True, "features": {"containerd-snapshotter": True, "cdi": True}}
    assert "image-store-lost" not in blocking(host(info=info, config=said), way)
    assert "image-store-lost" in blocking(host(info=info, config=said), move(("29.5.0", "23.0.6")))
    assert found(host(), move(("28.5.2", "29.0.0")))["image-store-stays"].severity == "info"


# -- GPUs --------------------------------------------------------------------------------


def test_cdi_by_default_from_28_2_and_not_before() -> None:
    plain = host(config={"live-restore": True})
    assert found(plain, UP)["cdi-on-by-default"].severity == "info"
    assert "cdi-off-by-default" in blocking(plain, DOWN)
    assert (
        found(host(config={"live-restore": True}, containers=()), DOWN)[
            "cdi-off-by-default"
        ].severity
        == "warning"
    )
    assert "cdi-off-by-default" not in found(host(), DOWN)
    off = host(config={"live-restore": True, "features": {"cdi": False}}, containers=())
    assert "cdi-stays-off" in found(off, UP)
    assert "cdi-unknown" in blocking(host(), move(("26.1.5", "24.0.7")))


def test_moby_49989_restart_policies_of_cdi_containers_before_28_2() -> None:
    always = replace(JOB, restart="always")
    item = found(host(containers=(always,)), DOWN)["cdi-restart-policy"]
    assert (item.severity, "trainer" in item.seen) == ("warning", True)
    assert "cdi-restart-policy" not in found(host(), DOWN)


def test_what_serves_the_gpus_flag() -> None:
    flagged = replace(JOB, gpus="--gpus")
    both = {"nvidia-cdi-hook": True, "nvidia-container-runtime-hook": True}
    way = move(("28.5.2", "29.2.0"))
    bare = found(host(containers=(flagged,), programs=both), way)["gpus-by-cdi"]
    assert bare.severity == "warning"
    ready = found(host(containers=(flagged,), programs=both, cdi_devices=8), way)["gpus-by-cdi"]
    assert ready.severity == "info"
    back = move(("29.2.0", "28.5.2"))
    only_cdi = {"nvidia-cdi-hook": True}
    assert "gpus-hook-missing" in blocking(host(containers=(flagged,), programs=only_cdi), back)
    assert "gpus-hook-missing" not in found(host(containers=(flagged,), programs=both), back)


# -- containerd, runc, kernel ------------------------------------------------------------


def config(text: str) -> containerd_config.Config:
    return containerd_config.load(text, "/etc/containerd/config.toml")


def test_complaint_06_a_file_that_the_older_containerd_does_not_read_blocks_the_way_down() -> None:
    item = found(host(containerd_config=config("version = 3\n")), DOWN)["containerd-config-too-new"]
    assert item.severity == "error"
    assert "config.toml says version = 3" in item.seen
    up = found(host(containerd_config=config("version = 2\n")), UP)
    assert up["containerd-config-older"].severity == "info"
    assert "containerd-config-too-new" not in found(
        host(containerd_config=config("version = 2\n")), DOWN
    )


def test_shims_of_the_first_generation() -> None:
    text = (
        "version = 2\n"
        '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.old]\n'
        'runtime_type = "io.containerd.runtime.v1.linux"\n'
    )
    assert "runtime old" in found(host(containerd_config=config(text)), UP)["shims-gone"].seen
    alive = host(shims=(Shim("containerd.service", "containerd-shim"),))
    assert "1 running shim" in found(alive, UP)["shims-gone"].seen
    made = replace(JOB, runtime="io.containerd.runc.v1")
    assert "container trainer" in found(host(containers=(made,)), UP)["shims-gone"].seen
    assert "shims-gone" not in found(host(), UP)


def test_cg_016_the_soft_limit_of_open_files_falls_to_1024() -> None:
    assert found(host(), UP)["nofile-1024"].severity == "warning"
    limited = {"live-restore": True, "default-ulimits": {"nofile": {"Hard": 1, "Soft": 1}}}
    assert "nofile-1024" not in found(host(config=limited), UP)
    assert "nofile-1024" not in found(host(), move(("26.1.5", "28.5.2"), ("1.7.24", "1.7.29")))


def test_rc_005_a_runc_with_holes_that_the_present_one_has_not() -> None:
    good, bad = {"runc": "1.3.6"}, {"runc": "1.3.2"}
    way = move(("27.5.1", "28.5.2"))
    item = found(host(installed=good, os=None), way, bad)["runc-floor"]
    assert (item.severity, "CVE-2025-31133" in item.seen) == ("error", True)
    assert "runc-floor" not in found(host(installed=bad, os=None), way, good)
    assert "runc-floor" not in found(host(installed=bad, os=None), way, bad)
    down = found(host(installed=good, os=None), move(("28.5.2", "27.5.1")), bad)["runc-floor"]
    assert down.severity == "warning"


def test_cgroup_v1_is_deprecated_and_no_reason_to_refuse() -> None:
    item = found(host(cgroup_version=1), move(("28.5.2", "29.0.0")))["cgroup-v1"]
    assert item.severity == "warning"
    assert "cgroup-v1" not in found(host(cgroup_version=1), UP)


# -- the plan ----------------------------------------------------------------------------


def test_the_plan_names_packages_restarts_and_the_way() -> None:
    made = plan.make(host(), BOTH, "28.5.2", {}, {})
    told = made.as_dict()
    assert told["packages"] == FORKY
    assert told["packages_before"] == TRIXIE
    assert told["hops"] == ["26.1", "27.0", "28.5"]
    assert told["containers"] == {"trainer": 4711}
    assert told["actions"][-2:] == ["restart containerd.service", "restart docker.service"]
    assert told["refusal"] == ""
    there = host(installed=FORKY, versions={"docker": "28.5.2+dfsg4", "containerd": "2.1.9+ds1"})
    again = plan.make(there, BOTH, "28.5.2", {}, {}).as_dict()
    assert (again["actions"], again["findings"]) == ([], [])


def test_a_former_run_that_was_killed_before_the_restart_is_finished() -> None:
    old = Daemon(there=True, active=True, pid=1, kill_mode="process", stale=True)
    half = host(installed=FORKY, versions=RUNNING, docker=old)
    made = plan.make(half, BOTH, "28.5.2", {}, {})
    assert made.actions == ["restart docker.service"]
    assert "cdi-on-by-default" not in [item.id for item in made.items]
    blocked = plan.make(replace(half, info={}), BOTH, "28.5.2", {}, {})
    assert "trainer" in plan.refusal(blocked)


def test_what_a_killed_package_manager_left_half_done_is_brought() -> None:
    installed = {name: version for name, version in FORKY.items() if name != "docker.io"}
    cut = host(installed=installed, unfinished={"docker.io": FORKY["docker.io"]})
    told = plan.make(cut, BOTH, "28.5.2", {}, {}).as_dict()
    assert told["packages"] == FORKY
    assert told["packages_before"] == installed
    assert told["actions"] == [
        f"bring docker.io from half done to {FORKY['docker.io']}",
        "restart docker.service",
    ]
    # Cut before the daemon's turn: what was cut belongs to the set like the others.
    early = {**TRIXIE, "runc": FORKY["runc"]}
    del early["containerd"]
    cut = host(installed=early, unfinished={"containerd": FORKY["containerd"]})
    assert plan.make(cut, BOTH, "28.5.2", {}, {}).packages == FORKY
    assert plan.make(cut, BOTH, "26.1.5", {}, {}).packages == TRIXIE


def test_a_plan_tells_whether_docker_ran() -> None:
    for status in ("running", "stopped"):
        assert plan.make(host(status=status), BOTH, "28.5.2", {}, {}).as_dict()["status"] == status


def test_what_is_accepted_by_its_id_does_not_block() -> None:
    made = plan.make(host(info={}), BOTH, "28.5.2", {}, {"live-restore-off": "no jobs at night"})
    assert made.blockers == ()
    assert "live-restore-off" in [item.id for item in made.items]
    assert "live-restore-off" in plan.refusal(plan.make(host(info={}), BOTH, "28.5.2", {}, {}))


def test_a_way_back_that_no_source_has_is_told() -> None:
    gone = Offers(tuple(one for one in BOTH.listed if one.version not in TRIXIE.values()))
    items = {item.id: item for item in plan.make(host(), gone, "28.5.2", {}, {}).items}
    assert "containerd 1.7.24" in items["no-way-back"].seen
    kept = replace(gone, kept=frozenset(TRIXIE.items()))
    assert "no-way-back" not in [
        item.id for item in plan.make(host(), kept, "28.5.2", {}, {}).items
    ]


def test_the_hops_of_a_long_way() -> None:
    way = move(("20.10.24", "29.0.0"))
    assert judge.hops(way) == ("20.10", "23.0", "24.0", "25.0", "26.0", "27.0", "28.0", "29.0")
    assert judge.hops(move(("28.5.2", "26.1.5"))) == ("28.5", "27.0", "26.1")
    assert judge.hops(move(("28.5.1", "28.5.2"))) == ("28.5",)
