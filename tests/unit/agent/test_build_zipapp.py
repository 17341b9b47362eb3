# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The agent artifact: same input, same bytes; runs on every Python a host may have."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import build_zipapp
import pytest

CHECKOUT = Path(__file__).resolve().parents[3]
MODULES = {"tiny": ("tiny",)}
PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")


def dependency(directory: Path, name: str = "tiny", version: str = "1.2", **files: str) -> Path:
    """What ``pip install --target`` leaves of one distribution."""
    metadata = f"{name}-{version}.dist-info"
    everything = {
        f"{name}.py": "ANSWER = 42\n",
        "example.py": "raise SystemExit('not a module of the distribution')\n",
        f"{metadata}/METADATA": f"Name: {name}\nVersion: {version}\n\nText.\n",
        f"{metadata}/licenses/LICENSE": "do what you like\n",
        f"{metadata}/top_level.txt": f"example\n{name}\n",
        f"{metadata}/WHEEL": "Wheel-Version: 1.0\n",
        f"__pycache__/{name}.cpython-39.pyc": "",
        **files,
    }
    for path, text in everything.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    record = "".join(f"{path},,\n" for path in everything)
    (directory / metadata / "RECORD").write_text(record)
    return directory


@pytest.fixture
def dependencies(tmp_path: Path) -> Path:
    return dependency(tmp_path / "dependencies")


@pytest.fixture
def artifact(tmp_path: Path, dependencies: Path) -> Path:
    path = tmp_path / "steadygpu.pyz"
    path.write_bytes(build_zipapp.build(CHECKOUT, dependencies, MODULES))
    return path


def names(data: bytes) -> list[str]:
    return zipfile.ZipFile(io.BytesIO(data)).namelist()


def test_the_same_sources_give_the_same_bytes_wherever_and_whenever(tmp_path, dependencies):
    copy = tmp_path / "elsewhere"
    for part in ("agent", "plugins/module_utils"):
        shutil.copytree(CHECKOUT / part, copy / part)
    shutil.copy(CHECKOUT / "galaxy.yml", copy / "galaxy.yml")
    for path in copy.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
        path.chmod(path.stat().st_mode | 0o111)
    one = hashlib.sha256(build_zipapp.build(CHECKOUT, dependencies, MODULES)).hexdigest()
    other = hashlib.sha256(build_zipapp.build(copy, dependencies, MODULES)).hexdigest()
    assert one == other


def test_one_changed_byte_gives_another_digest(tmp_path, dependencies):
    before = build_zipapp.build(CHECKOUT, dependencies, MODULES)
    (dependencies / "tiny.py").write_text("ANSWER = 43\n")
    assert build_zipapp.build(CHECKOUT, dependencies, MODULES) != before


def test_of_a_dependency_its_modules_and_its_licence_travel(dependencies):
    held = names(build_zipapp.build(CHECKOUT, dependencies, MODULES))
    assert "tiny.py" in held
    assert "tiny-1.2.dist-info/METADATA" in held
    assert "tiny-1.2.dist-info/licenses/LICENSE" in held
    assert "example.py" not in held
    assert not [name for name in held if "__pycache__" in name or name.endswith("WHEEL")]


def test_the_manifest_lists_every_file_with_its_digest(artifact):
    with zipfile.ZipFile(artifact) as archive:
        manifest = json.loads(archive.read(build_zipapp.MANIFEST))
        files = {name for name in archive.namelist() if not name.endswith("/")}
        assert set(manifest["files"]) == files - {build_zipapp.MANIFEST}
        for name, digest in manifest["files"].items():
            assert hashlib.sha256(archive.read(name)).hexdigest() == digest
    assert manifest["version"] == build_zipapp.collection_version(CHECKOUT)
    assert manifest["dependencies"] == {"tiny": "1.2"}


def test_every_directory_is_an_entry_and_nothing_is_deflated(artifact):
    with zipfile.ZipFile(artifact) as archive:
        held = archive.namelist()
        for name in held:
            assert "/" not in name.rstrip("/") or name.rstrip("/").rsplit("/", 1)[0] + "/" in held
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}


def test_compiled_dependencies_are_refused(tmp_path):
    directory = dependency(tmp_path / "d", **{"tiny/fast.so": ""})
    with pytest.raises(build_zipapp.BuildError, match=r"tiny/fast\.so is compiled code"):
        build_zipapp.build(CHECKOUT, directory, MODULES)


def test_compiled_code_that_a_dependency_does_without_stays_behind(tmp_path):
    files = {"yaml/__init__.py": "", "yaml/_yaml.cpython-39-x86_64-linux-gnu.so": ""}
    directory = dependency(tmp_path / "d", name="PyYAML", version="6.0.3", **files)
    held = names(build_zipapp.build(CHECKOUT, directory, {"pyyaml": ("yaml",)}))
    assert "yaml/__init__.py" in held
    assert not [name for name in held if name.endswith(".so")]


def test_a_missing_dependency_directory_says_how_to_make_it(tmp_path):
    with pytest.raises(build_zipapp.BuildError, match="pip install --target"):
        build_zipapp.build(CHECKOUT, tmp_path / "nowhere")


def test_a_dependency_nobody_declared_is_refused(dependencies):
    dependency(dependencies, name="surprise")
    with pytest.raises(build_zipapp.BuildError, match="holds surprise, tiny; wanted tiny"):
        build_zipapp.build(CHECKOUT, dependencies, MODULES)


def interpreter(version: str) -> str | None:
    """A Python of that version by its full path: a shim may name one that is not there."""
    roots = [Path("/usr/bin"), Path("/usr/local/bin")]
    roots += sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin"))
    return next(
        (str(root / f"python{version}") for root in roots if (root / f"python{version}").exists()),
        None,
    )


@pytest.mark.parametrize("version", PYTHONS)
def test_it_runs_isolated_on(version, artifact, tmp_path):
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    for command, said in (
        (["--version"], f"steadygpu {build_zipapp.collection_version(CHECKOUT)}\n"),
        (["facts", "--section", "gpu", "--json"], '"schema": 1'),
    ):
        done = subprocess.run(
            [python, "-I", str(artifact), *command],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        assert said in done.stdout


def test_a_package_named_ansible_collections_on_the_host_does_not_hide_ours(artifact, tmp_path):
    """Debian's package ansible puts one into dist-packages, which -I leaves on the path."""
    site = tmp_path / "site"
    (site / "ansible_collections").mkdir(parents=True)
    (site / "ansible_collections" / "__init__.py").write_text("")
    program = (
        "import runpy, sys\n"
        f"sys.path.append({str(site)!r})\n"
        "sys.argv[1:] = ['facts', '--section', 'gpu']\n"
        f"runpy.run_path({str(artifact)!r}, run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("driver")
