# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The modules that are cut, on which host, and with which arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed
from ansible_collections.steadygpu.host.plugins.modules import (
    apt_source,
    cdi_spec,
    containerd_config,
    docker_daemon,
    runtime_routes,
    toolkit_config,
)
from ansible_collections.steadygpu.host.tests.cuts import scratch_containerd
from ansible_collections.steadygpu.host.tests.cuts.scratch_docker import ScratchDocker
from ansible_collections.steadygpu.host.tests.cuts.scratch_systemd import systemctl
from ansible_collections.steadygpu.host.tests.cuts.tracing import CHECKOUT
from ansible_collections.steadygpu.host.tests.unit.module_utils.containerd import fake_containerd

Program = Callable[[Sequence[str], "str | None"], Completed]

PRESENT, CHANGED, ABSENT = "present", "changed", "absent"


@dataclass(frozen=True)
class Case:
    """A module on a host. ``steps`` are the arguments of ``present``, of ``changed`` (another wish)
    and of ``absent``, which must lead back to what ``prepare`` laid out.

    ``programs`` answer in the place of those of the host, ``replace`` is called before the module
    runs.
    """

    name: str
    main: Callable[[], None]
    prepare: Callable[[Path], None]
    steps: Mapping[str, Mapping[str, Any]]
    programs: Mapping[str, Program] = field(default_factory=dict)
    replace: Callable[[], None] = lambda: None


def write(root: Path, path: str, text: str, mode: int = 0o644) -> None:
    """A file of the scratch host."""
    at = root / path.lstrip("/")
    at.parent.mkdir(parents=True, exist_ok=True)
    at.write_bytes(text.encode())
    at.chmod(mode)


def _put(module: ModuleType, name: str, instead: Callable[..., Any]) -> None:
    setattr(module, name, instead)


def _answer(argv: Sequence[str], stdout: str = "", rc: int = 0) -> Completed:
    return Completed(tuple(argv), rc, stdout, "")


# -- docker_daemon --------------------------------------------------------------------------

DAEMON_JSON = "/etc/docker/daemon.json"
_FOREIGN = '{\n    "log-driver": "journald",\n    "live-restore": true,\n    "labels": ["a=b"]\n}\n'


def _docker_host(root: Path) -> None:
    write(root, DAEMON_JSON, _FOREIGN, mode=0o640)
    write(root, "/usr/bin/nvidia-container-runtime", "", mode=0o755)
    write(root, "/recorded/docker.json", json.dumps({"live": json.loads(_FOREIGN)}))


def _scratch_docker() -> None:
    _put(docker_daemon, "DockerDaemon", lambda _client, _timeout_s: ScratchDocker())


_NVIDIA = {"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}}

# -- toolkit_config -------------------------------------------------------------------------

TOOLKIT_TOML = "/etc/nvidia-container-runtime/config.toml"


def _toolkit_host(root: Path) -> None:
    shipped = (CHECKOUT / "tests/simgpu/toolkit/files/config.toml").read_text()
    write(root, TOOLKIT_TOML, shipped.replace("\n", "\r\n"), mode=0o640)
    write(root, "/sbin/ldconfig", "", mode=0o755)
    write(root, "/usr/bin/nvidia-ctk", "", mode=0o755)


def _bare_host(root: Path) -> None:
    (root / "etc").mkdir()


def _ctk(argv: Sequence[str], stdin: str | None) -> Completed:
    if "--version" in argv:
        return _answer(argv, "NVIDIA Container Toolkit CLI version 1.20.0\n")
    return _answer(argv, stdin or "")


_MODE = {"nvidia-container-runtime": {"mode": "jit-cdi"}, "swarm-resource": "DOCKER_RESOURCE_X"}

# -- cdi_spec -------------------------------------------------------------------------------

CDI_SPEC = "/etc/cdi/nvidia.json"


def _cdi_host(root: Path) -> None:
    write(root, "/usr/bin/nvidia-ctk", "", mode=0o755)
    (root / "etc/systemd/system/multi-user.target.wants").mkdir(parents=True)
    (root / "recorded").mkdir()
    (root / "etc/cdi").mkdir()


def _ctk_cdi(argv: Sequence[str], stdin: str | None) -> Completed:
    if "generate" not in argv:
        return _ctk(argv, stdin)
    names = {"index": "0", "uuid": "GPU-7d1f6e05-5bd8-4a9c-9e6b-0c2c4f3a1e11"}
    devices = [
        {"name": name, "containerEdits": {"env": [f"NAME={name}"]}}
        for word, name in names.items()
        if f"--device-name-strategy={word}" in argv
    ]
    spec = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices}
    return _answer(argv, json.dumps(spec, indent=2) + "\n")


# -- containerd_config ----------------------------------------------------------------------

