# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Classes of memory bandwidth, offered only where a CPU can hold them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker import DockerInfo
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import (
    DockerClient,
    EngineUnreachableError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.services import Service
from ansible_collections.steadygpu.host.plugins.module_utils.numa_memory import manage, resctrl
from ansible_collections.steadygpu.host.plugins.module_utils.numa_memory.model import NumaError
from ansible_collections.steadygpu.host.plugins.module_utils.numa_memory.parse import parse_wish
from ansible_collections.steadygpu.host.plugins.module_utils.settings.survey import survey

INTEL = "vendor_id\t: GenuineIntel\nflags\t\t: fpu cat_l3 mba\n"
# As a Xeon of two sockets shows them (kernel filesystems/resctrl.rst).
SCHEMATA = "    MB:0= 100;1= 100\n    L3:0=7fff;1=7fff\n"


def write(root: Path, path: str, text: str) -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


@pytest.fixture
def host(tmp_path: Path) -> Path:
    write(tmp_path, "proc/cpuinfo", INTEL)
    write(tmp_path, "proc/mounts", "resctrl /sys/fs/resctrl resctrl rw 0 0\n")
    write(tmp_path, "sys/fs/resctrl/schemata", SCHEMATA)
    for name, text in (("bandwidth_gran", "10"), ("min_bandwidth", "10"), ("num_closids", "8")):
        write(tmp_path, f"sys/fs/resctrl/info/MB/{name}", f"{text}\n")
    return tmp_path


def ensure(root: Path, classes: dict[str, Any], version: str = "28.5.2") -> manage.Result:
    wish = parse_wish({"memory_bandwidth": classes, "docker_version": version})
    return manage.ensure(wish, False, str(root))


def test_a_class_is_offered_by_cdi_and_held_by_the_kernel(host: Path) -> None:
    done = ensure(host, {"half": "50%", "tenth": 10})
    assert [(one.name, one.wanted, one.verdict) for one in done.outcome.settings] == [
        ("memory bandwidth half", "MB:0=50;1=50", "effective"),
        ("memory bandwidth tenth", "MB:0=10;1=10", "effective"),
    ]
    text = (host / "etc/cdi/steadygpu-membw.yaml").read_text()
    spec = json.loads(text.partition("\n")[2])
    assert (spec["cdiVersion"], spec["kind"]) == ("0.7.0", "steadygpu.dev/membw")
    assert spec["devices"][0] == {
        "name": "half",
        "containerEdits": {"intelRdt": {"closID": "steadygpu-mb50", "memBwSchema": "MB:0=50;1=50"}},
    }
    # The trial leaves no group.
    assert sorted(path.name for path in (host / "sys/fs/resctrl").iterdir()) == ["info", "schemata"]
    assert not ensure(host, {"half": 50, "tenth": 10}).outcome.actions


def test_a_group_that_is_there_is_looked_at_and_stays(host: Path) -> None:
    write(host, "sys/fs/resctrl/steadygpu-mb50/schemata", "MB:0=  50;1=  50\n")
    ensure(host, {"half": 50})
    assert (host / "sys/fs/resctrl/steadygpu-mb50/schemata").exists()
    write(host, "sys/fs/resctrl/steadygpu-mb50/schemata", "MB:0=50;1=60\n")
    with pytest.raises(NumaError, match="the kernel holds MB:0=50;1=60"):
        ensure(host, {"half": 50})


@pytest.mark.parametrize(
    ("cpu", "mounts", "gone", "version", "verdict", "words"),
    [
        ("flags\t: fpu\n", "", True, "", "unsupported", "not supported by this CPU"),
        (INTEL, "", True, "", "inert", "resctrl is not mounted"),
        ("AuthenticAMD\n" + INTEL, "", False, "", "unsupported", "eighths of GB/s"),
        (INTEL, "resctrl /r resctrl rw,mba_MBps 0 0\n", False, "", "inert", "counts in MB/s"),
        (INTEL, "", False, "26.0.2", "unsupported", "26.1.0 or newer"),
    ],
    ids=["no_mba", "not_mounted", "amd", "mba_mbps", "old_docker"],
)
def test_where_a_class_cannot_act_it_is_not_offered(
    host: Path, cpu: str, mounts: str, gone: bool, version: str, verdict: str, words: str
) -> None:
    write(host, "proc/cpuinfo", cpu)
    write(host, "proc/mounts", mounts)
    if gone:
        for path in sorted((host / "sys/fs/resctrl").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    (said,) = ensure(host, {"half": 50}, version).outcome.settings
    assert said.verdict == verdict
    assert words in said.reason
    assert not (host / "etc").exists()
    # Remembered, so that a later verify says it again.
    assert [one.setting.verdict for one in survey(str(host))] == [verdict]


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        ({"half": 55}, "10 % at least and steps of 10 %"),
        ({"half": 5}, "half is 5 %"),
        ({f"c{n}": n * 10 for n in range(1, 9)}, "8 different percentages"),
    ],
)
def test_what_the_cpu_cannot_count_is_refused(
    host: Path, classes: dict[str, Any], words: str
) -> None:
    with pytest.raises(NumaError, match=words):
        ensure(host, classes)
    assert not (host / "etc").exists()


class Engine:
    """A Docker with one stopped container that carries a class."""

    def containers(self, include_stopped: bool = True) -> list[dict[str, Any]]:
        assert include_stopped
        return [{"Id": "a1"}]

    def inspect(self, container: str) -> dict[str, Any]:
        requests = [{"Driver": "cdi", "DeviceIDs": ["steadygpu.dev/membw=half"]}]
        return {"Id": container, "Name": "/etl", "HostConfig": {"DeviceRequests": requests}}


def test_a_class_that_a_container_carries_stays(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure(host, {"half": 50})
    monkeypatch.setattr(manage, "docker_to_ask", Engine)
    for again in (lambda: ensure(host, {}), lambda: manage.take_back(False, str(host))):
        with pytest.raises(NumaError, match=r"etl \(steadygpu.dev/membw=half\)"):
            again()
    assert (host / "etc/cdi/steadygpu-membw.yaml").exists()
    assert not ensure(host, {"half": 50}).outcome.actions


def test_an_engine_that_does_not_answer_keeps_the_classes(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent(Engine):
        def containers(self, include_stopped: bool = True) -> list[dict[str, Any]]:
            raise EngineUnreachableError("no answer")

    with pytest.raises(NumaError, match="no answer"):
        resctrl.carriers(cast(DockerClient, Silent()), ["half"])


def test_a_docker_that_is_stopped_keeps_the_classes(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure(host, {"half": 50})
    service = Service("loaded", "inactive")
    monkeypatch.setattr(manage, "read_services", lambda names: {"docker.service": service})
    monkeypatch.setattr(manage, "read_docker", lambda *words: DockerInfo("stopped"))
    with pytest.raises(NumaError, match="Docker is stopped"):
        manage.take_back(False, str(host))
    assert (host / "etc/cdi/steadygpu-membw.yaml").exists()
    monkeypatch.setattr(manage, "read_docker", lambda *words: DockerInfo("absent"))
    manage.take_back(False, str(host))
    assert not (host / "etc/cdi/steadygpu-membw.yaml").exists()
