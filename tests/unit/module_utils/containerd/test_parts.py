# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.containerd import (
    shims as containerd_shims,
)
from ansible_collections.steadygpu.host.plugins.module_utils.containerd import (
    tool as containerd_tool,
)
from ansible_collections.steadygpu.host.plugins.module_utils.containerd.dropin import (
    Content,
    render,
)
from ansible_collections.steadygpu.host.plugins.module_utils.containerd.names import (
    Asked,
    settings,
    to_v2,
    to_v3,
)
from ansible_collections.steadygpu.host.plugins.module_utils.containerd.record import (
    Record,
    RecordError,
    dump_record,
    load_record,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.services import Service
from ansible_collections.steadygpu.host.plugins.module_utils.trees.leaves import flatten
from ansible_collections.steadygpu.host.plugins.module_utils.trees.toml_tree import parse

CRI2 = "io.containerd.grpc.v1.cri"
CRI3 = "io.containerd.cri.v1.runtime"
IMAGES = "io.containerd.cri.v1.images"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ((CRI2, "enable_cdi"), (CRI3, "enable_cdi")),
        ((CRI2, "sandbox_image"), (IMAGES, "pinned_images", "sandbox")),
        ((CRI2, "containerd", "snapshotter"), (IMAGES, "snapshotter")),
        (
            (CRI2, "containerd", "runtimes", "kata", "snapshotter"),
            (CRI3, "containerd", "runtimes", "kata", "snapshotter"),
        ),
        (
            (CRI2, "containerd", "runtimes", "kata", "sandbox_mode"),
            (CRI3, "containerd", "runtimes", "kata", "sandboxer"),
        ),
        ((CRI2, "registry", "config_path"), (IMAGES, "registry", "config_path")),
        ((CRI2, "stream_server_port"), (CRI2, "stream_server_port")),
        (
            ("io.containerd.internal.v1.restart", "interval"),
            ("io.containerd.monitor.container.v1.restart", "interval"),
        ),
    ],
)
def test_names_of_both_versions(old: tuple[str, ...], new: tuple[str, ...]) -> None:
    assert to_v3(("plugins", *old)) == ("plugins", *new)
    assert to_v2(("plugins", *new)) == ("plugins", *old)
    assert to_v3(("plugins", *new)) == ("plugins", *new)


def test_both_names_of_one_setting_are_one_setting() -> None:
    asked = Asked(config={"plugins": {CRI2: {"enable_cdi": True}}}, cdi=True)
    assert settings(asked) == {("plugins", CRI3, "enable_cdi"): True}


_NAME = st.text("ab.-_ '\"é", min_size=1, max_size=4)
_VALUE = st.one_of(
    st.booleans(), st.integers(-9, 9), st.text(max_size=5), st.lists(st.text(max_size=3))
)


@given(st.dictionaries(st.tuples(st.just("plugins"), _NAME, _NAME, _NAME), _VALUE, min_size=1))
def test_a_drop_in_says_what_it_was_made_of(leaves: dict[tuple[str, ...], object]) -> None:
    said = dict(flatten(parse(render(Content(3, leaves))).plain()))
    assert said.pop(("version",)) == 3
    assert said == leaves


def test_a_record_comes_back_as_it_was() -> None:
    record = Record({("plugins", "x", "y"): [1]}, "/d", "1f", "/etc/*.toml", '["a"]', True, True)
    assert load_record(dump_record(record)) == record
    assert load_record(None) == Record()
    with pytest.raises(RecordError, match="version 2"):
        load_record('{"version": 2}')


# -- asked of the host -----------------------------------------------------------------------

SHOWN = {
    "ExecStart": "{ path=/opt/bin/containerd ; argv[]=/opt/bin/containerd -c /etc/c.toml ; x=y }",
    "ExecStop": "{ path=/bin/kill ; argv[]=/bin/kill $MAINPID ; ignore_errors=no }",
    "KillMode": "process",
    "ControlGroup": "/system.slice/containerd.service",
    "RequiredBy": "docker.service gone.service",
    "ConsistsOf": "docker.service other.target",
}
# As Docker's package writes the process, and one of another containerd.
SHIM = "/usr/bin/containerd-shim-runc-v2\0-namespace\0moby\0-id\0{}\0-address\0{}\0"


def _process(root: Path, pid: int, command: str, group: str) -> None:
    directory = root / "proc" / str(pid)
    directory.mkdir(parents=True)
    (directory / "cmdline").write_text(command)
    (directory / "cgroup").write_text(f"0::{group}\n")


def test_shims_are_those_of_this_containerd(tmp_path: Path) -> None:
    ours, group = "/run/containerd/containerd.sock", "/system.slice/containerd.service"
    _process(tmp_path, 11, SHIM.format("a" * 64, "/var" + ours), group)
    _process(tmp_path, 12, SHIM.format("b" * 64, ours), "/system.slice/docker-b.scope")
    _process(tmp_path, 13, SHIM.format("c" * 64, "/run/k3s/containerd.sock"), group)
    _process(tmp_path, 14, "/usr/bin/containerd\0", group)
    found = containerd_shims.shims_of(ours, group, str(tmp_path))
    assert [(shim.name, shim.in_unit) for shim in found] == [
        ("moby/aaaaaaaaaaaa", True),
        ("moby/bbbbbbbbbbbb", False),
    ]