CONTAINERD_TOML = "/etc/containerd/config.toml"
_OLD_TOML = """\
# kept by hand
version = 2
imports = [
  "/etc/containerd/site/*.toml", # ours since 2021
]

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = 'registry.example.com/pause:3.9'
"""
_NEW_TOML = "version = 3\nimports = ['/etc/containerd/conf.d/*.toml']\n"


def _containerd_host(release: str, text: str) -> Callable[[Path], None]:
    def prepare(root: Path) -> None:
        write(root, CONTAINERD_TOML, text, mode=0o600)
        write(root, "/usr/bin/containerd", "", mode=0o755)
        write(root, "/usr/bin/kata-runtime", "", mode=0o755)
        write(root, "/recorded/containerd.json", json.dumps({"release": release}))

    return prepare


def _scratch_containerd() -> None:
    _put(fake_containerd, "default_of", scratch_containerd.DEFAULTS.__getitem__)
    _put(
        containerd_config,
        "Containerd",
        lambda _timeout_s, _socket: scratch_containerd.ScratchContainerd(),
    )


_CONTAINERD = (
    {"cdi": True, "runtimes": {"kata": {"path": "/usr/bin/kata-runtime"}}},
    {"cdi": True, "config": {"debug": {"level": "debug"}}},
)

# -- apt_source -----------------------------------------------------------------------------

_KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{}\n-----END PGP PUBLIC KEY BLOCK-----\n"
_URI = "https://packages.example.com/deb"


def _apt_host(root: Path) -> None:
    sources = root / "etc/apt/sources.list.d"
    sources.mkdir(parents=True)
    write(root, "/etc/apt/sources.list.d/nvidia.list", f"# by hand\ndeb {_URI} /\n")
    for directory in ("keyrings", "preferences.d"):
        (root / "etc/apt" / directory).mkdir()


# -- runtime_routes -------------------------------------------------------------------------


def _routes_host(root: Path) -> None:
    (root / "etc/steadygpu").mkdir(parents=True)


_ROUTE = {"name": "sandbox", "match": {"label": {"tier": "untrusted"}}, "runtime": "runsc"}


def _states(present: Mapping[str, Any], changed: Mapping[str, Any], **more: Any) -> Any:
    return MappingProxyType(
        {
            PRESENT: {**more, **present},
            CHANGED: {**more, **changed},
            ABSENT: {**more, "state": "absent"},
        }
    )


CASES: Mapping[str, Case] = MappingProxyType(
    {
        case.name: case
        for case in (
            Case(
                "docker-reload",
                docker_daemon.main,
                _docker_host,
                _states(
                    {"config": {**_NVIDIA, "default-runtime": "nvidia"}},
                    {"config": {"default-runtime": "runc", "debug": True}},
                ),
                replace=_scratch_docker,
            ),
            Case(
                "docker-restart",
                docker_daemon.main,
                _docker_host,
                _states(
                    {"config": {"features": {"cdi": True}, "log-opts": {"tag": "x"}}},
                    {"config": {"features": {"cdi": False}}},
                ),
                replace=_scratch_docker,
            ),
            Case(
                "toolkit",
                toolkit_config.main,
                _toolkit_host,
                _states(
                    {"config": _MODE}, {"config": {"nvidia-container-runtime": {"mode": "cdi"}}}
                ),
                programs={"nvidia-ctk": _ctk},
            ),
            Case(
                "toolkit-bare",
                toolkit_config.main,
                _bare_host,
                _states(
                    {"config": _MODE}, {"config": {"nvidia-container-runtime": {"mode": "cdi"}}}
                ),
            ),
            Case(
                "containerd-1.7",
                containerd_config.main,
                _containerd_host(scratch_containerd.RELEASES[0], _OLD_TOML),
                _states(*_CONTAINERD),
                replace=_scratch_containerd,
            ),
            Case(
                "containerd-2.1",
                containerd_config.main,
                _containerd_host(scratch_containerd.RELEASES[1], _NEW_TOML),
                _states(*_CONTAINERD),
                replace=_scratch_containerd,
            ),
            Case(
                "apt-source",
                apt_source.main,
                _apt_host,
                _states(
                    {
                        "uris": [_URI],
                        "key": _KEY.format("mQ"),
                        "replace": True,
                        "pins": {"nvidia-container-toolkit": "1.20.0-1"},
                    },
                    {
                        "uris": [_URI],
                        "key": _KEY.format("mR"),
                        "replace": True,
                        "pins": {"nvidia-container-toolkit": "1.21.0-1"},
                    },
                    name="toolkit",
                ),
            ),
            Case(
                "routes",
                runtime_routes.main,
                _routes_host,
                _states({"routes": [_ROUTE]}, {"routes": [_ROUTE], "default": "runc"}),
            ),
            Case(
                "cdi",
                cdi_spec.main,
                _cdi_host,
                _states({}, {"device_name_strategy": ["uuid"]}, path=CDI_SPEC, refresh=True),
                programs={"nvidia-ctk": _ctk_cdi, "systemctl": systemctl},
            ),
        )
    }
)
