# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What GPU containers may do, who would lose a GPU, and what is remembered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker import DockerInfo
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import (
    EngineUnreachableError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.services import Service
from ansible_collections.steadygpu.host.plugins.module_utils.hardening import judge, manage, read
from ansible_collections.steadygpu.host.plugins.module_utils.hardening.model import (
    Bundle,
    HardeningError,
    Host,
    Wish,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation import (
    device_rules,
)
from ansible_collections.steadygpu.host.plugins.module_utils.settings.survey import survey

KEY = "accept-nvidia-visible-devices-envvar-when-unprivileged"


def bundle(
    name: str, *, admin: bool = False, all_devices: bool = False, seccomp: bool = True
) -> Bundle:
    """As runc's config.json of Docker 28 has it, without what is not judged."""
    bounding = ["CAP_CHOWN", "CAP_NET_RAW", *(["CAP_SYS_ADMIN"] if admin else [])]
    rules = [{"allow": False, "access": "rwm"}, {"allow": True, "type": "c", "access": "m"}]
    if all_devices:
        rules = [{"allow": True, "access": "rwm"}]
    linux: dict[str, Any] = {
        "resources": {"devices": rules},
        "devices": [{"path": "/dev/nvidia0", "type": "c", "major": 195, "minor": 0}],
    }
    if seccomp:
        linux["seccomp"] = {"defaultAction": "SCMP_ACT_ERRNO"}
    spec = {"process": {"capabilities": {"bounding": bounding}}, "linux": linux}
    return Bundle(f"{name}-id", name, spec)


PLAIN = bundle("train")
ADMIN = bundle("dcgm-exporter", admin=True)
PRIVILEGED = bundle("notebook", admin=True, all_devices=True, seccomp=False)
OPEN = bundle("debug", seccomp=False)
OPTIONS = ("name=apparmor", "name=seccomp,profile=builtin", "name=cgroupns")


def test_each_container_is_named_with_what_it_may_do_once() -> None:
    found = judge.findings([PLAIN, ADMIN, PRIVILEGED, OPEN], ["dcgm-*"])
    assert [(one.container, one.rule, one.accepted) for one in found] == [
        ("dcgm-exporter", "cap-sys-admin", True),
        ("notebook", "privileged", False),
        ("debug", "seccomp-unconfined", False),
    ]
    assert "profiling metrics" in found[0].fix


def test_refuse_names_all_but_those_accepted(tmp_path: Path) -> None:
    host = Host(bundles=(ADMIN, PRIVILEGED, OPEN), docker="running", security_options=OPTIONS)
    wish = Wish(audit="refuse", accepted=("dcgm-exporter",))
    with pytest.raises(HardeningError) as error:
        manage.ensure(wish, host, False, str(tmp_path))
    said = str(error.value)
    assert "container notebook" in said
    assert "container debug" in said
    assert "dcgm" not in said.replace("DCGM's", "")
    assert not list(tmp_path.iterdir())
    done = manage.ensure(Wish(accepted=("dcgm-exporter",)), host, False, str(tmp_path))
    assert len(done.warnings) == 2
    assert len(done.findings) == 3


@pytest.mark.parametrize(
    ("options", "docker", "verdict", "effective"),
    [
        (OPTIONS, "running", "effective", "builtin"),
        (("name=seccomp,profile=default",), "running", "effective", "builtin"),
        (("name=seccomp,profile=/etc/own.json",), "running", "effective", "/etc/own.json"),
        (("name=cgroupns",), "running", "unsupported", "none"),
        (None, "stopped", "inert", None),
    ],
)
def test_the_profile_is_what_the_daemon_says(
    tmp_path: Path,
    options: tuple[str, ...] | None,
    docker: str,
    verdict: str,
    effective: str | None,
) -> None:
    host = Host(docker=docker, security_options=options)
    (said,) = manage.ensure(Wish(), host, True, str(tmp_path)).settings
    assert (said.verdict, said.effective) == (verdict, effective)


def test_row_47_a_daemon_without_a_filter_is_refused(tmp_path: Path) -> None:
    host = Host(docker="running", security_options=("name=seccomp,profile=unconfined",))
    with pytest.raises(HardeningError, match=r"Take seccomp-profile out of daemon\.json"):
        manage.ensure(Wish(), host, False, str(tmp_path))
    assert manage.ensure(Wish(keep_seccomp=False), host, True, str(tmp_path)).settings == []


def test_co_005_who_would_lose_a_gpu_is_named_first(tmp_path: Path) -> None:
    host = Host(docker="running", security_options=OPTIONS, asking={"vllm": True, "old": False})
    wish = Wish(env_injection=False)
    with pytest.raises(HardeningError, match=r"old \(stopped\), vllm \(runs\)"):
        manage.ensure(wish, host, False, str(tmp_path))
    done = manage.ensure(
        Wish(env_injection=False, losers_accepted=True), host, False, str(tmp_path)
    )
    assert done.toolkit == {KEY: False}
    # Once it is so, nobody loses anything by keeping it.
    kept = Host(docker="running", security_options=OPTIONS, asking={"vllm": True}, envvar_off=True)
    assert not manage.ensure(wish, kept, False, str(tmp_path)).actions


def test_what_was_set_is_remembered_until_it_is_dropped(tmp_path: Path) -> None:
    host = Host(docker="running", security_options=OPTIONS)
    root = str(tmp_path)
    both = Wish(env_injection=False, no_new_privileges=True)
    done = manage.ensure(both, host, False, root)
    assert (done.daemon, done.toolkit) == ({"no-new-privileges": True}, {KEY: False})
    assert not manage.ensure(both, host, False, root).actions
    fewer = manage.ensure(Wish(env_injection=False), host, False, root)
    assert (fewer.dropped_daemon, fewer.dropped_toolkit) == ({"no-new-privileges": True}, {})
    gone = manage.take_back(False, root)
    assert gone.dropped_toolkit == {KEY: False}
    assert not manage.take_back(False, root).actions


@pytest.mark.parametrize(
    ("host", "verdict", "words"),
    [
        (Host(), "inert", "does not run"),
        (Host(selinux="enforcing"), "unsupported", "cannot be listed"),
        (
            Host(selinux="enforcing", selinux_modules=("container",)),
            "unsupported",
            "would not start",
        ),
        (Host(selinux="permissive", selinux_modules=("nvidia-container",)), "effective", ""),
    ],
    ids=["off", "unknown", "no_module", "module"],
)
def test_row_142_the_selinux_type_only_where_its_module_is(
    tmp_path: Path, host: Host, verdict: str, words: str
) -> None:
    wish = Wish(keep_seccomp=False, selinux_type="nvidia_container_t")
    (said,) = manage.ensure(wish, host, False, str(tmp_path)).settings
    assert said.verdict == verdict
    assert words in said.reason
    # What cannot act is remembered, so that a later verify says it again.
    known = [one.setting.verdict for one in survey(str(tmp_path))]
    assert known == ([verdict] if verdict != "effective" else [])


def test_a_type_that_is_none_is_refused() -> None:
    with pytest.raises(HardeningError, match="wanted a type such as"):
        judge.parse_wish({"selinux_type": "a b"})


class Engine:
    """Docker with containers that got their GPUs in each way there is."""

    socket_path = "/nowhere"

    def __init__(self, *_words: Any) -> None:
        self.asked: list[str] = []

    def containers(self, include_stopped: bool = True) -> list[dict[str, Any]]:
        return [{"Id": name, "Names": [f"/{name}"]} for name in CONTAINERS]

    def inspect(self, container: str) -> dict[str, Any]:
        self.asked.append(container)
        return {"Id": container, "Name": f"/{container}", **CONTAINERS[container]}


_ASKS = {"Env": ["PATH=/bin", "NVIDIA_VISIBLE_DEVICES=all"]}
_GPUS = [{"Driver": "", "Capabilities": [["gpu"]]}]
CONTAINERS: Mapping[str, Mapping[str, Any]] = {
    "by-runtime": {
        "HostConfig": {"Runtime": "nvidia"},
        "Config": _ASKS,
        "State": {"Running": True},
    },
    "by-flag": {"HostConfig": {"DeviceRequests": _GPUS}, "State": {"Running": False}},
    "privileged": {"HostConfig": {"Runtime": "nvidia", "Privileged": True}, "Config": _ASKS},
    "admin": {"HostConfig": {"Runtime": "nvidia", "CapAdd": ["CAP_SYS_ADMIN"]}, "Config": _ASKS},
    "by-cdi": {
        "HostConfig": {
            "DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=0"]}],
            "Runtime": "runc",
        },
        "Config": _ASKS,
    },
    "none": {"HostConfig": {"Runtime": "runc"}, "Config": {}},
}


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    client = Engine()
    service = Service("loaded", "active", True)
    monkeypatch.setattr(read, "DockerClient", lambda socket: client)
    monkeypatch.setattr(read, "read_services", lambda names: {"docker.service": service})
    info = {"SecurityOptions": list(OPTIONS), "DefaultRuntime": "runc", "Runtimes": {}}
    monkeypatch.setattr(read, "read_docker", lambda *words: DockerInfo("running", info=info))
    monkeypatch.setattr(device_rules, "running", lambda root: [])
    return client


