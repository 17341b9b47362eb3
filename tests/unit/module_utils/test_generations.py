# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Generations of the agent: one rename each, whatever kills us in between."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils import generations
from ansible_collections.steadygpu.host.plugins.module_utils.generations import (
    GenerationError,
    Layout,
    State,
)

# What one step of an installation is: after each of these calls the disk looks different.
STEPS = ("mkdir", "rename", "replace", "symlink", "unlink", "rmdir", "chmod", "fchmod", "fsync")


def artifact(directory: Path, version: str, **extra: str) -> Path:
    """A little agent that prints its version."""
    files = {
        "__main__.py": f"import word\nprint(word.VERSION, {version!r})\n",
        "word.py": "VERSION = 1\n",
    }
    files.update(extra)
    manifest = {
        "version": version,
        "files": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()},
    }
    path = directory / f"{version}.pyz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, generations.MANIFEST: json.dumps(manifest)}.items():
            archive.writestr(name, text)
    return path


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(str(tmp_path / "lib" / "steadygpu"), str(tmp_path / "bin"))


def install(layout: Layout, path: Path, keep: int = 2) -> str:
    digest = generations.file_digest(str(path))
    generations.install(layout, digest, keep, str(path))
    return digest


def says(layout: Layout) -> str:
    """What the command of the host prints."""
    return subprocess.run([layout.launcher], capture_output=True, text=True, check=True).stdout


def actions(layout: Layout, digest: str, keep: int = 2) -> list[str]:
    plan = generations.plan(generations.read(layout), layout, digest, keep)
    return generations.describe(plan, layout, digest)


def test_an_installed_agent_runs_compiled(layout, tmp_path):
    digest = install(layout, artifact(tmp_path, "1.0"))
    assert says(layout) == "1 1.0\n"
    assert generations.read(layout).current == digest
    assert list(Path(layout.generation(digest)).glob("__pycache__/word.*.pyc"))
    assert actions(layout, digest) == []


def test_everybody_can_run_it_whatever_the_umask(layout, tmp_path):
    former = os.umask(0o077)
    try:
        digest = install(layout, artifact(tmp_path, "1.0"))
    finally:
        os.umask(former)
    assert stat.S_IMODE(os.stat(layout.generation(digest)).st_mode) == 0o755
    assert stat.S_IMODE(os.stat(layout.launcher).st_mode) == 0o755
    for parent, _directories, files in os.walk(layout.generation(digest)):
        for name in files:
            assert os.stat(os.path.join(parent, name)).st_mode & stat.S_IROTH


def test_an_upgrade_keeps_the_former_generation_and_going_back_needs_no_file(layout, tmp_path):
    first = install(layout, artifact(tmp_path, "1.0"))
    install(layout, artifact(tmp_path, "2.0"))
    assert says(layout) == "1 2.0\n"
    generations.install(layout, first, 2, artifact=None)
    assert says(layout) == "1 1.0\n"


def test_no_more_than_keep_generations_stay(layout, tmp_path):
    for version in ("1.0", "2.0", "3.0", "4.0"):
        newest = install(layout, artifact(tmp_path, version), keep=2)
    state = generations.read(layout)
    assert len(state.complete) == 2
    assert state.current == newest
    install(layout, artifact(tmp_path, "4.0"), keep=1)
    assert generations.read(layout).complete == [newest]


def test_the_generation_that_worked_survives_an_upgrade_after_going_back(layout, tmp_path):
    first = install(layout, artifact(tmp_path, "1.0"))
    install(layout, artifact(tmp_path, "2.0"))
    generations.install(layout, first, 2, artifact=None)
    third = install(layout, artifact(tmp_path, "3.0"))
    assert set(generations.read(layout).complete) == {first, third}


def test_a_damaged_generation_is_replaced(layout, tmp_path):
    path = artifact(tmp_path, "1.0")
    digest = install(layout, path)
    Path(layout.generation(digest), "word.py").write_text("VERSION = 666\n")
    assert f"unpack generation {digest[:12]} below {layout.libdir}" in actions(layout, digest)
    install(layout, path)
    assert says(layout) == "1 1.0\n"