@pytest.mark.parametrize("packed", [True, False])
def test_pods_are_known_by_the_program_of_their_runtime(tmp_path: Path, packed: bool) -> None:
    program = "/usr/bin/nvidia-container-runtime"
    task = tmp_path / "run/containerd/io.containerd.runtime.v2.task/k8s.io" / ("d" * 64)
    task.mkdir(parents=True)
    value = base64.b64encode(b"\x0a" + program.encode()).decode() if packed else program
    (task / "options.json").write_text(json.dumps({"type_url": "runc", "value": value}))
    assert containerd_shims.pods_with(program, root=str(tmp_path)) == ["dddddddddddd"]
    assert containerd_shims.pods_with("/usr/bin/crun", root=str(tmp_path)) == []


def test_the_state_is_read_from_systemd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    services = {
        "containerd.service": Service("loaded", "active", flags={"-c": "/etc/c.toml"}),
        "docker.service": Service("loaded", "active"),
        "k3s.service": Service("loaded", "active"),
    }
    monkeypatch.setattr(
        containerd_tool,
        "read_services",
        lambda names: {name: services.get(name, Service()) for name in names},
    )
    monkeypatch.setattr(containerd_tool.units, "show", lambda _unit, _names: SHOWN)
    monkeypatch.setattr(containerd_tool.Containerd, "_release", lambda _self: "2.1.9")
    tool = containerd_tool.Containerd(docker_socket=str(tmp_path / "no.sock"), root=str(tmp_path))
    state = tool.state()
    assert (state.status, state.config_path, state.keeper) == ("running", "/etc/c.toml", "k3s")
    assert (state.kill_mode, state.stops) == ("process", ("/bin/kill $MAINPID",))
    assert state.along == ("docker.service",)
    assert state.docker_reason is not None  # it does not answer here
    assert tool._program == "/opt/bin/containerd"


ON = '{"live-restore": true}'


@pytest.mark.parametrize(
    ("enabled", "flags", "text", "stays"),
    [
        (True, {}, ON, True),
        # Edited, and not reloaded: the daemon lets them live, and its next start ends them.
        (True, {}, '{"live-restore": false}', False),
        (True, {}, "{}", False),
        (True, {}, None, False),
        (True, {}, "{", False),
        (False, {}, ON, False),
        (True, {"--live-restore": "true"}, None, True),
        (True, {"--live-restore": "false"}, None, False),
        (True, {"--config-file": "/srv/other.json"}, ON, False),
    ],
)
def test_containers_of_docker_have_to_outlive_its_start_too(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    enabled: bool,
    flags: dict[str, str],
    text: str | None,
    stays: bool,
) -> None:
    class Client:
        def containers(self, include_stopped: bool) -> list[dict[str, list[str]]]:
            return [{"Names": ["/train"]}]

        def info(self) -> dict[str, bool]:
            return {"LiveRestoreEnabled": enabled}

    if text is not None:
        (tmp_path / "etc/docker").mkdir(parents=True)
        (tmp_path / "etc/docker/daemon.json").write_text(text)
    monkeypatch.setattr(containerd_tool, "DockerClient", lambda _socket: Client())
    tool = containerd_tool.Containerd(root=str(tmp_path))
    docker = Service("loaded", "active", flags=flags)
    assert tool._docker(docker) == (("train",), stays, None)


def test_the_places_of_the_running_daemon_are_seen(tmp_path: Path) -> None:
    links = {
        "7/fd/3": "/dev/null",
        "7/fd/8": "/data/containerd/io.containerd.metadata.v1.bolt/meta.db",
        "11/cwd": f"/run/containerd/io.containerd.runtime.v2.task/moby/{'a' * 64}",
        "12/cwd": "/",
    }
    for name, target in links.items():
        (tmp_path / "proc" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "proc" / name).symlink_to(target)
    shims = [containerd_shims.Shim(pid, "moby", "a" * 64, in_unit=True) for pid in (10, 12, 11)]
    tool = containerd_tool.Containerd(root=str(tmp_path))
    service = Service("loaded", "active", main_pid=7)
    assert tool._live(service, shims) == ("/data/containerd", "/run/containerd")
    # A flag outdoes what files say.
    flags = {"--root": "/data/containerd", "--state": "/run/containerd"}
    assert tool._live(Service("loaded", "active", main_pid=7, flags=flags), shims) == (None, None)
    assert tool._live(Service(), []) == (None, None)


def test_plugins_of_ctr() -> None:
    text = (
        "TYPE                      ID      PLATFORMS      STATUS    \n"
        "io.containerd.nri.v1      nri     -              ok        \n"
        "io.containerd.grpc.v1     cri     linux/amd64    error     \n"
    )
    assert containerd_tool.parse_plugins(text) == {
        "io.containerd.nri.v1.nri": "ok",
        "io.containerd.grpc.v1.cri": "error",
    }
