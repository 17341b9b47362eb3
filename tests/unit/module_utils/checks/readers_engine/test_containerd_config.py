# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""containerd's configuration with what it imports."""

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.containerd.config import (
    covers,
    load,
)
from ansible_collections.steadygpu.host.plugins.module_utils.trees.node import TreeError

MAIN = "/etc/containerd/config.toml"
NVIDIA = """
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
  BinaryName = "/usr/bin/nvidia-container-runtime"
  SystemdCgroup = true
"""


def test_a_runtime_of_an_import_is_a_runtime():
    files = {"/etc/containerd/conf.d/99-nvidia.toml": "version = 2\n" + NVIDIA}
    config = load('version = 2\nimports = ["conf.d/*.toml"]\n', MAIN, files.get)
    (runtime,) = config.runtimes()
    assert runtime.name == "nvidia"
    assert runtime.file.path == "/etc/containerd/conf.d/99-nvidia.toml"
    assert runtime.binary == "/usr/bin/nvidia-container-runtime"
    assert runtime.systemd_cgroup
    assert config.imports == ["/etc/containerd/conf.d/*.toml"]
    assert config.unread == ()


def test_a_directory_that_can_be_listed_is_listed():
    files = {"/etc/containerd/conf.d/a.toml": NVIDIA}
    config = load('imports = ["/etc/containerd/conf.d/*.toml"]', MAIN, files.get, lambda _p: files)
    assert [file.path for file in config.files] == [MAIN, "/etc/containerd/conf.d/a.toml"]


def test_an_import_of_which_nothing_is_known_is_told():
    config = load('imports = ["/etc/containerd/conf.d/*.toml"]', MAIN)
    assert config.unread == ("/etc/containerd/conf.d/*.toml",)


def test_files_that_import_each_other_end():
    files = {MAIN: 'imports = ["b.toml"]', "/etc/containerd/b.toml": 'imports = ["config.toml"]'}
    config = load(files[MAIN], MAIN, files.get)
    assert [file.path for file in config.files] == [MAIN, "/etc/containerd/b.toml"]


def test_ever_more_imports_end():
    def read_file(path):
        return f'imports = ["{len(path)}{path[-40:]}.toml"]'

    assert len(load('imports = ["x.toml"]', MAIN, read_file).files) <= 64


def test_an_import_that_is_no_toml_is_told():
    files = {"/etc/containerd/b.toml": "version = = 2"}
    config = load('imports = ["b.toml"]', MAIN, files.get)
    ((path, error),) = config.broken
    assert path == "/etc/containerd/b.toml"
    assert error.line == 1


def test_a_first_file_that_is_no_toml_is_an_error():
    with pytest.raises(TreeError):
        load("[plugins", MAIN)


@pytest.mark.parametrize(
    ("text", "version"),
    [("", 1), ("version = 0", 1), ("version = 3", 3), ('version = "3"', 1), ("version = true", 1)],
)
def test_a_file_without_a_version_is_of_version_1(text, version):
    assert load(text, MAIN).main.version == version


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("/etc/containerd/conf.d/*.toml", "/etc/containerd/conf.d/99-nvidia.toml", True),
        ("/etc/containerd/conf.d/*.toml", "/etc/containerd/config.d/99-nvidia.toml", False),
        ("/etc/containerd/*.toml", "/etc/containerd/conf.d/99-nvidia.toml", False),
        ("/etc/containerd/*/*-nv*.toml", "/etc/containerd/conf.d/99-nvidia.toml", True),
        ("/etc/a*a", "/etc/a", False),
        ("/etc/a.toml", "/etc/a.toml", True),
    ],
)
def test_which_files_a_pattern_covers(pattern, path, found):
    assert covers(pattern, path) is found