def test_a_damaged_generation_without_the_file_is_an_error(layout, tmp_path):
    with pytest.raises(GenerationError, match="no artifact"):
        generations.install(layout, "a" * 64, 2, artifact=None)


def test_leftovers_of_an_interrupted_run_are_removed(layout, tmp_path):
    digest = install(layout, artifact(tmp_path, "1.0"))
    leftover = Path(layout.libdir, ".steadygpu-x1")
    leftover.mkdir()
    (leftover / "half").write_text("")
    assert actions(layout, digest) == ["remove .steadygpu-x1, left behind by an interrupted run"]
    generations.install(layout, digest, 2, None)
    assert not leftover.exists()
    assert actions(layout, digest) == []


def test_a_file_of_another_digest_is_refused_and_nothing_changes(layout, tmp_path):
    first = install(layout, artifact(tmp_path, "1.0"))
    other = artifact(tmp_path, "2.0")
    with pytest.raises(GenerationError, match=r"has sha256 .* wanted"):
        generations.install(layout, "b" * 64, 2, str(other))
    assert generations.read(layout).current == first


@pytest.mark.parametrize("name", ["../evil.py", "/etc/evil.py", "a/../../evil.py", "..\\evil.py"])
def test_an_entry_that_leads_outside_is_refused(layout, tmp_path, name):
    path = artifact(tmp_path, "1.0", **{name: "x"})
    with pytest.raises(GenerationError, match="outside its directory"):
        install(layout, path)
    assert os.listdir(layout.libdir) == [".lock"]
    assert not list(tmp_path.rglob("evil.py"))


@pytest.mark.parametrize("content", [b"not a zip", b""])
def test_a_file_that_is_no_zip(layout, tmp_path, content):
    path = tmp_path / "x.pyz"
    path.write_bytes(content)
    with pytest.raises(GenerationError, match="make agent"):
        install(layout, path)


def test_a_zip_without_a_manifest(layout, tmp_path):
    path = tmp_path / "x.pyz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("__main__.py", "")
    with pytest.raises(GenerationError, match="no agent artifact"):
        install(layout, path)


def test_an_agent_this_python_cannot_compile_is_not_installed(layout, tmp_path):
    first = install(layout, artifact(tmp_path, "1.0"))
    with pytest.raises(GenerationError, match="cannot compile"):
        install(layout, artifact(tmp_path, "2.0", **{"bad.py": "def ("}))
    assert generations.read(layout).current == first


def test_a_command_of_somebody_else_is_left_alone(layout, tmp_path):
    os.makedirs(layout.bindir)
    Path(layout.launcher).write_text("#!/bin/sh\necho mine\n")
    with pytest.raises(GenerationError, match="was not written by this collection"):
        install(layout, artifact(tmp_path, "1.0"))
    with pytest.raises(GenerationError, match="was not written by this collection"):
        generations.plan_removal(generations.read(layout), layout)
    assert Path(layout.launcher).read_text() == "#!/bin/sh\necho mine\n"


def test_a_refused_launcher_leaves_nothing_new(layout, tmp_path):
    os.makedirs(layout.bindir)
    Path(layout.launcher).write_text("#!/bin/sh\necho mine\n")
    with pytest.raises(GenerationError, match="was not written by this collection"):
        install(layout, artifact(tmp_path, "1.0"))
    with pytest.raises(GenerationError, match="was not written by this collection"):
        generations.uninstall(layout)
    assert not os.path.lexists(layout.libdir)


def test_a_launcher_that_cannot_be_written_leaves_the_old_generation_current(layout, tmp_path):
    first = install(layout, artifact(tmp_path, "1.0"))
    shutil.rmtree(layout.bindir)
    Path(layout.bindir).write_text("a file where the directory should be")
    with pytest.raises(OSError, match=layout.bindir):
        install(layout, artifact(tmp_path, "2.0"))
    assert generations.read(layout).current == first


