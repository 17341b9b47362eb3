# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tree for a lab image: packages dpkg accepts, a repository apt can trust, nothing unnamed."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from simgpu_guest import profiles
from simgpu_image import deb, packages


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory, sources: Path) -> Path:
    output = tmp_path_factory.mktemp("overlay") / "tree"
    command = [
        sys.executable,
        str(sources),
        "overlay",
        "--output",
        str(output),
        "--suite",
        "trixie",
    ]
    subprocess.run(command, check=True)
    return output


def test_units_are_there_and_enabled(overlay: Path) -> None:
    units = overlay / "etc/systemd/system"
    for name in ("simgpu.service", "simgpu-repo.service"):
        assert (units / name).is_file()
        assert (
            str((units / "multi-user.target.wants" / name).readlink())
            == f"/etc/systemd/system/{name}"
        )
    assert (overlay / "usr/local/sbin/simgpu").stat().st_mode & 0o111
    assert "SIMULATION" in (overlay / "etc/steadygpu-lab").read_text()


def test_units_are_what_systemd_understands(overlay: Path) -> None:
    """Exit status 0 proves nothing: systemd-analyze prints what it ignores."""
    for unit in sorted((overlay / "etc/systemd/system").glob("*.service")):
        done = subprocess.run(
            ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
        )
        assert not re.search(r"Unknown|Invalid|ignoring", done.stderr), done.stderr


def test_gpus_are_there_before_their_mig_layout_and_the_engine(overlay: Path) -> None:
    text = (overlay / "etc/systemd/system/simgpu.service").read_text()
    [before] = re.findall(r"^Before=(.*)$", text, re.MULTILINE)
    assert {"steadygpu-mig.service", "docker.service", "nvidia-cdi-refresh.service"} <= set(
        before.split()
    )


def test_every_profile_can_be_loaded_from_the_image(overlay: Path, sources: Path) -> None:
    directory = overlay / "usr/local/lib/simgpu/profiles"
    for name in profiles.names(sources / "profiles"):
        assert profiles.load(directory, name) == profiles.load(sources / "profiles", name)


def test_no_library_is_installed_before_a_profile_is_loaded(overlay: Path) -> None:
    assert [str(path.relative_to(overlay)) for path in overlay.rglob("libnvidia-ml*")] == [
        "usr/local/lib/simgpu/libnvidia-ml.so.550.163.01"
    ]


def test_a_directory_with_other_things_is_not_overwritten(tmp_path: Path, sources: Path) -> None:
    (tmp_path / "precious").touch()
    command = [
        sys.executable,
        str(sources),
        "overlay",
        "--output",
        str(tmp_path),
        "--suite",
        "trixie",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "not empty and not an overlay of ours" in done.stderr
    assert (tmp_path / "precious").exists()


def test_packages_are_the_same_bytes_every_time() -> None:
    for one, other in zip(packages.all_packages(), packages.all_packages()):
        assert deb.build(one) == deb.build(other)


def test_dpkg_reads_every_package(overlay: Path) -> None:
    found = sorted((overlay / "srv/simgpu/repo/pool").rglob("*.deb"))
    assert len(found) == 8
    for path in found:
        fields = subprocess.run(
            ["dpkg-deb", "-f", str(path)], capture_output=True, text=True, check=True
        ).stdout
        name, version = path.name.split("_")[:2]
        assert f"Package: {name}\nVersion: {version}\n" in fields
        assert "SIMULATION" in fields
        listing = subprocess.run(
            ["dpkg-deb", "-c", str(path)], capture_output=True, text=True, check=True
        ).stdout
        assert all(line.split()[1] == "root/root" for line in listing.splitlines())


def test_siblings_must_have_the_same_version() -> None:
    depends = {(p.name, p.version): p.depends for p in packages.all_packages()}
    for version in packages.VERSIONS:
        assert depends["nvidia-container-toolkit", version] == [
            f"nvidia-container-toolkit-base (= {version})",
            f"libnvidia-container-tools (= {version})",
        ]
        assert depends["libnvidia-container-tools", version] == [
            f"libnvidia-container1 (= {version})"
        ]


def test_repository_is_signed_by_its_key(overlay: Path, tmp_path: Path) -> None:
    repo, keyring = overlay / "srv/simgpu/repo", tmp_path / "key.gpg"
    subprocess.run(
        ["gpg", "--dearmor", "--output", str(keyring), str(repo / "key.asc")], check=True
    )
    release = tmp_path / "Release"
    verify = ["gpgv", "--keyring", str(keyring), "--output", str(release)]
    subprocess.run([*verify, str(repo / "dists/stable/InRelease")], check=True, capture_output=True)
    index = repo / "dists/stable/main/binary-amd64/Packages"
    digest = hashlib.sha256(index.read_bytes()).hexdigest()
    assert f" {digest} {index.stat().st_size} main/binary-amd64/Packages\n" in release.read_text()
    entries = re.findall(
        r"^Filename: (.+)\nSize: (\d+)\nSHA256: (\w+)$", index.read_text(), re.MULTILINE
    )
    assert len(entries) == 8
    for name, size, expected in entries:
        content = (repo / name).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (int(size), expected)


def test_every_program_says_that_it_is_a_simulation() -> None:
    for package in packages.all_packages():
        for path, file in package.files.items():
            if file.mode & 0o111:
                assert b"SIMULATION" in file.content, path