def test_only_unprivileged_users_of_the_variable_would_lose(tmp_path: Path, engine: Engine) -> None:
    host = read.read(Wish(env_injection=False), root=str(tmp_path))
    assert dict(host.asking) == {"by-runtime": True, "by-flag": False}
    assert host.security_options == OPTIONS


def test_nobody_is_inspected_where_nothing_is_taken(tmp_path: Path, engine: Engine) -> None:
    assert read.read(Wish(), root=str(tmp_path)).asking == {}
    assert engine.asked == []


def test_who_cannot_be_asked_is_not_put_at_risk(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(self: Engine, container: str) -> dict[str, Any]:
        raise EngineUnreachableError("no answer within 30 s")

    monkeypatch.setattr(Engine, "inspect", silent)
    with pytest.raises(HardeningError, match="who would lose a GPU is not known"):
        read.read(Wish(env_injection=False), root=str(tmp_path))


def test_containers_of_every_engine_are_seen_by_their_names(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def running(identity: str, one: Bundle, **annotations: str) -> device_rules.Running:
        spec = {**one.spec, "annotations": annotations}
        return device_rules.Running(identity, "", 1, "/", None, "runc", spec)

    pod = {"io.kubernetes.container.name": "trainer"}
    monkeypatch.setattr(
        device_rules,
        "running",
        lambda root: [
            running("by-runtime", PLAIN),
            running("c" * 64, ADMIN, **pod),
            running("d" * 64, bundle("x", all_devices=True)),
        ],
    )
    host = read.read(Wish(), root=str(tmp_path))
    assert [one.name for one in host.bundles] == ["by-runtime", "d" * 12, "trainer"]


def test_the_file_of_the_toolkit_tells_whether_it_is_so_already(
    tmp_path: Path, engine: Engine
) -> None:
    path = tmp_path / "etc/nvidia-container-runtime/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(f"#{KEY} = false\n")
    assert not read.read(Wish(), root=str(tmp_path)).envvar_off
    path.write_text(f"{KEY} = false\n")
    assert read.read(Wish(), root=str(tmp_path)).envvar_off


@pytest.mark.parametrize("docker", ["stopped", "unreachable"])
def test_a_docker_that_cannot_be_asked_is_a_refusal(tmp_path: Path, docker: str) -> None:
    host = Host(docker=docker, reason="docker.service is inactive")
    with pytest.raises(HardeningError, match=f"Docker is {docker}"):
        manage.ensure(Wish(env_injection=False), host, False, str(tmp_path))
    assert manage.ensure(Wish(env_injection=False), Host(), False, str(tmp_path)).toolkit


def test_pods_that_have_their_gpu_by_the_variable_are_named_too(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def running(name: str, runtime: str, **more: Any) -> device_rules.Running:
        process = {"env": ["NVIDIA_VISIBLE_DEVICES=GPU-1"], **more}
        spec = {"process": process, "annotations": {"io.kubernetes.container.name": name}}
        return device_rules.Running(name * 16, "k8s.io", 1, "/", None, runtime, spec)

    admin = {"capabilities": {"bounding": ["CAP_SYS_ADMIN"]}}
    pods = [
        running("legacy", "nvidia-container-runtime"),
        running("unknown", ""),
        running("by-cdi", "runc"),
        running("dcgm", "nvidia-container-runtime", **admin),
        running("none", "nvidia-container-runtime", env=["NVIDIA_VISIBLE_DEVICES=void"]),
    ]
    monkeypatch.setattr(device_rules, "running", lambda root: pods)
    host = read.read(Wish(env_injection=False), root=str(tmp_path))
    assert set(host.asking) == {"by-runtime", "by-flag", "legacy", "unknown"}
    assert set(read.read(Wish(), root=str(tmp_path)).asking) == set()