def test_uninstall_leaves_no_trace_and_is_nothing_the_second_time(layout, tmp_path):
    install(layout, artifact(tmp_path, "1.0"))
    install(layout, artifact(tmp_path, "2.0"))
    generations.uninstall(layout)
    assert not os.path.lexists(layout.libdir)
    assert not os.path.lexists(layout.launcher)
    plan = generations.plan_removal(generations.read(layout), layout)
    assert generations.describe(plan, layout, "") == []


def test_uninstall_keeps_what_somebody_else_put_there(layout, tmp_path):
    install(layout, artifact(tmp_path, "1.0"))
    foreign = Path(layout.libdir, "notes.txt")
    foreign.write_text("mine")
    generations.uninstall(layout)
    assert [path.name for path in Path(layout.libdir).iterdir()] == ["notes.txt"]


def test_the_launcher_quotes_paths(tmp_path):
    layout = Layout(str(tmp_path / "a b" / "lib"), str(tmp_path / "a b" / "bin"))
    install(layout, artifact(tmp_path, "1.0"))
    assert says(layout) == "1 1.0\n"


def _killed_at(step: int, layout: Layout, path: Path) -> bool:
    """Install in a child that is killed before its ``step``-th step. False: it finished."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork beside pytest's threads
        child = os.fork()
    if child == 0:
        count = 0

        def counted(call):
            def counting(*arguments, **keywords):
                nonlocal count
                count += 1
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*arguments, **keywords)

            return counting

        try:
            for name in STEPS:
                setattr(os, name, counted(getattr(os, name)))
            install(layout, path, keep=1)
            os._exit(0)
        finally:
            os._exit(1)
    _pid, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


@pytest.mark.parametrize("damaged", [False, True])
def test_kill_9_at_every_step_of_an_upgrade(tmp_path, damaged):
    """Between any two steps `current` leads to one whole generation; a rerun converges."""
    old, new = artifact(tmp_path, "1.0"), artifact(tmp_path, "2.0")
    before = Layout(str(tmp_path / "before" / "lib"), str(tmp_path / "before" / "bin"))
    install(before, old)
    if damaged:  # the name of the new generation is taken by the rest of a broken one
        os.mkdir(before.generation(generations.file_digest(str(new))))
    step = 0
    killed = True
    while killed:
        step += 1
        shutil.rmtree(tmp_path / "now", ignore_errors=True)
        shutil.copytree(tmp_path / "before", tmp_path / "now", symlinks=True)
        layout = Layout(str(tmp_path / "now" / "lib"), str(tmp_path / "now" / "bin"))
        killed = _killed_at(step, layout, new)
        state = generations.read(layout)
        assert state.current is not None, f"no complete current generation after step {step}"
        run = [sys.executable, "-I", os.path.realpath(layout.current)]
        assert subprocess.run(run, capture_output=True, text=True, check=True).stdout in {
            "1 1.0\n",
            "1 2.0\n",
        }
        digest = install(layout, new, keep=1)
        assert generations.read(layout).current == digest
        assert generations.read(layout).complete == [digest]
        assert actions(layout, digest, keep=1) == []
        assert [name for name in os.listdir(layout.libdir) if name.startswith(".steadygpu")] == []
    assert step > 15, "the sweep must cut inside the installation"


DIGESTS = st.lists(st.sampled_from([c * 64 for c in "abcdef"]), unique=True, max_size=6)


@given(DIGESTS, st.data(), st.integers(1, 4))
def test_no_plan_deletes_what_it_makes_current_or_more_than_it_must(complete, data, keep):
    layout = Layout("/lib", "/bin")
    wanted = data.draw(st.sampled_from([c * 64 for c in "abcdef"]))
    current = data.draw(st.sampled_from([*complete, None]))
    plan = generations.plan(State(current=current, complete=complete), layout, wanted, keep)
    left = ({*complete} - {*plan.delete}) | {wanted}
    assert wanted not in plan.delete
    assert len(left) == min(keep, len({*complete, wanted}))
    if current is not None and keep > 1:
        assert current in left
