# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finding libnvidia-ml without loading it."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import library


def test_the_release_is_in_the_name_the_link_resolves_to(host):
    directory = "usr/lib/x86_64-linux-gnu"
    host.write(f"{directory}/libnvidia-ml.so.550.163.01", "")
    Path(host.root, directory, "libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.550.163.01")
    path = library.find(host.root)
    assert path is not None
    assert library.release(path) == "550.163.01"


def test_a_library_without_a_release_in_its_name(host):
    host.write("usr/lib64/libnvidia-ml.so.1", "")
    assert library.release(library.find(host.root)) is None


def test_the_loader_path_comes_first(host):
    host.write("usr/lib64/libnvidia-ml.so.1", "")
    host.write("opt/other/libnvidia-ml.so.1", "")
    environment = {"LD_LIBRARY_PATH": f"{host.root}/nowhere:{host.root}/opt/other"}
    found = library.find(host.root, environment)
    assert found is not None
    assert found.endswith("opt/other/libnvidia-ml.so.1")


def test_no_library(host):
    assert library.find(host.root) is None
    assert library.release(None) is None
